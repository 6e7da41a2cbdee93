// The MCP server as requests: both protocol versions, access and rejections. tests/clients tests it with the official
// clients.

import assert from "node:assert/strict";
import { exchange } from "../worker/support/http.mjs";
import { MODERN, Mcp } from "../worker/support/mcp.mjs";
import { hang, say, sayAndUse, refuse } from "../worker/support/model.mjs";
import { until } from "../worker/support/poll.mjs";
import { suite } from "../worker/support/suite.mjs";

const ORIGIN = "https://page.example";
const bobbin = suite({
  key: "key-of-all",
  vars: {
    BOBBIN_API_KEYS: "key-of-all=admin,key-of-alice=owner:alice,key-of-bob=owner:bob",
    BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef",
    BOBBIN_SURFACES: "mcp",
    BOBBIN_ALLOWED_ORIGINS: ORIGIN,
  },
});
const test = bobbin.test.bind(bobbin);

bobbin.agent("echo", ({ messages, last }) => say(`${messages.filter(({ role }) => role === "user").length}: ${last}`, { chunks: 3 }), {
  agent: { title: "The echo", description: "Says it again." },
});
const hidden = bobbin.agent("hidden", () => say("never"), { agent: { expose: false } });
bobbin.tool("lookup", () => "found");
bobbin.agent("looker", ({ messages }) => (messages.at(-1)?.role === "tool" ? say("It is found.") : sayAndUse("One moment.", { name: "lookup", args: { of: "it" } })), {
  tools: ["lookup"],
});
bobbin.agent("broken", () => refuse(400, {}));
const hanging = bobbin.agent("hanging", () => hang());
const long = `a-name-of-${"very-".repeat(10)}long`;
bobbin.definitions.push(() => bobbin.folder.write({ agents: { [long]: { type: "ai_human", sideA: { prompt: "echo_prompt" } } } }));

const modern = (/** @type {string | undefined} */ key = "key-of-alice", capabilities = {}) => new Mcp(bobbin.server.base, { key, capabilities });
const legacy = (key = "key-of-alice") => new Mcp(bobbin.server.base, { key, legacy: true });
const eras = () => /** @type {[string, Mcp][]} */ ([["modern", modern()], ["legacy", legacy()]]);

test("each era begins in its own way", async () => {
  const found = await modern().send("server/discover");
  assert.deepEqual([found.status, found.message.id, found.result.resultType], [200, found.id, "complete"]);
  assert.deepEqual(found.result.supportedVersions, [MODERN, "2025-11-25", "2025-06-18", "2025-03-26"]);
  assert.deepEqual(found.result.capabilities, { tools: {}, resources: {}, completions: {}, extensions: { "io.modelcontextprotocol/tasks": {} } });
  assert.equal(found.result._meta["io.modelcontextprotocol/serverInfo"].name, "bobbin");
  assert.ok(found.result.ttlMs > 0 && found.result.cacheScope === "private", JSON.stringify(found.result));
  for (const [wanted, agreed] of [["2025-11-25", "2025-11-25"], ["2025-06-18", "2025-06-18"], ["2025-03-26", "2025-03-26"], ["2024-11-05", "2025-11-25"], [MODERN, "2025-11-25"]]) {
    const hello = await legacy().send("initialize", { protocolVersion: wanted, capabilities: {}, clientInfo: { name: "t", version: "1" } }, { headers: { "mcp-protocol-version": undefined } });
    assert.deepEqual([hello.status, hello.result.protocolVersion, hello.result.serverInfo.name], [200, agreed, "bobbin"], wanted);
    assert.equal(hello.headers["mcp-session-id"], undefined, "there are no sessions");
    assert.equal(hello.result.resultType, undefined, "of the other era");
  }
  assert.deepEqual((await legacy().send("ping")).result, {});
  const noted = await legacy().raw({ jsonrpc: "2.0", method: "notifications/initialized" }, {});
  assert.deepEqual([noted.status, noted.text], [202, ""]);
});

