// A model provider: a real HTTP server with chat completions that follows a script, records every request, and rejects
// what a strict provider would reject.

import { once } from "node:events";
import { http } from "../../../package/lib/node-http.mjs";
import { wholeBody } from "./http.mjs";
import { problems } from "./model-check.mjs";
import { sleep, until } from "./poll.mjs";

/** The bearer token of every request. */
export const MODEL_KEY = "model-key-of-the-tests";

/**
 * @typedef {object} Call
 * @property {string} name
 * @property {object | string} args  a string is sent unchanged, even if it is malformed
 * @property {string} [id]
 *
 * @typedef {object} Asked  a request to the model
 * @property {number} n                          1 for the first of this script
 * @property {Record<string, any>} body
 * @property {Record<string, any>[]} messages    `body.messages`
 * @property {string} last                       the text of the last message whose role is not system
 * @property {import("node:http").IncomingHttpHeaders} headers
 * @property {number} at                         the time of arrival, ms since 1970
 * @property {boolean} gone                      the client closed the connection before the answer was complete
 *
 * @typedef {(out: Out, asked: Asked) => void | Promise<void>} Reply
 * @typedef {(asked: Asked) => Reply} Script
 */

/** A response that is written piece by piece. Writing to a disconnected client does nothing. */
export class Out {
  /** @param {import("node:http").ServerResponse} response @param {Asked} asked */
  constructor(response, asked) {
    this.response = response;
    this.asked = asked;
    this.id = `chatcmpl-${asked.n}`;
    this.calls = 0;
    /** Resolves when either side closes the connection. */
    this.closed = once(response, "close").then(() => {});
  }

