// Code that wants out, or wants more than it is given. None of it may find anything of the isolate, of the harness or of
// the platform, forge what it sends, or take others down with it.

import assert from "node:assert/strict";
import { sleep } from "../worker/support/poll.mjs";
import { contract, isolateServer } from "./support/isolate.mjs";

const server = isolateServer();

contract("no route leads to eval", async (engine) => {
  const source = `
    const AsyncFunction = (async () => {}).constructor, Generator = (function* () {}).constructor, AsyncGenerator = (async function* () {}).constructor;
    const tried = async (f) => { try { const v = await f(); return typeof v === "function" ? v() : typeof v === "object" ? "an object" : v } catch (e) { return e.name } };
    class Sub extends Function {}
    export default async () => [
      await tried(() => eval("1")),
      await tried(() => (0, eval)("1")),
      await tried(() => globalThis.eval.call(null, "1")),
      await tried(() => new Function("return 1")),
      await tried(() => Function("return 1")),
      await tried(() => (() => {}).constructor("return 1")),
      await tried(() => AsyncFunction("return 1")),
      await tried(() => Generator("yield 1")),
      await tried(() => AsyncGenerator("yield 1")),
      await tried(() => Reflect.construct(Function, ["return 1"])),
      await tried(() => Reflect.construct(Object, ["return 1"], Function)),
      await tried(() => new Sub("return 1")),
      await tried(() => Object.getPrototypeOf(AsyncFunction)("return 1")),
      await tried(() => Function.prototype.constructor("return 1")),
      await tried(() => [].map.constructor("return 1")),
      await tried(() => host.constructor("return 1")),
      await tried(() => console.log.constructor("return 1")),
      await tried(() => Function.bind(null, "return 1")()),
      await tried(() => Function.apply(null, ["return 1"])),
      await tried(() => Promise.resolve("return 1").then(Function)),
    ]`;
  const value = await server.value(source, { engine, globals: { host: () => 1 } });
  value.forEach((/** @type {unknown} */ got, /** @type {number} */ at) => {
    assert.ok(got === "EvalError" || got === "TypeError" || got === "an object", `route ${at}: ${got}`);
  });
});

contract("constructors cannot be put back", async (engine) => {
  const source = `const tried = (f) => { try { f(); return "done" } catch (e) { return e.name } };
    export default () => [
      tried(() => { Function.prototype.constructor = Object }),
      tried(() => Object.defineProperty(Function.prototype, "constructor", { value: 1 })),
      tried(() => { delete Function.prototype.constructor; }),
      (function f() {}) instanceof Function, Object.getPrototypeOf(Function) === Function.prototype, Function.prototype.constructor === Function,
      Object.getPrototypeOf((async () => {}).constructor) === Function, Function.name, Function.length >= 0,
    ]`;
  assert.deepEqual(await server.value(source, { engine }), ["TypeError", "TypeError", "TypeError", true, true, true, true, "Function", true]);
});

contract("what the harness gives shows nothing of itself", async (engine) => {
  const source = `
    const texts = [host, console.log, report, eval, Function, host.bind(null)].map((f) => Function.prototype.toString.call(f));
    const own = [host, console, console.log, report].flatMap((o) => Reflect.ownKeys(o).map(String));
    const poison = []; for (const key of ["caller", "callee", "arguments"]) try { poison.push(typeof host[key]) } catch (e) { poison.push(e.name) }
    export default () => [texts, own, poison]`;
  const [texts, own, poison] = await server.value(source, { engine, globals: { host: () => 1 }, report: true });
  for (const text of texts) assert.match(text, /\{\s*\[native code\]\s*\}$/);
  for (const key of own) assert.ok(["length", "name", "prototype", "log", "info", "warn", "error", "debug"].includes(key), key);
  for (const kind of poison) assert.ok(["undefined", "TypeError", "object"].includes(kind), kind);
});

