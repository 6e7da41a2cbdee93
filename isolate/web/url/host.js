// Hosts of the URL Standard. Non-ASCII names get the common mappings, but no rules for single scripts.

import { CONTROL, decoded, encoded } from "./encode.js";

const FORBIDDEN = /[\x00\t\n\r #/:<>?@[\\\]^|]/;
/** U+FFFD stands for invalid UTF-8. */
const FORBIDDEN_IN_DOMAINS = /[\x00-\x20#%/:<>?@[\\\]^|\x7f\ufffd]/;

/**
 * The host in its canonical form.
 *
 * @param {string} text
 * @param {boolean} special   whether the scheme is special, like http
 * @returns {string | undefined} undefined if it is invalid
 */
export function parseHost(text, special) {
  if (text.startsWith("[")) {
    const pieces = text.endsWith("]") ? ipv6(text.slice(1, -1)) : undefined;
    return pieces && `[${shortened(pieces)}]`;
  }
  if (!special) return FORBIDDEN.test(text) ? undefined : encoded(text, CONTROL);
  const plain = decoded(text);
  const domain = ascii(plain);
  if (domain === "" || FORBIDDEN_IN_DOMAINS.test(plain + domain)) return undefined;
  if (!endsInNumber(domain)) return domain;
  const address = ipv4(domain);
  return address === undefined ? undefined : [24, 16, 8, 0].map((bits) => Math.floor(address / 2 ** bits) % 256).join(".");
}

/** @param {string} domain */
function ascii(domain) {
  if (/^[\x00-\x7f]*$/.test(domain)) return domain.toLowerCase();
  // Remove ignored characters, and map full stops of other scripts and the sigma, whose lower case depends on its position.
  const mapped = domain
    .replace(/[\u00ad\u034f\u180b-\u180d\u180f\u200b\u2060\u2064\ufe00-\ufe0f\ufeff]/g, "")
    .replace(/[\u3002\uff0e\uff61]/g, ".")
    .replace(/\u03a3/g, "\u03c3")
    .normalize("NFKC")
    .toLowerCase()
    .normalize("NFC");
  return mapped.split(".").map(punycode).join(".");
}

/** Encodes a label as Punycode (RFC 3492). @param {string} label */
function punycode(label) {
  const points = Array.from(label, (char) => /** @type {number} */ (char.codePointAt(0)));
  const basic = points.filter((point) => point < 0x80);
  if (basic.length === points.length) return label;
  let coded = String.fromCharCode(...basic);
  if (basic.length > 0) coded += "-";
  let [bias, delta, done, least] = [72, 0, basic.length, 0x80];
  while (done < points.length) {
    const next = Math.min(...points.filter((point) => point >= least));
    delta += (next - least) * (done + 1);
    least = next;
    for (const point of points) {
      if (point < least) delta++;
      if (point !== least) continue;
      coded += varied(delta, bias);
      bias = adapted(delta, done + 1, done === basic.length);
      delta = 0;
      done++;
    }
    delta++;
    least++;
  }
  return `xn--${coded}`;
}

/** Encodes a variable-length integer. @param {number} delta @param {number} bias */
function varied(delta, bias) {
  let [rest, digits] = [delta, ""];
  for (let k = 36; ; k += 36) {
    const threshold = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
    if (rest < threshold) return digits + rest.toString(36).replace(/./, digit);
    const over = (rest - threshold) % (36 - threshold);
    digits += digit(String((threshold + over).toString(36)));
    rest = Math.floor((rest - threshold) / (36 - threshold));
  }
}

/** Converts JavaScript's digit (0–9, then letters) to Punycode's (letters, then 0–9). @param {string} char */
const digit = (char) => "abcdefghijklmnopqrstuvwxyz0123456789".charAt(parseInt(char, 36));

/** @param {number} delta @param {number} count @param {boolean} first */
function adapted(delta, count, first) {
  let rest = Math.floor(delta / (first ? 700 : 2));
  rest += Math.floor(rest / count);
  let k = 0;
  for (; rest > 455; k += 36) rest = Math.floor(rest / 35);
  return k + Math.floor((36 * rest) / (rest + 38));
}

/** @param {string} domain */
function endsInNumber(domain) {
  const last = domain.split(".").filter((part, at, parts) => part !== "" || at < parts.length - 1).at(-1) ?? "";
  return /^(\d+|0x[0-9a-f]*)$/i.test(last);
}

/** @param {string} domain @returns {number | undefined} */
function ipv4(domain) {
  const parts = domain.split(".");
  if (parts.at(-1) === "" && parts.length > 1) parts.pop();
  if (parts.length > 4) return undefined;
  const numbers = parts.map(number);
  const last = numbers.pop() ?? NaN;
  if (numbers.some((part) => !(part < 256)) || !(last < 256 ** (4 - numbers.length))) return undefined;
  return numbers.reduce((sum, part, at) => sum + part * 256 ** (3 - at), last);
}

/** Reads a decimal, octal or hexadecimal number; NaN if it is invalid. @param {string} text */
function number(text) {
  if (/^0x[0-9a-f]*$/i.test(text)) return text.length === 2 ? 0 : parseInt(text, 16);
  if (/^0[0-7]+$/.test(text)) return parseInt(text, 8);
  return /^(0|[1-9]\d*)$/.test(text) ? parseInt(text, 10) : NaN;
}

/** @param {string} text @returns {number[] | undefined} eight numbers */
function ipv6(text) {
  const [left = "", right, ...more] = text.split("::");
  if (more.length > 0) return undefined;
  const head = pieces(left, right === undefined);
  const tail = right === undefined ? [] : pieces(right, true);
  if (!head || !tail) return undefined;
  const missing = 8 - head.length - tail.length;
  if (right === undefined ? missing !== 0 : missing < 1) return undefined;
  return [...head, ...new Array(missing).fill(0), ...tail];
}

/** @param {string} text @param {boolean} last  whether it may end with an IPv4 address @returns {number[] | undefined} */
function pieces(text, last) {
  if (text === "") return [];
  /** @type {number[]} */
  const found = [];
  const parts = text.split(":");
  for (const [at, part] of parts.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(part)) {
      found.push(parseInt(part, 16));
      continue;
    }
    const bytes = part.split(".");
    const fits = bytes.length === 4 && bytes.every((byte) => /^(0|[1-9]\d{0,2})$/.test(byte) && Number(byte) < 256);
    if (!last || at !== parts.length - 1 || !fits) return undefined;
    const [a = 0, b = 0, c = 0, d = 0] = bytes.map(Number);
    found.push(a * 256 + b, c * 256 + d);
  }
  return found;
}

/** Writes an address with the longest run of zeros, the first of several, as `::`. @param {number[]} address */
function shortened(address) {
  let [best, length] = [-1, 1];
  for (let from = 0; from < 8; from++) {
    let to = from;
    while (address[to] === 0) to++;
    if (to - from > length) [best, length] = [from, to - from];
  }
  const text = (/** @type {number[]} */ part) => part.map((piece) => piece.toString(16)).join(":");
  return best < 0 ? text(address) : `${text(address.slice(0, best))}::${text(address.slice(best + length))}`;
}
