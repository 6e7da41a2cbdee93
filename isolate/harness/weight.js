// How large a value is for whoever reads it: written out, so that what is used twice counts twice. A table says each object
// once, however often it is used, and the other side makes a copy of it for each use.

import * as i from "./intrinsics.js";

export class Weights {
  /** Of each object alone, by its id: its parts and texts, and the contents of binary values. */
  #texts = i.list();
  #contents = i.list();
  /** The objects that it refers to, one after another, and where those of each id begin. */
  #references = i.list();
  #starts = i.list();
  #id = 0;
  #shared = false;
  #sumOfTexts = 0;
  #sumOfContents = 0;

  constructor() {
    this.begin(0);
  }

  /** From here on it is about this object. @param {number} id ascending */
  begin(id) {
    this.#id = id;
    this.#texts[id] = 0;
    this.#contents[id] = 0;
    this.#starts[id] = this.#references.length;
  }

  /** A text, or anything else that is no object, in bytes. @param {number} bytes */
  text(bytes) {
    this.#texts[this.#id] += bytes;
    this.#sumOfTexts += bytes;
  }

  /** @param {number} bytes */
  content(bytes) {
    this.#contents[this.#id] += bytes;
    this.#sumOfContents += bytes;
  }

  /** A reference to an object. @param {number} id @param {boolean} known whether there was one before */
  refers(id, known) {
    this.#references[this.#references.length] = id;
    if (known) this.#shared = true;
  }

  /** Bytes so far, each object counted once. */
  get texts() {
    return this.#sumOfTexts;
  }

  /** Bytes of everything, written out. @returns {{ texts: number, contents: number }} */
  total() {
    if (!this.#shared) return { texts: this.#sumOfTexts, contents: this.#sumOfContents };
    return { texts: this.#written(this.#texts), contents: this.#written(this.#contents) };
  }

  /** The sum of what is under the root, depth first. What contains itself counts once there: its reader refuses it. @param {number[]} own */
  #written(own) {
    const sums = i.list();
    const next = i.list();
    const done = i.list();
    const open = i.list();
    open[0] = 0;
    while (open.length > 0) {
      const id = open[open.length - 1];
      if (next[id] === undefined) {
        next[id] = this.#starts[id];
        sums[id] = own[id];
      }
      const end = id + 1 < this.#starts.length ? this.#starts[id + 1] : this.#references.length;
      if (next[id] === end) {
        done[id] = sums[id];
        open.length--;
        if (open.length > 0) sums[open[open.length - 1]] += done[id];
        continue;
      }
      const to = this.#references[next[id]++];
      if (done[to] !== undefined) sums[id] += done[to];
      else if (next[to] === undefined) open[open.length] = to;
    }
    return done[0];
  }
}