contract("stacks and their hooks give nothing of the harness away", async (engine) => {
  const source = `
    const seen = [];
    Error.prepareStackTrace = (error, sites) => { seen.push(...sites); return sites };
    Error.stackTraceLimit = 100;
    const holder = {}; Error.captureStackTrace?.(holder);
    const made = new Error("x").stack;
    export default async () => {
      let caught; try { await host(Symbol()) } catch (e) { caught = e }
      const functions = seen.map((site) => [site.getFunction?.(), site.getThis?.()]).flat().filter((f) => f !== undefined);
      try { delete Error.prepareStackTrace } catch {}
      const callback = await new Promise((resolve) => { host(() => resolve(new Error("inner").stack)) });
      return [functions.length, typeof made, String(callback), String(caught?.stack)];
    }`;
  const [functions, kind, callback, caught] = await server.value(source, { engine, globals: { host: async (/** @type {any} */ f) => f() } });
  assert.equal(functions, 0);
  assert.equal(kind, "string");
  for (const stack of [callback, caught]) assert.doesNotMatch(stack, /file:|\/isolate\/|index\.js|workerd/);
  // What the harness throws, and what it passes on, has no frames of it.
  const own = `const stacks = []; export default async () => {
      for (const act of [() => host(Symbol()), () => host(() => {}, "fail")]) try { await act() } catch (error) { stacks.push(error.stack) }
      return stacks;
    }`;
  const host = async (/** @type {any} */ _, /** @type {any} */ fails) => Promise.reject(new Error(fails));
  const stacks = await server.value(own, { engine, globals: { host }, filename: "main.ts" });
  assert.equal(stacks.length, 2);
  for (const stack of stacks) {
    assert.doesNotMatch(stack, /sandbox:/);
    assert.match(stack, engine === "v8" ? /m0:2:/ : /main\.ts:2:/);
  }
});

contract("poisoned prototypes do not reach the harness", async (engine) => {
  const source = `
    const { defineProperty, getOwnPropertyDescriptor } = Object, { ownKeys } = Reflect;
    const trap = (name) => function () { throw new Error("reached " + String(name)) };
    const own = [], late = [];
    for (const proto of [Array, Object, String, Number, Map, Set, Date, RegExp, Function, Error, Uint8Array, ArrayBuffer, BigInt, Symbol].map((c) => c.prototype)) {
      for (const key of ownKeys(proto)) if (key !== "constructor" && getOwnPropertyDescriptor(proto, key).configurable) own.push({ proto, key });
      for (const key of ["0", "1", "toJSON", "get", "set", "value", "writable", "raw", "size", "text", "kind"]) late.push({ proto, key });
    }
    const spaces = [];
    for (const space of [JSON, Reflect, Object, Math, Number, String, Array, Promise]) {
      for (const key of ownKeys(space)) if (!["prototype", "name", "length", Symbol.species].includes(key)) spaces.push({ space, key });
    }
    const names = ["Map", "Set", "Date", "Error", "Array", "Symbol", "JSON", "Reflect", "String", "Number", "BigInt", "Uint8Array", "ArrayBuffer"];
    for (let n = 0; n < names.length; n++) delete globalThis[names[n]];
    for (let n = 0; n < spaces.length; n++) { const { space, key } = spaces[n]; try { space[key] = trap(key) } catch {} }
    let n = 0;
    while (n < late.length + own.length) {
      const { proto, key } = n < late.length ? late[n] : own[n - late.length];
      n++;
      try { defineProperty(proto, key, { __proto__: null, get: trap(key), set: trap(key), configurable: true }) } catch {}
    }
    export default async (arg) => { console.log("still", { here: [1n] }); report(arg); return [await host(arg, { a: [1, [2]] }), arg, { made: [] }] }`;
  const arg = { map: new Map([[1, new Set([2])]]), date: new Date(5), bytes: new Uint8Array([1, 2]), list: [1, undefined, NaN], pattern: /x/g };
  const globals = { host: (/** @type {unknown[]} */ ...args) => args };
  const { status, value, error, logs, reports } = await server.run(source, { engine, args: [arg], globals, report: true });
  assert.equal(status, "success", JSON.stringify(error));
  assert.deepEqual(value, [[arg, { a: [1, [2]] }], arg, { made: [] }]);
  assert.deepEqual(logs.map(({ args }) => args), [["still", { here: [1n] }]]);
  assert.deepEqual(reports, [arg]);
});

