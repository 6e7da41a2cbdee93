// What leaves a sandbox is counted before it is sent, by what it is when it is read: written out, whatever the code made of
// the intrinsics and however often it uses the same thing.

import assert from "node:assert/strict";
import { contract, isolateServer } from "./support/isolate.mjs";

const server = isolateServer();
const MEMORY = 64 << 20;

/** Values that are small where they are and large where they are read. */
const LARGE = {
  "an object that is used often": "const o = { a: 'x'.repeat(1e5) }; const large = Array(5000).fill(o);",
  "a text that is used often": "const large = Array(500).fill('x'.repeat(1e5));",
  "ten times ten times ten": "let large = ['x']; for (let k = 0; k < 8; k++) large = Array(10).fill(large);",
  "two in two, where each refers to the next": "let large = {}; for (let k = 0; k < 60; k++) large = { a: large, b: large };",
  "keys that are long": "const o = { ['k'.repeat(1e5)]: 1 }; const large = new Map([[1, Array(2000).fill(o)]]);",
  "an error that is used often": "const e = new Error('x'.repeat(1e5)); const large = new Set([1, [Array(2000).fill(e)]]);",
  "bytes that are used often": "const b = new Uint8Array(1e6); const large = Array(100).fill(b);",
  "views of the same bytes": "const b = new ArrayBuffer(1e6); const large = Array.from({ length: 100 }, () => new DataView(b));",
  "parts without contents": "const large = Array(600_000).fill(null);",
  "many buffers without contents": "const large = Array.from({ length: 120_000 }, () => new ArrayBuffer(0));",
  "a bigint that is used often": "const n = 10n ** 300n; const large = Array(40_000).fill(n);",
  "a regular expression that is used often": "const r = new RegExp('x'.repeat(5e4)); const large = Array(1000).fill(r);",
};

for (const [name, source] of Object.entries(LARGE)) {
  contract(`${name} is refused as what it is when it is read`, async (engine) => {
    const options = { engine, memory: MEMORY, report: true, globals: { f: () => 1 } };
    const result = await server.run(`${source} export default large`, options);
    assert.equal(result.status, "error");
    assert.equal(result.error.name, "SerializationError");
    assert.match(result.error.message, /^result is too large: .*more than \d+ bytes/);
    // In one run, for which it is made once.
    const ways = ["report(large)", "await f(large)", "await f({ a: [1, large] })"];
    const tries = ways.map((way) => `try { ${way}; caught.push("nothing") } catch (e) { caught.push(e.name) }`).join("\n");
    const others = await server.run(`${source} export default async () => { const caught = []; ${tries} console.log(large); console.log("after"); return caught }`, options);
    assert.equal(others.status, "success", JSON.stringify(others.error));
    assert.deepEqual(others.value, ways.map(() => "SerializationError"));
    assert.ok(others.logsCut);
  });
}

contract("what is used often and small crosses, with its shape", async (engine) => {
  const value = await server.value("const o = { a: 1 }; const b = new Uint8Array([1, 2]); export default [Array(1000).fill(o), b, b]", { engine });
  assert.equal(value[0].length, 1000);
  assert.equal(value[0][0], value[0][999]);
  assert.equal(value[1], value[2]);
});

contract("what a function of the sandbox throws is bounded", async (engine) => {
  const sources = ["throw new Error('x'.repeat(5e6))", "throw Object.assign(new Error(), { stack: 'x'.repeat(5e6), name: 'y'.repeat(5e6) })"];
  for (const source of sources) {
    const running = await server.start(`export default () => () => { ${source} }`, { engine, memory: MEMORY });
    const { value } = await running.result;
    const error = await value().then(assert.fail, (/** @type {any} */ thrown) => thrown);
    running.forget();
    assert.ok(error.message.length < 200_000 && error.name.length < 200_000);
  }
});

