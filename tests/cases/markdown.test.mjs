// Cases as documents: their YAML, and the position of an error in them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readMarkdown } from "../../package/test/markdown.mjs";

/** @param {string} fields @param {string} [body] */
const read = (fields, body = "> Hello\n") => readMarkdown(`---\n${fields}\n---\n${body}`);

test("a document becomes a case: front matter, quotations, headings and lists", () => {
  const { agent, stubs, turns } = read(
    'agent: clerk\nstubs:\n  - tool: lookup\n    match: { "order": "A1" }   # a comment\n    outcome: { response: sent }',
    "# A title\n\n> Where is\n> order A1?\n\n- reply: on its way\n- called: lookup\n  with: { order: A1 }\n  times: 1\n\n## approve: refund\n\n- result: 2. [ ] bread\n",
  );
  assert.equal(agent, "clerk");
  assert.deepEqual(stubs, [{ tool: "lookup", match: { order: "A1" }, outcome: { response: "sent" } }]);
  assert.deepEqual(turns, [
    { send: "Where is\norder A1?", expect: [{ reply: "on its way" }, { called: "lookup", with: { order: "A1" }, times: 1 }] },
    { approve: "refund", expect: [{ result: "2. [ ] bread" }] },
  ]);
});

test("YAML 1.2 is read completely: blocks, quotes, anchors, collections over several lines", () => {
  const { text, folded, quoted, list, again, words } = read(
    "text: |-\n  It is\n   on its way.\nfolded: >\n  one\n  line\nquoted: 'it''s'\nlist: &list\n  - [1, two,\n     { three: null }]\nagain: *list\nwords: [yes, no, 2026-10-01, 1e3, true, ~]",
  );
  assert.deepEqual({ text, folded, quoted }, { text: "It is\n on its way.", folded: "one line\n", quoted: "it's" });
  assert.deepEqual([list, again], [[[1, "two", { three: null }]], [[1, "two", { three: null }]]]);
  assert.deepEqual(words, ["yes", "no", "2026-10-01", 1000, true, null]);
});

/** Invalid documents: the fields, the body, and the error. @type {[string, string, RegExp][]} */
const INVALID = [
  ["agent: *clerk", "", /^line 2, column 8: no anchor `&clerk` is above this alias$/],
  ["agent: clerk\nagent: desk", "", /^line 3, column 1: Map keys must be unique/],
  ["agent: clerk\n name: x", "", /^line 2, column 8: Nested mappings are not allowed/],
  ["agent: !ours clerk", "", /^line 2, column 8: Unresolved tag/],
  ['agent: "clerk', "", /^line 2, column \d+: Missing closing "quote/],
  ["? [a]\n: b", "", /^line 2, column 3: With stringKeys, all keys must be strings/],
  ["agent: clerk", "> Hello\n\n- reply: a: b\n", /^line 6, column 10: Nested mappings are not allowed/],
  ["agent: clerk", "> Hello\n\n- reply: x\n   - y: [\n", /^line \d+, column \d+: /],
  ["agent: clerk\nturns: []", "> Hello\n", /^the document has `turns` both in its fields and below them: keep one$/],
  ["agent: clerk", "## deny: [a\n", /^line 4, column \d+: /],
  ["agent: clerk", "## deny: *a\n", /^line 4, column 10: no anchor `&a`/],
  ["agent: clerk", "- reply: x\n", /^line 4, column 1: the expectations “- reply: x” need a turn above them$/],
];

for (const [fields, body, message] of INVALID) {
  test(`the error of ${JSON.stringify(fields + body)} has its position`, () => {
    assert.throws(() => read(fields, body), (/** @type {Error} */ error) => (assert.match(error.message, message), true));
  });
}
