// Bundles an application's code for the sandbox: each file and its imports become one module.
//
//   agents folder → esbuild → { "tools/x.ts": { source, uses } } → the compiler of definitions
//
// A file without imports stays unchanged, so that errors name its own lines. Names of browsers and Workers that are not
// part of the language (`URL`, `fetch`, …) are imported from modules of isolate/web/. The catalog contains the modules that
// are used.

import { readFileSync } from "node:fs";
import { extname, join, posix } from "node:path";
import { complaintsOf } from "./code-complaints.mjs";
import { linesOf } from "./source-map.mjs";

/**
 * @typedef {object} Source
 * @property {string} source
 * @property {string[]} uses                                               the modules below `bobbin/` that it imports
 * @property {[line: number, file: string, first: number][]} [lines]       the origins of its lines: see crates/definitions/src/definitions/catalog.rs
 * @property {string[]} [exports]                                          the names it exports; only for the application's files
 */
/** @typedef {import("esbuild").BuildOptions} BuildOptions */
/** @typedef {import("esbuild").Message} Message */

/** Extensions of files that can run in the sandbox. src/code.rs has the same list. */
const EXTENSIONS = [".ts", ".mts", ".js", ".mjs", ".tsx"];

/** The modules of isolate/web/, and the names that each provides. */
export const WEB = {
  "url.js": ["URL", "URLSearchParams"],
  "encoding.js": ["TextEncoder", "TextDecoder", "atob", "btoa"],
  "clone.js": ["structuredClone"],
  "timers.js": ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "queueMicrotask"],
  "events.js": ["AbortController", "AbortSignal", "DOMException", "Event", "EventTarget"],
  "form.js": ["FormData"],
  "crypto.js": ["crypto"],
  "http.js": ["Headers", "Request", "Response", "fetch"],
};

/** The platform's URL parser, which the isolate provides (isolate/harness/url.js). */
const HOST_URL = "bobbin/url";

/** The folder of packages of agents. */
const PACKAGES = "packages";
/** The folders of a package that hold code for the sandbox. Its other code runs elsewhere. */
const PACKED = ["tools", "hooks", "effects", "api", "lib"];

/** Their folder in the catalog, relative to the folder of definitions. */
const FOLDER = "bobbin";

/** The prefix of a name in the first build, which finds out which names a file uses. */
const PROBE = "bobbin-global:";
const INJECTED = "bobbin-globals";
const ENTRY = "bobbin-entry";
/** The name of the global object in the first build, which finds out whether a file uses it. */
const OBJECT = "__bobbin_globalThis";

const NAMES = Object.values(WEB).flat();

/** Build options for all code. The engine provides the language and nothing else. @type {BuildOptions} */
const READING = {
  bundle: true,
  format: "esm",
  // Use a package's replacements of Node modules, which its field `browser` lists.
  platform: "browser",
  target: "esnext",
  // Syntax that the engine does not support yet.
  supported: { decorators: false, using: false },
  mainFields: ["browser", "module", "main"],
  // If a package has a file for Node and one for other platforms, use the latter.
  conditions: ["module", "worker", "browser"],
  jsx: "automatic",
  loader: { ".txt": "text", ".md": "text" },
  write: false,
  logLevel: "silent",
};

/**
 * Bundles the code of a folder of definitions.
 *
 * @param {string} agents
 * @param {import("./folder.mjs").Read} folder                      its contents
 * @param {{ esbuild: typeof import("esbuild"), web: string }} tools       `web`: the folder of the modules that provide the web's names
 * @returns {Promise<{ bundles: Record<string, Source>, findings: import("./compile.mjs").Finding[] }>} all errors at once
 */
export async function bundleCode(agents, folder, { esbuild, web }) {
  const files = codeFiles(folder);
  if (files.length === 0 && !letsModelsFetch(folder)) return { bundles: {}, findings: [] };
  const made = await Promise.all(files.map(async (file) => ({ file, bundle: await bundled(esbuild, agents, file) })));
  /** @type {Record<string, Source>} */
  const bundles = {};
  /** Keyed by content: two files may import the same mistake. @type {Map<string, import("./compile.mjs").Finding>} */
  const findings = new Map();
  for (const { file, bundle } of made) {
    if (!("errors" in bundle)) bundles[file] = bundle;
    else for (const error of bundle.errors) findings.set(JSON.stringify(error), error);
  }
  const modules = await Promise.all(Object.keys(WEB).map((name) => webModule(esbuild, web, name)));
  return { bundles: { ...bundles, ...Object.fromEntries(modules) }, findings: [...findings.values()] };
}

/**
 * Returns whether a prompt may let its model's code send requests, which needs the web's modules. This only searches for
 * the field's name in any file. The compiler of definitions reads the field itself.
 *
 * @param {import("./folder.mjs").Read} folder
 */
