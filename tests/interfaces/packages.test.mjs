// Packages of agents: they have their own names, and only their entry agents are visible from outside.

import assert from "node:assert/strict";
import { offered, say, shown, use } from "../worker/support/model.mjs";
import { until } from "../worker/support/poll.mjs";
import { suite } from "../worker/support/suite.mjs";

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

const clerk = bobbin.models.model("packed_clerk", ({ messages, last }) => {
  if (messages.at(-1)?.role === "tool") return say(`told: ${last}`);
  // The model's own code calls a tool of its prompt.
  if (last === "code") return use({ name: "execute_code", args: { code: "return await tools.acme__same({});" } });
  return use({ name: ["ask", "helper"].includes(last) ? `acme__${last}` : "acme__rate", args: {} });
});
const ask = bobbin.models.model("packed_ask", () => say("asked of the package"));
bobbin.models.model("packed_helper", () => use({ name: "acme__finish", args: {} }));
const own = bobbin.agent(
  "own",
  ({ messages, last }) => {
    if (messages.at(-1)?.role === "tool") return say(`told: ${last}`);
    return use({ name: last === "queue" ? "queues" : "tries", args: {} });
  },
  { tools: ["tries", "queues"] },
);

const desk = bobbin.agent("desk", () => use({ name: "acme__clerk", args: {} }), { tools: ["acme/clerk"] });
const installed = bobbin.models.model("packed_installed", ({ messages, last }) =>
  messages.at(-1)?.role === "tool" ? say(`told: ${last}`) : use({ name: "installed_one__path", args: {} }),
);

const any = { type: "object" };
const about = { name: "@corp/standardagent-acme", version: "1.2.0", author: "Ada", license: "MIT", standardagent: { entryAgents: ["clerk"] } };

