// Sign-in to MCP servers through a browser: the built product, an MCP server and an authorization server, each with
// misbehaviour.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { after, before } from "node:test";
import { exchange } from "../worker/support/http.mjs";
import { say, use } from "../worker/support/model.mjs";
import { OAuthServer } from "../worker/support/oauth.mjs";
import { until } from "../worker/support/poll.mjs";
import { suite } from "../worker/support/suite.mjs";

/** @typedef {import("../worker/support/client.mjs").Thread} Thread */

const bobbin = suite({ vars: { BOBBIN_ENCRYPTION_KEYS: `k1=${Buffer.alloc(32, 7).toString("base64")}` } });
const test = bobbin.test.bind(bobbin);
const oauth = new OAuthServer();
before(() => oauth.start());
after(() => oauth.stop());

/** The names of servers. Each has its own agent. */
const NAMES = ["good", "wrongiss", "noiss", "unadvertised", "foreign", "replayed", "moved", "endless", "huge", "html", "plain", "other", "resource", "inside", "script", "more", "greedy", "two", "denied", "spelled"];
for (const name of NAMES) {
  bobbin.agent(name, ({ messages }) => (messages.at(-1)?.role === "tool" ? say(`done: ${messages.at(-1)?.content}`) : use({ name: `${name}__whoami`, args: {} })), { tools: [`mcp:${name}`] });
  bobbin.definitions.push(() => {
    bobbin.folder.json(`mcp/${name}.json`, { url: `${oauth.base}/${name}/mcp`, auth: { type: "oauth" } });
    bobbin.folder.json(`mcp/${name}.tools.json`, { protocol: "2026-07-28", server: { name, version: "1" }, tools: [{ name: "whoami", description: "Says who asks.", inputSchema: { type: "object", properties: {} } }] });
  });
}

/**
 * Starts a thread that waits for a sign-in.
 * @param {string} name @param {object} [born] @returns {Promise<{ thread: Thread, wait: any }>}
 */
async function waiting(name, born = {}) {
  const thread = await bobbin.client.thread(name, born);
  await thread.accepted("Who am I?");
  return { thread, wait: await asked(thread) };
}

/** @param {Thread} thread @returns {Promise<any>} */
const asked = (thread) => until("somebody is asked to sign in", async () => (await thread.send("GET", "/waits")).json.waits.find((/** @type {any} */ wait) => wait.kind === "sign_in"), { withinMs: 20_000 });

/** Returns the result that the model received. @param {Thread} thread */
async function result(thread) {
  await until("it is over", async () => (await thread.facts()).state === "idle", { withinMs: 30_000 });
  return (await thread.messages()).findLast(({ role }) => role === "tool");
}

/** Opens the redirect page in a browser. @param {string} back */
async function opens(back) {
  assert.ok(back.startsWith(`${bobbin.server.base}/api/oauth/callback?`), back);
  const page = await fetch(back, { redirect: "manual" });
  const html = await page.text();
  assert.equal(page.headers.get("content-type"), "text/html; charset=utf-8");
  assert.match(page.headers.get("content-security-policy") ?? "", /^default-src 'none';.*frame-ancestors 'none'$/);
  assert.equal(page.headers.get("cache-control"), "no-store");
  assert.equal(page.headers.get("referrer-policy"), "no-referrer");
  for (const value of new URL(back).searchParams.values()) assert.ok(value.length < 6 || !html.includes(value), "nothing that was brought is on the page");
  return { status: page.status, title: /<h1>([^<]*)<\/h1>/.exec(html)?.[1], html };
}

/** Signs in and checks that the agent continues. @param {Thread} thread @param {any} wait */
async function signsIn(thread, wait) {
  const page = await opens(await oauth.follow(wait.url));
  assert.equal(page.status, 200, page.html);
  return result(thread);
}

