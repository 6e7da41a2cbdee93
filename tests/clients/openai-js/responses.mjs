// What responses must do with OpenAI's own client: calm, and again with the server killed while they go on, with the same
// assertions.

import assert from "node:assert/strict";
import OpenAI from "openai";
import { makes, say, sayAndUse, use } from "../../worker/support/model.mjs";
import { chance, sleep, until } from "../../worker/support/poll.mjs";
import { suite } from "../../worker/support/suite.mjs";

const KEY = "key-of-the-tests";
const LONG = Array.from({ length: 30 }, (_, at) => `${at} naïve – 日本 🧵; `).join("");

/** @param {boolean} killed */
export function responses(killed) {
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
  bobbin.agent("payer", makes({ name: "pay", args: { amount: 5 } }), { tools: ["pay"] });
  bobbin.agent("finder", ({ messages }) => (messages.at(-1)?.role === "tool" ? say(`You are in ${messages.at(-1)?.content}.`) : use({ name: "locate", args: {} })), {
    tools: ["locate"],
  });

  const random = chance(`responses ${killed}`);
  const client = (apiKey = KEY) => new OpenAI({ baseURL: `${bobbin.server.base}/v1`, apiKey, maxRetries: killed ? 12 : 2 });
  const disturb = async () => {
    if (!killed) return;
    await sleep(random.between(0, 700));
    await bobbin.server.crash();
  };
  const test = (/** @type {string} */ text, /** @type {() => Promise<void>} */ body) => bobbin.test(`openai-js, responses${killed ? ", killed" : ""}: ${text}`, body);
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

  test("the helper for streams sees every item in order", async () => {
    for (const [model, texts] of /** @type {[string, string[]][]} */ ([["talker", [LONG]], ["looker", ["One moment.", "It is found."]]])) {
      const stream = client().responses.stream({ model, input: "go" });
      const kinds = [];
      for await (const event of stream) kinds.push(event.type);
      const final = await stream.finalResponse();
      assert.deepEqual([kinds[0], kinds.at(-1), final.status], ["response.created", "response.completed", "completed"]);
      const said = final.output.filter(({ type }) => type === "message").map((/** @type {any} */ item) => item.content[0].text);
      assert.deepEqual(said, texts);
      const calls = final.output.filter(({ type }) => type === "mcp_call");
      assert.deepEqual(calls.map((/** @type {any} */ { name, output }) => [name, output]), model === "looker" ? [["lookup", "found"]] : []);
    }
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
