// `bobbin show`: shows a thread's facts, runs, waits and limits.

import { exactly } from "../lib/arguments.mjs";
import { bold, list, moment, money, oneLine, print, printJson, table } from "../lib/output.mjs";
import { asked, askedLine } from "../lib/run.mjs";
import { online, TARGET_HELP, TARGET_OPTIONS } from "../lib/target.mjs";

/**
 * @typedef {import("bobbin/client").Client} Client
 * @typedef {Awaited<ReturnType<typeof read>>} Shown
 */

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "show <thread>",
  help: `  <thread>   its id, or key:NAME
${TARGET_HELP}

Shows the state, cost, waits, last runs, subagents and limits of a thread.`,
  options: TARGET_OPTIONS,
  run: online(async ({ client }, values, positionals) => {
    const [thread = ""] = exactly(positionals, ["thread"]);
    const shown = await read(client, thread);
    if (values["json"]) printJson(shown);
    else print(text(shown));
  }),
};

/** The number of runs shown. */
const RUNS = 5;

/** @param {Client} client @param {string} name */
async function read(client, name) {
  const { data } = await client.GET("/api/threads/{threadId}", { params: { path: { threadId: name } } });
  if (data === undefined) throw new Error("a thread without facts");
  const path = { threadId: data.thread.id };
  const [cost, budget, waits, runs, subagents] = await Promise.all([
    client.GET("/api/threads/{threadId}/cost", { params: { path } }),
    client.GET("/api/threads/{threadId}/budget", { params: { path } }),
    asked(client, path.threadId),
    client.GET("/api/threads/{threadId}/runs", { params: { path, query: { limit: RUNS } } }),
    client.GET("/api/threads/{threadId}/subagents", { params: { path } }),
  ]);
  return {
    ...data,
    cost: cost.data ?? null,
    budget: budget.data ?? null,
    waits,
    runs: runs.data?.runs ?? [],
    subagents: subagents.data?.subagents ?? [],
  };
}

/** @param {Shown} shown */
function text(shown) {
  const { thread, agent, stats } = shown;
  const facts = list([
    ["thread", thread.id],
    ["key", oneLine(thread.key ?? "")],
    ["agent", `${oneLine(thread.agent_id)}${agent === null ? " (its definition was deleted)" : agent.title ? ` (${oneLine(agent.title)})` : ""}`],
    ["made with", thread.origin_agent_id === thread.agent_id ? "" : oneLine(thread.origin_agent_id)],
    ["owner", oneLine(thread.user_id ?? "")],
    ["state", thread.state],
    ["tags", oneLine(thread.tags.join(", "))],
    ["properties", Object.keys(thread.properties).length > 0 ? oneLine(JSON.stringify(thread.properties)) : ""],
    ["variables", oneLine(Object.entries(thread.env_types).map(([name, type]) => (type === "text" ? `${name}=${thread.env[name]}` : name)).join(", "))],
    ["parent", thread.parent ?? ""],
    ["copy of", thread.fork?.threadId ?? ""],
    ["created", moment(thread.created_at)],
    ["active", moment(stats.lastActivity)],
    ["messages", String(stats.messageCount)],
    ["used", used(shown)],
    ["limits", limits(shown)],
  ]);
  const parts = [facts];
  if (shown.waits.length > 0) parts.push(`${bold("waits for")}\n${shown.waits.map(askedLine).join("\n")}`);
  if (shown.runs.length > 0) parts.push(`${bold("runs")}\n${table(["run", "outcome", "reason", "steps", "began"], shown.runs.map(runRow))}`);
  if (shown.subagents.length > 0) parts.push(`${bold("subagents")}\n${table(["id", "agent", "status", "name"], shown.subagents.map(childRow))}`);
  return parts.join("\n\n");
}

/** @param {Shown} shown */
function used({ cost }) {
  if (cost === null) return "";
  const { total, children, incomplete } = cost;
  const below = children.length > 0 ? ", subagents included" : "";
  const unpriced = total.unpriced > 0 ? `, ${total.unpriced} of models without a price` : "";
  const lost = incomplete.length > 0 ? `; ${incomplete.length} threads did not respond` : "";
  return `${money(total.cost)}, ${total.inputTokens} + ${total.outputTokens} tokens, ${total.requests} ${total.requests === 1 ? "request" : "requests"}${unpriced}${below}${lost}`;
}

/** Formats the limits and what is left of them. @param {Shown} shown */
function limits({ budget }) {
  if (budget === null) return "";
  const scopes = Object.entries(budget.limits).filter(([, limit]) => limit && Object.keys(limit).length > 0);
  if (scopes.length === 0) return "";
  const left = Object.entries(budget.left).map(([unit, amount]) => `${unit} ${amount}`).join(", ");
  return `${scopes.map(([scope, limit]) => `${scope} ${oneLine(JSON.stringify(limit))}`).join("; ")}${left && `; left: ${left}`}`;
}

/** @param {Shown["runs"][number]} run */
const runRow = ({ run, outcome, status, reason, steps, startedAt }) =>
  [run, outcome ?? status, oneLine(reason ?? ""), String(steps), moment(startedAt / 1e6)];

/** @param {Shown["subagents"][number]} child */
const childRow = ({ id, agent_name, status, threadName, title }) => [id, oneLine(agent_name), oneLine(status), oneLine(threadName ?? title ?? "")];
