// A cassette: recorded responses of models and tools, keyed by their requests. A request that is not recorded is never
// sent. It fails the case, which reports the difference to the nearest recorded request.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { VERSION } from "../lib/version.mjs";
import { PROMPT } from "./catalog.mjs";
import { replyTo } from "./replies.mjs";
import { difference, keyOf, nearness, rendered, sorted } from "./rendered.mjs";

/** @typedef {import("./outside.mjs").Asked} Asked */
/** @typedef {import("./outside.mjs").Answer} Answer */

/** `replay` sends nothing; `missing` sends what is not recorded; `all` sends everything. @typedef {"replay" | "missing" | "all"} Mode */

/**
 * The response as it came, or its content, to be formatted for the API of the request.
 * @typedef {{ status: number, type: string, events?: string[], body?: string } | { reply: import("./reply.mjs").Reply }} Response
 */
/** @typedef {{ kind: "model", key: string, prompt: string, model: string, request: import("./rendered.mjs").Part[], response: Response }} ModelEntry */
/** @typedef {{ kind: "tool", key: string, tool: string, asked: unknown, response?: Response, result?: unknown }} ToolEntry */
/**
 * The variables of the recording machine: addresses of models, and names of keys.
 * @typedef {{ kind: "cassette", format: 1, bobbin: string, vars: Record<string, string>, keys?: string[] }} Head   without keys: any
 */

/** The response header that is recorded. */
const TYPE = "content-type";
/** Shorter secrets are not searched for, because they appear in texts by chance. */
const SECRET = 8;

export class Cassette {
  /** @type {Head} */
  head;
  /** @type {Map<string, ModelEntry | ToolEntry>} */
  #entries = new Map();
  #path;
  #mode;
  /** The keys that were requested, in order. @type {Set<string>} */
  #used = new Set();
  #changed = false;

  /**
   * @param {string} path @param {Mode} mode @param {{ vars: Record<string, string>, keys: string[] }} present   the
   * variables of this machine
   */
  constructor(path, mode, present) {
    this.#path = path;
    this.#mode = mode;
    this.head = { kind: "cassette", format: 1, bobbin: VERSION, ...present };
    if (!existsSync(path)) return;
    const lines = readFileSync(path, "utf8").split("\n").filter((line) => line.trim() !== "");
    for (const entry of lines.map((line) => JSON.parse(line))) {
      if (entry.kind === "cassette") this.head = mode === "all" ? this.head : entry;
      else if (mode !== "all") this.#entries.set(entry.key, entry);
    }
  }

  /** Whether there is nothing to replay. */
  get empty() {
    return this.#entries.size === 0;
  }

  get records() {
    return this.#mode !== "replay";
  }

