// The timeline: each attempt, call, wait and recovery of a run as a bar on its time axis, and the effects below.

import { useState } from "preact/hooks";
import { get, ofThread } from "../lib/api.js";
import { clock, count, short, span } from "../lib/format.js";
import { useLoaded } from "../lib/hooks.js";
import { html } from "../lib/html.js";
import { hrefOf } from "../lib/route.js";
import { axisOf, barsOf } from "../lib/timeline.js";
import { Button, Busy, Curl, Empty, Export, Fold, Problem, State } from "../parts/ui.js";

const EVERY_MS = 3_000;
const RUNS = 20;
/** The number of bars that are drawn at first, the newest ones. */
const BARS = 200;

/** The thread's logs since a time, in order of time. @param {string} id @param {number} sinceUs @param {AbortSignal} signal */
async function logsSince(id, sinceUs, signal) {
  /** @type {any[]} */
  const all = [];
  for (let offset = 0; offset < 5_000; offset += 500) {
    const page = await get(ofThread(id, `/logs?limit=500&offset=${offset}`), signal);
    all.push(...page.logs);
    if (!page.hasMore || (page.logs.at(-1)?.created_at ?? 0) < sinceUs) break;
  }
  return all.reverse();
}

/** @param {{ id: string, running: boolean }} props */
export function Timeline({ id, running }) {
  const [runs, setRuns] = useState(RUNS);
  const load = async (/** @type {AbortSignal} */ signal) => {
    const [page, waits, effects] = await Promise.all([
      get(ofThread(id, `/runs?limit=${runs}`), signal),
      get(ofThread(id, "/waits?state=all&limit=500"), signal),
      get(ofThread(id, "/effects?limit=100"), signal),
    ]);
    const logs = await logsSince(id, page.runs.at(-1)?.startedAt ?? 0, signal);
    return { ...page, waits: waits.waits, effects: effects.effects, logs };
  };
  const { data, error, again } = useLoaded(load, [id, runs, running], { everyMs: EVERY_MS });
  if (!data) return html`<div class="page">${error ? html`<${Problem} of=${error} again=${again} />` : html`<${Busy} />`}</div>`;
  if (data.runs.length === 0 && data.effects.length === 0) {
    return html`<div class="page"><${Empty} title="Nothing has happened yet"><p>Send a message: its run is drawn here as it goes.</p><//></div>`;
  }
  return html`<div class="page timeline">
    <div class="head"><p class="legend">${[["attempt", "Model"], ["call", "Tool"], ["wait", "Waiting"], ["recovery", "Lost and recovered"], ["failed", "Failed"]].map(([kind, label]) => html`<span><i data-kind=${kind}></i>${label}</span>`)}</p><span class="grow"></span><${Curl} path=${ofThread(id, "/logs?limit=500&order=asc")} bare /><${Export} name=${`log-${id}`} load=${async () => data.logs} bare /></div>
    ${data.runs.map((/** @type {any} */ run, /** @type {number} */ at) => html`<${Run} key=${run.run} id=${id} run=${run} data=${data} open=${at === 0} />`)}
    ${data.hasMore && html`<${Button} label="Earlier runs" onClick=${() => setRuns(Math.min(500, runs + RUNS))} />`}
    ${data.effects.length > 0 && html`<${Effects} effects=${data.effects} />`}
  </div>`;
}

/** @param {{ id: string, run: any, data: any, open: boolean }} props */
function Run({ id, run, data, open }) {
  const now = Date.now();
  const [from, to] = [run.startedAt / 1000, run.endedAt ? run.endedAt / 1000 : now];
  const recovered = data.logs.filter((/** @type {any} */ entry) => entry.type === "recovery" && entry.run === run.run).length;
  return html`<${Fold}
    class="run"
    open=${open}
    summary=${html`<strong>${run.run.replace("r_", "Run ")}</strong><${State} state=${run.outcome ?? run.status} />
      <span class="quiet">${clock(from)} · ${span(to - from)} · ${count(run.steps, "step")}${run.reason && run.reason !== "stop_on_response" ? ` · ${run.reason}` : ""}</span>
      ${recovered > 0 && html`<span class="tag warm">${recovered === 1 ? "recovered" : `recovered ${recovered} times`}</span>`}
      ${run.diagnostics > 0 && html`<span class="tag">${count(run.diagnostics, "diagnostic")}</span>`}`}
  >
    <${Chart} id=${id} bars=${barsOf(run, data.logs, data.waits, now)} from=${from} to=${to} />
    ${run.error && html`<p class="quiet">${short(run.error.message ?? run.error, 400)}</p>`}
    ${run.diagnostics > 0 && html`<${Diagnostics} id=${id} run=${run.run} />`}
  <//>`;
}

