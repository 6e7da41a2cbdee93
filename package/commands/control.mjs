// `bobbin stop`, `continue`, `terminate`, `delete`: control a thread.

import { exactly } from "../lib/arguments.mjs";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { harmless, print, printJson } from "../lib/output.mjs";
import { online, TARGET_HELP, TARGET_OPTIONS } from "../lib/target.mjs";
import { confirmed, someoneIsThere } from "../lib/terminal.mjs";

/**
 * @typedef {import("./index.mjs").Command} Command
 * @typedef {import("bobbin/client").Client} Client
 */

const HELP = `  <thread>      its id, or key:NAME
${TARGET_HELP}`;

/**
 * @param {string} name
 * @param {string} help
 * @param {(client: Client, threadId: string) => Promise<{ data?: Record<string, any> }>} ask
 * @returns {Command}
 */
function simple(name, help, ask) {
  return {
    usage: `${name} <thread>`,
    help: `${HELP}\n\n${help}`,
    options: TARGET_OPTIONS,
    run: online(async ({ client }, values, positionals) => {
      const [thread = ""] = exactly(positionals, ["thread"]);
      say(values, (await ask(client, thread)).data);
    }),
  };
}

/** @param {Record<string, any>} values @param {Record<string, any> | undefined} data */
function say(values, data) {
  if (values["json"]) printJson(data);
  else print(harmless(String(data?.["message"] ?? data?.["status"] ?? "Done.")));
}

export const stop = simple(
  "stop",
  "Stops the run at once. Queued messages wait for the next message or `bobbin continue`.",
  (client, threadId) => client.POST("/api/threads/{threadId}/stop", { params: { path: { threadId } } }),
);

const goOn = simple("continue", "Starts a run without a new message.", (client, threadId) =>
  client.POST("/api/threads/{threadId}/continue", { params: { path: { threadId } } }));
export { goOn as continue };

export const terminate = simple(
  "terminate",
  "Ends the run and the thread for good. The thread stays readable and refuses all further work.",
  (client, threadId) => client.POST("/api/threads/{threadId}/terminate", { params: { path: { threadId } } }),
);

/** @type {Command} */
const remove = {
  usage: "delete <thread> [--yes]",
  help: `${HELP}
  --yes         does not ask for confirmation; required without a terminal

Deletes the thread and its subagents with all their messages, values and files.`,
  options: { ...TARGET_OPTIONS, yes: { type: "boolean", default: false } },
  run: online(async ({ client, url }, values, positionals) => {
    const [threadId = ""] = exactly(positionals, ["thread"]);
    const path = { threadId };
    if (!values["yes"]) {
      if (!someoneIsThere()) throw new Complaint("Deleting cannot be undone. Without a terminal to confirm it, add --yes.", EXIT.usage);
      const { data } = await client.GET("/api/threads/{threadId}", { params: { path } });
      const what = `${data?.thread.id} of ${data?.thread.agent_id} at ${url}, with its ${data?.stats.messageCount} messages, values, files and subagents`;
      if (!(await confirmed(harmless(`Delete ${what}?`)))) throw new Complaint("Nothing was deleted.");
    }
    const { data } = await client.DELETE("/api/threads/{threadId}", { params: { path } });
    say(values, data);
  }),
};
export { remove as delete };
