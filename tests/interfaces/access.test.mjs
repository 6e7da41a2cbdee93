// Access: keys and their scopes, tokens for browsers, and the guard of a development server.

import assert from "node:assert/strict";
import { test as plainTest } from "node:test";
import { AgentsFolder } from "../worker/support/agents.mjs";
import { Client, Thread } from "../worker/support/client.mjs";
import { exchange } from "../worker/support/http.mjs";
import { hang, say } from "../worker/support/model.mjs";
import { sleep, until } from "../worker/support/poll.mjs";
import { Server } from "../worker/support/server.mjs";
import { suite } from "../worker/support/suite.mjs";

const ALICE = "key-of-alice";
const BOB = "key-of-bob";
const ADMIN = "key-of-the-admin";

const bobbin = suite({
  key: ADMIN,
  vars: {
    // As in a deployment: keys and allowed origins decide, not the guard of a development server.
    BOBBIN_DEV: "0",
    BOBBIN_API_KEYS: `${ADMIN}=admin,${ALICE}=owner:alice,${BOB}=owner:bob`,
    BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef",
    BOBBIN_ALLOWED_ORIGINS: "https://app.example",
  },
});
const test = bobbin.test.bind(bobbin);
bobbin.agent("plain", () => say("hello"));
bobbin.agent("silent", hang);
bobbin.nativeEndpoint("glance", "summary");
bobbin.nativeEndpoint("glance.put", "summary");

/** @param {import("../worker/support/http.mjs").Answer} answer @param {number} status @param {string} code */
function refused(answer, status, code) {
  assert.deepEqual([answer.status, answer.json?.error?.code], [status, code], answer.text);
}

/** Creates a token of that scope. @param {string} key @param {object} body */
async function token(key, body) {
  const answer = await bobbin.as(key).send("POST", "/tokens", body);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(typeof answer.json.token, "string");
  return answer.json.token;
}

/** All requests on a thread, and the scope that each needs. @type {[string, string, unknown, "thread" | "owner"][]} */
const actions = [
  ["GET", "", undefined, "thread"],
  ["GET", "/messages", undefined, "thread"],
  ["GET", "/messages/:message", undefined, "thread"],
  ["GET", "/logs", undefined, "thread"],
  ["GET", "/diagnostics", undefined, "thread"],
  ["GET", "/kv", undefined, "thread"],
  ["POST", "/kv", { key: "k", value: 1 }, "owner"],
  ["DELETE", "/kv?key=k", undefined, "owner"],
  ["GET", "/glance", undefined, "thread"],
  ["PUT", "/glance", { any: "body" }, "owner"],
  ["POST", "/messages", { role: "user", content: "hi" }, "thread"],
  ["POST", "/stop", undefined, "thread"],
  ["POST", "/continue", {}, "thread"],
  ["PATCH", "/messages/:message", { content: "edited" }, "owner"],
  ["DELETE", "/messages/:message", undefined, "owner"],
  ["PATCH", "", { tags: ["mine"] }, "owner"],
  ["POST", "/terminate", undefined, "owner"],
  ["DELETE", "", undefined, "owner"],
];

/** Creates a thread of Alice with one turn. @returns {Promise<{ thread: Thread, message: string }>} */
async function alices() {
  const thread = await bobbin.as(ALICE).thread("plain", { user_id: "alice" });
  const { message } = await thread.ask("hello");
  return { thread, message: message.id };
}

test("without a known key nothing is served but /healthz", async () => {
  const { thread } = await alices();
  for (const key of [undefined, "", "wrong", `${ALICE}x`, ALICE.slice(0, -1), ALICE.toUpperCase()]) {
    for (const [method, path, body] of actions) {
      refused(await bobbin.as(key).send(method, `${thread.path}${path}`, body), 401, "unauthenticated");
    }
    refused(await bobbin.as(key).send("GET", "/threads"), 401, "unauthenticated");
    refused(await bobbin.as(key).send("POST", "/threads", { agent_id: "plain" }), 401, "unauthenticated");
    refused(await bobbin.as(key).send("GET", "/agents"), 401, "unauthenticated");
  }
  await assert.rejects(bobbin.as(undefined).threads(), /401/);
  assert.equal((await exchange(bobbin.server.base, "GET", "/healthz")).status, 200);
  const queried = await exchange(bobbin.server.base, "GET", `/api/threads?token=${ALICE}`);
  refused(queried, 401, "unauthenticated");
});

