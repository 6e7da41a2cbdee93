// AG-UI requests: access, rejections and repeated requests. tests/clients tests the events with AG-UI's packages.

import assert from "node:assert/strict";
import { say, sayAndUse } from "../worker/support/model.mjs";
import { suite } from "../worker/support/suite.mjs";

const bobbin = suite({
  key: "key-of-all",
  vars: { BOBBIN_API_KEYS: "key-of-all=admin,key-of-alice=owner:alice,key-of-bob=owner:bob", BOBBIN_SURFACES: "ag-ui" },
});
const test = bobbin.test.bind(bobbin);

const echo = bobbin.agent("echo", ({ last }) => say(`You wrote: ${last}`, { chunks: 3 }));
bobbin.agent("hidden", () => say("never"), { agent: { expose: false } });
bobbin.tool("lookup", () => "found");
const looker = bobbin.agent("looker", ({ messages }) => (messages.at(-1)?.role === "tool" ? say("It is found.") : sayAndUse("One moment.", { name: "lookup", args: {} })), {
  tools: ["lookup"],
});

const alice = () => bobbin.as("key-of-alice");
const bob = () => bobbin.as("key-of-bob");
const path = (/** @type {string} */ name, more = "") => `/agents/${name}/ag-ui${more}`;
const user = (/** @type {string} */ content, id = "u1") => ({ id, role: "user", content });
/** @param {string} threadId @param {object[]} messages @param {object} [more] */
const input = (threadId, messages, more = {}) => ({ threadId, runId: "run-1", state: {}, messages, tools: [], context: [], forwardedProps: {}, ...more });
/** @param {string} text */
const events = (text) => [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, json]) => JSON.parse(json ?? ""));
/** @param {any[]} told */
const written = (told) => told.map(({ type, delta }) => (type === "TEXT_MESSAGE_CONTENT" ? delta : "")).join("");
/** @param {any[]} told @param {string} kind */
const count = (told, kind) => told.filter(({ type }) => type === kind).length;

test("a conversation is its owner's, whatever its id", async () => {
  for (const id of ["chat-1", "a/b?c#d", "6f0c8a52-1111-4111-8111-111111111111"]) {
    const answer = await alice().send("POST", path("echo"), input(id, [user("secret")]));
    assert.equal(answer.status, 200, answer.text);
    assert.equal(written(events(answer.text)), "You wrote: secret");
    const query = `?threadId=${encodeURIComponent(id)}`;
    const own = (await alice().send("GET", path("echo", query))).json;
    assert.equal(own.messages.length, 2);
    const nothing = { threadId: null, messages: [], activeRun: null, interrupts: null, page: { truncated: false } };
    assert.deepEqual((await bob().send("GET", path("echo", query))).json, nothing);
    assert.deepEqual((await bob().send("GET", path("echo", `?threadId=${own.threadId}`))).json, nothing, "a thread's id opens it to nobody else");
    assert.equal((await bob().send("GET", path("echo", `?threadId=${own.threadId}&runId=run-1`))).status, 404);
    assert.equal((await bob().send("POST", path("echo"), input(own.threadId, []))).status, 404);
    assert.deepEqual((await alice().send("GET", path("echo", `?threadId=${own.threadId}`))).json.messages, own.messages);
  }
});

test("what makes no sense is refused by name", async () => {
  const bodies = /** @type {[object, number, string][]} */ ([
    [{ runId: "r", messages: [] }, 400, "threadId"],
    [input("has a space", [user("x")]), 400, "threadId"],
    [input("r", [{ id: "u", role: "robot" }]), 400, "messages[0].role"],
    [input("r", [user("x")], { tools: [{ name: "unknown", description: "", parameters: {} }] }), 400, "tools"],
    [input("chat-1", [user("x")], { resume: [{ interruptId: "w_none", status: "resolved", payload: true }] }), 400, "resume[0].interruptId"],
  ]);
  for (const [body, status, field] of bodies) {
    const answer = await alice().send("POST", path("echo"), body);
    assert.deepEqual([answer.status, answer.json.error.field], [status, field], answer.text);
  }
  for (const name of ["hidden", "nobody"]) {
    for (const answer of [
      await alice().send("POST", path(name), input("r", [user("x")])),
      await alice().send("POST", path(name), input("r", [])),
      await alice().send("GET", path(name, "?threadId=r")),
    ]) {
      assert.deepEqual([answer.status, answer.json.error.code], [404, "agent_not_found"], answer.text);
    }
  }
  const offset = await alice().send("GET", path("echo", "?threadId=chat-1&runId=run-1&offset=7"));
  assert.deepEqual([offset.status, offset.json.error.field], [400, "offset"], offset.text);
  const asked = echo.model.asked.length;
  const last = await alice().send("POST", path("echo"), input("r", [user("x")]), { headers: { "last-event-id": "7" } });
  assert.deepEqual([last.status, last.json.error.field, echo.model.asked.length], [400, "Last-Event-ID", asked], last.text);
  assert.equal((await alice().send("POST", path("echo"), input("r", [user("x".repeat(13 << 20))]))).status, 413);
  assert.equal((await bobbin.as(undefined).send("POST", path("echo"), input("r", [user("x")]))).status, 401);
  for (const other of [await alice().send("POST", path("looker"), input("chat-1", [user("x", "u2")])), await alice().send("GET", path("looker", "?threadId=chat-1"))]) {
    assert.deepEqual([other.status, other.json.error.field], [409, "threadId"], other.text);
  }
});

