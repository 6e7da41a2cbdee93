// Reports models that lack a variable, for `npm start`. The rule is `lacks` in crates/models/src/usable.rs. Variables
// of the instance, which are set over HTTP, are not known here.

/**
 * @typedef {object} ModelFile
 * @property {string} provider
 * @property {string} [model]
 * @property {string} [baseUrl]
 * @property {string} [apiKeyEnv]
 * @property {string[]} [fallbacks]
 * @property {number} [inputPrice]
 * @property {number} [cachedPrice]
 * @property {number} [outputPrice]
 */

/** @typedef {{ models?: Record<string, ModelFile> }} Catalog */

/** The variables of each provider. @type {Record<string, { url: string, key: string }>} */
const USUAL = {
  openai: { url: "OPENAI_BASE_URL", key: "OPENAI_API_KEY" },
  anthropic: { url: "ANTHROPIC_BASE_URL", key: "ANTHROPIC_API_KEY" },
};

/**
 * Returns one line for each model that lacks a variable.
 *
 * @param {Catalog} catalog
 * @param {(name: string) => boolean} isSet
 * @returns {string[]}
 */
export function modelsThatLack(catalog, isSet) {
  const models = Object.entries(catalog.models ?? {});
  const lacking = new Map(models.flatMap(([name, model]) => {
    const lack = lackOf(model, isSet);
    return lack ? [[name, lack]] : [];
  }));
  return models.flatMap(([name, model]) => {
    const lack = lacking.get(name);
    if (!lack) return [];
    const next = (model.fallbacks ?? []).find((fallback) => !lacking.has(fallback));
    const then = next ? `its fallback ${next} is used instead` : "requests to it fail";
    return [`models/${name}: ${lack}; ${then}.`];
  });
}

/** @param {ModelFile} model @param {(name: string) => boolean} isSet */
function lackOf(model, isSet) {
  if (model.provider === "workers-ai") return isSet("AI") ? undefined : "wrangler.toml has no binding to Workers AI (`[ai]`)";
  const usual = USUAL[model.provider];
  // The application's own providers check their variables themselves.
  if (!usual) return undefined;
  const url = model.baseUrl?.trim() ?? "";
  const names = [...url.matchAll(/\{\{\s*env\s+([A-Za-z_]\w*)\s*\}\}/g)].map(([, name]) => name ?? "");
  const unset = names.filter((name) => !isSet(name));
  const key = model.apiKeyEnv ?? (url ? undefined : usual.key);
  const whole = /^\{\{[^}]*\}\}$/.test(url);
  const other = unset.find((name) => !(whole && name === usual.url && (key ?? usual.key) === usual.key));
  if (other) return `${other}, which its \`baseUrl\` needs, is not set`;
  if (url && unset.length === 0) return undefined;
  if (!key) return "its `apiKeyEnv` is missing";
  return isSet(key) ? undefined : `${key} is not set`;
}

/**
 * Replaces the model name in every definition that uses OPENAI_BASE_URL, and sets its price to zero.
 *
 * @param {Catalog} catalog
 * @param {string} name
 */
export function withLocalModel(catalog, name) {
  for (const model of Object.values(catalog.models ?? {})) {
    if (model.provider !== "openai" || !model.baseUrl?.includes(USUAL.openai?.url ?? "")) continue;
    Object.assign(model, { model: name, inputPrice: 0, outputPrice: 0 });
    delete model.cachedPrice;
  }
  return catalog;
}
