// `bobbin doctor`: each finding with its remedy.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import { join } from "node:path";
import { after, test } from "node:test";
import { retired } from "../../../package/lib/findings.mjs";
import { scratch } from "../../worker/support/server.mjs";
import { rmSync } from "node:fs";
import { asDescribed, bobbin, OBEYED } from "../support/bobbin.mjs";
import { two } from "../support/two.mjs";

const project = scratch("doctor");
after(() => rmSync(project, { recursive: true }));

/** @param {{ findings: { level: string, what: string, message: string }[] }} found @param {string} what */
const levels = ({ findings }, what) => findings.filter((finding) => finding.what === what).map(({ level }) => level);

test("the servers are looked at: version, key, surfaces, and what agents lack", async () => {
  two.near.folder.write({
    models: { keyless: { provider: "openai", model: "gpt-x", apiKeyEnv: "NO_SUCH_KEY", inputPrice: 1, outputPrice: 1 } },
    prompts: { keyless: { toolDescription: "x", model: "keyless", prompt: "x" } },
    agents: { keyless: { type: "ai_human", sideA: { prompt: "keyless" }, variables: [{ name: "SHOP", type: "text", required: true }] } },
  });
  await two.near.server.crash();
  const [near, far] = await two.both(["doctor"]);
  for (const found of [near, far]) {
    assert.deepEqual([levels(found, "Node"), levels(found, "server"), levels(found, "key"), levels(found, "surfaces")], [["ok"], ["ok"], ["ok"], ["info"]]);
  }
  const lacking = near.findings.find((/** @type {any} */ { what }) => what === "model.unusable");
  assert.match(lacking.message, /keyless.*NO_SUCH_KEY is not set/);
  assert.match(lacking.advice, /NO_SUCH_KEY=….*\.dev\.vars/);
  assert.deepEqual(levels(near, "variable.missing"), ["warning"]);
  const { code, out } = await two.there(["doctor"], { env: { BOBBIN_KEY: "wrong-key" } });
  assert.equal(code, 1);
  assert.match(out, /✗ key: The server does not know this key\.\n {2}BOBBIN_KEY/);
  assert.doesNotMatch(out.replaceAll("\n", ""), OBEYED);
  assert.ok(!out.includes("wrong-key"));
});

test("where no server answers, that is the finding", async () => {
  const { code, out } = await bobbin(["doctor", "--url", "http://127.0.0.1:1", "--json"], { cwd: project });
  assert.equal(code, 1);
  assert.deepEqual(levels(asDescribed("doctor", out), "server"), ["error"]);
});

test("a clock that is wrong, and a server of another version, are told", async () => {
  const server = createServer((request, response) => {
    const answers = { "/healthz": { status: "ok", version: "9.9.9", agents: 0 }, "/api/agents": { agents: [] } };
    const body = answers[/** @type {keyof typeof answers} */ (request.url)];
    response.sendDate = false;
    response.writeHead(body ? 200 : 404, { "content-type": "application/json", date: new Date(Date.now() - 120_000).toUTCString() });
    response.end(JSON.stringify(body ?? { error: { code: "not_found", message: "There is nothing." } }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const { out } = await bobbin(["doctor", "--url", `http://127.0.0.1:${port}`, "--json"], { cwd: project });
  server.close();
  const found = asDescribed("doctor", out);
  assert.deepEqual([levels(found, "clock"), levels(found, "version")], [["warning"], ["warning"]]);
  assert.match(found.findings.find((/** @type {any} */ { what }) => what === "clock").message, /1(19|20|21) s ahead/);
});

test("models that end are told by name and day, at their maker's address alone", () => {
  const folder = join(project, "agents", "models");
  mkdirSync(folder, { recursive: true });
  const model = (/** @type {string} */ name, /** @type {object} */ fields) => writeFileSync(join(folder, `${name}.json`), JSON.stringify(fields));
  model("old", { provider: "openai", model: "gpt-5-mini" });
  model("snapshot", { provider: "openai", model: "gpt-5-mini-2026-01-02", baseUrl: "{{env OPENAI_BASE_URL}}" });
  model("elsewhere", { provider: "openai", model: "gpt-5-mini", baseUrl: "http://127.0.0.1:1" });
  model("other", { provider: "openai", model: "gpt-5-minimal" });
  writeFileSync(join(folder, "broken.json"), "{");
  const soon = retired(project, new Date("2026-12-01"));
  assert.deepEqual(soon.map(({ level, message }) => [level, message]), [
    ["warning", "agents/models/old.json: gpt-5-mini ends on 2026-12-11, in 10 days."],
    ["warning", "agents/models/snapshot.json: gpt-5-mini-2026-01-02 ends on 2026-12-11, in 10 days."],
  ]);
  assert.deepEqual(retired(project, new Date("2027-01-01")).map(({ level }) => level), ["error", "error"]);
});
