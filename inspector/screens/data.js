// The data of a thread besides its messages: values, files, effects, and values of variables.

import { useState } from "preact/hooks";
import { get, isRefusal, ofThread, send } from "../lib/api.js";
import { bytes, clock, count, pretty } from "../lib/format.js";
import { useAction, useLoaded } from "../lib/hooks.js";
import { html } from "../lib/html.js";
import { Button, Busy, Confirm, Curl, Data as Shown, Export, Field, Fold, Problem, State, Time } from "../parts/ui.js";
import { Files } from "./files.js";

const EVERY_MS = 5_000;

/** @param {{ id: string, facts: any, state: string | undefined }} props */
export const Data = ({ id, facts, state }) => html`<div class="page">
  <${Values} id=${id} fixed=${state === "terminated"} />
  <${Files} id=${id} fixed=${state === "terminated"} />
  <${Effects} id=${id} />
  <${Variables} id=${id} facts=${facts} />
</div>`;

/** @param {{ id: string, fixed: boolean }} props */
function Values({ id, fixed }) {
  const [search, setSearch] = useState("");
  const [asked, setAsked] = useState("");
  const path = ofThread(id, `/kv?limit=200${search ? `&search=${encodeURIComponent(search)}` : ""}`);
  const { data, error, again } = useLoaded((signal) => get(path, signal), [path], { everyMs: EVERY_MS });
  return html`<section class="box" aria-label="Values">
    <header><h2>Values</h2><small>${data?.total || ""}</small><span class="grow"></span>
      <input type="search" aria-label="Search keys" placeholder="Search keys" value=${search} onInput=${(/** @type {any} */ event) => setSearch(event.target.value)} />
      <${Curl} path=${path} bare /><${Export} name=${`values-${id}`} load=${async () => data?.values ?? []} bare /></header>
    <${Problem} of=${error} again=${again} />
    ${!data && !error && html`<${Busy} />`}
    ${data?.values.length === 0 && html`<p class="quiet">${search ? "No key has that in it." : "Tools, code and pages keep JSON here, under keys: things that belong to the conversation, but not in its text."}</p>`}
    <ul class="list">
      ${(data?.values ?? []).map(
        (/** @type {any} */ { key, value, size, updatedAt, damaged }) => html`<li key=${key}>
          <${Fold} summary=${html`<code class="name">${key}</code><span class="preview">${damaged ?? JSON.stringify(value)}</span><small>${bytes(size)}</small><${Time} ms=${updatedAt / 1000} />`}>
            <${Value} id=${id} name=${key} value=${value} fixed=${fixed} onDelete=${() => setAsked(key)} onChanged=${again} />
          <//>
        </li>`,
      )}
    </ul>
    ${!fixed && html`<${Fold} class="adding" summary="Set a value"><${NewValue} id=${id} onChanged=${again} /><//>`}
    ${asked && html`<${Confirm} title="Delete this value?" text=${asked} act="Delete" onAct=${() => send("DELETE", ofThread(id, `/kv?key=${encodeURIComponent(asked)}`)).then(again)} onClose=${() => setAsked("")} />`}
  </section>`;
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("That is no JSON: a text stands in quotation marks.");
  }
}

/**
 * Edits a value. It is saved only if the stored value is still the one shown.
 *
 * @param {{ id: string, name: string, value: any, fixed: boolean, onDelete: () => void, onChanged: () => void }} props
 */
function Value({ id, name, value, fixed, onDelete, onChanged }) {
  const shown = pretty(value);
  const [text, setText] = useState(shown);
  const save = useAction(async () => {
    await send("POST", ofThread(id, "/kv"), { key: name, value: parsed(text), ifValue: value });
    onChanged();
  });
  if (fixed) return html`<${Shown} value=${value} label=${`Value of ${name}`} />`;
  return html`<textarea class="mono" aria-label=${`Value of ${name}`} rows=${Math.min(14, shown.split("\n").length + 1)} value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
    <${Problem} of=${save.problem} />
    <div class="ways"><${Button} kind="primary" label="Save" busy=${save.busy} disabled=${text === shown} onClick=${() => void save.run()} /><${Button} kind="bad" label="Delete …" onClick=${onDelete} /></div>`;
}

/** @param {{ id: string, onChanged: () => void }} props */
function NewValue({ id, onChanged }) {
  const [fields, setFields] = useState({ key: "", value: "" });
  const set = useAction(async () => {
    await send("POST", ofThread(id, "/kv"), { key: fields.key, value: parsed(fields.value) });
    setFields({ key: "", value: "" });
    onChanged();
  });
  const typed = (/** @type {string} */ name) => (/** @type {any} */ event) => setFields({ ...fields, [name]: event.target.value });
  return html`<form class="inline" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), void set.run())}>
    <${Field} label="Key"><input required value=${fields.key} onInput=${typed("key")} autocomplete="off" /><//>
    <${Field} label="Value, as JSON"><input class="mono" required value=${fields.value} onInput=${typed("value")} autocomplete="off" /><//>
    <${Button} type="submit" kind="primary" label="Set" busy=${set.busy} />
    <${Problem} of=${set.problem} />
  </form>`;
}

/** @param {{ id: string }} props */
function Effects({ id }) {
  const path = ofThread(id, "/effects?limit=100");
  const { data, error, again } = useLoaded((signal) => get(path, signal), [path], { everyMs: EVERY_MS });
  const act = useAction(async (/** @type {string} */ effect, /** @type {"run" | "cancel"} */ what) => {
    await send("POST", ofThread(id, `/effects/${encodeURIComponent(effect)}/${what}`));
    again();
  });
  return html`<section class="box" aria-label="Effects">
    <header><h2>Effects</h2><small>${data?.total || ""}</small><span class="grow"></span><${Curl} path=${path} bare /><${Export} name=${`effects-${id}`} load=${async () => data?.effects ?? []} bare /></header>
    <${Problem} of=${error ?? act.problem} again=${again} />
    ${data?.effects.length === 0 && html`<p class="quiet">Work that is done later, apart from any run: reminders, mails, what repeats. None is scheduled.</p>`}
    <ul class="list">
      ${(data?.effects ?? []).map(
        (/** @type {any} */ effect) => html`<li key=${effect.id}>
          <${Fold} summary=${html`<code class="name">${effect.name}</code><${State} state=${effect.status} /><span class="preview">${effect.error ?? ""}</span><small>${effect.endedAt ? "ended" : "due"} <${Time} ms=${(effect.endedAt ?? effect.dueAt ?? effect.scheduledAt) / 1000} /></small>`}>
            <${Shown} value=${effect.args} label=${`Arguments of ${effect.name}`} />
            <p class="quiet">Scheduled ${clock(effect.createdAt / 1000)} · ${count(effect.attempts, "attempt")}${effect.repeat ? " · repeats" : ""}</p>
            <div class="ways">
              <${Button} label=${effect.endedAt ? "Run again" : "Run now"} icon="play" busy=${act.busy} onClick=${() => void act.run(effect.id, "run")} />
              ${!effect.endedAt && html`<${Button} kind="bad" label="Cancel" busy=${act.busy} onClick=${() => void act.run(effect.id, "cancel")} />`}
            </div>
          <//>
        </li>`,
      )}
    </ul>
  </section>`;
}

/** The types of variables at a path, or none if the user may not see them. @param {string} path @param {AbortSignal} signal */
async function valuesOf(path, signal) {
  try {
    return (await get(path, signal)).env_types;
  } catch (error) {
    if (isRefusal(error, "forbidden", "encryption_unavailable", "thread_not_found")) return {};
    throw error;
  }
}

/** The variables that an agent needs, and the source of each value. @param {{ id: string, facts: any }} props */
function Variables({ id, facts }) {
  const thread = facts?.thread;
  const load = async (/** @type {AbortSignal} */ signal) => {
    if (!thread) return undefined;
    const owner = thread.user_id;
    const [explained, account, instance] = await Promise.all([
      get(`/agents/${encodeURIComponent(thread.agent_id)}/explain`, signal),
      owner ? valuesOf(`/envs/account?user_id=${encodeURIComponent(owner)}`, signal) : {},
      valuesOf("/envs/instance", signal),
    ]);
    return { variables: explained.variables, account, instance };
  };
  const { data, error } = useLoaded(load, [id, thread?.agent_id, thread?.user_id]);
  if (isRefusal(error, "forbidden", "agent_not_found")) return null;
  const declared = data?.variables ?? [];
  const others = Object.keys(thread?.env_types ?? {}).filter((name) => !declared.some((/** @type {any} */ one) => one.name === name));
  const rows = [...declared, ...others.map((name) => ({ name, type: thread.env_types[name], required: false, set: false }))];
  const from = (/** @type {any} */ { name, set }) =>
    name in thread.env_types ? "this thread" : data && name in data.account ? `the account of ${thread.user_id}` : data && name in data.instance ? "the instance" : set ? "the deployment or a definition" : undefined;
  return html`<section class="box" aria-label="Variables">
    <header><h2>Variables</h2></header>
    <${Problem} of=${error} />
    ${!data && !error && html`<${Busy} />`}
    ${data && rows.length === 0 && html`<p class="quiet">The agent and its tools need none.</p>`}
    <ul class="list">
      ${rows.map(
        (one) => html`<li class="row"><code class="name">${one.name}</code><span class="tag">${one.type}</span>
          ${thread.env[one.name] !== undefined && html`<span class="preview">${thread.env[one.name]}</span>`}
          <span class="grow"></span>
          ${from(one) ? html`<small>from ${from(one)}</small>` : html`<${State} state=${one.required ? "failed" : "idle"} words=${one.required ? "Missing" : "Not set"} />`}</li>`,
      )}
    </ul>
  </section>`;
}

