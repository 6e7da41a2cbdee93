// Asks the person at the terminal to decide a wait.

import { fieldsOf, valueOf } from "./form.mjs";
import { bold, dim, harmless, oneLine } from "./output.mjs";
import { asked, entry } from "./waits.mjs";

/**
 * @typedef {import("bobbin/client").Wait} Wait
 * @typedef {import("bobbin/client").Decision} Decision
 * @typedef {(prompt: string) => Promise<string | undefined>} Line  the entered line, if any
 * @typedef {(text: string) => void} Say
 */

/**
 * Asks for a decision. Returns nothing if the person leaves it for later.
 *
 * @param {Wait} wait
 * @param {Line} line
 * @param {Say} say     prints a line
 * @returns {Promise<Decision | undefined>}
 */
export async function ask(wait, line, say) {
  say(bold(`? ${oneLine(wait.title)}${wait.reason ? ` (${oneLine(wait.reason)})` : ""}`));
  const { allows } = wait;
  if (wait.kind === "question") return question(wait, line, say);
  if (wait.kind === "client_tool") return result(wait, line, say);
  if (asked(wait).url !== undefined) return visit(wait, line, say);
  if (asked(wait).form !== undefined) return form(wait, line, say);
  if (allows.includes("extend")) return budget(line, say);
  if (allows.includes("retry")) return (await line("  [r]etry now, or Enter to wait: "))?.trim() === "r" ? { decision: "retry" } : undefined;
  if (allows.includes("approve")) return approval(wait, line, say);
  if (allows.length === 0) return void say(dim("  No decision is needed: the run continues by itself."));
  say(dim(`  Possible decisions are ${allows.join(", ")}: \`bobbin decide ${wait.id} …\``));
  return undefined;
}

/** @param {Wait} wait @param {Line} line @param {Say} say @returns {Promise<Decision | undefined>} */
async function approval({ call, edit }, line, say) {
  if (call) say(dim(indented(`${oneLine(call.tool)} ${harmless(JSON.stringify(call.args, null, 2))}`)));
  const changes = (edit?.length ?? 0) > 0;
  for (;;) {
    const entered = await line(`  [y]es, [n]o${changes ? ", [e]dit" : ""}, [s]top, [l]ater: `);
    if (entered === undefined) return undefined;
    const letter = entered.trim().toLowerCase();
    if (letter === "y" || letter === "yes") return { decision: "approve" };
    if (letter === "s" || letter === "stop") return { decision: "deny", stop: true };
    if (letter === "l" || letter === "later") return undefined;
    if (letter === "n" || letter === "no") {
      const reason = await line("  reason (Enter: none): ");
      return reason === undefined ? undefined : { decision: "deny", ...(reason.trim() && { reason: reason.trim() }) };
    }
    if (changes && (letter === "e" || letter === "edit")) {
      const args = object(await line(`  as JSON, any of ${oneLine(edit?.join(", ") ?? "")}: `), say);
      if (args !== undefined) return { decision: "approve", args };
    }
  }
}

/** @param {Wait} wait @param {Line} line @param {Say} say @returns {Promise<Decision | undefined>} */
async function question({ choices, freeText }, line, say) {
  for (const [at, choice] of choices?.entries() ?? []) say(`  ${at + 1} ${oneLine(choice)}`);
  for (;;) {
    const words = choices?.length ? (freeText === false ? "number" : "number, or words") : "answer";
    const text = (await line(`  ${words} (Enter: later): `))?.trim();
    if (!text) return undefined;
    const chosen = Number(text) - 1;
    if (choices?.[chosen] !== undefined) return { decision: "answer", choice: chosen };
    if (!choices?.length || freeText !== false) return { decision: "answer", text };
  }
}

