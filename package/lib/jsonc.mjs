// JSON with comments and commas at the end of lists, as wrangler.jsonc is.

import { Complaint } from "./complaint.mjs";
import { readIfThere, shown } from "./files.mjs";

/** The same text as JSON: what is left out leaves blanks, so that places stay where they are. @param {string} text */
export function plain(text) {
  const blank = (/** @type {string} */ found) => found.replace(/[^\n]/g, " ");
  const bare = text.replace(/"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (found) => (found.startsWith('"') ? found : blank(found)));
  return bare.replace(/"(?:[^"\\\n]|\\.)*"|,(?=\s*[\]}])/g, (found) => (found === "," ? " " : found));
}

/** @param {string} path @returns {any} nothing when there is no such file */
export function readJsonc(path) {
  const text = readIfThere(path);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(plain(text.replace(/^\uFEFF/, " ")));
  } catch (error) {
    throw new Complaint(`${shown(path)} cannot be read: ${/** @type {Error} */ (error).message}`);
  }
}
