// Rules for every route of the API: no route accepts unknown fields, and a thread of someone else gets the
// same response, byte for byte, as one that does not exist.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import net from "node:net";
import { exchange } from "./support/http.mjs";
import { say } from "./support/model.mjs";
import { suite } from "./support/suite.mjs";

const ADMIN = "key-of-the-admin";
const ALICE = "key-of-alice";
const BOB = "key-of-bob";

const bobbin = suite({
  key: ADMIN,
  vars: {
    BOBBIN_DEV: "0",
    BOBBIN_API_KEYS: `${ADMIN}=admin,${ALICE}=owner:alice,${BOB}=owner:bob`,
    BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef",
  },
});
const test = bobbin.test.bind(bobbin);
bobbin.agent("plain", () => say("hello"));
bobbin.nativeEndpoint("glance", "summary");
bobbin.nativeEndpoint("glance.put", "summary");

/** @type {{ paths: Record<string, Record<string, unknown>> }} */
const { paths } = JSON.parse(readFileSync(new URL("../../schemas/openapi.json", import.meta.url), "utf8"));
/**
 * Methods and paths, with `:thread` for the thread's id and `:item` for other names.
 *
 * @type {[string, string][]}
 */
const table = Object.entries(paths).flatMap(([path, operations]) => {
  const pattern = path.replace("/threads/{threadId}", "/threads/:thread").replace("{index}", "0").replaceAll(/\{\w+\}/g, ":item");
  return Object.keys(operations).map((method) => /** @type {[string, string]} */ ([method.toUpperCase(), pattern]));
});
assert.ok(table.length >= 100, "the description of the API was read");

/** Returns whether the route's body is a file's content, not JSON. @param {string} method @param {string} path */
const takesBytes = (method, path) => method === "PUT" && /\/(fs|uploads)\//.test(path);
/** @param {string} method */
const hasBody = (method) => !["GET", "HEAD", "DELETE"].includes(method);

const upgrade = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};

/** Returns whether the route is for clients of other systems, which send their own fields. @param {string} pattern */
const isOfOthers = (pattern) => pattern === "/mcp" || pattern.startsWith("/v1/") || pattern.startsWith("/api/chat") || /agents\/:item\/(chat|ag-ui)/.test(pattern);

test("no route takes a parameter or a field that it does not know", async () => {
  const { id } = await bobbin.client.thread("plain");
  for (const [method, pattern] of table) {
    // An authorization server may send further parameters.
    if (pattern === "/healthz" || pattern === "/api/oauth/callback") continue;
    const path = pattern.replace(":thread", id).replace("agents/:item", "agents/plain").replace(":item", "x");
    const headers = {
      authorization: `Bearer ${ADMIN}`,
      "content-type": "application/json",
      ...(pattern.endsWith("/stream") ? upgrade : {}),
    };
    const body = hasBody(method) ? { body: "{}" } : {};
    const asked = await exchange(bobbin.server.base, method, `${path}?nonsense=1`, { headers, ...body });
    assert.equal(asked.status, 400, `${method} ${pattern}?nonsense=1: ${asked.text}`);
    if (method !== "HEAD") {
      const { code, field, param, data } = asked.json.error;
      assert.deepEqual([data?.code ?? code, field ?? param ?? data?.field], ["invalid_field", "nonsense"], `${method} ${pattern}`);
    }
    if (!hasBody(method) || takesBytes(method, pattern) || pattern.endsWith("/complete") || isOfOthers(pattern)) continue;
    const query = pattern.endsWith("envs/account") ? "?user_id=u" : "";
    const said = await exchange(bobbin.server.base, method, `${path}${query}`, { headers, body: '{"nonsense":true}' });
    assert.deepEqual(
      [said.status, said.json?.error?.code, said.json?.error?.field],
      [400, "invalid_field", "nonsense"],
      `${method} ${pattern} {"nonsense"}: ${said.text}`,
    );
  }
  const twice = await bobbin.client.send("GET", `/threads/${id}/messages?limit=1&limit=2`);
  assert.deepEqual([twice.status, twice.json.error.field], [400, "limit"], twice.text);
  const near = await bobbin.client.send("POST", "/threads", { agent_id: "plain", tgas: ["a"] });
  assert.match(near.json.error.hint, /Did you mean `tags`\?/);
});

/**
 * Returns what a client sees of a response, without the thread's id.
 * @param {import("./support/http.mjs").Answer} answer @param {string} id
 */
function seen(answer, id) {
  // Keep-alive headers depend on the connection, not on the thread.
  const { date: _, connection: __, "keep-alive": ___, ...headers } = answer.headers;
  return { status: answer.status, headers, body: answer.text.replaceAll(id, ":thread") };
}

