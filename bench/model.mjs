// The benchmark's model: responds at once, and identically to everybody.
//
// The newest user message starts with its wishes, as `<name>=<number>` words. `chunks=20` (the default) is the number of
// pieces of text in the reply. Before it come tool calls, one per reply: `steps=N`; `look=N` and `look_long=N`, which read a
// text; `http=N`, `modern=N` and `legacy=N`, which call a server; `asked=1`, which a person approves. Or `reads=N` calls in
// one reply. Or one reply that calls subagents: `waited=1` one that is waited for, `sent=N` ones whose answers come as
// messages, `created=1` a resumable one that is waited for. `led=N` creates N workers and waits for them. `wrote=1` creates
// one, writes to it and waits, all in one reply. `after=N` delays the response by N milliseconds.

import http from "node:http";
import { once } from "node:events";
import { wholeBody } from "../tests/worker/support/http.mjs";

const WORD = "A bobbin holds the thread, and the thread runs on. ";

/** One event of the stream. @param {object} delta @param {string | null} finish */
const event = (delta, finish) =>
  `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1795300000, model: "bench", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

const USAGE = `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", model: "bench", choices: [], usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 } })}\n\ndata: [DONE]\n\n`;

/** The pieces of each response, computed once. @type {Map<string, string[]>} */
const answers = new Map();

/** @param {number} chunks */
function text(chunks) {
  const key = `text ${chunks}`;
  const made = answers.get(key) ?? [
    ...Array.from({ length: chunks }, () => event({ content: WORD }, null)),
    event({}, "stop") + USAGE,
  ];
  answers.set(key, made);
  return made;
}

let callNumber = 0;

/** A reply with tool calls. @param {string} name @param {number} count @param {object} args */
const calls = (name, count, args) => several(Array.from({ length: count }, () => ({ name, args })));

/** @param {{ name: string, args: object }[]} made */
function several(made) {
  const all = made.map(({ name, args }, index) => ({
    index,
    id: `call_${++callNumber}`,
    type: "function",
    function: { name, arguments: JSON.stringify(args) },
  }));
  return [...all.map((call) => event({ tool_calls: [call] }, null)), event({}, "tool_calls") + USAGE];
}

/** The reply instead of a text, if any. @param {number} done  results so far @param {(name: string, otherwise: number) => number} number */
function wished(done, number) {
  if (done < number("steps", 0)) return calls("work", 1, { expression: "20+22" });
  if (done === 0 && number("reads", 0) > 0) return calls("work", number("reads", 0), { expression: "20+22" });
  if (done < number("look", 0)) return calls("read", 1, { expression: "log" });
  if (done < number("look_long", 0)) return calls("read_long", 1, { expression: "log" });
  if (done < number("http", 0)) return calls("look_up", 1, { expression: "20+22" });
  for (const server of ["modern", "legacy"]) {
    if (done < number(server, 0)) return calls(`${server}__look_up`, 1, { expression: "20+22" });
  }
  if (done < number("asked", 0)) return calls("pay", 1, { expression: "20+22" });
  for (const name of ["waited", "sent"]) {
    if (done === 0 && number(name, 0) > 0) return calls(name, number(name, 0), { task: message("") });
  }
  if (done > 0) return undefined;
  const worker = (/** @type {object} */ more) => ({ name: "agent_spawn", args: { agent: "kept", ...more } });
  const wait = (/** @type {number} */ count) => ({
    name: "agent_wait",
    args: { agentIds: Array.from({ length: count }, (_, index) => `subagent.${index + 1}`) },
  });
  const led = number("led", 0);
  if (led > 0) return several([...Array.from({ length: led }, () => worker({ message: message("") })), wait(led)]);
  const send = { name: "agent_send", args: { agentId: "subagent.1", message: message(""), wait: false } };
  if (number("wrote", 0) > 0) return several([worker({}), send, wait(1)]);
  const created = { agent: "kept", message: message(""), attachments: [], name: "kept" };
  if (number("created", 0) > 0) return several([{ name: "subagent_create", args: created }]);
  return undefined;
}

