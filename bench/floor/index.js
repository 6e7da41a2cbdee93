// The floor of the benchmark: the minimum that a conversation thread in a Durable Object must do, in plain JavaScript.
//
// It has the same input and output over the same transport as the product: a Worker that calls its object over RPC, the
// user row and the assistant row written (one row per call and result), an alarm where the product sets one, the same
// history sent, the upstream response read to its end and forwarded to sockets piece by piece. It has no recovery, no
// validation, no receipts, no log, no directory, no authentication. It measures the cost of the platform, so that the
// additional cost of the runtime is visible.
//
// A thread with children is a plain object beside plain objects: a row for each child, for each call of one and for each
// message between them, with one RPC call there and one back. A message's row is written before it is sent and deleted
// after it arrived, as anything that must survive requires; nothing sends it again.

import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";

/** @typedef {{ id: string, type: "function", function: { name: string, arguments: string } }} Call */
/** @typedef {{ role: string, content: string | null, tool_calls?: Call[], tool_call_id?: string }} Message */
/** @typedef {{ THREADS: DurableObjectNamespace<FloorThread>, MODEL_URL: string, MODEL_KEY: string }} Env */

/** The limit on the history, as in the product: bytes, and the share to keep when it is exceeded. */
const WINDOW_BYTES = 96 << 10;
const WINDOW_KEEP = 0.6;
const SYSTEM = { role: "system", content: "You are a careful assistant. Keep answers short.\n" };

/** @param {string} name @param {string} description @param {string} property */
const tool = (name, description, property) => ({
  type: "function",
  function: {
    name,
    description,
    parameters: { type: "object", properties: { [property]: { type: "string" } }, required: [property], additionalProperties: false },
    strict: true,
  },
});

/** The tools of each kind of thread. @type {Record<string, object[]>} */
const TOOLS = {
  bench: [tool("work", "Adds two numbers.", "expression")],
  family: [tool("waited", "Does one task.", "task"), tool("sent", "Does one task.", "task")],
  child: [],
};

/** The product would check on a child after this time. */
const CHECK_MS = 60_000;

/** @extends {DurableObject<Env>} */
export class FloorThread extends DurableObject {
  #sql;
  /** @type {Message[]} */
  #history = [];
  #bytes = 0;
  /** @type {Promise<(Message & { id: string }) | undefined> | undefined} */
  #flow;
  #kind = "bench";
  #name = "";
  /** Set for a child. @type {string | undefined} */
  #parent;
  /** Whether there are messages that the model has not read. */
  #unread = false;

