// A WebSocket whose client does not read costs bounded memory: it is closed if too much was sent since the last
// answered ping. A client that reads and answers is never disconnected.

import assert from "node:assert/strict";
import { say } from "../worker/support/model.mjs";
import { sleep, until } from "../worker/support/poll.mjs";
import { Socket } from "../worker/support/socket.mjs";
import { suite } from "../worker/support/suite.mjs";

const bobbin = suite();
const test = bobbin.test.bind(bobbin);
bobbin.agent("plain", () => say("hello"));

const MEGABYTE = 1 << 20;
/** The most that a socket is sent without an answered ping, in megabytes (crates/definitions/src/limits.rs). */
const BOUND_MB = 8;
const TOO_SLOW = 3002;

/** Creates frames of a megabyte. @param {import("../worker/support/client.mjs").Thread} thread @param {number} count @param {() => void} [each] */
async function fill(thread, count, each = () => {}) {
  const content = "x".repeat(MEGABYTE - 1000);
  for (let at = 0; at < count; at++) {
    await thread.ask(content);
    each();
  }
}

/** @param {import("../worker/support/client.mjs").Thread} thread @param {boolean} reads */
async function listen(thread, reads) {
  const socket = await Socket.open(bobbin.server.base, `/api${thread.path}/stream`);
  await socket.next("the snapshot", (frame) => frame.type === "snapshot");
  if (!reads) socket.connection.pause();
  return socket;
}

/** Returns how much was sent before the socket was closed, in megabytes. @param {Socket} socket */
async function closed(socket) {
  socket.connection.resume();
  await until("the socket is closed", () => socket.closed, { describe: () => socket.frames.length });
  assert.equal(socket.closeCode, TOO_SLOW);
  return socket.frames.filter((frame) => frame.data?.content?.length > MEGABYTE / 2).length;
}

test("a socket that nobody reads is closed, and holds no more than its bound", async () => {
  const thread = await bobbin.client.thread("plain");
  const slow = await listen(thread, false);
  const good = await listen(thread, true);
  await fill(thread, BOUND_MB + 6, () => good.send("ping"));
  const megabytes = await closed(slow);
  assert.ok(megabytes <= BOUND_MB + 1, `${megabytes} MB were kept for it`);
  assert.ok(!good.closed, "the neighbour that reads is not touched");
  const again = await listen(thread, true);
  await thread.ask("still there?");
  await again.next("the next message", (frame) => frame.data?.content === "still there?");
  again.close();
  good.close();
});

test("pings alone do not keep a socket open that nobody reads", async () => {
  const thread = await bobbin.client.thread("plain");
  const slow = await listen(thread, false);
  // Buffers of the operating system and of two proxies lie between the product and its client. They hold some 25 to 40
  // MB, and pings are answered until they are full.
  await fill(thread, 10 * BOUND_MB, () => slow.send("ping"));
  const megabytes = await closed(slow);
  assert.ok(megabytes <= 8 * BOUND_MB, `${megabytes} MB were kept for it`);
});

test("a socket that reads and pings is sent any amount", async () => {
  const thread = await bobbin.client.thread("plain");
  const good = await listen(thread, true);
  await fill(thread, 2 * BOUND_MB + 2, () => good.send("ping"));
  await sleep(500);
  assert.ok(!good.closed);
  assert.equal(good.frames.filter((frame) => frame.data?.content?.length > MEGABYTE / 2).length, 2 * BOUND_MB + 2);
  good.close();
});

test("sockets that are left full keep new ones away until their clients are gone", async () => {
  const thread = await bobbin.client.thread("plain");
  const stuck = [await listen(thread, false), await listen(thread, false), await listen(thread, false)];
  await fill(thread, BOUND_MB + 2);
  await assert.rejects(Socket.open(bobbin.server.base, `/api${thread.path}/stream`), /503/);
  for (const socket of stuck) socket.connection.destroy();
  await until("a new one is let in", () => listen(thread, true).then((socket) => (socket.close(), true), () => false));
});
