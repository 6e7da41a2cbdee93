// Tools of MCP servers, called by the built product over HTTP: with and without sessions, and with a kill in the
// middle.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before } from "node:test";
import { http } from "../../package/lib/node-http.mjs";
import { wholeBody } from "../worker/support/http.mjs";
import { say, use } from "../worker/support/model.mjs";
import { until } from "../worker/support/poll.mjs";
import { suite } from "../worker/support/suite.mjs";

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

/** @typedef {{ path: string, method: string, headers: import("node:http").IncomingHttpHeaders, params: any, closed: Promise<void> }} Asked */

/** The requests to the server, in order. @type {Asked[]} */
const asked = [];
const calls = (/** @type {string} */ path) => asked.filter((one) => one.path === path && one.method === "tools/call");
/** The result of each tool. @type {Record<string, (one: Asked, n: number) => Promise<object> | object>} */
const tools = {
  find: ({ params }) => ({ content: [{ type: "text", text: `found ${params.arguments.word}` }] }),
  draw: () => ({ content: [{ type: "image", mimeType: "image/gif", data: "R0lGODlhAQABAIAAAP///wAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==" }] }),
  // Calls of this tool get no connection.
  down: () => ({}),
  // In its first call when the server is killed.
  slow: ({ closed, params }, n) => (n === 1 ? closed.then(() => ({ content: [] })) : { content: [{ type: "text", text: `slow ${params.arguments.word}` }] }),
};

