// Messages as rows: a reply with its calls, and each call with its result.

/**
 * @typedef {object} Call
 * @property {string} id
 * @property {string} name
 * @property {string} arguments
 * @property {any} result      the message with the result, or null
 *
 * @typedef {object} Row
 * @property {string} id
 * @property {any} message
 * @property {Call[]} calls
 */

/** @param {any[]} messages @returns {Row[]} */
export function rowsOf(messages) {
  /** @type {Row[]} */
  const rows = [];
  /** Calls that wait for their results. @type {Map<string, Call>} */
  const open = new Map();
  for (const message of messages) {
    const call = message.role === "tool" ? open.get(message.tool_call_id) : undefined;
    if (call && call.result === null) {
      call.result = message;
      continue;
    }
    const calls = callsOf(message);
    for (const one of calls) open.set(one.id, one);
    rows.push({ id: message.id, message, calls });
  }
  return rows;
}

/** @param {any} message @returns {Call[]} */
function callsOf({ tool_calls }) {
  if (typeof tool_calls !== "string") return [];
  try {
    const calls = JSON.parse(tool_calls);
    return calls.map((/** @type {any} */ { id, function: of }) => ({ id, name: of?.name ?? "?", arguments: of?.arguments ?? "", result: null }));
  } catch {
    return [];
  }
}

/** Whether a model of the thread wrote the message. @param {any} message */
export const isReply = ({ role, metadata }) => (role === "assistant" || role === "user") && typeof metadata?.prompt === "string";

/** The number that gives the order of messages. @param {string} id */
export const sequence = (id) => Number(id.slice(id.lastIndexOf("_") + 1));
