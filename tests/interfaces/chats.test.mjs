// The AI SDK's chats as requests: access, rejections, and files by links. tests/clients tests the streams with the AI
// SDK's packages.

import assert from "node:assert/strict";
import { makes, say, use } from "../worker/support/model.mjs";
import { exchange } from "../worker/support/http.mjs";
import { until } from "../worker/support/poll.mjs";
import { suite } from "../worker/support/suite.mjs";

const ORIGIN = "https://app.example";
const bobbin = suite({
  key: "key-of-all",
  vars: {
    BOBBIN_API_KEYS: "key-of-all=admin,key-of-alice=owner:alice,key-of-bob=owner:bob",
    BOBBIN_TOKEN_SECRET: "a-secret-of-the-tests",
    BOBBIN_ALLOWED_ORIGINS: ORIGIN,
  },
});
const test = bobbin.test.bind(bobbin);

const echo = bobbin.agent("echo", ({ last }) => say(`You wrote: ${last}`, { chunks: 3 }));
bobbin.agent("counter", ({ n }) => say(`answer ${n}`));
bobbin.agent("hidden", () => say("never"), { agent: { expose: false } });
bobbin.tool("pay", () => "paid", { approval: "always" });
bobbin.agent("payer", makes({ name: "pay", args: { amount: 5 } }), { tools: ["pay"] });
bobbin.agent("once", ({ messages }) => (messages.some(({ role }) => role === "tool") ? say("done") : use({ name: "pay", args: { amount: 5 } })), { tools: ["pay"] });

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const alice = () => bobbin.as("key-of-alice");
const bob = () => bobbin.as("key-of-bob");

/** @param {string} id @param {string} text @param {object[]} [files] @param {string} [ui] */
const message = (id, text, files = [], ui = "u1") => ({
  id,
  trigger: "submit-message",
  messages: [{ id: ui, role: "user", parts: [...files, { type: "text", text }] }],
});
/** @param {string} text */
const chunks = (text) => [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, json]) => JSON.parse(json ?? ""));

test("a chat is its owner's, whatever its id", async () => {
  for (const id of ["chat-1", "a/b?c#d", "6f0c8a52-1111-4111-8111-111111111111"]) {
    const answer = await alice().send("POST", "/agents/echo/chat", message(id, "secret"));
    assert.equal(answer.status, 200, answer.text);
    assert.equal(chunks(answer.text).map(({ delta }) => delta ?? "").join(""), "You wrote: secret");
    const path = `/agents/echo/chat/${encodeURIComponent(id)}`;
    const own = await alice().send("GET", path);
    assert.deepEqual([own.status, own.json.messages.length, own.json.id], [200, 2, id], own.text);
    const other = await bob().send("GET", path);
    assert.deepEqual([other.status, other.json], [200, { id, threadId: null, messages: [], activeRun: null }]);
    assert.equal((await bob().send("GET", `${path}/stream`)).status, 204);
    assert.equal((await bob().send("POST", `${path}/stop`, {})).status, 404);
    const byThread = await bob().send("GET", `/agents/echo/chat/${own.json.threadId}`);
    assert.equal(byThread.json.threadId, null, "a thread's id opens it to nobody else");
    assert.equal((await alice().send("GET", `/agents/echo/chat/${own.json.threadId}`)).json.messages.length, 2);
  }
  assert.ok(echo.model.asked.length >= 3);
});

