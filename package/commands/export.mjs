// `bobbin export`: writes a thread to a file.

import { createWriteStream, renameSync, rmSync } from "node:fs";
import { stdout } from "node:process";
import { finished } from "node:stream/promises";
import { retry } from "../lib/retry.mjs";
import { exactly } from "../lib/arguments.mjs";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { history } from "../lib/follow.mjs";
import { dim, json, note, printJson } from "../lib/output.mjs";
import { online, TARGET_HELP, TARGET_OPTIONS } from "../lib/target.mjs";
import { Complete, PIECE } from "../lib/transfer.mjs";
import { VERSION } from "../lib/version.mjs";
import { writeCase } from "../test/from-thread.mjs";

/**
 * @typedef {import("bobbin/client").Client} Client
 * @typedef {import("../lib/transfer.mjs").Line} Line
 * @typedef {import("../lib/transfer.mjs").EndLine} EndLine
 * @typedef {(line: Line) => Promise<void>} Put
 */

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "export <thread> [-o FILE] [--as test]",
  help: `  <thread>     its id, or key:NAME
  -o FILE      writes this file, which only you can read (default: standard output)
  --bodies     includes the log with requests to models and their replies, if the deployment keeps them (BOBBIN_LOG_BODIES)
  --no-files   leaves out the contents of files
  --as test    writes a case for \`bobbin test\` into the file of -o, such as tests/refund.test.json, and a cassette next to it
               if the deployment keeps requests to models
${TARGET_HELP}; with -o, the numbers of exported entries

Writes JSON lines: messages, values, files and variables. Secrets are exported by name only. \`bobbin import\` creates a thread
from the file. An unfinished step is left out.`,
  options: {
    ...TARGET_OPTIONS,
    output: { type: "string", short: "o" },
    bodies: { type: "boolean", default: false },
    "no-files": { type: "boolean", default: false },
    as: { type: "string" },
  },
  run: online(async ({ client }, values, positionals) => {
    const [thread = ""] = exactly(positionals, ["thread"]);
    const { output } = values;
    if (values["as"] !== undefined) return asTest(client, thread, values);
    if (output === undefined) {
      await write(client, thread, values, into(stdout));
      return;
    }
    // Write to a temporary file and rename it, so that the output is never incomplete.
    const writing = `${output}.${process.pid}.part`;
    try {
      const file = createWriteStream(writing, { mode: 0o600 });
      const opened = finished(file).catch((error) => {
        throw new Complaint(`${writing} cannot be written: ${error.message}`);
      });
      const counts = await Promise.race([write(client, thread, values, into(file)), opened.then(() => undefined)]);
      file.end();
      await opened;
      renameSync(writing, output);
      if (values["json"]) printJson({ file: output, ...counts });
      else note(dim(`${output}: ${counts?.messages} messages, ${counts?.values} values, ${counts?.files} files`));
    } finally {
      rmSync(writing, { force: true });
    }
  }),
};

/** @param {Client} client @param {string} thread @param {Record<string, any>} values */
async function asTest(client, thread, { as, output, json: asJson }) {
  if (as !== "test") throw new Complaint(`A thread is exported --as test, or without --as as JSON lines; not as “${as}”.`, EXIT.usage);
  if (output === undefined) throw new Complaint("--as test needs the name of a file, such as -o tests/refund.test.json.", EXIT.usage);
  const get = async (/** @type {string} */ path) => (await /** @type {any} */ (client).GET(path, {})).data;
  const files = await writeCase(get, thread.startsWith("key:") ? `key:${encodeURIComponent(thread.slice("key:".length))}` : encodeURIComponent(thread), output);
  if (asJson) printJson({ files });
  else note(dim(files.join("\n")));
}

/**
 * Returns a function that writes lines and waits for the stream's backpressure.
 * @param {import("node:stream").Writable} stream @returns {Put}
 */
const into = (stream) => async (line) => {
  if (stream.write(`${json(line)}\n`)) return;
  await new Promise((resolve) => stream.once("drain", () => resolve(undefined)));
};

/** @param {Client} client @param {string} name @param {Record<string, any>} values @param {Put} put */
async function write(client, name, values, put) {
  const { data } = await retry(() => client.GET("/api/threads/{threadId}", { params: { path: { threadId: name } } }));
  if (data === undefined) throw new Error("a thread without facts");
  const { thread } = data;
  await put({ type: "thread", format: 1, bobbin: VERSION, exportedAt: new Date().toISOString(), thread });
  /** @type {Omit<EndLine, "type">} */
  const counts = { messages: 0, values: 0, files: 0, logs: 0 };
  const complete = new Complete();
  for await (const message of history(client, thread.id, { includeSilent: true, depth: 8 })) {
    for (const one of complete.take(message)) {
      await put({ type: "message", message: one });
      counts.messages++;
    }
  }
  if (complete.held > 0) note(dim(`(${complete.held} messages of an unfinished step are left out)`));
  counts.values = await writeValues(client, thread.id, put);
  counts.files = await writeFiles(client, thread.id, "", values["no-files"], put);
  if (values["bodies"]) counts.logs = await writeLogs(client, thread.id, put);
  await put({ type: "end", ...counts });
  return counts;
}