test("a person signs in, and the call that waited for it is made", async () => {
  const realm = oauth.realm("good");
  const { thread, wait } = await waiting("good");
  assert.deepEqual([wait.server, wait.allows, wait.title], ["good", ["deny"], "Sign in to “good”"]);
  const link = new URL(wait.url).searchParams;
  assert.deepEqual(["response_type", "code_challenge_method", "resource", "redirect_uri", "scope"].map((field) => link.get(field)), ["code", "S256", `${oauth.base}/good/mcp`, `${bobbin.server.base}/api/oauth/callback`, "read"]);
  const { register } = realm.asked[0];
  assert.deepEqual([register.redirect_uris, register.grant_types, register.application_type, register.token_endpoint_auth_method], [[`${bobbin.server.base}/api/oauth/callback`], ["authorization_code", "refresh_token"], "native", "client_secret_basic"]);
  const back = await oauth.follow(wait.url);
  const page = await opens(back);
  assert.deepEqual([page.status, page.title], [200, "You are signed in"], page.html);
  assert.ok(page.html.includes("“good”"));
  assert.equal((await result(thread))?.content, "somebody with read");
  // Load the page again, as the “back” button does. No second token is requested.
  const again = await opens(back);
  assert.deepEqual([again.status, again.title], [200, "You were signed in already"]);
  assert.equal(realm.asked.filter((one) => one.token).length, 1);
  // No secret of the sign-in is visible anywhere.
  const { code, code_verifier: verifier } = realm.asked[1].token;
  const token = [...realm.tokens.keys()][0] ?? "";
  const seen = JSON.stringify([await thread.messages(), (await thread.send("GET", "/logs")).json, (await thread.send("GET", "/waits?state=all")).json, bobbin.server.output()]);
  for (const secret of [code, verifier, token, "s3cret/good"]) assert.ok(secret.length > 5 && !seen.includes(secret), "a secret is shown");
});

test("what the deployment says of itself is there for whoever asks", async () => {
  const { status, json } = await exchange(bobbin.server.base, "GET", "/.well-known/bobbin-client.json");
  assert.equal(status, 200);
  assert.equal(json.client_id, `${bobbin.server.base}/.well-known/bobbin-client.json`);
  assert.deepEqual(json.redirect_uris, [`${bobbin.server.base}/api/oauth/callback`]);
  assert.equal(json.token_endpoint_auth_method, "none");
  assert.equal((await exchange(bobbin.server.base, "GET", "/.well-known/bobbin-client.json?x=1")).status, 400);
});

test("who signs in does so for the owner's other threads, and for nobody else", async () => {
  oauth.realm("two");
  const [first, second] = [await waiting("two", { user_id: "ann" }), await waiting("two", { user_id: "ann" })];
  const stranger = await waiting("two", { user_id: "bob" });
  assert.equal((await signsIn(first.thread, first.wait))?.content, "somebody with read");
  await until("the other goes on by itself", async () => (await second.thread.facts()).state === "idle", { withinMs: 60_000 });
  assert.equal((await result(second.thread))?.content, "somebody with read");
  assert.equal((await stranger.thread.send("GET", "/waits")).json.waits.length, 1, "nobody else is signed in");
  const third = await bobbin.client.thread("two", { user_id: "ann" });
  await third.accepted("Who am I?");
  assert.equal((await result(third))?.content, "somebody with read", "nobody is asked again");
});

test("what comes back from elsewhere lets nobody in, and what is refused may be done again", async () => {
  const cases = /** @type {[string, import("../worker/support/oauth.mjs").Realm, number][]} */ ([
    ["wrongiss", { back: { iss: "https://evil.example" } }, 400],
    ["noiss", { back: { iss: null } }, 400],
    ["unadvertised", { metadata: { authorization_response_iss_parameter_supported: null }, back: { iss: "https://evil.example" } }, 400],
    ["foreign", { back: { state: "00000000000000000000000000000000.1.6f0c0000-0000-4000-8000-000000000001" } }, 400],
    ["denied", { back: { code: null, error: "access_denied" } }, 403],
    ["replayed", { back: { code: "stolen" } }, 502],
    ["moved", { token: (response) => void response.writeHead(302, { location: `${oauth.base}/good/token` }).end() }, 502],
    ["html", { token: (response) => void response.writeHead(200, { "content-type": "text/html" }).end("<h1>Hello</h1>") }, 502],
    ["huge", { token: (response) => void response.writeHead(200, { "content-type": "application/json" }).end(Buffer.alloc(100 << 20, 32)) }, 502],
    ["endless", { token: (response) => void endless(response) }, 502],
  ]);
  for (const [name, bad, status] of cases) {
    const realm = oauth.realm(name, bad);
    const { thread, wait } = await waiting(name);
    const page = await opens(await oauth.follow(wait.url));
    assert.equal(page.status, status, `${name}: ${page.html}`);
    assert.equal((await asked(thread)).id, wait.id, `${name}: it waits on`);
    assert.equal(realm.tokens.size, 0, name);
    if (status === 400 || status === 403) assert.equal(realm.asked.filter((one) => one.token).length, 0, `${name}: the code was shown to nobody`);
    // The same link works once the server behaves.
    oauth.realms.set(name, { codes: realm.codes, tokens: realm.tokens, asked: realm.asked, calls: realm.calls });
    if (name !== "unadvertised") assert.equal((await signsIn(thread, wait))?.content, "somebody with read", name);
  }
});

/** @param {import("node:http").ServerResponse} response */
function endless(response) {
  response.writeHead(200, { "content-type": "application/json" });
  const timer = setInterval(() => response.write(" ".repeat(4096)), 20);
  response.on("close", () => clearInterval(timer));
}

