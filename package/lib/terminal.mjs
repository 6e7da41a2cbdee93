// Prompts for the person at the terminal.

import { stderr, stdin, stdout } from "node:process";
import { createInterface } from "node:readline";
import { Writable } from "node:stream";

/** Returns whether a person can be asked. */
export const someoneIsThere = () => stdin.isTTY === true && stderr.isTTY === true;

/** Asks a yes-or-no question. Anything but yes is no. @param {string} question  harmless @returns {Promise<boolean>} */
export function confirmed(question) {
  return new Promise((resolve) => {
    const lines = createInterface({ input: stdin, output: stderr });
    lines.once("close", () => resolve(false));
    lines.question(`${question} [y/N] `, (answer) => {
      resolve(/^y(es)?$/i.test(answer.trim()));
      lines.close();
    });
  });
}

/** Lines that arrive within this time of each other were pasted together and form one text. */
const PASTED_MS = 15;

/** A terminal that prompts while other output is written. Keeps what is typed between prompts for the next one. */
export class Terminal {
  /** Called on Ctrl-C with the text of the current line. @type {(typed: string) => void} */
  onInterrupt = () => {};
  #gate = new Gate();
  #lines = createInterface({ input: stdin, output: this.#gate, terminal: true, historySize: 200 });
  /** Lines that were entered before a prompt. @type {string[]} */
  #entered = [];
  /** @type {((text: string | undefined) => void) | undefined} */
  #asked;
  #closed = false;
  /** @type {string[]} */
  #burst = [];

  constructor() {
    stdout.on("resize", () => this.#gate.emit("resize"));
    this.#lines.on("SIGINT", () => this.onInterrupt(this.#lines.line));
    this.#lines.on("line", (line) => {
      this.#burst.push(line);
      if (this.#burst.length === 1) setTimeout(() => this.#enter(), PASTED_MS);
    });
    this.#lines.on("close", () => {
      this.#closed = true;
      if (this.#burst.length > 0) this.#enter();
      this.#asked?.(undefined);
    });
    this.#gate.open = false;
  }

  #enter() {
    const text = this.#burst.join("\n");
    this.#burst = [];
    if (this.#asked) this.#asked(text);
    else this.#entered.push(text);
  }

  /**
   * Prompts for a line. Returns nothing if the person has left or the signal aborts.
   *
   * @param {string} prompt
   * @param {AbortSignal} [signal]
   * @returns {Promise<string | undefined>}
   */
  async line(prompt, signal) {
    if (this.#closed || signal?.aborted) return undefined;
    const before = this.#entered.shift();
    if (before !== undefined) {
      stdout.write(`${prompt}${before}\n`);
      return before;
    }
    this.#gate.open = true;
    this.#lines.setPrompt(prompt);
    this.#lines.prompt(true);
    try {
      return await new Promise((resolve) => {
        this.#asked = resolve;
        signal?.addEventListener("abort", () => resolve(undefined), { once: true });
      });
    } finally {
      this.#asked = undefined;
      if (signal?.aborted || this.#closed) stdout.write("\n");
      this.#gate.open = false;
    }
  }

  /** Shows the prompt again below other output. */
  again() {
    if (this.#asked) this.#lines.prompt(true);
  }

  /** Clears the text of the current line. */
  clear() {
    this.#lines.write(null, { ctrl: true, name: "e" });
    this.#lines.write(null, { ctrl: true, name: "u" });
  }

  close() {
    this.#lines.close();
  }
}

/** Shows typed text only during a prompt. Otherwise it would appear in the middle of a reply. */
class Gate extends Writable {
  open = true;
  isTTY = true;

  get columns() {
    return stdout.columns || 80;
  }

  /** @override @param {Buffer} chunk @param {BufferEncoding} _ @param {() => void} done */
  _write(chunk, _, done) {
    if (this.open) stdout.write(chunk);
    done();
  }
}
