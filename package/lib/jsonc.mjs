// JSON with comments and trailing commas, as in wrangler.jsonc.

import { Complaint } from "./complaint.mjs";
import { readIfThere, shown } from "./files.mjs";

/** Converts the text to JSON. Blanks replace what is removed, so that positions in error messages stay correct. @param {string} text */
export function plain(text) {
  const blank = (/** @type {string} */ found) => found.replace(/[^\n]/g, " ");
  const bare = text.replace(/"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (found) => (found.startsWith('"') ? found : blank(found)));
  return bare.replace(/"(?:[^"\\\n]|\\.)*"|,(?=\s*[\]}])/g, (found) => (found === "," ? " " : found));
}

/** Parses the text. Throws a SyntaxError if it is invalid. @param {string} text @returns {any} */
export const parseJsonc = (text) => JSON.parse(plain(text.replace(/^\uFEFF/, " ")));

/** @param {string} path @returns {any} nothing if the file does not exist */
export function readJsonc(path) {
  const text = readIfThere(path);
  if (text === undefined) return undefined;
  try {
    return parseJsonc(text);
  } catch (error) {
    throw new Complaint(`${shown(path)} cannot be read: ${/** @type {Error} */ (error).message}`);
  }
}
