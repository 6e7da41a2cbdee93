// Access tokens of another issuer at /mcp: accepted and rejected ones, with various signatures.

import assert from "node:assert/strict";
import { constants, createHmac, generateKeyPairSync, sign } from "node:crypto";
import { once } from "node:events";
import { after, before } from "node:test";
import { http } from "../../package/lib/node-http.mjs";
import { Mcp } from "../worker/support/mcp.mjs";
import { say } from "../worker/support/model.mjs";
import { suite } from "../worker/support/suite.mjs";
import { exchange } from "../worker/support/http.mjs";

/** @typedef {{ kid: string, alg: string, privateKey: import("node:crypto").KeyObject, jwk: Record<string, any> }} Key */

/** @param {string} alg @param {string} kid @param {number} [bits] @returns {Key} */
function key(alg, kid, bits = 2048) {
  const kinds = /** @type {Record<string, () => import("node:crypto").KeyPairKeyObjectResult>} */ ({
    RS256: () => generateKeyPairSync("rsa", { modulusLength: bits }),
    ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
    EdDSA: () => generateKeyPairSync("ed25519"),
  });
  const pair = /** @type {() => import("node:crypto").KeyPairKeyObjectResult} */ (kinds[alg])();
  return { kid, alg, privateKey: pair.privateKey, jwk: { ...pair.publicKey.export({ format: "jwk" }), kid, use: "sig" } };
}

const coded = (/** @type {unknown} */ value) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
/** @param {Key} by @param {string} text */
function signature(by, text) {
  const data = Buffer.from(text);
  if (by.alg === "RS256") return sign("sha256", data, { key: by.privateKey, padding: constants.RSA_PKCS1_PADDING });
  if (by.alg === "ES256") return sign("sha256", data, { key: by.privateKey, dsaEncoding: "ieee-p1363" });
  return sign(null, data, by.privateKey);
}

/** An issuer with its metadata and keys. It counts requests for them. */
const issuer = {
  keys: /** @type {Key[]} */ ([key("RS256", "rsa"), key("ES256", "ec"), key("EdDSA", "ed"), key("RS256", "weak", 1024)]),
  asked: /** @type {string[]} */ ([]),
  base: "",
  server: http.createServer((request, response) => {
    issuer.asked.push(String(request.url));
    const answers = /** @type {Record<string, unknown>} */ ({
      "/.well-known/oauth-authorization-server/tenant": { issuer: `${issuer.base}/tenant`, jwks_uri: `${issuer.base}/keys` },
      "/keys": { keys: issuer.keys.map(({ jwk }) => jwk) },
    });
    const found = answers[String(request.url)];
    response.writeHead(found === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(found ?? {}));
  }),
};
before(async () => {
  issuer.server.listen(0, "127.0.0.1");
  await once(issuer.server, "listening");
  const address = issuer.server.address();
  issuer.base = `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`;
  bobbin.settings.vars = { ...bobbin.settings.vars, BOBBIN_OAUTH_ISSUER: `${issuer.base}/tenant` };
});
after(() => void issuer.server.close());

const bobbin = suite({
  key: "key-of-all",
  vars: {
    BOBBIN_API_KEYS: "key-of-all=admin,key-of-alice=owner:alice",
    BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef",
    BOBBIN_SURFACES: "mcp",
  },
});
const test = bobbin.test.bind(bobbin);
bobbin.agent("echo", ({ last }) => say(`You wrote: ${last}`));

const now = () => Math.floor(Date.now() / 1000);
/** @param {Record<string, unknown>} [more] */
const claims = (more = {}) => ({ iss: `${issuer.base}/tenant`, aud: `${bobbin.server.base}/mcp`, sub: "alice", exp: now() + 300, ...more });
/** @param {Key} by @param {object} [what] @param {object} [header] */
const token = (by, what = claims(), header = {}) => {
  const text = `${coded({ alg: by.alg, kid: by.kid, typ: "at+jwt", ...header })}.${coded(what)}`;
  return `${text}.${signature(by, text).toString("base64url")}`;
};
const client = (/** @type {string | undefined} */ bearer) => new Mcp(bobbin.server.base, { key: bearer });

test("who has no token is told where one is given", async () => {
  const refused = await client(undefined).send("tools/list");
  const metadata = `${bobbin.server.base}/.well-known/oauth-protected-resource/mcp`;
  assert.deepEqual([refused.status, refused.headers["www-authenticate"]], [401, `Bearer resource_metadata="${metadata}"`], refused.text);
  for (const path of ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]) {
    const told = await exchange(bobbin.server.base, "GET", path);
    const { resource, authorization_servers } = told.json;
    assert.deepEqual([told.status, resource, authorization_servers], [200, `${bobbin.server.base}/mcp`, [`${issuer.base}/tenant`]], told.text);
    assert.equal(told.headers["access-control-allow-origin"], "*");
    assert.equal((await exchange(bobbin.server.base, "GET", `${path}?nonsense=1`)).status, 400);
    assert.equal((await exchange(bobbin.server.base, "POST", path, { body: "{}", headers: { "content-type": "application/json" } })).status, 405);
  }
  const wrong = await client("wrong").send("tools/list");
  assert.match(wrong.headers["www-authenticate"] ?? "", /error="invalid_token"/);
});

