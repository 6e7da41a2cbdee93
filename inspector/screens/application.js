// The application on the server: its agents, the definitions of each, what is missing, and which agents lead to which.

import { get, isRefusal } from "../lib/api.js";
import { count } from "../lib/format.js";
import { useLoaded, useTitle } from "../lib/hooks.js";
import { html, names } from "../lib/html.js";
import { layout } from "../lib/graph.js";
import { hrefOf } from "../lib/route.js";
import { Button, Busy, Curl, Empty, Problem } from "../parts/ui.js";
import { Icon } from "../parts/icons.js";
import { Servers } from "../parts/servers.js";
import { NewThread } from "./new-thread.js";
import { useState } from "preact/hooks";

/** Kinds of definitions, in display order. @type {[kind: string, title: string][]} */
const KINDS = [["model", "Models"], ["prompt", "Prompts"], ["tool", "Tools"], ["skill", "Skills"], ["memory", "Memories"], ["hook", "Hooks"], ["agent", "Agents"]];

/** @param {AbortSignal} signal */
async function load(signal) {
  const [{ agents }, health] = await Promise.all([get("/agents", signal), fetch("/healthz").then((answer) => answer.json())]);
  const all = await Promise.all(agents.map((/** @type {any} */ { name }) => get(`/agents/${encodeURIComponent(name)}/explain`, signal)));
  return { agents, health, explained: new Map(all.map((one) => [one.agent, one])) };
}

