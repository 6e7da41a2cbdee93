// A cache of compiled code. The code of a tool or a hook is the same in every call, and the result depends only on the
// request. So a hit reveals nothing but the time it took.

const encoder = new TextEncoder();

/** The limit on the total length of the cached answers as JSON, in code units: the cache shares the isolate's memory with the runs. */
const MOST = 2 << 20;
/** Shorter requests are not cached: compiling them is as fast as a lookup. */
const LEAST = 4 << 10;

export class Answers {
  /** By the hash of the request, the most recently used last. @type {Map<string, { answer: any, size: number }>} */
  #kept = new Map();
  #size = 0;
  #most;

  /** @param {number} [most] */
  constructor(most = MOST) {
    this.#most = most;
  }

  /** The number of entries and their total size. */
  get counts() {
    return { answers: this.#kept.size, size: this.#size };
  }

  /**
   * Returns the cached answer to the request, or the result of `make`, which is cached unless it is an error.
   *
   * @template {object} A
   * @param {string} request
   * @param {() => Promise<A>} make
   * @returns {Promise<A>}
   */
  async of(request, make) {
    if (request.length < LEAST) return make();
    const digest = await crypto.subtle.digest("SHA-256", encoder.encode(request));
    const key = String.fromCharCode(...new Uint16Array(digest));
    const known = this.#kept.get(key);
    if (known) {
      this.#kept.delete(key);
      this.#kept.set(key, known);
      return known.answer;
    }
    const answer = await make();
    // The same request may have been answered meanwhile.
    const size = JSON.stringify(answer).length;
    if (!("error" in answer) && !this.#kept.has(key) && size <= this.#most) this.#keep(key, answer, size);
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