test("what headers and body say must belong together", async () => {
  const client = modern();
  const list = client.message("tools/list");
  const call = client.message("tools/call", { name: "ask_echo", arguments: { message: "x" } });
  const { "io.modelcontextprotocol/protocolVersion": _, ...versionless } = list.params._meta;
  const { "io.modelcontextprotocol/clientCapabilities": __, ...incapable } = list.params._meta;
  const strange = { ...list.params._meta, "io.modelcontextprotocol/protocolVersion": "2031-01-01" };
  const cases = /** @type {[string, any, Record<string, string | undefined>, number, number][]} */ ([
    ["no method header", list, { "mcp-method": undefined }, 400, -32020],
    ["another method", list, { "mcp-method": "prompts/list" }, 400, -32020],
    ["another case", list, { "mcp-method": "TOOLS/LIST" }, 400, -32020],
    ["no name", call, { "mcp-name": undefined }, 400, -32020],
    ["another name", call, { "mcp-name": "ask_other" }, 400, -32020],
    ["a name in bad Base64", call, { "mcp-name": "=?base64?%%?=" }, 400, -32020],
    ["no version", list, { "mcp-protocol-version": undefined }, 400, -32020],
    ["an older version", list, { "mcp-protocol-version": "2025-11-25" }, 400, -32020],
    ["no _meta", { ...list, params: {} }, {}, 400, -32602],
    ["no version in _meta", { ...list, params: { _meta: versionless } }, {}, 400, -32602],
    ["no capabilities", { ...list, params: { _meta: incapable } }, {}, 400, -32602],
    ["a version that there is not", { ...list, params: { _meta: strange } }, { "mcp-protocol-version": "2031-01-01" }, 400, -32022],
    ["the same in the header alone", { ...list, params: {} }, { "mcp-protocol-version": "2031-01-01" }, 400, -32022],
    ["a null id", { ...list, id: null }, {}, 400, -32600],
    ["a fraction as id", { ...list, id: 1.5 }, {}, 400, -32600],
    ["a long id", { ...list, id: "x".repeat(1_001) }, {}, 400, -32600],
    ["another JSON-RPC", { ...list, jsonrpc: "1.0" }, {}, 400, -32600],
    ["a batch", [list], {}, 400, -32600],
    ["an answer", { jsonrpc: "2.0", id: 1, result: {} }, {}, 400, -32600],
    ["params in a list", { ...list, params: [] }, {}, 400, -32602],
    ["no JSON", "{", {}, 400, -32700],
    ["a cursor", { ...list, params: { ...list.params, cursor: "x" } }, {}, 200, -32602],
  ]);
  for (const [what, body, headers, status, code] of cases) {
    const sent = body.method === "tools/call" ? client.headers(call) : client.headers(list);
    const answer = await client.raw(body, { ...sent, ...headers });
    assert.deepEqual([answer.status, answer.error?.code], [status, code], `${what}: ${answer.text}`);
    const known = typeof body === "object" && Number.isInteger(body.id) && !("result" in body);
    assert.equal(answer.message.id, known ? body.id : answer.message.id === 1 ? 1 : undefined, what);
  }
  const unsupported = await client.raw({ ...list, params: { _meta: strange } }, { ...client.headers(list), "mcp-protocol-version": "2031-01-01" });
  assert.deepEqual(unsupported.error.data, { supported: [MODERN, "2025-11-25", "2025-06-18", "2025-03-26"], requested: "2031-01-01" });
  const coded = await client.call("ask_echo", { message: "x" }, {}, { headers: { "mcp-name": `=?base64?${Buffer.from("ask_echo").toString("base64")}?=` } });
  assert.equal(coded.result?.isError, false, coded.text);
  for (const method of ["initialize", "ping", "logging/setLevel", "resources/subscribe", "prompts/list", "subscriptions/listen", "unknown/method"]) {
    const answer = await modern().send(method);
    assert.deepEqual([answer.status, answer.error?.code, answer.message.id], [404, -32601, answer.id], `${method}: ${answer.text}`);
  }
  for (const method of ["server/discover", "tasks/get", "prompts/list", "resources/subscribe", "logging/setLevel"]) {
    const answer = await legacy().send(method);
    assert.deepEqual([answer.status, answer.error?.code], [200, -32601], `${method}: ${answer.text}`);
  }
});

