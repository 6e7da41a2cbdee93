// TextEncoder, TextDecoder (UTF-8 only), atob and btoa, for code in the sandbox.

const LABELS = ["utf-8", "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8"];
/** The number of units per call of `String.fromCharCode`. */
const PIECE = 4096;
const REPLACEMENT = 0xfffd;

/**
 * Writes the text's bytes with `put`, which returns whether there was room.
 *
 * @param {string} text
 * @param {(bytes: number[]) => boolean} put
 * @returns {number} the number of units that were written
 */
function write(text, put) {
  let at = 0;
  while (at < text.length) {
    const code = /** @type {number} */ (text.codePointAt(at));
    const units = code > 0xffff ? 2 : 1;
    if (!put(bytesOf(code >= 0xd800 && code <= 0xdfff ? REPLACEMENT : code))) break;
    at += units;
  }
  return at;
}

/** @param {number} code */
function bytesOf(code) {
  if (code < 0x80) return [code];
  const last = 0x80 | (code & 0x3f);
  if (code < 0x800) return [0xc0 | (code >> 6), last];
  const third = 0x80 | ((code >> 6) & 0x3f);
  if (code < 0x10000) return [0xe0 | (code >> 12), third, last];
  return [0xf0 | (code >> 18), 0x80 | ((code >> 12) & 0x3f), third, last];
}

export class TextEncoder {
  get encoding() {
    return "utf-8";
  }

  /** @param {string} [input] @returns {Uint8Array} */
  encode(input = "") {
    const text = String(input);
    // A unit needs at most three bytes.
    const bytes = new Uint8Array(text.length * 3);
    return bytes.slice(0, this.encodeInto(text, bytes).written);
  }

  /** @param {string} source @param {Uint8Array} destination */
  encodeInto(source, destination) {
    let written = 0;
    const read = write(String(source), (bytes) => {
      if (written + bytes.length > destination.length) return false;
      for (let at = 0; at < bytes.length; at++) destination[written++] = /** @type {number} */ (bytes[at]);
      return true;
    });
    return { read, written };
  }
}

export class TextDecoder {
  #fatal;
  #ignoreBOM;
  /** The unfinished character: its bits so far, the number of missing bytes, and the range of the next byte. */
  #code = 0;
  #missing = 0;
  #low = 0x80;
  #high = 0xbf;
  /** Whether the text is still at its start, where a BOM is skipped. */
  #first = true;

  /** @param {string} [label] @param {{ fatal?: boolean, ignoreBOM?: boolean }} [options] */
  constructor(label = "utf-8", options = {}) {
    if (!LABELS.includes(String(label).trim().toLowerCase())) {
      throw new RangeError(`TextDecoder: only UTF-8 is known here, not "${label}"`);
    }
    this.#fatal = Boolean(options.fatal);
    this.#ignoreBOM = Boolean(options.ignoreBOM);
  }

  get encoding() {
    return "utf-8";
  }
  get fatal() {
    return this.#fatal;
  }
  get ignoreBOM() {
    return this.#ignoreBOM;
  }

