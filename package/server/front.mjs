// The HTTP server that a development server's clients connect to. wrangler's own server behind it responds in plain
// text, loses the response to a request whose body is still being sent, and resolves `..` in URLs. This server turns
// failures into the API's error format and forwards everything else unchanged.

import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { http } from "../lib/node-http.mjs";

const HOST = "127.0.0.1";

/**
 * The server behind rejects a larger body without reading it to its end (worker/bodies.js). Such a body is held back
 * for a moment, so that the rejection arrives first.
 */
const LARGE_BYTES = 16 << 20;
const HELD_BACK_MS = 250;

/** The largest head of a response, in bytes. Cloudflare allows a Worker's response 128 KB of headers; Node's own limit is 16 KB. */
const HEAD_BYTES = 128 << 10;

/** How long a request waits for a server that is restarting, and the pause between attempts. */
const PATIENCE_MS = 10_000;
const PAUSE_MS = 100;

/** How long to wait for requests in progress before their server is replaced. */
const DRAIN_MS = 1_000;

/** How long to read the rest of a body after the response, so that the client receives the response. */
const LINGER_MS = 10_000;

/** The server behind closes an idle connection after five seconds. Ours must close first. */
const IDLE_MS = 3_000;

/** Headers that apply to a single connection. */
export const OF_CONNECTION = new Set(["connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "expect"]);
/** The same, and `transfer-encoding`, for a response that ends with its connection. */
const OF_CONNECTION_AND_CHUNKS = new Set([...OF_CONNECTION, "transfer-encoding"]);
/** @type {Set<string>} */
const NONE = new Set();

/** @typedef {{ status: number, code: string, message: string, hint: string, field?: string, allow?: string, retryAfter?: number, closes?: boolean }} Problem */

/** @type {Problem} */
const RESTARTED = {
  status: 503,
  code: "overloaded",
  message: "The development server was restarted during this request.",
  hint: "Send it again, a POST with the same Idempotency-Key. Work that has begun continues.",
  retryAfter: 1,
};

/** @type {Problem} */
const LOST = {
  status: 503,
  code: "overloaded",
  message: "The connection to the Worker was lost. The request may or may not have taken effect.",
  hint: "Send it again, a POST with the same Idempotency-Key. The terminal of the server may show the reason.",
  retryAfter: 1,
};

/** @type {Problem} */
const DOTS = {
  status: 400,
  code: "invalid_field",
  message: "The path contains a segment `.` or `..`, which this API never uses.",
  hint: "Escape slashes and dots that are part of a name. An id or a file name is one segment.",
  field: "path",
};

/** @type {Problem} */
const NOT_FOUND = { status: 404, code: "not_found", message: "There is no such route.", hint: "Routes begin with /api, except /healthz." };

/** @type {Problem} */
const METHOD = {
  status: 405,
  code: "method_not_allowed",
  message: "The server does not know this method.",
  hint: "Use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS.",
  allow: "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
};

/** @type {Problem} */
const LARGE_HEAD = {
  status: 500,
  code: "internal",
  message: "The endpoint ran, but the headers of its response are larger than 128 KB.",
  hint: "Let the endpoint send large values in its body.",
};

/** @type {Problem} */
const ENDING = {
  status: 503,
  code: "overloaded",
  message: "The server is stopping.",
  hint: "Send it again. The next server continues the work.",
  retryAfter: 1,
};

/** What wrangler's own responses mean, by their status. @type {Map<number, Problem>} */
const FOREIGN = new Map([
  [404, NOT_FOUND],
  [501, METHOD],
]);

/** @param {string} message @returns {Problem} */
const malformed = (message) => ({ status: 400, code: "bad_json", message, hint: "Send the complete request again.", closes: true });

/** @param {Problem} problem */
const bodyOf = ({ code, message, hint, field }) => JSON.stringify({ error: { code, message, hint, field } });

/** @param {Problem} problem @returns {Record<string, string | number>} */
const headersOf = (problem) => ({
  "content-type": "application/json; charset=utf-8",
  "content-length": Buffer.byteLength(bodyOf(problem)),
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  ...(problem.allow !== undefined && { allow: problem.allow }),
  ...(problem.retryAfter !== undefined && { "retry-after": problem.retryAfter }),
});

/** Responds on a connection that has no request in Node. @param {import("node:stream").Duplex} socket @param {Problem} problem */
function answerRaw(socket, problem) {
  const headers = Object.entries({ ...headersOf(problem), connection: "close" });
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  if (socket.writable) socket.end(`HTTP/1.1 ${problem.status} ${http.STATUS_CODES[problem.status]}\r\n${lines}\r\n${bodyOf(problem)}`);
}

/**
 * Returns the headers to forward. Repeated headers stay repeated.
 *
 * @param {string[]} raw
 * @param {Set<string>} left   the headers to leave out
 */
export function passing(raw, left = OF_CONNECTION) {
  /** @type {Record<string, string | string[]>} */
  const headers = {};
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] ?? "").toLowerCase();
    const value = raw[at + 1] ?? "";
    if (!left.has(name)) headers[name] = name in headers ? [headers[name] ?? [], value].flat() : value;
  }
  return headers;
}

