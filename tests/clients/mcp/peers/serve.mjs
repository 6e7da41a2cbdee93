// A peer as a server of HTTP: its endpoint at /mcp, its books at /calls, and itself as a program.

import { once } from "node:events";
import http from "node:http";
import { pathToFileURL } from "node:url";
import { Books } from "./tools.mjs";

/**
 * @typedef {object} Peer
 * @property {string} url                        of its endpoint
 * @property {Books} books
 * @property {() => Promise<void>} close
 *
 * @typedef {(request: http.IncomingMessage, response: http.ServerResponse, body: Buffer) => Promise<void> | void} Answering
 */

/**
 * @param {(books: Books) => Answering} answering
 * @param {{ port?: number, token?: string }} [options]   with a token every request must have it
 * @returns {Promise<Peer>}
 */
export async function serve(answering, { port = 0, token } = {}) {
  const books = new Books();
  const answer = answering(books);
  const server = http.createServer(async (request, response) => {
    try {
      if (request.url === "/calls") return void response.setHeader("content-type", "application/json").end(JSON.stringify(books.json()));
      if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) {
        return void response.writeHead(401, { "www-authenticate": 'Bearer realm="peer"' }).end();
      }
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = Buffer.concat(chunks);
      books.methods.push(methodOf(body) ?? String(request.method));
      await answer(request, response, body);
    } catch (error) {
      // Whoever asked is gone, or is told that something is wrong here.
      if (!response.headersSent) response.writeHead(500);
      response.end(String(error));
    }
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const { port: listening } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const close = async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  };
  return { url: `http://127.0.0.1:${listening}/mcp`, books, close };
}

/** @param {Buffer} body */
function methodOf(body) {
  try {
    return String(JSON.parse(body.toString("utf8")).method);
  } catch {
    return undefined;
  }
}

/** `node peers/NAME.mjs [--port N] [--token TEXT]` serves it until it is killed. @param {string} module @param {(options: object) => Promise<Peer>} start */
export async function program(module, start) {
  if (module !== pathToFileURL(process.argv[1] ?? "").href) return;
  const flag = (/** @type {string} */ name) => process.argv[process.argv.indexOf(`--${name}`) + 1];
  const token = process.argv.includes("--token") ? { token: flag("token") } : {};
  const { url } = await start({ port: process.argv.includes("--port") ? Number(flag("port")) : 0, ...token });
  console.log(url);
}
