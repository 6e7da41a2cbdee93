// One message: its author, its text, and the calls of a reply.

import { memo } from "../lib/memo.js";
import { useState } from "preact/hooks";
import { ofThread, send } from "../lib/api.js";
import { clock, count, exact, short } from "../lib/format.js";
import { useAction } from "../lib/hooks.js";
import { html, names } from "../lib/html.js";
import { Markdown } from "../lib/markdown.js";
import { go, hrefOf } from "../lib/route.js";
import { isReply } from "../lib/rows.js";
import { Button, Confirm, Copy, Data, Fold, Problem } from "../parts/ui.js";
import { Icon } from "../parts/icons.js";
import { Menu } from "../parts/menu.js";
import { Attachments } from "../parts/attachments.js";

/** @type {Record<string, string>} */
const NAMES = { user: "User", assistant: "Assistant", system: "System", tool: "Tool" };
/** The names of the two sides, if both are models. @type {Record<string, string>} */
const SIDES = { user: "Side B", assistant: "Side A" };

/** @typedef {{ id: string, row: import("../lib/rows.js").Row, two: boolean, selected: boolean, onChanged: () => void }} Props */

export const Message = memo(
  (/** @type {Props} */ { id, row, two, selected, onChanged }) => {
    const { message, calls } = row;
    const [editing, setEditing] = useState(false);
    const isStatus = message.metadata?.status_kind !== undefined;
    const name = message.metadata?.from ?? (two ? SIDES[message.role] : undefined) ?? NAMES[message.role] ?? message.role;
    const replies = isReply(message);
    return html`<article
      class=${names("message", selected && "chosen", message.silent && "silent")}
      data-role=${isStatus ? "status" : message.role}
      data-id=${message.id}
      data-reply=${replies || undefined}
      tabindex="-1"
      aria-label=${`${isStatus ? "Note" : name}: ${short(message.content, 60)}`}
    >
      <header>
        <strong>${isStatus ? "Bobbin" : name}</strong>
        ${message.metadata?.prompt && html`<code>${message.metadata.prompt}</code>`}
        ${message.silent && html`<span class="tag">silent</span>`} ${message.status === "pending" && html`<span class="tag">queued</span>`}
        ${message.subagent_id && html`<a class="tag" href=${hrefOf({ screen: "thread", thread: message.subagent_id, tab: "conversation" })}>${message.subagent_thread_name ?? message.subagent_title ?? "subagent"}</a>`}
        <time title=${exact(message.created_at / 1000)}>${clock(message.created_at / 1000)}</time>
        ${replies && html`<a class="button quiet small" href=${hrefOf({ screen: "thread", thread: id, message: message.id })} aria-label=${`Step of ${message.id}`}>Step</a>`}
        ${isStatus && html`<a class="button quiet small" href=${hrefOf({ screen: "thread", thread: id, tab: "timeline" })} aria-label=${`Timeline, for ${message.id}`}>Timeline</a>`}
        <${Acts} id=${id} message=${message} onEdit=${() => setEditing(true)} onChanged=${onChanged} />
      </header>
      ${message.metadata?.reasoning && html`<${Fold} class="reasoning" summary="Reasoning"><${Markdown} text=${String(message.metadata.reasoning)} /><//>`}
      ${editing ? html`<${Editor} id=${id} message=${message} onDone=${() => setEditing(false)} onChanged=${onChanged} />` : message.content && html`<${Markdown} text=${message.content} />`}
      ${message.attachments?.length > 0 && html`<${Attachments} thread=${id} files=${message.attachments} />`}
      ${calls.map((call) => html`<${Call} key=${call.id} thread=${id} call=${call} />`)}
    </article>`;
  },
  (before, next) =>
    before.selected === next.selected && before.two === next.two && before.row.message === next.row.message && sameCalls(before.row.calls, next.row.calls),
);

/** @param {import("../lib/rows.js").Call[]} before @param {import("../lib/rows.js").Call[]} next */
const sameCalls = (before, next) => before.length === next.length && before.every(({ result }, at) => result === next[at]?.result);

/** A call, collapsed. @param {{ thread: string, call: import("../lib/rows.js").Call }} props */
export const Call = ({ thread, call: { name, arguments: args, result } }) => {
  const state = result === null ? "open" : result.tool_status === "error" ? "error" : "success";
  const words = { open: "no result yet", error: "failed", success: "done" }[state];
  return html`<${Fold}
    class="call"
    summary=${html`<${Icon} name="tool" /><code class="name">${name}</code><span class="preview">${short(args, 120)}</span
      ><span class="outcome" data-state=${state}><${Icon} name=${state === "success" ? "check" : state === "error" ? "cross" : "waiting"} /><span>${words}</span></span>`}
  >
    <p class="label">Arguments</p>
    <${Data} value=${args} label=${`Arguments of ${name}`} />
    ${result && html`<p class="label">Result</p>
      <${Data} value=${result.content ?? ""} label=${`Result of ${name}`} />
      ${result.metadata?.error_code && html`<p class="quiet">Code: <code>${result.metadata.error_code}</code></p>`}
      ${result.subagent_id && html`<p><a href=${hrefOf({ screen: "thread", thread: result.subagent_id, tab: "conversation" })}>Open the subagent's thread</a></p>`}
      ${result.attachments?.length > 0 && html`<${Attachments} thread=${thread} files=${result.attachments} />`}`}
  <//>`;
};

/** @param {{ id: string, message: any, onEdit: () => void, onChanged: () => void }} props */
function Acts({ id, message, onEdit, onChanged }) {
  const [asked, setAsked] = useState(false);
  const path = (below = "") => ofThread(id, `/messages/${encodeURIComponent(message.id)}${below}`);
  const act = useAction(async (/** @type {"regenerate" | "fork"} */ what) => {
    if (what === "regenerate") return send("POST", path("/regenerate"), undefined, { once: true });
    const { threadId } = await send("POST", ofThread(id, "/fork"), { up_to: message.id }, { once: true });
    return go({ screen: "thread", thread: threadId, tab: "conversation" });
  });
  return html`<${Menu} label=${`More about ${message.id}`} small>
        <${Copy} label="Copy text" text=${() => message.content ?? ""} />
        <${Button} kind="quiet" icon="again" label="Answer anew" onClick=${() => void act.run("regenerate")} />
        <${Button} kind="quiet" icon="branch" label="Fork here" onClick=${() => void act.run("fork")} />
        <${Button} kind="quiet" icon="file" label="Edit" onClick=${onEdit} />
        <${Button} kind="quiet" icon="cross" label="Delete …" onClick=${() => setAsked(true)} />
      <//>
    <${Problem} of=${act.problem} />
    ${asked && html`<${Confirm} title="Delete this message?" text="With a reply go the results of its calls. Models do not see it any more." act="Delete" onAct=${() => send("DELETE", path()).then(onChanged)} onClose=${() => setAsked(false)} />`}`;
}

/** @param {{ id: string, message: any, onDone: () => void, onChanged: () => void }} props */
function Editor({ id, message, onDone, onChanged }) {
  const [text, setText] = useState(message.content ?? "");
  const save = useAction(async (/** @type {boolean} */ anew) => {
    await send("PATCH", ofThread(id, `/messages/${encodeURIComponent(message.id)}${anew ? "?truncate=true&run=true" : ""}`), { content: text }, { once: anew });
    if (!anew) onChanged();
    onDone();
  });
  return html`<form class="editor" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), void save.run(false))}>
    <textarea aria-label="Text of the message" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
    <p class="quiet">${count(text.length, "character")}</p>
    <${Problem} of=${save.problem} />
    <footer>
      <${Button} label="Cancel" onClick=${onDone} />
      ${message.role === "user" && html`<${Button} label="Save, and answer anew" busy=${save.busy} onClick=${() => void save.run(true)} />`}
      <${Button} type="submit" kind="primary" label="Save" busy=${save.busy} />
    </footer>
  </form>`;
}
