// Requests a key, for deployments that have keys.

import { useState } from "preact/hooks";
import { setKey } from "../lib/api.js";
import { useTitle } from "../lib/hooks.js";
import { html } from "../lib/html.js";
import { Mark } from "../parts/icons.js";
import { Button, Field, Problem } from "../parts/ui.js";

/** @param {{ refused: boolean, onGiven: () => void }} props */
export function KeyScreen({ refused, onGiven }) {
  useTitle("Bobbin: a key is needed");
  const [text, setText] = useState("");
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    setKey(text.trim());
    onGiven();
  };
  return html`<main class="door">
    <form onSubmit=${submit}>
      <${Mark} />
      <h1>This server wants a key</h1>
      <p>One of its <code>BOBBIN_API_KEYS</code>, or a token. It is kept in this tab until you close it, and goes to this server alone.</p>
      ${refused && html`<${Problem} of="The server does not take this key." />`}
      <${Field} label="Key">
        <input type="password" autocomplete="off" required value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
      <//>
      <${Button} type="submit" kind="primary" label="Open" icon="send" />
    </form>
  </main>`;
}
