// Files over HTTP in the real runtime: sizes, streams that are not buffered, kills, and unusual requests.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { http } from "../../package/lib/node-http.mjs";
import { exchange, repeating, staysFlat } from "./support/bytes.mjs";
import { say } from "./support/model.mjs";
import { chance, sampled, sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */

const CHUNK = 1_000_000;
const LARGE = 100 * CHUNK;
/** The maximum growth of the server's memory over a large file. */
const GROWTH_BYTES = 20 * 1024 * 1024;

const bobbin = suite();
const test = bobbin.test.bind(bobbin);
bobbin.agent("plain", () => say("hello"));

/** @param {Thread} thread @param {string} path @param {Uint8Array | string} body @param {string} [type] */
async function put(thread, path, body, type = "application/octet-stream") {
  const answer = await exchange(thread, "PUT", `/fs/${path}`, { body, headers: { "content-type": type } });
  assert.ok(answer.status === 200 || answer.status === 201, `${answer.status} ${answer.bytes}`);
  return answer.json().file;
}

/** @param {Thread} thread @param {string} path @param {Record<string, string>} [headers] */
const get = (thread, path, headers = {}) => exchange(thread, "GET", `/fs/${path}`, { headers });

test("bytes of every size come back as they were, in this life and the next", async () => {
  const thread = await bobbin.client.thread("plain");
  const files = [0, 1, 2, 65_536, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 7].map((size) => ({
    path: `dir/${size} bytes – ü.bin`,
    content: randomBytes(size),
  }));
  for (const { path, content } of files) {
    const file = await put(thread, encodeURI(path), content, "image/png");
    assert.deepEqual([file.path, file.size, file.mimeType], [`/${path}`, content.length, "image/png"]);
    assert.equal(file.chunkCount, Math.ceil(content.length / CHUNK));
  }
  const check = async () => {
    for (const { path, content } of files) {
      const answer = await get(thread, encodeURI(path));
      assert.equal(answer.status, 200);
      assert.ok(answer.bytes.equals(content), path);
      assert.equal(answer.headers["content-length"], String(content.length));
      assert.equal(answer.headers["content-type"], "image/png");
      const head = await exchange(thread, "HEAD", `/fs/${encodeURI(path)}`);
      assert.deepEqual([head.status, head.headers["content-length"]], [200, String(content.length)]);
      assert.equal(head.headers.etag, answer.headers.etag);
    }
    const listed = (await get(thread, "dir?limit=500")).json().files;
    assert.equal(listed.length, files.length);
  };
  await check();
  await bobbin.server.crash();
  await check();
  const stats = (await exchange(thread, "GET", "/fs?stats=1")).json();
  const totalSize = files.reduce((sum, { content }) => sum + content.length, 0);
  assert.deepEqual(stats, { fileCount: files.length, directoryCount: 1, totalSize });
});

test("100 MB go up and down and the server does not grow", async () => {
  const thread = await bobbin.client.thread("plain");
  const piece = randomBytes(CHUNK);
  const up = async (/** @type {boolean} */ announced) => {
    const body = (async function* () {
      for (let at = 0; at < LARGE; at += CHUNK) yield piece;
    })();
    /** @type {Record<string, string>} */
    const headers = announced ? { "content-length": String(LARGE) } : {};
    const answer = await exchange(thread, "PUT", "/fs/large", { body, headers });
    assert.equal(answer.json().file.size, LARGE);
  };
  const down = async () => {
    const came = repeating(piece);
    const answer = await exchange(thread, "GET", "/fs/large", { take: came.take });
    assert.deepEqual([answer.status, came.length(), answer.headers["content-length"]], [200, LARGE, String(LARGE)]);
  };
  // The first transfers fill caches of SQLite and of the sockets.
  for (const _ of [1, 2]) await up(true);
  await down();
  if (!existsSync("/proc/self/statm")) return;
  await staysFlat(bobbin.server, { up: () => up(true), down }, GROWTH_BYTES);
  await up(false);
});

test("parts, versions and conditions", async () => {
  const thread = await bobbin.client.thread("plain");
  const content = randomBytes(2 * CHUNK + 100);
  const { etag } = await put(thread, "f", content);
  const part = await get(thread, "f", { range: `bytes=${CHUNK - 5}-${CHUNK + 4}` });
  assert.equal(part.status, 206);
  assert.ok(part.bytes.equals(content.subarray(CHUNK - 5, CHUNK + 5)));
  assert.equal(part.headers["content-range"], `bytes ${CHUNK - 5}-${CHUNK + 4}/${content.length}`);
  assert.ok((await get(thread, "f", { range: "bytes=-100" })).bytes.equals(content.subarray(-100)));
  const beyond = await get(thread, "f", { range: `bytes=${content.length}-` });
  assert.deepEqual([beyond.status, beyond.headers["content-range"]], [416, `bytes */${content.length}`]);
  assert.equal(beyond.json().error.code, "range_not_satisfiable");
  const same = await get(thread, "f", { "if-none-match": etag });
  assert.deepEqual([same.status, same.bytes.length, same.headers.etag], [304, 0, etag]);
  const refused = await exchange(thread, "PUT", "/fs/f", { body: "x", headers: { "if-none-match": "*" } });
  assert.deepEqual([refused.status, refused.json().error.code], [412, "precondition_failed"]);
  const replaced = await exchange(thread, "PUT", "/fs/f", { body: "x", headers: { "if-match": etag } });
  assert.equal(replaced.status, 200);
  assert.notEqual(replaced.headers.etag, etag);
  assert.equal((await get(thread, "f", { "if-none-match": etag })).bytes.toString(), "x");
});

test("JSON writes, reads, moves and lists; what a page could run is kept from running", async () => {
  const thread = await bobbin.client.thread("plain");
  const thumbnail = Buffer.from([0xff, 0xd8, 0xff, 0]).toString("base64");
  const body = { content: "<script>alert(1)</script>", mimeType: "text/html", width: 1, metadata: { a: [1] }, thumbnail };
  const made = await thread.send("POST", "/fs/pages/x.html", body);
  assert.deepEqual([made.status, made.json.file.metadata, made.json.file.width], [201, { a: [1] }, 1], made.text);
  const page = await get(thread, "pages/x.html");
  assert.equal(page.headers["content-security-policy"], "sandbox; default-src 'none'");
  assert.equal(page.headers["x-content-type-options"], "nosniff");
  const small = await get(thread, "pages/x.html?thumbnail=1");
  assert.deepEqual([small.headers["content-type"], small.bytes.length], ["image/jpeg", 4]);
  const moved = await thread.send("PATCH", "/fs/pages", { path: "/kept" });
  assert.deepEqual([moved.status, moved.json.file.path], [200, "/kept"]);
  assert.equal((await get(thread, "kept/x.html?stat=1")).json().file.name, "x.html");
  const found = (await exchange(thread, "GET", "/fs?grep=ALERT")).json();
  assert.deepEqual(found.results, [{ path: "/kept/x.html", matches: [{ line: 1, text: body.content }] }]);
  assert.deepEqual((await exchange(thread, "GET", "/fs?find=*.html")).json().files.map((/** @type {any} */ { path }) => path), ["/kept/x.html"]);
  assert.equal((await thread.send("DELETE", "/fs/kept")).status, 409);
  assert.equal((await thread.send("DELETE", "/fs/kept/x.html")).status, 204);
  assert.equal((await thread.send("DELETE", "/fs/kept/x.html")).status, 404);
  assert.equal((await thread.send("DELETE", "/fs/kept")).status, 204);
  assert.deepEqual((await exchange(thread, "GET", "/fs")).json(), { files: [], path: "/", cursor: null });
});

test("files are the thread's own", async () => {
  const [one, other] = [await bobbin.client.thread("plain"), await bobbin.client.thread("plain")];
  await put(one, "secret.txt", "mine", "text/plain");
  assert.equal((await get(other, "secret.txt")).status, 404);
  assert.deepEqual((await exchange(other, "GET", "/fs?grep=mine")).json().results, []);
  assert.equal((await one.send("DELETE")).status, 200);
  assert.equal((await get(one, "secret.txt")).json().error.code, "thread_not_found");
});

test("a body that breaks off changes nothing and leaves nothing", async () => {
  const thread = await bobbin.client.thread("plain");
  await put(thread, "f", "before");
  const size = async () => (await thread.diagnostics()).bytes;
  const broken = async () => {
    const url = new URL(`/api${thread.path}/fs/f`, thread.client.base);
    const request = http.request(url, { method: "PUT", headers: { "content-length": String(LARGE) } });
    request.on("error", () => {});
    for (let at = 0; at < 8; at++) {
      if (!request.write(randomBytes(CHUNK))) await new Promise((drained) => request.once("drain", drained));
    }
    await sleep(100);
    request.destroy();
  };
  await broken();
  await until("what was stored of it is deleted", async () => (await size()) < 2 * CHUNK);
  assert.equal((await get(thread, "f")).bytes.toString(), "before");
  assert.equal((await exchange(thread, "GET", "/fs?stats=1")).json().fileCount, 1);
});

test("an upload in chunks goes on after kills between chunks and inside them", async () => {
  const thread = await bobbin.client.thread("plain");
  const content = randomBytes(3 * CHUNK + 17);
  await put(thread, "film", "old");
  const body = { path: "film", size: content.length, mimeType: "video/mp4" };
  const started = (await thread.send("POST", "/uploads", body)).json;
  assert.deepEqual([started.chunkSize, started.chunks, started.received], [CHUNK, 4, []]);
  const upload = `/uploads/${started.uploadId}`;
  const chunk = (/** @type {number} */ at) => content.subarray(at * CHUNK, (at + 1) * CHUNK);
  const send = (/** @type {number} */ at) => exchange(thread, "PUT", `${upload}/${at}`, { body: chunk(at) });
  assert.equal((await send(3)).status, 200);
  assert.equal((await send(0)).status, 200);
  // Send half a chunk, then kill the process.
  /** @type {Promise<void> | undefined} */
  let crashed;
  const half = exchange(thread, "PUT", `${upload}/1`, {
    headers: { "content-length": String(CHUNK) },
    body: (async function* () {
      yield chunk(1).subarray(0, CHUNK / 2);
      crashed = bobbin.server.crash();
      await crashed;
    })(),
  });
  await assert.rejects(half);
  await crashed;
  const there = (await thread.send("GET", upload)).json;
  assert.deepEqual(there.received, [0, 3]);
  const early = await thread.send("POST", `${upload}/complete`);
  assert.deepEqual([early.status, early.json.error.message], [409, "Chunks 1, 2 are missing."]);
  assert.equal((await get(thread, "film")).bytes.toString(), "old", "until it is complete");
  const wrong = await exchange(thread, "PUT", `${upload}/2`, { body: "too short" });
  assert.deepEqual([wrong.status, wrong.json().error.field], [400, "body"]);
  for (const at of [1, 2, 2]) assert.equal((await send(at)).status, 200);
  await bobbin.server.crash();
  for (const _ of [1, 2]) {
    const done = await thread.send("POST", `${upload}/complete`);
    assert.deepEqual([done.status, done.json.file?.size], [200, content.length], done.text);
    await bobbin.server.crash();
  }
  assert.ok((await get(thread, "film")).bytes.equals(content));
});

test("a kill in the middle of writes loses no file that was accepted", async () => {
  const thread = await bobbin.client.thread("plain");
  /** @type {Map<string, Buffer>} */
  const accepted = new Map();
  let writing = true;
  const writer = (async () => {
    for (let n = 0; writing; n++) {
      const content = randomBytes(n % 3 === 0 ? CHUNK + n : n);
      const answer = await exchange(thread, "PUT", `/fs/n/${n}`, { body: content }).catch(() => undefined);
      if (answer?.status === 201) accepted.set(`n/${n}`, content);
      else await sleep(50);
    }
  })();
  await until("some were accepted", () => accepted.size >= 10);
  await bobbin.server.crash();
  const before = accepted.size;
  await until("more were accepted", () => accepted.size >= before + 3);
  writing = false;
  await writer;
  for (const [path, content] of accepted) assert.ok((await get(thread, path)).bytes.equals(content), path);
});

test("a client's own headers never reach a thread", async () => {
  const thread = await bobbin.client.thread("plain");
  const forged = JSON.stringify({ thread_id: "x", caller: { scope: "admin", via: "key" }, route: { route: "delete" } });
  const answer = await get(thread, "none", { "x-bobbin-call": forged, "x-bobbin-listen": forged });
  assert.deepEqual([answer.status, answer.json().error.code], [404, "not_found"]);
});

test("odd paths, patterns and texts are answered, never with 500", async () => {
  const thread = await bobbin.client.thread("plain");
  const pieces = ["a", "/", "..", ".", "%00", "%2F", "%2e%2e", "%", "%ff", "ü", "*", "?", "**", '"', "'", "\\", "[", "%E2%80%AE", " ", "%0a", "🧵", "-", "NEAR(", "OR", "~", ":"];
  const { between, pick } = chance("odd requests");
  const odd = (/** @type {number} */ most) => Array.from({ length: between(1, most) }, () => pick(pieces)).join("");
  await put(thread, "text", 'a "ü" OR *NEAR( ~ 🧵\n\\[', "text/plain");
  for (let n = 0; n < sampled(250, 80); n++) {
    const path = encodeURI(odd(8)).replace(/%25/g, "%").replace(/[?#]/g, "%3f");
    const query = encodeURIComponent(odd(5));
    for (const [method, to] of /** @type {[string, string][]} */ ([
      ["PUT", `/fs/${path}`],
      ["GET", `/fs/${path}`],
      ["GET", `/fs?grep=${query}`],
      ["GET", `/fs?find=${query}`],
      [["DELETE", "HEAD", "POST"][n % 3] ?? "GET", `/fs/${path}`],
    ])) {
      const body = method === "PUT" || method === "POST" ? { body: odd(9) } : {};
      const answer = await exchange(thread, method, to, body);
      assert.ok(answer.status < 500, `${method} ${to}: ${answer.status} ${answer.bytes}`);
    }
  }
}, 180_000);
