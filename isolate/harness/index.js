// The harness runs inside the sandbox, before and around the caller's code. All engines use the same source.
//
// It calls the isolate through one function, `send(kind, a, b, text, ...buffers)`, and is called through the functions it
// returns. The caller's code never gets either.

import * as i from "./intrinsics.js";
import { capture } from "./console.js";
import { harden } from "./harden.js";
import { errorNode, nameOf, pack, placed, textOf, traceOf } from "./pack.js";
import { Outbox } from "./outbox.js";
import { frozenDeep, unpack } from "./unpack.js";

/** @typedef {import("./outbox.js").Send} Send */

/** Passes the reasons of the unhandled rejections to `then`. @typedef {(then: (reasons: unknown[]) => void) => void} Uncaught */

/** @param {Send} send @param {Uncaught} uncaught @param {(asked: string) => string} urlParts   of url.js */
export function start(send, uncaught, urlParts) {
  harden();
  const outbox = new Outbox(send);

  /** Functions of the sandbox that were exported: by id, and their ids. */
  const given = new i.Maps();
  const givenIds = new i.Maps();
  let lastGiven = 0;
  const exported = (/** @type {Function} */ value) => {
    let id = i.mapGet(givenIds, value);
    if (id === undefined) {
      id = ++lastGiven;
      i.mapSet(givenIds, value, id);
      i.mapSet(given, id, value);
      if (id === 1) send("given", 0, 0, "");
    }
    return id;
  };

  /** A function of the other side. @param {number} id @param {string} name */
  const imported = (id, name) => {
    const made = (/** @type {unknown[]} */ ...args) =>
      new i.Promises((resolve, reject) => {
        const packed = pack(args, "args", "strict", exported);
        // An error of the other side has no stack here. It gets that of the call, which its reader looks for.
        const place = i.stackOf(new i.Errors());
        outbox.call(id, packed, (ok, value) => (ok ? resolve(value) : reject(i.isError(value) ? placed(value, place) : value)));
      });
    return i.freeze(i.hidden(made, name));
  };

  /** @type {{ args: unknown[], globals: any, imports: any }} */
  let values = { args: [], globals: {}, imports: {} };

  const log = capture(send, exported);
  /**
   * Sends the outcome, after logging the unhandled rejections. They do not change the outcome, but they matter to the author.
   * `error`: that of the outcome, which is not logged again.
   *
   * @param {string} status @param {string} text @param {ArrayBuffer[]} buffers @param {unknown} [error]
   */
  const done = (status, text, buffers, error) =>
    uncaught((reasons) => {
      for (let at = 0; at < reasons.length; at++) {
        if (error === undefined || !i.is(reasons[at], error)) log.error("Uncaught (in promise):", reasons[at]);
      }
      send("done", status, 0, text, buffers);
    });
  /** @param {string} status @param {any} error */
  const failed = (status, error) => done(status, failure(error), i.list(), error);

  return {
    /** Installs the caller's values. @param {boolean} reports @param {string} text @param {ArrayBuffer[]} buffers */
    install(reports, text, ...buffers) {
      values = unpack(text, buffers, imported);
      const { globals, imports } = values;
      if (!i.hasOwn(globals, "console")) i.put(globals, "console", log);
      if (reports && !i.hasOwn(globals, "report")) {
        const report = (/** @type {unknown} */ value) => outbox.report(pack(value, "report", "strict", exported));
        i.put(globals, "report", i.freeze(i.hidden(report, "report")));
      }
      i.put(imports, "bobbin/url", { __proto__: null, urlParts: i.hidden(urlParts, "urlParts") });
      const names = i.keys(imports);
      for (let at = 0; at < names.length; at++) frozenDeep(imports[/** @type {string} */ (names[at])]);
    },

    /** For the modules that the isolate makes. @param {string} name */
    global: (name) => values.globals[name],
    /** @param {string} specifier @param {string} name */
    imported: (specifier, name) => values.imports[specifier][name],

    /**
     * Runs the requested export; `namespace` is that of the main module.
     *
     * @param {any} namespace
     * @param {string} name
     * @param {import("./pack.js").Manner} manner   of its result
     */
    async run(namespace, name, manner) {
      let packed;
      try {
        if (!i.hasOwn(namespace, name)) {
          done("link_error", failureText("LinkError", 'export "' + name + '" not found', ""), i.list());
          return;
        }
        let value = namespace[name];
        if (typeof value === "function") value = i.apply(value, undefined, values.args);
        else if (values.args.length > 0) {
          throw new i.TypeErrors('export "' + name + '" is not a function, but arguments were given');
        }
        // `await` unwraps nested thenables.
        value = await value;
        packed = manner === "told" ? packedOrTold(value, exported) : pack(value, "result", "strict", exported);
      } catch (error) {
        failed("error", error);
        return;
      }
      // The result comes after all earlier reports.
      outbox.drained(() => done("success", packed.text, packed.buffers));
    },

    /** The evaluation of the modules failed. @param {any} error */
    fail: (error) => failed("error", error),

    /** Answers a call or a report. @param {number} id @param {boolean} ok @param {string} text @param {ArrayBuffer[]} buffers */
    settle(id, ok, text, ...buffers) {
      outbox.settle(id, (answer) => {
        let value;
        try {
          value = unpack(text, buffers, imported);
        } catch (error) {
          return answer(false, error);
        }
        answer(ok, value);
      });
    },

    /** Calls an exported function. @param {number} call @param {number} id @param {string} text @param {ArrayBuffer[]} buffers */
    async invoke(call, id, text, ...buffers) {
      try {
        const called = i.mapGet(given, id);
        if (called === undefined) throw new i.TypeErrors("the sandbox has no such function");
        const value = await i.apply(called, undefined, unpack(text, buffers, imported));
        const packed = pack(value, "result", "strict", exported);
        send("answer", call, 1, packed.text, packed.buffers);
      } catch (error) {
        const packed = thrown(error, exported);
        send("answer", call, 0, packed.text, packed.buffers);
      }
    },
  };
}

