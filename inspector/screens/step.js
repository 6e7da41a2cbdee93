// One step: the request that led to a reply, its cost, and the differences from the previous step.

import { useMemo } from "preact/hooks";
import { get, ofThread } from "../lib/api.js";
import { diff, near } from "../lib/diff.js";
import { bytes, clock, cost, count, digits, short, span } from "../lib/format.js";
import { useLoaded, useKeys } from "../lib/hooks.js";
import { html, names } from "../lib/html.js";
import { bytesOf, difference, requestOf } from "../lib/request.js";
import { go, hrefOf } from "../lib/route.js";
import { isReply } from "../lib/rows.js";
import { Button, Busy, Copy, Curl, Data, Empty, Fold, Problem, State } from "../parts/ui.js";
import { Icon } from "../parts/icons.js";

/** @typedef {import("../lib/request.js").Request} Request */

/** The previous and the next reply of the same side. @param {any[]} messages @param {string} id */
function around(messages, id) {
  const at = messages.findIndex((message) => message.id === id);
  const role = messages[at]?.role;
  const others = (/** @type {any} */ message) => isReply(message) && message.role === role;
  return { before: at < 0 ? undefined : messages.slice(0, at).findLast(others), behind: at < 0 ? undefined : messages.slice(at + 1).find(others) };
}

/** @param {{ id: string, message: string, messages: any[] }} props */
export function Step({ id, message, messages }) {
  const { before, behind } = around(messages, message);
  const path = ofThread(id, `/steps/${encodeURIComponent(message)}/request`);
  const now = useLoaded((signal) => get(path, signal), [path]);
  const then = useLoaded((signal) => (before ? get(ofThread(id, `/steps/${encodeURIComponent(before.id)}/request`), signal) : Promise.resolve(undefined)), [id, before?.id]);
  const logs = useLoaded((signal) => get(ofThread(id, `/logs?messageIds=${encodeURIComponent(message)}&order=asc&limit=200`), signal), [id, message]);
  const request = useMemo(() => (now.data ? requestOf(now.data.body) : undefined), [now.data]);
  const earlier = useMemo(() => (then.data ? requestOf(then.data.body) : undefined), [then.data]);
  const attempts = (logs.data?.logs ?? []).filter((/** @type {any} */ entry) => entry.type === "llm_request" && !entry.parent_call && !entry.purpose);
  const last = attempts.at(-1);
  const to = (/** @type {any} */ other) => other && go({ screen: "thread", thread: id, message: other.id });
  useKeys({ ArrowLeft: () => to(before), ArrowRight: () => to(behind) });
  return html`<section class="step" aria-label="Step">
    <header class="bar">
      <h2>Step</h2>
      <code class="quiet">${message}</code>
      <span class="grow"></span>
      <${Button} label="The step before" icon="back" kind="quiet" bare disabled=${!before} onClick=${() => to(before)} />
      <${Button} label="The next step" icon="next" kind="quiet" bare disabled=${!behind} onClick=${() => to(behind)} />
      <a class="button quiet bare" href=${hrefOf({ screen: "thread", thread: id, tab: "conversation" })} aria-label="Close the step"><${Icon} name="close" /></a>
    </header>
    <div class="inside">
      ${last && html`<${Facts} last=${last} attempts=${attempts} />`}
      ${attempts.length > 1 && html`<${Attempts} attempts=${attempts} />`}
      <${Problem} of=${now.error ?? logs.error} again=${now.again} />
      ${!request && !now.error && html`<${Busy} />`}
      ${request && html`<${Held} of=${now.data} request=${request} last=${last} earlier=${earlier} path=${path} first=${before === undefined} />`}
    </div>
  </section>`;
}

