// `bobbin send`: sends a message and shows the result.

import { exactly, pipedText } from "../lib/arguments.mjs";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { dim, harmless, note, print, printJson } from "../lib/output.mjs";
import { asked, askedLine, exitOf, outcomeOf } from "../lib/run.mjs";
import { online, TARGET_HELP, TARGET_OPTIONS } from "../lib/target.mjs";

/** @typedef {import("bobbin/client").Client} Client */

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "send <thread> <text> [--wait]\n       bobbin send --agent AGENT <text> [--wait]",
  help: `  <thread>             its id, or key:NAME
  <text>               the message; - reads it from a pipe
  --agent AGENT        creates a thread of this agent, or with --key uses the thread with that key
  --key NAME           your key for the thread, which is created if necessary
  --tag TAG            a tag for a new thread; can be repeated
  --user ID            the owner of a new thread, with an administrator's key
  --wait               prints the reply; exits with 0 if the run completed, 3 if it failed, 4 if it waits for a person,
                       5 if it was stopped
  --idempotency-key K  requests with the same key create one message, even from several processes
${TARGET_HELP}

A request that is lost is sent again, and creates one message.`,
  options: {
    ...TARGET_OPTIONS,
    agent: { type: "string" },
    key: { type: "string" },
    tag: { type: "string", multiple: true, default: [] },
    user: { type: "string" },
    wait: { type: "boolean", default: false },
    "idempotency-key": { type: "string" },
  },
  run: online(async ({ client }, values, positionals) => {
    const { agent, wait } = values;
    for (const flag of ["key", "user"]) {
      if (values[flag] !== undefined && agent === undefined) throw new Complaint(`--${flag} needs --agent.`, EXIT.usage);
    }
    const [first = "", second = ""] = exactly(positionals, agent === undefined ? ["thread", "text"] : ["text"]);
    const given = agent === undefined ? second : first;
    const text = given === "-" ? await pipedText() : given;
    const thread = await threadOf(client, agent === undefined ? { id: first } : { agent, ...values });
    const key = values["idempotency-key"];
    const { messageId, state, message } = await thread.send(text, key === undefined ? {} : { idempotencyKey: key });
    // The argument may be a key. Look up the thread's id.
    const threadId = await idOf(client, await thread.id());
    if (!wait) {
      if (values["json"]) printJson({ threadId, messageId, state, message });
      else print(`${messageId} in ${threadId}`);
      return;
    }
    const outcome = await outcomeOf(client, threadId, messageId);
    process.exitCode = exitOf(outcome.outcome);
    if (values["json"]) return printJson({ threadId, messageId, ...outcome });
    await say(client, threadId, outcome);
  }),
};

/**
 * @param {Client} client
 * @param {{ id: string } | { agent: string, key?: string, tag?: string[], user?: string, "idempotency-key"?: string }} named
 */
async function threadOf(client, named) {
  if ("id" in named) return client.thread(named.id);
  const { agent, key, tag = [], user, "idempotency-key": idempotencyKey } = named;
  if (key !== undefined) return client.thread({ key, agent });
  return client.createThread(agent, {
    ...(tag.length > 0 && { tags: tag }),
    ...(user !== undefined && { user_id: user }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  });
}

/** @param {Client} client @param {string} name */
async function idOf(client, name) {
  if (!name.startsWith("key:")) return name;
  const { data } = await client.GET("/api/threads/{threadId}", { params: { path: { threadId: name } } });
  return data?.thread.id ?? name;
}

/** @param {Client} client @param {string} threadId @param {import("bobbin/client").RunOutcome} outcome */
async function say(client, threadId, { outcome, message, reason, error }) {
  if (outcome === "completed") return print(harmless(message?.content ?? ""));
  if (outcome === "parked") {
    note(`The run waits (${reason ?? "for a person"}):`);
    for (const wait of await asked(client, threadId)) note(askedLine(wait));
    note(dim(`bobbin tail ${threadId} follows the thread.`));
    return;
  }
  note(`The run ${outcome === "stopped" ? "was stopped" : "failed"} (${reason}): ${harmless(error?.message ?? message?.content ?? "")}`);
}
