// `bobbin approve`, `deny`, `answer`, `decide`: decide a wait.

import { exactly, number, parsed, parsedObject } from "../lib/arguments.mjs";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { oneLine, print, printJson } from "../lib/output.mjs";
import { online, TARGET_HELP, TARGET_OPTIONS } from "../lib/target.mjs";
import { findWait } from "../lib/waits.mjs";

/**
 * @typedef {import("bobbin/client").Decision} Decision
 * @typedef {import("./index.mjs").Command} Command
 */

const OPTIONS = {
  ...TARGET_OPTIONS,
  thread: { type: /** @type {const} */ ("string") },
  user: { type: /** @type {const} */ ("string") },
  actor: { type: /** @type {const} */ ("string") },
};

const HELP = `  <id>            of \`bobbin approvals\`
  --actor NAME    the person who decides, for the log
  --thread ID     its thread, if the server cannot find it by the id
  --user ID       the owner of its thread, with an administrator's key
${TARGET_HELP}`;

/**
 * @param {import("../lib/target.mjs").Target} target
 * @param {Record<string, any>} values
 * @param {string} id
 * @param {Decision} decision
 */
async function decide({ client }, values, id, decision) {
  const found = await findWait(client, id, { thread: values["thread"], user: values["user"] });
  const { actor } = values;
  const wait = await client.thread(found.threadId).decide(found, actor === undefined ? decision : { ...decision, actor });
  if (values["json"]) printJson({ wait });
  else print(`${wait.decision ?? decision.decision}: ${oneLine(wait.title)}`);
}

/** @type {Command} */
export const approve = {
  usage: "approve <id> [--args JSON]",
  help: `${HELP}
  --args JSON     changes these arguments of the call, if the tool allows it
  --restart       discards the reply, and requests another one from the model`,
  options: { ...OPTIONS, args: { type: "string" }, restart: { type: "boolean", default: false } },
  run: online(async (target, values, positionals) => {
    const [id = ""] = exactly(positionals, ["id"]);
    await decide(target, values, id, {
      decision: "approve",
      ...(values["args"] !== undefined && { args: parsedObject("--args", values["args"]) }),
      ...(values["restart"] && { interrupt: /** @type {const} */ ("restart") }),
    });
  }),
};

/** @type {Command} */
export const deny = {
  usage: "deny <id> [--reason TEXT]",
  help: `${HELP}
  --reason TEXT   the reason, which the model receives
  --stop          also stops the run`,
  options: { ...OPTIONS, reason: { type: "string" }, stop: { type: "boolean", default: false } },
  run: online(async (target, values, positionals) => {
    const [id = ""] = exactly(positionals, ["id"]);
    const { reason, stop } = values;
    await decide(target, values, id, { decision: "deny", ...(reason !== undefined && { reason }), ...(stop && { stop }) });
  }),
};

/** @type {Command} */
export const answer = {
  usage: "answer <id> [text]",
  help: `${HELP}
  <text>          the answer to a question
  --choice N      one of its choices instead, from 0
  --result JSON   the result of a tool of the client
  --failed        the tool failed, and the result is the reason
  --content JSON  the fields of an MCP server's form
  --done          confirms that you have visited the address of an MCP server`,
  options: { ...OPTIONS, choice: { type: "string" }, result: { type: "string" }, failed: { type: "boolean", default: false }, content: { type: "string" }, done: { type: "boolean", default: false } },
  run: online(async (target, values, positionals) => {
    const { choice, result, failed, content, done } = values;
    if (content !== undefined || done) {
      const [id = ""] = exactly(positionals, ["id"]);
      const filled = content === undefined ? {} : { content: parsedObject("--content", content) };
      return decide(target, values, id, /** @type {Decision} */ ({ decision: "answer", ...filled }));
    }
    if (choice !== undefined || result !== undefined) {
      const [id = ""] = exactly(positionals, ["id"]);
      if (choice === undefined) return decide(target, values, id, { decision: "answer", result: parsed("--result", result), ...(failed && { isError: true }) });
      return decide(target, values, id, { decision: "answer", choice: number("choice", choice, { least: 0, most: 1000 }) });
    }
    const [id = "", text = ""] = exactly(positionals, ["id", "text"]);
    await decide(target, values, id, { decision: "answer", text });
  }),
};

/** @type {Command} */
export const command = {
  usage: "decide <id> <json>",
  help: `${HELP}
  <json>          any decision of docs/approvals.md, such as {"decision":"extend","add":{"maxCostUsd":0.5}}`,
  options: OPTIONS,
  run: online(async (target, values, positionals) => {
    const [id = "", json = ""] = exactly(positionals, ["id", "json"]);
    const decision = parsedObject("<json>", json);
    if (typeof decision["decision"] !== "string") throw new Complaint('<json> needs a field "decision".', EXIT.usage);
    await decide(target, values, id, /** @type {Decision} */ (decision));
  }),
};
