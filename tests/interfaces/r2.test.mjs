// Large files in a bucket, in the real runtime: content is not buffered, kills are survived, and no object is left
// over.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { exchange, repeating, staysFlat } from "../worker/support/bytes.mjs";
import { say } from "../worker/support/model.mjs";
import { until } from "../worker/support/poll.mjs";
import { suite } from "../worker/support/suite.mjs";

/** @typedef {import("../worker/support/client.mjs").Thread} Thread */

const CHUNK = 1_000_000;
const LARGE = 34 * CHUNK;
/**
 * The maximum growth of the server's memory over a file of 100 MB. Its process also simulates R2, whose heap grows less
 * each time until it is collected.
 */
const GROWTH_BYTES = 50 * 1024 * 1024;

const bobbin = suite({ flags: ["--files-bucket"] });
const test = bobbin.test.bind(bobbin);
bobbin.agent("plain", () => say("hello"));

/** Counts the objects in the bucket. */
function objects() {
  const blobs = join(bobbin.server.persist, "v3/r2/bobbin-files/blobs");
  return existsSync(blobs) ? readdirSync(blobs).length : 0;
}

/** @param {Thread} thread @param {string} path @param {Uint8Array} body */
async function put(thread, path, body) {
  const answer = await exchange(thread, "PUT", `/fs/${path}`, { body, headers: { "content-type": "video/mp4" } });
  assert.ok(answer.status === 200 || answer.status === 201, `${answer.status} ${answer.bytes}`);
  return answer.json().file;
}

/** @param {Thread} thread @param {string} path @param {Record<string, string>} [headers] */
const get = (thread, path, headers = {}) => exchange(thread, "GET", `/fs/${path}`, { headers });

/** @param {Thread} thread @param {string} path */
const storage = async (thread, path) => (await get(thread, `${path}?stat=1`)).json().file.storage;

/** @param {Thread} thread @param {string} path */
const moved = (thread, path) => until(`${path} is in the bucket`, async () => (await storage(thread, path)) === "r2");

/** @param {Thread} thread */
const bytes = async (thread) => (await thread.diagnostics()).bytes;

test("a large file lives in the bucket and is read from there, in this life and the next", async () => {
  const thread = await bobbin.client.thread("plain");
  const content = randomBytes(LARGE + 7);
  const file = await put(thread, "film", content);
  assert.equal(file.storage, "local");
  assert.ok((await get(thread, "film")).bytes.equals(content), "while it is on its way");
  await moved(thread, "film");
  assert.equal(objects(), 1);
  const left = await bytes(thread);
  assert.ok(left < CHUNK, `the database still has ${left} bytes`);
  const check = async () => {
    const whole = await get(thread, "film");
    assert.deepEqual([whole.status, whole.headers.etag], [200, file.etag]);
    assert.equal(whole.headers["content-length"], String(content.length));
    assert.ok(whole.bytes.equals(content));
    const part = await get(thread, "film", { range: `bytes=${CHUNK - 5}-${3 * CHUNK + 4}` });
    assert.equal(part.status, 206);
    assert.equal(part.headers["content-range"], `bytes ${CHUNK - 5}-${3 * CHUNK + 4}/${content.length}`);
    assert.ok(part.bytes.equals(content.subarray(CHUNK - 5, 3 * CHUNK + 5)));
    assert.ok((await get(thread, "film", { range: "bytes=-3" })).bytes.equals(content.subarray(-3)));
    assert.equal((await get(thread, "film", { "if-none-match": file.etag })).status, 304);
    const head = await exchange(thread, "HEAD", "/fs/film");
    assert.deepEqual([head.status, head.headers["content-length"]], [200, String(content.length)]);
  };
  await check();
  await bobbin.server.crash();
  await check();
  await put(thread, "film", Buffer.from("short"));
  assert.equal((await get(thread, "film")).bytes.toString(), "short");
  await until("its object is deleted", () => objects() === 0);
  assert.equal(await storage(thread, "film"), "local");
});

test("a removed file and a deleted thread leave no object", async () => {
  const thread = await bobbin.client.thread("plain");
  const content = randomBytes(LARGE);
  for (const path of ["one", "two"]) {
    await put(thread, path, content);
    await moved(thread, path);
  }
  assert.equal(objects(), 2);
  assert.equal((await thread.send("DELETE", "/fs/one")).status, 204);
  await until("its object is deleted", () => objects() === 1);
  // This one is being uploaded.
  await put(thread, "three", content);
  assert.equal((await thread.send("DELETE")).status, 200);
  await until("every object is deleted", () => objects() === 0);
  assert.equal((await get(thread, "two")).json().error.code, "thread_not_found");
});

test("a kill while a file is on its way loses nothing", async () => {
  const thread = await bobbin.client.thread("plain");
  const content = randomBytes(LARGE);
  await put(thread, "film", content);
  await bobbin.server.crash();
  assert.ok((await get(thread, "film")).bytes.equals(content));
  await put(thread, "small", Buffer.from("a write takes it up again"));
  await moved(thread, "film");
  assert.ok((await get(thread, "film")).bytes.equals(content));
  assert.equal((await thread.send("DELETE")).status, 200);
  await until("every object is deleted", () => objects() === 0);
});

test("100 MB go to the bucket and back and the server does not grow", async () => {
  const thread = await bobbin.client.thread("plain");
  const piece = randomBytes(CHUNK);
  const up = async () => {
    const body = (async function* () {
      for (let at = 0; at < 100; at++) yield piece;
    })();
    const answer = await exchange(thread, "PUT", "/fs/large", { body, headers: { "content-length": String(100 * CHUNK) } });
    assert.equal(answer.json().file.size, 100 * CHUNK);
    await moved(thread, "large");
  };
  const down = async () => {
    const came = repeating(piece);
    const answer = await exchange(thread, "GET", "/fs/large", { take: came.take });
    assert.deepEqual([answer.status, came.length()], [200, 100 * CHUNK]);
  };
  // The first transfer fills caches of SQLite and of the sockets.
  await up();
  if (!existsSync("/proc/self/statm")) return down();
  await staysFlat(bobbin.server, { up, down }, GROWTH_BYTES);
  const left = await bytes(thread);
  assert.ok(left < CHUNK, `the database still has ${left} bytes`);
});
