// Headers, for code in the sandbox.

/** @typedef {Headers | Iterable<Iterable<string>> | Record<string, string>} HeadersInit */

/** The syntax of the names of methods and headers. */
export const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/**
 * Builds received headers. Their values are as the platform read them, and may contain text beyond Latin-1.
 *
 * @type {(headers: Iterable<[name: string, value: string]>) => Headers}
 */
export let receivedHeaders;

export class Headers {
  /** By name in lower case. Only the values of `set-cookie` may not be joined. @type {Map<string, string[]>} */
  #values = new Map();

  static {
    receivedHeaders = (pairs) => {
      const headers = new Headers();
      for (const [name, value] of pairs) {
        const key = name.toLowerCase();
        headers.#values.set(key, [...(headers.#values.get(key) ?? []), value]);
      }
      return headers;
    };
  }

  /** @param {HeadersInit} [init] */
  constructor(init = {}) {
    if (typeof init !== "object" || init === null) throw new TypeError("Headers: an object or a list of pairs is expected");
    if (init instanceof Headers) {
      // Received headers can be passed on without a check.
      for (const [name, values] of init.#values) this.#values.set(name, [...values]);
      return;
    }
    const pairs = Symbol.iterator in init ? /** @type {Iterable<Iterable<string>>} */ (init) : Object.entries(init);
    for (const pair of pairs) {
      const [name, value, ...more] = pair;
      if (name === undefined || value === undefined || more.length > 0) throw new TypeError("Headers: pairs of a name and a value are expected");
      this.append(name, value);
    }
  }

  /** @param {string} name @param {string} value */
  append(name, value) {
    const key = keyOf(name);
    this.#values.set(key, [...(this.#values.get(key) ?? []), valueOf(value)]);
  }

  /** @param {string} name @param {string} value */
  set(name, value) {
    this.#values.set(keyOf(name), [valueOf(value)]);
  }

  /** @param {string} name */
  delete(name) {
    this.#values.delete(keyOf(name));
  }

  /** @param {string} name @returns {string | null} */
  get(name) {
    return this.#values.get(keyOf(name))?.join(", ") ?? null;
  }

  /** @param {string} name */
  has(name) {
    return this.#values.has(keyOf(name));
  }

  /** @returns {string[]} */
  getSetCookie() {
    return [...(this.#values.get("set-cookie") ?? [])];
  }

  /** @param {(value: string, name: string, headers: Headers) => void} callback @param {unknown} [self] */
  forEach(callback, self) {
    for (const [name, value] of this) callback.call(self, value, name, this);
  }

  /** @returns {IterableIterator<[name: string, value: string]>} */
  *entries() {
    const names = [...this.#values.keys()].sort();
    for (const name of names) {
      const values = this.#values.get(name) ?? [];
      if (name !== "set-cookie") yield [name, values.join(", ")];
      else for (const value of values) yield [name, value];
    }
  }

  /** @returns {IterableIterator<string>} */
  *keys() {
    for (const [name] of this.entries()) yield name;
  }

  /** @returns {IterableIterator<string>} */
  *values() {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  get [Symbol.toStringTag]() {
    return "Headers";
  }
}

/** @param {unknown} name */
function keyOf(name) {
  if (!TOKEN.test(String(name))) throw new TypeError(`Headers: "${name}" is no name of a header`);
  return String(name).toLowerCase();
}

/** @param {unknown} value */
function valueOf(value) {
  const text = String(value).replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
  if (/[\0\n\r]|[^\0-\xff]/.test(text)) throw new TypeError("Headers: a value holds a line break or a character beyond U+00FF");
  return text;
}
