// A wait with everything needed for the decision, and the possible answers.

import { useRef, useState } from "preact/hooks";
import { isRefusal, ofThread, said, send } from "../lib/api.js";
import { html } from "../lib/html.js";
import { plain, written } from "../lib/plain.js";
import { hrefOf } from "../lib/route.js";
import { Deny } from "./deny.js";
import { Button, Curl, Field, Problem, Time } from "./ui.js";
import { Elicitation, SignIn, Task } from "./wait-server.js";

/** @type {Record<string, string>} */
const KINDS = { approval: "Approval", question: "Question", client_tool: "For a client", retry: "Pause", budget: "Budget", children: "Workers", elicitation: "A server asks", sign_in: "Sign in", task: "Task" };
/** @type {Record<string, [field: string, name: string]>} */
const UNITS = {
  costUsd: ["maxCostUsd", "USD"],
  tokens: ["maxTokens", "tokens"],
  modelCalls: ["maxModelCalls", "requests to models"],
  steps: ["maxSteps", "steps"],
  toolCalls: ["maxToolCalls", "calls of tools"],
  seconds: ["maxSeconds", "seconds"],
};

/**
 * The agent and owner of a wait's thread, and the last message of its user.
 *
 * @typedef {{ agent: string, owner: string | null, said: string }} About
 */

/**
 * `level` is that of its heading; `within`: it is shown in its thread.
 *
 * @param {{ wait: any, onDecided: (id: string) => void, about?: About, level?: number, within?: boolean }} props
 */
export function Wait({ wait, onDecided, about, level = 2, within = false }) {
  const [state, setState] = useState({ busy: false, problem: "" });
  const decide = async (/** @type {() => object} */ what) => {
    setState({ busy: true, problem: "" });
    try {
      await send("POST", ofThread(wait.threadId, `/waits/${encodeURIComponent(wait.id)}`), { actor: "inspector", ...what() }, { once: true });
      onDecided(wait.id);
    } catch (error) {
      // Somebody else has decided already.
      if (isRefusal(error, "conflict")) return onDecided(wait.id);
      setState({ busy: false, problem: said(error) });
    }
    return undefined;
  };
  const title = plain(wait.title || KINDS[wait.kind] || wait.kind);
  return html`<article class="wait" data-kind=${wait.kind} aria-label=${title}>
    <header>
      <span class="badge">${KINDS[wait.kind] ?? wait.kind}</span>
      ${about && html`<strong>${plain(about.agent)}</strong>${about.owner && html`<span class="quiet">for ${plain(about.owner)}</span>`}`}
      ${!within && html`<a href=${hrefOf({ screen: "thread", thread: wait.threadId, ...(wait.call?.messageId ? { message: wait.call.messageId } : { tab: /** @type {const} */ ("conversation") }) })}>Open its thread</a>`}
      <span class="grow"></span>
      <small>${wait.kind === "task" ? "asked again" : { fail: "the run fails", continue: "goes on" }[/** @type {string} */ (wait.onExpiry)] ?? "ends"} <${Time} ms=${wait.expiresAt / 1000} /></small>
      <${Curl} path=${ofThread(wait.threadId, `/waits/${wait.id}`)} request=${{ method: "POST", body: { decision: wait.allows?.[0] ?? "approve" } }} bare />
    </header>
    <${`h${level}`} class="title">${title}<//>
    ${wait.reason && html`<p class="reason">${plain(wait.reason)}</p>`}
    ${about?.said && html`<blockquote class="asked" aria-label="The user's last message">${plain(about.said)}</blockquote>`}
    <${Ways} wait=${wait} decide=${decide} busy=${state.busy} />
    <${Problem} of=${state.problem} />
  </article>`;
}

/** @typedef {{ wait: any, decide: (what: () => object) => Promise<unknown>, busy: boolean }} WaysProps */

/** @param {WaysProps} props */
const Ways = ({ wait, decide, busy }) => {
  if (wait.kind === "approval") return html`<${Approval} wait=${wait} decide=${decide} busy=${busy} />`;
  if (wait.kind === "question" || wait.kind === "client_tool") return html`<${Answer} wait=${wait} decide=${decide} busy=${busy} />`;
  if (wait.kind === "budget") return html`<${Budget} wait=${wait} decide=${decide} busy=${busy} />`;
  if (wait.kind === "retry") return html`<div class="ways"><${Button} kind="primary" label="Try now" busy=${busy} onClick=${() => decide(() => ({ decision: "retry" }))} /></div>`;
  if (wait.kind === "elicitation") return html`<${Elicitation} wait=${wait} decide=${decide} busy=${busy} />`;
  if (wait.kind === "sign_in") return html`<${SignIn} wait=${wait} decide=${decide} busy=${busy} />`;
  if (wait.kind === "task") return html`<${Task} wait=${wait} decide=${decide} busy=${busy} />`;
  return html`<p class="quiet">Nobody decides this: it goes on when its workers have ended.</p>`;
};

