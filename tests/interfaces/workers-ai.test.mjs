// Workers AI through its binding in workerd. Its requests go to a test server that responds like the real one.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before } from "node:test";
import { http } from "../../package/lib/node-http.mjs";
import { wholeBody } from "../worker/support/http.mjs";
import { suite } from "../worker/support/suite.mjs";

/** @typedef {Record<string, any>} Json */

/** The binding's requests. @type {{ model: string, body: Json }[]} */
const asked = [];
const server = http.createServer(async (request, response) => {
  response.on("error", () => {});
  const text = await wholeBody(request);
  if (text === undefined) return;
  const model = String(request.headers["cf-consn-model-id"]);
  const body = JSON.parse(text);
  asked.push({ model, body });
  answer(model, body.inputs, response);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());

const bobbin = suite({ vars: { BOBBIN_AI_ADDRESS: `127.0.0.1:${port}` }, flags: ["--workerd"] });
after(async () => {
  server.close();
  server.closeAllConnections();
  await once(server, "close");
});
before(() => {
  asked.length = 0;
});

/** @param {string} name @param {object} model */
function agent(name, model = {}) {
  bobbin.definitions.push(() => {
    bobbin.folder.write({
      models: { [`${name}_model`]: { provider: "workers-ai", model: `@cf/test/${name}`, ...model } },
      prompts: {
        [`${name}_prompt`]: {
          toolDescription: "x", model: `${name}_model`, includeChat: true, includePastTools: true, tools: ["lookup"], prompt: "You look things up.",
        },
      },
      agents: { [name]: { type: "ai_human", sideA: { prompt: `${name}_prompt` } } },
    });
  });
}

const lookup = bobbin.tool("lookup", ({ args }) => ({ body: { status: "success", result: `${args.word}: a spool` } }), {
  args: { type: "object", properties: { word: { type: "string" } }, required: ["word"] },
});
agent("new", { capabilities: { maxOutputTokens: 500 }, providerOptions: { temperature: 0.2, gateway: { id: "mine", skipCache: true } } });
agent("old");
agent("whole", { capabilities: { supportsStreaming: false } });
agent("busy");
agent("slow");

/** The number of closed connections. */
let gone = 0;

/** @param {string} model @param {Json} inputs @param {import("node:http").ServerResponse} response */
function answer(model, inputs, response) {
  const events = (/** @type {object[]} */ all) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of all) response.write(`data: ${JSON.stringify(event)}\n\n`);
    response.end("data: [DONE]\n\n");
  };
  const called = inputs.messages.at(-1).role === "tool";
  const usage = { prompt_tokens: 50, completion_tokens: 7, total_tokens: 57 };
  const chunk = (/** @type {object} */ delta, /** @type {string | null} */ finish = null) => ({
    id: "chatcmpl-1", object: "chat.completion.chunk", model, choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const args = JSON.stringify({ word: "bobbin" });
  if (model.endsWith("busy")) {
    response.writeHead(429, { "content-type": "application/json" });
    response.end(JSON.stringify({ internalCode: 3040, name: "AiError", description: "Capacity temporarily exceeded, please try again." }));
  } else if (model.endsWith("slow")) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: ${JSON.stringify(chunk({ content: "Wait" }))}\n\n`);
    response.once("close", () => (gone += 1));
  } else if (model.endsWith("whole")) {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(called ? { response: "Found.", tool_calls: [], usage } : { response: null, tool_calls: [{ name: "lookup", arguments: { word: "bobbin" } }], usage }));
  } else if (model.endsWith("old")) {
    const call = { response: "", tool_calls: [{ name: "lookup", arguments: { word: "bobbin" } }] };
    events(called ? [{ response: "Fou", p: "abc" }, { response: "nd.", p: "a" }, { response: "", usage }] : [call, { response: "", usage }]);
  } else if (called) {
    events([chunk({ content: "Fou" }), chunk({ content: "nd." }), chunk({}, "stop"), { ...chunk({}), choices: [], usage }]);
  } else {
    const call = { index: 0, id: "call_1", type: "function", function: { name: "lookup", arguments: args } };
    events([chunk({ tool_calls: [call] }), chunk({}, "tool_calls"), { ...chunk({}), choices: [], usage }]);
  }
}

for (const name of ["new", "old", "whole"]) {
  bobbin.test(`a model calls a tool and answers (${name})`, async () => {
    asked.length = 0;
    const thread = await bobbin.client.thread(name);
    const { outcome, message } = await thread.ask("look up");
    assert.deepEqual([outcome, message?.content], ["completed", "Found."]);
    assert.equal(lookup.received.at(-1)?.body.args.word, "bobbin");
    assert.deepEqual(asked.map(({ model }) => model), [`@cf/test/${name}`, `@cf/test/${name}`]);
    const { inputs, options } = asked[1]?.body ?? {};
    assert.deepEqual(inputs.messages.map((/** @type {Json} */ { role }) => role), ["system", "user", "assistant", "tool"]);
    assert.equal(inputs.tools[0].function.name, "lookup");
    assert.equal(inputs.stream, name !== "whole");
    for (const key of ["model", "user", "stream_options", "parallel_tool_calls", "gateway"]) assert.equal(inputs[key], undefined, key);
    if (name === "new") {
      assert.deepEqual([inputs.temperature, inputs.max_tokens], [0.2, 500]);
      assert.deepEqual(options.gateway, { id: "mine", skipCache: true });
    } else {
      assert.equal(options?.gateway, undefined);
    }
    const { logs } = (await bobbin.client.send("GET", `/threads/${thread.id}/logs`)).json;
    const row = logs.find((/** @type {Json} */ { type }) => type === "llm_request");
    assert.deepEqual([row.input_tokens, row.output_tokens], [50, 7]);
  });
}

bobbin.test("a model that is busy is asked again, and its words are told", async () => {
  asked.length = 0;
  const { outcome, reason, ...rest } = await (await bobbin.client.thread("busy")).ask("hello");
  assert.deepEqual([outcome, reason, asked.length], ["failed", "model_error", 2]);
  assert.match(JSON.stringify(rest), /Capacity temporarily exceeded/);
});

bobbin.test("a stop closes the request", async () => {
  const thread = await bobbin.client.thread("slow");
  const sent = await bobbin.client.send("POST", `/threads/${thread.id}/messages`, { role: "user", content: "hello" });
  assert.equal(sent.status, 202, sent.text);
  while (asked.at(-1)?.model !== "@cf/test/slow") await new Promise((resolve) => setTimeout(resolve, 20));
  await bobbin.client.send("POST", `/threads/${thread.id}/stop`);
  for (let waited = 0; gone === 0 && waited < 5000; waited += 20) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(gone, 1);
});
