// Values on their way out of the sandbox: a flat table as JSON text, and the contents of binary values beside it.
// Flat, and made by a loop, so that no nesting is too deep. What cannot be copied is refused with the path to it.

import * as i from "./intrinsics.js";

/** What a value may take on its way, in bytes: two for each UTF-16 unit of the text. */
export const LARGEST = 24 << 20;

/** How values are copied that cannot be: refused, or, for the console, told in words. @typedef {"strict" | "told"} Manner */

/**
 * @typedef {object} Packed
 * @property {string} text
 * @property {ArrayBuffer[]} buffers   without a prototype
 * @property {number} size             bytes, as in `LARGEST`
 */

/** @param {string} message */
export function serializationError(message) {
  const error = new i.TypeErrors(message);
  i.put(error, "name", "SerializationError");
  return error;
}

/**
 * @param {unknown} root
 * @param {string} path                             what the root is called in errors
 * @param {Manner} manner
 * @param {(value: Function) => number} exported    makes a function callable from outside; returns its id
 * @param {number} [largest]
 * @returns {Packed}
 */
export function pack(root, path, manner, exported, largest = LARGEST) {
  /** The id of each object. */
  const ids = new i.Maps();
  /** By id: the object, the id of the one it was found in, and under which key there. */
  const found = i.list();
  const parents = i.list();
  const steps = i.list();
  const buffers = i.list();
  let size = 0;

  /** @param {number} id @param {string} step */
  const pathOf = (id, step) => {
    let text = step;
    for (let at = id; at > 0; at = parents[at]) text = steps[at] + text;
    return path + text;
  };

  /** @param {number} bytes */
  const grow = (bytes) => {
    size += bytes;
    if (size > largest) throw serializationError(`${path} is too large: more than ${largest} bytes`);
  };

  /** @param {string} text */
  const sized = (text) => {
    grow(2 * text.length + 2);
    return text;
  };

  /** The slot of a value. @param {any} value @param {number} parent @param {string} step @returns {string} */
  const slot = (value, parent, step) => {
    switch (typeof value) {
      case "string":
        return sized(i.stringify(value));
      case "number":
        if (i.isFinite(value) && !i.is(value, -0)) return sized(i.Strings(value));
        return sized(`["n","${i.is(value, -0) ? "-0" : i.Strings(value)}"]`);
      case "boolean":
        return sized(value ? "true" : "false");
      case "undefined":
        return sized('["u"]');
      case "bigint":
        return sized(`["i","${i.Strings(value)}"]`);
      case "symbol":
        if (manner === "told") return sized(i.stringify(i.symbolText(value)));
        throw serializationError(`${pathOf(parent, step)} is a symbol, which cannot leave the sandbox`);
    }
    if (value === null) return sized("null");
    if (manner === "told" && typeof value === "function") return sized(i.stringify(`[Function: ${nameOf(value)}]`));
    let id = i.mapGet(ids, value);
    if (id === undefined) {
      id = found.length || 1;
      i.mapSet(ids, value, id);
      found[id] = value;
      parents[id] = parent;
      steps[id] = step;
    }
    return sized(`[${id}]`);
  };

  /** @param {ArrayBuffer} buffer @param {number} from @param {number} bytes @param {string} kind */
  const binary = (buffer, from, bytes, kind) => {
    grow(bytes);
    const at = buffers.length;
    buffers[at] = i.bufferSlice(buffer, from, from + bytes);
    return `["b","${kind}",${at}]`;
  };

  /** What is under a key; a getter that throws is no reason to print nothing. @param {any} value @param {string} key */
  const read = (value, key) => {
    if (manner === "strict") return value[key];
    try {
      return value[key];
    } catch {
      return "[threw]";
    }
  };

  /** @param {any} value @param {number} id */
  const object = (value, id) => {
    let text = '["o",[';
    const keys = i.keys(value);
    for (let at = 0; at < keys.length; at++) {
      const key = /** @type {string} */ (keys[at]);
      const step = isIdentifier(key) ? `.${key}` : `[${i.stringify(key)}]`;
      text += `${at === 0 ? "" : ","}${sized(i.stringify(key))},${slot(read(value, key), id, step)}`;
    }
    return `${text}]]`;
  };

  /** @param {any} value @param {number} id */
  const array = (value, id) => {
    let text = '["a",[';
    const { length } = value;
    for (let at = 0; at < length; at++) {
      const item = value[at];
      const hole = item === undefined && !i.hasOwn(value, at);
      text += `${at === 0 ? "" : ","}${hole ? sized('["h"]') : slot(item, id, `[${at}]`)}`;
    }
    return `${text}]]`;
  };

  /** @param {any} value @param {number} id @param {"m" | "s"} kind */
  const collection = (value, id, kind) => {
    let text = `["${kind}",[`;
    let at = 0;
    const each = kind === "m" ? i.mapForEach : i.setForEach;
    each(value, (/** @type {unknown} */ item, /** @type {unknown} */ key) => {
      const comma = at === 0 ? "" : ",";
      text += kind === "m" ? `${comma}${slot(key, id, `.key(${at})`)},${slot(item, id, `.value(${at})`)}` : comma + slot(item, id, `.item(${at})`);
      at++;
    });
    return `${text}]]`;
  };

  /** @param {any} value @param {number} id @returns {string} */
  const node = (value, id) => {
    if (typeof value === "function") return sized(`["f",${exported(value)},${i.stringify(nameOf(value))}]`);
    if (i.isArray(value)) return array(value, id);
    const prototype = i.getPrototypeOf(value);
    if (prototype === i.ObjectPrototype || prototype === null) return object(value, id);
    if (i.isError(value)) return sized(errorNode(value));
    if (has(i.mapSize, value)) return collection(value, id, "m");
    if (has(i.setSize, value)) return collection(value, id, "s");
    if (has(i.dateTime, value)) {
      const time = i.dateTime(value);
      return `["d",${i.isFinite(time) ? time : "null"}]`;
    }
    const kind = i.typedArrayKind(value);
    if (kind !== undefined) return binary(i.arrayBuffer(value), i.arrayOffset(value), i.arrayBytes(value), kind);
    if (has(i.bufferBytes, value)) return binary(value, 0, i.bufferBytes(value), "ArrayBuffer");
    if (has(i.viewBytes, value)) return binary(i.viewBuffer(value), i.viewOffset(value), i.viewBytes(value), "DataView");
    if (has(i.patternSource, value)) {
      return sized(`["x",${i.stringify(i.patternSource(value))},${i.stringify(i.Strings(i.patternFlags(value)))}]`);
    }
    if (manner === "told") return object(value, id);
    throw serializationError(`${pathOf(id, "")} is ${described(value)}, which cannot leave the sandbox`);
  };

  let text = `[${slot(root, 0, "")}`;
  for (let id = 1; id < found.length; id++) {
    text += `,${node(found[id], id)}`;
    found[id] = undefined;
  }
  return { text: `${text}]`, buffers, size };
}

