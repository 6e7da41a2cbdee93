// The composer of messages: to the agent, as the system, or silent, with files.

import { useRef, useState } from "preact/hooks";
import { asCurl, ofThread, send } from "../lib/api.js";
import { bytes } from "../lib/format.js";
import { useAction } from "../lib/hooks.js";
import { html } from "../lib/html.js";
import { Button, Copy, Problem } from "../parts/ui.js";
import { Icon } from "../parts/icons.js";

/** The limit on all files of a message together. */
const MOST_BYTES = 8_000_000;

/** @typedef {{ name: string, mimeType: string, data: string, size: number }} Attached */

/** Reads a file as an attachment. @param {File} file @returns {Promise<Attached>} */
async function attached(file) {
  const address = await new Promise((resolve, reject) => {
    const reader = Object.assign(new FileReader(), { onload: () => resolve(reader.result), onerror: () => reject(reader.error) });
    reader.readAsDataURL(file);
  });
  const text = String(address);
  return { name: file.name, mimeType: file.type || "application/octet-stream", data: text.slice(text.indexOf(",") + 1), size: file.size };
}

/** @param {{ id: string, two: boolean, ended: boolean, working: string | undefined, onStop: () => void }} props */
export function Composer({ id, two, ended, working, onStop }) {
  const [text, setText] = useState("");
  const [role, setRole] = useState("user");
  const [silent, setSilent] = useState(false);
  const [files, setFiles] = useState(/** @type {Attached[]} */ ([]));
  const area = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const size = files.reduce((sum, file) => sum + file.size, 0);
  const body = () => ({
    role,
    content: text,
    ...(silent && { silent }),
    ...(files.length > 0 && { attachments: files.map(({ name, mimeType, data }) => ({ name, mimeType, data })) }),
  });
  const post = useAction(async () => {
    if (text.trim() === "" && files.length === 0) return;
    await send("POST", ofThread(id, "/messages"), body(), { once: true });
    setText("");
    setFiles([]);
    area.current?.focus();
  });
  const add = async (/** @type {Iterable<File>} */ chosen) => {
    const more = await Promise.all([...chosen].slice(0, 20).map(attached));
    setFiles((before) => [...before, ...more].slice(0, 20));
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) void (event.preventDefault(), post.run());
  };
  if (ended) return html`<p class="composer over">This thread is terminated: it takes no more messages.</p>`;
  return html`<form class="composer" aria-label="New message" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), void post.run())}>
    <div class="working" role="status">${working && html`<span class="spin"></span><span>${working}</span>`}</div>
    <${Problem} of=${post.problem || (size > MOST_BYTES ? `The files have ${bytes(size)} together; at most ${bytes(MOST_BYTES)} go with a message.` : "")} />
    <textarea
      ref=${area}
      aria-label="Message"
      rows="1"
      placeholder="Write a message"
      value=${text}
      onInput=${(/** @type {any} */ event) => setText(event.target.value)}
      onKeyDown=${pressed}
      onPaste=${(/** @type {ClipboardEvent} */ event) => event.clipboardData?.files.length && void (event.preventDefault(), add(event.clipboardData.files))}
    ></textarea>
    ${files.length > 0 && html`<ul class="attachments">${files.map((file, at) => html`<li><span class="button file"><${Icon} name="file" /><span>${file.name}</span><small>${bytes(file.size)}</small>
        <${Button} label=${`Remove ${file.name}`} icon="close" kind="quiet" bare onClick=${() => setFiles(files.filter((_, other) => other !== at))} /></span></li>`)}</ul>`}
    <footer>
      <label class="button quiet bare" title="Attach files"><${Icon} name="clip" /><span class="unseen">Attach files</span>
        <input class="unseen" type="file" multiple onChange=${(/** @type {any} */ event) => void add(event.target.files).then(() => (event.target.value = ""))} /></label>
      <select aria-label="As" value=${role} onChange=${(/** @type {any} */ event) => setRole(event.target.value)}>
        <option value="user">${two ? "as side B" : "as the user"}</option>
        <option value="system">as the system</option>
        ${two && html`<option value="assistant">as side A</option>`}
      </select>
      <label class="check"><input type="checkbox" checked=${silent} onChange=${(/** @type {any} */ event) => setSilent(event.target.checked)} />silent</label>
      <span class="grow"></span>
      <${Copy} label="Copy as curl" icon="terminal" bare text=${() => asCurl(ofThread(id, "/messages"), { method: "POST", body: body() })} />
      ${working !== undefined && html`<${Button} label="Stop" icon="stop" title="Stop (.)" onClick=${onStop} />`}
      <${Button} type="submit" kind="primary" label="Send" icon="send" busy=${post.busy} disabled=${size > MOST_BYTES} />
    </footer>
  </form>`;
}
