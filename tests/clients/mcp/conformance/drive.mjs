// What the conformance suite runs as the client: `node drive.mjs URL` makes a folder of definitions with the server at that address,
// serves it, and has a thread call what the scenario asks for. A person of few words sits beside it: forms are accepted as they are,
// and links to sign in are followed.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { locked } from "../../../../package/lib/files.mjs";
import { bobbin } from "../../../cli/support/bobbin.mjs";
import { Client, Thread } from "../../../worker/support/client.mjs";
import { AgentsFolder } from "../../../worker/support/agents.mjs";
import { until } from "../../../worker/support/poll.mjs";
import { checkout, Server } from "../../../worker/support/server.mjs";

const url = process.argv[2] ?? "";
const { MCP_CONFORMANCE_SCENARIO: scenario = "", MCP_CONFORMANCE_PROTOCOL_VERSION: version = "", MCP_CONFORMANCE_CONTEXT: given = "{}" } = process.env;
const context = JSON.parse(given);
/** The address of our description of ourselves, as the suite knows it. */
const CLIENT_ID = "https://conformance-test.local/client-metadata.json";

/** Arguments by tool; others get none. @type {Record<string, object>} */
const ARGUMENTS = { add_numbers: { a: 2, b: 3 }, valid_tool: { region: "us-west1" } };
/** Listed when a run begins; or pinned before, by the command line, which is a client as well, and has nobody beside it who signs in. */
const list = scenario.startsWith("auth/") ? "live" : (process.env["BOBBIN_CONFORMANCE_LIST"] ?? "pinned");
/** Longest that a message may take. */
const MOST_MS = 25_000;

function auth() {
  if (!scenario.startsWith("auth/")) return {};
  // A deployment on this machine has no description that anybody could fetch: it registers, where its id is not known before.
  const { client_id: clientId = scenario === "auth/basic-cimd" ? CLIENT_ID : undefined, client_secret: secret } = context;
  if (scenario.startsWith("auth/client-credentials")) return { auth: { type: "client_credentials", clientId, clientSecret: "{{env CLIENT_SECRET}}" } };
  return { auth: { type: "oauth", ...(clientId && { clientId }), ...(secret && { clientSecret: "{{env CLIENT_SECRET}}" }) } };
}

const folder = new AgentsFolder({
  models: { demo: { provider: "demo", model: "demo" } },
  prompts: { p: { toolDescription: "Calls.", model: "demo", includeChat: true, includePastTools: true, tools: ["mcp:peer"], prompt: "You call what you are told to." } },
  agents: { a: { type: "ai_human", sideA: { prompt: "p" } } },
});
const secrets = context.client_secret === undefined ? {} : { CLIENT_SECRET: context.client_secret };
folder.json("mcp/peer.json", {
  url,
  list,
  timeoutMs: 20_000,
  ...(version !== "2026-07-28" && { protocol: "2025-11-25" }),
  ...(context.client_secret !== undefined && { variables: [{ name: "CLIENT_SECRET", type: "secret" }] }),
  ...auth(),
});
// The suite begins all its scenarios at once.
await locked(join(checkout, ".bobbin/conformance.lock"), async () => {
  if (list === "pinned") {
    const { code, out, err } = await bobbin(["mcp", "pull", "--agents", folder.path]);
    console.error(out, err);
    // A server without a tool that is taken has no agent.
    if (code !== 0) return;
  }
  const server = await Server.start({ agents: folder.path, vars: { ...secrets, BOBBIN_TOKEN_SECRET: "a-secret-of-the-conformance-suite", BOBBIN_ENCRYPTION_KEYS: `k1=${Buffer.alloc(32, 7).toString("base64")}` } });

  try {
    const client = new Client(server.base);
    const thread = await client.thread("a");
    // The list is read when a run begins.
    await said(thread, "hello");
    // All servers that want to know who asks have the same tool.
    const tools = scenario.startsWith("auth/") ? [{ tool: "test-tool" }] : list === "pinned" ? JSON.parse(readFileSync(`${folder.path}/mcp/peer.tools.json`, "utf8")).tools.map((/** @type {any} */ { name, inputSchema }) => ({ tool: name, schema: inputSchema })) : ((await client.send("GET", "/mcp")).json.servers[0]?.tools ?? []);
    console.error(`tools: ${tools.map((/** @type {any} */ { tool }) => tool).join(", ")}`);
    for (const { tool, args } of context.toolCalls?.map((/** @type {any} */ one) => ({ tool: one.name, args: one.arguments })) ?? tools.map((/** @type {any} */ one) => ({ tool: one.tool, args: argumentsOf(one.tool, tools) }))) {
      await said(thread, `call peer__${tool.replace(/[^A-Za-z0-9_-]/g, "_")} ${JSON.stringify(args)}`);
    }
  } finally {
    await server.remove();
    folder.remove();
  }
});

/** @param {string} tool @param {{ tool: string, schema?: object }[]} tools */
function argumentsOf(tool, tools) {
  // It wants the schema back that another one was listed with.
  if (tool === "json_schema_echo") return { schema: tools.find((one) => one.tool === "json_schema_2020_12_tool")?.schema };
  return ARGUMENTS[tool] ?? {};
}

/** Says it, and answers what is asked until the run is over. @param {Thread} thread @param {string} text */
async function said(thread, text) {
  await thread.accepted(text);
  const answered = new Set();
  await until(
    `“${text}” is over`,
    async () => {
      for (const wait of (await thread.send("GET", "/waits")).json.waits) {
        if (answered.has(wait.id)) continue;
        answered.add(wait.id);
        await answer(thread, wait);
      }
      return (await thread.facts()).state === "idle";
    },
    { withinMs: MOST_MS, everyMs: 50 },
  );
  const { messages } = await thread.page({ limit: 4 });
  console.error(`${text.slice(0, 200)} → ${String(messages.at(-1)?.content).slice(0, 300)}`);
}

/** @param {Thread} thread @param {any} wait */
async function answer(thread, wait) {
  console.error(`asked: ${JSON.stringify(wait).slice(0, 800)}`);
  if (wait.kind === "sign_in") {
    if (await signIn(wait.url)) return;
    // What came back was not let in, and there is nothing else to try.
    const denied = await thread.send("POST", `/waits/${wait.id}`, { decision: "deny" });
    assert.equal(denied.status, 200, denied.text);
    return;
  }
  if (wait.kind !== "elicitation") return;
  const answered = await thread.send("POST", `/waits/${wait.id}`, { decision: "answer", ...(wait.form && { content: content(wait.form) }) });
  assert.equal(answered.status, 200, answered.text);
}

/** What a form wants at least. @param {any} form */
function content({ properties = {}, required = [] }) {
  const of = (/** @type {any} */ { type, default: initial, enum: values }) => initial ?? values?.[0] ?? { boolean: true, string: "text", number: 1, integer: 1, array: [] }[/** @type {string} */ (type)];
  return Object.fromEntries(Object.entries(properties).flatMap(([name, field]) => (required.includes(name) || field.default === undefined ? [[name, of(field)]] : [])));
}

/** A browser, as far as it is needed: the authorization server sends it back to us. Whether it was let in. @param {string} link */
async function signIn(link) {
  let next = link;
  for (let hops = 0; hops < 6; hops++) {
    const response = await fetch(next, { redirect: "manual", headers: { accept: "text/html" } });
    console.error(`sign in: ${next.slice(0, 300)} → ${response.status}`);
    const to = response.headers.get("location");
    if (to === null) return response.status === 200;
    next = new URL(to, next).href;
  }
  return false;
}
