// Many runs: at once, and one after another.

import assert from "node:assert/strict";
import { contract, isolateServer, lacks } from "./support/isolate.mjs";

const server = isolateServer();
const MIB = 1 << 20;
/** How often the memory is looked at, and after how many runs each time. Four go at a time; a run on V8, a Worker of its own, takes five times as long. */
const LOOKS = process.env.BOBBIN_SAMPLE === undefined ? 12 : 10;
const between = (/** @type {string} */ engine) => (process.env.BOBBIN_SAMPLE === undefined ? 200 : engine === "v8" ? 28 : 60);

// Before the others: while fifty Workers wait to be given back, none of these is.
contract("hundreds of runs leave nothing behind", async (engine) => {
  /** @param {number} k */
  const one = async (k) => {
    const kind = k % 10;
    const globals = { host: (/** @type {number} */ x) => x };
    if (kind === 0 && !lacks(engine, "ending")) {
      const running = await server.start("for (;;);", { engine });
      running.terminate();
      assert.equal((await running.result).status, "terminated");
      running.forget();
    } else if (kind === 1 && !lacks(engine, "memory")) {
      assert.equal((await server.run("const a = []; for (;;) a.push(new Uint8Array(1e5))", { engine, memory: 2 * MIB })).status, "memory");
    } else if (kind === 2) {
      const running = await server.start("export default () => (x) => x", { engine });
      assert.equal(await (await running.result).value(k), k);
      running.forget();
    } else if (kind === 3) {
      assert.equal((await server.run("const f = () => [f()]; f()", { engine })).status, "error");
    } else {
      assert.equal(await server.value("export default async (x) => (await host(x)) + 1", { engine, args: [k], globals }), k + 1);
    }
  };
  const batch = async (/** @type {number} */ runs) => {
    for (let k = 0; k < runs; k += 4) await Promise.all([one(k), one(k + 1), one(k + 2), one(k + 3)]);
  };
  /** MiB after so many runs. */
  const memory = [];
  for (let look = 0; look < LOOKS; look++) {
    await batch(between(engine));
    memory.push(Math.round(server.memory / MIB));
  }
  console.log(`  ${engine}: MiB of workerd after every ${between(engine)} runs: ${memory.join(", ")}`);
  const grown = Number(memory.at(-1)) - Number(memory[1]);
  // The platform gives ended Workers back when it likes, many at a time; each that is kept is more than a MiB.
  assert.ok(grown < (LOOKS * between(engine)) / (engine === "v8" ? 4 : 16), memory.join(", "));
});

contract("fifty runs at once, of different callers, see nothing of each other", async (engine) => {
  const one = async (/** @type {number} */ k) => {
    const host = async (/** @type {number} */ x) => x + k;
    const source = `import { mine } from "./lib.ts"; import { id } from "host";
      globalThis.secret ??= []; globalThis.secret.push(own); Array.prototype.mark = (Array.prototype.mark ?? 0) + 1; Math.count = (Math.count ?? 0) + 1;
      const work = async () => { let sum = 0; for (let i = 0; i < 20; i++) { sum += await host(i); console.log(own, i); if (i % 5 === 0) report([own, i]); for (let j = 0; j < 2000; j++) sum += 0; } return sum };
      export default async (arg) => ({ sum: await work(), own, arg, id, mine, secret: globalThis.secret, mark: [].mark, count: Math.count, url: import.meta.url, back: (x) => [own, x] })`;
    const running = await server.start(source, {
      engine,
      caller: `caller ${k % 10}`,
      args: [{ k }],
      globals: { own: `own ${k}`, host },
      imports: { host: { id: k } },
      modules: { "./lib.ts": `export const mine = own + "/" + ${k}` },
      filename: `file${k}.ts`,
      report: true,
      memory: 4 * MIB,
    });
    const { value, status, error, logs, reports } = await running.result;
    assert.equal(status, "success", JSON.stringify(error));
    const { back, ...rest } = value;
    const own = `own ${k}`;
    assert.deepEqual(rest, { sum: 190 + 20 * k, own, arg: { k }, id: k, mine: `${own}/${k}`, secret: [own], mark: 1, count: 1, url: `sandbox:file${k}.ts` });
    assert.deepEqual(logs.map(({ args }) => args), Array.from({ length: 20 }, (_, i) => [own, i]));
    assert.deepEqual(reports, [0, 5, 10, 15].map((i) => [own, i]));
    assert.deepEqual(await back(k), [own, k]);
    running.release();
  };
  await Promise.all(Array.from({ length: 50 }, (_, k) => one(k)));
});

contract("runs that fail in every way leave the others alone", async (engine) => {
  /** @type {{ source: string, ends: string, fuel?: number }[]} */
  const kinds = [
    { source: "export default 7", ends: "success" },
    { source: "throw 1", ends: "error" },
    { source: "import 'no'", ends: "link_error" },
    { source: "const f = () => f(); f()", ends: "error" },
    { source: "export default () => () => 1", ends: "success" },
  ];
  if (!lacks(engine, "fuel")) kinds.push({ source: "for (;;);", ends: "terminated", fuel: 3_000_000 });
  if (!lacks(engine, "memory")) kinds.push({ source: "const a = []; for (;;) a.push(a.length)", ends: "memory" });
  await Promise.all(
    Array.from({ length: 6 }, () => kinds).flat().map(async ({ source, ends, fuel }, k) => {
      const running = await server.start(source, { engine, memory: 2 * MIB, caller: `caller ${k % 5}`, ...(fuel && { fuel }) });
      const { status } = await running.result;
      running.release();
      assert.equal(status, ends, source);
    }),
  );
});
