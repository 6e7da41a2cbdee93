// What the engine `v8` cannot do, as docs/run-code.md lists it, and what happens instead; and what it can.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { sleep, until } from "../worker/support/poll.mjs";
import { engines, IsolateServer, isolateServer } from "./support/isolate.mjs";

const engine = "v8";
const options = { skip: !engines.includes(engine) && "v8 is not among BOBBIN_ENGINES" };

describe("v8", options, () => {
  const server = isolateServer();

  test("endless code cannot be ended here: the whole process stands still", async () => {
    for (const source of ["for (;;);", "for (;;) await null"]) {
      const doomed = new IsolateServer();
      await doomed.up();
      try {
        const running = await doomed.start(`export default async () => { ${source} }`, { engine });
        await sleep(300);
        running.terminate("enough");
        const ended = await Promise.race([running.result, sleep(1000).then(() => "nothing")]);
        assert.equal(ended, "nothing", source);
      } finally {
        await doomed.down();
      }
    }
  });

  test("code that waits for the outside is ended at once", async () => {
    const globals = { same: (/** @type {unknown} */ x) => x, never: () => new Promise(() => {}) };
    for (const source of ["for (;;) await same(1)", "await never()", "await new Promise(() => {})", "for (;;) { await Promise.all(Array.from({ length: 1000 }, same)) }"]) {
      const running = await server.start(`export default async () => { ${source} }`, { engine, globals });
      await sleep(100);
      running.terminate("enough");
      const { status, error, settleMs } = await running.result;
      assert.equal(status, "terminated", source);
      assert.match(error.message, /enough/);
      assert.ok(Number(settleMs) < 500, `${source}: ${settleMs} ms`);
      assert.equal(await server.value("export default 2", { engine }), 2);
    }
  });

  test("memoryLimitBytes does not hold", async () => {
    const source = "export default () => { const a = []; for (let i = 0; i < 20; i++) a.push(new Uint8Array(1 << 20).fill(i)); return a.length }";
    assert.equal((await server.run(source, { engine, memory: 2 << 20 })).status, "success");
  });

  test("fuel is refused", async () => {
    const { status, error } = await server.run("export default 1", { engine, fuel: 1_000_000 });
    assert.deepEqual([status, error.name], ["link_error", "InvalidOptions"]);
    assert.match(error.message, /fuel.*v8/);
  });

  test("the top level of a module waits for nothing outside of it, and says so", async () => {
    const globals = { host: () => 1 };
    const { status, error } = await server.run("const a = await host(); export default a", { engine, globals });
    assert.equal(status, "error");
    assert.match(error.message, /top level.*function that you export/);
    assert.equal(await server.value("const a = await Promise.resolve(3); export default a", { engine }), 3);
    const modules = { "./lib.ts": "export default 4" };
    assert.equal(await server.value("const { default: four } = await import('./lib.ts'); export default four", { engine, modules }), 4);
  });

  test("the clock stands at nothing while modules are evaluated", async () => {
    const [at, later] = await server.value("const at = Date.now(); export default () => [at, Date.now()]", { engine });
    assert.equal(at, 0);
    assert.ok(Math.abs(later - Date.now()) < 60_000);
  });

  test("so many Workers at once, and the others wait; a run inside of a run has a place of its own", async () => {
    let entered = 0;
    /** @type {(value: unknown) => void} */
    let open = () => {};
    const opened = new Promise((resolve) => (open = resolve));
    const globals = { hold: () => (entered++, opened) };
    const source = "export default async () => { await hold(); return 1 }";
    const runs = await Promise.all(Array.from({ length: 33 }, (_, k) => server.start(source, { engine, globals, id: `run ${k}`, owner: `owner ${k % 2}` })));
    await until("all places are taken", () => entered === 32);
    const late = await server.start("export default 1", { engine });
    late.terminate("not wanted any more");
    assert.equal((await late.result).status, "terminated");
    assert.equal(await server.value("export default 'inner'", { engine, ancestors: ["run 3"] }), "inner");
    const inner = () => server.value("export default 'inner'", { engine, ancestors: ["of quickjs"] });
    assert.equal(await server.value("export default await inner()", { engine: "quickjs", id: "of quickjs", globals: { inner } }), "inner");
    assert.equal(entered, 32);
    open(0);
    for (const running of runs) assert.equal((await running.result).value, 1);
    assert.equal(entered, 33);
  });

  test("its Workers reach nothing and have nothing of the platform", async () => {
    const source = `export default async () => {
      const reach = [];
      for (let o = globalThis; o; o = Object.getPrototypeOf(o)) reach.push(...Reflect.ownKeys(o).map(String));
      const named = ["fetch", "caches", "WebSocket", "process", "Buffer", "global", "self", "WebAssembly", "setTimeout", "crypto", "Cloudflare", "navigator", "Request", "scheduler"];
      return named.filter((name) => reach.includes(name) || typeof globalThis[name] !== "undefined" || name in globalThis);
    }`;
    assert.deepEqual(await server.value(source, { engine }), []);
  });
});

describe("v8 without a Worker Loader", () => {
  const server = new IsolateServer({ loader: false });
  before(() => server.up());
  after(() => server.down());

  test("it is refused, with what is missing", async () => {
    const { status, error } = await server.run("export default 1", { engine });
    assert.deepEqual([status, error.name], ["link_error", "InvalidOptions"]);
    assert.match(error.message, /v8.*LOADER.*isolate\/wrangler\.toml/);
    assert.equal(await server.value("export default 2", { engine: "quickjs" }), 2);
  });
});
