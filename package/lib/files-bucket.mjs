// The optional R2 bucket for a deployment's large files: creates it and binds it.

import { createInterface } from "node:readline/promises";
import { Complaint } from "./complaint.mjs";
import { readIfThere, shown, writeWhole } from "./files.mjs";
import { parseJsonc } from "./jsonc.mjs";
import { someoneIsThere } from "./terminal.mjs";

/** The name of the binding in the Worker. */
const BINDING = "FILES";

/** Returns whether the Worker has the binding. @param {import("./project.mjs").Config} config */
export const hasFilesBucket = ({ r2_buckets: buckets = [] }) => buckets.some(({ binding }) => binding === BINDING);

/**
 * Removes the binding where no buckets exist. Large files are then stored in the threads' databases. Other buckets
 * stay in the configuration, and are rejected later.
 *
 * @param {import("./project.mjs").Config} config
 * @returns {import("./project.mjs").Config}
 */
export function withoutFilesBucket({ r2_buckets: buckets = [], ...config }) {
  const others = buckets.filter(({ binding }) => binding !== BINDING);
  return others.length === 0 ? config : { ...config, r2_buckets: others };
}

/** If a person is at the terminal, asks whether to create the bucket. @param {import("./project.mjs").Config} config */
export async function wantsFilesBucket({ name }) {
  if (!someoneIsThere()) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`Create the R2 bucket ${bucketOf(name)} for large files of threads? R2 must be enabled for the account. Without a bucket, the threads' databases store them. [y/N] `);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}

/** @param {string} name  the Worker's name */
const bucketOf = (name) => `${name}-files`;

/**
 * Creates the bucket unless it exists, and adds the binding to the configuration.
 *
 * @param {import("./project.mjs").Config} config
 * @param {string} path                             the configuration's path
 * @param {import("./wrangler.mjs").Wrangler} wrangler
 */
export function makeFilesBucket({ name, r2_buckets: others }, path, wrangler) {
  const bucket = bucketOf(name);
  const own = `{ "binding": "${BINDING}", "bucket_name": "${bucket}" }`;
  if (others !== undefined) throw new Complaint(`${shown(path)} binds other buckets. Add ${own} to its \`r2_buckets\`.`);
  // Edit the text before creating the bucket, because the edit can fail.
  const bound = withBuckets(readIfThere(path) ?? "", `[${own}]`);
  if (bound === undefined) throw new Complaint(`Bobbin cannot edit ${shown(path)}. Add "r2_buckets": [${own}] to it.`);
  const { code, all } = wrangler.ask(["r2", "bucket", "create", bucket]);
  // Code 10004: the bucket exists and belongs to this account.
  if (code !== 0 && !/code: 10004|already exists/i.test(all)) throw new Complaint(`${all.trim()}\nThe bucket ${bucket} was not created, and the Worker was not deployed.`);
  writeWhole(path, bound);
  console.log(`Large files of threads are stored in the bucket ${bucket}. Its binding is in ${shown(path)}.`);
}

/** The commented-out property of the template. */
const COMMENTED = /^([ \t]*)\/\/[ \t]*"r2_buckets"[ \t]*:.*$/m;
/** Everything up to the brace that opens the configuration. */
const OPENING = /^(?:\s|\/\/.*|\/\*[^]*?\*\/)*\{/;

/**
 * Adds `r2_buckets` to a configuration and keeps its comments: in the place of the commented-out property, or at the
 * beginning, where no comma is missing. Returns undefined if neither is valid.
 *
 * @param {string} text      the configuration
 * @param {string} buckets   JSON
 * @returns {string | undefined}
 */
export function withBuckets(text, buckets) {
  const edits = [
    text.replace(COMMENTED, (_, indent) => `${indent}"r2_buckets": ${buckets},`),
    text.replace(OPENING, (opening) => `${opening}\n  // Large files of threads.\n  "r2_buckets": ${buckets},`),
  ];
  return edits.find((edited) => {
    try {
      return JSON.stringify(parseJsonc(edited).r2_buckets) === JSON.stringify(JSON.parse(buckets));
    } catch {
      return false;
    }
  });
}
