// A reader of server-sent events that shows every event with its id. Its connection can be cut after any number of
// bytes, even within an event or a character.

import { once } from "node:events";
import { http } from "../../../package/lib/node-http.mjs";
import { until } from "./poll.mjs";

/**
 * @typedef {object} Event
 * @property {string} event
 * @property {any} data
 * @property {string | undefined} id  only if the event itself has one
 */

/** Splits a stream of bytes into events. Bytes without a final blank line are not an event. */
export class EventParser {
  constructor() {
    this.rest = Buffer.alloc(0);
    /** Comment lines (heartbeats), in order. @type {string[]} */
    this.comments = [];
    /** The reconnection delay in milliseconds, if the stream has sent one. @type {number | undefined} */
    this.retry = undefined;
  }

  /** @param {Buffer} bytes @returns {Event[]} */
  push(bytes) {
    this.rest = Buffer.concat([this.rest, bytes]);
    /** @type {Event[]} */
    const events = [];
    for (;;) {
      const end = this.rest.indexOf("\n\n");
      if (end < 0) return events;
      const block = this.rest.subarray(0, end).toString("utf8");
      this.rest = this.rest.subarray(end + 2);
      const event = this.event(block);
      if (event) events.push(event);
    }
  }

  /** @param {string} block @returns {Event | undefined} */
  event(block) {
    /** @type {string[]} */
    const data = [];
    let event = "message";
    /** @type {string | undefined} */
    let id;
    for (const line of block.split("\n")) {
      if (line.startsWith(":")) this.comments.push(line.slice(1).trim());
      else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      else if (line.startsWith("event:")) event = line.slice(6).trim();
      else if (line.startsWith("id:")) id = line.slice(3).trim();
      else if (line.startsWith("retry:")) this.retry = Number(line.slice(6));
      else if (line !== "") throw new Error(`unexpected line in an event stream: ${JSON.stringify(line)}`);
    }
    return data.length === 0 ? undefined : { event, id, data: JSON.parse(data.join("\n")) };
  }
}

export class EventReader {
  /** Receives the data of each event, and throws at mistakes. @type {((frame: any) => void) | undefined} */
  static looksAt = undefined;

  /** @param {import("node:http").ClientRequest} request @param {import("node:http").IncomingMessage} response @param {number} cutAfter */
  constructor(request, response, cutAfter) {
    this.request = request;
    this.response = response;
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    /** All events so far. @type {Event[]} */
    this.events = [];
    /** The id of the last event, to resume from. @type {string | undefined} */
    this.lastId = undefined;
    /** Whether the stream has ended, on either side. */
    this.ended = false;
    /** Whether the server has ended the stream completely. */
    this.whole = false;
    /** The number of bytes received so far. */
    this.bytes = 0;
    this.parser = new EventParser();
    /** Called for each event. @type {((event: Event) => void) | undefined} */
    this.onEvent = undefined;
    response.on("data", (/** @type {Buffer} */ chunk) => {
      if (this.ended) return;
      const taken = chunk.subarray(0, Math.max(0, cutAfter - this.bytes));
      this.bytes += taken.length;
      for (const event of this.parser.push(taken)) {
        if (event.id !== undefined) this.lastId = event.id;
        EventReader.looksAt?.(event.data);
        this.events.push(event);
        this.onEvent?.(event);
      }
      if (this.bytes >= cutAfter) this.close();
    });
    response.on("end", () => {
      this.whole = response.complete && !this.ended;
    });
    for (const end of ["end", "error", "close"]) {
      response.on(end, () => {
        this.ended = true;
      });
    }
  }

  /**
   * @param {string} base
   * @param {string} path
   * @param {{ headers?: Record<string, string>, lastEventId?: string | undefined, cutAfter?: number }} [options]  `cutAfter` in bytes
   * @returns {Promise<EventReader>} also for responses that are not a stream: check `status`
   */
  static async open(base, path, options = {}) {
    const { lastEventId, cutAfter = Infinity } = options;
    const resume = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
    const headers = { accept: "text/event-stream", ...options.headers, ...resume };
    // A separate connection, so that cutting it affects nothing else.
    const request = http.request(new URL(path, base), { headers, agent: false });
    request.end();
    const [response] = await once(request, "response");
    request.on("error", () => {}); // reported by the reader's `ended`
    return new EventReader(request, response, cutAfter);
  }

  /**
   * Waits for the first matching event, which may have arrived already.
   *
   * @param {string} what
   * @param {(event: Event) => unknown} matches
   * @param {number} [withinMs]
   */
  next(what, matches, withinMs = 15_000) {
    return until(`the stream brings ${what}`, () => this.events.find(matches), {
      withinMs,
      describe: () => ({ ended: this.ended, events: this.events.slice(-5) }),
    });
  }

  close() {
    this.ended = true;
    this.request.destroy();
  }
}
