// What went wrong, as the outcome tells it: the engine's stack without the frames of anything but the caller's modules,
// and the place of the topmost one.

/**
 * @typedef {import("./wire.js").Failure} Failure
 * @typedef {import("./wire.js").Program} Program
 */

/** What a caller is told at most: a stack is short. */
const FRAMES = 50;

/**
 * @param {{ name: string, message: string, stack: string, maker?: string }} error   its stack as the engine writes it,
 *                                                                                 and its class where it has one of its own
 * @param {Program} program
 * @returns {Failure}
 */
export function failure({ name, message, stack, maker = "" }, program) {
  /** @type {{ text: string, called: string, line: number, column: number, filename: string }[]} */
  let frames = [];
  const head = message === "" ? name : `${name}: ${message}`;
  // V8 writes the error before its frames, and a message may look like a frame.
  const lines = (stack.startsWith(head) ? stack.slice(head.length) : stack).split("\n");
  for (const line of lines) {
    const frame = frameOf(line, program);
    if (frame) frames.push(frame);
    if (frames.length === FRAMES) break;
  }
  // The constructors of its class come first; where it was made is below them.
  const made = maker === "" ? -1 : frames.findIndex(({ called }) => called === maker);
  if (made >= 0 && made + 1 < frames.length) frames = frames.slice(made + 1);
  const [top] = frames;
  const said = { name: name.toWellFormed(), message: message.toWellFormed() };
  if (!top) return said;
  return {
    ...said,
    stack: [head, ...frames.map(({ text }) => text)].join("\n").toWellFormed(),
    line: top.line,
    column: top.column,
    filename: top.filename,
  };
}

/**
 * A line of a stack: `    at name (file:line:column)`, or without a name. Undefined when it is not of the caller's code.
 *
 * @param {string} line
 * @param {Program} program
 */
function frameOf(line, { engine, modules, keys }) {
  const [, written = "", at = "", column = ""] = /^\s*at (.*):(\d+):(\d+)\)?$/.exec(line) ?? [];
  // V8 says how a function was called. A file of QuickJS's may have such a name.
  const called = engine === "v8" ? written.replace(/^(?:async )?(?:new )?/, "") : written;
  const known = (/** @type {string} */ name) => (engine === "v8" ? (keys.get(name) ?? name) : name);
  // A name of a function may look like anything, so the file is found from the end.
  const module = modules.find(({ name }) => called === known(name) || called.endsWith(`(${known(name)}`));
  if (!module) return undefined;
  const [lineAt, columnAt] = [Number(at), Number(column)];
  // QuickJS counts bytes of UTF-8.
  const units = engine === "v8" ? columnAt : unitsColumn(module.code, lineAt, columnAt);
  const place = { line: lineAt, column: units, filename: module.name };
  const key = known(module.name);
  const name = called === key ? "" : called.slice(0, -key.length - 1).trim();
  const where = `${place.filename}:${place.line}:${place.column}`;
  return { called: name, text: name === "" ? `    at ${where}` : `    at ${name} (${where})`, ...place };
}

/** A column in UTF-16 units, from the engine's in bytes of UTF-8; both from 1. @param {string} code @param {number} line @param {number} column */
function unitsColumn(code, line, column) {
  let start = 0;
  for (let at = 1; at < line; at++) {
    const next = code.indexOf("\n", start);
    if (next < 0) return column;
    start = next + 1;
  }
  let units = 0;
  for (let bytes = 1; bytes < column; ) {
    const point = code.codePointAt(start + units);
    if (point === undefined) return column;
    bytes += point > 0xffff ? 4 : point > 0x7ff ? 3 : point > 0x7f ? 2 : 1;
    units += point > 0xffff ? 2 : 1;
  }
  return units + 1;
}
