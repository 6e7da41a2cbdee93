// Code that never ends by itself: `terminate` ends it, whatever it is doing. Most of these are built-in functions that
// never come back to the interpreter, so that only the meter in the engine's own code can stop them.
//
// How fast is measured by bench/isolate.mjs; here it must happen at all.

import assert from "node:assert/strict";
import { sleep } from "../worker/support/poll.mjs";
import { contract, isolateServer } from "./support/isolate.mjs";

const server = isolateServer();

const BOUND_MS = 500;

/** @type {Record<string, string>} */
const HANGS = {
  "a loop": "for (;;);",
  "a loop that catches everything": "for (;;) { try { for (;;); } catch {} finally { continue } }",
  "a loop in a finally": "try { throw 1 } finally { for (;;); }",
  "a microtask that makes the next": "for (;;) await null",
  "promises that chain": "const again = () => Promise.resolve().then(again); await again()",
  "a promise that never settles": "await new Promise(() => {})",
  "a thenable that is another": "const t = { then(resolve) { resolve(t) } }; await t",
  "a generator": "function* g() { for (;;) yield 1 } for (const _ of g());",
  "an async generator": "async function* g() { for (;;) yield 1 } for await (const _ of g());",
  "join of a sparse array": "new Array(2 ** 32 - 1).join('')",
  "shift of an array-like": "Array.prototype.shift.call({ length: 2 ** 53 - 1 })",
  "unshift of an array-like": "Array.prototype.unshift.call({ length: 2 ** 53 - 3 }, 1)",
  "indexOf on a sparse array": "for (;;) new Array(2 ** 32 - 1).indexOf(1)",
  "includes on an array-like": "Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1)",
  "fill of an array-like": "Array.prototype.fill.call({ get length() { return 2 ** 53 - 1 }, set 0(v) {} }, 1, 2 ** 40)",
  "reverse of an array-like": "Array.prototype.reverse.call({ length: 2 ** 53 - 1 })",
  "copyWithin of an array-like": "Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 0, 1)",
  "every on an array-like": "Array.prototype.every.call({ length: 2 ** 53 - 1 }, () => true)",
  "Array.from of an array-like": "class Sink { set length(v) {} } for (let i = 0; ; i++) Array.from.call(function () { return new Proxy({}, { defineProperty: () => true, set: () => true }) }, { length: 2 ** 53 - 1 })",
  "concat of a proxy": "for (;;) [].concat({ length: 2 ** 32, [Symbol.isConcatSpreadable]: true })",
  "a string search": "for (;;) 'a'.repeat(2e6).indexOf('a'.repeat(1e6) + 'b')",
  "lastIndexOf": "for (;;) ('b' + 'a'.repeat(2e6)).lastIndexOf('b' + 'a'.repeat(1e6) + 'c')",
  "replaceAll": "for (;;) 'a'.repeat(1e6).replaceAll('a'.repeat(5e5) + 'b', '')",
  "split and join": "for (;;) 'ab'.repeat(2e5).split('b').join('c')",
  "repeat and pad": "for (;;) { 'x'.repeat(1e6); 'x'.padEnd(1e6, 'abc') }",
  "normalize": "for (;;) 'e\\u0301'.repeat(2e5).normalize('NFC')",
  "a regular expression that backtracks": "/^(a+)+$/.test('a'.repeat(40) + 'b')",
  "one with alternatives": "/^(a|aa)+$/.test('a'.repeat(100) + 'b')",
  "a regular expression over much text": "for (;;) 'x'.repeat(1e6).replace(/x/g, 'y')",
  "long URLs": "const { urlParts } = await import('bobbin/url'); const asked = JSON.stringify(['http://a/' + 'é'.repeat(6e4)]); for (;;) urlParts(asked)",
  "JSON.stringify of a sparse array": "JSON.stringify(new Array(2 ** 32 - 1))",
  "JSON.parse with a reviver": "for (;;) JSON.parse('[' + '1,'.repeat(1e5) + '1]', (k, v) => v)",
  "join of a typed array": "for (;;) new Uint8Array(1e6).join('')",
  "sort of a typed array": "for (;;) new Float64Array(1e6).map((_, i) => -i).sort()",
  "fill of a typed array": "const a = new Uint8Array(8e6); for (;;) a.fill(1)",
  "set and slice of a typed array": "const a = new Uint8Array(4e6); for (;;) a.slice().set(a)",
  "a bigint": "let a = 3n ** 60000n; for (;;) a * a",
  "a power of bigints": "for (let i = 0n; ; i++) 7n ** (200000n + i)",
  "a bigint as text": "for (;;) (3n ** 100000n).toString()",
  "text as a bigint": "for (;;) BigInt('9'.repeat(50000))",
  "a sort that lies": "for (;;) Array.from({ length: 1e5 }, (_, i) => i).sort(() => Math.random() - 0.5)",
  "a sort whose comparator never ends": "[2, 1].sort(() => { for (;;); })",
  "a Map that grows while it is read": "const m = new Map([[0, 0]]); for (const [k] of m) { m.delete(k); m.set(k + 1, 0) }",
  "a Set's forEach that grows it": "const s = new Set([0]); s.forEach((k) => { s.delete(k); s.add(k + 1) })",
  "a proxy's trap": "new Proxy({}, { get() { for (;;); } }).x",
  "an endless iterator": "new Map({ [Symbol.iterator]: () => ({ next: () => ({ done: false, value: [1, 1] }) }) })",
  "Promise.all of an endless iterator": "const p = Promise.resolve(); const then = p.then; Promise.resolve = () => ({ then() {} }); await Promise.all({ *[Symbol.iterator]() { for (;;) yield 1 } })",
  "a getter": "({ get x() { for (;;); } }).x",
  "a toString": "`${{ toString() { for (;;); } }}`",
  "decodeURIComponent": "for (;;) decodeURIComponent('%41'.repeat(3e5))",
  "parse of a date": "for (;;) Date.parse('x'.repeat(1e6))",
  "flat": "const a = new Array(1e5).fill([1, [2]]); for (;;) a.flat(2)",
};