test("an owner sees and touches only their own threads", async () => {
  const { thread, message } = await alices();
  for (const [method, path, body] of actions) {
    const where = `${thread.path}${path.replace(":message", message)}`;
    refused(await bobbin.as(BOB).send(method, where, body), 404, "thread_not_found");
  }
  const bobs = new Thread(bobbin.as(BOB), thread.id);
  refused(await bobs.send("GET", "/events"), 404, "thread_not_found");
  await assert.rejects(bobs.stream(), /404/);
  assert.deepEqual(await thread.lines(), [
    ["user", "hello"],
    ["assistant", "hello"],
  ]);
});

test("an owner may do everything with their own thread", async () => {
  for (const [method, path, body] of actions) {
    const { thread, message } = await alices();
    const answer = await thread.send(method, path.replace(":message", message), body);
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`);
  }
});

test("an owner creates threads only as themselves, and lists only their own", async () => {
  const { thread } = await alices();
  refused(await bobbin.as(BOB).send("POST", "/threads", { agent_id: "plain", user_id: "alice" }), 403, "forbidden");
  refused(await bobbin.as(BOB).send("GET", "/threads?user_id=alice"), 403, "forbidden");
  const bobs = await bobbin.as(BOB).thread("plain");
  const info = (await bobs.send("GET")).json.thread;
  assert.equal(info.user_id, "bob", "the owner is the caller");
  await until("Alice's list has her thread", async () =>
    (await bobbin.as(ALICE).threads()).threads.some(({ id }) => id === thread.id),
  );
  await until("Bob's list has his", async () => (await bobbin.as(BOB).threads()).total === 1);
  assert.ok(!(await bobbin.as(BOB).threads()).threads.some(({ id }) => id === thread.id));
  refused(await bobbin.as(BOB).send("GET", "/threads/owners"), 403, "forbidden");
  refused(await bobbin.as(BOB).send("GET", "/mcp"), 403, "forbidden");
});

test("an admin may read every thread; the list without user_id has those without owner", async () => {
  const { thread } = await alices();
  assert.equal((await bobbin.client.send("GET", thread.path)).status, 200);
  const ownerless = await bobbin.client.thread("plain");
  await until("the list has it", async () =>
    (await bobbin.client.threads()).threads.some(({ id }) => id === ownerless.id),
  );
  assert.ok(!(await bobbin.client.threads({ limit: 100 })).threads.some(({ id }) => id === thread.id));
  await until("the list of alice has hers", async () =>
    (await bobbin.client.threads({ user_id: "alice", limit: 100 })).threads.some(({ id }) => id === thread.id),
  );
  // The directory of owners is updated after Alice's own and may be behind it.
  await until("the owners have alice", async () => {
    const owners = await bobbin.client.send("GET", "/threads/owners");
    assert.equal(owners.status, 200);
    return owners.json.owners.some((/** @type {{user_id: string}} */ { user_id }) => user_id === "alice");
  });
  refused(await bobbin.as(ALICE).send("GET", `/threads/${ownerless.id}`), 404, "thread_not_found");
});

test("an admin lists the threads of all owners at once, and what they ask", async () => {
  const { thread } = await alices();
  const made = [thread, await bobbin.as(BOB).thread("plain"), await bobbin.client.thread("plain")];
  const everywhere = (/** @type {string} */ query) => bobbin.client.send("GET", `/threads?user_id=*&limit=200${query}`);
  await until("all are listed", async () => {
    const listed = (await everywhere("&sort=created")).json;
    const ids = listed.threads.map((/** @type {{ id: string }} */ { id }) => id);
    return made.every(({ id }) => ids.includes(id)) && listed.total >= ids.length && listed.ownersLeftOut === 0 && listed;
  });
  const { threads } = (await everywhere("&sort=oldest")).json;
  const times = threads.map((/** @type {any} */ { created_at }) => created_at);
  assert.deepEqual(times, times.toSorted((/** @type {number} */ a, /** @type {number} */ b) => a - b));
  const owners = new Set(threads.map((/** @type {any} */ { user_id }) => user_id));
  for (const owner of ["alice", "bob", null]) assert.ok(owners.has(owner), `${owner}`);
  const [second] = (await everywhere("&sort=oldest&offset=1")).json.threads;
  assert.equal(second.id, threads[1].id);
  assert.equal((await everywhere("&offset=400")).status, 400);
  assert.equal((await everywhere("&sort=sideways")).status, 400);
  assert.deepEqual((await bobbin.client.send("GET", "/waits?user_id=*")).json, { waits: [], cursor: null, ownersLeftOut: 0 });
  for (const path of ["/threads?user_id=*", "/waits?user_id=*"]) refused(await bobbin.as(BOB).send("GET", path), 403, "forbidden");
});

test("a thread's token reads, streams, sends, stops and continues that thread, nothing else", async () => {
  const { thread, message } = await alices();
  const other = await alices();
  const own = bobbin.as(await token(ALICE, { scope: `thread:${thread.id}`, ttl: 60 }));
  for (const [method, path, body, who] of actions) {
    const where = path.replace(":message", message);
    const answer = await own.send(method, `${thread.path}${where}`, body);
    if (who === "thread") assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`);
    else refused(answer, 403, "forbidden");
    refused(await own.send(method, `${other.thread.path}${where}`, body), 404, "thread_not_found");
  }
  refused(await own.send("POST", "/threads", { agent_id: "plain" }), 403, "forbidden");
  refused(await own.send("GET", "/threads"), 403, "forbidden");
  refused(await own.send("GET", "/threads/owners"), 403, "forbidden");
});

