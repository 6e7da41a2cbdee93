// The rows of the benchmark: what is measured, and how. Budgets are ratios to the floor of the same run, or counts; for the
// sandbox they are times.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { inCheckout } from "../scripts/files.mjs";
import { run } from "../scripts/run.mjs";
import { setUp } from "../scripts/setup.mjs";
import { checkout } from "../tests/worker/support/server.mjs";
import { startBarePair } from "./sides.mjs";
import { approvals, batches, exported, lines, traces } from "./rows-waits.mjs";
import { budgets } from "./rows-budgets.mjs";
import { clients } from "./rows-clients.mjs";
import { exportedRun, looked } from "./rows-diagnostics.mjs";
import { summaries } from "./rows-context.mjs";
import { recall } from "./rows-memory.mjs";
import { mcp } from "./rows-mcp.mjs";
import { scrubbing } from "./rows-scrub.mjs";
import { workers } from "./rows-workers.mjs";
import { candidates } from "./startup.mjs";
import { cost, counters, interleaved, median, progress, ratio, settle, timed } from "./measure.mjs";

/**
 * @typedef {import("./sides.mjs").Side} Side
 * @typedef {import("../tests/worker/support/socket.mjs").Socket} Socket
 * @typedef {import("./measure.mjs").Result} Result
 * @typedef {import("./measure.mjs").Counters} Counters
 *
 * @typedef {object} Bench
 * @property {Side} product
 * @property {Side} floor
 * @property {import("./model.mjs").BenchModel} model
 * @property {(samples: number) => number} times   fewer samples in a quick run
 * @property {() => Promise<void>} restartProduct  removes all objects from memory
 */

/** A thread of each side and a socket on it. @param {Bench} bench */
async function pair({ product, floor }) {
  const open = async (/** @type {Side} */ side) => {
    const thread = await side.thread();
    return { side, thread, socket: await side.socket(thread) };
  };
  return { product: await open(product), floor: await open(floor) };
}

/** @typedef {Awaited<ReturnType<typeof pair>>["product"]} Open */

/** Whether a frame is the complete answer of a run: an assistant message without calls. @param {any} frame */
const isAnswer = (frame) =>
  frame.type === "message_data" && frame.data.role === "assistant" && frame.data.content && !frame.data.tool_calls;

