// A case as a Markdown document. Its fields come first, between lines `---`, and its turns follow. A quotation is a
// user's message, a heading such as `## approve: refund` is any other turn, and a list below one holds its
// expectations.

import { readYaml } from "./yaml.mjs";

const ACT = /^#+\s+((?:send|approve|deny|answer|result|advance|stop|continue)\s*:.*)$/;

/** @param {string} text @returns {any}   the case as in JSON */
export function readMarkdown(text) {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const end = lines.indexOf("---", 1);
  if (lines[0] !== "---" || end < 0) throw new Error("a document must begin with its fields, between two lines `---`");
  const fields = readYaml(lines.slice(1, end).join("\n"), 2) ?? {};
  const turns = turnsOf(lines.slice(end + 1), end + 2);
  if (turns.length === 0) return fields;
  if (fields.turns !== undefined) throw new Error("the document has `turns` both in its fields and below them: keep one");
  return { ...fields, turns };
}

/** @param {string[]} lines @param {number} first   the number of the first line */
function turnsOf(lines, first) {
  /** @type {any[]} */
  const turns = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? "";
    const [, act] = ACT.exec(line) ?? [];
    if (line.startsWith(">")) {
      const said = taken(lines, at, (one) => one.startsWith(">"));
      turns.push({ send: said.map((one) => one.replace(/^> ?/, "")).join("\n") });
      at += said.length;
    } else if (act !== undefined) {
      turns.push(readYaml(act, first + at, line.length - act.length + 1));
      at++;
    } else if (/^- /.test(line)) {
      const list = taken(lines, at, (one) => /^(- |\s|$)/.test(one));
      const turn = turns.at(-1);
      if (turn === undefined) throw new Error(`line ${first + at}, column 1: the expectations “${line}” need a turn above them`);
      turn.expect = [...(turn.expect ?? []), ...readYaml(list.join("\n"), first + at)];
      at += list.length;
    } else at++;
  }
  return turns;
}

/**
 * Returns the lines from `from` on for which `holds` is true.
 * @param {string[]} lines @param {number} from @param {(line: string) => boolean} holds
 */
function taken(lines, from, holds) {
  const rest = lines.slice(from);
  const end = rest.findIndex((line) => !holds(line));
  return end < 0 ? rest : rest.slice(0, end);
}
