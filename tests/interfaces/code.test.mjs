// Files of code in the sandbox, tested from outside: tools, effects, hooks and endpoints.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { http } from "../../package/lib/node-http.mjs";
import { say, textOf, use } from "../worker/support/model.mjs";
import { until } from "../worker/support/poll.mjs";
import { checkout } from "../worker/support/server.mjs";
import { suite } from "../worker/support/suite.mjs";

/** Requests that the client aborted. @type {string[]} */
const gaveUp = [];
/** An external server that returns what it received. */
const outside = http.createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  const { method, url, headers } = request;
  if (url === "/slow") {
    // Never responds, and records aborted requests.
    response.once("close", () => gaveUp.push("closed"));
    return;
  }
  if (url === "/moved") {
    response.writeHead(302, { location: "/elsewhere" }).end();
    return;
  }
  response.writeHead(200, { "x-own": "1", "content-type": "application/json" }).end(JSON.stringify({ method, url, type: headers["content-type"], body }));
});
/** @type {string} */
let outsideHost;
before(async () => {
  outside.listen(0, "127.0.0.1");
  await once(outside, "listening");
  outsideHost = `127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (outside.address()).port}`;
});
after(() => outside.close());

const SECRET = "secret-of-the-code-test";
const bobbin = suite({ flags: ["--worker-loader"], vars: { CODE_KEY: SECRET, OTHER_KEY: "key-of-something-else", BOBBIN_ALLOW_PRIVATE_HOSTS: "127.0.0.1" } });
const test = bobbin.test.bind(bobbin);

/** @type {string[]} */
const tools = [];

/**
 * Defines a tool with one file.
 *
 * @param {string} name
 * @param {string} source
 * @param {{ code?: object | (() => object), more?: object, file?: string }} [settings]   `code`: further fields of `run.code`
 */
function codeTool(name, source, { code = {}, more = {}, file = `${name}.ts` } = {}) {
  tools.push(name);
  bobbin.definitions.push(() => {
    const fields = typeof code === "function" ? code() : code;
    const run = { code: Object.keys(fields).length === 0 ? file : { file, ...fields } };
    bobbin.folder.file(`tools/${file}`, source);
    bobbin.folder.write({ tools: { [name]: { description: `The code of ${name}.`, args: { type: "object" }, run, ...more } } });
  });
}

/** @param {string} path @param {string} text */
const file = (path, text) => void bobbin.definitions.push(() => bobbin.folder.file(path, text));

codeTool("text", "export default async (state, args) => `hello ${args.name}`;", { file: "text.js" });
codeTool("value", "export default () => ({ list: [1, undefined], date: new Date(0), map: new Map([['a', 1n]]) });");
codeTool("nothing", "export default () => {};");
codeTool(
  "fast",
  `import { fib } from "../lib/fib";
  export default async (state, { n }) => {
    await state.setValue("fast", { n });
    const inner = await state.runCode("export default (n) => n * 2", { engine: "v8", execute: { args: [n] } });
    const refused = await fetch("https://example.com").catch((error) => error.message);
    return { fib: fib(n), value: await state.getValue("fast"), inner: inner.result, refused, url: new URL("/x", "http://a.example").href, engine: typeof WebAssembly };
  };`,
  { code: { engine: "v8" } },
);
file("lib/fib.ts", "export const fib = (n: number): number => (n < 2 ? n : fib(n - 1) + fib(n - 2));");
codeTool("result", "export default () => ({ status: 'error', error: 'no such thing', error_code: 'missing' });");
codeTool("throws", 'import type { ThreadState } from "bobbin";\n\nexport default (state: ThreadState) => {\n  throw new RangeError(`not in ${state.agentId}`);\n};\n');
codeTool(
  "aborts",
  `export default async (state, { url }) => {
    const rings: number[] = [];
    const interval = setInterval(() => rings.push(rings.length), 5);
    const error = await fetch(url, { signal: AbortSignal.timeout(300) }).catch((error) => error);
    clearInterval(interval);
    return [error.name, error instanceof DOMException, rings.length > 1];
  };`,
  { code: () => ({ allowedHosts: [outsideHost] }) },
);
file("api/seen/[name].ts", `export default async (request) => {
    let refused = "";
    try { new Headers({ "x-name": "日本" }); } catch (error) { refused = error.name; }
    return { url: request.url, name: request.headers.get("x-name"), refused };
  };`);
