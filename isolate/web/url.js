// URL and URLSearchParams, for code in the sandbox. The platform parses and changes URLs (isolate/harness/url.js).

import { urlParts } from "bobbin/url";
import { follow, read, URLSearchParams } from "./url/params.js";

export { URLSearchParams };

/** @typedef {Record<"href" | "origin" | "protocol" | "username" | "password" | "host" | "hostname" | "port" | "pathname" | "search" | "hash", string>} Parts */

export class URL {
  /** @type {Parts} */
  #parts;
  #params = new URLSearchParams();

  /** @param {string | URL} input @param {string | URL} [base] */
  constructor(input, base) {
    const parts = parsed(input, base);
    if (!parts) throw new TypeError(`Invalid URL: ${input}`);
    this.#parts = parts;
    this.#params[read](this.search.slice(1));
    this.#params[follow](() => this.#set("search", this.#params.toString()));
  }

  /** @param {string | URL} input @param {string | URL} [base] @returns {URL | null} */
  static parse(input, base) {
    return URL.canParse(input, base) ? new URL(input, base) : null;
  }

  /** @param {string | URL} input @param {string | URL} [base] */
  static canParse(input, base) {
    return parsed(input, base) !== null;
  }

  /** @param {string} part @param {unknown} value */
  #set(part, value) {
    const parts = parsed(this.href, undefined, [part, String(value)]);
    if (!parts) throw new TypeError(`Invalid URL: ${value}`);
    this.#parts = parts;
  }

  get href() {
    return this.#parts.href;
  }
  set href(value) {
    this.#set("href", value);
    this.#params[read](this.search.slice(1));
  }

  get origin() {
    return this.#parts.origin;
  }

  get protocol() {
    return this.#parts.protocol;
  }
  set protocol(value) {
    this.#set("protocol", value);
  }

  get username() {
    return this.#parts.username;
  }
  set username(value) {
    this.#set("username", value);
  }

  get password() {
    return this.#parts.password;
  }
  set password(value) {
    this.#set("password", value);
  }

  get host() {
    return this.#parts.host;
  }
  set host(value) {
    this.#set("host", value);
  }

  get hostname() {
    return this.#parts.hostname;
  }
  set hostname(value) {
    this.#set("hostname", value);
  }

  get port() {
    return this.#parts.port;
  }
  set port(value) {
    this.#set("port", value);
  }

  get pathname() {
    return this.#parts.pathname;
  }
  set pathname(value) {
    this.#set("pathname", value);
  }

  get search() {
    return this.#parts.search;
  }
  set search(value) {
    this.#set("search", value);
    this.#params[read](this.search.slice(1));
  }

  get searchParams() {
    return this.#params;
  }

  get hash() {
    return this.#parts.hash;
  }
  set hash(value) {
    this.#set("hash", value);
  }

  toString() {
    return this.href;
  }

  toJSON() {
    return this.href;
  }

  get [Symbol.toStringTag]() {
    return "URL";
  }
}

/**
 * Returns the parts of a URL, after setting one of them, or null if it is invalid.
 *
 * @param {string | URL} input @param {string | URL} [base] @param {[part: string, value: string] | []} [change]
 * @returns {Parts | null}
 */
function parsed(input, base, change = []) {
  return JSON.parse(urlParts(JSON.stringify([String(input), base === undefined ? null : String(base), ...change])));
}
