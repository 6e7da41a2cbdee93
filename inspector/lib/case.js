// Turns a conversation into a test of an agent (docs/testing-agents.md): the model's replies become the script, results of
// tools become stubs, and the outcome of each message becomes the expectation.

import { rowsOf } from "./rows.js";

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** @param {{ tool: string, arguments: unknown }} call @param {any} result */
function stubOf({ tool, arguments: args }, result) {
  const fields = args !== null && typeof args === "object" && !Array.isArray(args) ? Object.entries(args) : [];
  const match = Object.fromEntries(fields.map(([name, value]) => [name, { const: value }]));
  const content = result.content ?? "";
  const outcome = result.tool_status === "error" ? { throw: content } : { response: parsed(content) };
  return { tool, ...(fields.length > 0 && { match }), outcome };
}

/**
 * @param {string} agent
 * @param {any[]} messages   all messages in the order of the conversation
 */
export function caseOf(agent, messages) {
  /** @type {object[]} */
  const script = [];
  /** @type {object[]} */
  const stubs = [];
  /** @type {{ send: string, expect: object[] }[]} */
  const turns = [];
  /** @type {Map<string, number>} */
  const made = new Map();
  for (const { message, calls } of rowsOf(messages)) {
    if (message.metadata?.status_kind !== undefined || message.depth > 0) continue;
    if (message.role === "user") turns.push({ send: message.content ?? "", expect: [] });
    if (message.role !== "assistant") continue;
    const called = calls.map(({ name, arguments: args }) => ({ tool: name, arguments: parsed(args) }));
    script.push({ ...(message.content && { text: message.content }), ...(called.length > 0 && { calls: called }) });
    const expect = turns.at(-1)?.expect;
    calls.forEach((call, at) => {
      const of = called[at];
      if (of && call.result) stubs.push(stubOf(of, call.result));
      made.set(call.name, (made.get(call.name) ?? 0) + 1);
      expect?.push({ called: call.name, times: made.get(call.name) });
    });
    if (message.content && calls.length === 0) expect?.push({ reply: { equals: message.content } });
  }
  // Keep one of identical stubs: the first match answers all calls.
  const seen = new Set();
  const own = stubs.filter((stub) => !seen.has(JSON.stringify(stub)) && seen.add(JSON.stringify(stub)));
  return { $schema: "../node_modules/bobbin/test/case.schema.json", agent, model: { script }, ...(own.length > 0 && { stubs: own }), turns };
}
