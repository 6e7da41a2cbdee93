// The application's definitions, and the changes to them for a case, such as the address of its models.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { compileFolder } from "../compiler/project.mjs";

/** The address of scripted models. The host does not exist. */
export const MODELS = "http://models.bobbin.test";
/** The address of stubbed tools that are not http tools. */
export const TOOLS = "http://tools.bobbin.test";
/** The suffix of a stubbed tool's real name. */
export const REAL = "__real";
/** The field of a request to a scripted model that names the prompt. */
export const PROMPT = "bobbin_prompt";

/** Fields specific to a provider. Scripted models ignore them. */
const OF_PROVIDERS = ["api", "apiKeyEnv", "providerOptions"];

/**
 * Compiles the folder of definitions. Rejects with a Complaint that contains the compiler's findings.
 *
 * @param {string} agents
 * @param {string} project
 * @returns {Promise<any>}   the catalog
 */
export async function compile(agents, project) {
  const native = join(import.meta.dirname, "../../scripts/catalog.mjs");
  // In the repository the compiler is a program, in the package it is wasm.
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
 * Replaces all models by scripted ones: they use chat completions at `MODELS`, and each request names its prompt.
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

/** Returns whether a repeated call of a tool changes nothing. @param {any} catalog @param {string} name */
export function readsOnly(catalog, name) {
  const tool = catalog.tools[name];
  if (tool?.tier !== undefined) return tool.tier === "read_only";
  // The server declares this for its tools.
  if (tool?.run.mcp !== undefined) return tool.idempotent === true;
  return READERS.includes(tool?.run.native) && tool.idempotent !== false;
}

/** Returns the native tools among these. @param {any} catalog @param {string[]} names */
export const natives = (catalog, names) => [...new Set(names)].filter((name) => catalog.tools[name]?.run.native !== undefined).sort();

/**
 * Returns the files of code of these tools, with the tool of each.
 * @param {any} catalog @param {string[]} names @returns {Record<string, string>}
 */
export const files = (catalog, names) =>
  Object.fromEntries(
    names.flatMap((name) => {
      const { code, native } = catalog.tools[name].run;
      if (native !== undefined) return [[`stubs/${name}.js`, name]];
      return code === undefined ? [] : [[code.file, name]];
    }),
  );

/**
 * Replaces native tools by code, so that a stub outside the Worker can answer their calls. If no stub answers, the code
 * calls the real tool.
 *
 * @param {any} catalog
 * @param {string[]} names
 */
export function withStubs(catalog, names) {
  const tools = names.flatMap((name) => {
    // The approval belongs to the call that the model makes, not to the inner one.
    const { approval, ...real } = catalog.tools[name];
    const stub = { ...real, ...(approval && { approval }), run: { code: { file: `stubs/${name}.js` } } };
    return [[name, stub], [name + REAL, { ...real, name: name + REAL }]];
  });
  const code = names.map((name) => [`stubs/${name}.js`, { source: `export default (state, args) => state.invokeTool(${JSON.stringify(name + REAL)}, args);\n` }]);
  return { ...catalog, tools: { ...catalog.tools, ...Object.fromEntries(tools) }, code: { ...catalog.code, ...Object.fromEntries(code) } };
}

/** Native tools with random results: the time, and dice. */
export const CHANCE = ["current_time", "roll_dice"];

/**
 * Adds a mark to requests to models, which names the prompt and is removed before a request leaves. Embeddings never
 * leave.
 *
 * @param {any} catalog
 */
export function marked(catalog) {
  const mark = (/** @type {any} */ of, /** @type {string} */ prompt) => ({ ...of, providerOptions: { ...of.providerOptions, [PROMPT]: prompt } });
  return { ...catalog, models: mapped(catalog.models, (model) => (model.kind === "embedding" ? inside(model) : mark(model, ""))), prompts: mapped(catalog.prompts, mark) };
}

/** @param {any} model   an embedding model */
const inside = ({ apiKeyEnv: _, baseUrl: _too, ...model }) => ({ ...model, provider: "demo", model: "demo" });

/** @param {Record<string, any>} of @param {(value: any, name: string) => any} change */
const mapped = (of, change) => Object.fromEntries(Object.entries(of ?? {}).map(([name, value]) => [name, change(value, name)]));
