// The end of the stream of `GET /events`: tests the bridge alone, in the real runtime, with clients that read, do not
// read, and disconnect. In the product this takes minutes.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, rmSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sleep, until } from "../worker/support/poll.mjs";
import { checkout, freePort, scratch } from "../worker/support/server.mjs";
import { WORKERD, configure } from "../worker/support/workerd.mjs";

let port = 0;
/** @type {import("node:child_process").ChildProcess} */
let workerd;
const folder = scratch("bridge");

before(async () => {
  port = await freePort();
  for (const file of ["platform.js", "bodies.js"]) copyFileSync(join(checkout, "worker", file), join(folder, file));
  copyFileSync(join(checkout, "tests/worker/support/bridge-worker.js"), join(folder, "worker.js"));
  const config = configure(folder, ["worker.js", "platform.js", "bodies.js"], port);
  workerd = spawn(WORKERD, ["serve", config], { stdio: ["ignore", "inherit", "inherit"] });
  await until("workerd serves", () => log().then(Boolean, () => false));
});

after(async () => {
  workerd.kill("SIGKILL");
  await once(workerd, "exit");
  rmSync(folder, { recursive: true });
});

/** Returns the events since the last call. @returns {Promise<string[]>} */
const log = async () => /** @type {string[]} */ (await (await fetch(`http://127.0.0.1:${port}/log`)).json());

/** A client with its own connection, which can stop reading. @param {string} path */
async function client(path) {
  const socket = net.connect(port, "127.0.0.1");
  const seen = { text: "", closed: false };
  socket.setEncoding("utf8").on("data", (text) => (seen.text += text));
  socket.on("close", () => (seen.closed = true)).on("error", () => (seen.closed = true));
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
  await until("the stream begins", () => seen.text.includes("retry: 1000"));
  return { socket, seen };
}

/** Returns the log once the stream has ended. @param {number} [withinMs] */
async function untilOver(withinMs) {
  /** @type {string[]} */
  const lines = [];
  const over = async () => {
    lines.push(...(await log()));
    return lines.includes("over");
  };
  await until("the stream is over", over, { withinMs, describe: () => lines });
  return lines;
}

test("what the object says is copied; its answers to pings are not", async () => {
  const { socket, seen } = await client("/says");
  await until("both events arrive", () => seen.text.includes("data: one") && seen.text.includes("data: two"));
  await until("a heartbeat arrives", () => seen.text.includes(": \n\n"));
  assert.ok(!seen.text.includes("pong"));
  socket.destroy();
  await untilOver();
});

test("a stream lives while its object answers pings and its client reads", async () => {
  const { socket } = await client("/quiet");
  await sleep(2000);
  const lines = await log();
  assert.ok(lines.filter((line) => line === "sent ping").length >= 3, lines.join());
  assert.ok(!lines.includes("over"), lines.join());
  socket.destroy();
  await untilOver();
});

for (const [path, why] of [
  ["/mute", "its object leaves a ping unanswered"],
  ["/closes", "its object's socket closes"],
  ["/breaks", "its object's socket breaks"],
  ["/short", "its time is up"],
]) {
  test(`a stream ends when ${why}`, async () => {
    const { seen } = await client(/** @type {string} */ (path));
    const lines = await untilOver();
    assert.ok(lines.includes("closed 1000"), "the object's socket is closed too");
    await until("the client sees the end", () => seen.closed || /\r\n0\r\n\r\n$/.test(seen.text));
  });
}

test("a stream ends when its client has gone", async () => {
  const { socket } = await client("/quiet");
  socket.destroy();
  assert.ok((await untilOver()).includes("closed 1000"));
});

test("a stream ends when its client takes nothing any more", async () => {
  const { socket } = await client("/some");
  socket.pause();
  assert.ok((await untilOver()).includes("closed 1000"));
  socket.destroy();
});

test("a stream ends at once when too much waits for its client", async () => {
  const { socket } = await client("/flood");
  socket.pause();
  const lines = await untilOver();
  assert.ok(!lines.includes("sent ping"), "before any heartbeat");
  socket.destroy();
});

test("a client that reads gets everything, however much it is", async () => {
  const { socket, seen } = await client("/some");
  await until("all of it arrives", () => seen.text.split("data: ").length - 1 === 150);
  socket.destroy();
  await untilOver();
});
