// The compile step: turns TypeScript into ECMAScript and links the modules of a run (isolate/compiler, in Rust).
//
// A large or deeply nested source may take long to compile. So the instance has a meter, and is suspended and killed like
// an engine. An instance that trapped or was killed is dropped.

import { Answers } from "./answers.js";
import module from "./compiler.wasm";

/** Units of fuel between two checks of the clock. */
const SLICE = 10_000;
const TURN_MS = 8;
const TURN_SLICES = 64;
/** An instance that grew beyond this is dropped, because its memory never shrinks. */
const KEPT_BYTES = 32 << 20;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/**
 * @typedef {import("./wire.js").Failure} Failure
 * @typedef {import("./wire.js").Program} Program
 * @typedef {import("./wire.js").Request} Request
 */

/** The error for code that is nested too deeply. @type {Failure} */
const TOO_DEEP = { name: "SyntaxError", message: "The code is nested too deeply" };

/** What every program can import besides the caller's: for isolate/web/url.js. @type {[string, string[]]} */
const OWN_IMPORT = ["bobbin/url", ["urlParts"]];

class Compiler {
  /** @type {any} */
  #wasm;
  /** Whether the present call is no longer needed; undefined outside a suspendable call. @type {(() => boolean) | undefined} */
  #unwanted;
  #slices = 0;
  #wake = () => {};
  #turn = Date.now();
  #compile;