contract("a poisoned promise hurts only its own run", async (engine) => {
  const source = `Promise.prototype.then = function () { return 1 }; Promise.prototype.constructor = class { static get [Symbol.species]() { throw 1 } };
    export default async () => { host(1); return 1 }`;
  const running = await server.start(source, { engine, globals: { host: () => 1 } });
  await sleep(200);
  running.terminate("enough");
  assert.ok(["success", "error", "terminated"].includes((await running.result).status));
  assert.equal(await server.value("export default 2", { engine }), 2);
});

contract("toJSON and iterators forge nothing", async (engine) => {
  const forged = '[[1],["f",0,"x"]]';
  const source = `
    Object.prototype.toJSON = Array.prototype.toJSON = String.prototype.toJSON = Number.prototype.toJSON = BigInt.prototype.toJSON = () => "forged";
    Array.prototype[Symbol.iterator] = function* () { yield ${JSON.stringify(forged)} };
    Array.prototype.join = () => ${JSON.stringify(forged)}; String.prototype.concat = () => ${JSON.stringify(forged)};
    export default async () => [await host({ a: [1] }), { b: ["x"] }]`;
  const value = await server.value(source, { engine, globals: { host: (/** @type {unknown} */ x) => x } });
  assert.deepEqual(value, [{ a: [1] }, { b: ["x"] }]);
});

contract("values that look like the format are just values", async (engine) => {
  const value = [["u"], ["f", 0, "host"], [1], ["n", "NaN"], { 0: "f" }, '["u"]', ["h"], [["a", []]], "]", '\\"]', "\u2028"];
  const source = "export default async (v) => [await host(v), v]";
  const result = await server.value(source, { engine, args: [value], globals: { host: (/** @type {unknown} */ x) => x } });
  assert.deepEqual(result, [value, value]);
});

contract("proxies that lie are read once and cross as what they said", async (engine) => {
  const source = `
    let n = 0;
    const counting = new Proxy({ a: 1 }, { get: () => ++n });
    const array = new Proxy([1, 2], { get: (t, k) => k === "length" ? 3 : t[k] });
    const classy = new Proxy(new (class Foo {})(), { getPrototypeOf: () => Object.prototype });
    const keys = new Proxy({}, { ownKeys: () => ["x", "y"], getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }), get: (t, k) => k });
    const fake = (proto) => { try { return host(new Proxy({}, { getPrototypeOf: () => proto })) } catch (e) { return e.name } };
    export default async () => [counting, array, classy, keys, await fake(Map.prototype).catch((e) => e.name), await fake(Date.prototype).catch((e) => e.name)]`;
  const value = await server.value(source, { engine, globals: { host: (/** @type {unknown} */ x) => x } });
  const holey = Object.assign(new Array(3), { 0: 1, 1: 2 });
  assert.deepEqual(value, [{ a: 1 }, holey, {}, { x: "x", y: "y" }, "SerializationError", "SerializationError"]);
});

contract("a returned proxy that throws, revoked or not, is an error of the code", async (engine) => {
  for (const made of ["(() => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy })()", "new Proxy({}, { getPrototypeOf() { throw new Error('trap') } })", "new Proxy([], { get() { throw new Error('trap') } })"]) {
    const { status } = await server.run(`export default () => ({ deep: ${made} })`, { engine });
    assert.equal(status, "error", made);
  }
});

contract("internal names lead nowhere", async (engine) => {
  const source = `const names = ["sandbox", "sandbox-values", "entry", "m0", "m1", "h0", "imports", "globals", "/m0", "sandbox:harness", "sandbox:entry", "globals:", "import:host", "import:", "sandbox:", "./sandbox:harness", "./../sandbox:harness", "<runCode>", "./<runCode>", "__proto__", "constructor", "toString"];
    const found = [];
    export default async () => { for (const name of names) await import(name).then((m) => found.push([name, Object.keys(m)]), () => {}); return [found, "sandbox:harness" in globalThis, typeof send, typeof harness] }`;
  const [found, ...rest] = await server.value(source, { engine, imports: { host: { default: 1 } } });
  // A module may import itself.
  assert.deepEqual(found.filter((/** @type {string[]} */ [name]) => name !== "./<runCode>"), []);
  assert.deepEqual(rest, [false, "undefined", "undefined"]);
});

