// The subset of YAML for cases: maps and lists by indentation, plain and quoted strings, blocks (`|`, `>`), and JSON
// within a line. Anything else is rejected with its line number.

/** @typedef {{ indent: number, text: string, at: number }} Line   `at`: its number, from 1 */

/** @param {string} text @param {number} [first]   the number of its first line @returns {any} */
export function readYaml(text, first = 1) {
  const raw = text.split("\n").map((line, at) => ({ indent: line.length - line.trimStart().length, text: line.trim(), at: first + at }));
  const reader = new Reader(raw, text.split("\n"), first);
  reader.skip();
  if (reader.line === undefined) return null;
  const value = reader.block(reader.line.indent);
  reader.skip();
  if (reader.line !== undefined) throw wrong(reader.line, "is indented otherwise than what it belongs to");
  return value;
}

/** @param {Line} line @param {string} what */
const wrong = ({ at, text }, what) => new Error(`line ${at}: “${text}” ${what}`);

const KEY = /^("(?:[^"\\]|\\.)*"|'[^']*'|[^\s#\-?:,[\]{}&*!|>'"%@`][^:#]*?)\s*:(?:\s+(.*))?$/;

class Reader {
  #at = 0;

  /** @param {Line[]} lines @param {string[]} raw @param {number} first */
  constructor(lines, raw, first) {
    this.lines = lines;
    this.raw = raw;
    this.first = first;
  }

  get line() {
    return this.lines[this.#at];
  }

  /** Skips empty lines and comments. */
  skip() {
    while (this.line !== undefined && (this.line.text === "" || this.line.text.startsWith("#"))) this.#at++;
  }

  /** Parses the value that begins here at this indentation. @param {number} indent @returns {any} */
  block(indent) {
    const line = /** @type {Line} */ (this.line);
    if (/^-(\s|$)/.test(line.text)) return this.#list(indent);
    if (KEY.test(line.text)) return this.#map(indent);
    this.#at++;
    return scalar(line, line.text);
  }

  /** @param {number} indent @returns {any[]} */
  #list(indent) {
    const list = [];
    for (this.skip(); this.line?.indent === indent && /^-(\s|$)/.test(this.line.text); this.skip()) {
      const { text, at } = this.line;
      const rest = text.slice(1).trimStart();
      if (rest === "" || rest.startsWith("#")) {
        this.#at++;
        list.push(this.#below(indent));
        continue;
      }
      // Parse the text after the dash as if it stood alone on its line.
      this.lines[this.#at] = { indent: indent + (text.length - rest.length), text: rest, at };
      list.push(this.block(indent + (text.length - rest.length)));
    }
    return list;
  }

  /** @param {number} indent */
  #map(indent) {
    /** @type {Record<string, any>} */
    const map = {};
    for (this.skip(); this.line?.indent === indent; this.skip()) {
      const line = this.line;
      const [, key = "", rest = ""] = KEY.exec(line.text) ?? [];
      if (key === "") throw wrong(line, "is neither `name: value` nor `- entry`");
      const name = String(scalar(line, key));
      if (Object.hasOwn(map, name)) throw wrong(line, "is there twice");
      this.#at++;
      const value = uncommented(rest);
      if (/^[|>][+-]?$/.test(value)) map[name] = this.#text(indent, value);
      else map[name] = value === "" ? this.#below(indent) : scalar(line, value);
    }
    return map;
  }

  /** Parses the value below a key or a dash. @param {number} indent @returns {any} */
  #below(indent) {
    this.skip();
    const line = this.line;
    if (line === undefined || line.indent < indent) return null;
    if (line.indent === indent) return /^-(\s|$)/.test(line.text) ? this.#list(indent) : null;
    return this.block(line.indent);
  }

  /** Parses a text of several lines. @param {number} indent @param {string} kind */
  #text(indent, kind) {
    const from = this.#at;
    while (this.line !== undefined && (this.line.text === "" || this.line.indent > indent)) this.#at++;
    const lines = this.raw.slice(from, this.#at);
    const depth = Math.min(...lines.filter((line) => line.trim() !== "").map((line) => line.length - line.trimStart().length));
    const cut = lines.map((line) => line.slice(depth));
    const text = (kind.startsWith(">") ? cut.join("\n").replaceAll(/(?<!\n)\n(?!\n)/g, " ") : cut.join("\n")).trimEnd();
    return kind.endsWith("-") ? text : `${text}\n`;
  }
}

/** @param {string} text */
const uncommented = (text) => (/^["'[{]/.test(text) ? text : text.replace(/(^|\s)#.*$/, "")).trim();

/** @param {Line} line @param {string} written @returns {any} */
function scalar(line, written) {
  const text = written.trim();
  if (/^[[{"]/.test(text)) {
    try {
      return JSON.parse(text);
    } catch {
      if (/^\[[^[\]{}"']*\]$/.test(text)) return text.slice(1, -1).split(",").flatMap((part) => (part.trim() === "" ? [] : [scalar(line, part)]));
      throw wrong(line, "must be JSON, as it begins like it");
    }
  }
  if (/^'.*'$/.test(text)) return text.slice(1, -1).replaceAll("''", "'");
  if (/^[&*!|>%@`']/.test(text)) throw wrong(line, "is more YAML than is understood here: put it in quotes, or write JSON");
  if (/^(true|false)$/.test(text)) return text === "true";
  if (/^(null|~)$/.test(text)) return null;
  return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text) ? Number(text) : text;
}
