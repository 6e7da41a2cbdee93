// A reader of server-sent events that hides nothing: every event with its id, and a connection that can be cut after
// any number of bytes, also in the middle of an event or of a character.

import { once } from "node:events";
import { http } from "../../../package/lib/node-http.mjs";
import { until } from "./poll.mjs";

/**
 * @typedef {object} Event
 * @property {string} event
 * @property {any} data
 * @property {string | undefined} id  only when the event itself carries one
 */

/** Splits a stream of bytes into events. Bytes that do not end in a blank line are no event. */
export class EventParser {
  constructor() {
    this.rest = Buffer.alloc(0);
    /** Comment lines, in order: heartbeats. @type {string[]} */
    this.comments = [];
    /** How long to wait before connecting again, in milliseconds, when the stream has said so. @type {number | undefined} */
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
  /** Is shown the data of each event, and throws at what is wrong. @type {((frame: any) => void) | undefined} */
  static looksAt = undefined;

  /** @param {import("node:http").ClientRequest} request @param {import("node:http").IncomingMessage} response @param {number} cutAfter */
  constructor(request, response, cutAfter) {
    this.request = request;
    this.response = response;
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    /** All events so far. @type {Event[]} */
    this.events = [];
    /** Id to resume with: the last one that was received. @type {string | undefined} */
    this.lastId = undefined;
    /** The stream has ended, by whomever. */
    this.ended = false;
    /** The other side has ended it, and said that this was all. */
    this.whole = false;
    /** Bytes taken so far. */
    this.bytes = 0;
    this.parser = new EventParser();
    /** Called for each event as it comes. @type {((event: Event) => void) | undefined} */
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
   * @returns {Promise<EventReader>} also for answers that are no stream: look at `status`
   */
  static async open(base, path, options = {}) {
    const { lastEventId, cutAfter = Infinity } = options;
    const resume = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
    const headers = { accept: "text/event-stream", ...options.headers, ...resume };
    // A connection of its own, so that cutting it disturbs nothing else.
    const request = http.request(new URL(path, base), { headers, agent: false });
    request.end();
    const [response] = await once(request, "response");
    request.on("error", () => {}); // the reader's `ended` tells
    return new EventReader(request, response, cutAfter);
  }

  /**
   * The first event, received already or still to come, that matches.
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
