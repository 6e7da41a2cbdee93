// Builds a page with the packages of one client's folder, and serves it from an origin of its own.

import { once } from "node:events";
import http from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const support = fileURLToPath(new URL(".", import.meta.url));

/**
 * @param {string} folder                    the client's, with its `node_modules`
 * @param {string} [entry]                   the page's script, beside this file
 * @param {Record<string, string>} [alias]   packages that are somewhere else
 */
export async function page(folder, entry = "page.jsx", alias = {}) {
  const { outputFiles } = await build({
    entryPoints: [join(support, entry)],
    alias,
    bundle: true,
    write: false,
    format: "esm",
    jsx: "automatic",
    define: { "process.env.NODE_ENV": '"production"' },
    nodePaths: [join(folder, "node_modules")],
    logLevel: "error",
  });
  const script = outputFiles[0].text;
  const html = '<!doctype html><title>chat</title><div id="root"></div><script type="module" src="/page.js"></script>';
  const server = http.createServer((request, response) => {
    const js = request.url === "/page.js";
    response.writeHead(200, { "content-type": js ? "text/javascript" : "text/html; charset=utf-8" }).end(js ? script : html);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    origin: `http://127.0.0.1:${port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
