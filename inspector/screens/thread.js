// One thread: its facts, its actions, and its views.

import { useEffect, useState } from "preact/hooks";
import { get, isRefusal, ofThread, send } from "../lib/api.js";
import { caseOf } from "../lib/case.js";
import { useThread } from "../lib/follow.js";
import { cost, count } from "../lib/format.js";
import { useAction, useKeys, useLoaded, useTitle } from "../lib/hooks.js";
import { html, names } from "../lib/html.js";
import { go, hrefOf } from "../lib/route.js";
import { isReply } from "../lib/rows.js";
import { Button, Confirm, Copy, Curl, Empty, Export, Problem, State } from "../parts/ui.js";
import { Wait } from "../parts/wait.js";
import { Icon } from "../parts/icons.js";
import { Menu } from "../parts/menu.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { Data } from "./data.js";
import { Health } from "./health.js";
import { Step } from "./step.js";
import { Timeline } from "./timeline.js";

/** @typedef {import("../lib/route.js").Place} Place */

const EVERY_MS = 10_000;

/** @param {{ id: string, place: Place }} props */
export function ThreadScreen({ id, place }) {
  const followed = useThread(id);
  const { view } = followed;
  // An address may name any message, but only a reply has a step. A message that is not loaded yet is searched for.
  const named = followed.messages.find((message) => message.id === place.message);
  const hasStep = place.message !== undefined && (named ? isReply(named) : view.state !== null && !followed.hasMore);
  const facts = useLoaded((signal) => get(ofThread(id), signal), [id, view.state ?? ""], { everyMs: EVERY_MS });
  const spent = useLoaded((signal) => get(ofThread(id, "/cost"), signal), [id, view.state ?? ""]);
  const stop = useAction(() => send("POST", ofThread(id, "/stop")));
  const title = facts.data?.agent?.title ?? facts.data?.thread.agent_id;
  useTitle(`${title ?? "Thread"} · Bobbin`);
  useKeys({ ".": () => void stop.run(), Escape: () => go({ screen: "thread", thread: id, tab: "conversation" }) });
  if (isRefusal(followed.error ?? facts.error, "thread_not_found")) {
    return html`<section class="thread" aria-label="Thread"><${Empty} title="There is no such thread">
      <p>It was deleted, or it is not yours to see.</p><a class="button" href="#/">All threads</a>
    <//></section>`;
  }
  // No frame reports the termination of an idle thread.
  const told = facts.data?.thread.state;
  const state = told === "terminated" ? told : (view.state ?? told);
  return html`<section class="thread" aria-label="Thread">
    <${Head} id=${id} title=${title} facts=${facts.data} spent=${spent.data} state=${state} connected=${view.connected} stop=${stop} />
    <${Tabs} id=${id} tab=${place.tab ?? "conversation"} />
    <${Problem} of=${followed.error ?? (stop.problem || undefined)} />
    ${(place.tab ?? "conversation") === "conversation" &&
    html`<div class=${names("talk", hasStep && "with-step")}><div class="left">
      <${Conversation} id=${id} followed=${followed} two=${facts.data?.agent?.type === "dual_ai"} selected=${place.message} />
      ${view.pending.length > 0 && html`<div class="asks">${view.pending.map((wait) => html`<${Wait} key=${wait.id} wait=${wait} within=${wait.threadId === id} onDecided=${followed.decided} />`)}</div>`}
      <${Composer} id=${id} two=${facts.data?.agent?.type === "dual_ai"} ended=${state === "terminated"} working=${state === "running" ? (view.progress ?? "Working") : undefined} onStop=${() => void stop.run()} />
      </div>
      ${hasStep && html`<${Step} id=${id} message=${place.message} messages=${followed.messages} />`}
    </div>`}
    ${place.tab === "data" && html`<${Data} id=${id} facts=${facts.data} state=${state} />`}
    ${place.tab === "health" && html`<${Health} id=${id} />`}
    ${place.tab === "timeline" && html`<${Timeline} id=${id} running=${state === "running"} />`}
  </section>`;
}

