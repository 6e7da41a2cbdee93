// Invalid requests: each returns its documented code and a helpful message, and changes nothing.

import assert from "node:assert/strict";
import { exchange } from "./support/http.mjs";
import { hang, say } from "./support/model.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/http.mjs").Answer} Answer */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

bobbin.agent("plain", () => say("hello"));
bobbin.agent("needy", () => say("hello"), {
  prompt: {
    variables: [
      { name: "CITY", type: "text", required: true, description: "Where." },
      { name: "TOKEN", type: "secret", required: true, description: "A secret." },
      { name: "MOOD", type: "text", required: false, description: "How." },
    ],
  },
});
const stuck = bobbin.agent("stuck", hang);

const NOBODY = "00000000-0000-4000-8000-000000000000";

/**
 * @param {Answer} answer
 * @param {number} status
 * @param {string} code
 * @param {{ field?: string | undefined, message?: RegExp | undefined, hint?: RegExp | undefined }} [more]
 */
function isError(answer, status, code, { field, message, hint } = {}) {
  assert.equal(answer.status, status, answer.text);
  assert.match(answer.headers["content-type"] ?? "", /^application\/json/);
  const { error, ...others } = answer.json;
  assert.deepEqual(others, {}, "nothing but the error");
  assert.equal(error.code, code, answer.text);
  assert.ok(typeof error.message === "string" && error.message.length > 5, "a message in words");
  assert.ok(!/panicked|\.rs:|\bat \/|wasm/.test(answer.text), "no stack, no source");
  if (field !== undefined) assert.equal(error.field, field);
  if (message) assert.match(error.message, message);
  if (hint) assert.match(error.hint ?? "", hint);
}

/**
 * Requests on an existing thread (`:id`). None of them may change it.
 *
 * @type {{ name: string, method?: string, path?: string, body?: unknown, text?: string, type?: string, status: number, code: string, field?: string, message?: RegExp, hint?: RegExp }[]}
 */
const cases = [
  { name: "a body that is no JSON", path: "/threads", text: '{"agent_id": "pl', status: 400, code: "bad_json" },
  { name: "no body", path: "/threads", text: "", status: 400, code: "bad_json" },
  { name: "a body that is no object", path: "/threads", body: ["plain"], status: 400, code: "bad_json", message: /object/ },
  { name: "no agent", path: "/threads", body: {}, status: 400, code: "missing_field", field: "agent_id" },
  { name: "an agent that is a number", path: "/threads", body: { agent_id: 7 }, status: 400, code: "invalid_field", field: "agent_id" },
  { name: "an unknown agent", path: "/threads", body: { agent_id: "nobody" }, status: 404, code: "agent_not_found", field: "agent_id", message: /nobody/, hint: /needy.*plain/ },
  { name: "tags that are no list", path: "/threads", body: { agent_id: "plain", tags: "demo" }, status: 400, code: "invalid_field", field: "tags" },
  { name: "missing variables, all of them", path: "/threads", body: { agent_id: "needy" }, status: 400, code: "missing_variables", message: /CITY.*TOKEN/ },
  { name: "an unknown thread", method: "GET", path: `/threads/${NOBODY}`, status: 404, code: "thread_not_found" },
  { name: "an id that is none", method: "GET", path: "/threads/my%20thread", status: 404, code: "thread_not_found" },
  { name: "a message to an unknown thread", path: `/threads/${NOBODY}/messages`, body: { role: "user", content: "hi" }, status: 404, code: "thread_not_found" },
  { name: "an unknown message", method: "GET", path: "/threads/:id/messages/m_0", status: 404, code: "message_not_found" },
  { name: "a change of an unknown message", method: "PATCH", path: "/threads/:id/messages/nothing", body: { content: "x" }, status: 404, code: "message_not_found" },
  { name: "the deletion of an unknown message", method: "DELETE", path: "/threads/:id/messages/nothing", status: 404, code: "message_not_found" },
  { name: "a message body that is no JSON", path: "/threads/:id/messages", text: "hello", status: 400, code: "bad_json" },
  { name: "a message without role", path: "/threads/:id/messages", body: { content: "hi" }, status: 400, code: "missing_field", field: "role" },
  { name: "an unknown role", path: "/threads/:id/messages", body: { role: "robot", content: "hi" }, status: 400, code: "invalid_field", field: "role", message: /robot|user/ },
  { name: "a tool message", path: "/threads/:id/messages", body: { role: "tool", content: "hi" }, status: 400, code: "invalid_field", field: "role" },
  { name: "a message without content", path: "/threads/:id/messages", body: { role: "user" }, status: 400, code: "missing_field", field: "content" },
  { name: "content that is no text", path: "/threads/:id/messages", body: { role: "user", content: { a: 1 } }, status: 400, code: "invalid_field", field: "content" },
  { name: "silent that is no flag", path: "/threads/:id/messages", body: { role: "user", content: "hi", silent: "yes" }, status: 400, code: "invalid_field", field: "silent" },
  { name: "content over 1 MB", path: "/threads/:id/messages", body: { role: "user", content: "x".repeat((1 << 20) + 1) }, status: 413, code: "too_large", message: /\b1048576\b/ },
  { name: "a message request over 12 MB", path: "/threads/:id/messages", body: { role: "user", content: "x".repeat(13 << 20) }, status: 413, code: "too_large", message: /12/ },
  { name: "any other request over 4 MB", path: "/threads", body: { agent_id: "plain", tags: ["x".repeat(5 << 20)] }, status: 413, code: "too_large", message: /4/ },
  { name: "a limit that is no number", method: "GET", path: "/threads/:id/messages?limit=many", status: 400, code: "invalid_field", field: "limit" },
  { name: "a cursor that is none", method: "GET", path: "/threads/:id/messages?before=yesterday", status: 400, code: "bad_cursor" },
  { name: "an order that is none", method: "GET", path: "/threads/:id/messages?order=random", status: 400, code: "invalid_field", field: "order" },
  { name: "a flag that is none", method: "GET", path: "/threads/:id/messages?includeSilent=perhaps", status: 400, code: "invalid_field", field: "includeSilent" },
  { name: "a sort that is none", method: "GET", path: "/threads?sort=size", status: 400, code: "invalid_field", field: "sort" },
  { name: "an unknown route", method: "GET", path: "/nothing", status: 404, code: "not_found" },
  { name: "an unknown route of a thread", method: "GET", path: "/threads/:id/nothing", status: 404, code: "not_found" },
  { name: "an unknown agent's page", method: "GET", path: "/agents/nobody", status: 404, code: "agent_not_found" },
  { name: "another method", method: "DELETE", path: "/threads", status: 405, code: "method_not_allowed", hint: /GET.*POST/ },
  { name: "another method on messages", method: "PUT", path: "/threads/:id/messages", body: {}, status: 405, code: "method_not_allowed", hint: /GET.*POST/ },
  { name: "a form", path: "/threads", text: "agent_id=plain", type: "application/x-www-form-urlencoded", status: 415, code: "unsupported_media_type" },
  { name: "text", path: "/threads/:id/messages", text: '{"role":"user","content":"hi"}', type: "text/plain", status: 415, code: "unsupported_media_type" },
  { name: "a change of content to a number", method: "PATCH", path: "/threads/:id/messages/:message", body: { content: 5 }, status: 400, code: "invalid_field", field: "content" },
  { name: "a side that is none", path: "/threads/:id/continue", body: { side: "c" }, status: 400, code: "invalid_field", field: "side" },
  { name: "a change of nothing", method: "PATCH", path: "/threads/:id", body: {}, status: 400, code: "missing_field" },
  { name: "a field that cannot be changed", method: "PATCH", path: "/threads/:id", body: { parent: "stuck" }, status: 400, code: "invalid_field", field: "parent" },
  { name: "an agent that is not there", method: "PATCH", path: "/threads/:id", body: { agent_id: "nobody" }, status: 404, code: "agent_not_found", field: "agent_id" },
];

