// The isolate Worker: runs code that nobody has read, for the objects of threads, which reach it through a service
// binding. It has no bindings of its own that such code could want, and nothing of one run is kept for another.

import { WorkerEntrypoint } from "cloudflare:workers";
import { Admission } from "./admission.js";
import { compile } from "./compile.js";
import { Stopped } from "./engines/machine.js";
import { QuickJsSandbox } from "./engines/quickjs.js";
import { failure } from "./failure.js";
import { Run } from "./run.js";
import { MEMORY_CEILING, MEMORY_FLOOR } from "./wire.js";

/**
 * @typedef {import("./wire.js").Request} Request
 * @typedef {import("./wire.js").Outcome} Outcome
 * @typedef {import("./wire.js").Door} Door
 */

/** All runs of this isolate. */
const admission = new Admission();

export class Isolate extends WorkerEntrypoint {
  /**
   * Runs what is asked for. Never rejects for anything that the code does.
   *
   * @param {Request} request
   * @param {Door & { dup?: () => Door }} door
   * @returns {Promise<Outcome>}
   */
  run(request, door) {
    // The stub that came as an argument is gone when this call has returned; functions may be called after that.
    const kept = /** @type {Door & Partial<Disposable>} */ (door.dup?.() ?? door);
    const run = new Run(kept);
    kept.ended().then(
      (ended) => run.end(ended?.reason),
      () => run.end(undefined),
    );
    run.over.then(() => kept[Symbol.dispose]?.());
    runIn(run, request).catch((error) => run.settle("error", { error: { name: "Error", message: `The engine failed: ${error}` } }));
    return run.outcome;
  }
}

/** @param {Run} run @param {Request} request */
async function runIn(run, request) {
  if (request.engine !== "quickjs") {
    const message = `The engine “${request.engine}” is not here: this isolate has “quickjs”`;
    return run.settle("link_error", { error: { name: "InvalidOptions", message } });
  }
  const memory = Math.min(Math.max(Math.floor(request.memoryLimitBytes), MEMORY_FLOOR), MEMORY_CEILING);
  const place = await admission.enter(request.id, memory, request.ancestors, run.over);
  if (run.settled) {
    if (place) admission.leave(place);
    return;
  }
  if (!place) {
    const message = "sandbox full: the runs that this one was started from leave no room for it";
    return run.settle("terminated", { error: { name: "Terminated", message } });
  }
  const renewed = admission.renewing(place);
  run.over.then(() => {
    renewed();
    admission.leave(place);
  });

  run.begin();
  const compiled = await compile(request, () => run.settled, run.over);
  if (run.settled) return;
  if ("error" in compiled) return run.settle("link_error", { error: compiled.error });
  const { program } = compiled;
  run.program(program);
  const sandbox = new QuickJsSandbox(program, { memory, fuel: request.fuel }, {
    said: run.said.bind(run),
    stopped: (stopped) => stop(run, stopped, request, memory),
    unlinked: (error) => run.settle("link_error", { error: failure(error, program.modules) }),
  });
  run.start(sandbox, request);
}

/** @param {Run} run @param {Stopped} stopped @param {Request} request @param {number} memory */
function stop(run, stopped, request, memory) {
  switch (stopped.why) {
    case "memory": {
      const clamped = memory < request.memoryLimitBytes ? `, the most that a run can have (${request.memoryLimitBytes} were asked for)` : "";
      const message = `The code needs more memory than its limit of ${memory} bytes${clamped}`;
      return run.settle("memory", { error: { name: "MemoryLimit", message } });
    }
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
