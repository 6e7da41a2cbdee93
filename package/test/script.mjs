// A model that answers from a script. Which answer is next follows from the conversation it is sent, not from a counter: a
// request that is repeated after a crash gets the same answer again.

import { PROMPT } from "./catalog.mjs";
import { chatReply } from "./reply.mjs";
import { refusal } from "./outside.mjs";

/**
 * One answer of a model.
 *
 * @typedef {object} Scripted
 * @property {string} [text]
 * @property {string} [reasoning]
 * @property {{ tool: string, arguments?: unknown }[]} [calls]   arguments that are a text are sent as they are
 * @property {{ input?: number, output?: number, cached?: number, reasoning?: number }} [usage]   tokens; estimated unless given
 * @property {number} [fails]    so many requests are answered with `status` first
 * @property {number} [status]   503 unless given
 * @property {string} [to]       only for conversations whose first message has this in it
 */

/** Answers of all prompts, or by prompt. @typedef {Scripted[] | Record<string, Scripted[]>} Script */

export class ScriptedModel {
  #script;
  #history;
  #problem;
  /** How often each answer has failed. @type {Map<Scripted, number>} */
  #failed = new Map();

  /**
   * @param {Script} script
   * @param {any[]} history                       what was said before the case
   * @param {(text: string) => void} problem      told what the script has no answer to
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
      return refusal("the script says that this fails", answer.status ?? 503);
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

  /** How many replies a conversation has, but for those that the case began with. @param {any[]} messages */
  #placeIn(messages) {
    // What stands before the first message to the model is none of its own: its other side has begun.
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
  const said = textOf(last).replaceAll(/\s+/g, " ").slice(0, 120);
  const behind = last === undefined ? "" : `, behind ${last.role === "tool" ? "the result of a call" : `what the ${last.role} said`}: “${said}”`;
  if (answers === undefined) return `the script has no answers for the prompt “${prompt}”, which asks its model${behind}`;
  const count = answers.length === 1 ? "1 answer" : `${answers.length} answers`;
  return `the script has ${count} for the prompt “${prompt}”, and answer ${at + 1} is asked for${behind}`;
}
