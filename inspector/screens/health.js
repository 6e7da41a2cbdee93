// The next actions of a thread in words, and the size of its next request.

import { get, ofThread } from "../lib/api.js";
import { ago, bytes, clock, count, digits } from "../lib/format.js";
import { useLoaded, useNow } from "../lib/hooks.js";
import { html } from "../lib/html.js";
import { Busy, Curl, Data, Fold, Problem, State } from "../parts/ui.js";

const EVERY_MS = 2_000;

/** @type {Record<string, string>} */
const PHASES = {
  start: "about to open its next step",
  model: "waiting for the model's answer",
  tools: "running the calls of its step",
  parked: "waiting for something outside: nothing of it is in memory",
  parked_start: "waiting for something outside, before its next step",
  parked_model: "waiting for a later attempt at the model",
  ended: "over",
};
/** @type {Record<string, string>} */
const DUE = { run: "the run goes on", outbox: "news for another thread", effect: "an effect", wait: "the end of a wait", subagent: "a look at a subagent", summary: "a summary", index: "documents are indexed", export: "spans are exported" };

/** @param {any} of @param {number} now @returns {[string, string][]} */
function sentences(of, now) {
  const at = (/** @type {number} */ us) => `${clock(us / 1000)} (${ago(us / 1000, now)})`;
  const { run } = of;
  const active = run && run.phase !== "ended";
  return [
    ["Run", active ? `${run.id} is at step ${run.step}, attempt ${run.attempt}: ${PHASES[run.phase] ?? run.phase}.` : run ? `None is under way. The last one, ${run.id}, has ended${run.reason ? ` (${run.reason})` : ""}.` : "There has been none."],
    ...(active && run.recoveries > 0 ? [/** @type {[string, string]} */ (["Recoveries", `This step was entered again ${count(run.recoveries, "time")} after its process was lost.`])] : []),
    ...(active && run.resume_at ? [/** @type {[string, string]} */ (["Goes on", `By itself at ${at(run.resume_at)}.`])] : []),
    ["Queue", of.queue.waiting === 0 ? "Nothing waits in it." : `${count(of.queue.waiting, "message")} wait to be taken in.`],
    ["Next look", of.alarm.at ? `At ${at(of.alarm.at)}${of.due[0] ? `: ${DUE[of.due[0].what] ?? of.due[0].what}` : ""}.` : "None: the thread is at rest, and costs nothing."],
    ["Effects", of.effects.running > 0 ? `${count(of.effects.running, "effect")} run now.` : of.effects.next ? `The next one is due at ${at(of.effects.next)}.` : "None is scheduled."],
    ["Subagents", of.children.length === 0 ? "None are at work." : `${count(of.children.length, "subagent")}: ${of.children.map((/** @type {any} */ { agent, status, state }) => `${agent} (${status ?? state})`).join(", ")}.`],
    ["Listeners", of.listeners ? "Somebody follows it." : "Nobody follows it."],
    ["Storage", `${bytes(of.bytes)}, in ${count(of.history.lastSeq, "place")} for messages; schema ${of.schema}.`],
  ];
}

/** @param {{ id: string }} props */
export function Health({ id }) {
  const path = ofThread(id, "/diagnostics");
  const { data, error, again } = useLoaded((signal) => get(path, signal), [path], { everyMs: EVERY_MS });
  const now = useNow(1_000);
  return html`<div class="page">
    <${Problem} of=${error} again=${again} />
    ${!data && !error && html`<${Busy} />`}
    ${data &&
    html`<section class="box" aria-label="Health">
      <header><h2>Health</h2><${State} state=${data.state} /></header>
      <dl class="facts-list">${sentences(data, now).map(([name, text]) => html`<div><dt>${name}</dt><dd>${text}</dd></div>`)}</dl>
      ${data.due.length > 0 &&
      html`<p class="label">Due</p><ul class="list">${data.due.map((/** @type {any} */ due) => html`<li class="row"><span>${DUE[due.what] ?? due.what}</span><code>${due.subject ?? ""}</code><span class="grow"></span><small>${due.at ? `${clock(due.at / 1000)} (${ago(due.at / 1000, now)})` : ""}${due.tries > 0 ? `, tried ${count(due.tries, "time")}` : ""}</small></li>`)}</ul>`}
      <${Fold} summary="As JSON"><${Data} value=${data} label="Diagnostics as JSON" /><//>
    </section>`}
    <${Context} id=${id} />
    <${Spent} id=${id} />
  </div>`;
}

/** The contents of the next request. @param {{ id: string }} props */
function Context({ id }) {
  const path = ofThread(id, "/context");
  const { data, error } = useLoaded((signal) => get(path, signal), [path], { everyMs: 10_000 });
  const parts = Object.entries(data?.parts ?? {}).map(([name, tokens]) => ({ name, tokens: Number(tokens) }));
  const all = parts.reduce((sum, { tokens }) => sum + tokens, 0);
  return html`<section class="box" aria-label="The next request">
    <header><h2>The next request</h2><span class="grow"></span><${Curl} path=${path} bare /></header>
    <${Problem} of=${error} />
    ${data &&
    html`<p>It would ask <b>${data.model}</b> with about ${digits(all)} of the ${digits(data.budget)} tokens that it may have (${Math.round(data.used * 100)} %), and ${count(data.history.messages, "message")}${data.history.left_out > 0 ? `; ${data.history.left_out} older ones are left out` : ""}.</p>
      <figure class="parts">
        <div class="stack" role="img" aria-label=${parts.map(({ name, tokens }) => `${name}: ${tokens} tokens`).join(", ")}>${parts.filter(({ tokens }) => tokens > 0).map(({ name, tokens }) => html`<span data-of=${name} style=${{ flexGrow: tokens }}></span>`)}<span class="free" style=${{ flexGrow: Math.max(0, data.budget - all) }}></span></div>
        <figcaption>${parts.map(({ name, tokens }) => html`<span><i data-of=${name}></i>${name} <b>${digits(tokens)}</b></span>`)}</figcaption>
      </figure>`}
  </section>`;
}

/** The budget of runs and its usage. @param {{ id: string }} props */
function Spent({ id }) {
  const path = ofThread(id, "/budget");
  const { data } = useLoaded((signal) => get(path, signal), [path], { everyMs: 10_000 });
  const limits = Object.entries({ ...data?.limits?.run, ...data?.limits?.thread });
  if (!data) return null;
  return html`<section class="box" aria-label="Budget">
    <header><h2>Budget</h2><span class="grow"></span><${Curl} path=${path} bare /></header>
    ${limits.length === 0 ? html`<p class="quiet">Nothing is limited: <code>budget</code> of the agent, a message or the thread does.</p>` : html`<${Data} value=${{ limits: data.limits, spent: data.spent, left: data.left }} label="Budget as JSON" />`}
  </section>`;
}
