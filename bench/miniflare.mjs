// Runs a Worker directly under miniflare, as a process: without wrangler or a front, only with what miniflare puts between
// the client and workerd. `node bench/miniflare.mjs <options as JSON>`; prints a line once it listens.

import { Miniflare, convertV4MiniflareOptions } from "miniflare";

/**
 * @typedef {object} BareOptions
 * @property {number} port
 * @property {string} persist        folder of the objects' databases
 * @property {string} root           folder of the Worker's files
 * @property {{ type: "ESModule" | "CompiledWasm" | "Text", path: string }[]} modules   the first one is the Worker
 * @property {Record<string, string>} objects   class by binding
 * @property {Record<string, string>} vars
 */

/** @type {BareOptions} */
const { port, persist, root, modules, objects, vars } = JSON.parse(process.argv[2] ?? "{}");
const options = convertV4MiniflareOptions({
  host: "127.0.0.1",
  port,
  modulesRoot: root,
  modules,
  compatibilityDate: "2026-10-01",
  bindings: vars,
  durableObjects: Object.fromEntries(Object.entries(objects).map(([binding, className]) => [binding, { className, useSQLite: true }])),
  durableObjectsPersist: persist,
  cf: false,
});
const miniflare = new Miniflare(options);
await miniflare.ready;
console.log("ready");