/** Shows arguments as fields; those in `edit` can be changed. @param {WaysProps} props */
function Approval({ wait, decide, busy }) {
  const { args } = wait.call ?? {};
  const fields = args !== null && typeof args === "object" && !Array.isArray(args) ? args : { arguments: args };
  const all = [...new Set([...Object.keys(fields), ...(wait.edit ?? [])])];
  const [typed, setTyped] = useState(/** @type {Record<string, string>} */ ({}));
  const shown = (/** @type {string} */ name) => (fields[name] === undefined ? "" : typeof fields[name] === "string" ? fields[name] : JSON.stringify(fields[name]));
  const changed = Object.keys(typed).filter((name) => typed[name] !== shown(name));
  const value = (/** @type {string} */ name) => {
    const text = typed[name] ?? "";
    if (typeof fields[name] === "string") return text;
    try {
      return JSON.parse(text);
    } catch {
      if (fields[name] === undefined) return text;
      throw new Error(`“${name}” was ${written(fields[name])}; “${text}” is nothing of the kind.`);
    }
  };
  const approve = () => decide(() => ({ decision: "approve", ...(changed.length > 0 && { args: Object.fromEntries(changed.map((name) => [name, value(name)])) }) }));
  return html`<dl class="args">
      ${all.map(
        (name) => html`<div>
          <dt>${plain(name)}</dt>
          <dd>
            ${wait.edit?.includes(name)
              ? html`<input aria-label=${plain(name)} value=${typed[name] ?? shown(name)} onInput=${(/** @type {any} */ event) => setTyped({ ...typed, [name]: event.target.value })} />
                  ${changed.includes(name) && html`<small>was ${written(fields[name])}</small>`}`
              : html`<span class="value" role="group" aria-label=${plain(name)}>${written(fields[name])}</span>`}
          </dd>
        </div>`,
      )}
    </dl>
    <p class="quiet">Tool <code>${plain(wait.call?.tool)}</code>${wait.by !== "owner" ? `, decided by ${wait.by}` : ""}</p>
    <div class="ways">
      <${Button} kind="primary" label=${changed.length > 0 ? "Approve with changes" : "Approve"} busy=${busy} onClick=${approve} />
      <${Deny} label="Deny" decide=${decide} busy=${busy} />
    </div>`;
}

/** Answers a question, or returns the result of a client tool. @param {WaysProps} props */
function Answer({ wait, decide, busy }) {
  const [text, setText] = useState("");
  const isTool = wait.kind === "client_tool";
  const area = useRef(null);
  const answer = () => {
    if (!isTool) return { decision: "answer", text };
    try {
      return { decision: "answer", result: JSON.parse(text) };
    } catch {
      return { decision: "answer", result: text };
    }
  };
  return html`
    ${isTool && wait.call && html`<dl class="args"><div><dt>${plain(wait.call.tool)}</dt><dd><span class="value" role="group" aria-label="Arguments">${written(wait.call.args)}</span></dd></div></dl>`}
    ${(wait.choices ?? []).length > 0 && html`<div class="ways column">${wait.choices.map((/** @type {string} */ choice, /** @type {number} */ at) => html`<${Button} label=${plain(choice)} busy=${busy} onClick=${() => decide(() => ({ decision: "answer", choice: at }))} />`)}</div>`}
    ${(isTool || wait.freeText !== false) &&
    html`<${Field} label=${isTool ? "Result, as JSON or text" : "Answer"}><textarea ref=${area} rows="2" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea><//>`}
    <div class="ways">
      ${(isTool || wait.freeText !== false) && html`<${Button} kind="primary" label=${isTool ? "Send the result" : "Answer"} busy=${busy} disabled=${text === ""} onClick=${() => decide(answer)} />`}
      <${Deny} label="Decline" decide=${decide} busy=${busy} />
    </div>
  `;
}

/** @param {WaysProps} props */
function Budget({ wait, decide, busy }) {
  const { unit, limit, spent, needed } = wait.budget ?? {};
  const [field, name] = UNITS[unit] ?? [unit, unit];
  const [more, setMore] = useState(String(Math.max(limit ?? 0, needed ?? 0)));
  return html`<dl class="args">
      ${[["Limit", limit], ["Used", spent], ["Needed next", needed]].map(([label, value]) => html`<div><dt>${label}</dt><dd><span class="value" role="group" aria-label=${label}>${`${value} ${name}`}</span></dd></div>`)}
    </dl>
    <${Field} label=${`Add, in ${name}`}><input type="number" step="any" min="0" value=${more} onInput=${(/** @type {any} */ event) => setMore(event.target.value)} /><//>
    <div class="ways">
      <${Button} kind="primary" label="Extend" busy=${busy} onClick=${() => decide(() => ({ decision: "extend", add: { [field]: Number(more) } }))} />
      <${Button} label="One last answer" busy=${busy} onClick=${() => decide(() => ({ decision: "finish" }))} />
      <${Deny} label="Deny" decide=${decide} busy=${busy} />
    </div>`;
}
