// `bobbin build`: compiles the definitions into the single file that the Worker loads. It is the `build.command` of
// wrangler.jsonc.

import { build } from "../compiler/project.mjs";
import { line } from "../compiler/compile.mjs";
import { shown } from "../lib/files.mjs";
import { openProject } from "../lib/project.mjs";

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "build [--strict]",
  help: `  --strict    warnings count as errors

Writes .bobbin/catalog.json, which wrangler.jsonc aliases as \`bobbin:catalog\`. If the definitions have errors, prints them
and writes nothing.`,
  options: { strict: { type: "boolean", default: false } },
  run: async (values) => {
    const project = openProject();
    const { findings } = await build(project, { strict: values["strict"] });
    for (const finding of findings) console.log(line(project.agents, finding));
    console.log(`${shown(project.catalog)} was written.`);
  },
};