test("a token mints no token, and no scope leaves its minter's", async () => {
  const { thread } = await alices();
  const own = await token(ALICE, { scope: `thread:${thread.id}`, ttl: 60 });
  refused(await bobbin.as(own).send("POST", "/tokens", { scope: `thread:${thread.id}`, ttl: 60 }), 403, "forbidden");
  const minting = (/** @type {string} */ scope) => bobbin.as(BOB).send("POST", "/tokens", { scope, ttl: 60 });
  refused(await minting("admin"), 403, "forbidden");
  refused(await minting("owner:alice"), 403, "forbidden");
  const foreign = await minting(`thread:${thread.id}`);
  assert.ok([403, 404].includes(foreign.status), foreign.text);
  const bobs = await token(BOB, { scope: "owner:bob", ttl: 60 });
  assert.equal((await bobbin.as(bobs).send("GET", "/threads")).status, 200);
  for (const body of [{ scope: "owner:bob", ttl: 3601 }, { scope: "owner:bob", ttl: 0 }, { scope: "owner:bob", ttl: "long" }, { scope: "king", ttl: 60 }]) {
    refused(await bobbin.as(BOB).send("POST", "/tokens", body), 400, "invalid_field");
  }
});

test("a changed or expired token is refused", async () => {
  const { thread } = await alices();
  const own = await token(ALICE, { scope: `thread:${thread.id}`, ttl: 2 });
  assert.equal((await bobbin.as(own).send("GET", thread.path)).status, 200);
  for (let at = 0; at < own.length; at += 7) {
    const changed = `${own.slice(0, at)}${own[at] === "A" ? "B" : "A"}${own.slice(at + 1)}`;
    refused(await bobbin.as(changed).send("GET", thread.path), 401, "unauthenticated");
  }
  await until("it has expired", async () => (await bobbin.as(own).send("GET", thread.path)).status === 401);
});

