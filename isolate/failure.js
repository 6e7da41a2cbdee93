// What went wrong, as the outcome tells it: the engine's stack without the frames of anything but the caller's modules,
// and the place of the topmost one.

/** @typedef {import("./wire.js").Failure} Failure */

/** What a caller is told at most: a stack is short. */
const FRAMES = 50;

/**
 * @param {{ name: string, message: string, stack: string, maker?: string }} error   its stack as the engine writes it,
 *                                                                                 and its class where it has one of its own
 * @param {{ name: string, code: string }[]} modules                               the caller's
 * @returns {Failure}
 */
export function failure({ name, message, stack, maker = "" }, modules) {
  /** @type {{ text: string, called: string, line: number, column: number, filename: string }[]} */
  let frames = [];
  for (const line of stack.split("\n")) {
    const frame = frameOf(line, modules);
    if (frame) frames.push(frame);
    if (frames.length === FRAMES) break;
  }
  // The constructors of its class come first; where it was made is below them.
  const made = maker === "" ? -1 : frames.findIndex(({ called }) => called === maker);
  if (made >= 0 && made + 1 < frames.length) frames = frames.slice(made + 1);
  const [top] = frames;
  if (!top) return { name, message };
  const head = message === "" ? name : `${name}: ${message}`;
  return {
    name,
    message,
    stack: [head, ...frames.map(({ text }) => text)].join("\n"),
    line: top.line,
    column: top.column,
    filename: top.filename,
  };
}

/**
 * A line of a stack: `    at name (file:line:column)`, or without a name. Undefined when it is not of the caller's code.
 *
 * @param {string} line
 * @param {{ name: string, code: string }[]} modules
 */
function frameOf(line, modules) {
  const [, called = "", at = "", column = ""] = /^\s*at (.*):(\d+):(\d+)\)?$/.exec(line) ?? [];
  // A name of a function may look like anything, so the file is found from the end.
  const module = modules.find(({ name }) => called === name || called.endsWith(`(${name}`));
  if (!module) return undefined;
  const place = { line: Number(at), column: unitsColumn(module.code, Number(at), Number(column)), filename: module.name };
  const name = called === module.name ? "" : called.slice(0, -module.name.length - 1).trim();
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