  /** @param {object} delta @param {string | null} [finish] @returns {Promise<void>} */
  async chunk(delta, finish = null) {
    await this.line({
      id: this.id,
      object: "chat.completion.chunk",
      created: 1795300000,
      model: this.asked.body.model,
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
  }

  /** @param {object} data @returns {Promise<void>} */
  async line(data) {
    this.open();
    if (this.response.writable) this.response.write(`data: ${JSON.stringify(data)}\n\n`);
  }

  /** Sends the headers, so that the client knows that the response has begun. */
  open() {
    if (!this.response.headersSent && this.response.writable) {
      this.response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
      this.response.flushHeaders();
    }
  }

  /** Sends a piece of text. @param {string} text */
  text(text) {
    return this.chunk({ content: text });
  }

  /** Sends a whole tool call. @param {Call} call */
  async call({ name, args, id }) {
    const index = this.calls++;
    const text = typeof args === "string" ? args : JSON.stringify(args);
    const callId = id ?? `call_${this.asked.n}_${index}_${Math.random().toString(36).slice(2, 8)}`;
    await this.chunk({ tool_calls: [{ index, id: callId, type: "function", function: { name, arguments: "" } }] });
    // Send the arguments in two pieces, like a real provider.
    const half = Math.ceil(text.length / 2);
    for (const piece of [text.slice(0, half), text.slice(half)]) {
      await this.chunk({ tool_calls: [{ index, function: { arguments: piece } }] });
    }
  }

  /** Completes the response. */
  async end() {
    await this.chunk({}, this.calls > 0 ? "tool_calls" : "stop");
    await this.line({
      id: this.id,
      object: "chat.completion.chunk",
      model: this.asked.body.model,
      choices: [],
      usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
    });
    if (this.response.writable) this.response.end("data: [DONE]\n\n");
  }

  /** Sends a response that is not a stream. @param {number} status @param {object} body @param {Record<string, string>} [headers] */
  refuse(status, body, headers = {}) {
    if (!this.response.writable) return;
    this.response.writeHead(status, { "content-type": "application/json", ...headers });
    this.response.end(JSON.stringify(body));
  }

  /** Cuts the connection. */
  cut() {
    this.response.destroy();
  }
}

/**
 * Replies with text in `chunks` pieces, the first after `beforeMs`, the others `everyMs` apart.
 *
 * @param {string} text
 * @param {{ chunks?: number, everyMs?: number, beforeMs?: number }} [how]
 * @returns {Reply}
 */
export const say = (text, { chunks = 1, everyMs = 0, beforeMs = 0 } = {}) => async (out) => {
  if (beforeMs > 0) await sleep(beforeMs);
  for (const [at, piece] of pieces(text, chunks).entries()) {
    if (at > 0 && everyMs > 0) await sleep(everyMs);
    await out.text(piece);
  }
  await out.end();
};

/** Splits a text into pieces of about equal length, between characters. @param {string} text @param {number} count */
export function pieces(text, count) {
  const characters = [...text];
  const size = Math.max(1, Math.ceil(characters.length / count));
  const all = [];
  for (let at = 0; at < characters.length; at += size) all.push(characters.slice(at, at + size).join(""));
  return all;
}

/** Replies with tool calls. @param {...Call} calls @returns {Reply} */
export const use = (...calls) => async (out) => {
  for (const call of calls) await out.call(call);
  await out.end();
};

/** Replies with text and calls. @param {string} text @param {...Call} calls @returns {Reply} */
export const sayAndUse = (text, ...calls) => async (out) => {
  await out.text(text);
  for (const call of calls) await out.call(call);
  await out.end();
};

/** Replies with an error. @param {number} status @param {Record<string, string>} [headers] @returns {Reply} */
export const refuse = (status, headers) => (out) =>
  out.refuse(status, { error: { message: `scripted ${status}`, type: "scripted", code: null } }, headers);

/** Sends nothing until the client disconnects. @returns {Reply} */
export const hang = () => (out) => out.closed;

/** Streams some text, then cuts the connection. @param {string} text @param {number} [chunks] @returns {Reply} */
export const breakOff = (text, chunks = 4) => async (out) => {
  for (const piece of pieces(text, chunks)) {
    await out.text(piece);
    await sleep(5);
  }
  out.cut();
};

/** Streams some text, then nothing until the client disconnects. @param {string} text @param {number} [chunks] @returns {Reply} */
export const stallAfter = (text, chunks = 4) => async (out) => {
  for (const piece of pieces(text, chunks)) {
    await out.text(piece);
    await sleep(2);
  }
  await out.closed;
};

/**
 * Waits for a promise (or for the client to disconnect), then replies.
 * @param {Promise<unknown>} first @param {Reply} then @returns {Reply}
 */
export const after = (first, then) => async (out, asked) => {
  await Promise.race([first, out.closed]);
  await then(out, asked);
};

/**
 * Selects the reply by the number of the request. The last one also answers all further requests.
 * @param {...Reply} replies @returns {Script}
 */
export const inTurn = (...replies) => (asked) => {
  const reply = replies[Math.min(asked.n, replies.length) - 1];
  if (!reply) throw new Error("a script needs at least one reply");
  return reply;
};

/** Makes these calls in response to each user message, then says that it is done. @param {...Call} calls @returns {Script} */
export const makes = (...calls) => ({ messages }) => (messages.at(-1)?.role === "tool" ? say("done") : use(...calls));

/** A model of the server, with its own address, script and record. */
export class Model {
  /** @param {string} name @param {Script} script */
  constructor(name, script) {
    this.name = name;
    this.script = script;
    /** All requests in the order of arrival. @type {Asked[]} */
    this.asked = [];
  }

  /** Waits until the model has `count` requests, and returns the last of them. @param {number} count @param {number} [withinMs] */
  async request(count, withinMs) {
    await until(`model ${this.name} is asked ${count} times`, () => this.asked.length >= count, {
      withinMs,
      describe: () => this.asked.map(({ n, last }) => ({ n, last: last.slice(0, 80) })),
    });
    return /** @type {Asked} */ (this.asked[count - 1]);
  }
}

export class ModelServer {
  constructor() {
    /** @type {Map<string, Model>} */
    this.models = new Map();
    /** Requests that a strict provider would reject. A test that leaves any here fails. @type {string[]} */
    this.refused = [];
    this.server = http.createServer((request, response) => {
      this.serve(request, response).catch((error) => {
        this.refused.push(`the script failed: ${error.stack}`);
        response.destroy();
      });
    });
    this.server.keepAliveTimeout = 60_000;
  }

  async listen() {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
  }

  /** The server's address without a path. */
  get base() {
    return `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (this.server.address()).port}`;
  }

  /**
   * Adds a model with its script. Its address is `<base>/<name>/v1`.
   *
   * @param {string} name
   * @param {Script} script
   */
  model(name, script) {
    const model = new Model(name, script);
    this.models.set(name, model);
    return model;
  }

  /** Returns the definition file of a model of this server. @param {string} name */
  definition(name) {
    return {
      provider: "openai",
      model: name,
      baseUrl: `${this.base}/${name}/v1`,
      apiKeyEnv: "MODEL_KEY",
      inputPrice: 1,
      outputPrice: 2,
    };
  }

  /** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
  async serve(request, response) {
    response.on("error", () => {}); // the client was killed, which `closed` reports to the script
    const at = Date.now();
    const text = await wholeBody(request);
    if (text === undefined) return;
    const name = /^\/([^/]+)\/v1\/chat\/completions$/.exec(request.url ?? "")?.[1] ?? "";
    const model = this.models.get(name);
    const wrong = [];
    if (request.method !== "POST" || !model) wrong.push(`${request.method} ${request.url} is no model's address`);
    if (request.headers.authorization !== `Bearer ${MODEL_KEY}`) {
      wrong.push(`authorization is ${JSON.stringify(request.headers.authorization ?? null)}`);
    }
    if (!request.headers["content-type"]?.startsWith("application/json")) wrong.push("the content type is not JSON");
    /** @type {Record<string, any>} */
    let body = {};
    try {
      body = JSON.parse(text);
      wrong.push(...problems(body));
    } catch (error) {
      wrong.push(`the body is not JSON: ${error}`);
    }
    if (!model || wrong.length > 0) {
      const sent = JSON.stringify(body.messages ?? null, null, 1).slice(0, 4000);
      this.refused.push(`model ${name}: ${wrong.join("; ")}\n${sent}`);
      response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: wrong.join("; "), type: "invalid_request_error", code: null } }));
      return;
    }
    /** @type {Asked} */
    const asked = {
      n: model.asked.length + 1,
      body,
      messages: body.messages,
      last: textOf(body.messages.at(-1)),
      headers: request.headers,
      at,
      gone: false,
    };
    model.asked.push(asked);
    response.on("close", () => {
      asked.gone = !response.writableFinished;
    });
    await model.script(asked)(new Out(response, asked), asked);
  }

  async close() {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, "close");
  }
}

/** Returns the text of a message that was sent to a model. @param {Record<string, any> | undefined} message @returns {string} */
export function textOf(message) {
  const content = message?.content;
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map((part) => part.text ?? "").join("");
  return "";
}

/** Returns what a model received, one line per message. @param {Asked | undefined} asked */
export const shown = (asked) =>
  (asked?.messages ?? []).map((m) => {
    const calls = (m.tool_calls ?? []).map((/** @type {any} */ call) => `[${call.function.name}]`);
    return [`${m.role}:`, ...[textOf(m)].filter(Boolean), ...calls].join(" ");
  });

/** Returns the names of the tools that a model was offered. @param {Asked | undefined} asked @returns {string[]} */
export const offered = (asked) => (asked?.body.tools ?? []).map((/** @type {any} */ tool) => tool.function.name);
