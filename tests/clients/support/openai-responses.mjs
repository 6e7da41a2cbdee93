// What responses must do with OpenAI's own client: calm, and again with the server killed while they go on, with the same
// assertions.

import assert from "node:assert/strict";
import { breakOff, makes, say, sayAndUse, use } from "../../worker/support/model.mjs";
import { chance, sleep, until } from "../../worker/support/poll.mjs";
import { suite } from "../../worker/support/suite.mjs";

const KEY = "key-of-the-tests";
const LONG = Array.from({ length: 30 }, (_, at) => `${at} naïve – 日本 🧵; `).join("");

/** @param {number} major @param {typeof import("openai")} openai  the package @param {boolean} [killed] */
export function responses(major, { OpenAI }, killed = false) {
  const name = `openai-js ${major}`;
  const bobbin = suite({ key: KEY, vars: { BOBBIN_API_KEYS: `${KEY}=admin,key-of-alice=owner:alice` } });
  bobbin.tool("lookup", () => "found", { idempotent: true });
  const paid = bobbin.tool("pay", () => "paid", { approval: "always", idempotent: true });
  bobbin.definitions.push(() => {
    bobbin.folder.write({ tools: { locate: { description: "Where the person is.", run: { client: {} } } } });
  });
  bobbin.agent("echo", ({ messages, last }) => say(`${messages.filter(({ role }) => role === "user").length}: ${last}`, { chunks: 3 }));
  bobbin.agent("talker", () => say(LONG, { chunks: 30, everyMs: 20 }));
  bobbin.agent("looker", ({ messages }) => (messages.at(-1)?.role === "tool" ? say("It is found.") : sayAndUse("One moment.", { name: "lookup", args: { of: "it" } })), {
    tools: ["lookup"],
  });
  bobbin.agent("breaking", () => breakOff("words"), { model: { retry: { maxAttempts: 1 } } });
  bobbin.agent("payer", makes({ name: "pay", args: { amount: 5 } }), { tools: ["pay"] });
  bobbin.agent("finder", ({ messages }) => (messages.at(-1)?.role === "tool" ? say(`You are in ${messages.at(-1)?.content}.`) : use({ name: "locate", args: {} })), {
    tools: ["locate"],
  });

  const random = chance(`${name}, responses ${killed}`);
  const client = (apiKey = KEY) => new OpenAI({ baseURL: `${bobbin.server.base}/v1`, apiKey, maxRetries: killed ? 12 : 2 });
  const disturb = async () => {
    if (!killed) return;
    await sleep(random.between(0, 700));
    await bobbin.server.crash();
  };
  const test = (/** @type {string} */ text, /** @type {() => Promise<void>} */ body) => bobbin.test(`${name}, responses${killed ? ", killed" : ""}: ${text}`, body);
  /** Until it is over. @param {string} id */
  const settled = (id) =>
    until(
      `${id} is over`,
      async () => {
        const response = await client().responses.retrieve(id);
        return !["queued", "in_progress"].includes(response.status ?? "") && response;
      },
      { withinMs: 60_000, everyMs: 100 },
    );

  test("an answer is whole, and is there later", async () => {
    const disturbed = disturb();
    const response = await client().responses.create({ model: "echo", input: "hello", metadata: { of: "me" } });
    await disturbed;
    assert.deepEqual([response.status, response.output_text, response.object], ["completed", "1: hello", "response"]);
    assert.ok((response.usage?.total_tokens ?? 0) > 0);
    const later = await client().responses.retrieve(response.id);
    assert.deepEqual([later.output, later.metadata, later.model], [response.output, { of: "me" }, "echo"]);
  });

  test("three turns follow one another, and an older one is followed in a copy of the conversation", async () => {
    const first = await client().responses.create({ model: "echo", input: "one", instructions: "Be brief." });
    const second = await client().responses.create({ model: "echo", input: "two", previous_response_id: first.id });
    const disturbed = disturb();
    const third = await client().responses.create({ model: "echo", input: [{ role: "user", content: "three" }], previous_response_id: second.id });
    await disturbed;
    assert.deepEqual([first, second, third].map(({ output_text }) => output_text), ["1: one", "2: two", "3: three"]);
    assert.equal(third.previous_response_id, second.id);
    const threads = async () => (await bobbin.client.send("GET", "/threads?limit=500")).json.threads.length;
    const before = await threads();
    const again = disturb();
    const { data: other, response } = await client().responses.create({ model: "echo", input: "other", previous_response_id: first.id }).withResponse();
    await again;
    assert.deepEqual([other.output_text, other.previous_response_id], ["2: other", first.id]);
    assert.equal(await threads(), before + 1, "one copy, however often it was asked for");
    const copy = response.headers.get("x-bobbin-thread") ?? "";
    assert.equal((await bobbin.client.send("GET", `/threads/${copy}/messages`)).json.messages.length, 4);
    const then = await client().responses.create({ model: "echo", input: "further", previous_response_id: other.id }).withResponse();
    assert.deepEqual([then.data.output_text, then.response.headers.get("x-bobbin-thread")], ["3: further", copy], "it goes on there");
    const fourth = await client().responses.create({ model: "echo", input: "four", previous_response_id: third.id });
    assert.equal(fourth.output_text, "4: four", "what it is a copy of is as it was");
    await assert.rejects(client("key-of-alice").responses.create({ model: "echo", input: "x", previous_response_id: first.id }), OpenAI.NotFoundError);
    await assert.rejects(client("key-of-alice").responses.retrieve(first.id), OpenAI.NotFoundError);
  });

  test("a conversation is a thread with that key", async () => {
    const conversation = { id: `conversation-${killed}` };
    await client().responses.create({ model: "echo", input: "one", conversation });
    const disturbed = disturb();
    const second = await client().responses.create({ model: "echo", input: "two", conversation: conversation.id });
    await disturbed;
    assert.equal(second.output_text, "2: two");
    const { json } = await bobbin.client.send("GET", `/threads/key:${conversation.id}/messages`);
    assert.equal(json.messages.length, 4);
  });

  test("a conversation is made, talked in, read, changed and deleted", async () => {
    const { conversations } = client();
    const metadata = { agent: "looker", topic: "finding" };
    const items = /** @type {any[]} */ ([
      { type: "message", role: "user", content: "earlier" },
      { role: "assistant", content: [{ type: "output_text", text: "It was." }] },
    ]);
    const conversation = await conversations.create({ metadata, items });
    assert.deepEqual([conversation.object, conversation.metadata], ["conversation", metadata]);
    const disturbed = disturb();
    const response = await client().responses.create({ model: "looker", input: "look", conversation: conversation.id });
    await disturbed;
    assert.equal(response.conversation?.id, conversation.id);
    const listed = async (/** @type {any} */ query) => {
      const all = /** @type {any[]} */ ([]);
      for await (const item of conversations.items.list(conversation.id, query)) all.push(item);
      return all;
    };
    const all = await listed({ order: "asc", limit: 1 });
    const shown = all.map(({ type, role, content, output }) => [type, role, content?.[0].text ?? output]);
    assert.deepEqual(shown, [
      ["message", "user", "earlier"],
      ["message", "assistant", "It was."],
      ["message", "user", "look"],
      ["message", "assistant", "One moment."],
      ["mcp_call", undefined, "found"],
      ["message", "assistant", "It is found."],
    ]);
    assert.deepEqual(all.slice(3), response.output, "items are those of the response");
    assert.deepEqual((await listed({ limit: 2 })).reverse(), all);
    assert.deepEqual(await listed({ order: "asc" }), all);
    assert.deepEqual(await conversations.items.retrieve(all[2].id, { conversation_id: conversation.id }), all[2]);
    const added = await conversations.items.create(conversation.id, { items: [{ role: "system", content: "Be brief." }] });
    assert.deepEqual(added.data.map((/** @type {any} */ { role, content }) => [role, content[0].text]), [["system", "Be brief."]]);
    await assert.rejects(conversations.items.create(conversation.id, { items: [{ role: "user", content: "x" }] }), OpenAI.BadRequestError);
    await conversations.items.delete(added.data[0]?.id ?? "", { conversation_id: conversation.id });
    assert.deepEqual(await listed({ order: "asc" }), all);
    const changed = await conversations.update(conversation.id, { metadata: { topic: "other" } });
    assert.deepEqual([changed.metadata, (await conversations.retrieve(conversation.id)).metadata], [{ topic: "other" }, { topic: "other" }]);
    await assert.rejects(client().responses.create({ model: "echo", input: "x", conversation: conversation.id }), OpenAI.ConflictError);
    await assert.rejects(client("key-of-alice").conversations.retrieve(conversation.id), OpenAI.NotFoundError);
    await assert.rejects(conversations.create(), (/** @type {any} */ error) => error instanceof OpenAI.BadRequestError && error.param === "metadata.agent");
    await assert.rejects(conversations.create({ metadata: { agent: "nobody" } }), OpenAI.NotFoundError);
    const deleted = await conversations.delete(conversation.id);
    assert.deepEqual([deleted.id, deleted.deleted, deleted.object], [conversation.id, true, "conversation.deleted"]);
    await assert.rejects(conversations.retrieve(conversation.id), OpenAI.NotFoundError);
  });

  /**
   * A stream with the package's helper, to its end. The helper does not connect again by itself: what breaks is an error, and the
   * package has it follow the response once more by its id, from its beginning or behind an event.
   *
   * @param {any} params
   */
  async function helped(params) {
    let asked = params;
    for (let tries = 0; ; tries += 1) {
      const events = /** @type {any[]} */ ([]);
      try {
        const stream = client().responses.stream(asked);
        for await (const event of stream) {
          events.push(event);
          if (event.type === "response.created") asked = { response_id: event.response.id };
        }
        return { events, final: await stream.finalResponse() };
      } catch (error) {
        if (!killed || tries > 40) throw error;
        await sleep(300);
      }
    }
  }

  test("the helper for streams sees every item in order", async () => {
    for (const [model, texts] of /** @type {[string, string[]][]} */ ([["talker", [LONG]], ["looker", ["One moment.", "It is found."]]])) {
      const disturbed = disturb();
      const { events, final } = await helped({ model, input: "go", background: true });
      await disturbed;
      assert.deepEqual([events[0].type, events.at(-1).type, final.status], ["response.created", "response.completed", "completed"]);
      const messages = final.output.filter((/** @type {any} */ { type, status }) => type === "message" && status === "completed");
      assert.deepEqual(messages.map((/** @type {any} */ item) => item.content[0].text), texts);
      const calls = final.output.filter(({ type }) => type === "mcp_call");
      assert.deepEqual(calls.map((/** @type {any} */ { name, output }) => [name, output]), model === "looker" ? [["lookup", "found"]] : []);
      const at = events[4].sequence_number;
      const rest = await helped({ response_id: final.id, starting_after: at });
      assert.ok(rest.events.every(({ sequence_number }) => sequence_number > at), "what comes behind an event");
      assert.equal(rest.final.output_text, texts.join(""));
    }
  });

  // Versions differ in what they send and drop; the numbers of events must fit each (crates/protocols/src/openai/response_events.rs).
  test("the helper receives a whole response again, and shows the part after an event", async () => {
    const { id } = await client().responses.create({ model: "talker", input: "go" });
    const { events } = await helped({ response_id: id });
    const at = events[4].sequence_number;
    const asked = /** @type {string[]} */ ([]);
    const recording = new OpenAI({ baseURL: `${bobbin.server.base}/v1`, apiKey: KEY, fetch: (url, init) => {
      asked.push(`${url}`);
      return fetch(url, init);
    } });
    const rest = [];
    for await (const event of recording.responses.stream(/** @type {any} */ ({ response_id: id, starting_after: at }))) rest.push(event);
    assert.deepEqual(asked.map((url) => new URL(url).search), ["?stream=true"]);
    assert.deepEqual(rest, events.slice(5));
  });

  // An event `error` is thrown by 7.59 and later, and comes as an event before.
  test("a response that fails ends with that, and no version takes it for an error", async () => {
    const disturbed = disturb();
    const { events, final } = await helped({ model: "breaking", input: "go", background: true });
    await disturbed;
    assert.equal(events.at(-1).type, "response.failed");
    assert.ok(events.every(({ type }) => type !== "error"));
    assert.deepEqual([final.status, final.error?.code, final.error?.message], ["failed", events.at(-1).response.error.code, events.at(-1).response.error.message]);
    const told = [];
    for await (const { type } of /** @type {any} */ (await client().responses.retrieve(final.id, { stream: true }))) told.push(type);
    assert.equal(told.at(-1), "response.failed");
  });

  test("work in the background is polled, streamed from anywhere, and read on after a break", async () => {
    const begun = await client().responses.create({ model: "talker", input: "go", background: true });
    assert.deepEqual([begun.status, begun.background], ["queued", true]);
    const disturbed = disturb();
    const events = /** @type {any[]} */ ([]);
    let after;
    for (let tries = 0; ; tries += 1) {
      try {
        const options = after === undefined ? { stream: true } : { stream: true, starting_after: after };
        const stream = /** @type {any} */ (await client().responses.retrieve(begun.id, /** @type {any} */ (options)));
        for await (const event of stream) {
          // Who is told all of it anew starts over.
          if (event.type === "response.created") events.length = 0;
          events.push(event);
          after = event.sequence_number;
          // The connection breaks now and then.
          if (tries < 3 && events.length > 5 * (tries + 1)) break;
        }
        if (events.at(-1)?.type === "response.completed") break;
        if (tries > 40) throw new Error("it has no end");
      } catch (error) {
        if (!killed || tries > 40) throw error;
        await sleep(300);
      }
    }
    await disturbed;
    const text = events.filter(({ type }) => type === "response.output_text.delta").map(({ delta }) => delta).join("");
    assert.equal(text, LONG);
    const response = await settled(begun.id);
    assert.equal(response.output_text, LONG);
    for (const at of [0, 3, Math.floor(events.length / 2), events.length - 2]) {
      const rest = /** @type {any} */ (await client().responses.retrieve(begun.id, /** @type {any} */ ({ stream: true, starting_after: events[at].sequence_number })));
      let told = events.slice(0, at + 1).filter(({ type }) => type === "response.output_text.delta").map(({ delta }) => delta).join("");
      for await (const event of rest) {
        assert.notEqual(event.type, "response.created", `behind ${at}`);
        told += event.type === "response.output_text.delta" ? event.delta : "";
      }
      assert.equal(told, LONG, `behind ${at}`);
    }
  });

  test("what is cancelled stops, and says so", async () => {
    const begun = await client().responses.create({ model: "talker", input: "go", background: true });
    const cancelled = await client().responses.cancel(begun.id);
    assert.equal(cancelled.status, "cancelled");
    assert.equal((await settled(begun.id)).status, "cancelled");
    await client().responses.delete(begun.id);
    await assert.rejects(client().responses.retrieve(begun.id), OpenAI.NotFoundError);
  });

  test("a call that is left to the client is a function call, with or without a name of the conversation", async () => {
    const tools = /** @type {any[]} */ ([{ type: "function", name: "locate", parameters: { type: "object", properties: {} }, strict: false }]);
    const first = await client().responses.create({ model: "finder", input: "where am I?", tools });
    const call = /** @type {any} */ (first.output.find(({ type }) => type === "function_call"));
    assert.deepEqual([first.status, call.name], ["completed", "locate"]);
    const output = { type: /** @type {const} */ ("function_call_output"), call_id: call.call_id, output: "Lisbon" };
    const disturbed = disturb();
    const then = await client().responses.create({ model: "finder", input: [output], previous_response_id: first.id });
    await disturbed;
    assert.equal(then.output_text, "You are in Lisbon.");
    const stateless = await client().responses.create({ model: "finder", input: [{ role: "user", content: "where am I?" }, call, output] });
    assert.equal(stateless.output_text, "You are in Lisbon.", "the same answer, once more");
    assert.equal((await client().responses.retrieve(first.id)).output.at(-1)?.type, "function_call", "the first is as it was");
  });

  test("an approval is asked for and given", async () => {
    const calls = paid.received.length;
    const first = await client().responses.create({ model: "payer", input: "pay" });
    const asked = /** @type {any} */ (first.output.at(-1));
    assert.deepEqual([asked.type, asked.name, JSON.parse(asked.arguments)], ["mcp_approval_request", "pay", { amount: 5 }]);
    const disturbed = disturb();
    const then = await client().responses.create({
      model: "payer",
      input: [{ type: "mcp_approval_response", approval_request_id: asked.id, approve: true }],
      previous_response_id: first.id,
    });
    await disturbed;
    assert.equal(then.output_text, "done");
    assert.equal(paid.received.length, calls + 1);
    const call = /** @type {any} */ (then.output.find(({ type }) => type === "mcp_call"));
    assert.deepEqual([call.output, call.approval_request_id], ["paid", asked.id]);
  });
}
