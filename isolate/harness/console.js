// A console for code that was given none: what it prints goes into the outcome's logs, within bounds.

import * as i from "./intrinsics.js";
import { pack } from "./pack.js";

/** One entry is never larger than all of them may be. */
const LARGEST = 2 << 20;

/** @param {import("./outbox.js").Send} send @param {(value: Function) => number} exported */
export function capture(send, exported) {
  let full = false;
  /** @param {string} level */
  const logger = (level) => {
    const log = (/** @type {unknown[]} */ ...args) => {
      // Once the logs are full nothing is even copied.
      if (full) return;
      let packed;
      try {
        packed = pack(args, "console", "told", exported, LARGEST);
      } catch {
        // Too large, or a getter that throws: the rest is still worth having.
        packed = undefined;
      }
      full = send("log", level, packed ? packed.size : LARGEST, packed ? packed.text : "", packed ? packed.buffers : i.list()) === 0;
    };
    i.fix(log, "name", level);
    return i.freeze(log);
  };
  return i.freeze({
    log: logger("log"),
    info: logger("info"),
    warn: logger("warn"),
    error: logger("error"),
    debug: logger("debug"),
  });
}
