// Plain workerd, without wrangler: one Worker on one port.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkout } from "./server.mjs";

/** The path of the runtime. Its arguments are `serve` and a configuration. */
export const WORKERD = join(checkout, "node_modules/workerd/bin/workerd");

/** The module type by file extension. @type {Record<string, string>} */
const KINDS = { js: "esModule", wasm: "wasm", json: "text" };

/**
 * Writes a configuration that serves the files of a folder as one Worker. Returns its path.
 *
 * @param {string} folder
 * @param {string[]} files    its modules; the first one is the Worker
 * @param {number} port
 * @param {string} [more]     further fields of the Worker
 * @param {string} [disk]     the folder of the service `disk`; by default there is none
 */
export function configure(folder, files, port, more = "", disk) {
  const module = (/** @type {string} */ file) => `(name = "${file}", ${KINDS[file.split(".").at(-1) ?? ""]} = embed "${file}")`;
  const path = join(folder, "config.capnp");
  writeFileSync(
    path,
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main)${disk === undefined ? "" : `, (name = "disk", disk = (path = ${JSON.stringify(disk)}, writable = true))`}],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [${files.map(module).join(", ")}],
  compatibilityDate = "2026-10-01",
  ${more}
);
`,
  );
  return path;
}
