// Packs values that leave the sandbox: a flat table as JSON text, with the contents of binary values beside it. A loop
// builds the table, so the depth of nesting is unlimited. A value that cannot be copied is refused with the path to it.

import * as i from "./intrinsics.js";
import { writtenOut } from "./weight.js";

/** The limit on a packed value, in bytes: two for each UTF-16 unit of the text, plus the contents of binary values. */
export const LARGEST = 24 << 20;
/** The limit on its texts and parts as its reader sees them, in bytes, each counted as often as it is used. */
const TEXTS = 8 << 20;
/** The cost of a part besides its text. */
const PART = 16;
/** The cost of a binary value besides its contents: the object that carries them. */
const BUFFER = 256;
/** The limits of the cache of quoted keys: its entries, and the length of a key. */
const KEYS = 256;
const KEY = 32;
/** Parts of a value between two checks of its size. No single part can exceed the limit on its own. */
const PARTS = 32;
/** Levels of nesting that the console shows. */
const LEVELS = 100;

/** How to treat values that cannot be copied: refuse them, or describe them (for the console). @typedef {"strict" | "told"} Manner */

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
  return placed(error, i.stackOf(error));
}

/** Gives an error this stack. @template {object} E @param {E} error @param {string} stack */
export function placed(error, stack) {
  i.defineProperty(error, "stack", /** @type {any} */ ({ __proto__: null, value: outside(stack), writable: true, enumerable: false, configurable: true }));
  return error;
}

/** A stack without the frames of the harness. @param {string} stack */
function outside(stack) {
  if (typeof stack !== "string") return stack;
  let kept = "";
  for (let rest = stack; ; ) {
    const end = i.indexOf(rest, "\n");
    const line = end < 0 ? rest : i.slice(rest, 0, end + 1);
    if (i.indexOf(line, "(sandbox:") < 0 && i.indexOf(line, "at sandbox:") < 0) kept += line;
    if (end < 0) return kept;
    rest = i.slice(rest, end + 1);
  }
}

/**
 * @param {unknown} root
 * @param {string} path                             the root's name in errors
 * @param {Manner} manner
 * @param {(value: Function) => number} exported    makes a function callable from outside; returns its id
 * @param {number} [largest]
 * @returns {Packed}
 */
