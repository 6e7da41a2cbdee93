// The size of a value for its reader, who copies a shared object for each use. A packed table has each object once, however
// often it is used.

import * as i from "./intrinsics.js";

/**
 * Sums the sizes of everything under the root, depth first and in linear time, without recursion. A cycle is counted once:
 * its reader refuses it.
 *
 * @param {number[]} own            the size of each object alone, by its id; the root is 0
 * @param {number[]} starts         where the references of each object begin
 * @param {number[]} references     the ids that objects refer to, object after object
 * @returns {number}
 */
export function writtenOut(own, starts, references) {
  const sums = i.list();
  const next = i.list();
  const done = i.list();
  const open = i.list();
  open[0] = 0;
  while (open.length > 0) {
    const id = open[open.length - 1];
    if (next[id] === undefined) {
      next[id] = starts[id];
      sums[id] = own[id];
    }
    const end = id + 1 < starts.length ? starts[id + 1] : references.length;
    if (next[id] === end) {
      done[id] = sums[id];
      open.length--;
      if (open.length > 0) sums[open[open.length - 1]] += done[id];
      continue;
    }
    const to = references[next[id]++];
    if (to === undefined) break;
    if (done[to] !== undefined) sums[id] += done[to];
    else if (next[to] === undefined) open[open.length] = to;
  }
  return done[0];
}
