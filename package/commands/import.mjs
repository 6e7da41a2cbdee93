// `bobbin import`: creates a thread from a file that `bobbin export` wrote.

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { env } from "node:process";
import { retry } from "../lib/retry.mjs";
import { exactly } from "../lib/arguments.mjs";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { dim, harmless, note, print, printJson } from "../lib/output.mjs";
import { online, TARGET_HELP, TARGET_OPTIONS } from "../lib/target.mjs";
import { linesOf } from "../lib/transfer.mjs";
import { Uploading } from "../lib/upload.mjs";

/**
 * @typedef {import("bobbin/client").Client} Client
 * @typedef {import("bobbin/client").Message} Message
 * @typedef {import("../lib/transfer.mjs").ThreadFacts} ThreadFacts
 * @typedef {{ thread: ThreadFacts, messages: Message[], digest: string }} Read
 */

/** The maximum size of `history` in bytes. It leaves room for the rest of the request. */
const MOST = 3_900_000;

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "import <file>",
  help: `  <file>         of \`bobbin export\`
  --agent AGENT  another agent than that of the exported thread
  --key NAME     your key for the thread
  --user ID      its owner, with an administrator's key
  --var NAME     sets the variable NAME to its value in this shell, for example a secret, of which the file has only the name;
                 can be repeated
  --newest       imports the newest turns of a thread with more than 4 MB of messages
${TARGET_HELP}

All messages arrive together with the thread, or none, and start no run. Values and files follow. If that is interrupted,
repeat the command within a day to continue. The result is a copy: \`bobbin show\` names the original thread.`,
  options: {
    ...TARGET_OPTIONS,
    agent: { type: "string" },
    key: { type: "string" },
    user: { type: "string" },
    var: { type: "string", multiple: true, default: [] },
    newest: { type: "boolean", default: false },
  },
  run: online(async ({ client }, values, positionals) => {
    const [file = ""] = exactly(positionals, ["file"]);
    if (!existsSync(file)) throw new Complaint(`There is no file ${harmless(file)}.`, EXIT.usage);
    const read = await readThread(file);
    const messages = fitting(read.messages, values["newest"]);
    if (messages.length < read.messages.length) note(dim(`(${read.messages.length - messages.length} older messages are left out)`));
    const body = newThread(read, messages, values);
    const key = createHash("sha256").update(read.digest).update(JSON.stringify(body)).digest("hex");
    const { data } = await retry(() => client.POST("/api/threads", { params: { header: { "Idempotency-Key": `import-${key}` } }, body }));
    if (data === undefined) throw new Error("no response for a thread");
    if (data.created === false) note(dim("(a thread with this key exists; its messages are unchanged)"));
    const { threadId } = data;
    const counts = { messages: messages.length, ...(await fill(client, threadId, file)) };
    if (values["json"]) printJson({ threadId, agent_id: data.agent_id, ...counts });
    else print(`${threadId}  (${counts.messages} messages, ${counts.values} values, ${counts.files} files)`);
  }),
};

/**
 * Reads the thread and its messages. Reads the whole file, to make sure that it is complete.
 * @param {string} file @returns {Promise<Read>}
 */
async function readThread(file) {
  const hash = createHash("sha256");
  /** @type {ThreadFacts | undefined} */
  let thread;
  /** @type {Message[]} */
  const messages = [];
  let ended = false;
  for await (const line of linesOf(file)) {
    hash.update(JSON.stringify(line));
    if (thread === undefined && line.type !== "thread") break;
    if (line.type === "thread") {
      if (line.format !== 1) throw new Complaint(`${harmless(file)} was written by a newer version of Bobbin. Update this one.`);
      thread = line.thread;
    } else if (line.type === "message") messages.push(line.message);
    else if (line.type === "end") ended = line.messages === messages.length;
  }
  if (thread === undefined) throw new Complaint(`${harmless(file)} is not an export of a thread.`);
  if (!ended) throw new Complaint(`${harmless(file)} is not complete. Export the thread again.`);
  return { thread, messages, digest: hash.digest("hex") };
}