  constructor() {
    const wait = new /** @type {any} */ (WebAssembly).Suspending(this.#wait);
    this.#wasm = new WebAssembly.Instance(module, { fuel: { tick: this.#tick, wait } }).exports;
    this.#compile = /** @type {any} */ (WebAssembly).promising(this.#wasm.compile);
  }

  /**
   * @param {string} request             as JSON
   * @param {() => boolean} unwanted
   * @param {Promise<unknown>} over      resolves when the result is no longer needed
   * @returns {Promise<any>} rejects when the instance is lost
   */
  async compile(request, unwanted, over) {
    const { at, length } = this.#write(request);
    this.#unwanted = unwanted;
    // The timer belongs to the request. If the request ends, the instance must not stay suspended forever.
    over.then(() => this.#wake());
    this.#turn = Date.now();
    this.#slices = 0;
    this.#wasm.fuel.value = SLICE;
    try {
      return this.#read(await this.#compile(at, length), at, length);
    } finally {
      this.#unwanted = undefined;
    }
  }

  /** @param {object} request */
  resolve(request) {
    const { at, length } = this.#write(JSON.stringify(request));
    return this.#read(this.#wasm.resolve(at, length), at, length);
  }

  get bytes() {
    return this.#wasm.memory.buffer.byteLength;
  }

  #tick = () => {
    this.#wasm.fuel.value = SLICE;
    if (!this.#unwanted) return 0;
    this.#slices++;
    if (this.#unwanted()) return 1;
    return this.#slices >= TURN_SLICES || Date.now() - this.#turn >= TURN_MS ? 2 : 0;
  };

  #wait = async () => {
    await new Promise((resolve) => {
      this.#wake = () => resolve(undefined);
      setTimeout(resolve, 0);
    });
    this.#slices = 0;
    this.#turn = Date.now();
    return this.#unwanted?.() ? 1 : 0;
  };

  /** @param {string} request */
  #write(request) {
    const bytes = encoder.encode(request);
    const at = this.#wasm.alloc(bytes.length);
    if (at === 0) throw new Error("the compiler has no memory left");
    new Uint8Array(this.#wasm.memory.buffer, at, bytes.length).set(bytes);
    return { at, length: bytes.length };
  }

  /** @param {bigint} packed @param {number} at @param {number} length of the request, which is freed */
  #read(packed, at, length) {
    const answer = BigInt.asUintN(64, packed);
    const from = Number(answer >> 32n);
    const bytes = Number(answer & 0xffffffffn);
    const text = decoder.decode(new Uint8Array(this.#wasm.memory.buffer, from, bytes));
    this.#wasm.dealloc(from, bytes);
    this.#wasm.dealloc(at, length);
    return JSON.parse(text);
  }
}

const answers = new Answers();

/** An instance that is not in use. @type {Compiler | undefined} */
let idle;

function take() {
  const compiler = idle ?? new Compiler();
  idle = undefined;
  return compiler;
}

/** @param {Compiler} compiler */
function giveBack(compiler) {
  if (compiler.bytes <= KEPT_BYTES) idle = compiler;
}

/**
 * @param {Request} request
 * @param {() => boolean} unwanted   whether the run has ended
 * @param {Promise<unknown>} over    resolves when the run ends
 * @returns {Promise<{ program: Program } | { error: Failure }>}
 */
export async function compile(request, unwanted, over) {
  const { filename, language, form, fn, engine } = request;
  const imports = [...request.imports, OWN_IMPORT];
  const globals = globalNames(request);
  const broken = brokenName(request);
  if (broken) return { error: { name: "InvalidOptions", message: `${broken}: half of a surrogate pair is no part of a name` } };
  // Lone surrogates become what they would be in a file.
  const source = request.source.toWellFormed();
  const modules = request.modules.map(([specifier, text]) => [specifier, text.toWellFormed()]);
  const main = { filename, source, language, form };
  // Whether the export exists is checked after the modules are evaluated, so `fn` is empty (§13.5 of the specification).
  const links = engine === "v8" ? "keyed" : "written";
  const asked = JSON.stringify({ main, modules, imports: Object.fromEntries(imports), globals, fn: "", links });
  const answer = await answers.of(asked, () => answerTo(asked, filename, unwanted, over));
  if ("error" in answer) return answer;

  /** @type {Map<string, Map<string, string>>} */
  const resolved = new Map();
  for (const module of answer.modules) resolved.set(module.name, new Map(module.resolved));
  const names = answer.modules.slice(1).map((/** @type {{ name: string }} */ module) => module.name);
  /** @type {Program["resolve"]} */
  const resolve = (from, specifier) => {
    const known = resolved.get(from)?.get(specifier);
    if (known !== undefined) return { name: known };
    const resolver = take();
    const asked = { main: filename, modules: names, imports: imports.map(([name]) => name), from };
    const found = resolver.resolve({ ...asked, specifier: specifier.toWellFormed() });
    giveBack(resolver);
    return found;
  };
  const keys = new Map(answer.keys);
  const manner = form === "body" ? "told" : "strict";
  return { program: { engine, main: filename, fn, manner, modules: answer.modules, keys, globals, imports, resolve } };
}

/** @param {string} asked @param {string} filename @param {() => boolean} unwanted @param {Promise<unknown>} over @returns {Promise<any>} */
async function answerTo(asked, filename, unwanted, over) {
  const compiler = take();
  try {
    const answer = await compiler.compile(asked, unwanted, over);
    giveBack(compiler);
    return answer;
  } catch {
    if (unwanted()) return { error: { name: "Terminated", message: "" } };
    // The compiler reports all other errors itself. Only exhausting its own stack kills it.
    return { error: { ...TOO_DEEP, filename } };
  }
}

/** The option with a name that is not well-formed Unicode. @param {Request} request */
function brokenName({ filename, fn, modules, globals, imports }) {
  const names = { filename: [filename], "execute.fn": [fn], modules: modules.map(([specifier]) => specifier), globals, imports: imports.flat(2) };
  return Object.entries(names).find(([, texts]) => texts.some((text) => !text.isWellFormed()))?.[0];
}

/** The names at module scope: those of the caller, always `console`, and `report` if it is wanted. @param {Request} request */
function globalNames({ globals, report }) {
  return [...new Set([...globals, "console", ...(report ? ["report"] : [])])];
}
