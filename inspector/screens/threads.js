// All threads, the latest activity first, each with its subagents below it.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, getOfEveryOwner, ofEveryOwner } from "../lib/api.js";
import { count, short } from "../lib/format.js";
import { useKeys, useLoaded, useTitle } from "../lib/hooks.js";
import { html, names } from "../lib/html.js";
import { plain } from "../lib/plain.js";
import { go, hrefOf } from "../lib/route.js";
import { Busy, Button, Curl, Empty, Export, Problem, Time } from "../parts/ui.js";
import { Icon } from "../parts/icons.js";
import { NewThread } from "./new-thread.js";

const EVERY_MS = 5_000;
/** New owners appear with their first threads. */
const OWNERS_EVERY_MS = 15_000;
const PAGE = 50;

/** The filters for states, as query parameters. @type {Record<string, Record<string, string>>} */
const STATES = { all: {}, running: { executing: "true" }, waiting: {}, failed: { failed: "true" }, terminated: { terminated: "true" } };
/** The filter for all owners. An owner may have any name but this one. */
const EVERYBODY = "*";

/** @typedef {{ search: string, state: string, agent: string, owner: string, children: boolean }} Filter */

/** @param {Filter} filter @param {number} limit */
function queryOf({ search, state, agent, owner, children }, limit) {
  const query = new URLSearchParams({ limit: String(limit), ...STATES[state] });
  if (search !== "") query.set("search", search);
  if (agent !== "") query.set("agent_id", agent);
  if (owner !== "" && owner !== EVERYBODY) query.set("user_id", owner);
  if (children) query.set("include_children", "true");
  return `/threads?${query}`;
}

/** Loads a list that only administrators may see; it is empty for others. @param {string} path @param {(found: any) => any[]} of */
const optional = (path, of) => (/** @type {AbortSignal} */ signal) => get(path, signal).then(of, () => []);

/** @type {Filter} */
const EVERYTHING = { search: "", state: "all", agent: "", owner: EVERYBODY, children: true };

/** @param {{ selected: string | undefined, waits: import("../lib/waits.js").OpenWaits }} props */
export function Threads({ selected, waits }) {
  const [filter, setFilter] = useState(EVERYTHING);
  const [limit, setLimit] = useState(PAGE);
  const [making, setMaking] = useState(false);
  const search = useRef(/** @type {HTMLInputElement | null} */ (null));
  const path = queryOf(filter, limit);
  const all = filter.owner === EVERYBODY;
  const { data, error, again } = useLoaded((signal) => (all ? getOfEveryOwner(path, signal) : get(path, signal)), [path, all], { everyMs: EVERY_MS });
  const last = useRef(data);
  if (data) last.current = data;
  const agents = useLoaded(optional("/agents", (found) => found.agents), []);
  const owners = useLoaded(optional("/threads/owners?limit=200", (found) => found.owners), [], { everyMs: OWNERS_EVERY_MS });
  useTitle(selected === undefined ? "Threads · Bobbin" : document.title);
  const listed = tree((data ?? last.current)?.threads ?? []).filter(({ thread }) => filter.state !== "waiting" || waits.threads.has(thread.id));
  const step = (/** @type {number} */ by) => {
    const at = listed.findIndex(({ thread }) => thread.id === selected);
    const next = listed[Math.max(0, Math.min(listed.length - 1, at + by))];
    if (next) go({ screen: "thread", thread: next.thread.id, tab: "conversation" });
  };
  // Beside an open thread, these keys belong to its messages.
  useKeys(selected === undefined ? { j: () => step(1), k: () => step(-1), "/": () => search.current?.focus(), n: () => setMaking(true) } : { "/": () => search.current?.focus() });
  const narrowed = filter.search !== "" || filter.state !== "all" || filter.agent !== "" || !all;
  return html`<section class="threads" aria-label="Threads">
    <header class="bar">
      <h1>Threads</h1>
      <span class="total">${data ? data.total : ""}</span>
      <${Button} label="New thread" icon="plus" kind="primary" onClick=${() => setMaking(true)} />
    </header>
    <${Filters} filter=${filter} onFilter=${setFilter} search=${search} agents=${agents.data ?? []} owners=${owners.data ?? []} />
    <${Problem} of=${error} again=${again} />
    ${!data && !last.current && !error && html`<${Busy} />`}
    <${Rows} listed=${listed} selected=${selected} waiting=${waits.threads} />
    ${data && listed.length === 0 && html`<${Nothing} narrowed=${narrowed} onNew=${() => setMaking(true)} onAll=${() => setFilter({ ...EVERYTHING, children: filter.children })} />`}
    ${data?.hasMore && html`<${Button} label="Show more" onClick=${() => setLimit(Math.min(500, limit + PAGE))} disabled=${limit >= 500} />`}
    ${data?.ownersLeftOut > 0 && html`<p class="left-out quiet">Threads of ${count(data.ownersLeftOut, "more owner")} are not in this list. Choose an owner to see theirs.</p>`}
    <footer class="foot"><${Curl} path=${all ? ofEveryOwner(path) : path} /><${Export} name="threads" load=${async () => (await (all ? getOfEveryOwner(path) : get(path))).threads} /></footer>
    ${making && html`<${NewThread} agents=${agents.data ?? []} first=${lastUsed(data?.threads)} owner=${all ? "" : filter.owner} onClose=${() => setMaking(false)} />`}
  </section>`;
}

/** The agent of the most recently active thread. @param {any[] | undefined} threads @returns {string | undefined} */
const lastUsed = (threads) => threads?.find(({ parent, agent }) => parent === null && agent !== null)?.agent_id;