test("only POST is answered, with JSON, to those who may ask", async () => {
  for (const method of ["GET", "DELETE", "PUT"]) {
    const answer = await exchange(bobbin.server.base, method, "/mcp", { headers: { authorization: "Bearer key-of-alice", accept: "text/event-stream" } });
    assert.deepEqual([answer.status, answer.headers.allow], [405, "POST"], answer.text);
  }
  const client = modern();
  const list = client.message("tools/list");
  const sent = client.headers(list);
  for (const [what, headers, status] of /** @type {[string, Record<string, string | undefined>, number][]} */ ([
    ["a page of elsewhere", { origin: "https://evil.example" }, 403],
    ["a page of nowhere", { origin: "null" }, 403],
    ["no JSON", { "content-type": "text/plain" }, 415],
    ["an answer in HTML", { accept: "text/html" }, 406],
    ["no credentials", { authorization: undefined }, 401],
    ["wrong credentials", { authorization: "Bearer wrong" }, 401],
    ["an allowed page", { origin: ORIGIN }, 200],
    ["the server's own", { origin: bobbin.server.base }, 200],
  ])) {
    const answer = await client.raw(list, { ...sent, ...headers });
    assert.equal(answer.status, status, `${what}: ${answer.text}`);
    if (status !== 200) assert.equal(answer.error.code, -32600, `${what}: ${answer.text}`);
    if (status === 401) assert.equal(answer.headers["www-authenticate"], "Bearer");
    if (headers.origin === ORIGIN) assert.equal(answer.headers["access-control-allow-origin"], ORIGIN);
  }
  const large = await client.raw("x".repeat((4 << 20) + 1), sent);
  assert.equal(large.status, 413);
  for (const [accept, isStream] of /** @type {[string | undefined, boolean][]} */ ([[undefined, false], ["*/*", false], ["application/json", false], ["text/event-stream", true]])) {
    const answer = await client.raw(list, { ...sent, accept });
    assert.deepEqual([answer.isStream, answer.result?.tools.length > 0], [isStream, true], `${accept}: ${answer.text}`);
  }
  const minted = await bobbin.as("key-of-all").send("POST", "/tokens", { scope: "thread:6f0c8a52-1111-4111-8111-111111111111" });
  assert.equal((await modern(minted.json.token).send("tools/list")).status, 403, "credentials for one thread have no agents");
});

test("agents that are offered are tools", async () => {
  for (const [era, client] of eras()) {
    const { result } = await client.send("tools/list");
    const names = result.tools.map((/** @type {any} */ { name }) => name);
    assert.deepEqual(names.slice(-4), ["thread_start", "thread_get", "thread_respond", "thread_cancel"]);
    assert.ok(names.includes("ask_echo") && !names.some((/** @type {string} */ name) => name.includes("hidden")), String(names));
    assert.ok(names.every((/** @type {string} */ name) => /^[a-zA-Z0-9_-]{1,64}$/.test(name)) && new Set(names).size === names.length, String(names));
    const echo = result.tools.find((/** @type {any} */ { name }) => name === "ask_echo");
    assert.deepEqual([echo.title, echo.inputSchema.required, echo.annotations.readOnlyHint], ["The echo", ["message"], false]);
    assert.match(echo.description, /Says it again\./);
    const start = result.tools.find((/** @type {any} */ { name }) => name === "thread_start");
    assert.ok(start.inputSchema.properties.agent.enum.includes("echo") && !start.inputSchema.properties.agent.enum.includes("hidden"));
    assert.equal(result.ttlMs !== undefined, era === "modern");
    assert.deepEqual(echo.outputSchema.properties.reply.type, ["string", "null"]);
    // Some clients send `null` instead of leaving a field out.
    const { result: again } = await client.send("tools/list", { cursor: null });
    assert.deepEqual(again.tools, result.tools);
    const { result: refused } = await client.send("tools/call", { name: "ask_echo", arguments: null });
    assert.match(refused.content[0].text, /`message`/);
    const shortened = names.find((/** @type {string} */ name) => name.startsWith("ask_a-name"));
    assert.equal((await client.call(shortened, { message: "x" })).result.content[0].text, "1: x");
  }
});