/** @param {{ last: any, attempts: any[] }} props */
const Facts = ({ last, attempts }) => html`<dl class="numbers">
  ${[
    ["Model", last.model_name],
    ["Took", last.latency_ms === undefined ? "–" : span(last.latency_ms)],
    ["First token", last.time_to_first_token_ms === null || last.time_to_first_token_ms === undefined ? "–" : span(last.time_to_first_token_ms)],
    ["Tokens in", digits(last.input_tokens)],
    ["Cached", last.input_tokens > 0 && last.cached_tokens !== undefined ? `${Math.round((100 * last.cached_tokens) / last.input_tokens)} %` : "–"],
    ["Tokens out", digits(last.output_tokens)],
    ["Cost", cost(last.cost_total)],
    ["Attempts", String(attempts.length)],
  ].map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
</dl>`;

/** @param {{ attempts: any[] }} props */
const Attempts = ({ attempts }) => html`<ol class="attempts" aria-label="Attempts">
  ${attempts.map(
    (attempt) => html`<li>
      <${State} state=${attempt.status === "completed" ? "completed" : "failed"} /><strong>${attempt.model_name}</strong>
      <span class="quiet">${clock(attempt.created_at / 1000)} · ${span(attempt.latency_ms ?? 0)}</span>
      ${attempt.error_type && html`<code>${attempt.error_type}</code>`} ${attempt.error && html`<span class="quiet">${short(attempt.error, 200)}</span>`}
      ${attempt.adjusted && html`<span class="quiet">${short(attempt.adjusted, 200)}</span>`}
    </li>`,
  )}
</ol>`;

/**
 * The contents of the request.
 *
 * @param {{ of: any, request: Request, last: any, earlier: Request | undefined, path: string, first: boolean }} props
 */
