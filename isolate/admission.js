// Admission control: which runs may compute now. The heaps of all runs of an isolate share its memory.
//
// A computing run is charged with its whole limit, because it may allocate that much at any moment. A run that only waits
// is charged with the memory it has, so code that waits for a model, a tool or forever blocks hardly anyone. While others
// are queued, a run that never waits gives up its place after each time slice and queues again.
//
// The queue is fair by account, then by owner (a thread): runs of the account and owner with the smallest charge come first.
// Accounts that have waited for long come before those, one run at a time, so that a long queue of one account does not
// delay the others. The share and the number of runs of an account are limited, which leaves room for other accounts.
//
// Nested runs, started from inside another run, must not wait for it forever. There is a reserve for them, and a waiting
// ancestor is not charged against their share. Every wait has a time limit. If waiting runs alone fill the memory, the run
// that holds the most is ended.
//
// The platform may end a request without notifying its code, and then nothing releases the run's memory. So a place is a
// lease: the run renews it while it lives, and queued runs reclaim leases that were not renewed.

/** Bytes for all runs together. */
export const BUDGET = 80 << 20;
/** Additional bytes for nested runs. */
export const RESERVE = 16 << 20;
/** Bytes for the runs of one account. The rest of the budget has room for a run of the usual size. */
const SHARE = 60 << 20;
/** Limits on simultaneous runs, queued ones included: of one parent run, one thread and one account. */
const RUNS = { parent: 64, owner: 128, account: 256 };
/** The interval at which leases are renewed, and at which queued runs check the leases of others. */
const RENEW_MS = 1000;
/** The age at which an unrenewed lease may be reclaimed, after five missed renewals. */
const LEASE_MS = 5000;
/** The longest wait for a place. */
const WAIT_MS = 30_000;
/** An account that has waited this long since its last admission takes precedence over accounts with a smaller charge. */
const AGED_MS = 2000;
/** The time slice of a run while others are queued. */
const SLICE_MS = 100;
/** How long an idle run may hold memory that others need. */
const HOLD_MS = 5000;

/** The error message when no memory became free in time. */
export const FULL = "sandbox full: there was no memory for it in time; other code has it";

/**
 * @typedef {object} Place
 * @property {string} id
 * @property {string} owner         a thread
 * @property {string} account       the owner's account
 * @property {string[]} ancestors
 * @property {number} size          the run's limit
 * @property {number} charge        what it is charged with now
 * @property {boolean} busy         whether it computes
 * @property {number} since         when it began to compute or to wait: milliseconds since 1970
 * @property {(reason: string) => void} end
 * @property {number} renewed       milliseconds since 1970
 * @property {boolean} suspected    was found expired once
 *
 * @typedef {object} Waiting
 * @property {Place} place
 * @property {number} since
 * @property {(admitted: boolean) => void} settle
 */

export class Admission {
  #settings;
  /** Admitted runs. @type {Set<Place>} */
  #places = new Set();
  /** Queued runs, new or already admitted, in order of arrival. @type {Set<Waiting>} */
  #queue = new Set();
  #running;
  /** The time of each account's last admission: milliseconds since 1970. @type {Map<string, number>} */
  #served = new Map();

  /**
   * `running`: ids of the runs that have a place. Two admissions may share it, because the ancestors of a run may have
   * their places in the other one.
   *
   * @param {{ budget?: number, reserve?: number, share?: number, runs?: typeof RUNS, leaseMs?: number, waitMs?: number, holdMs?: number, sliceMs?: number, running?: Set<string> }} [settings]
   */
  constructor({ running = new Set(), ...settings } = {}) {
    this.#settings = { budget: BUDGET, reserve: RESERVE, share: SHARE, runs: RUNS, leaseMs: LEASE_MS, waitMs: WAIT_MS, holdMs: HOLD_MS, sliceMs: SLICE_MS, ...settings };
    this.#running = running;
  }