function letsModelsFetch({ files }) {
  return Object.entries(files).some(([path, text]) => /\.(json|md)$/.test(path) && text.includes("allowedHosts"));
}

/**
 * Returns the files of code that definitions may name, by path.
 *
 * @param {import("./folder.mjs").Read} folder
 */
function codeFiles({ files, packages }) {
  const holdsCode = (/** @type {string} */ path) => {
    const within = packages.find((folder) => path.startsWith(`${folder}/`));
    if (within !== undefined) return PACKED.some((name) => path.startsWith(`${within}/${name}/`));
    return path.includes("/") && !path.startsWith(`${PACKAGES}/`) && !path.startsWith("node_modules/");
  };
  return Object.keys(files).filter((path) => holdsCode(path) && isCode(posix.basename(path))).sort();
}

/** Returns whether a file holds code for the sandbox. Declarations hold none, and tests run elsewhere. @param {string} name */
function isCode(name) {
  return EXTENSIONS.includes(extname(name)) && !/\.(d|test|spec)\.[^.]+$/.test(name);
}

/**
 * Bundles a file with all its imports.
 *
 * @param {typeof import("esbuild")} esbuild
 * @param {string} agents
 * @param {string} file
 * @returns {Promise<Source | { errors: import("./compile.mjs").Finding[] }>}
 */
async function bundled(esbuild, agents, file) {
  // Read the file only once. It may be saved in the meantime, and the text that is checked must be the one that is
  // served.
  const text = readFileSync(join(agents, file), "utf8").replace(/^\uFEFF/, "");
  /** @param {string} object  the name of the global object @param {import("esbuild").Plugin[]} plugins */
  const build = (object, ...plugins) =>
    esbuild.build({
      ...READING,
      metafile: true,
      absWorkingDir: agents,
      // The path cannot be the entry point, because `*` in it would be a wildcard.
      entryPoints: [ENTRY],
      outfile: join(agents, "out.js"),
      sourcemap: "external",
      sourcesContent: false,
      inject: [INJECTED],
      define: { "process.env.NODE_ENV": '"production"', globalThis: object, global: object, self: object },
      plugins: [entry(join(agents, file), text), ...plugins],
    });
  try {
    const probe = await build(OBJECT, globals((name) => PROBE + name));
    // A package may import names that do not exist, if it works without them.
    const used = imported(probe)
      .filter((path) => path.startsWith(PROBE))
      .map((path) => path.slice(PROBE.length));
    const exports = Object.values(probe.metafile.outputs).flatMap((output) => (output.entryPoint === undefined ? [] : output.exports));
    const inputs = Object.keys(probe.metafile.inputs).filter((path) => !path.endsWith(INJECTED));
    const source = inputs.length > 1 ? undefined : await asItIs(esbuild, file, text, used);
    const modules = (/** @type {string[]} */ names) => [...new Set(names.map((name) => `${FOLDER}/${moduleOf(name)}`))].sort();
    // `execution.abortSignal` needs it (src/work/code/file.rs).
    const signals = text.includes("abortSignal") ? ["AbortController"] : [];
    if (source !== undefined) return { source, uses: modules([...used, ...signals]), exports };
    const installed = used.includes(OBJECT) ? mentioned(probe) : [];
    const whole = await build("globalThis", globals((name) => fromFile(file, moduleOf(name)), installed));
    const output = (/** @type {string} */ end) => whole.outputFiles?.find(({ path }) => path.endsWith(end))?.text ?? "";
    const uses = [...new Set([...imported(whole).map((path) => posix.join(posix.dirname(file), path)), ...modules(signals)])].sort();
    return { source: output(".js"), uses, lines: linesOf(output(".js.map")), exports };
  } catch (error) {
    if (!isFailure(error)) throw error;
    return { errors: await complaintsOf(error.errors, agents, file, (plugin) => build(OBJECT, plugin, globals((name) => PROBE + name))) };
  }
}

/**
 * Returns the web's names that appear in the code. It could read these from the global object.
 * @param {import("esbuild").BuildResult} probe
 */
function mentioned(probe) {
  const code = probe.outputFiles?.find(({ path }) => path.endsWith(".js"))?.text ?? "";
  const words = new Set(code.match(/[A-Za-z]+/g));
  return NAMES.filter((name) => words.has(name));
}

/**
 * Returns the file's own text, with the imports of its globals as the last line, so that no line moves. Returns nothing
 * if the engine cannot run the text unchanged.
 *
 * @param {typeof import("esbuild")} esbuild
 * @param {string} file
 * @param {string} source
 * @param {string[]} used   the globals that it uses
 */
