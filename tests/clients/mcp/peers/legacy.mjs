// A server of 2025-11-25, by the official package of that line: sessions, streams, and questions on an open stream.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, isInitializeRequest, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { program, serve } from "./serve.mjs";
import { args, FORM, PLAIN, text } from "./tools.mjs";

/** @typedef {import("./tools.mjs").Books} Books */

/** @param {Parameters<typeof serve>[1] & { sessions?: boolean }} [options]   without sessions each request stands alone */
export const legacy = ({ sessions = true, ...options } = {}) =>
  serve((books) => {
    /** @type {Map<string, StreamableHTTPServerTransport>} */
    const open = new Map();
    return async (request, response, body) => {
      const parsed = body.length > 0 ? JSON.parse(body.toString("utf8")) : undefined;
      const id = request.headers["mcp-session-id"];
      let transport = typeof id === "string" ? open.get(id) : undefined;
      if (sessions && transport === undefined && !isInitializeRequest(parsed)) {
        // What the official server does with a request that is no session's: 404 where one is named, else 400.
        const status = id === undefined ? 400 : 404;
        const error = { code: id === undefined ? -32000 : -32001, message: id === undefined ? "Bad Request: No valid session ID provided" : "Session not found" };
        return void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", error, id: null }));
      }
      if (transport === undefined) {
        const made = new StreamableHTTPServerTransport(
          sessions
            ? { sessionIdGenerator: randomUUID, onsessioninitialized: (session) => void open.set(session, made), eventStore: new Events(), retryInterval: 200 }
            : { sessionIdGenerator: undefined },
        );
        await server(books).connect(/** @type {any} */ (made));
        transport = made;
      }
      await transport.handleRequest(request, response, parsed);
    };
  }, options);

/** What was sent, for streams that are taken up again. */
class Events {
  /** @type {{ id: string, stream: string, message: any }[]} */
  #events = [];

  /** @param {string} stream @param {any} message */
  async storeEvent(stream, message) {
    const id = `${stream}_${this.#events.length}`;
    this.#events.push({ id, stream, message });
    return id;
  }

  /** @param {string} last @param {{ send: (id: string, message: any) => Promise<void> }} to */
  async replayEventsAfter(last, { send }) {
    const at = this.#events.findIndex(({ id }) => id === last);
    const { stream = "" } = this.#events[at] ?? {};
    for (const event of this.#events.slice(at + 1)) if (event.stream === stream) await send(event.id, event.message);
    return stream;
  }
}

/** @param {Books} books */
function server(books) {
  const made = new Server({ name: "legacy-peer", version: "0.9.0" }, { capabilities: { tools: {} } });
  const own = {
    ask: { description: "Asks a person by a form, on the open stream.", inputSchema: args({}) },
    progress: { description: "Tells how far it is.", inputSchema: args({}) },
    // What follows is there for whoever takes the stream up again.
    part: { description: "Ends its stream before it has answered.", inputSchema: args({}) },
  };
  // Two pages, as a server of many tools has them.
  made.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    const all = Object.entries({ ...PLAIN, ...own }).map(([name, { run: _, ...about }]) => /** @type {any} */ ({ name, ...about }));
    return params?.cursor === "page 2" ? { tools: all.slice(5) } : { tools: all.slice(0, 5), nextCursor: "page 2" };
  });
  made.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const { name, arguments: given = {}, _meta: meta } = params;
    books.note(name, given, { meta });
    const plain = PLAIN[name];
    if (plain !== undefined) return plain.run(given);
    if (name === "ask") {
      const { action, content } = await made.elicitInput({ message: "Who are you?", requestedSchema: /** @type {any} */ (FORM) });
      return text(`${action}: ${JSON.stringify(content ?? null)}`);
    }
    if (name === "part") {
      extra.closeSSEStream?.();
      await sleep(500);
      return text("It came later.");
    }
    if (name !== "progress") throw Object.assign(new Error(`Unknown tool: ${name}`), { code: -32602 });
    const progressToken = meta?.progressToken;
    for (let progress = 1; progress <= 3; progress++) {
      if (progressToken !== undefined) await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 3 } });
    }
    return text("It is done.");
  });
  return made;
}

await program(import.meta.url, legacy);