/** @param {Message[]} messages @param {boolean} newest */
function fitting(messages, newest) {
  const sizes = messages.map((message) => Buffer.byteLength(JSON.stringify(entry(message))));
  let [from, bytes] = [messages.length, 0];
  while (from > 0 && bytes + (sizes[from - 1] ?? 0) <= MOST) bytes += sizes[--from] ?? 0;
  if (from === 0) return messages;
  if (!newest) throw new Complaint("The messages of this thread exceed 4 MB. --newest imports the newest of them.");
  // Start with a user message, because a turn begins with one.
  const turn = messages.findIndex(({ role, depth }, at) => at >= from && role === "user" && depth === 0);
  return turn < 0 ? [] : messages.slice(turn);
}

/** @param {Message} message */
function entry({ id, role, content, name, tool_calls, tool_call_id, tool_status, created_at, parent_id, depth, silent, metadata, attachments }) {
  return { id, role, content, name, tool_calls, tool_call_id, tool_status, created_at, parent_id, depth, silent, metadata, attachments };
}

/** @param {Read} read @param {Message[]} messages @param {Record<string, any>} values */
function newThread({ thread }, messages, values) {
  /** @type {Record<string, string>} */
  const given = { ...thread.env };
  /** @type {Record<string, "text" | "secret">} */
  const types = Object.fromEntries(Object.keys(thread.env).map((name) => [name, "text"]));
  for (const name of values["var"]) {
    const value = env[name];
    if (value === undefined) throw new Complaint(`The variable ${harmless(name)} of --var is not set in this shell.`, EXIT.usage);
    [given[name], types[name]] = [value, thread.env_types[name] ?? "secret"];
  }
  const lacking = Object.keys(thread.env_types).filter((name) => given[name] === undefined);
  if (lacking.length > 0) note(dim(`(without the secrets ${harmless(lacking.join(", "))}; --var NAME sets one from this shell)`));
  const { agent, key, user } = values;
  return {
    agent_id: agent ?? thread.agent_id,
    copied_from: thread.id,
    history: messages.map(entry),
    tags: thread.tags,
    properties: thread.properties,
    ...(Object.keys(given).length > 0 && { env: given, env_types: types }),
    ...(key !== undefined && { key }),
    ...(user !== undefined && { user_id: user }),
  };
}

/** Writes values and files. Each write can be repeated safely. @param {Client} client @param {string} threadId @param {string} file */
async function fill(client, threadId, file) {
  const counts = { values: 0, files: 0 };
  const path = { threadId };
  /** @type {Uploading | undefined} */
  let uploading;
  for await (const line of linesOf(file)) {
    if (line.type === "bytes") {
      if (line.path !== uploading?.path) throw new Complaint(`${harmless(file)}: bytes of ${harmless(line.path)} do not follow their file.`);
      await uploading.take(Buffer.from(line.data, "base64"));
      continue;
    }
    if (line.type === "value") {
      const { key, value } = line;
      await retry(() => client.POST("/api/threads/{threadId}/kv", { params: { path }, body: { key, value: /** @type {any} */ (value) } }));
      counts.values++;
    }
    await uploading?.end();
    uploading = undefined;
    if (line.type !== "file") continue;
    const { path: place, isDirectory } = line.file;
    const params = { path: { threadId, path: place.slice(1) } };
    if (line.bare) {
      note(dim(`(${harmless(place)} has no content in this file and is left out)`));
      continue;
    }
    if (isDirectory) await retry(() => client.POST("/api/threads/{threadId}/fs/{path}", { params, body: { directory: true } }));
    else uploading = new Uploading(client, threadId, line.file);
    counts.files += isDirectory ? 0 : 1;
  }
  return counts;
}
