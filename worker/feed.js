// The feed of a run as a response: forwards what an object sends on a socket until the run is over. It reconnects when the
// object restarts. It never ends cleanly before the run does: a client that did not receive everything sees the response
// break.

import { EVENTS_TYPE, answer, forOrigin, RUN } from "./platform.js";

/** Closing codes of worker/src/sockets.rs. */
const OVER = 1000;
const EXPIRED = 3000;
const MORE = 3003;

/** The limit on bytes that wait for a client that does not read. */
const WAITING_BYTES = 8 << 20;
/** Frames within `CLOSE_MS` of each other are batched, for `GATHER_MS` or up to `GATHER_BYTES`. */
const CLOSE_MS = 3;
const GATHER_MS = 2;
const GATHER_BYTES = 64 << 10;
/** Pauses before the attempts to reconnect to a restarted object, milliseconds. */
const AGAIN_MS = [100, 400, 1_000, 2_000, 4_000, 8_000];

/**
 * Converts a feed to another format, in wasm.
 *
 * @typedef {{ push(events: string): string, readonly over: boolean, free(): void }} Encoder
 */

/**
 * An encoder with a result of its own: the whole body and its status.
 *
 * @typedef {Encoder & { readonly status: number, whole(): string, headers(): string, readonly beatMs: number | undefined, beat(): string | undefined, asks(): string | undefined, answered(status: number, body: string): string, leaving(): string | undefined }} Answering
 */

/**
 * @param {WebSocket} first    the object's socket
 * @param {DurableObjectNamespace} objects
 * @param {string} name        of the object
 * @param {string} header      the header that carries the call
 * @param {string} listen      the call, JSON in ASCII
 * @param {{ waitUntil(promise: Promise<unknown>): void }} ctx
 * @param {number} untilMs     when the credentials expire; negative for never
 * @param {number} heartbeatMs
 * @param {number} patienceMs  how long the client may read nothing
 * @param {string | undefined} origin
 * @param {string} extra       more headers, JSON, an array of pairs
 * @param {Encoder | undefined} encoder
 */
export function feed(first, objects, name, header, listen, ctx, untilMs, heartbeatMs, patienceMs, origin, extra, encoder) {
  const { readable, writable } = new IdentityTransformStream();
  const response = new Response(readable, { headers: forOrigin(EVENTS_TYPE, origin) });
  for (const [key, value] of JSON.parse(extra)) response.headers.set(key, value);
  const following = new Following(writable.getWriter(), encoder, patienceMs);
  const done = follow(following, first, objects, name, header, listen, untilMs, heartbeatMs).finally(() => encoder?.free());
  ctx.waitUntil(done);
  return response;
}

/** Follows a run over as many sockets as needed, and keeps both sides alive.
 *
 * @param {Following} following @param {WebSocket} first @param {DurableObjectNamespace} objects @param {string} name
 * @param {string} header @param {string} listen @param {number} untilMs @param {number} heartbeatMs
 */
function follow(following, first, objects, name, header, listen, untilMs, heartbeatMs) {
  const reopen = async (/** @type {string | undefined} */ id) => {
    const wanted = id === undefined ? listen : ascii({ ...JSON.parse(listen), last_event_id: id });
    const headers = { upgrade: "websocket", [header]: wanted };
    const answer = await objects.getByName(name).fetch("https://thread/", { headers });
    // A refusal is final, unless the object is overloaded.
    if (!answer.webSocket && answer.status < 500) throw new Gone(`the thread answered ${answer.status}`);
    if (!answer.webSocket) throw new Error(`the thread answered ${answer.status}`);
    return answer.webSocket;
  };
  const beat = setInterval(() => following.beat(), heartbeatMs);
  const life = untilMs < 0 ? null : setTimeout(() => following.fail("the token has expired"), Math.max(0, Math.min(untilMs - Date.now(), 2 ** 31 - 1)));
  return following.run(first, reopen).finally(() => {
    clearInterval(beat);
    clearTimeout(life);
  });
}

/** A stream begins after this time even if it is empty: proxies drop responses that do not begin. */
const BEGIN_MS = 10_000;

/** The interval of checks for a disconnected client, if the disconnect matters to the thread. */
const LOOK_MS = 3_000;

/**
 * Answers in another protocol: as a stream, whole at the end, or with the current state. A failure before the first output
 * becomes a response with an error status. If the client of a stream disconnects early, the encoder's `leaving` goes to the thread.
 *
 * @param {WebSocket} first @param {DurableObjectNamespace} objects @param {string} name @param {string} header
 * @param {string} listen @param {{ waitUntil(promise: Promise<unknown>): void }} ctx @param {number} untilMs
 * @param {number} heartbeatMs @param {number} patienceMs @param {string | undefined} origin @param {string} extra
 * @param {Answering} encoder @param {"streamed" | "whole" | "now"} how @param {number} withinMs the time limit; negative for none
 */
