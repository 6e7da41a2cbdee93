// Who may run now. The heaps of all runs of an isolate share its memory: together they may have so much, and who does
// not fit waits in the order of arrival.
//
// A run that was started from inside of another one must not wait for it: the two would wait for each other. It takes
// from a reserve, or it is refused at once.
//
// The platform may end a request without a word to its code, and then nobody gives back what the run had. So a place is
// a lease: its run renews it while it lives, and whoever waits takes away what was not renewed.

/** Bytes that all runs together may have. */
export const BUDGET = 80 << 20;
/** Bytes for runs that are started from inside of runs. */
export const RESERVE = 32 << 20;
/** How often a lease is renewed, and how often those that wait look at the leases of others. */
const RENEW_MS = 1000;
/** A lease that was not renewed for so long may be taken away; its run had five chances. */
const LEASE_MS = 5000;

/**
 * @typedef {object} Place
 * @property {string} id
 * @property {number} bytes
 * @property {"budget" | "reserve"} from
 * @property {number} renewed       milliseconds since 1970
 * @property {boolean} suspected    was found not renewed once
 *
 * @typedef {object} Waiting
 * @property {string} id
 * @property {number} bytes
 * @property {(place: Place) => void} admit
 */

export class Admission {
  #budget;
  #reserve;
  #lease;
  /** Those that run. @type {Set<Place>} */
  #places = new Set();
  /** Those that wait, in the order of their arrival. @type {Set<Waiting>} */
  #queue = new Set();
  #running;

  /**
   * `running`: ids of runs that have a place. Admissions that share it know each other's: the ancestors of a run may have
   * their place in another one.
   *
   * @param {{ budget?: number, reserve?: number, leaseMs?: number, running?: Set<string> }} [settings]
   */
  constructor({ budget = BUDGET, reserve = RESERVE, leaseMs = LEASE_MS, running = new Set() } = {}) {
    this.#budget = budget;
    this.#reserve = reserve;
    this.#lease = leaseMs;
    this.#running = running;
  }

  /** How many run, and how many wait. */
  get counts() {
    return { running: this.#places.size, waiting: this.#queue.size };
  }

  /**
   * Waits for a place. Undefined: this run has a running ancestor, and there is no room for it.
   *
   * @param {string} id
   * @param {number} bytes
   * @param {string[]} ancestors
   * @param {Promise<unknown>} gone   resolves when the run is not wanted any more
   * @returns {Promise<Place | undefined>}
   */
  async enter(id, bytes, ancestors, gone) {
    const inside = ancestors.some((ancestor) => this.#running.has(ancestor));
    if (inside) {
      if (this.#queue.size === 0 && this.#fits(bytes, "budget")) return this.#take(id, bytes, "budget");
      return this.#fits(bytes, "reserve") ? this.#take(id, bytes, "reserve") : undefined;
    }
    if (this.#queue.size === 0 && this.#fits(bytes, "budget")) return this.#take(id, bytes, "budget");
    return this.#wait(id, bytes, gone);
  }

  /** @param {Place} place */
  leave(place) {
    if (this.#free(place)) this.#next();
  }

  /** Renews a lease for as long as the request of this code lives; the answer ends that. @param {Place} place @returns {() => void} */
  renewing(place) {
    const timer = setInterval(() => this.renew(place), RENEW_MS);
    return () => clearInterval(timer);
  }

  /** @param {Place} place */
  renew(place) {
    place.renewed = Date.now();
    place.suspected = false;
  }

  /** @param {string} id @param {number} bytes @param {Promise<unknown>} gone @returns {Promise<Place | undefined>} */
  async #wait(id, bytes, gone) {
    /** @type {(place: Place | undefined) => void} */
    let resolve = () => {};
    /** @type {Promise<Place | undefined>} */
    const admitted = new Promise((done) => (resolve = done));
    const waiting = { id, bytes, admit: resolve };
    this.#queue.add(waiting);
    const timer = setInterval(() => this.#reclaim(), RENEW_MS);
    const leave = () => {
      this.#queue.delete(waiting);
      resolve(undefined);
      // It may have been the one that held up the others.
      this.#next();
    };
    gone.then(leave, leave);
    try {
      return await admitted;
    } finally {
      clearInterval(timer);
    }
  }

  /** Takes away what was not renewed, twice in a row: a timer may be late once, with all others. */
  #reclaim() {
    const now = Date.now();
    for (const place of this.#places) {
      if (now - place.renewed < this.#lease) place.suspected = false;
      else if (place.suspected) this.#free(place);
      else place.suspected = true;
    }
    this.#next();
  }

  #next() {
    for (const waiting of this.#queue) {
      if (!this.#fits(waiting.bytes, "budget")) return;
      this.#queue.delete(waiting);
      waiting.admit(this.#take(waiting.id, waiting.bytes, "budget"));
    }
  }

  /** @param {number} bytes @param {Place["from"]} from */
  #fits(bytes, from) {
    let taken = bytes;
    for (const place of this.#places) if (place.from === from) taken += place.bytes;
    return taken <= (from === "budget" ? this.#budget : this.#reserve);
  }

  /** @param {string} id @param {number} bytes @param {Place["from"]} from @returns {Place} */
  #take(id, bytes, from) {
    const place = { id, bytes, from, renewed: Date.now(), suspected: false };
    this.#places.add(place);
    this.#running.add(id);
    return place;
  }

  /** Whether it was taken. @param {Place} place */
  #free(place) {
    this.#running.delete(place.id);
    return this.#places.delete(place);
  }
}