function Held({ of, request, last, earlier, path, first }) {
  const sent = last?.message_history_length;
  const differs = of.source === "rebuilt" && sent !== undefined && sent !== of.messages;
  return html`<div class="source">
      <span class=${names("state", "plain")} data-state=${of.source === "stored" ? "completed" : "parked"}>${of.source === "stored" ? "As it was sent" : "Rebuilt"}</span>
      <small>${
        of.source === "stored"
          ? "Byte for byte, as BOBBIN_LOG_BODIES has kept it."
          : "From the messages that were there and today's definitions, without hooks, memories and images. BOBBIN_LOG_BODIES=1 keeps what is sent."
      }${differs ? ` ${count(sent, "message")} were sent, ${of.messages} were rebuilt.` : ""}</small>
    </div>
    <${Parts} request=${request} tokens=${of.tokens} />
    ${earlier && html`<${Changes} before=${earlier} now=${request} />`} ${first && html`<p class="quiet">This is the first step: there is nothing to compare it with.</p>`}
    <${Fold} class="part" summary=${html`<strong>System prompt</strong><small>${bytes(bytesOf(request.system))}</small>`} open=${request.system.length < 3000}>
      ${request.system ? html`<pre class="data" tabindex="0" role="group" aria-label="System prompt">${request.system}</pre>` : html`<p class="quiet">None.</p>`}
    <//>
    <${Fold} class="part" summary=${html`<strong>Tools</strong><small>${request.tools.length} · ${bytes(bytesOf(request.tools))}</small>`}>
      ${request.tools.map(
        (tool) => html`<${Fold} class="call" summary=${html`<${Icon} name="tool" /><code class="name">${tool.name}</code><span class="preview">${short(tool.description, 100)}</span>`}>
          <p>${tool.description}</p>
          <${Data} value=${tool.schema} label=${`Schema of ${tool.name}`} />
        <//>`,
      )}
      ${request.tools.length === 0 && html`<p class="quiet">None are offered.</p>`}
    <//>
    <${Fold} class="part" open summary=${html`<strong>Messages</strong><small>${request.messages.length} · ${bytes(bytesOf(request.messages))}</small>`}>
      <${Messages} messages=${request.messages} fresh=${earlier ? difference(earlier, request).kept : Infinity} />
    <//>
    <${Fold} class="part" summary=${html`<strong>Settings</strong><small>${bytes(bytesOf(request.rest))}</small>`}><${Data} value=${request.rest} label="Settings" /><//>
    <footer class="foot"><${Curl} path=${path} /><${Copy} label="Copy the request" text=${() => JSON.stringify(of.body, null, 2)} /></footer>`;
}

/** The shares of the request: a bar, and its parts. @param {{ request: Request, tokens: Record<string, number> }} props */
function Parts({ request, tokens }) {
  const parts = [
    { name: "System", size: bytesOf(request.system), of: "system" },
    { name: "Tools", size: bytesOf(request.tools), of: "tools" },
    { name: "Messages", size: bytesOf(request.messages), of: "messages" },
  ];
  const all = parts.reduce((sum, { size }) => sum + size, 0) || 1;
  return html`<figure class="parts">
    <div class="stack" role="img" aria-label=${parts.map(({ name, size }) => `${name}: ${Math.round((100 * size) / all)} %`).join(", ")}>
      ${parts.map(({ of, size }) => html`<span data-of=${of} style=${{ flexGrow: size }}></span>`)}
    </div>
    <figcaption>${parts.map(({ name, of, size }) => html`<span><i data-of=${of}></i>${name} <b>${bytes(size)}</b>, about ${count(tokens[of] ?? 0, "token")}</span>`)}</figcaption>
  </figure>`;
}

/** @param {{ before: Request, now: Request }} props */
function Changes({ before, now }) {
  const of = difference(before, now);
  const said = [
    of.come > 0 && `${count(of.come, "message")} more`,
    of.gone > 0 && `${count(of.gone, "message")} left out or changed`,
    of.added.length > 0 && `new tools: ${of.added.join(", ")}`,
    of.removed.length > 0 && `tools gone: ${of.removed.join(", ")}`,
    of.changed.length > 0 && `tools changed: ${of.changed.join(", ")}`,
    of.system && "another system prompt",
    of.rest && "other settings",
  ].filter(Boolean);
  return html`<section class="changes" aria-label="Since the step before">
    <h3>Since the step before</h3>
    <p>${said.length > 0 ? said.join(" · ") : "Nothing has changed."}</p>
    ${of.system && html`<${Lines} before=${before.system} now=${now.system} label="Changes of the system prompt" />`}
    ${of.rest && html`<${Lines} before=${JSON.stringify(before.rest, null, 2)} now=${JSON.stringify(now.rest, null, 2)} label="Changes of the settings" />`}
  </section>`;
}

/** @param {{ before: string, now: string, label: string }} props */
const Lines = ({ before, now, label }) => html`<pre class="data lines" tabindex="0" role="group" aria-label=${label}>${near(diff(before, now)).map((line) =>
  line ? html`<span data-kind=${line.kind}>${{ same: "  ", gone: "− ", come: "+ " }[line.kind]}${line.text}\n</span>` : html`<span class="quiet">  …\n</span>`,
)}</pre>`;

/** @param {{ messages: import("../lib/request.js").Said[], fresh: number }} props */
const Messages = ({ messages, fresh }) =>
  messages.length === 0
    ? html`<${Empty} title="No messages" />`
    : html`<ol class="sent">
        ${messages.map(
          (said, at) => html`<li class=${names(at >= fresh && "fresh")}>
            <${Fold}
              summary=${html`<b data-role=${said.role}>${said.role}</b><span class="preview">${short(said.text, 140) || said.calls.map(({ name }) => `calls ${name}`).join(", ") || "–"}</span>${at >= fresh && html`<span class="tag">new</span>`}`}
            >
              ${said.text && html`<pre class="data" tabindex="0" role="group" aria-label=${`Text of message ${at + 1}`}>${said.text}</pre>`}
              ${said.calls.map((call) => html`<p class="label">Call of ${call.name}</p><${Data} value=${call.args} label=${`Arguments of ${call.name}, message ${at + 1}`} />`)}
              ${said.answers && html`<p class="quiet">Answers <code>${said.answers}</code></p>`} ${said.images > 0 && html`<p class="quiet">${count(said.images, "image")}</p>`}
            <//>
          </li>`,
        )}
      </ol>`;