export async function answered(first, objects, name, header, listen, ctx, untilMs, heartbeatMs, patienceMs, origin, extra, encoder, how, withinMs) {
  const pairs = JSON.parse(extra);
  const streamed = how === "streamed";
  const { readable, writable } = new IdentityTransformStream();
  const writer = streamed ? writable.getWriter() : SINK;
  const call = (/** @type {string} */ text) => /** @type {any} */ (objects.getByName(name)).call(text);
  const following = new Following(writer, encoder, patienceMs, how === "now", call);
  const within = withinMs < 0 ? null : setTimeout(() => following.finish(), withinMs);
  // A disconnect shows at once if the platform reports it, and otherwise at the next comment.
  if (streamed) /** @type {WritableStreamDefaultWriter<Uint8Array>} */ (writer).closed.catch(() => following.fail(GONE));
  // If the disconnect matters, check more often: only unread output reveals it.
  const matters = encoder.beatMs === undefined && encoder.leaving() !== undefined;
  const beatMs = encoder.beatMs ?? (matters ? LOOK_MS : heartbeatMs);
  const done = follow(following, first, objects, name, header, listen, untilMs, beatMs)
    .then(async () => {
      clearTimeout(within);
      const leaving = following.failure === GONE ? encoder.leaving() : undefined;
      if (leaving !== undefined) await following.reach(leaving);
      const { status } = encoder;
      if (following.failure !== undefined && !encoder.over) return { status: 503, text: broken(following.failure), more: [] };
      return { status, text: encoder.whole(), more: JSON.parse(encoder.headers()) };
    })
    .finally(() => encoder.free());
  ctx.waitUntil(done);
  if (streamed) {
    // An encoder without error statuses begins at once: only unread output reveals a disconnect.
    if (encoder.beatMs === undefined) await Promise.race([following.begun, done, new Promise((resolve) => setTimeout(resolve, matters ? LOOK_MS : BEGIN_MS))]);
    if (following.hasBegun || !following.isOver) {
      const response = new Response(readable, { headers: forOrigin(EVENTS_TYPE, origin) });
      for (const [key, value] of pairs) response.headers.set(key, value);
      return response;
    }
    readable.cancel().catch(() => {});
  }
  const { status, text, more } = await done;
  return told(status, text, origin, JSON.stringify([...pairs, ...more]));
}

/** Reasons for a broken response: the client disconnected, or reads nothing. */
const GONE = "the client has gone";
const UNREAD = "nobody reads";

/** A writer that discards everything. */
const SINK = { write: async () => {}, close: async () => {}, abort: async () => {} };

/** @param {string} why */
const broken = (why) => JSON.stringify({ error: { message: `The answer broke off: ${why}. The run goes on.`, type: "server_error", param: null, code: "overloaded" } });

/**
 * A response with additional headers.
 *
 * @param {number} status @param {string} text  JSON @param {string | undefined} origin @param {string} extra  JSON, an array of pairs
 */
export function told(status, text, origin, extra) {
  const response = answer(status, text, origin, undefined);
  for (const [key, value] of JSON.parse(extra)) response.headers.set(key, value);
  return response;
}

/**
 * A complete response of server-sent events.
 *
 * @param {string} text
 * @param {string | undefined} origin
 * @param {string} extra    more headers, JSON, an array of pairs
 */
export function whole(text, origin, extra) {
  const response = new Response(text, { headers: forOrigin(EVENTS_TYPE, origin) });
  for (const [key, value] of JSON.parse(extra)) response.headers.set(key, value);
  return response;
}

/** Returns the run that an object's socket follows, and closes the socket. @param {Response} response */
export function runAlone(response) {
  response.webSocket?.accept();
  if (response.webSocket) closeQuietly(response.webSocket);
  return runOf(response);
}

/** The run that an object's socket follows, if it has begun. @param {Response} response */
export const runOf = (response) => response.headers.get(RUN) ?? undefined;

/** @param {unknown} value JSON in ASCII, because headers allow nothing else */
const ascii = (value) =>
  JSON.stringify(value).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** @param {WebSocket} socket */
function closeQuietly(socket) {
  try {
    socket.close(1000, "this part is over");
  } catch {
    // It is closed already.
  }
}

/** The thread does not exist, or is no longer the caller's. */
class Gone extends Error {}

