// Errors for code that cannot be bundled. Each points to a place in the application's own files, even if the mistake is
// in a package that they import.

import { readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join, relative, sep } from "node:path";

/** @typedef {import("esbuild").Message} Message */
/** @typedef {import("./compile.mjs").Finding} Finding */
/**
 * An import: the importing file, its specifier, and the resolved path.
 * @typedef {{ importer: string, specifier: string, path: string }} Import
 */

const TRACED = Symbol("traced");

/**
 * Returns the errors of one file's bundle, each with its place.
 *
 * @param {Message[]} errors
 * @param {string} agents
 * @param {string} file
 * @param {(plugin: import("esbuild").Plugin) => Promise<unknown>} again   builds the bundle again
 * @returns {Promise<Finding[]>}
 */
export async function complaintsOf(errors, agents, file, again) {
  const inPackages = errors.filter(({ location }) => location && isPackage(location.file));
  const own = errors.filter((error) => !inPackages.includes(error)).map((error) => told(file, error));
  if (inPackages.length === 0) return own;
  const imports = await traced(again);
  /**
   * The errors of packages, by the place of the import.
   * @type {Map<string, { place: Place, specifier: string, wrong: Set<string>, where: string }>}
   */
  const packages = new Map();
  for (const error of inPackages) {
    const path = join(agents, error.location?.file ?? "");
    const { importer, specifier } = wayTo(imports, path) ?? { importer: join(agents, file), specifier: error.location?.file ?? "" };
    const place = placeOf(agents, importer, specifier);
    const { file: inFile, line, column } = told(file, error);
    const known = packages.get(JSON.stringify(place)) ?? { place, specifier, wrong: new Set(), where: `${inFile}:${line}:${column}` };
    known.wrong.add(whatIsWrong(error.text));
    packages.set(JSON.stringify(place), known);
  }
  const found = [...packages.values()].map(({ place, specifier, wrong, where }) => {
    const [first, ...more] = wrong;
    const rest = more.length === 0 ? "" : `; and ${more.length} more like this`;
    const message = `"${specifier}" cannot run in the sandbox: ${first} (${where}${rest})`;
    return /** @type {Finding} */ ({ ...place, severity: "error", message });
  });
  return [...own, ...found];
}

/** @param {string} path */
const isPackage = (path) => /(^|[\\/])node_modules[\\/]/.test(path);

/** Records all imports during another build. @param {(plugin: import("esbuild").Plugin) => Promise<unknown>} again */
async function traced(again) {
  /** @type {Import[]} */
  const imports = [];
  /** @type {import("esbuild").Plugin} */
  const tracing = {
    name: "tracing",
    setup(build) {
      build.onResolve({ filter: /.*/, namespace: "file" }, async ({ path: specifier, pluginData, ...asked }) => {
        if (pluginData === TRACED) return undefined;
        const { importer, kind, resolveDir, namespace } = asked;
        const found = await build.resolve(specifier, { importer, kind, resolveDir, namespace, pluginData: TRACED });
        if (found.errors.length > 0) return undefined;
        imports.push({ importer, specifier, path: found.path });
        return { ...found, errors: [], warnings: [] };
      });
    },
  };
  // The build fails as before. Its errors are already known.
  await again(tracing).catch(() => {});
  return imports;
}

/** Finds the application's import that leads to a file of a package. @param {Import[]} imports @param {string} path */
function wayTo(imports, path) {
  const seen = new Set([path]);
  let ways = [path];
  while (ways.length > 0) {
    const into = imports.filter(({ path: to }) => ways.includes(to));
    const own = into.find(({ importer }) => !isPackage(importer));
    if (own) return own;
    ways = into.map(({ importer }) => importer).filter((importer) => !seen.has(importer));
    ways.forEach((way) => seen.add(way));
  }
  return undefined;
}

/** @typedef {{ file: string, line: number, column: number }} Place */

/** Returns the place of a specifier in a file. @param {string} agents @param {string} path @param {string} specifier @returns {Place} */
function placeOf(agents, path, specifier) {
  let text = "";
  try {
    text = readFileSync(path, "utf8");
  } catch {
    // The file was removed in the meantime. Report its name anyway.
  }
  const at = Math.max(0, text.search(new RegExp(`["'\`]${specifier.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}["'\`]`)));
  const before = text.slice(0, at).split("\n");
  return { file: relative(agents, path).split(sep).join("/"), line: before.length, column: (before.at(-1) ?? "").length + 1 };
}

/** Converts an error of esbuild. @param {string} file  the bundled file @param {Message} message @returns {Finding} */
function told(file, { text, location }) {
  const message = whatIsWrong(text);
  if (!location) return { file, severity: "error", message };
  // esbuild counts columns from 0 and in bytes.
  const before = Buffer.from(location.lineText).subarray(0, location.column).toString();
  return { file: location.file, line: location.line, column: before.length + 1, severity: "error", message };
}

/** @param {string} text  the text of an error */
function whatIsWrong(text) {
  const [, specifier] = /^Could not resolve "(.*)"$/.exec(text) ?? [];
  return specifier === undefined ? text : unresolved(specifier);
}

/** @param {string} specifier */
function unresolved(specifier) {
  const name = specifier.replace(/^node:/, "");
  if (specifier.startsWith("node:") || builtinModules.includes(name)) {
    return `"${specifier}" is a module of Node.js, which does not exist in the sandbox`;
  }
  if (specifier === "bobbin") return '"bobbin" contains only types: write `import type`';
  if (specifier.startsWith(".")) return `there is no file "${specifier}"`;
  return `the package of "${specifier}" is not installed: run \`npm install\` in the folder of definitions`;
}
