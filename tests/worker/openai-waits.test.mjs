// Responses that end with several questions: each contains all of them, live, read again and streamed again, whatever
// was decided since.

import assert from "node:assert/strict";
import { exchange } from "./support/http.mjs";
import { say, textOf, use } from "./support/model.mjs";
import { suite } from "./support/suite.mjs";

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

const args = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
const paid = bobbin.tool("pay", ({ args }) => `paid ${args.n}`, { args, approval: "always", idempotent: true });
bobbin.tool("read", ({ args }) => `read ${args.n}`, { args });
bobbin.definitions.push(() => bobbin.folder.write({ tools: { show: { description: "Shows.", args, run: { client: {} } } } }));

/** Makes the calls that the message lists as JSON. */
const clerk = (/** @type {any} */ { messages }) => {
  const said = messages.findLast((/** @type {any} */ { role }) => role === "user");
  return messages.at(-1).role === "tool" ? say("done") : use(...JSON.parse(textOf(said)));
};
bobbin.agent("cashier", clerk, { tools: ["pay", "read", "show"], prompt: { parallelToolCalls: true } });

/** @param {string} method @param {string} path @param {object} [body] */
async function send(method, path, body) {
  const answer = await exchange(bobbin.server.base, method, path, {
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  assert.equal(answer.status, 200, answer.text);
  return answer;
}

const KNOWS_APPROVALS = [{ type: "mcp", server_label: "bobbin", server_url: "https://bobbin.example", require_approval: "always" }];
/** @param {object} more */
const respond = async (more) => (await send("POST", "/v1/responses", { model: "cashier", tools: KNOWS_APPROVALS, ...more })).json;

/** Returns the types of items, with the called names. @param {any} response */
const items = (response) => response.output.map((/** @type {any} */ { type, name, arguments: of }) => `${type} ${name} ${JSON.parse(of).n}`);

/** Reads a response as a whole and as a stream, and checks that they agree. @param {string} id */
async function retrieve(id) {
  const { json } = await send("GET", `/v1/responses/${id}`);
  const { text } = await send("GET", `/v1/responses/${id}?stream=true`);
  const events = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data]) => JSON.parse(data ?? ""));
  assert.deepEqual(events.at(-1).response.output, json.output, "streamed again");
  const done = events.filter(({ type }) => type === "response.output_item.done").toSorted((a, b) => a.output_index - b.output_index);
  assert.deepEqual(done.map(({ item }) => item), json.output, "item by item");
  return json;
}

/** @param {any} item @param {boolean} [approve] */
const decision = (item, approve = true) => ({ type: "mcp_approval_response", approval_request_id: item.id, approve });

/** @param {...[string, number]} calls */
const input = (...calls) => JSON.stringify(calls.map(([name, n]) => ({ name, args: { n } })));

test("several approvals are in the response that asked for them, whatever was decided since", async () => {
  const first = await respond({ input: input(["read", 0], ["pay", 1], ["read", 2], ["pay", 3]) });
  const asked = ["mcp_call read 0", "mcp_approval_request pay 1", "mcp_approval_request pay 3"];
  assert.deepEqual(items(first), asked);
  const unchanged = async (/** @type {string} */ when) => assert.deepEqual((await retrieve(first.id)).output, first.output, when);
  await unchanged("nothing is decided");
  const [, one, two] = first.output;
  const second = await respond({ input: [decision(one)], previous_response_id: first.id });
  assert.deepEqual(items(second), ["mcp_call pay 1", "mcp_call read 2", "mcp_approval_request pay 3"]);
  assert.deepEqual([second.output[0].approval_request_id, second.output[0].output, second.output[2].id], [one.id, "paid 1", two.id]);
  await unchanged("one is decided");
  const third = await respond({ input: [decision(two, false)], previous_response_id: second.id });
  const calls = third.output.filter((/** @type {any} */ { type }) => type === "mcp_call");
  assert.deepEqual(items({ output: calls }), ["mcp_call pay 1", "mcp_call read 2", "mcp_call pay 3"]);
  assert.equal(calls[2].approval_request_id, two.id);
  await unchanged("all are decided");
  await bobbin.server.crash();
  await unchanged("after a kill");
  assert.equal(paid.received.length, 1);
  const { data } = (await send("GET", `/v1/conversations/${first.conversation.id}/items?order=asc`)).json;
  const made = data.filter((/** @type {any} */ { type }) => type === "mcp_call");
  assert.deepEqual(made.map((/** @type {any} */ { name, approval_request_id: of }) => [name, of]), [["read", null], ["pay", one.id], ["read", null], ["pay", two.id]]);
});

test("both approvals may be decided at once, and calls of the client are beside them", async () => {
  const first = await respond({ input: input(["pay", 1], ["show", 2], ["pay", 3], ["show", 4]) });
  const asked = ["function_call show 2", "function_call show 4", "mcp_approval_request pay 1", "mcp_approval_request pay 3"];
  assert.deepEqual(items(first), asked);
  assert.deepEqual((await retrieve(first.id)).output, first.output, "nothing is answered");
  const [show2, show4, pay1, pay3] = first.output;
  const output = (/** @type {any} */ { call_id }) => ({ type: "function_call_output", call_id, output: "shown" });
  const second = await respond({ input: [decision(pay3), output(show4), decision(pay1), output(show2)], previous_response_id: first.id });
  assert.deepEqual(second.output.map((/** @type {any} */ { type, output }) => [type, output]), [["mcp_call", "paid 1"], ["mcp_call", "paid 3"], ["message", undefined]]);
  assert.deepEqual((await retrieve(first.id)).output, first.output, "all is answered");
  assert.deepEqual((await retrieve(second.id)).output, second.output);
});

test("several calls of the client are in the response, also as a stream", async () => {
  const first = await respond({ input: input(["show", 1], ["show", 2], ["show", 3]) });
  assert.deepEqual(items(first), ["function_call show 1", "function_call show 2", "function_call show 3"]);
  assert.deepEqual((await retrieve(first.id)).output, first.output);
  const outputs = first.output.map((/** @type {any} */ { call_id }) => ({ type: "function_call_output", call_id, output: "shown" }));
  assert.equal((await respond({ input: outputs, previous_response_id: first.id })).output.at(-1).content[0].text, "done");
  assert.deepEqual((await retrieve(first.id)).output, first.output, "all are answered");
});
