// The file format of an exported thread: one JSON object per line. docs/command-line.md describes the lines.

import { createReadStream } from "node:fs";
import { Complaint } from "./complaint.mjs";
import { harmless } from "./output.mjs";

/**
 * @typedef {import("bobbin/client").Message} Message
 * @typedef {import("bobbin/client").components["schemas"]["ThreadFacts"]} ThreadFacts
 * @typedef {import("bobbin/client").components["schemas"]["FileRecord"]} FileRecord
 *
 * @typedef {{ type: "thread", format: 1, bobbin: string, exportedAt: string, thread: ThreadFacts }} ThreadLine
 * @typedef {{ type: "message", message: Message }} MessageLine
 * @typedef {{ type: "value", key: string, value: unknown, updatedAt: number }} ValueLine
 * @typedef {{ type: "file", file: FileRecord, bare?: boolean }} FileLine       bare: without its content, as for a directory
 * @typedef {{ type: "bytes", path: string, data: string }} BytesLine           base64, in order, after the line of their file
 * @typedef {{ type: "log", log: Record<string, unknown> }} LogLine
 * @typedef {{ type: "end", messages: number, values: number, files: number, logs: number }} EndLine
 * @typedef {ThreadLine | MessageLine | ValueLine | FileLine | BytesLine | LogLine | EndLine} Line
 */

/** The number of file bytes in one line. */
export const PIECE = 192 << 10;
/** The maximum length of a line. A thread's largest value has 1 MB. */
const LONGEST = 16 << 20;

/**
 * Yields the lines of a file, with one in memory at a time.
 *
 * @param {string} path
 * @returns {AsyncGenerator<Line>}
 */
export async function* linesOf(path) {
  /** @type {Buffer[]} */
  let parts = [];
  let [bytes, number] = [0, 0];
  for await (const chunk of createReadStream(path)) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, end));
      from = end + 1;
      const text = Buffer.concat(parts).toString("utf8");
      [parts, bytes] = [[], 0];
      yield parsed(path, text, ++number);
    }
    parts.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes > LONGEST) throw new Complaint(`${harmless(path)}: line ${number + 1} is longer than any entry of a thread.`);
  }
  if (bytes > 0) throw new Complaint(`${harmless(path)} breaks off in line ${number + 1}. Export the thread again.`);
}

/** @param {string} path @param {string} text @param {number} number @returns {Line} */
function parsed(path, text, number) {
  try {
    const line = JSON.parse(text);
    if (typeof line?.type === "string") return line;
  } catch {
    // Reported below.
  }
  throw new Complaint(`${harmless(path)} is not an export of a thread: line ${number} is invalid.`);
}

/** Leaves out an unfinished step: a reply whose calls have no results yet, and everything after it. */
export class Complete {
  /** @type {Set<string>} */
  #open = new Set();
  /** @type {Message[]} */
  #held = [];

  /** The number of messages left out so far. */
  get held() {
    return this.#held.length;
  }

  /** @param {Message} message @returns {Message[]} the messages that are complete now */
  take(message) {
    this.#held.push(message);
    if (message.status === "pending") this.#open.add(message.id);
    if (message.role === "tool") this.#open.delete(message.tool_call_id ?? "");
    else for (const { id } of JSON.parse(message.tool_calls ?? "[]")) this.#open.add(id);
    return this.#open.size > 0 ? [] : this.#held.splice(0);
  }
}