/**
 * Packs a result. Describes it like the console if it cannot be copied.
 *
 * @param {unknown} value @param {(value: Function) => number} exported
 */
function packedOrTold(value, exported) {
  try {
    return pack(value, "result", "strict", exported);
  } catch {
    return pack(value, "result", "told", exported);
  }
}

/** Packs a thrown value for the other side. @param {any} error @param {(value: Function) => number} exported */
function thrown(error, exported) {
  try {
    if (i.isError(error)) return { text: "[[1]," + errorNode(error, brief) + "]", buffers: i.list() };
    return pack(error, "error", "strict", exported);
  } catch {
    return { text: '[[1],["e","Error",' + brief(told(error)) + ',""]]', buffers: i.list() };
  }
}

/** Describes a thrown value for the outcome. @param {any} error */
function failure(error) {
  if (typeof error === "object" && error !== null && i.isError(error)) {
    return failureText(textOf(error, "name", "Error"), textOf(error, "message", ""), traceOf(error), makerOf(error));
  }
  return failureText("Error", told(error), "");
}

/** The name of an error's own class. The frames of its constructor are hidden. @param {any} error */
function makerOf(error) {
  try {
    const { constructor } = error;
    return typeof constructor === "function" && !i.hasOwn(i.errorKinds, constructor.name) ? nameOf(constructor) : "";
  } catch {
    return "";
  }
}

/**
 * Builds the text of a failure. Its length is limited, so that errors cannot carry much data.
 *
 * @param {string} name
 * @param {string} message
 * @param {string} stack
 * @param {string} [maker]
 */
function failureText(name, message, stack, maker = "") {
  return "[" + i.stringify(cut(name, 200)) + "," + brief(message) + "," + brief(stack) + "," + i.stringify(maker) + "]";
}

/** @param {string} text @param {number} units */
function cut(text, units) {
  return text.length > units ? i.slice(text, 0, units) + "…" : text;
}

/** A text of an error, shortened, as JSON. @param {string} text */
function brief(text) {
  return i.stringify(cut(text, 100_000));
}

/** Describes a value that is not an error. @param {any} value @returns {string} */
function told(value) {
  try {
    if (typeof value === "function") return "[Function: " + nameOf(value) + "]";
    if (typeof value !== "object" || value === null) return i.Strings(value);
    const { message } = value;
    return typeof message === "string" ? message : (i.stringify(value) ?? "an object");
  } catch {
    return "an object that cannot be shown";
  }
}
