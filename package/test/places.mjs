// Paths of the built parts, in the installed package or in the repository.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Complaint, EXIT } from "../lib/complaint.mjs";

const PACKAGE = join(dirname(fileURLToPath(import.meta.url)), "..");

/** Returns the first of these folders that contains the file. @param {string} file @param {string[]} folders */
function first(file, folders) {
  const found = folders.map((folder) => join(PACKAGE, folder)).find((folder) => existsSync(join(folder, file)));
  if (found === undefined) throw new Complaint(`${file} is in none of the folders ${folders.join(", ")}. The package is incomplete.`, EXIT.usage);
  return found;
}

/** The built Worker. In the repository, that of `npm start`, or else the release. */
export const workerFolder = () => first("index_bg.wasm", ["dist/worker", "../.bobbin/quick/dist", "../dist"]);

/** The built isolate Worker. */
export const isolateFolder = () => first("quickjs.wasm", ["dist/isolate", "../.bobbin/quick/dist-isolate", "../dist-isolate"]);

/** The modules that wrap the Workers. */
export const watchFolder = () => join(PACKAGE, "test/worker");

/** Returns the path of workerd, which wrangler depends on. @param {string} project */
export function workerd(project) {
  for (const from of [join(project, "package.json"), join(PACKAGE, "package.json")]) {
    try {
      const wrangler = createRequire(from).resolve("wrangler/package.json");
      return /** @type {{ default: string }} */ (createRequire(wrangler)("workerd")).default;
    } catch {
      // Try the other location.
    }
  }
  throw new Complaint("workerd is missing, because wrangler is not installed. Run `npm install --save-dev wrangler`.", EXIT.usage);
}