file("api/rest/[*].ts", "export default (request, state, params) => params;");
codeTool("endless", "export default () => { for (;;); };", { code: { memoryLimitBytes: 4 << 20 } });
codeTool("hungry", "export default () => { const all = []; for (;;) all.push(new Array(1000).fill('x')); };", { code: { memoryLimitBytes: 4 << 20 } });

codeTool(
  "state",
  `import type { ToolHandler } from "bobbin";
  const tool: ToolHandler<{ secret: string }> = async (state) => {
    await state.setValue("seen", { n: 1 });
    const record = await state.writeFile("/notes/a.txt", "alpha\\nbeta", "text/plain", { metadata: { by: "code" } });
    await state.writeFile("/notes/b.bin", Uint8Array.of(1, 2, 3), "application/octet-stream");
    const bytes = new Uint8Array((await state.readFile("/notes/b.bin"))!);
    const pieces: number[] = [];
    for await (const { data, isLast } of (await state.readFileStream("/notes/a.txt"))!) pieces.push(data.length, isLast ? 1 : 0);
    const injected = await state.injectMessage({ role: "system", content: "by the way", silent: true, metadata: { from: "code" } });
    const updated = await state.updateMessage(injected.id, { content: "by the by" });
    const { messages, total } = await state.getMessages({ includeSilent: true, order: "asc" });
    const effect = await state.scheduleEffect("later", { word: "late" }, 3_600_000);
    const due = await state.getScheduledEffects("later");
    const logs = await state.getLogs({ limit: 3 });
    state.context.step = 1;
    state.emit("noticed", { by: "code" });
    const called = await state.invokeTool("text", { name: "inner" });
    const refused = await state.invokeTool("none").catch((error) => error.message);
    return {
      facts: [state.threadId, state.agentId, state.userId, typeof state.createdAt, state.terminated, state.children, state.arguments],
      names: [state.getModelNames().includes("coder_model"), state.getPromptNames().includes("coder_prompt"), state.getAgentNames().includes("coder")],
      model: (await state.loadModel<{ name?: string }>("coder_model")) !== null,
      unknown: await state.loadAgent("nobody").catch((error) => error.name),
      run: [state.execution?.currentSide, state.execution?.promptPath, state.execution?.stopped],
      value: await state.getValue("seen"), none: await state.getValue("none"),
      record: [record.path, record.size, record.metadata], bytes: [...bytes], pieces,
      stat: (await state.statFile("/none")) === null, list: (await state.readdirFile("/notes")).entries.map(({ name }) => name),
      found: await state.findFiles("*.txt"), grep: await state.grepFiles("beta"), stats: await state.getFileStats(),
      message: [updated.content, updated.silent, messages.map(({ role }) => role), total],
      effect: [due.map(({ args }) => args), await state.removeScheduledEffect(effect), (await state.getScheduledEffects()).length],
      logs: logs.length > 0, called, refused, child: await state.getChildThread("none"), parent: await state.getParentThread(),
    };
  };
  export default tool;`,
);
bobbin.definitions.push(() => {
  bobbin.folder.write({ effects: { later: { description: "Notes a word.", args: { type: "object" }, run: { code: "later.ts" } } } });
  bobbin.folder.file("effects/later.ts", "export default async (state, { word }) => { await state.setValue('effect', { word, run: state.execution }); };");
});
codeTool("schedules", "export default async (state) => { await state.scheduleEffect('later', { word: 'soon' }, 1); };");

codeTool(
  "pages",
  `import type { ToolHandler, MessagesOptions } from "bobbin";
  const tool: ToolHandler = async (state) => {
    for (const content of ["one", "two", "three"]) await state.injectMessage({ role: "system", content, silent: true });
    const page = async (options: MessagesOptions) =>
      (await state.getMessages({ includeSilent: true, limit: 2, ...options })).messages.map(({ content }) => content);
    return { newest: await page({}), desc: await page({ order: "desc" }), before: await page({ order: "desc", offset: 1 }), asc: await page({ order: "asc" }) };
  };
  export default tool;`,
);

// Code that cuts a text can split a surrogate pair.
codeTool(
  "halves",
  `export default async (state, { how }) => {
    const half = "\u{1f9f5}".slice(0, 1);
    if (how === "throw") throw new RangeError("cut " + half);
    await state.setValue("half", { [half]: half });
    const ran = await state.runCode("export default '" + half + "|\u{1f9f5}'");
    const wrong = await state.runCode("\\n" + half);
    return { text: "cut " + half, kept: await state.getValue("half"), ran: ran.result, wrong: [wrong.status, wrong.error.name, wrong.error.line] };
  };`,
);

