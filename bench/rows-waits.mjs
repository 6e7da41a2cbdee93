// Rows of waits and traces: approvals, traces, the export of spans, parallel calls. They compare the product with itself.

import { exchange } from "../tests/worker/support/http.mjs";
import { startCollector } from "./collector.mjs";
import { cost, interleaved, progress, ratio, settle, timed } from "./measure.mjs";
import { startProduct } from "./sides.mjs";

/**
 * @typedef {import("./rows.mjs").Bench} Bench
 * @typedef {import("./measure.mjs").Result} Result
 * @typedef {import("./sides.mjs").Side} Side
 * @typedef {import("../tests/worker/support/socket.mjs").Socket} Socket
 */

const JSON_BODY = { "content-type": "application/json" };

/** The only open wait of a thread, once it exists, and the number of polls. @param {Side} side @param {string} thread */
async function asked(side, thread) {
  for (let looks = 1; ; looks++) {
    const { waits } = (await side.get(`/api/threads/${thread}/waits`)).json;
    if (waits.length > 0) return { id: /** @type {string} */ (waits[0].id), looks };
  }
}

/** @param {Side} side @param {string} thread @param {string} wait */
async function approve(side, thread, wait) {
  const body = JSON.stringify({ decision: "approve" });
  const answer = await exchange(side.base, "POST", `/api/threads/${thread}/waits/${wait}`, { headers: JSON_BODY, body });
  if (answer.status !== 200) throw new Error(`${side.name}: ${answer.status} ${answer.text}`);
}

