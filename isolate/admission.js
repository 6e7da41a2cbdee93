// Who may compute now. The heaps of all runs of an isolate share its memory.
//
// A run that computes is counted with its whole limit, as it may take that at any moment; one that only waits is counted
// with what it has. So code that waits, for a model, a tool or for ever, keeps hardly anybody out. One that never waits
// gives its place up between two slices of time while others wait, and queues again.
//
// Who waits comes by account and by owner, a thread: first whose runs have least. Whoever has waited for long comes before
// those, but one run of an account at a time, so that a long queue of one account is no longer than its turn. An account
// has a share, which leaves room for a run of another one at any moment, and so many runs at once.
//
// A run that was started from inside of another one must not wait for it for ever: for such runs there is a reserve, and
// runs that wait for a run of theirs do not count in the share for them. Nobody waits longer than a bound, and where
// waiting runs alone fill the memory, the one that has waited with most is ended.
//
// The platform may end a request without a word to its code, and then nobody gives back what the run had. So a place is
// a lease: its run renews it while it lives, and whoever waits takes away what was not renewed.

/** Bytes that all runs together may have. */
export const BUDGET = 80 << 20;
/** More bytes, for runs that are started from inside of runs. */
export const RESERVE = 16 << 20;
/** Bytes of these that the runs of one account may have: the rest has room for a run of the usual size. */
const SHARE = 60 << 20;
/** Runs that there may be at once, those that wait for a place included: started from inside of one run, of a thread, of an account. */
const RUNS = { parent: 64, owner: 128, account: 256 };
/** How often a lease is renewed, and how often those that wait look at the leases of others. */
const RENEW_MS = 1000;
/** A lease that was not renewed for so long may be taken away; its run had five chances. */
const LEASE_MS = 5000;
/** The longest wait for a place. */
const WAIT_MS = 30_000;
/** An account of which nothing was admitted for so long, and that has waited so long, comes before those with less. */
const AGED_MS = 2000;
/** How long a run may compute while others wait. */
const SLICE_MS = 100;
/** How long a run may keep memory that others need, and only wait. */
const HOLD_MS = 5000;

/** Why a run has no place: no memory became free in time. */
export const FULL = "sandbox full: there was no memory for it in time; other code has it";

