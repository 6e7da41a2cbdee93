// Values that cross, in both directions (§13.3): copies of what can be copied, proxies of functions, refusal of the rest.

import assert from "node:assert/strict";
import { contract, isolateServer } from "./support/isolate.mjs";

const server = isolateServer();

const shared = { x: 1 };
/** @type {Record<string, unknown>} */
const cycle = { name: "cycle" };
cycle.self = cycle;
const sparse = [1, , 3];

/** What comes back as it went. @type {Record<string, unknown>} */
const SAME = {
  "strings": ["", "a", "é😀", "\0\u2028\u2029\"\\", "\ud800 alone"],
  "numbers": [0, -0, 1.5, -1e308, 5e-324, NaN, Infinity, -Infinity, 2 ** 53],
  "other primitives": [true, false, null, undefined],
  "bigints": [0n, -1n, 2n ** 200n],
  "arrays": [[], [[1], [[2]]], sparse],
  "plain objects": { a: 1, "": 2, "with space": 3, nested: { deep: { deeper: [] } }, undef: undefined },
  "an own __proto__": JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}'),
  "maps": new Map(/** @type {[unknown, unknown][]} */ ([["a", 1], [{ key: 1 }, new Map([[NaN, null]])], [undefined, 2n]])),
  "sets": new Set([1, "1", undefined, [2]]),
  "dates": [new Date(0), new Date(1e12), new Date(NaN)],
  "regular expressions": [/a+/gi, /(?<year>\d{4})\/x/su],
  "array buffers": new Uint8Array([1, 2, 3]).buffer,
  "typed arrays": [
    ...[new Uint8Array([1, 255]), new Int8Array([-1]), new Uint8ClampedArray([9]), new Int16Array([-300]), new Uint16Array([65535])],
    ...[new Int32Array([-70000]), new Uint32Array([4e9]), new Float32Array([1.5]), new Float64Array([Math.PI, NaN])],
    ...[new BigInt64Array([-1n]), new BigUint64Array([2n ** 64n - 1n])],
  ],
  "shared references": [shared, shared, { again: shared }],
  "cycles": cycle,
};

for (const [name, value] of Object.entries(SAME)) {
  contract(`${name} cross both ways`, async (engine) => {
    /** @type {unknown} */
    let seen;
    const globals = { see: (/** @type {unknown} */ given) => ((seen = given), given) };
    const back = await server.value("export default async (value) => see(value)", { engine, args: [value], globals });
    assert.deepEqual(back, value);
    assert.deepEqual(seen, value);
  });
}

contract("shared references and cycles stay what they are", async (engine) => {
  const source = "export default (a) => [a[0] === a[1], a[2].again === a[0], (() => { const o = {}; o.o = o; return o })()]";
  const [same, deep, made] = await server.value(source, { engine, args: [SAME["shared references"]] });
  assert.deepEqual([same, deep, made.o === made], [true, true, true]);
});

contract("values have the types of the realm that they arrive in", async (engine) => {
  const source = `export default (v) => [v instanceof Object, v.list instanceof Array, v.map instanceof Map, v.date instanceof Date, v.bytes instanceof Uint8Array,
    v.error instanceof TypeError, Object.getPrototypeOf(v) === Object.prototype, v.pattern.test("xab")]`;
  const value = { list: [], map: new Map(), date: new Date(), bytes: new Uint8Array(1), error: new TypeError("t"), pattern: /ab/ };
  assert.deepEqual(await server.value(source, { engine, args: [value] }), Array.from({ length: 8 }, () => true));
});

contract("a copy is a copy: changes of one side are not seen by the other", async (engine) => {
  const mine = { list: [1], bytes: new Uint8Array([1]) };
  const globals = { get: () => mine };
  const source = "export default async () => { const a = await get(); a.list.push(2); a.bytes[0] = 9; const b = await get(); return [a, b] }";
  assert.deepEqual(await server.value(source, { engine, globals }), [{ list: [1, 2], bytes: new Uint8Array([9]) }, { list: [1], bytes: new Uint8Array([1]) }]);
  assert.deepEqual(mine, { list: [1], bytes: new Uint8Array([1]) });
});

