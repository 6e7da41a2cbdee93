// The files of a thread: one directory at a time.

import { useRef, useState } from "preact/hooks";
import { connection, get, ofThread, send } from "../lib/api.js";
import { bytes } from "../lib/format.js";
import { useAction, useLoaded } from "../lib/hooks.js";
import { html } from "../lib/html.js";
import { blobOf, fileAddress, saveFile } from "../parts/attachments.js";
import { Button, Busy, Confirm, Curl, Problem, Time } from "../parts/ui.js";
import { Icon } from "../parts/icons.js";

const EVERY_MS = 8_000;
/** Larger texts are not shown. */
const TEXT_BYTES = 200_000;
const IS_TEXT = /^(text\/|application\/(json|xml|yaml|javascript|typescript|x-sh))/;

/** @param {{ id: string, fixed: boolean }} props */
export function Files({ id, fixed }) {
  const [path, setPath] = useState("/");
  const [shown, setShown] = useState(/** @type {any} */ (undefined));
  const [asked, setAsked] = useState(/** @type {any} */ (undefined));
  const from = path === "/" ? ofThread(id, "/fs?limit=200") : `${fileAddress(id, path)}?limit=200`;
  const { data, error, again } = useLoaded((signal) => get(from, signal), [from], { everyMs: EVERY_MS });
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const upload = useAction(async (/** @type {Iterable<File>} */ files) => {
    for (const file of files) {
      const where = fileAddress(id, `${path === "/" ? "" : path}/${file.name}`);
      await connection.send(`/api${where}`, { method: "PUT", body: file, headers: { "content-type": file.type || "application/octet-stream" } });
    }
    again();
  });
  const steps = path.split("/").filter(Boolean);
  const open = (/** @type {any} */ file) => (file.isDirectory ? void (setPath(file.path), setShown(undefined)) : setShown(file));
  return html`<section class="box" aria-label="Files">
    <header>
      <h2>Files</h2>
      <nav class="crumbs" aria-label="Folder">
        <button type="button" onClick=${() => setPath("/")}>/</button>
        ${steps.map((name, at) => html`<button type="button" onClick=${() => setPath(`/${steps.slice(0, at + 1).join("/")}`)}>${name}</button>`)}
      </nav>
      <span class="grow"></span>
      <${Curl} path=${from} bare />
      ${!fixed && html`<${Button} label="Upload" icon="plus" busy=${upload.busy} onClick=${() => input.current?.click()} /><input ref=${input} class="unseen" tabindex="-1" aria-hidden="true" type="file" multiple onChange=${(/** @type {any} */ event) => void upload.run([...event.target.files]).then(() => (event.target.value = ""))} />`}
    </header>
    <${Problem} of=${error ?? upload.problem} again=${again} />
    ${!data && !error && html`<${Busy} />`}
    ${data?.files.length === 0 && html`<p class="quiet">${path === "/" ? "A thread has a file tree of its own: attachments are here, and what tools write." : "This folder is empty."}</p>`}
    <ul class="list">
      ${(data?.files ?? []).map(
        (/** @type {any} */ file) => html`<li class="row" key=${file.path}>
          <button type="button" class="open" onClick=${() => open(file)}><${Icon} name=${file.isDirectory ? "folder" : "file"} /><span>${file.name}</span></button>
          <span class="grow"></span>
          ${!file.isDirectory && html`<small>${file.mimeType}</small><small>${bytes(file.size)}</small>`}
          <${Time} ms=${file.updatedAt / 1000} />
          ${!file.isDirectory && html`<${Button} label=${`Save ${file.name}`} icon="down" kind="quiet" bare onClick=${() => void saveFile(id, file.path, file.name)} />`}
          ${!fixed && html`<${Button} label=${`Delete ${file.name}`} icon="cross" kind="quiet" bare onClick=${() => setAsked(file)} />`}
        </li>`,
      )}
    </ul>
    ${shown && html`<${Preview} key=${shown.path} id=${id} file=${shown} onClose=${() => setShown(undefined)} />`}
    ${asked && html`<${Confirm} title="Delete this?" text=${`${asked.path}${asked.isDirectory ? " and everything in it" : ""}`} act="Delete" onAct=${() => send("DELETE", `${fileAddress(id, asked.path)}${asked.isDirectory ? "?recursive=true" : ""}`).then(again)} onClose=${() => setAsked(undefined)} />`}
  </section>`;
}

/** @param {{ id: string, file: any, onClose: () => void }} props */
function Preview({ id, file, onClose }) {
  const isText = IS_TEXT.test(file.mimeType) && file.size <= TEXT_BYTES;
  const { data, error } = useLoaded(async () => (isText ? (await blobOf(id, file.path)).text() : undefined), [file.path]);
  return html`<div class="preview-of">
    <header><strong>${file.name}</strong><span class="grow"></span><${Button} label="Close the file" icon="close" kind="quiet" bare onClick=${onClose} /></header>
    <${Problem} of=${error} />
    ${isText && data === undefined && !error && html`<${Busy} />`}
    ${isText ? data !== undefined && html`<pre class="data" tabindex="0" role="group" aria-label=${`Content of ${file.name}`}>${data}</pre>` : html`<p class="quiet">${file.mimeType}, ${bytes(file.size)}: save it to look at it.</p>`}
  </div>`;
}