for (const [name, source] of Object.entries(HANGS)) {
  contract(`terminate ends ${name}`, async (engine) => {
    // With memory to spare: a fast machine would reach the usual limit first.
    const running = await server.start(`${source}; export default 1`, { engine, caller: "hang", memory: 64 << 20 });
    await sleep(60);
    running.terminate("enough");
    const result = await running.result;
    assert.equal(result.status, "terminated", JSON.stringify(result.error));
    assert.ok(Number(result.settleMs) < BOUND_MS, `${result.settleMs} ms`);
    // The isolate is there for others, at once.
    assert.equal(await server.value("export default 2", { engine }), 2);
  }, ["ending"]);
}

contract("terminate ends calls of the caller's functions, one after another and one that never ends", async (engine) => {
  const globals = { same: (/** @type {unknown} */ x) => x, never: () => new Promise(() => {}) };
  for (const source of ["for (;;) await same(1)", "await never()", "for (;;) same(1)", "for (;;) { await Promise.all(Array.from({ length: 1000 }, same)) }"]) {
    const running = await server.start(`${source}; export default 1`, { engine, globals });
    await sleep(100);
    running.terminate("enough");
    const { status, settleMs, error } = await running.result;
    // What floods with calls that it does not wait for may have filled its own memory before.
    if (source === "for (;;) same(1)") assert.ok(["memory", "terminated"].includes(status), status);
    else assert.equal(status, "terminated", JSON.stringify(error));
    assert.ok(settleMs === undefined || settleMs < BOUND_MS, `${settleMs} ms`);
  }
}, ["ending"]);

contract("terminate ends a result that never ends being read", async (engine) => {
  const results = [
    "export default () => new Proxy({}, { ownKeys() { for (;;); } })",
    "export default () => ({ get a() { for (;;); } })",
    "export default () => new Array(2 ** 32 - 1).fill.call(new Proxy([], { get: (t, k) => k === 'length' ? 2 ** 53 - 1 : t[k] }), 0)",
    "export default { then() { for (;;); } }",
    "export default async (f) => f({ get a() { for (;;); } })",
    "export default () => { throw { get message() { for (;;); } } }",
    "console.log(new Proxy({}, { ownKeys() { for (;;); } })); export default 1",
  ];
  for (const source of results) {
    const running = await server.start(source, { engine, args: source.includes("async (f)") ? [() => 1] : [] });
    await sleep(60);
    running.terminate("enough");
    const { status, settleMs } = await running.result;
    assert.equal(status, "terminated", source);
    assert.ok(Number(settleMs) < BOUND_MS, `${source}: ${settleMs} ms`);
  }
}, ["ending"]);

contract("a function of the result that never ends does not hold anybody", async (engine) => {
  const running = await server.start("export default () => () => { for (;;); }", { engine });
  const { value } = await running.result;
  const called = assert.rejects(() => value(), /ended/);
  await sleep(60);
  running.release();
  await called;
  assert.equal(await server.value("export default 2", { engine }), 2);
}, ["ending"]);

contract("compiling much takes long, and can be ended too", async (engine) => {
  const source = `export default [${"(a, b) => a ? b : [a, b, { a, b }],\n".repeat(60_000)}]`;
  const running = await server.start(source, { engine });
  await sleep(50);
  running.terminate("enough");
  const { status, settleMs } = await running.result;
  assert.equal(status, "terminated");
  assert.ok(Number(settleMs) < BOUND_MS, `${settleMs} ms`);
});