  /**
   * @param {Asked} asked
   * @param {(asked: Asked) => Promise<Answer>} ask      sends the request
   * @param {(text: string) => void} problem
   * @returns {Promise<Answer | undefined>}               undefined: it is not recorded
   */
  async model(asked, ask, problem) {
    const body = JSON.parse(asked.body);
    const request = rendered(body);
    const key = keyOf(request);
    const entry = this.#entries.get(key);
    if (entry?.kind === "model") return this.#played(key, entry.response, body);
    if (!this.records) return void problem(this.#missing(body[PROMPT] ?? "", request));
    const { [PROMPT]: prompt = "", ...sent } = body;
    const answer = await whole(await ask({ ...asked, body: JSON.stringify(sent) }));
    const response = kept(answer);
    // Do not record errors that are retried.
    if (answer.status < 500 && answer.status !== 429) this.#add({ kind: "model", key, prompt, model: request.model, request: request.parts, response });
    return answer;
  }

  /**
   * Answers a request of a tool or of code.
   *
   * @param {string} tool
   * @param {unknown} what         the request
   * @param {() => Promise<Answer>} ask
   * @returns {Promise<Answer | undefined>}
   */
  async tool(tool, what, ask) {
    const key = toolKey(tool, what);
    const entry = this.#entries.get(key);
    if (entry?.kind === "tool" && entry.response) return this.#played(key, entry.response);
    if (!this.records) return undefined;
    const answer = await whole(await ask());
    this.#add({ kind: "tool", key, tool, asked: what, response: kept(answer) });
    return answer;
  }

  /**
   * Returns the recorded result of a tool inside the Worker, such as the time, or undefined if there is none.
   *
   * @param {string} tool
   * @param {unknown} args
   * @param {number} time   the number of equal calls before this one
   * @returns {unknown}
   */
  result(tool, args, time) {
    const keys = Array.from({ length: time + 1 }, (_, at) => toolKey(tool, [args, time - at]));
    const entry = keys.map((key) => this.#entries.get(key)).find((one) => one !== undefined);
    if (entry?.kind !== "tool") return undefined;
    this.#used.add(entry.key);
    return entry.result;
  }

  /**
   * Records the results of such tools in a case, in the order of their calls.
   * @param {{ tool: string, args: unknown, result: unknown }[]} calls
   */
  keep(calls) {
    for (const [at, { tool, args, result }] of calls.entries()) {
      const time = calls.slice(0, at).filter((one) => one.tool === tool && sorted(one.args) === sorted(args)).length;
      const key = toolKey(tool, [args, time]);
      if (!this.#entries.has(key)) this.#add({ kind: "tool", key, tool, asked: args, result });
    }
  }

  /** Writes the recording. @param {string[]} secrets   values that no line may contain */
  save(secrets) {
    if (!this.records || !this.#changed) return;
    const entries = [...this.#entries.values()].filter(({ key }) => this.#mode === "missing" || this.#used.has(key));
    const lines = [this.head, ...entries].map((entry) => `${JSON.stringify(entry)}\n`).join("");
    writeFileSync(this.#path, secrets.filter((secret) => secret.length >= SECRET).reduce((text, secret) => text.replaceAll(secret, "<secret>"), lines));
  }

  /** @param {string} key @param {Response} response @param {any} [request] @returns {Answer} */
  #played(key, response, request) {
    this.#used.add(key);
    if ("reply" in response) return replyTo(request, response.reply);
    const { status, type, events, body = "" } = response;
    return { status, headers: { [TYPE]: type }, body: events?.join("") ?? body };
  }

  /** @param {ModelEntry | ToolEntry} entry */
  #add(entry) {
    this.#entries.set(entry.key, entry);
    this.#used.add(entry.key);
    this.#changed = true;
  }

  /** @param {string} prompt @param {import("./rendered.mjs").Rendered} request */
  #missing(prompt, request) {
    const all = [...this.#entries.values()].flatMap((entry) => (entry.kind === "model" ? [{ prompt: entry.prompt, request: { model: entry.model, parts: entry.request } }] : []));
    const own = all.filter((entry) => entry.prompt === prompt);
    const [nearest] = (own.length > 0 ? own : all).sort((a, b) => nearness(b.request, request) - nearness(a.request, request));
    const how = "--record=missing records what is missing, --record everything";
    if (nearest === undefined) return `the cassette has no response of a model; ${how}`;
    return `the cassette has no response to this request of the prompt “${prompt}”; ${difference(nearest.request, request) ?? "the request differs"} (${how})`;
  }
}

/** @param {string} tool @param {unknown} what */
const toolKey = (tool, what) => `${tool} ${sorted(what)}`;

/** Reads the whole body of a response. @param {Answer} answer @returns {Promise<Answer & { body: string }>} */
async function whole(answer) {
  if (typeof answer.body === "string") return { ...answer, body: answer.body };
  const decoder = new TextDecoder();
  let body = "";
  for await (const piece of answer.body) body += typeof piece === "string" ? piece : decoder.decode(piece, { stream: true });
  return { ...answer, body: body + decoder.decode() };
}

/** @param {Answer & { body: string }} answer @returns {Response} */
function kept({ status, headers, body }) {
  const type = headers[TYPE] ?? "";
  return type.startsWith("text/event-stream") ? { status, type, events: body.split(/(?<=\n\n)/) } : { status, type, body };
}
