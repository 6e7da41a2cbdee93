// `npm run deploy`, as far as it goes without an account: what would be deployed, under which name, with whose definitions.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { prepare } from "../../scripts/server.mjs";
import { builtFolder } from "../../scripts/compile.mjs";
import { checkout, scratch } from "../worker/support/server.mjs";

const agents = scratch("deploy");
after(() => rmSync(agents, { recursive: true, force: true }));

/** @param {string[]} args */
async function deploy(...args) {
  const ran = promisify(execFile)(process.execPath, [join(checkout, "scripts/deploy.mjs"), ...args], { cwd: checkout });
  const { stdout, stderr } = await ran.catch((error) => error);
  return `${stdout}${stderr}`;
}

test("a deployment has the definitions that were named, a name, and variables in the Worker alone", async () => {
  for (const folder of ["models", "prompts", "agents"]) mkdirSync(join(agents, folder));
  writeFileSync(join(agents, "models/main.json"), '{ "provider": "demo", "model": "demo" }');
  writeFileSync(join(agents, "prompts/clerk.md"), "---\ntoolDescription: d\nmodel: main\nincludeChat: true\n---\nHi.\n");
  writeFileSync(join(agents, "agents/clerk.json"), '{ "sideA": { "prompt": "clerk", "maxSteps": 3 } }');
  const said = await deploy("--agents", agents, "--name", "my-bot", "--var", "COLOUR:red", "--dry-run");
  const [isolate = "", worker = ""] = said.split("--dry-run: exiting now.");
  assert.match(isolate, /No bindings found/, said);
  assert.doesNotMatch(isolate, /COLOUR/);
  assert.match(worker, /env\.ISOLATE \(my-bot-isolate#Isolate\)/, said);
  assert.match(worker, /env\.COLOUR/);
  assert.doesNotMatch(said, /red/);
});

test("mistakes in flags and definitions deploy nothing", async () => {
  assert.match(await deploy("--agents", join(agents, "nowhere")), /There is no folder .*nowhere: name the definitions/);
  assert.match(await deploy("--name", "My Bot"), /--name is made of small letters/);
  assert.match(await deploy("--agents"), /--agents needs a value/);
  writeFileSync(join(agents, "agents/clerk.json"), "{}");
  const said = await deploy("--agents", agents, "--dry-run");
  assert.match(said, /sideA: required but missing/);
  assert.doesNotMatch(said, /exiting now/);
});

test("a crate's wrangler.toml adds tables to Bobbin's, and nothing else", () => {
  const [crate, home] = [join(agents, "crate"), join(agents, "home")];
  mkdirSync(crate);
  const prepared = (/** @type {string} */ toml) => {
    writeFileSync(join(crate, "wrangler.toml"), toml);
    prepare(home, { dist: builtFolder("dist"), isolate: builtFolder("dist-isolate"), crate });
    return readFileSync(join(home, "wrangler.toml"), "utf8");
  };
  const queue = '[[queues.producers]]\nbinding = "JOBS"\nqueue = "jobs"\n';
  const whole = prepared(`# Mine.\n\n${queue}`);
  assert.ok(whole.startsWith(readFileSync(join(checkout, "wrangler.toml"), "utf8")));
  assert.ok(whole.endsWith(queue));
  assert.throws(() => prepared(`# Mine.\nname = "mine"\n${queue}`), /adds tables to Bobbin's wrangler\.toml.*“name = "mine"” is none/);
});
