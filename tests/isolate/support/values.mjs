// Values as they cross, packed and unpacked by the tests' own reading of the format: docs/run-code.md.

/** @typedef {{ text: string, bytes: string[] }} Packed  the bytes in base64 */
/** @typedef {(...args: any[]) => unknown} Fn */

/** A hole of an array. */
export const HOLE = Symbol("hole");

/** @param {unknown} root @param {(fn: Fn) => number} exported @returns {Packed} */
export function pack(root, exported) {
  /** @type {any[]} */
  const table = [null];
  /** @type {Map<object, number>} */
  const ids = new Map();
  /** @type {string[]} */
  const bytes = [];
  const binary = (/** @type {Uint8Array} */ content) => bytes.push(Buffer.from(content).toString("base64")) - 1;
  /** @param {any} value @returns {any} */
  const slot = (value) => {
    if (value === undefined) return ["u"];
    if (value === HOLE) return ["h"];
    if (typeof value === "bigint") return ["i", String(value)];
    if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0))) {
      return ["n", Object.is(value, -0) ? "-0" : String(value)];
    }
    if (value === null || (typeof value !== "object" && typeof value !== "function")) return value;
    let id = ids.get(value);
    if (id === undefined) {
      id = table.push(null) - 1;
      ids.set(value, id);
      table[id] = node(value);
    }
    return [id];
  };
  /** @param {any} value */
  const node = (value) => {
    if (typeof value === "function") return ["f", exported(value), value.name];
    if (Array.isArray(value)) return ["a", Array.from({ length: value.length }, (_, at) => slot(at in value ? value[at] : HOLE))];
    if (value instanceof Map) return ["m", [...value].flatMap(([key, item]) => [slot(key), slot(item)])];
    if (value instanceof Set) return ["s", [...value].map(slot)];
    if (value instanceof Date) return ["d", Number.isNaN(value.getTime()) ? null : value.getTime()];
    if (value instanceof RegExp) return ["x", value.source, value.flags];
    if (value instanceof Error) return ["e", value.name, value.message, value.stack];
    if (value instanceof ArrayBuffer) return ["b", "ArrayBuffer", binary(new Uint8Array(value))];
    if (ArrayBuffer.isView(value)) {
      return ["b", value.constructor.name, binary(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))];
    }
    return ["o", Object.entries(value).flatMap(([key, item]) => [key, slot(item)])];
  };
  table[0] = slot(root);
  return { text: JSON.stringify(table), bytes };
}

/** @param {Packed} packed @param {(id: number, name: string) => unknown} imported @returns {any} */
export function unpack({ text, bytes }, imported) {
  const [root, ...nodes] = JSON.parse(text);
  const made = nodes.map((/** @type {any[]} */ node) => shell(node, bytes, imported));
  /** @param {any} value @returns {any} */
  const slot = (value) => {
    if (!Array.isArray(value)) return value;
    const [kind, content] = value;
    if (typeof kind === "number") return made[kind - 1];
    switch (kind) {
      case "u":
        return undefined;
      case "n":
        return Number(content);
      case "i":
        return BigInt(content);
    }
    throw new Error(`no slot: ${JSON.stringify(value)}`);
  };
  for (const [at, [kind, slots]] of nodes.entries()) {
    const value = made[at];
    if (kind === "a") {
      value.length = slots.length;
      slots.forEach((/** @type {any} */ item, /** @type {number} */ index) => {
        if (!(Array.isArray(item) && item[0] === "h")) value[index] = slot(item);
      });
    }
    if (kind === "s") for (const item of slots) value.add(slot(item));
    if (kind === "m") for (let index = 0; index < slots.length; index += 2) value.set(slot(slots[index]), slot(slots[index + 1]));
    if (kind === "o") {
      for (let index = 0; index < slots.length; index += 2) {
        const descriptor = { value: slot(slots[index + 1]), enumerable: true, writable: true, configurable: true };
        Object.defineProperty(value, slots[index], descriptor);
      }
    }
  }
  return slot(root);
}

/** @param {any[]} node @param {string[]} bytes @param {(id: number, name: string) => unknown} imported @returns {any} */
function shell([kind, first, second, third], bytes, imported) {
  switch (kind) {
    case "a":
      return [];
    case "o":
      return {};
    case "m":
      return new Map();
    case "s":
      return new Set();
    case "d":
      return new Date(first ?? NaN);
    case "x":
      return new RegExp(first, second);
    case "e":
      return Object.assign(new Error(second), { name: first, stack: third });
    case "f":
      return imported(first, second);
    case "b": {
      const content = new Uint8Array(Buffer.from(/** @type {string} */ (bytes[second]), "base64")).slice().buffer;
      if (first === "ArrayBuffer") return content;
      const Kind = /** @type {any} */ (globalThis)[first];
      return new Kind(content);
    }
  }
  throw new Error(`no node: ${kind}`);
}
