// The events of a run as bars on one time axis: attempts at models, calls, waits, recoveries. Long idle stretches are drawn
// short, with their duration.

/**
 * @typedef {object} Bar
 * @property {string} kind            attempt, call, wait, recovery, hook, memory, effect, event
 * @property {string} label
 * @property {string} state           ok, failed, lost, open
 * @property {number} from            milliseconds since 1970
 * @property {number} to
 * @property {string} [note]
 * @property {string} [message]       the reply of its step
 * @property {string} [log]
 *
 * @typedef {{ at: number, width: number, ms: number, from: number }} Gap   in per cent of the axis
 * @typedef {{ place: (ms: number) => number, gaps: Gap[], from: number, to: number }} Axis
 */

const ms = (/** @type {number | null | undefined} */ us) => (us === null || us === undefined ? undefined : us / 1000);

/** Kinds of log entries that are points in time. @type {Record<string, string>} */
const POINTS = { failure: "Failed", stop: "Stopped", termination: "Terminated", hook: "Hook failed", note: "Note", budget: "Budget", subagent: "Subagent", trace: "Trace", background: "Goes on at the provider" };

/**
 * The bars of a run.
 *
 * @param {any} run
 * @param {any[]} logs    of the thread, in the order of time
 * @param {any[]} waits
 * @param {number} now
 * @returns {Bar[]}
 */
export function barsOf(run, logs, waits, now) {
  const [began, ended] = [ms(run.startedAt) ?? now, ms(run.endedAt) ?? now];
  const mine = logs.filter((entry) => entry.run === run.run || (entry.run === undefined && within(ms(entry.created_at), began, ended)));
  /** @type {Bar[]} */
  const bars = mine.flatMap((entry) => barOf(entry, now));
  for (const wait of waits) {
    if (wait.run !== run.run) continue;
    const to = ms(wait.decidedAt) ?? (wait.state === "open" ? now : ms(wait.expiresAt)) ?? now;
    bars.push({ kind: "wait", label: wait.title, state: wait.state === "open" ? "open" : "ok", from: ms(wait.createdAt) ?? began, to, note: wait.decision ?? wait.state });
  }
  bars.sort((a, b) => a.from - b.from || a.to - b.to);
  return lost(bars, began);
}

/** @param {number | undefined} at @param {number} from @param {number} to */
const within = (at, from, to) => at !== undefined && at >= from && at <= to;

/** @param {any} entry @param {number} now @returns {Bar[]} */
function barOf(entry, now) {
  const from = ms(entry.created_at) ?? now;
  const more = { ...(entry.message_id && { message: entry.message_id }), log: entry.id };
  if (entry.type === "llm_request") {
    const isLost = entry.error_type === "interrupted" || entry.error_type === "cancelled";
    const state = isLost ? "lost" : entry.error_type ? "failed" : "ok";
    const to = ms(entry.ended_at) ?? from + (entry.latency_ms ?? 0);
    const note = entry.error_type ?? (entry.output_tokens !== undefined ? `${entry.input_tokens ?? 0} → ${entry.output_tokens} tokens` : undefined);
    return [{ kind: "attempt", label: entry.purpose ? `${entry.model_name} (${entry.purpose})` : entry.model_name, state, from, to, ...(note && { note }), ...more }];
  }
  if (entry.type === "tool_call") {
    const state = entry.ended_at === null || entry.ended_at === undefined ? "open" : entry.error ? "failed" : entry.state === "indeterminate" ? "lost" : "ok";
    return [{ kind: "call", label: entry.tool_name, state, from, to: ms(entry.ended_at) ?? now, note: entry.state, ...more }];
  }
  if (entry.type === "memory") return [{ kind: "memory", label: `Memory ${entry.memory}`, state: entry.error ? "failed" : "ok", from, to: ms(entry.ended_at) ?? from, ...more }];
  if (entry.type === "recovery") return [{ kind: "recovery", label: "Recovered", state: "lost", from, to: from, note: `recovery ${entry.recoveries}`, ...more }];
  const label = POINTS[entry.type];
  return label === undefined ? [] : [{ kind: "event", label, state: entry.error ? "failed" : "ok", from, to: from, note: entry.reason ?? entry.event ?? entry.message ?? entry.error ?? entry.kind, ...more }];
}

/**
 * Corrects lost attempts. Nobody records when a process is lost: the log has only the time of the recovery. So the loss is
 * drawn from the last known event before it to the recovery.
 *
 * @param {Bar[]} bars
 * @param {number} began
 */
function lost(bars, began) {
  for (const recovery of bars.filter(({ kind }) => kind === "recovery")) {
    const known = bars.filter(({ kind, state, from }) => kind !== "wait" && !(kind === "attempt" && state === "lost") && from < recovery.to);
    const last = Math.max(began, ...known.map(({ to, from }) => (to < recovery.to ? to : from)));
    for (const bar of bars) {
      if (bar.kind === "attempt" && bar.state === "lost" && bar.from === bar.to && bar.from >= last && bar.from <= recovery.to + 50) bar.from = last;
    }
    recovery.from = last;
  }
  return bars.sort((a, b) => a.from - b.from || a.to - b.to);
}

/** The maximum share of the axis for an idle stretch, relative to the active time. */
const SHORT = 0.25;
const LEAST_MS = 1_000;

/** @param {Bar[]} bars @param {number} from @param {number} to @returns {Axis} */
export function axisOf(bars, from, to) {
  // Waits are not activity: they may take days, while the rest takes milliseconds.
  const busy = bars.filter(({ kind }) => kind !== "wait").map((bar) => [Math.max(bar.from, from), Math.min(Math.max(bar.to, bar.from), to)]);
  busy.push([from, from], [to, to]);
  busy.sort(([a = 0], [b = 0]) => a - b);
  /** @type {[number, number][]} */
  const merged = [];
  for (const [a = 0, b = 0] of busy) {
    const last = merged.at(-1);
    if (last && a <= last[1]) last[1] = Math.max(last[1], b);
    else merged.push([a, b]);
  }
  const active = merged.reduce((sum, [a, b]) => sum + b - a, 0);
  const most = Math.max(LEAST_MS, active * SHORT);
  /** @type {{ from: number, to: number, drawn: number, cut: boolean }[]} */
  const pieces = [];
  merged.forEach(([a, b], at) => {
    const before = merged[at - 1];
    if (before && a > before[1]) pieces.push({ from: before[1], to: a, drawn: Math.min(a - before[1], most), cut: a - before[1] > most });
    if (b > a) pieces.push({ from: a, to: b, drawn: b - a, cut: false });
  });
  const whole = pieces.reduce((sum, { drawn }) => sum + drawn, 0) || 1;
  const place = (/** @type {number} */ at) => {
    let x = 0;
    for (const piece of pieces) {
      if (at >= piece.to) x += piece.drawn;
      else if (at > piece.from) x += (piece.drawn * (at - piece.from)) / (piece.to - piece.from);
    }
    return Math.min(100, (100 * x) / whole);
  };
  const gaps = pieces.filter(({ cut }) => cut).map((piece) => ({ at: place(piece.from), width: (100 * piece.drawn) / whole, ms: piece.to - piece.from, from: piece.from }));
  return { place, gaps, from, to };
}
