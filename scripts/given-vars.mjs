// Loaded into wrangler's process: gives it the variables of the Worker as if they were among its arguments. They are in a
// file that nobody else may read, because any program of this machine may read command lines.

import { readFileSync, rmSync } from "node:fs";

const { BOBBIN_VARS_FILE: file } = process.env;
if (file !== undefined) {
  delete process.env.BOBBIN_VARS_FILE;
  /** @type {Record<string, string>} */
  const vars = JSON.parse(readFileSync(file, "utf8"));
  rmSync(file);
  process.argv.push(...Object.entries(vars).flatMap(([name, value]) => ["--var", `${name}:${value}`]));
}
