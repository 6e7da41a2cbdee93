// A small WebSocket client (RFC 6455) that shows everything: handshake status, frames, close code.

import { randomBytes } from "node:crypto";
import { http } from "../../../package/lib/node-http.mjs";
import { until } from "./poll.mjs";

/** @typedef {import("node:stream").Duplex} Duplex */

const TEXT = 1;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

export class Socket {
  /** Receives each frame of every socket of the API, and throws at mistakes. @type {((frame: any) => void) | undefined} */
  static looksAt = undefined;

  /** @param {Duplex} connection @param {Buffer} head @param {boolean} isOfApi  false for the runtime's own inspector */
  constructor(connection, head, isOfApi) {
    this.connection = connection;
    this.isOfApi = isOfApi;
    /** Texts that are not a JSON object, in order. @type {string[]} */
    this.texts = [];
    /** Frames: texts that are a JSON object, in order. @type {any[]} */
    this.frames = [];
    /** The arrival time of each frame (`performance.now()`). @type {number[]} */
    this.times = [];
    this.closed = false;
    /** @type {number | undefined} */
    this.closeCode = undefined;
    /** Called for each frame. @type {((frame: any) => void) | undefined} */
    this.onFrame = undefined;
    /** Called when the connection has ended. @type {(() => void) | undefined} */
    this.onClose = undefined;
    /** Bytes of an incomplete frame. @type {Buffer} */
    this.rest = Buffer.alloc(0);
    /** @type {Buffer[]} */
    this.parts = [];
    connection.on("data", (/** @type {Buffer} */ chunk) => this.take(chunk));
    connection.on("error", () => {}); // reported by `closed`
    connection.on("close", () => {
      this.closed = true;
      this.onClose?.();
    });
    if (head.length > 0) this.take(head);
  }

  /**
   * @param {string} base
   * @param {string} path
   * @param {Record<string, string>} [headers]
   * @returns {Promise<Socket>} rejects with the status in the message if the upgrade is rejected
   */
  static open(base, path, headers = {}) {
    return new Promise((resolve, reject) => {
      const request = http.request(new URL(path, base), {
        agent: false,
        headers: {
          connection: "Upgrade",
          upgrade: "websocket",
          "sec-websocket-version": "13",
          "sec-websocket-key": randomBytes(16).toString("base64"),
          ...headers,
        },
      });
      request.on("upgrade", (_response, connection, head) => resolve(new Socket(connection, head, path.startsWith("/api/"))));
      request.on("response", (response) => {
        reject(new Error(`the upgrade was answered with ${response.statusCode}`));
        response.resume();
      });
      request.on("error", reject);
      request.end();
    });
  }

  /** @param {Buffer} chunk */
  take(chunk) {
    this.rest = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    for (;;) {
      const frame = this.unpack();
      if (!frame) return;
      this.receive(frame.code, frame.last, frame.payload);
    }
  }

  unpack() {
    const bytes = this.rest;
    if (bytes.length < 2) return undefined;
    let length = bytes.readUInt8(1) & 127;
    let start = 2;
    if (length === 126) {
      if (bytes.length < 4) return undefined;
      length = bytes.readUInt16BE(2);
      start = 4;
    } else if (length === 127) {
      if (bytes.length < 10) return undefined;
      length = Number(bytes.readBigUInt64BE(2));
      start = 10;
    }
    if (bytes.length < start + length) return undefined;
    const first = bytes.readUInt8(0);
    this.rest = bytes.subarray(start + length);
    return { code: first & 15, last: (first & 128) !== 0, payload: bytes.subarray(start, start + length) };
  }

  /** @param {number} code @param {boolean} last @param {Buffer} payload */
  receive(code, last, payload) {
    if (code === PING) return this.write(PONG, payload);
    if (code === PONG) return;
    if (code === CLOSE) {
      this.closeCode = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
      this.closed = true;
      this.write(CLOSE, payload);
      this.connection.end();
      return;
    }
    this.parts.push(payload);
    if (!last) return;
    const text = Buffer.concat(this.parts).toString("utf8");
    this.parts = [];
    if (!text.startsWith("{")) {
      this.texts.push(text);
      return;
    }
    const frame = JSON.parse(text);
    if (this.isOfApi) Socket.looksAt?.(frame);
    this.times.push(performance.now());
    this.frames.push(frame);
    this.onFrame?.(frame);
  }

  /** @param {number} code @param {Buffer} payload */
  write(code, payload) {
    if (!this.connection.writable) return;
    const mask = randomBytes(4);
    const masked = Buffer.from(payload.map((byte, at) => byte ^ mask.readUInt8(at % 4)));
    const length = payload.length;
    /** @type {Buffer} */
    let head;
    if (length < 126) {
      head = Buffer.from([128 | code, 128 | length]);
    } else {
      head = Buffer.alloc(4);
      head.writeUInt8(128 | code, 0);
      head.writeUInt8(128 | 126, 1);
      head.writeUInt16BE(length, 2);
    }
    this.connection.write(Buffer.concat([head, mask, masked]));
  }

  /** @param {string} text  up to 64 KB */
  send(text) {
    this.write(TEXT, Buffer.from(text));
  }

  /**
   * Waits for the first matching frame, which may have arrived already.
   *
   * @param {string} what
   * @param {(frame: any) => unknown} matches
   * @param {number} [withinMs]
   */
  next(what, matches, withinMs = 15_000) {
    return until(`the socket brings ${what}`, () => this.frames.find(matches), {
      withinMs,
      describe: () => ({ closed: this.closed, frames: this.frames.slice(-5) }),
    });
  }

  close() {
    this.write(CLOSE, Buffer.from([3, 232]));
    this.connection.end();
  }
}
