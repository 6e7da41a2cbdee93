// The MCP servers of the agents: protocol, tools and recent state of each.

import { get, isRefusal } from "../lib/api.js";
import { count } from "../lib/format.js";
import { useLoaded } from "../lib/hooks.js";
import { html, names } from "../lib/html.js";
import { plain } from "../lib/plain.js";
import { hrefOf } from "../lib/route.js";
import { Icon } from "./icons.js";
import { Curl, Fold, Problem, Time } from "./ui.js";

/** Loads the list. Only administrators have it, and older servers lack it. @param {AbortSignal} signal */
async function load(signal) {
  try {
    return (await get("/mcp", signal)).servers;
  } catch (error) {
    if (isRefusal(error, "forbidden", "not_found")) return [];
    throw error;
  }
}

/** Marks the servers of the selected agent. @param {{ agent: string | undefined }} props */
export function Servers({ agent }) {
  const { data, error, again } = useLoaded(load, [], { everyMs: 15_000 });
  if (error) return html`<${Problem} of=${error} again=${again} />`;
  if (!data || data.length === 0) return null;
  return html`<section class="box servers" aria-label="MCP servers">
    <header><h2>MCP servers</h2><span class="grow"></span><${Curl} path="/mcp" bare /></header>
    <ul class="list">${data.map((/** @type {any} */ server) => html`<${Server} key=${server.name} server=${server} agent=${agent} />`)}</ul>
  </section>`;
}

/** @type {Record<string, string>} */
const ERAS = { "2026-07-28": "2026-07-28, without sessions", "2025-11-25": "2025-11-25, in sessions" };

/** @param {{ server: any, agent: string | undefined }} props */
function Server({ server, agent }) {
  const { name, url, list, protocol, server: self, tools, agents, last_success: success, last_error: failure } = server;
  // An error counts as current until a later success.
  const isBad = failure && !(success && success >= failure.at);
  return html`<li class=${names("server", isBad && "bad")}>
    <div class="row"><strong class="name">${plain(name)}</strong><code>${plain(url)}</code><span class="tag" title=${list === "live" ? "Listed when a run begins" : "As bobbin mcp pull has written it"}>${list}</span>
      <span class="tag">${protocol ? (ERAS[protocol] ?? protocol) : "not asked yet"}</span>
      <span class="grow"></span>${success ? html`<small>last answer <${Time} ms=${success / 1000} /></small>` : html`<small>no answer yet</small>`}</div>
    ${failure && html`<p class=${isBad ? "warnings" : "quiet"}>${isBad && html`<${Icon} name="warn" />`}<span><code>${failure.code}</code> <${Time} ms=${failure.at / 1000} />: ${plain(failure.message)}</span></p>`}
    <p class="quiet">${self?.name ? `${plain(self.name)} ${plain(self.version)}, ` : ""}${agents.length > 0
        ? html`used by ${agents.map((/** @type {string} */ one) => html`<a class=${names("chip", one === agent && "on")} href=${hrefOf({ screen: "app", agent: one })}>${one}</a>`)}`
        : "used by no agent"}</p>
    ${tools.length > 0 && html`<${Fold} summary=${count(tools.length, "tool")}>
      <dl class="facts-list">${tools.map(
        (/** @type {any} */ tool) => html`<div><dt><code>${plain(tool.tool)}</code></dt><dd><span class="told">${plain(tool.description)}</span>
          <small>${tool.name} · ${tool.tier}${tool.approval && tool.approval !== "never" ? ` · approval ${tool.approval}` : ""}</small></dd></div>`,
      )}</dl>
    <//>`}
  </li>`;
}
