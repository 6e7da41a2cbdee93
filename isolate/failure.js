// Errors in an outcome: the engine's stack with only the frames of the caller's modules, and the position of the
// topmost frame.

/**
 * @typedef {import("./wire.js").Failure} Failure
 * @typedef {import("./wire.js").Program} Program
 */

/** The maximum number of frames in an outcome. */
const FRAMES = 50;
/** The maximum number of lines of a stack to parse, and of units in a line: code can set a stack itself. */
const LINES = 1000;
const LINE_UNITS = 2000;
/** The maximum number of brackets to try as the start of a file name: file and function names may contain brackets. */
const BRACKETS = 8;
/** The budget of lines and characters to scan for columns. Beyond it, columns are those of the engine. */
const READ = 200_000;

/**
 * @param {{ name: string, message: string, stack: string, maker?: string }} error   with the engine's stack, and its class
 *                                                                                 if that is the caller's own
 * @param {Program} program
 * @returns {Failure}
 */
export function failure({ name, message, stack, maker = "" }, program) {
  const head = message === "" ? name : `${name}: ${message}`;
  // V8 writes the error before its frames, and a message may look like a frame.
  let frames = framesOf(stack.startsWith(head) ? stack.slice(head.length) : stack, program);
  // The first frames are constructors of its class. The `new` expression is below them.
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

/** @param {string} stack @param {Program} program */
function framesOf(stack, { engine, modules, keys }) {
  /** Modules by the engine's name for them. @type {Map<string, import("./wire.js").Module>} */
  const known = new Map(modules.map((module) => [engine === "v8" ? (keys.get(module.name) ?? module.name) : module.name, module]));
  const columns = new Columns();
  const frames = [];
  for (const line of stack.split("\n", LINES)) {
    const frame = line.length > LINE_UNITS ? undefined : frameOf(line, engine, known, columns);
    if (frame) frames.push(frame);
    if (frames.length === FRAMES) break;
  }
  return frames;
}

/**
 * Parses a line of a stack: `    at name (file:line:column)`, or without a name. Undefined if it is not the caller's code.
 *
 * @param {string} line
 * @param {Program["engine"]} engine
 * @param {Map<string, import("./wire.js").Module>} known
 * @param {Columns} columns
 */
function frameOf(line, engine, known, columns) {
  const [, written = "", at = "", column = ""] = /^\s*at (.*):(\d+):(\d+)\)?$/.exec(line) ?? [];
  // V8 writes how a function was called. In QuickJS that may be part of a file's name.
  const called = engine === "v8" ? written.replace(/^(?:async )?(?:new )?/, "") : written;
  const key = fileIn(called, known);
  if (key === undefined) return undefined;
  const module = /** @type {import("./wire.js").Module} */ (known.get(key));
  const [lineAt, columnAt] = [Number(at), Number(column)];
  // QuickJS counts bytes of UTF-8.
  const units = engine === "v8" ? columnAt : columns.units(module, lineAt, columnAt);
  const place = { line: lineAt, column: inSource(module, lineAt, units), filename: module.name };
  const name = called === key ? "" : called.slice(0, -key.length - 1).trim();
  const where = `${place.filename}:${place.line}:${place.column}`;
  return { called: name, text: name === "" ? `    at ${where}` : `    at ${name} (${where})`, ...place };
}

/**
 * The file in `name (file`. A function's name may look like anything, so the search starts at the end.
 *
 * @param {string} called @param {Map<string, unknown>} known
 */
function fileIn(called, known) {
  if (known.has(called)) return called;
  let from = called.length;
  for (let tries = 0; tries < BRACKETS && from > 0; tries++) {
    from = called.lastIndexOf("(", from - 1);
    if (from < 0) return undefined;
    if (known.has(called.slice(from + 1))) return called.slice(from + 1);
  }
  return undefined;
}

/**
 * Maps a column to the source: the compiler may have inserted code into the line (isolate/compiler/src/edits.rs). A
 * position inside inserted code maps to where it was inserted.
 *
 * @param {import("./wire.js").Module} module
 * @param {number} line
 * @param {number} column
 */
function inSource({ moved = [] }, line, column) {
  let [from, to] = [0, moved.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const [onLine = 0, at = 0] = moved[middle] ?? [];
    if (onLine < line || (onLine === line && at <= column)) from = middle + 1;
    else to = middle;
  }
  const [lineBefore, at = 1, was = 1] = moved[from - 1] ?? [];
  const [lineAfter, , next = 0] = moved[from] ?? [];
  const own = lineBefore === line ? was + column - at : column;
  return lineAfter === line ? Math.min(own, next) : own;
}

/** Converts columns from an engine's UTF-8 bytes to UTF-16 units; all start at 1. */
class Columns {
  #left = READ;
  /** Whether each module has non-ASCII code. @type {Map<unknown, boolean>} */
  #beyond = new Map();

  /** @param {import("./wire.js").Module} module @param {number} line @param {number} column */
  units(module, line, column) {
    const { code } = module;
    let beyond = this.#beyond.get(module);
    if (beyond === undefined) this.#beyond.set(module, (beyond = /[^\0-\x7f]/.test(code)));
    if (!beyond) return column;
    let start = 0;
    for (let at = 1; at < line; at++) {
      const next = code.indexOf("\n", start);
      if (next < 0 || --this.#left <= 0) return column;
      start = next + 1;
    }
    let units = 0;
    for (let bytes = 1; bytes < column; ) {
      const point = code.codePointAt(start + units);
      if (point === undefined || --this.#left <= 0) return column;
      bytes += point > 0xffff ? 4 : point > 0x7ff ? 3 : point > 0x7f ? 2 : 1;
      units += point > 0xffff ? 2 : 1;
    }
    return units + 1;
  }
}