test("what makes no sense is refused by name", async () => {
  const text = [{ type: "text", text: "x" }];
  const bodies = /** @type {[unknown, number, string][]} */ ([
    [{ messages: [] }, 400, "id"],
    [{ id: "r" }, 400, "messages"],
    [{ id: "r", trigger: "explode", messages: [{ id: "u", role: "user", parts: text }] }, 400, "trigger"],
    [{ id: "r", messages: [{ id: "u", role: "system", parts: text }] }, 400, "messages[0].role"],
    [{ id: "r", messages: [{ id: "u", role: "user", parts: [{ type: "file", url: "https://evil.example/x" }] }] }, 400, "messages[0].parts[0]"],
    [{ id: "has a space", messages: [{ id: "u", role: "user", parts: text }] }, 400, "id"],
  ]);
  for (const [body, status, field] of bodies) {
    const answer = await alice().send("POST", "/agents/echo/chat", body);
    assert.deepEqual([answer.status, answer.json.error.field], [status, field], answer.text);
  }
  const hidden = await alice().send("POST", "/agents/hidden/chat", message("r", "x"));
  assert.deepEqual([hidden.status, hidden.json.error.code], [404, "agent_not_found"], hidden.text);
  const which = await alice().send("POST", "/chat", message("r", "x"));
  assert.deepEqual([which.status, which.json.error.field], [400, "agent"], which.text);
  assert.match(which.json.error.hint, /counter, echo, once, payer/);
  const large = await alice().send("POST", "/agents/echo/chat", message("r", "x".repeat(13 << 20)));
  assert.equal(large.status, 413, large.text.slice(0, 300));
  assert.match(large.json.error.hint, /last message/);
  assert.equal((await bobbin.as(undefined).send("POST", "/agents/echo/chat", message("r", "x"))).status, 401);
  const taken = await alice().send("POST", "/agents/echo/chat", message("taken", "x"));
  assert.equal(taken.status, 200);
  const other = await alice().send("POST", "/agents/payer/chat", message("taken", "x"));
  assert.equal(other.status, 409, other.text);
});

test("the same message twice starts nothing, and both are told the same", async () => {
  const asked = echo.model.asked.length;
  const [one, two] = await Promise.all([1, 2].map(() => alice().send("POST", "/chat?agent=echo", message("twice", "hello"))));
  const told = (/** @type {string} */ text) => chunks(text).map(({ delta }) => delta ?? "").join("");
  assert.equal(told(one?.text ?? ""), "You wrote: hello");
  assert.equal(told(two?.text ?? ""), "You wrote: hello");
  assert.equal(echo.model.asked.length, asked + 1);
});

test("a message is answered anew, or changed and answered, and what followed goes", async () => {
  const path = "/agents/counter/chat/anew";
  const post = (/** @type {object} */ more) => alice().send("POST", "/agents/counter/chat", { id: "anew", ...more });
  const told = (/** @type {string} */ text) => chunks(text).map(({ delta }) => delta ?? "").join("");
  const lines = async () => (await alice().send("GET", path)).json.messages.map((/** @type {any} */ { parts }) => parts.at(-1).text);
  const user = (/** @type {string} */ text, ui = "u1") => ({ id: ui, role: "user", parts: [{ type: "text", text }] });
  const first = await post({ messages: [user("one")] });
  const messageId = chunks(first.text)[0].messageId;
  const anew = await post({ trigger: "regenerate-message", messageId, messages: [user("one")] });
  assert.equal(anew.status, 200, anew.text);
  assert.notEqual(told(anew.text), told(first.text));
  assert.equal(anew.headers["x-bobbin-run"], "r_2");
  assert.deepEqual(await lines(), ["one", told(anew.text)]);
  // A page uses its own id for a reply that has no text.
  const last = await post({ trigger: "regenerate-message", messageId: "of-the-page", messages: [user("one")] });
  assert.deepEqual(await lines(), ["one", told(last.text)]);
  const changed = await post({ messageId: "u1", messages: [user("one, changed")] });
  assert.equal(changed.status, 200, changed.text);
  assert.deepEqual(await lines(), ["one, changed", told(changed.text)]);
  // The same id with another text is a change. With the same text it is the same request.
  const other = await post({ messages: [user("one, again")] });
  assert.deepEqual(await lines(), ["one, again", told(other.text)]);
  const same = await post({ messages: [user("one, again")] });
  assert.equal(told(same.text), told(other.text));
  assert.deepEqual(await lines(), ["one, again", told(other.text)]);
  const none = await alice().send("POST", "/agents/counter/chat", { id: "nobody-spoke", trigger: "regenerate-message", messages: [user("x")] });
  assert.equal(none.status, 404, none.text);
  // The open approval is cancelled.
  const paying = chunks((await alice().send("POST", "/agents/payer/chat", message("given-up", "pay"))).text);
  assert.ok(paying.some(({ type }) => type === "tool-approval-request"));
  const instead = { id: "given-up", messageId: "u1", messages: [user("do not pay")] };
  const asked = chunks((await alice().send("POST", "/agents/payer/chat", instead)).text);
  assert.notEqual(asked.find(({ type }) => type === "tool-approval-request").approvalId, paying.find(({ type }) => type === "tool-approval-request").approvalId);
});