test("nobody is sent where it is not safe to sign in", async () => {
  const cases = /** @type {[string, import("../worker/support/oauth.mjs").Realm, RegExp][]} */ ([
    ["plain", { metadata: { code_challenge_methods_supported: ["plain"] } }, /PKCE with S256/],
    ["other", { metadata: { issuer: "https://evil.example" } }, /another issuer/],
    ["resource", { resource: { resource: "https://evil.example/mcp" } }, /another resource/],
    ["inside", { metadata: { authorization_endpoint: "https://10.0.0.1/authorize" } }, /private address 10\.0\.0\.1/],
    ["script", { metadata: { authorization_endpoint: "javascript://localhost/%0aalert(1)" } }, /no page where people sign in/],
  ]);
  for (const [name, bad, why] of cases) {
    const realm = oauth.realm(name, bad);
    const thread = await bobbin.client.thread(name);
    await thread.accepted("Who am I?");
    const told = await result(thread);
    assert.match(String(told?.content), why, name);
    assert.equal(told?.metadata.error_code, "mcp_unauthorized");
    assert.deepEqual(realm.asked.filter((one) => one.register), [], `${name}: it registers nowhere`);
  }
});

test("no address that a server names leads to this machine, however it is spelled", async () => {
  // `127.0.0.1` and `127.0.0.1.` are the same host, which development servers allow.
  let connected = 0;
  const machine = createServer((socket) => void (++connected, socket.on("error", () => {}).end()));
  await once(machine.listen(0, "127.0.0.1"), "listening");
  after(() => machine.close());
  const { port } = /** @type {import("node:net").AddressInfo} */ (machine.address());
  const hosts = ["127.0.0.%31", "localhos%74", "%6cocalhost", "127%2e0.0.1", "127.0.0.1%00", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1%25lo]", "0.0.0.0", "xn--localhost-", "127.0.0.1\\\\@example.com"];
  // A header cannot contain other characters: each is one byte of a UTF-8 character.
  const others = ["\uff1127.0.0.1", "127\u30020\u30020\u30021", "local\u00adhost", "localho\u017ft", "127.0.0.\t1"].map((host) => Buffer.from(host).toString("latin1"));
  for (const host of [...hosts, ...others]) {
    oauth.realm("spelled", { describedAt: `https://${host}:${port}/x` });
    const thread = await bobbin.client.thread("spelled");
    await thread.accepted("Who am I?");
    const told = await result(thread);
    assert.match(String(told?.content), /the private address|not plain http or https/, host);
  }
  assert.equal(connected, 0, "nothing on this machine was reached");
});

test("more is asked for when it is needed, and not for ever", async () => {
  oauth.realm("more", { needs: ["read", "write"] });
  const { thread, wait } = await waiting("more");
  await opens(await oauth.follow(wait.url));
  const second = await until("more is asked for", async () => (await thread.send("GET", "/waits")).json.waits.find((/** @type {any} */ one) => one.id !== wait.id), { withinMs: 20_000 });
  assert.equal(new URL(second.url).searchParams.get("scope"), "read write");
  assert.equal((await signsIn(thread, second))?.content, "somebody with read write");
  // A server that grants none of the scopes.
  oauth.realm("greedy", { needs: ["everything"], grants: "read" });
  const { thread: tired, wait: first } = await waiting("greedy");
  const seen = new Set();
  for (let next = first; next !== undefined; ) {
    seen.add(next.id);
    await fetch(await oauth.follow(next.url));
    next = await until("it asks again, or is over", async () => {
      const open = (await tired.send("GET", "/waits")).json.waits.find((/** @type {any} */ one) => !seen.has(one.id));
      return open ?? ((await tired.facts()).state === "idle" ? "over" : undefined);
    }, { withinMs: 20_000 });
    if (next === "over") break;
  }
  assert.equal(seen.size, 3);
  assert.match(String((await result(tired))?.content), /however often somebody signs in/);
});

test("a callback that is none is a page, whatever it says", async () => {
  const parameters = ["", "state=x", "state=..", `state=${"a".repeat(5000)}`, "state=0.1.no-such-thread&code=x", "state=0.1.6f0c0000-0000-4000-8000-000000000001&code=x&iss=y", "state=a&state=b&code=<script>alert(1)</script>"];
  for (const query of parameters) {
    const { status, html } = await opens(`${bobbin.server.base}/api/oauth/callback?${query}`);
    assert.equal(status, 400, query);
    assert.ok(!html.includes("<script"), html);
  }
  assert.equal((await exchange(bobbin.server.base, "POST", "/api/oauth/callback")).status, 405);
});