/** One response, over as many sockets as needed. */
class Following {
  #writer;
  #encoder;
  #patienceMs;
  #text = new TextEncoder();
  #waiting = 0;
  #takenAt = Date.now();
  /** Whether a write of frames is pending. */
  #takes = false;
  /** When frames were last forwarded. */
  #toldAt = 0;
  /** Ends the batching of frames. @type {ReturnType<typeof setTimeout> | null} */
  #gathering = null;
  /** Frames of the next batch. */
  #frames = "";
  /** @type {(() => void)[]} called when all output is read, or never will be */
  #drained = [];
  /** Why the response breaks; empty for a regular end. @type {string | undefined} */
  #end;
  /** @type {WebSocket | undefined} */
  #socket;
  /** @type {((why: { code: number, reason: string }) => void) | undefined} */
  #closed;
  #pinged = false;
  #heard = false;
  /** The id of the last frame that had one. @type {string | undefined} */
  #last;
  /** Whether to end with the current state. */
  #now;
  /** Calls the object. @type {((text: string) => Promise<[number, unknown, string | undefined]>) | undefined} */
  #call;
  /** The encoder's pending request to the object. @type {Promise<void> | undefined} */
  #asked;
  #began = () => {};
  hasBegun = false;
  /** Resolves at the first output that is not an error. @type {Promise<void>} */
  begun = new Promise((resolve) => (this.#began = resolve));

  /** @param {Pick<WritableStreamDefaultWriter<Uint8Array>, "write" | "close" | "abort">} writer @param {Encoder | Answering | undefined} encoder @param {number} patienceMs @param {boolean} [now] @param {(text: string) => Promise<any>} [call] */
  constructor(writer, encoder, patienceMs, now = false, call = undefined) {
    this.#writer = writer;
    this.#encoder = encoder;
    this.#patienceMs = patienceMs;
    this.#now = now;
    this.#call = call;
    // Written at once, so that the client sees the response begin. OpenAI's package for Python mistakes a `retry` for an event.
    this.#write(encoder && "status" in encoder ? ": \n\n" : "retry: 1000\n\n");
  }

  /** @param {WebSocket} first @param {(id: string | undefined) => Promise<WebSocket>} reopen */
  async run(first, reopen) {
    /** @type {WebSocket | undefined} */
    let socket = first;
    let attempts = 0;
    while (this.#end === undefined) {
      this.#heard = false;
      const { code, reason } = socket ? await this.#read(socket) : { code: 0, reason: "" };
      this.#pass();
      while (this.#asked && this.#end === undefined) await this.#asked;
      if (this.#end !== undefined) break;
      if (code === OVER && socket) this.#end = this.#encoder && !this.#encoder.over ? "the feed ended too early" : "";
      else if (code === EXPIRED) this.#end = "the token has expired";
      if (this.#end !== undefined) break;
      await this.#drain();
      if (code === MORE) this.#last = reason;
      else {
        if (this.#heard) attempts = 0;
        const pause = AGAIN_MS[attempts++];
        if (pause === undefined) this.#end = "the thread could not be reached again";
        else await new Promise((resolve) => setTimeout(resolve, pause));
      }
      if (this.#end !== undefined) break;
      try {
        socket = await reopen(this.#last);
      } catch (error) {
        if (error instanceof Gone || code === MORE) this.#end = error instanceof Error ? error.message : String(error);
        socket = undefined;
      }
    }
    if (this.#socket) closeQuietly(this.#socket);
    await (this.#end === "" ? this.#writer.close() : this.#writer.abort(new Error(this.#end))).catch(() => {});
  }

  get isOver() {
    return this.#end !== undefined;
  }

  /** Why the response broke. */
  get failure() {
    return this.#end || undefined;
  }

  /** Ends with the output so far. */
  finish() {
    this.#pass();
    this.#end ??= "";
    this.#closed?.({ code: OVER, reason: "" });
    this.#tellDrained();
  }

  /** Breaks the response. @param {string} why */
  fail(why) {
    this.#end ??= why;
    this.#frames = "";
    this.#closed?.({ code: 0, reason: why });
    this.#tellDrained();
  }

  /** Sends a heartbeat, and checks whether both sides are alive. */
  beat() {
    if (this.#waiting > 0 && Date.now() - this.#takenAt > this.#patienceMs) return this.fail(UNREAD);
    this.#write((this.#encoder && "beat" in this.#encoder ? this.#encoder.beat() : undefined) ?? ": \n\n");
    if (!this.#closed) return;
    if (this.#pinged) return this.#closed({ code: 0, reason: "no answer" });
    this.#pinged = true;
    try {
      // The platform answers for the object without waking it.
      this.#socket?.send("ping");
    } catch {
      this.#closed({ code: 0, reason: "broken" });
    }
  }

  /** Forwards a socket's messages until it closes. @param {WebSocket} socket @returns {Promise<{ code: number, reason: string }>} */
  #read(socket) {
    this.#socket = socket;
    this.#pinged = false;
    return new Promise((resolve) => {
      const closed = (/** @type {{ code: number, reason: string }} */ why) => {
        if (this.#closed !== closed) return;
        this.#closed = undefined;
        closeQuietly(socket);
        resolve(why);
      };
      this.#closed = closed;
      socket.addEventListener("message", ({ data }) => {
        if (this.#closed !== closed || typeof data !== "string") return;
        if (data !== "pong") return this.#take(data);
        this.#pinged = false;
        if (!this.#now) return;
        // The pong follows everything the object had to send. Forward the gathered frames first.
        this.#pass();
        closed({ code: OVER, reason: (this.#end ??= "") });
      });
      socket.addEventListener("close", ({ code, reason }) => closed({ code, reason }));
      socket.addEventListener("error", () => closed({ code: 0, reason: "broken" }));
      socket.accept();
      if (this.#now) socket.send("ping");
    });
  }

  /** @param {string} event */
  #take(event) {
    this.#heard = true;
    if (event.startsWith("id: ")) this.#last = event.slice(4, event.indexOf("\n"));
    this.#frames += event;
    const isEnough = this.#gathering !== null && this.#frames.length > GATHER_BYTES;
    if (!this.#takes || isEnough) this.#goOn();
    else if (this.#waiting + this.#frames.length > WAITING_BYTES) this.fail(UNREAD);
  }

  /** Forwards the gathered frames. */
  #pass() {
    const frames = this.#frames;
    if (frames === "") return;
    this.#frames = "";
    const encoder = this.#encoder;
    if (!encoder) return this.#tell(frames);
    this.#say(() => encoder.push(frames));
  }

  /** Forwards the encoder's output. @param {() => string} make */
  #say(make) {
    if (!this.#encoder || this.#end !== undefined) return;
    try {
      const text = make();
      if (text !== "") {
        if (!("status" in this.#encoder) || this.#encoder.status === 200) {
          this.hasBegun = true;
          this.#began();
        }
        this.#tell(text);
      }
    } catch (error) {
      return this.fail(error instanceof Error ? error.message : String(error));
    }
    if (this.#encoder.over) {
      this.#end ??= "";
      this.#closed?.({ code: OVER, reason: "" });
    } else if (this.#asked === undefined) this.#asked = this.#ask();
  }

  /** Sends the encoder's requests to the object, one after another. */
  #ask() {
    const encoder = this.#encoder;
    const wanted = encoder && "asks" in encoder ? encoder.asks() : undefined;
    if (wanted === undefined || !encoder || !("asks" in encoder)) return undefined;
    return this.reach(wanted).then(
      ([status, , body]) => {
        this.#asked = undefined;
        this.#say(() => encoder.answered(status, body ?? ""));
      },
      (error) => this.fail(error instanceof Error ? error.message : String(error)),
    );
  }

  /** Calls the object, and retries if it restarted, so the call must be safe to repeat. @param {string} text */
  async reach(text) {
    if (!this.#call) throw new Error("there is no object to ask");
    for (const pause of AGAIN_MS) {
      try {
        return await this.#call(text);
      } catch {
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
    return this.#call(text);
  }

  /**
   * Writes frames. Frames that arrive during the write are forwarded together after it. If frames come close together, wait a
   * little longer: forwarding one frame costs as much as forwarding many.
   *
   * @param {string} text
   */
  #tell(text) {
    this.#takes = true;
    const now = Date.now();
    const gathers = now - this.#toldAt < CLOSE_MS;
    this.#toldAt = now;
    void this.#write(text).then(() => {
      if (!gathers || this.#frames.length > GATHER_BYTES) return this.#goOn();
      clearTimeout(this.#gathering);
      this.#gathering = setTimeout(() => this.#goOn(), GATHER_MS);
    });
  }

  /** Forwards the gathered frames without waiting for more. */
  #goOn() {
    clearTimeout(this.#gathering);
    this.#gathering = null;
    this.#takes = false;
    this.#pass();
  }

  /** Resolves when the text was read, or never will be. @param {string} text */
  #write(text) {
    const bytes = this.#text.encode(text);
    if (this.#waiting === 0) this.#takenAt = Date.now();
    this.#waiting += bytes.byteLength;
    // If the reader has left, a write is rejected with `undefined`.
    const taken = this.#writer.write(bytes).then(
      () => {
        this.#waiting -= bytes.byteLength;
        this.#takenAt = Date.now();
        if (this.#waiting === 0) this.#tellDrained();
      },
      () => this.fail(GONE),
    );
    if (this.#waiting > WAITING_BYTES) this.fail(UNREAD);
    return taken;
  }

  /** @returns {Promise<void>} */
  #drain() {
    if (this.#waiting === 0 || this.#end !== undefined) return Promise.resolve();
    return new Promise((resolve) => this.#drained.push(resolve));
  }

  #tellDrained() {
    for (const resolve of this.#drained.splice(0)) resolve();
  }
}