async function asItIs(esbuild, file, source, used) {
  if (extname(file) === ".tsx" || used.includes(OBJECT)) return undefined;
  const loader = /\.m?ts$/.test(file) ? "ts" : "js";
  const options = /** @type {const} */ ({ loader, target: "esnext" });
  const [plain, lowered] = await Promise.all([
    esbuild.transform(source, options),
    esbuild.transform(source, { ...options, supported: /** @type {any} */ (READING).supported }),
  ]);
  if (plain.code !== lowered.code) return undefined;
  if (used.length === 0) return source;
  const modules = Object.entries(WEB).map(([module, names]) => ({ module, names: names.filter((name) => used.includes(name)) }));
  const imports = modules
    .filter(({ names }) => names.length > 0)
    .map(({ module, names }) => `import { ${names.join(", ")} } from ${JSON.stringify(fromFile(file, module))};`);
  return `${source}\n${imports.join(" ")}`;
}

/**
 * A plugin that provides the file to bundle.
 *
 * @param {string} path
 * @param {string} text
 * @returns {import("esbuild").Plugin}
 */
function entry(path, text) {
  const loader = /** @type {const} */ ({ ".ts": "ts", ".mts": "ts", ".tsx": "tsx" })[extname(path)] ?? "js";
  return {
    name: "entry",
    setup(build) {
      build.onResolve({ filter: new RegExp(`^${ENTRY}$`) }, ({ kind }) => (kind === "entry-point" ? { path } : undefined));
      build.onLoad({ filter: new RegExp(`^${exactly(path)}$`), namespace: "file" }, () => ({ contents: text, loader }));
    },
  };
}

/** Escapes a text for a regular expression. @param {string} text */
const exactly = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/**
 * A plugin that imports the globals that a file uses, each from the module returned by `place`.
 *
 * @param {(name: string) => string} place
 * @param {string[]} [installed]   names to add to the global object; absent in the first build
 * @returns {import("esbuild").Plugin}
 */
function globals(place, installed) {
  const lines = NAMES.map((name) => `export { ${name} } from ${JSON.stringify(PROBE + name)};`);
  if (!installed) lines.push(`export { ${OBJECT} } from ${JSON.stringify(PROBE + OBJECT)};`);
  for (const name of installed ?? []) {
    lines.push(
      `import { ${name} as own_${name} } from ${JSON.stringify(PROBE + name)};`,
      `Object.defineProperty(globalThis, "${name}", { value: own_${name}, writable: true, enumerable: false, configurable: true });`,
    );
  }
  const filter = new RegExp(`^${INJECTED}$`);
  return {
    name: "globals",
    setup(build) {
      build.onResolve({ filter }, ({ path }) => ({ path, namespace: "bobbin", sideEffects: Boolean(installed?.length) }));
      build.onLoad({ filter, namespace: "bobbin" }, () => ({ contents: lines.join("\n"), loader: "js" }));
      build.onResolve({ filter: new RegExp(`^${PROBE}`) }, ({ path }) => ({
        path: place(path.slice(PROBE.length)),
        external: true,
        sideEffects: false,
      }));
    },
  };
}

/** @param {string} name  the name of a global */
function moduleOf(name) {
  const module = Object.entries(WEB).find(([, names]) => names.includes(name))?.[0];
  if (module === undefined) throw new Error(`no module of isolate/web/ has ${name}`);
  return module;
}

/** Returns the specifier of a web module, relative to `file`. @param {string} file @param {string} module */
const fromFile = (file, module) => posix.join(posix.relative(posix.dirname(file), ""), FOLDER, module);

/** Returns the external imports of a build. @param {import("esbuild").BuildResult<{ metafile: true }>} result */
function imported({ metafile }) {
  return Object.values(metafile.outputs).flatMap(({ imports }) => imports.filter(({ external }) => external).map(({ path }) => path));
}

/**
 * Returns a module of isolate/web/: its text without comments, and the other modules that it imports.
 *
 * @param {typeof import("esbuild")} esbuild
 * @param {string} web
 * @param {string} name
 * @returns {Promise<[file: string, source: Source]>}
 */
async function webModule(esbuild, web, name) {
  const path = (/** @type {string} */ module) => join(web, module);
  const others = Object.keys(WEB).filter((other) => other !== name);
  const result = await esbuild.build({
    ...READING,
    metafile: true,
    entryPoints: [path(name)],
    // Next to the other modules, as in the catalog.
    outfile: path("out.js"),
    minifyWhitespace: true,
    external: [...others.map(path), HOST_URL],
  });
  const uses = imported(result).filter((path) => path !== HOST_URL).map((path) => posix.join(FOLDER, path));
  return [`${FOLDER}/${name}`, { source: result.outputFiles?.[0]?.text ?? "", uses }];
}

/** @param {unknown} error @returns {error is import("esbuild").BuildFailure} */
const isFailure = (error) => error instanceof Error && "errors" in error && Array.isArray(error.errors);
