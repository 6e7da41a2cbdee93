// Wraps the deployed Worker in a watch: it counts durable writes of the objects, sets their clock ahead, and drops an
// object at the write that a test names. The Worker does not notice.

import { RpcTarget } from "cloudflare:workers";
import { DROPPED, RUN, nowOf, scopes } from "./scope.js";
import { argumentOf, packed } from "./packed.js";
import { drop, watch } from "./storage.js";
import * as worker from "./worker.js";

/** @typedef {import("./scope.js").Run} Run */
/** @typedef {import("./scope.js").Scope} Scope */

/** @type {Map<string, Run>} */
const runs = new Map();

/** The run of objects whose run is over. @type {Run} */
const ENDED = { id: "", ahead: 0, dropAt: 0, stubbed: {}, writes: [], drop: undefined, alarms: new Map(), objects: new Set(), log: [], over: true };

/** The kinds of objects by their bindings. */
const KINDS = { THREADS: "thread", DIRECTORY: "directory", MEMORY: "memory" };

/** Returns a namespace whose objects belong to one run. @param {any} objects @param {string} id */
const named = (objects, id) => ({
  getByName(/** @type {string} */ name) {
    if (scopes.getStore()?.life.dead) throw new Error(DROPPED);
    return objects.getByName(`${id}/${name}`);
  },
});

/** Passes on requests of code in the isolate, in the scope of the object that runs it. */
class Door extends RpcTarget {
  #door;
  #scope;

  /** @param {any} door @param {Scope} scope */
  constructor(door, scope) {
    super();
    this.#door = door;
    this.#scope = scope;
  }

  /** @param {unknown[]} call */
  call(...call) {
    return scopes.run(this.#scope, () => this.#door.call(...call));
  }
  /** @param {unknown[]} report */
  report(...report) {
    return scopes.run(this.#scope, () => this.#door.report(...report));
  }
  ended() {
    return scopes.run(this.#scope, () => this.#door.ended());
  }
}

/** Returns the file of code that runs. The harness imports it. @param {any} request */
const fileOf = ({ source, filename }) => /^import handler from "\.\/([^"]+)"/m.exec(source)?.[1] ?? filename;

/**
 * Runs code in the isolate, unless it is a tool's code and the case has a stub for the tool.
 * @param {any} isolate @param {Scope} scope @param {any} request @param {any} door
 */
async function runCode(isolate, scope, request, door) {
  const by = fileOf(request);
  const name = scope.run.stubbed[by];
  if (name !== undefined) {
    const body = JSON.stringify({ name, args: argumentOf(request.values.text) });
    const answer = await fetch("http://tools.bobbin.test/", { method: "POST", headers: { "content-type": "application/json" }, body });
    const { result } = /** @type {any} */ (await answer.json());
    if (result !== undefined) return { status: "success", value: { text: packed(result), bytes: [] }, logs: [], durationMs: 0 };
  }
  return isolate.run({ ...request, testAhead: scope.run.ahead }, new Door(door, { ...scope, by }));
}

/** Returns the bindings as one run sees them. @param {any} env @param {Run} run */
function bound(env, run) {
  const objects = Object.keys(KINDS).map((name) => [name, named(env[name], run.id)]);
  const isolate = {
    run(/** @type {any} */ request, /** @type {unknown} */ door) {
      const scope = scopes.getStore();
      if (scope === undefined) return env.ISOLATE.run(request, door);
      return runCode(env.ISOLATE, scope, request, door);
    },
  };
  return { ...env, ...Object.fromEntries(objects), ISOLATE: isolate };
}

/** @param {any} Real @param {string} kind */
const watched = (Real, kind) =>
  class extends Real {
    /** @param {any} ctx @param {any} env */
    constructor(ctx, env) {
      const [id = "", ...name] = String(ctx.id.name).split("/");
      const run = runs.get(id) ?? ENDED;
      /** @type {Scope} */
      const scope = { run, object: `${kind} ${name.join("/")}`, by: undefined, life: { dead: false } };
      run.objects.add(scope.object);
      const storage = watch(ctx, scope);
      scopes.run(scope, () => super(ctx, bound(env, run)));
      this.test = { scope, storage };
    }

    /** @param {string} json */
    call(json) {
      return this.#enter(() => super.call(json));
    }
    /** @param {Request} request */
    fetch(request) {
      return this.#enter(() => super.fetch(request));
    }
    /** @param {unknown} info */
    async alarm(info) {
      const { run, object } = this.test.scope;
      if (run.over) return;
      run.alarms.delete(object);
      await this.#enter(() => super.alarm(info));
    }

    /** Called when the run's clock was set ahead. */
    rearm() {
      return this.test.storage.rearm();
    }
    dropNow() {
      drop(this.ctx, this.test.scope);
    }

    /** @param {() => any} work */
    async #enter(work) {
      const { scope } = this.test;
      if (scope.life.dead) throw new Error(DROPPED);
      const answer = await scopes.run(scope, work);
      if (scope.life.dead) throw new Error(DROPPED);
      return answer;
    }
  };

export const ThreadObject = watched(worker.ThreadObject, "thread");
export const DirectoryObject = watched(worker.DirectoryObject, "directory");
export const MemoryObject = watched(worker.MemoryObject, "memory");

/** Returns an object of a run by kind and name. @param {any} env @param {Run} run @param {string} object */
function objectOf(env, run, object) {
  const [kind, ...name] = object.split(" ");
  const [binding = ""] = Object.entries(KINDS).find(([, of]) => of === kind) ?? [];
  return env[binding].getByName(`${run.id}/${name.join(" ")}`);
}

/** Requests from the runner to the watch. @type {Record<string, (run: Run, asked: any, env: any) => unknown>} */
const ASKED = {
  look: (run) => ({ ...run, alarms: Object.fromEntries(run.alarms), objects: [...run.objects], now: nowOf(run) }),
  /** Sets the clock ahead to at least `to`. */
  async ahead(run, { to }, env) {
    run.ahead += Math.max(0, to - nowOf(run));
    await Promise.all([...run.alarms.keys()].map((object) => objectOf(env, run, object).rearm()));
    return {};
  },
  async drop(run, { object }, env) {
    run.drop = { object, write: run.writes.length, did: "", at: nowOf(run) - run.ahead };
    await objectOf(env, run, object).dropNow();
    return {};
  },
  end(run) {
    run.over = true;
    runs.delete(run.id);
    return {};
  },
};

export default {
  /** @param {Request} request @param {any} env @param {any} ctx */
  async fetch(request, env, ctx) {
    const id = request.headers.get(RUN) ?? "";
    const [, place, what = ""] = new URL(request.url).pathname.split("/");
    if (place === "test" && what === "begin") {
      const { dropAt, stubbed } = /** @type {any} */ (await request.json());
      runs.set(id, { id, ahead: 0, dropAt, stubbed, writes: [], drop: undefined, alarms: new Map(), objects: new Set(), log: [], over: false });
      return Response.json({});
    }
    const run = runs.get(id);
    if (run === undefined) return Response.json({ error: { code: "not_found", message: `There is no run “${id}”.` } }, { status: 404 });
    if (place === "test") {
      const asked = request.method === "POST" ? await request.json() : {};
      return Response.json(await ASKED[what]?.(run, asked, env));
    }
    const scope = { run, object: "the Worker", by: undefined, life: { dead: false } };
    return scopes.run(scope, () => worker.default.fetch(request, bound(env, run), ctx));
  },
};
