// A collector of spans for the benchmark: counts what it receives, and responds with a configurable status.

import http from "node:http";
import { once } from "node:events";
import { wholeBody } from "../tests/worker/support/http.mjs";

export async function startCollector() {
  const collector = {
    url: "",
    /** The status of its responses. */
    status: 200,
    /** Accepted spans; all requests; accepted requests; spans of the last request. */
    seen: { spans: 0, requests: 0, taken: 0, last: 0 },
    async end() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
  const server = http.createServer(async (request, response) => {
    const body = await wholeBody(request);
    if (body !== undefined) {
      const { seen } = collector;
      const scopes = (JSON.parse(body).resourceSpans ?? []).flatMap((/** @type {any} */ { scopeSpans }) => scopeSpans);
      seen.last = scopes.reduce((/** @type {number} */ sum, /** @type {any} */ { spans }) => sum + spans.length, 0);
      seen.requests++;
      if (collector.status === 200) {
        seen.taken++;
        seen.spans += seen.last;
      }
    }
    response.writeHead(collector.status, { "content-type": "application/json" }).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  collector.url = `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}`;
  return collector;
}
