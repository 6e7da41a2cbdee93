// The definitions of the application, and what of them is changed for a case: whom its models ask.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { compileFolder } from "../compiler/project.mjs";

/** Where scripted models are asked; there is no such host. */
export const MODELS = "http://models.bobbin.test";
/** Where the stubs of tools are asked that are no http tools. */
export const TOOLS = "http://tools.bobbin.test";
/** What the name of a stubbed tool's real one ends with. */
export const REAL = "__real";
/** The field of a request to a scripted model that names the prompt, and the model as the definitions call it. */
export const PROMPT = "bobbin_prompt";

/** What tells a scripted model's provider apart, none of which counts here. */
const OF_PROVIDERS = ["api", "apiKeyEnv", "providerOptions"];

/**
 * Compiles the folder of definitions. Rejects with a Complaint that has the compiler's findings.
 *
 * @param {string} agents
 * @param {string} project
 * @returns {Promise<any>}   the catalog
 */
export async function compile(agents, project) {
  const native = join(import.meta.dirname, "../../scripts/build.mjs");
  // In the repository, where the compiler is a program; in the package it is wasm.
  if (!existsSync(native)) return JSON.parse((await compileFolder(project, agents)).catalog);
  const folder = mkdtempSync(join(tmpdir(), "bobbin-catalog-"));
  try {
    const out = join(folder, "catalog.json");
    const { compileCatalog } = await import(pathToFileURL(native).href);
    await compileCatalog(agents, out);
    return JSON.parse(readFileSync(out, "utf8"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * The definitions with models that a script answers: each is asked by chat completions at `MODELS`, and says whose request it is.
 *
 * @param {any} catalog
 */
export function scripted(catalog) {
  const models = mapped(catalog.models, (model, name) => {
    if (model.kind === "embedding") return inside(model);
    const kept = Object.fromEntries(Object.entries(model).filter(([field]) => !OF_PROVIDERS.includes(field)));
    return { ...kept, provider: "openai", api: "chat", model: name, baseUrl: MODELS };
  });
  const prompts = mapped(catalog.prompts, (prompt, name) => ({ ...prompt, providerOptions: { [PROMPT]: name } }));
  return { ...catalog, models, prompts };
}

/** Native tools that only read, unless their files say otherwise (docs/tools.md, Tiers). */
const READERS = ["calculate", "convert_units", "current_time", "list_files", "load_skill", "read_file", "recall", "roll_dice", "say", "search_files", "text_statistics"];

/** Whether a second call of a tool changes nothing. @param {any} catalog @param {string} name */
export function readsOnly(catalog, name) {
  const tool = catalog.tools[name];
  if (tool?.tier !== undefined) return tool.tier === "read_only";
  // Of these it is their server that says so.
  if (tool?.run.mcp !== undefined) return tool.idempotent === true;
  return READERS.includes(tool?.run.native) && tool.idempotent !== false;
}

/** Those of these tools that are native. @param {any} catalog @param {string[]} names */
export const natives = (catalog, names) => [...new Set(names)].filter((name) => catalog.tools[name]?.run.native !== undefined).sort();

/** Where the code of these tools is, and whose it is. @param {any} catalog @param {string[]} names @returns {Record<string, string>} */
export const files = (catalog, names) =>
  Object.fromEntries(
    names.flatMap((name) => {
      const { code, native } = catalog.tools[name].run;
      if (native !== undefined) return [[`stubs/${name}.js`, name]];
      return code === undefined ? [] : [[code.file, name]];
    }),
  );

/**
 * The definitions with code in the places of native tools, so that they can be answered outside. Where nobody answers, it calls
 * the real one.
 *
 * @param {any} catalog
 * @param {string[]} names
 */
export function withStubs(catalog, names) {
  const tools = names.flatMap((name) => {
    // What is asked before a call belongs to the one that the model makes.
    const { approval, ...real } = catalog.tools[name];
    const stub = { ...real, ...(approval && { approval }), run: { code: { file: `stubs/${name}.js` } } };
    return [[name, stub], [name + REAL, { ...real, name: name + REAL }]];
  });
  const code = names.map((name) => [`stubs/${name}.js`, { source: `export default (state, args) => state.invokeTool(${JSON.stringify(name + REAL)}, args);\n` }]);
  return { ...catalog, tools: { ...catalog.tools, ...Object.fromEntries(tools) }, code: { ...catalog.code, ...Object.fromEntries(code) } };
}

/** Native tools whose results are chance: the time, and dice. */
export const CHANCE = ["current_time", "roll_dice"];

/**
 * The definitions as they are, but that requests to models say whose they are, which nobody outside is sent. Embeddings are not asked
 * for outside.
 *
 * @param {any} catalog
 */
export function marked(catalog) {
  const mark = (/** @type {any} */ of, /** @type {string} */ prompt) => ({ ...of, providerOptions: { ...of.providerOptions, [PROMPT]: prompt } });
  return { ...catalog, models: mapped(catalog.models, (model) => (model.kind === "embedding" ? inside(model) : mark(model, ""))), prompts: mapped(catalog.prompts, mark) };
}

/** @param {any} model   of embeddings */
const inside = ({ apiKeyEnv: _, baseUrl: _too, ...model }) => ({ ...model, provider: "demo", model: "demo" });

/** @param {Record<string, any>} of @param {(value: any, name: string) => any} change */
const mapped = (of, change) => Object.fromEntries(Object.entries(of ?? {}).map(([name, value]) => [name, change(value, name)]));
