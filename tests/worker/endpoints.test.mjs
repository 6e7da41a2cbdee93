// Custom endpoints of a thread: routing by file names, bodies of any kind, and error responses.

import assert from "node:assert/strict";
import { after as afterAll, test as plainTest } from "node:test";
import { AgentsFolder } from "./support/agents.mjs";
import { say } from "./support/model.mjs";
import { Server } from "./support/server.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */
/** @typedef {import("./support/http.mjs").Exchange} Exchange */

const [ADMIN, ALICE] = ["admin-key-of-the-tests", "alice-key-of-the-tests"];
const bobbin = suite({
  key: ADMIN,
  vars: {
    BOBBIN_API_KEYS: `${ADMIN}=admin,${ALICE}=owner:alice`,
    BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-of-the-tests",
    BOBBIN_ALLOW_PRIVATE_HOSTS: "127.0.0.1",
  },
});
const test = bobbin.test.bind(bobbin);
bobbin.agent("plain", () => say("hello"));

/** Defines an endpoint that returns its file and the request. @param {string} file */
const route = (file) => bobbin.endpoint(file, ({ body }) => ({ body: { file, ...body } }));
for (const file of [
  "health",
  "import.POST",
  "index.put",
  "reports/index",
  "reports/today",
  "reports/[day]",
  "reports/[day].delete",
  "reports/[day]/notes",
  "reports/today/all",
  "reports/[*]",
  "all/[*].patch",
  "all/[*].put",
  "sitemap.xml.get",
]) {
  route(file);
}
const mirror = bobbin.endpoint("mirror.post", ({ body }) => ({
  body: body.bodyBase64 === undefined ? body.body : Buffer.from(body.bodyBase64, "base64"),
  headers: { "content-type": body.headers["content-type"] ?? "none/none" },
}));
bobbin.endpoint("answer/[status]", ({ body }) => ({
  status: Number(body.params.status),
  body: body.params.status === "204" ? "" : "as it says",
  headers: { "x-own": "1", "set-cookie": "a=b", location: "https://a.example/" },
}));
bobbin.endpoint("slow", ({ closed }) => closed.then(() => ""), { timeoutMs: 300 });
bobbin.endpoint("huge", () => "x".repeat(1_100_000));
bobbin.nativeEndpoint("summary", "summary");
bobbin.nativeEndpoint("transcript", "transcript");
bobbin.nativeEndpoint("missing", "not_in_this_build");

/** @param {Thread} thread @param {string} method @param {string} path @param {Exchange} [options] */
const ask = (thread, method, path, options) => thread.send(method, path, undefined, options);

