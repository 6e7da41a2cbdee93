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
  help: `Plays *.test.json and *.test.md, of the folder tests unless others are named, and exits with
0 when every case passes, 1 when one fails, 2 when they cannot be run.

  --agents DIR    the definitions; agents unless given
  --crash         plays each case once more for each durable write, and drops its object there
  --live          also cases that ask real models; their keys are read from .dev.vars and the environment
  --record        asks models and tools, and records what they answer on the cassettes of the cases;
                  --record=missing only what is not there yet
  --url URL       plays cases that ask real models at this deployment, with the key in BOBBIN_KEY
                  (--key-env NAME: in another variable)
  --name TEXT     only cases whose names have this in them
  --json          one JSON document instead of lines
  --junit FILE    writes JUnit's XML, too`,
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
    if (record !== undefined && !["all", "missing"].includes(record)) throw new Complaint(`--record records all, or --record=missing; not “${record}”.`, EXIT.usage);
    if (record !== undefined && crash) throw new Complaint("Record first, then --crash: what is asked under crashes is nobody's record.", EXIT.usage);
    const project = process.cwd();
    const cases = readCases(paths.length > 0 ? paths : ["tests"], project).filter(({ name }) => name.includes(values["name"]));
    if (cases.length === 0) throw new Complaint("There are no cases: no *.test.json and no *.test.md.", EXIT.usage);
    const done = (/** @type {import("../test/suite.mjs").Result} */ result) => void (values["json"] || console.log(lines(result)));
    const began = performance.now();
    const results = values["url"] === undefined ? await here() : await deployed();
    const ms = performance.now() - began;
    console.log(values["json"] ? JSON.stringify(json(results, ms, VERSION), undefined, 2) : `\n${summary(results, ms)}`);
    if (values["junit"] !== undefined) writeFileSync(resolve(project, values["junit"]), junit(results, ms));
    async function here() {
      const agents = resolve(project, values["agents"]);
      if (!existsSync(agents)) throw new Complaint(`There are no definitions in ${values["agents"]}: name their folder with --agents.`, EXIT.usage);
      return runCases(cases, { agents, project, crash, live, ...(record && { record }), done });
    }
    async function deployed() {
      if (record !== undefined || crash) throw new Complaint("--url plays cases as clients do: neither --record nor --crash.", EXIT.usage);
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
