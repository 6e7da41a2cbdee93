// Unpacks values that enter the sandbox. The table is not trusted: any malformed part is refused, and every reference is
// checked.

import * as i from "./intrinsics.js";


/**
 * @param {string} text
 * @param {ArrayBuffer[]} buffers                                      the contents of binary values; taken over
 * @param {(id: number, name: string) => Function} imported            makes a function of the other side callable
 */
export function unpack(text, buffers, imported) {
  const table = i.parse(text);
  check(i.isArray(table) && table.length > 0);
  const made = i.list();
  // First create every object empty, then fill them, so that any object can refer to any other.
  for (let id = 1; id < table.length; id++) made[id] = shell(table[id], buffers, imported);
  const slot = (/** @type {any} */ value) => {
    if (typeof value !== "object" || value === null) return value;
    check(i.isArray(value) && value.length > 0);
    const first = value[0];
    if (typeof first === "number") {
      check(value.length === 1 && i.isInteger(first) && first > 0 && first < table.length);
      return made[first];
    }
    return special(value);
  };
  for (let id = 1; id < table.length; id++) fill(made[id], table[id], slot);
  return slot(table[0]);
}

/** Freezes arrays and plain objects deeply. @param {any} root */
export function frozenDeep(root) {
  const todo = i.list();
  const seen = new i.Maps();
  todo[0] = root;
  while (todo.length > 0) {
    const value = todo[todo.length - 1];
    todo.length--;
    if (typeof value !== "object" || value === null || i.mapHas(seen, value)) continue;
    i.mapSet(seen, value, true);
    const plain = i.getPrototypeOf(value) === i.ObjectPrototype;
    if (!plain && !i.isArray(value)) continue;
    i.freeze(value);
    const keys = i.keys(value);
    for (let at = 0; at < keys.length; at++) todo[todo.length] = value[/** @type {string} */ (keys[at])];
  }
  return root;
}

/** @param {unknown} right */
function check(right) {
  if (!right) throw new i.TypeErrors("a value arrived in a form that is not known");
}

/** @param {any[]} value */
function special(value) {
  switch (value[0]) {
    case "u":
      return undefined;
    case "n":
      check(value.length === 2 && typeof value[1] === "string");
      return i.Numbers(value[1]);
    case "i":
      check(value.length === 2 && typeof value[1] === "string");
      return i.BigInts(value[1]);
    default:
      return check(false);
  }
}

/** @param {any} node @param {ArrayBuffer[]} buffers @param {(id: number, name: string) => Function} imported */
function shell(node, buffers, imported) {
  check(i.isArray(node) && node.length > 1);
  switch (node[0]) {
    case "a":
      return [];
    case "o":
      return {};
    case "m":
      return new i.Maps();
    case "s":
      return new i.Sets();
    case "d":
      check(node[1] === null || typeof node[1] === "number");
      return new i.Dates(node[1] === null ? NaN : node[1]);
    case "x":
      check(node.length === 3 && typeof node[1] === "string" && typeof node[2] === "string");
      return new i.Patterns(node[1], node[2]);
    case "e":
      return error(node);
    case "b":
      return binary(node, buffers);
    case "f":
      check(node.length === 3 && i.isInteger(node[1]) && typeof node[2] === "string");
      return imported(node[1], node[2]);
    default:
      return check(false);
  }
}

/** @param {any[]} node */
function error(node) {
  check(node.length >= 3 && typeof node[1] === "string" && typeof node[2] === "string");
  const Kind = i.errorKinds[node[1]] ?? i.Errors;
  const made = new Kind(node[2]);
  if (!i.errorKinds[node[1]]) hide(made, "name", node[1]);
  // Hide the stack of this function. The stack of the other side is not sent.
  hide(made, "stack", "");
  return made;
}

/** @param {object} object @param {string} key @param {unknown} value */
function hide(object, key, value) {
  i.defineProperty(object, key, /** @type {any} */ ({ __proto__: null, value, writable: true, enumerable: false, configurable: true }));
}

/** @param {any[]} node @param {ArrayBuffer[]} buffers */
function binary(node, buffers) {
  check(node.length === 3 && typeof node[1] === "string" && i.isInteger(node[2]));
  const Kind = i.binaryKinds[node[1]];
  check(Kind !== undefined && node[2] >= 0 && node[2] < buffers.length);
  const buffer = buffers[node[2]];
  return node[1] === "ArrayBuffer" ? buffer : new Kind(buffer);
}

/** @param {any} made @param {any[]} node @param {(value: any) => any} slot */
function fill(made, node, slot) {
  const kind = node[0];
  if (kind !== "a" && kind !== "o" && kind !== "m" && kind !== "s") return;
  const slots = node[1];
  check(i.isArray(slots));
  const { length } = slots;
  if (kind === "a") {
    made.length = length;
    for (let at = 0; at < length; at++) {
      const item = slots[at];
      const hole = typeof item === "object" && item !== null && item[0] === "h";
      if (!hole) i.put(made, at, slot(item));
    }
  } else if (kind === "s") {
    for (let at = 0; at < length; at++) i.setAdd(made, slot(slots[at]));
  } else {
    check(length % 2 === 0);
    for (let at = 0; at < length; at += 2) {
      if (kind === "m") i.mapSet(made, slot(slots[at]), slot(slots[at + 1]));
      else {
        check(typeof slots[at] === "string");
        i.put(made, slots[at], slot(slots[at + 1]));
      }
    }
  }
}