test("the same message twice starts nothing, and both are told the same", async () => {
  const asked = echo.model.asked.length;
  const said = [user("hello", "né 日本")];
  const send = (/** @type {string} */ runId) => alice().send("POST", path("echo"), input("twice", said, { runId }));
  for (const { text } of [...(await Promise.all(["a", "b"].map(send))), await send("c")]) {
    const told = events(text);
    assert.equal(written(told), "You wrote: hello", text);
    assert.deepEqual([told[0].type, count(told, "RUN_STARTED"), count(told, "RUN_FINISHED"), told.at(-1).type], ["RUN_STARTED", 1, 1, "RUN_FINISHED"]);
  }
  assert.equal(echo.model.asked.length, asked + 1);
  const changed = await alice().send("POST", path("echo"), input("twice", [user("another", "né 日本")]));
  assert.deepEqual([changed.status, changed.json.error.code], [422, "idempotency_mismatch"], changed.text);
});

test("a conversation that is posted whole again is not doubled, wherever its stream broke off", async () => {
  const first = events((await alice().send("POST", path("looker"), input("whole", [user("look")]))).text);
  assert.equal(first.at(-1).type, "RUN_FINISHED");
  const own = async () => (await alice().send("GET", path("looker", "?threadId=whole"))).json.messages;
  const messages = await own();
  assert.deepEqual(messages.map((/** @type {any} */ { role }) => role), ["user", "assistant", "tool", "assistant"]);
  const asked = looker.model.asked.length;
  for (const held of [1, 2, 3, 4]) {
    const told = events((await alice().send("POST", path("looker"), input("whole", messages.slice(0, held), { runId: `again-${held}` }))).text);
    assert.equal(written(told), "One moment.It is found.", `with ${held} messages`);
    const snapshots = told.filter(({ type }) => type === "MESSAGES_SNAPSHOT").map((snapshot) => snapshot.messages);
    assert.deepEqual(snapshots, held > 1 ? [[messages[0]]] : [], "what was had of the reply is forgotten");
  }
  assert.equal(looker.model.asked.length, asked);
  assert.deepEqual(await own(), messages);
});

test("what a page tells about itself is told when it changes, and people are not shown it", async () => {
  let seen = 0;
  for (const [at, page] of ["cart", "cart", "home", "cart"].entries()) {
    const context = [{ description: "Page", value: page }];
    const send = () => alice().send("POST", path("echo"), input("context", [user(`${at}`, `c${at}`)], { context }));
    for (const answer of [await send(), await send()]) assert.equal(written(events(answer.text)), `You wrote: ${at}`, answer.text);
    const told = echo.model.asked.at(-1)?.body.messages.filter((/** @type {any} */ { content }) => String(content).includes("- Page: ")) ?? [];
    seen += at === 1 ? 0 : 1;
    assert.deepEqual([told.length, String(told.at(-1)?.content).includes(page)], [seen, true], `${at}: ${JSON.stringify(told)}`);
  }
  const { messages } = (await alice().send("GET", path("echo", "?threadId=context"))).json;
  assert.equal(messages.length, 8);
  assert.ok(!JSON.stringify(messages).includes("Page"));
});

/** Returns the events of a response with their ids. @param {string} text */
const withIds = (text) => [...text.matchAll(/^(?:id: (.*)\n)?data: (\{.*\})$/gm)].map(([, id, json]) => ({ id, event: JSON.parse(json ?? "") }));

