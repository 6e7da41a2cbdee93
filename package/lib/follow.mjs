// A thread's events, each exactly once: after a reconnect, events that were already seen are dropped.

import { createHash } from "node:crypto";
import { retry } from "./retry.mjs";

/**
 * @typedef {import("bobbin/client").Frame} Frame
 * @typedef {import("bobbin/client").Told} Told
 * @typedef {import("bobbin/client").Message} Message
 * @typedef {Extract<Frame, { type: "snapshot" }>} Snapshot
 */

/** The number of messages to remember. A reconnect repeats at most 500. */
const REMEMBERED = 2000;

/** Returns the number after the last `_` of a message's id. Messages are ordered by it. @param {string} id */
export const sequence = (id) => Number(id.slice(id.lastIndexOf("_") + 1));

/** Drops frames, and parts of texts, that were already seen. */
export class Distinct {
  /** A hash of each message that was seen. @type {Map<string, string>} */
  #told = new Map();
  /** The text that is being streamed. @type {{ id: string, attempt: number, bytes: number } | undefined} */
  #partial;
  /** The sequence number of the newest message. */
  newest = 0;

  /**
   * @template {Frame} F
   * @param {F} frame       no snapshot
   * @returns {F | undefined} its new part
   */
  take(frame) {
    if (frame.type === "message_data") return this.#message(frame.data) ? frame : undefined;
    if (frame.type === "message_chunk") return /** @type {F | undefined} */ (this.#chunk(frame));
    if (frame.type !== "message_reset") return frame;
    const { message_id: id, attempt } = frame;
    if (this.#told.has(id) || (this.#partial?.id === id && this.#partial.attempt >= attempt)) return undefined;
    this.#partial = { id, attempt, bytes: 0 };
    return frame;
  }

  /** Returns whether the message is new or has changed. @param {Message} message */
  #message(message) {
    // Leave out fields that change without the message: its queue status and its subagent's state.
    const { id, role, content, tool_calls, tool_status, silent, attachments, metadata: { queued, queue_status, ...metadata } } = message;
    const what = createHash("sha1").update(JSON.stringify([role, content, tool_calls, tool_status, silent, attachments, metadata])).digest("base64");
    if (this.#told.get(id) === what) return false;
    this.#told.delete(id);
    this.#told.set(id, what);
    if (this.#told.size > REMEMBERED) for (const oldest of this.#told.keys()) {
      this.#told.delete(oldest);
      break;
    }
    this.newest = Math.max(this.newest, sequence(id));
    if (this.#partial?.id === id) this.#partial = undefined;
    return true;
  }

  /** @param {Extract<Frame, { type: "message_chunk" }>} frame */
  #chunk(frame) {
    const { message_id: id, attempt, offset, chunk } = frame;
    if (this.#told.has(id)) return undefined;
    const same = this.#partial?.id === id ? this.#partial : undefined;
    if (same !== undefined && attempt < same.attempt) return undefined;
    const [had, bytes] = [same?.attempt === attempt ? same.bytes : 0, Buffer.byteLength(chunk)];
    if (had > 0 && offset + bytes <= had) return undefined;
    this.#partial = { id, attempt, bytes: offset + bytes };
    if (offset >= had) return frame;
    return { ...frame, offset: had, chunk: Buffer.from(chunk).subarray(had - offset).toString() };
  }
}

/**
 * Yields a thread's events until the signal aborts. Messages are complete, even if the connection or the server is
 * lost. Transient events (progress, starting calls) can be missed while the connection is down. `start` begins with
 * the first message, `now` with the reply that is being streamed.
 *
 * @param {import("bobbin/client").Client} client
 * @param {string} threadId
 * @param {{ from: "start" | "now" } & Pick<import("bobbin/client").FramesOptions, "signal" | "onConnection">} options
 * @returns {AsyncGenerator<Told>}
 */
export async function* follow(client, threadId, { from, ...options }) {
  const distinct = new Distinct();
  let begun = from === "start";
  if (begun) {
    for await (const message of history(client, threadId)) {
      const frame = distinct.take(asFrame(message));
      if (frame !== undefined) yield { frame };
    }
  }
  for await (const { frame, id } of client.thread(threadId).frames(options)) {
    /** @type {Frame[]} */
    let frames = [frame];
    if (frame.type === "snapshot") {
      const missed = begun ? await missing(client, threadId, frame, distinct.newest) : [];
      const all = [...missed, ...frame.messages].map(asFrame);
      frames = begun ? all : [];
      if (!begun) for (const one of all) distinct.take(one);
      if (frame.partial !== null) {
        const { message_id, attempt, text } = frame.partial;
        if (begun) frames.push({ type: "message_reset", message_id, attempt });
        frames.push({ type: "message_chunk", message_id, depth: 0, chunk: text, attempt, offset: 0 });
      }
      begun = true;
    }
    for (const one of frames) {
      const fresh = distinct.take(one);
      if (fresh !== undefined) yield { frame: fresh, ...(id !== undefined && { id }) };
    }
  }
}

/** @param {Message} message @returns {Extract<Frame, { type: "message_data" }>} */
const asFrame = (message) => ({ type: "message_data", message_id: message.id, depth: message.depth, data: message });

/**
 * Yields all messages, oldest first.
 *
 * @param {import("bobbin/client").Client} client
 * @param {string} threadId
 * @param {{ includeSilent?: boolean, depth?: number }} [more]
 */
export async function* history(client, threadId, more = {}) {
  /** @type {string | undefined} */
  let after;
  for (;;) {
    const query = { limit: 500, order: /** @type {const} */ ("asc"), ...more, ...(after !== undefined && { after }) };
    const { data } = await retry(() => client.GET("/api/threads/{threadId}/messages", { params: { path: { threadId }, query } }));
    yield* data?.messages ?? [];
    after = data?.messages.at(-1)?.id;
    if (!data?.hasMore || after === undefined) return;
  }
}

/**
 * Returns the messages between the newest known one and a snapshot. A snapshot has only the newest messages.
 *
 * @param {import("bobbin/client").Client} client
 * @param {string} threadId
 * @param {Snapshot} snapshot
 * @param {number} newest
 */
async function missing(client, threadId, { messages, hasMore }, newest) {
  /** @type {Message[]} */
  let missed = [];
  let [before, more] = [messages[0]?.id, hasMore];
  while (more && before !== undefined && sequence(before) > newest + 1) {
    const query = { limit: 500, before };
    const { data } = await client.GET("/api/threads/{threadId}/messages", { params: { path: { threadId }, query } });
    missed = [...(data?.messages.filter(({ id }) => sequence(id) > newest) ?? []), ...missed];
    [before, more] = [data?.messages[0]?.id, data?.hasMore === true];
  }
  return missed;
}
