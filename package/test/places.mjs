// Where the parts are: in the package as it is installed, or in the repository it is made from.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Complaint, EXIT } from "../lib/complaint.mjs";

const PACKAGE = join(dirname(fileURLToPath(import.meta.url)), "..");

/** The first of these folders that has the file. @param {string} file @param {string[]} folders */
function first(file, folders) {
  const found = folders.map((folder) => join(PACKAGE, folder)).find((folder) => existsSync(join(folder, file)));
  if (found === undefined) throw new Complaint(`${file} is in none of ${folders.join(", ")}: is the package whole?`, EXIT.usage);
  return found;
}

/** The built Worker. */
export const workerFolder = () => first("index_bg.wasm", ["dist/worker", "../dist"]);

/** The built isolate Worker. */
export const isolateFolder = () => first("quickjs.wasm", ["dist/isolate", "../dist-isolate"]);

/** What the Workers are wrapped in. */
export const watchFolder = () => join(PACKAGE, "test/worker");

/** workerd's program, which comes with wrangler. @param {string} project */
export function workerd(project) {
  for (const from of [join(project, "package.json"), join(PACKAGE, "package.json")]) {
    try {
      const wrangler = createRequire(from).resolve("wrangler/package.json");
      return /** @type {{ default: string }} */ (createRequire(wrangler)("workerd")).default;
    } catch {
      // Not from here.
    }
  }
  throw new Complaint("wrangler is not installed, with which workerd comes: npm install --save-dev wrangler", EXIT.usage);
}