test("the rest of a run comes behind the id of an event, from any of its routes and also long after", async () => {
  const body = input("rest", [user("look")]);
  const first = withIds((await alice().send("POST", path("looker"), body)).text);
  const ids = first.flatMap(({ id }) => (id === undefined ? [] : [id]));
  assert.ok(ids.length > 10 && new Set(ids).size === ids.length, ids.join(" "));
  const asked = looker.model.asked.length;
  for (const [at, { id }] of first.entries()) {
    if (id === undefined) continue;
    const behind = first.slice(at + 1).filter((told) => told.id !== undefined);
    for (const answer of [
      await alice().send("POST", path("looker"), body, { headers: { "last-event-id": id } }),
      await alice().send("GET", path("looker", "?threadId=rest&runId=run-1&offset=-1"), undefined, { headers: { "last-event-id": id } }),
      await alice().send("GET", path("looker", `?threadId=rest&runId=run-1&offset=${id}`)),
    ]) {
      const rest = withIds(answer.text).filter((told) => told.id !== undefined);
      // The stored text is one piece. A client that has read the end receives it again.
      const wanted = behind.length > 0 ? written(behind.map(({ event }) => event)) : "";
      assert.equal(written(rest.map(({ event }) => event)), wanted, `${id}: ${answer.text}`);
      assert.equal(rest.at(-1)?.event.type, "RUN_FINISHED");
      if (behind.length > 0) assert.deepEqual(rest.at(-1), behind.at(-1));
      else assert.notEqual(rest[0]?.id, id, "clients pass over what they know");
    }
  }
  assert.equal(looker.model.asked.length, asked, "nothing was done again");
  const unknown = withIds((await alice().send("POST", path("looker"), body, { headers: { "last-event-id": "m9999.1.10.0.0" } })).text);
  assert.deepEqual(unknown.slice(0, 2).map(({ event }) => event.type), ["RUN_STARTED", "MESSAGES_SNAPSHOT"], "all of it, anew");
  assert.equal(written(unknown.map(({ event }) => event)), "One moment.It is found.");
});

const counter = bobbin.agent("counter", ({ n, last }) => say(`${n}: ${last}`));

test("with `revise` a message that is sent again for another run is edited, or answered anew, and what followed is dropped", async () => {
  const send = async (/** @type {object[]} */ messages, /** @type {string} */ runId, more = "?revise=1") => {
    const answer = await alice().send("POST", path("counter", more), input("revise", messages, { runId }));
    assert.equal(answer.status, 200, answer.text);
    return written(events(answer.text));
  };
  const own = async () => (await alice().send("GET", path("counter", "?threadId=revise"))).json.messages;
  const contents = async () => (await own()).map((/** @type {any} */ { content }) => content);
  assert.equal(await send([user("one", "u1")], "run-a"), "1: one");
  assert.equal(await send([...(await own()), user("two", "u2")], "run-b"), "2: two");
  const [u1, a1] = await own();
  assert.equal(await send([u1, a1, user("two", "u2")], "run-b"), "2: two", "the same request once more");
  assert.equal(await send([u1, a1, user("two", "u2")], "run-c", ""), "2: two", "without the word nothing is answered anew");
  assert.equal(await send([u1, a1, user("two", "u2")], "run-c"), "3: two");
  for (const runId of ["run-b", "run-c"]) assert.equal(await send([u1, a1, user("two", "u2")], runId), "3: two", `${runId} was answered`);
  assert.deepEqual(await contents(), ["one", "1: one", "two", "3: two"]);
  for (const runId of ["run-b", "run-c"]) {
    const replay = await alice().send("GET", path("counter", `?threadId=revise&runId=${runId}`));
    assert.equal(written(events(replay.text)), "3: two", "by each of the client's ids");
  }
  const both = await Promise.all(["run-d", "run-d"].map((runId) => send([u1, a1, user("other", "u2")], runId)));
  assert.deepEqual(both, ["4: other", "4: other"], "an edit");
  assert.equal(await send([u1, a1, user("two", "u2")], "run-b"), "4: other", "a request that comes late changes nothing back");
  assert.deepEqual(await contents(), ["one", "1: one", "other", "4: other"]);
  assert.equal(await send([user("uno", "u1")], "run-e"), "5: uno");
  assert.deepEqual(await contents(), ["uno", "5: uno"], "what followed is dropped");
  assert.equal(counter.model.asked.length, 5);
  const files = [{ type: "text", text: "with a file" }, { type: "image", source: { type: "data", value: "aGk=", mimeType: "image/png" } }];
  const refused = await alice().send("POST", path("counter", "?revise=1"), input("revise", [{ id: "u1", role: "user", content: files }], { runId: "run-f" }));
  assert.deepEqual([refused.status, refused.json.error.field], [400, "messages"], refused.text);
});
