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
  const admission = new Admission({ budget: 80, reserve: 32, share: 80, ...sizes });
  /** @type {string[]} */
  const order = [];
  const enter = (/** @type {string} */ id, /** @type {number} */ bytes, /** @type {string[]} */ ancestors = [], gone = never, owner = "one") =>
    admission.enter(id, bytes, ancestors, gone, { owner, end: (reason) => order.push(`${id}: ${reason}`) }).then((place) => {
      order.push(typeof place === "string" ? `no ${id}` : id);
      return typeof place === "string" ? undefined : place;
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

test("those of an owner come in the order of their arrival, also when a smaller one would fit", async () => {
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

test("whose owner has least comes first, and who has waited for long before all", async () => {
  const { admission, order, enter } = room();
  const first = await enter("a 1", 40, [], never, "a");
  await enter("a 2", 40, [], never, "a");
  for (const at of [3, 4]) void enter(`a ${at}`, 40, [], never, "a");
  void enter("b 1", 40, [], never, "b");
  assert.ok(first);
  admission.leave(first);
  await sleep(5);
  assert.deepEqual(order, ["a 1", "a 2", "b 1"]);
});

test("a run that only waits is counted with what it has, and waits for room when it goes on", async () => {
  const { admission, order, enter } = room();
  const hung = await Promise.all(Array.from({ length: 8 }, async (_, at) => {
    const place = await enter(`hung ${at}`, 16);
    assert.ok(place);
    admission.idle(place, 2);
    return place;
  }));
  assert.equal(admission.charged, 16);
  const busy = await enter("busy", 60, [], never, "two");
  const [again] = hung;
  assert.ok(busy && again);
  let goes = false;
  void admission.busy(again, never).then((admitted) => (goes = admitted));
  await sleep(5);
  assert.equal(goes, false);
  assert.equal(admission.yields(busy), false, "its time is not up");
  admission.idle(busy, 10);
  await sleep(5);
  assert.equal(goes, true);
  assert.equal(order.length, 9);
});

test("a run that computes makes way for those that wait after its time, and only then", async () => {
  const { admission, order, enter } = room({ sliceMs: 20 });
  const endless = await enter("endless", 80);
  assert.ok(endless);
  await sleep(30);
  assert.equal(admission.yields(endless), false, "nobody waits");
  void enter("other", 80);
  assert.equal(admission.yields(endless), true);
  admission.idle(endless, 0);
  let goes = false;
  void admission.busy(endless, never).then((admitted) => (goes = admitted));
  await sleep(5);
  assert.deepEqual([order, goes], [["endless", "other"], false]);
});

test("a run from inside of another has a reserve, and waits for no longer than a bound", async () => {
  const { admission, order, enter } = room({ waitMs: 50, holdMs: 10 });
  await enter("outer", 80);
  void enter("waits", 10);
  await enter("inner", 30, ["outer"]);
  assert.deepEqual(order, ["outer", "inner"]);
  assert.equal(await enter("innermost", 20, ["outer", "inner"]), undefined, "with those around it there is never room");
  await until("all were answered", () => order.length === 4);
  assert.deepEqual(order.slice(2).sort(), ["no innermost", "no waits"]);
  assert.deepEqual(admission.counts, { running: 2, waiting: 0 });
});

test("runs around it and a run inside never wait for each other", async () => {
  const { admission, enter } = room();
  for (let at = 0; at < 20; at++) {
    const outer = await enter(`outer ${at}`, 16);
    assert.ok(outer);
    admission.idle(outer, 2);
  }
  for (let at = 0; at < 20; at++) {
    const inner = await enter(`inner ${at}`, 64, [`outer ${at}`]);
    assert.ok(inner);
    admission.leave(inner);
  }
  assert.equal(admission.charged, 40);
});

test("of runs that only wait with memory that others need the largest of the owner with most is ended", async () => {
  const { admission, order, enter } = room({ holdMs: 20 });
  for (const [id, bytes, owner] of /** @type {[string, number, string][]} */ ([["a", 30, "one"], ["b", 20, "one"], ["c", 25, "two"]])) {
    const place = await enter(id, 30, [], never, owner);
    assert.ok(place);
    admission.idle(place, bytes);
  }
  await enter("inside", 1, ["a"]);
  void enter("new", 30, [], never, "three");
  await sleep(100);
  assert.ok(!order.some((line) => line.startsWith("a:")), "it waits for a run of its own");
  // `inside` computes.
  assert.deepEqual(order.filter((line) => line.includes("sandbox full")), []);
});

test("memory that is only held is given up when nothing else can go on", async () => {
  const { admission, order, enter } = room({ holdMs: 20 });
  for (const [id, bytes, owner] of /** @type {[string, number, string][]} */ ([["a", 30, "one"], ["b", 20, "one"], ["c", 25, "two"]])) {
    const place = await enter(id, 30, [], never, owner);
    assert.ok(place);
    admission.idle(place, bytes);
  }
  void enter("new", 30, [], never, "three");
  await until("one is ended", () => order.some((line) => line.startsWith("a: sandbox full: this code only waited")));
});

test("a run whose ancestor has its place in another admission has the reserve", async () => {
  const running = new Set();
  const [heaps, workers] = [room({ running }), room({ budget: 1, reserve: 1, running })];
  const outer = await heaps.enter("outer", 80);
  await workers.enter("holding", 1);
  assert.ok(await workers.enter("inner", 1, ["outer"]));
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

test("a thread that has many runs keeps nobody else waiting", async (t) => {
  for (const inside of [false, true]) {
    t.mock.timers.enable({ apis: ["Date", "setInterval"] });
    const admission = new Admission();
    const waits = await neighbours(t.mock.timers, admission, inside);
    assert.equal(waits.length, 21);
    assert.ok(Math.max(...waits) <= 300, `${waits}`);
    t.mock.timers.reset();
  }
});

/**
 * How long trivial code of other accounts waits, in milliseconds, one run a second, beside a thread whose runs compute for 5 s each. Of
 * the time each run that computes has its part, and it makes way when it is told to.
 *
 * @param {{ tick: (ms: number) => void }} clock
 * @param {Admission} admission
 * @param {boolean} inside   whether the runs were started by a run
 */
async function neighbours(clock, admission, inside) {
  const outer = await admission.enter("outer", 16 * MIB, [], never, { owner: "many" });
  assert.ok(typeof outer !== "string");
  admission.idle(outer, 2 * MIB);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const over = { now: false };
  const computing = new Set();
  const one = async (/** @type {number} */ at) => {
    const place = await admission.enter(`many ${at}`, 16 * MIB, inside ? ["outer"] : [], never, { owner: "many" });
    if (typeof place === "string") return;
    let left = 5000;
    computing.add(place);
    while (left > 0 && !over.now) {
      const started = Date.now();
      await turn();
      left -= (Date.now() - started) / computing.size;
      admission.renew(place);
      if (!admission.yields(place)) continue;
      computing.delete(place);
      admission.idle(place, 2 * MIB);
      if (!(await admission.busy(place, never))) return;
      computing.add(place);
    }
    computing.delete(place);
    admission.leave(place);
  };
  const all = Array.from({ length: 200 }, (_, at) => one(at));
  /** @type {number[]} */
  const waits = [];
  for (let ms = 0; ms < 21_000; ms += 10) {
    if (ms % 1000 === 500) {
      const asked = Date.now();
      void admission.enter(`other ${ms}`, 16 * MIB, [], never, { owner: `other ${ms}` }).then((place) => {
        waits.push(Date.now() - asked);
        if (typeof place !== "string") admission.leave(place);
      });
    }
    clock.tick(10);
    admission.renew(outer);
    await turn();
  }
  over.now = true;
  for (let at = 0; at < 40; at++) {
    clock.tick(1000);
    await turn();
  }
  await Promise.all(all);
  return waits;
}

test("runs that there are at once have bounds, and are refused in words beyond them", async () => {
  const { admission } = room({ runs: { parent: 3, owner: 4, account: 6 } });
  const gone = new Promise((resolve) => setTimeout(resolve, 50));
  /** @type {(string | object)[]} */
  const came = [];
  const start = (/** @type {string} */ id, /** @type {string[]} */ ancestors, /** @type {string} */ owner) =>
    admission.enter(id, 30, ancestors, gone, { owner, account: "all" }).then((place) => came.push(place));
  await start("outer", [], "one");
  for (let at = 0; at < 4; at++) void start(`inner ${at}`, ["outer"], "one");
  for (let at = 0; at < 3; at++) void start(`other ${at}`, [], "two");
  await sleep(5);
  const refused = came.filter((place) => typeof place === "string");
  assert.deepEqual(refused.map((text) => /full: (.*) at once/.exec(String(text))?.[1]), [
    "the run that started it has 3 runs of code",
    "its account has 6 runs of code",
  ]);
});

// In the real runtime.

const server = isolateServer();

contract("runs beyond the budget wait, and each gets its turn", async (engine) => {
  const runs = await Promise.all(Array.from({ length: 4 }, () => server.start("await hold(); export default 1", { engine, memory: 32 * MIB, globals: { hold: () => sleep(150) } })));
  const results = await Promise.all(runs.map(({ result }) => result));
  assert.deepEqual(results.map(({ status }) => status), ["success", "success", "success", "success"]);
}, ["memory"]);

contract("terminate settles a run that waits", async (engine) => {
  const full = "const all = new Uint8Array(60e6).fill(1); await new Promise(() => {}); export default all.length";
  const holding = await server.start(full, { engine, memory: 64 * MIB });
  await sleep(200);
  const waiting = await server.start("export default 1", { engine, memory: 64 * MIB });
  await sleep(50);
  waiting.terminate("not any more");
  const { status, error, settleMs } = await waiting.result;
  assert.deepEqual([status, error.message], ["terminated", "not any more"]);
  assert.ok(Number(settleMs) < 500);
  holding.terminate();
  await holding.result;
}, ["memory"]);

contract("a run inside of a run does not wait for it; what can never have room is terminated at once", async (engine) => {
  const inner = (/** @type {number} */ memory) => async () => {
    const { status, value, error } = await server.run("export default 'inner'", { engine, memory, ancestors: ["outer"] });
    return status === "success" ? value : `${status}: ${error.message}`;
  };
  const globals = { small: inner(32 * MIB), large: inner(64 * MIB) };
  const others = await Promise.all(Array.from({ length: 10 }, (_, at) => server.start("await new Promise(() => {}); export default 1", { engine, memory: 16 * MIB, caller: `other ${at}` })));
  const value = await server.value("export default [await small(), await large()]", { engine, id: "outer", memory: 64 * MIB, globals });
  assert.deepEqual(value, ["inner", "inner"]);
  for (const other of others) other.terminate();
  await Promise.all(others.map(({ result }) => result));
}, ["memory"]);

contract("runs that wait for ever keep nobody out, and neither do those that never wait", async (engine) => {
  for (const source of ["await new Promise(() => {}); export default 1", "for (;;);"]) {
    const held = await Promise.all(Array.from({ length: 12 }, () => server.start(source, { engine, memory: 16 * MIB, caller: "greedy" })));
    await sleep(50);
    assert.equal(await server.value("export default 1", { engine, caller: "neighbour" }), 1, source);
    for (const one of held) one.terminate();
    for (const one of held) assert.equal((await one.result).status, "terminated");
  }
}, ["memory", "ending"]);

contract("a hundred runs of one thread that never wait, and have waited long, keep nobody out", async (engine) => {
  const held = await Promise.all(Array.from({ length: 100 }, () => server.start("for (;;);", { engine, memory: 16 * MIB, caller: "greedy" })));
  // Those that wait have waited for as long as makes them come first.
  await sleep(2500);
  const asked = Date.now();
  for (let at = 0; at < 5; at++) assert.equal(await server.value("export default 1", { engine, caller: `neighbour ${at}` }), 1);
  const waited = (Date.now() - asked) / 5;
  console.log(`  ${engine}: beside a hundred runs of another one, trivial code takes ${Math.round(waited)} ms`);
  assert.ok(waited < 2000, `${waited} ms`);
  for (const one of held) one.terminate();
  for (const one of held) assert.equal((await one.result).status, "terminated");
}, ["memory", "ending"]);

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
