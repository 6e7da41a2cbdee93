// A folder's offers to MCP clients besides its agents: tools, and prompts and resources that tools provide.

import assert from "node:assert/strict";
import { Mcp } from "../worker/support/mcp.mjs";
import { suite } from "../worker/support/suite.mjs";

const bobbin = suite({
  key: "key-of-all",
  vars: {
    BOBBIN_API_KEYS: "key-of-all=admin,key-of-alice=owner:alice,key-of-bob=owner:bob",
    BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef",
    BOBBIN_SURFACES: "mcp",
  },
});
const test = bobbin.test.bind(bobbin);

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const string = { type: "string" };
const schema = (/** @type {Record<string, object>} */ properties) => ({ type: "object", properties, required: Object.keys(properties) });
const gives = (/** @type {object} */ body) => ({ body });
const looked = bobbin.tool("look", ({ args }) => (args["word"] === "none" ? gives({ status: "error", error: "Nothing is known of it." }) : `found ${args["word"]}`), {
  args: schema({ word: string }),
  tier: "read_only",
});
bobbin.tool("count", () => gives({ status: "success", result: { found: 2 } }));
bobbin.tool("draw", () =>
  gives({
    status: "success",
    result: "Drawn.",
    attachments: [
      { name: "dot.png", mimeType: "image/png", data: PNG },
      { name: "about it.txt", mimeType: "text/plain", data: btoa("A dot.") },
    ],
  }),
);
const paid = bobbin.tool("pay", ({ args }) => `paid ${args["amount"]}`, { approval: "always", args: schema({ amount: { type: "number" } }) });
bobbin.tool("secret", () => "never");
bobbin.tool("review", ({ args }) => `Review ${args["lines"]} lines, and be ${args["tone"]}.`, {
  args: schema({ lines: { type: "integer" }, tone: { type: "string", enum: ["kind", "keen", "dry"] } }),
});
bobbin.tool("talk", () => gives({ messages: [{ role: "user", content: "Hello." }, { role: "assistant", content: "Hello to you." }] }));
bobbin.tool("order", ({ args }) => gives({ order: args["id"] }), { args: schema({ id: string }) });
bobbin.tool("logo", () => gives({ status: "success", attachments: [{ name: "dot.png", mimeType: "image/png", data: PNG }] }));
const form = { type: "object", properties: { name: string }, required: ["name"] };
const greeted = bobbin.tool("greet", ({ body }) => {
  const who = body["answers"]?.who;
  if (!who) return gives({ status: "error", error: "Whom?", error_code: "needs_input", error_data: { who: { message: "Who are you?", schema: form } } });
  return who.action === "accept" ? `Hello, ${who.content.name}.` : "Hello, whoever you are.";
});
bobbin.definitions.push(() =>
  bobbin.folder.write({
    settings: {
      mcp: {
        tools: ["look", "count", "draw", "pay", "greet"],
        prompts: ["review", "talk"],
        resources: [
          { uri: "shop://logo", name: "Logo", mimeType: "image/png", tool: "logo" },
          { uriTemplate: "shop://orders/{id}", name: "Order", mimeType: "application/json", tool: "order" },
        ],
      },
    },
  }),
);

const forms = { elicitation: { form: {} } };
const client = (key = "key-of-alice", capabilities = {}) => new Mcp(bobbin.server.base, { key, capabilities });
const legacy = (key = "key-of-alice") => new Mcp(bobbin.server.base, { key, legacy: true });
const eras = () => [client(), legacy()];