/** The diagnostics of a run. @param {{ id: string, run: string }} props */
function Diagnostics({ id, run }) {
  const { data } = useLoaded((signal) => get(ofThread(id, `/runs/${run}`), signal), [id, run]);
  return html`<ul class="found" aria-label="Diagnostics">${(data?.diagnostics ?? []).map((/** @type {any} */ one) => html`<li><code>${one.code}</code><span>${one.message}</span></li>`)}</ul>`;
}

/** @param {{ id: string, bars: import("../lib/timeline.js").Bar[], from: number, to: number }} props */
function Chart({ id, bars, from, to }) {
  const [all, setAll] = useState(false);
  const axis = axisOf(bars, from, to);
  const shown = all ? bars : bars.slice(-BARS);
  if (bars.length === 0) return html`<p class="quiet">Nothing of it is in the log.</p>`;
  return html`${shown.length < bars.length && html`<${Button} label=${`Show all ${bars.length}`} onClick=${() => setAll(true)} />`}
    <ol class="bars">
      ${shown.map((bar) => html`<${BarRow} id=${id} bar=${bar} axis=${axis} />`)}
    </ol>
    <div class="axis" aria-hidden="true"><span>${clock(from)}</span>${axis.gaps.map((gap) => html`<span class="gap" style=${{ left: `${gap.at + gap.width / 2}%` }}>${span(gap.ms)}</span>`)}<span>${span(to - from)}</span></div>`;
}

/** @param {{ id: string, bar: import("../lib/timeline.js").Bar, axis: import("../lib/timeline.js").Axis }} props */
function BarRow({ id, bar, axis }) {
  const [left, right] = [axis.place(bar.from), axis.place(bar.to)];
  const lasts = bar.to - bar.from;
  const words = bar.kind === "recovery" ? `recovered after ${span(lasts)}` : lasts > 0 ? span(lasts) : `at ${clock(bar.from)}`;
  const name = html`<b>${bar.label}</b>${bar.note && html`<small>${short(bar.note, 60)}</small>`}`;
  return html`<li data-kind=${bar.kind} data-state=${bar.state}>
    ${bar.message ? html`<a class="name" href=${hrefOf({ screen: "thread", thread: id, message: bar.message })}>${name}</a>` : html`<span class="name">${name}</span>`}
    <span class="track" aria-hidden="true">
      ${axis.gaps.map((gap) => html`<i class="pause" style=${{ left: `${gap.at}%`, width: `${gap.width}%` }}></i>`)}
      <i class="extent" style=${{ left: `${Math.min(left, 99.5)}%`, width: `max(3px, ${right - left}%)` }}></i>
    </span>
    <span class="lasts">${words}</span>
  </li>`;
}

/** Draws effects on a separate axis, because they continue outside of runs. @param {{ effects: any[] }} props */
function Effects({ effects }) {
  const now = Date.now();
  const bars = effects.map((effect) => {
    const state = effect.status === "failed" ? "failed" : effect.endedAt ? "ok" : "open";
    const at = effect.dueAt ?? effect.scheduledAt;
    return { kind: "effect", label: effect.name, state, from: effect.createdAt / 1000, to: (effect.endedAt ?? at ?? effect.createdAt) / 1000, note: effect.status };
  });
  const [from, to] = [Math.min(...bars.map((bar) => bar.from)), Math.max(now, ...bars.map((bar) => bar.to))];
  const axis = axisOf(bars, from, to);
  return html`<section class="run" aria-label="Effects"><h2>Effects</h2>
    <ol class="bars">${bars.map((bar) => html`<${BarRow} id="" bar=${bar} axis=${axis} />`)}</ol>
  </section>`;
}