file("lib/words.ts", "import { shout } from 'shouting';\nexport const word = (text: string): string => shout(new URL(`http://x/${text}`).pathname);");
file("node_modules/shouting/package.json", '{ "name": "shouting", "main": "x.js" }');
file("node_modules/shouting/x.js", "exports.shout = (text) => text.toUpperCase() + '!';");
codeTool(
  "web",
  `import { word } from "../lib/words";
  export default async () => {
    const order: string[] = [];
    await new Promise<void>((resolve) => { setTimeout(resolve, 20); setTimeout(() => order.push("timer"), 1); });
    const [a, b] = [crypto.randomUUID(), crypto.randomUUID()];
    return [word("a b"), order, a !== b && a.length, new TextDecoder().decode(new TextEncoder().encode("é")), structuredClone({ x: [1] })];
  };`,
);

codeTool(
  "places",
  `import { word } from "../lib/words";

interface Args {
  at: string;
}

export default (state: unknown, { at }: Args) => {
  if (at === "here") throw new Error("no");
  if (at === "beside") return word(Symbol() as any);
  return new URL("nope").href;
};
`,
);
codeTool(
  "fetches",
  `export default async (state, { url, method, body }) => {
    const answer = await fetch(url, { method, ...(body && { body, headers: { "content-type": "text/x" } }) });
    return [answer.status, answer.headers.get("x-own"), answer.headers.get("location"), await answer.text()];
  };`,
  { code: () => ({ allowedHosts: [outsideHost] }) },
);
codeTool(
  "secrets",
  `export default async (state, { name }) => {
    console.log("the key is", await state.env("CODE_KEY"));
    if (name === "throw") throw new Error("with " + (await state.env("CODE_KEY")));
    return (await state.env(name)) + " is " + (await state.envType(name));
  };`,
  { more: { variables: [{ name: "CODE_KEY", type: "secret" }] } },
);
codeTool(
  "runs",
  `export default async (state) => {
    const reported: unknown[] = [];
    const good = await state.runCode<number>("export const f = async (n: number) => { report(n); return (await add(n, 1)) + 1; }", {
      execute: { fn: "f", args: [1] },
      globals: { add: (a: number, b: number) => a + b },
      report: (value) => reported.push(value),
    });
    const endless = state.runCode("export default () => { for (;;); }");
    setTimeout(() => endless.terminate("long enough"), 50);
    const ended = await endless;
    const wrong = await state.runCode("export default 1", { execute: { fn: "f" } });
    const secret = await state.runCode("export default typeof state + typeof host + typeof fetch");
    return [good.status, good.result, reported, good.reports, ended.status, ended.error?.message, wrong.status, secret.result];
  };`,
);

/** The to-do list of the sample application. */
for (const name of ["tools/to_do.json", "tools/to_do.ts", "lib/to_do.ts", "api/to_do.ts"]) {
  file(name, readFileSync(join(checkout, "agents", name), "utf8"));
}
tools.push("to_do");

file("hooks/add.ts", 'import type { HookHandler } from "bobbin";\nexport default ((state, text) => `${text} Seen by ${state.agentId}.`) satisfies HookHandler<"after_system_message">;');
file("hooks/mark.ts", "export default (state, message) => (message.role === 'assistant' ? { ...message, metadata: { ...message.metadata, marked: true } } : null);");
file("hooks/fails.ts", "export default () => { throw new Error('on purpose'); };");
bobbin.definitions.push(() =>
  bobbin.folder.write({
    hooks: {
      add: { hook: "after_system_message", run: { code: "add.ts" } },
      mark: { hook: "before_create_message", run: { code: "mark.ts" } },
      fails: { hook: "after_create_message", run: { code: "fails.ts" } },
    },
  }),
);

file(
  "api/reports/[day].post.ts",
  `import type { EndpointHandler } from "bobbin";
  const endpoint: EndpointHandler<{ day: string }> = async (request, state, { day }) => {
    const given = await request.json();
    await state.setValue("report", given);
    const url = new URL(request.url);
    return Response.json({ day, given, method: request.method, q: url.searchParams.get("q"), own: request.headers.get("x-own"), run: state.execution }, { status: 201, headers: { "x-made": "1" } });
  };
  export default endpoint;`,
);
file("api/value.ts", "export default async (request, state) => ({ id: state.threadId, report: await state.getValue('report') });");
file("api/bytes.ts", "export default async () => new Response(Uint8Array.of(0, 255, 1), { headers: { 'content-type': 'application/x-own' } });");
file("api/fails.ts", "export default async () => { throw new Error('on purpose'); };");
file("api/_hidden.ts", "export default async () => 'never';");
file("api/late.ts", "export default async () => new Promise(() => {});");
bobbin.definitions.push(() => bobbin.folder.json("api/late.json", { run: { code: "late.ts" }, timeoutMs: 300 }));

