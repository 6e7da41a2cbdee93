// A small Markdown: paragraphs, headings, lists, quotes, code, tables, emphasis and links, as nodes. Whatever it does not know
// stays as it was written, and nothing becomes markup: a model's text cannot be anything but text.

import { h } from "preact";

/** @typedef {import("preact").ComponentChild} Node */

/** Longer texts are shown as they are: nobody waits for them to be taken apart. */
const LONGEST = 200_000;

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

/** @param {string[]} lines @param {number} depth of lists and quotes in each other @returns {Node[]} */
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
    // Whatever it was, it was at least one line.
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
  const [, marks = "", words = ""] = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(text) ?? [];
  // Below the headings of the page itself.
  return h("p", { class: `h h${marks.length}` }, spans(words, 0));
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
  if (!/^[\s|:-]+$/.test(rule)) return [h("p", {}, spans(lines.slice(from, at).join("\n"), 0)), at];
  const row = (/** @type {string} */ text, /** @type {string} */ of) => h("tr", {}, cells(text).map((cell) => h(cell === "" ? "td" : of, {}, spans(cell, 0))));
  return [h("div", { class: "wide", tabindex: 0, role: "group", "aria-label": "Table" }, h("table", {}, h("thead", {}, row(head, "th")), h("tbody", {}, rows.map((text) => row(text, "td"))))), at];
}

/** What may stand in a line, first match first. */
const SPAN = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\[([^\]\n]{1,400})\]\(([^()\s]{1,2000})\)|<?(https?:\/\/[^\s<>]{1,2000})>?|(\*\*|__)(?=\S)([\s\S]{1,2000}?\S)\6|(?<![\w*])([*_])(?=\S)([^\n]{1,1000}?\S)\8(?![\w*])|~~(?=\S)([^\n]{1,1000}?\S)~~/g;

/** @param {string} text @param {number} depth @returns {Node[]} */
function spans(text, depth) {
  if (depth > 4) return [text];
  /** @type {Node[]} */
  const found = [];
  let at = 0;
  for (const match of text.matchAll(SPAN)) {
    if (match.index > at) found.push(text.slice(at, match.index));
    at = match.index + match[0].length;
    const [all, , code, words, target, bare, , strong, , soft, gone] = match;
    if (code !== undefined) found.push(h("code", {}, code));
    else if (words !== undefined) found.push(link(target ?? "", spans(words, depth + 1), all));
    else if (bare !== undefined) found.push(bareLink(bare, all));
    else if (strong !== undefined) found.push(h("strong", {}, spans(strong, depth + 1)));
    else if (soft !== undefined) found.push(h("em", {}, spans(soft, depth + 1)));
    else found.push(h("del", {}, gone));
  }
  if (at < text.length) found.push(text.slice(at));
  return found;
}

/** An address that stands in a text: what ends the sentence is none of it. @param {string} address @param {string} all @returns {Node} */
function bareLink(address, all) {
  const [end = ""] = /[.,;:!?'")\]]*$/.exec(address) ?? [];
  const plain = address.slice(0, address.length - end.length);
  return all.startsWith("<") ? link(address, [address], all) : h("span", {}, link(plain, [plain], plain), end);
}

/** Leads to where pages and mail are, and nowhere else. @param {string} target @param {Node[]} words @param {string} all @returns {Node} */
function link(target, words, all) {
  if (!/^(https?:\/\/|mailto:)/i.test(target)) return all;
  return h("a", { href: target, target: "_blank", rel: "noopener noreferrer nofollow" }, words);
}