bobbin.definitions.push(() => {
  const { folder } = bobbin;
  const root = "packages/acme/";
  const code = (/** @type {string} */ file) => ({ description: "Code.", args: any, run: { code: file } });
  folder.json(`${root}package.json`, about);
  folder.file(`${root}index.js`, 'require("node:fs");');
  folder.write(
    {
      models: { fast: bobbin.models.definition("packed_clerk"), other: bobbin.models.definition("packed_ask"), third: bobbin.models.definition("packed_helper") },
      prompts: {
        clerk: { toolDescription: "d", model: "fast", includeChat: true, includePastTools: true, tools: ["rate", "ask", "shared", "helper", "same", "execute_code"], hooks: ["sign"], prompt: "You are the clerk." },
        help: { toolDescription: "d", model: "third", tools: ["finish"], prompt: "You help." },
        ask: { toolDescription: "Asks.", model: "other", prompt: "You are asked." },
      },
      agents: {
        clerk: { sideA: { prompt: "clerk" }, title: "Clerk", exposeAsTool: true, toolDescription: "The clerk." },
        helper: {
          type: "dual_ai",
          sideA: { prompt: "help", sessionStop: "finish" },
          sideB: { prompt: "help" },
          exposeAsTool: true,
          toolDescription: "Helps.",
          maxSessionTurns: 4,
        },
        inner: { sideA: { prompt: "ask" } },
      },
      tools: { rate: code("rate.ts"), same: code("same.ts"), finish: code("finish.ts") },
      effects: { note: code("note.ts") },
      hooks: { sign: { hook: "after_system_message", run: { code: "sign.ts" } } },
    },
    `${root}agents/`,
  );
  folder.file(
    `${root}agents/tools/rate.ts`,
    `import { percent } from "../lib/percent";
    export default async (state) => {
      const text = async (name) => (await state.invokeTool(name, {})).result;
      return {
        percent: percent(4), same: await text("same"), shared: await text("shared"),
        prompt: (await state.loadPrompt("ask")).name, model: (await state.loadModel("fast")).name, agent: (await state.loadAgent("inner")).name,
        effect: (await state.scheduleEffect("note", { by: "tool" })).length > 0,
      };
    };`,
  );
  folder.file(`${root}agents/lib/percent.ts`, "export const percent = (n: number): string => `${n} %`;");
  folder.file(`${root}agents/tools/same.ts`, "export default () => 'of the package';");
  folder.file(`${root}agents/tools/finish.ts`, "export default async (state) => (await (await state.getParentThread()).invokeTool('same', {})).result;");
  folder.file(`${root}agents/effects/note.ts`, "export default async (state, { by }) => { await state.setValue(`note-${by}`, (await state.invokeTool('same', {})).result); };");
  folder.file(`${root}agents/hooks/sign.ts`, "export default async (state, text) => `${text} Signed ${(await state.invokeTool('same', {})).result}.`;");
  folder.file(
    `${root}agents/api/rates.ts`,
    "export default async (request, state) => ({ same: (await state.invokeTool('same', {})).result, id: await state.scheduleEffect('note', { by: 'endpoint' }) });",
  );
  const modules = "node_modules/installed.one/";
  folder.json("package.json", { dependencies: { "installed.one": "1" } });
  folder.json(`${modules}package.json`, { name: "installed.one", standardagent: { entryAgents: ["guide"] } });
  folder.file(`${modules}scripts/release.js`, 'require("node:fs");');
  folder.file(`${modules}tools/path.ts`, "export default (): string => new URL('/x', 'http://a.example').pathname;");
  folder.write(
    {
      models: { fast: bobbin.models.definition("packed_installed") },
      prompts: { guide: { toolDescription: "d", model: "fast", includeChat: true, tools: ["path"], prompt: "You guide." } },
      agents: { guide: { sideA: { prompt: "guide" } } },
      tools: { path: code("path.ts") },
    },
    modules,
  );
  folder.write({
    tools: { same: code("same.ts"), shared: code("shared.ts"), tries: code("tries.ts"), queues: code("queues.ts") },
  });
  folder.file("tools/same.ts", "export default () => 'of the application';");
  folder.file("tools/shared.ts", "export default async (state) => `shared: ${(await state.invokeTool('same', {})).result}`;");
  folder.file("tools/queues.ts", "export default (state) => state.queueTool('acme__rate', {});");
  folder.file(
    "tools/tries.ts",
    `export default async (state) => {
      const told = async (work) => { try { return await work(); } catch (error) { return error.message; } };
      const result = await state.invokeTool("acme/rate", {});
      return {
        invoked: result.error ?? result.result, code: (await state.invokeTool("acme__rate", {})).status,
        loaded: await told(() => state.loadPrompt("acme/ask")), agent: (await state.loadAgent("acme/clerk")).name,
        effect: typeof (await state.scheduleEffect("acme/note", { by: "application" })),
        names: await state.getAgentNames(),
      };
    };`,
  );
});

/** @param {import("../worker/support/client.mjs").Thread} thread @param {string} key */
const value = (thread, key) =>
  until(`the value ${key}`, async () => (await thread.send("GET", `/kv?key=${key}`)).json?.value);

/** @param {string} content */
const told = (content) => JSON.parse(content.replace(/^told: /, ""));

test("an agent of a package works with what is its own before it works with what is the application's", async () => {
  const thread = await bobbin.client.thread("acme/clerk");
  const { message } = await thread.ask("rate");
  assert.deepEqual(told(message.content), {
    percent: "4 %",
    same: "of the package",
    shared: "shared: of the application",
    prompt: "acme__ask",
    model: "acme__fast",
    agent: "acme__inner",
    effect: true,
  });
  assert.deepEqual(offered(clerk.asked[0]), ["acme__rate", "acme__ask", "shared", "acme__helper", "acme__same", "execute_code"]);
  assert.match(shown(clerk.asked[0])[0] ?? "", /^system: You are the clerk\.\s* Signed of the package\.$/);
  assert.equal(await value(thread, "note-tool"), "of the package");

  const asked = await thread.ask("ask");
  assert.match(asked.message.content, /^told: asked of the package/);
  assert.equal(ask.asked.length, 1);

  const coded = await thread.ask("code");
  assert.match(coded.message.content, /of the package/);

  // Its subagent calls a tool in the parent's thread, by its name in the package.
  await thread.accepted("helper");
  await until("the helper has answered", async () => (await thread.messages()).some(({ content }) => content.startsWith("told: of the package\n")));
});

