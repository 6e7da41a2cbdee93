// `bobbin test`: runs the test cases of a project's agents.

import { existsSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { VERSION } from "../lib/version.mjs";
import { findCases, readCase } from "../test/cases.mjs";
import { json, junit, lines, summary } from "../test/report.mjs";
import { runCases, runDeployed } from "../test/suite.mjs";

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "test [files or folders …] [--crash] [--live] [--record[=missing]] [--json] [--junit FILE]",
  help: `Runs the cases in *.test.json and *.test.md, by default in the folder tests. Exits with 0 if every
case passes, 1 if one fails, 2 if they cannot be run.

  --agents DIR    the folder of the definitions (default agents)
  --crash         runs each case again for each durable write, and drops its object there
  --live          includes cases with real models; their keys come from .dev.vars and the environment
  --record        sends requests to models and tools, and records the responses on the cassettes of
                  the cases; --record=missing records only what is missing
  --url URL       runs cases with real models on this deployment, with the key in BOBBIN_KEY
                  (--key-env NAME: in another variable)
  --name TEXT     only cases whose names contain this text
  --json          prints one JSON document instead of lines
  --junit FILE    also writes JUnit's XML`,
  options: {
    agents: { type: "string", default: "agents" },
    crash: { type: "boolean", default: false },
    live: { type: "boolean", default: false },
    record: { type: "string" },
    url: { type: "string" },
    "key-env": { type: "string" },
    name: { type: "string", default: "" },
    json: { type: "boolean", default: false },
    junit: { type: "string" },
  },
  // Allows `--record` without a value.
  rewrite: (args) => args.map((arg) => (arg === "--record" ? "--record=all" : arg)),
  async run(values, paths) {
    const { crash, live, record } = values;
    if (record !== undefined && !["all", "missing"].includes(record)) throw new Complaint(`Use --record or --record=missing, not “${record}”.`, EXIT.usage);
    if (record !== undefined && crash) throw new Complaint("Record first, and use --crash afterwards. Requests under crashes are not recorded.", EXIT.usage);
    const project = process.cwd();
    const cases = readCases(paths.length > 0 ? paths : ["tests"], project).filter(({ name }) => name.includes(values["name"]));
    if (cases.length === 0) throw new Complaint("There are no cases: *.test.json or *.test.md.", EXIT.usage);
    const done = (/** @type {import("../test/suite.mjs").Result} */ result) => void (values["json"] || console.log(lines(result)));
    const began = performance.now();
    const results = values["url"] === undefined ? await here() : await deployed();
    const ms = performance.now() - began;
    console.log(values["json"] ? JSON.stringify(json(results, ms, VERSION), undefined, 2) : `\n${summary(results, ms)}`);
    if (values["junit"] !== undefined) writeFileSync(resolve(project, values["junit"]), junit(results, ms));
    async function here() {
      const agents = resolve(project, values["agents"]);
      if (!existsSync(agents)) throw new Complaint(`There are no definitions in ${values["agents"]}. Name their folder with --agents.`, EXIT.usage);
      return runCases(cases, { agents, project, crash, live, ...(record && { record }), done });
    }
    async function deployed() {
      if (record !== undefined || crash) throw new Complaint("--url works like a client, without --record and --crash.", EXIT.usage);
      // Load the client only here. It exists only in the assembled package.
      const { keyOf, reach } = await import("../lib/target.mjs");
      const { url } = await reach(values);
      return runDeployed(cases, { url, key: keyOf(values), done });
    }
    if (results.some(({ state }) => state === "failed")) process.exitCode = EXIT.failed;
  },
};

/** Reads all cases and reports every one that is invalid. @param {string[]} paths @param {string} project */
function readCases(paths, project) {
  /** @type {string[]} */
  const wrong = [];
  const cases = findCases(paths, project).flatMap((path) => {
    try {
      return [readCase(path, project)];
    } catch (error) {
      if (!(error instanceof Complaint)) throw error;
      wrong.push(error.message);
      return [];
    }
  });
  if (wrong.length > 0) throw new Complaint(wrong.join("\n"), EXIT.usage);
  return cases;
}
