// Operations between threads of a family in the real product: files are copied; trees are listed, counted and deleted.

import assert from "node:assert/strict";
import { exchange, repeating, resident } from "./support/bytes.mjs";
import { atRest, direct, finishes, members, sessionTools, subagent } from "./support/family.mjs";
import { hang, say, textOf, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/model.mjs").Asked} Asked */
/** @typedef {import("./support/client.mjs").Thread} Thread */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);
sessionTools(bobbin);

const LARGE_BYTES = 30e6;

/** Returns the call results that a model received. @param {Asked} asked */
const results = ({ messages }) => messages.filter(({ role }) => role === "tool").map(textOf);

/** Calls a subagent once and repeats its result. @param {string} name @param {object} args */
const calls = (name, args) => (/** @type {Asked} */ asked) =>
  results(asked).length === 0 ? use({ name, args: { task: "look", ...args } }) : say(`got ${results(asked)[0]}`);

/** Returns the attachments of a thread's messages. @param {Thread} thread @returns {Promise<any[]>} */
async function attached(thread) {
  return (await thread.messages({ includeSilent: true })).flatMap(({ attachments }) => attachments ?? []);
}

const withFiles = { initAttachmentsProperty: "files" };
const schema = { type: "object", properties: { task: { type: "string" }, files: { type: "array", items: { type: "string" } } }, required: ["task"] };

// The result attaches every file that it received.
subagent(
  bobbin,
  "mirror",
  ({ messages }) => {
    const paths = messages.flatMap((message) => /at (\/attachments\/[^\s\]]+)/.exec(textOf(message))?.[1] ?? []);
    return use({ name: "finish", args: { text: "mirrored", files: paths } });
  },
  { schema },
);
const PATHS = ["/attachments/film", "/attachments/note.txt"];
const shows = bobbin.agent("shows", calls("mirror", { files: PATHS }), { tools: [direct("mirror", withFiles)] });

test("files go to a child and come back as they were, 30 MB of them", async () => {
  const thread = await bobbin.client.thread(shows.name);
  const piece = Buffer.from(Array.from({ length: 99_991 }, (_, at) => (at * 31) % 251));
  async function* film() {
    for (let sent = 0; sent < LARGE_BYTES; sent += piece.length) yield piece;
  }
  const length = Math.ceil(LARGE_BYTES / piece.length) * piece.length;
  const put = await exchange(thread, "PUT", "/fs/attachments/film", {
    body: film(),
    headers: { "content-type": "video/mp4", "content-length": String(length) },
  });
  assert.equal(put.status, 201, put.bytes.toString());
  assert.equal((await exchange(thread, "PUT", "/fs/attachments/note.txt", { body: "ü", headers: { "content-type": "text/plain" } })).status, 201);
  const before = resident(bobbin.server);
  let most = before;
  const watching = setInterval(() => (most = Math.max(most, resident(bobbin.server))), 20);
  const outcome = await thread.ask("Show.").finally(() => clearInterval(watching));
  await atRest(thread);
  assert.match(String(outcome.message?.content ?? (await thread.lines()).at(-1)?.[1]), /^got mirrored\n/);
  const [, child] = await members(thread);
  assert.ok(child);
  for (const holder of [child.thread, thread]) {
    const files = (await exchange(holder, "GET", "/fs/attachments")).json().files.filter((/** @type {any} */ file) => file.name !== "film" && file.name !== "note.txt");
    assert.deepEqual(files.map((/** @type {any} */ file) => file.mimeType).sort(), ["text/plain", "video/mp4"], JSON.stringify(files));
    for (const { path, mimeType, size } of files) {
      if (mimeType === "text/plain") {
        assert.equal((await exchange(holder, "GET", `/fs${path}`)).bytes.toString(), "ü");
        continue;
      }
      const came = repeating(piece);
      assert.equal((await exchange(holder, "GET", `/fs${path}`, { take: came.take })).status, 200);
      assert.deepEqual([came.length(), size], [length, length]);
    }
  }
  assert.equal((await attached(child.thread)).length, 2);
  console.log(`      grew by ${((most - before) / 1e6).toFixed(1)} MB while two copies of ${LARGE_BYTES / 1e6} MB were made`);
});

