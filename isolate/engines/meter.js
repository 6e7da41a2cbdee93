// Measures the fuel that a machine uses, and how long it blocks the event loop.
//
// The machine's code takes a unit from the exported global `fuel` in every round of a loop, and calls its host when none is
// left (scripts/build/src/fuel.rs). Each stretch of metered code gets a slice of units. Usage is counted before and after
// each call out of the machine, so that our own code neither uses up the slice nor adds to it. Our own code is not charged
// to the program's fuel, but it blocks the event loop as well: it counts as work.

/** Units of fuel between two checks of the clock: a fraction of a millisecond. */
const SLICE = 20_000;
/** How long the event loop may be blocked. */
const TURN_MS = 8;
/** The same limit in units, because the platform may stop the clock while code runs. */
const TURN_UNITS = 64 * SLICE;
/** Units for a stretch of our own code, far more than it needs. */
const OWN = 0x7fffffff;

export class Meter {
  #fuel;
  #filled = 0;
  #spent = 0;
  #cap = Number.POSITIVE_INFINITY;
  /** Units used in this turn of the event loop. */
  #work = 0;
  #turn = Date.now();
  /** Ends the present turn of the event loop. */
  #wake = () => {};

  /** @param {{ value: number }} fuel the machine's global */
  constructor(fuel) {
    this.#fuel = fuel;
    this.#fill(OWN);
  }

  /** Starts counting. @param {number | null} cap units; null: no limit */
  begin(cap) {
    this.#cap = cap ?? Number.POSITIVE_INFINITY;
    this.#spent = 0;
    // Exclude the time and work of the setup.
    this.#turn = Date.now();
    this.#work = 0;
    this.#fill(OWN);
  }

  /** Units used by the program. */
  get spent() {
    return this.#spent;
  }

  /** Whether the program used more than its cap. */
  get exhausted() {
    return this.#spent > this.#cap;
  }

  /** Whether the event loop must turn. */
  get due() {
    return this.#work >= TURN_UNITS || Date.now() - this.#turn >= TURN_MS;
  }

  /** Metered code begins or continues. Halted code gets no units, so it stops at its next loop. @param {boolean} halted */
  metered(halted) {
    this.#work += this.#filled - this.#fuel.value;
    this.#slice(halted || this.due ? 0 : SLICE);
  }

  /** Counts a used slice and starts the next one. */
  next() {
    this.#count();
    this.#slice(SLICE);
  }

  /** Our own code begins. */
  own() {
    this.#count();
    this.#fill(OWN);
  }

  /** Adds work that was not measured. @param {number} units */
  charge(units) {
    this.#work += units;
  }

  /** Yields to the event loop if a turn is due. */
  async breathe() {
    if (this.due) await this.turn();
  }

  async turn() {
    await new Promise((resolve) => {
      this.#wake = () => resolve(undefined);
      setTimeout(resolve, 0);
    });
    this.#turn = Date.now();
    this.#work = 0;
  }

  /** Ends a wait for a turn at once. */
  wake() {
    this.#wake();
  }

  #count() {
    const burnt = this.#filled - this.#fuel.value;
    this.#spent += burnt;
    this.#work += burnt;
  }

  /** @param {number} units */
  #slice(units) {
    this.#fill(Math.max(0, Math.min(units, this.#cap - this.#spent)));
  }

  /** @param {number} units */
  #fill(units) {
    this.#filled = units;
    this.#fuel.value = units;
  }
}
