// Formats numbers and times for people.

const number = new Intl.NumberFormat("en");

/** @param {number} n @param {string} one @param {string} [many] */
export const count = (n, one, many = `${one}s`) => `${number.format(n)} ${n === 1 ? one : many}`;

/** @param {number | null | undefined} n */
export const digits = (n) => (n === null || n === undefined ? "–" : number.format(n));

/** @param {number} n */
export function bytes(n) {
  if (n < 1000) return `${n} B`;
  for (const [unit, size] of /** @type {[string, number][]} */ ([["KB", 1e3], ["MB", 1e6], ["GB", 1e9]])) {
    if (n < size * 1000) return `${(n / size).toFixed(n < size * 10 ? 1 : 0)} ${unit}`;
  }
  return `${(n / 1e12).toFixed(1)} TB`;
}

/** US dollars. @param {number | null | undefined} usd */
export function cost(usd) {
  if (usd === null || usd === undefined) return "–";
  if (usd === 0) return "$0";
  return usd < 0.01 ? `$${usd.toPrecision(2).replace(/\.?0+$/, "")}` : `$${usd.toFixed(usd < 1 ? 3 : 2)}`;
}

/** A duration. @param {number} ms */
export function span(ms) {
  if (ms < 1) return "0 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  if (ms < 86_400_000) return `${(ms / 3_600_000).toFixed(1)} h`;
  return `${(ms / 86_400_000).toFixed(1)} days`;
}

/** A time relative to now. @param {number} ms since 1970 @param {number} now */
export function ago(ms, now) {
  const past = now - ms;
  const size = Math.abs(past);
  if (size < 5_000) return "now";
  const [n, unit] = /** @type {[number, string]} */ (
    size < 60_000 ? [size / 1e3, "s"] : size < 3_600_000 ? [size / 6e4, "min"] : size < 86_400_000 ? [size / 36e5, "h"] : [size / 864e5, "d"]
  );
  return past > 0 ? `${Math.floor(n)} ${unit} ago` : `in ${Math.ceil(n)} ${unit}`;
}

/** The time of day, with the date if it is not today. @param {number} ms since 1970 */
export function clock(ms) {
  const at = new Date(ms);
  const time = at.toLocaleTimeString("en-GB");
  return at.toDateString() === new Date().toDateString() ? time : `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, ${time}`;
}

/** @param {number} ms since 1970 */
export const exact = (ms) => new Date(ms).toISOString();

/** The beginning of a text, in one line. @param {string | null | undefined} text @param {number} most */
export function short(text, most) {
  const line = (text ?? "").replace(/\s+/g, " ").trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

/** A value as indented JSON; also a text that contains JSON. @param {unknown} value */
export function pretty(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2) ?? "";
  try {
    const parsed = JSON.parse(value);
    return typeof parsed === "object" && parsed !== null ? JSON.stringify(parsed, null, 2) : value;
  } catch {
    return value;
  }
}
