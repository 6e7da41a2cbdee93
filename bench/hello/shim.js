// The JavaScript side of the hello-world Worker: only the call.

import * as wasm from "bobbin-wasm";

// Typed like the product's `fetch`, which takes one more argument.
const { fetch } = /** @type {Record<string, any>} */ (wasm);

/** @type {ExportedHandler} */
export default { fetch: (request, env, ctx) => fetch(request, env, ctx) };
