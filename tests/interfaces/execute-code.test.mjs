// `execute_code` from outside: a model's own code, its tool calls, and the limits that apply to it.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { after } from "node:test";
import { http } from "../../package/lib/node-http.mjs";
import { say, textOf, use } from "../worker/support/model.mjs";
import { sleep } from "../worker/support/poll.mjs";
import { suite } from "../worker/support/suite.mjs";

/** An external server that returns what it received. */
const outside = http.createServer(async (request, answer) => {
  const body = Buffer.concat(await request.toArray()).toString();
  const { method, url, headers } = request;
  answer.writeHead(url === "/gone" ? 404 : 200, { "content-type": "application/json", "x-from": "outside" });
  answer.end(JSON.stringify({ method, url, own: headers["x-own"], type: headers["content-type"], body }));
});
outside.listen(0, "127.0.0.1");
let asked = 0;
outside.on("request", () => asked++);
await once(outside, "listening");
const host = `127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (outside.address()).port}`;
/** Another host name of this machine that does not look local. */
const [, loopback] = /^127\.0\.0\.1\s+(?:\S+\s+)*?(?!localhost|\S*\.local)([a-z0-9.-]+)\s*$/m.exec(readFileSync("/etc/hosts", "utf8")) ?? [];
const named = `${loopback}:${host.split(":")[1]}`;
after(() => {
  outside.closeAllConnections();
  outside.close();
});

const bobbin = suite({ vars: { BOBBIN_ALLOW_PRIVATE_HOSTS: "127.0.0.1" } });
const test = bobbin.test.bind(bobbin);

const search = bobbin.tool("search", async ({ args }) => {
  if (args.query === "broken") return { status: 500, body: "the archive is closed" };
  await sleep(args.query === "slow" ? 80 : 1);
  return `found ${args.query}`;
}, {
  description: "Searches the archive.",
  args: { type: "object", properties: { query: { type: "string" }, limit: { type: "integer" } }, required: ["query"] },
});
bobbin.tool("write-down", () => "written", { args: { type: "object", properties: {} } });

/** Defines an agent whose model runs its user's code. @param {string} name @param {object} [options] */
const coder = (name, options) =>
  bobbin.agent(name, ({ messages }) => {
    const last = messages.at(-1);
    return last?.role === "tool" ? say("done") : use({ name: "execute_code", args: { code: textOf(last) } });
  }, { tools: ["search", "write-down", options ? { name: "execute_code", options } : "execute_code"] });

const free = coder("free");
const reaching = coder("reaching", { allowedHosts: [host, named, "*.example.org"] });
const bounded = coder("bounded", { maxCodeSize: 2000, maxOutputSize: 60, codeTimeoutMs: 700, maxToolCalls: 3 });

/** Runs code and returns the result. @param {{ name: string }} agent @param {string} code */
async function run(agent, code) {
  const thread = await bobbin.client.thread(agent.name);
  await thread.ask(code);
  const told = (await thread.messages()).find((/** @type {any} */ message) => message.role === "tool");
  assert.ok(told);
  return { ...parsed(told.content), worked: told.tool_status, thread };
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return { text };
  }
}

