// Compiles the catalog of a project.

import { wasmCompiler } from "./wasm.mjs";
import { compile, refusal } from "./compile.mjs";
import { builtFile, esbuildOf } from "../lib/resolve.mjs";
import { writeWhole } from "../lib/files.mjs";
import { buildPage } from "../lib/page.mjs";
import { buildCrate, hasCrate } from "../lib/rust.mjs";

/**
 * Checks and compiles a project's definitions.
 *
 * @param {string} root     the project's folder
 * @param {string} agents   the folder of the definitions
 * @param {{ strict?: boolean }} [settings]
 * @returns {Promise<import("./compile.mjs").Compiled>}
 */
export async function checkFolder(root, agents, settings) {
  const esbuild = await esbuildOf(root);
  const compiled = await compile(agents, { esbuild, web: builtFile("dist/web"), compiler: compiler() }, { ...settings, ownNatives: hasCrate(root) });
  // Otherwise esbuild's process would run until this one exits.
  await esbuild.stop();
  return compiled;
}

/**
 * Like `checkFolder`, but throws if the definitions are invalid.
 *
 * @param {string} root
 * @param {string} agents
 * @param {{ strict?: boolean }} [settings]
 * @returns {Promise<import("./compile.mjs").Compiled & { catalog: string }>}
 */
export async function compileFolder(root, agents, settings) {
  const compiled = await checkFolder(root, agents, settings);
  const { catalog } = compiled;
  if (catalog === null) throw refusal(agents, compiled);
  return { ...compiled, catalog };
}

/**
 * Writes a project's catalog, and builds its page and its own Worker if it has them. If the definitions are invalid,
 * the previous files stay.
 *
 * @param {import("../lib/project.mjs").Project} project
 * @param {{ strict?: boolean }} [settings]
 */
export async function build(project, settings) {
  const compiled = await compileFolder(project.root, project.agents, settings);
  buildCrate(project.root);
  buildPage(project.root);
  writeWhole(project.catalog, compiled.catalog);
  return compiled;
}

/** @type {((request: string) => Promise<string>) | undefined} */
let known;

const compiler = () => (known ??= wasmCompiler(builtFile("dist/compiler.wasm.br")));
