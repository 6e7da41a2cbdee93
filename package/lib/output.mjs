// Output for terminals, pipes and programs. Text from models, tools and other people is sanitized first: an escape
// sequence could clear the screen, retitle the window, or disguise a command.

import { env, stdout } from "node:process";

/** Whether standard output is a terminal with styles. */
const styled = stdout.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";

/** @param {string} begin @param {string} end */
const style = (begin, end) => (/** @type {string} */ text) => (styled && text !== "" ? `\x1b[${begin}m${text}\x1b[${end}m` : text);
export const dim = style("2", "22");
export const bold = style("1", "22");

/** Control characters, and characters that change the direction of text and can disguise it. */
// eslint-disable-next-line no-control-regex
const OBEYED = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Makes untrusted text safe to print: control characters become visible and have no effect. @param {string} text */
export function harmless(text) {
  return text.toWellFormed().replaceAll("\r\n", "\n").replace(OBEYED, shown);
}

/** @param {string} character */
function shown(character) {
  const code = character.charCodeAt(0);
  // Unicode has visible symbols for these, such as ␛ for escape.
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? "␡" : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** Makes untrusted text safe and puts it on one line. @param {string} text */
export const oneLine = (text) => harmless(text.trim().replace(/\s+/g, " "));

/** Returns JSON whose control characters are escaped. Programs read the same value. @param {unknown} value @param {number} [indent] */
export function json(value, indent) {
  return JSON.stringify(value, null, indent).replace(OBEYED, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** @param {string} text */
export const print = (text) => void stdout.write(`${text}\n`);

/** Prints a result for programs. @param {unknown} value */
export const printJson = (value) => print(json(value, 2));

/** Prints a note to stderr. The result goes to stdout. @param {string} text */
export const note = (text) => void process.stderr.write(`${text}\n`);

/**
 * Formats rows in columns under titles. On a terminal, the flexible column is cut so that each row fits one line. In a
 * pipe nothing is cut.
 *
 * @param {string[]} titles
 * @param {string[][]} rows      harmless, each one line
 * @param {number} [flexible]    the index of the column that may be cut; by default the last
 */
export function table(titles, rows, flexible = titles.length - 1) {
  const widths = titles.map((title, at) => Math.max(width(title), ...rows.map((row) => width(row[at] ?? ""))));
  const room = stdout.isTTY ? (stdout.columns || 80) - 1 : Infinity;
  const over = widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length) - room;
  const wide = widths[flexible] ?? 0;
  if (over > 0) widths[flexible] = Math.max(LEAST, wide - over);
  const line = (/** @type {string[]} */ row) =>
    row.map((cell, at) => padded(cut(cell, widths[at] ?? 0), at === row.length - 1 ? 0 : (widths[at] ?? 0))).join(GAP).trimEnd();
  return [dim(line(titles)), ...rows.map(line)].join("\n");
}

const GAP = "  ";
/** The minimum width of a cut column. */
const LEAST = 8;

/**
 * Formats names and values, one pair per line. @param {(readonly [string, string | undefined])[]} facts  pairs without
 * a value are left out
 */
export function list(facts) {
  const said = facts.flatMap(([name, value]) => (value === undefined || value === "" ? [] : [/** @type {const} */ ([name, value])]));
  const longest = Math.max(...said.map(([name]) => width(name)));
  return said.map(([name, value]) => `${dim(padded(name, longest))}  ${value.replaceAll("\n", `\n${" ".repeat(longest + 2)}`)}`).join("\n");
}

/** @param {string} text @param {number} to */
const padded = (text, to) => text + " ".repeat(Math.max(0, to - width(text)));

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const WIDE = /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}])/u;
const NONE = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;

/** Returns the number of terminal columns of a character. @param {string} grapheme */
const columns = (grapheme) => (NONE.test(grapheme) ? 0 : WIDE.test(grapheme) || grapheme.includes("\ufe0f") ? 2 : 1);

/** @param {string} text */
function width(text) {
  // eslint-disable-next-line no-control-regex
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let sum = 0;
  for (const { segment } of graphemes.segment(text)) sum += columns(segment);
  return sum;
}

/** Cuts a text to a number of columns. @param {string} text @param {number} most */
export function cut(text, most) {
  if (width(text) <= most) return text;
  let [kept, sum] = ["", 0];
  for (const { segment } of graphemes.segment(text)) {
    sum += columns(segment);
    if (sum >= most) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** Formats seconds since 1970 as a date and time. @param {number | null | undefined} seconds */
export const moment = (seconds) => (seconds === null || seconds === undefined ? "" : new Date(seconds * 1000).toISOString().replace(/\.\d+Z$/, "Z"));

/** Formats dollars with as many digits as are significant. @param {number} usd */
export const money = (usd) => `$${usd === 0 || usd >= 1 ? usd.toFixed(2) : usd.toPrecision(3).replace(/\.?0+$/, "")}`;