/**
 * @typedef {object} Place
 * @property {string} id
 * @property {string} owner         a thread
 * @property {string} account       the owner's
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
  /** When a run of an account was admitted last: milliseconds since 1970. @type {Map<string, number>} */
  #served = new Map();

  /**
   * `running`: ids of runs that have a place. Admissions that share it know each other's: the ancestors of a run may have
   * their place in another one.
   *
   * @param {{ budget?: number, reserve?: number, share?: number, runs?: typeof RUNS, leaseMs?: number, waitMs?: number, holdMs?: number, sliceMs?: number, running?: Set<string> }} [settings]
   */
  constructor({ running = new Set(), ...settings } = {}) {
    this.#settings = { budget: BUDGET, reserve: RESERVE, share: SHARE, runs: RUNS, leaseMs: LEASE_MS, waitMs: WAIT_MS, holdMs: HOLD_MS, sliceMs: SLICE_MS, ...settings };
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
   * Waits for a place. A text: why there is none.
   *
   * @param {string} id
   * @param {number} size
   * @param {string[]} ancestors
   * @param {Promise<unknown>} gone   resolves when the run is not wanted any more
   * @param {{ owner?: string, account?: string, end?: (reason: string) => void }} [more]   `end`: what ends it where others need its memory
   * @returns {Promise<Place | string>}
   */
  async enter(id, size, ancestors, gone, { owner = "", account = owner, end = () => {} } = {}) {
    const now = Date.now();
    const place = { id, owner, account, ancestors, size, charge: 0, busy: false, since: now, end, renewed: now, suspected: false };
    const around = this.#sum((other) => ancestors.includes(other.id));
    if (around > 0 && around + size > this.#room(place)) return FULL;
    const many = this.#tooMany(place);
    if (many !== undefined) return many;
    return (await this.#admitted(place, gone)) ? place : FULL;
  }

  /** Why one run more would be too many. @param {Place} place */
  #tooMany({ owner, account, ancestors }) {
    const parent = ancestors.at(-1);
    const { runs } = this.#settings;
    /** @type {[number, string, (place: Place) => boolean][]} */
    const bounds = [
      [runs.parent, "the run that started it", (other) => parent !== undefined && other.ancestors.at(-1) === parent],
      [runs.owner, "its thread", (other) => other.owner === owner],
      [runs.account, "its account", (other) => other.account === account],
    ];
    const all = this.#all();
    const reached = bounds.find(([most, , which]) => all.filter(which).length >= most);
    return reached && `sandbox full: ${reached[1]} has ${reached[0]} runs of code at once, the limit; wait until some have ended`;
  }

  /** Those that have a place, and those that wait for their first one. */
  #all() {
    return [...new Set([...this.#places, ...[...this.#queue].map(({ place }) => place)])];
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
    if (this.#queue.size === 0 && this.#withinShare(place) && this.#fits(place)) {
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
    const around = this.#around();
    const queued = new Set([...this.#queue].map(({ place }) => place));
    const victims = [...this.#places].filter((place) => now - place.since >= this.#settings.holdMs && !around.has(place.id) && !queued.has(place));
    victims.sort((a, b) => this.#ofAccount(b) - this.#ofAccount(a) || this.#ofOwner(b) - this.#ofOwner(a) || b.charge - a.charge);
    const [victim] = victims;
    victim?.end(`sandbox full: this code only waited for ${Math.round((now - victim.since) / 1000)} s, with memory that other code needed`);
  }

  /** Ids of the runs that wait for a run of theirs. */
  #around() {
    return new Set(this.#all().flatMap(({ ancestors }) => ancestors));
  }

  /** Admits whoever may come now; whether somebody did. */
  #next() {
    let admitted = false;
    for (let again = true; again; ) {
      again = false;
      let held = false;
      const full = new Set();
      for (const waiting of this.#inOrder()) {
        // Those that compute make way soon: what comes first would never fit if others always came before it. The reserve
        // is for runs inside of runs alone.
        if (held && !this.#inside(waiting.place)) continue;
        // What waits for room of its account keeps no other account waiting.
        if (full.has(waiting.place.account) && !this.#inside(waiting.place)) continue;
        if (!this.#withinShare(waiting.place)) {
          full.add(waiting.place.account);
          continue;
        }
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

  /**
   * Those that wait, the first to come first: of accounts that have waited long, the one that has waited longest; then whose account,
   * and whose owner, has least.
   */
  #inOrder() {
    const now = Date.now();
    const unserved = (/** @type {Waiting} */ { place, since }) => Math.max(since, this.#served.get(place.account) ?? 0);
    const ranked = [...this.#queue].map((waiting) => {
      const from = unserved(waiting);
      const aged = now - from >= AGED_MS;
      return { waiting, aged, from: aged ? from : 0, account: aged ? 0 : this.#ofAccount(waiting.place), owner: aged ? 0 : this.#ofOwner(waiting.place) };
    });
    ranked.sort((a, b) => Number(b.aged) - Number(a.aged) || a.from - b.from || a.account - b.account || a.owner - b.owner);
    return ranked.map(({ waiting }) => waiting);
  }

  /** What the runs of its account are counted with. @param {Place} place */
  #ofAccount({ account }) {
    return this.#sum((place) => place.account === account);
  }

  /** What the runs of its owner are counted with. @param {Place} place */
  #ofOwner({ owner }) {
    return this.#sum((place) => place.owner === owner);
  }

  /**
   * Whether its account has room for it. A run alone has room whatever its size, and of those inside of runs one at a time: runs
   * wait for them.
   *
   * @param {Place} place
   */
  #withinShare(place) {
    const own = (/** @type {Place} */ other) => other !== place && other.account === place.account && !place.ancestors.includes(other.id);
    if (this.#inside(place)) {
      const around = this.#around();
      if (this.#sum((other) => own(other) && other.ancestors.length > 0 && !around.has(other.id)) === 0) return true;
    }
    const others = this.#sum(own);
    return others === 0 || others + place.size <= this.#settings.share;
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
    if (this.#queue.size === 0) this.#served.clear();
    this.#served.set(place.account, place.since);
    this.#places.add(place);
    this.#running.add(place.id);
  }

  /** Whether it was taken. @param {Place} place */
  #free(place) {
    this.#running.delete(place.id);
    return this.#places.delete(place);
  }
}
