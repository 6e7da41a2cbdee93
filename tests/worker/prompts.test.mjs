// Prompts called as tools: what their models see, what the thread stores, and what the caller receives.

import assert from "node:assert/strict";
import { inTurn, makes, offered, refuse, say, sayAndUse, shown, use } from "./support/model.mjs";
import { suite } from "./support/suite.mjs";
import { callsOf } from "./support/tool.mjs";

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

const question = { type: "object", properties: { question: { type: "string" } }, required: ["question"] };

const look = bobbin.tool("look", ({ args }) => `seen ${args.word}`);
bobbin.tool("broken", () => ({ status: 500, body: "no luck" }));

const check = bobbin.prompt("check", () => sayAndUse("I looked.", { name: "look", args: { word: "oven" } }), {
  tools: ["look"],
  requiredSchema: question,
});
const clerk = bobbin.agent(
  "clerk",
  ({ messages, last }) => {
    if (messages.at(-1)?.role === "tool") return say(`told: ${last}`);
    return last === "hello" ? say("hi") : use({ name: "check", args: { question: "Is the oven off?" } });
  },
  { tools: [{ name: "check", initUserMessageProperty: "question" }] },
);

test("a prompt is asked once, sees its own text and one message, and its calls run in the thread", async () => {
  const thread = await bobbin.client.thread(clerk.name);
  await thread.ask("hello");
  await thread.ask("please check");

  assert.equal(check.model.asked.length, 1);
  assert.deepEqual(shown(check.model.asked[0]), ["system: You are check.", "user: Is the oven off?"]);
  assert.deepEqual(offered(check.model.asked[0]), ["look"]);
  assert.deepEqual(callsOf(look, thread).map(({ args }) => args), [{ word: "oven" }]);
  const told = 'I looked.\n\nTool calls:\n- look({"word":"oven"})\n  seen oven';
  assert.deepEqual(shown(clerk.model.asked.at(-1)), [
    "system: You are clerk.",
    "user: hello",
    "assistant: hi",
    "user: please check",
    "assistant: [check]",
    `tool: ${told}`,
  ]);

  // Its messages are visible only to readers that request depth.
  const rows = await thread.messages();
  assert.deepEqual(
    rows.map(({ role, content, depth }) => [depth, role, content]),
    [
      [0, "user", "hello"],
      [0, "assistant", "hi"],
      [0, "user", "please check"],
      [0, "assistant", rows[3].content],
      [0, "tool", told],
      [0, "assistant", `told: ${told}`],
    ],
  );
  assert.equal(rows[4].tool_status, "success");
  const within = (await thread.messages({ depth: 1 })).filter(({ depth }) => depth > 0);
  assert.deepEqual(
    within.map(({ role, content, depth, parent_id }) => [depth, role, content, parent_id]),
    [
      [1, "assistant", "I looked.", rows[4].id],
      [1, "tool", "seen oven", rows[4].id],
    ],
  );

  const [outer, ...more] = (await thread.logged("tool_call")).filter(({ tool_name }) => tool_name === "check");
  assert.deepEqual([outer.kind, outer.state, outer.runs, more.length], ["prompt", "succeeded", 1, 0]);
  assert.deepEqual(
    (await thread.logged("llm_request")).map(({ prompt_name, attempt, status, parent_call }) => [prompt_name, attempt, status, parent_call]),
    [
      ["clerk_prompt", 1, "completed", undefined],
      ["clerk_prompt", 1, "completed", undefined],
      ["check", 1, "completed", outer.id],
      ["clerk_prompt", 1, "completed", undefined],
    ],
  );
  await bobbin.quiet([{ thread, model: clerk.model }, { thread, model: check.model }]);
});

test("who listens with depth follows its text, nobody else does", async () => {
  const thread = await bobbin.client.thread(clerk.name);
  const [top, deep] = [await thread.events(), await thread.events({ query: "?depth=1" })];
  await thread.ask("please check");
  for (const reader of [top, deep]) await reader.next("the end", ({ event }) => event === "stopped");
  const within = deep.events.filter(({ data }) => data.depth === 1);
  const text = within.filter(({ event }) => event === "message_chunk").map(({ data }) => data.chunk);
  assert.equal(text.join(""), "I looked.");
  assert.deepEqual(
    within.filter(({ event, data }) => event === "message_data" && data.data.status === "completed").map(({ data }) => data.data.content),
    ["I looked.", "seen oven"],
  );
  // A progress line names the call that it belongs to, and everyone receives it.
  assert.ok(top.events.every(({ event, data }) => event === "progress" || (data.depth ?? 0) === 0));
  for (const reader of [top, deep]) reader.close();
});

const both = bobbin.prompt("both", () => sayAndUse("Said.", { name: "look", args: { word: "it" } }, { name: "broken", args: {} }), {
  tools: ["look", "broken"],
});
const fine = bobbin.prompt("fine", () => sayAndUse("Said.", { name: "look", args: { word: "it" } }), { tools: ["look"] });
const mute = bobbin.prompt("mute", () => refuse(400));
const silent = bobbin.prompt("silent", () => use({ name: "look", args: { word: "it" } }), { tools: ["look"], requiredSchema: question });

const looked = '- look({"word":"it"})\n  seen it';
const failure = "1 of 2 tool calls failed.";
const why = "broken: http 500 from broken: no luck";

