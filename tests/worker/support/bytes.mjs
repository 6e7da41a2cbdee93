// Binary request and response bodies.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { http } from "../../../package/lib/node-http.mjs";
import { tree } from "./processes.mjs";

/** @typedef {import("./client.mjs").Thread} Thread */

/**
 * One exchange with binary bodies.
 *
 * @param {Thread} thread
 * @param {string} method
 * @param {string} path        relative to the thread
 * @param {{ body?: Uint8Array | string | AsyncIterable<Uint8Array>, headers?: Record<string, string>, take?: (bytes: Buffer) => void }} [options]
 * @returns {Promise<{ status: number, headers: import("node:http").IncomingHttpHeaders, bytes: Buffer, json: () => any }>}
 */
export function exchange(thread, method, path, { body, headers = {}, take } = {}) {
  return new Promise((resolve, reject) => {
    const url = new URL(`/api${thread.path}${path}`, thread.client.base);
    const request = http.request(url, { method, headers, timeout: 60_000 }, (response) => {
      /** @type {Buffer[]} */
      const chunks = [];
      response.on("data", take ?? ((chunk) => chunks.push(chunk)));
      response.on("error", reject);
      response.on("end", () => {
        const bytes = Buffer.concat(chunks);
        const json = () => JSON.parse(bytes.toString("utf8"));
        resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes, json });
      });
    });
    request.on("timeout", () => request.destroy(new Error(`${method} ${path}: nothing for a minute`)));
    request.on("error", reject);
    if (body === undefined || typeof body === "string" || body instanceof Uint8Array) return void request.end(body);
    (async () => {
      for await (const piece of body) {
        if (!request.write(piece)) await new Promise((drained) => request.once("drain", drained));
      }
      request.end();
    })().catch(reject);
  });
}

/** Returns the resident memory of a server's processes, in bytes. @param {import("./server.mjs").Server} server */
export function resident(server) {
  const pid = server.child?.pid;
  assert.ok(pid !== undefined);
  let bytes = 0;
  for (const process of tree(pid)) {
    try {
      if (!readFileSync(`/proc/${process}/cmdline`, "utf8").includes("workerd")) continue;
      bytes += Number(readFileSync(`/proc/${process}/statm`, "utf8").split(" ")[1]) * 4096;
    } catch {
      // The process has exited.
    }
  }
  return bytes;
}

/**
 * Accepts a body that repeats one piece, and fails at the first different byte.
 *
 * @param {Buffer} piece
 * @returns {{ take: (bytes: Buffer) => void, length: () => number }}   the number of received bytes
 */
export function repeating(piece) {
  let at = 0;
  const take = (/** @type {Buffer} */ bytes) => {
    for (let from = 0; from < bytes.length; ) {
      const start = at % piece.length;
      const length = Math.min(bytes.length - from, piece.length - start);
      assert.ok(bytes.compare(piece, start, start + length, from, from + length) === 0, `bytes from ${at} on are others`);
      from += length;
      at += length;
    }
  };
  return { take, length: () => at };
}

/** One of these rounds must stay below the bound: an allocator may keep pages once, but a leak shows in each round. */
const ROUNDS = 3;

/**
 * Repeats the steps until there is a round in which none of them makes the server grow by `bound` bytes.
 * @param {import("./server.mjs").Server} server @param {Record<string, () => Promise<void>>} steps by name
 * @param {number} bound in bytes
 */
export async function staysFlat(server, steps, bound) {
  const seen = [];
  for (let round = 0; round < ROUNDS; round++) {
    /** @type {Record<string, number>} */
    const growth = {};
    for (const [name, step] of Object.entries(steps)) {
      const before = resident(server);
      await step();
      growth[name] = resident(server) - before;
    }
    const said = Object.entries(growth).map(([name, bytes]) => `${(bytes / 1e6).toFixed(1)} MB ${name}`);
    console.log(`      grew by ${said.join(", ")}`);
    if (Object.values(growth).every((bytes) => bytes < bound)) return;
    seen.push(growth);
  }
  assert.fail(`it grew in every round: ${JSON.stringify(seen)}`);
}
