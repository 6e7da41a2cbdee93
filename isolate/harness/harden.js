// Removes what an engine offers beyond ECMAScript, and what compiles text, before the caller's code runs.

import * as i from "./intrinsics.js";

/** The globals of a sandbox: the intrinsics of ECMAScript, without shared memory. All others are deleted. */
const INTRINSICS = [
  ...["globalThis", "Infinity", "NaN", "undefined", "eval", "isFinite", "isNaN", "parseFloat", "parseInt"],
  ...["decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "unescape"],
  ...["AggregateError", "Array", "ArrayBuffer"],
  ...["AsyncDisposableStack", "BigInt", "BigInt64Array", "BigUint64Array", "Boolean", "DataView", "Date", "DisposableStack"],
  ...["Error", "EvalError", "FinalizationRegistry", "Float16Array", "Float32Array", "Float64Array", "Function", "Int8Array"],
  ...["Int16Array", "Int32Array", "Intl", "Iterator", "JSON", "Map", "Math", "Number", "Object", "Promise", "Proxy"],
  ...["RangeError", "ReferenceError", "Reflect", "RegExp", "Set", "String", "SuppressedError", "Symbol", "SyntaxError"],
  ...["Temporal", "TypeError", "Uint8Array", "Uint8ClampedArray", "Uint16Array", "Uint32Array", "URIError", "WeakMap"],
  ...["WeakRef", "WeakSet"],
];

export function harden() {
  // Functions, async functions, generators and async generators each have a constructor that compiles text.
  const kinds = [
    ["Function", Function.prototype],
    ["AsyncFunction", Object.getPrototypeOf(async () => {})],
    ["GeneratorFunction", Object.getPrototypeOf(function* () {})],
    ["AsyncGeneratorFunction", Object.getPrototypeOf(async function* () {})],
  ];
  for (const [name, prototype] of kinds) {
    const Refusing = refusing(name, "new " + name + "()", prototype);
    i.fix(prototype, "constructor", Refusing);
    if (name === "Function") replace("Function", Refusing);
    // As in the language: these are subclasses of Function.
    else i.setPrototypeOf(Refusing, globalThis.Function);
  }
  replace("eval", refusing("eval", "eval()"));
  for (const name of i.ownKeys(globalThis)) {
    if (name !== Symbol.toStringTag && !INTRINSICS.includes(/** @type {string} */ (name))) i.deleteProperty(globalThis, name);
  }
  // The global object inherits the platform's own functions.
  i.setPrototypeOf(globalThis, Object.prototype);
  // Engines call this hook with the frames of every error, the harness's own included. Setting it has no effect.
  const [get, set] = [i.hidden(() => undefined, "get"), i.hidden(() => {}, "set")];
  i.defineProperty(Error, "prepareStackTrace", { get, set, enumerable: false, configurable: false });
}

/** @param {string} name @param {string} what @param {object} [prototype] */
function refusing(name, what, prototype) {
  const refuse = function () {
    throw new i.EvalErrors(what + " is not available here: code cannot be made of text");
  };
  const hidden = i.hidden(refuse, name);
  if (prototype) {
    i.fix(hidden, "prototype", prototype);
    // `instanceof` checks the function behind a bound one.
    i.fix(refuse, "prototype", prototype);
  }
  return hidden;
}

/** @param {string} name @param {unknown} value */
function replace(name, value) {
  i.defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
}
