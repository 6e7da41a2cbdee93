// Conversations that continue from an earlier message: regenerated, or edited and answered.

import assert from "node:assert/strict";
import { say } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

const bobbin = suite();
const test = bobbin.test.bind(bobbin);
let answers = 0;
bobbin.agent("plain", ({ last }) => say(`${last}, answer ${++answers}`));

/** Waits until the history has these texts. @param {import("./support/client.mjs").Thread} thread @param {(string | RegExp)[]} texts */
async function has(thread, texts) {
  await thread.idle();
  const lines = (await thread.messages()).map(({ content }) => content);
  assert.equal(lines.length, texts.length, lines.join("\n"));
  lines.forEach((line, at) => assert.match(line, typeof texts[at] === "string" ? new RegExp(`^${texts[at]}`) : /** @type {RegExp} */ (texts[at])));
}

test("a reply is written anew, and the answer to a repeated request is the same run", async () => {
  const thread = await bobbin.client.thread("plain");
  await thread.ask("one");
  await thread.ask("two");
  await thread.ask("three");
  const before = await thread.messages();
  const stream = await thread.events();
  const headers = { "idempotency-key": "anew" };
  const path = `/messages/${before[3].id}/regenerate`;
  const answer = await thread.send("POST", path, undefined, { headers });
  assert.equal(answer.status, 202, answer.text);
  assert.deepEqual([answer.json.messageId, answer.json.deleted], [before[2].id, 3]);
  const cut = await stream.next("the cut", ({ data }) => data?.type === "messages_cut");
  assert.deepEqual([cut.data.after, cut.data.count], [before[2].id, 3]);
  await has(thread, ["one", "one, answer", "two", "two, answer"]);
  const after = await thread.messages();
  assert.deepEqual(after.slice(0, 3), before.slice(0, 3));
  assert.notEqual(after[3].content, before[3].content);
  const again = await thread.send("POST", path, undefined, { headers });
  assert.deepEqual([again.status, again.json.run], [202, answer.json.run], again.text);
  assert.deepEqual(await thread.messages(), after, "nothing was cut twice");
  stream.close();
});

test("a message is changed, and what followed it gives way to a new answer", async () => {
  const thread = await bobbin.client.thread("plain");
  await thread.ask("one");
  await thread.ask("two");
  const [first] = await thread.messages();
  const path = `/messages/${first.id}`;
  const kept = await thread.send("PATCH", `${path}?truncate=true`, { metadata: { seen: true } });
  assert.deepEqual([kept.status, kept.json], [200, { success: true, deleted: 3 }], kept.text);
  await has(thread, ["one"]);
  const answer = await thread.send("PATCH", `${path}?truncate=true&run=true`, { content: "uno" });
  assert.deepEqual([answer.status, answer.json.deleted], [202, 0], answer.text);
  await until("it is answered", async () => (await thread.messages()).length === 2);
  await has(thread, ["uno", "uno, answer"]);
  const refused = await thread.send("PATCH", `${path}?run=true`, { content: "x" });
  assert.deepEqual([refused.status, refused.json.error.field], [400, "run"]);
  assert.equal((await thread.ask("three")).status, "ok");
});

test("a kill right after the request loses neither the cut nor the answer", async () => {
  const thread = await bobbin.client.thread("plain");
  await thread.ask("one");
  assert.equal((await thread.send("POST", "/messages/last/regenerate")).status, 202);
  await bobbin.server.crash();
  await until("it is answered", async () => (await thread.messages()).length === 2);
  await has(thread, ["one", "one, answer"]);
});
