// A conversation in a terminal: sends the entered text, shows the response, and asks for decisions.

import { stdout } from "node:process";
import { BobbinError } from "bobbin/client";
import { ask } from "./ask.mjs";
import { cut, dim, oneLine } from "./output.mjs";
import { asked, exitOf, framesOf } from "./run.mjs";
import { Renderer, usageLine } from "./renderer.mjs";

/**
 * @typedef {import("bobbin/client").Client} Client
 * @typedef {import("bobbin/client").Wait} Wait
 * @typedef {import("bobbin/client").Frame} Frame
 * @typedef {{ run: string } | { after: string }} Of
 */

export class Conversation {
  #client;
  #terminal;
  #renderer = new Renderer({ write: (text) => this.#write(text) });
  /** Ids of messages that are on the screen. @type {Set<string>} */
  #told = new Set();
  /** Whether the progress line is on the screen. */
  #progress = false;
  /** The open prompts by wait, with controllers that withdraw them. @type {Map<string, AbortController>} */
  #questions = new Map();

  /**
   * @param {Client} client
   * @param {string} threadId
   * @param {import("./terminal.mjs").Terminal} terminal
   */
  constructor(client, threadId, terminal) {
    this.#client = client;
    this.threadId = threadId;
    this.#terminal = terminal;
  }

  /** Sends a text and shows the response. @param {string} text @param {AbortSignal} signal */
  async say(text, signal) {
    const { messageId } = await this.#client.thread(this.threadId).send(text, { signal });
    this.#told.add(messageId);
    await this.follow({ after: messageId }, signal);
  }

  /**
   * Shows a run until it ends or until the person leaves a decision for later.
   *
   * @param {Of} of
   * @param {AbortSignal} signal
   */
  async follow(of, signal) {
    const left = new AbortController();
    const both = AbortSignal.any([signal, left.signal]);
    // Ask one question at a time.
    let asking = Promise.resolve();
    const ask = () => void (asking = asking.then(() => this.#ask(both, () => left.abort())));
    try {
      const onConnection = (/** @type {boolean} */ open) => open || this.#show("Connection lost. Reconnecting …");
      for await (const frame of framesOf(this.#client, this.threadId, of, { signal: both, onConnection })) {
        if (frame.type === "progress") this.#show(frame.message);
        else if (frame.type === "run_parked" || (frame.type === "wait_opened" && frame.reference !== undefined)) ask();
        // The message is queued, perhaps behind a run that waits for a decision.
        else if (frame.type === "run" && frame.run === null) ask();
        else if (frame.type === "wait_closed") this.#questions.get(frame.id)?.abort();
        else if (frame.type === "run_ended") this.#ended(frame);
        else this.#render(frame);
      }
    } finally {
      left.abort();
      this.#renderer.end();
      this.#hide();
      await asking;
    }
  }

  /** @param {Frame} frame */
  #render(frame) {
    if (frame.type === "message_data") {
      if (this.#told.has(frame.message_id)) return;
      this.#told.add(frame.message_id);
    }
    this.#renderer.take(frame);
  }

  /** Shows earlier messages. @param {import("bobbin/client").Message[]} messages */
  recall(messages) {
    const renderer = new Renderer({ write: (text) => this.#write(text), all: dim });
    for (const message of messages) {
      this.#told.add(message.id);
      renderer.message(message);
    }
  }

  /** Prints a line. @param {string} text  harmless */
  line(text) {
    this.#renderer.line(text);
  }

  /** Asks about all open waits that have no prompt yet. @param {AbortSignal} signal @param {() => void} leave */
  async #ask(signal, leave) {
    for (const wait of await asked(this.#client, this.threadId).catch(() => [])) {
      if (this.#questions.has(wait.id) || signal.aborted) continue;
      const question = new AbortController();
      this.#questions.set(wait.id, question);
      const open = AbortSignal.any([signal, question.signal]);
      const decided = await this.#decide(wait, open);
      this.#questions.delete(wait.id);
      if (decided || open.aborted) continue;
      this.line(dim("(left for later; /waits asks again)"));
      return leave();
    }
  }

  /** Returns whether the wait was decided. @param {Wait} wait @param {AbortSignal} signal */
  async #decide(wait, signal) {
    while (!signal.aborted) {
      const decision = await ask(wait, (prompt) => this.#terminal.line(prompt, signal), (text) => this.line(text));
      if (decision === undefined) return false;
      try {
        await this.#client.thread(wait.threadId).decide(wait, decision);
        return true;
      } catch (error) {
        if (!(error instanceof BobbinError)) throw error;
        this.line(dim(`(${oneLine(error.message)})`));
        // Someone else has decided it.
        if (error.code === "conflict") return true;
      }
    }
    return false;
  }

  /** @param {Extract<Frame, { type: "run_ended" }>} frame */
  #ended({ outcome, reason, error, usage }) {
    if (exitOf(outcome) !== 0) this.line(dim(`(${outcome}: ${reason}${error?.message ? `; ${oneLine(error.message)}` : ""})`));
    const used = usageLine(usage);
    if (used !== "") this.line(dim(`(${used})`));
  }

  /** Shows a progress line. The next output replaces it. @param {string} text */
  #show(text) {
    if (this.#questions.size > 0 || this.#renderer.writing) return;
    this.#hide();
    stdout.write(dim(cut(oneLine(text), (stdout.columns || 80) - 1)));
    this.#progress = true;
  }

  #hide() {
    if (this.#progress) stdout.write("\r\x1b[K");
    this.#progress = false;
  }

  /** @param {string} text */
  #write(text) {
    this.#hide();
    stdout.write(text);
  }
}
