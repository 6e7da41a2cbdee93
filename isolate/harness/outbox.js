// Outgoing calls and reports. A limited number is in flight. The others wait here, in the sandbox's own memory, so that a
// flood harms only the sandbox.

import * as i from "./intrinsics.js";
import { LARGEST } from "./pack.js";

/**
 * Sends a message to the isolate. Returns 0 if the isolate wants no more of that kind.
 *
 * @typedef {(kind: string, a: number | string, b: number, text: string, buffers?: ArrayBuffer[]) => number} Send
 * @typedef {import("./pack.js").Packed} Packed
 * @typedef {(ok: boolean, value: any) => void} Answer
 * @typedef {{ kind: "call" | "report", target: number, packed: Packed, answer: Answer }} Item
 */

const MOST = 256;

export class Outbox {
  #send;
  /** Waiting items, by number. @type {Map<number, Item>} */
  #waiting = new i.Maps();
  #first = 1;
  #last = 0;
  /** Items in flight, by number. @type {Map<number, Item>} */
  #under = new i.Maps();
  #count = 0;
  #bytes = 0;
  /** Reports without an acknowledgement. */
  #reports = 0;
  /** @type {(() => void) | undefined} */
  #drained;

  /** @param {Send} send */
  constructor(send) {
    this.#send = send;
  }

  /** @param {number} target @param {Packed} packed @param {Answer} answer */
  call(target, packed, answer) {
    this.#add({ kind: "call", target, packed, answer });
  }

  /** @param {Packed} packed */
  report(packed) {
    this.#reports++;
    const answer = () => {
      this.#reports--;
      if (this.#reports === 0 && this.#drained) this.#drained();
    };
    this.#add({ kind: "report", target: 0, packed, answer });
  }

  /** Calls `then` when no report is pending. @param {() => void} then */
  drained(then) {
    if (this.#reports === 0) then();
    else this.#drained = then;
  }

  /** @param {number} id @param {(answer: Answer) => void} how */
  settle(id, how) {
    const item = i.mapGet(this.#under, id);
    if (item === undefined) return;
    i.mapDelete(this.#under, id);
    this.#count--;
    this.#bytes -= item.packed.size;
    how(item.answer);
    this.#flush();
  }

  /** @param {Item} item */
  #add(item) {
    i.mapSet(this.#waiting, ++this.#last, item);
    this.#flush();
  }

  #flush() {
    while (this.#first <= this.#last && this.#count < MOST) {
      const item = i.mapGet(this.#waiting, this.#first);
      const { packed } = item;
      if (this.#count > 0 && this.#bytes + packed.size > LARGEST) return;
      i.mapDelete(this.#waiting, this.#first);
      const id = this.#first++;
      i.mapSet(this.#under, id, item);
      this.#count++;
      this.#bytes += packed.size;
      const { text, buffers } = packed;
      // Free the contents, and keep only their size.
      item.packed = { text: "", buffers: i.list(), size: packed.size };
      this.#send(item.kind, id, item.target, text, buffers);
    }
  }
}