/** @param {{ agent: string | undefined }} props */
export function Application({ agent }) {
  useTitle("Application · Bobbin");
  const { data, error, again } = useLoaded(load, [], { everyMs: 15_000 });
  const [making, setMaking] = useState(false);
  if (!data) {
    return html`<section class="app" aria-label="Application"><header class="bar"><h1>Application</h1></header>
      ${error ? html`<${Problem} of=${isRefusal(error, "forbidden") ? "This key does not see the application." : error} again=${again} />` : html`<${Busy} />`}</section>`;
  }
  const shown = data.agents.find((/** @type {any} */ one) => one.name === agent) ?? data.agents[0];
  const explained = shown && data.explained.get(shown.name);
  return html`<section class="app" aria-label="Application">
    <header class="bar"><h1>Application</h1><span class="total">${count(data.agents.length, "agent")}, Bobbin ${data.health.version}${data.health.warnings ? `, ${count(data.health.warnings, "warning")} when it was compiled` : ""}</span>
      <${Button} label="New thread" icon="plus" onClick=${() => setMaking(true)} /></header>
    <${Problem} of=${error} again=${again} />
    ${data.agents.length === 0
      ? html`<${Empty} title="There are no agents"><p>An agent is a file in <code>agents/agents/</code>. Write one, and it is here.</p><//>`
      : html`<${Graph} agents=${data.agents} explained=${data.explained} selected=${shown.name} />
          ${explained && html`<${Agent} agent=${shown} explained=${explained} />`} ${explained?.unused.length > 0 && html`<${Unused} of=${explained.unused} />`} <${Servers} agent=${shown.name} />`}
    <footer class="foot"><${Curl} path="/agents" /></footer>
    ${making && html`<${NewThread} agents=${data.agents} owner="" first=${shown?.name} onClose=${() => setMaking(false)} />`}
  </section>`;
}

/** @type {Record<string, string>} */
const HOW = { handoff: "hands the thread over to", subagent: "has a subagent", worker: "leads workers of" };

/** Draws agents as boxes, with lines to the agents that they lead to. @param {{ agents: any[], explained: Map<string, any>, selected: string }} props */
function Graph({ agents, explained, selected }) {
  const edges = agents.flatMap(({ name }) => (explained.get(name)?.leads ?? []).map((/** @type {any} */ { agent, how }) => ({ from: name, to: agent, how })));
  const { places, width, height } = layout(agents.map(({ name }) => name), edges);
  const title = new Map(agents.map(({ name, title: of }) => [name, of]));
  return html`<div class="graph" tabindex="0" role="group" aria-label="Agents, and which lead to which">
    <div class="field-of" style=${{ width: `${width}px`, height: `${height}px` }}>
      <svg width=${width} height=${height} aria-hidden="true">
        <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" /></marker></defs>
        ${edges.map(({ from, to, how }) => {
          const [a, b] = [places.get(from), places.get(to)];
          if (!a || !b) return null;
          const [x1, y1, x2, y2] = [a.x + a.width, a.y + a.height / 2, b.x, b.y + b.height / 2];
          const back = x2 <= x1;
          const bend = back ? 70 : Math.max(30, (x2 - x1) / 2);
          return html`<path class=${names(how, (from === selected || to === selected) && "on")} d=${`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 2} ${y2}`} marker-end="url(#tip)" />`;
        })}
      </svg>
      ${agents.map(({ name }) => {
        const at = places.get(name);
        const bad = (explained.get(name)?.missing ?? []).length;
        return html`<a key=${name} class="node" href=${hrefOf({ screen: "app", agent: name })} aria-current=${name === selected ? "true" : undefined} style=${{ left: `${at?.x}px`, top: `${at?.y}px`, width: `${at?.width}px`, height: `${at?.height}px` }}>
          <strong>${title.get(name)}</strong>${bad > 0 && html`<span class="bad-mark" title=${count(bad, "part")}><${Icon} name="warn" /><span class="unseen">, ${count(bad, "part")} missing</span></span>`}
        </a>`;
      })}
    </div>
    ${edges.length > 0 && html`<p class="legend"><span><i class="handoff"></i>hand-off</span><span><i class="subagent"></i>subagent</span><span><i class="worker"></i>worker</span></p>`}
  </div>`;
}

/** @param {{ agent: any, explained: any }} props */
function Agent({ agent, explained }) {
  const path = `/agents/${encodeURIComponent(agent.name)}`;
  const { data } = useLoaded((signal) => get(path, signal), [path]);
  const lacks = new Map(explained.missing.map((/** @type {any} */ one) => [`${one.kind} ${one.name}`, one.message]));
  return html`<section class="box agent-of" aria-label=${agent.title}>
    <header><h2>${agent.title}</h2><code>${explained.file ?? agent.name}</code><span class="tag">${agent.type === "dual_ai" ? "two AI sides" : "talks to people"}</span><span class="grow"></span><${Curl} path=${`${path}/explain`} bare /></header>
    ${agent.description && html`<p>${agent.description}</p>`}
    <dl class="facts-list">
      ${data &&
      [["sideA", "Side A"], ["sideB", "Side B"]].map(([side, label]) => {
        const of = data[/** @type {string} */ (side)];
        return of && html`<div><dt>${label}</dt><dd><code>${of.prompt}</code> on <code>${of.model}</code>${of.maxSteps ? `, at most ${count(of.maxSteps, "step")}` : ""}${of.stopTool ? html`, ends with <code>${of.stopTool}</code>` : ""}</dd></div>`;
      })}
      ${explained.leads.length > 0 && html`<div><dt>Leads</dt><dd>${explained.leads.map((/** @type {any} */ one) => html`<span class="led">${HOW[one.how]} <a href=${hrefOf({ screen: "app", agent: one.agent })}>${one.agent}</a></span>`)}</dd></div>`}
      ${explained.variables.length > 0 && html`<div><dt>Variables</dt><dd>${explained.variables.map((/** @type {any} */ one) => html`<span class=${names("chip", one.required && !one.set && "lacking")}><code>${one.name}</code>${one.set ? "" : one.required ? " is needed" : " is not set"}</span>`)}</dd></div>`}
      ${KINDS.map(([kind, label]) => {
        const uses = explained.uses.filter((/** @type {any} */ one) => one.kind === kind && !(kind === "agent" && one.name === agent.name));
        return uses.length > 0 && html`<div><dt>${label}</dt><dd>${uses.map((/** @type {any} */ one) => html`<span class=${names("chip", lacks.has(`${kind} ${one.name}`) && "lacking")} title=${one.file ?? "built in"}><code>${one.name}</code></span>`)}</dd></div>`;
      })}
    </dl>
    ${explained.missing.length > 0 && html`<ul class="warnings" aria-label="What is missing">${explained.missing.map((/** @type {any} */ one) => html`<li><${Icon} name="warn" /><span>${one.message}</span></li>`)}</ul>`}
  </section>`;
}

/** @param {{ of: any[] }} props */
const Unused = ({ of }) => html`<section class="box" aria-label="Used by no agent">
  <header><h2>Used by no agent</h2></header>
  <p>${of.map((one) => html`<span class="chip" title=${one.file ?? ""}>${one.kind} <code>${one.name}</code></span>`)}</p>
</section>`;
