// Node's own `http`, required: of a built-in module that is imported Node reads every export, and one of this module's loads all that
// `fetch` is made of, which takes a process 60 ms of its start.

import { createRequire } from "node:module";

/** @type {typeof import("node:http")} */
export const http = createRequire(import.meta.url)("node:http");
