// YAML 1.2 in the documents of cases, with the position of every error in its file.

import { LineCounter, parseDocument, visit } from "yaml";

/**
 * Parses a piece of YAML. Throws an error that names the line and column in the file.
 *
 * @param {string} text
 * @param {number} [line]     the line of the file where the piece begins, from 1
 * @param {number} [column]   the column where its first line begins, from 1
 * @returns {any}
 */
export function readYaml(text, line = 1, column = 1) {
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false, stringKeys: true });
  /** @param {number} offset @param {string} message */
  const invalid = (offset, message) => {
    const at = counter.linePos(offset);
    return new Error(`line ${line + at.line - 1}, column ${at.line === 1 ? column + at.col - 1 : at.col}: ${message}`);
  };
  // A warning, such as an unknown tag, also means that the value is not the intended one.
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) throw invalid(problem.pos[0], problem.message);
  // The library reports an alias without an anchor only when it converts the document, and without a position.
  visit(document, {
    Alias(_, alias) {
      if (alias.resolve(document) === undefined) throw invalid(alias.range?.[0] ?? 0, `no anchor \`&${alias.source}\` is above this alias`);
    },
  });
  return document.toJS();
}
