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

/** @typedef {import("./rust.mjs").Compiler} Compiler @typedef {import("./compile.mjs").Product} Product */

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
  await make(compiler, product, { sandbox: true });
  return { node: wranglerNode(), dist: product.dist, isolate: isolateFolder() };
}

/**
 * The same for `npm start`. On a fresh machine it ends when the Worker is built, and returns the rest of the work as `later`.
 *
 * @param {string} [crate]
 * @returns {Promise<Built & { later?: Promise<void> }>}
 */
export async function buildForStart(crate) {
  if (existsSync(join(isolateFolder(), "index.js"))) return build(crate);
  await checkPrograms();
  const [compiler, product] = await Promise.all([wasmCompiler(), productOf(crate)]);
  await make(compiler, product, { sandbox: false });
  const later = make(compiler, product, { sandbox: true });
  return { node: wranglerNode(), dist: product.dist, isolate: isolateFolder(), later };
}

/** Builds what is out of date. @param {Compiler} compiler @param {Product} product @param {{ sandbox: boolean }} parts */
async function make(compiler, product, parts) {
  const missing = () => ({ worker: isWorkerBuilt(compiler, product) ? undefined : product, sandbox: parts.sandbox && !isIsolateBuilt(compiler) });
  const isDone = () => arePackagesInstalled() && isToolBuilt() && !missing().worker && !missing().sandbox;
  // Checked before locking, so that nobody waits for another build.
  if (isDone()) return;
  await locked(inCheckout(".bobbin/build.lock"), async () => {
    const { worker, sandbox } = missing();
    try {
      await Promise.all([installPackages(), buildTool(), compile(compiler, { worker, sandbox })]);
    } catch (error) {
      // The first failure is reported at once, not after minutes of compilation.
      stopPrograms();
      throw error;
    }
    await Promise.all([worker && packWorker(compiler, worker), sandbox && packIsolate(compiler)]);
  });
}

/** How long the first compilation of the Worker takes on two processors, beside the build tool, in seconds. */
const USUAL = 180;

/** @param {Compiler} compiler @param {import("./compile.mjs").Parts} parts */
async function compile(compiler, parts) {
  if (!parts.worker && !parts.sandbox) return;
  await buildStd(compiler);
  const first = !existsSync(inCheckout(`target/${TARGET}/${profile()}`));
  const title = `${[parts.worker && "Worker", parts.sandbox && "sandbox"].filter(Boolean).join(" and ")} (Rust)`;
  await step(title, (note) => compileForWasm(compiler, parts, note), first ? { usual: USUAL } : {});
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const { values } = parseArgs({ options: { development: { type: "boolean" } } });
    if (values.development) process.env.BOBBIN_BUILD ??= "quick";
    const { dist } = await build();
    await compileCatalog(inCheckout("agents"), join(dist, "catalog.json"));
  });
}
