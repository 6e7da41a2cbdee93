// The sandbox of the engine `v8`: the main module of a Worker that the platform creates for one run, without bindings and
// without network. Its other modules are those of the caller, and `entry`, `globals`, `imports` and `h0`, `h1`, …, which
// take their exports from `sandbox-values` (isolate/engines/v8.js). None of them is evaluated before `run` is called.
//
// Messages are sent in batches. A module may not reach out of its Worker during its evaluation, so nothing is sent before
// all modules are evaluated.

import { WorkerEntrypoint } from "cloudflare:workers";
// In a separate module, because every export of this one would be an entrypoint.
import { fill } from "sandbox-values";
import { LOGS_BYTES, LOGS_ENTRIES } from "../wire.js";
import { start } from "./index.js";
import * as i from "./intrinsics.js";
import { urlParts } from "./url.js";

/**
 * @typedef {{ kind: string, a: number | string, b: number, text: string, buffers: ArrayBuffer[] }} FromSandbox
 * @typedef {{ kind: "settle" | "invoke" | "resolved" | "turned" | "over", a: number, b: number, text: string, bytes: Uint8Array[] }} ToSandbox
 *
 * @typedef {object} Isolate
 * @property {(messages: FromSandbox[]) => Promise<void>} onMessage
 * @property {() => Promise<ToSandbox[]>} nextMessages      resolves when there are messages
 *
 * @typedef {object} Start
 * @property {boolean} reports
 * @property {string} text
 * @property {Uint8Array[]} bytes
 * @property {string} entry                    key of the module that provides the main module
 * @property {string} fn
 * @property {import("./pack.js").Manner} manner
 * @property {[string, [string, string][]][]} resolved   the key of a module, and the keys for its specifiers
 */

/** The maximum number of unhandled rejections to keep. */
const UNCAUGHT = 20;

/** The platform's error for a top-level await on something outside the module, and the message for the author. */
const UNSETTLED = "Top-level await in module is unsettled.";
const NO_WAITING = "the engine v8 does not wait at the top level of a module for anything outside of it: wait in a function that you export";

export class Sandbox extends WorkerEntrypoint {
  /** Runs a program to its end. @param {Start} program @param {Isolate} isolate */
  async run({ reports, text, bytes, entry, fn, manner, resolved }, isolate) {
    const outbox = new Messages();
    const send = limited((message) => outbox.add(message));
    // The platform reports rejections between turns of its event loop. After one round trip it has reported all of them.
    /** @type {import("./index.js").Uncaught} */
    const uncaught = (then) => {
      turned = () => then(reasonsOf(rejected));
      send("turn", 0, 0, "");
    };
    let turned = () => {};
    const run = start(send, uncaught, (asked) => urlParts(i.slice(asked, 0)));
    const links = new Links(resolved, send);
    /** @type {any} */
    let namespace;
    fill({
      global: run.global,
      imported: run.imported,
      importer: (/** @type {string} */ key, /** @type {string} */ name) => links.importer(key, name),
      evaluated: (/** @type {any} */ main) => (namespace = main),
    });
    try {
      handed(run.install, [reports, text], bytes);
      // Import the entry, not the caller's module, which may export a `then`.
      await import(entry);
      void run.run(namespace, fn, manner);
    } catch (error) {
      const waits = i.isError(error) && /** @type {any} */ (error).message === UNSETTLED;
      run.fail(waits ? new i.Errors(NO_WAITING) : error);
    }
    void outbox.sendTo(isolate);
    await listen(isolate, run, links, () => turned());
  }
}

/**
 * Processes the isolate's messages until `over`.
 *
 * @param {Isolate} isolate @param {ReturnType<typeof start>} run @param {Links} links @param {() => void} turned
 */
async function listen(isolate, run, links, turned) {
  for (;;) {
    const messages = await isolate.nextMessages();
    for (let at = 0; at < messages.length; at++) {
      const { kind, a, b, text, bytes } = /** @type {ToSandbox} */ (messages[at]);
      if (kind === "settle") handed(run.settle, [a, b === 1, text], bytes);
      else if (kind === "invoke") handed(run.invoke, [a, b, text], bytes);
      else if (kind === "resolved") links.settle(a, text);
      else if (kind === "turned") turned();
      else return;
    }
  }
}

/** Unhandled rejections: promises and their reasons. @type {Map<unknown, unknown>} */
const rejected = new i.Maps();
addEventListener("unhandledrejection", (event) => {
  if (i.mapSize(rejected) < UNCAUGHT) i.mapSet(rejected, event.promise, event.reason);
});
addEventListener("rejectionhandled", (event) => i.mapDelete(rejected, event.promise));

