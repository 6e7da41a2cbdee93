// A small Markdown renderer: paragraphs, headings, lists, quotes, code, tables, emphasis and links, as nodes. Unknown syntax
// stays as written, and nothing becomes markup: a model's text can only become text. The time is linear in the length of the
// text, whatever it contains.

import { h } from "preact";

/** @typedef {import("preact").ComponentChild} Node */

/** Longer texts are shown raw, because parsing them would take too long. */
const LONGEST = 200_000;
/** Wider tables stay text, because a browser lays out each column. */
const MOST_COLUMNS = 100;

/** @param {{ text: string }} props */
export function Markdown({ text }) {
  if (text.length > LONGEST) return h("pre", { class: "raw" }, text);
  return h("div", { class: "md" }, blocks(text.replaceAll("\r\n", "\n").split("\n"), 0));
}

/** @type {[RegExp, (lines: string[], at: number, depth: number) => [Node, number]][]} */
const BLOCKS = [
  [/^ {0,3}(`{3,}|~{3,})/, fence],
  [/^ {0,3}#{1,6}\s/, (lines, at) => [heading(line(lines, at)), at + 1]],
  [/^ {0,3}([-*_])( *\1){2,} *$/, (_, at) => [h("hr", {}), at + 1]],
  [/^ {0,3}>/, quote],
  [/^ {0,3}([-*+]|\d{1,9}[.)])\s/, list],
  [/^ {0,3}\|.*\|\s*$/, table],
];

/** @param {string[]} lines @param {number} at */
const line = (lines, at) => lines[at] ?? "";

/** @param {string[]} lines @param {number} depth of nested lists and quotes @returns {Node[]} */
function blocks(lines, depth) {
  if (depth > 8) return [h("p", {}, lines.join("\n"))];
  /** @type {Node[]} */
  const found = [];
  for (let at = 0; at < lines.length; ) {
    if (line(lines, at).trim() === "") {
      at++;
      continue;
    }
    const block = BLOCKS.find(([begins]) => begins.test(line(lines, at)));
    const [node, next] = block ? block[1](lines, at, depth) : paragraph(lines, at);
    found.push(node);
    // Every block has at least one line.
    at = Math.max(next, at + 1);
  }
  return found;
}

/** @param {string[]} lines @param {number} from @returns {[Node, number]} */
function paragraph(lines, from) {
  let at = from + 1;
  while (at < lines.length && line(lines, at).trim() !== "" && !BLOCKS.some(([begins]) => begins.test(line(lines, at)))) at++;
  const text = lines.slice(from, at).join("\n");
  return [h("p", {}, spans(text, 0)), at];
}

/** @param {string} text */
function heading(text) {
  const [all = "", marks = ""] = /^ {0,3}(#{1,6})\s+/.exec(text) ?? [];
  let end = text.trimEnd().length;
  while (end > all.length && text[end - 1] === "#") end--;
  // Not a heading element: the headings of the page itself rank higher.
  return h("p", { class: `h h${marks.length}` }, spans(text.slice(all.length, Math.max(end, all.length)).trimEnd(), 0));
}

/** @param {string[]} lines @param {number} from @returns {[Node, number]} */
function fence(lines, from) {
  const [, marks = "```", language = ""] = /^ {0,3}(`{3,}|~{3,})\s*(\S*)/.exec(line(lines, from)) ?? [];
  let at = from + 1;
  while (at < lines.length && !line(lines, at).trim().startsWith(marks)) at++;
  return [h("pre", { "data-language": language, tabindex: 0, role: "group", "aria-label": language ? `Code, ${language}` : "Code" }, h("code", {}, lines.slice(from + 1, at).join("\n"))), at + 1];
}

/** @param {string[]} lines @param {number} from @param {number} depth @returns {[Node, number]} */
function quote(lines, from, depth) {
  let at = from;
  while (at < lines.length && /^ {0,3}>/.test(line(lines, at))) at++;
  const inside = lines.slice(from, at).map((text) => text.replace(/^ {0,3}> ?/, ""));
  return [h("blockquote", {}, blocks(inside, depth + 1)), at];
}

/** @param {string[]} lines @param {number} from @param {number} depth @returns {[Node, number]} */
function list(lines, from, depth) {
  const mark = /^( {0,3})([-*+]|\d{1,9}[.)])(\s+)/;
  const ordered = /\d/.test(mark.exec(line(lines, from))?.[2] ?? "");
  /** @type {string[][]} */
  const items = [];
  let at = from;
  for (; at < lines.length; at++) {
    const text = line(lines, at);
    const found = mark.exec(text);
    if (found && /\d/.test(found[2] ?? "") === ordered) items.push([text.slice(found[0].length)]);
    else if (/^\s{2,}/.test(text)) items.at(-1)?.push(text.replace(/^ {2,4}/, ""));
    else if (text.trim() === "" && /^\s{2,}\S/.test(line(lines, at + 1))) items.at(-1)?.push("");
    else break;
  }
  const start = Number.parseInt(mark.exec(line(lines, from))?.[2] ?? "1", 10);
  const shown = items.map((item) => h("li", {}, item.length === 1 ? spans(item[0] ?? "", 0) : blocks(item, depth + 1)));
  return [ordered ? h("ol", { start }, shown) : h("ul", {}, shown), at];
}

/** @param {string[]} lines @param {number} from @returns {[Node, number]} */
function table(lines, from) {
  let at = from;
  while (at < lines.length && /^ {0,3}\|.*\|\s*$/.test(line(lines, at))) at++;
  const cells = (/** @type {string} */ text) => text.trim().slice(1, -1).split("|").map((cell) => cell.trim());
  const [head = "", rule = "", ...rows] = lines.slice(from, at);
  if (!/^[\s|:-]+$/.test(rule) || cells(head).length > MOST_COLUMNS) return [h("p", {}, spans(lines.slice(from, at).join("\n"), 0)), at];
  const row = (/** @type {string} */ text, /** @type {string} */ of) => h("tr", {}, cells(text).map((cell) => h(cell === "" ? "td" : of, {}, spans(cell, 0))));
  return [h("div", { class: "wide", tabindex: 0, role: "group", "aria-label": "Table" }, h("table", {}, h("thead", {}, row(head, "th")), h("tbody", {}, rows.map((text) => row(text, "td"))))), at];
}

/** The maximum length of emphasized text, of a link's words and of an address, in characters. */
const MOST = { strong: 2_000, line: 1_000, words: 400, address: 2_000 };

/** Marks nested deeper than this stay text. */
const DEEPEST = 4;

/** @param {string} text @param {number} depth @returns {Node[]} */
function spans(text, depth) {
  if (depth > DEEPEST) return [text];
  const scan = new Scan(text);
  /** @type {Node[]} */
  const found = [];
  let plain = 0;
  for (let at = scan.special(0); at < text.length; ) {
    const span = scan.span(at, depth);
    if (typeof span === "number") {
      at = scan.special(span);
      continue;
    }
    if (at > plain) found.push(text.slice(plain, at));
    found.push(span.node);
    plain = span.end;
    at = scan.special(plain);
  }
  if (plain < text.length) found.push(text.slice(plain));
  return found;
}

/** @typedef {{ node: Node, end: number }} Span */

/**
 * Finds spans in a text in one pass from left to right. A search for the end of a span continues from the last search, so a
 * text of only opening marks takes no longer than any other.
 */
class Scan {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    /** The next end of each kind, found by the last search. @type {Map<string, number>} */
    this.ends = new Map();
    /** Positions of the remaining runs of backticks by length, the next one last. @type {Map<number, number[]> | undefined} */
    this.runs = undefined;
  }

  /** The next character that may begin a span. @param {number} from */
  special(from) {
    return this.next("special", from, (at) => (SPECIAL.lastIndex = at, SPECIAL.exec(this.text)?.index ?? -1), () => true);
  }

  /** The span that begins at `at`, or the position to continue from. @param {number} at @param {number} depth @returns {Span | number} */
  span(at, depth) {
    const { text } = this;
    switch (text[at]) {
      case "`":
        return this.code(at);
      case "[":
        return this.link(at, depth) ?? at + 1;
      case "<":
      case "h":
        return this.address(at) ?? at + 1;
      case "~":
        return this.between(at, "~~", MOST.line, "line", (inside) => h("del", {}, inside)) ?? at + 1;
      default:
        return this.emphasis(at, depth) ?? at + 1;
    }
  }

  /** @param {number} at @returns {Span | number} */
  code(at) {
    const { text } = this;
    if (!this.runs) {
      this.runs = new Map();
      for (const { 0: { length }, index } of text.matchAll(/`+/g)) {
        const places = this.runs.get(length);
        if (places) places.push(index);
        else this.runs.set(length, [index]);
      }
      // Reversed, because the next one is popped from the end.
      for (const places of this.runs.values()) places.reverse();
    }
    let length = 1;
    while (text[at + length] === "`") length++;
    const places = this.runs.get(length) ?? [];
    while ((places.at(-1) ?? Infinity) <= at) places.pop();
    const end = places.at(-1);
    if (end === undefined) return at + length;
    return { node: h("code", {}, codeOf(text.slice(at + length, end))), end: end + length };
  }

  /** `[words](target)` @param {number} at @param {number} depth @returns {Span | undefined} */
  link(at, depth) {
    const { text } = this;
    const close = this.find("]", at + 1);
    // In nested brackets the inner ones form the link.
    if (close - at - 1 > MOST.words || close === at + 1 || text[close + 1] !== "(" || this.find("[", at + 1) < close || this.find("\n", at) < close) return undefined;
    const end = this.find(")", close + 2);
    if (end - close - 2 > MOST.address) return undefined;
    const target = text.slice(close + 2, end);
    if (!/^[^()\s]+$/.test(target)) return undefined;
    return { node: link(target, spans(text.slice(at + 1, close), depth + 1), text.slice(at, end + 1)), end: end + 1 };
  }

  /** @param {number} at @returns {Span | undefined} */
  address(at) {
    ADDRESS.lastIndex = at;
    const [all, address] = ADDRESS.exec(this.text) ?? [];
    return all === undefined || address === undefined ? undefined : { node: bareLink(address, all), end: at + all.length };
  }

  /** @param {number} at @param {number} depth @returns {Span | undefined} */
  emphasis(at, depth) {
    const { text } = this;
    const mark = text[at] ?? "";
    const inner = (/** @type {string} */ inside) => spans(inside, depth + 1);
    if (text[at + 1] === mark) return this.between(at, mark + mark, MOST.strong, "text", (inside) => h("strong", {}, inner(inside)));
    if (isWord(text[at - 1]) || text[at - 1] === mark) return undefined;
    return this.between(at, mark, MOST.line, "word", (inside) => h("em", {}, inner(inside)));
  }

  /**
   * The span between two marks that are at most `most` apart. `within` limits where it may be: the text, a line, or, in a line,
   * at the ends of words.
   *
   * @param {number} at @param {string} mark @param {number} most @param {"text" | "line" | "word"} within @param {(inside: string) => Node} make
   * @returns {Span | undefined}
   */
  between(at, mark, most, within, make) {
    const { text } = this;
    const from = at + mark.length;
    if (!text.startsWith(mark, at) || isSpace(text[from])) return undefined;
    const ends = (/** @type {number} */ end) => {
      const [before, behind] = [text[end - 1], text[end + mark.length]];
      // In a longer run of the mark, its end closes the span.
      return !isSpace(before) && behind !== mark[0] && (within !== "word" || (before !== mark && !isWord(behind)));
    };
    const end = this.next(mark, from + 1, (place) => text.indexOf(mark, place), ends);
    if (end - from > most || (within !== "text" && this.find("\n", at) < end)) return undefined;
    return { node: make(text.slice(from, end)), end: end + mark.length };
  }

  /** @param {string} character @param {number} from */
  find(character, from) {
    return this.next(`character ${character}`, from, (at) => this.text.indexOf(character, at), () => true);
  }

  /**
   * The first accepted position at or after `from`; Infinity if there is none. Each kind must be searched from left to right.
   *
   * @param {string} kind @param {number} from @param {(from: number) => number} look @param {(at: number) => boolean} counts
   */
  next(kind, from, look, counts) {
    let at = this.ends.get(kind) ?? -1;
    if (at < from) {
      at = look(from);
      while (at >= 0 && !counts(at)) at = look(at + 1);
      if (at < 0) at = Infinity;
      this.ends.set(kind, at);
    }
    return at;
  }
}

/** Characters that may begin a span. */
const SPECIAL = /[`[*_~<]|https?:\/\//g;
const ADDRESS = /<?(https?:\/\/[^\s<>]{1,2000})>?/y;

/** @param {string | undefined} character */
const isSpace = (character) => character === undefined || /\s/.test(character);
/** @param {string | undefined} character */
const isWord = (character) => character !== undefined && /\w/.test(character);

/** Removes one space at each end, which allows code to begin or end with a backtick. @param {string} text */
const codeOf = (text) => (text.startsWith(" ") && text.endsWith(" ") && text.trim() !== "" ? text.slice(1, -1) : text);

/**
 * Links an address in a text, without the punctuation that ends the sentence.
 *
 * @param {string} address @param {string} all @returns {Node}
 */
function bareLink(address, all) {
  let end = address.length;
  while (end > 0 && `.,;:!?'")]`.includes(address[end - 1] ?? "")) end--;
  const plain = address.slice(0, end);
  return all.startsWith("<") ? link(address, [address], all) : h("span", {}, link(plain, [plain], plain), all.slice(end));
}

/** Builds a link, only to web pages and mail addresses. @param {string} target @param {Node[]} words @param {string} all @returns {Node} */
function link(target, words, all) {
  if (!/^(https?:\/\/|mailto:)/i.test(target)) return all;
  return h("a", { href: target, target: "_blank", rel: "noopener noreferrer nofollow" }, words);
}
