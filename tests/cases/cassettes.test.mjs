// Cassettes: recorded from models and tools, replayed without them, and what is said of a request that is not there.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { readCase } from "../../package/test/cases.mjs";
import { difference, keyOf, rendered } from "../../package/test/rendered.mjs";
import { runCases } from "../../package/test/suite.mjs";

const FOLDER = fileURLToPath(new URL("cassettes", import.meta.url));
const APP = fileURLToPath(new URL("app", import.meta.url));
const PROJECT = fileURLToPath(new URL("../..", import.meta.url));
const KEY = "sk-of-nobody-5f2c";

const home = mkdtempSync(join(tmpdir(), "bobbin-cassettes-"));
after(() => rmSync(home, { recursive: true, force: true }));

/** What a model of the server's says to the last message. @param {any[]} messages */
function delta(messages) {
  const last = messages.at(-1);
  if (messages[0].content.startsWith("You judge")) {
    const polite = last.content.includes("polite");
    return { content: JSON.stringify({ score: polite ? 0.4 : 1, why: polite ? "It is curt." : "It does." }) };
  }
  if (last.role === "tool") {
    const [stock, time] = messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    return { content: `There are ${stock}, at ${time}.` };
  }
  const call = (/** @type {number} */ index, /** @type {string} */ name, /** @type {object} */ args) => ({ index, id: `call_${index}`, type: "function", function: { name, arguments: JSON.stringify(args) } });
  return { tool_calls: [call(0, "stock", { thing: "bobbins" }), call(1, "current_time", {})] };
}

/** A model and a tool, and what they were asked. */
async function serve() {
  /** @type {{ path: string, key: string | undefined, body: any }[]} */
  const asked = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    const body = JSON.parse(text);
    asked.push({ path: request.url ?? "", key: request.headers.authorization, body });
    if (request.url === "/stock") return void response.setHeader("content-type", "application/json").end("12");
    const chunks = [{ choices: [{ index: 0, delta: delta(body.messages) }] }, { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 } }];
    response.setHeader("content-type", "text/event-stream").end([...chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`), "data: [DONE]\n\n"].join(""));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}`, asked, stop: () => void (server.close(), server.closeAllConnections()) };
}

/** @param {string} folder of the case @param {{ agents?: string, record?: "all" | "missing", crash?: boolean, change?: (case_: any) => void }} [options] */
async function played(folder, { agents = APP, change = () => {}, ...options } = {}) {
  const case_ = readCase(join(folder, "stock.test.json"), folder);
  change(case_);
  const [result] = await runCases([case_], { agents, project: PROJECT, ...options });
  return /** @type {import("../../package/test/suite.mjs").Result} */ (result);
}

/** @param {import("../../package/test/suite.mjs").Result} result @param {boolean} soft */
const said = ({ failures }, soft) => failures.filter((one) => one.soft === soft).map(({ what }) => what);

test("a cassette of version 0.1.0 replays, also under crashes, and asks nobody", async () => {
  // The prompt has got tools since.
  const agents = join(home, "of-then");
  cpSync(APP, agents, { recursive: true });
  const clerk = join(agents, "prompts", "clerk.md");
  writeFileSync(clerk, readFileSync(clerk, "utf8").replace(', "mcp:desk"', ""));
  const result = await played(FOLDER, { agents, crash: true });
  assert.equal(result.state, "passed", JSON.stringify([result.failures, result.crash]));
  assert.deepEqual(said(result, true), ["the judge gives 0.4, below 0.9, to “Is it polite?”: It is curt."]);
  assert.ok(result.cost > 0 && (result.crash?.points ?? 0) >= 5);
});

