// The difference of two texts, line by line.

/** @typedef {{ kind: "same" | "gone" | "come", text: string }} Line */

/** With more differing lines, no comparison is made: its cost grows with the square of their number. */
const MOST = 1_500;

/** @param {string} before @param {string} now @returns {Line[]} */
export function diff(before, now) {
  const [a, b] = [before.split("\n"), now.split("\n")];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const middle = between(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const same = (/** @type {string} */ text) => /** @type {Line} */ ({ kind: "same", text });
  return [...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)];
}

/** Compares lines by their longest common subsequence. @param {string[]} a @param {string[]} b @returns {Line[]} */
function between(a, b) {
  if (a.length > MOST || b.length > MOST) return [...a.map((text) => line("gone", text)), ...b.map((text) => line("come", text))];
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width);
  const at = (/** @type {number} */ i, /** @type {number} */ j) => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  }
  /** @type {Line[]} */
  const lines = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) lines.push(line("same", a[i++] ?? "")), j++;
    else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) lines.push(line("gone", a[i++] ?? ""));
    else lines.push(line("come", b[j++] ?? ""));
  }
  return lines;
}

/** @param {Line["kind"]} kind @param {string} text @returns {Line} */
const line = (kind, text) => ({ kind, text });

/**
 * Only the differences, with a few lines around them; `undefined` marks an omission.
 *
 * @param {Line[]} lines @param {number} [around] @returns {(Line | undefined)[]}
 */
export function near(lines, around = 2) {
  const shown = lines.map((_, at) => lines.slice(Math.max(0, at - around), at + around + 1).some(({ kind }) => kind !== "same"));
  /** @type {(Line | undefined)[]} */
  const found = [];
  lines.forEach((line, at) => {
    if (shown[at]) found.push(line);
    else if (found.at(-1) !== undefined || at === 0) found.push(undefined);
  });
  return found;
}