test("tools that the settings name are listed and called, in both eras, and no others", async () => {
  for (const alice of eras()) {
    const { tools } = (await alice.send("tools/list")).result;
    assert.deepEqual(tools.map((/** @type {any} */ { name }) => name), ["look", "count", "draw", "pay", "greet"]);
    assert.deepEqual(tools[0].annotations, { readOnlyHint: true, idempotentHint: true });
    assert.deepEqual([tools[3].annotations, tools[3].inputSchema.required], [{ readOnlyHint: false, idempotentHint: false }, ["amount"]]);
    const { result, text } = await alice.call("look", { word: "tea" });
    assert.deepEqual([result.content, result.isError], [[{ type: "text", text: "found tea" }], false], text);
    assert.deepEqual((await alice.call("count")).result.structuredContent, { found: 2 });
    const failed = (await alice.call("look", { word: "none" })).result;
    assert.deepEqual([failed.content[0].text, failed.isError], ["Nothing is known of it.", true]);
    const before = looked.received.length;
    const wrong = (await alice.call("look", { word: 5 })).result;
    assert.deepEqual([wrong.isError, looked.received.length], [true, before], "what does not fit is not called");
    assert.equal((await alice.call("secret")).error.code, -32602);
  }
});

test("a call has a thread of its own, which is its caller's", async () => {
  const { result } = await client().call("look", { word: "tea" });
  const thread = result._meta["dev.bobbin/thread"];
  const found = await bobbin.as("key-of-alice").send("GET", `/threads/${thread}`);
  assert.equal(found.status, 200);
  assert.equal((await bobbin.as("key-of-bob").send("GET", `/threads/${thread}`)).status, 404);
  const { agents } = (await bobbin.as("key-of-alice").send("GET", "/agents")).json;
  assert.deepEqual(agents, [], "the agent of a call is nobody's to see");
  const message = await bobbin.as("key-of-alice").send("POST", `/threads/${thread}/messages?wait=true`, { role: "user", content: "And now?" });
  assert.match(message.text, /definition_missing/, "it has no model to answer");
});

test("a call that its client names is made once", async () => {
  const meta = { "dev.bobbin/call": "call-1" };
  const before = looked.received.length;
  const results = [];
  for (let times = 0; times < 3; times += 1) results.push((await client().call("look", { word: "once" }, {}, { meta })).result);
  assert.equal(looked.received.length, before + 1);
  assert.deepEqual(results[1], results[0]);
  assert.deepEqual(results[2], results[0]);
  const other = await client().call("look", { word: "twice" }, {}, { meta });
  assert.equal(other.result.isError, true, "another call of the same name is refused");
});

test("a call that needs an approval asks for it", async () => {
  const alice = client("key-of-alice", forms);
  const before = paid.received.length;
  const parked = (await alice.call("pay", { amount: 5 })).result;
  assert.equal(parked.resultType, "input_required", JSON.stringify(parked));
  const [[wait, asked] = []] = Object.entries(parked.inputRequests);
  assert.match(/** @type {any} */ (asked).params.message, /pay\(\{"amount":5\}\)/);
  const more = { inputResponses: { [String(wait)]: { action: "accept", content: { approve: true } } }, requestState: parked.requestState };
  assert.equal((await alice.call("pay", { amount: 6 }, more)).error.code, -32602, "the state is of another call");
  assert.equal((await client("key-of-bob", forms).call("pay", { amount: 5 }, more)).error.code, -32602, "and of another caller");
  assert.equal(paid.received.length, before);
  for (const _ of [1, 2]) {
    assert.deepEqual((await alice.call("pay", { amount: 5 }, more)).result.content, [{ type: "text", text: "paid 5" }]);
  }
  assert.equal(paid.received.length, before + 1);
});

test("a client without forms passes the answer on", async () => {
  const alice = legacy();
  const parked = (await alice.call("pay", { amount: 7 })).result;
  const { thread, outcome, pending } = parked.structuredContent;
  assert.deepEqual([outcome, pending[0].tool], ["parked", "pay"]);
  await alice.call("thread_respond", { thread, responses: [{ id: pending[0].id, decision: "approve" }] });
  const { structuredContent } = (await alice.call("thread_get", { thread, wait_ms: 20_000 })).result;
  assert.deepEqual([structuredContent.state, structuredContent.reply], ["idle", "paid 7"]);
});

