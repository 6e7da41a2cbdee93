// Who may compute now. The heaps of all runs of an isolate share its memory.
//
// A run that computes is counted with its whole limit, as it may take that at any moment; one that only waits is counted
// with what it has. So code that waits, for a model, a tool or for ever, keeps hardly anybody out. One that never waits
// gives its place up between two slices of time while others wait, and queues again.
//
// Who waits comes by owner: first whose runs have least. A run that was started from inside of another one must not
// wait for it for ever: for such runs there is a reserve. Nobody waits longer than a bound, and where waiting runs alone
// fill the memory, the one that has waited with most is ended.
//
// The platform may end a request without a word to its code, and then nobody gives back what the run had. So a place is
// a lease: its run renews it while it lives, and whoever waits takes away what was not renewed.

/** Bytes that all runs together may have. */
export const BUDGET = 80 << 20;
/** More bytes, for runs that are started from inside of runs. */
export const RESERVE = 16 << 20;
/** How often a lease is renewed, and how often those that wait look at the leases of others. */
const RENEW_MS = 1000;
/** A lease that was not renewed for so long may be taken away; its run had five chances. */
const LEASE_MS = 5000;
/** The longest wait for a place. */
const WAIT_MS = 30_000;
/** Who has waited for so long comes before those with less. */
const AGED_MS = 2000;
/** How long a run may compute while others wait. */
const SLICE_MS = 100;
/** How long a run may keep memory that others need, and only wait. */
const HOLD_MS = 5000;

/**
 * @typedef {object} Place
 * @property {string} id
 * @property {string} owner
 * @property {string[]} ancestors
 * @property {number} size          what it may have
 * @property {number} charge        what it is counted with
 * @property {boolean} busy         whether it computes
 * @property {number} since         since when it does, or only waits: milliseconds since 1970
 * @property {(reason: string) => void} end
 * @property {number} renewed       milliseconds since 1970
 * @property {boolean} suspected    was found not renewed once
 *
 * @typedef {object} Waiting
 * @property {Place} place
 * @property {number} since
 * @property {(admitted: boolean) => void} settle
 */

export class Admission {
  #settings;
  /** Those that have a place. @type {Set<Place>} */
  #places = new Set();
  /** Those that wait, new ones and ones that have a place, in the order of their arrival. @type {Set<Waiting>} */
  #queue = new Set();
  #running;

  /**
   * `running`: ids of runs that have a place. Admissions that share it know each other's: the ancestors of a run may have
   * their place in another one.
   *
   * @param {{ budget?: number, reserve?: number, leaseMs?: number, waitMs?: number, holdMs?: number, sliceMs?: number, running?: Set<string> }} [settings]
   */
  constructor({ running = new Set(), ...settings } = {}) {
    this.#settings = { budget: BUDGET, reserve: RESERVE, leaseMs: LEASE_MS, waitMs: WAIT_MS, holdMs: HOLD_MS, sliceMs: SLICE_MS, ...settings };
    this.#running = running;
  }