/** Posts without waiting, and waits for the answer on the socket. @param {Open} open @param {string} wishes */
async function turn({ side, thread, socket }, wishes) {
  const start = performance.now();
  const first = { at: 0 };
  const done = new Promise((resolve, reject) => {
    socket.onFrame = (frame) => {
      if (frame.type === "message_chunk" && first.at === 0) first.at = performance.now();
      if (isAnswer(frame)) resolve(undefined);
    };
    socket.onClose = () => reject(new Error(`${side.name}: the socket was closed (${socket.closeCode})`));
  });
  done.catch(() => {}); // awaited below
  await side.post(thread, wishes, false);
  const accepted = performance.now();
  await done;
  const end = performance.now();
  socket.frames.length = 0;
  socket.times.length = 0;
  // Shows the server that this client reads.
  socket.send("ping");
  // The run ends after its answer, and the next message must not join it.
  await new Promise((resolve) => setTimeout(resolve, 4));
  return { accepted: accepted - start, first: first.at - start, whole: end - start, text: end - first.at };
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function accept(bench) {
  const { product, floor } = await pair(bench);
  const sample = (/** @type {Open} */ open) => async () => (await turn(open, "")).accepted;
  const values = await interleaved("accept", bench.times(150), { product: sample(product), floor: sample(floor) });
  return [ratio("accept a message (POST to 202)", "ms", values, 1.15)];
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function plainTurn(bench) {
  const { product, floor } = await pair(bench);
  const waiting = (/** @type {Open} */ { side, thread }) => () => timed(() => side.post(thread, "", true));
  const threads = await Promise.all([bench.product, bench.floor].map(async (side) => ({ side, thread: await side.thread() })));
  const [a, b] = threads;
  const waited = await interleaved("plain turn, wait=true", bench.times(100), {
    product: waiting({ ...product, ...a }),
    floor: waiting({ ...floor, ...b }),
  });
  const socket = (/** @type {Open} */ open) => async () => (await turn(open, "")).whole;
  const seen = await interleaved("plain turn, socket", bench.times(100), { product: socket(product), floor: socket(floor) });
  return [ratio("plain turn, wait=true", "ms", waited, 1.2), ratio("plain turn, over the socket", "ms", seen, 1.2)];
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function toolStep(bench) {
  const STEPS = 10;
  const threads = { product: await bench.product.thread(), floor: await bench.floor.thread() };
  const sample = (/** @type {"product" | "floor"} */ side, /** @type {number} */ steps) => () =>
    timed(() => bench[side].post(threads[side], `steps=${steps}`, true));
  const values = await interleaved("one tool step more", bench.times(40), {
    product: sample("product", STEPS),
    floor: sample("floor", STEPS),
    productPlain: sample("product", 0),
    floorPlain: sample("floor", 0),
  });
  const more = {
    product: (values.product - values.productPlain) / STEPS,
    floor: (values.floor - values.floorPlain) / STEPS,
  };
  return [ratio("one tool step more", "ms", more, 1.15)];
}

/** @param {string} what @param {Counters} counted @param {[number, number, number]} budgets @returns {Result[]} */
const sqlResults = (what, { statements, rowsRead, rowsWritten }, [s, r, w]) => [
  { what: `${what}: statements`, unit: "", value: statements, budget: s },
  { what: `${what}: rows read`, unit: "", value: rowsRead, budget: r },
  { what: `${what}: rows written`, unit: "", value: rowsWritten, budget: w },
];

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function sql(bench) {
  const TURNS = 10;
  const STEPS = 10;
  progress("SQL per turn and per tool step");
  const { product } = bench;
  const thread = await product.thread();
  const turns = (/** @type {string} */ wishes) => async () => {
    for (let n = 0; n < TURNS; n++) await product.post(thread, wishes, true);
    await settle();
  };
  await turns("")();
  const plain = await cost(product, thread, turns(""));
  const tools = await cost(product, thread, turns(`steps=${STEPS}`));
  const perTurn = (/** @type {keyof Counters} */ name) => plain[name] / TURNS;
  const perStep = (/** @type {keyof Counters} */ name) => (tools[name] - plain[name]) / (TURNS * STEPS);
  const each = (/** @type {(name: keyof Counters) => number} */ of) => ({
    statements: of("statements"),
    rowsRead: of("rowsRead"),
    rowsWritten: of("rowsWritten"),
  });
  return [
    ...sqlResults("SQL per plain turn", each(perTurn), [8, 10, 8]),
    ...sqlResults("SQL per step with one tool call", each(perStep), [8, 10, 8]),
  ];
}

/** Stores messages of 1 KB that start no run. @param {Side} product @param {string} thread @param {number} count */
async function fill(product, thread, count) {
  for (let stored = 0; stored < count; stored += 50) {
    progress(`a thread of ${count} messages: ${stored}`);
    await Promise.all(Array.from({ length: Math.min(50, count - stored) }, () => product.note(thread)));
  }
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function longThread(bench) {
  const { product, model } = bench;
  const threads = { product: await product.thread(), floor: await product.thread() };
  await fill(product, threads.product, 2000);
  await fill(product, threads.floor, 120);
  const sample = (/** @type {"product" | "floor"} */ which) => () => timed(() => product.post(threads[which], "", true));
  const values = await interleaved("turn on a thread of 2,000 messages", bench.times(60), {
    product: sample("product"),
    floor: sample("floor"),
  });
  const TURNS = 5;
  const warm = await cost(product, threads.product, async () => {
    for (let n = 0; n < TURNS; n++) await product.post(threads.product, "", true);
  });
  progress("turn on a thread of 2,000 messages, cold");
  await bench.restartProduct();
  await product.post(threads.product, "", true);
  const cold = await counters(product, threads.product);
  return [
    { ...ratio("turn on a thread of 2,000 messages", "ms", values, 1.1), against: "thread at its budget" },
    { what: "… warm: rows read", unit: "", value: warm.rowsRead / TURNS, budget: 10 },
    // The window, plus what every start reads.
    { what: "… cold: rows read", unit: "", value: cold.rowsRead, budget: model.last.messages + 20 },
  ];
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function streaming(bench) {
  const CHUNKS = 2000;
  const { product, floor } = await pair(bench);
  const first = (/** @type {Open} */ open) => async () => (await turn(open, "")).first;
  const tokens = await interleaved("first streamed token", bench.times(100), { product: first(product), floor: first(floor) });
  const chunk = (/** @type {Open} */ open) => async () => ((await turn(open, `chunks=${CHUNKS}`)).text * 1000) / CHUNKS;
  const chunks = await interleaved("streamed chunk", bench.times(15), { product: chunk(product), floor: chunk(floor) });

  const thread = product.thread;
  const settled = (/** @type {string} */ wishes) => async () => {
    await turn(product, wishes);
    await settle();
  };
  await settle();
  const few = await cost(bench.product, thread, settled("chunks=1"));
  const many = await cost(bench.product, thread, settled(`chunks=${CHUNKS}`));
  return [
    ratio("first streamed token", "ms", tokens, 1.3),
    ratio("streamed chunk", "µs", chunks, 1.2),
    { what: `… SQL statements of ${CHUNKS} chunks`, unit: "", value: many.statements - few.statements, budget: 0 },
  ];
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function manyThreads(bench) {
  const THREADS = 50;
  const TURNS = 10;
  const round = async (/** @type {Side} */ side) => {
    const threads = await Promise.all(Array.from({ length: THREADS }, () => side.thread()));
    const before = side.processorMs();
    await Promise.all(
      threads.map(async (thread) => {
        for (let n = 0; n < TURNS; n++) await side.post(thread, "", true);
      }),
    );
    return (side.processorMs() - before) / (THREADS * TURNS);
  };
  const values = await interleaved("50 threads × 10 turns", bench.times(3), {
    product: () => round(bench.product),
    floor: () => round(bench.floor),
  });
  return [ratio("50 threads × 10 turns: processor time per turn", "ms", values, 1.35)];
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function newThread(bench) {
  const sample = (/** @type {Side} */ side) => () => timed(async () => side.post(await side.thread(), "", true));
  const values = await interleaved("new thread to first answer", bench.times(60), {
    product: sample(bench.product),
    floor: sample(bench.floor),
  });
  const statements = [];
  for (let n = 0; n < 5; n++) {
    const thread = await bench.product.thread();
    await bench.product.post(thread, "", true);
    statements.push((await counters(bench.product, thread)).statements);
  }
  return [
    ratio("new thread to first answer", "ms", values, 1.5),
    { what: "… statements", unit: "", value: median(statements), budget: 30 },
  ];
}

/** Waits after a sample, so that a thread's remaining work does not affect the next one. */
const after = async (/** @type {Promise<number>} */ sample, ms = 50) => {
  const value = await sample;
  await new Promise((resolve) => setTimeout(resolve, ms));
  return value;
};

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function blockingChild(bench) {
  const open = async (/** @type {Side} */ side) => {
    const thread = await side.thread("family");
    return { side, thread, socket: await side.socket(thread) };
  };
  const { product, floor } = { product: await open(bench.product), floor: await open(bench.floor) };
  const sample = (/** @type {Open} */ one) => () => after(turn(one, "waited=1").then(({ whole }) => whole));
  const values = await interleaved("a blocking child", bench.times(60), { product: sample(product), floor: sample(floor) });
  const TURNS = 5;
  const parent = await cost(bench.product, product.thread, async () => {
    for (let n = 0; n < TURNS; n++) await after(turn(product, "waited=1").then(({ whole }) => whole), 300);
  });
  const [child] = (await bench.product.get(`/api/threads/${product.thread}/subagents`)).json.subagents;
  const whole = await counters(bench.product, child.id);
  return [
    ratio("turn with one call of a blocking child, instant model", "ms", values, 1.4),
    { what: "… SQL statements of the parent", unit: "", value: parent.statements / TURNS, budget: undefined },
    { what: "… SQL statements of the child, its whole life", unit: "", value: whole.statements, budget: undefined },
  ];
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function fanOut(bench) {
  const CHILDREN = 20;
  const sample = async (/** @type {Side} */ side) => {
    const thread = await side.thread("family");
    const socket = await side.socket(thread, "?includeSilent=true");
    const heard = new Set();
    const all = new Promise((resolve) => {
      socket.onFrame = ({ type, data }) => {
        if (type === "message_data" && data.role === "user" && data.content.startsWith("Subagent ")) heard.add(data.id);
        if (heard.size === CHILDREN) resolve(undefined);
      };
    });
    const value = await timed(async () => {
      await side.post(thread, `sent=${CHILDREN}`, false);
      await all;
    });
    socket.close();
    return value;
  };
  const values = await interleaved(`${CHILDREN} children`, bench.times(20), {
    product: () => after(sample(bench.product), 400),
    floor: () => after(sample(bench.floor), 400),
  });
  return [ratio(`${CHILDREN} children that nobody waits for, all results in`, "ms", values, 1.5)];
}

/** @returns {Promise<Result[]>} */
export async function size() {
  const wasm = readFileSync(join(checkout, "dist/index_bg.wasm"));
  return [{ what: "wasm of the Worker, gzipped", unit: "KB", value: gzipSync(wasm, { level: 9 }).length / 1000, budget: 1050 }];
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function start(bench) {
  const { product, hello } = await candidates();
  try {
    /** @type {Record<"product" | "hello", number[]>} */
    const answered = { product: [], hello: [] };
    const sample = (/** @type {"product" | "hello"} */ which) => async () => {
      const times = await (which === "product" ? product : hello).start();
      answered[which].push(times.answered);
      return times.ready;
    };
    const values = await interleaved("start-up", bench.times(20), { product: sample("product"), floor: sample("hello") });
    const first = { product: median(answered.product), floor: median(answered.hello) };
    const against = "hello world in Rust";
    return [
      { ...ratio("start-up until the Worker is loaded", "ms", values, 1.6), against },
      { ...ratio("… until its first answer", "ms", first, undefined), against },
    ];
  } finally {
    product.remove();
    hello.remove();
  }
}

/** The sandbox; its budgets are times. @param {Bench} bench @returns {Promise<Result[]>} */
export async function sandbox(bench) {
  const { node } = await setUp();
  progress("the sandbox");
  // In a separate process, because its client needs a newer Node than the others.
  const { trivial, call, compile, fib } = JSON.parse(await run(node, [inCheckout("bench/isolate.mjs"), "--medians", `${bench.times(50)}`]));
  return [
    { what: "sandbox: a trivial call, object to object", unit: "ms", value: trivial, budget: 8 },
    { what: "… a call of the caller's function", unit: "ms", value: call, budget: 0.5 },
    { what: "… erase + link of 74 KB, that step alone", unit: "ms", value: compile, budget: 40 },
    ...Object.entries(fib).map(([engine, value]) => ({ what: `… fib(25), ${engine}`, unit: "ms", value, budget: undefined })),
  ];
}

/** The budgets of the rows without wrangler, by the row's title. @type {Record<string, number>} */
const BARE = {
  "accept a message (POST to 202)": 1.2,
  "plain turn, wait=true": 1.2,
  "plain turn, over the socket": 1.2,
  "one tool step more": 1.15,
  "50 threads × 10 turns: processor time per turn": 1.35,
  "turn with one call of a blocking child, instant model": 1.4,
  "20 children that nobody waits for, all results in": 1.5,
};

/**
 * Some rows again without wrangler's proxies, which take equally long for both sides and hide a difference.
 *
 * @param {Bench} bench @returns {Promise<Result[]>}
 */
export async function bare(bench) {
  const { product, floor, end } = await startBarePair(bench.model.url);
  try {
    /** @type {Result[]} */
    const results = [];
    for (const row of [accept, plainTurn, toolStep, manyThreads, blockingChild, fanOut]) {
      for (const result of await row({ ...bench, product, floor })) {
        if (result.floor !== undefined) results.push({ ...result, what: `miniflare alone: ${result.what}`, budget: BARE[result.what] });
      }
    }
    return results;
  } finally {
    await end();
  }
}

/** All rows by their names for `--rows`. @type {Record<string, (bench: Bench) => Promise<Result[]>>} */
export const rows = {
  accept,
  turn: plainTurn,
  tool: toolStep,
  sql,
  long: longThread,
  stream: streaming,
  many: manyThreads,
  new: newThread,
  child: blockingChild,
  fan: fanOut,
  workers,
  asked: approvals,
  trace: traces,
  export: exported,
  exports: exportedRun,
  looked,
  lines,
  batches,
  scrubbing,
  clients,
  mcp,
  summaries,
  recall,
  budgets,
  bare,
  sandbox,
  size,
  start,
};
