// Compiles a folder of definitions to a catalog, and reports all mistakes.

import { join } from "node:path";
import { Complaint } from "../lib/complaint.mjs";
import { shown } from "../lib/files.mjs";
import { bundleCode } from "./code.mjs";
import { readDefinitions } from "./folder.mjs";

/**
 * A mistake.
 *
 * @typedef {object} Finding
 * @property {string} file          below the folder of definitions, with `/`
 * @property {number} [line]        from 1
 * @property {number} [column]      from 1
 * @property {string} [field]       such as `tools[1].name`
 * @property {"error" | "warning"} severity
 * @property {string} message
 */

/**
 * @typedef {object} Compiled
 * @property {string | null} catalog   the text of catalog.json; null if there are errors
 * @property {boolean} strict          whether warnings count as errors
 * @property {Finding[]} findings      sorted by file
 */

/**
 * @typedef {object} Tools
 * @property {typeof import("esbuild")} esbuild
 * @property {string} web                                     the folder isolate/web/
 * @property {(request: string) => Promise<string>} compiler  src/request.rs: JSON in, JSON out
 */

/**
 * @param {string} agents
 * @param {Tools} tools
 * @param {{ strict?: boolean, ownNatives?: boolean }} [settings]   ownNatives: the application's own crate registers natives
 * @returns {Promise<Compiled>}
 */
export async function compile(agents, { compiler, ...tools }, { strict = false, ownNatives = false } = {}) {
  const folder = readDefinitions(agents);
  const { bundles, findings } = await bundleCode(agents, folder, tools);
  const { files, unreadable, folders } = folder;
  const answer = JSON.parse(await compiler(JSON.stringify({ files, unreadable, folders, bundles, strict, ownNatives })));
  if (answer.error !== undefined) throw new Error(`The compiler of definitions: ${answer.error}`);
  if (findings.length === 0) return answer;
  const all = [...answer.findings, ...findings].sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : 0));
  return { catalog: null, strict: answer.strict, findings: all };
}

/** Formats a finding in one line that editors and terminals can jump to. @param {string} agents @param {Finding} finding */
export function line(agents, { file, line, column, field, severity, message }) {
  const place = [shown(join(agents, file)), ...(line === undefined ? [] : [line, column ?? 1])].join(":");
  return `${place}: ${severity}${field ? ` in ${field}` : ""}: ${message}`;
}

/**
 * Returns an error with all findings, if there is no catalog.
 *
 * @param {string} agents
 * @param {Compiled} compiled
 */
export function refusal(agents, { findings, strict }) {
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const counted = (/** @type {number} */ count, /** @type {string} */ noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  const counts = `${counted(errors, "error")}, ${counted(findings.length - errors, "warning")}`;
  const why = errors === 0 && strict ? ", because warnings are errors here" : "";
  return new Complaint([...findings.map((finding) => line(agents, finding)), `${counts}: the definitions were not compiled${why}`].join("\n"));
}
