// Prints the benchmark's table line by line, and writes its file.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkout } from "../tests/worker/support/server.mjs";

/** @typedef {import("./measure.mjs").Result} Result */

/** Widths of the columns. */
const WIDTHS = [72, 12, 12, 9, 10, 6];

/** @param {string[]} cells */
const columns = (cells) =>
  cells.map((cell, at) => (at === 0 ? cell.padEnd(WIDTHS[at] ?? 0) : cell.padStart(WIDTHS[at] ?? 0))).join("");

/** The value to compare with the budget. @param {Result} result */
const compared = ({ value, floor }) => (floor === undefined ? value : value / floor);

/** @param {Result} result */
export const holds = (result) => result.budget === undefined || compared(result) <= result.budget;

/** @param {number} value @param {string} unit */
const amount = (value, unit) => `${value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(2)}${unit && ` ${unit}`}`;

export const heading = () => columns(["", "bobbin", "floor", "ratio", "budget", ""]);

/** @param {Result} result */
function verdict(result) {
  const { budget, floor, unit } = result;
  if (budget === undefined) return [];
  return [floor === undefined ? `≤ ${amount(budget, unit)}` : `≤ ${budget} ×`, holds(result) ? "ok" : "OVER"];
}

/** @param {Result} result */
export function line(result) {
  const { what, value, unit, floor, against } = result;
  const cells = [
    against === undefined ? what : `${what} (to ${against})`,
    amount(value, unit),
    floor === undefined ? "" : amount(floor, unit),
    floor === undefined ? "" : `${compared(result).toFixed(2)} ×`,
    ...verdict(result),
  ];
  return columns(cells);
}

/**
 * Writes bench/latest.json.
 *
 * @param {{ quick: boolean, machine: object, results: Result[] }} run
 */
export function save({ quick, machine, results }) {
  const rows = results.map((result) => ({ ...result, compared: compared(result), ok: holds(result) }));
  const text = JSON.stringify({ date: new Date().toISOString(), quick, machine, rows }, null, 2);
  writeFileSync(join(checkout, "bench/latest.json"), `${text}\n`);
}