/** @type {import("./support/client.mjs").Thread} */
let thread;
/** @type {string} */
let message;

test("a thread to be wrong about", async () => {
  thread = await bobbin.client.thread("plain");
  ({ message: { id: message } } = await thread.ask("hello"));
});

for (const { name, method = "POST", path = "", body, text, type, status, code, ...more } of cases) {
  test(`${name}: ${status} ${code}`, async () => {
    const before = [await thread.messages(), (await bobbin.client.threads()).total];
    const where = path.replace(":id", thread.id).replace(":message", message);
    const headers = { "content-type": type ?? "application/json" };
    const answer = await bobbin.client.send(method, where, body, text === undefined ? {} : { body: text, headers });
    isError(answer, status, code, more);
    assert.deepEqual([await thread.messages(), (await bobbin.client.threads()).total], before, "nothing has changed");
  });
}

test("what is allowed is told with a 405", async () => {
  const answer = await bobbin.client.send("DELETE", "/threads");
  assert.match(answer.headers.allow ?? "", /GET.*POST/);
});

test("a body in chunks without a length is cut off at the limit too", async () => {
  const answer = await exchange(bobbin.server.base, "POST", "/api/threads", {
    headers: { "content-type": "application/json", "transfer-encoding": "chunked" },
    body: `{"agent_id":"${"x".repeat(5 << 20)}"}`,
  });
  isError(answer, 413, "too_large");
});

test("an idempotency key that is too long is refused", async () => {
  const answer = await thread.post("hi", {}, { headers: { "idempotency-key": "k".repeat(300) } });
  isError(answer, 400, "invalid_field");
});

test("a full queue answers 429 and says when to come again", async () => {
  const full = await bobbin.client.thread("stuck");
  await full.accepted("the first, taken by the run");
  await stuck.model.request(1);
  const statuses = new Set();
  for (let sent = 0; sent < 1000; sent += 100) {
    const answers = await Promise.all(Array.from({ length: 100 }, (_, at) => full.post(`message ${sent + at}`)));
    for (const { status } of answers) statuses.add(status);
  }
  assert.deepEqual([...statuses], [202], "1,000 messages may wait");
  const answer = await full.post("one too many");
  isError(answer, 429, "queue_full");
  assert.ok(Number(answer.headers["retry-after"]) > 0, "Retry-After");
  assert.equal((await full.page({ limit: 1 })).total, 1001);
  assert.equal((await full.send("POST", "/stop")).status, 200);
});

test("answers are not cached and not sniffed", async () => {
  const { headers } = await thread.send("GET");
  assert.match(String(headers["cache-control"]), /no-store/);
  assert.equal(headers["x-content-type-options"], "nosniff");
});

test("/healthz needs nothing", async () => {
  const answer = await exchange(bobbin.server.base, "GET", "/healthz");
  assert.equal(answer.status, 200);
});
