// This version opens a thread of every released version, with all its contents, and continues it: storage migrates by
// itself. tests/fixtures/databases/make.mjs created the threads with those versions.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { AgentsFolder } from "./support/agents.mjs";
import { Client } from "./support/client.mjs";
import { until } from "./support/poll.mjs";
import { Server, checkout, memory, scratch } from "./support/server.mjs";

const FOLDER = join(checkout, "tests/fixtures/databases");
const RELEASED = readdirSync(FOLDER).filter((name) => name.endsWith(".json.gz"));

/** @type {(() => unknown)[]} */
const ends = [];
after(async () => {
  for (const end of ends) await end();
});

/** Starts a current server on the databases of a version. @param {string} name */
async function opened(name) {
  const { version, vars, threads, agents, databases } = JSON.parse(gunzipSync(readFileSync(join(FOLDER, name))).toString());
  const persist = scratch("released", memory);
  for (const [path, bytes] of Object.entries(databases)) {
    const to = join(persist, "v3/do", path);
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, Buffer.from(bytes, "base64"));
  }
  const folder = new AgentsFolder();
  ends.push(() => folder.remove());
  for (const [path, text] of Object.entries(agents)) folder.file(path, text);
  const server = await Server.start({ agents: folder.path, vars, persist });
  ends.push(() => server.remove());
  return { version, threads, client: new Client(server.base) };
}

test("there is one of the version that is being worked on, or of the one before it", () => assert.ok(RELEASED.length > 0));

for (const name of RELEASED) {
  test(`threads of ${name.replace(".json.gz", "")} are opened, with all that they have, and go on`, async () => {
    const { threads, client } = await opened(name);
    const at = `/threads/${threads.all}`;
    const read = async (/** @type {string} */ path) => {
      const answer = await client.send("GET", `${at}${path}`);
      assert.equal(answer.status, 200, `${path}: ${answer.text}`);
      return answer;
    };

    // Work in progress when its last server was killed continues by itself.
    await client.send("GET", `/threads/${threads.slow}`);
    await until("the reply that was under way ends", async () => {
      const { json } = await client.send("GET", `/threads/${threads.slow}/messages`);
      return /39\D{1,4}40/.test(JSON.stringify(json));
    }, { withinMs: 30_000 });

    const listed = (await client.send("GET", "/threads?user_id=u1")).json.threads.map((/** @type {{ id: string }} */ { id }) => id);
    assert.deepEqual(listed.sort(), [threads.all, threads.slow].sort());
    const history = (await read("/messages")).text;
    for (const said of ["What is a bobbin?", "59.97", "noted: kept", "found", "plan.txt"]) assert.ok(history.includes(said), said);
    assert.deepEqual((await read("/kv?key=colour")).json.value, { name: "red", numbers: [1, 2.5] });
    assert.equal((await read("/kv?key=noted")).json.value, "kept");
    assert.equal((await read("/fs/notes/bobbin.txt")).text, "A bobbin holds one thread.");
    assert.equal((await read("/fs/written.txt")).text, "by a tool");
    const effects = (await read("/effects")).json;
    assert.equal(effects.upcomingCount, 2);
    const found = await client.send("POST", `${at}/memory/notes/search`, { query: "silk" });
    assert.match(found.text, /Silk is wound slowly.*Handbook|Handbook.*Silk is wound slowly/s);
    assert.ok((await read("/logs")).text.includes("llm_request"));

    // The approval that it waited for is given, and a value that was encrypted then can be read.
    const { waits } = (await read("/waits")).json;
    assert.equal(waits.length, 1);
    const decided = await client.send("POST", `${at}/waits/${waits[0].id}`, { decision: "approve" });
    assert.equal(decided.status, 200, decided.text);
    await until("what was approved is done", async () => (await read("/messages")).text.includes("paid 5"));
    const due = effects.effects.find((/** @type {{ repeat: unknown }} */ { repeat }) => repeat === null);
    assert.equal((await client.send("POST", `${at}/effects/${due.id}/run`)).status, 200);
    await until("an effect of then runs now", async () => (await read("/messages")).text.includes("What is silk?"));
    const { text } = await client.send("POST", `${at}/messages?wait=true`, { role: "user", content: 'call note {"text": "today"}' });
    assert.match(text, /noted: today/);
  });
}