describe("recorded and replayed", () => {
  const folder = join(home, "recorded");
  const cassette = join(folder, "stock.cassette.jsonl");
  const own = join(home, "agents");
  /** @type {Awaited<ReturnType<typeof serve>>} */
  let server;
  const { OPENAI_BASE_URL: url, OPENAI_API_KEY: key } = process.env;
  const here = (/** @type {any} */ case_) => (case_.vars = { STOCK_URL: server.url });

  before(async () => {
    server = await serve();
    process.env["OPENAI_BASE_URL"] = `${server.url}/v1`;
    process.env["OPENAI_API_KEY"] = KEY;
    cpSync(FOLDER, folder, { recursive: true });
    cpSync(APP, own, { recursive: true });
    rmSync(cassette);
  });
  after(() => {
    server.stop();
    for (const [name, value] of Object.entries({ OPENAI_BASE_URL: url, OPENAI_API_KEY: key })) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });

  test("without a cassette nothing is asked", async () => {
    assert.deepEqual(said(await played(folder, { change: here }), false), ["its cassette is empty; --record sends requests to the models, and records the responses"]);
    assert.equal(server.asked.length, 0);
  });

  test("what is recorded has no key and replays", async () => {
    const recorded = await played(folder, { record: "all", change: here });
    assert.equal(recorded.state, "passed", JSON.stringify(recorded.failures));
    assert.deepEqual(server.asked.map(({ path }) => path).sort(), ["/stock", ...Array.from({ length: 4 }, () => "/v1/chat/completions")]);
    assert.ok(server.asked.every(({ path, key, body }) => path === "/stock" || (key === `Bearer ${KEY}` && !("bobbin_prompt" in body))));
    const lines = readFileSync(cassette, "utf8");
    assert.ok(!lines.includes(KEY));
    const entries = lines.trim().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(entries.map(({ kind, prompt = "", tool = "" }) => [kind, prompt || tool]).map(String).sort(), ["cassette,", "model,bobbin_judge_fast", "model,bobbin_judge_fast", "model,clerk", "model,clerk", "tool,current_time", "tool,stock"]);
    const asked = server.asked.length;
    assert.equal((await played(folder, { change: here })).state, "passed");
    assert.equal(server.asked.length, asked, "nobody is asked");
  });

  test("a changed prompt fails with its line, and is recorded as missing", async () => {
    const path = join(own, "prompts/clerk.md");
    writeFileSync(path, readFileSync(path, "utf8").replace("Never promise a day.", "Never promise anything."));
    const failed = await played(folder, { agents: own, change: here });
    assert.deepEqual(said(failed, false), [
      "the cassette has no response to this request of the prompt “clerk”; system prompt, line 3: it was “Never promise a day.”, and is now “Never promise anything.” (--record=missing records what is missing, --record everything)",
    ]);
    const [asked, before] = [server.asked.length, readFileSync(cassette, "utf8").split("\n").length];
    assert.equal((await played(folder, { agents: own, record: "missing", change: here })).state, "passed");
    // The judge's requests are the same, and so is the tool's.
    assert.equal(server.asked.length, asked + 2);
    assert.equal(readFileSync(cassette, "utf8").split("\n").length, before + 2);
    for (const agents of [own, APP]) assert.equal((await played(folder, { agents, change: here })).state, "passed", "both are on it");
  });
});

test("one conversation is the same in each API, and differences are pointed at", () => {
  const tool = { name: "stock", description: "Counts.", schema: { type: "object", properties: { b: {}, a: {} } } };
  const system = "One.\nTwo.";
  const id = "7d0c6b1e-31c2-4a59-9d51-0f6f4b5f9a10";
  const chat = { model: "m", stream: true, user: id, messages: [{ role: "system", content: system }, { role: "user", content: "Hi" }], tools: [{ type: "function", function: { name: tool.name, description: tool.description, parameters: tool.schema } }] };
  const responses = { model: "m", store: false, instructions: system, input: [{ role: "user", content: [{ type: "input_text", text: "Hi" }] }], tools: [{ type: "function", name: tool.name, description: tool.description, parameters: tool.schema }] };
  const messages = { model: "m", system: [{ type: "text", text: system, cache_control: { type: "ephemeral" } }], messages: [{ role: "user", content: [{ type: "text", text: "Hi" }] }], tools: [{ name: tool.name, description: tool.description, input_schema: tool.schema }] };
  const keys = [chat, responses, messages].map((body) => keyOf(rendered(body)));
  assert.deepEqual(new Set(keys).size, 1, keys.join(" "));

  const of = (/** @type {string} */ content, more = {}) => rendered({ ...chat, messages: [...chat.messages, { role: "assistant", content }], ...more });
  const other = "0f6f4b5f-31c2-4a59-9d51-7d0c6b1e9a10";
  assert.equal(keyOf(of(`${id} m_7d0c6b1e_4 2026-11-26T10:00:00Z`)), keyOf(of(`${other} m_0f6f4b5f_4 2027-01-01T00:00:00Z`)), "ids and times do not count");
  assert.equal(difference(of("a"), of("a")), undefined);
  assert.equal(difference(of("a\nb"), of("a\nc")), "message 2 (assistant), line 2: it was “b”, and is now “c”");
  assert.equal(difference(of("a"), of("a", { temperature: 1 })), "option temperature is new: “1”");
  assert.equal(difference(of("a"), of("a", { tools: [] })), "tool stock is missing: it was “Counts.\n{\"properties\":{\"a\":{},\"b\":{}},\"type\":\"object\"}”");
  assert.equal(difference(of("a"), of("a", { model: "n" })), "the model was “m”, and is now “n”");
});
