// What a machine burns, and how long it keeps the event loop waiting.
//
// The machine's code takes a unit from the exported global `fuel` with every round of a loop, and calls its host when there
// is none left (scripts/build/src/fuel.rs). A slice of units is given for each stretch of metered code; before and after
// each call out of the machine what was burnt is counted, so that nothing that our own code does takes the slice away or
// adds to it. What our own code does is no fuel of the program, but it keeps others waiting as well: it counts as work.

/** Units of fuel between two looks at the clock: a fraction of a millisecond. */
const SLICE = 20_000;
/** How long the event loop may be kept waiting. */
const TURN_MS = 8;
/** The same in units, where the platform stops the clock while code runs. */
const TURN_UNITS = 64 * SLICE;
/** Units for a stretch of our own code. All such work is bounded by far less. */
const OWN = 0x7fffffff;

export class Meter {
  #fuel;
  #filled = 0;
  #spent = 0;
  #cap = Number.POSITIVE_INFINITY;
  /** Units of this turn of the event loop. */
  #work = 0;
  #turn = Date.now();
  /** Ends the present turn of the event loop. */
  #wake = () => {};

  /** @param {{ value: number }} fuel the machine's global */
  constructor(fuel) {
    this.#fuel = fuel;
    this.#fill(OWN);
  }

  /** From here on counts what is burnt. @param {number | null} cap units; null: as many as it likes */
  begin(cap) {
    this.#cap = cap ?? Number.POSITIVE_INFINITY;
    this.#spent = 0;
    // What was done so far took as long as it takes; the sandbox has not kept anybody waiting yet.
    this.#turn = Date.now();
    this.#work = 0;
    this.#fill(OWN);
  }

  /** Units of the program's. */
  get spent() {
    return this.#spent;
  }

  /** More was burnt than may be. */
  get exhausted() {
    return this.#spent > this.#cap;
  }

  /** Whether others have waited long enough. */
  get due() {
    return this.#work >= TURN_UNITS || Date.now() - this.#turn >= TURN_MS;
  }

  /** Metered code begins, or goes on; what must not go on runs into its next loop and no further. @param {boolean} halted */
  metered(halted) {
    this.#work += this.#filled - this.#fuel.value;
    this.#slice(halted || this.due ? 0 : SLICE);
  }

  /** The slice has run out: counts it, and gives another one. */
  next() {
    this.#count();
    this.#slice(SLICE);
  }

  /** Our own code begins. */
  own() {
    this.#count();
    this.#fill(OWN);
  }

  /** Work that was not measured. @param {number} units */
  charge(units) {
    this.#work += units;
  }

  /** Lets the event loop turn, if it did not for a while. */
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

  /** Nobody is to go on waiting for a turn. */
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
