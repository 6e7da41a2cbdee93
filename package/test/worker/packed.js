// Packs and unpacks values for the isolate, if they are JSON (docs/run-code.md, The wire).

/** Returns the first argument of the called function. @param {string} text   packed `{ args, globals, imports }` */
export function argumentOf(text) {
  const table = JSON.parse(text);
  /** @param {any} slot @returns {any} */
  const read = (slot) => {
    if (!Array.isArray(slot)) return slot;
    const [kind, parts] = table[slot[0]] ?? [];
    if (kind === "a") return parts.map(read);
    return kind === "o" ? Object.fromEntries(pairs(parts).map(([name, part]) => [name, read(part)])) : undefined;
  };
  const [, parts] = table[table[0][0]];
  // Read only the arguments, because the rest may not be JSON.
  const [, args] = pairs(parts).find(([name]) => name === "args") ?? [];
  return read(args)?.[0];
}

/** @param {any[]} parts   alternating keys and slots @returns {[string, any][]} */
const pairs = (parts) => Array.from({ length: parts.length / 2 }, (_, at) => [parts[2 * at], parts[2 * at + 1]]);

/** @param {unknown} value   JSON */
export function packed(value) {
  /** @type {unknown[]} */
  const table = [null];
  /** @param {any} one @returns {unknown} */
  const slot = (one) => {
    if (typeof one !== "object" || one === null) return one;
    const at = table.push(null) - 1;
    table[at] = Array.isArray(one) ? ["a", one.map(slot)] : ["o", Object.entries(one).flatMap(([key, part]) => [key, slot(part)])];
    return [at];
  };
  table[0] = slot(value);
  return JSON.stringify(table);
}
