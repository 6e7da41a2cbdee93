// URLSearchParams.

import { decoded, formEncoded } from "./encode.js";

/** @typedef {[name: string, value: string]} Pair */

/** Sets the callback for changes, which updates the URL. @type {unique symbol} */
export const follow = Symbol("follow");
/** Replaces the parameters with those of a query. @type {unique symbol} */
export const read = Symbol("read");

export class URLSearchParams {
  /** @type {Pair[]} */
  #pairs = [];
  /** Called on changes. @type {() => void} */
  #changed = () => {};

  /** @param {string | Iterable<Iterable<string>> | Record<string, string>} [init] */
  constructor(init = "") {
    if (typeof init !== "object" || init === null) {
      this[read](String(init).replace(/^\?/, ""));
    } else if (Symbol.iterator in init) {
      this.#pairs = Array.from(/** @type {Iterable<Iterable<string>>} */ (init), (entry) => {
        const [name, value, ...more] = entry;
        if (name === undefined || value === undefined || more.length > 0) {
          throw new TypeError("URLSearchParams: pairs of a name and a value are expected");
        }
        return [String(name), String(value)];
      });
    } else {
      this.#pairs = Object.entries(init).map(([name, value]) => [name, String(value)]);
    }
  }

  /** @param {string} query */
  [read](query) {
    this.#pairs = query
      .split("&")
      .filter((part) => part !== "")
      .map((part) => {
        const [name, value] = /** @type {Pair} */ (/^([^=]*)=?(.*)$/s.exec(part)?.slice(1));
        return [decoded(name.replaceAll("+", " ")), decoded(value.replaceAll("+", " "))];
      });
  }

  /** @param {() => void} changed */
  [follow](changed) {
    this.#changed = changed;
  }

  get size() {
    return this.#pairs.length;
  }

  /** @param {string} name @param {string} value */
  append(name, value) {
    this.#pairs.push([String(name), String(value)]);
    this.#changed();
  }

  /** @param {string} name @param {string} [value] */
  delete(name, value) {
    this.#pairs = this.#pairs.filter((pair) => !fits(pair, name, value));
    this.#changed();
  }

  /** @param {string} name @returns {string | null} */
  get(name) {
    return this.#pairs.find((pair) => fits(pair, name))?.[1] ?? null;
  }

  /** @param {string} name @returns {string[]} */
  getAll(name) {
    return this.#pairs.filter((pair) => fits(pair, name)).map(([, value]) => value);
  }

  /** @param {string} name @param {string} [value] @returns {boolean} */
  has(name, value) {
    return this.#pairs.some((pair) => fits(pair, name, value));
  }

  /** @param {string} name @param {string} value */
  set(name, value) {
    const first = this.#pairs.find((pair) => fits(pair, name));
    if (!first) return this.append(name, value);
    first[1] = String(value);
    this.#pairs = this.#pairs.filter((pair) => pair === first || !fits(pair, name));
    this.#changed();
  }

  /** Sorts by name, stably. */
  sort() {
    this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    this.#changed();
  }

  /** @param {(value: string, name: string, params: URLSearchParams) => void} callback @param {unknown} [self] */
  forEach(callback, self) {
    for (const [name, value] of this) callback.call(self, value, name, this);
  }

  /** @returns {IterableIterator<Pair>} */
  *entries() {
    // The loop includes pairs that are added meanwhile.
    for (let at = 0; at < this.#pairs.length; at++) yield /** @type {Pair} */ ([.../** @type {Pair} */ (this.#pairs[at])]);
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

  toString() {
    return this.#pairs.map(([name, value]) => `${formEncoded(name)}=${formEncoded(value)}`).join("&");
  }

  get [Symbol.toStringTag]() {
    return "URLSearchParams";
  }
}

/** @param {Pair} pair @param {string} name @param {string} [value] */
const fits = ([own, held], name, value) => own === String(name) && (value === undefined || held === String(value));