bobbin.agent(
  "coder",
  ({ messages }) => {
    // Messages that code injects come in between.
    const newest = messages.findLast((message) => message.role === "tool" || textOf(message).startsWith('["'));
    if (newest?.role === "tool") return say(textOf(newest));
    const [name, args] = JSON.parse(textOf(newest));
    return use({ name, args });
  },
  { tools },
);
const hooked = bobbin.agent("hooked", () => say("hello"), { system: "You are hooked.", prompt: { hooks: ["add", "mark", "fails"] } });

/**
 * Returns the result of a tool as the model reads it.
 * @param {string} name @param {object} [args] @param {import("../worker/support/client.mjs").Thread} [given]
 */
async function told(name, args = {}, given) {
  const thread = given ?? (await bobbin.client.thread("coder"));
  const answer = await thread.ask(JSON.stringify([name, args]));
  assert.equal(answer.outcome, "completed", JSON.stringify(answer));
  return answer.message.content;
}

test("what a tool gives is what the model reads", async () => {
  assert.equal(await told("text", { name: "you" }), "hello you");
  assert.deepEqual(JSON.parse(await told("value")), { list: [1, null], date: "1970-01-01T00:00:00.000Z", map: { a: "1" } });
  assert.match(await told("nothing"), /\S/, "a success without a text still says something");
  assert.match(await told("result"), /no such thing/);
});

test("what a tool throws the model reads, with its place in the file", async () => {
  assert.match(await told("throws"), /RangeError: not in coder \(tools\/throws\.ts:4\)/);
});

test("a tool may ask for the engine v8, and has the same around it", async () => {
  const { fib, value, inner, refused, url, engine } = JSON.parse(await told("fast", { n: 30 }));
  assert.deepEqual([fib, value, inner, url, engine], [832_040, { n: 30 }, 60, "http://a.example/x", "undefined"]);
  assert.match(refused, /example\.com/);
});

test("a tool that takes too much memory is an error, and the thread goes on", async () => {
  const thread = await bobbin.client.thread("coder");
  assert.match(await told("hungry", {}, thread), /memory/i);
  assert.match(await told("text", {}, thread), /hello/);
});

test("a tool that never ends is stopped with its run", async () => {
  const thread = await bobbin.client.thread("coder");
  await thread.accepted(JSON.stringify(["endless", {}]));
  await until("the call runs", async () => (await thread.diagnostics()).state === "running");
  const stopped = await thread.send("POST", "/stop");
  assert.ok(stopped.status < 300, stopped.text);
  await thread.idle();
  assert.match(await told("text", {}, thread), /hello/);
});

test("the thread is there with all its members", async () => {
  const thread = await bobbin.client.thread("coder");
  const socket = await thread.stream();
  const seen = JSON.parse(await told("state", {}, thread));
  assert.deepEqual(seen.facts, [thread.id, "coder", null, "number", null, [], {}]);
  assert.deepEqual([seen.names, seen.model], [[true, true, true], true]);
  assert.equal(typeof seen.unknown, "string");
  assert.deepEqual(seen.run, ["a", ["coder_prompt"], false]);
  assert.deepEqual([seen.value, seen.none], [{ n: 1 }, null]);
  assert.deepEqual([seen.record, seen.bytes, seen.pieces], [["/notes/a.txt", 10, { by: "code" }], [1, 2, 3], [10, 1]]);
  assert.deepEqual([seen.stat, seen.list, seen.found], [true, ["a.txt", "b.bin"], { paths: ["/notes/a.txt"] }]);
  assert.deepEqual(seen.grep, [{ path: "/notes/a.txt", matches: [{ line: 2, text: "beta" }] }]);
  assert.deepEqual(seen.stats, { fileCount: 2, directoryCount: 1, totalSize: 13 });
  assert.deepEqual(seen.message.slice(0, 2), ["by the by", true]);
  assert.ok(seen.message[2].includes("user"));
  assert.deepEqual(seen.effect, [[{ word: "late" }], true, 0]);
  assert.equal(seen.logs, true);
  assert.deepEqual(seen.called, { status: "success", result: "hello inner" });
  assert.match(JSON.stringify(seen.refused), /none/);
  assert.deepEqual([seen.child, seen.parent], [null, null]);
  const event = await socket.next("the event", ({ type, eventType }) => type === "event" && eventType === "noticed");
  assert.deepEqual(event.data, { by: "code" });
  socket.close();
  const silent = (await thread.messages({ includeSilent: true })).find(({ metadata }) => metadata.from === "code");
  assert.equal(silent.content, "by the by");
});