/** @param {Wait} wait @param {Line} line @param {Say} say @returns {Promise<Decision | undefined>} */
async function result({ call }, line, say) {
  if (call) say(dim(indented(harmless(JSON.stringify(call.args, null, 2)))));
  for (;;) {
    const text = (await line(`  result of ${oneLine(call?.tool ?? "the call")} as JSON (Enter: later): `))?.trim();
    if (!text) return undefined;
    try {
      return { decision: "answer", result: JSON.parse(text) };
    } catch {
      say("  That is not JSON. Put a text in quotes.");
    }
  }
}

/**
 * Asks the person to fill in the form of an MCP server.
 * @param {Wait} wait @param {Line} line @param {Say} say @returns {Promise<Decision | undefined>}
 */
async function form(wait, line, say) {
  const { form: schema } = asked(wait);
  const letter = (await line("  [f]ill in the form, [d]ecline (Enter: later): "))?.trim();
  if (letter === "d") return { decision: "deny" };
  if (letter !== "f") return undefined;
  /** @type {[string, any][]} */
  const content = [];
  for (const field of fieldsOf(schema)) {
    for (;;) {
      const text = (await line(`  ${entry(field)}: `))?.trim();
      if (text === undefined) return undefined;
      try {
        const value = valueOf(field, text === "" ? field.initial : chosen(field, text));
        if (value !== undefined) content.push([field.name, value]);
        break;
      } catch (error) {
        say(`  ${oneLine(/** @type {Error} */ (error).message)}`);
      }
    }
  }
  return /** @type {Decision} */ ({ decision: "answer", content: Object.fromEntries(content) });
}

/**
 * Returns the value of a text: the choices that it names by value or label, a boolean, or the text itself.
 * @param {import("./form.mjs").Field} field @param {string} text
 */
function chosen({ kind, label, choices }, text) {
  const one = (/** @type {string} */ word) => {
    const found = choices.find((choice) => word === String(choice.value) || word === choice.label);
    if (found === undefined) throw new Error(`“${label}” has no choice “${word}”.`);
    return found.value;
  };
  if (kind === "many") return text.split(",").map((word) => one(word.trim()));
  if (kind === "boolean") return /^(?:y|yes|true)$/i.test(text);
  return choices.length > 0 ? one(text) : text;
}

/**
 * Asks the person to visit a URL of an MCP server.
 * @param {Wait} wait @param {Line} line @param {Say} say @returns {Promise<Decision | undefined>}
 */
async function visit(wait, line, say) {
  const { url } = asked(wait);
  say(`  Open ${oneLine(url ?? "")}`);
  const signing = !wait.allows.includes("answer");
  const letter = (await line(signing ? "  Sign in there, and the run continues by itself; or [d]ecline (Enter: later): " : "  [d]one there, [n]o (Enter: later): "))?.trim();
  if (letter === (signing ? "d" : "n")) return { decision: "deny" };
  return letter === "d" ? { decision: "answer" } : undefined;
}

/** @param {Line} line @param {Say} say @returns {Promise<Decision | undefined>} */
async function budget(line, say) {
  for (;;) {
    const text = (await line("  [f]inish, [d]eny, or an amount to add, such as maxCostUsd=0.5 (Enter: later): "))?.trim();
    if (!text) return undefined;
    if (text === "f") return { decision: "finish" };
    if (text === "d") return { decision: "deny" };
    const [, limit, amount] = /^(max[A-Za-z]+)\s*=\s*(\d+(?:\.\d+)?)$/.exec(text) ?? [];
    if (limit !== undefined) return { decision: "extend", add: { [limit]: Number(amount) } };
    say("  Unknown input.");
  }
}

/** @param {string | undefined} text @param {Say} say @returns {Record<string, unknown> | undefined} */
function object(text, say) {
  try {
    const value = JSON.parse(text ?? "");
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Reported below.
  }
  say("  That is not a JSON object.");
  return undefined;
}

/** @param {string} text */
const indented = (text) => `  ${text.replaceAll("\n", "\n  ")}`;
