// What recurses too deeply is an error that can be caught, wherever it recurses: in functions of the program, in built-in
// ones that call these, and in built-in ones alone.

import assert from "node:assert/strict";
import { contract, isolateServer } from "./support/isolate.mjs";

const server = isolateServer();

/** `f` calls itself through something built-in. @type {Record<string, string>} */
const CALLS = {
  "a function": "const f = () => f() + 1",
  "a function with many arguments": "const f = (a, b, c, d) => f(...[a, b], c, d) + 1",
  "a constructor": "class A { constructor() { new A() } } const f = () => new A()",
  "a getter": "const o = { get a() { return o.a } }; const f = () => o.a",
  "a super property": "class A { get x() { return new B().x } } class B extends A { get x() { return super.x } } const f = () => new B().x",
  "valueOf in a comparison": "const o = { valueOf() { return o == 1 } }; const f = () => o == 1",
  "toPrimitive": "const o = { [Symbol.toPrimitive]() { return +o } }; const f = () => +o",
  "toString in a template": "const o = { toString() { return `${o}` } }; const f = () => `${o}`",
  "String and parseInt": "const o = { toString() { return String(parseInt(o)) } }; const f = () => String(o)",
  "a proxy's get": "const p = new Proxy({}, { get: () => p.x }); const f = () => p.x",
  "a proxy's ownKeys": "const p = new Proxy({}, { ownKeys: () => Reflect.ownKeys(p) }); const f = () => Object.keys(p)",
  "a proxy's descriptors": "const d = Object.getOwnPropertyDescriptor, p = new Proxy({}, { getOwnPropertyDescriptor: () => d(p, 'a') }); const f = () => d(p, 'a')",
  sort: "const f = () => [1, 2].sort(f)",
  "sort of a typed array": "const f = () => { new Uint8Array(2).sort(f); return 0 }",
  "map and flatMap": "const f = () => [1].map(() => [1].flatMap(f))",
  "forEach of a Map": "const m = new Map([[1, 1]]); const f = () => m.forEach(f)",
  "Array.from": "const f = () => Array.from([1], f)",
  "an iterator": "const o = { [Symbol.iterator]() { return [...o] } }; const f = () => [...o]",
  "a generator": "function* g() { yield* g() } const f = () => [...g()]",
  "a generator's next": "function* g() { g().next() } const f = () => g().next()",
  replace: "const f = () => 'a'.replace(/a/, f)",
  "exec of an expression": "const x = /a/; x.exec = () => x.test('a'); const f = () => x.test('a')",
  "apply and Reflect": "const f = () => Reflect.apply(f.apply, f, [null, []])",
  "Reflect.construct": "function f() { return Reflect.construct(f, []) }",
  instanceof: "const o = { [Symbol.hasInstance]: () => 1 instanceof o }; const f = () => 1 instanceof o",
  toJSON: "const o = { toJSON: () => JSON.stringify(o) }; const f = () => JSON.stringify(o)",
  "Object.assign": "const o = { get a() { return Object.assign({}, o) } }; const f = () => Object.assign({}, o)",
  "a list of errors": "const o = { *[Symbol.iterator]() { new AggregateError(o); yield 1 } }; const f = () => new AggregateError(o)",
  "a species": "class A extends Array { static get [Symbol.species]() { return new A(1).map((x) => x) } } const f = () => new A(1).map((x) => x)",
  "a replacer": "const f = () => JSON.stringify({}, () => ({ a: 1 }))",
  "Map.groupBy": "const f = () => Map.groupBy([1], f)",
  "static blocks": "const f = () => class { static { f() } }",
  "defaults of parameters": "const f = (a = f()) => a",
  "an error's name": "const o = { get name() { return Error.prototype.toString.call(o) } }; const f = () => Error.prototype.toString.call(o)",
};

const nested = (/** @type {string} */ start, /** @type {string} */ wrap) => `let v = ${start}; for (let k = 0; k < 20_000; k++) v = ${wrap};`;