  /** How many have a place, and how many wait. */
  get counts() {
    return { running: this.#places.size, waiting: this.#queue.size };
  }

  /** What all are counted with. */
  get charged() {
    return this.#sum();
  }

  /**
   * Waits for a place. Undefined: there is none in time, or never one as long as the run's ancestors run.
   *
   * @param {string} id
   * @param {number} size
   * @param {string[]} ancestors
   * @param {Promise<unknown>} gone   resolves when the run is not wanted any more
   * @param {{ owner?: string, end?: (reason: string) => void }} [more]   `end`: what ends it where others need its memory
   * @returns {Promise<Place | undefined>}
   */
  async enter(id, size, ancestors, gone, { owner = "", end = () => {} } = {}) {
    const now = Date.now();
    const place = { id, owner, ancestors, size, charge: 0, busy: false, since: now, end, renewed: now, suspected: false };
    const around = this.#sum((other) => ancestors.includes(other.id));
    if (around > 0 && around + size > this.#room(place)) return undefined;
    return (await this.#admitted(place, gone)) ? place : undefined;
  }

  /** The run only waits now, and has so much. @param {Place} place @param {number} bytes */
  idle(place, bytes) {
    if (!this.#places.has(place)) return;
    if (place.busy) place.since = Date.now();
    place.busy = false;
    place.charge = Math.min(bytes, place.size);
    this.#next();
  }

  /**
   * The run wants to compute again. False: there was no room for it in time.
   *
   * @param {Place} place @param {Promise<unknown>} gone @returns {Promise<boolean>}
   */
  async busy(place, gone) {
    if (place.busy || !this.#places.has(place)) return true;
    return this.#admitted(place, gone);
  }

  /** Whether a run that computes is to make way, as it has done so for long and others wait. @param {Place} place */
  yields(place) {
    return this.#queue.size > 0 && place.busy && Date.now() - place.since >= this.#settings.sliceMs;
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

  /** Whether it may compute, sooner or later. @param {Place} place @param {Promise<unknown>} gone @returns {Promise<boolean>} */
  async #admitted(place, gone) {
    if (this.#queue.size === 0 && this.#fits(place)) {
      this.#take(place);
      return true;
    }
    /** @type {(admitted: boolean) => void} */
    let settle = () => {};
    /** @type {Promise<boolean>} */
    const admitted = new Promise((done) => (settle = done));
    const waiting = { place, since: Date.now(), settle };
    this.#queue.add(waiting);
    const leave = () => {
      this.#queue.delete(waiting);
      settle(false);
      // It may have been the one that held up the others.
      this.#next();
    };
    const look = setInterval(() => {
      if (Date.now() - waiting.since >= this.#settings.waitMs) return leave();
      this.#reclaim();
    }, Math.min(RENEW_MS, this.#settings.holdMs));
    gone.then(leave, leave);
    this.#next();
    try {
      return await admitted;
    } finally {
      clearInterval(look);
    }
  }

  /** Takes away what was not renewed, twice in a row: a timer may be late once, with all others. */
  #reclaim() {
    const now = Date.now();
    for (const place of this.#places) {
      if (now - place.renewed < this.#settings.leaseMs) place.suspected = false;
      else if (place.suspected) this.#free(place);
      else place.suspected = true;
    }
    if (!this.#next()) this.#evict(now);
  }

  /** Ends a run that only waits, with memory that others need: of the owner with most, the one with most. @param {number} now */
  #evict(now) {
    if (this.#queue.size === 0 || [...this.#places].some(({ busy }) => busy)) return;
    // Those that wait for a run of theirs are not idle.
    const around = new Set([...this.#places, ...[...this.#queue].map(({ place }) => place)].flatMap(({ ancestors }) => ancestors));
    const queued = new Set([...this.#queue].map(({ place }) => place));
    const victims = [...this.#places].filter((place) => now - place.since >= this.#settings.holdMs && !around.has(place.id) && !queued.has(place));
    victims.sort((a, b) => this.#of(b.owner) - this.#of(a.owner) || b.charge - a.charge);
    const [victim] = victims;
    victim?.end(`sandbox full: this code only waited for ${Math.round((now - victim.since) / 1000)} s, with memory that other code needed`);
  }

  /** Admits whoever may come now; whether somebody did. */
  #next() {
    let admitted = false;
    for (let again = true; again; ) {
      again = false;
      let held = false;
      for (const waiting of this.#inOrder()) {
        // Those that compute make way soon: what comes first would never fit if others always came before it. The reserve
        // is for runs inside of runs alone.
        if (held && !this.#inside(waiting.place)) continue;
        if (!this.#fits(waiting.place)) {
          held ||= [...this.#places].some(({ busy }) => busy);
          continue;
        }
        this.#queue.delete(waiting);
        this.#take(waiting.place);
        waiting.settle(true);
        admitted = again = true;
        break;
      }
    }
    return admitted;
  }

  /** Those that wait, the first to come first: who has waited long, and then whose owner has least. */
  #inOrder() {
    const now = Date.now();
    const aged = (/** @type {Waiting} */ { since }) => (now - since >= AGED_MS ? 0 : 1);
    const rank = (/** @type {Waiting} */ one) => (aged(one) === 0 ? 0 : this.#of(one.place.owner));
    return [...this.#queue].sort((a, b) => aged(a) - aged(b) || rank(a) - rank(b));
  }

  /** What the runs of an owner are counted with. @param {string} owner */
  #of(owner) {
    return this.#sum((place) => place.owner === owner);
  }

  /** @param {(place: Place) => boolean} [which] */
  #sum(which = () => true) {
    let sum = 0;
    for (const place of this.#places) if (which(place)) sum += place.charge;
    return sum;
  }

  /** What all together may have when this run computes. @param {Place} place */
  #room(place) {
    const { budget, reserve } = this.#settings;
    return this.#inside(place) ? budget + reserve : budget;
  }

  /** Whether a run was started from inside of another one that is still there. @param {Place} place */
  #inside({ ancestors }) {
    return ancestors.some((ancestor) => this.#running.has(ancestor));
  }

  /** @param {Place} place */
  #fits(place) {
    return this.#sum((other) => other !== place) + place.size <= this.#room(place);
  }

  /** @param {Place} place */
  #take(place) {
    place.busy = true;
    place.charge = place.size;
    place.since = Date.now();
    this.renew(place);
    this.#places.add(place);
    this.#running.add(place.id);
  }

  /** Whether it was taken. @param {Place} place */
  #free(place) {
    this.#running.delete(place.id);
    return this.#places.delete(place);
  }
}
