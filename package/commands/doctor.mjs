// `bobbin doctor`: reports present and upcoming problems, and what to do about them.

import { cwd } from "node:process";
import { BobbinError } from "bobbin/client";
import { exactly } from "../lib/arguments.mjs";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { agents, machine, projectOf, retired, server } from "../lib/findings.mjs";
import { bold, dim, print, printJson } from "../lib/output.mjs";
import { reach, refused, TARGET_HELP, TARGET_OPTIONS } from "../lib/target.mjs";

/** @typedef {import("../lib/findings.mjs").Finding} Finding */

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "doctor",
  help: `${TARGET_HELP}

Checks this machine (Node.js, wrangler), the server (version, clock, key, surfaces), its agents (missing keys and variables),
and the project's models (those that their provider retires). Exits with 1 if there is an error.`,
  options: TARGET_OPTIONS,
  run: async (values, positionals) => {
    exactly(positionals, []);
    const project = projectOf(cwd());
    const found = [...machine(project), ...(project === undefined ? [] : retired(project, new Date())), ...(await ofServer(values))];
    if (values["json"]) printJson({ findings: found });
    else print(found.map(text).join("\n"));
    if (found.some(({ level }) => level === "error")) process.exitCode = EXIT.failed;
  },
};

/** @param {Record<string, any>} values @returns {Promise<Finding[]>} */
async function ofServer(values) {
  /** @type {import("../lib/target.mjs").Target} */
  let target;
  try {
    target = await reach(values);
  } catch (error) {
    if (!(error instanceof Complaint)) throw error;
    return [{ level: "error", what: "server", message: error.message }];
  }
  /** @type {Finding[]} */
  const found = [];
  try {
    found.push(...(await server(target)));
    if (!found.some(({ what, level }) => what === "key" && level === "error")) found.push(...(await agents(target.client)));
  } catch (error) {
    if (!(error instanceof BobbinError)) throw error;
    found.push({ level: "error", what: "server", message: refused(error, target).message });
  }
  return found;
}

const SIGNS = { ok: "✓", info: "·", warning: "!", error: "✗" };

/** @param {Finding} finding */
function text({ level, what, message, advice }) {
  const said = `${SIGNS[level]} ${what}: ${message}`;
  return `${level === "error" ? bold(said) : said}${advice === undefined ? "" : `\n  ${dim(advice)}`}`;
}
