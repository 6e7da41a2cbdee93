// Rows of MCP: a step with a tool of an MCP server, in each version of the protocol, compared with a tool over plain HTTP.
// All use the same server, which responds at once, and the same threads and models.

import { once } from "node:events";
import http from "node:http";
import { wholeBody } from "../tests/worker/support/http.mjs";
import { interleaved, ratio, timed } from "./measure.mjs";
import { startProduct } from "./sides.mjs";

/**
 * @typedef {import("./rows.mjs").Bench} Bench
 * @typedef {import("./measure.mjs").Result} Result
 * @typedef {import("./sides.mjs").Definitions} Definitions
 */

/** Steps with a call per run. */
const STEPS = 10;
const FOUND = "There are 42 of them in the store.";
const ARGS = { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] };

/** Serves tool calls at `/http`, at `/modern` (2026-07-28, no sessions), and at `/legacy` (2025-11-25, with a session). */
async function desk() {
  const server = http.createServer(async (request, response) => {
    const body = await wholeBody(request);
    if (body === undefined) return;
    const json = (/** @type {object} */ value, /** @type {http.OutgoingHttpHeaders} */ headers = {}) =>
      response.writeHead(200, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
    if (request.url === "/http") return json({ content: FOUND });
    const { id, method } = JSON.parse(String(body));
    const result = (/** @type {object} */ value, /** @type {http.OutgoingHttpHeaders} */ headers = {}) => json({ jsonrpc: "2.0", id, result: value }, headers);
    if (method === "initialize") {
      const said = { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "desk", version: "1" } };
      return result(said, { "mcp-session-id": "session-1" });
    }
    if (id === undefined) return response.writeHead(202).end();
    return result({ resultType: "complete", content: [{ type: "text", text: FOUND }] });
  });
  server.keepAliveTimeout = 600_000;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, url: `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}` };
}

/** @param {string} url @returns {Definitions} */
function asking(url) {
  const pinned = (/** @type {string} */ protocol) => ({
    protocol,
    server: { name: "desk", version: "1" },
    tools: [{ name: "look_up", description: "Looks something up.", inputSchema: ARGS, annotations: { readOnlyHint: true } }],
  });
  return {
    mcp: {
      modern: { url: `${url}/modern` },
      "modern.tools": pinned("2026-07-28"),
      legacy: { url: `${url}/legacy` },
      "legacy.tools": pinned("2025-11-25"),
    },
    tools: { look_up: { description: "Looks something up.", args: ARGS, idempotent: true, run: { http: { url: `${url}/http` } } } },
    prompts: {
      looking: {
        toolDescription: "Looks things up.",
        model: "bench",
        includeChat: true,
        includePastTools: true,
        prompt: "You are a careful assistant. Keep answers short.",
        tools: ["look_up", "mcp:modern", "mcp:legacy"],
      },
    },
    agents: { looking: { type: "ai_human", sideA: { prompt: "looking", maxSteps: 250 } } },
  };
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function mcp({ model, times }) {
  const { server, url } = await desk();
  const { side, end } = await startProduct(model.url, {}, asking(url));
  try {
    const run = async (/** @type {string} */ wishes) => {
      const thread = await side.thread("looking");
      await side.post(thread, "", true);
      return timed(() => side.post(thread, wishes, true));
    };
    const step = (/** @type {string} */ wish) => async () => ((await run(`${wish}=${STEPS}`)) - (await run(""))) / STEPS;
    const steps = await interleaved("a step with an MCP call", times(40), {
      http: step("http"),
      modern: step("modern"),
      legacy: step("legacy"),
    });
    const to = (/** @type {string} */ what, /** @type {number} */ product) => ({
      ...ratio(what, "ms", { product, floor: steps.http }, 1.3),
      against: "an HTTP tool",
    });
    return [to("tool step with an MCP call, 2026-07-28", steps.modern), to("tool step with an MCP call, 2025-11-25", steps.legacy)];
  } finally {
    await end();
    server.closeAllConnections();
    server.close();
  }
}
