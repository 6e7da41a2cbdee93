// The bucket in which a deployment keeps large files of threads: made and bound when somebody wants it.

import { createInterface } from "node:readline/promises";
import { Complaint } from "./complaint.mjs";
import { readIfThere, shown, writeWhole } from "./files.mjs";
import { someoneIsThere } from "./terminal.mjs";

/** What the Worker calls it. */
const BINDING = "FILES";

/** Whether a Worker is bound to one. @param {import("./project.mjs").Config} config */
export const hasFilesBucket = ({ r2_buckets: buckets = [] }) => buckets.some(({ binding }) => binding === BINDING);

/**
 * The same Worker without it, where there are no buckets: large files lie in the threads' databases then. Others stay, and are refused.
 *
 * @param {import("./project.mjs").Config} config
 * @returns {import("./project.mjs").Config}
 */
export function withoutFilesBucket({ r2_buckets: buckets = [], ...config }) {
  const others = buckets.filter(({ binding }) => binding !== BINDING);
  return others.length === 0 ? config : { ...config, r2_buckets: others };
}

/** Asks, where somebody is there to answer, whether there is to be one. @param {import("./project.mjs").Config} config */
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

/** @param {string} name  of the Worker */
const bucketOf = (name) => `${name}-files`;

/**
 * Makes the bucket, unless it is there, and binds it in the configuration.
 *
 * @param {import("./project.mjs").Config} config
 * @param {string} path                             of the configuration
 * @param {import("./wrangler.mjs").Wrangler} wrangler
 */
export function makeFilesBucket({ name, r2_buckets: others }, path, wrangler) {
  const bucket = bucketOf(name);
  const own = `{ "binding": "${BINDING}", "bucket_name": "${bucket}" }`;
  if (others !== undefined) throw new Complaint(`${shown(path)} binds other buckets: add ${own} to \`r2_buckets\` there.`);
  const { code, all } = wrangler.ask(["r2", "bucket", "create", bucket]);
  // 10004: it is there already, and this account's.
  if (code !== 0 && !/code: 10004|already exists/i.test(all)) throw new Complaint(`${all.trim()}\nThe bucket ${bucket} was not made, and the Worker was not deployed.`);
  const text = readIfThere(path) ?? "";
  // What the template says of it is done now.
  const without = text.replace(/\n *\/\/ Optional: large files of threads.*\n *\/\/ "r2_buckets":.*\n/, "\n");
  // In the front: whatever comes behind it has its commas already.
  const open = /^(?:\s|\/\/.*|\/\*[^]*?\*\/)*\{/.exec(without)?.[0];
  if (open === undefined) throw new Complaint(`${shown(path)} does not begin with \`{\`: add "r2_buckets": [${own}] there.`);
  writeWhole(path, `${open}\n  // Large files of threads.\n  "r2_buckets": [${own}],${without.slice(open.length)}`);
  console.log(`Large files of threads go to ${bucket}: ${shown(path)} binds it.`);
}