/** Whether it is what the getter is for. @param {(value: unknown) => unknown} getter @param {unknown} value */
function has(getter, value) {
  try {
    getter(value);
    return true;
  } catch {
    return false;
  }
}

/** The node of an error. @param {any} error */
export function errorNode(error) {
  const name = i.stringify(textOf(error, "name", "Error"));
  const message = i.stringify(textOf(error, "message", ""));
  return `["e",${name},${message},${i.stringify(traceOf(error))}]`;
}

/** A property that should be text, whatever code of the caller made of it. @param {any} object @param {string} key @param {string} otherwise */
export function textOf(object, key, otherwise) {
  try {
    const value = object[key];
    return typeof value === "string" ? value : value === undefined ? otherwise : i.Strings(value);
  } catch {
    return otherwise;
  }
}

/** Where an error was made: the engine's own record. @param {any} error @returns {string} */
export function traceOf(error) {
  try {
    const stack = i.hasOwn(error, "stack") ? error.stack : i.stackOf(error);
    return typeof stack === "string" ? stack : "";
  } catch {
    return "";
  }
}

/** @param {Function} value */
export function nameOf(value) {
  const name = textOf(value, "name", "");
  return name.length > 100 ? i.slice(name, 0, 100) : name;
}

/** @param {any} value */
function described(value) {
  try {
    const { name } = /** @type {any} */ (i.getPrototypeOf(value)).constructor;
    if (typeof name === "string" && name !== "") return `an instance of ${i.slice(name, 0, 100)}`;
  } catch {
    // A prototype without a constructor, or one that throws.
  }
  return "an instance of a class";
}

/** Whether a key can stand after a dot; ASCII is enough for a message. @param {string} key */
function isIdentifier(key) {
  for (let at = 0; at < key.length; at++) {
    const unit = /** @type {string} */ (key[at]);
    const letter = (unit >= "a" && unit <= "z") || (unit >= "A" && unit <= "Z") || unit === "_" || unit === "$";
    if (!letter && !(at > 0 && unit >= "0" && unit <= "9")) return false;
  }
  return key !== "";
}
