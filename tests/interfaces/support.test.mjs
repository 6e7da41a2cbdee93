// Tests of the test support. A strict model that accepts everything, or a transcript that misses a gap, would make all
// other tests worthless.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser } from "../worker/support/events.mjs";
import { problems } from "../worker/support/model-check.mjs";
import { chance } from "../worker/support/poll.mjs";
import { Transcript } from "../worker/support/transcript.mjs";

const call = (/** @type {string} */ id) => ({ id, type: "function", function: { name: "lookup", arguments: "{}" } });
const user = { role: "user", content: "hello" };
const calling = { role: "assistant", content: null, tool_calls: [call("a"), call("b")] };
const result = (/** @type {string} */ id) => ({ role: "tool", tool_call_id: id, content: "found" });
const closed = { type: "object", properties: { word: { type: "string" } }, required: ["word"], additionalProperties: false };
const tool = (/** @type {object} */ parameters, strict = false) => [
  { type: "function", function: { name: "lookup", description: "x", parameters, strict } },
];
const request = (/** @type {object[]} */ messages, /** @type {object} */ more = {}) => ({
  model: "m",
  stream: true,
  stream_options: { include_usage: true },
  messages,
  ...more,
});

test("the strict model accepts what is in order", () => {
  const messages = [{ role: "system", content: "x" }, user, calling, result("a"), result("b"), user];
  assert.deepEqual(problems(request(messages)), []);
  assert.deepEqual(problems(request([user], { tools: tool(closed, true) })), []);
});

/** @type {[string, any, RegExp][]} */
const wrong = [
  ["no messages", request([]), /at least one/],
  ["a call without result", request([user, calling, result("a"), user]), /no result/],
  ["a call without result at the end", request([user, calling, result("a")]), /no result/],
  ["a result without call", request([user, result("a")]), /no open call/],
  ["a result twice", request([user, calling, result("a"), result("a"), result("b")]), /no open call/],
  ["a message between call and result", request([user, calling, result("a"), user, result("b")]), /no result/],
  ["a repeated id", request([user, calling, result("a"), result("b"), calling, result("a"), result("b")]), /repeated/],
  ["an assistant at the end", request([user, { role: "assistant", content: "hi" }]), /last message/],
  ["an empty assistant", request([{ role: "assistant", content: "" }, user]), /neither content nor calls/],
  ["an empty user", request([{ role: "user", content: "" }]), /no content/],
  ["only a system message", request([{ role: "system", content: "x" }]), /only system/],
  ["an open object", request([user], { tools: tool({ type: "object", properties: {} }) }), /additionalProperties/],
  [
    "an open object in a list",
    request([user], {
      tools: tool({
        ...closed,
        properties: { word: { type: "array", items: { anyOf: [{ type: "null" }, { type: "object", properties: {} }] } } },
      }),
    }),
    /word\.items\.anyOf: additionalProperties/,
  ],
  ["strict with an optional property", request([user], { tools: tool({ ...closed, required: [] }, true) }), /not required/],
  ["a tool twice", request([user], { tools: [...tool(closed), ...tool(closed)] }), /twice/],
  ["tool_choice without tools", request([user], { tool_choice: "auto" }), /without tools/],
];

for (const [name, body, complaint] of wrong) {
  test(`the strict model refuses ${name}`, () => assert.match(problems(body).join("\n"), complaint));
}

test("events are the same wherever the stream is cut", () => {
  const text = 'retry: 1000\n\nid: 1.2\nevent: a\ndata: {"x":"naïve 🧵"}\n\n: heartbeat\n\nevent: b\ndata: {"y":\ndata: 1}\n\n';
  const bytes = Buffer.from(text);
  const expected = [
    { event: "a", id: "1.2", data: { x: "naïve 🧵" } },
    { event: "b", id: undefined, data: { y: 1 } },
  ];
  for (let cut = 0; cut <= bytes.length; cut++) {
    const parser = new EventParser();
    const events = [...parser.push(bytes.subarray(0, cut)), ...parser.push(bytes.subarray(cut))];
    assert.deepEqual(events, expected, `cut at ${cut}`);
    assert.deepEqual([parser.comments, parser.retry], [["heartbeat"], 1000]);
  }
  assert.deepEqual(new EventParser().push(bytes.subarray(0, bytes.length - 1)).length, 1, "half an event is none");
});

test("a transcript notices lost, repeated and outdated text", () => {
  const chunk = (/** @type {number} */ attempt, /** @type {number} */ offset, /** @type {string} */ text) => ({
    message_id: "m",
    attempt,
    offset,
    chunk: text,
  });
  const transcript = new Transcript();
  transcript.take("message_chunk", chunk(1, 0, "naïve"));
  assert.throws(() => new Transcript(transcript).take("message_chunk", chunk(1, 5, "lost")), /joins on/);
  assert.throws(() => new Transcript(transcript).take("message_chunk", chunk(1, 0, "twice")), /joins on/);
  assert.throws(() => new Transcript(transcript).take("message_chunk", chunk(2, 6, "mixed")), /starts at offset 0/);
  transcript.take("message_chunk", chunk(1, 6, "!"));
  assert.equal(transcript.text("m"), "naïve!");
  transcript.take("message_reset", { message_id: "m", attempt: 2 });
  assert.equal(transcript.text("m"), "");
  assert.throws(() => new Transcript(transcript).take("message_chunk", chunk(1, 0, "late")), /after attempt/);
  transcript.take("message_chunk", chunk(2, 0, "again"));
  assert.equal(transcript.text("m"), "again");
});

test("the same seed gives the same numbers, another purpose others", () => {
  const numbers = (/** @type {string} */ purpose) => {
    const random = chance(purpose, 7);
    return Array.from({ length: 20 }, () => random.between(0, 1000));
  };
  assert.deepEqual(numbers("a"), numbers("a"));
  assert.notDeepEqual(numbers("a"), numbers("b"));
});
