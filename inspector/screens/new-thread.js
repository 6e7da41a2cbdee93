// Creates a thread: its agent and its owner.

import { useState } from "preact/hooks";
import { send } from "../lib/api.js";
import { useAction } from "../lib/hooks.js";
import { html } from "../lib/html.js";
import { go } from "../lib/route.js";
import { Button, Dialog, Empty, Field, Problem } from "../parts/ui.js";

/** @param {{ agents: any[], owner: string, first?: string, onClose: () => void }} props */
export function NewThread({ agents, owner, first, onClose }) {
  const [agent, setAgent] = useState(/** @type {string} */ ((agents.find(({ name }) => name === first) ?? agents[0])?.name ?? ""));
  const [more, setMore] = useState({ owner, key: "", tags: "" });
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => setMore({ ...more, [name]: event.target.value });
  const make = useAction(async () => {
    const tags = more.tags.split(",").map((tag) => tag.trim()).filter(Boolean);
    const body = { agent_id: agent, ...(more.owner && { user_id: more.owner }), ...(more.key && { key: more.key }), ...(tags.length > 0 && { tags }) };
    const { threadId } = await send("POST", "/threads", body, { once: true });
    onClose();
    go({ screen: "thread", thread: threadId, tab: "conversation" });
  });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void make.run();
  };
  if (agents.length === 0) {
    return html`<${Dialog} title="New thread" onClose=${onClose}>
      <${Empty} title="There are no agents"><p>An agent is a file in <code>agents/agents/</code>. Write one, and it is here.</p><//>
    <//>`;
  }
  return html`<${Dialog} title="New thread" onClose=${onClose}>
    <form onSubmit=${submit}>
      <fieldset class="agents">
        <legend>With which agent?</legend>
        ${agents.map(
          ({ name, title, description }) => html`<label class="agent">
            <input type="radio" name="agent" value=${name} checked=${name === agent} autofocus=${name === agent} onChange=${() => setAgent(name)} />
            <span><strong>${title}</strong>${title !== name && html` <code>${name}</code>`}<small>${description}</small></span>
          </label>`,
        )}
      </fieldset>
      <div class="columns">
        <${Field} label="Owner"><input value=${more.owner} onInput=${set("owner")} placeholder="nobody" autocomplete="off" /><//>
        <${Field} label="Key"><input value=${more.key} onInput=${set("key")} placeholder="none" maxlength="255" autocomplete="off" /><//>
        <${Field} label="Tags"><input value=${more.tags} onInput=${set("tags")} placeholder="demo, test" autocomplete="off" /><//>
      </div>
      <${Problem} of=${make.problem} />
      <footer><${Button} label="Cancel" onClick=${onClose} /><${Button} type="submit" kind="primary" label="Begin" busy=${make.busy} /></footer>
    </form>
  <//>`;
}
