// What an engine offers beyond ECMAScript, and what makes code of text, is taken away before code of the caller runs.

import * as i from "./intrinsics.js";

/** Names that are no part of the language, or that a sandbox must not have. */
const FOREIGN = [
  ...["SharedArrayBuffer", "Atomics", "queueMicrotask", "performance", "DOMException", "btoa", "atob"],
  ...["InternalError", "escape", "unescape", "print", "console", "navigator", "scriptArgs", "gc", "std", "os", "bjson"],
];

export function harden() {
  // Ordinary functions, async ones, generators and async generators each have a constructor that compiles text.
  const kinds = [
    ["Function", Function.prototype],
    ["AsyncFunction", Object.getPrototypeOf(async () => {})],
    ["GeneratorFunction", Object.getPrototypeOf(function* () {})],
    ["AsyncGeneratorFunction", Object.getPrototypeOf(async function* () {})],
  ];
  for (const [name, prototype] of kinds) {
    const Refusing = refusing(name, "new " + name + "()");
    i.fix(Refusing, "prototype", prototype);
    i.fix(prototype, "constructor", Refusing);
    if (name === "Function") replace("Function", Refusing);
    // As in the language: these are subclasses of Function.
    else i.setPrototypeOf(Refusing, globalThis.Function);
  }
  replace("eval", refusing("eval", "eval()"));
  for (const name of FOREIGN) i.deleteProperty(globalThis, name);
  // A hook that is called with the frames of every error, those of this harness among them.
  i.deleteProperty(Error, "prepareStackTrace");
}

/** @param {string} name @param {string} what */
function refusing(name, what) {
  const refuse = function () {
    throw new i.EvalErrors(what + " is not available here: code cannot be made of text");
  };
  i.fix(refuse, "name", name);
  return refuse;
}

/** @param {string} name @param {unknown} value */
function replace(name, value) {
  i.defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
}
