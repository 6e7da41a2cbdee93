// What the compiler answered lately. A tool's code or a hook's is the same in every call, and what comes of it depends on
// nothing but the request: so who asks the same gets the same, and can tell it from how long it took at most.

const encoder = new TextEncoder();

/** Code units of compiled code that are kept: those of runs share the isolate's memory. */
const MOST = 2 << 20;
/** What is shorter is compiled as quickly as it is found. */
const LEAST = 4 << 10;

export class Answers {
  /** By the hash of the request, the latest used at the end. @type {Map<string, { answer: any, size: number }>} */
  #kept = new Map();
  #size = 0;
  #most;

  /** @param {number} [most] */
  constructor(most = MOST) {
    this.#most = most;
  }

  /** How many are kept, and how much that is. */
  get counts() {
    return { answers: this.#kept.size, size: this.#size };
  }

  /**
   * What was answered to the same request, or what `make` answers now; that is kept unless it is an error.
   *
   * @template {object} A
   * @param {string} request
   * @param {() => Promise<A>} make
   * @returns {Promise<A>}
   */
  async of(request, make) {
    if (request.length < LEAST || request.length > this.#most) return make();
    const digest = await crypto.subtle.digest("SHA-256", encoder.encode(request));
    const key = String.fromCharCode(...new Uint16Array(digest));
    const known = this.#kept.get(key);
    if (known) {
      this.#kept.delete(key);
      this.#kept.set(key, known);
      return known.answer;
    }
    const answer = await make();
    // Another request may have asked the same meanwhile.
    if (!("error" in answer) && !this.#kept.has(key)) this.#keep(key, answer, request.length);
    return answer;
  }

  /** @param {string} key @param {object} answer @param {number} size */
  #keep(key, answer, size) {
    this.#kept.set(key, { answer, size });
    this.#size += size;
    for (const [oldest, { size }] of this.#kept) {
      if (this.#size <= this.#most) return;
      this.#kept.delete(oldest);
      this.#size -= size;
    }
  }
}