test("keys come in a header of their own, too, and pages of other origins may ask", async () => {
  const headers = { "x-api-key": "key-of-alice", origin: ORIGIN };
  const answer = await exchange(bobbin.server.base, "GET", "/api/agents/echo/chat/none", { headers });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers["access-control-allow-origin"], ORIGIN);
  assert.match(answer.headers["access-control-expose-headers"] ?? "", /x-vercel-ai-ui-message-stream/);
  const wrong = await exchange(bobbin.server.base, "GET", "/api/agents/echo/chat/none", { headers: { "x-api-key": "nobody" } });
  assert.equal(wrong.status, 401);
  const asked = "authorization,content-type,user-agent,x-stainless-lang";
  const preflight = await exchange(bobbin.server.base, "OPTIONS", "/api/agents/echo/chat", {
    headers: { origin: ORIGIN, "access-control-request-method": "POST", "access-control-request-headers": asked },
  });
  assert.equal(preflight.headers["access-control-allow-headers"], asked);
});

test("an answer says whose it is, in headers that pages may read", async () => {
  const answer = await alice().send("POST", "/agents/echo/chat", message("headers", "x"), { headers: { origin: ORIGIN } });
  const { threadId } = (await alice().send("GET", "/agents/echo/chat/headers")).json;
  const { headers } = answer;
  assert.deepEqual([headers["x-bobbin-thread"], headers["x-bobbin-run"]], [threadId, "r_1"]);
  assert.equal(headers["access-control-allow-origin"], ORIGIN);
  for (const name of ["x-bobbin-thread", "x-bobbin-run", "x-vercel-ai-ui-message-stream", "retry-after", "www-authenticate", "x-request-id", "mcp-session-id"]) {
    assert.ok(headers["access-control-expose-headers"]?.split(", ").includes(name), name);
  }
  assert.match(headers["content-type"] ?? "", /^text\/event-stream/);
  const feed = await alice().send("GET", `/threads/${threadId}/events?run=r_1`);
  assert.equal(feed.headers["x-bobbin-run"], "r_1");
});

test("files are shown by links that read this file and nothing else", async () => {
  const files = [{ type: "file", mediaType: "image/png", filename: "a ü.png", url: `data:image/png;base64,${PIXEL}` }];
  const answer = await alice().send("POST", "/agents/echo/chat", message("pictures", "look", files));
  assert.equal(answer.status, 200, answer.text);
  const { json } = await alice().send("GET", "/agents/echo/chat/pictures");
  const [file] = json.messages[0].parts;
  assert.deepEqual([file.type, file.mediaType, file.filename], ["file", "image/png", "a ü.png"]);
  const url = new URL(file.url);
  const get = (/** @type {string} */ path) => exchange(bobbin.server.base, "GET", path);
  const shown = await get(url.pathname + url.search);
  assert.deepEqual([shown.status, shown.headers["content-type"]], [200, "image/png"]);
  assert.equal((await get(url.pathname)).status, 401);
  const other = url.pathname.replace(/[^/]*$/, "b.png");
  assert.equal((await get(other + url.search)).status, 401);
  const forged = url.search.replace(/signature=./, (start) => `signature=${start.endsWith("0") ? "1" : "0"}`);
  assert.equal((await get(url.pathname + forged)).status, 401);
  assert.equal((await exchange(bobbin.server.base, "DELETE", url.pathname + url.search)).status, 401);
  // A later thread with the chat's id is a different thread.
  const path = `/threads/${json.threadId}`;
  assert.equal((await alice().send("DELETE", path)).status, 200);
  assert.equal((await get(url.pathname + url.search)).status, 404);
  assert.equal((await alice().send("POST", "/agents/echo/chat", message("pictures", "look"))).status, 200);
  assert.equal((await alice().send("GET", "/agents/echo/chat/pictures")).json.threadId, json.threadId, "the address is the same");
  const headers = { authorization: "Bearer key-of-alice", "content-type": "image/png" };
  const put = await exchange(bobbin.server.base, "PUT", url.pathname, { headers, body: "another picture" });
  assert.ok(put.status < 300, put.text);
  assert.equal((await get(url.pathname + url.search)).status, 404, "an old link opens nothing of the new thread");
});

