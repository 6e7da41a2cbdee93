// What the client of TanStack AI must see, whose page has been loaded anew in the middle of a run, and whose server was killed.

import assert from "node:assert/strict";
import { ChatClient, fetchServerSentEvents } from "@tanstack/ai-client";
import { say, sayAndUse, use } from "../../worker/support/model.mjs";
import { until } from "../../worker/support/poll.mjs";
import { suite } from "../../worker/support/suite.mjs";

const KEY = "key-of-the-tests";
const LONG = Array.from({ length: 30 }, (_, at) => `${at} naïve – 日本 🧵; `).join("");
const bobbin = suite({ key: KEY, vars: { BOBBIN_API_KEYS: `${KEY}=admin`, BOBBIN_SURFACES: "ag-ui" } });
const test = (/** @type {string} */ text, /** @type {() => Promise<void>} */ body) => bobbin.test(`tanstack: ${text}`, body);
bobbin.tool("lookup", () => "found", { idempotent: true });
const paid = bobbin.tool("pay", () => "paid", { approval: "always", idempotent: true });
bobbin.agent("echo", ({ messages, last }) => say(`${messages.filter(({ role }) => role === "user").length}: ${last}`, { chunks: 3 }));
bobbin.agent("looker", ({ messages }) => (messages.at(-1)?.role === "tool" ? say(LONG, { chunks: 30, everyMs: 40 }) : sayAndUse("One moment.", { name: "lookup", args: { of: "it" } })), {
  tools: ["lookup"],
});
bobbin.agent("thinker", () => async (out) => {
  await out.chunk({ reasoning_content: "Let me see." });
  await out.text("I see.");
  await out.end();
});
bobbin.agent("payer", ({ messages }) => (messages.at(-1)?.role === "tool" ? say(`So: ${messages.at(-1)?.content}`) : use({ name: "pay", args: { amount: 5 } })), { tools: ["pay"] });

/** A page. The address is one for all that the client asks. @param {string} name @param {string} threadId */
function page(name, threadId) {
  const url = `${bobbin.server.base}/api/agents/${name}/ag-ui?threadId=${threadId}&parts=1&reasoning=1`;
  const client = new ChatClient({ threadId, persistence: true, connection: fetchServerSentEvents(url, { headers: { authorization: `Bearer ${KEY}` } }) });
  client.attach();
  return client;
}
/** @param {ChatClient} client */
const shown = (client) => client.getMessages().map(({ id, role, parts }) => ({ id, role, parts }));
/** @param {ChatClient} client */
const said = (client) => client.getMessages().map(({ role, parts }) => [role, parts.map((part) => (part.type === "text" ? part.content : part.type)).join("|")]);
/** @param {ChatClient} client @param {number} count */
const settled = (client, count) => until(`${count} messages, and none under way`, () => client.getMessages().length >= count && !client.getIsLoading(), { describe: () => JSON.stringify(said(client)) });

test("turns follow one another, and a page that is loaded anew has what the other one has", async () => {
  for (const [name, count] of /** @type {const} */ ([["echo", 2], ["looker", 3], ["thinker", 2]])) {
    const first = page(name, `turns-${name}`);
    await first.sendMessage("one");
    await first.sendMessage("two");
    assert.equal(first.getMessages().length, 2 * count, JSON.stringify(said(first)));
    const again = page(name, `turns-${name}`);
    await settled(again, 2 * count);
    assert.deepEqual(shown(again), shown(first));
    await again.sendMessage("three");
    assert.deepEqual(shown(again).slice(0, 2 * count), shown(first));
    assert.equal(again.getMessages().length, 3 * count);
  }
});

for (const killed of [false, true]) {
  test(`a page that is loaded anew in the middle of a run ${killed ? "whose server was killed " : ""}has all of it, once`, async () => {
    const id = `middle-${killed}`;
    const first = page("looker", id);
    const sent = first.sendMessage("look");
    await until("the second reply goes on", () => said(first).at(2)?.[1]?.includes("5 ") ?? false);
    if (killed) await bobbin.server.crash();
    else first.dispose();
    await sent.catch(() => {});
    const again = page("looker", id);
    await settled(again, 3);
    assert.deepEqual(said(again), [["user", "look"], ["assistant", "One moment.|tool-call|tool-result"], ["assistant", LONG]]);
    const { json } = await bobbin.client.send("GET", `/threads/key:${id}/messages`);
    assert.equal(json.messages.length, 4, "nothing was said twice");
  });
}

test("an approval is answered, also by a page that was loaded since it was asked", async () => {
  for (const [at, approved] of [true, false].entries()) {
    const id = `approval-${at}`;
    const first = page("payer", id);
    await first.sendMessage("pay");
    const client = approved ? first : page("payer", id);
    await until("something is asked", () => client.getInterrupts().length === 1);
    const [asked] = /** @type {any[]} */ (client.getInterrupts());
    assert.deepEqual([asked.kind, asked.reason, asked.canResolve], ["generic", "tool_call", true]);
    const calls = paid.received.length;
    asked.resolveInterrupt({ approved, reason: "too much" });
    await settled(client, 3);
    const told = approved ? "paid" : "Denied: too much";
    assert.deepEqual(said(client), [["user", "pay"], ["assistant", "tool-call|tool-result"], ["assistant", `So: ${told}`]]);
    assert.deepEqual([client.getInterrupts().length, paid.received.length - calls], [0, approved ? 1 : 0]);
  }
});