  /** @param {DurableObjectState} ctx @param {Env} env */
  constructor(ctx, env) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
  }

  /** @param {string} name  the thread's own @param {string} kind @param {string} [parent] */
  create(name, kind, parent) {
    this.#name = name;
    this.#kind = kind;
    this.#parent = parent;
    this.#sql.exec(
      "CREATE TABLE messages (seq INTEGER PRIMARY KEY, role TEXT, content TEXT, calls TEXT, call_id TEXT, at INTEGER)",
    );
    if (kind === "bench") return;
    this.#sql.exec("CREATE TABLE meta (name TEXT, kind TEXT, parent TEXT)");
    this.#sql.exec("CREATE TABLE children (name TEXT PRIMARY KEY, state TEXT, call_id TEXT, at INTEGER) WITHOUT ROWID");
    this.#sql.exec("CREATE TABLE receipts (call_id TEXT PRIMARY KEY, state TEXT, at INTEGER) WITHOUT ROWID");
    this.#sql.exec("CREATE TABLE letters (id INTEGER PRIMARY KEY, target TEXT, body TEXT)");
    this.#sql.exec("INSERT INTO meta (name, kind, parent) VALUES (?, ?, ?)", name, kind, parent ?? null);
  }

  /**
   * Takes a message and starts its run. Returns at once, or with the run's answer.
   * @param {string} body
   * @param {boolean} wait
   */
  async post(body, wait) {
    const { content } = JSON.parse(body);
    const id = this.#store({ role: "user", content });
    await this.ctx.storage.setAlarm(Date.now());
    this.#broadcast({ type: "message_data", message_id: id, depth: 0, data: { id, role: "user", content } });
    this.#start();
    if (!wait) return JSON.stringify({ status: "queued", messageId: id });
    return JSON.stringify({ outcome: "completed", message: await this.#flow });
  }

  /** Waits for the run: as in the product, the alarm of a run stays with it until its end. */
  async alarm() {
    await this.#flow;
  }

  /** Handles a WebSocket upgrade. */
  fetch() {
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }

  webSocketMessage() {}

  #start() {
    this.#flow = this.#run().finally(() => (this.#flow = undefined));
  }

  /** Runs until there is an answer. Returns nothing if it waits for a child. */
  async #run() {
    for (;;) {
      this.#unread = false;
      const { content, calls, id } = await this.#ask();
      const message = { role: "assistant", content: content || null, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
      this.#store(message);
      this.#broadcast({ type: "message_data", message_id: id, depth: 0, data: { id, ...message } });
      if (calls.length === 0) {
        if (this.#parent !== undefined) this.#tell(this.#parent, content, (to) => to.report(this.#name, content));
        else if (this.#unread) continue;
        return { id, ...message };
      }
      for (const call of calls) {
        const args = JSON.parse(call.function.arguments);
        if (call.function.name !== "work") {
          const waits = call.function.name === "waited";
          this.#spawn(call.id, args.task, waits);
          if (waits) return undefined;
        }
        this.#result(call.id, call.function.name === "work" ? sum(args.expression) : "It was started.");
      }
    }
  }

  /** @param {string} callId @param {string} content */
  #result(callId, content) {
    const result = { role: "tool", tool_call_id: callId, content };
    const id = this.#store(result);
    this.#broadcast({ type: "message_data", message_id: id, depth: 0, data: { id, ...result } });
  }

  /** Creates a child. @param {string} callId @param {string} task @param {boolean} waits for its answer */
  #spawn(callId, task, waits) {
    const child = crypto.randomUUID();
    const now = Date.now();
    this.#sql.exec("INSERT INTO children (name, state, call_id, at) VALUES (?, 'creating', ?, ?)", child, waits ? callId : null, now);
    this.#sql.exec("INSERT INTO receipts (call_id, state, at) VALUES (?, ?, ?)", callId, waits ? "waiting" : "done", now);
    if (waits) void this.ctx.storage.setAlarm(now + CHECK_MS);
    this.#tell(child, task, async (to) => {
      await to.born(child, this.#name, task);
      this.#sql.exec("UPDATE children SET state = 'live' WHERE name = ? AND state = 'creating'", child);
    });
  }

  /**
   * Writes a message to the outbox, sends and deletes it.
   *
   * @param {string} target @param {string} body @param {(to: any) => Promise<unknown>} send
   */
  #tell(target, body, send) {
    const { id } = this.#sql.exec("INSERT INTO letters (target, body) VALUES (?, ?) RETURNING id", target, body).one();
    const to = this.env.THREADS.get(this.env.THREADS.idFromName(target));
    this.ctx.waitUntil(send(to).then(() => this.#sql.exec("DELETE FROM letters WHERE id = ?", id)));
  }

  /** Creates and starts this thread as a child. @param {string} name @param {string} parent @param {string} task */
  async born(name, parent, task) {
    this.create(name, "child", parent);
    this.#store({ role: "user", content: task });
    await this.ctx.storage.setAlarm(Date.now());
    this.#start();
  }

  /** Receives the result of a child. @param {string} child @param {string} text */
  async report(child, text) {
    const { call_id: callId } = this.#sql.exec("SELECT call_id FROM children WHERE name = ?", child).one();
    this.#sql.exec("UPDATE children SET state = 'terminated' WHERE name = ?", child);
    if (callId !== null) {
      this.#sql.exec("UPDATE receipts SET state = 'done' WHERE call_id = ?", callId);
      this.#result(String(callId), text);
    } else {
      const content = `Subagent ${child} has finished:\n\n${text}`;
      const id = this.#store({ role: "user", content });
      this.#broadcast({ type: "message_data", message_id: id, depth: 0, data: { id, role: "user", content } });
      this.#unread = true;
    }
    if (this.#flow) return;
    await this.ctx.storage.setAlarm(Date.now());
    this.#start();
  }

  /** One model call. */
  async #ask() {
    const id = `m_${this.#history.length}`;
    const tools = TOOLS[this.#kind] ?? [];
    const response = await fetch(`${this.env.MODEL_URL}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${this.env.MODEL_KEY}` },
      body: JSON.stringify({
        model: "bench",
        messages: [SYSTEM, ...this.#history],
        ...(tools.length > 0 ? { tools } : {}),
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

/** @param {string} expression */
function sum(expression) {
  const [a = 0, b = 0] = expression.split("+").map(Number);
  return String(a + b);
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
      const { agent_id: kind } = JSON.parse(await request.text());
      const threadId = crypto.randomUUID();
      await object(threadId).create(threadId, kind);
      return Response.json({ threadId });
    }
    if (action === "stream") return object(id).fetch(request);
    const wait = searchParams.get("wait") === "true";
    const body = await object(id).post(await request.text(), wait);
    return new Response(body, { status: wait ? 200 : 202, headers: { "content-type": "application/json" } });
  }
}