/** The head of the page. It keeps its place while the thread loads. @param {{ id: string, title: string | undefined, facts: any, spent: any, state: string | undefined, connected: boolean, stop: { busy: boolean, run: () => unknown } }} props */
function Head({ id, title, facts, spent, state, connected, stop }) {
  const thread = facts?.thread;
  // A stream that is still connecting is not shown as lost.
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(!connected), connected ? 0 : 700);
    return () => clearTimeout(timer);
  }, [connected]);
  const used = spent?.total;
  return html`<header class="bar">
    <a class="button quiet bare back" href="#/" aria-label="All threads"><${Icon} name="back" /></a>
    <div class="what">
      <h1>${title ?? html`<span class="coming" role="status"><span class="unseen">Loading</span></span>`}</h1>
      <${State} state=${state} />
      ${late && html`<span class="lost" role="status">Connecting again …</span>`}
      <p class="facts">
        <code title=${id}>${thread?.key ?? id}</code><${Copy} label="Copy id" bare text=${() => id} />
        ${thread?.user_id && html`<span>of ${thread.user_id}</span>`}
        ${used ? html`<span title="Cost, with everything below">${cost(used.cost)}</span><span>${count(used.inputTokens + used.outputTokens, "token")}</span>` : html`<span class="coming"></span>`}
        ${(thread?.tags ?? []).map((/** @type {string} */ tag) => html`<span class="tag">${tag}</span>`)}
        ${thread?.parent && html`<a href=${hrefOf({ screen: "thread", thread: thread.parent, tab: "conversation" })}>part of another thread</a>`}
      </p>
    </div>
    <${Acts} id=${id} agent=${thread?.origin_agent_id} state=${state} stop=${stop} />
  </header>`;
}

/** @param {{ id: string, agent: string | undefined, state: string | undefined, stop: { busy: boolean, run: () => unknown } }} props */
function Acts({ id, agent, state, stop }) {
  const [asked, setAsked] = useState(/** @type {"terminate" | "delete" | undefined} */ (undefined));
  const more = useAction(async (/** @type {"continue" | "fork"} */ what) => {
    const done = await send("POST", ofThread(id, `/${what}`), what === "fork" ? {} : undefined, { once: what === "fork" });
    if (what === "fork") go({ screen: "thread", thread: done.threadId, tab: "conversation" });
  });
  const busy = state === "running" || state === "parked";
  return html`<div class="acts">
    ${busy
      ? html`<${Button} label="Stop" icon="stop" title="Stop (.)" busy=${stop.busy} onClick=${() => void stop.run()} />`
      : state !== "terminated" && html`<${Button} label="Continue" icon="play" busy=${more.busy} onClick=${() => void more.run("continue")} />`}
    <${Menu} label="More">
        <${Button} kind="quiet" icon="branch" label="Fork" onClick=${() => void more.run("fork")} />
        <${Curl} path=${ofThread(id)} />
        <${Export} name=${`thread-${id}`} load=${() => everything(id)} />
        <${Export} label="Save as test" name=${`${agent ?? "thread"}.test`} load=${async () => caseOf(agent ?? "", await pages(id, "messages", "order=asc&includeSilent=true"))} />
        <${Button} kind="quiet" icon="cross" label="Terminate …" disabled=${state === "terminated"} onClick=${() => setAsked("terminate")} />
        <${Button} kind="quiet" icon="warn" label="Delete …" onClick=${() => setAsked("delete")} />
    <//>
    <${Problem} of=${more.problem} />
    ${asked === "terminate" && html`<${Confirm} title="Terminate this thread?" text="Its run ends, and it takes no more messages. It stays readable." act="Terminate" onAct=${() => send("POST", ofThread(id, "/terminate"))} onClose=${() => setAsked(undefined)} />`}
    ${asked === "delete" &&
    html`<${Confirm}
      title="Delete this thread?"
      text="Its messages, files, values and everything below it go. This cannot be undone."
      act="Delete"
      onAct=${async () => {
        await send("DELETE", ofThread(id));
        go({ screen: "threads" });
      }}
      onClose=${() => setAsked(undefined)}
    />`}
  </div>`;
}

/** All messages and the log, each row with its type. @param {string} id */
async function everything(id) {
  const [{ thread }, messages, logs] = await Promise.all([get(ofThread(id)), pages(id, "messages", "order=asc&includeSilent=true"), pages(id, "logs", "order=asc")]);
  const row = (/** @type {string} */ type) => (/** @type {any} */ of) => ({ row: type, ...of });
  return [row("thread")(thread), ...messages.map(row("message")), ...logs.map(row("log"))];
}

/** @param {string} id @param {string} name @param {string} query */
async function pages(id, name, query) {
  /** @type {any[]} */
  const all = [];
  for (;;) {
    const page = await get(ofThread(id, `/${name}?${query}&limit=500&offset=${all.length}`));
    all.push(...page[name]);
    if (!page.hasMore || page[name].length === 0 || all.length >= 10_000) return all;
  }
}

/** @param {{ id: string, tab: string }} props */
const Tabs = ({ id, tab }) => html`<nav class="tabs" aria-label="Views of the thread">
  ${[["conversation", "Conversation"], ["timeline", "Timeline"], ["data", "Data"], ["health", "Health"]].map(
    ([name, label]) => html`<a href=${hrefOf({ screen: "thread", thread: id, tab: /** @type {any} */ (name) })} aria-current=${tab === name ? "page" : undefined}>${label}</a>`,
  )}
</nav>`;