test("?token= opens streams and nothing else; a stream ends with its token", async () => {
  const { thread } = await alices();
  const own = await token(ALICE, { scope: `thread:${thread.id}`, ttl: 3 });
  const nobody = bobbin.as(undefined);
  const bare = new Thread(nobody, thread.id);
  const reader = await bare.events({ query: `?token=${own}` });
  await reader.next("a snapshot", ({ event }) => event === "snapshot");
  const socket = await bare.stream(`?token=${own}`);
  socket.send("ping");
  await until("pong", () => socket.texts.includes("pong"));
  refused(await nobody.send("GET", `${thread.path}/messages?token=${own}`), 401, "unauthenticated");
  refused(await nobody.send("GET", `${thread.path}/events?token=wrong`), 401, "unauthenticated");
  const start = Date.now();
  await until("the stream ends with its token", () => reader.ended, { withinMs: 15_000 });
  assert.ok(Date.now() - start < 15_000);
  socket.close();
});

test("keys are in no answer", async () => {
  const { thread } = await alices();
  const answers = await Promise.all([
    bobbin.client.send("GET", "/agents"),
    bobbin.client.send("GET", "/agents/plain"),
    thread.send("GET", "/diagnostics"),
    thread.send("GET", "/logs"),
    bobbin.as("wrong-key-1234").send("GET", "/threads"),
  ]);
  for (const { text } of answers) assert.ok(!/key-of-|model-key|secret-of|wrong-key-1234/.test(text), text);
});

test("CORS: the allowed origins, no other", async () => {
  const preflight = (/** @type {string} */ origin) =>
    exchange(bobbin.server.base, "OPTIONS", "/api/threads", {
      headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": "authorization, content-type" },
    });
  const allowed = await preflight("https://app.example");
  assert.ok(allowed.status < 300, allowed.text);
  assert.equal(allowed.headers["access-control-allow-origin"], "https://app.example");
  assert.match(String(allowed.headers["access-control-allow-methods"]), /POST/);
  assert.match(String(allowed.headers["access-control-allow-headers"]).toLowerCase(), /authorization/);
  assert.equal((await preflight("https://evil.example")).headers["access-control-allow-origin"], undefined);
  const answer = await exchange(bobbin.server.base, "GET", "/api/agents", {
    headers: { origin: "https://app.example", authorization: `Bearer ${ADMIN}` },
  });
  assert.equal(answer.headers["access-control-allow-origin"], "https://app.example");
  assert.match(String(answer.headers.vary), /origin/i);
  const thread = await bobbin.client.thread("plain");
  const glance = async (/** @type {string} */ origin) => (await thread.send("GET", "/glance", undefined, { headers: { origin } })).headers;
  assert.equal((await glance("https://app.example"))["access-control-allow-origin"], "https://app.example");
  assert.equal((await glance("https://evil.example"))["access-control-allow-origin"], undefined);
  const failing = await exchange(bobbin.server.base, "GET", "/api/agents", { headers: { origin: "https://app.example" } });
  assert.equal(failing.status, 401);
  assert.equal(failing.headers["access-control-allow-origin"], "https://app.example", "errors can be read too");
});

test("rejected requests leave nothing behind", async () => {
  const before = (await bobbin.client.threads({ user_id: "alice" })).total;
  await bobbin.as(BOB).send("POST", "/threads", { agent_id: "plain", user_id: "alice" });
  await bobbin.as(undefined).send("POST", "/threads", { agent_id: "plain", user_id: "alice" });
  await sleep(300);
  assert.equal((await bobbin.client.threads({ user_id: "alice" })).total, before);
});

plainTest("a deployment without keys serves nothing but /healthz", { timeout: 120_000 }, async () => {
  const folder = new AgentsFolder({
    models: { demo: { provider: "demo", model: "demo" } },
    prompts: { plain: { prompt: "Hello.", toolDescription: "x", model: "demo", includeChat: true } },
    agents: { plain: { type: "ai_human", sideA: { prompt: "plain" } } },
  });
  const server = await Server.start({ agents: folder.path, vars: { BOBBIN_DEV: "0" } });
  try {
    for (const key of [undefined, "", "undefined", "null"]) {
      const client = new Client(server.base, key === undefined ? {} : { key });
      refused(await client.send("GET", "/agents"), 401, "unauthenticated");
      refused(await client.send("POST", "/threads", { agent_id: "plain" }), 401, "unauthenticated");
      refused(await client.send("POST", "/tokens", { scope: "admin", ttl: 60 }), 401, "unauthenticated");
    }
  } finally {
    await server.remove();
    folder.remove();
  }
});
