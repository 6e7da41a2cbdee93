// Code of an application for the sandbox: each file with what it imports, as one module.
//
//   agents folder → esbuild → { "tools/x.ts": { source, uses } } → the compiler of definitions
//
// A file that imports nothing stays as it is, so that errors name its own lines. Names that browsers and Workers have
// and the language has not (`URL`, `fetch`, …) are imported from modules of isolate/web/, which go into the catalog
// where somebody uses them.

import { readFileSync } from "node:fs";
import { extname, join, posix } from "node:path";
import { complaintsOf } from "./code-complaints.mjs";
import { linesOf } from "./source-map.mjs";

/**
 * @typedef {object} Source
 * @property {string} source
 * @property {string[]} uses                                               modules below `bobbin/` that it imports
 * @property {[line: number, file: string, first: number][]} [lines]       what its lines were: see src/spec/catalog.rs
 * @property {string[]} [exports]                                          names; of the application's own files
 */
/** @typedef {import("esbuild").BuildOptions} BuildOptions */
/** @typedef {import("esbuild").Message} Message */

/** Extensions of files that can run in the sandbox; src/code.rs has the same. */
const EXTENSIONS = [".ts", ".mts", ".js", ".mjs", ".tsx"];

/** The modules of isolate/web/, and the names that each stands for. */
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

/** The folder of packages of agents. */
const PACKAGES = "packages";
/** The folders of a package that hold its code; others may hold what is not for the sandbox. */
const PACKED = ["tools", "hooks", "effects", "api", "lib"];

/** Where they are in the catalog, as seen from the folder of definitions. */
const FOLDER = "bobbin";

/** What a name is called while it is not yet known which of them a file uses. */
const PROBE = "bobbin-global:";
const INJECTED = "bobbin-globals";
const ENTRY = "bobbin-entry";
/** What the global object is called while it is not yet known whether a file asks for it. */
const OBJECT = "__bobbin_globalThis";

const NAMES = Object.values(WEB).flat();