/** Each flag of an entry: the called prompt, the entry's fields, the status and the result. @type {[string, object, string, string][]} */
const flags = [
  [fine.name, {}, "success", `Said.\n\nTool calls:\n${looked}`],
  [fine.name, { includeToolCalls: false }, "success", "Said."],
  [fine.name, { includeTextResponse: false }, "success", `Tool calls:\n${looked}`],
  [fine.name, { includeTextResponse: false, includeToolCalls: false }, "success", "The prompt finished and gave no output."],
  [silent.name, { includeToolCalls: false }, "success", "The prompt finished and gave no output."],
  [both.name, {}, "error", `${failure}\n${why}\n\nSaid.\n\nTool calls:\n${looked}\n- broken({})\n  failed`],
  [both.name, { includeErrors: false, includeToolCalls: false }, "error", `${failure}\n\nSaid.`],
  [both.name, { includeTextResponse: false, includeToolCalls: false }, "error", `${failure}\n${why}`],
  [mute.name, {}, "error", "The model “mute_model” could not answer"],
];
const flagged = flags.map(([name, fields], at) =>
  bobbin.agent(`flags_${at}`, makes({ name, args: { question: "?" } }), { tools: [{ name, ...fields }] }),
);

test("the result holds what the entry asks for; a failure within is an error, and the run goes on", async () => {
  const table = await Promise.all(
    flagged.map(async ({ name }) => {
      const thread = await bobbin.client.thread(name);
      const { message } = await thread.ask("go");
      assert.equal(message.content, "done");
      const row = (await thread.messages()).find(({ role }) => role === "tool");
      return [row.tool_status, row.content];
    }),
  );
  const mutes = table.pop();
  assert.deepEqual(table, flags.slice(0, -1).map(([, , status, text]) => [status, text]));
  const [, , status, text] = flags.at(-1) ?? [];
  assert.deepEqual([mutes?.[0], String(mutes?.[1]).startsWith(String(text))], [status, true], mutes?.[1]);
});

const historian = bobbin.prompt("historian", ({ messages }) => say(`I read ${messages.length}.`), {
  includeChat: true,
  requiredSchema: question,
});
const plain = bobbin.prompt("plain", ({ last }) => say(`asked: ${last}`), { requiredSchema: question });
const asker = bobbin.agent(
  "asker",
  ({ messages, last }) => {
    if (messages.at(-1)?.role === "tool") return say("done");
    if (last === "hello") return use({ name: "look", args: { word: "you" } });
    return use({ name: "historian", args: { question: "tea" } }, { name: "plain", args: { question: "why" } });
  },
  { tools: ["look", { name: "historian", initUserMessageProperty: "question" }, "plain"], prompt: { parallelToolCalls: true } },
);

test("with includeChat it reads the chat; without a property all arguments are the message", async () => {
  const thread = await bobbin.client.thread(asker.name);
  await thread.ask("hello");
  await thread.ask("and now");
  assert.deepEqual(shown(historian.model.asked[0]), [
    "system: You are historian.",
    "user: hello",
    "assistant: done",
    "user: and now",
    "user: tea",
  ]);
  assert.deepEqual(shown(plain.model.asked[0]), ["system: You are plain.", 'user: {\n  "question": "why"\n}']);
  assert.deepEqual((await thread.results()).slice(1), ["I read 5.", 'asked: {\n  "question": "why"\n}']);
});

const careful = bobbin.prompt("careful", () => say("fine"), { requiredSchema: question });
const careless = bobbin.agent(
  "careless",
  makes({ name: "careful", args: {} }, { name: "careful", args: { question: 1 } }, { name: "careful", args: { question: "x" } }),
  { tools: ["careful"], prompt: { parallelToolCalls: true } },
);

test("arguments that requiredSchema refuses are a result, and no request", async () => {
  const thread = await bobbin.client.thread(careless.name);
  await thread.ask("go");
  assert.deepEqual(await thread.results(), [
    'Invalid arguments for "careful": question: required but missing.',
    'Invalid arguments for "careful": question: expected string, got integer.',
    "fine",
  ]);
  assert.equal(careful.model.asked.length, 1);
  const [parameters] = (careless.model.asked[0]?.body.tools ?? []).map((/** @type {any} */ tool) => tool.function.parameters);
  assert.deepEqual([parameters.required, parameters.additionalProperties], [["question"], false]);
});

const flaky = bobbin.prompt("flaky", inTurn(refuse(503), say("at last")));
const patient = bobbin.agent("patient", makes({ name: "flaky", args: {} }), { tools: ["flaky"] });

test("each attempt of a prompt has its row in the log, under the call", async () => {
  const thread = await bobbin.client.thread(patient.name);
  await thread.ask("go");
  assert.deepEqual(await thread.results(), ["at last"]);
  assert.equal(flaky.model.asked.length, 2);
  const [outer] = await thread.logged("tool_call");
  const rows = (await thread.logged("llm_request")).filter(({ prompt_name }) => prompt_name === "flaky");
  assert.deepEqual(
    rows.map(({ attempt, retry_of_attempt, status, status_code, parent_call }) => [attempt, retry_of_attempt ?? null, status, status_code ?? null, parent_call]),
    [
      [1, null, "failed", 503, outer.id],
      [2, 1, "completed", null, outer.id],
    ],
  );
});
