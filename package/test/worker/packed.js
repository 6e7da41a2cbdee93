// Values on their way to the isolate and back, as far as they are JSON (docs/run-code.md, The wire).

/** The first argument of what is called. @param {string} text   packed `{ args, globals, imports }` */
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
  // Only these: what stands beside them is no JSON.
  const [, args] = pairs(parts).find(([name]) => name === "args") ?? [];
  return read(args)?.[0];
}

/** @param {any[]} parts   keys and slots, by turns @returns {[string, any][]} */
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
