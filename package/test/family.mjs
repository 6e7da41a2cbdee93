// The thread of a case and the threads below it: waits until they are idle, and reads their state.

import { setTimeout as sleep } from "node:timers/promises";
import { Refused } from "./api.mjs";
import { REAL } from "./catalog.mjs";

/** @typedef {import("./api.mjs").Api} Api */

/** The pause between two polls: the first, and the maximum. */
const LOOK_MS = [2, 25];
/** Updates that threads send to lists. No case waits for them. */
const NEWS = ["activity", "row"];

/** Information from outside the API: the threads, and the clock. @typedef {object} Watch
 * @property {(thread: string) => Promise<string[]>} threads   a thread and those below it
 * @property {() => Promise<{ alarms: Record<string, number>, now: number }>} look
 * @property {(to: number) => Promise<unknown>} ahead          sets the clock ahead
 */

/** The watch of our own machine. @param {Api} api @returns {Watch} */
export const watching = (api) => ({
  async threads() {
    const { objects } = await api.get("/test/look");
    return objects.flatMap((/** @type {string} */ object) => (object.startsWith("thread ") ? [object.slice("thread ".length)] : []));
  },
  look: () => api.get("/test/look"),
  ahead: (to) => api.post("/test/ahead", { to }),
});

/** The watch of a deployment. Its clock is shared and cannot be set. @param {Api} api @returns {Watch} */
export const outsideOf = (api) => ({
  async threads(thread) {
    const { subagents } = await api.get(`/api/threads/${thread}/subagents`);
    const below = await Promise.all(subagents.map((/** @type {any} */ one) => outsideOf(api).threads(one.id)));
    return [thread, ...below.flat()];
  },
  look: async () => ({ alarms: {}, now: Date.now() }),
  ahead: async () => Promise.reject(new Refused("on a deployment, time cannot be advanced", 0, "clock")),
});

export class Family {
  /** The case's own thread. */
  thread = "";
  #api;
  #watch;
  /** Threads that are not part of the case. @type {Set<string>} */
  #others = new Set();

  /** @param {Api} api @param {Watch} watch */
  constructor(api, watch) {
    this.#api = api;
    this.#watch = watch;
  }

  /** Excludes a thread that someone else created in the same run. @param {string} thread */
  leaveOut(thread) {
    this.#others.add(thread);
  }

