// A model that responds from a script. The conversation, not a counter, determines the next response. A request that is
// repeated after a crash thus receives the same response.

import { PROMPT } from "./catalog.mjs";
import { chatReply } from "./reply.mjs";
import { refusal } from "./outside.mjs";

/**
 * One response of a model.
 *
 * @typedef {object} Scripted
 * @property {string} [text]
 * @property {string} [reasoning]
 * @property {{ tool: string, arguments?: unknown }[]} [calls]   string arguments are sent unchanged
 * @property {{ input?: number, output?: number, cached?: number, reasoning?: number }} [usage]   tokens; estimated by default
 * @property {number} [fails]    the number of requests that first fail with `status`
 * @property {number} [status]   by default 503
 * @property {string} [to]       applies only to conversations whose first message contains this text
 */

/** Responses for all prompts, or by prompt. @typedef {Scripted[] | Record<string, Scripted[]>} Script */

export class ScriptedModel {
  #script;
  #history;
  #problem;
  /** The number of times that each response has failed. @type {Map<Scripted, number>} */
  #failed = new Map();

  /**
   * @param {Script} script
   * @param {any[]} history                       the messages before the case
   * @param {(text: string) => void} problem      called if the script has no response
   */
  constructor(script, history, problem) {
    this.#script = script;
    this.#history = history;
    this.#problem = problem;
  }

  /** @param {import("./outside.mjs").Asked} asked @returns {import("./outside.mjs").Answer} */
  answer(asked) {
    const request = JSON.parse(asked.body);
    const prompt = request[PROMPT] ?? "";
    const answers = this.#answersOf(prompt, request.messages);
    const at = this.#placeIn(request.messages);
    const answer = answers?.[at];
    if (answer === undefined) {
      const text = lacking(prompt, at, answers, request.messages);
      this.#problem(text);
      return refusal(text, 400);
    }
    const failed = this.#failed.get(answer) ?? 0;
    if (failed < (answer.fails ?? 0)) {
      this.#failed.set(answer, failed + 1);
      return refusal("the script lets this request fail", answer.status ?? 503);
    }
    return chatReply(request, {
      text: answer.text ?? "",
      reasoning: answer.reasoning ?? "",
      calls: (answer.calls ?? []).map(({ tool, arguments: args = {} }, number) => ({
        id: `call_${prompt}_${at}_${number}`,
        tool,
        arguments: typeof args === "string" ? args : JSON.stringify(args),
      })),
      usage: answer.usage ?? {},
    });
  }

  /** Returns the number of replies in a conversation, without those that the case began with. @param {any[]} messages */
  #placeIn(messages) {
    // Skip replies before the first message to the model: they belong to the other side, which began.
    const first = messages.findIndex(({ role }) => role === "user");
    const replies = messages.slice(Math.max(first, 0)).filter(({ role }) => role === "assistant").length;
    const began = this.#history.find(({ role }) => role === "user");
    const isThis = began !== undefined && textOf(messages[first]) === began.content;
    return replies - (isThis ? this.#history.filter(({ role }) => role === "assistant").length : 0);
  }

  /** @param {string} prompt @param {any[]} messages @returns {Scripted[] | undefined} */
  #answersOf(prompt, messages) {
    const answers = Array.isArray(this.#script) ? this.#script : this.#script[prompt];
    const first = textOf(messages.find(({ role }) => role === "user"));
    return answers?.filter(({ to }) => to === undefined || first.includes(to));
  }
}

/** @param {any} message */
export function textOf(message) {
  const content = message?.content ?? "";
  return typeof content === "string" ? content : content.map((/** @type {any} */ part) => part.text ?? "").join("");
}

/** @param {string} prompt @param {number} at @param {Scripted[] | undefined} answers @param {any[]} messages */
function lacking(prompt, at, answers, messages) {
  const last = messages.at(-1);
  const text = textOf(last).replaceAll(/\s+/g, " ").slice(0, 120);
  const behind = last === undefined ? "" : `, after ${last.role === "tool" ? "the result of a call" : `a message of the role ${last.role}`}: “${text}”`;
  if (answers === undefined) return `the script has no replies for the prompt “${prompt}”, which requests one${behind}`;
  const count = answers.length === 1 ? "1 reply" : `${answers.length} replies`;
  return `the script has ${count} for the prompt “${prompt}”, and reply ${at + 1} is requested${behind}`;
}