  /** The numbers of admitted and of queued runs. */
  get counts() {
    return { running: this.#places.size, waiting: this.#queue.size };
  }

  /** The total charge. */
  get charged() {
    return this.#sum();
  }

  /**
   * Waits for a place. Returns the reason as text if there is none.
   *
   * @param {string} id
   * @param {number} size
   * @param {string[]} ancestors
   * @param {Promise<unknown>} gone   resolves when the run is no longer needed
   * @param {{ owner?: string, account?: string, end?: (reason: string) => void }} [more]   `end` ends the run when others need its memory
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

  /** Returns the limit that one more run would exceed, as a message. @param {Place} place */
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

  /** Admitted runs, and those that wait for their first admission. */
  #all() {
    return [...new Set([...this.#places, ...[...this.#queue].map(({ place }) => place)])];
  }

  /** Marks the run as waiting, with `bytes` of memory. @param {Place} place @param {number} bytes */
  idle(place, bytes) {
    if (!this.#places.has(place)) return;
    if (place.busy) place.since = Date.now();
    place.busy = false;
    place.charge = Math.min(bytes, place.size);
    this.#next();
  }

  /**
   * Queues a run that wants to compute again. False: there was no room in time.
   *
   * @param {Place} place @param {Promise<unknown>} gone @returns {Promise<boolean>}
   */
  async busy(place, gone) {
    if (place.busy || !this.#places.has(place)) return true;
    return this.#admitted(place, gone);
  }

  /** Whether a computing run must yield: its slice is over and others are queued. @param {Place} place */
  yields(place) {
    return this.#queue.size > 0 && place.busy && Date.now() - place.since >= this.#settings.sliceMs;
  }

  /** @param {Place} place */
  leave(place) {
    if (this.#free(place)) this.#next();
  }

  /** Renews a lease until the returned function is called, or the request of this code ends. @param {Place} place @returns {() => void} */
  renewing(place) {
    const timer = setInterval(() => this.renew(place), RENEW_MS);
    return () => clearInterval(timer);
  }

  /** @param {Place} place */
  renew(place) {
    place.renewed = Date.now();
    place.suspected = false;
  }

  /** Waits until the run may compute. False: it may not. @param {Place} place @param {Promise<unknown>} gone @returns {Promise<boolean>} */
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
      // This one may have held up the others.
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

  /** Reclaims leases found expired twice in a row: one late timer can delay all renewals once. */
  #reclaim() {
    const now = Date.now();
    for (const place of this.#places) {
      if (now - place.renewed < this.#settings.leaseMs) place.suspected = false;
      else if (place.suspected) this.#free(place);
      else place.suspected = true;
    }
    if (!this.#next()) this.#evict(now);
  }

  /** Ends an idle run that holds memory others need: the largest of the account and owner with the largest charge. @param {number} now */
  #evict(now) {
    if (this.#queue.size === 0 || [...this.#places].some(({ busy }) => busy)) return;
    // Runs that wait for a nested run are not idle.
    const around = this.#around();
    const queued = new Set([...this.#queue].map(({ place }) => place));
    const victims = [...this.#places].filter((place) => now - place.since >= this.#settings.holdMs && !around.has(place.id) && !queued.has(place));
    victims.sort((a, b) => this.#ofAccount(b) - this.#ofAccount(a) || this.#ofOwner(b) - this.#ofOwner(a) || b.charge - a.charge);
    const [victim] = victims;
    victim?.end(`sandbox full: this code only waited for ${Math.round((now - victim.since) / 1000)} s, with memory that other code needed`);
  }

  /** Ids of the runs that wait for a nested run. */
  #around() {
    return new Set(this.#all().flatMap(({ ancestors }) => ancestors));
  }

  /** Admits the queued runs that fit. Returns whether it admitted any. */
  #next() {
    let admitted = false;
    for (let again = true; again; ) {
      again = false;
      let held = false;
      const full = new Set();
      for (const waiting of this.#inOrder()) {
        // Computing runs yield soon. Keep room for the first in the queue, which would never fit if smaller runs always
        // passed it. Nested runs may pass, because the reserve is only theirs.
        if (held && !this.#inside(waiting.place)) continue;
        // A full account does not block other accounts.
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
   * The queue, sorted. First the accounts that have waited for long, the longest wait first. Then by the charge of the
   * account, then of the owner, the smallest first.
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

  /** The charge of its account. @param {Place} place */
  #ofAccount({ account }) {
    return this.#sum((place) => place.account === account);
  }

  /** The charge of its owner. @param {Place} place */
  #ofOwner({ owner }) {
    return this.#sum((place) => place.owner === owner);
  }

  /**
   * Whether its account has room for it. The only run of an account always fits. One nested run at a time fits too,
   * because its ancestors wait for it.
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

  /** The memory available to all runs together if this one computes. @param {Place} place */
  #room(place) {
    const { budget, reserve } = this.#settings;
    return this.#inside(place) ? budget + reserve : budget;
  }

  /** Whether the run is nested in one that still runs. @param {Place} place */
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

  /** Removes a place. Returns whether it existed. @param {Place} place */
  #free(place) {
    this.#running.delete(place.id);
    return this.#places.delete(place);
  }
}
