// Selects the environment variables that the Worker gets. Other variables of the machine are not passed on.

import { readDefinitions } from "../compiler/folder.mjs";

/** Variables of model providers. */
const PROVIDERS = ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"];

/** Variables of the command line. They concern another server. */
const OURS = ["BOBBIN_URL", "BOBBIN_KEY", "BOBBIN_BUILD", "BOBBIN_BUILT", "BOBBIN_SERVER", "BOBBIN_CACHE"];

/**
 * @param {import("../lib/project.mjs").Project} project
 * @param {NodeJS.ProcessEnv} environment
 * @returns {Record<string, string>}
 */
export function neededVars({ agents }, environment) {
  const { files } = readDefinitions(agents);
  // A definition contains the name as a whole word, whichever field uses it.
  const texts = Object.entries(files).flatMap(([path, text]) => (/\.(json|md)$/.test(path) ? [text] : []));
  const words = new Set(texts.flatMap((text) => text.match(/\b[A-Z][A-Z0-9_]{2,}\b/g) ?? []));
  const isNeeded = (/** @type {string} */ name) =>
    (name.startsWith("BOBBIN_") && !OURS.includes(name)) || PROVIDERS.includes(name) || words.has(name);
  return Object.fromEntries(Object.entries(environment).flatMap(([name, value]) => (value !== undefined && isNeeded(name) ? [[name, value]] : [])));
}
