// Lays out a graph in columns: each box is to the right of those that lead to it.

const WIDTH = 150;
const HEIGHT = 38;
const GAP_X = 70;
const GAP_Y = 14;
const EDGE = 6;

/** @typedef {{ x: number, y: number, width: number, height: number }} Box */

/**
 * @param {string[]} names
 * @param {{ from: string, to: string }[]} edges
 * @returns {{ places: Map<string, Box>, width: number, height: number }}
 */
export function layout(names, edges) {
  /** @type {Map<string, number>} */
  const column = new Map(names.map((name) => [name, 0]));
  // The number of rounds is limited, because a cycle would never settle.
  for (let round = 0; round < names.length; round++) {
    let moved = false;
    for (const { from, to } of edges) {
      const next = (column.get(from) ?? 0) + 1;
      if (from === to || !column.has(to) || !column.has(from) || (column.get(to) ?? 0) >= next || next > Math.min(names.length - 1, 6)) continue;
      column.set(to, next);
      moved = true;
    }
    if (!moved) break;
  }
  const linked = new Set(edges.flatMap(({ from, to }) => [from, to]));
  /** @type {string[][]} */
  const columns = [];
  for (const name of names.filter((one) => linked.has(one))) (columns[column.get(name) ?? 0] ??= []).push(name);
  /** @type {Map<string, Box>} */
  const places = new Map();
  const put = (/** @type {string} */ name, /** @type {number} */ x, /** @type {number} */ y) => void places.set(name, { x: EDGE + x * (WIDTH + GAP_X), y: EDGE + y * (HEIGHT + GAP_Y), width: WIDTH, height: HEIGHT });
  columns.forEach((column, x) => column.forEach((name, y) => put(name, x, y)));
  const tall = Math.max(0, ...columns.map((column) => column?.length ?? 0));
  // Unconnected boxes go below, side by side.
  const alone = names.filter((name) => !linked.has(name));
  const across = Math.max(4, columns.length);
  alone.forEach((name, at) => {
    const box = { x: EDGE + (at % across) * (WIDTH + GAP_Y), y: EDGE + (tall + Math.floor(at / across)) * (HEIGHT + GAP_Y) + (tall > 0 ? 14 : 0), width: WIDTH, height: HEIGHT };
    places.set(name, box);
  });
  const all = [...places.values()];
  return { places, width: Math.max(0, ...all.map(({ x }) => x + WIDTH)) + EDGE, height: Math.max(0, ...all.map(({ y }) => y + HEIGHT)) + EDGE };
}
