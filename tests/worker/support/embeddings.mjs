// An embedding server: real HTTP with OpenAI's `POST …/embeddings`. It rejects invalid requests, records every text,
// and can go down and return at the same address.

import { once } from "node:events";
import { http } from "../../../package/lib/node-http.mjs";
import { wholeBody } from "./http.mjs";

export class EmbeddingServer {
  constructor() {
    /** The length of a vector. */
    this.dimensions = 64;
    /** All texts in the order of arrival. @type {string[]} */
    this.texts = [];
    this.requests = 0;
    /** Whether it accepts requests without responding. */
    this.silent = false;
    /** Mistakes in requests. @type {string[]} */
    this.wrong = [];
    this.port = 0;
    /** @type {import("node:http").Server | undefined} */
    this.server = undefined;
  }

  get base() {
    return `http://127.0.0.1:${this.port}/v1`;
  }

  /** Listens. Later calls use the first port again. */
  async up() {
    this.server = http.createServer((request, response) => void this.serve(request, response));
    this.server.listen(this.port, "127.0.0.1");
    await once(this.server, "listening");
    this.port = /** @type {import("node:net").AddressInfo} */ (this.server.address()).port;
  }

  /** Rejects connections from now on. */
  async down() {
    const server = this.server;
    this.server = undefined;
    server?.close();
    server?.closeAllConnections();
    if (server) await once(server, "close");
  }

  /** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
  async serve(request, response) {
    response.on("error", () => {});
    const body = await wholeBody(request);
    if (body === undefined) return;
    const { input, model, encoding_format: format } = JSON.parse(body.toString());
    const texts = Array.isArray(input) ? input : [];
    const fine = request.url === "/v1/embeddings" && model === "words" && format === "float" && texts.length > 0 && texts.length <= 64;
    if (!fine || texts.some((text) => typeof text !== "string" || text.trim() === "")) this.wrong.push(`${request.url} ${body}`);
    this.requests++;
    this.texts.push(...texts);
    if (this.silent) return;
    const data = texts.map((text, index) => ({ object: "embedding", index, embedding: this.vector(text) }));
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ object: "list", data, usage: { prompt_tokens: texts.length * 7, total_tokens: texts.length * 7 } }));
  }

  /** Counts the words at each word's position. @param {string} text */
  vector(text) {
    const vector = new Array(this.dimensions).fill(0.01);
    for (const word of text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []) {
      let hash = 7;
      for (const letter of word) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) % 1_000_003;
      vector[hash % this.dimensions] += 1;
    }
    return vector;
  }
}
