// What went wrong, as the outcome tells it: the engine's stack without the frames of anything but the caller's modules,
// and the place of the topmost one.

/**
 * @typedef {import("./wire.js").Failure} Failure
 * @typedef {import("./wire.js").Program} Program
 */

/** What a caller is told at most: a stack is short. */
const FRAMES = 50;
/** Lines of a stack that are looked at, and how long one may be: code may make a stack of its own. */
const LINES = 1000;
const LINE_UNITS = 2000;
/** Brackets at which the name of a file may begin: both it and a function's may have some. */
const BRACKETS = 8;
/** Lines and characters of sources that are read in all to find columns: beyond that, columns are those of the engine. */
const READ = 200_000;

/**
 * @param {{ name: string, message: string, stack: string, maker?: string }} error   its stack as the engine writes it,
 *                                                                                 and its class where it has one of its own
 * @param {Program} program
 * @returns {Failure}
 */
export function failure({ name, message, stack, maker = "" }, program) {
  const head = message === "" ? name : `${name}: ${message}`;
  // V8 writes the error before its frames, and a message may look like a frame.
  let frames = framesOf(stack.startsWith(head) ? stack.slice(head.length) : stack, program);
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

/** @param {string} stack @param {Program} program */
function framesOf(stack, { engine, modules, keys }) {
  /** What the engine calls each module. @type {Map<string, import("./wire.js").Module>} */
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
 * A line of a stack: `    at name (file:line:column)`, or without a name. Undefined when it is not of the caller's code.
 *
 * @param {string} line
 * @param {Program["engine"]} engine
 * @param {Map<string, import("./wire.js").Module>} known
 * @param {Columns} columns
 */
function frameOf(line, engine, known, columns) {
  const [, written = "", at = "", column = ""] = /^\s*at (.*):(\d+):(\d+)\)?$/.exec(line) ?? [];
  // V8 says how a function was called. A file of QuickJS's may have such a name.
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

/** The file's name in `name (file`: a name of a function may look like anything, so it is found from the end. @param {string} called @param {Map<string, unknown>} known */
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
 * The column of the source: the compiler may have put code into the line (isolate/compiler/src/edits.rs). A place in that
 * is the place where it was put.
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

/** Columns in UTF-16 units, from an engine's in bytes of UTF-8; all from 1. */
class Columns {
  #left = READ;
  /** Modules that have more than ASCII. @type {Map<unknown, boolean>} */
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
