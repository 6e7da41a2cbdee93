// Node's `http`, loaded with `require`. An `import` reads every export of the module, and one of them loads the
// implementation of `fetch`, which adds 60 ms to the start of the process.

import { createRequire } from "node:module";

/** @type {typeof import("node:http")} */
export const http = createRequire(import.meta.url)("node:http");
