// The intrinsics as they are before any code of the caller runs. That code may replace or poison every one of them
// (`Array.prototype.push = …`, a setter on `Array.prototype[0]`, `Object.prototype.toJSON`). The harness must still work,
// and must not leak anything to it. So the harness uses these, and no syntax that looks up methods: no `for…of`, no spread,
// no destructuring of arrays, no assignment to an index that an ordinary array does not have yet, and no templates, which
// QuickJS builds by calling `String.prototype.concat`.

const { bind, call } = Function.prototype;
/** Turns a method into a function of its object. @type {(method: Function) => (...args: any[]) => any} */
const uncurry = bind.bind(call);
const bindTo = uncurry(bind);
/** @param {object} object @param {PropertyKey} key */
const getterOf = (object, key) => uncurry(/** @type {any} */ (Reflect.getOwnPropertyDescriptor(object, key)).get);

export const { apply, ownKeys, getPrototypeOf, setPrototypeOf, defineProperty, deleteProperty } = Reflect;
export const { freeze, keys, hasOwn, is } = Object;
export const { isArray } = Array;
export const { isFinite, isInteger } = Number;
export const { stringify, parse } = JSON;
export const isError = /** @type {any} */ (Error).isError;
export const isView = ArrayBuffer.isView;
export const ObjectPrototype = Object.prototype;
export const now = Date.now;

// Constructors, under names that the caller's code cannot shadow.
export const Promises = Promise;
export const Maps = Map;
export const Sets = Set;
export const Dates = Date;
export const Patterns = RegExp;
export const Numbers = Number;
export const BigInts = BigInt;
export const Strings = String;
export const Errors = Error;
export const TypeErrors = TypeError;
export const EvalErrors = EvalError;
export const Buffers = ArrayBuffer;
export const Bytes = Uint8Array;
export const Views = DataView;

export const mapGet = uncurry(Map.prototype.get);
export const mapSet = uncurry(Map.prototype.set);
export const mapHas = uncurry(Map.prototype.has);
export const mapDelete = uncurry(Map.prototype.delete);
export const mapForEach = uncurry(Map.prototype.forEach);
export const mapSize = getterOf(Map.prototype, "size");
export const setAdd = uncurry(Set.prototype.add);
export const setForEach = uncurry(Set.prototype.forEach);
export const setSize = getterOf(Set.prototype, "size");
export const dateTime = uncurry(Date.prototype.getTime);
export const patternSource = getterOf(RegExp.prototype, "source");
/** The getter of each flag: the getter `flags` would look these up by name. */
const flagGetters = list();
for (const [letter, name] of Object.entries({
  ...{ d: "hasIndices", g: "global", i: "ignoreCase", m: "multiline" },
  ...{ s: "dotAll", u: "unicode", v: "unicodeSets", y: "sticky" },
})) {
  flagGetters[flagGetters.length] = { letter, getter: getterOf(RegExp.prototype, name) };
}

/** @param {unknown} pattern @returns {string} */
export function patternFlags(pattern) {
  let flags = "";
  for (let at = 0; at < flagGetters.length; at++) {
    const { letter, getter } = flagGetters[at];
    if (getter(pattern)) flags += letter;
  }
  return flags;
}

export const slice = uncurry(String.prototype.slice);
export const indexOf = uncurry(String.prototype.indexOf);
export const unitAt = uncurry(String.prototype.charCodeAt);
export const symbolText = uncurry(Symbol.prototype.toString);
const stackGetter = Reflect.getOwnPropertyDescriptor(Error.prototype, "stack")?.get;
/** The engine's stack of an error; engines store it in different places. @type {(error: any) => any} */
export const stackOf = stackGetter ? uncurry(stackGetter) : (error) => error.stack;

