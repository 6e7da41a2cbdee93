// Stands in for the isolate Worker while `npm start` compiles it for the first time.

import { WorkerEntrypoint } from "cloudflare:workers";

const MESSAGE = "The sandbox is still being compiled, once after the first start. Nothing has run: try again in a minute";

/** @extends {WorkerEntrypoint<unknown>} */
export class Isolate extends WorkerEntrypoint {
  /**
   * Refuses a request.
   *
   * @param {unknown} _request
   * @param {Partial<Disposable>} door
   * @returns {import("./wire.js").Outcome}
   */
  run(_request, door) {
    door[Symbol.dispose]?.();
    return { status: "terminated", error: { name: "Terminated", message: MESSAGE }, logs: [], durationMs: 0 };
  }
}

export default {
  fetch: () => new Response(null, { status: 404 }),
};
