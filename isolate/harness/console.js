// The default console: its output goes into the outcome's logs, up to their limits.

import * as i from "./intrinsics.js";
import { pack } from "./pack.js";

/** The limit on one entry, above the limit on all of them. */
const LARGEST = 2 << 20;

/** @param {import("./outbox.js").Send} send @param {(value: Function) => number} exported */
export function capture(send, exported) {
  let full = false;
  /** @param {string} level */
  const logger = (level) => {
    const log = (/** @type {unknown[]} */ ...args) => {
      // Once the logs are full, nothing is even packed.
      if (full) return;
      let packed;
      try {
        packed = pack(args, "console", "told", exported, LARGEST);
      } catch {
        // Larger than the limit on all logs.
        packed = { text: "", buffers: i.list(), size: LARGEST };
      }
      full = send("log", level, packed.size, packed.text, packed.buffers) === 0;
    };
    return i.freeze(i.hidden(log, level));
  };
  return i.freeze({
    log: logger("log"),
    info: logger("info"),
    warn: logger("warn"),
    error: logger("error"),
    debug: logger("debug"),
  });
}
