// Percent-encoding of the URL Standard.

import { TextDecoder, TextEncoder } from "../encoding.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Sets of printable ASCII characters to encode. Control characters and non-ASCII text are always encoded. */
export const CONTROL = "";
export const FRAGMENT = ' "<>`';
export const QUERY = ' "#<>';
export const SPECIAL_QUERY = `${QUERY}'`;
export const PATH = `${QUERY}?^\`{}`;
export const USERINFO = `${PATH}/:;=@[\\]|`;

/** @param {string} text @param {string} set @returns {string} */
export function encoded(text, set) {
  let result = "";
  for (const char of text) {
    if (char > "\x1f" && char < "\x7f") result += set.includes(char) ? hex(char.charCodeAt(0)) : char;
    else for (const byte of encoder.encode(char)) result += hex(byte);
  }
  return result;
}

/** Encodes a text for a form. @param {string} text */
export function formEncoded(text) {
  let result = "";
  for (const byte of encoder.encode(text)) {
    const char = String.fromCharCode(byte);
    if (char === " ") result += "+";
    else result += /[*\-.0-9A-Z_a-z]/.test(char) ? char : hex(byte);
  }
  return result;
}

/** Percent-decodes a text; invalid UTF-8 becomes U+FFFD. @param {string} text */
export function decoded(text) {
  if (!text.includes("%")) return text;
  const bytes = encoder.encode(text);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const digits = bytes[at] === 0x25 ? String.fromCharCode(...bytes.subarray(at + 1, at + 3)) : "";
    const escape = /^[0-9A-Fa-f]{2}$/.test(digits);
    bytes[length++] = escape ? parseInt(digits, 16) : /** @type {number} */ (bytes[at]);
    if (escape) at += 2;
  }
  return decoder.decode(bytes.subarray(0, length));
}

/** @param {number} byte */
const hex = (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