export function pack(root, path, manner, exported, largest = LARGEST) {
  /** The id of each object. */
  const ids = new i.Maps();
  /** Cached keys as JSON. Rows of a table share their keys, and a lookup is faster than quoting. */
  const keyTexts = new i.Maps();
  /** By id: the object, the id of its first parent, and its place there. */
  const found = i.list();
  const parents = i.list();
  const places = i.list();
  const buffers = i.list();
  /** By id, 0 for the root: its own size in bytes of texts and of contents, and where its references begin. */
  const ownTexts = i.list();
  const ownContents = i.list();
  const starts = i.list();
  const references = i.list();
  let shared = false;
  const heaviest = largest < TEXTS ? largest : TEXTS;
  let count = 0;
  /** Bytes of binary contents, with and without their objects. */
  let size = 0;
  let contents = 0;
  /** Bytes of texts and parts. */
  let weight = 0;

  /** @param {number} parent @param {string} place */
  const pathOf = (parent, place) => {
    let text = place;
    for (let at = parent; at > 0; at = parents[at]) text = placeText(places[at]) + text;
    return path + text;
  };

  /** @param {number} bytes beyond binary contents */
  const bound = (bytes) => {
    if (size + bytes > largest) throw serializationError(path + " is too large: more than " + largest + " bytes");
    if (weight > heaviest) tooHeavy();
  };
  const tooHeavy = () => {
    throw serializationError(path + " is too large: written out, it has more than " + heaviest + " bytes of texts and parts");
  };

  /** A text as JSON, which may be six times as long. @param {string} value */
  const quoted = (value) => {
    weight += value.length;
    if (weight > heaviest) tooHeavy();
    return i.stringify(value);
  };

  /** The console's text for a value that contains itself, or that is nested too deeply. @param {number} id @param {number} parent */
  const hiddenBelow = (id, parent) => {
    let levels = 0;
    for (let at = parent; at > 0; at = parents[at]) {
      if (at === id) return "[Circular]";
      if (++levels === LEVELS) return "[…]";
    }
    return undefined;
  };

  /** The slot that refers to a value. @param {any} value @param {number} parent @param {Place} place @returns {string} */
  const slot = (value, parent, place) => {
    weight += PART;
    if (value === null) return "null";
    switch (typeof value) {
      case "string":
        return quoted(value);
      case "number":
        // JSON has every number but -0, NaN and the infinities.
        if (value - value === 0 && (value !== 0 || 1 / value > 0)) return "" + value;
        return '["n","' + (value === 0 ? "-0" : i.Strings(value)) + '"]';
      case "boolean":
        return value ? "true" : "false";
      case "undefined":
        return '["u"]';
      case "bigint": {
        const digits = i.Strings(value);
        weight += digits.length;
        if (weight > heaviest) tooHeavy();
        return '["i","' + digits + '"]';
      }
      case "symbol":
        if (manner === "told") return i.stringify(i.symbolText(value));
        throw serializationError(pathOf(parent, placeText(place)) + " is a symbol, which cannot leave the sandbox");
    }
    if (manner === "told" && typeof value === "function") return i.stringify("[Function: " + nameOf(value) + "]");
    let id = i.mapGet(ids, value);
    if (manner === "told") {
      const shown = hiddenBelow(id, parent);
      if (shown !== undefined) return i.stringify(shown);
    }
    if (id !== undefined) shared = true;
    else {
      id = ++count;
      i.mapSet(ids, value, id);
      found[id] = value;
      parents[id] = parent;
      places[id] = place;
    }
    references[references.length] = id;
    return "[" + id + "]";
  };

  /** @param {ArrayBuffer} buffer @param {number} from @param {number} bytes @param {string} kind */
  const binary = (buffer, from, bytes, kind) => {
    bound(bytes + BUFFER);
    size += bytes + BUFFER;
    contents += bytes;
    const at = buffers.length;
    buffers[at] = i.copyOf(buffer, from, bytes);
    return '["b","' + kind + '",' + at + "]";
  };

  /** A key and the comma after it. @param {string} key */
  const keyText = (key) => {
    const known = i.mapGet(keyTexts, key);
    if (known !== undefined) {
      weight += key.length;
      return known;
    }
    const made = quoted(key) + ",";
    if (key.length <= KEY && i.mapSize(keyTexts) < KEYS) i.mapSet(keyTexts, key, made);
    return made;
  };

  /** The value that the console shows for a key. A throwing getter must not prevent the output. @param {any} value @param {string} key */
  const toldOf = (value, key) => {
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
    const { length } = keys;
    for (let at = 0; at < length; at++) {
      const key = /** @type {string} */ (keys[at]);
      weight += PART;
      if (at > 0) text += ",";
      text += keyText(key);
      text += slot(manner === "strict" ? value[key] : toldOf(value, key), id, key);
      if (at % PARTS === PARTS - 1) bound(2 * text.length);
    }
    return text + "]]";
  };

  /** @param {any} value @param {number} id */
  const array = (value, id) => {
    let text = '["a",[';
    const { length } = value;
    for (let at = 0; at < length; at++) {
      const item = value[at];
      const hole = item === undefined && !i.hasOwn(value, at);
      if (at > 0) text += ",";
      text += hole ? '["h"]' : slot(item, id, at);
      if (at % PARTS === PARTS - 1) bound(2 * text.length);
    }
    return text + "]]";
  };

  /** @param {any} value @param {number} id */
  const map = (value, id) => {
    let text = '["m",[';
    let at = 0;
    i.mapForEach(value, (/** @type {unknown} */ item, /** @type {unknown} */ key) => {
      text += (at++ === 0 ? "" : ",") + slot(key, id, "a key") + "," + slot(item, id, "a value");
      bound(2 * text.length);
    });
    return text + "]]";
  };

  /** @param {any} value @param {number} id */
  const set = (value, id) => {
    let text = '["s",[';
    let at = 0;
    i.setForEach(value, (/** @type {unknown} */ item) => {
      text += (at++ === 0 ? "" : ",") + slot(item, id, "an item");
      bound(2 * text.length);
    });
    return text + "]]";
  };

  /** @param {any} value @param {number} id @returns {string} */
  const node = (value, id) => {
    if (typeof value === "function") return '["f",' + exported(value) + "," + i.stringify(nameOf(value)) + "]";
    if (i.isArray(value)) return array(value, id);
    const prototype = i.getPrototypeOf(value);
    if (prototype === i.ObjectPrototype || prototype === null) return object(value, id);
    if (i.isError(value)) return errorNode(value, quoted);
    const elements = i.typedArrayKind(value);
    if (elements !== undefined) return binary(i.arrayBuffer(value), i.arrayOffset(value), i.arrayBytes(value), elements);
    switch (kindOf(value, prototype)) {
      case i.mapSize:
        return map(value, id);
      case i.setSize:
        return set(value, id);
      case i.dateTime: {
        const time = i.dateTime(value);
        return '["d",' + (i.isFinite(time) ? time : "null") + "]";
      }
      case i.bufferBytes:
        return binary(value, 0, i.bufferBytes(value), "ArrayBuffer");
      case i.viewBytes:
        return binary(i.viewBuffer(value), i.viewOffset(value), i.viewBytes(value), "DataView");
      case i.patternSource:
        return '["x",' + quoted(i.patternSource(value)) + "," + quoted(i.patternFlags(value)) + "]";
    }
    if (manner === "told") return object(value, id);
    throw serializationError(pathOf(id, "") + " is " + described(value) + ", which cannot leave the sandbox");
  };

  /** A node for the console, which shows what it can. @param {any} value @param {number} id */
  const toldNode = (value, id) => {
    try {
      return node(value, id);
    } catch (error) {
      if (error instanceof i.TypeErrors && i.hasOwn(error, "name")) throw error;
      return '["o",[]]';
    }
  };

  starts[0] = 0;
  let text = "[" + slot(root, 0, "");
  ownTexts[0] = weight;
  ownContents[0] = 0;
  bound(2 * text.length);
  for (let id = 1; id <= count; id++) {
    const before = weight;
    const beside = contents;
    starts[id] = references.length;
    weight += 2 * PART;
    const added = manner === "told" ? toldNode(found[id], id) : node(found[id], id);
    ownTexts[id] = weight - before;
    ownContents[id] = contents - beside;
    text += "," + added;
    bound(2 * text.length);
    found[id] = undefined;
  }
  const sent = size + 2 * text.length;
  if (!shared) return { text: text + "]", buffers, size: sent };
  const texts = writtenOut(ownTexts, starts, references);
  if (texts > heaviest) tooHeavy();
  const bytes = writtenOut(ownContents, starts, references);
  if (bytes > largest) {
    throw serializationError(path + " is too large: written out, it has more than " + largest + " bytes of binary contents");
  }
  return { text: text + "]", buffers, size: sent > texts + bytes ? sent : texts + bytes };
}

