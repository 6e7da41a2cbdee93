// Definitions are files. Another folder is served without a Rust build, invalid definitions are reported with file and
// field and are not served, and changed files are reloaded.

import assert from "node:assert/strict";
import { existsSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { after as afterAll, test as plainTest } from "node:test";
import { AgentsFolder } from "../worker/support/agents.mjs";
import { Client } from "../worker/support/client.mjs";
import { say, textOf } from "../worker/support/model.mjs";
import { until } from "../worker/support/poll.mjs";
import { builtFolder } from "../../scripts/compile.mjs";
import { Server, checkout, freePort } from "../worker/support/server.mjs";
import { suite } from "../worker/support/suite.mjs";

const bobbin = suite();
const test = bobbin.test.bind(bobbin);
const agent = bobbin.agent("changing", ({ messages }) => say(`system: ${textOf(messages[0]).trim()}`), {
  system: "You are the first version.",
});

/** Writes the agent's prompt. @param {string} system @param {object} [more] */
function rewrite(system, more = {}) {
  bobbin.folder.write({
    prompts: {
      changing_prompt: {
        toolDescription: "The prompt of changing.",
        model: "changing_model",
        includeChat: true,
        ...more,
        prompt: system,
      },
    },
  });
}

test("a changed file is taken up without a Rust build, and threads go on", async () => {
  const wasm = join(builtFolder("dist"), "index_bg.wasm");
  const built = statSync(wasm).mtimeMs;
  const thread = await bobbin.client.thread("changing");
  assert.equal((await thread.ask("hello")).message.content, "system: You are the first version.");
  rewrite("You are the second version.");
  await until("the second version answers", async () => {
    const fresh = await bobbin.client.send("POST", "/threads", { agent_id: "changing" });
    if (fresh.status !== 200) return false;
    const answer = await bobbin.client.send("POST", `/threads/${fresh.json.threadId}/messages?wait=true`, {
      role: "user",
      content: "hello",
    });
    return answer.json?.message?.content === "system: You are the second version.";
  }, { withinMs: 20_000 });
  const { message } = await thread.ask("again");
  assert.equal(message.content, "system: You are the second version.");
  assert.equal((await thread.messages()).length, 4, "the history is still there");
  assert.equal(statSync(wasm).mtimeMs, built);
});

test("a mistake in a changed file is printed, and what was served before goes on", async () => {
  const before = bobbin.server.printed.length;
  const printed = () => bobbin.server.printed.slice(before).join("");
  rewrite("You are the third version.", { model: "nonexistent_model" });
  await until("the mistake is printed", () => /nonexistent_model/.test(printed()), { withinMs: 20_000, describe: printed });
  assert.match(printed(), /changing_prompt\.md/, "the file");
  assert.match(printed(), /\bmodel\b/, "the field");
  const thread = await bobbin.client.thread("changing");
  assert.equal((await thread.ask("hello")).message.content, "system: You are the second version.");
  rewrite("You are the fourth version.");
  await until("the repaired file is taken up", async () => {
    const answer = await thread.ask("hello").catch(() => undefined);
    return answer?.message.content === "system: You are the fourth version.";
  }, { withinMs: 20_000 });
  assert.ok(agent.model.asked.length > 0);
});

/** @type {AgentsFolder[]} */
const folders = [];
/** @type {Server[]} */
const servers = [];
afterAll(async () => {
  for (const server of servers) await server.remove();
  for (const folder of folders) folder.remove();
});

plainTest("a folder with mistakes is not served: every mistake is printed with its file and field", { timeout: 120_000 }, async () => {
  const folder = new AgentsFolder({
    models: { slow: { provider: "steam", model: "engine" }, loop: { provider: "demo", model: "demo", fallbacks: ["nowhere"] } },
    prompts: {
      wrong: { prompt: "Hello.", toolDescription: "x", model: "missing_model", tools: ["missing_tool"] },
      typed: { prompt: "Hello.", toolDescription: "x", model: "loop", includeChat: "perhaps" },
    },
    tools: {
      redirecting: { description: "x", run: { http: { url: "http://{{env TARGET}}@example.com/" } } },
      keyword: { description: "x", args: { type: "object", properties: { a: { $ref: "#" } } }, run: { native: "x" } },
    },
    agents: {
      lost: { type: "ai_human", sideA: { prompt: "missing_prompt", maxSteps: 300 } },
      unknown: { type: "ai_human", sideA: { prompt: "typed" }, colour: "red" },
    },
  });
  folder.file("tools/broken.json", '{ "description": "x",\n  "run": }');
  folders.push(folder);
  const server = await Server.refused(folder.path);
  servers.push(server);
  const printed = server.output();
  for (const [file, field] of [
    ["slow.json", "provider"],
    ["loop.json", "fallbacks"],
    ["wrong.md", "model"],
    ["wrong.md", "tools"],
    ["typed.md", "includeChat"],
    ["keyword.json", "\\$ref"],
    ["lost.json", "prompt"],
    ["lost.json", "maxSteps"],
    ["unknown.json", "colour"],
    ["broken.json", "2"],
  ]) {
    const line = printed.split("\n").some((text) => text.includes(file ?? "") && new RegExp(field ?? "").test(text));
    assert.ok(line, `${file}: ${field} is named in\n${printed}`);
  }
  assert.ok(!/panicked|\.rs:\d/.test(printed));
  await assert.rejects(new Client(server.base).send("GET", "/agents"), /ECONNREFUSED/);
});

plainTest("the sample agents answer without any key", { timeout: 120_000 }, async () => {
  const agents = join(checkout, "agents");
  assert.ok(existsSync(agents));
  const server = new Server({ agents }, await freePort());
  servers.push(server);
  await server.up();
  const client = new Client(server.base);
  const thread = await client.thread("helper");
  const { message, outcome } = await thread.ask("Hello!");
  assert.equal(outcome, "completed");
  assert.match(message.content, /^You said: Hello!/);
  const counted = await thread.ask("count 5");
  assert.match(counted.message.content, /1.*2.*3.*4.*5/);
  const foreman = await client.thread("foreman");
  const pieces = ["6 * 7", "1 + 1", "9 - 4", "2 ^ 5"];
  const call = (/** @type {string} */ name, /** @type {object} */ args) => `call ${name} ${JSON.stringify(args)}`;
  const spawned = pieces.map((expression) => call("agent_spawn", { agent: "clerk", message: call("calculate", { expression }) }));
  const agentIds = pieces.map((_, n) => `subagent.${n + 1}`);
  await foreman.accepted([...spawned, call("agent_wait", { agentIds })].join("\n"));
  const last = await until("what the workers came to", async () => {
    const message = (await foreman.messages()).at(-1);
    return message.role === "assistant" && /agent_wait said/.test(message.content ?? "") && message.content;
  });
  const results = ["6 * 7 = 42", "1 + 1 = 2", "9 - 4 = 5", "2 ^ 5 = 32"];
  for (const result of results) assert.ok(last.includes(`"calculate said: ${result}"`), last);
});

plainTest("a folder that does not exist is said so", { timeout: 60_000 }, async () => {
  const folder = new AgentsFolder();
  rmSync(folder.path, { recursive: true });
  const server = await Server.refused(folder.path);
  servers.push(server);
  assert.match(server.output(), new RegExp(folder.path));
});
