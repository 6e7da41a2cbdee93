// `node scripts/own-worker.mjs CRATE OUT`: compiles the Worker of an outside project, with its crate, in the form of the
// package: the project decides which catalog it imports.

import { copyFileSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { build } from "./build.mjs";
import { nameCatalog } from "./package.mjs";
import { Complaint, main } from "./run.mjs";

await main(async () => {
  const [crate, out] = process.argv.slice(2);
  if (crate === undefined || out === undefined) throw new Complaint("own-worker.mjs takes the folder of a crate, and the folder for its Worker.");
  const { dist } = await build(resolve(crate));
  mkdirSync(out, { recursive: true });
  for (const name of ["index.js", "index_bg.wasm"]) copyFileSync(join(dist, name), join(out, name));
  nameCatalog(join(out, "index.js"));
});
