// The harness in QuickJS. Its messages leave the machine in calls to the isolate, which cannot be suspended. So long
// messages are split into pieces, one call each, and the isolate may do other work between them.

import { PIECE_BYTES, PIECE_UNITS } from "../wire.js";
import { start as startWith } from "./index.js";
import * as i from "./intrinsics.js";

/** The isolate's side of `send`. @typedef {(kind: string, a: number | string, b: number, text: string, buffer?: ArrayBuffer) => any} Host */

/** @param {Host} host */
export function start(host) {
  /** @type {import("./outbox.js").Send} */
  const send = (kind, a, b, text, buffers) => {
    if (buffers !== undefined) sendBuffers(host, buffers);
    return host(kind, a, b, sendText(host, text));
  };
  // `slice` converts to a text.
  const urlParts = (/** @type {string} */ asked) => host("url", 0, 0, sendText(host, i.slice(asked, 0)));
  return startWith(send, (then) => then(uncaught(host)), urlParts);
}

/** The reasons of the unhandled rejections, which the isolate collects. @param {Host} host */
function uncaught(host) {
  const reasons = i.list();
  const count = host("uncaught", 0, 0, "");
  for (let at = 0; at < count; at++) reasons[at] = host("reason", 0, at, "");
  return reasons;
}

/** Sends all but the last piece, and returns the last. @param {Host} host @param {string} text */
function sendText(host, text) {
  let from = 0;
  while (text.length - from > PIECE_UNITS) {
    const last = i.unitAt(text, from + PIECE_UNITS - 1);
    // Do not split a surrogate pair.
    const to = from + PIECE_UNITS - (last >= 0xd800 && last < 0xdc00 ? 1 : 0);
    host("text", 0, 0, i.slice(text, from, to));
    from = to;
  }
  return from === 0 ? text : i.slice(text, from);
}

/** @param {Host} host @param {ArrayBuffer[]} buffers */
function sendBuffers(host, buffers) {
  for (let at = 0; at < buffers.length; at++) {
    const buffer = /** @type {ArrayBuffer} */ (buffers[at]);
    const bytes = i.bufferBytes(buffer);
    host("buffer", 0, bytes, "");
    for (let from = 0; from < bytes; from += PIECE_BYTES) host("bytes", 0, from, "", buffer);
  }
}