test("files of a result are images, and resources that can be read", async () => {
  for (const alice of eras()) {
    const { content } = (await alice.call("draw")).result;
    assert.deepEqual(content.slice(0, 2), [{ type: "text", text: "Drawn." }, { type: "image", data: PNG, mimeType: "image/png" }]);
    const { uri } = content[2].resource;
    assert.deepEqual(content[2].resource, { uri, mimeType: "text/plain", text: "A dot." });
    const read = (await alice.send("resources/read", { uri })).result;
    assert.deepEqual(read.contents, [{ uri, mimeType: "text/plain", text: "A dot." }]);
    for (const [by, address] of /** @type {[Mcp, string][]} */ ([[alice, `${uri}x`], [client("key-of-bob"), uri]])) {
      const { error } = await by.send("resources/read", { uri: address });
      assert.deepEqual([error.code, error.data], [by.legacy ? -32002 : -32602, { uri: address }]);
    }
  }
});

test("prompts are what their tools make", async () => {
  for (const alice of eras()) {
    const { prompts } = (await alice.send("prompts/list")).result;
    assert.deepEqual(prompts.map((/** @type {any} */ { name }) => name), ["review", "talk"]);
    assert.deepEqual(prompts[0].arguments, [{ name: "lines", required: true }, { name: "tone", required: true }]);
    const made = await alice.send("prompts/get", { name: "review", arguments: { lines: "5", tone: "kind" } });
    assert.deepEqual(made.result.messages, [{ role: "user", content: { type: "text", text: "Review 5 lines, and be kind." } }], made.text);
    const talk = (await alice.send("prompts/get", { name: "talk" })).result.messages;
    assert.deepEqual(talk.map((/** @type {any} */ { role }) => role), ["user", "assistant"]);
    assert.equal((await alice.send("prompts/get", { name: "review", arguments: { lines: "many" } })).error.code, -32602);
    assert.equal((await alice.send("prompts/get", { name: "look" })).error.code, -32602, "a tool is no prompt");
    const ref = { type: "ref/prompt", name: "review" };
    const { completion } = (await alice.send("completion/complete", { ref, argument: { name: "tone", value: "ke" } })).result;
    assert.deepEqual(completion.values, ["keen"]);
  }
});

test("resources are read by their tools", async () => {
  for (const alice of eras()) {
    const { resources } = (await alice.send("resources/list")).result;
    assert.deepEqual(resources, [{ name: "Logo", description: "The test tool logo.", mimeType: "image/png", uri: "shop://logo" }]);
    const { resourceTemplates } = (await alice.send("resources/templates/list")).result;
    assert.ok(resourceTemplates.some((/** @type {any} */ { uriTemplate }) => uriTemplate === "shop://orders/{id}"));
    const logo = (await alice.send("resources/read", { uri: "shop://logo" })).result;
    assert.deepEqual(logo.contents, [{ uri: "shop://logo", mimeType: "image/png", blob: PNG }]);
    assert.deepEqual([logo.ttlMs, logo.cacheScope], alice.legacy ? [undefined, undefined] : [0, "private"]);
    const uri = "shop://orders/a%20b";
    const order = (await alice.send("resources/read", { uri })).result;
    assert.deepEqual(order.contents, [{ uri, mimeType: "application/json", text: '{"order":"a b"}' }]);
    assert.equal((await alice.send("resources/read", { uri: "shop://other" })).error.code, alice.legacy ? -32002 : -32602);
  }
});

test("what was said in a thread is a resource of its owner", async () => {
  const { result } = await client().call("look", { word: "tea" });
  const uri = `thread://${result._meta["dev.bobbin/thread"]}/transcript`;
  const read = (await client().send("resources/read", { uri })).result;
  assert.deepEqual([read.contents[0].uri, read.contents[0].mimeType], [uri, "text/markdown"]);
  assert.equal((await client("key-of-bob").send("resources/read", { uri })).error.code, -32602);
});