/** @param {Map<unknown, unknown>} promises */
function reasonsOf(promises) {
  const reasons = i.list();
  i.mapForEach(promises, (/** @type {unknown} */ reason) => (reasons[reasons.length] = reason));
  return reasons;
}

/** The outgoing messages, in order. */
class Messages {
  /** @type {FromSandbox[]} */
  #waiting = [];
  #wake = () => {};

  /** @param {FromSandbox} message */
  add(message) {
    i.put(this.#waiting, this.#waiting.length, message);
    this.#wake();
  }

  /** Resolves when there is a message. @returns {Promise<void>} */
  any() {
    return new i.Promises((resolve) => {
      this.#wake = () => resolve(undefined);
      if (this.#waiting.length > 0) resolve(undefined);
    });
  }

  /** Sends forever. @param {Isolate} isolate */
  async sendTo(isolate) {
    for (;;) {
      await this.any();
      const batch = this.#waiting;
      this.#waiting = [];
      // Not awaited: messages arrive in order.
      void this.#sent(isolate.onMessage(batch));
    }
  }

  /** @param {Promise<void>} sending */
  async #sent(sending) {
    try {
      await sending;
    } catch {
      // The isolate is gone, and nobody can receive the message. `listen` ends for the same reason.
    }
  }
}

/**
 * Enforces the limits on logs, with the isolate's count. The first entry that does not fit is sent without its text.
 *
 * @param {(message: FromSandbox) => void} add @returns {import("./outbox.js").Send}
 */
function limited(add) {
  let entries = 0;
  let left = LOGS_BYTES;
  return (kind, a, b, text, buffers = []) => {
    if (kind === "log") {
      const full = entries >= LOGS_ENTRIES || b > left;
      entries++;
      left -= b;
      add(full ? { kind, a, b, text: "", buffers: [] } : { kind, a, b, text, buffers: plain(buffers) });
      return full ? 0 : 1;
    }
    add({ kind, a, b, text, buffers: plain(buffers) });
    return 1;
  };
}

/** Implements `import` for the caller's modules. */
class Links {
  /** By key of a module: the keys for its specifiers. @type {Map<string, Map<string, string>>} */
  #known = new i.Maps();
  /** @type {Map<number, (text: string) => void>} */
  #asked = new i.Maps();
  #last = 0;
  #send;

  /** @param {Start["resolved"]} resolved @param {import("./outbox.js").Send} send */
  constructor(resolved, send) {
    this.#send = send;
    for (const [key, specifiers] of resolved) this.#known.set(key, new i.Maps(specifiers));
  }

  /** The function that replaces `import` in a module. @param {string} key @param {string} name */
  importer(key, name) {
    const known = i.mapGet(this.#known, key);
    const imports = async (/** @type {unknown} */ specifier) => {
      // Convert as the language does: ToString, which throws for a symbol.
      const text = i.slice(specifier, 0);
      return import(i.mapGet(known, text) ?? (await this.#ask(key, text)));
    };
    i.put(imports, "meta", { __proto__: null, url: "sandbox:" + name });
    return imports;
  }

  /** Asks the isolate for the key of a specifier. @param {string} from @param {string} specifier @returns {Promise<string>} */
  #ask(from, specifier) {
    return new i.Promises((resolve, reject) => {
      const id = ++this.#last;
      i.mapSet(this.#asked, id, (/** @type {string} */ answer) => {
        const { key, name, message } = i.parse(answer);
        if (key !== undefined) return resolve(key);
        const error = new i.Errors(message);
        i.put(error, "name", name);
        reject(error);
      });
      this.#send("resolve", id, 0, i.stringify([from, specifier]));
    });
  }

  /** @param {number} id @param {string} answer */
  settle(id, answer) {
    const asked = i.mapGet(this.#asked, id);
    i.mapDelete(this.#asked, id);
    asked(answer);
  }
}

/**
 * Copies a list into an ordinary array: only ordinary values can cross between Workers.
 *
 * @param {ArrayBuffer[]} list @returns {ArrayBuffer[]}
 */
function plain(list) {
  /** @type {ArrayBuffer[]} */
  const array = [];
  for (let at = 0; at < list.length; at++) i.put(array, at, list[at]);
  return array;
}

/**
 * Calls a function of the harness, with the contents copied into separate buffers.
 *
 * @param {Function} callee @param {unknown[]} args @param {Uint8Array[]} bytes
 */
function handed(callee, args, bytes) {
  for (let at = 0; at < bytes.length; at++) {
    const content = bytes[at];
    const offset = i.arrayOffset(content);
    i.put(args, args.length, i.copyOf(i.arrayBuffer(content), offset, i.arrayBytes(content)));
  }
  i.apply(callee, undefined, args);
}