contract("errors keep name and message, and no stack of the other side", async (engine) => {
  const fail = () => {
    throw Object.assign(new RangeError("out of range"), { code: 5 });
  };
  const source = `export default async () => { try { await fail() } catch (e) { return [e instanceof RangeError, e.name, e.message, String(e.stack).includes("file:"), Object.keys(e)] } }`;
  assert.deepEqual(await server.value(source, { engine, globals: { fail } }), [true, "RangeError", "out of range", false, []]);
});

contract("an error of a called function points at the call", async (engine) => {
  const fail = async () => {
    throw new Error("refused");
  };
  const { status, error } = await server.run("export default async () => {\n  await null;\n  return await fail();\n}", { engine, globals: { fail } });
  assert.deepEqual([status, error.message, error.line], ["error", "refused", 3]);
});

contract("anything that a function throws is caught as it was", async (engine) => {
  const globals = {
    fail: (/** @type {unknown} */ what) => {
      throw what;
    },
  };
  const source = "export default async () => { const got = []; for (const x of [1, 'text', undefined, null, { a: [1n] }]) try { await fail(x) } catch (e) { got.push(e) } return got }";
  assert.deepEqual(await server.value(source, { engine, globals }), [1, "text", undefined, null, { a: [1n] }]);
});

for (const [name, code] of Object.entries({
  "a class instance": "new (class Foo {})()",
  "a symbol": "Symbol('s')",
  "a WeakMap": "new WeakMap()",
  "a WeakRef": "new WeakRef({})",
  "a promise in an object": "Promise.resolve(1)",
  "a generator": "(function* () {})()",
  "a boxed number": "new Number(1)",
})) {
  contract(`${name} is refused with its path`, async (engine) => {
    const result = await server.run(`export default () => ({ list: [1, { user: ${code} }] })`, { engine });
    assert.deepEqual([result.status, result.error.name], ["error", "SerializationError"]);
    assert.match(result.error.message, /result\.list\[1\]\.user/);
    const call = `export default async (f) => { try { await f(1, { "a b": ${code} }) } catch (e) { return [e instanceof TypeError, e.name, e.message] } }`;
    const [type, errorName, message] = await server.value(call, { engine, args: [() => 1] });
    assert.deepEqual([type, errorName], [true, "SerializationError"]);
    assert.match(message, /args\[1\]\["a b"\]/);
  });
}

contract("getters are read once, and what they throw is the code's own error", async (engine) => {
  const source = "let n = 0; export default () => ({ get a() { return ++n } })";
  assert.deepEqual(await server.value(source, { engine }), { a: 1 });
  const { status, error } = await server.run("export default () => ({ get a() { throw new RangeError('mine') } })", { engine });
  assert.deepEqual([status, error.name, error.message], ["error", "RangeError", "mine"]);
});

contract("functions of the caller are asynchronous proxies with a name", async (engine) => {
  const globals = { add: (/** @type {number} */ a, /** @type {number} */ b) => a + b };
  const source = `const made = add(1, 2); export default async () => [made instanceof Promise, await made, add.name, typeof add, Object.isFrozen(add),
    (() => { try { new add() } catch (e) { return e.name } })(), await Promise.all([add(1, 1), add(2, 2)])]`;
  assert.deepEqual(await server.value(source, { engine, globals }), [true, 3, "add", "function", true, "TypeError", [2, 4]]);
});

