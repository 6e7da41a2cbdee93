// Percent-encoding of forms.

import { TextDecoder, TextEncoder } from "../encoding.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

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
