// Loaded into wrangler's process: adds the Worker's variables to its arguments. They come in a file that only this user can
// read, because any program of the machine can read command lines.

import { readFileSync, rmSync } from "node:fs";

const { BOBBIN_VARS_FILE: file } = process.env;
if (file !== undefined) {
  delete process.env.BOBBIN_VARS_FILE;
  /** @type {Record<string, string>} */
  const vars = JSON.parse(readFileSync(file, "utf8"));
  rmSync(file);
  process.argv.push(...Object.entries(vars).flatMap(([name, value]) => ["--var", `${name}:${value}`]));
}