contract("the platform's URL parser takes and gives texts only", async (engine) => {
  const source = `import * as all from "bobbin/url"; const { urlParts } = all;
    const asked = ["{", "5", "null", "[]", "{}", '["x"]', '["http://a",{"toString":1}]', '["http://a",null,"__proto__",{"href":"b"}]', '["http://a",null,"searchParams",1]', '["http://a",null,"href","x"]', JSON.stringify(["http://" + "a".repeat(70000)])];
    const refused = []; for (const one of [undefined, null, Symbol()]) try { urlParts(one) } catch (error) { refused.push(error instanceof TypeError) }
    const poison = Object.getOwnPropertyDescriptor(Object.prototype, "toJSON");
    Object.prototype.toJSON = Array.prototype.toJSON = JSON.stringify = JSON.parse = () => "poison";
    Object.defineProperty(Object.prototype, "href", { set() { throw new Error("reached") }, configurable: true });
    const whole = urlParts('["HTTP://B/é"]'), answers = asked.map((one) => urlParts(one));
    for (const proto of [Object.prototype, Array.prototype]) { delete proto.toJSON; delete proto.href; }
    export default () => [whole, answers, refused, Object.keys(all), String(urlParts), urlParts.constructor === (() => {}).constructor, [typeof URL, Object.getOwnPropertyNames(urlParts).join()]]`;
  const [whole, answers, refused, names, text, own, [kind, keys]] = await server.value(source, { engine });
  assert.equal(JSON.parse(whole).href, "http://b/%C3%A9");
  assert.deepEqual(answers.map((/** @type {string} */ one) => JSON.parse(one)?.href ?? null), [null, null, null, null, null, null, null, "http://a/", "http://a/", null, null]);
  assert.deepEqual([refused, names, own, kind, keys], [[true, true, true], ["urlParts"], true, "undefined", "length,name"]);
  assert.match(text, /\[native code\]/);
});

contract("names of globals, imports and files cannot break out of what they are written into", async (engine) => {
  for (const options of [
    { imports: { 'a"; globalThis.out = 1; "': { 'x"; globalThis.out = 2; "': 1 } } },
    { imports: { "a\\": { "`${globalThis.out = 3}`": 1 } } },
    { filename: 'main"; globalThis.out = 4; "' },
    { filename: "a\nglobalThis.out = 5//" },
    { filename: "*/globalThis.out = 6/*" },
    { modules: { './x"; globalThis.out = 7; ".ts': "export default 1" } },
    { fn: 'default"); globalThis.out = 8; ("' },
  ]) {
    const specifier = Object.keys(options.imports ?? options.modules ?? {})[0];
    const source = `${specifier ? `import * as ns from ${JSON.stringify(specifier)}; ` : ""}export default () => globalThis.out`;
    const { status, value } = await server.run(source, { engine, .../** @type {object} */ (options) });
    assert.equal(value, undefined, JSON.stringify(options));
    assert.ok(["success", "link_error"].includes(status), `${status} ${JSON.stringify(options)}`);
  }
});

contract("an own __proto__ of a value pollutes nothing", async (engine) => {
  const arg = JSON.parse('{"__proto__": {"polluted": 1}, "list": [{"__proto__": {"polluted": 2}}]}');
  const source = "export default (v) => [{}.polluted, v.polluted, Object.keys(v), Object.getPrototypeOf(v) === Object.prototype]";
  assert.deepEqual(await server.value(source, { engine, args: [arg] }), [undefined, undefined, ["__proto__", "list"], true]);
});

