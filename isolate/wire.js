// The messages between a thread's object and the isolate Worker, and the types that the isolate's parts share.

/**
 * Packed values: a flat table as JSON text, with the contents of binary values beside it.
 *
 * @typedef {{ text: string, bytes: Uint8Array[] }} Packed
 */

/**
 * A request for a run. `values` is one packed object `{ args, globals, imports }`.
 *
 * @typedef {object} Request
 * @property {string} id               random, identifies this run
 * @property {string} owner            the thread that owns it: admission is fair between owners
 * @property {string} account          the owner's account: admission is fair between accounts
 * @property {string[]} ancestors      ids of the runs from inside which this one was started, outermost first
 * @property {"quickjs" | "v8"} engine
 * @property {string} source
 * @property {"typescript" | "javascript"} language
 * @property {"module" | "body"} form  of a body (isolate/compiler/src/body.rs), a result that cannot be copied is described in words
 * @property {string} filename
 * @property {string} fn               the export to run
 * @property {[string, string][]} modules        specifier and source
 * @property {number} memoryLimitBytes
 * @property {number | null} fuel                rounds of loops; null: no limit
 * @property {boolean} report                    whether the sandbox has the global `report`
 * @property {boolean} awaitsCalls              whether success waits for the calls that the code did not await
 * @property {Packed} values
 * @property {string[]} globals                  names in `values`
 * @property {[string, string[]][]} imports      specifiers, and names in `values`
 *
 * @typedef {{ value: Packed } | { error: Packed }} Answer
 *
 * Calls functions that the sandbox gave away: an RpcTarget. A holder that keeps it longer than a call must `dup` it.
 * @typedef {{ call(fn: number, args: Packed): Promise<Answer> }} Back
 *
 * The caller's side of a run. None of these rejects because of the called function. `back` is present once the sandbox has
 * given a function away.
 * @typedef {object} Door
 * @property {(fn: number, args: Packed, back?: Back) => Promise<Answer & { held?: number }>} call
 * @property {(answer: number) => Promise<void>} taken   the sandbox has taken the answer with this number in `held`
 * @property {(value: Packed, back?: Back) => Promise<void>} report
 * @property {() => Promise<{ reason: string } | null>} ended   resolves when the run is to end, or is no longer needed
 *
 * @typedef {"success" | "error" | "link_error" | "memory" | "terminated"} Status
 * @typedef {{ name: string, message: string, stack?: string, line?: number, column?: number, filename?: string, specifier?: string }} Failure
 * @typedef {{ level: string, args: Packed, timestamp: number }} Log
 *
 * @typedef {object} Outcome
 * @property {Status} status
 * @property {Packed} [value]
 * @property {Failure} [error]
 * @property {Log[]} logs
 * @property {true} [logsCut]
 * @property {number} durationMs
 * @property {Back} [functions]   when the sandbox gave functions away
 */

/**
 * A compiled module. `resolved` maps its specifiers. `moved` is present if columns of the code differ from those of the
 * source: from column `at` of a line on, they count from column `was`.
 * @typedef {{ name: string, code: string, resolved: [string, string][], moved?: [line: number, at: number, was: number][] }} Module
 *
 * The program that an engine links and runs; the main module comes first.
 *
 * @typedef {object} Program
 * @property {string} main             name of the main module
 * @property {string} fn
 * @property {import("./harness/pack.js").Manner} manner   how the result is copied
 * @property {"quickjs" | "v8"} engine
 * @property {Module[]} modules
 * @property {Map<string, string>} keys   for the engine `v8`: the keys of all modules, by name
 * @property {string[]} globals
 * @property {[string, string[]][]} imports
 * @property {(from: string, specifier: string) => { name: string } | { error: Failure }} resolve   finds the module for a specifier
 */

/** The limit on the logs of a run, in bytes of packed text. */
export const LOGS_BYTES = 1 << 20;
/** The limit on their entries. */
export const LOGS_ENTRIES = 1000;

/** UTF-16 units of a text that cross a machine's border in one piece: readable in a fraction of a millisecond. */
export const PIECE_UNITS = 1 << 16;
/** The same limit for a buffer, in bytes. */
export const PIECE_BYTES = 1 << 20;

/** The limits on a machine's memory: see docs/run-code.md. */
export const MEMORY_FLOOR = 1 << 20;
export const MEMORY_CEILING = 64 << 20;

/**
 * Frees the memory of copied contents. The engine would free it only at its next full collection, which comes late: this
 * isolate has few objects, and large contents do not hasten it.
 *
 * @param {Uint8Array[]} bytes
 */
export function release(bytes) {
  for (const { buffer } of bytes) {
    if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
  }
}

/** An error as a packed value. @param {string} name @param {string} message @returns {Packed} */
export const packedError = (name, message) => ({ text: JSON.stringify([[1], ["e", name, message, ""]]), bytes: [] });

/** `undefined` as a packed value. @type {Packed} */
export const PACKED_UNDEFINED = { text: '[["u"]]', bytes: [] };
