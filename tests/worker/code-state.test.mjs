// The members of `state` in files of code, with real threads: effects, rejections, and access to other threads of the
// family.

import assert from "node:assert/strict";
import { Thread } from "./support/client.mjs";
import { create, resumable, sessionTools, subagent } from "./support/family.mjs";
import { say, textOf, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

const bobbin = suite({ vars: { SHARED: "of the instance" } });
const test = bobbin.test.bind(bobbin);

/** @type {string[]} */
const tools = [];

/** Defines a tool with one file. @param {string} name @param {string} body  of its handler @param {object} [more] */
function tool(name, body, more = {}) {
  tools.push(name);
  bobbin.definitions.push(() => {
    const source = `import type { ToolHandler } from "bobbin";\nconst failed = (error: Error) => error.message;\nconst tool: ToolHandler<any> = async (state, args) => {\n${body}\n};\nexport default tool;\n`;
    bobbin.folder.file(`tools/${name}.ts`, source);
    bobbin.folder.write({ tools: { [name]: { description: `The code of ${name}.`, args: { type: "object" }, run: { code: `${name}.ts` }, ...more } } });
  });
}

bobbin.definitions.push(() => {
  bobbin.folder.write({ effects: { later: { description: "Notes a word.", args: { type: "object" }, run: { code: "later.ts" } } } });
  bobbin.folder.file("effects/later.ts", "export default async (state, args) => { await state.setValue('effect', args); };");
});

tool("begins", `
  state.context.list = [1];
  state.context.gone = true;
  const seen = JSON.parse((await state.invokeTool("adds")).result as string);
  return { seen, list: state.context.list, gone: "gone" in state.context };
`);
tool("adds", `
  state.context.list.push(2);
  delete state.context.gone;
  return { list: state.context.list };
`);
tool("reads", "return state.context;");

tool("messages", `
  await state.queueMessage({ role: "user", content: "queued by code", metadata: { by: "code" } });
  const { id } = await state.injectMessage({ role: "system", content: "first", metadata: { a: 1, b: 1 } });
  const changed = await state.updateMessage(id, { silent: true, metadata: { b: null, c: [2] } });
  const text = await state.updateMessage(id, { content: "second" });
  const odd = await state.updateMessage(id, { metdata: {} } as any).catch(failed);
  const deleted = [await state.deleteMessage(id), await state.deleteMessage(id), await state.getMessage(id)];
  return { changed: [changed.content, changed.silent, changed.metadata], text: text.content, odd, deleted };
`);
tool("env", `
  const before = [await state.env("SHARED"), await state.instanceEnv("SHARED")];
  await state.setEnv("SHARED", "of the thread", { type: "text" });
  await state.setEnv("NEW", "fresh");
  const odd = await state.setEnv("NEW", "x", { typ: "text" } as any).catch(failed);
  return { before, after: [await state.env("SHARED"), await state.instanceEnv("SHARED"), await state.env("NEW")], odd,
    type: await state.envType("SHARED"), hidden: await state.instanceEnv("OTHER").catch(failed) };
`, { variables: [{ name: "SHARED", type: "text" }] });
tool("options", `
  const effect = (args: any, options?: any) => state.scheduleEffect("later", args, options).catch(failed);
  const at = new Date(Date.now() + 3_600_000);
  const id = await effect({ word: 1 }, { at });
  const [due] = await state.getScheduledEffects("later");
  const options = [await effect({}, { att: 1 }), await effect({}, { at, delay: 1 }), await effect({}, "soon"), await effect({}, 0.5)];
  const given = [await effect({ a: NaN }), await effect({ a: at }), await effect({ a: new Map() }), await effect({ a: 1n })];
  const file = (options: any) => state.writeFile("/o.txt", "x", "text/plain", options).catch(failed);
  return { at: [typeof id, due!.dueAt === at.getTime() * 1000 || due!.dueAt === at.getTime()], options, args: given, file: await file({ widht: 1 }),
    list: await state.getMessages({ limitt: 1 } as any).catch(failed), logs: await state.getLogs({ order: "up" } as any).catch(failed),
    queue: await state.queueMessage({ role: "user", content: "x", silnt: true } as any).catch(failed),
    stream: await state.readFileStream("/o.txt", { sgnal: 1 } as any).catch(failed) };
`);
tool("files", `
  const thumbnail = Uint8Array.of(137, 80, 78, 71, 13, 10, 26, 10, 1);
  await state.mkdirFile("/d/e");
  await state.writeFile("/d/p.png", "picture", "image/png", { width: 2, height: 3, thumbnail });
  const small = new Uint8Array((await state.getFileThumbnail("/d/p.png"))!);
  const moved = (await state.moveFile("/d/p.png", "/d/e/q.png")).path;
  const renamed = (await state.renameFile("/d/e/q.png", "/d/e/r.png")).path;
  const full = await state.rmdirFile("/d/e").catch(failed);
  const signal = AbortSignal.abort(new Error("enough"));
  const stopped = await state.readFileStream("/d/e/r.png", { signal }).catch(failed);
  const controller = new AbortController();
  const pieces = (await state.readFileStream("/d/e/r.png", { signal: controller.signal }))!;
  let read = "";
  try { for await (const { data } of pieces) { read += data.length; controller.abort(new Error("in the middle")); } } catch (error) { read += " " + error.message; }
  await state.unlinkFile("/d/e/r.png");
  await state.rmdirFile("/d/e");
  return { small: [...small], moved, renamed, full, stopped, read, left: (await state.readdirFile("/d")).entries, none: await state.getFileThumbnail("/d/p.png") };
`);
tool("pages", `
  for (const name of ["b", "a", "d", "c"]) await state.writeFile("/many/" + name, name, "text/plain");
  const names: string[][] = [];
  let cursor: string | null = null;
  do {
    const page: any = await state.readdirFile("/many", { limit: 3, cursor });
    names.push(page.entries.map(({ name }: any) => name));
    cursor = page.cursor;
  } while (cursor);
  return { names, none: await state.readdirFile("/none", { limit: 1 }), odd: await state.readdirFile("/", { limt: 1 } as any).catch(failed) };
`);
tool("alone", `
  await state.notifyParent("nobody hears it");
  await state.setStatus("fine");
  return { empty: await state.notifyParent("  ").catch(failed), parent: await state.getParentThread(), child: await state.getChildThread("x") };
`);
tool("sets", `
  const tried = [];
  tried.push(await state.setValue("c", { a: [1] }, { ifValue: null }), await state.setValue("c", 2, { ifValue: undefined }));
  tried.push(await state.setValue("c", 2, { ifValue: { a: [1.0] } }), await state.setValue("c", 3), await state.getValue("c"));
  tried.push(await state.setValue("c", null, { ifValue: 3 }), await state.getValue("c"), await state.setValue("c", 1, {} as any), await state.setValue("c", 1, null as any));
  const odd = await state.setValue("c", 9, { ifvalue: 1 } as any).catch(failed);
  const refused = [await state.setValue("c", 9, { ifValue: 1n }).catch(failed), await state.setValue("c", 9, 1 as any).catch(failed)];
  return { tried: tried.map((value) => value ?? null), odd, refused, left: await state.getValue("c") };
`);
tool("bounded", `
  const hungry = "const a = []; for (;;) a.push(new Array(1000).fill(1.5)); export default 1";
  const { status, error } = await state.runCode(hungry);
  const reports: unknown[] = [];
  const code = "report(1); await rest(); report(2); export default 'rested'";
  const running = state.runCode(code, { report: (value) => reports.push(value), globals: { rest: () => new Promise((resolve) => setTimeout(() => resolve(reports.length), 1200)) } });
  const rested = await running;
  return { status, message: error?.message, rested: rested.status === "success" && rested.result, durationMs: rested.durationMs, reports, seen: running.reports };
`);
tool("queues", 'state.queueTool("noted", { word: "queued" });\nreturn "queued";');
tool("noted", "await state.setValue('noted', args.word);\nreturn args.word;");
tool("stops", `
  const run = state.execution!;
  const history = run.messageHistory.map(({ role }) => role);
  const before = [run.stopped, "stoppedBy" in run, run.abortSignal.aborted];
  run.stop();
  return { before, after: [run.stopped, run.stoppedBy], history, content: run.messageHistory[0]!.content };
`);
tool("ends", "await state.terminate();\nawait new Promise(() => {});");
bobbin.definitions.push(() =>
  bobbin.folder.file(
    "api/count.post.ts",
    `import type { EndpointHandler } from "bobbin";
    const count: EndpointHandler = async (request, state) => {
      for (let tries = 1; ; tries++) {
        const seen = await state.getValue<number>("count");
        if (await state.setValue("count", (seen ?? 0) + 1, { ifValue: seen })) return { tries };
      }
    };
    export default count;`,
  ),
);
bobbin.definitions.push(() => bobbin.folder.file("api/writes.post.ts", "export default async (request, state) => { await state.setValue('late', 1); return 'written'; };"));

/** A model that makes the call in the newest message and repeats its result. @type {import("./support/model.mjs").Script} */
const calls = ({ messages }) => {
  const newest = messages.findLast((message) => message.role === "tool" || textOf(message).startsWith("["));
  if (!newest) return say("nothing to do");
  if (newest.role === "tool") return say(textOf(newest));
  const [name, args] = JSON.parse(textOf(newest));
  return use({ name, args });
};
bobbin.agent("coder", calls, { tools });

/** @param {string} name @param {object} [args] @param {import("./support/client.mjs").Thread} [given] */
async function told(name, args = {}, given) {
  const thread = given ?? (await bobbin.client.thread("coder"));
  const answer = await thread.ask(JSON.stringify([name, args]));
  const result = (await thread.messages()).findLast(({ role }) => role === "tool").content;
  try {
    return JSON.parse(result);
  } catch {
    return answer && result;
  }
}

test("what tools of a run leave in its context its other tools find, changes within values too", async () => {
  const thread = await bobbin.client.thread("coder");
  assert.deepEqual(await told("begins", {}, thread), { seen: { list: [1, 2] }, list: [1, 2], gone: false });
  assert.deepEqual(await told("reads", {}, thread), {}, "the next run begins anew");
});

test("messages are queued, changed in all that may change, and deleted", async () => {
  const thread = await bobbin.client.thread("coder");
  const { odd, ...done } = await told("messages", {}, thread);
  assert.match(odd, /`metdata` is no field.*Did you mean `metadata`\?/);
  assert.deepEqual(done, {
    changed: ["first", true, { a: 1, c: [2] }],
    text: "second",
    deleted: [true, false, null],
  });
  await thread.idle();
  const queued = (await thread.messages()).find(({ content }) => content === "queued by code");
  assert.deepEqual(queued.metadata.by, "code");
});

test("a variable that code sets has its new value at once", async () => {
  const { before, after, odd, type, hidden } = await told("env");
  assert.deepEqual([before, after, type], [["of the instance", "of the instance"], ["of the thread", "of the instance", "fresh"], "text"]);
  assert.match(odd, /`typ` is no field.*Did you mean `type`\?/);
  assert.match(hidden, /OTHER/);
});

test("an option that is none is refused by name, and so is what JSON cannot hold", async () => {
  const { at, options, args, file, list, logs, queue, stream } = await told("options");
  assert.deepEqual(at, ["string", true]);
  for (const [text, pattern] of [
    [options[0], /`att` is no field.*Did you mean `at`/],
    [options[1], /`delay` or `at`, not both/],
    [options[2], /number of milliseconds/],
    [options[3], /whole number/],
    [args[0], /NaN/],
    [args[1], /Date/],
    [args[2], /Map/],
    [args[3], /bigint/],
    [file, /`widht` is no field.*Did you mean `width`/],
    [list, /`limitt` is no option here; did you mean "limit"/],
    [logs, /asc or desc/],
    [queue, /`silnt` is no field.*Did you mean `silent`/],
    [stream, /`sgnal` is no option; there are signal/],
  ]) assert.match(text, pattern);
});

test("files are moved, renamed and removed, have thumbnails, and a signal ends their reading", async () => {
  const { full, ...rest } = await told("files");
  assert.match(full, /not empty/);
  assert.deepEqual(rest, {
    small: [137, 80, 78, 71, 13, 10, 26, 10, 1],
    ...{ moved: "/d/e/q.png", renamed: "/d/e/r.png", stopped: "enough", read: "7 in the middle", left: [], none: null },
  });
});

test("a directory is read in pages", async () => {
  const { names, none, odd } = await told("pages");
  assert.deepEqual([names, none], [[["a", "b", "c"], ["d"]], { entries: [], cursor: null }]);
  assert.match(odd, /did you mean "limit"/);
});

test("a thread that is nobody's child has nobody to tell", async () => {
  const { empty, parent, child } = await told("alone");
  assert.deepEqual([parent, child], [null, null]);
  assert.match(empty, /empty|blank|missing|required/i);
});

test("a value is set only while it is as it was read, if that is asked for", async () => {
  const { tried, odd, refused, left } = await told("sets");
  assert.deepEqual(tried, [true, false, true, null, 3, true, null, null, null]);
  assert.match(odd, /`ifvalue` is no field.*Did you mean `ifValue`\?/);
  assert.match(refused[0], /bigint/);
  assert.match(refused[1], /`options` must be an object/);
  assert.equal(left, 1);
});

test("code that counts at the same time counts right", async () => {
  const thread = await bobbin.client.thread("coder");
  const answers = await Promise.all(Array.from({ length: 20 }, () => thread.send("POST", "/count", {})));
  assert.deepEqual(answers.map(({ status }) => status), Array(20).fill(200), answers.find(({ status }) => status !== 200)?.text ?? "");
  assert.equal((await thread.send("GET", "/kv?key=count")).json.value, 20);
});

test("code that code runs has 16 MB unless it is said, and all the time that it needs", async () => {
  const { status, message, rested, durationMs, reports, seen } = await told("bounded");
  assert.equal(status, "memory");
  assert.match(message, /16777216 bytes/);
  assert.equal(rested, "rested");
  assert.ok(durationMs >= 1200, durationMs);
  assert.deepEqual([reports, seen], [[1, 2], [1, 2]]);
});

test("a queued call is made after those of the step", async () => {
  const thread = await bobbin.client.thread("coder");
  await told("queues", {}, thread);
  await thread.idle();
  assert.equal((await thread.send("GET", "/kv?key=noted")).json.value, "queued");
});

test("code sees its run, and may end it", async () => {
  const thread = await bobbin.client.thread("coder");
  const answer = await thread.ask(JSON.stringify(["stops", {}]));
  assert.equal(answer.outcome, "stopped", JSON.stringify(answer));
  const result = JSON.parse((await thread.messages()).findLast(({ role }) => role === "tool").content);
  assert.deepEqual(result, { before: [false, false, false], after: [true, "a"], history: ["user", "assistant"], content: '["stops",{}]' });
});

test("code may terminate its thread; an endpoint that then writes is answered so", async () => {
  const thread = await bobbin.client.thread("coder");
  assert.equal((await thread.send("POST", "/writes", {})).status, 200);
  await thread.accepted(JSON.stringify(["ends", {}]));
  await until("it is terminated", async () => (await thread.facts()).state === "terminated");
  const refused = await thread.send("POST", "/writes", {});
  assert.deepEqual([refused.status, refused.json.error.code], [409, "terminated"]);
});

// The family.

sessionTools(bobbin);
tool("inside", `
  const parent = (await state.getParentThread())!;
  await parent.setStatus("seen from below").catch(() => {});
  const { id } = await parent.injectMessage({ role: "system", content: "from below", silent: true });
  const changed = await parent.updateMessage(id, { metadata: { child: state.threadId } });
  await parent.writeFile("/up.bin", Uint8Array.of(0, 255), "x/y", { metadata: { n: 1 } });
  const effect = await parent.scheduleEffect("later", { from: "below" }, { delay: 3_600_000 });
  parent.queueTool("noted", { word: "from below" });
  parent.emit("below", {});
  await state.notifyParent("told");
  await state.setStatus("busy");
  await state.setValue("inside", { changed: [changed.content, changed.metadata], id: parent.threadId, effect,
    own: await Promise.all([(parent as any).getValue("x"), (parent as any).setValue("x", 1), (parent as any).env("SHARED"), (parent as any).runCode("1"), (parent as any).readFileStream("/x")].map((one) => one.catch(failed))),
    parents: await parent.getParentThread(), me: (await parent.getChildThread(state.threadId))?.threadId, none: await parent.getChildThread("x"),
    children: parent.children.map(({ reference }) => reference), run: [parent.execution, parent.context], names: parent.getAgentNames().includes("family") });
  return "done";
`);
tool("below", `
  const [entry] = state.children;
  const child = (await state.getChildThread(entry!.reference))!;
  await child.writeFile("/down.txt", "from above", "text/plain");
  const text = new TextDecoder().decode((await child.readFile("/down.txt"))!);
  await child.mkdirFile("/dir");
  await child.moveFile("/down.txt", "/dir/a.txt");
  await child.renameFile("/dir/a.txt", "/dir/b.txt");
  const files = { text, stat: (await child.statFile("/dir/b.txt"))!.size, list: (await child.readdirFile("/dir")).entries.length,
    stats: (await child.getFileStats()).fileCount, grep: (await child.grepFiles("above")).length, find: (await child.findFiles("*.txt")).paths, small: await child.getFileThumbnail("/dir/b.txt") };
  await child.unlinkFile("/dir/b.txt");
  await child.rmdirFile("/dir");
  const { messages, total } = await child.getMessages({ order: "asc" });
  const { id } = await child.injectMessage({ role: "system", content: "x", silent: true });
  const message = [(await child.getMessage(id))!.content, await child.deleteMessage(id), await child.getMessage(id)];
  const effect = await child.scheduleEffect("later", {}, 3_600_000);
  const effects = [(await child.getScheduledEffects("later")).length, await child.removeScheduledEffect(effect)];
  const odd = [await child.updateMessage(id, { x: 1 } as any).catch(failed), await child.scheduleEffect("later", { a: NaN }).catch(failed), await child.writeFile("../x", "", "a/b").catch(failed)];
  const result = await child.invokeTool("noted", { word: "invoked" });
  await child.setEnv("DOWN", "x", { type: "text" });
  const logs = (await child.getLogs({ limit: 1 })).length;
  await child.queueMessage({ role: "user", content: "queued from above" });
  const facts = [child.agentId, child.arguments, (await child.getParentThread())!.threadId === state.threadId, (await child.loadAgent<any>("family")) !== null];
  return { files, total: total === messages.length, message, effects, odd, result: result.result, logs, facts, type: await child.envType("DOWN") };
`);
tool("kills", "const child = (await state.getChildThread(state.children[0]!.reference))!;\nawait child.terminate();\nreturn (await child.writeFile('/x', 'x', 'a/b').catch(failed));");
const inside = subagent(bobbin, "inner", ({ messages }) => (messages.some(({ role }) => role === "tool") ? say("at rest") : use({ name: "inside", args: {} })), {
  tools: ["inside", "noted"],
  agent: { maxSessionTurns: 20 },
});
bobbin.agent("family", calls, { tools: [...tools, resumable(inside.name, {}, { blocking: false })] });

test("the parent and the child are threads with all members but what is their own", async () => {
  const thread = await bobbin.client.thread("family");
  await thread.accepted(JSON.stringify(["subagent_create", create("inner", "go", { arguments: { task: "go" } }).args]));
  const entry = await until("the child is there", async () => (await thread.send("GET", "/subagents")).json.subagents?.[0]);
  const child = new Thread(bobbin.client, entry.id);
  const seen = await until("the child has looked", async () => (await child.send("GET", "/kv?key=inside")).json?.value);
  const { own, effect, ...rest } = seen;
  assert.match(own[0], /getValue\(\) does not reach another thread: the values of a thread are its own/);
  assert.match(own[1], /setValue\(\) does not reach/);
  assert.match(own[2], /env\(\) does not reach/);
  assert.match(own[3], /runCode\(\) does not reach/);
  assert.match(own[4], /readFile\(\) gives the whole file/);
  assert.equal(typeof effect, "string");
  assert.deepEqual(rest, {
    changed: ["from below", { child: entry.id }],
    ...{ id: thread.id, parents: null, me: entry.id, none: null, children: [entry.id], run: [null, {}], names: true },
  });
  await until("the queued call was made", async () => (await thread.send("GET", "/kv?key=noted")).json?.value === "from below");
  assert.deepEqual([...(await thread.send("GET", "/fs/up.bin")).bytes], [0, 255]);
  await until("the status is shown", async () => (await thread.send("GET", "/subagents")).json.subagents[0].status === "busy");
  await until("the parent was told", async () => (await thread.send("GET", "/messages?includeSilent=true")).text.includes("told"));
  await thread.idle();

  const below = await told("below", {}, thread);
  assert.match(below.odd[0], /`x` is no field/);
  assert.match(below.odd[1], /NaN/);
  assert.match(below.odd[2], /path/);
  delete below.odd;
  assert.deepEqual(below, {
    files: { text: "from above", stat: 10, list: 1, stats: 1, grep: 1, find: ["/dir/b.txt"], small: null },
    ...{ total: true, message: ["x", true, null], effects: [1, true], result: "invoked", logs: 1, type: "text" },
    facts: ["inner", below.facts[1], true, true],
  });
  await until("the child was asked", async () => (await child.send("GET", "/messages")).text.includes("queued from above"));
  assert.match(await told("kills", {}, thread), /terminated/);
});

// Hooks.

/** The return value of each kind of hook, as an expression of its arguments. Empty for hooks that only observe. @type {Record<string, string>} */
const KINDS = {
  after_thread_created: "",
  after_subagent_created: "",
  after_system_message: "`${args[0]} Hooked.`",
  filter_messages: "args[0]",
  prefilter_llm_history: "args[0]",
  before_create_message: "({ ...args[0], metadata: { ...args[0].metadata, created: true } })",
  after_create_message: "",
  before_update_message: "({ ...args[1], metadata: { updated: true } })",
  after_update_message: "",
  after_tool_call_success: "({ ...args[1], result: args[1].result + ' (seen)' })",
  after_tool_call_failure: "({ ...args[1], error: args[1].error + ' (seen)' })",
  before_store_tool_result: "({ ...args[1], result: args[1].result && args[1].result + ' (stored)' })",
};
tool("breaks", "throw new Error('on purpose');");
bobbin.definitions.push(() => {
  for (const [name, gives] of Object.entries(KINDS)) {
    bobbin.folder.file(`hooks/on_${name}.ts`, `export default async (state, ...args) => {
      await state.setValue("${name}", { args: args.length, run: state.execution !== null, id: state.threadId });
      return ${gives || "undefined"};
    };`);
    bobbin.folder.write({ hooks: { [`on_${name}`]: { hook: name, run: { code: `on_${name}.ts` } } } });
  }
});
const watched = bobbin.agent("watched", calls, {
  tools: [...tools, resumable(inside.name, {}, { blocking: false })],
  prompt: { hooks: Object.keys(KINDS).map((name) => `on_${name}`) },
});

test("hooks of all twelve kinds run as code, with the thread and what they are about", async () => {
  const thread = await bobbin.client.thread("watched");
  assert.equal(await told("noted", { word: "w" }, thread), "w (seen) (stored)");
  assert.match(await told("breaks", {}, thread), /on purpose.*\(seen\)/);
  await thread.accepted(JSON.stringify(["subagent_create", create("inner", "go", { arguments: { task: "go" } }).args]));
  await thread.idle();
  const [first] = await thread.messages();
  assert.equal((await thread.send("PATCH", `/messages/${first.id}`, { content: "changed" })).status, 200);
  const changed = (await thread.send("GET", `/messages/${first.id}`)).json;
  assert.deepEqual([changed.content, changed.metadata.created, changed.metadata.updated], ["changed", true, true]);
  assert.match(JSON.stringify(watched.model.asked[0]), /You are watched\. Hooked\./);
  const counts = { after_thread_created: 0, before_update_message: 2, after_tool_call_success: 2, after_tool_call_failure: 2, before_store_tool_result: 2 };
  for (const name of Object.keys(KINDS)) {
    const { value } = await until(`${name} was called`, async () => {
      const answer = await thread.send("GET", `/kv?key=${name}`);
      return answer.status === 200 ? answer.json : undefined;
    });
    assert.deepEqual([value.args, value.id], [/** @type {any} */ (counts)[name] ?? 1, thread.id], name);
  }
});
