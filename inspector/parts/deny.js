// The button that denies, with a field for the reason.

import { useState } from "preact/hooks";
import { html } from "../lib/html.js";
import { Button, Field } from "./ui.js";

/** @param {{ label: string, decide: import("./wait.js").WaysProps["decide"], busy: boolean }} props */
export function Deny({ label, decide, busy }) {
  const [open, setOpen] = useState(false);
  const [reason, setReason] = useState("");
  const [stop, setStop] = useState(false);
  if (!open) return html`<${Button} kind="bad" label=${`${label} …`} busy=${busy} onClick=${() => setOpen(true)} />`;
  const deny = () => decide(() => ({ decision: "deny", ...(reason && { reason }), ...(stop && { stop }) }));
  return html`<div class="deny">
    <${Field} label="Why?" hint="The model reads it."><input value=${reason} onInput=${(/** @type {any} */ event) => setReason(event.target.value)} /><//>
    <label class="check"><input type="checkbox" checked=${stop} onChange=${(/** @type {any} */ event) => setStop(event.target.checked)} />Stop the run, too</label>
    <div class="ways"><${Button} kind="bad" label=${label} busy=${busy} onClick=${deny} /><${Button} label="Back" onClick=${() => setOpen(false)} /></div>
  </div>`;
}