test("what a tool asks is a form under its own name, until the answer fits", async () => {
  const alice = client("key-of-alice", forms);
  const asked = (await alice.call("greet")).result;
  assert.deepEqual(asked.inputRequests, { who: { method: "elicitation/create", params: { mode: "form", message: "Who are you?", requestedSchema: form } } });
  const wrong = { inputResponses: { who: { action: "accept", content: { name: 5 } } }, requestState: asked.requestState };
  const again = (await alice.call("greet", {}, wrong)).result;
  assert.deepEqual([again.resultType, Object.keys(again.inputRequests)], ["input_required", ["who"]], JSON.stringify(again));
  const before = greeted.received.length;
  const right = { inputResponses: { who: { action: "accept", content: { name: "Ada" } } }, requestState: again.requestState };
  for (const _ of [1, 2]) assert.equal((await alice.call("greet", {}, right)).result.content[0].text, "Hello, Ada.");
  assert.equal(greeted.received.length, before + 1, "it was called once more, with the answer");
  const declined = (await alice.call("greet")).result;
  const no = { inputResponses: { who: { action: "decline" } }, requestState: declined.requestState };
  assert.equal((await alice.call("greet", {}, no)).result.content[0].text, "Hello, whoever you are.");
  const atOnce = { inputResponses: { who: { action: "accept", content: { name: "Bob" } }, other: { action: "accept", content: {} } } };
  assert.equal((await alice.call("greet", {}, atOnce)).result.content[0].text, "Hello, Bob.", "what is known to be asked may be answered at once");
  for (const who of [{ action: "accept", content: { name: 5 } }, 7]) {
    assert.equal((await alice.call("greet", {}, { inputResponses: { who } })).result.resultType, "input_required", JSON.stringify(who));
  }
  const told = (await legacy().call("greet")).result;
  assert.deepEqual([told.structuredContent.outcome, told.structuredContent.pending[0].kind], ["parked", "elicitation"]);
});

test("a client of the older revisions that shows forms is asked on the stream, and answers in a request of its own", async () => {
  const alice = legacy();
  const hello = { protocolVersion: "2025-11-25", capabilities: { elicitation: {} }, clientInfo: { name: "t", version: "1" } };
  const begun = await alice.send("initialize", hello);
  const session = { "mcp-session-id": String(begun.headers["mcp-session-id"]) };
  assert.match(session["mcp-session-id"], /^forms-[0-9a-f]{32}$/);
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25", ...alice.credentials, ...session };
  /** Calls the tool, answers its question with `result`, and returns the requests and the result. @param {object} result */
  const greet = async (result) => {
    const body = JSON.stringify(alice.message("tools/call", { name: "greet", arguments: {} }));
    const answer = await fetch(`${bobbin.server.base}/mcp`, { method: "POST", headers, body });
    const asked = /** @type {any[]} */ ([]);
    let [text, at] = ["", 0];
    for await (const chunk of /** @type {AsyncIterable<Uint8Array>} */ (answer.body)) {
      text += new TextDecoder().decode(chunk);
      for (const [line, json] of text.slice(at).matchAll(/^data: (\{.*\})\n/gm)) {
        at = text.indexOf(line, at) + line.length;
        const message = JSON.parse(json ?? "");
        if (message.result) return { asked, result: message.result };
        if (message.method !== "elicitation/create") continue;
        asked.push(message);
        const forged = await alice.raw({ jsonrpc: "2.0", id: `${message.id}x`, result }, session);
        assert.equal(forged.status, 400, forged.text);
        const other = new Mcp(bobbin.server.base, { key: "key-of-bob", legacy: true });
        assert.equal((await other.raw({ jsonrpc: "2.0", id: message.id, result }, session)).status, 400, "it is not for others to answer");
        const taken = await alice.raw({ jsonrpc: "2.0", id: message.id, result }, session);
        assert.deepEqual([taken.status, taken.text], [202, ""]);
      }
    }
    assert.fail(`the stream ended without a result: ${text}`);
  };
  const accepted = await greet({ action: "accept", content: { name: "Ada" } });
  assert.deepEqual([accepted.asked.length, accepted.asked[0].params.requestedSchema], [1, form]);
  assert.equal(accepted.result.content[0].text, "Hello, Ada.");
  for (const no of [{ action: "decline" }, { action: "cancel" }, { action: "accept", content: { name: 5 } }]) {
    assert.equal((await greet(no)).result.content[0].text, "Hello, whoever you are.", JSON.stringify(no));
  }
  const none = await alice.raw({ jsonrpc: "2.0", id: 7, result: {} }, session);
  assert.equal(none.status, 400, "nothing was asked under this id");
});
