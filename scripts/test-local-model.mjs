// `npm run test:local-model`: tests the product with a real model. Starts `npm start -- --local-model`, sends a message like
// a browser, and checks that the reply is streamed. Then measures the recall of real embeddings
// (tests/local-model/recall.test.mjs). Not part of `npm test`: it downloads 230 MB once.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { inCheckout } from "./files.mjs";
import { Complaint, main, outcome, print } from "./run.mjs";
import { setUp } from "./setup.mjs";

/** The first start may build everything. */
const START_MS = 30 * 60_000;
/** A busy core generates eight tokens per second. */
const ANSWER_MS = 5 * 60_000;

/** The time limit for the documents and questions on a busy machine. */
const RECALL_MS = 20 * 60_000;

/** @typedef {{ type: string, chunk?: string, data?: { role?: string, status?: string | null, content?: string | null } }} Frame */

await main(async () => {
  const { agent, say } = parseArgs({
    options: {
      agent: { type: "string", default: "helper" },
      say: { type: "string", default: "Hello! Tell me in two sentences what a bobbin is." },
    },
  }).values;
  await talk(agent, say);
  await remember();
});

async function remember() {
  const { node } = await setUp();
  const file = inCheckout("tests/local-model/recall.test.mjs");
  const ended = await outcome(node, ["--test", "--test-reporter=spec", file], { timeoutMs: RECALL_MS, onLine: (line) => print(line) });
  if (ended.status !== 0) throw new Complaint(`${file} failed (${ended.late ? "too late" : ended.status}).`);
}

/** @param {string} agent @param {string} say */
async function talk(agent, say) {
  const persist = mkdtempSync(join(tmpdir(), "bobbin-local-model-"));
  const server = startServer(persist);
  try {
    const url = await server.ready;
    const { threadId } = await post(`${url}/api/threads`, { agent_id: agent });
    const events = await fetch(`${url}/api/threads/${threadId}/events`, { signal: AbortSignal.timeout(ANSWER_MS) });
    if (!events.ok || !events.body) throw new Complaint(`GET /events: ${events.status} ${await events.text()}`);
    const asked = performance.now();
    await post(`${url}/api/threads/${threadId}/messages`, { role: "user", content: say });

    print(`\n> ${say}\n`);
    let chunks = 0;
    let text = "";
    let first = 0;
    for await (const frame of frames(events.body)) {
      if (frame.type === "message_chunk") {
        if (chunks++ === 0) first = performance.now();
        text += frame.chunk ?? "";
        process.stdout.write(frame.chunk ?? "");
      } else if (frame.type === "message_data" && frame.data?.role === "assistant" && frame.data.status !== "pending") {
        if (frame.data.content !== text) throw new Complaint(`The chunks are not the message:\n${frame.data.content}`);
        break;
      } else if (frame.type === "error") {
        throw new Complaint(JSON.stringify(frame));
      }
    }
    const end = performance.now();
    if (text.trim() === "") throw new Complaint("The model said nothing.");
    if (chunks < 2) throw new Complaint("The answer came in one piece.");
    print(
      `\n\n${chunks} chunks; the first after ${((first - asked) / 1000).toFixed(1)} s, ` +
        `then ${((chunks - 1) / ((end - first) / 1000)).toFixed(1)} tokens/s`,
    );
  } finally {
    await server.stop();
    rmSync(persist, { recursive: true, force: true });
  }
}

/** @param {string} persist */
function startServer(persist) {
  const child = spawn(
    process.execPath,
    [inCheckout("scripts/start.mjs"), "--local-model", "--port", "0", "--persist", persist],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const exited = new Promise((resolve) => child.once("exit", resolve));
  /** @type {Promise<string>} */
  const ready = new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Complaint("The server was not ready in time.")), START_MS);
    createInterface({ input: child.stdout }).on("line", (line) => {
      print(line);
      const [, url] = /^Ready on (\S+)/.exec(line) ?? [];
      if (!url) return;
      clearTimeout(late);
      resolve(url);
    });
    child.once("exit", (code) => {
      clearTimeout(late);
      reject(new Complaint(`npm start ended (${code}).`));
    });
  });
  return {
    ready,
    stop: async () => {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

/** @param {string} url @param {unknown} body */
async function post(url, body) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Complaint(`POST ${url}: ${response.status} ${text}`);
  return JSON.parse(text);
}

/**
 * The frames of a stream of server-sent events.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<Frame>}
 */
async function* frames(body) {
  let text = "";
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const event = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const data = event.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
      if (data.length > 0) yield JSON.parse(data.join("\n"));
    }
  }
  throw new Complaint("The stream ended before the answer did.");
}
