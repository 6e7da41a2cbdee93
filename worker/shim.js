// The JavaScript side of the Worker: classes the platform can construct and call, which forward to Rust.
//
// A class exported by wasm-bindgen cannot extend DurableObject and so cannot serve remote calls. These classes also
// outlive the wasm instance, which all objects of an isolate share. A panic unwinds and stays the error of its call. A
// trap (stack overflow, memory exhausted, `unreachable`) destroys the instance, and every call that waits in it, in any
// object, would wait forever. The guard below ends that wait: while calls are in flight it checks every 150 ms whether
// the instance is still the one they entered, and whether its executor still runs tasks.

import { DurableObject } from "cloudflare:workers";
import openapi from "bobbin-openapi";
import * as wasm from "bobbin-wasm";
import definitions from "./catalog.json";
import { inspected } from "./inspector.js";

/** An object if wrangler bundled a project's definitions, otherwise a text. */
const catalog = typeof definitions === "string" ? definitions : JSON.stringify(definitions);

const WATCH_MS = 150;
const LOST = "the wasm instance was lost";

// On the JavaScript side, so it outlives the instances that count themselves in it.
const state = wasm.instances();

/** The id of the present instance. Replaces a destroyed instance first. */
function instance() {
  wasm.instances();
  return state.instanceId;
}

/** Watches the calls in flight of one object, or of one request to the Worker. */
class Guard {
  #instance = instance();
  #inFlight = 0;
  #watching = false;
  /** Probes sent since the last answer. */
  #unanswered = 0;
  #onLost;

  /** @param {() => void} onLost ends the calls in flight */
  constructor(onLost) {
    this.#onLost = onLost;
  }

  get lost() {
    return this.#instance !== instance();
  }

  get idle() {
    return this.#inFlight === 0;
  }

  /** @template T @param {() => T} call @returns {Promise<Awaited<T>>} */
  async run(call) {
    this.#inFlight++;
    this.#watch();
    try {
      return await call();
    } catch (error) {
      // A trap in this very call: end the others in flight here now, not at the next check.
      if (this.lost) this.#onLost();
      throw error;
    } finally {
      this.#inFlight--;
    }
  }

  #watch() {
    if (this.#watching) return;
    this.#watching = true;
    setTimeout(() => {
      this.#watching = false;
      if (this.idle) return;
      // A call that the platform killed can leave the executor believing that it is about to run. One missed answer is not
      // enough: a panic in a task ahead of the probe delays it until the next one.
      if (this.#unanswered >= 2 && !this.lost) wasm.__wbg_reset_state();
      if (this.lost) return this.#onLost();
      this.#unanswered++;
      wasm.probe().then(
        () => (this.#unanswered = 0),
        () => {},
      );
      this.#watch();
    }, WATCH_MS);
  }
}

/** @param {import("bobbin-wasm").Constructor} Rust the class to forward to */
const forwarding = (Rust) =>
  class extends DurableObject {
    #rust;
    #guard;

    /** @param {DurableObjectState} ctx @param {unknown} env */
    constructor(ctx, env) {
      super(ctx, env);
      this.#guard = this.#newGuard();
      this.#rust = new Rust(ctx, env, catalog);
    }

    // Drops the object with its calls and its memory; the next event creates it again from its storage.
    #newGuard = () => new Guard(() => this.ctx.abort(LOST));

    /** @template T @param {(rust: import("bobbin-wasm").Entries) => T} call */
    #enter(call) {
      if (this.#guard.lost) {
        if (!this.#guard.idle) this.ctx.abort(LOST);
        // No call is in flight, so nobody needs to see an error: continue with a new Rust object from storage.
        this.#guard = this.#newGuard();
        this.#rust = new Rust(this.ctx, this.env, catalog);
      }
      return this.#guard.run(() => call(this.#rust));
    }

    /** @param {string} json the only remote call, between the Rust sides */
    call(json) {
      return this.#enter((rust) => rust.call(json));
    }
    /** @param {Request} request */
    fetch(request) {
      return this.#enter((rust) => rust.fetch(request));
    }
    /** @param {unknown} info */
    alarm(info) {
      return this.#enter((rust) => rust.alarm(info));
    }
    /** @param {WebSocket} socket @param {string | ArrayBuffer} message */
    webSocketMessage(socket, message) {
      return this.#enter((rust) => rust.webSocketMessage(socket, message));
    }
    /** @param {WebSocket} socket @param {number} code @param {string} reason @param {boolean} clean */
    webSocketClose(socket, code, reason, clean) {
      return this.#enter((rust) => rust.webSocketClose(socket, code, reason, clean));
    }
    /** @param {WebSocket} socket @param {unknown} error */
    webSocketError(socket, error) {
      return this.#enter((rust) => rust.webSocketError(socket, error));
    }
  };

/** The description of the HTTP API, which is public. @param {Request} request */
function described(request) {
  const headers = { "access-control-allow-origin": "*", "cache-control": "public, max-age=300", "content-type": "application/json" };
  if (request.method === "GET" || request.method === "HEAD") {
    return new Response(request.method === "GET" ? openapi : null, { headers });
  }
  const error = { code: "method_not_allowed", message: `${request.method} is not possible here.`, hint: "Allowed: GET." };
  return Response.json({ error }, { status: 405, headers: { allow: "GET" } });
}

export const ThreadObject = forwarding(wasm.ThreadObject);
export const DirectoryObject = forwarding(wasm.DirectoryObject);
export const MemoryObject = forwarding(wasm.MemoryObject);

export default {
  /** @param {Request} request @param {Record<string, string>} env @param {ExecutionContext} ctx */
  fetch(request, env, ctx) {
    if (request.url.endsWith("/openapi.json") && new URL(request.url).pathname === "/openapi.json") return described(request);
    const page = inspected(request, env);
    if (page) return page;
    return new Promise((resolve, reject) => {
      // A request has no object to abort; its client is asked to retry.
      const guard = new Guard(() =>
        resolve(
          Response.json(
            { error: { code: "overloaded", message: "The runtime had to restart.", hint: "Try again." } },
            { status: 503, headers: { "retry-after": "1" } },
          ),
        ),
      );
      guard.run(() => wasm.fetch(request, env, ctx, catalog)).then(resolve, reject);
    });
  },
};
