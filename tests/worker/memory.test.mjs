// The isolate's memory under load: its JavaScript heap and buffers, after garbage collection, and the memory of the
// wasm. The size of the process is not a measure, because a development server's processes grow with every request,
// both wrangler's proxy and the one that runs the Worker.

import assert from "node:assert/strict";
import { Inspector } from "./support/inspector.mjs";
import { say } from "./support/model.mjs";
import { sleep } from "./support/poll.mjs";
import { residentBytes, workerdOf } from "./support/processes.mjs";
import { freePort } from "./support/server.mjs";
import { Socket } from "./support/socket.mjs";
import { suite } from "./support/suite.mjs";

// Use the isolate's inspector, whose port workerd must be given.
const bobbin = suite({ flags: ["--inspector-port", String(await freePort())] });
const test = bobbin.test.bind(bobbin);
bobbin.agent("plain", () => say("x".repeat(2000)));
bobbin.definitions.push(() =>
  bobbin.folder.file(
    "api/reads.ts",
    `export default async (request, state) => {
      const times = Number(new URL(request.url).searchParams.get("times"));
      const sizes = await Promise.all(Array.from({ length: times }, async () => (await state.readFile("large")).byteLength));
      return { bytes: sizes.reduce((sum, size) => sum + size, 0) };
    };`,
  ),
);

const MEGABYTE = 1 << 20;
/** Half of the platform's limit for an isolate. */
const MOST = 64 * MEGABYTE;
/** The maximum after the load has ended. */
const REST = 32 * MEGABYTE;

/** Measures the isolate's memory while `work` runs. @param {() => Promise<unknown>} work */
async function watched(work) {
  const { server, client } = bobbin;
  const pid = workerdOf(server.child?.pid ?? 0, server.persist);
  assert.ok(pid !== undefined);
  const inspector = await Inspector.open(pid, "bobbin");
  const thread = await client.thread("plain");
  let running = true;
  let most = 0;
  const look = async () => {
    let collecting = true;
    const collected = inspector.collect().finally(() => (collecting = false));
    let wasmBytes = 0;
    do {
      ({ wasmBytes } = (await thread.send("GET", "/diagnostics?counters")).json);
      await sleep(20);
    } while (collecting);
    await collected;
    const bytes = wasmBytes + (await inspector.heapBytes());
    most = Math.max(most, bytes);
    return bytes;
  };
  const looking = (async () => {
    while (running) await look();
  })();
  await work();
  running = false;
  await looking;
  const rest = await look();
  inspector.close();
  return { most, rest };
}

/** @param {{ most: number, rest: number }} found */
function holds({ most, rest }) {
  const megabytes = (/** @type {number} */ bytes) => `${(bytes / MEGABYTE).toFixed(1)} MB`;
  console.log(`at most ${megabytes(most)}, ${megabytes(rest)} after it`);
  assert.ok(most < MOST, `the isolate held ${megabytes(most)}`);
  assert.ok(rest < REST, `${megabytes(rest)} are left`);
}

test("many posts to one thread, and many turns", async () => {
  const found = await watched(async () => {
    const one = await bobbin.client.thread("plain");
    const note = { role: "system", content: "x".repeat(1000) };
    for (let n = 0; n < 20; n++) {
      await Promise.all(Array.from({ length: 50 }, () => one.send("POST", "/messages", note)));
    }
    const threads = await Promise.all(Array.from({ length: 30 }, () => bobbin.client.thread("plain")));
    await Promise.all(
      threads.map(async (thread) => {
        for (let n = 0; n < 5; n++) await thread.ask("hello");
      }),
    );
  });
  holds(found);
});

test("large pages to many readers at once", async () => {
  const thread = await bobbin.client.thread("plain");
  const note = { role: "system", content: "ü".repeat(500_000) };
  for (let n = 0; n < 16; n++) await thread.send("POST", "/messages", note);
  const found = await watched(async () => {
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => thread.send("GET", "/messages")));
      for (const answer of answers) assert.equal(answer.status, 200, answer.text.slice(0, 200));
      const sockets = await Promise.all(Array.from({ length: 5 }, () => Socket.open(bobbin.server.base, `/api${thread.path}/stream`)));
      await Promise.all(sockets.map((socket) => socket.next("the snapshot", (frame) => frame.type === "snapshot")));
      for (const socket of sockets) socket.close();
    }
  });
  holds(found);
});

test("large files up and down at once", async () => {
  const thread = await bobbin.client.thread("plain");
  const body = Buffer.alloc(24 * MEGABYTE, 7);
  const found = await watched(async () => {
    const address = (/** @type {number} */ n) => `${bobbin.server.base}/api${thread.path}/fs/file${n}`;
    const put = async (/** @type {number} */ n) => {
      const answer = await fetch(address(n), { method: "PUT", body });
      assert.equal(answer.status, 201, await answer.text());
    };
    // Two at a time: garbage since the last collection counts, too. With four it was half of the bound.
    await Promise.all([0, 1].map(put));
    const get = async (/** @type {number} */ n) => {
      const answer = await fetch(address(n));
      assert.equal((await answer.arrayBuffer()).byteLength, body.length);
    };
    await Promise.all([0, 1].map(get));
  });
  holds(found);
});

test("many large answers to code", async () => {
  const thread = await bobbin.client.thread("plain");
  const size = 4 * MEGABYTE;
  const put = await fetch(`${bobbin.server.base}/api${thread.path}/fs/large`, { method: "PUT", body: Buffer.alloc(size, 7) });
  assert.equal(put.status, 201, await put.text());
  const read = async (/** @type {number} */ times) => {
    const answer = await thread.send("GET", `/reads?times=${times}`);
    assert.deepEqual(answer.json, { bytes: times * size });
    const pid = workerdOf(bobbin.server.child?.pid ?? 0, bobbin.server.persist);
    return residentBytes(pid ?? 0);
  };
  const before = await read(8);
  const grown = (await read(128)) - before;
  console.log(`${(grown / MEGABYTE).toFixed(0)} MB more in the process after 512 MB of answers`);
  // Uncollected garbage is bounded, too, because the process does not return its memory.
  assert.ok(grown < 256 * MEGABYTE, `${(grown / MEGABYTE).toFixed(0)} MB more are in the process`);
});