/** Servers: `/modern` and `/hinted` have no sessions and respond in JSON; `/legacy` requires a session and responds with events. */
const server = http.createServer(async (request, response) => {
  const message = JSON.parse(String(await wholeBody(request)));
  const path = request.url ?? "";
  const one = { path, method: message.method, headers: request.headers, params: message.params, closed: once(response, "close").then(() => {}) };
  asked.push(one);
  const answer = (/** @type {object} */ result, /** @type {import("node:http").OutgoingHttpHeaders} */ headers = {}) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: message.id, result });
    const events = path === "/legacy";
    response.writeHead(200, { "content-type": events ? "text/event-stream" : "application/json", ...headers });
    response.end(events ? `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\nevent: message\ndata: ${body}\n\n` : body);
  };
  if (path === "/live" && request.headers["mcp-method"] === "tools/list") return answer({ resultType: "complete", tools: listed({ readOnlyHint: true }), ttlMs: 600_000, cacheScope: "private" });
  if (request.headers["mcp-method"] === "server/discover") return answer({ resultType: "complete", supportedVersions: ["2026-07-28"], capabilities: { tools: {} } });
  if (path === "/legacy") {
    if (message.method === "initialize") {
      return answer({ protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "old", version: "1" } }, { "mcp-session-id": "s-1" });
    }
    if (request.headers["mcp-session-id"] !== "s-1") return response.writeHead(400).end("no session");
    if (message.method === "notifications/initialized") return response.writeHead(202).end();
  } else if (request.headers["mcp-method"] !== "tools/call" || request.headers["mcp-protocol-version"] !== "2026-07-28") {
    return response.writeHead(400).end();
  }
  const name = message.params.name;
  if (name === "down") return response.writeHead(503).end("down for today");
  const n = calls(path).filter(({ params }) => params.name === name).length;
  const result = await tools[name]?.(one, n);
  if (!response.closed) answer({ resultType: "complete", ...result });
});
before(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
after(() => server.close());

const schema = { type: "object", properties: { word: { type: "string" } }, additionalProperties: false };
const listed = (/** @type {object} */ hints) => Object.keys(tools).map((tool) => ({ name: tool, description: tool, inputSchema: schema, annotations: hints }));
for (const [name, hints] of /** @type {const} */ ([["modern", {}], ["legacy", {}], ["hinted", { readOnlyHint: true }]])) {
  bobbin.definitions.push(() => {
    const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
    bobbin.folder.json(`mcp/${name}.json`, { url: `http://127.0.0.1:${port}/${name}` });
    const protocol = name === "legacy" ? "2025-11-25" : "2026-07-28";
    bobbin.folder.json(`mcp/${name}.tools.json`, { protocol, server: { name, version: "1" }, tools: listed(hints) });
  });
}
bobbin.definitions.push(() => {
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  bobbin.folder.json("mcp/live.json", { url: `http://127.0.0.1:${port}/live`, list: "live", tools: { block: ["down"] } });
});

/** Calls the tool that the message names. @type {import("../worker/support/model.mjs").Script} */
const clerk = ({ messages }) => {
  const last = messages.at(-1);
  const [name = "", word] = String(last?.content).split(" ");
  return last?.role === "tool" ? say(`done: ${last.content}`) : use({ name, args: { word } });
};
const agent = bobbin.agent("caller", clerk, { tools: ["mcp:modern", "mcp:legacy", "mcp:hinted"] });
const lister = bobbin.agent("lister", clerk, { tools: ["mcp:live"] });

test("a server without sessions is asked once a call, and gives texts and files", async () => {
  const thread = await bobbin.client.thread(agent.name);
  const before = asked.length;
  await thread.ask("modern__find x");
  await thread.ask("modern__draw");
  assert.deepEqual(asked.slice(before).map(({ method }) => method), ["tools/call", "tools/call"]);
  const [one] = asked.slice(before);
  const meta = one?.params._meta;
  assert.match(meta["dev.bobbin/call"], /^[0-9a-f-]+\/r\d+\.0$/);
  assert.equal(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
  assert.equal(one?.headers["mcp-name"], "find");
  assert.equal(meta.traceparent, one?.headers.traceparent);
  const results = (await thread.messages()).filter(({ role }) => role === "tool");
  assert.equal(results[0]?.content, "found x");
  assert.deepEqual(results[1]?.attachments.map((/** @type {{ name: string, mimeType: string }} */ file) => [file.name, file.mimeType]), [["image-1.gif", "image/gif"]]);
  assert.deepEqual((await thread.logged("tool_call")).map(({ kind, state }) => [kind, state]), [["mcp", "succeeded"], ["mcp", "succeeded"]]);
});

test("a server with sessions has one for the thread", async () => {
  const thread = await bobbin.client.thread(agent.name);
  const before = asked.length;
  await thread.ask("legacy__find x");
  await thread.ask("legacy__find y");
  assert.deepEqual(asked.slice(before).map(({ method }) => method), ["initialize", "notifications/initialized", "tools/call", "tools/call"]);
  assert.equal(asked.at(-1)?.headers["mcp-protocol-version"], "2025-06-18");
  assert.deepEqual(await thread.results(), ["found x", "found y"]);
});

test("killed during a call of a server: not called again, but where the server says that it may be, with the same key", async () => {
  const threads = [await bobbin.client.thread(agent.name), await bobbin.client.thread(agent.name)];
  const slow = (/** @type {string} */ path) => calls(path).filter(({ params }) => params.name === "slow");
  await threads[0]?.accepted("modern__slow x");
  await threads[1]?.accepted("hinted__slow y");
  await until("both are called", () => slow("/modern").length === 1 && slow("/hinted").length === 1);
  await bobbin.server.crash();
  for (const thread of threads) await thread.idle();
  const unknown = 'The runtime restarted while "modern__slow" was running. It may or may not have taken effect. Check before trying again.';
  assert.deepEqual(await threads[0]?.results(), [unknown]);
  assert.deepEqual(await threads[1]?.results(), ["slow y"]);
  assert.deepEqual([slow("/modern").length, slow("/hinted").length], [1, 2]);
  const keys = slow("/hinted").map(({ params }) => params._meta["dev.bobbin/call"]);
  assert.equal(keys[0], keys[1]);
});

test("tools that are listed while agents work: once for the threads of a process, and over a kill", async () => {
  const threads = [await bobbin.client.thread(lister.name), await bobbin.client.thread(lister.name)];
  for (const thread of threads) await thread.ask("live__find x");
  await bobbin.server.crash();
  await threads[0]?.ask("live__find y");
  assert.deepEqual(await threads[0]?.results(), ["found x", "found y"]);
  const lists = asked.filter(({ path, method }) => path === "/live" && method === "tools/list");
  assert.equal(lists.length, 1);
  assert.equal(lists[0]?.headers["mcp-protocol-version"], "2026-07-28");
});

test("GET /api/mcp says how servers answer, to administrators alone", async () => {
  const thread = await bobbin.client.thread(agent.name);
  await thread.ask("modern__find x");
  const list = async () => (await bobbin.client.send("GET", "/mcp")).json.servers;
  await until("the success is told", async () => (await list()).find((/** @type {{ name: string }} */ { name }) => name === "modern")?.last_success);
  const servers = await list();
  assert.deepEqual(servers.map((/** @type {{ name: string }} */ { name }) => name), ["hinted", "legacy", "live", "modern"]);
  await until("the root is told what was listed", async () => {
    const live = (await list()).find((/** @type {{ name: string }} */ { name }) => name === "live");
    if (live.protocol !== "2026-07-28") return false;
    assert.deepEqual(live.tools.map((/** @type {{ name: string }} */ { name }) => name).sort(), ["live__draw", "live__find", "live__slow"]);
    return true;
  });
  const { last_success, url, tools: shown, ...rest } = servers[3];
  assert.ok(Math.abs(last_success / 1e6 - Date.now() / 1e3) < 600, String(last_success));
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
  assert.deepEqual(rest, { name: "modern", list: "pinned", protocol: "2026-07-28", server: { name: "modern", version: "1" }, agents: [agent.name], last_error: null });
  assert.deepEqual(shown[2], { name: "modern__find", tool: "find", description: "find", tier: "side_effecting", approval: "never" });

  await thread.ask("modern__down");
  const failed = await until("the failure is told", async () => (await list())[3].last_error);
  assert.equal(failed.code, "mcp_unreachable");
  assert.match(failed.message, /503.*"modern".*down for today/);
  assert.ok((await list())[3].last_success >= last_success, "the failure does not undo it");
});
