// `bobbin export` and `import`: copies a thread from the remote server to the project's server.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Thread } from "../../worker/support/client.mjs";
import { asDescribed } from "../support/bobbin.mjs";
import { HOSTILE } from "../support/servers.mjs";
import { two } from "../support/two.mjs";

const hash = (/** @type {Buffer} */ bytes) => createHash("sha256").update(bytes).digest("hex");
const LARGE = Buffer.from(Array.from({ length: 3_000_000 }, (_, at) => (at * 7 + (at >> 9)) & 255));

/** Creates a thread with everything on the remote server: calls, values, files of two sizes, an attachment. */
async function furnished() {
  const thread = await two.client("there").thread("looker", { tags: ["vip"], properties: { order: 7 }, env: { CITY: "Porto", TOKEN: "very-secret" }, env_types: { CITY: "text", TOKEN: "secret" } });
  await thread.ask("Look", { attachments: [{ name: "plan.txt", mimeType: "text/plain", data: Buffer.from("the plan").toString("base64") }] });
  await thread.send("POST", "/messages", { role: "system", content: `Noted ${HOSTILE}`, silent: true });
  await thread.send("POST", "/kv", { key: "deep", value: { list: [1, "ü", null] } });
  await thread.send("PUT", "/fs/a%20dir/small.bin", undefined, { body: Buffer.from([0, 1, 255, 254]), headers: { "content-type": "application/x-small" } });
  await thread.send("PUT", "/fs/large.bin", undefined, { body: LARGE, headers: { "content-type": "application/x-large" } });
  await thread.send("POST", "/fs/empty", { directory: true });
  return thread;
}

/** Returns messages without their thread-specific fields. @param {any[]} messages */
const told = (messages) => messages.map(({ id, parent_id: _, ...message }) => ({ ...message, place: id.split("_").at(-1) }));

test("a thread of one server becomes one of another, with its calls, values and files, and goes on there", async () => {
  const thread = await furnished();
  const file = join(two.project, "thread.jsonl");
  const exported = await two.there(["export", thread.id, "-o", file, "--json"]);
  assert.equal(exported.code, 0, exported.err);
  const counts = asDescribed("export", exported.out);
  assert.deepEqual([counts.messages, counts.values, counts.files], [5, 1, 3]);
  const text = readFileSync(file, "utf8");
  for (const line of text.split("\n").slice(0, -1)) asDescribed("export line", line);
  assert.ok(text.includes("Porto") && text.includes("TOKEN") && !text.includes("very-secret"), "of secrets only the names");
  assert.equal(statSync(file).mode & 0o077, 0, "nobody else may read it");
  const imported = await two.here(["import", file, "--json"]);
  assert.equal(imported.code, 0, imported.err);
  assert.match(imported.err, /without the secrets TOKEN/);
  const { threadId, ...rest } = asDescribed("import", imported.out);
  assert.deepEqual([rest.messages, rest.values, rest.files], [5, 1, 3]);
  const copy = new Thread(two.near.client, threadId);
  assert.deepEqual(told(await copy.messages({ includeSilent: true })), told(await thread.messages({ includeSilent: true })));
  const facts = await copy.facts();
  assert.deepEqual([facts.tags, facts.properties, facts.env, facts.fork.threadId, facts.fork.state], [["vip"], { order: 7 }, { CITY: "Porto" }, thread.id, "copied"]);
  assert.deepEqual((await copy.send("GET", "/kv?key=deep")).json.value, { list: [1, "ü", null] });
  const small = await copy.send("GET", "/fs/a%20dir/small.bin");
  assert.deepEqual([[...small.bytes], small.headers["content-type"]], [[0, 1, 255, 254], "application/x-small"]);
  assert.equal(hash((await copy.send("GET", "/fs/large.bin")).bytes), hash(LARGE));
  const [{ attachments }] = await copy.messages();
  assert.equal((await copy.send("GET", `/fs${attachments[0].path}`)).text, "the plan");
  assert.equal((await copy.send("GET", "/fs/empty")).json.files.length, 0);
  const again = asDescribed("import", (await two.here(["import", file, "--json"])).out);
  assert.equal(again.threadId, threadId, "what is imported twice is one thread");
  const { outcome } = await copy.ask("And now?");
  assert.equal(outcome, "completed");
  const withSecret = await two.here(["import", file, "--var", "TOKEN", "--key", "second", "--json"], { env: { TOKEN: "from the shell" } });
  const other = new Thread(two.near.client, asDescribed("import", withSecret.out).threadId);
  assert.deepEqual(Object.keys((await other.facts()).env_types).sort(), ["CITY", "TOKEN"]);
});

