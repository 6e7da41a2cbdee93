// The optional R2 bucket for a deployment's large files: creates it and binds it.

import { createInterface } from "node:readline/promises";
import { Complaint } from "./complaint.mjs";
import { readIfThere, shown, writeWhole } from "./files.mjs";
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
    const said = await terminal.question(`Keep large files of threads in a bucket of R2, ${bucketOf(name)}? R2 has to be switched on for the account. Without it they lie in the threads' databases. [y/N] `);
    return /^y(es)?$/i.test(said.trim());
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
  if (others !== undefined) throw new Complaint(`${shown(path)} binds other buckets: add ${own} to \`r2_buckets\` there.`);
  const { code, all } = wrangler.ask(["r2", "bucket", "create", bucket]);
  // Code 10004: the bucket exists and belongs to this account.
  if (code !== 0 && !/code: 10004|already exists/i.test(all)) throw new Complaint(`${all.trim()}\nThe bucket ${bucket} was not made, and the Worker was not deployed.`);
  const text = readIfThere(path) ?? "";
  // Remove the template's hint about the bucket.
  const without = text.replace(/\n *\/\/ Optional: large files of threads.*\n *\/\/ "r2_buckets":.*\n/, "\n");
  // Insert at the front, so that no comma has to be added.
  const open = /^(?:\s|\/\/.*|\/\*[^]*?\*\/)*\{/.exec(without)?.[0];
  if (open === undefined) throw new Complaint(`${shown(path)} does not begin with \`{\`: add "r2_buckets": [${own}] there.`);
  writeWhole(path, `${open}\n  // Large files of threads.\n  "r2_buckets": [${own}],${without.slice(open.length)}`);
  console.log(`Large files of threads go to ${bucket}: ${shown(path)} binds it.`);
}
