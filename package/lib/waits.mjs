// Waits: finds them by id, and shows what a person needs in order to decide them.

import { BobbinError } from "bobbin/client";
import { Complaint } from "./complaint.mjs";
import { fieldsOf } from "./form.mjs";
import { harmless, list, moment, oneLine } from "./output.mjs";

/**
 * @typedef {import("bobbin/client").Client} Client
 * @typedef {import("bobbin/client").Wait} Wait
 * @typedef {{ id: string, threadId: string, kind: string, title: string, createdAt: number, expiresAt: number }} Listed
 */

/**
 * Yields the open waits in all threads of an owner, newest first. The list is eventually consistent.
 *
 * @param {Client} client
 * @param {string | undefined} user
 * @returns {AsyncGenerator<Listed>}
 */
export async function* inbox(client, user) {
  /** @type {string | null | undefined} */
  let cursor;
  do {
    const query = { limit: 500, ...(user !== undefined && { user_id: user }), ...(typeof cursor === "string" && { cursor }) };
    const { data } = await client.GET("/api/waits", { params: { query } });
    yield* /** @type {Listed[]} */ (data?.waits ?? []);
    cursor = data?.cursor;
  } while (typeof cursor === "string");
}

/**
 * Finds a wait by its id.
 *
 * @param {Client} client
 * @param {string} id
 * @param {{ thread?: string | undefined, user?: string | undefined }} where
 * @returns {Promise<Wait>}
 */
export async function findWait(client, id, { thread, user }) {
  if (thread !== undefined) return one(client, thread, id);
  for await (const listed of inbox(client, user)) if (listed.id === id) return one(client, listed.threadId, id);
  // The wait may be too new for the list, or already closed. Its id contains the beginning of its thread's id.
  const [, beginning] = /^w_([0-9a-f]{8})_\d+$/.exec(id) ?? [];
  if (beginning !== undefined) {
    const query = { search: beginning, include_children: true, limit: 500, ...(user !== undefined && { user_id: user }) };
    const { data } = await client.GET("/api/threads", { params: { query } });
    for (const { id: threadId } of data?.threads ?? []) {
      const wait = threadId.startsWith(beginning) ? await one(client, threadId, id).catch(unlessMissing) : undefined;
      if (wait !== undefined) return wait;
    }
  }
  throw new Complaint(`There is no open wait “${harmless(id)}” here. \`bobbin approvals\` lists the open ones. If the thread has an owner, name the owner with --user or the thread with --thread.`);
}

/** @param {unknown} error */
function unlessMissing(error) {
  if (error instanceof BobbinError && error.status === 404) return undefined;
  throw error;
}

/** @param {Client} client @param {string} threadId @param {string} waitId */
async function one(client, threadId, waitId) {
  const { data } = await client.GET("/api/threads/{threadId}/waits/{waitId}", { params: { path: { threadId, waitId } } });
  if (data === undefined) throw new Error("a wait without content");
  return data.wait;
}

/** Formats everything that a person needs to decide a wait. @param {Wait} wait */
export function details(wait) {
  const { id, kind, state, threadId, title, reason, call, edit, choices, budget, allows, by, createdAt, expiresAt, onExpiry, decision } = wait;
  const { server, url, form } = asked(wait);
  return list([
    ["id", id],
    ["kind", kind],
    ["state", state === "decided" ? `decided: ${decision}` : state],
    ["asks", oneLine(title)],
    ["because", oneLine(reason ?? "")],
    ["server", oneLine(server ?? "")],
    ["leads to", oneLine(url ?? "")],
    ["form", fieldsOf(form).map(entry).join("\n")],
    ["tool", oneLine(call?.tool ?? "")],
    ["arguments", call ? harmless(JSON.stringify(call.args, null, 2)) : ""],
    ["may change", oneLine(edit?.join(", ") ?? "")],
    ["choices", harmless(choices?.map((choice, at) => `${at} ${oneLine(choice)}`).join("\n") ?? "")],
    ["budget", budget ? oneLine(JSON.stringify(budget)) : ""],
    ["allows", allows.join(", ")],
    ["decided by", by],
    ["thread", threadId],
    ["asked", moment(createdAt / 1e6)],
    ["ends", `${moment(expiresAt / 1e6)}, then: ${onExpiry}`],
  ]);
}

/** Returns the wait's fields of an MCP elicitation. @param {Wait} wait @returns {{ server?: string, url?: string, form?: any }} */
export const asked = (wait) => /** @type {any} */ (wait);

/** Formats a form field in one line. @param {import("./form.mjs").Field} field */
export function entry({ name, label, hint, kind, format, required, choices, initial }) {
  const about = [
    choices.length > 0 ? `${kind === "many" ? "any of" : "one of"} ${choices.map(({ value, label: said }) => (String(value) === said ? said : `${value} (${said})`)).join(", ")}` : format || kind,
    !required && "optional",
    initial !== undefined && `else ${JSON.stringify(initial)}`,
  ].filter((part) => part !== false);
  return oneLine(`${name}${label === name ? "" : ` “${label}”`}: ${about.join("; ")}${hint && `. ${hint}`}`);
}
