// Measures the isolate and prints the results: a trivial call from object to object, a call of a caller's function, erasing
// and linking 74 KB, fib(25), and the time from `terminate` until a run settles. The machine should be idle.
//
//   node bench/isolate.mjs                 after `npm run build`, with Node 22 or newer
//   node bench/isolate.mjs --medians 50    the benchmark's rows of the sandbox, as JSON: medians of 50 samples

import { parseArgs } from "node:util";
import { IsolateServer } from "../tests/isolate/support/isolate.mjs";
import { sleep } from "../tests/worker/support/poll.mjs";
import { Compiler } from "./compile.mjs";
import { interleaved } from "./measure.mjs";

/** The engines for fib(25). */
const ENGINES = ["quickjs", "v8"];

/** Calls of the caller's function per run. */
const CALLS = 500;

/** @param {IsolateServer} server @param {string} source @param {import("../tests/isolate/support/isolate.mjs").Options} [options] */
async function objectMs(server, source, options) {
  const { status, error, tookMs } = await server.run(source, options);
  if (status !== "success") throw new Error(`${status}: ${JSON.stringify(error)}`);
  return tookMs;
}

/** Milliseconds of an empty call, from object to object. @param {IsolateServer} server */
const trivialMs = (server) => objectMs(server, "export default (a, b) => a + b", { args: [1, 2] });

/** Milliseconds of one call of a caller's function. @param {IsolateServer} server */
async function hostCallMs(server) {
  const source = `let s = 0; for (let i = 0; i < ${CALLS}; i++) s += await local(i); export default s`;
  return (await objectMs(server, source, { local: true })) / CALLS;
}

/** Milliseconds of a run that computes. @param {IsolateServer} server @param {string} engine */
const fibMs = (server, engine) =>
  objectMs(server, "const f = (n) => (n < 2 ? n : f(n - 1) + f(n - 2)); export default () => f(25)", { engine });

/** 74 KB of TypeScript. */
const LARGE = typed(74_000);

/** Generates about this many bytes of typed code. @param {number} bytes */
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

/** @param {number[]} values */
const stats = (values) => {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (/** @type {number} */ part) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN).toFixed(2);
  return `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, worst ${at(1)} ms, of ${sorted.length}`;
};

/** Measures and prints a row. @param {string} name @param {number} runs @param {() => Promise<number>} run */
async function row(name, runs, run) {
  for (let k = 0; k < Math.min(20, runs); k++) await run();
  const values = [];
  for (let k = 0; k < runs; k++) values.push(await run());
  console.log(`${name.padEnd(48)} ${stats(values)}`);
}

/** @param {IsolateServer} server @param {Compiler} compiler */
async function report(server, compiler) {
  await row("trivial call, object to object", 300, () => trivialMs(server));
  const lib = { args: [1], modules: { "./lib.ts": "export const one: number = 1" } };
  await row("the same in TypeScript with a module and console", 100, () =>
    objectMs(server, "import { one } from './lib.ts'; console.log(1); export default (a: number): number => a + one", lib),
  );
  await row(`a call of the caller's function (1 of ${CALLS})`, 10, () => hostCallMs(server));
  const size = `${(LARGE.length / 1000).toFixed(0)} KB of TypeScript`;
  await row(`erase and link ${size}, that step alone`, 30, () => compiler.ms(LARGE));
  await row(`a run of ${size}`, 30, () => objectMs(server, LARGE));
  for (const engine of ENGINES) await row(`fib(25), ${engine}`, 20, () => fibMs(server, engine));
  for (const [name, source] of Object.entries(HANGS)) await row(`terminate of ${name}`, 20, () => settleMs(server, source));
  console.log(`workerd: ${(server.memory / 2 ** 20).toFixed(0)} MiB`);
}

/**
 * The medians with budgets, and those of fib(25) by engine.
 *
 * @param {IsolateServer} server @param {Compiler} compiler @param {number} times
 */
async function medians(server, compiler, times) {
  const budgeted = await interleaved("the sandbox", times, {
    trivial: () => trivialMs(server),
    call: () => hostCallMs(server),
    compile: () => compiler.ms(LARGE),
  });
  const fib = await interleaved("fib(25)", times, Object.fromEntries(ENGINES.map((engine) => [engine, () => fibMs(server, engine)])));
  return { ...budgeted, fib };
}

/** Milliseconds from `terminate` until a run settles. @param {IsolateServer} server @param {string} source */
async function settleMs(server, source) {
  const running = await server.start(`${source}; export default 1`, { globals: { host: (/** @type {unknown} */ x) => x } });
  await sleep(60);
  running.terminate();
  const { settleMs } = await running.result;
  running.forget();
  return settleMs ?? NaN;
}

const { values: flags } = parseArgs({ options: { medians: { type: "string" } } });
const [server, compiler] = [new IsolateServer(), new Compiler()];
try {
  await server.up();
  await compiler.up();
  if (flags.medians === undefined) await report(server, compiler);
  else console.log(JSON.stringify(await medians(server, compiler, Number(flags.medians))));
} finally {
  await compiler.down();
  await server.down();
}
