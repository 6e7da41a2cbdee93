// `bobbin approvals`: lists the open approvals and questions of all threads.

import { number } from "../lib/arguments.mjs";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { dim, moment, note, oneLine, print, printJson, table } from "../lib/output.mjs";
import { online, TARGET_HELP, TARGET_OPTIONS } from "../lib/target.mjs";
import { details, findWait, inbox } from "../lib/waits.mjs";

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "approvals [id]",
  help: `  <id>            shows the details of one, with the arguments of its call
  --user ID       in threads of this owner, or '*' for all owners; without it, an administrator's key lists threads without
                  an owner
  --kind KIND     approval, question, client_tool, budget, retry, elicitation or sign_in
  --thread ID     the thread of <id>, if the server cannot find it by the id
  --limit N       the maximum number of entries (default 50)
${TARGET_HELP}

Lists everything that waits for a person: approvals of calls, questions, tools of the client, budgets, long pauses, and
questions of MCP servers. \`bobbin approve\`, \`deny\`, \`answer\` and \`decide\` decide an entry. The list may be a moment behind
the threads.`,
  options: {
    ...TARGET_OPTIONS,
    user: { type: "string" },
    kind: { type: "string" },
    thread: { type: "string" },
    limit: { type: "string", default: "50" },
  },
  run: online(async ({ client }, values, positionals) => {
    const { user, kind, thread, json } = values;
    const [id, ...rest] = positionals;
    if (rest.length > 0) throw new Complaint("This command takes at most one id.", EXIT.usage);
    if (id !== undefined) {
      const wait = await findWait(client, id, { thread, user });
      return json ? printJson({ wait }) : print(details(wait));
    }
    const limit = number("limit", values["limit"], { least: 1, most: 10_000 });
    const [waits, more] = [/** @type {import("../lib/waits.mjs").Listed[]} */ ([]), () => waits.length > limit];
    for await (const wait of inbox(client, user)) {
      if (kind === undefined || wait.kind === kind) waits.push(wait);
      if (more()) break;
    }
    const shown = waits.slice(0, limit);
    if (json) return printJson({ waits: shown, more: more() });
    if (shown.length === 0) return note("Nothing waits for a person.");
    print(table(["id", "kind", "asked", "ends", "thread", "asks"], shown.map(row)));
    if (more()) note(dim(`There are more: --limit ${limit * 2}`));
  }),
};

/** @param {import("../lib/waits.mjs").Listed} wait */
const row = ({ id, kind, createdAt, expiresAt, threadId, title }) => [id, kind, moment(createdAt / 1e6), moment(expiresAt / 1e6), threadId, oneLine(title)];
