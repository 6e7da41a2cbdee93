// The floor of the benchmark: the least that a conversation thread in a Durable Object has to do, in plain JavaScript.
//
// The same input and output over the same transport as the product: a Worker that calls its object over RPC, the user
// row and the assistant row written (one row per call and result), an alarm set where the product sets one, the same
// history sent, the upstream answer read to its end and sent on to sockets piece by piece. Nothing else: no recovery,
// no validation, no receipts, no log, no directory, no authentication. It shows what the platform costs, so that what
// the runtime costs on top can be seen.

import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";

/** @typedef {{ id: string, type: "function", function: { name: string, arguments: string } }} Call */
/** @typedef {{ role: string, content: string | null, tool_calls?: Call[], tool_call_id?: string }} Message */
/** @typedef {{ THREADS: DurableObjectNamespace<FloorThread>, MODEL_URL: string, MODEL_KEY: string }} Env */

/** History that is sent at most, as in the product: bytes, and the share that is kept when it grows beyond. */
const WINDOW_BYTES = 96 << 10;
const WINDOW_KEEP = 0.6;
const SYSTEM = { role: "system", content: "You are a careful assistant. Keep answers short.\n" };
const TOOL = {
  type: "function",
  function: {
    name: "work",
    description: "Adds two numbers.",
    parameters: {
      type: "object",
      properties: { expression: { type: "string" } },
      required: ["expression"],
      additionalProperties: false,
    },
    strict: true,
  },
};

/** @extends {DurableObject<Env>} */
export class FloorThread extends DurableObject {
  #sql;
  /** @type {Message[]} */
  #history = [];
  #bytes = 0;
  /** @type {Promise<Message & { id: string }> | undefined} */
  #flow;

  /** @param {DurableObjectState} ctx @param {Env} env */
  constructor(ctx, env) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
  }

  create() {
    this.#sql.exec(
      "CREATE TABLE messages (seq INTEGER PRIMARY KEY, role TEXT, content TEXT, calls TEXT, call_id TEXT, at INTEGER)",
    );
  }

  /**
   * Takes a message, starts its run, and answers at once, or with the run's answer.
   * @param {string} body
   * @param {boolean} wait
   */
  async post(body, wait) {
    const { content } = JSON.parse(body);
    const id = this.#store({ role: "user", content });
    await this.ctx.storage.setAlarm(Date.now());
    this.#broadcast({ type: "message_data", message_id: id, depth: 0, data: { id, role: "user", content } });
    this.#flow = this.#run().finally(() => (this.#flow = undefined));
    if (!wait) return JSON.stringify({ status: "queued", messageId: id });
    return JSON.stringify({ outcome: "completed", message: await this.#flow });
  }

  /** As in the product, the alarm of a run stays with it until its end. */
  async alarm() {
    await this.#flow;
  }

  /** A WebSocket upgrade. */
  fetch() {
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }

  webSocketMessage() {}

  async #run() {
    for (;;) {
      const { content, calls, id } = await this.#ask();
      const message = { role: "assistant", content: content || null, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
      this.#store(message);
      this.#broadcast({ type: "message_data", message_id: id, depth: 0, data: { id, ...message } });
      if (calls.length === 0) return { id, ...message };
      for (const call of calls) {
        const { expression } = JSON.parse(call.function.arguments);
        const [a, b] = expression.split("+").map(Number);
        const result = { role: "tool", tool_call_id: call.id, content: String(a + b) };
        const seq = this.#store(result);
        this.#broadcast({ type: "message_data", message_id: seq, depth: 0, data: result });
      }
    }
  }

  /** One model call. */
  async #ask() {
    const id = `m_${this.#history.length}`;
    const response = await fetch(`${this.env.MODEL_URL}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${this.env.MODEL_KEY}` },
      body: JSON.stringify({
        model: "bench",
        messages: [SYSTEM, ...this.#history],
        tools: [TOOL],
        stream: true,
        stream_options: { include_usage: true },
      }),
    });
    if (!response.ok || !response.body) throw new Error(`model ${response.status}: ${await response.text()}`);
    let content = "";
    /** @type {Call[]} */
    const calls = [];
    let rest = "";
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      rest += text;
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        const data = rest.slice(6, end);
        rest = rest.slice(end + 2);
        if (data === "[DONE]") continue;
        const delta = JSON.parse(data).choices[0]?.delta;
        if (delta?.content) {
          this.#broadcast({ type: "message_chunk", message_id: id, depth: 0, chunk: delta.content });
          content += delta.content;
        }
        for (const { index, id: callId, function: part } of delta?.tool_calls ?? []) {
          calls[index] ??= { id: callId, type: "function", function: { name: part.name, arguments: "" } };
          calls[index].function.arguments += part.arguments ?? "";
        }
      }
    }
    return { id, content, calls };
  }

  /** @param {Message} message @returns {string} its id */
  #store(message) {
    const { role, content, tool_calls: calls, tool_call_id: callId } = message;
    this.#sql.exec(
      "INSERT INTO messages (role, content, calls, call_id, at) VALUES (?, ?, ?, ?, ?)",
      role,
      content,
      calls ? JSON.stringify(calls) : null,
      callId ?? null,
      Date.now(),
    );
    this.#history.push(message);
    this.#bytes += size(message);
    if (this.#bytes > WINDOW_BYTES) this.#shorten();
    return `m_${this.#history.length}`;
  }

  /** Drops the oldest turns until the window is down to the kept share. */
  #shorten() {
    const far = () => this.#bytes > WINDOW_BYTES * WINDOW_KEEP || this.#history[0]?.role !== "user";
    while (this.#history.length > 1 && far()) {
      const gone = this.#history.shift();
      if (gone) this.#bytes -= size(gone);
    }
  }

  /** @param {object} frame */
  #broadcast(frame) {
    const sockets = this.ctx.getWebSockets();
    if (sockets.length === 0) return;
    const text = JSON.stringify(frame);
    for (const socket of sockets) socket.send(text);
  }
}

/** @param {Message} message */
const size = (message) => (message.content?.length ?? 0) + (message.tool_calls ? JSON.stringify(message.tool_calls).length : 0);

/** @extends {WorkerEntrypoint<Env>} */
export default class extends WorkerEntrypoint {
  /** @param {Request} request */
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const [, , , id, action] = pathname.split("/");
    if (pathname === "/healthz") return new Response("ok");
    /** @param {string} name */
    const object = (name) => this.env.THREADS.get(this.env.THREADS.idFromName(name));
    if (id === undefined) {
      await request.text();
      const threadId = crypto.randomUUID();
      await object(threadId).create();
      return Response.json({ threadId });
    }
    if (action === "stream") return object(id).fetch(request);
    const wait = searchParams.get("wait") === "true";
    const body = await object(id).post(await request.text(), wait);
    return new Response(body, { status: wait ? 200 : 202, headers: { "content-type": "application/json" } });
  }
}
