// Waits that servers and tools open for people: to fill in a form, to visit an address, to sign in.

import { useState } from "preact/hooks";
import { fieldsOf, linkOf, valueOf } from "../../package/lib/form.mjs";
import { html } from "../lib/html.js";
import { plain } from "../lib/plain.js";
import { Button, Field } from "./ui.js";
import { Deny } from "./deny.js";

/** @typedef {import("./wait.js").WaysProps} WaysProps */

/** Explains the consequence. The asking server is shown above. @param {{ wait: any, doing: string }} props */
const Note = ({ wait, doing }) => html`<p class="quiet">${doing}${wait.call?.tool ? html` It is for a call of <code>${plain(wait.call.tool)}</code>.` : ""}</p>`;

/** @param {WaysProps} props */
export function Elicitation({ wait, decide, busy }) {
  if (wait.url !== undefined) return html`<${Visit} wait=${wait} decide=${decide} busy=${busy} doing="Nothing goes there by itself." done="I have been there" />`;
  return html`<${Form} wait=${wait} decide=${decide} busy=${busy} />`;
}

/** @param {WaysProps} props */
function Form({ wait, decide, busy }) {
  const fields = fieldsOf(wait.form);
  const [typed, setTyped] = useState(/** @type {Record<string, any>} */ ({}));
  const entered = (/** @type {import("../../package/lib/form.mjs").Field} */ field) => (field.name in typed ? typed[field.name] : field.initial);
  const answer = () =>
    decide(() => {
      const content = fields.flatMap((field) => {
        const value = valueOf(field, entered(field));
        return value === undefined ? [] : [[field.name, value]];
      });
      return { decision: "answer", content: Object.fromEntries(content) };
    });
  return html`<${Note} wait=${wait} doing=${wait.server ? "What you enter goes to the server." : "What you enter goes to the tool."} />
    <div class="form">${fields.map((field) => html`<${Entry} field=${field} value=${entered(field)} onValue=${(/** @type {any} */ value) => setTyped({ ...typed, [field.name]: value })} />`)}</div>
    <div class="ways">
      <${Button} kind="primary" label="Send" busy=${busy} onClick=${answer} />
      <${Deny} label="Decline" decide=${decide} busy=${busy} />
    </div>`;
}

/** @type {Record<string, string>} */
const INPUTS = { email: "email", uri: "url", date: "date", number: "number", integer: "number" };

/** @param {{ field: import("../../package/lib/form.mjs").Field, value: any, onValue: (value: any) => void }} props */
function Entry({ field, value, onValue }) {
  const { kind, format, choices, required, hint } = field;
  const label = `${plain(field.label)}${required ? "" : " (optional)"}`;
  const input = (/** @type {any} */ event) => onValue(event.target.value);
  if (kind === "boolean") {
    return html`<label class="check"><input type="checkbox" checked=${value === true} onChange=${(/** @type {any} */ event) => onValue(event.target.checked)} /><span>${plain(field.label)}${hint && html` <small>${plain(hint)}</small>`}</span></label>`;
  }
  if (kind === "many") {
    const chosen = Array.isArray(value) ? value : [];
    const toggle = (/** @type {any} */ one) => onValue(chosen.includes(one) ? chosen.filter((/** @type {any} */ other) => other !== one) : [...chosen, one]);
    return html`<fieldset><legend>${label}</legend>${hint && html`<small>${plain(hint)}</small>`}
      ${choices.map((choice) => html`<label class="check"><input type="checkbox" checked=${chosen.includes(choice.value)} onChange=${() => toggle(choice.value)} /><span>${plain(choice.label)}</span></label>`)}</fieldset>`;
  }
  if (kind === "one") {
    const at = choices.findIndex((choice) => choice.value === value);
    return html`<${Field} label=${label} hint=${plain(hint)}><select value=${String(at)} onChange=${(/** @type {any} */ event) => onValue(choices[Number(event.target.value)]?.value)}>
      <option value="-1">…</option>${choices.map((choice, index) => html`<option value=${String(index)}>${plain(choice.label)}</option>`)}</select><//>`;
  }
  return html`<${Field} label=${label} hint=${plain(hint)}><input type=${INPUTS[format] ?? INPUTS[kind] ?? "text"} step=${kind === "number" ? "any" : undefined} autocomplete="off" value=${value ?? ""} onInput=${input} /><//>`;
}

/** @param {WaysProps & { doing: string, done?: string }} props */
function Visit({ wait, decide, busy, doing, done }) {
  const link = linkOf(wait.url);
  return html`<${Note} wait=${wait} doing=${doing} />
    ${link ? html`<p class="goes">It leads to <strong>${plain(link.host)}</strong>: <a href=${link.href} target="_blank" rel="noopener noreferrer">${plain(link.href)}</a></p>` : html`<p class="goes">${plain(String(wait.url))}</p>`}
    <div class="ways">
      ${done && html`<${Button} kind="primary" label=${done} busy=${busy} onClick=${() => decide(() => ({ decision: "answer" }))} />`}
      <${Deny} label="Decline" decide=${decide} busy=${busy} />
    </div>`;
}

/** @param {WaysProps} props */
export const SignIn = ({ wait, decide, busy }) => html`<${Visit} wait=${wait} decide=${decide} busy=${busy} doing="The call goes on by itself once somebody has signed in there." />`;

/** @param {WaysProps} props */
export const Task = ({ wait }) => html`<${Note} wait=${wait} doing="The server works on it, and is asked now and then. Nobody decides that." />`;