/** @param {{ listed: Branch[], selected: string | undefined, waiting: Map<string, any> }} props */
function Rows({ listed, selected, waiting }) {
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" }), [selected]);
  return html`<ol class="rows" ref=${list}>
    ${listed.map(
      ({ thread, depth }) => html`<li key=${thread.id} style=${{ "--depth": Math.min(depth, 5) }} class=${names(depth > 0 && "below")}>
        <a href=${hrefOf({ screen: "thread", thread: thread.id, tab: "conversation" })} aria-current=${thread.id === selected ? "true" : undefined}>
          <span class="top">
            <span class="dot" data-state=${stateOf(thread, waiting)}></span>
            <strong>${thread.agent?.title ?? thread.agent_id}</strong>
            <span class="unseen">, ${stateOf(thread, waiting)}</span>
            <${Time} ms=${(thread.last_activity_at ?? thread.created_at ?? 0) * 1000} />
          </span>
          <span class="preview">${previewOf(thread, waiting)}</span>
          <span class="facts">
            <code>${thread.key ?? thread.id.slice(0, 8)}</code>
            ${thread.user_id && html`<span>${thread.user_id}</span>`} ${thread.tags.map((/** @type {string} */ tag) => html`<span class="tag">${tag}</span>`)}
          </span>
        </a>
      </li>`,
    )}
  </ol>`;
}

/** @param {any} thread @param {Map<string, any>} waiting */
const stateOf = (thread, waiting) =>
  thread.terminated ? "terminated" : waiting.has(thread.id) ? "waiting" : thread.executing ? "running" : thread.failed ? "failed" : "idle";

/** The preview of a thread: its wait, or its newest message. @param {any} thread @param {Map<string, any>} waiting */
function previewOf(thread, waiting) {
  const wait = waiting.get(thread.id);
  const text = short(wait?.title ? plain(wait.title) : thread.last_message_preview, 140);
  if (thread.failed && stateOf(thread, waiting) === "failed") return html`<b class="why">Failed: ${thread.failed}</b> ${text}`;
  return text || html`<i>No messages yet</i>`;
}

/** @typedef {{ thread: any, depth: number }} Branch */

/** Threads in their order, each followed by its children. @param {any[]} threads @returns {Branch[]} */
export function tree(threads) {
  const known = new Set(threads.map(({ id }) => id));
  /** @type {Map<string, any[]>} */
  const below = new Map();
  for (const thread of threads) if (known.has(thread.parent)) below.set(thread.parent, [...(below.get(thread.parent) ?? []), thread]);
  /** @type {Branch[]} */
  const found = [];
  const add = (/** @type {any} */ thread, /** @type {number} */ depth) => {
    found.push({ thread, depth });
    // Deeper than any real tree. A cycle is impossible, and would never end.
    if (depth < 20) for (const child of below.get(thread.id) ?? []) add(child, depth + 1);
  };
  for (const thread of threads) if (!known.has(thread.parent)) add(thread, 0);
  return found;
}

/** @param {{ filter: Filter, onFilter: (filter: Filter) => void, search: any, agents: any[], owners: any[] }} props */
const Filters = ({ filter, onFilter, search, agents, owners }) => {
  const set = (/** @type {keyof Filter} */ name) => (/** @type {any} */ event) => onFilter({ ...filter, [name]: event.target.value });
  const named = owners.filter(({ user_id }) => user_id !== null);
  return html`<form class="filters" role="search" aria-label="Filter threads" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    <label class="search"><${Icon} name="search" /><span class="unseen">Search</span
      ><input ref=${search} type="search" placeholder="Ids, tags, newest message" value=${filter.search} onInput=${set("search")} onKeyDown=${(/** @type {any} */ event) => event.key === "Escape" && event.target.blur()}
    /></label>
    <${Choice} label="State" value=${filter.state} onChange=${set("state")} options=${[["all", "Any state"], ["running", "Running"], ["waiting", "Waiting"], ["failed", "Failed"], ["terminated", "Terminated"]]} />
    ${agents.length > 1 && html`<${Choice} label="Agent" value=${filter.agent} onChange=${set("agent")} options=${[["", "Any agent"], ...agents.map(({ name, title }) => [name, title])]} />`}
    ${named.length > 0 && html`<${Choice} label="Owner" value=${filter.owner} onChange=${set("owner")} options=${[[EVERYBODY, "Any owner"], ["", "No owner"], ...named.map(({ user_id, threadCount }) => [user_id, `${user_id} (${threadCount})`])]} />`}
    <label class="check"><input type="checkbox" checked=${filter.children} onChange=${(/** @type {any} */ event) => onFilter({ ...filter, children: event.target.checked })} />Subagents</label>
  </form>`;
};

/** @param {{ label: string, value: string, onChange: (event: any) => void, options: [string, string][] }} props */
const Choice = ({ label, value, onChange, options }) => html`<select aria-label=${label} value=${value} onChange=${onChange}>
  ${options.map(([of, words]) => html`<option value=${of} selected=${of === value}>${words}</option>`)}
</select>`;

/** @param {{ narrowed: boolean, onNew: () => void, onAll: () => void }} props */
const Nothing = ({ narrowed, onNew, onAll }) =>
  narrowed
    ? html`<${Empty} title="No matching threads"><p>The search looks at the ids, agents and tags of threads, and at the newest message of each.</p><${Button} label="Show all threads" onClick=${onAll} /><//>`
    : html`<${Empty} title="No threads yet">
        <p>Every conversation is a thread that keeps its own state. Begin one here, or with the API.</p>
        <${Button} label="Begin a thread" icon="plus" kind="primary" onClick=${onNew} />
      <//>`;
