// `bobbin deploy`: deploys both Workers of a project in the right order, with the secrets they need.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "../compiler/project.mjs";
import { line } from "../compiler/compile.mjs";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { hasFilesBucket, makeFilesBucket, wantsFilesBucket } from "../lib/files-bucket.mjs";
import { openProject } from "../lib/project.mjs";
import { addressIn, secretsOf, withSecretFile, wranglerIn } from "../lib/wrangler.mjs";

const WORKER = "wrangler.jsonc";
const ISOLATE = "wrangler.isolate.jsonc";

/** Required secrets that can be generated. @type {Record<string, () => string>} */
const MADE = {
  BOBBIN_API_KEYS: () => `${secret()}=admin`,
  BOBBIN_TOKEN_SECRET: () => secret(),
  BOBBIN_SIGNING_SECRET: () => secret(),
  BOBBIN_ENCRYPTION_KEYS: () => `k1=${randomBytes(32).toString("base64")}`,
};
const secret = () => randomBytes(32).toString("base64url");

/** How long to wait until a new deployment responds. */
const PATIENCE_MS = 30_000;

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "deploy [--dry-run] [--files-bucket] [-- flags of wrangler deploy]",
  help: `  --dry-run        compiles, bundles and checks everything without deploying; needs no account
  --files-bucket   creates an R2 bucket for large files, and binds it; in a terminal, the first deploy offers it

Deploys the isolate Worker, then the Worker. The first deploy creates the secrets of the runtime, and prints the
administrator's key once. Existing secrets are kept. Set the keys of model providers yourself, such as
\`bobbin secret OPENAI_API_KEY\`.`,
  options: { "dry-run": { type: "boolean", default: false }, "files-bucket": { type: "boolean", default: false } },
  run: async (values, flags) => {
    const project = openProject();
    const dry = values["dry-run"] === true;
    const wrangler = wranglerIn(project.root);
    for (const finding of (await build(project)).findings) console.log(line(project.agents, finding));
    const deploy = (/** @type {string} */ config, /** @type {string[]} */ more, env = {}) => {
      const code = wrangler.show(["deploy", "--config", join(project.root, config), ...(dry ? ["--dry-run"] : []), ...more, ...flags], env);
      if (code !== 0) throw new Complaint(`${config} was not deployed.`, EXIT.failed);
    };
    console.log(`${dry ? "Checking" : "Deploying"} ${project.isolate.name}, which runs code.`);
    // First, because the Worker has a binding to it.
    deploy(ISOLATE, []);
    console.log(`${dry ? "Checking" : "Deploying"} ${project.config.name}.`);
    if (dry) {
      deploy(WORKER, []);
      console.log(`Nothing was deployed. A first deploy creates the secrets ${Object.keys(MADE).join(", ")}.`);
      return;
    }
    const found = secretsOf(wrangler, join(project.root, WORKER));
    const there = found ?? [];
    const { config } = project;
    if (!hasFilesBucket(config) && (values["files-bucket"] === true || (found === undefined && (await wantsFilesBucket(config))))) {
      makeFilesBucket(config, join(project.root, WORKER), wrangler);
    }
    const missing = Object.fromEntries(Object.entries(MADE).flatMap(([name, make]) => (there.includes(name) ? [] : [[name, make()]])));
    const address = withOutput((output) => {
      const env = { WRANGLER_OUTPUT_FILE_PATH: output };
      if (Object.keys(missing).length === 0) deploy(WORKER, [], env);
      else withSecretFile(JSON.stringify(missing), (path) => deploy(WORKER, ["--secrets-file", path], env));
      return addressIn(output);
    });
    await report(project, address, missing["BOBBIN_API_KEYS"]?.split("=")[0]);
  },
};

/** @template T @param {(path: string) => T} work @returns {T} */
function withOutput(work) {
  const folder = mkdtempSync(join(tmpdir(), "bobbin-deploy-"));
  try {
    return work(join(folder, "output.jsonl"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Prints the deployment's address, and the key and the token to begin with.
 *
 * @param {import("../lib/project.mjs").Project} project
 * @param {string | undefined} address
 * @param {string | undefined} key   for administration, if this deploy created it
 */
async function report({ config }, address, key) {
  console.log(`\n${config.name} is deployed${address === undefined ? "; wrangler has printed its address" : `: ${address}`}`);
  if (key === undefined) return;
  console.log(`\nAdministrator's key, shown only now:\n  ${key}`);
  const token = address === undefined ? undefined : await ownerToken(address, key);
  if (token !== undefined) console.log(`Token of the owner “me” for a browser, valid for an hour:\n  ${token}`);
  console.log(`\nTry it:\n  BOBBIN_URL=${address ?? "URL"} BOBBIN_KEY=${key} npx bobbin chat`);
}

/** Returns a token for one owner's threads, as soon as the deployment responds. @param {string} address @param {string} key */
async function ownerToken(address, key) {
  for (const until = Date.now() + PATIENCE_MS; Date.now() < until; await sleep(1000)) {
    try {
      const response = await fetch(new URL("/api/tokens", address), {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ scope: "owner:me", ttl: 3600 }),
      });
      if (response.ok) return /** @type {{ token?: string }} */ (await response.json()).token;
      // Its secrets or its host name have not propagated yet.
    } catch {
      // Not reachable yet.
    }
  }
  return undefined;
}
