// A case that is made of a thread, in each API that models are asked by: it passes where nothing has changed, and a changed prompt is
// found.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { checkedCase, readCase } from "../../package/test/cases.mjs";
import { compile } from "../../package/test/catalog.mjs";
import { present } from "../../package/test/environment.mjs";
import { caseOfThread, writeCase } from "../../package/test/from-thread.mjs";
import { startMachine } from "../../package/test/machine.mjs";
import { startOutside } from "../../package/test/outside.mjs";
import { workerd } from "../../package/test/places.mjs";
import { begin } from "../../package/test/play.mjs";
import { replyTo } from "../../package/test/replies.mjs";
import { runCases, stageOf } from "../../package/test/suite.mjs";
import { variantOf } from "../../package/test/variants.mjs";

const APP = fileURLToPath(new URL("app", import.meta.url));
const PROJECT = fileURLToPath(new URL("../..", import.meta.url));
const SECRET = "sk-live-4242424242424242";

const home = mkdtempSync(join(tmpdir(), "bobbin-from-thread-"));
after(() => rmSync(home, { recursive: true, force: true }));

const PRICES = { inputPrice: 1, outputPrice: 5 };
/** The same model in each API. @type {Record<string, object>} */
const APIS = {
  chat: { provider: "openai", model: "m", baseUrl: "{{env OPENAI_BASE_URL}}", apiKeyEnv: "OPENAI_API_KEY", api: "chat", ...PRICES },
  responses: { provider: "openai", model: "m", baseUrl: "{{env OPENAI_BASE_URL}}", apiKeyEnv: "OPENAI_API_KEY", api: "responses", ...PRICES },
  messages: { provider: "anthropic", model: "m", baseUrl: "{{env ANTHROPIC_BASE_URL}}", apiKeyEnv: "ANTHROPIC_API_KEY", ...PRICES },
};

const call = (/** @type {string} */ id, /** @type {string} */ tool, /** @type {object} */ args) => ({ id, tool, arguments: JSON.stringify(args) });
/** What the model says, one after another. */
const SAID = [
  { text: "Let me see.", calls: [call("c1", "lookup", { order: "A1" }), call("c2", "current_time", {})] },
  { text: "", calls: [call("c3", "refund", { order: "A1" })] },
  { text: "It is paid back.", calls: [] },
  { text: "", calls: [call("c4", "ask_user", { question: "Which one?" })] },
  { text: "B2 is on its way.", calls: [] },
];

/** A model whose answers come in turn, in whatever API it is asked by. */
async function serve() {
  let asked = 0;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    const said = SAID[asked++ % SAID.length] ?? { text: "", calls: [] };
    const { status, headers, body } = replyTo(JSON.parse(text), { ...said, reasoning: "", usage: { input: 100, output: 10 } });
    response.writeHead(status, headers).end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}`, stop: () => void (server.close(), server.closeAllConnections()) };
}

/** What a thread is made of that somebody talks in. @param {string} agents */
async function talked(agents) {
  const turns = [{ send: `Where is A1? My key is ${SECRET}.` }, { approve: "refund" }, { send: "And the other one?" }, { answer: "B2" }];
  const stubs = [{ tool: "lookup", outcome: { response: { state: "lost" } } }, { tool: "refund", outcome: { response: "paid" } }];
  const case_ = checkedCase({ agent: "clerk", model: "live", vars: { BOBBIN_LOG_BODIES: "1" }, stubs, turns }, { file: "x", folder: PROJECT, name: "x" });
  const catalog = await compile(agents, PROJECT);
  const outside = await startOutside();
  const variant = variantOf(case_, catalog, { cassette: undefined, present: present(catalog, home) });
  /** @type {import("../../package/test/machine.mjs").Machine | undefined} */
  let machine;
  try {
    machine = await startMachine({ variants: [variant], outside: outside.port, workerd: workerd(PROJECT) });
    const play = await begin(case_, stageOf(case_, catalog, { url: /** @type {string} */ (machine.urls[0]), outside, cassette: undefined }));
    for (const turn of case_.turns) await play.turn(turn);
    assert.deepEqual(play.failures, []);
    const get = (/** @type {string} */ path) => play.api.get(path);
    const file = join(agents, "../made", `${basename(agents)}.test.json`);
    const written = await writeCase(get, play.family.thread, file);
    await assert.rejects(writeCase(get, play.family.thread, file), /already exists/);
    return { ...(await caseOfThread(get, play.family.thread)), written };
  } finally {
    await machine?.stop();
    await outside.stop();
  }
}

for (const [api, model] of Object.entries(APIS)) {
  describe(`made of a thread whose model is asked by ${api}`, () => {
    const agents = join(home, api);
    /** @type {Awaited<ReturnType<typeof talked>>} */
    let made;
    before(async () => {
      const server = await serve();
      const vars = { OPENAI_BASE_URL: `${server.url}/v1`, ANTHROPIC_BASE_URL: server.url, OPENAI_API_KEY: "no-key", ANTHROPIC_API_KEY: "no-key" };
      Object.assign(process.env, vars);
      cpSync(APP, agents, { recursive: true });
      writeFileSync(join(agents, "models/fast.json"), JSON.stringify(model));
      try {
        made = await talked(agents);
      } finally {
        server.stop();
        for (const name of Object.keys(vars)) delete process.env[name];
      }
    });

    /** @param {import("../../package/test/cases.mjs").Case} case_ @param {string} [folder] */
    const played = async (case_, folder = agents) => {
      const [result] = await runCases([case_], { agents: folder, project: PROJECT });
      return /** @type {import("../../package/test/suite.mjs").Result} */ (result);
    };

    test("its turns, script and stubs are those of the thread, without secrets", () => {
      assert.ok(!JSON.stringify(made).includes(SECRET));
      const { turns, stubs, model: of } = made.case;
      assert.deepEqual(turns.map((/** @type {any} */ { expect: _, ...turn }) => turn), [{ send: "Where is A1? My key is <secret>." }, { approve: "refund" }, { send: "And the other one?" }, { answer: "B2" }]);
      assert.deepEqual(stubs.map((/** @type {any} */ stub) => stub.tool), ["lookup", "current_time", "refund"]);
      assert.deepEqual(of.script.map((/** @type {any} */ answer) => (answer.calls ?? []).map((/** @type {any} */ one) => one.tool)), [["lookup", "current_time"], ["refund"], [], ["ask_user"], []]);
    });

    test("by its script and by its cassette it passes, and a changed prompt is found by the cassette", async () => {
      const scripted = await played(checkedCase(made.case, { file: "x", folder: home, name: "x" }));
      assert.equal(scripted.state, "passed", JSON.stringify(scripted.failures));
      assert.ok(made.cassette);
      const [file = "", cassette] = made.written;
      assert.equal(readFileSync(String(cassette), "utf8"), made.cassette);
      const recorded = readCase(file, home);
      const replayed = await played(recorded);
      assert.equal(replayed.state, "passed", JSON.stringify(replayed.failures));
      const changed = join(home, `${api}-changed`);
      cpSync(agents, changed, { recursive: true });
      const prompt = join(changed, "prompts/clerk.md");
      writeFileSync(prompt, readFileSync(prompt, "utf8").replace("Look orders up", "Look up orders"));
      const [failure] = (await played(recorded, changed)).failures;
      assert.match(failure?.what ?? "", /system prompt, line 2: it was “Look orders up before you say anything about them\.”, and is now “Look up orders before/);
    });
  });
}
