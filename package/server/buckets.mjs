// R2 buckets for plain workerd: the simulation in miniflare, which comes with wrangler. Each bucket is a Durable Object
// of a miniflare Worker in the same process, with a database for metadata and files for contents. The files are in
// wrangler's folders, so that both servers can use the same data.

import { existsSync, mkdirSync } from "node:fs";
import { join, relative } from "node:path";
import { Complaint } from "../lib/complaint.mjs";

/** @typedef {import("../lib/project.mjs").Config} Config */

/** A part of the databases' names. wrangler uses the same. */
const CLASS = "R2BucketObject";
/** The Worker that forwards a request to its bucket's object, the Worker with these objects, and the folder of both. */
const [ENTRY, OBJECTS, FOLDER] = ["r2:bucket:entry", "r2:bucket", "r2:storage"];

/**
 * Returns the parts of a configuration that define buckets, in Cap'n Proto's text form.
 *
 * @param {string} miniflare   the folder of its package
 * @param {string} home        the folder of the configuration
 * @param {string} persist
 */
export function bucketParts(miniflare, home, persist) {
  const script = (/** @type {string} */ name) => {
    const path = join(miniflare, "dist/src/workers", name);
    if (!existsSync(path)) throw new Complaint(`${path} is missing, which provides buckets. Bobbin does not support this version of miniflare. Run \`npm ci\`.`);
    // Embedded files are resolved relative to the configuration's folder.
    return `esModule = embed ${text(relative(home, path).replaceAll("\\", "/"))}`;
  };
  const folder = join(persist, "v3/r2");
  mkdirSync(folder, { recursive: true });
  return {
    services: [
      `(name = ${text(FOLDER)}, disk = (path = ${text(folder)}, writable = true))`,
      `(name = ${text(ENTRY)}, worker = (
      compatibilityDate = "2023-07-24",
      modules = [(name = "object-entry.worker.js", ${script("shared/object-entry.worker.js")})],
      bindings = [(name = "MINIFLARE_OBJECT", durableObjectNamespace = (serviceName = ${text(OBJECTS)}, className = ${text(CLASS)}))],
    ))`,
      `(name = ${text(OBJECTS)}, worker = (
      compatibilityDate = "2023-07-24",
      compatibilityFlags = ["nodejs_compat", "experimental"],
      modules = [(name = "bucket.worker.js", ${script("r2/bucket.worker.js")})],
      bindings = [(name = "MINIFLARE_BLOBS", service = ${text(FOLDER)})],
      durableObjectNamespaces = [(className = ${text(CLASS)}, uniqueKey = ${text(`miniflare-${CLASS}`)})],
      durableObjectStorage = (localDisk = ${text(FOLDER)}),
    ))`,
    ],
    // Modules that these scripts import.
    extensions: [
      `(modules = [(name = "miniflare:shared", ${script("shared/index.worker.js")}), (name = "miniflare:zod", ${script("shared/zod.worker.js")})])`,
    ],
  };
}

/**
 * Returns a Worker's bindings to its buckets.
 *
 * @param {Config} config
 * @param {string} instead   what to do if a remote bucket is bound
 */
export function bucketBindings({ name, r2_buckets: buckets = [] }, instead) {
  return buckets.map(({ binding, bucket_name = binding, remote = false }) => {
    if (remote) throw new Complaint(`workerd has no access to Cloudflare's buckets, and ${binding} of ${name} is one (\`remote\`): ${instead}.`);
    const props = JSON.stringify({ MINIFLARE_NAMESPACE: bucket_name });
    return `(name = ${text(binding)}, r2Bucket = (name = ${text(ENTRY)}, props = (json = ${text(props)})))`;
  });
}

/** Quotes a text for a configuration. @param {string} value */
export const text = (value) => JSON.stringify(value);
