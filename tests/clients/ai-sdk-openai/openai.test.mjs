// The AI SDK's provider for OpenAI, as it is by default: it keeps references to what it was sent, and sends those from the second turn on.

import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, jsonSchema, streamText, tool } from "ai";
import { makes, say, sayAndUse, use } from "../../worker/support/model.mjs";
import { suite } from "../../worker/support/suite.mjs";

const KEY = "key-of-the-tests";
const bobbin = suite({ key: KEY, vars: { BOBBIN_API_KEYS: `${KEY}=admin` } });
bobbin.definitions.push(() => {
  bobbin.folder.write({ tools: { locate: { description: "Where the person is.", run: { client: {} } } } });
});
bobbin.tool("lookup", () => "found", { idempotent: true });
const paid = bobbin.tool("pay", () => "paid", { approval: "always", idempotent: true });
bobbin.agent("echo", ({ messages, last }) => say(`${messages.filter(({ role }) => role === "user").length}: ${last}`));
bobbin.agent("looker", ({ messages }) => (messages.at(-1)?.role === "tool" ? say("It is found.") : sayAndUse("One moment.", { name: "lookup", args: { of: "it" } })), {
  tools: ["lookup"],
});
bobbin.agent("payer", makes({ name: "pay", args: { amount: 5 } }), { tools: ["pay"] });
bobbin.agent("finder", ({ messages }) => (messages.at(-1)?.role === "tool" ? say(`You are in ${messages.at(-1)?.content}.`) : use({ name: "locate", args: {} })), {
  tools: ["locate"],
});

/** @type {any[]} */
const sent = [];
const openai = () =>
  createOpenAI({
    baseURL: `${bobbin.server.base}/v1`,
    apiKey: KEY,
    fetch: (url, init) => {
      sent.push(JSON.parse(`${init?.body}`));
      return fetch(url, init);
    },
  });
const user = (/** @type {string} */ content) => /** @type {const} */ ({ role: "user", content });
const kinds = () => sent.at(-1).input.map((/** @type {any} */ item) => item.type ?? item.role);

for (const agent of ["echo", "looker"]) {
  bobbin.test(`ai-sdk-openai: the turns of ${agent} are one conversation, and an earlier one goes on in a copy`, async () => {
    const model = openai()(agent);
    /** @type {any[]} */
    let messages = [];
    /** @type {string[]} */
    const threads = [];
    const turn = async (/** @type {string} */ text) => {
      messages = [...messages, user(text)];
      const { text: answer, response } = await generateText({ model, messages });
      threads.push(`${response.headers?.["x-bobbin-thread"]}`);
      messages = [...messages, ...response.messages];
      return answer;
    };
    await turn("one");
    const before = messages;
    const second = await turn("two");
    assert.ok(kinds().includes("item_reference"), `${kinds()}`);
    assert.equal(second, agent === "echo" ? "2: two" : "One moment.It is found.");
    messages = before;
    const other = await turn("two, but another");
    if (agent === "echo") assert.equal(other, "2: two, but another", "the second turn is not in it");
    assert.equal(threads[1], threads[0]);
    assert.notEqual(threads[2], threads[0]);
  });
}

bobbin.test("ai-sdk-openai: a stream, and an error of a reference to nothing", async () => {
  const model = openai()("echo");
  const first = streamText({ model, messages: [user("one")] });
  await first.consumeStream();
  const { messages } = await first.response;
  const second = streamText({ model, messages: [user("one"), ...messages, user("two")] });
  let text = "";
  for await (const piece of second.textStream) text += piece;
  assert.equal(text, "2: two");
  const unknown = { role: /** @type {const} */ ("assistant"), content: [{ type: /** @type {const} */ ("text"), text: "x", providerOptions: { openai: { itemId: "msg_of_nobody" } } }] };
  await assert.rejects(generateText({ model, messages: [user("one"), unknown, user("two")], maxRetries: 0 }), (/** @type {any} */ error) => {
    assert.equal(error.statusCode, 400);
    assert.match(error.message, /There is no item “msg_of_nobody” here/);
    return true;
  });
});

bobbin.test("ai-sdk-openai: an approval is asked for, given and denied, and what follows is known", async () => {
  for (const [approved, calls] of /** @type {const} */ ([[true, 1], [false, 0]])) {
    const before = paid.received.length;
    const model = openai()("payer");
    const first = await generateText({ model, messages: [user("pay")] });
    const asked = /** @type {any} */ (first.content.find(({ type }) => type === "tool-approval-request"));
    assert.ok(asked, JSON.stringify(first.content));
    assert.deepEqual(first.content.filter(({ type }) => type === "tool-result"), [], "nothing was made yet");
    const answer = { role: /** @type {const} */ ("tool"), content: [{ type: /** @type {const} */ ("tool-approval-response"), approvalId: asked.approvalId, approved, providerExecuted: true }] };
    const messages = [user("pay"), ...first.response.messages, answer];
    const then = await generateText({ model, messages });
    assert.equal(then.text, "done");
    assert.equal(paid.received.length - before, calls);
    const more = await generateText({ model: openai()("payer"), messages: [...messages, ...then.response.messages, user("and?")] });
    assert.equal(more.response.headers?.["x-bobbin-thread"], then.response.headers?.["x-bobbin-thread"]);
  }
});

bobbin.test("ai-sdk-openai: a tool of the client's is carried out and goes on", async () => {
  const locate = tool({ description: "Where the person is.", inputSchema: jsonSchema({ type: "object", properties: {} }), execute: () => "Lisbon" });
  const { text } = await generateText({ model: openai()("finder"), prompt: "where am I?", tools: { locate }, stopWhen: isStepCount(3) });
  assert.equal(text, "You are in Lisbon.");
});
