// OpenAI's Responses API over a real connection: tools, reasoning, images, errors. Requests are checked against the
// types of OpenAI's own package.

import assert from "node:assert/strict";
import path from "node:path";
import { after, before } from "node:test";
import ts from "typescript";
import { OPENAI_KEY, OpenaiServer, refusal, responsesProblems } from "../worker/support/responses.mjs";
import { suite } from "../worker/support/suite.mjs";

/** @typedef {import("../worker/support/responses.mjs").Item} Item */

const openai = new OpenaiServer((asked) => answer(asked));
before(() => openai.listen());
const bobbin = suite({ vars: { OPENAI_API_KEY: OPENAI_KEY } });
after(() => openai.close());

/** All requests to the Responses API in this file. @type {string[]} */
const bodies = [];

/** @param {string} name @param {() => Promise<void>} body */
const test = (name, body) =>
  bobbin.test(name, async () => {
    openai.asked.length = 0;
    await body();
    assert.deepEqual(openai.refused, [], "every request was in order");
    for (const { path, text } of openai.asked) if (path === "/v1/responses") bodies.push(text);
  });

const lookup = bobbin.tool("lookup", ({ args }) => ({ body: { status: "success", result: `${args.word}: a spool` } }), {
  args: { type: "object", properties: { word: { type: "string" }, language: { type: "string" } }, required: ["word"] },
});

