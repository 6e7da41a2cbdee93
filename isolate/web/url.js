// URL and URLSearchParams, for code in the sandbox: the URL Standard, except for some rare non-ASCII hosts.

import { encoded, USERINFO } from "./url/encode.js";
import { follow, read, URLSearchParams } from "./url/params.js";
import { change, isSpecial, parse } from "./url/parse.js";

export { URLSearchParams };

/** @typedef {import("./url/parse.js").Parts} Parts */

export class URL {
  /** @type {Parts} */
  #url;
  /** @type {URLSearchParams} */
  #params;

  /** @param {string | URL} input @param {string | URL} [base] */
  constructor(input, base) {
    const url = parsed(input, base);
    if (!url) throw new TypeError(`Invalid URL: ${input}`);
    this.#url = url;
    this.#params = new URLSearchParams();
    this.#params[read](url.query ?? "");
    this.#params[follow](() => {
      const query = this.#params.toString();
      this.#url.query = query === "" ? null : query;
    });
  }

  /** @param {string | URL} input @param {string | URL} [base] @returns {URL | null} */
  static parse(input, base) {
    return URL.canParse(input, base) ? new URL(input, base) : null;
  }

  /** @param {string | URL} input @param {string | URL} [base] */
  static canParse(input, base) {
    return parsed(input, base) !== undefined;
  }

  get href() {
    return written(this.#url);
  }
  set href(value) {
    const url = parse(text(value), null);
    if (!url) throw new TypeError(`Invalid URL: ${value}`);
    this.#url = url;
    this.#params[read](url.query ?? "");
  }

  /** @returns {string} */
  get origin() {
    const { scheme, path } = this.#url;
    const inner = scheme === "blob" ? URL.parse(pathOf(path)) : undefined;
    if (inner) return /^https?:$/.test(inner.protocol) ? inner.origin : "null";
    return isSpecial(scheme) && scheme !== "file" ? `${scheme}://${this.host}` : "null";
  }

  get protocol() {
    return `${this.#url.scheme}:`;
  }
  set protocol(value) {
    change(this.#url, "scheme", `${text(value)}:`);
  }

  get username() {
    return this.#url.username;
  }
  set username(value) {
    if (this.#mayHaveCredentials()) this.#url.username = encoded(text(value), USERINFO);
  }

  get password() {
    return this.#url.password;
  }
  set password(value) {
    if (this.#mayHaveCredentials()) this.#url.password = encoded(text(value), USERINFO);
  }

  get host() {
    const { host, port } = this.#url;
    return `${host ?? ""}${port === null ? "" : `:${port}`}`;
  }
  set host(value) {
    if (typeof this.#url.path !== "string") change(this.#url, "host", text(value));
  }

  get hostname() {
    return this.#url.host ?? "";
  }
  set hostname(value) {
    if (typeof this.#url.path !== "string") change(this.#url, "hostname", text(value));
  }

  get port() {
    return this.#url.port === null ? "" : String(this.#url.port);
  }
  set port(value) {
    if (!this.#mayHaveCredentials()) return;
    if (text(value) === "") this.#url.port = null;
    else change(this.#url, "port", text(value));
  }

  get pathname() {
    return pathOf(this.#url.path);
  }
  set pathname(value) {
    if (typeof this.#url.path === "string") return;
    this.#url.path = [];
    change(this.#url, "path", text(value));
  }

  get search() {
    return this.#url.query ? `?${this.#url.query}` : "";
  }
  set search(value) {
    const query = text(value).replace(/^\?/, "");
    this.#url.query = query === "" && text(value) === "" ? null : "";
    if (this.#url.query !== null) change(this.#url, "query", query);
    this.#params[read](query.replace(/[\t\n\r]/g, ""));
  }

  get searchParams() {
    return this.#params;
  }

  get hash() {
    return this.#url.fragment ? `#${this.#url.fragment}` : "";
  }
  set hash(value) {
    this.#url.fragment = text(value) === "" ? null : "";
    if (this.#url.fragment !== null) change(this.#url, "fragment", text(value).replace(/^#/, ""));
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

  #mayHaveCredentials() {
    const { host, scheme } = this.#url;
    return host !== null && host !== "" && scheme !== "file";
  }
}

/** A text without lone surrogates. @param {unknown} value */
function text(value) {
  const string = String(value);
  return string.isWellFormed() ? string : string.toWellFormed();
}

/** @param {string | URL} input @param {string | URL} [base] @returns {Parts | undefined} */
function parsed(input, base) {
  if (base === undefined) return parse(text(input), null);
  const from = parse(text(base), null);
  return from && parse(text(input), from);
}

/** @param {string | string[]} path */
const pathOf = (path) => (typeof path === "string" ? path : path.map((part) => `/${part}`).join(""));

/** @param {Parts} url */
function written({ scheme, username, password, host, port, path, query, fragment }) {
  const secret = password === "" ? "" : `:${password}`;
  const who = username === "" && secret === "" ? "" : `${username}${secret}@`;
  const where = host === null ? "" : `//${who}${host}${port === null ? "" : `:${port}`}`;
  // Otherwise the path would be read as a host.
  const apart = host === null && typeof path !== "string" && path.length > 1 && path[0] === "" ? "/." : "";
  const rest = `${query === null ? "" : `?${query}`}${fragment === null ? "" : `#${fragment}`}`;
  return `${scheme}:${where}${apart}${pathOf(path)}${rest}`;
}
