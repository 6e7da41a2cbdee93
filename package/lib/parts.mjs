// Where the parts of this package are, and what comes with wrangler.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Complaint, EXIT } from "./complaint.mjs";

const here = fileURLToPath(new URL("..", import.meta.url));

/**
 * A part that is built, by its path in the assembled package. In the repository this folder holds sources alone, and the
 * built parts are in dist-package/bobbin (`npm run package`).
 *
 * @param {string} name
 */
export function part(name) {
  const path = [here, fileURLToPath(new URL("../../dist-package/bobbin", import.meta.url))].map((folder) => join(folder, name)).find(existsSync);
  if (path === undefined) throw new Complaint(`The package is not complete: ${name} is missing. In Bobbin's repository \`npm run package\` makes it.`, EXIT.usage);
  return path;
}

/**
 * Something that wrangler depends on: what a project develops and bundles with is what it deploys with.
 *
 * @param {string} root   of the project
 * @param {string} name
 */
function ofWrangler(root, name) {
  for (const from of [join(root, "package.json"), fileURLToPath(import.meta.url)]) {
    try {
      const wrangler = createRequire(from).resolve("wrangler/package.json");
      return createRequire(wrangler).resolve(name);
    } catch {
      // Perhaps from the other place.
    }
  }
  throw new Complaint(`wrangler is not installed here, and ${name} comes with it: run \`npm install\`, or \`npm install --save-dev wrangler\`.`, EXIT.usage);
}

/** @param {string} root @returns {Promise<typeof import("esbuild")>} */
export async function esbuildOf(root) {
  const module = await import(pathToFileURL(ofWrangler(root, "esbuild")).href);
  return module.default ?? module;
}

/** The program workerd. @param {string} root @returns {Promise<string>} */
export async function workerdOf(root) {
  if (process.env.MINIFLARE_WORKERD_PATH) return process.env.MINIFLARE_WORKERD_PATH;
  const module = await import(pathToFileURL(ofWrangler(root, "workerd")).href);
  return (module.default ?? module).default ?? module.default;
}

/** wrangler's own program, to be run with a Node that it accepts. @param {string} root */
export const wranglerOf = (root) => join(ofWrangler(root, "wrangler/package.json"), "../wrangler-dist/cli.js");

/** Which wrangler it is, and which Node it wants. @param {string} root @returns {{ version: string, node: string | undefined }} */
export function wranglerVersion(root) {
  const { version, engines } = JSON.parse(readFileSync(ofWrangler(root, "wrangler/package.json"), "utf8"));
  return { version, node: engines?.node };
}
