// `bobbin mcp`: pins the tools of MCP servers in the project.

import { resolve } from "node:path";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { projectOf } from "../lib/findings.mjs";
import { writeWhole } from "../lib/files.mjs";
import { harmless, note, oneLine, print, printJson } from "../lib/output.mjs";
import { lines } from "../mcp/changes.mjs";
import { serverNames, variables } from "../mcp/definitions.mjs";
import { look } from "../mcp/servers.mjs";

/** @typedef {import("../mcp/servers.mjs").Looked} Looked */
/** @typedef {{ name: string, looked: Looked } | { name: string, error: string }} Result */

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "mcp pull|check [name …] [--json]",
  help: `  pull               requests the tools of the servers in agents/mcp, and writes agents/mcp/<name>.tools.json
  check              compares these files with the servers, writes nothing, and exits with 1 if there is a difference
  <name>             only these servers (default: all)
  --agents DIR       the folder of the definitions (default: agents of the project)
  --bearer-env NAME  the variable that contains a token, for a server with a sign-in
  --json             {"servers": [{"name", "protocol", "server", "tools", "same", "new", "gone", "changed", "refused", "repeats", "written"} or
                     {"name", "error"}]}

Variables of a definition come from the environment and .dev.vars. Read the changes before you commit them: models follow
the descriptions of tools.`,
  options: { agents: { type: "string" }, "bearer-env": { type: "string" }, json: { type: "boolean", default: false } },
  run: async (values, [verb, ...names]) => {
    if (verb !== "pull" && verb !== "check") throw new Complaint("Use `bobbin mcp pull` or `bobbin mcp check`.", EXIT.usage);
    const project = projectOf(".");
    if (project === undefined && values["agents"] === undefined) throw new Complaint("There is no project here: the folder agents is missing.", EXIT.usage);
    const root = project ?? process.cwd();
    const agents = values["agents"] === undefined ? resolve(root, "agents") : resolve(values["agents"]);
    const all = serverNames(agents);
    const unknown = names.find((name) => !all.includes(name));
    if (unknown !== undefined) throw new Complaint(`There is no server ${oneLine(unknown)} in agents/mcp. ${all.length > 0 ? `The servers are ${all.join(", ")}.` : "The folder is empty."}`, EXIT.usage);
    const given = variables(root);
    const results = await Promise.all((names.length > 0 ? names : all).map((name) => resultOf(() => look({ agents, given, bearer: values["bearer-env"] }, name), name)));
    if (verb === "pull") for (const result of results) if ("looked" in result) pin(agents, result.looked);
    if (values["json"]) printJson({ servers: results.map((result) => json(result, verb)) });
    else report(results, verb);
    if (results.some((result) => !("looked" in result) || (verb === "check" && isDifferent(result.looked)))) process.exitCode = EXIT.failed;
  },
};

/** @param {() => Promise<Looked>} looking @param {string} name @returns {Promise<Result>} */
async function resultOf(looking, name) {
  try {
    return { name, looked: await looking() };
  } catch (error) {
    if (error instanceof Complaint) return { name, error: error.message };
    throw error;
  }
}

/**
 * Returns whether a pinned list differs from the server's. Live lists are read at the start of a run and never pinned.
 * @param {Looked} looked
 */
const isDifferent = ({ list, same }) => list === "pinned" && !same;

/** @param {string} agents @param {Looked} looked */
function pin(agents, { list, name, text }) {
  if (list === "pinned") writeWhole(resolve(agents, "mcp", `${name}.tools.json`), text);
}

/** @param {Result} result @param {string} verb */
function json(result, verb) {
  if (!("looked" in result)) return result;
  const { name, looked: { list, protocol, server, tools, pinned, was, same, changes, refused, repeats } } = result;
  return { name, list, protocol, server, tools, pinned, was, same, written: verb === "pull" && list === "pinned", ...changes, refused, repeats };
}

/** @param {Result[]} results @param {string} verb */
function report(results, verb) {
  if (results.length === 0) return note("There are no servers in agents/mcp.");
  for (const result of results) {
    if (!("looked" in result)) {
      note(result.error);
      continue;
    }
    const { name, protocol, server, tools, list, file, pinned, was, changes, refused, repeats, same } = result.looked;
    const about = oneLine([server.name, server.version].filter((part) => part !== "").join(" "));
    print(`${name}: ${protocol}${about === "" ? "" : `, ${about}`}, ${tools} tool${tools === 1 ? "" : "s"}${list === "live" ? ", listed live" : ""}`);
    if (repeats) note("  its list repeats a page; the tools before it were read");
    for (const { tool, reason } of refused) note(`  left out: ${oneLine(tool) || "a tool without a name"}: ${reason}`);
    if (list === "live") continue;
    if (pinned && was !== protocol) print(`  protocol\n    - ${oneLine(String(was))}\n    + ${protocol}`);
    for (const line of lines(changes)) print(`  ${harmless(line)}`);
    if (verb === "pull") print(same ? `  nothing changed in ${file}` : `  wrote ${file}`);
    else if (!pinned) print(`  not pinned yet: run \`bobbin mcp pull ${name}\``);
    else print(same ? "  same as pinned" : `  differs from ${file}: read the changes, then run \`bobbin mcp pull ${name}\``);
  }
}