/** Ways to make a copy of something else than what was asked for. `made` is larger than what it stands for. */
const TRICKS = {
  "the species of a buffer": `
    const big = new ArrayBuffer(4 << 20), made = new Uint8Array(3);
    Object.defineProperty(made.buffer, "constructor", { value: { [Symbol.species]: function () { return big } } });`,
  "the species of all buffers": `
    const big = new ArrayBuffer(4 << 20), made = new Uint8Array(3);
    Object.defineProperty(ArrayBuffer, Symbol.species, { value: function () { return big } });
    ArrayBuffer.prototype.slice = () => big;`,
  "the constructor of a view": `
    const made = new Uint8Array(3);
    made.constructor = { [Symbol.species]: function () { return new Uint8Array(4 << 20) } };
    Object.getPrototypeOf(Uint8Array.prototype).set = () => {};
    Object.getPrototypeOf(Uint8Array.prototype).slice = () => new Uint8Array(4 << 20);`,
  "lengths that lie": `
    const made = new Uint8Array(3);
    for (const [key, value] of Object.entries({ byteLength: 4 << 20, length: 4 << 20, byteOffset: 1, buffer: new ArrayBuffer(4 << 20) })) Object.defineProperty(made, key, { value });
    Object.defineProperty(made.buffer, "byteLength", { value: 4 << 20 });
    Object.defineProperty(Object.getPrototypeOf(Uint8Array.prototype), "length", { get: () => 4 << 20 });`,
  "iterators": `
    const made = new Uint8Array(3);
    made[Symbol.iterator] = Array.prototype[Symbol.iterator] = function* () { for (let k = 0; k < 1 << 20; k++) yield 1 };
    Object.getPrototypeOf(Uint8Array.prototype)[Symbol.iterator] = made[Symbol.iterator];`,
  "a toJSON of everything": `
    const made = new Uint8Array(3);
    Object.defineProperty(Object.prototype, "toJSON", { value: () => "x".repeat(1 << 20), configurable: true });
    for (const kind of [String, Number, Array]) Object.defineProperty(kind.prototype, "toJSON", { value: () => "x".repeat(1 << 20) });`,
  "a class of one's own": `
    class Mine extends Uint8Array { static get [Symbol.species]() { return class extends Uint8Array { constructor() { super(4 << 20) } } } get byteLength() { return 4 << 20 } }
    const made = new Mine(3);`,
};

for (const [name, source] of Object.entries(TRICKS)) {
  contract(`a copy has what there is, and not what ${name} makes of it`, async (engine) => {
    /** @type {any[]} */
    const seen = [];
    const globals = { f: (/** @type {any} */ x) => void seen.push(x) };
    const result = await server.run(`${source} export default async () => { console.log(made); await f(made); return { made } }`, { engine, memory: MEMORY, globals });
    assert.equal(result.status, "success", JSON.stringify(result.error));
    for (const value of [result.value.made, seen[0], result.logs[0]?.args[0]]) assert.deepEqual(value, new Uint8Array(3));
  });
}

contract("buffers that grow, shrink or are gone cross as what they are then", async (engine) => {
  const source = `
    const grows = new ArrayBuffer(2, { maxByteLength: 1 << 20 }), gone = new ArrayBuffer(8);
    const view = new Uint8Array(gone), tail = new Uint8Array(grows);
    if (gone.transfer) gone.transfer();
    if (grows.resize) grows.resize(4);
    export default [tail.length, tail, grows, gone.byteLength, gone, view]`;
  const [length, tail, grows, goneLength, gone, view] = await server.value(source, { engine });
  assert.deepEqual([tail.byteLength, grows.byteLength], [length, length]);
  assert.deepEqual([gone.byteLength, view.byteLength], [goneLength, goneLength]);
});

contract("a proxy that answers differently each time is read once", async (engine) => {
  const source = `
    let n = 0;
    const p = new Proxy([1, 2, 3], { get: (t, k) => (k === "length" ? ++n : k === "0" ? n : t[k]), getPrototypeOf: () => (n++ % 2 ? Array.prototype : Object.prototype) });
    const q = new Proxy({}, { ownKeys: () => ["a", "a" + n++], getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }), get: () => "x".repeat(n++) });
    export default { p, q }`;
  const { p, q } = await server.value(source, { engine });
  assert.ok(Array.isArray(p));
  assert.equal(Object.keys(q).length, 2);
});

contract("a log of what contains itself says so", async (engine) => {
  const source = "const a = { name: 'a' }; a.self = a; let deep = 1; for (let k = 0; k < 300; k++) deep = [deep]; console.log(a); console.log(deep); export default 1";
  const { logs } = await server.run(source, { engine });
  assert.deepEqual(logs[0]?.args, [{ name: "a", self: "[Circular]" }]);
  assert.match(JSON.stringify(logs[1]?.args), /^\[+"\[…\]"\]+$/);
});
