// The open waits of all threads for people and clients, with their answers.

import { useState } from "preact/hooks";
import { get, isRefusal, ofEveryOwner, ofThread } from "../lib/api.js";
import { count, short } from "../lib/format.js";
import { useLoaded, useTitle } from "../lib/hooks.js";
import { html } from "../lib/html.js";
import { WAITS } from "../lib/waits.js";
import { Busy, Curl, Empty, Problem } from "../parts/ui.js";
import { Wait } from "../parts/wait.js";

/** Loads a wait from its thread, because the list lacks its details. @param {{ listed: any, onDecided: (id: string) => void }} props */
function Whole({ listed, onDecided }) {
  const { data, error, again } = useLoaded((signal) => get(ofThread(listed.threadId, `/waits/${encodeURIComponent(listed.id)}`), signal), [listed.id]);
  const about = useLoaded((signal) => aboutThread(listed.threadId, signal), [listed.threadId]);
  if (error && isRefusal(error, "thread_not_found", "not_found")) return null;
  if (error) return html`<${Problem} of=${error} again=${again} />`;
  if (!data) return html`<${Busy} />`;
  return data.wait.state === "open" ? html`<${Wait} wait=${data.wait} about=${about.data} level=${2} onDecided=${onDecided} />` : null;
}

/**
 * The agent and owner of a thread, and the last message of its user.
 *
 * @param {string} id @param {AbortSignal} signal @returns {Promise<import("../parts/wait.js").About>}
 */
async function aboutThread(id, signal) {
  const [{ thread, agent }, { messages }] = await Promise.all([get(ofThread(id), signal), get(ofThread(id, "/messages?order=desc&limit=20"), signal)]);
  const asked = messages.findLast((/** @type {any} */ { role, content }) => role === "user" && content);
  return { agent: agent?.title ?? thread.agent_id, owner: thread.user_id, said: short(asked?.content, 300) };
}

/** @param {{ waits: import("../lib/waits.js").OpenWaits }} props */
export function Waiting({ waits }) {
  // The list lags behind decisions for a moment.
  const [over, setOver] = useState(/** @type {Set<string>} */ (new Set()));
  const open = waits.all.filter(({ id }) => !over.has(id));
  useTitle(open.length > 0 ? `(${open.length}) Waiting · Bobbin` : "Waiting · Bobbin");
  const decided = (/** @type {string} */ id) => {
    setOver((before) => new Set(before).add(id));
    waits.again();
  };
  return html`<section class="waiting" aria-label="Waiting">
    <header class="bar"><h1>Waiting</h1><span class="total">${open.length > 0 ? open.length : ""}</span></header>
    <${Problem} of=${waits.error} again=${waits.again} />
    <div class="cards">
      ${open.map((wait) => html`<${Whole} key=${wait.id} listed=${wait} onDecided=${decided} />`)}
    </div>
    ${waits.loaded && open.length === 0 && html`<${Empty} title="Nothing is waiting"><p>What a run asks of a person, of a client or of a budget appears here by itself, from all threads that you may see.</p><//>`}
    ${waits.leftOut > 0 && html`<p class="left-out quiet">${count(waits.leftOut, "more owner")} may have more: <code>GET /api/waits?user_id=…</code> lists what one owner's threads ask.</p>`}
    <footer class="foot"><${Curl} path=${ofEveryOwner(WAITS)} /></footer>
  </section>`;
}
