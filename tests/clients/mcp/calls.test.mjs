// Calls of the tools of official servers of both eras, and of one in Python: what they come to.

import assert from "node:assert/strict";
import { missing } from "../support/python.mjs";
import { fast, twice } from "./peers/fast.mjs";
import { legacy } from "./peers/legacy.mjs";
import { modern } from "./peers/modern.mjs";
import { BYTES, PNG } from "./peers/tools.mjs";
import { came, decide, ended, Peers, waits } from "./support.mjs";

const TOKEN = "a-token-of-the-peer";
/** @type {Record<string, import("./peers/serve.mjs").Peer>} */
const servers = {};
const kept = (/** @type {string} */ name, /** @type {() => Promise<import("./peers/serve.mjs").Peer>} */ start) => async () => (servers[name] = await start());
/** @param {string} name */
const books = (name) => {
  const server = servers[name];
  assert.ok(server);
  return server.books;
};

/** @type {Awaited<ReturnType<typeof twice>>} */
let payer;
const keptTwice = async () => (payer = await twice());

process.env["PEER_TOKEN"] = TOKEN;
const peers = new Peers({ vars: { PEER_TOKEN: TOKEN } }).use(
  { modern: kept("modern", () => modern({ token: TOKEN })), legacy: kept("legacy", legacy), alone: kept("alone", () => legacy({ sessions: false })), ...(missing ? {} : { fast, twice: keptTwice }) },
  { modern: { headers: { authorization: "Bearer {{env PEER_TOKEN}}" }, variables: [{ name: "PEER_TOKEN", type: "secret" }], approval: { add: "always" }, tier: { look: "read_only" } } },
);

for (const server of ["modern", "legacy", "alone"]) {
  peers.test(`${server}: results are texts, values, errors and files`, async () => {
    assert.deepEqual(await peers.call(server, "echo", { text: "naïve 🧵" }).then(({ result, ok }) => [result, ok]), ["You said: naïve 🧵", true]);
    const failed = await peers.call(server, "fail");
    assert.deepEqual([failed.ok, failed.result.includes("There is no paper left.")], [false, true]);
    const picture = await peers.call(server, "picture");
    assert.match(picture.result, /A pixel\./);
    assert.deepEqual(picture.attachments.map(({ mimeType, mime_type: mime }) => mimeType ?? mime).sort(), ["audio/wav", "image/png"]);
    const document = await peers.call(server, "document");
    assert.match(document.result, /A note\.[\s\S]*peer:\/\/notes\/c\.txt/);
    assert.equal(document.attachments.length, 1);
    assert.equal((await peers.call(server, "large", { bytes: 500_000 })).ok, true);
    const larger = await peers.call(server, "large", { bytes: 3_000_000 });
    assert.equal(larger.ok, false, larger.result.slice(0, 200));
    assert.match((await peers.call(server, "progress")).result, /It is done\./);
  });
}

peers.test("structured results are what the model reads, and approvals hold as of any tool", async () => {
  assert.deepEqual(JSON.parse((await peers.call("legacy", "add", { a: 1, b: 2 })).result), { sum: 3 });
  const { thread, outcome } = await peers.ask("modern", ["add", { a: 1, b: 2 }]);
  assert.equal(outcome, "parked");
  assert.equal(books("modern").count("add"), 0);
  const [wait] = await waits(thread);
  await decide(thread, wait, { decision: "approve" });
  assert.equal(await ended(thread), "completed");
  assert.deepEqual(JSON.parse((await came(thread)).result), { sum: 3 });
});

peers.test("files have the bytes that the server sent", async () => {
  const { thread } = await peers.ask("modern", ["picture", {}]);
  const { attachments } = await came(thread);
  const bytes = await Promise.all(attachments.map(async ({ path }) => (await thread.send("GET", `/fs/${path.replace(/^\//, "")}`)).bytes.toString("base64")));
  assert.deepEqual(bytes.sort(), [BYTES, PNG].sort());
});

peers.test("arguments travel as headers where the schema says so", async () => {
  for (const region of ["us-west1", "Zürich 🧵", " padded "]) {
    const { result } = await peers.call("modern", "route", { region });
    const [, sent = ""] = / by (.*)$/.exec(result) ?? [];
    const [, base64] = /^=\?base64\?(.*)\?=$/.exec(sent) ?? [];
    assert.equal(base64 === undefined ? sent : Buffer.from(base64, "base64").toString("utf8"), region);
  }
});

peers.test("a call has a key, and calls that only read are made beside each other", async () => {
  const before = books("modern").calls.length;
  const began = Date.now();
  const { outcome } = await peers.ask("modern", ["look", { ms: 1500 }], ["look", { ms: 1500 }], ["look", { ms: 1500 }]);
  assert.equal(outcome, "completed");
  assert.ok(Date.now() - began < 4000, "they ran beside each other");
  const keys = books("modern").calls.slice(before).map(({ call }) => call);
  assert.deepEqual([keys.every((key) => typeof key === "string" && key !== ""), new Set(keys).size], [true, 3]);
});

peers.test("a session is kept for the calls of a thread, and begun again where the server has lost it", async () => {
  const methods = () => books("legacy").methods;
  const thread = await peers.suite.client.thread("legacy");
  const say = (/** @type {string} */ text) => thread.ask(JSON.stringify([{ name: "legacy__echo", args: { text } }]));
  await say("one");
  const before = methods().filter((method) => method === "initialize").length;
  await say("two");
  await say("three");
  assert.equal(methods().filter((method) => method === "initialize").length, before);
});

peers.test("a stream that a server of sessions ends before its answer is taken up again", async () => {
  const before = books("legacy").count("part");
  assert.equal((await peers.call("legacy", "part")).result, "It came later.");
  assert.equal(books("legacy").count("part") - before, 1, "it was called once");
  assert.ok(books("legacy").methods.includes("GET"));
});

peers.test("what a server of sessions asks on an open stream is refused, and the call is not left hanging", async () => {
  const { ok } = await peers.call("legacy", "ask");
  assert.equal(ok, false);
});

if (missing) console.log(`skipped: ${missing}`);
else {
  peers.test("fastmcp: results, errors and pictures", async () => {
    assert.deepEqual(JSON.parse((await peers.call("fast", "echo", { text: "hi" })).result), { result: "You said: hi" });
    assert.deepEqual(JSON.parse((await peers.call("fast", "add", { a: 1, b: 2 })).result), { sum: 3 });
    assert.equal((await peers.call("fast", "fail")).ok, false);
    assert.equal((await peers.call("fast", "picture")).attachments.length, 1);
  });
  peers.test("mcp 2.3.0: a call that has run is not made again, and the model reads what the server says", async () => {
    // 400 with the call's own id, which is how older servers refuse what they have not read.
    const asked = await peers.call("twice", "pay_then_ask", { amount: 5 });
    assert.match(asked.result, /error -32600: .*elicitation/);
    for (const [code, told] of /** @type {const} */ ([[-32600, "error -32600: The account is closed."], [-32601, "error -32601: The account is closed."], [1001, "error 1001: The account is closed."]])) {
      const { result, ok } = await peers.call("twice", "pay_and_fail", { code });
      assert.deepEqual([ok, result.includes(told)], [false, true], result);
    }
    assert.deepEqual((await payer.calls()).map(({ tool }) => tool), ["pay_then_ask", "pay_and_fail", "pay_and_fail", "pay_and_fail"]);
  });
}