/** @param {Client} client @param {string} threadId @param {Put} put */
async function writeValues(client, threadId, put) {
  let count = 0;
  /** @type {string | null | undefined} */
  let cursor;
  do {
    const query = { limit: 500, ...(typeof cursor === "string" && { cursor }) };
    const { data } = await retry(() => client.GET("/api/threads/{threadId}/kv", { params: { path: { threadId }, query } }));
    const page = /** @type {{ values?: { key: string, value?: unknown, updatedAt: number }[], cursor?: string | null }} */ (data ?? {});
    for (const { key, value, updatedAt } of page.values ?? []) {
      if (value === undefined) note(dim(`(the value ${json(key)} is damaged and left out)`));
      else await put({ type: "value", key, value, updatedAt });
      count += value === undefined ? 0 : 1;
    }
    cursor = page.cursor;
  } while (typeof cursor === "string");
  return count;
}

/**
 * Writes a directory and everything below it.
 * @param {Client} client @param {string} threadId @param {string} path @param {boolean} bare @param {Put} put
 */
async function writeFiles(client, threadId, path, bare, put) {
  let count = 0;
  /** @type {string | null | undefined} */
  let cursor;
  do {
    const query = { limit: 500, ...(typeof cursor === "string" && { cursor }) };
    const { data } = await retry(() =>
      path === ""
        ? client.GET("/api/threads/{threadId}/fs", { params: { path: { threadId }, query } })
        : client.GET("/api/threads/{threadId}/fs/{path}", { params: { path: { threadId, path: path.slice(1) }, query } }));
    const page = /** @type {{ files?: import("../lib/transfer.mjs").FileRecord[], cursor?: string | null }} */ (data ?? {});
    for (const file of page.files ?? []) {
      await put({ type: "file", file, ...(bare && !file.isDirectory && { bare }) });
      if (file.isDirectory) count += await writeFiles(client, threadId, file.path, bare, put);
      else if (!bare) await writeContent(client, threadId, file, put);
      count += file.isDirectory ? 0 : 1;
    }
    cursor = page.cursor;
  } while (typeof cursor === "string");
  return count;
}

/** @param {Client} client @param {string} threadId @param {import("../lib/transfer.mjs").FileRecord} file @param {Put} put */
async function writeContent(client, threadId, { path, size }, put) {
  const { data } = await retry(() =>
    client.GET("/api/threads/{threadId}/fs/{path}", { params: { path: { threadId, path: path.slice(1) } }, parseAs: "stream" }));
  let [held, bytes] = [Buffer.alloc(0), 0];
  const put1 = (/** @type {Buffer} */ piece) => put({ type: "bytes", path, data: piece.toString("base64") });
  for await (const chunk of /** @type {AsyncIterable<Uint8Array>} */ (/** @type {unknown} */ (data))) {
    held = Buffer.concat([held, chunk]);
    bytes += chunk.length;
    for (; held.length >= PIECE; held = held.subarray(PIECE)) await put1(held.subarray(0, PIECE));
  }
  if (held.length > 0) await put1(held);
  if (bytes !== size) throw new Complaint(`${json(path)} changed during the export. Export the thread again.`);
}

/** @param {Client} client @param {string} threadId @param {Put} put */
async function writeLogs(client, threadId, put) {
  const path = { threadId };
  let count = 0;
  for (let offset = 0; ; ) {
    const query = { limit: 500, offset, order: /** @type {const} */ ("asc") };
    const { data } = await retry(() => client.GET("/api/threads/{threadId}/logs", { params: { path, query } }));
    const logs = /** @type {{ id: string, type: string }[]} */ (/** @type {unknown} */ (data?.logs ?? []));
    for (const log of logs) {
      const whole = log.type !== "llm_request" && log.type !== "tool_call" ? log : await oneLog(client, threadId, log.id);
      await put({ type: "log", log: whole });
      count++;
    }
    offset += logs.length;
    if (!data?.hasMore || logs.length === 0) return count;
  }
}

/** @param {Client} client @param {string} threadId @param {string} logId @returns {Promise<Record<string, unknown>>} */
async function oneLog(client, threadId, logId) {
  const { data } = await retry(() => client.GET("/api/threads/{threadId}/logs/{logId}", { params: { path: { threadId, logId } } }));
  return /** @type {Record<string, unknown>} */ (data ?? { id: logId });
}
