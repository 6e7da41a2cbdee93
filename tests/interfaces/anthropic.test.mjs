// Anthropic's Messages API over a real connection: tools, thinking, images, errors.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { ANTHROPIC_KEY, AnthropicServer, anthropicProblems, raw } from "../worker/support/anthropic.mjs";
import { suite } from "../worker/support/suite.mjs";

/** @typedef {import("../worker/support/anthropic.mjs").Block} Block */

const claude = new AnthropicServer((asked) => answer(asked));
before(() => claude.listen());
const bobbin = suite({ vars: { ANTHROPIC_API_KEY: ANTHROPIC_KEY } });
after(() => claude.close());

/** @param {string} name @param {() => Promise<void>} body */
const test = (name, body) =>
  bobbin.test(name, async () => {
    claude.asked.length = 0;
    await body();
    assert.deepEqual(claude.refused, [], "every request was in order");
  });

const lookup = bobbin.tool("lookup", ({ args }) => ({ body: { status: "success", result: `${args.word}: a spool` } }), {
  args: { type: "object", properties: { word: { type: "string" } }, required: ["word"] },
});

/** @param {string} name @param {object} model @param {object} prompt */
function agent(name, model = {}, prompt = {}) {
  bobbin.definitions.push(() => {
    const definition = { provider: "anthropic", model: `claude-${name}`, baseUrl: claude.base, apiKeyEnv: "ANTHROPIC_API_KEY" };
    bobbin.folder.write({
      models: { [`${name}_model`]: { ...definition, inputPrice: 3, cachedPrice: 0.3, outputPrice: 15, ...model } },
      prompts: {
        [`${name}_prompt`]: {
          toolDescription: "x", model: `${name}_model`, includeChat: true, includePastTools: true, tools: ["lookup"],
          ...prompt, prompt: "You look things up.",
        },
      },
      agents: { [name]: { type: "ai_human", sideA: { prompt: `${name}_prompt` } } },
    });
  });
}

agent("plain", { capabilities: { supportsImages: true } });
agent("thinking", {}, { reasoning: { effort: "low" }, parallelToolCalls: true });
agent("whole", { capabilities: { supportsStreaming: false } }, { reasoning: { maxTokens: 2000 } });

/** With escapes that our serializers never write. @type {Block[]} */
const thoughts = [
  { thinking: String.raw`Look\u003a\ud83e\uddf5\/`, signature: "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk/+==" },
  { redacted: "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpP" },
];
const second = { thinking: "Not enough\\u0021", signature: "Second+/=" };

let calls = 0;
const call = (/** @type {string} */ word) => ({ call: "lookup", id: `toolu_${++calls}`, args: { word } });

/** Selects a response by the user's message and the number of results. @param {import("../worker/support/anthropic.mjs").Asked} asked */
function answer({ n, body }) {
  const blocks = body.messages.flatMap((/** @type {any} */ message) => (message.role === "user" ? message.content : []));
  const said = blocks.findLast((/** @type {any} */ { type }) => type === "text")?.text ?? "";
  const results = blocks.slice(blocks.findLastIndex((/** @type {any} */ { type }) => type === "text") + 1).length;
  if (said === "busy" && n === 1) {
    return { status: 429, type: "rate_limit_error", message: "slow down", headers: { "retry-after": "1" } };
  }
  if (said === "overloaded" && n === 1) return { blocks: [{ text: "lost" }], breaks: "overloaded_error" };
  if (said === "refused") return { status: 400, type: "invalid_request_error", message: `bad request with ${ANTHROPIC_KEY}` };
  if (!said.startsWith("look up")) return { blocks: [{ text: `You wrote: ${said}` }] };
  const thinks = body.thinking !== undefined;
  if (results === 0) return { blocks: [...(thinks ? thoughts : []), { text: "A moment. " }, call("bobbin"), call("loom")] };
  if (results === 2) return { blocks: [{ text: "And " }, ...(thinks ? [second] : []), { text: "now." }, call("reed")] };
  return { blocks: [{ text: "Found." }] };
}

test("a plain answer, and what it cost", async () => {
  const thread = await bobbin.client.thread("plain");
  const { outcome, message } = await thread.ask("hello");
  assert.deepEqual([outcome, message.content], ["completed", "You wrote: hello"]);
  assert.deepEqual(claude.asked[0]?.body.system, [
    { type: "text", text: "You look things up.", cache_control: { type: "ephemeral" } },
  ]);
  assert.equal(claude.asked[0]?.body.metadata.user_id, thread.id);
  const { logs } = (await bobbin.client.send("GET", `/threads/${thread.id}/logs`)).json;
  const log = logs.find((/** @type {any} */ { type }) => type === "llm_request");
  const { input_tokens, cached_tokens, output_tokens, cost_total } = log ?? {};
  assert.deepEqual([input_tokens, cached_tokens, output_tokens], [100, 50, 10], JSON.stringify(logs));
  assert.ok(Math.abs(cost_total - (50 * 3 + 30 * 0.75 + 50 * 0.3 + 10 * 15) / 1e6) < 1e-12, `${cost_total}`);
});

