// structuredClone, for code in the sandbox.

/** Kinds of errors that keep their constructor. */
const ERRORS = [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError];
const TypedArray = Object.getPrototypeOf(Uint8Array);

/**
 * A deep copy. Transferred buffers are copied, then detached.
 *
 * @param {any} value
 * @param {{ transfer?: ArrayBuffer[] }} [options]
 */
export function structuredClone(value, options = {}) {
  /** Copies by their originals, so that shared parts stay shared and cycles close. @type {Map<object, object>} */
  const copies = new Map();
  const transfer = [...(options?.transfer ?? [])];
  for (const buffer of transfer) {
    if (!(buffer instanceof ArrayBuffer)) throw refused("only an ArrayBuffer can be transferred");
  }
  const copy = copied(value, copies);
  for (const buffer of transfer) /** @type {any} */ (buffer).transfer();
  return copy;
}

/** @param {any} value @param {Map<object, object>} copies @returns {any} */
function copied(value, copies) {
  if (typeof value === "function") throw refused(`the function ${value.name || "without a name"} cannot be cloned`);
  if (typeof value === "symbol") throw refused(`${String(value)} cannot be cloned`);
  if (typeof value !== "object" || value === null) return value;
  const known = copies.get(value);
  if (known !== undefined) return known;
  const whole = flat(value, copies);
  if (whole !== undefined) {
    copies.set(value, whole);
    return whole;
  }
  const [copy, fill] = container(value, copies);
  copies.set(value, copy);
  fill();
  return copy;
}

/** The copy of an object that contains no other values. @param {any} value @param {Map<object, object>} copies */
function flat(value, copies) {
  if (value instanceof Date) return new Date(value.getTime());
  if (value instanceof RegExp) return new RegExp(value.source, value.flags);
  if (value instanceof ArrayBuffer) return value.slice(0);
  if (value instanceof DataView) return new DataView(copied(value.buffer, copies), value.byteOffset, value.byteLength);
  if (value instanceof TypedArray) {
    const Kind = /** @type {any} */ (globalThis)[value[Symbol.toStringTag]];
    return new Kind(copied(value.buffer, copies), value.byteOffset, value.length);
  }
  if (value instanceof Boolean || value instanceof Number || value instanceof String || value instanceof BigInt) {
    return Object(value.valueOf());
  }
  return undefined;
}

/**
 * The empty copy of an object, and the function that fills it.
 *
 * @param {any} value
 * @param {Map<object, object>} copies
 * @returns {[any, () => void]}
 */
function container(value, copies) {
  if (value instanceof Map) {
    const copy = new Map();
    const entries = [...value];
    return [copy, () => entries.forEach(([key, item]) => copy.set(copied(key, copies), copied(item, copies)))];
  }
  if (value instanceof Set) {
    const copy = new Set();
    const items = [...value];
    return [copy, () => items.forEach((item) => copy.add(copied(item, copies)))];
  }
  if (value instanceof Error) return errorCopy(value, copies);
  if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) {
    throw refused(`a ${value[Symbol.toStringTag]} cannot be cloned`);
  }
  const copy = /** @type {any} */ (Array.isArray(value) ? new Array(value.length) : {});
  return [
    copy,
    () => {
      for (const key of Object.keys(value)) {
        Object.defineProperty(copy, key, { value: copied(value[key], copies), writable: true, enumerable: true, configurable: true });
      }
    },
  ];
}

/** @param {Error} value @param {Map<object, object>} copies @returns {[Error, () => void]} */
function errorCopy(value, copies) {
  const Kind = ERRORS.find(({ name }) => name === value.name) ?? Error;
  const copy = new Kind(value.message);
  const keep = (/** @type {"stack" | "cause"} */ key, /** @type {unknown} */ kept) =>
    Object.defineProperty(copy, key, { value: kept, writable: true, enumerable: false, configurable: true });
  keep("stack", value.stack);
  return [copy, () => void (Object.hasOwn(value, "cause") && keep("cause", copied(value.cause, copies)))];
}

/** @param {string} message */
function refused(message) {
  const error = new Error(`structuredClone: ${message}`);
  error.name = "DataCloneError";
  return error;
}