/** @param {string | undefined} target */
const hasDots = (target = "") => {
  const [path = ""] = target.split(/[?#]/);
  return path.split(/[/\\]/).some((segment) => /^(\.|%2e){1,2}$/i.test(segment));
};

/**
 * Returns whether the response is wrangler's own. All responses of the Worker have this header.
 * @param {import("node:http").IncomingMessage} answer
 */
const isForeign = (answer) =>
  (answer.statusCode ?? 0) >= 400 &&
  answer.headers["x-content-type-options"] === undefined &&
  !answer.headers["content-type"]?.startsWith("application/json");

/** A request to the server behind, and its response. */
class Exchange {
  #until = Date.now() + PATIENCE_MS;
  #answered = false;
  /** Whether the client may send its body, or has sent it. */
  #invited;
  /** The content type of the response. */
  #type = "";

  /**
   * @param {import("node:http").IncomingMessage} request
   * @param {import("node:http").ServerResponse} response
   * @param {{ port: number, agent: import("node:http").Agent }} behind
   * @param {boolean} announced   the client waits for `100 Continue`
   */
  constructor(request, response, behind, announced) {
    this.request = request;
    this.response = response;
    this.behind = behind;
    this.#invited = !announced;
    const { "content-length": length, "transfer-encoding": coding } = request.headers;
    /** The body's length in bytes. Unknown for a chunked body. */
    this.length = coding === undefined ? Number(length ?? 0) : undefined;
    response.sendDate = false;
    this.up = this.#send();
    response.once("close", () => this.up.destroy());
  }

  /** Whether the response is a stream that ends only when the client disconnects. The stream of a reply ends by itself. */
  get follows() {
    return this.request.method === "GET" && this.#type.startsWith("text/event-stream");
  }

  #send() {
    const { request, response, behind } = this;
    const up = http.request({
      host: HOST,
      port: behind.port,
      agent: behind.agent,
      method: request.method ?? "GET",
      path: request.url ?? "/",
      headers: passing(request.rawHeaders),
      maxHeaderSize: HEAD_BYTES,
    });
    up.on("response", (answer) => this.#pass(answer));
    up.on("error", (/** @type {NodeJS.ErrnoException} */ error) => this.#failed(error));
    if (this.length === 0) {
      up.end();
      return up;
    }
    // Send the headers soon, because the server behind may reject the request by them. Wait one turn, so that a request
    // that arrived in one packet also leaves in one.
    setImmediate(() => {
      if (!up.destroyed) up.flushHeaders();
    });
    const sendBody = () => {
      if (this.#answered || response.closed) return;
      if (!this.#invited) response.writeContinue();
      this.#invited = true;
      request.pipe(up);
    };
    const connected = () => ((this.length ?? 0) > LARGE_BYTES ? setTimeout(sendBody, HELD_BACK_MS) : sendBody());
    up.once("socket", (socket) => (socket.connecting ? socket.once("connect", connected) : connected()));
    return up;
  }

  /** @param {import("node:http").IncomingMessage} answer */
  async #pass(answer) {
    if (this.#answered) return answer.resume();
    const { response } = this;
    if (isForeign(answer)) {
      const text = await textOf(answer);
      return this.refuse(text.includes("restarted mid-request") ? RESTARTED : (FOREIGN.get(answer.statusCode ?? 0) ?? LOST));
    }
    this.#begin();
    this.#type = answer.headers["content-type"] ?? "";
    // If the server behind aborts, abort here, too.
    answer.on("error", () => response.destroy());
    response.writeHead(answer.statusCode ?? 500, { ...passing(answer.rawHeaders), ...this.#closing() });
    answer.pipe(response);
    // Send the headers, because a stream may be silent for a while. Wait one turn, so that a short response leaves in
    // one packet.
    setImmediate(() => {
      if (!response.writableEnded && !response.destroyed) response.flushHeaders();
    });
  }

  /** @param {NodeJS.ErrnoException} error */
  #failed(error) {
    if (this.#answered || this.response.closed) return;
    if (error.code === "HPE_HEADER_OVERFLOW") return this.refuse(LARGE_HEAD);
    const unsent = error.code === "ECONNREFUSED" || (this.up.reusedSocket && error.code === "ECONNRESET" && this.length === 0);
    if (!unsent || Date.now() > this.#until) return this.refuse(LOST);
    setTimeout(() => {
      if (!this.response.closed) this.up = this.#send();
    }, PAUSE_MS);
  }

  /** Sends an error in place of the server behind. @param {Problem} problem */
  refuse(problem) {
    const { response, request, up } = this;
    if (this.#answered) return;
    this.#begin();
    response.writeHead(problem.status, { ...headersOf(problem), ...this.#closing(), ...(problem.closes && { connection: "close" }) });
    response.end(request.method === "HEAD" ? undefined : bodyOf(problem));
    up.destroy();
  }

  /**
   * The response has begun. Keep reading the rest of the body for a while: if a connection is closed with unread bytes,
   * its response is lost.
   */
  #begin() {
    this.#answered = true;
    const { request, up } = this;
    if (request.complete || this.length === 0) return;
    up.once("close", () => request.resume());
    const timer = setTimeout(() => request.socket.destroy(), LINGER_MS);
    for (const end of ["end", "close"]) request.once(end, () => clearTimeout(timer));
  }

  /** Close the connection if the client has not sent its body. It could not be told apart from the next request. */
  #closing() {
    return this.#invited ? {} : { connection: "close" };
  }
}

/** @param {import("node:http").IncomingMessage} answer */
async function textOf(answer) {
  let text = "";
  try {
    for await (const chunk of answer) text = (text + chunk).slice(0, 1000);
  } catch {
    // Use what arrived.
  }
  return text;
}

/**
 * Forwards a WebSocket. After the server behind has switched protocols, the two connections are joined. Until then only
 * this one request passes, so that no later request bypasses the checks here.
 *
 * @param {import("node:http").IncomingMessage} request
 * @param {import("node:stream").Duplex} client
 * @param {Buffer} head
 * @param {number} port
 */
function upgrade(request, client, head, port) {
  client.on("error", () => client.destroy());
  if (hasDots(request.url)) return answerRaw(client, DOTS);
  const until = Date.now() + PATIENCE_MS;
  const open = () => {
    const { method = "GET", url: path = "/" } = request;
    const up = http.request({ host: HOST, port, agent: false, method, path, headers: passing(request.rawHeaders, NONE), maxHeaderSize: HEAD_BYTES });
    const gone = () => up.destroy();
    client.once("close", gone);
    up.on("upgrade", (answer, server, first) => {
      client.write(headOf(answer, NONE), "latin1");
      client.write(first);
      server.write(head);
      client.pipe(server).pipe(client);
      server.on("error", () => client.destroy());
      server.once("close", () => client.destroy());
      client.once("close", () => server.destroy());
    });
    up.on("response", (answer) => {
      answer.on("error", () => client.destroy());
      client.write(headOf(answer, OF_CONNECTION_AND_CHUNKS, "connection: close\r\n"), "latin1");
      answer.pipe(client);
    });
    up.on("error", (/** @type {NodeJS.ErrnoException} */ error) => {
      client.off("close", gone);
      if (!client.writable) return;
      if (error.code !== "ECONNREFUSED" || Date.now() > until) return answerRaw(client, LOST);
      setTimeout(open, PAUSE_MS);
    });
    up.end();
  };
  open();
}

/**
 * Returns the head of a response as it is written on a connection.
 *
 * @param {import("node:http").IncomingMessage} answer
 * @param {Set<string>} left   the headers to leave out
 * @param {string} [own]       additional lines
 */
function headOf(answer, left, own = "") {
  const headers = Object.entries(passing(answer.rawHeaders, left));
  const lines = headers.flatMap(([name, value]) => [value].flat().map((one) => `${name}: ${one}\r\n`));
  return `HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\n${lines.join("")}${own}\r\n`;
}

/**
 * @typedef {object} Front
 * @property {(replace: () => Promise<void>) => Promise<void>} pause   holds requests while the server behind is replaced
 * @property {(ms: number) => Promise<number>} drain                    accepts no more requests and waits for those in progress,
 *   except endless streams; returns how many are left
 * @property {() => void} stop
 */

/**
 * A request that has its response.
 *
 * @typedef {{ method: string, path: string, status: number, ms: number }} Answered
 */

/**
 * Serves `port`, in front of the server on the port `behind`.
 *
 * @param {number} port
 * @param {number} behind
 * @param {{ host?: string, answered?: (request: Answered) => void }} [options]   host: the address to listen on
 * @returns {Promise<Front>}
 */
export async function startFront(port, behind, { host = HOST, answered } = {}) {
  const agent = new http.Agent({ keepAlive: true, scheduling: "lifo", timeout: IDLE_MS });
  /** The current request of each connection. @type {WeakMap<import("node:stream").Duplex, Exchange>} */
  const busy = new WeakMap();
  /** Requests in progress. @type {Set<Exchange>} */
  const exchanges = new Set();
  /** Open WebSockets. @type {Set<import("node:stream").Duplex>} */
  const sockets = new Set();
  /** Whether new requests are rejected. */
  let draining = false;
  /** Pending while the server behind is replaced. @type {Promise<void> | undefined} */
  let paused;
  const pass = (/** @type {import("node:http").IncomingMessage} */ request, /** @type {import("node:http").ServerResponse} */ response, /** @type {boolean} */ announced) => {
    if (response.closed) return;
    const began = performance.now();
    const exchange = new Exchange(request, response, { port: behind, agent }, announced);
    exchanges.add(exchange);
    response.once("close", () => {
      exchanges.delete(exchange);
      const [path = ""] = (request.url ?? "").split("?");
      answered?.({ method: request.method ?? "", path, status: response.statusCode, ms: Math.round(performance.now() - began) });
    });
    busy.set(request.socket, exchange);
  };
  const take = (/** @type {boolean} */ announced) => (/** @type {import("node:http").IncomingMessage} */ request, /** @type {import("node:http").ServerResponse} */ response) => {
    const problem = hasDots(request.url) ? DOTS : draining ? ENDING : undefined;
    if (problem !== undefined) {
      response.writeHead(problem.status, { ...headersOf(problem), connection: "close" });
      return void response.end(bodyOf(problem));
    }
    if (paused === undefined) pass(request, response, announced);
    else paused.then(() => pass(request, response, announced));
  };
  // The Worker has its own deadlines for bodies.
  const server = http.createServer({ requestTimeout: 0, keepAliveTimeout: 65_000 }, take(false));
  server.on("checkContinue", take(true));
  server.on("upgrade", (request, socket, head) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    upgrade(request, socket, head, behind);
  });
  server.on("clientError", (/** @type {NodeJS.ErrnoException} */ error, socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
    const exchange = busy.get(socket);
    if (exchange && !exchange.response.headersSent) return exchange.refuse(malformed(`The body of the request is malformed: ${error.message}.`));
    if (exchange && !exchange.response.writableFinished) return void socket.destroy();
    answerRaw(socket, malformed(`This is not a request of HTTP/1.1: ${error.message}.`));
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => resolve(undefined));
  });
  return {
    async pause(replace) {
      const drained = async () => {
        for (const until = Date.now() + DRAIN_MS; exchanges.size > 0 && Date.now() < until; ) await sleep(10);
      };
      const replaced = drained().then(replace);
      // Set this now. Otherwise a stream of new requests would delay the replacement.
      paused = replaced.catch(() => {}).finally(() => (paused = undefined));
      await replaced;
    },
    async drain(ms) {
      draining = true;
      server.close();
      server.closeIdleConnections();
      for (const socket of sockets) socket.destroy();
      for (const until = Date.now() + ms; Date.now() < until; await sleep(10)) {
        // Clients that follow a thread reconnect and receive the events they missed.
        for (const exchange of exchanges) if (exchange.follows) exchange.response.destroy();
        if (exchanges.size === 0) break;
      }
      return exchanges.size;
    },
    stop() {
      server.close();
      server.closeAllConnections();
      agent.destroy();
    },
  };
}
