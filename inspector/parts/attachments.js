// Files of a message: images inline, others by name.

import { useEffect, useState } from "preact/hooks";
import { connection, ofThread } from "../lib/api.js";
import { bytes } from "../lib/format.js";
import { html } from "../lib/html.js";
import { Icon } from "./icons.js";

/** The types that are shown as images. SVG is treated as a file, because it may contain anything. */
const IMAGE = /^image\/(png|jpeg|gif|webp)$/;
/** Larger images are offered as files. */
const SHOWN_BYTES = 8_000_000;

/** @param {string} thread @param {string} path */
export const fileAddress = (thread, path) => ofThread(thread, `/fs/${path.replace(/^\//, "").split("/").map(encodeURIComponent).join("/")}`);

/**
 * A file's content. Loaded by a request, because the key is in a header, which an image's address cannot carry.
 *
 * @param {string} thread @param {string} path
 */
export async function blobOf(thread, path) {
  const response = await connection.send(`/api${fileAddress(thread, path)}`, {}, { attempts: 3 });
  return response.blob();
}

/** Saves a file as a download. @param {string} thread @param {string} path @param {string} name */
export async function saveFile(thread, path, name) {
  const address = URL.createObjectURL(await blobOf(thread, path));
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** @param {{ thread: string, files: any[] }} props */
export const Attachments = ({ thread, files }) => html`<ul class="attachments">
  ${files.map((file) => html`<li key=${file.path}>${IMAGE.test(file.mimeType) && file.size <= SHOWN_BYTES ? html`<${Picture} thread=${thread} file=${file} />` : html`<${Plain} thread=${thread} file=${file} />`}</li>`)}
</ul>`;

/** @param {{ thread: string, file: any }} props */
function Picture({ thread, file }) {
  const [address, setAddress] = useState("");
  useEffect(() => {
    let made = "";
    let gone = false;
    blobOf(thread, file.path).then(
      (blob) => {
        if (gone) return;
        made = URL.createObjectURL(blob);
        setAddress(made);
      },
      () => gone || setAddress("missing"),
    );
    return () => {
      gone = true;
      if (made) URL.revokeObjectURL(made);
    };
  }, [thread, file.path]);
  if (address === "missing") return html`<${Plain} thread=${thread} file=${file} />`;
  return html`<figure>
    ${address ? html`<img src=${address} alt=${file.description ?? file.name} width=${file.width} height=${file.height} />` : html`<span class="blank"></span>`}
    <figcaption>${file.name} · ${bytes(file.size)}</figcaption>
  </figure>`;
}

/** @param {{ thread: string, file: any }} props */
const Plain = ({ thread, file }) => html`<button class="button file" type="button" onClick=${() => void saveFile(thread, file.path, file.name).catch(() => {})}>
  <${Icon} name="file" /><span>${file.name}</span><small>${bytes(file.size)}</small>
</button>`;