/** Where a value was found in another: an index, a key, or a description. @typedef {number | string} Place */

/** @param {Place} place */
function placeText(place) {
  if (typeof place === "number") return "[" + place + "]";
  if (place === "") return "";
  if (place === "a key" || place === "a value" || place === "an item") return " (" + place + ")";
  return isIdentifier(place) ? "." + place : "[" + i.stringify(place) + "]";
}

/**
 * The brand check that accepts a value. A throw takes QuickJS a hundredth of a millisecond, so the check of the value's
 * prototype comes first.
 *
 * @param {unknown} value
 * @param {unknown} prototype
 * @returns {((value: unknown) => unknown) | undefined}
 */
function kindOf(value, prototype) {
  const likely = i.likelyKind(prototype);
  if (likely !== undefined && has(likely, value)) return likely;
  for (let at = 0; at < i.kinds.length; at++) {
    const getter = i.kinds[at];
    if (getter !== likely && has(getter, value)) return getter;
  }
  return undefined;
}

/** Whether the brand check accepts the value. @param {(value: unknown) => unknown} getter @param {unknown} value */
function has(getter, value) {
  try {
    getter(value);
    return true;
  } catch {
    return false;
  }
}

/** The node of an error. @param {any} error @param {(text: string) => string} quoted */
export function errorNode(error, quoted) {
  const name = quoted(textOf(error, "name", "Error"));
  const message = quoted(textOf(error, "message", ""));
  return '["e",' + name + "," + message + "," + quoted(traceOf(error)) + "]";
}

/** A property as text, even if the caller's code changed it. @param {any} object @param {string} key @param {string} otherwise */
export function textOf(object, key, otherwise) {
  try {
    const value = object[key];
    return typeof value === "string" ? value : value === undefined ? otherwise : i.Strings(value);
  } catch {
    return otherwise;
  }
}

/** The stack of an error. @param {any} error @returns {string} */
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
    if (typeof name === "string" && name !== "") return "an instance of " + i.slice(name, 0, 100);
  } catch {
    // A prototype without a constructor, or one that throws.
  }
  return "an instance of a class";
}

/** Whether a key can follow a dot; ASCII is enough for a message. @param {string} key */
function isIdentifier(key) {
  for (let at = 0; at < key.length; at++) {
    const unit = /** @type {string} */ (key[at]);
    const letter = (unit >= "a" && unit <= "z") || (unit >= "A" && unit <= "Z") || unit === "_" || unit === "$";
    if (!letter && !(at > 0 && unit >= "0" && unit <= "9")) return false;
  }
  return key !== "";
}
