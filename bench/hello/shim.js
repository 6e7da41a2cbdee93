// The JavaScript side of the hello-world Worker: nothing but the call.

import * as wasm from "bobbin-wasm";

// Typed as the product's, which takes one argument more.
const { fetch } = /** @type {Record<string, any>} */ (wasm);

/** @type {ExportedHandler} */
export default { fetch: (request, env, ctx) => fetch(request, env, ctx) };
