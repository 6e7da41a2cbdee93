// What MCP's official clients of both lines must see of agents as tools: calm, and again with the server killed while runs go on, with the
// same assertions.

import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { hang, say, use } from "../../worker/support/model.mjs";
import { chance, sleep, until } from "../../worker/support/poll.mjs";
import { suite } from "../../worker/support/suite.mjs";

const KEY = "key-of-alice";
const TASKS = "io.modelcontextprotocol/tasks";
const INFO = { name: "tests", version: "1.0.0" };

/** @param {boolean} killed */
export function mcpServer(killed) {
  const bobbin = suite({
    key: KEY,
    vars: {
      BOBBIN_API_KEYS: `key-of-all=admin,${KEY}=owner:alice`,
      BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef",
      BOBBIN_SURFACES: "mcp",
    },
  });
  const paid = bobbin.tool("pay", ({ args }) => `paid ${args["amount"]}`, { approval: "always", idempotent: true });
  bobbin.tool("lookup", async () => (await sleep(200), "found"), { idempotent: true });
  const after = (/** @type {Record<string, any>[]} */ messages) => messages.at(-1)?.role === "tool";
  bobbin.agent("echo", ({ messages, last }) => say(`${messages.filter(({ role }) => role === "user").length}: ${last}`, { chunks: 3, everyMs: 20 }));
  bobbin.agent("looker", ({ messages }) => (after(messages) ? say("It is found.") : use({ name: "lookup", args: { of: "it" } })), { tools: ["lookup"] });
  bobbin.agent("payer", ({ messages }) => (after(messages) ? say(`So: ${messages.at(-1)?.["content"]}`) : use({ name: "pay", args: { amount: 5 } })), { tools: ["pay"] });
  bobbin.agent("asker", ({ messages }) => (after(messages) ? say(`So: ${messages.at(-1)?.["content"]}`) : use({ name: "ask_user", args: { question: "Tea or coffee?", choices: ["Tea", "Coffee"] } })), {
    tools: ["ask_user"],
  });
  const hanging = bobbin.agent("hanging", () => hang());

  const random = chance(`mcp-server ${killed}`);
  const disturb = async () => {
    if (!killed) return;
    await sleep(random.between(0, 500));
    await bobbin.server.crash();
  };
  const test = (/** @type {string} */ text, /** @type {() => Promise<void>} */ body) => bobbin.test(`mcp-server${killed ? ", killed" : ""}: ${text}`, body);
  const address = () => new URL(`${bobbin.server.base}/mcp`);
  const requestInit = { headers: { authorization: `Bearer ${KEY}` } };

  /** Asks until it is answered: what is asked is made once, however often it is said. @template T @param {() => Promise<T>} ask @returns {Promise<T>} */
  async function patient(ask) {
    for (let tries = 0; ; tries += 1) {
      try {
        return await ask();
      } catch (error) {
        const { code, data } = /** @type {{ code?: unknown, data?: { status?: number } }} */ (error);
        const said = typeof code === "number" && code < 0 && (data?.status ?? 0) < 500;
        if (!killed || tries > 40 || said) throw error;
        await sleep(250);
      }
    }
  }

  /** A client of the line of today. @param {object} [capabilities] @param {"auto" | "legacy"} [mode] */
  async function today(capabilities = {}, mode = "auto") {
    const client = new Client(INFO, { capabilities, versionNegotiation: { mode } });
    await patient(() => client.connect(new StreamableHTTPClientTransport(address(), { requestInit })));
    return client;
  }

  /** One of the line before. @param {object} [capabilities] */
  async function before(capabilities = {}) {
    const client = new OldClient(INFO, { capabilities });
    await patient(() => client.connect(/** @type {any} */ (new OldTransport(address(), { requestInit }))));
    return client;
  }

  let made = 0;
  /** A call of a tool, named so that it is made once. @param {any} client @param {string} name @param {object} args @param {object} [options] @returns {Promise<any>} */
  const call = (client, name, args, options) => {
    const params = { name, arguments: args, _meta: { "dev.bobbin/call": `call-${killed}-${(made += 1)}` } };
    const old = client instanceof OldClient;
    return patient(() => (old ? client.callTool(params, undefined, options) : client.callTool(params, options)));
  };
  const textOf = (/** @type {any} */ result) => result.content[0].text;
  /** How often something was paid, whatever was sent twice. */
  const payments = () => new Set(paid.received.map(({ key }) => key)).size;

  test("both lines find the agents, and talk with one in a thread", async () => {
    const clients = /** @type {[string, any][]} */ ([["today", await today()], ["today, the older protocol", await today({}, "legacy")], ["before", await before()]]);
    for (const [line, client] of clients) {
      const { tools } = /** @type {any} */ (await patient(() => client.listTools()));
      assert.ok(tools.some((/** @type {any} */ { name }) => name === "ask_echo"), line);
      const first = await call(client, "ask_echo", { message: "one" });
      assert.equal(textOf(first), "1: one", line);
      const disturbed = disturb();
      const second = await call(client, "ask_echo", { message: "two", thread: first.structuredContent.thread });
      await disturbed;
      assert.deepEqual([textOf(second), second.structuredContent.thread], ["2: two", first.structuredContent.thread], line);
      const missing = await call(client, "ask_echo", {});
      assert.equal(missing.isError, true, line);
      await assert.rejects(patient(() => client.callTool({ name: "ask_nobody", arguments: {} })), /Unknown tool/);
      await client.close();
    }
    assert.equal((await today()).getNegotiatedProtocolVersion?.() ?? "2026-07-28", "2026-07-28");
  });

  test("a client is told how far a run is", async () => {
    for (const client of [await today(), await before()]) {
      const told = /** @type {any[]} */ ([]);
      const result = await call(client, "ask_looker", { message: "go" }, { onprogress: (/** @type {any} */ progress) => void told.push(progress), resetTimeoutOnProgress: true });
      assert.equal(textOf(result), "It is found.");
      assert.ok(told.some(({ message }) => /lookup/.test(message)), JSON.stringify(told));
      await client.close();
    }
  });

  test("an approval and a question are forms of the client's user", async () => {
    const client = await today({ elicitation: {} });
    const asked = /** @type {any[]} */ ([]);
    client.setRequestHandler("elicitation/create", async (/** @type {any} */ request) => {
      asked.push(request.params);
      const { properties } = request.params.requestedSchema;
      return { action: "accept", content: "approve" in properties ? { approve: true } : { answer: "Coffee" } };
    });
    const start = payments();
    const disturbed = disturb();
    const result = await call(client, "ask_payer", { message: "go" });
    await disturbed;
    assert.deepEqual([textOf(result), result.structuredContent.outcome], ["So: paid 5", "completed"]);
    assert.equal(payments() - start, 1);
    assert.match(asked[0].message, /pay\(\{"amount":5\}\)/);
    assert.match(textOf(await call(client, "ask_asker", { message: "go" })), /So: .*Coffee/);
    client.setRequestHandler("elicitation/create", async () => ({ action: "decline" }));
    assert.match(textOf(await call(client, "ask_payer", { message: "go" })), /So: .*denied/i);
    assert.equal(payments() - start, 1, "nothing was paid that was declined");
    await client.close();
  });

  test("an older client that shows forms is asked on the stream of its call", async () => {
    const clients = /** @type {[any, any][]} */ ([
      [await before({ elicitation: {} }), ElicitRequestSchema],
      [await today({ elicitation: {} }, "legacy"), "elicitation/create"],
    ]);
    for (const [client, schema] of clients) {
      const start = payments();
      const asked = /** @type {any[]} */ ([]);
      client.setRequestHandler(schema, async (/** @type {any} */ request) => (asked.push(request.params), { action: "accept", content: { approve: true } }));
      const disturbed = disturb();
      const result = await call(client, "ask_payer", { message: "go" });
      await disturbed;
      assert.deepEqual([textOf(result), payments() - start], ["So: paid 5", 1]);
      assert.match(asked[0].message, /pay\(\{"amount":5\}\)/);
      client.setRequestHandler(schema, async () => ({ action: "decline" }));
      assert.match(textOf(await call(client, "ask_payer", { message: "go" })), /So: .*denied/i);
      assert.equal(payments() - start, 1, "nothing was paid that was declined");
      await client.close();
    }
  });

  test("an older client is told what waits, and passes the answer on", async () => {
    for (const client of [await before(), await today({}, "legacy")]) {
      const start = payments();
      const parked = await call(client, "ask_payer", { message: "go" });
      const { thread, outcome, pending } = parked.structuredContent;
      assert.deepEqual([outcome, pending[0].tool], ["parked", "pay"]);
      const disturbed = disturb();
      await call(client, "thread_respond", { thread, responses: [{ id: pending[0].id, decision: "approve" }] });
      await disturbed;
      let seen = /** @type {any} */ (undefined);
      await until("the run is over", async () => {
        seen = await call(client, "thread_get", { thread, wait_ms: 5_000 });
        return seen.structuredContent.state === "idle";
      });
      assert.deepEqual([seen.structuredContent.reply, payments() - start], ["So: paid 5", 1]);
      await client.close();
    }
  });

  test("work that was started without waiting goes on without its client", async () => {
    const first = await before();
    const { structuredContent } = await call(first, "thread_start", { agent: "looker", message: "go" });
    await first.close();
    await disturb();
    const second = await today();
    let seen = /** @type {any} */ (undefined);
    await until("the run is over", async () => {
      seen = await call(second, "thread_get", { thread: structuredContent.thread, wait_ms: 5_000 });
      return seen.structuredContent.state === "idle";
    });
    assert.equal(seen.structuredContent.reply, "It is found.");
    await second.close();
  });

  test("a call that is cancelled stops its run", async () => {
    const client = await today();
    const asked = hanging.model.asked.length;
    const controller = new AbortController();
    const thread = `cancelled-${killed}`;
    const called = client.callTool({ name: "ask_hanging", arguments: { message: "go", thread } }, { signal: controller.signal });
    called.catch(() => {});
    await until("the model is asked", () => hanging.model.asked.length > asked);
    controller.abort();
    await assert.rejects(called);
    const stopped = async () => (await bobbin.client.send("GET", `/threads/key:${thread}/runs?limit=1`)).json.runs[0].reason === "stopped_by_user";
    await until("the run is stopped", stopped, { withinMs: 60_000 });
    await client.close();
  });

  test("the package for tasks follows a run to its end, and answers what it asks", async () => {
    const capabilities = { elicitation: { form: {} }, extensions: { [TASKS]: {} } };
    const client = await today(capabilities);
    const framing = { protocolVersion: "2026-07-28", clientInfo: INFO, clientCapabilities: capabilities };
    let ids = 0;
    /** What a host sends for it, as the package for clients knows no tasks. @param {any} request */
    const dispatch = (request) =>
      patient(async () => {
        const { method, params } = request;
        const name = params?.name ?? params?.taskId;
        const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...(name === undefined ? {} : { "mcp-name": name }) };
        const message = { jsonrpc: "2.0", id: `task-${(ids += 1)}`, ...request };
        const answer = await fetch(address(), { method: "POST", headers: { ...headers, ...requestInit.headers }, body: JSON.stringify(message) });
        if (answer.status >= 500) throw new Error(`${answer.status}`);
        const text = await answer.text();
        const json = answer.headers.get("content-type")?.startsWith("text/event-stream") ? /^data: (\{.*\})$/m.exec(text)?.[1] : text;
        const { result, error } = JSON.parse(json ?? "");
        return error ? { kind: /** @type {const} */ ("error"), error } : { kind: /** @type {const} */ ("result"), result };
      });
    const session = createTaskSessionFromClient(client, {
      endpointId: "bobbin",
      rawDispatch: /** @type {any} */ (dispatch),
      v2RequestFraming: /** @type {any} */ (framing),
      onInputRequest: /** @type {any} */ (async (/** @type {any} */ request) => (assert.match(JSON.stringify(request), /pay/), { action: "accept", content: { approve: true } })),
    });
    const start = payments();
    const execution = await session.callTool("ask_payer", { message: "go" }, { metadata: { "dev.bobbin/call": `task-${killed}` } });
    const disturbed = disturb();
    const { outcome } = await execution.settle();
    await disturbed;
    const result = /** @type {any} */ (resultFromTaskOutcome(outcome));
    assert.deepEqual([textOf(result), payments() - start], ["So: paid 5", 1]);
    await session.close();
    await client.close();
  });
}
