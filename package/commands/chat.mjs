// `bobbin chat`: a conversation in the terminal, or line by line through a pipe.

import { stdin, stdout } from "node:process";
import { createInterface } from "node:readline";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { Conversation } from "../lib/conversation.mjs";
import { bold, dim, harmless, json, note, oneLine, print } from "../lib/output.mjs";
import { asked, askedLine, exitOf, outcomeOf } from "../lib/run.mjs";
import { online, refused, TARGET_HELP, TARGET_OPTIONS } from "../lib/target.mjs";
import { Terminal } from "../lib/terminal.mjs";
import { BobbinError } from "bobbin/client";

/**
 * @typedef {import("bobbin/client").Client} Client
 * @typedef {import("../lib/target.mjs").Target} Target
 */

/** The number of earlier messages shown when a thread is resumed. */
const RECALLED = 20;

const HELP = `/waits   shows the questions that you left for later
/thread  prints the thread's id
/quit    leaves, like Ctrl-D; the thread is kept`;

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "chat [agent] [--thread THREAD]",
  help: `  [agent]          the agent; you may omit the only one
  --thread THREAD  continues this thread, an id or key:NAME
  --key NAME       continues the thread with this key, or creates it
${TARGET_HELP}

Ctrl-C stops the current reply, and a second one leaves. Approvals, questions and budgets appear as prompts in between.
Through a pipe, each line is a message, there are no prompts, and the exit code is that of \`bobbin send --wait\`. With --json,
each outcome is one line.`,
  options: { ...TARGET_OPTIONS, thread: { type: "string" }, key: { type: "string" } },
  run: online(async (target, values, positionals) => {
    const { client } = target;
    const { thread, key } = values;
    if (positionals.length > 1 || (thread !== undefined && (positionals.length > 0 || key !== undefined))) {
      throw new Complaint("This command takes an agent or --thread, not both.", EXIT.usage);
    }
    const begin = thread === undefined ? await beginning(client, positionals[0], key) : () => Promise.resolve(String(thread));
    if (stdin.isTTY && stdout.isTTY && !values["json"]) {
      // Show the existing messages before the first prompt.
      const known = thread ?? (key === undefined ? undefined : await begin());
      return talk(target, begin, known === undefined ? undefined : String(known));
    }
    await lines(client, begin, values["json"]);
  }),
};

/**
 * Returns a function that creates the thread. It is called with the first message.
 *
 * @param {Client} client
 * @param {string | undefined} named
 * @param {string | undefined} key
 */
async function beginning(client, named, key) {
  const agent = named ?? (await onlyAgent(client));
  return () => (key === undefined ? client.createThread(agent).then((thread) => thread.id()) : client.thread({ key, agent }).id());
}

/** @param {Client} client */
async function onlyAgent(client) {
  const { data } = await client.GET("/api/agents");
  const [first, ...others] = data?.agents ?? [];
  if (first !== undefined && others.length === 0) return first.name;
  const names = [first, ...others].flatMap((agent) => (agent === undefined ? [] : [oneLine(agent.name)]));
  throw new Complaint(`Which agent? \`bobbin chat AGENT\`: ${names.join(", ") || "the server has no agents"}.`, EXIT.usage);
}

/**
 * @param {Client} client
 * @param {() => Promise<string>} begin
 * @param {boolean} asJson
 */
async function lines(client, begin, asJson) {
  /** @type {string | undefined} */
  let threadId;
  for await (const text of createInterface({ input: stdin })) {
    if (text.trim() === "") continue;
    threadId ??= await begin();
    const { messageId } = await client.thread(threadId).send(text);
    const outcome = await outcomeOf(client, threadId, messageId);
    process.exitCode = exitOf(outcome.outcome);
    if (asJson) print(json({ threadId, messageId, ...outcome }));
    else if (outcome.outcome === "completed") print(harmless(outcome.message?.content ?? ""));
    else note(`(${outcome.outcome}: ${outcome.reason}) ${harmless(outcome.error?.message ?? "")}`);
    if (outcome.outcome !== "parked") continue;
    for (const wait of asJson ? [] : await asked(client, threadId)) note(askedLine(wait));
    return;
  }
}

/** @param {Target} target @param {() => Promise<string>} begin @param {string | undefined} known */
async function talk(target, begin, known) {
  const chat = new Chat(target, begin);
  try {
    if (known !== undefined) await chat.resume(known);
    await chat.talk();
  } finally {
    chat.close();
  }
}