test("a thread of somebody else is answered as one that does not exist, whatever is asked", async () => {
  const thread = await bobbin.as(ALICE).thread("plain");
  const own = await bobbin.as(BOB).thread("plain");
  await thread.ask("hello");
  const minted = await bobbin.as(BOB).send("POST", "/tokens", { scope: `thread:${own.id}` });
  const unknown = randomUUID();
  /** @type {[string, string][]} */
  const more = ["GET", "PUT", "POST", "OPTIONS", "TRACE"].flatMap((method) =>
    ["", "/", "/glance", "/nowhere", "/messages", "/kv"].map((below) => /** @type {[string, string]} */ ([method, `/api/threads/:thread${below}`])),
  );
  let compared = 0;
  for (const key of [BOB, minted.json.token]) {
    for (const [method, pattern] of [...table.filter(([, path]) => path.includes(":thread")), ...more]) {
      const tries = [
        { query: "", headers: { "content-type": "application/json" }, body: "{}" },
        { query: "?nonsense=1", headers: { "content-type": "text/plain" }, body: "no json" },
        { query: "?limit=x&depth=x", headers: { "content-type": "application/json", "idempotency-key": "" }, body: "[" },
        { query: "", headers: { ...upgrade }, body: undefined },
      ];
      for (const { query, headers, body } of tries) {
        const ask = (/** @type {string} */ id) =>
          exchange(bobbin.server.base, method, `${pattern.replace(":thread", id).replace(":item", "x")}${query}`, {
            headers: { authorization: `Bearer ${key}`, .../** @type {Record<string, string>} */ (headers) },
            ...(hasBody(method) && body !== undefined ? { body } : {}),
          });
        const [foreign, nobodys] = [await ask(thread.id), await ask(unknown)];
        assert.deepEqual(seen(foreign, thread.id), seen(nobodys, unknown), `${method} ${pattern}${query}`);
        assert.ok(foreign.status >= 400 && foreign.status !== 403, `${method} ${pattern}: ${foreign.status}`);
        compared += 1;
      }
    }
    // Only a caller with permission for the thread gets a token. Without such a thread nobody does.
    const mint = (/** @type {string} */ id) => bobbin.as(key).send("POST", "/tokens", { scope: `thread:${id}` });
    const [foreign, nobodys] = [await mint(thread.id), await mint(unknown)];
    assert.deepEqual(seen(foreign, thread.id), seen(nobodys, unknown));
  }
  assert.ok(compared > 400, `${compared} pairs`);
});

/** Sends a request unchanged, because clients resolve `..` before they send. @param {string} text @returns {Promise<string>} */
function raw(text) {
  const { hostname, port } = new URL(bobbin.server.base);
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(port), hostname, () => socket.end(text));
    let answer = "";
    socket.on("data", (data) => (answer += data));
    socket.on("end", () => resolve(answer));
    socket.on("error", reject);
  });
}

test("a deployment has no inspector unless it is named", async () => {
  for (const path of ["/inspector", "/"]) {
    const answer = await exchange(bobbin.server.base, "GET", path, { headers: { accept: "text/html" } });
    assert.deepEqual([answer.status, answer.json.error.code], [404, "not_found"], path);
  }
});

test("a message whose id is `..` is not the thread", async () => {
  const { id, client } = await bobbin.client.thread("plain");
  for (const last of ["..", "%2e%2e", "%2E.", "%2e%2e/"]) {
    const answer = await raw(
      `DELETE /api/threads/${id}/messages/${last} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${ADMIN}\r\nConnection: close\r\n\r\n`,
    );
    assert.match(answer, /^HTTP\/1\.1 400 /, last);
    assert.match(answer, /"field":"path"/, last);
  }
  assert.equal((await client.send("GET", `/threads/${id}`)).status, 200);
});

test("a body that is no UTF-8 is refused, not stored as something else", async () => {
  const thread = await bobbin.client.thread("plain");
  const body = Buffer.concat([Buffer.from('{"key":"k","value":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]);
  for (const chunked of [false, true]) {
    const headers = { "content-type": "application/json", ...(chunked ? { "transfer-encoding": "chunked" } : {}) };
    const answer = await thread.send("POST", "/kv", undefined, { body, headers });
    assert.deepEqual([answer.status, answer.json?.error?.code], [400, "bad_json"], answer.text);
  }
  assert.equal((await thread.send("GET", "/kv")).json.total, 0);
});

test("a thread whose messages have 36 MB is listed and streamed", async () => {
  const thread = await bobbin.client.thread("plain");
  for (let n = 0; n < 36; n++) {
    const answer = await thread.send("POST", "/messages", { role: "system", content: `${n} ${"x".repeat(1_000_000)}` });
    assert.equal(answer.status, 202);
  }
  const first = await thread.page();
  assert.deepEqual([first.messages.length, first.total, first.hasMore], [1, 36, true]);
  assert.equal((await thread.messages()).length, 36);
  for (const lastEventId of [undefined, "0.1"]) {
    const events = await thread.events({ lastEventId });
    const { data } = await events.next("a snapshot", ({ event }) => event === "snapshot");
    assert.deepEqual([data.messages.length, data.hasMore], [1, true]);
    events.close();
  }
});