test("effects and endpoints of a package are reached from outside", async () => {
  const thread = await bobbin.client.thread("acme__clerk");
  const scheduled = await thread.send("POST", "/effects", { name: "acme/note", args: { by: "client" } });
  assert.deepEqual([scheduled.status, scheduled.json.effect.name], [201, "acme__note"], scheduled.text);
  assert.equal(await value(thread, "note-client"), "of the package");
  const rates = await thread.send("GET", "/rates");
  assert.deepEqual([rates.status, rates.json.same], [200, "of the package"], rates.text);
  assert.equal(await value(thread, "note-endpoint"), "of the package");
});

test("clients see the entry agents of a package, with how they are published", async () => {
  const { agents } = (await bobbin.client.send("GET", "/agents")).json;
  const seen = agents.filter((/** @type {any} */ { name }) => ["own", "acme__clerk", "acme__inner"].includes(name));
  const { standardagent, name: packageName, ...published } = about;
  assert.deepEqual(seen.map((/** @type {any} */ { name }) => name), [`acme__${standardagent.entryAgents[0]}`, "own"]);
  assert.deepEqual(seen[0], { name: "acme__clerk", title: "Clerk", type: "ai_human", description: null, icon: null, packageName, ...published });
  for (const name of ["acme/inner", "acme__inner", "acme/none"]) {
    const refused = await bobbin.client.send("POST", "/threads", { agent_id: name });
    assert.deepEqual([refused.status, refused.json.error.code], [404, "agent_not_found"], refused.text);
    assert.doesNotMatch(refused.text, /inner\./, "no hint at it");
  }
  const thread = await bobbin.client.thread(own.name);
  assert.equal((await thread.send("PATCH", "", { agent_id: "acme/inner" })).json.error.code, "agent_not_found");
  const changed = await thread.send("PATCH", "", { agent_id: "acme/clerk" });
  assert.equal(changed.status, 200, changed.text);
  const { message } = await thread.ask("rate");
  assert.equal(told(message.content).same, "of the package");
});

test("a package that is installed is one like any other, and a prompt of the application hands over to an entry agent", async () => {
  const guided = await bobbin.client.thread("installed_one/guide");
  assert.equal((await guided.ask("hello")).message.content, "told: /x");
  assert.deepEqual(offered(installed.asked[0]), ["installed_one__path"]);
  const thread = await bobbin.client.thread(desk.name);
  await thread.ask("rate");
  assert.equal((await thread.send("GET")).json.thread.agent_id, "acme__clerk");
  assert.deepEqual(offered(desk.model.asked[0]), ["acme__clerk"]);
});

test("code of the application reaches entry agents and effects of a package, and nothing else of it", async () => {
  const thread = await bobbin.client.thread(own.name);
  const { message } = await thread.ask("try");
  const seen = told(message.content);
  const hidden = (/** @type {string} */ name) => `"acme/${name}" is not visible outside of its package, whose entry agents are acme/clerk.`;
  assert.equal(seen.invoked, hidden("rate"));
  assert.equal(seen.code, "error");
  assert.ok(seen.loaded.includes(hidden("ask")), seen.loaded);
  assert.deepEqual([seen.agent, seen.effect], ["acme__clerk", "string"]);
  assert.deepEqual(seen.names.filter((/** @type {string} */ name) => name.startsWith("acme")), ["acme__clerk"]);
  assert.equal(await value(thread, "note-application"), "of the package");
  const queued = (await thread.ask("queue")).message.content;
  assert.ok(queued.includes(hidden("rate")), queued);
});