// Trees.

const leaf = subagent(bobbin, "leaf", () => hang());
const twig = subagent(bobbin, "twig", calls("leaf", {}), { tools: [direct("leaf")] });
const trunk = bobbin.agent("trunk", calls("twig", {}), { tools: [direct("twig")] });

test("a thread that is deleted takes its tree with it; the lists know the tree before, and nothing of it afterwards", async () => {
  const thread = await bobbin.client.thread(trunk.name);
  await thread.accepted("Grow.");
  await until("the leaf works", () => leaf.model.asked.length === 1);
  const family = await members(thread);
  assert.deepEqual(family.map(({ depth }) => depth), [0, 1, 2]);
  const ids = family.map((member) => member.thread.id);
  const listed = async (/** @type {string} */ query) => {
    const answer = await bobbin.client.send("GET", `/threads?limit=500${query}`);
    return answer.json.threads.filter((/** @type {any} */ row) => ids.includes(row.id));
  };
  await until("the list has the tree", async () => (await listed("&include_children=true")).length === 3);
  const rows = await listed("&include_children=true");
  const parents = ids.map((id) => rows.find((/** @type {any} */ row) => row.id === id)?.parent);
  assert.deepEqual(parents, [null, ids[0], ids[1]]);
  assert.deepEqual((await listed("")).map((/** @type {any} */ row) => row.id), [ids[0]]);
  assert.deepEqual(await Promise.all(family.map(async (member) => (await member.thread.facts()).parent)), parents);
  const deleted = await thread.send("DELETE");
  assert.deepEqual([deleted.status, deleted.json.deletedCount, deleted.json.deletedThreadIds], [200, 3, ids]);
  for (const { thread: gone } of family) assert.equal((await gone.send("GET")).status, 404);
  assert.deepEqual(await listed("&include_children=true"), []);
  assert.equal((await thread.send("DELETE")).status, 404);
  assert.equal(twig.model.asked.length, 1);
});

test("a child that is deleted by itself is an error of the call that waits for it", async () => {
  const thread = await bobbin.client.thread(trunk.name);
  const asked = leaf.model.asked.length;
  await thread.accepted("Grow.");
  await until("the leaf works", () => leaf.model.asked.length === asked + 1);
  const [, child] = await members(thread);
  assert.equal((await child?.thread.send("DELETE"))?.json.deletedCount, 2);
  await thread.idle();
  const [text = ""] = await thread.results();
  assert.match(text, /terminated|no more/);
  assert.equal((await child?.thread.send("GET", "/subagents"))?.status, 404, "the child's own list is gone");
  assert.equal((await thread.send("GET", "/subagents")).json.subagents[0].status, "terminated");
});

// Costs.

const priced = { model: { inputPrice: 10, outputPrice: 20 } };
subagent(bobbin, "clerk", finishes(), priced);
const office = bobbin.agent("office", calls("clerk", {}), { tools: [direct("clerk")], ...priced });

test("a cost is that of a thread and all below it", async () => {
  const thread = await bobbin.client.thread(office.name);
  await thread.accepted("Work.");
  const [, child] = await atRest(thread);
  assert.ok(child);
  const cost = async (/** @type {Thread} */ of) => (await of.send("GET", "/cost")).json;
  const [whole, below] = [await cost(thread), await cost(child.thread)];
  assert.deepEqual(whole.children, [{ id: child.thread.id, agent: "clerk", own: below.own, total: below.total }]);
  assert.deepEqual([whole.descendants, whole.incomplete, below.children], [below.total, [], []]);
  for (const field of ["cost", "inputTokens", "outputTokens", "requests", "unpriced"]) {
    assert.ok(Math.abs(whole.total[field] - whole.own[field] - below.own[field]) < 1e-9, field);
  }
  assert.deepEqual([whole.own.requests, below.own.requests, whole.total.unpriced], [2, 1, 0]);
  const dollars = (whole.total.inputTokens * 10 + whole.total.outputTokens * 20) / 1e6;
  assert.ok(Math.abs(whole.total.cost - dollars) < 1e-9 && dollars > 0, JSON.stringify(whole));
});
