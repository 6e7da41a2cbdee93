// Positional arguments and flag values of a command, and text from a pipe.

import { stdin } from "node:process";
import { Complaint, EXIT } from "./complaint.mjs";

/**
 * Checks the number of arguments.
 *
 * @param {string[]} given
 * @param {string[]} names   their names
 * @returns {string[]}
 */
export function exactly(given, names) {
  if (given.length === names.length) return given;
  const wanted = names.length === 0 ? "no arguments" : names.map((name) => `<${name}>`).join(" ");
  const quotes = given.length > names.length && names.at(-1) === "text" ? " Put a text of several words in quotes." : "";
  throw new Complaint(`This command takes ${wanted}, not ${given.length}.${quotes}`, EXIT.usage);
}

/**
 * Parses an integer flag.
 *
 * @param {string} flag
 * @param {string} text
 * @param {{ least: number, most: number }} range
 */
export function number(flag, text, { least, most }) {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw new Complaint(`--${flag} needs a whole number from ${least} to ${most}, not “${text}”.`, EXIT.usage);
}

/** Parses the JSON of a flag or an argument. @param {string} what @param {string} text @returns {any} */
export function parsed(what, text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Complaint(`${what} is not valid JSON: ${/** @type {Error} */ (error).message}`, EXIT.usage);
  }
}

/** Parses a JSON object in a flag or an argument. @param {string} what @param {string} text @returns {Record<string, any>} */
export function parsedObject(what, text) {
  const value = parsed(what, text);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new Complaint(`${what} must be a JSON object.`, EXIT.usage);
}

/** The maximum size of a message's text, in bytes. */
const MOST = 1_000_000;

/** Reads text from the pipe, without its final line break. */
export async function pipedText() {
  if (stdin.isTTY) throw new Complaint("`-` reads the text from a pipe, but standard input is a terminal.", EXIT.usage);
  /** @type {Buffer[]} */
  const chunks = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MOST) throw new Complaint(`The text of a message has at most ${MOST} bytes. Send a longer text as a file.`);
  }
  return Buffer.concat(chunks).toString("utf8").replace(/\r?\n$/, "");
}
