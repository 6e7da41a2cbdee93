// Buckets under workerd by itself: the simulation of R2 that comes with wrangler, in miniflare's package. A bucket is an object of a
// Worker of miniflare's in the same process, with a database for what it knows of its contents, and files for these. They lie where
// wrangler has them, so that one server goes on with what the other began.

import { existsSync, mkdirSync } from "node:fs";
import { join, relative } from "node:path";
import { Complaint } from "../lib/complaint.mjs";

/** @typedef {import("../lib/project.mjs").Config} Config */

/** Part of what databases are called; wrangler says the same. */
const CLASS = "R2BucketObject";
/** The Worker that sends a request to the object of its bucket; the Worker with these objects; the folder of both. */
const [ENTRY, OBJECTS, FOLDER] = ["r2:bucket:entry", "r2:bucket", "r2:storage"];

/**
 * The parts of a configuration that make buckets, in the text form of Cap'n Proto.
 *
 * @param {string} miniflare   the folder of its package
 * @param {string} home        the folder of the configuration
 * @param {string} persist
 */
export function bucketParts(miniflare, home, persist) {
  const script = (/** @type {string} */ name) => {
    const path = join(miniflare, "dist/src/workers", name);
    if (!existsSync(path)) throw new Complaint(`${path} is missing, from which buckets are made: this miniflare is another than Bobbin knows. Run \`npm ci\`.`);
    // What is embedded is found from the folder of the configuration.
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
    // What these scripts import.
    extensions: [
      `(modules = [(name = "miniflare:shared", ${script("shared/index.worker.js")}), (name = "miniflare:zod", ${script("shared/zod.worker.js")})])`,
    ],
  };
}

/**
 * The bindings of a Worker to its buckets.
 *
 * @param {Config} config
 * @param {string} instead   what to do where a bucket is bound that is on no machine of ours
 */
export function bucketBindings({ name, r2_buckets: buckets = [] }, instead) {
  return buckets.map(({ binding, bucket_name = binding, remote = false }) => {
    if (remote) throw new Complaint(`workerd by itself has no buckets of Cloudflare's, and ${binding} of ${name} is one (\`remote\`): ${instead}.`);
    const props = JSON.stringify({ MINIFLARE_NAMESPACE: bucket_name });
    return `(name = ${text(binding)}, r2Bucket = (name = ${text(ENTRY)}, props = (json = ${text(props)})))`;
  });
}

/** A text in a configuration. @param {string} value */
export const text = (value) => JSON.stringify(value);
