// Creates a case from an existing thread: people's messages and decisions become its turns, the models' responses its
// script, and the tools' results its stubs. Everything is read through the API. If the deployment keeps the bodies of
// requests (BOBBIN_LOG_BODIES), a cassette is created as well, so that changed prompts are detected.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { VERSION } from "../lib/version.mjs";
import { CHANCE } from "./catalog.mjs";
import { keyOf, rendered } from "./rendered.mjs";
import { withoutSecrets } from "./secrets.mjs";

const ENDING = ".test.json";

/** Fetches JSON from a path of the API. @typedef {(path: string) => Promise<any>} Get */

/**
 * @typedef {object} Made
 * @property {Record<string, any>} case        the content of its file, with a script
 * @property {string | undefined} cassette     its lines, if requests were kept; it then replaces the case's script
 */

/**
 * Writes a case, and its cassette if there is one.
 *
 * @param {Get} get
 * @param {string} name    the thread's id or key, as in URLs
 * @param {string} file    such as `tests/refund.test.json`
 * @returns {Promise<string[]>}   the written files
 */
export async function writeCase(get, name, file) {
  if (!file.endsWith(ENDING)) throw new Complaint(`The name of a case must end with ${ENDING}, unlike ${file}.`, EXIT.usage);
  const cassette = `${file.slice(0, -ENDING.length)}.cassette.jsonl`;
  const there = [file, cassette].find((path) => existsSync(path));
  if (there !== undefined) throw new Complaint(`${there} already exists.`);
  const made = await caseOfThread(get, name);
  const written = made.cassette === undefined ? made.case : { ...made.case, model: { cassette: basename(cassette) } };
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(written, undefined, 2)}\n`);
  if (made.cassette === undefined) return [file];
  writeFileSync(cassette, made.cassette);
  return [file, cassette];
}

/** @param {Get} get @param {string} name   the thread's id or key, as in URLs @returns {Promise<Made>} */
export async function caseOfThread(get, name) {
  const { thread: facts } = await get(`/api/threads/${name}`);
  const thread = facts.id;
  const whole = await conversation(get, thread);
  const family = [whole, ...(await below(get, thread))];
  const { waits } = await get(`/api/threads/${thread}/waits?state=all&limit=500`);
  const script = scriptOf(family);
  const made = {
    agent: facts.origin_agent_id ?? facts.agent_id,
    description: `Created from the thread ${thread}.`,
    ...(Object.keys(facts.env ?? {}).length > 0 && { env: facts.env }),
    model: { script },
    ...stubsOf(family),
    turns: turnsOf(whole, waits.filter((/** @type {any} */ wait) => wait.threadId === thread)),
  };
  return { case: withoutSecrets(made), cassette: cassetteOf(family) };
}

/** @typedef {{ messages: any[], inner: any[], logs: any[] }} Conversation   `inner`: messages of prompts that were called */

/** @param {Get} get @param {string} thread @returns {Promise<Conversation>} */
async function conversation(get, thread) {
  const messages = await paged((offset) => get(`/api/threads/${thread}/messages?order=asc&limit=500&includeSilent=true&offset=${offset}`), "messages");
  const inner = await paged((offset) => get(`/api/threads/${thread}/messages?order=asc&limit=500&includeSilent=true&depth=1&offset=${offset}`), "messages");
  const rows = await paged((offset) => get(`/api/threads/${thread}/logs?order=asc&limit=500&offset=${offset}`), "logs");
  const told = rows.filter(({ type, status }) => type === "tool_call" || (type === "llm_request" && status === "completed"));
  const logs = [];
  for (const { id } of told) logs.push(await get(`/api/threads/${thread}/logs/${id}`));
  return { messages, inner: inner.filter(({ depth }) => depth > 0), logs };
}

/** @param {(offset: number) => Promise<any>} page @param {string} field @returns {Promise<any[]>} */
async function paged(page, field) {
  const all = [];
  for (let more = true; more; ) {
    const { [field]: rows, hasMore } = await page(all.length);
    all.push(...rows);
    more = hasMore && rows.length > 0;
  }
  return all;
}

/** Returns the conversations of its subagents. @param {Get} get @param {string} thread @returns {Promise<Conversation[]>} */
async function below(get, thread) {
  const { subagents } = await get(`/api/threads/${thread}/subagents`);
  const all = await Promise.all(subagents.map(async (/** @type {any} */ one) => [await conversation(get, one.id), ...(await below(get, one.id))]));
  return all.flat();
}

/** @param {any} message */
const callsOf = ({ tool_calls: calls }) => /** @type {any[]} */ (calls === null ? [] : JSON.parse(calls)).map((call) => ({ tool: call.function.name, arguments: parsed(call.function.arguments) }));

/** Returns the models' answers by prompt, or as one list if there is only one prompt. @param {Conversation[]} family */
function scriptOf(family) {
  /** @type {Record<string, any[]>} */
  const by = {};
  const several = family.length > 1;
  for (const [number, { messages, inner, logs }] of family.entries()) {
    const groups = [{ messages, first: number > 0 }, ...[...new Set(inner.map(({ parent_id: parent }) => parent))].map((parent) => ({ messages: inner.filter(({ parent_id: of }) => of === parent), first: true }))];
    for (const { messages, first } of groups) {
      const said = messages.find(({ role }) => role === "user")?.content ?? "";
      for (const message of messages.filter(({ role, metadata }) => role === "assistant" && metadata.status_kind === undefined)) {
        const prompt = message.metadata.prompt ?? "";
        (by[prompt] ??= []).push({ ...answerOf(message, logs), ...((several || inner.length > 0) && first && said !== "" && { to: said }) });
      }
    }
  }
  const [only, ...others] = Object.values(by);
  return others.length === 0 ? (only ?? []) : by;
}

/** @param {any} message @param {any[]} logs */
function answerOf(message, logs) {
  const calls = callsOf(message);
  const log = logs.find(({ type, message_id: id }) => type === "llm_request" && id === message.id);
  const usage = log?.usage_reported ? { input: log.input_tokens, output: log.output_tokens, cached: log.cached_tokens ?? 0, reasoning: log.reasoning_tokens ?? 0 } : undefined;
  return { ...(message.content !== "" && { text: message.content }), ...(calls.length > 0 && { calls }), ...(usage && { usage }) };
}

/** Returns stubs for external calls and for tools with random results. @param {Conversation[]} family */
function stubsOf(family) {
  const calls = family.flatMap(({ logs }) => logs.filter(({ type, kind, tool_name: tool, runs }) => type === "tool_call" && runs > 0 && (["http", "code"].includes(kind) || CHANCE.includes(tool))));
  /** @type {Map<string, any>} */
  const stubs = new Map();
  for (const { tool_name: tool, arguments: args, state, result, error } of calls) {
    if (state !== "succeeded" && state !== "failed") continue;
    const outcome = state === "succeeded" ? { response: result ?? "" } : { throw: error ?? result ?? "" };
    const match = parsed(args) ?? {};
    const key = JSON.stringify([tool, match]);
    const known = stubs.get(key);
    if (known) known.outcomes.push(outcome);
    else stubs.set(key, { tool, match: Object.fromEntries(Object.entries(match).map(([name, value]) => [name, { const: value }])), outcomes: [outcome] });
  }
  const all = [...stubs.values()].map(({ outcomes, ...stub }) => (outcomes.length === 1 ? { ...stub, outcome: outcomes[0] } : { ...stub, outcomes }));
  return all.length > 0 ? { stubs: all } : {};
}

/** Returns messages and decisions in order, each with its result. @param {Conversation} whole @param {any[]} waits */
function turnsOf(whole, waits) {
  const { messages } = whole;
  const said = messages.filter(({ role }) => role === "user").map((message) => ({ at: message.created_at, turn: messageTurn(message), effect: message.metadata.scheduledEffect !== undefined }));
  const decided = waits.filter(({ state, decision }) => state === "decided" && decision !== null).map((wait) => ({ at: wait.decidedAt, turn: decisionTurn(wait, whole), effect: false }));
  const all = [...said, ...decided].filter(({ turn }) => turn !== undefined).sort((a, b) => a.at - b.at);
  let last = 0;
  return all.map(({ at, turn, effect }, number) => {
    const until = all[number + 1]?.at ?? Infinity;
    // The message of an effect arrives by itself when its time has come.
    const passed = { advance: `${Math.max(1, Math.ceil((at - last) / 1e6))}s` };
    last = at;
    return { ...(effect ? passed : turn), expect: expectationsOf(messages.filter((message) => message.created_at >= at && message.created_at < until && message.role === "assistant")) };
  });
}

/** @param {any} message */
function messageTurn({ content, attachments, metadata }) {
  if (attachments.some((/** @type {any} */ one) => one.path !== undefined)) {
    return { send: `${content}\n[${attachments.map((/** @type {any} */ one) => one.name).join(", ")}: files are not exported into a case]` };
  }
  return { send: content, ...(Object.keys(metadata).length > 0 && { metadata }) };
}

/** Finds the decision in the result of its call. @param {any} wait @param {Conversation} whole */
function decisionTurn({ kind, call, decision, edit }, { messages, logs }) {
  const result = messages.find(({ role, tool_call_id: id }) => role === "tool" && id === call?.id);
  const { edited = false, reason } = result?.metadata.approval ?? {};
  if (kind === "approval" && decision === "approve") {
    const args = edited ? parsed(logs.find(({ type, tool_call_id: id }) => type === "tool_call" && id === call.id)?.arguments ?? "") : {};
    const changed = Object.entries(args).filter(([name]) => edit?.includes(name));
    return { approve: call.tool, ...(changed.length > 0 && { args: Object.fromEntries(changed) }) };
  }
  if (kind === "approval" && decision === "deny") return { deny: call.tool, ...(reason && { reason }) };
  if (kind === "question" && decision === "answer") return { answer: result?.content ?? "" };
  return kind === "client_tool" && decision === "answer" ? { result: parsed(result?.content ?? ""), tool: call.tool } : undefined;
}

/** @param {any[]} replies */
function expectationsOf(replies) {
  const calls = replies.flatMap(callsOf);
  const last = replies.at(-1);
  const reply = last !== undefined && callsOf(last).length === 0 && last.content !== "" ? [{ reply: { equals: last.content } }] : [];
  return [...calls.map(({ tool, arguments: args }) => ({ called: tool, ...(typeof args === "object" && args !== null && Object.keys(args).length > 0 && { with: args }) })), ...reply];
}

/** @param {Conversation[]} family */
function cassetteOf(family) {
  const asked = family.flatMap(({ messages, inner, logs }) => logs.filter(({ type }) => type === "llm_request").map((log) => ({ log, message: [...messages, ...inner].find(({ id }) => id === log.message_id) })));
  const entries = asked.flatMap(({ log, message }) => {
    const body = parsed(log.request_body ?? "");
    if (typeof body !== "object" || body === null || message === undefined) return [];
    const request = withoutSecrets(rendered(body));
    const answer = answerOf(message, [log]);
    const calls = JSON.parse(message.tool_calls ?? "[]").map((/** @type {any} */ call) => ({ id: call.id, tool: call.function.name, arguments: call.function.arguments }));
    const reply = { text: message.content, reasoning: message.metadata.reasoning ?? "", calls, usage: answer.usage ?? {} };
    return [{ kind: "model", key: keyOf(request), prompt: log.prompt_name ?? "", model: request.model, request: request.parts, response: { reply } }];
  });
  // A cassette that lacks a request would fail although nothing has changed.
  if (entries.length === 0 || entries.length < asked.length) return undefined;
  const head = { kind: "cassette", format: 1, bobbin: VERSION, vars: {} };
  return [head, ...entries].map((entry) => `${JSON.stringify(withoutSecrets(entry))}\n`).join("");
}

/** @param {string} text @returns {any} */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
