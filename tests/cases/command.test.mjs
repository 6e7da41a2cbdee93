// `bobbin test` as a program: what it says, writes and exits with.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Server } from "../worker/support/server.mjs";
import { XMLParser, XMLValidator } from "fast-xml-parser";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BIN = join(ROOT, "package/bin/bobbin.mjs");
const AGENTS = join(ROOT, "tests/cases/app");

const home = mkdtempSync(join(tmpdir(), "bobbin-command-"));
after(() => rmSync(home, { recursive: true, force: true }));

/** @param {string} name @param {Record<string, unknown>} files @returns {string} a folder with these files */
function folder(name, files) {
  const path = join(home, name);
  mkdirSync(path);
  for (const [file, content] of Object.entries(files)) writeFileSync(join(path, file), typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

/** @param {string[]} args @returns {Promise<{ code: number, out: string, err: string }>} */
const bobbin = (...args) => run("test", ...args);

/** @param {string[]} args @returns {Promise<{ code: number, out: string, err: string }>} */
const run = (...args) =>
  new Promise((resolve) => {
    execFile(process.execPath, [BIN, ...args], { cwd: ROOT }, (error, out, err) => resolve({ code: error === null ? 0 : Number(error.code), out, err }));
  });

const GREETING = { agent: "clerk", model: { script: [{ text: "Good day." }] }, turns: [{ send: "Hello", expect: [{ reply: "Good day." }] }] };

const DOCUMENT = `---
agent: clerk
model:
  script:
    - calls: [{ "tool": "lookup", "arguments": { "order": "A1" } }]
    - text: |-
        It is on its way.
stubs:
  - tool: lookup
    match: { "order": "A1" }   
    outcome: { "response": "sent" }
---
# Where an order is

> Where is order A1?

- reply: on its way
- called: lookup
  with: { "order": "A1" }
- notCalled: refund

## advance: 1d

- parked: false
- reply: tomorrow
`;

test("cases that pass and fail, in JSON and Markdown: lines, exit 1, JSON, and JUnit", async () => {
  const cases = folder("some", { "greeting.test.json": GREETING, "order.test.md": DOCUMENT, "other.json": "{}" });
  const { code, out } = await bobbin(cases, "--agents", AGENTS, "--junit", join(cases, "junit.xml"));
  assert.equal(code, 1);
  assert.match(out, /^ok {4}greeting {2}\(.*greeting\.test\.json, \d+ ms\)$/m);
  assert.match(out, /^FAIL {2}order {2}\(.*order\.test\.md, \d+ ms\)\n {6}turn 2 \(advance "1d"\): the reply does not include “tomorrow”: it is “It is on its way.”$/m);
  assert.match(out, /^1 passed, 1 failed in \d+\.\d s$/m);
  assert.doesNotMatch(out, /\u001b/, "no colours where nobody looks");

  const xml = readFileSync(join(cases, "junit.xml"), "utf8");
  assert.equal(XMLValidator.validate(xml), true);
  const { testsuites } = new XMLParser({ ignoreAttributes: false }).parse(xml);
  assert.equal(testsuites["@_tests"], "2");
  assert.equal(testsuites["@_failures"], "1");
  const failed = testsuites.testsuite.testcase.find((/** @type {any} */ one) => one["@_name"] === "order");
  assert.match(failed.failure["@_message"], /the reply does not include “tomorrow”/);

  const again = await bobbin(cases, "--agents", AGENTS, "--json", "--name", "greeting");
  assert.equal(again.code, 0);
  const { passed, failed: failures, cases: listed } = JSON.parse(again.out);
  assert.deepEqual([passed, failures, listed.length, listed[0].name, listed[0].state], [1, 0, 1, "greeting", "passed"]);
  assert.ok(listed[0].costUsd > 0);
});

test("what cannot be run exits with 2, and says what is wrong with each file", async () => {
  const cases = folder("wrong", {
    "a.test.json": { ...GREETING, turn: [] },
    "b.test.json": { ...GREETING, turns: [{ send: "Hello", approve: "pay" }, { send: "x", expect: [{ times: 1 }, { reply: { include: "x" } }] }] },
    "c.test.json": { ...GREETING, turns: [{ send: "Hello", expect: [{ reply: "x", outcome: "completed" }, { reply: "x", with: {} }, { reply: { schema: { requires: ["x"] } } }] }], stubs: [{ tool: "lookup", match: { order: { is: "A1" } }, outcome: { response: 1 } }] },
    "d.test.json": "{ agent",
    "e.test.md": "---\nagent: *clerk\n---\n",
  });
  const { code, err } = await bobbin(cases, "--agents", AGENTS);
  assert.equal(code, 2);
  assert.match(err, /a\.test\.json: `turn` is unknown; known fields are name, /);
  assert.match(err, /b\.test\.json: `turns\[1\]\.expect\[1\]\.reply\.include` is unknown/);
  assert.match(err, /c\.test\.json: `stubs\[0\]\.match\.order` is not a valid schema \(unknown keyword: "is"\); to match a value/);
  assert.match(err, /c\.test\.json: `turns\[0\]\.expect\[0\]` needs exactly one of called, /);
  assert.match(err, /c\.test\.json: `turns\[0\]\.expect\[1\]\.with` is only allowed with `called`/);
  assert.match(err, /c\.test\.json: `turns\[0\]\.expect\[2\]` has an invalid schema for `reply`: unknown keyword: "requires"/);
  assert.match(err, /d\.test\.json: .*JSON/);
  assert.match(err, /e\.test\.md: line 2, column 8: no anchor `&clerk` is above this alias/);

  const two = folder("two", { "a.test.json": { ...GREETING, turns: [{ send: "Hello", approve: "pay" }] } });
  assert.match((await bobbin(two, "--agents", AGENTS)).err, /has two actions, `send` and `approve`/);
  const stubbed = folder("stubbed", { "a.test.json": { ...GREETING, stubs: [{ tool: "nobody", outcome: { response: 1 } }] } });
  const nobody = await bobbin(stubbed, "--agents", AGENTS);
  assert.deepEqual([nobody.code, /a stub names “nobody”, which does not exist; tools are /.test(nobody.err)], [2, true], nobody.err);

  for (const args of [[join(home, "nowhere")], [folder("empty", {})], [two, "--agents", join(home, "nowhere")], [two, "--unknown"]]) {
    assert.equal((await bobbin(...args)).code, 2, args.join(" "));
  }
});

test("a hundred cases take one workerd, which is gone with them", { skip: process.platform !== "linux" && "processes are counted in /proc" }, async () => {
  const cases = folder("hundred", Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`case${at}.test.json`, GREETING])));
  const child = spawn(process.execPath, [BIN, "test", cases, "--agents", AGENTS], { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  child.stdout.on("data", (text) => (out += text));
  /** @type {Set<string>} */
  const seen = new Set();
  const watch = setInterval(() => workerds(child.pid).forEach((pid) => seen.add(pid)), 20);
  const code = await new Promise((resolve) => child.once("close", resolve));
  clearInterval(watch);
  assert.deepEqual([code, seen.size], [0, 1], out);
  assert.match(out, /^100 passed, 0 failed/m);
  assert.ok([...seen].every((pid) => !readdirSync("/proc").includes(pid)));
});

/** Processes of workerd whose parent this is. @param {number | undefined} parent */
function workerds(parent) {
  return readdirSync("/proc").filter((pid) => {
    try {
      const [, name, rest = ""] = /^\d+ \((.*)\) (.*)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
      return name === "workerd" && Number(rest.split(" ")[1]) === parent;
    } catch {
      return false;
    }
  });
}

const LIVE = {
  agent: "helper",
  model: "live",
  turns: [
    { send: 'call calculate {"expression": "6*7"}', expect: [{ called: "calculate", with: { expression: "6*7" }, result: "42" }, { reply: "42" }] },
    { send: "Hello", expect: [{ reply: { includes: "You said: Hello" } }, { toolCalls: 1 }] },
  ],
};

test("cases that ask real models are skipped, played with --live, and played at a deployment with --url", async () => {
  const cases = folder("live", { "live.test.json": LIVE, "wrong.test.json": { ...LIVE, turns: [{ send: "Hello", expect: [{ reply: "Good bye" }] }] }, "script.test.json": { ...GREETING, agent: "helper" } });
  const skipped = await bobbin(cases);
  assert.equal(skipped.code, 0, skipped.err);
  assert.match(skipped.out, /^skip {2}live {2}\(.*\)\n {6}it uses real models; run it with --live$/m);
  assert.match(skipped.out, /^1 passed, 0 failed, 2 skipped/m);
  // Without a key the sample's models fall back to one that needs none.
  const live = await bobbin(cases, "--live", "--name", "live");
  assert.deepEqual([live.code, /^1 passed, 0 failed/m.test(live.out)], [0, true], live.out + live.err);

  const server = await Server.start({ agents: join(ROOT, "agents"), vars: { BOBBIN_API_KEYS: "key-of-tests=admin", BOBBIN_TOKEN_SECRET: "a-secret-of-the-tests" } });
  try {
    const refused = await bobbin(cases, "--url", server.base);
    assert.equal(refused.code, 1, refused.out);
    process.env["KEY_OF_TESTS"] = "key-of-tests";
    const { code, out } = await bobbin(cases, "--url", server.base, "--key-env", "KEY_OF_TESTS");
    assert.equal(code, 1, out);
    assert.match(out, /^ok {4}live /m);
    assert.match(out, /^FAIL {2}wrong .*\n {6}turn 1 \(send "Hello"\): the reply does not include “Good bye”: it is “You said: Hello/m);
    assert.match(out, /^skip {2}script .*\n {6}its models are scripted, and those of a deployment are real$/m);
    const headers = { authorization: "Bearer key-of-tests" };
    const { threads } = /** @type {any} */ (await (await fetch(`${server.base}/api/threads`, { headers })).json());
    assert.deepEqual(threads, [], "nothing is left behind");
    assert.equal((await bobbin(cases, "--url", server.base, "--crash")).code, 2);

    // A thread of it becomes a case, which passes here.
    const post = (/** @type {string} */ path, /** @type {object} */ body) => fetch(server.base + path, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) }).then((answer) => answer.json());
    const { threadId } = /** @type {any} */ (await post("/api/threads", { agent_id: "helper" }));
    for (const { send } of LIVE.turns) await post(`/api/threads/${threadId}/messages?wait=true`, { role: "user", content: send });
    const file = join(cases, "made/made.test.json");
    const exported = await run("export", threadId, "--as", "test", "-o", file, "--url", server.base, "--key-env", "KEY_OF_TESTS");
    assert.deepEqual(exported, { code: 0, out: "", err: `${file}\n` });
    const made = await bobbin(file);
    assert.equal(made.code, 0, made.out + made.err);
  } finally {
    await server.remove();
  }
});

test("the sample's own cases pass", async () => {
  // Under crashes with all that is tried with --full.
  const crash = process.env["BOBBIN_SAMPLE"] === undefined ? ["--crash"] : [];
  const { code, out, err } = await bobbin("tests/agents", ...crash);
  assert.equal(code, 0, out + err);
});
