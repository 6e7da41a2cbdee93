// How large a value is for whoever reads it: written out, so that what is used twice counts twice. A table says each object
// once, however often it is used, and the other side makes a copy of it for each use.

import * as i from "./intrinsics.js";

/**
 * The sum of what is under the root, depth first; in time, and not by recursion. What contains itself counts once there: its
 * reader refuses it.
 *
 * @param {number[]} own            what each object is alone, by its id; the root is 0
 * @param {number[]} starts         where the references of each begin
 * @param {number[]} references     ids that objects refer to, one object's after another's
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
