// Bundles a project's Worker for workerd: its entry with all imports, and the package's wasm next to it. wrangler
// bundles in the same way when it deploys.

import { copyFileSync, linkSync, mkdirSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { Complaint } from "../lib/complaint.mjs";
import { shown } from "../lib/files.mjs";
import { esbuildOf } from "../lib/resolve.mjs";

/** The specifier by which the package's Worker imports the catalog. */
const CATALOG = "bobbin:catalog";

/**
 * @param {import("../lib/project.mjs").Project} project
 * @param {string} out   the folder of the modules, which is emptied
 * @param {string} catalog   the file with the catalog
 */
export async function bundleWorker({ root, config }, out, catalog) {
  const main = resolve(root, config.main ?? "src/index.ts");
  const esbuild = await esbuildOf(root);
  empty(out);
  const { [CATALOG]: _, ...alias } = config.alias ?? {};
  try {
    const { warnings } = await esbuild.build({
      entryPoints: { index: main },
      outdir: out,
      absWorkingDir: root,
      bundle: true,
      format: "esm",
      target: "es2024",
      conditions: ["workerd", "worker", "browser"],
      mainFields: ["browser", "module", "main"],
      external: ["cloudflare:*", "node:*", "workerd:*"],
      loader: { ".txt": "text", ".html": "text", ".sql": "text", ".bin": "binary" },
      define: { "process.env.NODE_ENV": '"production"' },
      alias,
      plugins: [modules(out)],
      logLevel: "silent",
    });
    for (const { text } of warnings) console.error(`Warning: ${text}`);
  } catch (error) {
    const { errors = [] } = /** @type {import("esbuild").BuildFailure} */ (error);
    if (errors.length === 0) throw error;
    const lines = errors.map(({ text, location }) => (location ? `${shown(join(root, location.file))}:${location.line}:${location.column + 1}: ${text}` : text));
    throw new Complaint(`${lines.join("\n")}\nThe Worker could not be bundled.`);
  } finally {
    await esbuild.stop();
  }
  link(catalog, join(out, "catalog.json"));
}

/** Keeps wasm files and the catalog as separate modules. @param {string} out @returns {import("esbuild").Plugin} */
function modules(out) {
  return {
    name: "modules",
    setup(build) {
      build.onResolve({ filter: new RegExp(`^${CATALOG}$`) }, () => ({ path: "./catalog.json", external: true }));
      build.onResolve({ filter: /\.wasm$/ }, async ({ path, importer, resolveDir, kind, pluginData }) => {
        if (pluginData === modules) return undefined;
        const found = await build.resolve(path, { importer, resolveDir, kind, pluginData: modules });
        if (found.errors.length > 0) return found;
        link(found.path, join(out, basename(found.path)));
        return { path: `./${basename(found.path)}`, external: true };
      });
      build.onLoad({ filter: /\.wasm$/ }, () => ({ contents: "", loader: "empty" }));
    },
  };
}

/** Empties a folder and puts files of another folder into it. @param {string} from @param {string} to @param {string[]} names */
export function place(from, to, names) {
  empty(to);
  for (const name of names) link(join(from, name), join(to, name));
}

/** @param {string} folder */
function empty(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
}

/**
 * Links a file where possible, otherwise copies it. The link keeps its content if the original is replaced.
 * @param {string} from @param {string} to
 */
export function link(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  rmSync(to, { force: true });
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}
