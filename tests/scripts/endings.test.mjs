// `npm start` is five processes: npm, its shell, scripts/start.mjs, wrangler and the runtimes below it. Whichever
// of them is killed, nothing is left that holds the port or the storage, and a start at once after it serves what
// was stored before.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { after, before, test } from "node:test";
import { until } from "../worker/support/poll.mjs";
import { running, tree } from "../worker/support/processes.mjs";
import { checkout, freePort, scratch } from "../worker/support/server.mjs";

/** A first start may have to build. */
const START_MS = 600_000;
const GONE_MS = 15_000;

/** @typedef {import("node:child_process").ChildProcess} ChildProcess */

const persist = scratch("endings");
/** @type {number} */
let port;
/** @type {string} */
let thread;
/** What runs now. @type {ChildProcess | undefined} */
let npm;

/** `npm start`, serving. @returns {Promise<ChildProcess>} */
async function start() {
  const child = spawn("npm", ["start", "--", "--port", String(port), "--persist", persist], {
    cwd: checkout,
    stdio: ["ignore", "pipe", "pipe"],
    // As a terminal starts a command, so that a signal can reach all of it.
    detached: true,
  });
  npm = child;
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding("utf8").on("data", (text) => (printed += text));
  await until(
    "npm start is ready",
    () => {
      assert.equal(child.exitCode, null, printed);
      return printed.includes(`Ready on http://127.0.0.1:${port}`);
    },
    { withinMs: START_MS, describe: () => printed },
  );
  return child;
}

/** @param {string} path @param {unknown} [body] @returns {Promise<any>} */
async function ask(path, body) {
  const answer = await fetch(`http://127.0.0.1:${port}/api${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { "content-type": "application/json" },
    body: body === undefined ? null : JSON.stringify(body),
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
}

/** Waits until none of the processes is left. @param {number[]} pids */
async function gone(pids) {
  await until(`processes ${pids.join(", ")} are gone`, () => !pids.some(running), {
    withinMs: GONE_MS,
    describe: () => pids.filter(running).map((pid) => `${pid} ${commandLine(pid)}`),
  });
}

/** @param {number} pid */
function commandLine(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return ""; // gone, or another system
  }
}

before(async () => {
  port = await freePort();
  await start();
  ({ threadId: thread } = await ask("/threads", { agent_id: "helper" }));
  await ask(`/threads/${thread}/messages?wait=true`, { role: "user", content: "Is this kept?" });
});

after(async () => {
  if (npm?.pid !== undefined && npm.exitCode === null) {
    for (const pid of tree(npm.pid)) if (running(pid)) process.kill(pid, "SIGKILL");
  }
  rmSync(persist, { recursive: true, force: true });
});

/** Which of a tree's processes is meant. @type {Record<string, (pids: number[]) => number | undefined>} */
const VICTIMS = {
  npm: (pids) => pids[0],
  "the shell of npm": (pids) => pids[1],
  "scripts/start.mjs": (pids) => pids[2],
  wrangler: (pids) => pids[3],
  "the first runtime": (pids) => pids.find((pid) => commandLine(pid).includes("workerd serve")),
  "the last runtime": (pids) => pids.findLast((pid) => commandLine(pid).includes("workerd serve")),
};

/** Every second one in a sample, as each has wrangler start again: those at even places, or the others, by its seed. */
const sample = process.env.BOBBIN_SAMPLE;
const victims = Object.entries(VICTIMS).filter((_, at) => sample === undefined || at % 2 === Number(sample) % 2);

for (const [name, find] of victims) {
  const skip = process.platform === "linux" ? false : "finds its victims in /proc";
  test(`kill -9 of ${name} leaves nothing behind, and a start at once serves the same`, { skip, timeout: START_MS }, async () => {
    const pids = tree(npm?.pid ?? 0);
    const victim = find(pids);
    assert.ok(victim, `there is ${name} among ${pids.map(commandLine).join("; ")}`);
    process.kill(victim, "SIGKILL");
    await start();
    const { messages } = await ask(`/threads/${thread}/messages`);
    assert.deepEqual(
      messages.map((/** @type {{ role: string }} */ { role }) => role),
      ["user", "assistant"],
    );
    await gone(pids);
  });
}

test("Ctrl-C ends everything in order", { timeout: START_MS }, async () => {
  assert.ok(npm?.pid);
  const pids = tree(npm.pid);
  // The terminal sends it to the whole group of the command.
  process.kill(-npm.pid, "SIGINT");
  const [code, signal] = await once(npm, "exit");
  assert.ok(code === 0 || signal === "SIGINT", `npm ended with ${signal ?? code}`);
  await gone(pids);
});