test("a page of messages is the newest first, unless it is asked for from the oldest", async () => {
  const { newest, desc, before, asc } = JSON.parse(await told("pages"));
  assert.deepEqual([newest, desc, before], [["three", "two"], ["three", "two"], ["two", "one"]]);
  assert.equal(asc[0], '["pages",{}]');
});

test("texts with half of a character are texts with U+FFFD on this side", async () => {
  assert.deepEqual(JSON.parse(await told("halves")), {
    text: "cut \ufffd",
    kept: { "\ufffd": "\ufffd" },
    ran: "\ufffd|\u{1f9f5}",
    wrong: ["link_error", "SyntaxError", 2],
  });
  assert.match(await told("halves", { how: "throw" }), /RangeError: cut \ufffd \(tools\/halves\.ts:3\)/);
});

test("an effect runs later, outside of any run", async () => {
  const thread = await bobbin.client.thread("coder");
  await told("schedules", {}, thread);
  const value = await until("the effect ran", async () => (await thread.send("GET", "/kv?key=effect")).json?.value);
  assert.deepEqual(value, { word: "soon", run: null });
});

test("npm packages, files beside and the web's names come along", async () => {
  assert.deepEqual(JSON.parse(await told("web")), ["/A%20B!", ["timer"], 36, "é", { x: [1] }]);
});

test("an error has the place in the file that was written, whatever was bundled with it", async () => {
  assert.match(await told("places", { at: "here" }), /Error: no \(tools\/places\.ts:8\)/);
  assert.match(await told("places", { at: "beside" }), /TypeError: .* \(lib\/words\.ts:2\)/);
  assert.match(await told("places", { at: "web" }), /TypeError: Invalid URL: nope \(tools\/places\.ts:10\)/);
});

test("fetch reaches the hosts that the definition lists, and no other", async () => {
  const there = JSON.parse(await told("fetches", { url: `http://${outsideHost}/x?y`, method: "POST", body: "é" }));
  assert.deepEqual(there.slice(0, 2), [200, "1"]);
  assert.deepEqual(JSON.parse(there[3]), { method: "POST", url: "/x?y", type: "text/x", body: "é" });
  const moved = JSON.parse(await told("fetches", { url: `http://${outsideHost}/moved` }));
  assert.deepEqual([moved[0], moved[2]], [302, "/elsewhere"], "no redirect is followed");
  const port = Number(outsideHost.split(":")[1]);
  for (const url of [`http://127.0.0.1:${port === 80 ? 81 : 80}/`, `http://localhost:${port}/`, "https://example.com/", `http://${outsideHost}@example.com/`, "ftp://x/"]) {
    assert.match(await told("fetches", { url }), /TypeError/, url);
  }
  assert.match(await told("fetches", { url: "https://example.com/" }), /example\.com is not allowed.*allowedHosts/);
});

test("a request whose signal aborts is broken off out there", async () => {
  assert.deepEqual(JSON.parse(await told("aborts", { url: `http://${outsideHost}/slow` })), ["TimeoutError", true, true]);
  await until("the connection is closed", () => gaveUp.length > 0);
});

test("an endpoint sees any header and the address as it was written, and may be for all paths below", async () => {
  const thread = await bobbin.client.thread("coder");
  const base = `${bobbin.server.base}/api/threads/${thread.id}`;
  // Send the bytes as curl does, because clients reject such a value.
  const sent = http.request(`${base}/seen/a%2Fb%41?q=x+y%20z`, { headers: { "x-name": Buffer.from("日本").toString("latin1") } });
  const [answer] = await Promise.all([once(sent, "response"), sent.end()]);
  let text = "";
  for await (const chunk of answer[0].setEncoding("utf8")) text += chunk;
  const { host } = new URL(base);
  assert.deepEqual([answer[0].statusCode, JSON.parse(text)], [200, { url: `http://${host}/seen/a%2Fb%41?q=x+y%20z`, name: "日本", refused: "TypeError" }]);
  assert.deepEqual((await thread.send("GET", "/rest/a/b%2Fc")).json, { "*": "a/b/c" });
});