/** Posts a message, approves its question and lets the run end. Returns the number of polls. @param {Side} side @param {string} thread */
async function question(side, thread) {
  await side.post(thread, "asked=1", false);
  const { id, looks } = await asked(side, thread);
  await approve(side, thread, id);
  await settle();
  return looks;
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function approvals({ product, model, times }) {
  const thread = await product.thread("asking");
  /** Milliseconds from the post to the next request to the model. @param {() => Promise<unknown>} post */
  const toRequest = async (post) => {
    const start = performance.now();
    const request = new Promise((resolve) => (model.onRequest = () => resolve(performance.now() - start)));
    await post();
    const took = /** @type {number} */ (await request);
    model.onRequest = () => {};
    await settle();
    return took;
  };
  const values = await interleaved("a decision", times(40), {
    product: async () => {
      await product.post(thread, "asked=1", false);
      const { id } = await asked(product, thread);
      return toRequest(() => approve(product, thread, id));
    },
    floor: () => toRequest(() => product.post(thread, "", false)),
  });
  const TURNS = 5;
  const statements = async (/** @type {() => Promise<unknown>} */ one) => {
    const counted = await cost(product, thread, async () => {
      for (let n = 0; n < TURNS; n++) await one();
    });
    return counted.statements / TURNS;
  };
  const step = await statements(async () => {
    await product.post(thread, "steps=1", false);
    await settle();
  });
  const looked = await cost(product, thread, () => product.get(`/api/threads/${thread}/waits`));
  // A slow machine polls more often until there is an open wait.
  let looks = 0;
  const whole = await statements(async () => (looks += await question(product, thread)));
  return [
    { ...ratio("a decision, until the next request to the model", "ms", values, 1.3), against: "a message" },
    { what: "… SQL statements more than the step alone", unit: "", value: whole - step - (looks / TURNS) * looked.statements, budget: 12 },
  ];
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function traces({ product, times }) {
  progress("a run of 250 steps");
  const thread = await product.thread();
  const { run } = await product.post(thread, "steps=249", true);
  const path = `/api/threads/${thread}/runs/${run}?trace=1`;
  const { trace } = (await product.get(path)).json;
  if (trace.length < 500) throw new Error(`The trace has ${trace.length} entries.`);
  const { product: value } = await interleaved("the trace of a run of 250 steps", times(40), { product: () => timed(() => product.get(path)) });
  return [{ what: "the trace of a run of 250 steps", unit: "ms", value, budget: 20 }];
}

/** Four calls in one reply, of a tool that responds at once. @param {Bench} bench @returns {Promise<Result[]>} */
export async function batches({ product, times }) {
  const CALLS = 4;
  const threads = { product: await product.thread("together"), floor: await product.thread("in_turn") };
  const sample = (/** @type {"product" | "floor"} */ which) => () => timed(() => product.post(threads[which], `reads=${CALLS}`, true));
  const values = await interleaved("four calls of a reply", times(100), { product: sample("product"), floor: sample("floor") });
  const statements = async (/** @type {"product" | "floor"} */ which) => {
    const counted = await cost(product, threads[which], async () => {
      for (let n = 0; n < 10; n++) await product.post(threads[which], `reads=${CALLS}`, true);
      await settle();
    });
    return counted.statements / 10;
  };
  const more = (await statements("product")) - (await statements("floor"));
  return [
    { ...ratio("four calls that only read, of a tool that answers at once", "ms", values, 1.0), against: "in turn" },
    // One for each result that arrives before its turn.
    { what: "… SQL statements more", unit: "", value: more, budget: CALLS - 1 },
  ];
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function exported({ product, model, times }) {
  const collector = await startCollector();
  const exporting = await startProduct(model.url, { BOBBIN_OTLP_ENDPOINT: collector.url });
  try {
    const sides = { product: exporting.side, floor: product };
    const threads = { product: await exporting.side.thread(), floor: await product.thread() };
    const sample = (/** @type {"product" | "floor"} */ which) => () => timed(() => sides[which].post(threads[which], "", true));
    const turns = await interleaved("plain turn with export", times(100), { product: sample("product"), floor: sample("floor") });
    const TURNS = 50;
    const round = async (/** @type {"product" | "floor"} */ which) => {
      const before = sides[which].processorMs();
      for (let n = 0; n < TURNS; n++) await sides[which].post(threads[which], "", true);
      await settle();
      return (sides[which].processorMs() - before) / TURNS;
    };
    const processor = await interleaved("plain turns with export", times(5), { product: () => round("product"), floor: () => round("floor") });
    const statements = async (/** @type {"product" | "floor"} */ which) => {
      const counted = await cost(sides[which], threads[which], async () => {
        for (let n = 0; n < 10; n++) await sides[which].post(threads[which], "", true);
        await settle();
      });
      return counted.statements / 10;
    };
    const more = (await statements("product")) - (await statements("floor"));
    if (collector.seen.spans === 0) throw new Error("The collector was sent no span.");
    const against = "without export";
    return [
      { ...ratio("plain turn with export of spans", "ms", turns, 1.05), against },
      { ...ratio("… processor time", "ms", processor, undefined), against },
      // A test counts the two additional statements of the turn itself (tests/engine/scenarios/budgets.rs).
      { what: "… SQL statements more, with those of the export", unit: "", value: more, budget: undefined },
    ];
  } finally {
    await exporting.end();
    await collector.end();
  }
}

/**
 * A plain turn over the socket, with progress lines and without them.
 *
 * @param {Bench} bench @returns {Promise<Result[]>}
 */
export async function lines({ product, times }) {
  const follow = async (/** @type {string} */ query) => {
    const thread = await product.thread();
    return { thread, socket: await product.socket(thread, query) };
  };
  const [told, quiet] = [await follow(""), await follow("?progress=0")];
  const turn = async (/** @type {{ thread: string, socket: Socket }} */ { thread, socket }) => {
    const over = new Promise((resolve) => {
      socket.onFrame = ({ type }) => type === "stopped" && resolve(undefined);
    });
    const took = await timed(async () => {
      await product.post(thread, "", false);
      await over;
    });
    await settle();
    return took;
  };
  const values = await interleaved("a turn over the socket", times(80), { product: () => turn(told), floor: () => turn(quiet) });
  const statements = async (/** @type {{ thread: string, socket: Socket }} */ one) =>
    (await cost(product, one.thread, () => turn(one))).statements;
  const more = (await statements(told)) - (await statements(quiet));
  told.socket.close();
  quiet.socket.close();
  return [
    { ...ratio("a turn over the socket, with lines of progress", "ms", values, 1.02), against: "without" },
    { what: "… SQL statements more", unit: "", value: more, budget: 0 },
  ];
}