/** @param {string} name @param {object} model @param {object} prompt */
function agent(name, model = {}, prompt = {}) {
  bobbin.definitions.push(() => {
    const definition = { provider: "openai", model: `gpt-${name}`, baseUrl: openai.base, apiKeyEnv: "OPENAI_API_KEY" };
    bobbin.folder.write({
      models: {
        [`${name}_model`]: { ...definition, api: "responses", inputPrice: 1, cachedPrice: 0.1, outputPrice: 5, ...model },
      },
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
agent("reasoning", {}, { reasoning: { effort: "low" }, parallelToolCalls: true });
agent("whole", { capabilities: { supportsStreaming: false } });
agent("json", { capabilities: { supportsJsonMode: true, maxOutputTokens: 400 }, providerOptions: { reasoning: { summary: "auto" }, text: { verbosity: "low" } } },
  { tools: [], responseFormat: { type: "json", schema: { type: "object", properties: { a: { type: "string" } }, required: ["a"] } } });
agent("chat", { api: "auto" });
agent("guarded", { api: "chat", model: "deployment-a" }, { reasoning: { effort: "low" } });

/** With escapes that our serializers never write. */
const first = String.raw`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Look\u003a\ud83e\uddf5\/"}],"encrypted_content":"gAAAAABo\/x\u002b=="}`;
const second = `{"id":"rs_2", "type":"reasoning","summary":[],"encrypted_content":"gAAAAABsecond"}`;

let calls = 0;
const call = (/** @type {string} */ word) => ({ call: "lookup", id: `call_${++calls}`, args: { word } });

/**
 * Selects a response by the user's message and the number of results.
 * @param {import("../worker/support/responses.mjs").Asked} asked @returns {import("../worker/support/responses.mjs").Reply}
 */
function answer({ n, path, body }) {
  const history = body.input ?? body.messages;
  const at = history.findLastIndex((/** @type {any} */ item) => item.role === "user");
  const { content } = history[at];
  const said = typeof content === "string" ? content : content[0].text;
  const results = history.slice(at).filter((/** @type {any} */ item) => item.type === "function_call_output" || item.role === "tool").length;
  if (said === "fail" && n === 1) return { items: [{ text: "lost" }], fails: "server_error" };
  if (said === "long") return { items: [{ text: "Too lo" }], cut: "max_output_tokens" };
  if (said === "refused") return { status: 400, message: `bad request with ${OPENAI_KEY}` };
  if (!said.startsWith("look up")) return { items: [{ text: `${path}: ${said}` }] };
  if (results === 0) {
    return { items: [{ reasoning: first, summary: "Look:🧵/" }, { text: "A moment. ", phase: "commentary" }, call("bobbin"), call("loom")] };
  }
  if (results === 2) return { items: [{ reasoning: second }, { text: "And now." }, call("reed")] };
  return { items: [{ text: "Found.", phase: "final_answer" }] };
}

test("a plain answer, and what it cost", async () => {
  const thread = await bobbin.client.thread("plain");
  const { outcome, message } = await thread.ask("hello");
  assert.deepEqual([outcome, message.content], ["completed", "/v1/responses: hello"]);
  const { body } = openai.asked[0] ?? {};
  assert.deepEqual([body?.instructions, body?.store, body?.prompt_cache_key], ["You look things up.", false, thread.id]);
  assert.equal(body?.tools[0].strict, false, "a function with an optional argument is not strict");
  const { logs } = (await bobbin.client.send("GET", `/threads/${thread.id}/logs`)).json;
  const log = logs.find((/** @type {any} */ { type }) => type === "llm_request") ?? {};
  assert.deepEqual([log.input_tokens, log.cached_tokens, log.output_tokens], [100, 50, 10], JSON.stringify(logs));
  assert.deepEqual([log.response_id, log.response_model], ["resp_1", "gpt-plain-2026"], JSON.stringify(log));
  const cost = (50 * 1 + 30 * 0.25 + 50 * 0.1 + 10 * 5) / 1e6;
  assert.ok(Math.abs(log.cost_total - cost) < 1e-12, `${log.cost_total}`);
});

for (const name of ["reasoning", "whole"]) {
  test(`calls, and reasoning that comes back byte for byte (${name})`, async () => {
    const thread = await bobbin.client.thread(name);
    const { message } = await thread.ask("look up bobbins");
    assert.equal(message.content, "Found.");
    assert.deepEqual(lookup.received.slice(-3).map(({ body }) => body.args.word), ["bobbin", "loom", "reed"]);
    await thread.ask("thanks");
    await thread.ask("look up more");
    // The strict server has checked this, too. It is the point of this test.
    const held = openai.asked.map(({ text }) => [first, second].map((raw) => text.split(raw).length - 1));
    const exchange = [[0, 0], [1, 0], [1, 1]];
    assert.deepEqual(held, [...exchange, [0, 0], ...exchange]);
    const items = openai.asked[2]?.body.input.map((/** @type {any} */ item) => item.type ?? `${item.role} ${item.phase ?? ""}`.trim());
    assert.deepEqual(items, [
      "user", "reasoning", "assistant commentary", "function_call", "function_call",
      "function_call_output", "function_call_output", "reasoning", "assistant", "function_call", "function_call_output",
    ]);
    assert.deepEqual(openai.asked[0]?.body.reasoning, name === "reasoning" ? { effort: "low" } : undefined);
    const { messages } = (await bobbin.client.send("GET", `/threads/${thread.id}/messages`)).json;
    assert.ok(!JSON.stringify(messages).includes("gAAAA"), "shown by no route");
    const shown = messages.find((/** @type {any} */ { content }) => content === "A moment. ");
    assert.equal(shown.metadata.reasoning, "Look:🧵/");
  });
}

test("an image is shown, and an answer is held to JSON", async () => {
  const thread = await bobbin.client.thread("plain");
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const sent = await bobbin.client.send("POST", `/threads/${thread.id}/messages?wait=true`, {
    role: "user",
    content: "see",
    attachments: [{ name: "dot.png", mimeType: "image/png", data: png }],
  });
  assert.equal(sent.json.outcome, "completed", sent.text);
  const image = openai.asked.at(-1)?.body.input[0].content.find((/** @type {any} */ { type }) => type === "input_image");
  assert.equal(image?.image_url, `data:image/png;base64,${png}`);
  await (await bobbin.client.thread("json")).ask("hello");
  const { text, reasoning, max_output_tokens: most } = openai.asked.at(-1)?.body ?? {};
  assert.deepEqual([text.verbosity, text.format.type, text.format.strict, reasoning, most], ["low", "json_schema", true, { summary: "auto" }, 400]);
});

test("answers that are cut, that fail and are asked for again, and that are refused", async () => {
  const long = await (await bobbin.client.thread("plain")).ask("long");
  assert.equal(long.message.content, "Too lo");
  openai.asked.length = 0;
  const failed = await (await bobbin.client.thread("plain")).ask("fail");
  assert.deepEqual([failed.message.content, openai.asked.length], ["/v1/responses: fail", 2]);
  const refused = await (await bobbin.client.thread("plain")).ask("refused");
  assert.deepEqual([refused.outcome, refused.reason], ["failed", "model_error"]);
  assert.match(JSON.stringify(refused), /bad request with \[redacted\]/);
});

test("another address is spoken to in chat completions unless the model says", async () => {
  const { message } = await (await bobbin.client.thread("chat")).ask("hello");
  assert.equal(message.content, "/v1/chat/completions: hello");
});

test("chat completions that refuse functions with reasoning are asked for none, and remembered", async () => {
  const thread = await bobbin.client.thread("guarded");
  const { outcome, message } = await thread.ask("look up");
  assert.deepEqual([outcome, message.content], ["completed", "Found."]);
  const efforts = () => openai.asked.map(({ body }) => body.reasoning_effort);
  assert.deepEqual(efforts(), ["low", "none", "none", "none"], "one refusal, and no other");
  await (await bobbin.client.thread("guarded")).ask("hello");
  assert.deepEqual(efforts().slice(4), ["none"], "by all threads of the isolate");
  const { logs } = (await bobbin.client.send("GET", `/threads/${thread.id}/logs`)).json;
  const rows = logs.filter((/** @type {any} */ { type }) => type === "llm_request");
  const adjusted = rows.map((/** @type {any} */ row) => row.adjusted).filter(Boolean);
  assert.equal(adjusted.length, 1, JSON.stringify(rows));
  assert.match(adjusted[0], /"deployment-a" refuses functions .* set the model's `api` to "responses"/);
});

for (const name of ["openai", "openai-7"]) test(`what was sent is what OpenAI's own types allow: ${name}`, async () => {
  assert.ok(bodies.length >= 12, `${bodies.length} requests`);
  assert.deepEqual(wrongTypes(name, bodies), []);
  const [body = "{}"] = bodies;
  const wrong = (/** @type {object} */ more) => wrongTypes(name, [JSON.stringify({ ...JSON.parse(body), ...more })]).join("\n");
  assert.match(wrong({ messages: [] }), /messages/);
  assert.match(wrong({ input: [{ type: "function_call_output", call_id: "c" }] }), /output/);
  assert.match(wrong({ reasoning: { effort: "hardest" } }), /hardest/);
});

/** Returns TypeScript's errors about these bodies as parameters of a response. @param {string} openai  the package @param {string[]} bodies @returns {string[]} */
function wrongTypes(openai, bodies) {
  const name = path.resolve("tests/worker/bodies-of-requests.ts");
  const text =
    `import type { ResponseCreateParams } from "${openai}/resources/responses/responses";\n` +
    `export const bodies: ResponseCreateParams[] = [\n${bodies.join(",\n")},\n];\n`;
  /** @type {ts.CompilerOptions} */
  const options = {
    strict: true, noEmit: true, skipLibCheck: true, types: [], target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext,
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  host.getSourceFile = (file, version) => (file === name ? ts.createSourceFile(file, text, version) : getSourceFile.call(host, file, version));
  host.fileExists = (file) => file === name || fileExists.call(host, file);
  host.readFile = (file) => (file === name ? text : readFile.call(host, file));
  const program = ts.createProgram([name], options, host);
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
}

test("the strict server refuses what the provider refuses", async () => {
  const of = (/** @type {object} */ more, sent = [first]) => {
    const body = { model: "m", input: [{ role: "user", content: "x" }], ...more };
    const text = JSON.stringify(body).replaceAll(JSON.stringify(JSON.parse(first)), first);
    return responsesProblems(body, text, sent).join("\n");
  };
  const use = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
  const gave = { type: "function_call_output", call_id: "c", output: "y" };
  const thought = JSON.parse(first);
  const parameters = { type: "object", properties: { a: {} }, required: [] };
  assert.equal(of({}), "");
  assert.equal(of({ input: [thought, use, gave] }), "");
  for (const [more, expected] of /** @type {[object, RegExp][]} */ ([
    [{ messages: [] }, /Unknown parameter: 'messages'/],
    [{ input: [] }, /Missing required parameter: 'input'/],
    [{ input: [use] }, /No tool output found/],
    [{ input: [gave] }, /No tool call found/],
    [{ input: [thought] }, /without its required following item/],
    [{ input: [{ ...thought, encrypted_content: "other" }, use, gave] }, /could not be verified/],
    [{ input: [{ ...thought, encrypted_content: "" }, use, gave] }, /not found/],
    [{ tools: [{ type: "function", name: "f", parameters }] }, /Invalid schema/],
    [{ max_output_tokens: 3 }, />= 16/],
  ])) {
    assert.match(of(more), expected, JSON.stringify(more));
  }
  const tools = [{}];
  assert.match(refusal({ model: "gpt-5.4", tools, reasoning_effort: "low" }) ?? "", /not supported for gpt-5.4/);
  assert.match(refusal({ model: "gpt-5.6", tools }) ?? "", /not supported for gpt-5.6/);
  assert.equal(refusal({ model: "gpt-5.6", tools, reasoning_effort: "none" }) ?? refusal({ model: "gpt-5.4", tools }), undefined);
});