test("a token of the issuer is its subject's, however it is signed", async () => {
  for (const by of issuer.keys.slice(0, 3)) {
    const answer = await client(token(by)).call("ask_echo", { message: by.alg, thread: `of-${by.kid}` });
    assert.equal(answer.result?.content[0].text, `You wrote: ${by.alg}`, answer.text);
    const { thread } = answer.result.structuredContent;
    const seen = await client("key-of-alice").call("thread_get", { thread });
    assert.equal(seen.result.structuredContent.thread, thread, "the owner's key opens the same");
    const others = await client(token(by, claims({ sub: "bob" }))).call("thread_get", { thread });
    assert.equal(others.result.isError, true, others.text);
  }
  const ec = /** @type {Key} */ (issuer.keys[1]);
  const several = token(ec, claims({ aud: ["x", `${bobbin.server.base}/mcp`] }));
  for (const bearer of [several, token(ec, claims(), { kid: undefined })]) assert.equal((await client(bearer).send("tools/list")).status, 200);
  assert.equal((await client("key-of-alice").send("tools/list")).status, 200, "keys count as before");
  assert.equal(issuer.asked.filter((path) => path === "/keys").length, 1, "keys are kept");
});

test("no other token counts", async () => {
  const [rsa, ec, ed] = /** @type {[Key, Key, Key]} */ (issuer.keys);
  const strange = key("RS256", "rsa");
  const good = token(ec);
  const [head = "", body = "", signed = ""] = good.split(".");
  const none = `${coded({ alg: "none" })}.${coded(claims())}.`;
  const hmac = `${coded({ alg: "HS256", kid: "rsa" })}.${coded(claims())}`;
  const secret = rsa.privateKey.export({ format: "pem", type: "pkcs8" });
  const cases = /** @type {[string, string][]} */ ([
    ["signed by nobody", none],
    ["signed by nobody, with something", `${none}AAAA`],
    ["signed with the public key as a secret", `${hmac}.${createHmac("sha256", JSON.stringify(rsa.jwk)).update(hmac).digest("base64url")}`],
    ["signed with a secret", `${hmac}.${createHmac("sha256", secret).update(hmac).digest("base64url")}`],
    ["signed by another key of that name", token(strange)],
    ["said to be signed otherwise", `${coded({ alg: "EdDSA", kid: "ed" })}.${body}.${signed}`],
    ["with other claims", `${head}.${coded(claims({ sub: "bob" }))}.${signed}`],
    ["without its signature", `${head}.${body}.`],
    ["with a signature in another spelling", `${head}.${body}.${signed}=`],
    ["that has expired", token(ec, claims({ exp: now() - 31 }))],
    ["that never ends", token(ec, { ...claims(), exp: undefined })],
    ["that has not begun", token(ec, claims({ nbf: now() + 120 }))],
    ["of another issuer", token(ec, claims({ iss: issuer.base }))],
    ["for another resource", token(ec, claims({ aud: "https://other.example/mcp" }))],
    ["for the server in general", token(ec, claims({ aud: bobbin.server.base }))],
    ["of nobody", token(ec, { ...claims(), sub: undefined })],
    ["with an extension that must be known", token(ed, claims(), { crit: ["b64"], b64: false })],
    ["of a key that is too short", token(/** @type {Key} */ (issuer.keys[3]))],
    ["of an unknown key", token({ ...ec, kid: "other" })],
  ]);
  for (const [what, bearer] of cases) {
    const answer = await client(bearer).send("tools/list");
    assert.equal(answer.status, 401, `a token ${what}: ${answer.text}`);
    assert.match(answer.headers["www-authenticate"] ?? "", /error="invalid_token"/, what);
    assert.ok(!answer.text.includes(bearer.slice(0, 30)), "the token is not repeated");
  }
  const api = await exchange(bobbin.server.base, "GET", "/api/agents", { headers: { authorization: `Bearer ${good}` } });
  assert.equal(api.status, 401, "a token for MCP is none for the API");
});

test("an unknown key is asked for once a minute at most", async () => {
  const before = issuer.asked.length;
  const newer = key("ES256", "newer");
  issuer.keys.push(newer);
  for (let n = 0; n < 5; n += 1) await client(token({ ...newer, kid: `other-${n}` })).send("tools/list");
  await client(token(newer)).send("tools/list");
  assert.ok(issuer.asked.length - before <= 2, String(issuer.asked));
});
