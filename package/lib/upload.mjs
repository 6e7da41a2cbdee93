// Writes the files of an import to a thread: small files in one request, larger ones as uploads whose parts can be sent
// again.

import { retry } from "./retry.mjs";
import { Complaint } from "./complaint.mjs";
import { json } from "./output.mjs";

/**
 * @typedef {import("bobbin/client").Client} Client
 * @typedef {import("./transfer.mjs").FileRecord} FileRecord
 */

/** A JSON body has at most 4 MB, and base64 adds a third. */
const SMALL = 2 << 20;

/** A file whose bytes arrive in pieces. */
export class Uploading {
  #client;
  #threadId;
  #file;
  #held = Buffer.alloc(0);
  #bytes = 0;
  /** @type {{ id: string, chunk: number, next: number } | undefined} */
  #upload;

  /** @param {Client} client @param {string} threadId @param {FileRecord} file */
  constructor(client, threadId, file) {
    this.#client = client;
    this.#threadId = threadId;
    this.#file = file;
  }

  get path() {
    return this.#file.path;
  }

  /** @param {Buffer} piece */
  async take(piece) {
    this.#held = Buffer.concat([this.#held, piece]);
    this.#bytes += piece.length;
    if (this.#file.size <= SMALL) return;
    this.#upload ??= await this.#begin();
    while (this.#held.length >= this.#upload.chunk) await this.#send(this.#upload, this.#upload.chunk);
  }

  /** Completes the file after its last piece. */
  async end() {
    const { path, size } = this.#file;
    if (this.#bytes !== size) throw new Complaint(`The file contains ${this.#bytes} bytes of ${json(path)}, not ${size}. Export the thread again.`);
    if (this.#upload !== undefined) {
      if (this.#held.length > 0) await this.#send(this.#upload, this.#held.length);
      const params = { path: { threadId: this.#threadId, uploadId: this.#upload.id } };
      await retry(() => this.#client.POST("/api/threads/{threadId}/uploads/{uploadId}/complete", { params }));
      return;
    }
    const params = { path: { threadId: this.#threadId, path: path.slice(1) } };
    const body = { data: this.#held.toString("base64"), ...facts(this.#file) };
    await retry(() => this.#client.POST("/api/threads/{threadId}/fs/{path}", { params, body }));
  }

  async #begin() {
    const { path, size } = this.#file;
    const params = { path: { threadId: this.#threadId } };
    const { data } = await retry(() => this.#client.POST("/api/threads/{threadId}/uploads", { params, body: { path, size, ...facts(this.#file) } }));
    if (data === undefined) throw new Error("no response for an upload");
    return { id: data.uploadId, chunk: data.chunkSize, next: 0 };
  }

  /** @param {{ id: string, next: number }} upload @param {number} bytes */
  async #send(upload, bytes) {
    const piece = this.#held.subarray(0, bytes);
    const params = { path: { threadId: this.#threadId, uploadId: upload.id, index: upload.next } };
    /** @type {any} */
    const body = piece;
    const raw = { bodySerializer: () => /** @type {any} */ (piece), headers: { "content-type": "application/octet-stream" } };
    await retry(() => this.#client.PUT("/api/threads/{threadId}/uploads/{uploadId}/{index}", { params, body, ...raw }));
    upload.next++;
    this.#held = this.#held.subarray(bytes);
  }
}

/** @param {FileRecord} file */
function facts({ mimeType, metadata, width, height }) {
  return {
    mimeType,
    ...(metadata && { metadata }),
    ...(typeof width === "number" && { width }),
    ...(typeof height === "number" && { height }),
  };
}
