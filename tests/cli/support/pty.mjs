// Runs the program in a pseudo-terminal from Python.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { until, within } from "../../worker/support/poll.mjs";
import { endsWithFile, environment, PROGRAM } from "./bobbin.mjs";

const SPAWN = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/** The reason why there is no pseudo-terminal, or false. */
export const noTerminal = process.platform !== "win32" && spawnSync("python3", ["-c", "import pty"]).status === 0 ? false : "no pseudo-terminal: Python is missing";

export const [CTRL_C, CTRL_D, ENTER] = ["\x03", "\x04", "\r"];

export class Pty {
  seen = "";
  /** The position up to which the output was examined. */
  #read = 0;

  /** @param {string[]} args @param {{ cwd?: string, env?: Record<string, string> }} [options] */
  constructor(args, { cwd, env } = {}) {
    const program = ["-c", SPAWN, process.execPath, PROGRAM, ...args];
    this.child = endsWithFile(spawn("python3", program, { cwd, env: environment({ TERM: "xterm", ...env }), stdio: ["pipe", "pipe", "inherit"] }));
    this.child.stdout.setEncoding("utf8").on("data", (text) => (this.seen += text));
    this.child.stdin.on("error", () => {});
    this.closed = once(this.child, "close");
  }

  /** Waits for a match after the previous one. Returns the text up to the end of the match. @param {RegExp} what */
  async sees(what) {
    return until(`${what} is seen`, () => {
      const match = what.exec(this.seen.slice(this.#read));
      if (match === null) return undefined;
      const upTo = this.seen.slice(this.#read, this.#read + match.index + match[0].length);
      this.#read += match.index + match[0].length;
      return upTo;
    }, { withinMs: 15_000, describe: () => this.seen.slice(-1500) });
  }

  /** @param {string} keys */
  types(keys) {
    this.child.stdin.write(keys);
  }

  /** @param {string} text */
  enters(text) {
    this.types(text + ENTER);
  }

  /** @returns {Promise<number | null>} the exit code */
  async ends() {
    try {
      const [code] = await within(`it ends: ${this.seen.slice(-500)}`, 10_000, this.closed);
      return code;
    } finally {
      this.child.kill("SIGKILL");
    }
  }
}
