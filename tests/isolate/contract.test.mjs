// The contract of runCode, line by line of the specification's checklist (Runtime §13.9), as far as the isolate keeps
// it. Values that cross are in values.test.mjs, modules in modules.test.mjs, hangs in hangs.test.mjs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep } from "../worker/support/poll.mjs";
import { contract, isolateServer } from "./support/isolate.mjs";

const server = isolateServer();

// 2. TypeScript by default, as an ES module.

contract("TypeScript's types are erased, and the source is a module", async (engine) => {
  const source = `
    interface Pair { a: number; b: number }
    enum Sign { Plus = 1, Minus = -1 }
    const add = <T extends Pair>(pair: T, sign: Sign): number => (pair.a + pair.b!) * (sign as number);
    export default async function main(pair: Pair): Promise<unknown> {
      return { sum: add(pair, Sign.Minus), self: typeof this, strict: (function () { return this })() === undefined };
    }`;
  assert.deepEqual(await server.value(source, { engine, args: [{ a: 1, b: 2 }] }), { sum: -3, self: "undefined", strict: true });
});

contract("plain JavaScript is not read as TypeScript", async (engine) => {
  assert.equal(await server.value("const a = 1, b = 2, f = 3; export default f<a>(b)", { engine, language: "javascript" }), false);
});

// 4. Globals at module scope, and nowhere else.

contract("globals are in scope in every module and not on globalThis", async (engine) => {
  const source = `import { seen } from "./lib.ts";
    export default () => [add, seen, typeof globalThis.add, "add" in globalThis, Object.keys(globalThis), Reflect.ownKeys(globalThis).includes("add")]`;
  const modules = { "./lib.ts": "export const seen = add" };
  const value = await server.value(source, { engine, globals: { add: 5 }, modules });
  assert.deepEqual(value, [5, 5, "undefined", false, [], false]);
});

contract("a declaration of the module goes before a global of the same name", async (engine) => {
  assert.equal(await server.value("const fetch = 1; export default fetch", { engine, globals: { fetch: 2 } }), 1);
});

// 5. Only the intrinsics of ECMAScript.

