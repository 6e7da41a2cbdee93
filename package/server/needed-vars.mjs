// Which variables of the environment are the Worker's: not all of them, for those of a machine are nobody's business there.

import { readDefinitions } from "../compiler/folder.mjs";

/** Those of the providers of models. */
const PROVIDERS = ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"];

/** Those of the command line, which are about another server. */
const OURS = ["BOBBIN_URL", "BOBBIN_KEY", "BOBBIN_BUILD", "BOBBIN_BUILT", "BOBBIN_SERVER", "BOBBIN_CACHE"];

/**
 * @param {import("../lib/project.mjs").Project} project
 * @param {NodeJS.ProcessEnv} environment
 * @returns {Record<string, string>}
 */
export function neededVars({ agents }, environment) {
  const { files } = readDefinitions(agents);
  // A name stands in a definition as a word of its own, whatever the field is that needs it.
  const texts = Object.entries(files).flatMap(([path, text]) => (/\.(json|md)$/.test(path) ? [text] : []));
  const words = new Set(texts.flatMap((text) => text.match(/\b[A-Z][A-Z0-9_]{2,}\b/g) ?? []));
  const isNeeded = (/** @type {string} */ name) =>
    (name.startsWith("BOBBIN_") && !OURS.includes(name)) || PROVIDERS.includes(name) || words.has(name);
  return Object.fromEntries(Object.entries(environment).flatMap(([name, value]) => (value !== undefined && isNeeded(name) ? [[name, value]] : [])));
}