contract("functions anywhere in the values, and in what functions return", async (engine) => {
  const make = (/** @type {number} */ by) => ({ times: (/** @type {number} */ x) => x * by, deeper: [() => make(by + 1)] });
  const source = "export default async (v) => { const three = await v.list[0](3); const four = await three.deeper[0](); return [await three.times(5), await four.times(5), await dep(1)] }";
  const value = await server.value(`import dep from "dep"; ${source}`, { engine, args: [{ list: [make] }], imports: { dep: { default: (/** @type {number} */ x) => -x } } });
  assert.deepEqual(value, [15, 20, -1]);
});

contract("functions of the sandbox can be called while it runs", async (engine) => {
  const each = async (/** @type {number[]} */ list, /** @type {(x: number) => Promise<number>} */ f) => {
    const results = [];
    for (const item of list) results.push(await f(item));
    return results;
  };
  const source = "let sum = 0; export default async () => { const r = await each([1, 2, 3], async (x) => { await null; sum += x; return sum }); return [r, sum] }";
  assert.deepEqual(await server.value(source, { engine, globals: { each } }), [[1, 3, 6], 6]);
});

contract("functions of the result live until the caller is done with them", async (engine) => {
  const source = "let n = 0; export default () => ({ add: (k) => (n += k), fail: () => { throw new RangeError('inner') }, make: () => () => n })";
  const running = await server.start(source, { engine });
  const { value, status } = await running.result;
  assert.equal(status, "success");
  assert.deepEqual([await value.add(2), await value.add(3), await (await value.make())()], [2, 5, 5]);
  await assert.rejects(() => value.fail(), { name: "RangeError", message: "inner" });
  running.release();
  await assert.rejects(() => value.add(1), /ended/);
});

contract("a function that comes back is a proxy of a proxy", async (engine) => {
  const source = "const own = () => 'own'; export default async () => { const back = await same(own); return [back === own, await back(), await (await same(same))(5)] }";
  assert.deepEqual(await server.value(source, { engine, globals: { same: (/** @type {unknown} */ x) => x } }), [false, "own", 5]);
});

contract("named imports and the default are frozen copies", async (engine) => {
  const config = { list: [1], map: new Map([["k", 1]]) };
  const source = `import config, { add, "strange name" as strange } from "host"; import * as all from "host";
    const tried = (f) => { try { f(); return "changed" } catch (e) { return e.name } };
    export default async () => [await add(1, 2), strange, tried(() => { config.list.push(2) }), tried(() => { config.other = 1 }), tried(() => { all.add = 1 }), Object.keys(all).sort(), config]`;
  const imports = { host: { default: config, add: (/** @type {number} */ a, /** @type {number} */ b) => a + b, "strange name": 7 } };
  const value = await server.value(source, { engine, imports });
  assert.deepEqual(value, [3, 7, "TypeError", "TypeError", "TypeError", ["add", "default", "strange name"], config]);
});

contract("a value that is too large to cross is refused, and the run goes on", async (engine) => {
  const source = "export default async (f) => { try { await f(new Uint8Array(26e6)) } catch (e) { return [e.name, e.message] } }";
  const [name, message] = await server.value(source, { engine, args: [() => 1], memory: 64 << 20 });
  assert.equal(name, "SerializationError");
  assert.match(message, /too large/);
});

contract("many values cross", async (engine) => {
  const source = "export default () => Array.from({ length: 20_000 }, (_, i) => ({ i }))";
  const value = await server.value(source, { engine });
  assert.equal(value.length, 20_000);
  assert.deepEqual(value[19_999], { i: 19_999 });
});

contract("values in a form that is not known are refused", async (engine) => {
  for (const text of [
    '[[9],["o",[]]]',
    '[[1]]',
    '[[1],["o",["a"]]]',
    '[[1],["o",[1,2]]]',
    '[[1],["b","Function",0]]',
    '[[1],["b","Uint8Array",3]]',
    '[[1],["zzz",1]]',
    '[[1],["f","x","n"]]',
    '[["q"]]',
    '{"length":1}',
    "[",
  ]) {
    const { status } = await server.run("export default 1", { engine, values: { text, bytes: [] } });
    assert.equal(status, "error", text);
  }
});