for (const name of ["thinking", "whole"]) {
  test(`calls, and thinking that comes back byte for byte (${name})`, async () => {
    const thread = await bobbin.client.thread(name);
    const { message } = await thread.ask("look up bobbins");
    assert.equal(message.content, "Found.");
    const words = lookup.received.slice(-3).map(({ body }) => body.args.word);
    assert.deepEqual(words, ["bobbin", "loom", "reed"]);
    await thread.ask("thanks");
    await thread.ask("look up more");
    const asked = claude.asked.filter(({ body }) => body.model === `claude-${name}`);
    // The strict server has checked this, too. It is the point of this test.
    const held = asked.map(({ text }) => [...thoughts, second].map((block) => text.split(raw(block)).length - 1));
    const exchange = [[0, 0, 0], [1, 1, 0], [1, 1, 1]];
    assert.deepEqual(held, [...exchange, [0, 0, 0], ...exchange]);
    const between = asked[2]?.body.messages.at(-2).content.map((/** @type {any} */ { type }) => type);
    assert.deepEqual(between, ["text", "thinking", "text", "tool_use"], "what was thought in between stays in between");
    const { messages } = (await bobbin.client.send("GET", `/threads/${thread.id}/messages`)).json;
    assert.ok(!JSON.stringify(messages).includes("signature") && !JSON.stringify(messages).includes("EmwKAhg"));
    const shown = messages.find((/** @type {any} */ { content }) => content === "A moment. ");
    assert.equal(shown.metadata.reasoning, "Look:🧵/");
  });
}

test("an image is shown", async () => {
  const thread = await bobbin.client.thread("plain");
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const sent = await bobbin.client.send("POST", `/threads/${thread.id}/messages?wait=true`, {
    role: "user",
    content: "see",
    attachments: [{ name: "dot.png", mimeType: "image/png", data: png }],
  });
  assert.equal(sent.json.outcome, "completed", sent.text);
  const image = claude.asked.at(-1)?.body.messages[0].content.find((/** @type {any} */ { type }) => type === "image");
  assert.deepEqual(image?.source, { type: "base64", media_type: "image/png", data: png });
});

test("errors: asked again after the wait that was wished for, after an error in the stream, and not at all", async () => {
  const busy = await (await bobbin.client.thread("plain")).ask("busy");
  assert.equal(busy.message.content, "You wrote: busy");
  const [first, again] = claude.asked;
  assert.ok(first && again && again.at - first.at >= 950, "Retry-After was honoured");
  claude.asked.length = 0;
  const overloaded = await (await bobbin.client.thread("plain")).ask("overloaded");
  assert.deepEqual([overloaded.message.content, claude.asked.length], ["You wrote: overloaded", 2]);
  claude.asked.length = 0;
  const refused = await (await bobbin.client.thread("plain")).ask("refused");
  assert.deepEqual([refused.outcome, refused.reason, claude.asked.length], ["failed", "model_error", 1]);
  assert.match(JSON.stringify(refused), /bad request with \[redacted\]/);
});

const user = (/** @type {any[]} */ ...content) => ({ role: "user", content });
const reply = (/** @type {any[]} */ ...content) => ({ role: "assistant", content });
const said = { type: "text", text: "x" };
const use = { type: "tool_use", id: "t1", name: "f", input: {} };
const gave = { type: "tool_result", tool_use_id: "t1", content: "y" };
const thought = { type: "thinking", thinking: "z", signature: "S" };
const tools = [{ name: "f", description: "d", input_schema: { type: "object" } }];

test("the strict server refuses what the provider refuses", async () => {
  const sent = new Map([["t1", [JSON.stringify(thought)]]]);
  const of = (/** @type {object} */ more) => {
    const body = { model: "m", max_tokens: 4000, messages: [user(said)], ...more };
    return anthropicProblems(body, JSON.stringify(body), sent).join("\n");
  };
  const thinking = { type: "enabled", budget_tokens: 2000 };
  assert.equal(of({}), "");
  assert.equal(of({ tools, thinking, messages: [user(said), reply(thought, use), user(gave, said)] }), "");
  for (const [more, expected] of /** @type {[object, RegExp][]} */ ([
    [{ max_tokens: undefined }, /max_tokens/],
    [{ stop: ["x"] }, /stop: Extra/],
    [{ messages: [user({ ...said, name: "x" })] }, /text\.name: Extra/],
    [{ messages: [user(said), user(said)] }, /alternate/],
    [{ messages: [reply(said), user(said)] }, /alternate/],
    [{ messages: [user(said), reply(said)] }, /last message/],
    [{ tools, messages: [user(said), reply(use), user(said)] }, /without tool_result/],
    [{ tools, messages: [user(said), reply(use), user(said, gave)] }, /results come first/],
    [{ tools, messages: [user(gave)] }, /unexpected tool_use_id/],
    [{ messages: [user({ ...said, text: " " })] }, /non-empty/],
    [{ thinking: { type: "enabled", budget_tokens: 4000 } }, /greater than thinking/],
    [{ thinking, temperature: 0.5 }, /temperature/],
    [{ thinking, tools, messages: [user(said), reply(use), user(gave)] }, /left out|must start/],
    [{ thinking, tools, messages: [user(said), reply({ ...thought, thinking: "w" }, use), user(gave)] }, /modified/],
  ])) {
    assert.match(of(more), expected, JSON.stringify(more));
  }
});
