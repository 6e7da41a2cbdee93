// Markdown as the inspector draws it (inspector/lib/markdown.js): what becomes of it, and how its time grows.

import assert from "node:assert/strict";
import { test } from "node:test";

// Not a plain import: its types are those of a page, and would hold for all scripts.
const { Markdown } = await import(new URL("../../inspector/lib/markdown.js", import.meta.url).href);

/** Nodes as text: `strong(a)`; what has only one text in it, as that. @param {any} node @returns {string} */
function shown(node) {
  if (Array.isArray(node)) return node.map(shown).join("");
  if (node === null || typeof node !== "object") return String(node ?? "");
  const { href, class: name } = node.props;
  return `${node.type}${name ? `.${name.split(" ").at(-1)}` : ""}${href ? `<${href}>` : ""}(${shown(node.props.children)})`;
}

/** @param {string} text */
const drawn = (text) => shown(Markdown({ text })).replace(/^div\.md\((.*)\)$/s, "$1");

test("a text becomes what it says", () => {
  for (const [text, expected] of [
    ["plain, and 2 * 3 * 4", "p(plain, and 2 * 3 * 4)"],
    ["**a** and __b c__", "p(strong(a) and strong(b c))"],
    ["*a* _b_ snake_case_name a*b*c", "p(em(a) em(b) snake_case_name a*b*c)"],
    ["***a***, *a **b** c*", "p(strong(em(a)), em(a strong(b) c))"],
    ["~~gone~~ ~ ~~", "p(del(gone) ~ ~~)"],
    ["`a` ``b ` c`` `` ` `` `open", "p(code(a) code(b ` c) code(`) `open)"],
    ["[a *b*](https://x.example/y) [c](javascript:alert(1)) [d]", "p(a<https://x.example/y>(a em(b)) [c](javascript:alert(1)) [d])"],
    ["[[a](http://x.example)", "p([a<http://x.example>(a))"],
    ["See https://x.example/a_b_c. <http://y.example>", "p(See span(a<https://x.example/a_b_c>(https://x.example/a_b_c).) a<http://y.example>(http://y.example))"],
    ["# One #\n## Two##\n### C# and *more* ###", "p.h1(One)p.h2(Two)p.h3(C# and em(more))"],
    ["- a\n- **b**\n\n1. c\n   more", "ul(li(a)li(strong(b)))ol(li(p(c\nmore)))"],
    ["> a\n> > b", "blockquote(p(a)blockquote(p(b)))"],
    ["```js\nlet a = `1`;\n```\nend", "pre(code(let a = `1`;))p(end)"],
    ["| a | b |\n|---|---|\n| 1 | **2** |", "div.wide(table(thead(tr(th(a)th(b)))tbody(tr(td(1)td(strong(2))))))"],
    ["---", "hr()"],
  ]) {
    assert.equal(drawn(text ?? ""), expected, text);
  }
});

/** Texts of about so many characters. @type {Record<string, (length: number) => string>} */
const HOSTILE = {
  "backticks": (n) => "`".repeat(n),
  "backticks and an end": (n) => `${"`".repeat(n)} a`,
  "runs of growing length": (n) => Array.from({ length: Math.floor(Math.sqrt(2 * n)) }, (_, at) => "`".repeat(at + 1)).join("a"),
  "pieces of code": (n) => "`a` ".repeat(n / 4),
  "opened code": (n) => "`a ``b ".repeat(n / 7),
  "strong": (n) => "**a".repeat(n / 3),
  "strong that is not closed": (n) => "**a ".repeat(n / 4),
  "underlines": (n) => "__a ".repeat(n / 4),
  "stars": (n) => "*".repeat(n),
  "stars and spaces": (n) => "* a ".repeat(n / 4),
  "emphasis that is not closed": (n) => ".*a ".repeat(n / 4),
  "emphasis in emphasis": (n) => "*a _b ".repeat(n / 6),
  "tildes": (n) => "~~a ".repeat(n / 4),
  "brackets": (n) => "[".repeat(n),
  "brackets that close": (n) => `${"[".repeat(n / 2)}${"]".repeat(n / 2)}`,
  "links that are not closed": (n) => "[a](".repeat(n / 4),
  "links with words too long": (n) => `${"[".repeat(400)}](${"a".repeat(1_600)} `.repeat(n / 2_003),
  "addresses": (n) => "http://".repeat(n / 7),
  "ends of sentences": (n) => `http://a${".".repeat(1_900)}a `.repeat(n / 1_910),
  "angles": (n) => "<http://".repeat(n / 8),
  "a heading with a gap": (n) => `# a${" ".repeat(n)}b`,
  "a heading of marks": (n) => `# ${"#".repeat(n)}b`,
  "a heading of marks and spaces": (n) => `# ${"# ".repeat(n / 2)}b`,
  "rules": (n) => `${"- ".repeat(n / 2)}b`,
  "rules with gaps": (n) => `${"*     ".repeat(n / 6)}b`,
  "quotes": (n) => "> ".repeat(n / 2),
  "quotes in lines": (n) => "> > > > > > > > > a\n".repeat(n / 20),
  "lists": (n) => "- ".repeat(n / 2),
  "lists in lists": (n) => Array.from({ length: Math.floor(Math.sqrt(n)) }, (_, at) => `${" ".repeat(at * 2)}- a`).join("\n"),
  "lists and numbers": (n) => "- a\n1. b\n".repeat(n / 9),
  "empty lines in a list": (n) => `- a${"\n".repeat(n)}`,
  "cells": (n) => `|${" |".repeat(n / 2)}\n|${"-|".repeat(n / 2)}`,
  "a row with a gap": (n) => `|${" ".repeat(n)}|x`,
  "rows": (n) => `| a |\n|---|\n${"| b |\n".repeat(n / 6)}`,
  "fences": (n) => "```\n\n".repeat(n / 5),
  "a long fence": (n) => `${"`".repeat(n / 2)}\n${"`".repeat(n / 2 - 1)}`,
  "blanks": (n) => " ".repeat(n),
  "lines": (n) => "\n".repeat(n),
};

test("whatever a text holds, its time grows with its length and no faster", () => {
  // Processor time: other programs take theirs meanwhile.
  const took = (/** @type {string} */ text) => {
    const from = process.cpuUsage();
    Markdown({ text });
    const { user, system } = process.cpuUsage(from);
    return (user + system) / 1000;
  };
  const [short, long] = [12_000, 192_000];
  /** @type {string[]} */
  const slow = [];
  for (const [name, of] of Object.entries(HOSTILE)) {
    took(of(short));
    const first = Math.min(took(of(short)), took(of(short)));
    const then = took(of(long));
    // 16 times as long: 256 times the time where it grows with the square.
    if (then > 200 && then > 80 * first) slow.push(`${name}: ${first.toFixed(1)} ms, then ${then.toFixed(0)} ms`);
  }
  assert.deepEqual(slow, []);
});
