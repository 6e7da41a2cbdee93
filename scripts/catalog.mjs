// The catalog of a folder of definitions, compiled by the build tool.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { compile as compileDefinitions, line, refusal } from "../package/compiler/compile.mjs";
import { writeWhole } from "../package/lib/files.mjs";
import { BUILD_TOOL } from "./compile.mjs";
import { inCheckout } from "./files.mjs";
import { print, run } from "./run.mjs";

/** Compiles the definitions in `agents` into the file `out`. Invalid ones cause a complaint with file and field.
 *
 * @param {string} agents
 * @param {string} out
 * @param {{ ownNatives?: boolean }} [settings]  ownNatives: the application's own crate registers some
 */
export async function compileCatalog(agents, out, settings = {}) {
  // Imported late: on a fresh machine the set-up installs it first.
  const esbuild = await import("esbuild");
  // `npm run build` and every server write separate files, so no lock is needed.
  const compiled = await compileDefinitions(agents, { esbuild, web: inCheckout("isolate/web"), compiler: (request) => natively(request, out) }, settings);
  if (compiled.catalog === null) throw refusal(agents, compiled);
  // Warnings.
  if (compiled.findings.length > 0) print(compiled.findings.map((finding) => line(agents, finding)).join("\n"));
  writeWhole(out, compiled.catalog);
}

/** Runs the build tool's catalog compiler. @param {string} request @param {string} out  the file that the result is for */
export async function natively(request, out) {
  const [asked, answer] = [`${out}.request`, `${out}.answer`];
  mkdirSync(dirname(out), { recursive: true });
  try {
    writeFileSync(asked, request);
    await run(BUILD_TOOL, ["catalog", asked, answer]);
    return readFileSync(answer, "utf8");
  } finally {
    for (const path of [asked, answer]) rmSync(path, { force: true });
  }
}
