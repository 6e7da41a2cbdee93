// Renders a conversation for the terminal while it happens: texts as they are streamed, and one line for each call and
// result.

import { stdout } from "node:process";
import { bold, cut, dim, harmless, money, oneLine } from "./output.mjs";

/**
 * @typedef {import("bobbin/client").Frame} Frame
 * @typedef {import("bobbin/client").Message} Message
 */

/** The number of characters of arguments and results that a line shows. */
const SHOWN = 200;

export class Renderer {
  /** The reply that is being written at the cursor. @type {{ id: string, text: string } | undefined} */
  #open;
  #write;
  #all;

  /** @param {{ write?: (text: string) => void, all?: (text: string) => string }} [options]  `all` styles all output */
  constructor({ write = (text) => void stdout.write(text), all = (text) => text } = {}) {
    this.#write = write;
    this.#all = all;
  }

  /** @param {Frame} frame  from `follow` or `Distinct` */
  take(frame) {
    if (frame.type === "message_data") this.message(frame.data);
    else if (frame.type === "message_chunk") this.#chunk(frame.message_id, frame.chunk);
    else if (frame.type === "message_reset") this.#lost(frame.message_id);
    else if (frame.type === "messages_cut") this.line(dim(`(${frame.count} messages were dropped)`));
    else if (frame.type === "agent_handoff") this.line(dim(`(now: ${oneLine(frame.new_agent_title ?? frame.new_agent_id)})`));
  }

  /** @param {Message} message */
  message(message) {
    const { id, role, content, metadata } = message;
    if (role === "assistant") {
      this.#reply(id, content ?? "");
      for (const [name, args] of callsOf(message)) this.line(dim(`• ${oneLine(name)} ${cut(oneLine(args), SHOWN)}`));
      return;
    }
    const text = content ?? "";
    if (role === "tool") this.line(dim(`  ${message.tool_status === "error" ? "failed:" : "="} ${cut(oneLine(text), SHOWN)}`));
    else if (role === "user") this.line(bold(`› ${harmless(text)}`));
    else this.line(dim(metadata["status_kind"] === undefined ? `${role}: ${harmless(text)}` : `! ${harmless(text)}`));
    for (const { name, path } of message.attachments) this.line(dim(`  + ${oneLine(name ?? path)}`));
  }

  /** Whether an unfinished text is on the current line. */
  get writing() {
    return this.#open !== undefined;
  }

  /** Prints a line below the current text. @param {string} text  harmless */
  line(text) {
    this.end();
    this.#write(`${this.#all(text)}\n`);
  }

  /** Ends the line of the current text. */
  end() {
    if (this.#open !== undefined) this.#write("\n");
    this.#open = undefined;
  }

  /** @param {string} id @param {string} chunk */
  #chunk(id, chunk) {
    if (this.#open?.id !== id) {
      this.end();
      this.#open = { id, text: "" };
    }
    if (this.#open !== undefined) this.#open.text += chunk;
    this.#write(this.#all(harmless(chunk)));
  }

  /** Prints the rest of a reply, of which a part may already be on the screen. @param {string} id @param {string} text */
  #reply(id, text) {
    const there = this.#open?.id === id ? this.#open.text : "";
    if (!text.startsWith(there)) this.#lost(id);
    const rest = text.startsWith(there) ? text.slice(there.length) : text;
    if (rest !== "") this.#chunk(id, rest);
    this.end();
  }

  /** @param {string} id */
  #lost(id) {
    if (this.#open?.id === id) this.line(dim("(the attempt was lost; the reply begins again)"));
  }
}

/** Returns names and arguments of a reply's calls. @param {Message} message @returns {[string, string][]} */
function callsOf({ tool_calls }) {
  try {
    return JSON.parse(tool_calls ?? "[]").map((/** @type {any} */ { function: { name, arguments: args } }) => [String(name), String(args)]);
  } catch {
    return [["(unreadable calls)", ""]];
  }
}

/** Formats a run's usage in one line. @param {import("bobbin/client").RunOutcome["usage"]} usage */
export function usageLine(usage) {
  if (!usage) return "";
  const { costUsd, inputTokens, outputTokens, steps, seconds } = usage;
  const cost = costUsd > 0 ? `, ${money(costUsd)}` : "";
  return `${steps} ${steps === 1 ? "step" : "steps"}, ${inputTokens} + ${outputTokens} tokens${cost}, ${seconds} s`;
}
