// How fast the isolate is, printed: a trivial call from object to object, a call of a function of the caller, erasing and
// linking 74 KB, fib(25), and how long after `terminate` a run settles. The machine should be quiet.
//
//   node bench/isolate.mjs          after `npm run build`

import { IsolateServer } from "../tests/isolate/support/isolate.mjs";
import { sleep } from "../tests/worker/support/poll.mjs";

const server = new IsolateServer();

/** @param {number[]} values */
const stats = (values) => {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (/** @type {number} */ part) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN).toFixed(2);
  return `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, worst ${at(1)} ms, of ${sorted.length}`;
};

/** What takes how long, in the calling object. @param {string} name @param {number} runs @param {() => Promise<number>} run */
async function row(name, runs, run) {
  for (let k = 0; k < Math.min(20, runs); k++) await run();
  const values = [];
  for (let k = 0; k < runs; k++) values.push(await run());
  console.log(`${name.padEnd(48)} ${stats(values)}`);
}

/** @param {string} source @param {import("../tests/isolate/support/isolate.mjs").Options} [options] */
async function objectMs(source, options) {
  const { status, error, tookMs } = await server.run(source, options);
  if (status !== "success") throw new Error(`${status}: ${JSON.stringify(error)}`);
  return tookMs;
}

/** Typed code of about so many bytes. @param {number} bytes */
function typed(bytes) {
  let source = "";
  for (let k = 0; source.length < bytes; k++) {
    source += `interface Item${k}<T extends object = {}> { id: number; name?: string; rest: Partial<T>[] }
export function total${k}<T extends object>(items: readonly Item${k}<T>[], by: keyof Item${k}<T> = "id"): number {
  const found: Map<string, Item${k}<T>> = new Map();
  for (const item of items) if (item.name !== undefined) found.set(item.name as string, item satisfies Item${k}<T>);
  return [...found.values()].reduce((sum: number, item) => sum + (item[by] as unknown as number)!, 0);
}
`;
  }
  return `${source}export default () => total0([]);`;
}

const HANGS = {
  "for (;;)": "for (;;);",
  "a microtask loop": "for (;;) await null",
  "a loop of calls": "for (;;) await host(1)",
  "a sparse join": "new Array(2 ** 32 - 1).join('')",
  "a regular expression": "/^(a+)+$/.test('a'.repeat(40) + 'b')",
  "bulk copies": "const a = new Uint8Array(8e6); for (;;) a.fill(1)",
  "bigints": "let a = 3n ** 60000n; for (;;) a * a",
};

await server.up();
try {
  await row("trivial call, object to object", 300, () => objectMs("export default (a, b) => a + b", { args: [1, 2] }));
  await row("the same in TypeScript with a module and console", 100, () =>
    objectMs("import { one } from './lib.ts'; console.log(1); export default (a: number): number => a + one", { args: [1], modules: { "./lib.ts": "export const one: number = 1" } }),
  );
  const calls = 500;
  await row(`a call of the caller's function (1 of ${calls})`, 10, async () => (await objectMs(`let s = 0; for (let i = 0; i < ${calls}; i++) s += await local(i); export default s`, { local: true })) / calls);
  const large = typed(74_000);
  await row(`a run of ${(large.length / 1000).toFixed(0)} KB of TypeScript`, 30, () => objectMs(large));
  await row("fib(25)", 20, () => objectMs("const f = (n) => (n < 2 ? n : f(n - 1) + f(n - 2)); export default () => f(25)"));
  for (const [name, source] of Object.entries(HANGS)) {
    await row(`terminate of ${name}`, 20, async () => {
      const running = await server.start(`${source}; export default 1`, { globals: { host: (/** @type {unknown} */ x) => x } });
      await sleep(60);
      running.terminate();
      const { settleMs } = await running.result;
      running.forget();
      return settleMs ?? NaN;
    });
  }
  console.log(`workerd: ${(server.memory / 2 ** 20).toFixed(0)} MiB`);
} finally {
  await server.down();
}