test("of a thread that waits, what is complete is exported, and comes through a pipe as well", async () => {
  const { out } = await two.here(["send", "--agent", "payer", "Go", "--wait", "--json"]);
  const { threadId } = asDescribed("send", out);
  const exported = await two.here(["export", threadId, "--bodies"]);
  assert.match(exported.err, /1 messages of an unfinished step are left out/);
  const lines = exported.out.split("\n").slice(0, -1).map((line) => asDescribed("export line", line));
  assert.deepEqual(lines.filter(({ type }) => type === "message").map(({ message }) => message.content), ["Go"]);
  assert.ok(lines.some(({ type, log }) => type === "log" && log.type === "llm_request"));
  assert.equal(lines.at(-1).type, "end");
});

test("a file that is cut off, damaged or none of ours makes no thread", async () => {
  const { out } = await two.here(["send", "--agent", "echo", "Hi", "--wait", "--json"]);
  const exported = (await two.here(["export", asDescribed("send", out).threadId])).out;
  const lines = exported.split("\n").slice(0, -1);
  const before = (await two.near.client.threads({ include_children: true })).total;
  const file = join(two.project, "bad.jsonl");
  /** @type {[string, RegExp][]} */
  const bad = [
    ["", /not an export/],
    ["{}\n", /not an export/],
    [exported.slice(0, -40), /breaks off|not complete/],
    [`${lines.slice(0, -1).join("\n")}\n`, /not complete/],
    [`${lines.filter((line) => !line.includes('"role":"user"')).join("\n")}\n`, /not complete/],
    [exported.replace('"role":"user"', '"role":"king"'), /history\[0\]|`role`/],
    [exported.replace('"role":"assistant"', '"role":"tool"'), /call/],
  ];
  for (const [text, complaint] of bad) {
    writeFileSync(file, text);
    const { code, err } = await two.here(["import", file]);
    assert.deepEqual([code, complaint.test(err)], [1, true], `${text.slice(0, 80)}: ${err}`);
  }
  assert.equal((await two.here(["import", join(two.project, "none")])).code, 2);
  assert.equal((await two.near.client.threads({ include_children: true })).total, before);
});

test("what cannot be exported leaves no file", async () => {
  const file = join(two.project, "never.jsonl");
  assert.equal((await two.here(["export", "none", "-o", file])).code, 1);
  assert.equal((await two.here(["export", "none", "-o", join(two.project, "no", "such", "folder")])).code, 1);
  assert.equal(existsSync(file), false);
  assert.deepEqual(readdirSync(two.project).filter((name) => name.includes(".part")), []);
});

test("of too much, the newest turns are taken where that is wanted", async () => {
  const { out } = await two.here(["send", "--agent", "echo", "Hi", "--wait", "--json"]);
  const lines = (await two.here(["export", asDescribed("send", out).threadId])).out.split("\n").slice(0, -1).map((line) => JSON.parse(line));
  const [head, user, reply] = lines;
  const back = join(two.project, "back.jsonl");
  writeFileSync(back, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  assert.equal(asDescribed("import", (await two.there(["import", back, "--json"])).out).messages, 2, "to a server with a key");
  const many = Array.from({ length: 6 }, (_, at) => [
    { type: "message", message: { ...user.message, id: `m_1_${at * 2 + 1}`, content: `turn ${at}` } },
    { type: "message", message: { ...reply.message, id: `m_1_${at * 2 + 2}`, content: `${at}`.repeat(900_000) } },
  ]).flat();
  const file = join(two.project, "much.jsonl");
  writeFileSync(file, [head, ...many, { ...lines.at(-1), messages: many.length }].map((line) => `${JSON.stringify(line)}\n`).join(""));
  const refused = await two.here(["import", file]);
  assert.deepEqual([refused.code, /--newest/.test(refused.err)], [1, true], refused.err);
  const taken = await two.here(["import", file, "--newest", "--json"]);
  assert.equal(taken.code, 0, taken.err);
  const copy = new Thread(two.near.client, asDescribed("import", taken.out).threadId);
  const said = (await copy.messages()).filter(({ role }) => role === "user").map(({ content }) => content);
  assert.deepEqual(said, ["turn 2", "turn 3", "turn 4", "turn 5"]);
});
