// The basic components of all screens.

import { useEffect, useRef, useState } from "preact/hooks";
import { asCurl, said } from "../lib/api.js";
import { ago, exact, pretty } from "../lib/format.js";
import { useNow } from "../lib/hooks.js";
import { html, names } from "../lib/html.js";
import { Icon, Mark } from "./icons.js";

/** @typedef {import("preact").ComponentChildren} Children */

/**
 * @param {{ label: string, icon?: string, onClick?: (event: Event) => void, kind?: "primary" | "plain" | "bad" | "quiet", busy?: boolean,
 *   bare?: boolean, disabled?: boolean, type?: string, expanded?: boolean, title?: string }} props   bare: no visible label
 */
export const Button = ({ label, icon, onClick, kind = "plain", busy = false, bare = false, disabled = false, type = "button", expanded, title }) => html`
  <button
    type=${type}
    class=${names("button", kind, bare && "bare")}
    onClick=${onClick}
    disabled=${disabled || busy}
    aria-label=${bare ? label : undefined}
    aria-expanded=${expanded}
    title=${title ?? (bare ? label : undefined)}
  >
    ${icon && html`<${Icon} name=${icon} />`}${bare ? null : html`<span>${label}</span>`}
  </button>
`;

/** The state of a thread or a run. @param {{ state: string | null | undefined, words?: string }} props */
export const State = ({ state, words }) => html`<span class="state" data-state=${state ?? "unknown"}>${words ?? WORDS[state ?? ""] ?? state ?? "…"}</span>`;

/** @type {Record<string, string>} */
const WORDS = { idle: "Idle", running: "Running", parked: "Waiting", stopped: "Stopped", terminated: "Terminated", completed: "Completed", failed: "Failed", pending: "Pending", processing: "At work", user_canceled: "Cancelled", agent_canceled: "Cancelled", succeeded: "Done" };

/** A time, relative to now. @param {{ ms: number | null | undefined }} props */
export function Time({ ms }) {
  const now = useNow(10_000);
  if (ms === null || ms === undefined) return null;
  return html`<time datetime=${exact(ms)} title=${exact(ms)}>${ago(ms, now)}</time>`;
}

/** Explains an empty list, and what to do about it. @param {{ title: string, children?: Children }} props */
export const Empty = ({ title, children }) => html`
  <div class="empty">
    <${Mark} />
    <strong>${title}</strong>
    <div>${children}</div>
  </div>
`;

/** @param {{ of: unknown, again?: () => void }} props */
export const Problem = ({ of, again }) =>
  of
    ? html`<div class="problem" role="alert">
        <${Icon} name="warn" /><span>${typeof of === "string" ? of : said(of)}</span>${again && html`<${Button} label="Try again" onClick=${again} />`}
      </div>`
    : null;

export const Busy = () => html`<div class="busy" role="status"><span class="unseen">Loading</span></div>`;

/** Copies a text, and confirms it. @param {{ label: string, text: () => string, bare?: boolean, icon?: string }} props */
export function Copy({ label, text, bare = false, icon = "copy" }) {
  const [done, setDone] = useState("");
  useEffect(() => {
    const timer = done && setTimeout(() => setDone(""), 1_600);
    return () => clearTimeout(timer || undefined);
  }, [done]);
  const copy = () =>
    navigator.clipboard.writeText(text()).then(
      () => setDone("Copied"),
      () => setDone("Not allowed"),
    );
  return html`<span class="stays" data-stays><${Button} kind="quiet" label=${done || label} icon=${done === "Copied" ? "check" : icon} bare=${bare} onClick=${copy} /></span>`;
}

/** @param {{ path: string, request?: { method?: string, body?: unknown }, bare?: boolean }} props */
export const Curl = ({ path, request, bare = false }) => html`<${Copy} label="Copy as curl" icon="terminal" bare=${bare} text=${() => asCurl(path, request)} />`;

/**
 * Saves a list as lines of JSON, and any other value as one document.
 *
 * @param {{ name: string, load: () => Promise<unknown>, bare?: boolean, label?: string }} props
 */
export function Export({ name, load, bare = false, label = "Export" }) {
  const [state, setState] = useState("");
  const save = async () => {
    setState("Exporting …");
    try {
      const found = await load();
      const lines = Array.isArray(found) ? found.map((row) => `${JSON.stringify(row)}\n`) : [`${JSON.stringify(found, null, 2)}\n`];
      const address = URL.createObjectURL(new Blob(lines, { type: "application/octet-stream" }));
      const link = Object.assign(document.createElement("a"), { href: address, download: `${name}.${Array.isArray(found) ? "jsonl" : "json"}` });
      link.click();
      URL.revokeObjectURL(address);
      setState("");
    } catch (error) {
      setState(said(error));
    }
  };
  return html`<span class="stays" data-stays><${Button} kind="quiet" icon="down" label=${state || label} bare=${bare} busy=${state === "Exporting …"} onClick=${save} /></span>`;
}

/** Data as JSON, or as its text. @param {{ value: unknown, label: string }} props */
export const Data = ({ value, label }) => html`<pre class="data" tabindex="0" role="group" aria-label=${label}>${pretty(value)}</pre>`;

/** @param {{ summary: Children, children?: Children, open?: boolean, class?: string }} props */
export function Fold({ summary, children, open = false, class: more }) {
  const [seen, setSeen] = useState(open);
  // Closed content is not rendered.
  return html`<details class=${names("fold", more)} open=${open} onToggle=${(/** @type {any} */ event) => event.currentTarget.open && setSeen(true)}>
    <summary>${summary}</summary>
    ${seen && html`<div class="folded">${children}</div>`}
  </details>`;
}

/** A modal dialog, open as long as it is rendered. @param {{ title: string, onClose: () => void, children?: Children }} props */
export function Dialog({ title, onClose, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => dialog.current?.showModal(), []);
  return html`<dialog ref=${dialog} aria-label=${title} onClose=${onClose} onCancel=${onClose}>
    <header><h2>${title}</h2><${Button} label="Close" icon="close" kind="quiet" bare onClick=${onClose} /></header>
    ${children}
  </dialog>`;
}

/**
 * Asks for confirmation of an irreversible action.
 *
 * @param {{ title: string, text: string, act: string, onAct: () => Promise<unknown>, onClose: () => void }} props
 */
export function Confirm({ title, text, act, onAct, onClose }) {
  const [state, setState] = useState({ busy: false, problem: "" });
  const confirm = () => {
    setState({ busy: true, problem: "" });
    onAct().then(onClose, (error) => setState({ busy: false, problem: said(error) }));
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>${text}</p>
    <${Problem} of=${state.problem} />
    <footer><${Button} label="Cancel" onClick=${onClose} /><${Button} label=${act} kind="bad" busy=${state.busy} onClick=${confirm} /></footer>
  <//>`;
}

/** @param {{ label: string, children?: Children, hint?: string }} props */
export const Field = ({ label, children, hint }) => html`<label class="field"><span>${label}</span>${children}${hint && html`<small>${hint}</small>`}</label>`;
