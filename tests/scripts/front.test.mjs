// The front of a development server alone, before a server of ours that behaves as wrangler's does when it restarts,
// breaks, or answers early.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { http } from "../../package/lib/node-http.mjs";
import { startFront } from "../../package/server/front.mjs";
import { exchange } from "../worker/support/http.mjs";
import { freePort } from "../worker/support/server.mjs";

/**
 * A front, and behind it what the handler says.
 *
 * @param {import("node:http").RequestListener} handler
 * @param {(front: string, server: import("node:http").Server, behind: number) => Promise<void>} act
 * @param {boolean} [listening]
 */
async function fronted(handler, act, listening = true) {
  const [port, behind] = [await freePort(), await freePort()];
  const server = http.createServer(handler);
  if (listening) await once(server.listen(behind, "127.0.0.1"), "listening");
  const front = await startFront(port, behind);
  try {
    await act(`http://127.0.0.1:${port}`, server, behind);
  } finally {
    front.stop();
    server.close();
    server.closeAllConnections();
  }
}

/** @param {import("../worker/support/http.mjs").Answer} answer */
function isOurs(answer) {
  assert.match(answer.headers["content-type"] ?? "", /^application\/json/);
  const { code, message, hint } = answer.json.error;
  for (const text of [code, message, hint]) assert.ok(typeof text === "string" && text.length > 5, answer.text);
}

for (const [what, status, text] of /** @type {const} */ ([
  ["a restart in the middle", 503, "Your worker restarted mid-request. Please try sending the request again."],
  ["a lost connection", 500, "Error: Network connection lost."],
])) {
  test(`${what} is told in the form of every error, with what to do`, () =>
    fronted(
      (request, response) => request.resume().on("end", () => response.writeHead(status, { "content-type": "text/plain" }).end(text)),
      async (front) => {
        const answer = await exchange(front, "POST", "/api/threads", { body: "{}" });
        assert.deepEqual([answer.status, answer.json?.error?.code], [503, "overloaded"]);
        isOurs(answer);
        assert.match(answer.json.error.hint, /Idempotency-Key/);
        assert.equal(answer.headers["retry-after"], "1");
      },
    ));
}

test("a connection that breaks before an answer is told in the form of every error", () =>
  fronted(
    (request) => request.socket.destroy(),
    async (front) => {
      const answer = await exchange(front, "POST", "/api/threads", { body: "{}" });
      assert.equal(answer.status, 503);
      isOurs(answer);
    },
  ));

test("a request that comes while nothing listens behind waits until something does", () =>
  fronted(
    (request, response) => request.pipe(response.writeHead(200, { "x-content-type-options": "nosniff" })),
    async (front, server, behind) => {
      setTimeout(() => server.listen(behind, "127.0.0.1"), 500);
      const [read, sent] = await Promise.all([exchange(front, "GET", "/"), exchange(front, "POST", "/", { body: "whole" })]);
      assert.deepEqual([read.status, sent.status, sent.text], [200, 200, "whole"]);
    },
    false,
  ));

test("what passes is not changed: status, headers that come twice, bodies of any kind", () =>
  fronted(
    async (request, response) => {
      let length = 0;
      for await (const chunk of request) length += chunk.length;
      response.setHeader("x-content-type-options", "nosniff");
      response.setHeader("set-cookie", ["a=1", "b=2"]);
      response.setHeader("x-seen", `${request.method} ${request.url} ${request.headers["x-mine"]} ${request.headers.host}`);
      response.writeHead(418).end(String(length));
    },
    async (front) => {
      const host = new URL(front).host;
      for (const coding of [{}, { "transfer-encoding": "chunked" }]) {
        const headers = { "x-mine": "yes", ...coding };
        const answer = await exchange(front, "DELETE", "/a%20b?c=%2F..", { headers, body: Buffer.alloc(1 << 20) });
        assert.deepEqual([answer.status, answer.text], [418, String(1 << 20)]);
        assert.deepEqual(answer.headers["set-cookie"], ["a=1", "b=2"]);
        assert.equal(answer.headers["x-seen"], `DELETE /a%20b?c=%2F.. yes ${host}`);
      }
    },
  ));
