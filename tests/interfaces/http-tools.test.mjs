// Tools behind a URL: the allowed responses, and what the model receives.

import assert from "node:assert/strict";
import { say, textOf, use } from "../worker/support/model.mjs";
import { suite } from "../worker/support/suite.mjs";

const bobbin = suite({ vars: { GLOSSARY_KEY: "key-of-the-glossary" } });
const test = bobbin.test.bind(bobbin);

const reached = bobbin.tool("elsewhere", () => "must not be reached");

/**
 * The response of a tool server, the text for the model, and the status of the call.
 *
 * @type {Record<string, { answer: import("../worker/support/tool.mjs").Answering, told: string | RegExp, status: "success" | "error", more?: object }>}
 */
const cases = {
  text: { answer: () => "plain text", told: "plain text", status: "success" },
  unicode: { answer: () => "naïve 日本 🧵", told: "naïve 日本 🧵", status: "success" },
  success: { answer: () => ({ body: { status: "success", result: "it worked" } }), told: "it worked", status: "success" },
  object_result: {
    answer: () => ({ body: { status: "success", result: { a: 1 } } }),
    told: '{"a":1}',
    status: "success",
  },
  error: { answer: () => ({ body: { status: "error", error: "no such word" } }), told: /no such word/, status: "error" },
  other_json: { answer: () => ({ body: { temperature: 21 } }), told: /"temperature":\s*21/, status: "success" },
  // An API's own envelope, such as JSend, is kept complete.
  envelope: {
    answer: () => ({ body: { status: "success", data: { temperature: 21 } } }),
    told: '{"status":"success","data":{"temperature":21}}',
    status: "success",
  },
  envelope_error: {
    answer: () => ({ body: { status: "error", message: "No such city", code: "E42" } }),
    told: /"message":"No such city"/,
    status: "error",
  },
  error_object: {
    answer: () => ({ body: { status: "error", error: { reason: "No such city" } } }),
    told: /"reason":"No such city"/,
    status: "error",
  },
  latin_1: {
    answer: () => ({ body: Buffer.from("caf\xe9", "latin1"), headers: { "content-type": "text/plain; charset=ISO-8859-1" } }),
    told: "café",
    status: "success",
  },
  byte_order_mark: {
    answer: () => ({ body: `\ufeff${JSON.stringify({ status: "success", result: "read as JSON" })}` }),
    told: "read as JSON",
    status: "success",
  },
  list: { answer: () => ({ body: [1, 2] }), told: /\[1,\s*2\]/, status: "success" },
  created: { answer: () => ({ status: 201, body: "made" }), told: "made", status: "success" },
  // Even an empty success gives the model a text.
  nothing: { answer: () => ({ status: 204 }), told: /\S/, status: "success" },
  unavailable: {
    answer: () => ({ status: 503, body: `gone ${"x".repeat(5000)}` }),
    told: /^.*http 503 from unavailable: gone x{900,1024}$/,
    status: "error",
  },
  redirect: {
    answer: () => ({ status: 302, headers: { location: `${bobbin.tools.base}/elsewhere` } }),
    told: /http 302 from redirect|redirect/,
    status: "error",
  },
  huge: { answer: () => "x".repeat(1_200_000), told: /over 1048576 bytes/, status: "error" },
  slow: {
    answer: ({ closed }) => closed.then(() => ""),
    told: /did not answer within 0\.4 s/,
    status: "error",
    more: { timeoutMs: 400 },
  },
};

for (const [name, { answer, told, status, more }] of Object.entries(cases)) {
  const tool = bobbin.tool(name, answer, more);
  bobbin.agent(
    `uses_${name}`,
    ({ messages }) => {
      const result = messages.find(({ role }) => role === "tool");
      return result ? say(`told: ${textOf(result)}`) : use({ name, args: {} });
    },
    { tools: [name] },
  );

  test(`a tool server that answers: ${name}`, async () => {
    const thread = await bobbin.client.thread(`uses_${name}`);
    const socket = await thread.stream();
    const { message, outcome } = await thread.ask("go");
    assert.equal(outcome, "completed");
    const text = message.content.replace(/^told: /, "");
    if (typeof told === "string") assert.equal(text, told);
    else assert.match(text, told);
    assert.equal(tool.received.length, 1, "called once, whatever came of it");
    assert.equal(reached.received.length, 0);
    const completed = await socket.next("the tool's end", ({ type }) => type === "tool_completed");
    assert.equal(completed.status, status);
    socket.close();
  });
}

bobbin.definitions.push(() =>
  bobbin.folder.write({
    tools: { nobody: { description: "Nobody listens there.", run: { http: { url: "http://127.0.0.1:9/nobody" } } } },
  }),
);
bobbin.agent(
  "calls_nobody",
  ({ messages, last }) => (messages.at(-1)?.role === "tool" ? say(last) : use({ name: "nobody", args: {} })),
  { tools: ["nobody"] },
);

test("a tool server that cannot be reached is an error result", async () => {
  const thread = await bobbin.client.thread("calls_nobody");
  const { message, outcome } = await thread.ask("go");
  assert.equal(outcome, "completed");
  assert.match(message.content, /nobody/);
});

const configured = bobbin.tool("configured", () => "ok", {
  run: { http: { url: "", headers: { "x-key": "{{env GLOSSARY_KEY}}", "x-fixed": "fixed" } } },
});
bobbin.definitions.push(() =>
  bobbin.folder.write({
    tools: {
      configured: bobbin.tools.definition("configured", {
        run: {
          http: {
            url: `${bobbin.tools.base}/configured`,
            headers: { "x-key": "{{env GLOSSARY_KEY}}", "x-fixed": "fixed" },
          },
        },
      }),
    },
  }),
);
bobbin.agent(
  "configures",
  ({ messages }) => (messages.at(-1)?.role === "tool" ? say("done") : use({ name: "configured", args: { word: "a" } })),
  { tools: [{ name: "configured", options: { depth: 3 } }] },
);

test("headers with values of the deployment, and static options of the prompt", async () => {
  const thread = await bobbin.client.thread("configures");
  await thread.ask("go");
  const call = await configured.call(1);
  assert.deepEqual([call.headers["x-key"], call.headers["x-fixed"]], ["key-of-the-glossary", "fixed"]);
  assert.deepEqual([call.args, call.body.options], [{ word: "a" }, { depth: 3 }]);
});

const LARGE = `${"0123456789".repeat(20_000)}END`;
bobbin.tool("large", () => LARGE);
bobbin.agent(
  "reads_large",
  ({ messages }) => {
    const result = messages.find(({ role }) => role === "tool");
    return result ? say(`${Buffer.byteLength(textOf(result))}`) : use({ name: "large", args: {} });
  },
  { tools: ["large"] },
);

test("a large result is stored whole and enters the model shortened, with a note", async () => {
  const thread = await bobbin.client.thread("reads_large");
  const { message } = await thread.ask("go");
  assert.ok(Number(message.content) <= 33 * 1024, `the model got ${message.content} bytes`);
  assert.ok(Number(message.content) > 16 * 1024);
  const stored = (await thread.messages()).find(({ role }) => role === "tool");
  assert.equal(stored.content, LARGE);
});