  /** Resolves when nothing is in progress. Rejects on timeout. @param {number} until */
  async settle(until) {
    for (let [pause = 1, most = 1] = LOOK_MS; ; pause = Math.min(pause * 1.5, most)) {
      if (!(await this.#busy(until))) return;
      if (Date.now() + pause > until) throw new Refused("the threads did not come to rest in time", 0, "late");
      await sleep(pause);
    }
  }

  /** @param {number} until */
  async #busy(until) {
    const threads = await this.#threads();
    const states = await Promise.all(threads.map((id) => orNone(this.#api.get(`/api/threads/${id}/diagnostics`, { until }))));
    return states.some((state) => state !== undefined && isBusy(state)) || (await this.#threads()).length > threads.length;
  }

  async #threads() {
    const all = await this.#watch.threads(this.thread);
    return [this.thread, ...all.filter((id) => id !== this.thread && !this.#others.has(id))];
  }

  /** Moves the clock from alarm to alarm, so that everything happens at its time. @param {number} ms @param {number} until */
  async advance(ms, until) {
    const { now } = await this.#watch.look();
    const end = now + ms;
    for (;;) {
      const { alarms, now } = await this.#watch.look();
      const next = Math.min(...Object.entries(alarms).flatMap(([object, at]) => (object.startsWith("directory") ? [] : [at])));
      if (next > end) break;
      // Slightly after the alarm's time, so that the alarm is not early.
      if (next > now) await this.#watch.ahead(next + 1);
      await this.#passed(next, until);
      await this.settle(until);
    }
    await this.#watch.ahead(end);
    await this.settle(until);
  }

  /** Resolves when no alarm up to that time is left. @param {number} at @param {number} until */
  async #passed(at, until) {
    for (;;) {
      const { alarms } = await this.#watch.look();
      if (!Object.entries(alarms).some(([object, due]) => !object.startsWith("directory") && due <= at)) return;
      if (Date.now() > until) throw new Refused("an alarm did not go off in time", 0, "late");
      await sleep(LOOK_MS[0]);
    }
  }

  /** Describes what the case is waiting for. */
  async waitsFor() {
    const states = await Promise.all((await this.#threads()).map((id) => this.#api.get(`/api/threads/${id}/diagnostics`, { until: Date.now() + 2000 }).catch(() => undefined)));
    const busy = states.filter((state) => state !== undefined && isBusy(state));
    if (busy.length === 0) return "no thread responds";
    return busy.map((state) => `the thread is ${state.state}, ${doing(state)}`).join("; ");
  }

  /** @param {import("./expect.mjs").Seen["judge"]} judge @returns {Promise<import("./expect.mjs").Seen>} */
  async seen(judge) {
    /** @type {Promise<import("./expect.mjs").Called[]> | undefined} */
    let calls;
    return {
      run: await this.run(),
      calls: () => (calls ??= this.calls()),
      waits: () => this.waits(),
      cost: () => this.cost(),
      values: async () => (await this.left()).values,
      file: (path) => this.#api.text(`/api/threads/${this.thread}/fs${path.split("/").map(encodeURIComponent).join("/")}`),
      judge,
    };
  }

  /** Returns the last run of the case's thread. */
  async run() {
    const { runs } = await this.#api.get(`/api/threads/${this.thread}/runs?limit=1`);
    return runs.length === 0 ? undefined : this.#api.get(`/api/threads/${this.thread}/runs/${runs[0].run}`);
  }

  /** Returns the calls of all its threads, in order. @returns {Promise<import("./expect.mjs").Called[]>} */
  async calls() {
    const all = await Promise.all((await this.#threads()).map((id) => orNone(this.#callsOf(id))));
    return all.flatMap((calls) => calls ?? []).sort((a, b) => a.at - b.at);
  }

  /** @param {string} thread */
  async #callsOf(thread) {
    const rows = [];
    for (let more = true; more; ) {
      const { logs, hasMore } = await this.#api.get(`/api/threads/${thread}/logs?order=asc&limit=500&offset=${rows.length}`);
      rows.push(...logs);
      more = hasMore;
    }
    // A call of a real tool by its stub is the same call.
    const calls = rows.filter(({ type, tool_name: name }) => type === "tool_call" && !name.endsWith(REAL));
    return Promise.all(
      calls.map(async ({ id }) => {
        const { tool_name: tool, arguments: args, state, runs, tier, result, created_at: at } = await this.#api.get(`/api/threads/${thread}/logs/${id}`);
        return { tool, args: parsed(args), state, runs, tier, result, at };
      }),
    );
  }

  async waits() {
    const { waits } = await this.#api.get(`/api/threads/${this.thread}/waits?state=open&descendants=true`);
    return waits.map((/** @type {any} */ wait) => ({ id: wait.id, thread: wait.threadId, kind: wait.kind, tool: wait.call?.tool ?? "" }));
  }

  /** @returns {Promise<number>} USD, including the threads below */
  async cost() {
    return (await this.#api.get(`/api/threads/${this.thread}/cost`)).total.cost;
  }

  /** Returns the thread's values and files. */
  async left() {
    const [{ values }, { files }] = await Promise.all([
      this.#api.get(`/api/threads/${this.thread}/kv?limit=500`),
      this.#api.get(`/api/threads/${this.thread}/fs?find=**`),
    ]);
    return {
      values: Object.fromEntries(values.map((/** @type {any} */ one) => [one.key, one.value])),
      files: files.map((/** @type {any} */ file) => `${file.path} (${file.size} bytes)`).sort(),
    };
  }

  /** @returns {Promise<{ role: string, content: string, tool_calls: string | null }[]>} */
  async messages() {
    return (await this.#api.get(`/api/threads/${this.thread}/messages?limit=500`)).messages;
  }
}

/**
 * Returns the response about a thread, or nothing if a crash prevented its creation.
 * @template T @param {Promise<T>} asked @returns {Promise<T | undefined>}
 */
async function orNone(asked) {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof Refused && error.code === "thread_not_found") return undefined;
    throw error;
  }
}

/** @param {any} state   the diagnostics of a thread */
function isBusy({ state, phase, run, flow, queue, effects, due, now }) {
  if (flow.running || effects.running > 0) return true;
  if (run !== null && phase !== "ended" && !phase.startsWith("parked")) return state !== "stopped" && state !== "terminated";
  if (queue.waiting > 0 && state === "idle") return true;
  return due.some((/** @type {any} */ one) => (one.what === "outbox" ? !NEWS.includes(one.subject) : one.at <= now));
}

/** @param {any} state */
function doing({ phase, run, due, waitingReceipts, now }) {
  const later = due.filter((/** @type {any} */ one) => one.at > now).map((/** @type {any} */ one) => `${one.what} is due in ${Math.ceil((one.at - now) / 1e6)} s`);
  const receipts = waitingReceipts.map((/** @type {any} */ one) => `a call waits for the subagent ${one.subagent}`);
  const step = run === null ? [] : [`its run is in step ${run.step}, phase “${phase}”`];
  return [...step, ...receipts, ...later].join(", ");
}

/** @param {string | null | undefined} text */
function parsed(text) {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    return text;
  }
}
