// What sends requests of code under development: no name leads to a private address, and whatever is sent and answered
// comes as it was.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createTcp } from "node:net";
import { test } from "node:test";
import { http } from "../../package/lib/node-http.mjs";
import { isPrivate, startOutbound } from "../../package/server/outbound.mjs";
import { exchange } from "../worker/support/http.mjs";

test("private addresses are told from public ones", () => {
  for (const address of [
    ...["0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.9.9.9", "169.254.169.254", "172.20.0.1", "192.0.0.170", "192.168.1.1", "198.18.0.1", "224.0.0.1", "255.255.255.255"],
    ...["::", "::1", "::ffff:10.0.0.1", "::7f00:1", "fc00::1", "fd12::1", "fe80::1", "fec0::1", "ff02::1", "64:ff9b::7f00:1", "64:ff9b::a01:203", "2002:a00:1::1", "2002:c0a8:101::"],
  ]) {
    assert.ok(isPrivate(address), address);
  }
  for (const address of ["8.8.8.8", "100.128.0.1", "172.32.0.1", "192.0.2.1", "::ffff:8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::1"]) {
    assert.ok(!isPrivate(address), address);
  }
});

/** @typedef {import("node:http").RequestListener} Handler */

/**
 * What answers a request for a name that leads to these addresses.
 *
 * @param {string[][]} addresses   one list for each time that it is asked for
 * @param {Handler} handler        of the server at 127.0.0.1
 * @param {(outbound: string, port: number) => Promise<void>} act
 */
async function reached(addresses, handler, act) {
  const server = http.createServer(handler);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const outbound = await startOutbound({
    lookup: (_, __, done) => done(null, (addresses.length > 1 ? addresses.shift() : addresses[0] ?? [])?.map((address) => ({ address, family: 4 })) ?? []),
    // Here this machine stands for the public network.
    refuses: (address) => address !== "127.0.0.1",
  });
  try {
    await act(outbound.url, port);
  } finally {
    outbound.stop();
    server.close();
    server.closeAllConnections();
  }
}

/** @param {string} outbound @param {string} target @param {{ method?: string, headers?: Record<string, string>, body?: string }} [init] */
function sent(outbound, target, { method = "GET", headers = {}, body } = {}) {
  const url = new URL(outbound);
  return exchange(url.origin, method, url.pathname, { headers: { ...headers, "x-bobbin-target": target }, ...(body !== undefined && { body }) });
}

test("a request and its answer come as they were sent", () =>
  reached(
    [["127.0.0.1"]],
    async (request, response) => {
      const body = Buffer.concat(await request.toArray()).toString();
      response.writeHead(418, { "x-own": "a", "set-cookie": ["a=1", "b=2"], "x-bobbin-unsent": "not so" });
      response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }));
    },
    async (outbound, port) => {
      const answer = await sent(outbound, `http://name.test:${port}/a%2Fb?c=%20`, { method: "PATCH", headers: { "x-own": "b", host: "elsewhere" }, body: "héllo" });
      assert.equal(answer.status, 418);
      assert.deepEqual([answer.headers["x-own"], answer.headers["set-cookie"], answer.headers["x-bobbin-unsent"]], ["a", ["a=1", "b=2"], undefined]);
      const { method, url, headers, body } = JSON.parse(answer.text);
      assert.deepEqual([method, url, headers.host, headers["x-own"], headers["x-bobbin-target"], body], ["PATCH", "/a%2Fb?c=%20", `name.test:${port}`, "b", undefined, "héllo"]);
    },
  ));

test("a name that leads to a private address is refused, also when it leads there only among others, or the second time", async () => {
  let asked = 0;
  const refusals = [
    [["10.0.0.1"]],
    [["127.0.0.1", "10.0.0.1"]],
    [["127.0.0.1"], ["10.0.0.1"]],
  ];
  for (const [at, addresses] of refusals.entries()) {
    await reached(addresses, (_, response) => response.end(String(++asked)), async (outbound, port) => {
      if (at === 2) assert.equal((await sent(outbound, `http://name.test:${port}/`)).status, 200);
      const answer = await sent(outbound, `http://name.test:${port}/`);
      assert.equal(answer.status, 502);
      assert.equal(answer.headers["x-bobbin-unsent"], "fetch: the private address 10.0.0.1 is not allowed here: name.test leads to it.");
    });
  }
  assert.equal(asked, 1);
});

/** @param {Parameters<typeof sent>} given */
const unsent = async (...given) => String((await sent(...given)).headers["x-bobbin-unsent"]);

test("whatever a server answers, a failure is one of that request", async () => {
  const wild = [
    "HTTP/1.1 200 O\x01K\r\nx-odd: \x80\xff\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
    "HTTP/1.1 999 ?\r\ncontent-length: 0\r\n\r\n",
    "nothing of the kind\r\n\r\n",
    "",
  ];
  const server = createTcp((socket) => void socket.on("error", () => {}).once("data", () => socket.end(wild[0] ?? "", "latin1")));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  await reached([["127.0.0.1"]], () => {}, async (outbound) => {
    for (; wild.length > 0; wild.shift()) {
      const answer = await sent(outbound, `http://name.test:${port}/`).catch((error) => error);
      assert.ok(answer instanceof Error || [200, 502, 999].includes(answer.status), wild[0]);
    }
    assert.match(await unsent(outbound, "http://10.0.0.1/"), /private/);
  });
  server.close();
});

test("what cannot be reached is said, and nobody sends by it who was not told its address", () =>
  reached([["127.0.0.1"]], (_, response) => response.end("never"), async (outbound, port) => {
    assert.match(await unsent(outbound, "http://name.test:1/"), /^fetch failed: name\.test:1: /);
    assert.match(await unsent(outbound, "http://10.0.0.1/"), /private address 10\.0\.0\.1/);
    assert.match(await unsent(outbound, "ftp://name.test/"), /ftp: is not supported/);
    assert.match(await unsent(outbound, "no url"), /URL/);
    const stranger = await sent(new URL(outbound).origin, `http://name.test:${port}/`);
    assert.deepEqual([stranger.status, stranger.text], [404, ""]);
  }));

test("an address is the same however it is spelled", async () => {
  const connected = createTcp(() => assert.fail("it was reached"));
  await once(connected.listen(0, "127.0.0.1"), "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (connected.address());
  const outbound = await startOutbound({ lookup: (_, __, done) => done(null, [{ address: "127.0.0.1", family: 4 }]) });
  try {
    for (const host of ["127.0.0.1", "127.0.0.%31", "\uff1127.0.0.1", "127\u30020\u30020\u30021", "127\uff610.0.1", "127.0.0.\t1", "localhos%74", "local\u00adhost", "localho\u017ft", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "127.0.0.1.", "[::ffff:127.0.0.1]", "[::1]", "0.0.0.0", "public.test"]) {
      // A header has bytes: those of the text in UTF-8.
      const target = Buffer.from(`http://${host}:${port}/`).toString("latin1");
      assert.match(await unsent(outbound.url, target), /^(fetch: the private address [0-9a-f.:]+ is not allowed here|Invalid URL)/, host);
    }
  } finally {
    outbound.stop();
    connected.close();
  }
});