/** The length of a vector. */
const DIMENSIONS = 768;
/** Vectors as JSON, computed once: their meaning is not measured. */
const vectors = Array.from({ length: 512 }, (_, n) =>
  JSON.stringify(Array.from({ length: DIMENSIONS }, (_, at) => Number(Math.sin((n + 1) * (at + 1)).toFixed(6)))),
);
let given = 0;

/** @param {http.ServerResponse} response @param {number} texts */
function embed(response, texts) {
  const item = (/** @type {number} */ index) => `{"index":${index},"embedding":${vectors[given++ % vectors.length]}}`;
  response.writeHead(200, { "content-type": "application/json" });
  response.end(`{"data":[${Array.from({ length: texts }, (_, index) => item(index)).join(",")}],"usage":{"prompt_tokens":${texts * 20}}}`);
}

/** Texts for tools by their length in KB: lines of a log and of settings, some with secrets. @type {Map<number, string>} */
const texts = new Map();

/** @param {number} kb */
function logged(kb) {
  const line = (/** @type {number} */ n) => [
    `2026-11-25T09:14:${String(n % 60).padStart(2, "0")}.120Z INFO request 7f3c2b1e-94d0-4c51-8a5e-${String(n).padStart(12, "0")} GET /api/items?page=${n} took 12 ms`,
    `The worker has read ${n} rows of the table and goes on with the next part, as nobody has asked it to stop.`,
    `DB_HOST=db-${n}.example.com DB_USER=ann DB_PASSWORD=hunter-${n}-canary`,
    `{"user":"ann","id":${n},"status":"done","api_key":"k${n}Qx2Lm9Zt4Wv8Bk3Hs6Pd1","path":"/var/log/worker/${n}.log"}`,
  ];
  let made = texts.get(kb) ?? "";
  for (let n = 0; made.length < kb * 1024; n++) made += `${line(n).join("\n")}\n`;
  made = made.slice(0, kb * 1024);
  texts.set(kb, made);
  return made;
}

export class BenchModel {
  constructor() {
    /** The bytes and messages of the newest request, and the number of requests. */
    this.last = { bytes: 0, messages: 0 };
    this.requests = 0;
    /** Called on each request. */
    this.onRequest = () => {};
    this.server = http.createServer((request, response) => void this.serve(request, response));
    this.server.keepAliveTimeout = 600_000;
  }

  async listen() {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
  }

  get url() {
    return `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (this.server.address()).port}/v1`;
  }

  /** @param {http.IncomingMessage} request @param {http.ServerResponse} response */
  async serve(request, response) {
    response.on("error", () => {});
    const body = await wholeBody(request);
    if (body === undefined) return;
    const read = /\/text\/(\d+)$/.exec(request.url ?? "");
    if (read) return void response.writeHead(200, { "content-type": "text/plain" }).end(logged(Number(read[1])));
    if (request.url?.endsWith("/embeddings")) return embed(response, JSON.parse(body).input.length);
    /** @type {{ messages: { role: string, content: string }[] }} */
    const { messages } = JSON.parse(body);
    this.last = { bytes: body.length, messages: messages.length };
    this.requests++;
    this.onRequest();
    const asked = messages.findLastIndex(({ role }) => role === "user");
    const wish = messages[asked]?.content.slice(0, 80) ?? "";
    const number = (/** @type {string} */ name, /** @type {number} */ otherwise) =>
      Number(new RegExp(`\\b${name}=(\\d+)`).exec(wish)?.[1] ?? otherwise);
    const done = messages.slice(asked).filter(({ role }) => role === "tool").length;
    const parts = wished(done, number) ?? text(number("chunks", 20));
    if (number("after", 0) > 0) await new Promise((resolve) => setTimeout(resolve, number("after", 0)));
    response.writeHead(200, { "content-type": "text/event-stream" });
    // Many chunks are written one by one, like a real model's; a few are written together.
    const apart = parts.length > 100;
    for (const part of parts) {
      if (apart) await new Promise((resolve) => setImmediate(resolve));
      response.write(part);
    }
    response.end();
  }

  async close() {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, "close");
  }
}

/** A user message of 1 KB with its wishes. @param {string} wishes */
export const message = (wishes) => `${wishes} ${"x".repeat(1024)}`.slice(0, 1024);
