// Forms and URLs of MCP servers at a terminal.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ask } from "../../package/lib/ask.mjs";
import { fieldsOf, linkOf, valueOf } from "../../package/lib/form.mjs";
import { details } from "../../package/lib/waits.mjs";

const FORM = {
  type: "object",
  properties: {
    name: { type: "string", title: "Name", description: "Who you are.", minLength: 2 },
    size: { type: "string", enum: ["s", "l"], enumNames: ["small", "large"], default: "s" },
    colours: { type: "array", items: { anyOf: [{ const: "r", title: "red" }, { const: "b", title: "blue" }] } },
    count: { type: "integer", minimum: 1, maximum: 9 },
    sure: { type: "boolean", default: false },
    mail: { type: "string", format: "email" },
  },
  required: ["name", "count"],
};
/** @type {any} */
const WAIT = { id: "w_1", kind: "elicitation", state: "open", threadId: "t", title: "Who\u001b[2J are you?", server: "peer", form: FORM, allows: ["answer", "deny"], by: "owner", createdAt: 0, expiresAt: 0, onExpiry: "deny", decision: null };

/** Returns the decision for the entered lines, and the printed text. @param {any} wait @param {...string} entered */
async function answered(wait, ...entered) {
  /** @type {string[]} */
  const said = [];
  const line = async (/** @type {string} */ prompt) => (said.push(prompt), entered.shift());
  return { decision: await ask(wait, line, (text) => void said.push(text)), said: said.join("\n"), left: entered };
}

test("a form is filled in field by field, and what cannot be right is asked again", async () => {
  const { decision, said, left } = await answered(WAIT, "f", "", "B", "Bo", "large", "red, b", "twelve", "12", "3", "yes", "");
  assert.deepEqual([decision, left], [{ decision: "answer", content: { name: "Bo", size: "l", colours: ["r", "b"], count: 3, sure: true } }, []]);
  for (const words of ["Who␛[2J are you?", "“Name” is required.", "“Name” needs at least 2 characters.", "“count” must be a whole number.", "“count” must be at most 9.", "one of s (small), l (large)", "mail: email; optional"]) assert.ok(said.includes(words), `${words} in ${said}`);
});

test("what is not entered is what the form says, or is left out", async () => {
  const { decision } = await answered(WAIT, "f", "Bo", "", "", "1", "", "");
  assert.deepEqual(decision, { decision: "answer", content: { name: "Bo", size: "s", count: 1, sure: false } });
  const wrong = await answered(WAIT, "f", "Bo", "medium", "s", "green");
  assert.match(wrong.said, /“size” has no choice “medium”[\s\S]*“colours” has no choice “green”/);
  assert.equal(wrong.decision, undefined);
  assert.deepEqual((await answered(WAIT, "d")).decision, { decision: "deny" });
  assert.equal((await answered(WAIT, "")).decision, undefined);
});

test("an address is visited, or not", async () => {
  const { form: _, ...visit } = { ...WAIT, url: "https://example.com/confirm" };
  const { decision, said } = await answered(visit, "d");
  assert.deepEqual(decision, { decision: "answer" });
  assert.match(said, /Open https:\/\/example\.com\/confirm/);
  assert.deepEqual((await answered(visit, "n")).decision, { decision: "deny" });
  const signing = { ...visit, kind: "sign_in", allows: ["deny"] };
  assert.deepEqual((await answered(signing, "d")).decision, { decision: "deny" });
  assert.equal((await answered(signing, "")).decision, undefined);
});

test("all of what a server asks is in its details, and nothing of it acts on a terminal", () => {
  const text = details(WAIT);
  for (const words of ["server", "peer", "name “Name”: text. Who you are.", "colours: any of r (red), b (blue); optional", 'sure: boolean; optional; else false']) assert.ok(text.includes(words), `${words} in ${text}`);
  assert.ok(!text.includes("\u001b"));
});

test("forms are read as far as they are forms, and only addresses of people are links", () => {
  for (const wrong of [undefined, null, 7, "x", [], {}, { properties: 1 }, { properties: { a: null } }]) assert.deepEqual(fieldsOf(wrong), []);
  const [field] = fieldsOf({ properties: { a: { oneOf: [{ const: 1, title: "one" }, null, { title: "x" }] } } });
  assert.deepEqual([field?.kind, field?.choices], ["one", [{ value: 1, label: "one" }]]);
  assert.ok(field && valueOf(field, undefined) === undefined);
  assert.equal(linkOf("https://example.com/a?b")?.host, "example.com");
  assert.equal(linkOf("http://127.0.0.1:1/x")?.host, "127.0.0.1:1");
  for (const url of ["javascript:alert(1)", "http://example.com", "file:///etc/passwd", "data:text/html,x", "x", 7]) assert.equal(linkOf(url), undefined);
});