/** How all code is read: for an engine that knows the language and nothing around it. @type {BuildOptions} */
const READING = {
  bundle: true,
  format: "esm",
  // What a package has in place of Node's modules, whole files or some, is in its field `browser`.
  platform: "browser",
  target: "esnext",
  // Syntax that the engine does not know yet.
  supported: { decorators: false, using: false },
  mainFields: ["browser", "module", "main"],
  // Where a package has one file for Node and one for everybody else, it is the latter.
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
 * @param {import("./folder.mjs").Read} folder                      what is in it
 * @param {{ esbuild: typeof import("esbuild"), web: string }} tools       `web`: the folder of the modules that stand for the web's names
 * @returns {Promise<{ bundles: Record<string, Source>, findings: import("./compile.mjs").Finding[] }>} all that is wrong at once
 */
export async function bundleCode(agents, folder, { esbuild, web }) {
  const files = codeFiles(folder);
  if (files.length === 0 && !letsModelsFetch(folder)) return { bundles: {}, findings: [] };
  const made = await Promise.all(files.map(async (file) => ({ file, bundle: await bundled(esbuild, agents, file) })));
  /** @type {Record<string, Source>} */
  const bundles = {};
  /** By what is told of them: two files may import what is wrong. @type {Map<string, import("./compile.mjs").Finding>} */
  const findings = new Map();
  for (const { file, bundle } of made) {
    if (!("errors" in bundle)) bundles[file] = bundle;
    else for (const error of bundle.errors) findings.set(JSON.stringify(error), error);
  }
  const modules = await Promise.all(Object.keys(WEB).map((name) => webModule(esbuild, web, name)));
  return { bundles: { ...bundles, ...Object.fromEntries(modules) }, findings: [...findings.values()] };
}

/**
 * Whether a prompt may let the code of its model reach hosts: that needs the web's modules, too. What it says the
 * compiler of definitions reads; here it is enough that some file of the folder has the word.
 *
 * @param {import("./folder.mjs").Read} folder
 */
function letsModelsFetch({ files }) {
  return Object.entries(files).some(([path, text]) => /\.(json|md)$/.test(path) && text.includes("allowedHosts"));
}

/**
 * The files of code in the folder's folders, by their paths with `/`: what definitions may name.
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

/** Declarations hold no code, and tests of it run elsewhere. @param {string} name */
function isCode(name) {
  return EXTENSIONS.includes(extname(name)) && !/\.(d|test|spec)\.[^.]+$/.test(name);
}

/**
 * One file with everything that it imports.
 *
 * @param {typeof import("esbuild")} esbuild
 * @param {string} agents
 * @param {string} file
 * @returns {Promise<Source | { errors: import("./compile.mjs").Finding[] }>}
 */
async function bundled(esbuild, agents, file) {
  // Read once: it may be saved meanwhile, and what was looked at is what is to be served.
  const text = readFileSync(join(agents, file), "utf8").replace(/^\uFEFF/, "");
  /** @param {string} object  what the global object is called @param {import("esbuild").Plugin[]} plugins */
  const build = (object, ...plugins) =>
    esbuild.build({
      ...READING,
      metafile: true,
      absWorkingDir: agents,
      // Not by its path, in which `*` would stand for many.
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
    // A package may ask for more than there is, as long as it can do without.
    const used = imported(probe)
      .filter((path) => path.startsWith(PROBE))
      .map((path) => path.slice(PROBE.length));
    const exports = Object.values(probe.metafile.outputs).flatMap((output) => (output.entryPoint === undefined ? [] : output.exports));
    const inputs = Object.keys(probe.metafile.inputs).filter((path) => !path.endsWith(INJECTED));
    const source = inputs.length > 1 ? undefined : await asItIs(esbuild, file, text, used);
    const modules = (/** @type {string[]} */ names) => [...new Set(names.map((name) => `${FOLDER}/${moduleOf(name)}`))].sort();
    // `execution.abortSignal` is made of it (src/work/code/file.rs).
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

/** The web's names that stand somewhere in the code: those that it could ask the global object for. @param {import("esbuild").BuildResult} probe */
function mentioned(probe) {
  const code = probe.outputFiles?.find(({ path }) => path.endsWith(".js"))?.text ?? "";
  const words = new Set(code.match(/[A-Za-z]+/g));
  return NAMES.filter((name) => words.has(name));
}

/**
 * The file's own text, with what brings its globals in as the last line, where it moves nothing. Nothing if the engine
 * does not understand it as it is.
 *
 * @param {typeof import("esbuild")} esbuild
 * @param {string} file
 * @param {string} source
 * @param {string[]} used   the globals
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
 * The file that is bundled.
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

/** A pattern for this text alone. @param {string} text */
const exactly = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/**
 * Brings the globals in that a file uses, each from the module at `place`.
 *
 * @param {(name: string) => string} place
 * @param {string[]} [installed]   names that the global object is to have, too; nothing while that is not known
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

/** @param {string} name  of a global */
function moduleOf(name) {
  const module = Object.entries(WEB).find(([, names]) => names.includes(name))?.[0];
  if (module === undefined) throw new Error(`no module of isolate/web/ has ${name}`);
  return module;
}

/** The specifier of a web module in the module of `file`. @param {string} file @param {string} module */
const fromFile = (file, module) => posix.join(posix.relative(posix.dirname(file), ""), FOLDER, module);

/** What the result imports. @param {import("esbuild").BuildResult<{ metafile: true }>} result */
function imported({ metafile }) {
  return Object.values(metafile.outputs).flatMap(({ imports }) => imports.filter(({ external }) => external).map(({ path }) => path));
}

/**
 * A module of isolate/web/: its text without comments, and which of the others it imports.
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
    // Beside the others, as in the catalog.
    outfile: path("out.js"),
    minifyWhitespace: true,
    external: others.map(path),
  });
  const uses = imported(result).map((path) => posix.join(FOLDER, path));
  return [`${FOLDER}/${name}`, { source: result.outputFiles?.[0]?.text ?? "", uses }];
}

/** @param {unknown} error @returns {error is import("esbuild").BuildFailure} */
const isFailure = (error) => error instanceof Error && "errors" in error && Array.isArray(error.errors);
