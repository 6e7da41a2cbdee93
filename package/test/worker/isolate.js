// Wraps the deployed isolate Worker, so that it uses the clock of the run.

import { scopes } from "./scope.js";
import worker, { Isolate as Real } from "./worker.js";

export class Isolate extends Real {
  /** @param {any} asked @param {any} door */
  run({ testAhead, ...request }, door) {
    const run = { id: "", ahead: testAhead ?? 0, dropAt: 0, stubbed: {}, writes: [], drop: undefined, alarms: new Map(), objects: new Set(), log: [], over: false };
    return scopes.run({ run, object: "the isolate", by: undefined, life: { dead: false } }, () => super.run(request, door));
  }
}

export default worker;