test("the tool is off where no prompt lists it, and its description declares the others", async () => {
  await run(free, "return 1");
  const own = free.model.asked[0]?.body.tools.find((/** @type {any} */ tool) => tool.function.name === "execute_code").function;
  assert.match(own.description, /declare const tools: \{/);
  assert.match(own.description, /\/\*\* Searches the archive\. \*\/\n  search\(args: \{ query: string; limit\?: number \}\): Promise<string>;/);
  assert.match(own.description, /"write-down"\(\): Promise<string>;/);
});

test("code calls tools in order, prints, and gives its result", async () => {
  const before = search.received.length;
  const told = await run(free, `
    interface Found { text: string }
    const all = await Promise.all(["slow", "quick"].map((query) => tools.search({ query })));
    const found: Found[] = all.map((text) => ({ text }));
    console.log("had", found.length);
    console.warn("careful");
    return { found, none: await tools["write-down"]() };`);
  assert.equal(told.status, "success", JSON.stringify(told));
  assert.equal(told.worked, "success");
  assert.deepEqual(told.result, { found: [{ text: "found slow" }, { text: "found quick" }], none: "written" });
  assert.equal(told.output, "had 2\n[warn] careful");
  assert.deepEqual(told.toolCalls.map((/** @type {any} */ call) => `${call.name} ${call.status}`), ["search success", "search success", "write-down success"]);
  assert.deepEqual(search.received.slice(before).map(({ args }) => args.query), ["slow", "quick"]);
});

test("a call that the code does not await is made, and its outcome told", async () => {
  const before = search.received.length;
  const told = await run(free, `tools.search({ query: "one" }).then(() => tools.search({ query: "two" })); return "over";`);
  assert.deepEqual([told.status, told.result], ["success", "over"]);
  assert.deepEqual(told.toolCalls.map((/** @type {any} */ call) => `${call.name} ${call.status}`), ["search success", "search success"]);
  assert.deepEqual(search.received.slice(before).map(({ args }) => args.query), ["one", "two"]);
});

/** @type {Record<string, [code: string, result: unknown]>} */
const forms = {
  "an arrow function": ["async () => {\n  return await tools.search({ query: 'a' });\n}", "found a"],
  "a function that nothing calls": ["async function main() {\n  return tools.search({ query: 'a' });\n}", "found a"],
  "a module": ["export default async () => {\n  return tools.search({ query: 'a' });\n};", "found a"],
  "a fence": ["```ts\nreturn tools.search({ query: 'a' })\n```", "found a"],
  "a last expression": ["const found = await tools.search({ query: 'a' });\n({ found })", { found: "found a" }],
  "a last expression that cannot be copied": ["await tools.search({ query: 'a' });\nclass A { b = 1 }\nnew A()", { b: 1 }],
};
for (const [name, [code, result]] of Object.entries(forms)) {
  test(`code may be ${name}`, async () => {
    const told = await run(free, code);
    assert.deepEqual([told.status, told.result, told.toolCalls?.length], ["success", result, 1], JSON.stringify(told));
  });
}

test("code that did nothing is told so", async () => {
  for (const code of ["// nothing", "const x = 1;", "class A {}"]) {
    const told = await run(free, code);
    assert.deepEqual([told.worked, told.status, told.error.name], ["error", "link_error", "SyntaxError"], code);
    assert.match(told.error.message, /write the body of an async function/);
  }
  const uncalled = await run(free, "const main = async () => 1;\nawait 0;\nreturn main");
  assert.deepEqual([uncalled.worked, uncalled.status], ["error", "error"]);
  assert.match(uncalled.error.message, /function, which nothing has called/);
  const silent = await run(free, "if (await false) tools.search({ query: 'a' });");
  assert.equal(silent.worked, "success");
  assert.match(silent.note, /without a result/);
});

test("what is thrown is an error, with the model's own lines", async () => {
  const told = await run(free, "const x: number = 1;\nthrow new RangeError('too far');");
  assert.equal(told.worked, "error");
  assert.equal(told.status, "error");
  assert.deepEqual([told.error.name, told.error.message, told.error.line], ["RangeError", "too far", 2]);
  const wrong = await run(free, "const x = ;");
  assert.deepEqual([wrong.status, wrong.error.line, wrong.error.column], ["link_error", 1, 11]);
});

test("a tool that fails or gets wrong arguments throws what it said", async () => {
  const told = await run(free, `
    const said = [];
    for (const args of [{ query: "broken" }, { quest: 1 }]) {
      try { await tools.search(args); } catch (error) { said.push(error.message); }
    }
    return said;`);
  assert.match(told.result[0], /^search: http 500 from search: the archive is closed$/);
  assert.match(told.result[1], /^search: Invalid arguments/);
  assert.deepEqual(told.toolCalls.map((/** @type {any} */ call) => call.status), ["error", "error"]);
});

test("each limit ends the code or refuses it, in words", async () => {
  const endless = await run(bounded, "for (;;) { try { for (;;); } catch {} }");
  assert.equal(endless.status, "terminated");
  assert.match(endless.error.message, /more than 0\.7 s \(codeTimeoutMs\)/);
  const before = search.received.length;
  const greedy = await run(bounded, "for (;;) { try { await tools.search({ query: 'x' }); } catch {} }");
  assert.equal(greedy.status, "terminated");
  assert.match(greedy.error.message, /more than 3 tools \(maxToolCalls\)/);
  assert.equal(search.received.length - before, 3);
  const loud = await run(bounded, "console.log('x'.repeat(500)); return 'ok'");
  assert.match(loud.output, /^x{40,60}\n\[Cut off here: 500 bytes in all \(maxOutputSize\)\.\]$/);
  const long = await run(bounded, `// ${"x".repeat(3000)}`);
  assert.match(long.text, /the limit is 2000 \(maxCodeSize\)/);
  const hungry = await run(free, "const all = []; for (;;) all.push(new Array(1e5).fill(1.5));");
  assert.equal(hungry.status, "memory");
  for (const told of [endless, greedy, long, hungry]) assert.equal(told.worked, "error");
});

test("files are those below the working directory, the network is closed", async () => {
  const told = await run(free, `
    await files.write("notes/a.txt", "alpha");
    const tried = async (act) => { try { return await act(); } catch (error) { return "refused: " + error.message; } };
    return [
      await files.read("notes/a.txt"), await files.list("notes"), await files.read("none"),
      await tried(() => files.read("../secret.txt")), await tried(() => files.write("/etc/x", "x")),
      await tried(() => fetch("https://example.com/")), typeof process, typeof require, typeof setTimeout,
    ];`);
  const [read, list, none, above, outside, network, ...absent] = told.result;
  assert.deepEqual([read, list, none], ["alpha", ["/sandbox/notes/a.txt"], null]);
  assert.match(above, /^refused: .*not below \/sandbox/);
  assert.match(outside, /^refused: .*not below \/sandbox/);
  assert.match(network, /^refused: fetch: no host can be reached from here: .*`allowedHosts`/);
  assert.deepEqual(absent, ["undefined", "undefined", "undefined"]);
});

test("more answers than there is room for come one after another", async () => {
  // 40 MB, while at most 16 MiB may be in transit.
  const told = await run(free, `
    await files.write("a.txt", "x".repeat(1_000_000));
    const all = await Promise.all(Array.from({ length: 40 }, () => files.read("a.txt").then((text) => text.length)));
    return [all.length, new Set(all).size];`);
  assert.deepEqual(told.result, [40, 1], JSON.stringify(told));
});

/** @param {typeof free} agent */
const described = (agent) => agent.model.asked[0]?.body.tools.find((/** @type {any} */ tool) => tool.function.name === "execute_code").function.description;

test("the network reaches the listed hosts, and is as on the web", async () => {
  const told = await run(reaching, `
    const url = new URL("http://${host}/");
    url.searchParams.set("q", "é");
    const answer: Response = await fetch(url, { method: "POST", headers: { "X-Own": "plain" }, body: "some text" });
    const other = await fetch("http://${host}/gone", { headers: new Headers([["x-own", "pair"]]) });
    const form = await fetch("http://${host}/", { method: "POST", body: new URLSearchParams({ a: "1" }) });
    const refused = await fetch("https://example.com/").catch((error) => error.message);
    const leaving = new AbortController();
    const left = fetch("http://${host}/", { signal: leaving.signal }).catch((error) => error.name);
    leaving.abort();
    return [
      [answer.ok, answer.status, answer.headers.get("X-From"), await answer.json()],
      [other.ok, other.status, JSON.parse(new TextDecoder().decode(await other.bytes())).own],
      await form.json(),
      refused,
      await left,
    ];`);
  assert.equal(told.status, "success", JSON.stringify(told));
  const [answer, other, form, refused, left] = told.result;
  assert.equal(left, "AbortError");
  assert.deepEqual(answer.slice(0, 3), [true, 200, "outside"]);
  assert.deepEqual({ ...answer[3], type: "" }, { method: "POST", url: "/?q=%C3%A9", own: "plain", type: "", body: "some text" });
  assert.deepEqual(other, [false, 404, "pair"]);
  assert.deepEqual([form.type.split(";")[0], form.body], ["application/x-www-form-urlencoded", "a=1"]);
  assert.match(refused, /^fetch: example\.com is not allowed/);
  const wrong = await run(reaching, "await fetch(1);\nthrow new TypeError('second line')");
  assert.equal(wrong.status, "error");
  const lines = await run(reaching, "const a = new URL('http://a/');\nthrow new Error(a.host)");
  assert.deepEqual([lines.error.message, lines.error.line], ["a", 2]);
});

test("no name leads to a private address unless it is listed", async () => {
  // tests/scripts/outbound.test.mjs covers machines without such a host name.
  if (loopback === undefined) return;
  const before = asked;
  const told = await run(reaching, `return await fetch("http://${named}/").catch((error) => [error.name, error.message]);`);
  assert.deepEqual(told.result, ["TypeError", `fetch: the private address 127.0.0.1 is not allowed here: ${loopback} leads to it.`]);
  assert.equal(asked, before);
});

test("the model is told which hosts it can reach, if any", async () => {
  assert.match(described(reaching), new RegExp(`Reaches these hosts and no others: ${host}, ${named}, \\*\\.example\\.org\\.`));
  assert.match(described(reaching), /declare function fetch\(url: string \| URL \| Request, init\?: RequestInit\): Promise<Response>;/);
  await run(free, "return 1");
  assert.doesNotMatch(described(free), /fetch/);
});

test("nothing of one run is there in the next, in the same thread or another", async () => {
  const first = await run(free, "globalThis.kept = 1; Array.prototype.map = () => 'mine'; return typeof kept");
  assert.equal(first.result, "number");
  await first.thread.ask("return [typeof globalThis.kept, [1].map((n) => n + 1)]");
  const again = (await first.thread.results()).at(-1);
  assert.deepEqual(JSON.parse(again ?? "{}").result, ["undefined", [2]]);
});