class Chat {
  #target;
  #begin;
  #terminal = new Terminal();
  /** @type {Conversation | undefined} */
  #conversation;
  /** Aborts the current turn. @type {AbortController | undefined} */
  #turn;
  /** The number of Ctrl-C presses since the last other input. */
  #interrupts = 0;
  #left = new AbortController();

  /** @param {Target} target @param {() => Promise<string>} begin */
  constructor(target, begin) {
    this.#target = target;
    this.#begin = begin;
    this.#terminal.onInterrupt = (typed) => this.#interrupt(typed);
  }

  /** Shows the last messages of a thread and its current run. @param {string} name */
  async resume(name) {
    const { client } = this.#target;
    const { data } = await client.GET("/api/threads/{threadId}", { params: { path: { threadId: name } } });
    if (data === undefined) throw new Error("a thread without facts");
    const threadId = data.thread.id;
    this.#conversation = new Conversation(client, threadId, this.#terminal);
    const { data: page } = await client.GET("/api/threads/{threadId}/messages", { params: { path: { threadId }, query: { limit: RECALLED } } });
    const { state } = data.thread;
    const [run] = await this.#runs(threadId);
    const current = (state === "running" || state === "parked") && run !== undefined && run.endedAt === null ? run : undefined;
    if (page?.hasMore) this.#conversation.line(dim("…"));
    this.#conversation.recall(page?.messages ?? []);
    if (current !== undefined) await this.#follow(async (conversation, signal) => conversation.follow({ run: current.run }, signal));
  }

  async talk() {
    if (this.#conversation === undefined) print(dim("Ctrl-D leaves, /help lists the commands."));
    for (;;) {
      const text = await this.#terminal.line(bold("› "), this.#left.signal);
      if (text === undefined) break;
      this.#interrupts = 0;
      if (text.trim() === "") continue;
      if (text.startsWith("/") && (await this.#command(text.trim()))) {
        if (text.trim() === "/quit") break;
        continue;
      }
      this.#conversation ??= new Conversation(this.#target.client, await this.#begin(), this.#terminal);
      await this.#follow((conversation, signal) => conversation.say(text, signal));
      if (this.#left.signal.aborted) break;
    }
    if (this.#conversation) note(dim(`Continue with \`bobbin chat --thread ${this.#conversation.threadId}\`.`));
  }

  close() {
    this.#terminal.close();
  }

  /** Runs a command such as /help. Returns whether the text was a command. @param {string} text */
  async #command(text) {
    const threadId = this.#conversation?.threadId;
    if (text === "/help") print(HELP);
    else if (text === "/thread") print(threadId ?? "The first message creates the thread.");
    else if (text === "/waits") await this.#waits(threadId);
    else return text === "/quit";
    return true;
  }

  /** @param {string | undefined} threadId */
  async #waits(threadId) {
    const [run] = threadId === undefined ? [] : await this.#runs(threadId);
    if (run === undefined || run.endedAt !== null) return print("Nothing waits for you here.");
    await this.#follow((conversation, signal) => conversation.follow({ run: run.run }, signal));
  }

  /** Returns the newest run, as a list. @param {string} threadId */
  async #runs(threadId) {
    const { data } = await this.#target.client.GET("/api/threads/{threadId}/runs", { params: { path: { threadId }, query: { limit: 1 } } });
    return data?.runs ?? [];
  }

  /** @param {(conversation: Conversation, signal: AbortSignal) => Promise<void>} body */
  async #follow(body) {
    if (this.#conversation === undefined) return;
    this.#turn = new AbortController();
    try {
      await body(this.#conversation, this.#turn.signal);
    } catch (error) {
      if (this.#turn.signal.aborted) return;
      if (!(error instanceof BobbinError)) throw error;
      this.#conversation.line(refused(error, this.#target).message);
    } finally {
      this.#turn = undefined;
    }
  }

  /** @param {string} typed */
  #interrupt(typed) {
    this.#interrupts++;
    if (typed !== "" && this.#turn === undefined) {
      this.#interrupts = 0;
      return this.#terminal.clear();
    }
    if (this.#interrupts > 1) {
      this.#left.abort();
      this.#turn?.abort();
      return;
    }
    if (this.#turn === undefined || this.#conversation === undefined) {
      stdout.write(dim(`\n(Press Ctrl-C again to leave)\n`));
      return this.#terminal.again();
    }
    const { threadId } = this.#conversation;
    this.#conversation.line(dim("(stopping; press Ctrl-C again to leave)"));
    this.#target.client.thread(threadId).stop().catch((/** @type {unknown} */ error) => {
      if (error instanceof BobbinError) this.#conversation?.line(refused(error, this.#target).message);
    });
  }
}