contract("deep recursion is an error of the code, and the isolate goes on", async (engine) => {
  for (const source of [
    "const f = () => f() + 1; f()",
    "const f = (...a) => f(...a, 1); f()",
    "class A { get x() { return this.x } } new A().x",
    "const p = new Proxy({}, {}); let q = p; for (let i = 0; i < 1e5; i++) q = new Proxy(q, {}); q.x",
    "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; JSON.stringify(a)",
    "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; String(a)",
    "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; a.flat(Infinity)",
    "JSON.parse('['.repeat(1e6) + ']'.repeat(1e6))",
    "new RegExp('('.repeat(1e5) + ')'.repeat(1e5))",
    "new RegExp('(?:'.repeat(1e5) + ')'.repeat(1e5) + '*')",
    "let f = () => 1; for (let i = 0; i < 1e5; i++) f = f.bind(null); f()",
    "({ toString() { return String(this) } }) + ''",
    "[1].sort.call(Array.from({ length: 10 }), function c() { return c() })",
  ]) {
    const { status } = await server.run(`${source}; export default 1`, { engine, memory: 64 << 20 });
    assert.ok(["error", "success", "memory"].includes(status), `${source}: ${status}`);
    assert.equal(await server.value("export default 2", { engine }), 2, source);
  }
});

contract("a recursion that overflows can be caught", async (engine) => {
  const source = "let n = 0; const f = () => { n++; f() }; export default () => { try { f() } catch (e) { return [e.name, n > 500] } }";
  assert.deepEqual(await server.value(source, { engine }), ["RangeError", true]);
});

contract("values nested deeply cross, in both directions", async (engine) => {
  const source = "export default async (f) => { let a = []; for (let i = 0; i < 5000; i++) a = [a]; await f(a); return a }";
  /** @type {any} */
  let seen;
  let depth = 0;
  for (let at = await server.value(source, { engine, args: [(/** @type {any} */ x) => void (seen = x)] }); at.length > 0; at = at[0]) depth++;
  assert.equal(depth, 5000);
  for (depth = 0; seen.length > 0; seen = seen[0]) depth++;
  assert.equal(depth, 5000);
});

contract("code nested deeply is refused or runs, and the isolate goes on", async (engine) => {
  for (const source of [
    `export default ${"(".repeat(50_000)}1${")".repeat(50_000)}`,
    `export default ${"[".repeat(50_000)}${"]".repeat(50_000)}`,
    `export default () => ${"{".repeat(50_000)}${"}".repeat(50_000)}`,
    `export default ${"!".repeat(100_000)}1`,
    `export default ${"a => ".repeat(20_000)}1`,
    `export default 1${" + 1".repeat(50_000)}`,
    `type T = ${"A<".repeat(20_000)}1${">".repeat(20_000)}; export default 1`,
    `export default \`${"${`".repeat(10_000)}${"`}".repeat(10_000)}\``,
  ]) {
    const { status } = await server.run(source, { engine });
    assert.ok(["success", "link_error", "error"].includes(status), `${source.slice(0, 40)}: ${status}`);
    assert.equal(await server.value("export default 2", { engine }), 2);
  }
});

contract("floods of calls, reports, logs and functions fill only the run's own memory", async (engine) => {
  for (const source of [
    "for (;;) host('x'.repeat(1e5))",
    "for (;;) host(new Uint8Array(1e6))",
    "for (;;) report('x'.repeat(1e5))",
    "for (;;) host(() => {})",
    "for (;;) host(() => {}, new Array(1e4).fill('x'.repeat(100)))",
    "const all = []; for (;;) all.push(new Promise(() => {}))",
    "const a = []; for (;;) a.push(a.length)",
    "const m = new Map(); for (let i = 0; ; i++) m.set(i, {})",
    "const a = [new Uint8Array(1e6)]; for (;;) a.push(a[0].slice())",
    "const f = () => Promise.resolve().then(() => { f(); f() }); f(); await new Promise(() => {})",
    "let o = {}; for (;;) o = { o, x: 'y'.repeat(100) + Math.random() }",
    "const r = []; for (let i = 0; ; i++) r.push(new RegExp('a'.repeat(1e4) + i))",
    "new ArrayBuffer(2 ** 30)",
    "new Array(2 ** 27).fill(0)",
    "Symbol('x'.repeat(1e6)); const s = []; for (let i = 0; ; i++) s.push(Symbol.for('x'.repeat(1e4) + i))",
  ]) {
    const running = await server.start(`${source}; export default 1`, { engine, globals: { host: () => new Promise(() => {}) }, report: true, memory: 8 << 20 });
    const late = setTimeout(() => running.terminate("late"), 60_000);
    const { status } = await running.result;
    clearTimeout(late);
    running.release();
    assert.equal(status, "memory", source);
    assert.equal(await server.value("export default 2", { engine }), 2, source);
  }
}, ["memory"]);

