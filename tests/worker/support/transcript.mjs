// A client's view of a thread, built only from the events of its stream. It checks the stream's guarantees: no text is
// lost or repeated, and an attempt's text is dropped with the attempt.

import assert from "node:assert/strict";

/** @typedef {{ attempt: number, text: string }} Partial */

export class Transcript {
  /** @param {Transcript} [from]  continue from a copy of this one */
  constructor(from) {
    const { messages, partial, streamed } = from ?? {};
    /** Complete messages by id. @type {Map<string, any>} */
    this.messages = new Map(messages ?? []);
    /** Text that is still being streamed, by message. @type {Map<string, Partial>} */
    this.partial = new Map([...(partial ?? [])].map(([id, text]) => [id, { ...text }]));
    /** The streamed text of every message that was then replaced by the complete message. @type {Map<string, string>} */
    this.streamed = new Map(streamed ?? []);
    /** The number of resets, snapshots and chunks. */
    this.seen = { reset: 0, snapshot: 0, chunk: 0, data: 0 };
  }

  /**
   * @param {string} kind  the event's name, or a frame's `type`
   * @param {any} data
   */
  take(kind, data) {
    if (kind === "snapshot") this.snapshot(data);
    else if (kind === "message_chunk") this.chunk(data);
    else if (kind === "message_reset") this.reset(data);
    else if (kind === "message_data") this.message(data);
  }

  /** @param {any} data */
  snapshot(data) {
    this.seen.snapshot++;
    this.messages = new Map(data.messages.map((/** @type {any} */ message) => [message.id, message]));
    this.partial.clear();
    if (data.partial) {
      const { message_id, attempt, text, chunk } = data.partial;
      this.partial.set(message_id, { attempt, text: text ?? chunk });
    }
  }

  /** @param {any} data */
  chunk({ message_id, attempt, offset, chunk }) {
    this.seen.chunk++;
    const now = this.partial.get(message_id);
    assert.ok(Number.isInteger(attempt) && Number.isInteger(offset), "a chunk has an attempt and an offset");
    if (now && attempt < now.attempt) assert.fail(`a chunk of attempt ${attempt} after attempt ${now.attempt}`);
    const text = now && now.attempt === attempt ? now.text : "";
    if (now && attempt > now.attempt) assert.equal(offset, 0, "a new attempt starts at offset 0");
    assert.equal(offset, Buffer.byteLength(text), `the chunk ${JSON.stringify(chunk)} of ${message_id} joins on`);
    this.partial.set(message_id, { attempt, text: text + chunk });
  }

  /** @param {any} data */
  reset({ message_id, attempt }) {
    this.seen.reset++;
    const now = this.partial.get(message_id);
    if (now) assert.ok(attempt > now.attempt, `a reset names a later attempt: ${attempt} after ${now.attempt}`);
    this.partial.set(message_id, { attempt, text: "" });
  }

  /** @param {any} data */
  message({ message_id, data }) {
    this.seen.data++;
    assert.equal(message_id, data.id, "message_id is the message's id");
    const partial = this.partial.get(message_id);
    if (partial && data.role === "assistant" && data.status !== "pending") {
      this.streamed.set(message_id, partial.text);
      this.partial.delete(message_id);
    }
    this.messages.set(message_id, data);
  }

  /** Returns the text of a message as a person sees it now. @param {string} id @returns {string} */
  text(id) {
    return this.partial.get(id)?.text ?? this.messages.get(id)?.content ?? "";
  }

  /** Returns the complete messages as [role, content], in the order of the thread. */
  lines() {
    return [...this.messages.values()].map(({ role, content }) => [role, content]);
  }
}