test("the most precise file answers, with its parameters", async () => {
  const thread = await bobbin.client.thread("plain");
  for (const [method, path, file, params] of /** @type {[string, string, string, object][]} */ ([
    ["GET", "/health", "health", {}],
    ["GET", "/health/", "health", {}],
    ["POST", "/import", "import.POST", {}],
    ["PUT", "", "index.put", {}],
    ["GET", "/reports", "reports/index", {}],
    ["GET", "/reports/today", "reports/today", {}],
    ["GET", "/reports/monday", "reports/[day]", { day: "monday" }],
    ["GET", "/reports/a%2Fb%20%C3%BC", "reports/[day]", { day: "a/b ü" }],
    ["DELETE", "/reports/today", "reports/[day].delete", { day: "today" }],
    ["GET", "/reports/today/notes", "reports/[day]/notes", { day: "today" }],
    ["GET", "/reports/today/all", "reports/today/all", {}],
    ["GET", "/reports/monday/all", "reports/[*]", { "*": "monday/all" }],
    ["GET", "/reports/today/a/b/c", "reports/[*]", { "*": "today/a/b/c" }],
    ["PATCH", "/all", "all/[*].patch", { "*": "" }],
    ["PUT", "/all/a//b", "all/[*].put", { "*": "a//b" }],
    ["GET", "/sitemap.xml", "sitemap.xml.get", {}],
  ])) {
    const answer = await ask(thread, method, path);
    assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`);
    assert.deepEqual([answer.json.file, answer.json.params, answer.json.method], [file, params, method], `${method} ${path}`);
    assert.equal(answer.json.threadId, thread.id);
  }
});

test("what is not there is 404, another method 405 with those there are", async () => {
  const thread = await bobbin.client.thread("plain");
  for (const [method, path, status, allow] of /** @type {[string, string, number, string?][]} */ ([
    ["GET", "/nowhere", 404],
    ["POST", "/nowhere/at/all", 404],
    ["GET", "/Health", 404],
    ["GET", "/health/x", 404],
    ["OPTIONS", "/health", 405, "GET, HEAD"],
    ["TRACE", "/nowhere", 404],
    ["QUERY", "/import", 405, "POST"],
    ["OPTIONS", "/stop", 405, "POST"],
    ["POST", "/health", 405, "GET, HEAD"],
    ["GET", "/import", 405, "POST"],
    ["HEAD", "/import", 405, "POST"],
    ["PATCH", "/reports/today", 405, "GET, HEAD, DELETE"],
    ["GET", "/all/x", 405, "PUT, PATCH"],
    ["POST", "", 405, "GET, PATCH, DELETE, PUT"],
    // The runtime's own routes take precedence.
    ["PUT", "/kv", 405, "GET, POST, DELETE"],
    ["GET", "/stop", 405, "POST"],
    ["GET", "/attachments", 404],
  ])) {
    const answer = await ask(thread, method, path);
    assert.deepEqual([answer.status, answer.headers.allow], [status, allow], `${method} ${path}: ${answer.text}`);
    if (method === "HEAD") continue;
    assert.equal(answer.json.error.code, status === 404 ? "not_found" : "method_not_allowed", `${method} ${path}`);
  }
  const unknown = "00000000-0000-4000-8000-000000000000";
  const nowhere = await bobbin.client.send("GET", `/threads/${unknown}/health`);
  assert.deepEqual([nowhere.status, nowhere.json.error.code], [404, "thread_not_found"]);
});

test("HEAD is answered by GET without a body", async () => {
  const thread = await bobbin.client.thread("plain");
  const answer = await ask(thread, "HEAD", "/health");
  assert.deepEqual([answer.status, answer.bytes.length, answer.headers["content-type"]], [200, 0, "application/json"]);
});

test("query and headers reach the endpoint, credentials do not", async () => {
  const thread = await bobbin.client.thread("plain");
  const { json } = await ask(thread, "GET", "/health?a=1&a=2&b=x+y%26&c", {
    headers: { cookie: "a=b", "x-api-key": "k", "x-bobbin-call": "x", "x-bobbin-listen": "x", "x-Hub-Signature": "s", "x-odd": "a, b" },
  });
  assert.deepEqual(json.query, [["a", "1"], ["a", "2"], ["b", "x y&"], ["c", ""]]);
  assert.deepEqual([json.headers["x-hub-signature"], json.headers["x-odd"]], ["s", "a, b"]);
  for (const name of Object.keys(json.headers)) assert.doesNotMatch(name, /^(authorization|x-api-key|cookie|x-bobbin-.*)$/);
  assert.equal(json.path, "/health");
});

test("a body of any type and size up to the limit goes through both ways as it is", async () => {
  const thread = await bobbin.client.thread("plain");
  const every = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
  for (const [body, type] of /** @type {[Buffer, string | undefined][]} */ ([
    [Buffer.from("naïve 🧵\n"), "text/plain; charset=utf-8"],
    [Buffer.from('{"not": "parsed'), "application/json"],
    [every, "application/octet-stream"],
    [every, undefined],
    [Buffer.alloc(0), "x/empty"],
    // The response of an http endpoint has at most 1 MB.
    [Buffer.concat(Array.from({ length: 4096 }, () => every)), "image/png"],
  ])) {
    const options = { body, headers: type === undefined ? {} : { "content-type": type } };
    const answer = await ask(thread, "POST", "/mirror", options);
    assert.equal(answer.status, 200, answer.text.slice(0, 300));
    assert.ok(answer.bytes.equals(body), `${type}: ${answer.bytes.length} of ${body.length} bytes`);
    assert.equal(answer.headers["content-type"], type ?? "none/none");
  }
  const before = mirror.received.length;
  const chunked = { body: Buffer.alloc((4 << 20) + 1), headers: { "transfer-encoding": "chunked" } };
  for (const options of [{ body: Buffer.alloc((4 << 20) + 1) }, chunked]) {
    const answer = await ask(thread, "POST", "/mirror", options);
    assert.deepEqual([answer.status, answer.json.error.code], [413, "too_large"], answer.text);
  }
  assert.equal(mirror.received.length, before, "what is too large does not reach the endpoint");
});

test("an http endpoint's status, type and body pass; cookies and other headers do not", async () => {
  const thread = await bobbin.client.thread("plain");
  for (const status of [200, 201, 204, 302, 400, 404, 418]) {
    const answer = await ask(thread, "GET", `/answer/${status}`);
    assert.deepEqual([answer.status, answer.text], [status, status === 204 ? "" : "as it says"]);
    assert.deepEqual([answer.headers["x-own"], answer.headers["set-cookie"]], [undefined, undefined]);
    assert.equal(answer.headers.location, status === 302 ? "https://a.example/" : undefined);
    assert.deepEqual([answer.headers["cache-control"], answer.headers["x-content-type-options"]], ["no-store", "nosniff"]);
  }
});

test("a failure is an id for the client and a row for the log", async () => {
  const thread = await bobbin.client.thread("plain");
  const failing = ["/answer/500", "/answer/503", "/slow", "/huge", "/missing"];
  for (const path of failing) {
    const answer = await ask(thread, "GET", path);
    assert.deepEqual([answer.status, answer.json.error.code], [500, "endpoint_failed"], `${path}: ${answer.text}`);
    assert.doesNotMatch(answer.text, /as it says|127\.0\.0\.1|panicked|\.rs|not_in_this_build/, "no detail");
    const id = /\(([0-9a-f]{12})\)/.exec(answer.json.error.message)?.[1];
    const { json } = await thread.send("GET", "/logs?limit=1");
    const [row] = json.logs;
    assert.deepEqual([row.type, row.request_id, row.method, row.path, row.status], ["endpoint", id, "GET", path, 500]);
    assert.ok(row.error.length > 10 && row.name.startsWith("GET /"), JSON.stringify(row));
  }
  const { json } = await thread.send("GET", "/logs");
  assert.equal(json.logs.filter((/** @type {any} */ { type }) => type === "endpoint").length, failing.length);
  assert.equal((await thread.ask("hello")).message.content, "hello", "the thread is none the worse for it");
});

test("natives see the thread", async () => {
  const thread = await bobbin.client.thread("plain");
  await thread.ask("How are you?");
  await thread.send("POST", "/kv", { key: "colour", value: "red" });
  const { json } = await ask(thread, "GET", "/summary");
  assert.deepEqual(
    [json.thread, json.agent, json.messages, json.last_message.content, json.values, json.keys],
    [thread.id, "plain", 2, "hello", 1, ["colour"]],
  );
  const transcript = await ask(thread, "GET", "/transcript");
  assert.equal(transcript.headers["content-type"], "text/markdown; charset=utf-8");
  assert.equal(transcript.text, "**User**\n\nHow are you?\n\n**Assistant**\n\nhello\n");
  assert.equal((await ask(thread, "GET", "/transcript?last=1")).text, "**Assistant**\n\nhello\n");
  const wrong = await ask(thread, "GET", "/transcript?last=x");
  assert.deepEqual([wrong.status, wrong.json.error.field], [400, "last"]);
  await thread.send("POST", "/terminate");
  assert.ok((await ask(thread, "GET", "/summary")).json.terminated > 0, "a terminated thread still serves");
});

test("whoever may read asks with GET, whoever may change with the rest", async () => {
  const thread = await bobbin.client.thread("plain", { user_id: "alice" });
  const { json } = await bobbin.client.send("POST", "/tokens", { scope: `thread:${thread.id}`, ttl: 60 });
  const other = await bobbin.client.thread("plain");
  for (const [key, method, path, status] of /** @type {[string | undefined, string, string, number][]} */ ([
    [ALICE, "GET", `${thread.path}/health`, 200],
    [ALICE, "POST", `${thread.path}/import`, 200],
    [ALICE, "GET", `${other.path}/health`, 404],
    [ALICE, "POST", `${other.path}/import`, 404],
    [json.token, "GET", `${thread.path}/health`, 200],
    [json.token, "HEAD", `${thread.path}/health`, 200],
    [json.token, "POST", `${thread.path}/import`, 403],
    [json.token, "DELETE", `${thread.path}/reports/x`, 403],
    [json.token, "POST", `${thread.path}/nowhere`, 404],
    [undefined, "GET", `${thread.path}/health`, 401],
    [undefined, "POST", `${thread.path}/import`, 401],
  ])) {
    assert.equal((await bobbin.as(key).send(method, path)).status, status, `${key} ${method} ${path}`);
  }
  // A page from another origin in the developer's browser cannot send a form to an endpoint.
  const page = { body: "a=1", headers: { origin: "https://evil.example", "content-type": "text/plain" } };
  assert.equal((await ask(thread, "POST", "/import", page)).status, 403);
});

/** @type {AgentsFolder[]} */
const folders = [];
/** @type {Server[]} */
const servers = [];
afterAll(async () => {
  for (const server of servers) await server.remove();
  for (const folder of folders) folder.remove();
});

plainTest("endpoints with mistakes are not served: every mistake is printed with its file", { timeout: 120_000 }, async () => {
  const folder = new AgentsFolder();
  folders.push(folder);
  const fine = { run: { native: "summary" } };
  for (const file of ["a", "a.get", "b.pots", "kv", "messages/[id]/x", "index.delete", "r/[x]", "r/[y]", "[*]/c", "[a]/[a]", "[1]"]) {
    folder.json(`api/${file}.json`, fine);
  }
  folder.json("api/fields.json", { run: { native: "summary" }, timeoutMs: 0, method: "POST" });
  const server = await Server.refused(folder.path);
  servers.push(server);
  const printed = server.output();
  for (const [file, says] of [
    ["api/a.json", "api/a.get.json answers GET /a already"],
    ["api/b.pots.json", "`.pots` is no method"],
    ["api/kv.json", "would hide the runtime's own /kv"],
    ["api/messages/[id]/x.json", "would hide the runtime's own /messages"],
    ["api/index.delete.json", "would hide the runtime's own DELETE /"],
    ["api/r/[y].json", "api/r/[x].json answers GET /r/[y] already"],
    ["api/[*]/c.json", "only be the last segment"],
    ["api/[a]/[a].json", "is there twice"],
    ["api/[1].json", "is no parameter"],
    ["api/fields.json", "method: unknown field"],
    ["api/fields.json", "timeoutMs: must be from 1 to 600000"],
  ]) {
    const line = printed.split("\n").some((text) => text.includes(file ?? "") && text.includes(says ?? ""));
    assert.ok(line, `${file}: ${says} is in\n${printed}`);
  }
});
