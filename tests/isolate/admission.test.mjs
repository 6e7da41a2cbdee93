// Who may run when: the isolate's memory is shared by all runs (docs/run-code.md). The rules by themselves, and then in
// the real runtime.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Admission } from "../../isolate/admission.js";
import { sleep, until } from "../worker/support/poll.mjs";
import { contract, isolateServer } from "./support/isolate.mjs";

const never = new Promise(() => {});
const MIB = 1 << 20;

/** Runs that ask for places; `order` tells who was admitted, in which order. @param {ConstructorParameters<typeof Admission>[0]} [sizes] */
function room(sizes) {
  const admission = new Admission({ budget: 80, reserve: 32, ...sizes });
  /** @type {string[]} */
  const order = [];
  const enter = (/** @type {string} */ id, /** @type {number} */ bytes, /** @type {string[]} */ ancestors = [], gone = never) =>
    admission.enter(id, bytes, ancestors, gone).then((place) => {
      order.push(place ? id : `no ${id}`);
      return place;
    });
  return { admission, order, enter };
}

test("runs are admitted while they fit together", async () => {
  const { admission, order, enter } = room();
  await Promise.all([enter("a", 30), enter("b", 30), enter("c", 20)]);
  void enter("d", 1);
  await sleep(5);
  assert.deepEqual(order, ["a", "b", "c"]);
  assert.deepEqual(admission.counts, { running: 3, waiting: 1 });
});

test("those that wait come in the order of their arrival, also when a smaller one would fit", async () => {
  const { admission, order, enter } = room();
  const a = await enter("a", 60);
  void enter("large", 40);
  void enter("small", 10);
  await sleep(5);
  assert.deepEqual(order, ["a"]);
  assert.ok(a);
  admission.leave(a);
  await sleep(5);
  assert.deepEqual(order, ["a", "large", "small"]);
});

test("a run whose ancestor has its place in another admission does not wait for it", async () => {
  const running = new Set();
  const [heaps, workers] = [room({ running }), room({ budget: 1, reserve: 1, running })];
  const outer = await heaps.enter("outer", 80);
  await workers.enter("holding", 1);
  assert.equal((await workers.enter("inner", 1, ["outer"]))?.from, "reserve");
  assert.equal(await workers.enter("no more", 1, ["outer"]), undefined);
  assert.ok(outer);
  heaps.admission.leave(outer);
  void workers.enter("orphan", 1, ["outer"]);
  await sleep(5);
  assert.deepEqual(workers.admission.counts, { running: 2, waiting: 1 });
});

test("one that is not wanted any more leaves the queue and lets the others pass", async () => {
  const { admission, order, enter } = room();
  await enter("a", 60);
  /** @type {(value?: unknown) => void} */
  let leave = () => {};
  void enter("large", 40, [], new Promise((resolve) => (leave = resolve)));
  void enter("small", 10);
  leave();
  await sleep(5);
  assert.deepEqual(order, ["a", "no large", "small"]);
  assert.deepEqual(admission.counts, { running: 2, waiting: 0 });
});

test("a run from inside of another never waits: the reserve, or no", async () => {
  const { admission, order, enter } = room();
  await enter("outer", 80);
  void enter("waits", 10);
  const inner = await enter("inner", 20, ["outer"]);
  await enter("innermost", 20, ["outer", "inner"]);
  assert.deepEqual(order, ["outer", "inner", "no innermost"]);
  assert.ok(inner);
  admission.leave(inner);
  await enter("again", 32, ["outer"]);
  assert.deepEqual(order.at(-1), "again");
  // Of an ancestor that does not run nothing follows.
  void enter("stranger", 1, ["gone"]);
  await sleep(5);
  assert.deepEqual(order.length, 4);
});

test("a run from inside of another takes from the budget where that is free", async () => {
  const { admission, enter } = room();
  await enter("outer", 20);
  await enter("inner", 60, ["outer"]);
  await enter("inner 2", 32, ["outer"]);
  assert.equal(admission.counts.running, 3);
});

test("a place whose run has vanished is taken away, one that is renewed is not", async () => {
  const { admission, order, enter } = room({ leaseMs: 1500 });
  const renewed = await enter("renewed", 40);
  await enter("vanished", 40);
  assert.ok(renewed);
  const stop = admission.renewing(renewed);
  void enter("next", 40);
  await until("the next one is admitted", () => order.includes("next"));
  assert.deepEqual(admission.counts, { running: 2, waiting: 0 });
  void enter("waits", 40);
  await sleep(2500);
  assert.ok(!order.includes("waits") || !order.includes("renewed"), String(order));
  stop();
});

// In the real runtime.

const server = isolateServer();

contract("runs beyond the budget wait, and each gets its turn", async (engine) => {
  const runs = await Promise.all(Array.from({ length: 4 }, () => server.start("await hold(); export default 1", { engine, memory: 32 * MIB, globals: { hold: () => sleep(150) } })));
  const results = await Promise.all(runs.map(({ result }) => result));
  assert.deepEqual(results.map(({ status }) => status), ["success", "success", "success", "success"]);
}, ["memory"]);

contract("terminate settles a run that waits", async (engine) => {
  const holding = await server.start("await new Promise(() => {}); export default 1", { engine, memory: 64 * MIB });
  const waiting = await server.start("export default 1", { engine, memory: 64 * MIB });
  await sleep(50);
  waiting.terminate("not any more");
  const { status, error, settleMs } = await waiting.result;
  assert.deepEqual([status, error.message], ["terminated", "not any more"]);
  assert.ok(Number(settleMs) < 500);
  holding.terminate();
  await holding.result;
}, ["memory"]);

contract("a run inside of a run does not wait for it; without room it is terminated at once", async (engine) => {
  const inner = (/** @type {number} */ memory) => async () => {
    const { status, value, error } = await server.run("export default 'inner'", { engine, memory, ancestors: ["outer"] });
    return status === "success" ? value : `${status}: ${error.message}`;
  };
  const globals = { small: inner(32 * MIB), large: inner(64 * MIB) };
  const other = await server.start("await new Promise(() => {}); export default 1", { engine, memory: 16 * MIB });
  const queued = server.start("export default 'queued'", { engine, memory: 64 * MIB, caller: "two" });
  const value = await server.value("export default [await small(), await large()]", { engine, id: "outer", memory: 64 * MIB, globals });
  assert.equal(value[0], "inner");
  assert.match(value[1], /^terminated: sandbox full/);
  other.terminate();
  assert.equal((await (await queued).result).status, "success");
}, ["memory"]);

contract("a caller that is gone gives its place back", async (engine) => {
  for (const [at, source] of ["for (;;);", "await new Promise(() => {}); export default 1", "await hold(); export default 1", "export default () => () => 1"].entries()) {
    const caller = `gone ${at}`;
    await server.start(source, { engine, memory: 64 * MIB, caller, globals: { hold: () => new Promise(() => {}) } });
    await sleep(150);
    await server.abort(caller);
    const { status } = await server.run("export default 1", { engine, memory: 64 * MIB });
    assert.equal(status, "success", source);
  }
}, ["memory"]);
