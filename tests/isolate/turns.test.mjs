// The meter holds on every way out of a machine and back in: a loop after it is ended, fuel goes on being counted, and
// nobody waits. The ways are those that the machine imports and those by which it is entered, all of them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { builtFolder } from "../../scripts/compile.mjs";
import { checkout } from "../worker/support/server.mjs";
import { sleep } from "../worker/support/poll.mjs";
import { engines, isolateServer } from "./support/isolate.mjs";

const server = isolateServer();

/** How long others may wait for a run, ms: far more than a slice, far less than what was lost without one. */
const BOUND_MS = 700;

const modules = { "./lib.js": "export const one = 1; export default one", "./bad.js": "throw new Error('x'.repeat(1000))" };
const globals = { same: (/** @type {unknown} */ x) => x };

/**
 * What the machine imports, and code that calls it: at most once in a round, so that short calls are among them.
 *
 * @type {Record<string, string[]>}
 */
const WAYS_OUT = {
  "env.host_call": [
    "console.log('x')",
    "console.log('x'.repeat(100_000))",
    "console.log('x'.repeat(500_000))",
    "console.log(new Uint8Array(300_000))",
    "console.log({ get a() { return 'é'.repeat(50_000) } }, new Proxy([1, 2], {}))",
    "console.log(Object.defineProperty(() => {}, 'name', { get: () => 'n'.repeat(10_000) }))",
    "report('x'.repeat(10_000))",
    "same('x')",
    "same('x'.repeat(200_000))",
    "same([new Uint8Array(200_000), () => 1])",
    "await same(1)",
    "await same({ a: ['x'.repeat(100_000)] })",
    "try { await same(Symbol()) } catch {}",
  ],
  "env.host_module_normalize": [
    "await import('./nope.js').catch(() => {})",
    "import('./nope.js').catch(() => {})",
    "await import('n'.repeat(100_000)).catch(() => {})",
    "await import({ toString: () => 'm\\0' }).catch(() => {})",
  ],
  "env.host_module_load": [
    "await import('./lib.js')",
    "import('./lib.js')",
    "await import('./bad.js').catch(() => {})",
  ],
  "wasi_snapshot_preview1.clock_time_get": ["Date.now()", "new Date()"],
  "wasi_snapshot_preview1.random_get": ["Math.random()"],
  "env.host_get_timezone_offset": ["new Date(0).getHours()", "String(new Date(0))"],
  "env.host_promise_rejection": ["Promise.reject(new Error('x'.repeat(10_000)))", "Promise.reject(1).catch(() => {})"],
  "fuel.tick": ["for (let k = 0; k < 50_000; k++);"],
  "fuel.wait": ["for (let k = 0; k < 3_000_000; k++);"],
  // Nobody calls these: the engine's interrupt handler is not set, and it has no files.
  "env.host_interrupt": [],
  ...Object.fromEntries(["close", "fdstat_get", "seek", "write"].map((name) => [`wasi_snapshot_preview1.fd_${name}`, []])),
};

/** How a machine is entered, and what the harness does there: code that never ends when it is reached that way. @type {Record<string, Record<string, string>>} */
const WAYS_IN = {
  JS_Eval: { "a regular expression that is compiled": `export default [${"/(?:a|b|c|d|e|f|g|h)*x/u,".repeat(40_000)}]; for (;;);` },
  qjs_eval: { "the top level": "for (;;); export default 1" },
  drain: {
    "a job": "export default async () => { await null; for (;;); }",
    "a job after one that throws": "export default () => { const t = { then() { throw t } }; for (let k = 0; k < 9; k++) Promise.resolve(t); return Promise.resolve().then(() => { for (;;); }) }",
    "a callback of import": "export default () => import('./lib.js').then(() => { for (;;); })",
  },
  qjs_call: {
    "an answer": "export default async () => { await same(1); for (;;); }",
    "an answer that is large": "export default async () => { for (;;) await same('x'.repeat(300_000)) }",
    "what was thrown": "throw { get message() { for (;;); } }",
  },
  qjs_new_string: { "a large answer": "export default async () => { await same('x'.repeat(3e6)); for (;;); }" },
  qjs_new_array_buffer: { "an answer of bytes": "export default async () => { await same(new Uint8Array(3e6)); for (;;); }" },
  qjs_free_value: { "what a job threw": "export default () => { const f = () => { let a = null; for (let k = 0; k < 1e5; k++) a = { a }; throw a }; for (;;) { Promise.resolve({ get then() { f() } }) } }" },
};

test("every way out of a machine is here", () => {
  const { Module } = /** @type {any} */ (globalThis).WebAssembly;
  const wasm = new Module(readFileSync(join(builtFolder("dist-isolate"), "quickjs.wasm")));
  /** @type {{ module: string, name: string }[]} */
  const imported = Module.imports(wasm);
  const imports = imported.map(({ module, name }) => `${module}.${name}`);
  assert.deepEqual(Object.keys(WAYS_OUT).sort(), imports.sort());
});

