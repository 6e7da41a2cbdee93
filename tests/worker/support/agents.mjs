// Writes a folder of definitions from plain objects.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { scratch } from "./server.mjs";

/**
 * Definitions by name, each with the fields of its file. `prompt` is a prompt's text.
 *
 * @typedef {object} Definitions
 * @property {Record<string, object>} [models]
 * @property {Record<string, { prompt: string } & Record<string, unknown>>} [prompts]
 * @property {Record<string, object>} [tools]
 * @property {Record<string, object>} [agents]
 * @property {Record<string, object>} [effects]
 * @property {Record<string, object>} [hooks]
 * @property {Record<string, object>} [memories]
 * @property {Record<string, object>} [mcp]        MCP servers, and their lists as `NAME.tools`
 * @property {object} [settings]   the content of bobbin.json
 */

export class AgentsFolder {
  /** @param {Definitions} [definitions] */
  constructor(definitions = {}) {
    /** The path of the folder. */
    this.path = scratch("agents");
    this.write(definitions);
  }

  /**
   * Writes files for these definitions. Other files stay.
   *
   * @param {Definitions} definitions
   * @param {string} [within]   a subfolder for a package, with a final `/`
   */
  write(definitions, within = "") {
    const { models = {}, tools = {}, agents = {}, effects = {}, hooks = {}, memories = {}, mcp = {}, prompts = {}, settings } = definitions;
    if (settings) this.json(`${within}bobbin.json`, settings);
    for (const [folder, named] of Object.entries({ models, tools, agents, effects, hooks, memories, mcp })) {
      for (const [name, definition] of Object.entries(named)) this.json(`${within}${folder}/${name}.json`, definition);
    }
    for (const [name, { prompt, ...rest }] of Object.entries(prompts)) {
      // JSON is valid YAML, so the front matter contains values as JSON.
      const matter = Object.entries(rest).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
      this.file(`${within}prompts/${name}.md`, `---\n${matter.join("\n")}\n---\n${prompt}\n`);
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