const TypedArrayPrototype = getPrototypeOf(Uint8Array.prototype);
/** The name of a typed array's kind; undefined for everything else. */
export const typedArrayKind = getterOf(/** @type {object} */ (TypedArrayPrototype), Symbol.toStringTag);
export const arrayBuffer = getterOf(/** @type {object} */ (TypedArrayPrototype), "buffer");
export const arrayOffset = getterOf(/** @type {object} */ (TypedArrayPrototype), "byteOffset");
export const arrayBytes = getterOf(/** @type {object} */ (TypedArrayPrototype), "byteLength");
export const viewBuffer = getterOf(DataView.prototype, "buffer");
export const viewOffset = getterOf(DataView.prototype, "byteOffset");
export const viewBytes = getterOf(DataView.prototype, "byteLength");
export const bufferBytes = getterOf(ArrayBuffer.prototype, "byteLength");

/**
 * Brand checks: getters that throw for any value of another kind, whatever its prototype. Typed arrays and errors have
 * better checks.
 */
export const kinds = list();
/** The brand check of each prototype. */
const kindOfPrototype = new Map();
for (const [prototype, getter] of [
  ...[[Map.prototype, mapSize], [Set.prototype, setSize], [Date.prototype, dateTime]],
  ...[[ArrayBuffer.prototype, bufferBytes], [DataView.prototype, viewBytes], [RegExp.prototype, patternSource]],
]) {
  kinds[kinds.length] = getter;
  kindOfPrototype.set(prototype, getter);
}

/**
 * The most probable kind of a value with this prototype.
 *
 * @param {unknown} prototype @returns {((value: unknown) => unknown) | undefined}
 */
export const likelyKind = (prototype) => mapGet(kindOfPrototype, prototype);

const setBytes = uncurry(/** @type {any} */ (TypedArrayPrototype).set);

/**
 * Copies a part of a buffer. `ArrayBuffer.prototype.slice` would look up the species, which the caller's code can replace.
 *
 * @param {ArrayBuffer} buffer
 * @param {number} from
 * @param {number} bytes
 * @returns {ArrayBuffer}
 */
export function copyOf(buffer, from, bytes) {
  const copy = new Buffers(bytes);
  // A detached buffer has no bytes and must not be viewed.
  if (bytes > 0) setBytes(new Bytes(copy), new Bytes(buffer, from, bytes));
  return copy;
}

/**
 * Makes an object without a prototype, so that missing keys inherit nothing.
 *
 * @param {Record<string, any>} entries @returns {Record<string, any>}
 */
const table = (entries) => /** @type {any} */ (setPrototypeOf(entries, null), entries);

/** The constructors of binary values, by kind. */
export const binaryKinds = table({
  ...{ ArrayBuffer, DataView, Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array },
  ...{ Uint32Array, Float32Array, Float64Array, BigInt64Array, BigUint64Array },
  ...("Float16Array" in globalThis ? { Float16Array: /** @type {any} */ (globalThis).Float16Array } : {}),
});

/** The standard kinds of errors. */
export const errorKinds = table({ Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError });

/**
 * Makes a list that the caller's code cannot intercept: writing an index of an ordinary array may run a setter of
 * `Array.prototype`.
 *
 * @returns {any}
 */
export function list() {
  const items = /** @type {any[]} */ ([]);
  setPrototypeOf(items, null);
  return items;
}

/** Wraps a function of the harness for the caller's code, without its source text. @param {Function} made @param {string} name */
export function hidden(made, name) {
  const bound = bindTo(made, undefined);
  fix(bound, "name", name);
  return bound;
}

/** @param {object} object @param {PropertyKey} key @param {unknown} value */
export function put(object, key, value) {
  defineProperty(object, key, /** @type {any} */ (setNull({ value, writable: true, enumerable: true, configurable: true })));
}

/** A descriptor that inherits nothing. @param {object} descriptor */
function setNull(descriptor) {
  setPrototypeOf(descriptor, null);
  return descriptor;
}

/** Defines a property that is not enumerable and never changes. @param {object} object @param {PropertyKey} key @param {unknown} value */
export function fix(object, key, value) {
  defineProperty(object, key, /** @type {any} */ (setNull({ value, writable: false, enumerable: false, configurable: false })));
}