test("an agent is asked, and the conversation goes on in its thread", async () => {
  for (const [era, client] of eras()) {
    const first = await client.call("ask_echo", { message: "one" });
    assert.ok(first.isStream, "who takes a stream is sent one");
    const { thread, run, outcome, reason, reply } = first.result.structuredContent;
    assert.equal(reply, "1: one", "clients may show a model nothing but what is structured");
    assert.deepEqual([first.result.content, run, outcome, typeof reason], [[{ type: "text", text: "1: one" }], "r_1", "completed", "string"], first.text);
    assert.equal(first.result.resultType, era === "modern" ? "complete" : undefined);
    const second = await client.call("ask_echo", { message: "two", thread }, {}, { headers: { accept: "application/json" } });
    assert.deepEqual([second.isStream, second.result.content[0].text, second.result.structuredContent.thread], [false, "2: two", thread]);
    const keyed = await client.call("ask_echo", { message: "three", thread: `my-${era}` });
    const again = await client.call("ask_echo", { message: "four", thread: `my-${era}` });
    assert.deepEqual([again.result.content[0].text, again.result.structuredContent.thread], ["2: four", keyed.result.structuredContent.thread]);
    const seen = await client.call("thread_get", { thread: `my-${era}` });
    assert.deepEqual([seen.result.structuredContent.state, seen.result.structuredContent.reply], ["idle", "2: four"], seen.text);
  }
});

test("a call that is named is made once", async () => {
  const client = modern();
  const meta = { "dev.bobbin/call": "call-1", traceparent: "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01" };
  const [first, second] = [await client.call("ask_echo", { message: "once" }, {}, { meta }), await client.call("ask_echo", { message: "once" }, {}, { meta })];
  assert.deepEqual(first.result.structuredContent, second.result.structuredContent);
  assert.deepEqual([first.result.content, second.result.content], [[{ type: "text", text: "1: once" }], [{ type: "text", text: "1: once" }]]);
  const others = await modern("key-of-bob").call("ask_echo", { message: "once" }, {}, { meta });
  assert.notEqual(others.result.structuredContent.thread, first.result.structuredContent.thread, "of somebody else it is another one");
});

test("progress is told to those who ask for it", async () => {
  for (const [, client] of eras()) {
    const silent = await client.call("ask_looker", { message: "x" });
    assert.deepEqual([silent.notes, silent.result.content[0].text], [[], "It is found."], silent.text);
    const told = await client.call("ask_looker", { message: "x" }, {}, { meta: { progressToken: "p-1" } });
    assert.ok(told.notes.length >= 2, told.text);
    let before = 0;
    for (const { jsonrpc, id, method, params } of told.notes) {
      assert.deepEqual([jsonrpc, id, method, params.progressToken], ["2.0", undefined, "notifications/progress", "p-1"]);
      assert.ok(params.progress > before && /lookup/.test(params.message), JSON.stringify(params));
      before = params.progress;
    }
  }
});

test("threads are their owner's, and mistakes are told to the model or to the client", async () => {
  const alice = modern();
  const { result } = await alice.call("ask_echo", { message: "secret" });
  const { thread } = result.structuredContent;
  const missing = "6f0c8a52-1111-4111-8111-111111111111";
  for (const [name, args] of /** @type {[string, any][]} */ ([["thread_get", {}], ["thread_cancel", {}], ["thread_respond", { responses: [{ id: "w_1", decision: "approve" }] }], ["ask_echo", { message: "x" }], ["thread_start", { agent: "echo", message: "x" }]])) {
    const [foreign, nobodys] = [await modern("key-of-bob").call(name, { ...args, thread }), await modern("key-of-bob").call(name, { ...args, thread: missing })];
    assert.equal(foreign.result.isError, true, foreign.text);
    assert.deepEqual(foreign.result.content, nobodys.result.content, name);
  }
  for (const [name, args, code, text] of /** @type {[string, any, number | undefined, RegExp][]} */ ([
    ["ask_hidden", { message: "x" }, -32602, /Unknown tool/],
    ["ask_nobody", { message: "x" }, -32602, /Unknown tool/],
    ["ask_echo", {}, undefined, /`message` is required/],
    ["ask_echo", { message: 7 }, undefined, /must be a string/],
    ["ask_echo", { message: "  " }, undefined, /required/],
    ["ask_echo", { message: "x", colour: "red" }, undefined, /colour/],
    ["ask_echo", { message: "x", thread: "has a space" }, undefined, /visible/],
    ["ask_looker", { message: "x", thread }, undefined, /conversation is one with “echo”/],
    ["thread_start", { agent: "hidden", message: "x" }, undefined, /offered here/],
    ["thread_start", { message: "x" }, undefined, /agent/],
    ["thread_get", {}, undefined, /thread/],
    ["thread_get", { thread, wait_ms: -1 }, undefined, /wait_ms/],
    ["thread_respond", { thread, responses: [{ id: "w_1", decision: "approve" }] }, undefined, /./],
    ["thread_respond", { thread, responses: [] }, undefined, /1 to/],
  ])) {
    for (const client of [alice, legacy()]) {
      const answer = await client.call(name, args);
      assert.equal(answer.status, 200, answer.text);
      const said = code === undefined ? answer.result?.isError === true && answer.result.content[0].text : answer.error?.code === code && answer.error.message;
      assert.match(said || "", text, `${name} ${JSON.stringify(args)}: ${answer.text}`);
    }
  }
  const shapeless = await alice.send("tools/call", { name: "ask_echo", arguments: [] });
  assert.equal(shapeless.error.code, -32602);
  const ended = await bobbin.as("key-of-alice").send("POST", `/threads/${thread}/terminate`);
  assert.equal(ended.status, 200, ended.text);
  const refused = await alice.call("ask_echo", { message: "x", thread });
  assert.deepEqual([refused.result.isError, /terminated/.test(refused.result.content[0].text)], [true, true], refused.text);
  assert.equal(hidden.model.asked.length, 0);
});