const ECMASCRIPT = [
  ...["globalThis", "Infinity", "NaN", "undefined", "eval", "isFinite", "isNaN", "parseFloat", "parseInt"],
  ...["decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "unescape"],
  ...["AggregateError", "Array", "ArrayBuffer"],
  ...["BigInt", "BigInt64Array", "BigUint64Array", "Boolean", "DataView", "Date", "Error", "EvalError", "FinalizationRegistry"],
  ...["Float16Array", "Float32Array", "Float64Array", "Function", "Int8Array", "Int16Array", "Int32Array", "Iterator", "Map"],
  ...["Number", "Object", "Promise", "Proxy", "RangeError", "ReferenceError", "RegExp", "Set", "String", "Symbol"],
  ...["SyntaxError", "TypeError", "Uint8Array", "Uint8ClampedArray", "Uint16Array", "Uint32Array", "URIError", "WeakMap"],
  ...["WeakRef", "WeakSet", "JSON", "Math", "Reflect", "AsyncDisposableStack", "DisposableStack", "SuppressedError", "Intl", "Temporal"],
];

contract("globalThis has the intrinsics of ECMAScript and nothing else", async (engine) => {
  const names = await server.value("export default Reflect.ownKeys(globalThis).map(String)", { engine, globals: { mine: 1 }, report: true });
  const foreign = names.filter((/** @type {string} */ name) => !ECMASCRIPT.includes(name) && name !== "Symbol(Symbol.toStringTag)");
  assert.deepEqual(foreign, []);
});

contract("what Annex B of ECMAScript adds is there", async (engine) => {
  const source = `export default [escape("ü %u1"), unescape("%FC%u0107"), "abc".substr(1, 1), "a".anchor("b"), "a".big(), new Date(0).getYear(), new Date(0).toGMTString(),
    typeof ({}).__defineGetter__, typeof ({}).__lookupSetter__, ({}).__proto__ === Object.prototype, typeof /a/.compile, " a".trimLeft()]`;
  const expected = ["%FC%20%25u1", "üć", "b", '<a name="b">a</a>', "<big>a</big>", 70, "Thu, 01 Jan 1970 00:00:00 GMT", "function", "function", true, "function", "a"];
  assert.deepEqual(await server.value(source, { engine }), expected);
});

contract("a promise that is rejected and that nobody waits for is told in the logs", async (engine) => {
  const logsOf = async (/** @type {string} */ source) => {
    const { status, logs, error } = await server.run(source, { engine, globals: { fails: () => assert.fail("as it should") } });
    assert.equal(status, "success", JSON.stringify(error));
    return logs.map(({ level, args: [text, reason] }) => [level, text, reason?.message ?? reason]);
  };
  const told = [["error", "Uncaught (in promise):", "lost"]];
  assert.deepEqual(await logsOf("export default () => { (async () => { throw new TypeError('lost') })(); return 1 }"), told);
  assert.deepEqual(await logsOf("export default async () => { Promise.reject('lost'); await null; return 1 }"), told);
  assert.deepEqual(await logsOf("export default async () => { new Promise((_, no) => no('lost')).then(() => 1); return 1 }"), told);
  for (const caught of [
    "export default async () => { const p = Promise.reject(1); await null; p.catch(() => {}); return 1 }",
    "export default async () => { await Promise.allSettled([fails(), Promise.reject(2)]); return 1 }",
    "export default async () => { try { await (async () => { throw 1 })() } catch {} return 1 }",
  ]) {
    assert.deepEqual(await logsOf(caught), [], caught);
  }
  // Its own error is the outcome, and not told twice; of a flood not all is told.
  const failed = await server.run("export default async () => { throw new Error('mine') }", { engine });
  assert.deepEqual([failed.status, failed.error.message, failed.logs], ["error", "mine", []]);
  const flood = await logsOf("export default () => { for (let k = 0; k < 5000; k++) Promise.reject(k); return 1 }");
  assert.equal(flood.length, 20);
});

contract("a stack that code made up takes no time, and is told in frames that there are", async (engine) => {
  const made = "throw Object.assign(new Error('made'), { stack: STACK })";
  const lines = "\n".repeat(500_000);
  for (const stack of [
    "'    at f (<runCode>:99999999:2)\\n'.repeat(50)",
    "'    at f (<runCode>:2:99999999)\\n'.repeat(50)",
    "'    at f (m.ts:3:3)\\n'.repeat(3000)",
    "'    at '.repeat(30000)",
    "'    at ' + '(<runCode>'.repeat(9000) + ':1:1)'",
    "('    at ' + '1:'.repeat(49000))",
    "'\\n'.repeat(1e5)",
  ]) {
    const modules = Object.fromEntries(Array.from({ length: 500 }, (_, k) => [`./m${k}.js`, "export const v = 1"]));
    const began = performance.now();
    const { status, error } = await server.run(`/* ü */ ${lines} export default () => { ${made.replace("STACK", stack)} }`, { engine, modules });
    assert.equal(status, "error");
    assert.equal(error.message, "made");
    assert.ok((error.stack ?? "").split("\n").length <= 51);
    assert.ok(performance.now() - began < 5000);
  }
});

// 6. Nothing makes code of text, and nothing is shared.

contract("eval, new Function, SharedArrayBuffer, Atomics and URL imports are refused", async (engine) => {
  const source = `
    const t = async (f) => { try { return "ran " + (await f()) } catch (e) { return e.name } };
    export default async () => [
      await t(() => eval("1")),
      await t(() => (0, eval)("1")),
      await t(() => new Function("return 1")()),
      typeof SharedArrayBuffer, typeof Atomics,
      await t(() => import(["https:", "", "example.com", "a.js"].join("/"))),
    ]`;
  const value = await server.value(source, { engine });
  assert.deepEqual(value.slice(0, 5), ["EvalError", "EvalError", "EvalError", "undefined", "undefined"]);
  assert.notEqual(value[5].slice(0, 3), "ran");
});

// 7. Memory.

contract("a heap over its limit ends as memory, also when the code catches the error", async (engine) => {
  for (const source of ["for (;;) a.push(new Array(1000).fill(1.5))", "for (;;) try { a.push(new Array(1000).fill(1.5)) } catch {}"]) {
    const result = await server.run(`const a = []; export default () => { ${source} }`, { engine, memory: 8 << 20 });
    assert.equal(result.status, "memory", JSON.stringify(result.error));
    assert.match(result.error.message, /8388608 bytes/);
  }
}, ["memory"]);

contract("a limit above the ceiling is clamped, and the message says so", async (engine) => {
  const source = "const a = []; export default () => { for (;;) a.push(new Uint8Array(1 << 20)) }";
  const result = await server.run(source, { engine, memory: 1 << 30 });
  assert.equal(result.status, "memory");
  assert.match(result.error.message, /67108864 bytes.*1073741824/);
}, ["memory"]);

contract("what a limit allows can be used", async (engine) => {
  const source = "const a = []; export default () => { for (let i = 0; i < 12; i++) a.push(new Uint8Array(1 << 20)); return a.length }";
  assert.equal(await server.value(source, { engine, memory: 16 << 20 }), 12);
}, ["memory"]);

// 8. Termination.

contract("terminate ends a loop, with its reason, and says so once", async (engine) => {
  const running = await server.start("for (;;);", { engine });
  await sleep(100);
  running.terminate("enough");
  running.terminate("too late");
  const result = await running.result;
  assert.equal(result.status, "terminated");
  assert.match(result.error.message, /enough/);
  assert.ok(Number(result.settleMs) < 500, `${result.settleMs} ms`);
}, ["ending"]);

contract("terminate after the end changes nothing", async (engine) => {
  const running = await server.start("export default 1", { engine });
  const result = await running.result;
  running.terminate();
  assert.equal(result.status, "success");
  assert.equal(await server.value("export default 2", { engine }), 2);
});

contract("a cap of fuel is a termination that names it; without one nothing ends by itself", async (engine) => {
  const capped = await server.run("for (;;);", { engine, fuel: 1_000_000 });
  assert.equal(capped.status, "terminated");
  assert.match(capped.error.message, /1000000/);
  assert.equal((await server.run("let n = 0; while (n < 1e6) n++; export default n", { engine })).status, "success");
  assert.equal((await server.run("export default 1", { engine, fuel: 10_000_000 })).status, "success");
}, ["fuel"]);

// 10. The export that is run (§13.5).

contract("the chosen export is called with the arguments", async (engine) => {
  const source = "export const double = (x: number) => 2 * x; export default () => 'default'";
  assert.equal(await server.value(source, { engine, fn: "double", args: [21] }), 42);
  assert.equal(await server.value(source, { engine }), "default");
});

contract("an export that is no function is the value, and takes no arguments", async (engine) => {
  assert.equal(await server.value("export const value = 7", { engine, fn: "value" }), 7);
  const result = await server.run("export const value = 7", { engine, fn: "value", args: [1] });
  assert.equal(result.status, "error");
  assert.match(result.error.message, /not a function/);
});

contract("a missing export is a link error", async (engine) => {
  const result = await server.run("export const a = 1", { engine });
  assert.deepEqual([result.status, result.error.message], ["link_error", 'export "default" not found']);
});

contract("thenables are awaited as often as they come", async (engine) => {
  const source = "const then = (value) => ({ then: (resolve) => resolve(value) }); export default () => then(then(then(11)))";
  assert.equal(await server.value(source, { engine }), 11);
  assert.equal(await server.value("export default { then(resolve) { resolve(Promise.resolve(5)) } }", { engine }), 5);
});

contract("a namespace that exports `then` is not a thenable to the harness", async (engine) => {
  const source = "let called = 0; export function then(resolve) { called++; resolve(1) } export default () => called";
  assert.equal(await server.value(source, { engine }), 0);
});

contract("a function is called without a this", async (engine) => {
  assert.equal(await server.value("export default function () { return this === undefined }", { engine }), true);
});

// 11. Statuses and errors.

contract("what is thrown or rejected is an error with its place in the caller's source", async (engine) => {
  const cases = [
    ["export default () => {\n  throw new RangeError('boo');\n}", "RangeError", 2],
    ["export default async () => {\n\n  throw new TypeError('boo');\n}", "TypeError", 3],
    ["\n\n\nthrow new Error('boo'); export default 1", "Error", 4],
    ["await null;\nthrow new Error('boo'); export default 1", "Error", 2],
  ];
  for (const [source, name, line] of cases) {
    const { status, error } = await server.run(String(source), { engine, filename: "main.ts" });
    assert.equal(status, "error");
    assert.deepEqual([error.name, error.message, error.line, error.filename], [name, "boo", line, "main.ts"]);
    assert.ok(error.column > 0);
  }
});

contract("columns count UTF-16 units of the source as it was written", async (engine) => {
  const line = '  const x: string = "é😀" as string; missing();';
  const { error } = await server.run(`export default () => {\n${line}\n}`, { engine });
  assert.deepEqual([error.name, error.line], ["ReferenceError", 2]);
  assert.equal(error.column, line.indexOf("missing") + 1);
});

contract("columns are those of the source on lines, too, into which the compiler puts code", async (engine) => {
  const lines = [
    'class A { constructor(private readonly é: string, public b = 1) { missing(this.é) } } export default () => new A("x")',
    'enum Level { Low, High = 1 << 2, Name = "é😀".length } export default () => missing(Level.High)',
    "namespace N { export const a = 1, b = a + 1; export function c() { missing(a, b) } } export default () => N.c()",
    "enum B { X = 1,\n Y, Z = X } export default () => missing(B.Y)",
    "export default () => import('./none.ts').catch(() => missing(import.meta.url))",
  ];
  for (const source of lines) {
    const { error } = await server.run(source, { engine });
    const [line, before] = [source.slice(0, source.indexOf("missing")).split("\n").length, source.lastIndexOf("\n", source.indexOf("missing"))];
    assert.deepEqual([error.name, error.line, error.column], ["ReferenceError", line, source.indexOf("missing") - before], source);
  }
});

contract("a stack names the caller's modules and nothing else", async (engine) => {
  const modules = { "./lib.ts": "export const fail = () => { throw new Error('deep') }" };
  const source = "import { fail } from './lib.ts';\nfunction outer() { fail() }\nexport default () => [1].map(outer)";
  const { error } = await server.run(source, { engine, modules, filename: "main.ts", globals: { f: () => 1 } });
  assert.match(error.stack, /^Error: deep\n/);
  const frames = error.stack.split("\n").slice(1);
  for (const frame of frames) assert.match(frame, /\(?(lib|main)\.ts:\d+:\d+\)?$/, error.stack);
  assert.deepEqual([error.filename, error.line], ["lib.ts", 1]);
  assert.match(error.stack, /outer \(main\.ts:2:/);
});

contract("a file may be called like a part of a stack", async (engine) => {
  for (const filename of ["new file.ts", "async file.ts", "a (b.ts"]) {
    const { error } = await server.run("export default () => {\n  throw new Error('x') }", { engine, filename });
    assert.deepEqual([error.filename, error.line], [filename, 2]);
  }
});

contract("anything may be thrown", async (engine) => {
  for (const [thrown, message] of [
    ["'text'", "text"],
    ["undefined", "undefined"],
    ["{ message: 'told' }", "told"],
    ["{ code: 5 }", '{"code":5}'],
    ["Symbol('s')", "Symbol(s)"],
    ["Object.create(null)", "{}"],
    ["new Proxy({}, { get() { throw 1 } })", "an object that cannot be shown"],
  ]) {
    const { status, error } = await server.run(`export default () => { throw ${thrown} }`, { engine });
    assert.deepEqual([status, error.name, error.message], ["error", "Error", message]);
  }
});

contract("an error of a custom class keeps its name and its place", async (engine) => {
  const source = "class Odd extends Error { name = 'Odd' }\nexport default () => {\n  throw new Odd('custom') }";
  const { error } = await server.run(source, { engine });
  assert.deepEqual([error.name, error.message, error.line], ["Odd", "custom", 3]);
});

contract("a mistake in the syntax is a link error with its place", async (engine) => {
  for (const [source, line] of [
    ["export default () => {\n  const x = ;\n}", 2],
    // One that only the engine finds.
    ["export default 1;\nlet a; let a;", 2],
  ]) {
    const { status, error } = await server.run(String(source), { engine });
    assert.deepEqual([status, error.name, error.line], ["link_error", "SyntaxError", line]);
    assert.ok(error.column > 1);
  }
});

contract("where the end waits for calls, those that the code did not await are answered before it, and those that follow", async (engine) => {
  const heard = /** @type {number[]} */ ([]);
  const slow = async (/** @type {number} */ n) => {
    await sleep(30);
    heard.push(n);
    return n + 1;
  };
  const source = "export default () => { slow(1).then(slow).then(slow); slow(10); return 'over' }";
  const { status, value } = await server.run(source, { engine, globals: { slow }, awaitsCalls: true });
  assert.deepEqual([status, value], ["success", "over"]);
  assert.deepEqual(heard, [1, 10, 2, 3]);
  const failed = await server.run("export default () => { slow(20); throw new Error('no') }", { engine, globals: { slow }, awaitsCalls: true });
  assert.deepEqual([failed.status, failed.error.message], ["error", "no"]);
});

// 12. A fresh isolate for every call.

contract("half of a surrogate pair in a source is what it would be in a file", async (engine) => {
  const modules = { "./lib.ts": "export const lib = 'l\ud83e'" };
  const source = "import { lib } from './lib.ts'; export default ['\ud83e', lib, '\u{1f9f5}', '\\ud83e']";
  assert.deepEqual(await server.value(source, { engine, modules }), ["\ufffd", "l\ufffd", "\u{1f9f5}", "\ud83e"]);
  const mistake = await server.run("export default 1;\n'\ud83e'; const \ud83e = 2", { engine });
  assert.deepEqual([mistake.status, mistake.error.name, mistake.error.line, mistake.error.column], ["link_error", "SyntaxError", 2, 12]);
  const unknown = await server.run("\nimport './\ud83e.ts'; export default 1", { engine });
  assert.deepEqual([unknown.status, unknown.error.line], ["link_error", 2]);
  const computed = "export default (name) => import(name).then(() => 'went', (error) => error.message)";
  assert.match(await server.value(computed, { engine, args: ["./\ud83e"] }), /\ufffd/);
});

contract("half of a surrogate pair is no name of anything", async (engine) => {
  for (const [option, options] of Object.entries({
    "filename": { filename: "\ud83e.ts" },
    "execute.fn": { fn: "\ud83e" },
    "modules": { modules: { "./\ud83e.ts": "" } },
    "globals": { globals: { "\ud83e": 1 } },
    "imports": { imports: { host: { "\ud83e": 1 } } },
  })) {
    const { status, error } = await server.run("export default 1", { engine, ...options });
    assert.deepEqual([status, error.name], ["link_error", "InvalidOptions"]);
    assert.ok(error.message.startsWith(`${option}: half of a surrogate pair`), error.message);
  }
});

contract("what is said of an error is well-formed text", async (engine) => {
  const source = "export default () => { const error = new RangeError('not \\ud83e'); error.name = 'Mine\\udd00'; throw error }";
  const { error } = await server.run(source, { engine });
  assert.deepEqual([error.name, error.message], ["Mine\ufffd", "not \ufffd"]);
  assert.ok(error.stack.isWellFormed());
});

contract("nothing is left for the next call", async (engine) => {
  const pollute = `Object.prototype.left = Array.prototype.left = 1; globalThis.left = 2; Math.left = 3; Array.prototype.push = null;
    JSON.stringify = null; Promise.prototype.then = null; export let count = 0; export default () => ++count`;
  assert.equal(await server.value(pollute, { engine }), 1);
  assert.equal(await server.value(pollute, { engine }), 1);
  const look = "export default () => [typeof left, {}.left, [].left, Math.left, typeof [].push, typeof JSON.stringify, typeof Promise.prototype.then]";
  const none = ["undefined", undefined, undefined, undefined, "function", "function", "function"];
  assert.deepEqual(await server.value(look, { engine }), none);
});

// Should: console and reports.

contract("the console is captured with levels, arguments and times", async (engine) => {
  const source = `console.log("a", 1, { b: [2n] }); console.info(new Map([[1, 2]])); console.warn(); console.error(new RangeError("bad")); console.debug(undefined);
    export default typeof globalThis.console`;
  const result = await server.run(source, { engine });
  assert.equal(result.value, "undefined");
  assert.deepEqual(result.logs.map(({ level }) => level), ["log", "info", "warn", "error", "debug"]);
  assert.deepEqual(result.logs[0]?.args, ["a", 1, { b: [2n] }]);
  assert.deepEqual(result.logs[1]?.args, [new Map([[1, 2]])]);
  assert.equal(result.logs[3]?.args[0].name, "RangeError");
  assert.ok(result.logs.every(({ timestamp }) => Math.abs(timestamp - Date.now()) < 60_000));
  assert.equal(result.logsCut, false);
});

contract("what cannot cross is told to the console in words", async (engine) => {
  const source = `class Foo { x = 1 } console.log(() => 1, Symbol("s"), new Foo(), new WeakMap()); console.log({ get a() { throw 1 } }); console.log("after"); export default 1`;
  const { logs, status } = await server.run(source, { engine });
  assert.equal(status, "success");
  assert.deepEqual(logs[0]?.args.slice(0, 3), ["[Function: ]", "Symbol(s)", { x: 1 }]);
  assert.deepEqual(logs[1]?.args, [{ a: "[threw]" }]);
  assert.deepEqual(logs.at(-1)?.args, ["after"]);
});

contract("a console that was given is not captured", async (engine) => {
  /** @type {unknown[]} */
  const printed = [];
  const globals = { console: { log: (/** @type {unknown} */ text) => printed.push(text) } };
  const { logs } = await server.run("export default async () => { await console.log('mine') }", { engine, globals });
  assert.deepEqual([logs, printed], [[], ["mine"]]);
});

contract("logs of failed code are kept", async (engine) => {
  const { logs, status } = await server.run("console.log('before'); throw new Error('x'); export default 1", { engine });
  assert.deepEqual([status, logs.map(({ args }) => args)], ["error", [["before"]]]);
});

contract("report reaches the caller in order and before the result, when it is wanted", async (engine) => {
  const source = "for (let i = 0; i < 600; i++) report({ i }); export default typeof globalThis.report";
  const result = await server.run(source, { engine, report: true });
  assert.equal(result.value, "undefined");
  assert.deepEqual(result.reports, Array.from({ length: 600 }, (_, i) => ({ i })));
  assert.equal(await server.value("export default typeof report", { engine }), "undefined");
});

// §13.7.

contract("top-level await waits for the caller's functions, also in modules", async (engine) => {
  const slow = async (/** @type {number} */ x) => (await sleep(20), x * 2);
  const modules = { "./lib.ts": "export const b = await slow(4)" };
  assert.deepEqual(await server.value("import { b } from './lib.ts'; const a = await slow(3); export default [a, b]", { engine, modules, globals: { slow } }), [6, 8]);
}, ["waiting at the top"]);

contract("microtasks run in order, and there are no timers", async (engine) => {
  const source = `const seen = []; Promise.resolve().then(() => seen.push(2)); (async () => { seen.push(1); await null; seen.push(3) })();
    export default async () => { await null; await null; return [seen, typeof setTimeout, typeof queueMicrotask] }`;
  assert.deepEqual(await server.value(source, { engine }), [[1, 2, 3], "undefined", "undefined"]);
});

contract("a rejection that nobody handles does not fail the run", async (engine) => {
  assert.equal(await server.value("Promise.reject(new Error('nobody')); export default 5", { engine }), 5);
});

test("an engine that is not there is refused", async () => {
  const { status, error } = await server.run("export default 1", { engine: "none" });
  assert.deepEqual([status, error.name], ["link_error", "InvalidOptions"]);
  assert.match(error.message, /none/);
});
