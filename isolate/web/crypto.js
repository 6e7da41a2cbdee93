// crypto.getRandomValues and crypto.randomUUID, for code in the sandbox.
//
// The host provides 32 random bytes per run, which ChaCha20 expands. The first half of each block becomes the next key, so
// earlier output does not reveal later output.

const INTEGERS = ["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array"];
const LARGE = ["BigInt64Array", "BigUint64Array"];
const MOST_BYTES = 65_536;

/** "expand 32-byte k" */
const CONSTANTS = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574];
const KEY_WORDS = 8;

const key = new Uint32Array(KEY_WORDS);
/** Unused bytes of the current block. @type {number[]} */
let left = [];

{
  const { entropy } = facts;
  if (!(entropy instanceof Uint8Array) || entropy.length !== KEY_WORDS * 4) throw new Error("crypto: the host gave no random bytes");
  const words = new DataView(entropy.buffer, entropy.byteOffset, entropy.length);
  for (let at = 0; at < KEY_WORDS; at++) key[at] = words.getUint32(at * 4, true);
}

/** Generates the next block. Half of it becomes the key. */
function turn() {
  const start = Uint32Array.of(...CONSTANTS, ...key, 0, 0, 0, 0);
  const block = start.slice();
  for (let round = 0; round < 10; round++) {
    for (let at = 0; at < 4; at++) quarter(block, at, at + 4, at + 8, at + 12);
    for (let at = 0; at < 4; at++) quarter(block, at, 4 + ((at + 1) % 4), 8 + ((at + 2) % 4), 12 + ((at + 3) % 4));
  }
  const word = (/** @type {number} */ at) => (/** @type {number} */ (block[at]) + /** @type {number} */ (start[at])) >>> 0;
  for (let at = 0; at < KEY_WORDS; at++) key[at] = word(at);
  for (let at = KEY_WORDS; at < 16; at++) left.push(word(at) & 0xff, (word(at) >>> 8) & 0xff, (word(at) >>> 16) & 0xff, word(at) >>> 24);
}

/** @param {Uint32Array} words @param {number} a @param {number} b @param {number} c @param {number} d */
function quarter(words, a, b, c, d) {
  mix(words, a, b, d, 16);
  mix(words, c, d, b, 12);
  mix(words, a, b, d, 8);
  mix(words, c, d, b, 7);
}

/** @param {Uint32Array} words @param {number} to @param {number} by @param {number} turned @param {number} bits */
function mix(words, to, by, turned, bits) {
  words[to] = /** @type {number} */ (words[to]) + /** @type {number} */ (words[by]);
  const mixed = /** @type {number} */ (words[turned]) ^ /** @type {number} */ (words[to]);
  words[turned] = (mixed << bits) | (mixed >>> (32 - bits));
}

/** @param {number} count @returns {Uint8Array} */
function random(count) {
  const bytes = new Uint8Array(count);
  for (let at = 0; at < count; at++) {
    if (left.length === 0) turn();
    bytes[at] = /** @type {number} */ (left.pop());
  }
  return bytes;
}

/** @template {ArrayBufferView} T @param {T} array @returns {T} */
function getRandomValues(array) {
  const kind = /** @type {any} */ (array)?.[Symbol.toStringTag];
  if (!ArrayBuffer.isView(array) || ![...INTEGERS, ...LARGE].includes(kind)) {
    throw new TypeError("crypto.getRandomValues: an array of integers is expected");
  }
  if (array.byteLength > MOST_BYTES) {
    const error = new Error(`crypto.getRandomValues: ${MOST_BYTES} bytes at a time are the most`);
    error.name = "QuotaExceededError";
    throw error;
  }
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(random(array.byteLength));
  return array;
}

function randomUUID() {
  const bytes = random(16);
  bytes[6] = (/** @type {number} */ (bytes[6]) & 0x0f) | 0x40;
  bytes[8] = (/** @type {number} */ (bytes[8]) & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** No `subtle`: cryptography with keys belongs on the host's side. */
export const crypto = Object.freeze({ getRandomValues, randomUUID });
