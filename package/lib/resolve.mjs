// Resolves the paths of this package's built files and of wrangler's dependencies.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Complaint, EXIT } from "./complaint.mjs";

const here = fileURLToPath(new URL("..", import.meta.url));

/**
 * Returns the path of a built file, given its path in the assembled package. In the repository the built files are in
 * dist-package/bobbin (`npm run package`).
 *
 * @param {string} name
 */
export function builtFile(name) {
  const path = [here, fileURLToPath(new URL("../../dist-package/bobbin", import.meta.url))].map((folder) => join(folder, name)).find(existsSync);
  if (path === undefined) throw new Complaint(`The package is incomplete: ${name} is missing. In Bobbin's repository, run \`npm run package\`.`, EXIT.usage);
  return path;
}

/**
 * Resolves a dependency of wrangler, so that a project develops and bundles with the versions that deploy it.
 *
 * @param {string} root   the project's folder
 * @param {string} name
 */
function ofWrangler(root, name) {
  for (const from of [join(root, "package.json"), fileURLToPath(import.meta.url)]) {
    try {
      const wrangler = createRequire(from).resolve("wrangler/package.json");
      return createRequire(wrangler).resolve(name);
    } catch {
      // Try the other location.
    }
  }
  throw new Complaint(`${name} is missing, because wrangler is not installed here. Run \`npm install\` or \`npm install --save-dev wrangler\`.`, EXIT.usage);
}

/** @param {string} root @returns {Promise<typeof import("esbuild")>} */
export async function esbuildOf(root) {
  const module = await import(pathToFileURL(ofWrangler(root, "esbuild")).href);
  return module.default ?? module;
}

/** Returns the path of the workerd binary. @param {string} root @returns {Promise<string>} */
export async function workerdOf(root) {
  if (process.env.MINIFLARE_WORKERD_PATH) return process.env.MINIFLARE_WORKERD_PATH;
  const module = await import(pathToFileURL(ofWrangler(root, "workerd")).href);
  return (module.default ?? module).default ?? module.default;
}

/** Returns the path of wrangler's program. Run it with a Node version that it accepts. @param {string} root */
export const wranglerOf = (root) => join(ofWrangler(root, "wrangler/package.json"), "../wrangler-dist/cli.js");

/**
 * Returns wrangler's version and the Node version that it requires.
 * @param {string} root @returns {{ version: string, node: string | undefined }}
 */
export function wranglerVersion(root) {
  const { version, engines } = JSON.parse(readFileSync(ofWrangler(root, "wrangler/package.json"), "utf8"));
  return { version, node: engines?.node };
}
