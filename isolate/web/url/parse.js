// The parser of URLs: the state machine of the URL Standard, with a method for each state.

import { CONTROL, encoded, FRAGMENT, PATH, QUERY, SPECIAL_QUERY, USERINFO } from "./encode.js";
import { parseHost } from "./host.js";

/** Schemes with a host, and their ports. */
const PORTS = new Map([["http", 80], ["https", 443], ["ws", 80], ["wss", 443], ["ftp", 21], ["file", null]]);

/**
 * A parsed URL.
 *
 * @typedef {object} Parts
 * @property {string} scheme
 * @property {string} username
 * @property {string} password
 * @property {string | null} host
 * @property {number | null} port           null: the scheme's default
 * @property {string[] | string} path       a string is an opaque path
 * @property {string | null} query
 * @property {string | null} fragment
 *
 * @typedef {string | undefined} Char       one character; undefined: the end
 * @typedef {boolean | void} Ended          false: not a URL, or nothing to set; true: stop reading
 * @typedef {(char: Char) => Ended} State
 */

/** @type {() => Parts} */
const nothing = () => ({ scheme: "", username: "", password: "", host: null, port: null, path: [], query: null, fragment: null });

/** @param {string} scheme */
export const isSpecial = (scheme) => PORTS.has(scheme);