test("a run that fails is an error of the tool", async () => {
  for (const [, client] of eras()) {
    const { result } = await client.call("ask_broken", { message: "x" });
    assert.deepEqual([result.isError, result.structuredContent.outcome], [true, "failed"], JSON.stringify(result));
    assert.ok(result.content[0].text.length > 0);
    const seen = await client.call("thread_get", { thread: result.structuredContent.thread });
    assert.deepEqual([seen.result.isError, seen.result.structuredContent.outcome, seen.result.structuredContent.state], [false, "failed", "idle"]);
  }
});

test("work is started, looked at, waited for and stopped", async () => {
  for (const [, client] of eras()) {
    const asked = hanging.model.asked.length;
    const started = await client.call("thread_start", { agent: "hanging", message: "go" });
    const { thread, run } = started.result.structuredContent;
    assert.equal(run, "r_1");
    await until("the model is asked", () => hanging.model.asked.length > asked);
    const before = Date.now();
    const running = await client.call("thread_get", { thread, wait_ms: 400 });
    assert.ok(Date.now() - before >= 390, "it was waited for");
    assert.deepEqual([running.result.structuredContent.state, running.result.structuredContent.poll_after_ms > 0], ["running", true], running.text);
    const waiting = client.call("thread_get", { thread, wait_ms: 20_000 });
    const stopped = await client.call("thread_cancel", { thread });
    assert.equal(stopped.result.isError, false, stopped.text);
    const seen = await waiting;
    assert.deepEqual([seen.result.structuredContent.state, seen.result.structuredContent.outcome], ["idle", "stopped"], seen.text);
  }
});

test("a run ends with the answer that its client has closed, if the call began it and means that", async () => {
  const leave = async (/** @type {Mcp} */ client, /** @type {any} */ args) => {
    const asked = hanging.model.asked.length;
    const controller = new AbortController();
    const call = client.call("ask_hanging", args, {}, { options: { signal: controller.signal, withinMs: 60_000 } });
    call.catch(() => {});
    await until("the model is asked", () => hanging.model.asked.length > asked);
    controller.abort();
    await assert.rejects(call);
    return hanging.model.asked[asked];
  };
  const alice = bobbin.as("key-of-alice");
  const run = async (/** @type {string} */ key) => (await alice.send("GET", `/threads/key:${key}/runs?limit=1`)).json?.runs[0];
  await leave(modern(), { message: "go", thread: "left" });
  await until("the run is stopped", async () => (await run("left")).reason === "stopped_by_user", { withinMs: 60_000 });
  await leave(legacy(), { message: "go", thread: "kept" });
  assert.equal((await run("kept")).status, "running", "a legacy client that has lost its connection means nothing by it");
  const stop = (/** @type {object} */ body) => alice.send("POST", "/threads/key:kept/stop", body);
  assert.match((await stop({ run: "r_2" })).json.message, /nothing was stopped/);
  assert.equal((await run("kept")).status, "running", "that was another run");
  assert.equal((await stop({ run: "r_1" })).status, 200);
  assert.equal((await run("kept")).reason, "stopped_by_user");
});
