// OpenAI's APIs as requests: access, origins, and the resulting threads. tests/clients tests the responses with
// OpenAI's packages.

import assert from "node:assert/strict";
import { say, stallAfter, use } from "../worker/support/model.mjs";
import { exchange } from "../worker/support/http.mjs";
import { suite } from "../worker/support/suite.mjs";

const ORIGIN = "https://app.example";
const bobbin = suite({
  key: "key-of-all",
  vars: { BOBBIN_API_KEYS: "key-of-all=admin,key-of-alice=owner:alice", BOBBIN_ALLOWED_ORIGINS: ORIGIN, BOBBIN_SURFACES: "openai" },
});
const test = bobbin.test.bind(bobbin);
const echo = bobbin.agent("echo", ({ last }) => say(`You wrote: ${last}`, { chunks: 3 }));

bobbin.tool("note", () => "noted");
const STEPS = 8;
const noter = bobbin.agent("noter", ({ messages }) => (messages.filter(({ role }) => role === "tool").length < STEPS ? use({ name: "note", args: {} }) : stallAfter("and now", 1)), { tools: ["note"] });

/** @param {string} path @param {unknown} body @param {Record<string, string>} [headers] */
const post = (path, body, headers = {}) =>
  exchange(bobbin.server.base, "POST", path, {
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", authorization: "Bearer key-of-alice", ...headers },
  });
const hello = { model: "echo", messages: [{ role: "user", content: "hello" }] };

test("a page of another origin may ask with every header that the package sends", async () => {
  const asked = "authorization,content-type,x-stainless-lang,x-stainless-retry-count,x-stainless-timeout,openai-organization";
  const headers = { origin: ORIGIN, "access-control-request-method": "POST", "access-control-request-headers": asked };
  const preflight = await exchange(bobbin.server.base, "OPTIONS", "/v1/chat/completions", { headers });
  assert.deepEqual([preflight.status, preflight.headers["access-control-allow-headers"]], [204, asked]);
  const answer = await post("/v1/chat/completions", hello, { origin: ORIGIN });
  assert.equal(answer.headers["access-control-allow-origin"], ORIGIN, answer.text);
  assert.match(answer.headers["access-control-expose-headers"] ?? "", /x-request-id/);
  const other = await exchange(bobbin.server.base, "OPTIONS", "/v1/models", { headers: { ...headers, origin: "https://evil.example" } });
  assert.equal(other.headers["access-control-allow-origin"], undefined);
});

test("errors have one shape, whatever is wrong", async () => {
  const cases = /** @type {[string, string, unknown, Record<string, string>, number, string][]} */ ([
    ["GET", "/v1/nothing", undefined, {}, 404, "not_found"],
    ["POST", "/v1/embeddings", { model: "echo", input: "x" }, {}, 404, "not_found"],
    ["POST", "/v1/responses/resp_none/more", {}, {}, 404, "not_found"],
    ["PUT", "/v1/models", undefined, {}, 405, "method_not_allowed"],
    ["POST", "/v1/chat/completions", hello, { authorization: "Bearer nobody" }, 401, "unauthenticated"],
    ["POST", "/v1/chat/completions", hello, { "content-type": "text/plain" }, 415, "unsupported_media_type"],
    ["POST", "/v1/chat/completions?other=1", hello, {}, 400, "invalid_field"],
    ["POST", "/v1/responses", [], {}, 400, "bad_json"],
    ["GET", "/v1/responses/resp_none", undefined, {}, 404, "not_found"],
  ]);
  for (const [method, path, body, headers, status, code] of cases) {
    const known = { authorization: "Bearer key-of-alice", ...(body === undefined ? {} : { "content-type": "application/json" }) };
    const answer = await exchange(bobbin.server.base, method, path, {
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers: { ...known, ...headers },
    });
    assert.deepEqual([answer.status, answer.json.error.code], [status, code], `${method} ${path}: ${answer.text}`);
    assert.deepEqual(Object.keys(answer.json.error).sort(), ["code", "message", "param", "type"]);
    assert.match(`${answer.headers["x-request-id"]}`, /^req_/);
    assert.equal(answer.headers["allow"], status === 405 ? "GET" : undefined, path);
  }
});

test("what is not offered is named, and what asks for nothing is taken", async () => {
  const embeddings = await post("/v1/embeddings", { model: "echo", input: "x" });
  assert.match(embeddings.json.error.message, /not offered here.*\/v1\/chat\/completions/s);
  const nothing = { functions: [], function_call: "auto", tools: [], audio: null, top_logprobs: 0 };
  assert.equal((await post("/v1/chat/completions", { ...hello, ...nothing })).status, 200);
  assert.equal((await post("/v1/chat/completions", { ...hello, functions: [{ name: "f" }] })).status, 400);
});

test("a deployment answers in the protocols that it names", async () => {
  const chat = await post("/api/agents/echo/chat", { id: "x", messages: [] });
  assert.equal(chat.status, 404, chat.text);
});

test("a request with a key is one message and one run, however often it comes", async () => {
  const asked = echo.model.asked.length;
  const headers = { "idempotency-key": "once" };
  const answers = await Promise.all([1, 2, 3].map(() => post("/v1/chat/completions", hello, headers)));
  assert.equal(new Set(answers.map(({ json }) => json.id)).size, 1, answers.map(({ text }) => text).join("\n"));
  assert.equal(echo.model.asked.length, asked + 1);
});

test("a thread may begin with what was said before, and ends when it was told to", async () => {
  const history = [
    { role: "user", content: "one" },
    { role: "assistant", content: "You wrote: one" },
  ];
  const made = await bobbin.client.send("POST", "/threads", { agent_id: "echo", history, expires_in: 2 });
  assert.equal(made.status, 200, made.text);
  const path = `/threads/${made.json.threadId}`;
  const { json } = await bobbin.client.send("GET", `${path}/messages`);
  assert.deepEqual(json.messages.map((/** @type {any} */ { role, content }) => ({ role, content })), history);
  for (const [body, field] of /** @type {[object, string][]} */ ([
    [{ history: [{ role: "tool", content: "x" }] }, "history[0].role"],
    [{ history: "x" }, "history"],
    [{ expires_in: 0 }, "expires_in"],
    [{ history: Array.from({ length: 3 }, () => ({ role: "user", content: "x".repeat(1_100_000) })) }, "history[0].content"],
  ])) {
    const refused = await bobbin.client.send("POST", "/threads", { agent_id: "echo", ...body });
    assert.equal(refused.json.error.field, field, refused.text);
  }
  const until = Date.now() + 20_000;
  while ((await bobbin.client.send("GET", path)).status !== 404) {
    assert.ok(Date.now() < until, "it is gone in time");
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
});

test("a response that is not done has all that is done of it, whenever it is looked at", async () => {
  const { json } = await post("/v1/responses", { model: "noter", input: "go", background: true });
  const path = `/v1/responses/${json.id}`;
  await noter.model.request(STEPS + 1);
  for (let times = 0; times < 20; times += 1) {
    const answer = await exchange(bobbin.server.base, "GET", path, { headers: { authorization: "Bearer key-of-alice" } });
    assert.equal(answer.json.status, "in_progress", answer.text);
    const done = answer.json.output.filter((/** @type {any} */ { type }) => type === "mcp_call");
    assert.deepEqual(done.map((/** @type {any} */ { output }) => output), Array.from({ length: STEPS }, () => "noted"));
  }
  assert.equal((await post(`${path}/cancel`, {})).json.status, "cancelled");
});