test("every way into a machine is here", () => {
  const sources = ["machine", "quickjs"].map((name) => readFileSync(join(checkout, `isolate/engines/${name}.js`), "utf8"));
  const entered = sources.flatMap((source) => [...source.matchAll(/enter\("(\w+)"/g)].map(([, name]) => String(name)));
  assert.deepEqual(Object.keys(WAYS_IN).sort(), [...new Set(entered)].sort());
});

for (const [name, ways] of Object.entries(WAYS_OUT)) {
  for (const way of ways) {
    test(`a loop after ${name} is ended, and keeps nobody waiting: ${way}`, async () => {
      const repeated = `export default async () => { for (let i = 0; i < 3; i++) { for (let k = 0; k < 1e4; k++); ${way}; } for (;;); }`;
      for (const source of [`${way}; for (;;); export default 1`, repeated]) {
        const running = await server.start(source, { modules, globals, report: true, caller: "turns" });
        const ended = async () => {
          await sleep(100);
          running.terminate("enough");
          return running.result;
        };
        const gap = await server.longestGap(ended());
        const { status, error, settleMs } = await running.result;
        running.forget();
        assert.equal(status, "terminated", JSON.stringify(error));
        assert.ok(gap < BOUND_MS, `${gap} ms`);
        assert.ok(Number(settleMs) < BOUND_MS, `${settleMs} ms`);
      }
    });
  }
}

for (const [name, ways] of Object.entries(WAYS_IN)) {
  for (const [what, source] of Object.entries(ways)) {
    test(`what is entered by ${name} is ended, and keeps nobody waiting: ${what}`, async () => {
      const running = await server.start(source, { modules, globals, memory: 64 << 20, caller: "turns" });
      const ended = async () => {
        await sleep(300);
        running.terminate("enough");
        return running.result;
      };
      const gap = await server.longestGap(ended());
      const { status, error, settleMs } = await running.result;
      running.forget();
      // What floods may have filled its memory before.
      assert.ok(status === "terminated" || (name === "qjs_free_value" && status === "memory"), JSON.stringify([status, error]));
      assert.ok(gap < BOUND_MS, `${gap} ms`);
      assert.ok(settleMs === undefined || settleMs < BOUND_MS, `${settleMs} ms`);
    });
  }
}

/** The least fuel with which code succeeds. @param {string} source */
async function leastFuel(source) {
  let [few, enough] = [0, 1 << 22];
  while (enough - few > 1) {
    const fuel = (few + enough) >> 1;
    const { status, error } = await server.run(source, { fuel, modules, globals, report: true, caller: "fuel" });
    assert.ok(status === "success" || /fuel/.test(error.message), JSON.stringify([status, error]));
    if (status === "success") enough = fuel;
    else few = fuel;
  }
  return enough;
}

/** @param {string} way @param {number} rounds */
const counted = (way, rounds) => `export default async () => { for (let k = 0; k < ${rounds}; k++); ${way}; for (let k = 0; k < ${rounds}; k++); }`;

test("fuel is counted to the unit, whatever is called in between", async () => {
  const [none, some] = [await leastFuel(counted("", 0)), await leastFuel(counted("", 30_000))];
  assert.ok(some - none >= 60_000, `${some - none} units for 60,000 rounds`);
  for (const way of ["console.log('x')", "console.log('x'.repeat(100_000))", "await same(1)", "await import('./lib.js')", "await import('./nope').catch(() => {})"]) {
    const more = (await leastFuel(counted(way, 30_000))) - (await leastFuel(counted(way, 0)));
    // What code does costs the same in every run but for the tables of the engine, which are as full as they are.
    assert.ok(Math.abs(more - (some - none)) <= 50, `${way}: ${more} units instead of ${some - none}`);
  }
});

test("thousands of modules keep nobody waiting, however they are reached", async () => {
  const many = Object.fromEntries(Array.from({ length: 3000 }, (_, k) => [`./m${k}.js`, `export const v = ${k}; ${"\n".repeat(50)}`]));
  const names = Object.keys(many);
  const linked = names.map((name, k) => `import { v as v${k} } from "${name}";`).join("\n");
  for (const source of [
    `${linked} export default v1; for (;;);`,
    "export default async () => { for (;;) for (let k = 0; k < 3000; k++) await import('./m' + k + '.js') }",
    "export default async () => { for (;;) await Promise.allSettled(Array.from({ length: 100 }, (_, k) => import('./n' + k))) }",
  ]) {
    const running = await server.start(source, { modules: many, memory: 64 << 20, caller: "turns" });
    const ended = async () => {
      await sleep(2000);
      running.terminate("enough");
      return running.result;
    };
    const gap = await server.longestGap(ended());
    const { status, error, settleMs } = await running.result;
    running.forget();
    assert.equal(status, "terminated", JSON.stringify(error));
    assert.ok(gap < 2 * BOUND_MS, `${gap} ms`);
    assert.ok(Number(settleMs) < BOUND_MS, `${settleMs} ms`);
  }
});

test("what a sandbox of the engine v8 asks for at once is answered in turns", { skip: !engines.includes("v8") }, async () => {
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, k) => [`./m${k}.js`, `export const v = ${k}`]));
  const source = `export default async () => {
    const asked = await Promise.allSettled(Array.from({ length: 5000 }, (_, k) => import("./n" + k)));
    return asked.filter(({ status }) => status === "rejected").length;
  }`;
  const running = await server.start(source, { engine: "v8", modules: many, caller: "turns" });
  const gap = await server.longestGap(running.result);
  const { value } = await running.result;
  running.forget();
  assert.equal(value, 5000);
  assert.ok(gap < 3 * BOUND_MS, `${gap} ms`);
});