contract("text and numbers beyond what the engine can hold is an error or too much memory", async (engine) => {
  for (const source of ["let s = 'x'; for (;;) s += s", "'x'.repeat(2 ** 29)", "'x'.padEnd(2 ** 31)", "let b = 2n; for (;;) b *= b", "'ab'.repeat(1e6).replaceAll('a', 'x'.repeat(1e4))"]) {
    const { status } = await server.run(`${source}; export default 1`, { engine, memory: 8 << 20 });
    assert.ok(["error", "memory"].includes(status), `${source}: ${status}`);
  }
}, ["memory"]);

contract("logs are bounded, by entries and by bytes", async (engine) => {
  const many = await server.run("for (let i = 0; i < 5000; i++) console.log(i); export default 1", { engine });
  assert.deepEqual([many.status, many.logs.length, many.logsCut, many.logs[999]?.args], ["success", 1000, true, [999]]);
  const large = await server.run("console.log('a'); for (let i = 0; i < 100; i++) console.log('x'.repeat(1e5)); export default 1", { engine });
  assert.deepEqual([large.status, large.logsCut], ["success", true]);
  assert.ok(JSON.stringify(large.raw.logs).length < 2 << 20);
  const one = await server.run("console.log(new Uint8Array(4e6)); export default 1", { engine });
  assert.deepEqual([one.status, one.logsCut], ["success", true]);
});

contract("the logs of code that was ended are bounded", async (engine) => {
  const endless = await server.start("for (;;) console.log('x')", { engine });
  // Long enough for a thousand of them on a machine that is busy.
  await sleep(1000);
  endless.terminate();
  assert.equal((await endless.result).logs.length, 1000);
}, ["ending"]);

contract("errors are bounded", async (engine) => {
  const { status, error } = await server.run("throw Object.assign(new Error('m'.repeat(3e6)), { name: 'n'.repeat(3e6), stack: 's'.repeat(1e6) }); export default 1", { engine });
  assert.equal(status, "error");
  assert.ok(JSON.stringify(error).length < 500_000);
});

contract("more calls than may be under way all get their answer", async (engine) => {
  let most = 0;
  let now = 0;
  const host = async (/** @type {number} */ x) => {
    most = Math.max(most, ++now);
    await sleep(300);
    now--;
    return x;
  };
  const source = "export default async () => { const all = await Promise.all(Array.from({ length: 800 }, (_, i) => host(i))); return all.every((x, i) => x === i) && all.length }";
  assert.equal(await server.value(source, { engine, globals: { host } }), 800);
  assert.ok(most > 100 && most <= 256, `${most} at once`);
});

contract("a function of the caller that throws while others wait leaves them alone", async (engine) => {
  const host = async (/** @type {number} */ x) => {
    if (x % 2 === 0) throw new Error(`even ${x}`);
    return x;
  };
  const source = "export default async () => { const all = await Promise.allSettled(Array.from({ length: 20 }, (_, i) => host(i))); return all.map((r) => r.status === 'fulfilled' ? r.value : r.reason.message) }";
  const expected = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? `even ${i}` : i));
  assert.deepEqual(await server.value(source, { engine, globals: { host } }), expected);
});

contract("a call of a function that was never given is refused", async (engine) => {
  const running = await server.start("export default () => ({ f: () => 1 })", { engine });
  const { value } = await running.result;
  assert.equal(await value.f(), 1);
  const stranger = /** @type {any} */ (running.imported(99, "stranger"));
  await assert.rejects(() => stranger(), /no such function/);
  running.release();
});