/** @type {Record<string, string>} */
const NESTED = {
  "JSON.parse of lists": "const t = '['.repeat(2e4) + ']'.repeat(2e4); const f = () => JSON.parse(t)",
  "JSON.parse of objects": `const t = '{"a":'.repeat(2e4) + 1 + '}'.repeat(2e4); const f = () => JSON.parse(t)`,
  "JSON.parse with a reviver": "const t = '['.repeat(2e3) + ']'.repeat(2e3); const f = () => JSON.parse(t, (_, v) => v)",
  "JSON.stringify of lists": `${nested("[]", "[v]")} const f = () => JSON.stringify(v)`,
  "JSON.stringify of objects": `${nested("{}", "{ v }")} const f = () => JSON.stringify(v)`,
  "a list as text": `${nested("[]", "[v]")} const f = () => String(v)`,
  toLocaleString: `${nested("[]", "[v]")} const f = () => v.toLocaleString()`,
  flat: `${nested("[]", "[v]")} const f = () => v.flat(Infinity)`,
  "proxies of proxies: has": `${nested("{}", "new Proxy(v, {})")} const f = () => "x" in v`,
  "proxies of proxies: keys": `${nested("{}", "new Proxy(v, {})")} const f = () => Object.keys(v)`,
  "proxies of proxies: prototype": `${nested("{}", "new Proxy(v, {})")} const f = () => Object.getPrototypeOf(v)`,
  "proxies of proxies: definition": `${nested("{}", "new Proxy(v, {})")} const f = () => Object.defineProperty(v, "a", { value: 1 })`,
  "proxies of proxies: deletion": `${nested("{}", "new Proxy(v, {})")} const f = () => delete v.a`,
  "proxies of proxies: extension": `${nested("{}", "new Proxy(v, {})")} const f = () => Object.preventExtensions(v)`,
  "proxies of proxies: construction": `${nested("class {}", "new Proxy(v, {})")} const f = () => new v()`,
  "a regular expression": "const f = () => new RegExp('(?:'.repeat(2e4) + ')'.repeat(2e4))",
};

contract("what recurses too deeply can be caught, and the program goes on", async (engine) => {
  for (const [name, source] of Object.entries({ ...CALLS, ...NESTED })) {
    const caught = `${source}; export default () => { let e; try { f() } catch (error) { e = error } return [e instanceof Error ? e.name : e, [3, 1].sort().length] }`;
    const { status, value, error } = await server.run(caught, { engine, memory: 64 << 20 });
    assert.equal(status, "success", `${name}: ${JSON.stringify(error)}`);
    // V8 can do some of these without recursion.
    const right = engine === "v8" && name in NESTED ? [undefined, "RangeError", "SyntaxError", "TypeError"] : ["RangeError", "SyntaxError"];
    assert.ok(right.includes(value[0]), `${name}: ${value[0]}`);
    assert.equal(value[1], 2);
  }
});

contract("so it is in async functions, in modules, and in what the caller calls", async (engine) => {
  const modules = { "./deep.ts": "export const deep = () => { try { JSON.parse('['.repeat(1e5)); } catch (error) { return error.name } }; export const first = deep();" };
  const source = `import { deep, first } from "./deep.ts";
    const f = async () => { await f() };
    async function* g() { yield* g() }
    const caught = async (act) => { try { await act() } catch (error) { return error.name } };
    export default async () => {
      await null;
      const looped = await caught(async () => { for await (const _ of g()); });
      return [first, deep(), await caught(f), looped, await called(deep), await called(() => caught(f)), (() => { try { return new (class A { x = new A() })() } catch (error) { return error.name } })()];
    }`;
  const called = (/** @type {() => unknown} */ act) => act();
  const names = await server.value(source, { engine, modules, globals: { called } });
  const parsed = engine === "v8" ? "SyntaxError" : "RangeError";
  for (const [at, name] of names.entries()) assert.equal(name, [0, 1, 4].includes(at) ? parsed : "RangeError", String(at));
});

contract("a program may recurse a thousand times", async (engine) => {
  assert.equal(await server.value("const f = (n) => (n === 0 ? 0 : 1 + f(n - 1)); export default f(1000)", { engine }), 1000);
  assert.equal(await server.value("const t = '['.repeat(1500) + ']'.repeat(1500); export default JSON.stringify(JSON.parse(t)) === t", { engine }), true);
});
