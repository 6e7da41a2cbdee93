// The front of a development server alone, before a server of ours that behaves as wrangler's does when it restarts,
// breaks, or answers early.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
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

test("a method that the server behind does not know is method_not_allowed, and Allow lists the methods", () =>
  fronted(
    (_, response) => response.writeHead(501, { "content-type": "text/plain" }).end("ERROR: Unrecognized HTTP method."),
    async (front) => {
      const answer = await exchange(front, "LINK", "/api/threads");
      assert.deepEqual([answer.status, answer.json?.error?.code, answer.headers["retry-after"]], [405, "method_not_allowed", undefined]);
      assert.match(answer.headers["allow"] ?? "", /GET, HEAD, POST/);
      isOurs(answer);
    },
  ));

test("response headers of up to 128 KB pass, and larger ones are an error that does not say to send the request again", () =>
  fronted(
    (request, response) => response.writeHead(200, { "x-large": "a".repeat(Number(request.url?.slice(1))) }).end(),
    async (front) => {
      const most = { maxHeaderSize: 256 << 10 };
      const passed = await new Promise((resolve) => http.get(`${front}/100000`, most, (answer) => resolve(answer.resume().headers["x-large"])));
      assert.equal(passed.length, 100_000);
      const refused = await exchange(front, "GET", "/200000");
      assert.deepEqual([refused.status, refused.json?.error?.code, refused.headers["retry-after"]], [500, "internal", undefined]);
      isOurs(refused);
    },
  ));

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

/** What a connection to a front gets for what it sends, to its end. @param {string} front @param {(socket: import("node:net").Socket) => void} send */
async function raw(front, send) {
  const socket = connect(Number(new URL(front).port), "127.0.0.1");
  send(socket);
  let text = "";
  for await (const chunk of socket) text += chunk;
  return text;
}

const UPGRADE = "GET /feed HTTP/1.1\r\nhost: a.test\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: abc\r\n\r\n";

test("a connection that changes its protocol goes both ways, with what was sent at once", () =>
  fronted(
    () => assert.fail("it is no request"),
    async (front, server) => {
      server.on("upgrade", (request, socket, head) => {
        const { host, "sec-websocket-key": key } = request.headers;
        socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Seen: ${request.url} ${host} ${key}\r\n\r\nfirst `);
        socket.write(head);
        socket.on("data", (/** @type {Buffer} */ data) => (String(data).endsWith("end") ? socket.end(data) : socket.write(data)));
      });
      const text = await raw(front, (socket) => {
        socket.write(`${UPGRADE}at once `);
        socket.on("data", (data) => String(data).endsWith("at once ") && socket.write("later, end"));
      });
      assert.match(text, /^HTTP\/1\.1 101 /);
      assert.match(text, /x-seen: \/feed a\.test abc\r\n/i);
      assert.ok(text.endsWith("\r\n\r\nfirst at once later, end"), text);
    },
  ));

test("behind a change of protocol that is refused no other request passes", async () => {
  /** @type {string[]} */
  const seen = [];
  await fronted(
    (request, response) => {
      seen.push(request.url ?? "");
      response.writeHead(426, { "content-type": "application/json" }).end('{"no":1}');
    },
    async (front) => {
      const text = await raw(front, (socket) => socket.write(`${UPGRADE}GET /a/../b HTTP/1.1\r\nhost: a\r\n\r\n`));
      assert.match(text, /^HTTP\/1\.1 426 [^]*connection: close\r\n[^]*\{"no":1\}$/);
      assert.equal(text.split("HTTP/1.1").length, 2, text);
    },
  );
  assert.deepEqual(seen, ["/feed"]);
});
