// An agents folder from plain objects.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { scratch } from "./server.mjs";

/**
 * Definitions by name, each as its file has it. A prompt's text stands in `prompt`.
 *
 * @typedef {object} Definitions
 * @property {Record<string, object>} [models]
 * @property {Record<string, { prompt: string } & Record<string, unknown>>} [prompts]
 * @property {Record<string, object>} [tools]
 * @property {Record<string, object>} [agents]
 * @property {Record<string, object>} [effects]
 * @property {Record<string, object>} [hooks]
 */

export class AgentsFolder {
  /** @param {Definitions} [definitions] */
  constructor(definitions = {}) {
    /** Where the files are. */
    this.path = scratch("agents");
    this.write(definitions);
  }

  /** Writes files for these definitions; other files stay. @param {Definitions} definitions */
  write(definitions) {
    for (const [name, model] of Object.entries(definitions.models ?? {})) this.json(`models/${name}.json`, model);
    for (const [name, tool] of Object.entries(definitions.tools ?? {})) this.json(`tools/${name}.json`, tool);
    for (const [name, agent] of Object.entries(definitions.agents ?? {})) this.json(`agents/${name}.json`, agent);
    for (const [name, effect] of Object.entries(definitions.effects ?? {})) this.json(`effects/${name}.json`, effect);
    for (const [id, hook] of Object.entries(definitions.hooks ?? {})) this.json(`hooks/${id}.json`, hook);
    for (const [name, { prompt, ...rest }] of Object.entries(definitions.prompts ?? {})) {
      // JSON is YAML, so every value can stand in the front matter as JSON.
      const matter = Object.entries(rest).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
      this.file(`prompts/${name}.md`, `---\n${matter.join("\n")}\n---\n${prompt}\n`);
    }
  }

  /** @param {string} name @param {object} value */
  json(name, value) {
    this.file(name, `${JSON.stringify(value, null, 2)}\n`);
  }

  /** @param {string} name @param {string} text */
  file(name, text) {
    const path = join(this.path, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  remove() {
    rmSync(this.path, { recursive: true, force: true });
  }
}