  /** @param {ArrayBuffer | ArrayBufferView} [input] @param {{ stream?: boolean }} [options] @returns {string} */
  decode(input, options = {}) {
    const bytes = view(input);
    let text = "";
    /** @type {number[]} */
    let units = [];
    const put = (/** @type {number} */ code) => {
      if (this.#first) {
        this.#first = false;
        if (code === 0xfeff && !this.#ignoreBOM) return;
      }
      if (code > 0xffff) units.push(0xd800 + ((code - 0x10000) >> 10), 0xdc00 + (code & 0x3ff));
      else units.push(code);
      if (units.length >= PIECE) {
        text += String.fromCharCode.apply(undefined, units);
        units = [];
      }
    };
    for (let at = 0; at < bytes.length; at++) this.#take(/** @type {number} */ (bytes[at]), put);
    if (!options.stream) {
      if (this.#missing > 0) this.#wrong(put);
      this.#first = true;
    }
    return text + String.fromCharCode.apply(undefined, units);
  }

  /** @param {number} byte @param {(code: number) => void} put */
  #take(byte, put) {
    if (this.#missing > 0) {
      if (byte >= this.#low && byte <= this.#high) {
        [this.#low, this.#high] = [0x80, 0xbf];
        this.#code = (this.#code << 6) | (byte & 0x3f);
        if (--this.#missing === 0) put(this.#code);
        return;
      }
      // The character is cut short, and this byte begins the next one.
      this.#wrong(put);
    }
    if (byte < 0x80) put(byte);
    else if (byte >= 0xc2 && byte <= 0xdf) this.#begin(byte & 0x1f, 1);
    // Overlong forms and surrogates are invalid.
    else if (byte >= 0xe0 && byte <= 0xef) this.#begin(byte & 0x0f, 2, byte === 0xe0 ? 0xa0 : 0x80, byte === 0xed ? 0x9f : 0xbf);
    else if (byte >= 0xf0 && byte <= 0xf4) this.#begin(byte & 0x07, 3, byte === 0xf0 ? 0x90 : 0x80, byte === 0xf4 ? 0x8f : 0xbf);
    else this.#wrong(put);
  }

  /** @param {number} code @param {number} missing @param {number} [low] @param {number} [high] */
  #begin(code, missing, low = 0x80, high = 0xbf) {
    [this.#code, this.#missing, this.#low, this.#high] = [code, missing, low, high];
  }

  /** @param {(code: number) => void} put */
  #wrong(put) {
    [this.#missing, this.#low, this.#high] = [0, 0x80, 0xbf];
    if (this.#fatal) {
      this.#first = true;
      throw new TypeError("TextDecoder: the bytes are not UTF-8");
    }
    put(REPLACEMENT);
  }
}

/** The bytes of a binary value. @param {ArrayBuffer | ArrayBufferView | undefined} input @returns {Uint8Array} */
function view(input) {
  if (input === undefined) return new Uint8Array();
  if (input instanceof ArrayBuffer) return new Uint8Array(input);
  if (ArrayBuffer.isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
  throw new TypeError("TextDecoder: an ArrayBuffer or a view of one is expected");
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** @param {string} data  its units must be below 256 */
export function btoa(data) {
  const text = String(data);
  let coded = "";
  for (let at = 0; at < text.length; at += 3) {
    const [a, b, c] = [text.charCodeAt(at), text.charCodeAt(at + 1), text.charCodeAt(at + 2)];
    if (a > 255 || b > 255 || c > 255) throw named("InvalidCharacterError", "btoa: a character is beyond U+00FF");
    const bits = (a << 16) | (b << 8) | c;
    coded += DIGITS.charAt(bits >> 18) + DIGITS.charAt((bits >> 12) & 63);
    coded += (at + 1 < text.length ? DIGITS.charAt((bits >> 6) & 63) : "=") + (at + 2 < text.length ? DIGITS.charAt(bits & 63) : "=");
  }
  return coded;
}

/** @param {string} data */
export function atob(data) {
  let text = String(data).replace(/[\t\n\f\r ]+/g, "");
  if (text.length % 4 === 0) text = text.replace(/==?$/, "");
  if (text.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(text)) throw named("InvalidCharacterError", "atob: this is not base64");
  let plain = "";
  let bits = 0;
  let count = 0;
  for (const digit of text) {
    bits = ((bits << 6) | DIGITS.indexOf(digit)) & 0xffff;
    count += 6;
    if (count >= 8) {
      count -= 8;
      plain += String.fromCharCode((bits >> count) & 0xff);
    }
  }
  return plain;
}

/** @param {string} name @param {string} message */
function named(name, message) {
  const error = new Error(message);
  error.name = name;
  return error;
}
