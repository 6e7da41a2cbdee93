// `bobbin threads`: lists threads.

import { exactly, number } from "../lib/arguments.mjs";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { dim, moment, note, oneLine, print, printJson, table } from "../lib/output.mjs";
import { online, TARGET_HELP, TARGET_OPTIONS } from "../lib/target.mjs";
import { inbox } from "../lib/waits.mjs";

/**
 * @typedef {import("bobbin/client").Client} Client
 * @typedef {import("bobbin/client").components["schemas"]["ListedThread"]} Listed
 */

/** The list's filters for each state. @type {Record<string, { executing?: boolean, terminated?: boolean, failed?: boolean }>} */
const STATES = { running: { executing: true }, idle: { executing: false, terminated: false }, failed: { failed: true }, terminated: { terminated: true } };

/** The `user_id` of all owners. */
const EVERY_OWNER = "*";
/** The maximum number of rows to search. The server lists fewer rows when the list covers all owners. */
const LOOKED_THROUGH = 10_000;
const OF_EVERY_OWNER = 500;

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "threads [--agent AGENT] [--state STATE] [--tag TAG] [--user ID] [--limit N]",
  help: `  --agent AGENT   threads of this agent
  --state STATE   ${Object.keys(STATES).join(", ")}, or asking: waiting for a person
  --tag TAG       threads with this tag
  --user ID       of this owner, or '${EVERY_OWNER}' for all owners; without it, an administrator's key lists threads without
                  an owner
  --search TEXT   threads with this text in their id, agent, tags or newest message
  --children      includes subagents' threads
  --limit N       the maximum number of threads (default 20)
${TARGET_HELP}

Newest activity first. The list may be a moment behind the threads.`,
  options: {
    ...TARGET_OPTIONS,
    agent: { type: "string" },
    state: { type: "string" },
    tag: { type: "string" },
    user: { type: "string" },
    search: { type: "string" },
    children: { type: "boolean", default: false },
    limit: { type: "string", default: "20" },
  },
  run: online(async ({ client }, values, positionals) => {
    exactly(positionals, []);
    const limit = number("limit", values["limit"], { least: 1, most: 10_000 });
    const { state, tag } = values;
    if (state !== undefined && state !== "asking" && STATES[state] === undefined) {
      throw new Complaint(`--state is ${Object.keys(STATES).join(", ")} or asking, not “${state}”.`, EXIT.usage);
    }
    const open = await asking(client, values["user"]);
    const { threads, more } = await listed(client, query(values), limit, (thread) =>
      (tag === undefined || thread.tags.includes(tag)) && (state !== "asking" || open.has(thread.id)));
    if (values["json"]) return printJson({ threads: threads.map((thread) => ({ ...thread, state: stateOf(thread, open) })), more });
    if (threads.length === 0) return note(values["user"] === undefined ? `There are no threads. (With an administrator's key, --user '${EVERY_OWNER}' lists the threads of all owners.)` : "There are no threads.");
    print(table(["id", "agent", "state", "active", "tags", "newest"], threads.map((thread) => row(thread, stateOf(thread, open)))));
    if (more) note(dim(`There are more: --limit ${limit * 2}`));
  }),
};

/** @param {Record<string, any>} values */
function query({ agent, state, tag, user, search, children }) {
  return {
    sort: /** @type {const} */ ("activity"),
    include_children: children || state === "asking",
    ...(state !== undefined && STATES[state]),
    ...(agent !== undefined && { agent_id: agent }),
    ...(user !== undefined && { user_id: user }),
    // The server's search includes tags.
    ...((search ?? tag) !== undefined && { search: search ?? tag }),
  };
}

/**
 * @param {Client} client
 * @param {ReturnType<typeof query>} asked
 * @param {number} limit
 * @param {(thread: Listed) => boolean} is
 */
async function listed(client, asked, limit, is) {
  /** @type {Listed[]} */
  const threads = [];
  const most = asked.user_id === EVERY_OWNER ? OF_EVERY_OWNER : LOOKED_THROUGH;
  for (let offset = 0; offset < most; ) {
    const { data } = await client.GET("/api/threads", { params: { query: { ...asked, limit: 500, offset } } });
    const page = data?.threads ?? [];
    threads.push(...page.filter(is));
    offset += page.length;
    if (threads.length > limit) return { threads: threads.slice(0, limit), more: true };
    if (!data?.hasMore || page.length === 0) break;
  }
  return { threads, more: false };
}

/**
 * Returns the ids of threads with open questions or approvals.
 * @param {Client} client @param {string | undefined} user @returns {Promise<Set<string>>}
 */
async function asking(client, user) {
  const ids = new Set();
  for await (const { threadId } of inbox(client, user)) ids.add(threadId);
  return ids;
}

/** @param {Listed} thread @param {Set<string>} open */
function stateOf({ id, terminated, executing, failed }, open) {
  if (terminated !== null) return "terminated";
  return open.has(id) ? "asking" : executing ? "running" : failed === null ? "idle" : "failed";
}

/** @param {Listed} thread @param {string} state */
function row({ id, agent_id, last_activity_at, created_at, tags, last_message_preview }, state) {
  return [id, oneLine(agent_id), state, moment(last_activity_at ?? created_at), oneLine(tags.join(",")), oneLine(last_message_preview ?? "")];
}
