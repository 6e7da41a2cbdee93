// A project: a folder with wrangler.jsonc, definitions in agents/, and the runtime's files in .bobbin/.

import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Complaint, EXIT } from "./complaint.mjs";
import { shown } from "./files.mjs";
import { readJsonc } from "./jsonc.mjs";

/**
 * The fields of wrangler's configuration that Bobbin reads.
 *
 * @typedef {object} Config
 * @property {string} name
 * @property {string} [main]
 * @property {string} compatibility_date
 * @property {string[]} [compatibility_flags]
 * @property {Record<string, string>} [alias]
 * @property {Record<string, unknown>} [vars]
 * @property {{ bindings: { name: string, class_name: string }[] }} [durable_objects]
 * @property {{ binding: string, service: string, entrypoint?: string }[]} [services]
 * @property {{ binding: string }[]} [worker_loaders]
 * @property {{ binding: string, bucket_name?: string, remote?: boolean }[]} [r2_buckets]
 */

/**
 * @typedef {object} Project
 * @property {string} root
 * @property {string} agents       the folder of the definitions
 * @property {string} catalog      the path of the compiled catalog
 * @property {Config} config       the Worker's configuration
 * @property {Config} isolate      the isolate Worker's configuration
 */

const WORKER = "wrangler.jsonc";
const ISOLATE = "wrangler.isolate.jsonc";

/** Returns the nearest project folder at or above `from`. @param {string} [from] @returns {string | undefined} */
export function projectRoot(from = process.cwd()) {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    if (existsSync(join(folder, WORKER)) && existsSync(join(folder, "agents"))) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}

/** @param {string} [from] @returns {Project} */
export function openProject(from) {
  const root = projectRoot(from);
  if (root === undefined) {
    throw new Complaint(`There is no project here. A project is a folder with ${WORKER} and agents/. \`bobbin init my-agent\` creates one.`, EXIT.usage);
  }
  const config = readConfig(join(root, WORKER));
  const isolate = readConfig(join(root, ISOLATE));
  if (!config) throw new Complaint(`${shown(join(root, WORKER))} is missing.`, EXIT.usage);
  if (!isolate) throw new Complaint(`${shown(join(root, ISOLATE))} is missing. It configures the Worker that runs code. \`bobbin init\` in an empty folder creates an example.`, EXIT.usage);
  return { root, agents: join(root, "agents"), catalog: join(root, ".bobbin/catalog.json"), config, isolate };
}

/** @param {string} path @returns {Config | undefined} */
function readConfig(path) {
  const config = readJsonc(path);
  if (config === undefined) return undefined;
  for (const field of ["name", "compatibility_date"]) {
    if (typeof config[field] !== "string") throw new Complaint(`${shown(path)}: \`${field}\` is missing.`, EXIT.usage);
  }
  return config;
}
