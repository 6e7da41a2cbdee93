// The isolate Worker runs untrusted code for threads, which reach it through a service binding. It has no bindings that
// such code could misuse, and shares nothing between runs but the cache of compiled code.

import { WorkerEntrypoint } from "cloudflare:workers";
import { Admission, FULL } from "./admission.js";
import { compile } from "./compile.js";
import { Stopped } from "./engines/machine.js";
import { QuickJsSandbox } from "./engines/quickjs.js";
import { V8Sandbox } from "./engines/v8.js";
import { failure } from "./failure.js";
import { Run } from "./run.js";
import { MEMORY_CEILING, MEMORY_FLOOR } from "./wire.js";

/**
 * @typedef {import("./wire.js").Request} Request
 * @typedef {import("./wire.js").Outcome} Outcome
 * @typedef {import("./wire.js").Door} Door
 *
 * @typedef {{ LOADER?: import("./engines/v8.js").Loader }} Env
 */

/** The limits on Workers of the engine `v8` at once in one isolate, and the reserve for nested runs. */
const WORKERS = { budget: 32, reserve: 16, share: 24 };

/** The runs of this isolate: those whose heaps share its memory, and those with a Worker of their own. @type {Set<string>} */
const running = new Set();
const heaps = new Admission({ running });
const workers = new Admission({ ...WORKERS, running });

/** @extends {WorkerEntrypoint<Env>} */
export class Isolate extends WorkerEntrypoint {
  /**
   * Runs a request. Never rejects because of anything that the code does.
   *
   * @param {Request} request
   * @param {Door & { dup?: () => Door } & Partial<Disposable>} door
   * @returns {Promise<Outcome>}
   */
  run(request, door) {
    // The stub from the arguments ends with this call, but its functions may be called later.
    const kept = /** @type {Door & Partial<Disposable>} */ (door.dup?.() ?? door);
    if (kept !== door) door[Symbol.dispose]?.();
    const run = new Run(kept);
    kept.ended().then(
      (ended) => run.end(ended?.reason),
      () => run.end(undefined),
    );
    run.over.then(() => kept[Symbol.dispose]?.());
    runIn(run, request, this.env).catch((error) => run.settle("error", { error: { name: "Error", message: `The engine failed: ${error}` } }));
    return run.outcome;
  }
}

/** @param {Run} run @param {Request} request @param {Env} env */
async function runIn(run, request, env) {
  const wrong = refusal(request, env);
  if (wrong !== undefined) return run.settle("link_error", { error: { name: "InvalidOptions", message: wrong } });
  const memory = Math.min(Math.max(Math.floor(request.memoryLimitBytes), MEMORY_FLOOR), MEMORY_CEILING);
  // Each Worker of the engine `v8` has its own memory, so only their number counts.
  const [rooms, size] = request.engine === "v8" ? [workers, 1] : [heaps, memory];
  const end = (/** @type {string} */ reason) => run.end(reason);
  const { owner, account } = request;
  const place = await rooms.enter(request.id, size, request.ancestors, run.over, { owner, account, end });
  if (run.settled) {
    if (typeof place !== "string") rooms.leave(place);
    return;
  }
  if (typeof place === "string") return run.settle("terminated", { error: { name: "Terminated", message: place } });
  const renewed = rooms.renewing(place);
  run.over.then(() => {
    renewed();
    rooms.leave(place);
  });

  run.begin();
  const compiled = await compile(request, () => run.settled, run.over);
  if (run.settled) return;
  if ("error" in compiled) return run.settle("link_error", { error: compiled.error });
  const { program } = compiled;
  run.program(program);
  /** @type {import("./engines/quickjs.js").Listener} */
  const listener = {
    onMessage: run.onMessage.bind(run),
    stopped: (stopped) => stop(run, stopped, request, memory),
    unlinked: (error) => run.settle("link_error", { error: failure(error, program) }),
    computes: async () => {
      if (!(await rooms.busy(place, run.over))) run.end(FULL);
    },
    waits: (bytes) => rooms.idle(place, bytes),
    turned: async (bytes) => {
      if (!rooms.yields(place)) return;
      rooms.idle(place, bytes());
      if (!(await rooms.busy(place, run.over))) run.end(FULL);
    },
  };
  const sandbox =
    request.engine === "v8" && env.LOADER
      ? new V8Sandbox(env.LOADER, program, listener)
      : new QuickJsSandbox(program, { memory, fuel: request.fuel }, listener);
  run.start(sandbox, request);
}

/** The reason why a request cannot be run, as a message. @param {Request} request @param {Env} env */
function refusal({ engine, fuel }, env) {
  if (engine === "quickjs") return undefined;
  if (engine !== "v8") return `The engine “${engine}” is not here: this isolate has “quickjs” and “v8”`;
  if (!env.LOADER) return "The engine “v8” needs a Worker Loader: the binding LOADER of the isolate Worker, isolate/wrangler.toml";
  if (fuel !== null) return "fuel: the engine “v8” has no measure of it";
  return undefined;
}

/** @param {Run} run @param {Stopped} stopped @param {Request} request @param {number} memory */
function stop(run, stopped, request, memory) {
  switch (stopped.why) {
    case "memory": {
      if (request.engine === "v8") return run.settle("memory", { error: { name: "MemoryLimit", message: stopped.message } });
      const clamped = memory < request.memoryLimitBytes ? `, the most that a run can have (${request.memoryLimitBytes} were asked for)` : "";
      const message = `The code needs more memory than its limit of ${memory} bytes${clamped}`;
      return run.settle("memory", { error: { name: "MemoryLimit", message } });
    }
    case "lost":
      return run.settle("terminated", { error: { name: "Terminated", message: stopped.message } });
    case "fuel":
      return run.settle("terminated", { error: { name: "Terminated", message: `The code used up its fuel: ${request.fuel} rounds of loops` } });
    default:
      return run.settle("error", { error: { name: stopped.cause instanceof RangeError ? "RangeError" : "Error", message: stopped.message } });
  }
}

export default {
  /** Nothing is served here. */
  fetch: () => new Response(null, { status: 404 }),
};
