// Receives all outgoing requests of the Workers and passes each to the run that it belongs to.

import { createServer } from "node:http";

/**
 * A request from a Worker.
 *
 * @typedef {object} Asked
 * @property {string} method
 * @property {URL} url
 * @property {Record<string, string>} headers   without the watch's own
 * @property {string} body
 * @property {string} object                    the object that sends it: kind and name
 * @property {string | undefined} by            the file of code that sends it, if any
 */

/** @typedef {{ status: number, headers: Record<string, string>, body: string | AsyncIterable<string | Uint8Array> }} Answer */

/**
 * @typedef {object} Outside
 * @property {number} port
 * @property {(run: string, answer: (asked: Asked) => Promise<Answer>) => void} register
 * @property {(run: string) => void} forget
 * @property {() => Promise<void>} stop
 */

/** @param {{ aside?: boolean }} [options]   aside: does not keep the process alive @returns {Promise<Outside>} */
export async function startOutside({ aside = false } = {}) {
  /** @type {Map<string, (asked: Asked) => Promise<Answer>>} */
  const runs = new Map();
  const server = createServer({ requireHostHeader: false, keepAliveTimeout: 60_000 }, async (request, response) => {
    const chunks = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      // The sender was dropped during the request.
      return void response.destroy();
    }
    const { "x-bobbin-test-run": run, "x-bobbin-test-object": object, "x-bobbin-test-by": by, ...headers } = request.headers;
    const answer = runs.get(String(run));
    /** @type {Answer} */
    let answered;
    try {
      answered = await (answer ?? unknown)({
        method: request.method ?? "GET",
        url: new URL(request.url ?? "", "http://nowhere.test"),
        headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
        body: Buffer.concat(chunks).toString(),
        object: String(object),
        by: by === undefined ? undefined : decodeURIComponent(String(by)),
      });
    } catch (error) {
      answered = refusal(`the server of the test failed: ${error instanceof Error ? error.stack : error}`);
    }
    response.writeHead(answered.status, answered.headers);
    try {
      if (typeof answered.body === "string") response.end(answered.body);
      else {
        for await (const piece of answered.body) response.write(piece);
        response.end();
      }
    } catch {
      response.destroy();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  if (aside) {
    server.unref();
    server.on("connection", (socket) => socket.unref());
  }
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    port,
    register: (run, answer) => void runs.set(run, answer),
    forget: (run) => void runs.delete(run),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Answers requests of a run that is over. */
const unknown = async () => refusal("no running case sent this request");

/** Returns an error for a request that nothing answers. @param {string} message @param {number} [status] @returns {Answer} */
export function refusal(message, status = 421) {
  return { status, headers: { "content-type": "application/json" }, body: JSON.stringify({ error: { message } }) };
}
