// `npm run deploy`: builds both Workers and deploys them with wrangler, from a temporary folder with an application's
// definitions.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { build } from "./build.mjs";
import { compileCatalog } from "./catalog.mjs";
import { inCheckout } from "./files.mjs";
import { Complaint, main } from "./run.mjs";
import { prepare } from "./server.mjs";

const HELP = `npm run deploy -- [flags]

  --agents DIR      the folder with the definitions (default agents)
  --crate DIR       a Rust crate of yours with native tools, and a wrangler.toml for its bindings (docs/native-tools.md)
  --name NAME       what the Worker is called (default bobbin); the isolate Worker is called NAME-isolate
  --dry-run         builds and checks everything, and deploys nothing
  --help            this text

All other flags go to \`wrangler deploy\`: variables, routes, domains and schedules to the Worker alone, the rest to
both. Secrets are set with \`npx wrangler secret put\`.`;

/** wrangler's flags with a value that apply only to the Worker. The sandbox must have no resources of its own. */
const OF_WORKER = ["var", "define", "alias", "route", "routes", "domain", "domains", "schedule", "schedules", "triggers", "secrets-file", "assets", "site"];

await main(async () => {
  const flags = readFlags(process.argv.slice(2));
  if (!flags) return console.log(HELP);
  const { agents, crate, name } = flags;
  if (!existsSync(agents) || !statSync(agents).isDirectory()) {
    throw new Complaint(`There is no folder ${agents}: name the definitions with \`npm run deploy -- --agents DIR\`.`);
  }
  if ((process.env.BOBBIN_BUILD ?? "release") !== "release" && !flags.both.includes("--dry-run")) {
    throw new Complaint("BOBBIN_BUILD is set: what is deployed is built for release. Unset it, and deploy again.");
  }
  const { node, dist, isolate } = await build(crate);
  // A folder of its own, because another deployment may be running.
  mkdirSync(inCheckout(".bobbin"), { recursive: true });
  const home = mkdtempSync(inCheckout(".bobbin/deploy-"));
  process.once("exit", () => rmSync(home, { recursive: true, force: true }));
  prepare(home, { dist, isolate, crate });
  await compileCatalog(agents, join(home, "dist/catalog.json"), { ownNatives: crate !== undefined });
  if (name !== undefined) rename(home, name);

  const wrangler = inCheckout("node_modules/wrangler/wrangler-dist/cli.js");
  // The isolate first, because the Worker is bound to it.
  for (const { config, more } of [
    { config: "isolate/wrangler.toml", more: [] },
    { config: "wrangler.toml", more: flags.worker },
  ]) {
    const args = ["--no-warnings", wrangler, "deploy", "--config", join(home, config), ...flags.both, ...more];
    const { status } = spawnSync(node, args, { cwd: home, stdio: "inherit" });
    if (status !== 0) {
      process.exitCode = status ?? 1;
      return;
    }
  }
});

/**
 * Renames both Workers, including the binding between them.
 *
 * @param {string} home
 * @param {string} name
 */
function rename(home, name) {
  for (const file of ["wrangler.toml", "isolate/wrangler.toml"]) {
    const path = join(home, file);
    const text = readFileSync(path, "utf8");
    const renamed = text.replace(/^((?:name|service) = )"bobbin(-isolate)?"$/gm, (_, field, isolate = "") => `${field}"${name}${isolate}"`);
    if (renamed === text) throw new Complaint(`${file} names its Worker in a way that --name does not know: give it the name there.`);
    writeFileSync(path, renamed);
  }
}

/** @param {string[]} args */
function readFlags(args) {
  /** @type {{ agents: string, crate?: string, name?: string, worker: string[], both: string[] }} */
  const flags = { agents: resolve(inCheckout("."), "agents"), worker: [], both: [] };
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (arg === "--help" || arg === "-h") return undefined;
    const [, flag = "", given] = /^--([a-z-]+)(?:=(.*))?$/s.exec(arg) ?? [];
    const own = ["agents", "crate", "name"].includes(flag);
    if (!own && !OF_WORKER.includes(flag)) {
      flags.both.push(arg);
      continue;
    }
    const value = given ?? args[++at];
    if (value === undefined) throw new Complaint(`--${flag} needs a value. \`npm run deploy -- --help\` lists the flags.`);
    if (flag === "name") {
      if (!/^[a-z0-9][a-z0-9-]{0,52}$/.test(value)) {
        throw new Complaint(`--name is made of small letters, digits and dashes, 53 at most, not “${value}”.`);
      }
      flags.name = value;
    } else if (flag === "agents" || flag === "crate") {
      flags[flag] = resolve(inCheckout("."), value);
    } else {
      flags.worker.push(`--${flag}`, value);
    }
  }
  return flags;
}
