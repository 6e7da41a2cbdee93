// `npm run build`: the Worker, complete in dist/ (worker.mjs), and the isolate Worker in dist-isolate/ (isolate.mjs), for a release.
// With --development, or BOBBIN_BUILD=quick, both are built for development, in folders of their own.
//
// While npm installs packages, cargo compiles both wasm modules and the build tool. Each step is skipped while its sources are
// unchanged.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { compileCatalog } from "./catalog.mjs";
import { buildTool, compileForWasm, isToolBuilt, productOf, profile } from "./compile.mjs";
import { inCheckout, locked } from "./files.mjs";
import { isIsolateBuilt, isolateFolder, packIsolate } from "./isolate.mjs";
import { main, step, stopPrograms } from "./run.mjs";
import { buildStd, TARGET, wasmCompiler } from "./rust.mjs";
import { arePackagesInstalled, checkPrograms, installPackages, wranglerNode } from "./setup.mjs";
import { isWorkerBuilt, packWorker } from "./worker.mjs";

/**
 * @typedef {object} Built
 * @property {string} node        a Node that wrangler runs on
 * @property {string} dist        the folder of the Worker
 * @property {string} isolate     the folder of the isolate Worker
 */

/**
 * Sets the machine up and builds both Workers, as far as they are out of date.
 *
 * @param {string} [crate]  the folder of an application's own crate
 * @returns {Promise<Built>}
 */
export async function build(crate) {
  await checkPrograms();
  const [compiler, product] = await Promise.all([wasmCompiler(), productOf(crate)]);
  const isBuilt = () => arePackagesInstalled() && isToolBuilt() && isWorkerBuilt(compiler, product) && isIsolateBuilt(compiler);
  // Checked before locking, so that nobody waits for another build.
  if (!isBuilt()) {
    await locked(inCheckout(".bobbin/build.lock"), async () => {
      if (!isBuilt()) await make(compiler, product);
    });
  }
  return { node: wranglerNode(), dist: product.dist, isolate: isolateFolder() };
}

/** @param {import("./rust.mjs").Compiler} compiler @param {import("./compile.mjs").Product} product */
async function make(compiler, product) {
  try {
    await Promise.all([installPackages(), buildTool(), compileWorkers(compiler, product)]);
  } catch (error) {
    // The first failure is reported at once, not after minutes of compilation.
    stopPrograms();
    throw error;
  }
  await Promise.all([
    isWorkerBuilt(compiler, product) || packWorker(compiler, product),
    isIsolateBuilt(compiler) || packIsolate(compiler),
  ]);
}

/** How long the first compilation of the Workers takes on two processors, beside the build tool, in seconds. */
const USUAL = 200;

/**
 * Compiles the wasm modules of both Workers, as far as they are out of date.
 *
 * @param {import("./rust.mjs").Compiler} compiler @param {import("./compile.mjs").Product} product
 */
export async function compileWorkers(compiler, product) {
  if (isWorkerBuilt(compiler, product) && isIsolateBuilt(compiler)) return;
  await buildStd(compiler);
  const first = !existsSync(inCheckout(`target/${TARGET}/${profile()}`));
  await step("Workers (Rust)", (note) => compileForWasm(compiler, product, note), first ? { usual: USUAL } : {});
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const { values } = parseArgs({ options: { development: { type: "boolean" } } });
    if (values.development) process.env.BOBBIN_BUILD ??= "quick";
    const { dist } = await build();
    await compileCatalog(inCheckout("agents"), join(dist, "catalog.json"));
  });
}