test("a variable that the definition does not list is not seen, and a secret is in no result", async () => {
  const thread = await bobbin.client.thread("coder");
  assert.match(await told("secrets", { name: "OTHER_KEY" }, thread), /no value for OTHER_KEY/);
  assert.equal(await told("secrets", { name: "CODE_KEY" }, thread), "[redacted CODE_KEY] is secret");
  assert.match(await told("secrets", { name: "throw" }, thread), /Error: with \[redacted CODE_KEY\]/);
  for (const path of ["/messages", "/logs"]) {
    assert.equal((await thread.send("GET", path)).text.includes(SECRET), false, path);
  }
  await until("what the code printed is told", () => bobbin.server.output(20_000).includes("tools/secrets.ts log: the key is"));
  assert.equal(bobbin.server.output(20_000).includes(SECRET), false, "not to the operator either");
});

test("code in the sandbox runs code, and ends it", async () => {
  assert.deepEqual(JSON.parse(await told("runs")), ["success", 3, [1], [1], "terminated", "long enough", "link_error", "undefinedundefinedundefined"]);
});

test("hooks change what passes, and one that fails is logged", async () => {
  const thread = await bobbin.client.thread("hooked");
  await thread.ask("hi");
  const [reply] = (await thread.messages()).filter(({ role }) => role === "assistant");
  assert.equal(reply.metadata.marked, true);
  const failed = await until("the failure is logged", async () => (await thread.logged("hook"))[0]);
  assert.match(JSON.stringify(failed), /fails.*on purpose|on purpose.*fails/);
  assert.match(JSON.stringify(hooked.model.asked[0]), /You are hooked\. Seen by hooked\./);
});

test("an endpoint answers requests with what it makes of them", async () => {
  const thread = await bobbin.client.thread("coder");
  const made = await thread.send("POST", "/reports/a%20b?q=1", { n: [1] }, { headers: { "x-own": "2" } });
  assert.equal(made.status, 201, made.text);
  assert.deepEqual(made.json, { day: "a b", given: { n: [1] }, method: "POST", q: "1", own: "2", run: null });
  assert.equal(made.headers["x-made"], "1");
  assert.deepEqual((await thread.send("GET", "/value")).json, { id: thread.id, report: { n: [1] } });
  const bytes = await thread.send("GET", "/bytes");
  assert.deepEqual([bytes.headers["content-type"], [...bytes.bytes]], ["application/x-own", [0, 255, 1]]);
  const failed = await thread.send("GET", "/fails");
  assert.deepEqual([failed.status, failed.text.includes("on purpose")], [500, false], "what went wrong is for the operator");
  assert.equal((await thread.send("GET", "/_hidden")).status, 404);
  assert.equal((await thread.send("GET", "/late")).status, 500);
});

test("the sample's list of things to do: a tool and an endpoint that share a file", async () => {
  const thread = await bobbin.client.thread("coder");
  assert.equal(await told("to_do", {}, thread), "The list is empty.");
  assert.equal(await told("to_do", { add: ["milk", "bread", "tea"] }, thread), "1. [ ] milk\n2. [ ] bread\n3. [ ] tea");
  assert.equal(await told("to_do", { done: [2], remove: [1], add: ["salt"] }, thread), "1. [x] bread\n2. [ ] tea\n3. [ ] salt");
  assert.match(await told("to_do", { done: [9] }, thread), /There is no entry 9; the list has 3\./);
  const json = await thread.send("GET", "/to_do");
  assert.deepEqual([json.status, json.json.open, json.json.list.length], [200, 2, 3]);
  const text = await thread.send("GET", "/to_do?as=text");
  assert.deepEqual([text.headers["content-type"], text.text], ["text/plain; charset=utf-8", "1. [x] bread\n2. [ ] tea\n3. [ ] salt\n"]);
  assert.equal((await thread.send("GET", "/to_do?as=xml")).status, 400);
});

test("code that changes is served at once, and broken code is not", async () => {
  const thread = await bobbin.client.thread("coder");
  bobbin.folder.file("tools/text.js", "export default () => 'changed';");
  await until("the change is served", async () => (await told("text", {}, thread)) === "changed");
  bobbin.folder.file("tools/text.js", "export default () => 'broken;\n");
  await until("the mistake is printed", () => /tools\/text\.js:1:30: error: Unterminated string literal/.test(bobbin.server.output(6000)));
  assert.equal(await told("text", {}, thread), "changed");
});
