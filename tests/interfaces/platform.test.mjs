// What the code relies on of the runtime, or guards against. A new version that answers otherwise fails here first, by name.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { http } from "../../package/lib/node-http.mjs";
import { sleep, until } from "../worker/support/poll.mjs";
import { checkout, freePort, scratch } from "../worker/support/server.mjs";
import { Socket } from "../worker/support/socket.mjs";
import { WORKERD, configure } from "../worker/support/workerd.mjs";

const CLOSE = 8;
const folder = scratch("platform");
let base = "";
/** @type {import("node:child_process").ChildProcess} */
let workerd;

before(async () => {
  const port = await freePort();
  base = `http://127.0.0.1:${port}`;
  copyFileSync(join(checkout, "tests/worker/support/platform-worker.js"), join(folder, "worker.js"));
  const config = configure(folder, ["worker.js"], port, `
    durableObjectNamespaces = [(className = "Store", uniqueKey = "store", enableSql = true)],
    durableObjectStorage = (localDisk = "disk"),
    bindings = [(name = "STORE", durableObjectNamespace = "Store"), (name = "LOADER", workerLoader = (id = "loader"))],`, folder);
  workerd = spawn(WORKERD, ["serve", "--experimental", config], { stdio: ["ignore", "inherit", "inherit"] });
  await until("workerd serves", () => answer("ready").then(() => true, () => false));
});

after(async () => {
  workerd.kill("SIGKILL");
  await once(workerd, "exit");
  rmSync(folder, { recursive: true });
});

/** @param {string} question @returns {Promise<any>} */
async function answer(question) {
  const response = await fetch(`${base}/${question}`);
  if (!response.ok) throw new Error(`${question}: ${response.status} ${await response.text()}`);
  return response.json();
}

test("the tests have the product's compatibility date, which is one without `Temporal`", async () => {
  for (const file of ["wrangler.toml", "isolate/wrangler.toml"]) {
    assert.match(readFileSync(join(checkout, file), "utf8"), /^compatibility_date = "2026-10-01"$/m, file);
  }
  assert.equal(await answer("temporal"), "undefined");
});

test("booleans are bound as texts and numbers as reals, which the type of a column makes integers (worker/src/sql.rs)", async () => {
  assert.deepEqual(await answer("bound"), [{ any: "text", flag: "text" }, { any: "real", flag: "integer" }]);
});

test("rows above the limit of a deployed object are stored locally: the limits are our own", async () => {
  assert.equal(await answer("large"), 4 << 20);
});

test("an entry of an index over words is billed as one row", async () => {
  assert.equal(await answer("indexed"), 1);
});

test("an error loses all its properties in a call of an object if one of them cannot be cloned", async () => {
  const { cloneable, uncloneable } = await answer("fails");
  assert.deepEqual(cloneable, { name: "TypeError", message: "it failed", code: "lost" });
  assert.deepEqual(uncloneable, { name: "TypeError", message: "it failed", code: null });
});

test("a Worker that was loaded by an id and failed once stays failed, one without an id does not (isolate/engines/v8.js)", async () => {
  assert.deepEqual(await answer("loads"), { get: ["it fails", "it fails"], load: ["it fails", "it works"] });
});

test("a client that leaves is known by a rejected write alone, not by the request's signal (worker/feed.js)", async () => {
  const request = http.get(`${base}/stream`, { agent: false });
  request.on("error", () => {});
  const [response] = await once(request, "response");
  await once(response, "data");
  request.destroy();
  await until("a write is rejected", async () => (await answer("left")).rejected !== "nothing");
  assert.deepEqual(await answer("left"), { rejected: "Error: Network connection lost.", aborted: false });
});

test("the close of a hibernating socket is left to the object, that of another one is answered (worker/src/sockets.rs)", async () => {
  const [plain, hibernating] = await Promise.all(["/plain", "/hibernating"].map((path) => Socket.open(base, path)));
  for (const socket of [plain, hibernating]) socket?.write(CLOSE, Buffer.from([3, 232]));
  await until("the close is answered", () => plain?.closed);
  await until("the object knows of the other close", async () => (await answer("closed")) === 1000);
  await sleep(300);
  assert.deepEqual([plain?.closeCode, hibernating?.closeCode], [1000, undefined]);
  hibernating?.connection.destroy();
});
