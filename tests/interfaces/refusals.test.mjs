// Rejections before the body was read: the client receives the rejection in the usual error format, however much it was
// sending. Malformed HTTP is rejected in the same format.

import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { exchange } from "../worker/support/http.mjs";
import { say } from "../worker/support/model.mjs";
import { until } from "../worker/support/poll.mjs";
import { suite } from "../worker/support/suite.mjs";

const KEY = "key-of-the-admin";
/** The development server of a front end. */
const PAGE = "https://app.example";
const bobbin = suite({ key: KEY, vars: { BOBBIN_API_KEYS: `${KEY}=admin`, BOBBIN_ALLOWED_ORIGINS: PAGE } });
const test = bobbin.test.bind(bobbin);
bobbin.agent("plain", () => say("hello"));

const JSON_TYPE = { "content-type": "application/json" };
const authorized = { authorization: `Bearer ${KEY}`, ...JSON_TYPE };
const MEGABYTE = 1 << 20;

/** @param {import("../worker/support/http.mjs").Answer} answer @param {number} status @param {string} code */
function refused(answer, status, code) {
  assert.deepEqual([answer.status, answer.json?.error?.code], [status, code], answer.text);
  assert.match(answer.headers["content-type"] ?? "", /^application\/json/);
}

/** A connection that sends exactly the given bytes. */
async function raw() {
  const socket = net.connect(bobbin.server.port, "127.0.0.1");
  const said = { text: "", closed: false };
  socket.setEncoding("utf8").on("data", (text) => (said.text += text));
  socket.on("close", () => (said.closed = true)).on("error", () => {});
  await once(socket, "connect");
  return { socket, said };
}

test("a wrong key is 401 a hundred times, with three megabytes on their way each time", async () => {
  const body = Buffer.alloc(3 * MEGABYTE, 97);
  for (let count = 0; count < 100; count++) {
    const headers = { authorization: "Bearer wrong", ...JSON_TYPE };
    refused(await exchange(bobbin.server.base, "POST", "/api/threads", { headers, body }), 401, "unauthenticated");
  }
});

test("every refusal of a large body is read, with its length declared and without", async () => {
  const thread = await bobbin.client.thread("plain");
  const { id } = thread;
  const text = { ...authorized, "content-type": "text/plain" };
  /** @type {[string, string, Record<string, string>, number, string][]} */
  const cases = [
    ["POST", "/api/nothing/at/all", authorized, 404, "not_found"],
    ["PUT", "/api/threads", authorized, 405, "method_not_allowed"],
    ["POST", `/api/threads/${id}/stop`, text, 415, "unsupported_media_type"],
    ["POST", `/api/threads/${id}/stop`, authorized, 413, "too_large"],
    ["PUT", `/api/threads/${id}/fs/a`, { ...authorized, "if-match": '"other"' }, 412, "precondition_failed"],
  ];
  for (const megabytes of [1, 5, 20]) {
    const body = Buffer.alloc(megabytes * MEGABYTE, 32);
    for (const [method, path, headers, status, code] of cases) {
      if (code === "too_large" && megabytes < 5) continue;
      for (const coding of [{}, { "transfer-encoding": "chunked" }]) {
        if (megabytes > 16 && "transfer-encoding" in coding) continue;
        refused(await exchange(bobbin.server.base, method, path, { headers: { ...headers, ...coding }, body }), status, code);
      }
    }
  }
});

test("a body that is announced and far too large is refused before any of it is sent", async () => {
  for (const expect of ["", "expect: 100-continue\r\n"]) {
    const { socket, said } = await raw();
    const length = 6 * 1024 * MEGABYTE;
    socket.write(
      `POST /api/threads HTTP/1.1\r\nhost: 127.0.0.1:${bobbin.server.port}\r\nauthorization: Bearer ${KEY}\r\n` +
        `content-type: application/json\r\ncontent-length: ${length}\r\n${expect}\r\n`,
    );
    await until("the refusal comes", () => said.text.includes('"too_large"'), { describe: () => said });
    assert.match(said.text, /^HTTP\/1\.1 413 /);
    socket.destroy();
  }
});