const DRIVE = /^[A-Za-z][:|]$/;
const STARTS_WITH_DRIVE = /^[A-Za-z][:|]([/\\?#]|$)/;
const DOT = /^(\.|%2e)$/i;
const DOTS = /^(\.|%2e){2}$/i;

/**
 * The part that a setter sets, and the machine's first state.
 *
 * @typedef {"scheme" | "host" | "hostname" | "port" | "path" | "query" | "fragment"} Part
 */

/** @param {string} input @param {Parts | null} base @returns {Parts | undefined} */
export function parse(input, base) {
  const parser = new Parser(input.replace(/^[\0-\x20]+|[\0-\x20]+$/g, ""), base, nothing());
  return parser.run(parser.schemeStart) ? parser.url : undefined;
}

/** Sets a part of `url` if the text is valid. @param {Parts} url @param {Part} part @param {string} input */
export function change(url, part, input) {
  const parser = new Parser(input, null, url, part);
  const { schemeStart, hostState, portState, pathStart, queryState, fragmentState } = parser;
  const states = { scheme: schemeStart, host: hostState, hostname: hostState, port: portState, path: pathStart, query: queryState, fragment: fragmentState };
  parser.run(states[part]);
}

class Parser {
  #chars;
  #base;
  /** The part to set; undefined when a whole URL is read. @type {Part | undefined} */
  #setting;
  #at = 0;
  #buffer = "";
  #sawAt = false;
  #sawPassword = false;
  #inBrackets = false;
  /** @type {State} */
  #state;

  /** @param {string} input @param {Parts | null} base @param {Parts} url @param {Part} [setting] */
  constructor(input, base, url, setting) {
    this.#chars = Array.from(input.replace(/[\t\n\r]/g, ""));
    this.#base = base;
    this.#setting = setting;
    this.#state = this.schemeStart;
    this.url = url;
  }

  /** @param {State} state the first state @returns {boolean} */
  run(state) {
    this.#state = state;
    for (; ; this.#at++) {
      const ended = this.#state(this.#chars[this.#at]);
      if (ended !== undefined) return ended;
      if (this.#at >= this.#chars.length) return true;
    }
  }

  get #special() {
    return isSpecial(this.url.scheme);
  }

  /** @param {Char} char */
  #isSlash(char) {
    return char === "/" || (this.#special && char === "\\");
  }

  /** @param {Char} char  whether it ends the part before a path */
  #endsAuthority(char) {
    return char === undefined || char === "?" || char === "#" || this.#isSlash(char);
  }

  /** Continues with `state`; `back` reads the same character again. @param {State} state @param {"on" | "back"} [how] */
  #go(state, how = "on") {
    this.#state = state;
    if (how === "back") this.#at--;
  }

  /** Copies parts from the base. @param {(keyof Parts)[]} names */
  #inherit(...names) {
    const base = /** @type {Parts} */ (this.#base);
    const { url } = this;
    for (const name of names) {
      const value = base[name];
      Object.assign(url, { [name]: Array.isArray(value) ? [...value] : value });
    }
  }

  #shorten() {
    const path = /** @type {string[]} */ (this.url.path);
    if (this.url.scheme === "file" && path.length === 1 && /^[A-Za-z]:$/.test(path[0] ?? "")) return;
    path.pop();
  }

  /** Begins the query or the fragment. Returns whether it did. @param {Char} char @returns {boolean} */
  #tail(char) {
    if (char === "?") {
      this.url.query = "";
      this.#go(this.queryState);
    } else if (char === "#") {
      this.url.fragment = "";
      this.#go(this.fragmentState);
    } else return false;
    return true;
  }

  #rest() {
    return this.#chars.slice(this.#at).join("");
  }

  /** @type {State} */
  schemeStart = (char) => {
    if (char !== undefined && /[A-Za-z]/.test(char)) {
      this.#buffer += char.toLowerCase();
      this.#go(this.schemeState);
    } else if (this.#setting) return false;
    else this.#go(this.noScheme, "back");
  };

  /** @type {State} */
  schemeState = (char) => {
    if (char !== undefined && /[A-Za-z0-9+.-]/.test(char)) {
      this.#buffer += char.toLowerCase();
    } else if (char === ":") {
      return this.#setting ? this.#changeScheme() : this.#afterScheme();
    } else if (this.#setting) {
      return false;
    } else {
      this.#buffer = "";
      this.#at = -1;
      this.#go(this.noScheme);
    }
  };

  #changeScheme() {
    const { url } = this;
    if (isSpecial(url.scheme) !== isSpecial(this.#buffer)) return true;
    if (this.#buffer === "file" && (url.username !== "" || url.password !== "" || url.port !== null)) return true;
    if (url.scheme === "file" && url.host === "") return true;
    url.scheme = this.#buffer;
    if (url.port === PORTS.get(url.scheme)) url.port = null;
    return true;
  }

  #afterScheme() {
    this.url.scheme = this.#buffer;
    this.#buffer = "";
    const next = this.#chars[this.#at + 1];
    if (this.url.scheme === "file") this.#go(this.fileState);
    else if (this.#special && this.#base?.scheme === this.url.scheme) this.#go(this.specialRelative);
    else if (this.#special) this.#go(this.specialSlashes);
    else if (next === "/") {
      this.#at++;
      this.#go(this.pathOrAuthority);
    } else {
      this.url.path = "";
      this.#go(this.opaquePath);
    }
  }

  /** @type {State} */
  noScheme = (char) => {
    if (!this.#base) return false;
    if (typeof this.#base.path === "string") {
      if (char !== "#") return false;
      this.#inherit("scheme", "path", "query");
      this.#tail(char);
    } else this.#go(this.#base.scheme === "file" ? this.fileState : this.relative, "back");
  };

  /** @type {State} */
  specialRelative = (char) => {
    if (char === "/" && this.#chars[this.#at + 1] === "/") {
      this.#at++;
      this.#go(this.ignoreSlashes);
    } else this.#go(this.relative, "back");
  };

  /** @type {State} */
  specialSlashes = (char) => {
    if (char === "/" && this.#chars[this.#at + 1] === "/") {
      this.#at++;
      this.#go(this.ignoreSlashes);
    } else this.#go(this.ignoreSlashes, "back");
  };

  /** @type {State} */
  ignoreSlashes = (char) => {
    if (char !== "/" && char !== "\\") this.#go(this.authority, "back");
  };

  /** @type {State} */
  pathOrAuthority = (char) => {
    if (char === "/") this.#go(this.authority);
    else this.#go(this.pathState, "back");
  };

  /** @type {State} */
  relative = (char) => {
    this.#inherit("scheme");
    if (this.#isSlash(char)) return this.#go(this.relativeSlash);
    this.#inherit("username", "password", "host", "port", "path", "query");
    if (this.#tail(char) || char === undefined) return;
    this.url.query = null;
    this.#shorten();
    this.#go(this.pathState, "back");
  };

  /** @type {State} */
  relativeSlash = (char) => {
    if (this.#special && this.#isSlash(char)) return this.#go(this.ignoreSlashes);
    if (char === "/") return this.#go(this.authority);
    this.#inherit("username", "password", "host", "port");
    this.#go(this.pathState, "back");
  };

  /** @type {State} */
  authority = (char) => {
    if (char === "@") {
      this.#credentials(this.#sawAt ? `%40${this.#buffer}` : this.#buffer);
      this.#sawAt = true;
      this.#buffer = "";
    } else if (this.#endsAuthority(char)) {
      if (this.#sawAt && this.#buffer === "") return false;
      // Read it again as a host.
      this.#at -= Array.from(this.#buffer).length + 1;
      this.#buffer = "";
      this.#go(this.hostState);
    } else this.#buffer += char;
  };

  /** @param {string} text  up to an `@` */
  #credentials(text) {
    const { url } = this;
    const colon = this.#sawPassword ? 0 : text.indexOf(":");
    const name = this.#sawPassword ? "" : colon < 0 ? text : text.slice(0, colon);
    url.username += encoded(name, USERINFO);
    if (colon < 0) return;
    url.password += encoded(this.#sawPassword ? text : text.slice(colon + 1), USERINFO);
    this.#sawPassword = true;
  }

  /** @type {State} */
  hostState = (char) => {
    const { url } = this;
    if (this.#setting && url.scheme === "file") return this.#go(this.fileHost, "back");
    if (char === ":" && !this.#inBrackets) {
      if (this.#buffer === "" || this.#setting === "hostname" || !this.#takeHost()) return false;
      this.#go(this.portState);
    } else if (this.#endsAuthority(char)) {
      this.#at--;
      const bare = url.username === "" && url.password === "" && url.port === null;
      if (this.#buffer === "" && (this.#special || (this.#setting && !bare))) return false;
      if (!this.#takeHost()) return false;
      this.#go(this.pathStart);
      if (this.#setting) return true;
    } else {
      if (char === "[") this.#inBrackets = true;
      if (char === "]") this.#inBrackets = false;
      this.#buffer += char;
    }
  };

  #takeHost() {
    const host = parseHost(this.#buffer, this.#special);
    if (host === undefined) return false;
    this.url.host = host;
    this.#buffer = "";
    return true;
  }

  /** @type {State} */
  portState = (char) => {
    if (char !== undefined && /[0-9]/.test(char)) {
      this.#buffer += char;
    } else if (this.#endsAuthority(char) || this.#setting) {
      if (this.#buffer !== "") {
        const port = Number(this.#buffer);
        if (port > 65_535) return false;
        this.url.port = port === PORTS.get(this.url.scheme) ? null : port;
        this.#buffer = "";
      }
      if (this.#setting) return true;
      this.#go(this.pathStart, "back");
    } else return false;
  };

  /** @type {State} */
  fileState = (char) => {
    const { url } = this;
    url.scheme = "file";
    url.host = "";
    if (char === "/" || char === "\\") return this.#go(this.fileSlash);
    if (this.#base?.scheme !== "file") return this.#go(this.pathState, "back");
    this.#inherit("host", "path", "query");
    if (this.#tail(char) || char === undefined) return;
    url.query = null;
    if (STARTS_WITH_DRIVE.test(this.#rest())) url.path = [];
    else this.#shorten();
    this.#go(this.pathState, "back");
  };

  /** @type {State} */
  fileSlash = (char) => {
    if (char === "/" || char === "\\") return this.#go(this.fileHost);
    if (this.#base?.scheme === "file") {
      this.#inherit("host");
      const [first = ""] = this.#base.path;
      if (!STARTS_WITH_DRIVE.test(this.#rest()) && /^[A-Za-z]:$/.test(first)) this.url.path = [first];
    }
    this.#go(this.pathState, "back");
  };

  /** @type {State} */
  fileHost = (char) => {
    if (char !== undefined && !"/\\?#".includes(char)) {
      this.#buffer += char;
      return;
    }
    this.#at--;
    if (!this.#setting && DRIVE.test(this.#buffer)) return this.#go(this.pathState);
    if (this.#buffer === "") this.url.host = "";
    else if (!this.#takeHost()) return false;
    if (this.url.host === "localhost") this.url.host = "";
    if (this.#setting) return true;
    this.#go(this.pathStart);
  };

  /** @type {State} */
  pathStart = (char) => {
    if (this.#special) this.#go(this.pathState, this.#isSlash(char) ? "on" : "back");
    else if (!this.#setting && this.#tail(char)) return;
    else if (char !== undefined) this.#go(this.pathState, char === "/" ? "on" : "back");
    else if (this.#setting && this.url.host === null) /** @type {string[]} */ (this.url.path).push("");
  };

  /** @type {State} */
  pathState = (char) => {
    const slash = this.#isSlash(char);
    if (char !== undefined && !slash && (this.#setting || (char !== "?" && char !== "#"))) {
      this.#buffer += encoded(char, PATH);
      return;
    }
    const path = /** @type {string[]} */ (this.url.path);
    if (DOTS.test(this.#buffer)) {
      this.#shorten();
      if (!slash) path.push("");
    } else if (DOT.test(this.#buffer)) {
      if (!slash) path.push("");
    } else {
      const drive = this.url.scheme === "file" && path.length === 0 && DRIVE.test(this.#buffer);
      path.push(drive ? `${this.#buffer.charAt(0)}:` : this.#buffer);
    }
    this.#buffer = "";
    this.#tail(char);
  };

  /** @type {State} */
  opaquePath = (char) => {
    if (this.#tail(char) || char === undefined) return;
    const next = this.#chars[this.#at + 1];
    // A space at the end would be lost if the URL were parsed again.
    this.url.path += char === " " && (next === "?" || next === "#") ? "%20" : encoded(char, CONTROL);
  };

  /** @type {State} */
  queryState = (char) => {
    if (char !== undefined && (this.#setting || char !== "#")) {
      this.#buffer += char;
      return;
    }
    this.url.query += encoded(this.#buffer, this.#special ? SPECIAL_QUERY : QUERY);
    this.#buffer = "";
    this.#tail(char);
  };

  /** @type {State} */
  fragmentState = (char) => {
    if (char !== undefined) this.url.fragment += encoded(char, FRAGMENT);
  };
}