test("a page that has lost a reply is given it whole, also when it is over", async () => {
  await alice().send("POST", "/agents/echo/chat", message("over", "hello"));
  const path = "/agents/echo/chat/over/stream";
  assert.equal((await alice().send("GET", path)).status, 204);
  const whole = await alice().send("GET", `${path}?features=replay`);
  assert.equal(whole.status, 200, whole.text);
  assert.equal(chunks(whole.text).map(({ delta }) => delta ?? "").join(""), "You wrote: hello");
  assert.equal(chunks(whole.text).at(-1).finishReason, "stop");
  assert.equal((await alice().send("GET", "/agents/echo/chat/never/stream?features=replay")).status, 204);
});

test("an answer in an earlier message counts, and the last one goes on", async () => {
  const first = chunks((await alice().send("POST", "/agents/once/chat", message("hurried", "pay"))).text);
  const asked = first.find(({ type }) => type === "tool-approval-request");
  const second = chunks((await alice().send("POST", "/agents/once/chat", message("hurried", "and hurry", [], "u2"))).text);
  assert.equal(second.at(-1).finishReason, "tool-calls", "it waits, too");
  const part = { type: "tool-pay", toolCallId: asked.toolCallId, state: "approval-responded", providerExecuted: true };
  const messages = [
    { id: first[0].messageId, role: "assistant", parts: [{ ...part, approval: { id: asked.approvalId, approved: false, reason: "no" } }] },
    { id: "u2", role: "user", parts: [{ type: "text", text: "and hurry" }] },
    { id: "a2", role: "assistant", parts: [] },
  ];
  const then = chunks((await alice().send("POST", "/agents/once/chat", { id: "hurried", trigger: "submit-message", messages })).text);
  assert.equal(then[0].messageId, "a2");
  assert.ok(then.every(({ toolCallId }) => toolCallId === undefined), "calls of another message are not told here");
  assert.equal(then.map(({ delta }) => delta ?? "").join(""), "done");
  const { json } = await alice().send("GET", "/agents/once/chat/hurried");
  const denied = json.messages[1].parts.find((/** @type {any} */ { type }) => type === "tool-pay");
  assert.deepEqual([denied.state, denied.approval], ["output-denied", { id: asked.approvalId, approved: false, reason: "no" }]);
});

test("an answer goes on in the message, and one that contradicts it is refused", async () => {
  const first = chunks((await alice().send("POST", "/agents/payer/chat", message("paying", "pay"))).text);
  const asked = first.find(({ type }) => type === "tool-approval-request");
  assert.equal(first.at(-1).finishReason, "tool-calls");
  const ui = first[0].messageId;
  const part = { type: "tool-pay", toolCallId: asked.toolCallId, state: "approval-responded", providerExecuted: true };
  /** @param {boolean} approved */
  const answers = (approved) => ({
    id: "paying",
    trigger: "submit-message",
    messageId: ui,
    messages: [{ id: ui, role: "assistant", parts: [{ ...part, approval: { id: asked.approvalId, approved } }] }],
  });
  const history = await alice().send("GET", "/agents/payer/chat/paying");
  assert.equal(history.json.messages.at(-1).parts.at(-1).state, "approval-requested", history.text);
  assert.equal((await alice().send("GET", "/agents/payer/chat/paying/stream")).status, 204, "what waits is in the history");
  const then = chunks((await alice().send("POST", "/agents/payer/chat", answers(true))).text);
  assert.equal(then[0].messageId, ui);
  assert.deepEqual(then.find(({ type }) => type === "tool-output-available")?.output, "paid");
  assert.equal(then.at(-1).finishReason, "stop");
  const again = await alice().send("POST", "/agents/payer/chat", answers(true));
  assert.equal(again.status, 200, again.text);
  const contrary = await alice().send("POST", "/agents/payer/chat", answers(false));
  assert.equal(contrary.status, 409, contrary.text);
  await until("it is over", async () => (await alice().send("GET", "/agents/payer/chat/paying")).json.messages.length === 2);
});
