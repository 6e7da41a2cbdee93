// `bobbin check`: reports mistakes in the definitions.

import { checkFolder } from "../compiler/project.mjs";
import { line, refusal } from "../compiler/compile.mjs";
import { EXIT } from "../lib/complaint.mjs";
import { openProject } from "../lib/project.mjs";

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "check [--strict] [--json]",
  help: `  --strict    warnings count as errors
  --json      {"ok", "findings": [{"file", "line", "column", "field", "severity", "message"}]}; files are below agents/

Exits with 1 if there are errors, or with --strict warnings. Writes nothing.`,
  options: { strict: { type: "boolean", default: false }, json: { type: "boolean", default: false } },
  run: async (values) => {
    const project = openProject();
    const compiled = await checkFolder(project.root, project.agents, { strict: values["strict"] });
    const { catalog, findings } = compiled;
    if (catalog === null) process.exitCode = EXIT.failed;
    if (values["json"]) return console.log(JSON.stringify({ ok: catalog !== null, findings }, null, 2));
    if (catalog === null) throw refusal(project.agents, compiled);
    for (const finding of findings) console.log(line(project.agents, finding));
    const { agents, prompts, tools } = JSON.parse(catalog);
    const counted = (/** @type {object} */ all, /** @type {string} */ noun) => `${Object.keys(all).length} ${noun}${Object.keys(all).length === 1 ? "" : "s"}`;
    console.log(`${counted(agents, "agent")}, ${counted(prompts, "prompt")}, ${counted(tools, "tool")}: ${findings.length > 0 ? `no errors, ${counted(findings, "warning")}` : "no errors, no warnings"}.`);
  },
};