test("a body that waits to be asked for is asked for, and taken", async () => {
  const { socket, said } = await raw();
  const body = JSON.stringify({ agent_id: "plain" });
  socket.write(
    `POST /api/threads HTTP/1.1\r\nhost: 127.0.0.1:${bobbin.server.port}\r\nauthorization: Bearer ${KEY}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\nexpect: 100-continue\r\n\r\n`,
  );
  await until("leave is given", () => said.text.includes("100 Continue"), { describe: () => said });
  socket.write(body);
  await until("the thread is made", () => said.text.includes("threadId"), { describe: () => said });
  socket.destroy();
});

for (const [what, text] of [
  ["a chunk without a length", "5\r\n{\"a\":\r\nzz\r\nabc"],
  ["a first chunk without a length", "hello"],
]) {
  test(`${what} is a 400 in the form of every error`, async () => {
    const { socket, said } = await raw();
    socket.write(
      `POST /api/threads HTTP/1.1\r\nhost: 127.0.0.1:${bobbin.server.port}\r\nauthorization: Bearer ${KEY}\r\n` +
        `content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${text}`,
    );
    await until("the refusal comes", () => said.closed, { describe: () => said });
    assert.match(said.text, /^HTTP\/1\.1 400 /);
    assert.match(said.text, /content-type: application\/json/);
    assert.equal(JSON.parse(said.text.split("\r\n\r\n")[1] ?? "").error.code, "bad_json");
  });
}

test("what is no request is a 400 in the form of every error", async () => {
  const { socket, said } = await raw();
  socket.write("hello there\r\n\r\n");
  await until("the refusal comes", () => said.closed, { describe: () => said });
  assert.match(said.text, /^HTTP\/1\.1 400 [^]*"code":"bad_json"/);
});

test("dots in an address reach nothing else", async () => {
  const thread = await bobbin.client.thread("plain");
  for (const rest of ["messages/%2e%2e", "messages/..", "fs/../../x", "messages/%2E%2e/", "./", "a\\..\\.."]) {
    const { socket, said } = await raw();
    socket.write(
      `DELETE /api/threads/${thread.id}/${rest} HTTP/1.1\r\nhost: 127.0.0.1:${bobbin.server.port}\r\nauthorization: Bearer ${KEY}\r\n\r\n`,
    );
    await until("the refusal comes", () => said.text.includes("\r\n\r\n{"), { describe: () => said });
    assert.match(said.text, /^HTTP\/1\.1 40\d /, rest);
    socket.destroy();
  }
  assert.equal((await bobbin.client.send("GET", thread.path)).status, 200, "it is still there");
});

test("a page of an origin that is named gets through to a development server, with any header that it asks for", async () => {
  const asked = "authorization,content-type,x-stainless-lang,mcp-protocol-version";
  const preflight = (/** @type {string} */ origin) =>
    exchange(bobbin.server.base, "OPTIONS", "/api/threads", {
      headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": asked },
    });
  const { headers } = await preflight(PAGE);
  assert.equal(headers["access-control-allow-origin"], PAGE);
  assert.equal(headers["access-control-allow-headers"], asked);
  // Pages of this machine are allowed by default. Others must be listed.
  assert.equal((await preflight("http://localhost:3001")).headers["access-control-allow-origin"], "http://localhost:3001");
  assert.equal((await preflight("https://other.example")).headers["access-control-allow-origin"], undefined);
  const body = JSON.stringify({ agent_id: "plain" });
  const made = await exchange(bobbin.server.base, "POST", "/api/threads", { headers: { ...authorized, origin: PAGE }, body });
  assert.equal(made.status, 200, made.text);
  assert.equal(made.headers["access-control-allow-origin"], PAGE);
  assert.match(String(made.headers["access-control-expose-headers"]), /x-bobbin-run/);
});
