// The feed of one run as a response: what an object sends on a socket, piece after piece, until the run is over. It goes
// on when the object was restarted, and it never ends cleanly before the run has: a client that is told less than all
// sees the response break.

import { EVENTS_TYPE, answer, forOrigin, RUN } from "./platform.js";

/** Closing codes of worker/src/sockets.rs. */
const OVER = 1000;
const EXPIRED = 3000;
const MORE = 3003;

/** Bytes that may wait for a client that does not read. */
const WAITING_BYTES = 8 << 20;
/** Frames that come within so many milliseconds are close upon each other, and gathered for so long, or until they are so much. */
const CLOSE_MS = 3;
const GATHER_MS = 2;
const GATHER_BYTES = 64 << 10;
/** Pauses before the attempts to reach an object again that was restarted, milliseconds. */
const AGAIN_MS = [100, 400, 1_000, 2_000, 4_000, 8_000];

/**
 * Makes something else of a feed, in wasm.
 *
 * @typedef {{ push(events: string): string, readonly over: boolean, free(): void }} Encoder
 */

/**
 * The same, with the answer's own end: what it is as a whole, and with which status.
 *
 * @typedef {Encoder & { readonly status: number, whole(): string, headers(): string, readonly beatMs: number | undefined, beat(): string | undefined, asks(): string | undefined, answered(status: number, body: string): string, leaving(): string | undefined }} Answering
 */

/**
 * @param {WebSocket} first    the object's socket
 * @param {DurableObjectNamespace} objects
 * @param {string} name        of the object
 * @param {string} header      that carries what is wanted
 * @param {string} listen      what is wanted, JSON in ASCII
 * @param {{ waitUntil(promise: Promise<unknown>): void }} ctx
 * @param {number} untilMs     when the credentials end; negative when they do not
 * @param {number} heartbeatMs
 * @param {number} patienceMs  how long the client may take nothing
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

/** Follows a run over as many sockets as it takes, and keeps both sides alive meanwhile.
 *
 * @param {Following} following @param {WebSocket} first @param {DurableObjectNamespace} objects @param {string} name
 * @param {string} header @param {string} listen @param {number} untilMs @param {number} heartbeatMs
 */
function follow(following, first, objects, name, header, listen, untilMs, heartbeatMs) {
  const reopen = async (/** @type {string | undefined} */ id) => {
    const wanted = id === undefined ? listen : ascii({ ...JSON.parse(listen), last_event_id: id });
    const headers = { upgrade: "websocket", [header]: wanted };
    const answer = await objects.getByName(name).fetch("https://thread/", { headers });
    // A refusal is for good, unless the object has too much to do.
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

/** A stream begins after this, whether anything was said or not: proxies give up answers that do not begin. */
const BEGIN_MS = 10_000;

/** How often it is looked whether the client has gone of an answer that is not wanted then. */
const LOOK_MS = 3_000;

/**
 * An answer in another protocol: streamed, whole at the end, or what there is of it now. What fails before anything was said
 * is an answer with the status of an error. If the client of a stream goes before the end, the thread is told what that means to it.
 *
 * @param {WebSocket} first @param {DurableObjectNamespace} objects @param {string} name @param {string} header
 * @param {string} listen @param {{ waitUntil(promise: Promise<unknown>): void }} ctx @param {number} untilMs
 * @param {number} heartbeatMs @param {number} patienceMs @param {string | undefined} origin @param {string} extra
 * @param {Answering} encoder @param {"streamed" | "whole" | "now"} how @param {number} withinMs when it ends at the latest; negative for never
 */
export async function answered(first, objects, name, header, listen, ctx, untilMs, heartbeatMs, patienceMs, origin, extra, encoder, how, withinMs) {
  const pairs = JSON.parse(extra);
  const streamed = how === "streamed";
  const { readable, writable } = new IdentityTransformStream();
  const writer = streamed ? writable.getWriter() : SINK;
  const call = (/** @type {string} */ text) => /** @type {any} */ (objects.getByName(name)).call(text);
  const following = new Following(writer, encoder, patienceMs, how === "now", call);
  const within = withinMs < 0 ? null : setTimeout(() => following.finish(), withinMs);
  // Who has gone is known at once where the platform says so, and by the next comment otherwise.
  if (streamed) /** @type {WritableStreamDefaultWriter<Uint8Array>} */ (writer).closed.catch(() => following.fail(GONE));
  // Where it matters that the client goes, it is looked at more often: that is seen by what it does not take.
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
    // One whose failures are no statuses begins at once: that its client goes is seen by what it does not take.
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

/** Why an answer breaks off whose client has gone, and one whose client takes nothing. */
const GONE = "the client has gone";
const UNREAD = "nobody reads";

/** Takes what nobody reads. */
const SINK = { write: async () => {}, close: async () => {}, abort: async () => {} };

/** @param {string} why */
const broken = (why) => JSON.stringify({ error: { message: `The answer broke off: ${why}. The run goes on.`, type: "server_error", param: null, code: "overloaded" } });

/**
 * An answer with several headers.
 *
 * @param {number} status @param {string} text  JSON @param {string | undefined} origin @param {string} extra  JSON, an array of pairs
 */
export function told(status, text, origin, extra) {
  const response = answer(status, text, origin, undefined);
  for (const [key, value] of JSON.parse(extra)) response.headers.set(key, value);
  return response;
}

/**
 * An answer in server-sent events that is whole already.
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

/** The same, where nothing else is wanted of the socket. @param {Response} response */
export function runAlone(response) {
  response.webSocket?.accept();
  if (response.webSocket) closeQuietly(response.webSocket);
  return runOf(response);
}

/** The run that an object's socket follows, if it has begun. @param {Response} response */
export const runOf = (response) => response.headers.get(RUN) ?? undefined;

/** @param {unknown} value JSON in ASCII, because headers carry nothing else */
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

/** The thread is not there, or not the caller's any more. */
class Gone extends Error {}

/** One response, over as many sockets as it takes. */
class Following {
  #writer;
  #encoder;
  #patienceMs;
  #text = new TextEncoder();
  #waiting = 0;
  #takenAt = Date.now();
  /** Whether the client is taking what frames were. */
  #takes = false;
  /** When frames were passed on last. */
  #toldAt = 0;
  /** Ends the gathering of frames. @type {ReturnType<typeof setTimeout> | null} */
  #gathering = null;
  /** Frames that came meanwhile: they go out together. */
  #frames = "";
  /** @type {(() => void)[]} told when everything was taken, or nothing will be */
  #drained = [];
  /** Why the response breaks; empty for a good end. @type {string | undefined} */
  #end;
  /** @type {WebSocket | undefined} */
  #socket;
  /** @type {((why: { code: number, reason: string }) => void) | undefined} */
  #closed;
  #pinged = false;
  #heard = false;
  /** Id of the last frame that had one. @type {string | undefined} */
  #last;
  /** Whether it ends with what there is already. */
  #now;
  /** Calls the object. @type {((text: string) => Promise<[number, unknown, string | undefined]>) | undefined} */
  #call;
  /** What the encoder has asked the object. @type {Promise<void> | undefined} */
  #asked;
  #began = () => {};
  hasBegun = false;
  /** Resolves when something was said that is no error. @type {Promise<void>} */
  begun = new Promise((resolve) => (this.#began = resolve));

  /** @param {Pick<WritableStreamDefaultWriter<Uint8Array>, "write" | "close" | "abort">} writer @param {Encoder | Answering | undefined} encoder @param {number} patienceMs @param {boolean} [now] @param {(text: string) => Promise<any>} [call] */
  constructor(writer, encoder, patienceMs, now = false, call = undefined) {
    this.#writer = writer;
    this.#encoder = encoder;
    this.#patienceMs = patienceMs;
    this.#now = now;
    this.#call = call;
    // Written at once, so that the client sees the response begin. OpenAI's package for Python takes a `retry` for an event.
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

  /** Why it broke off. */
  get failure() {
    return this.#end || undefined;
  }

  /** It ends with what there is, and what was gathered. */
  finish() {
    this.#pass();
    this.#end ??= "";
    this.#closed?.({ code: OVER, reason: "" });
    this.#tellDrained();
  }

  /** The response breaks off. @param {string} why */
  fail(why) {
    this.#end ??= why;
    this.#frames = "";
    this.#closed?.({ code: 0, reason: why });
    this.#tellDrained();
  }

  /** Keeps the response alive, and looks whether both sides are. */
  beat() {
    if (this.#waiting > 0 && Date.now() - this.#takenAt > this.#patienceMs) return this.fail(UNREAD);
    this.#write((this.#encoder && "beat" in this.#encoder ? this.#encoder.beat() : undefined) ?? ": \n\n");
    if (!this.#closed) return;
    if (this.#pinged) return this.#closed({ code: 0, reason: "no answer" });
    this.#pinged = true;
    try {
      // The platform answers for the object, without waking it.
      this.#socket?.send("ping");
    } catch {
      this.#closed({ code: 0, reason: "broken" });
    }
  }

  /** Passes on what a socket brings, until it is closed. @param {WebSocket} socket @returns {Promise<{ code: number, reason: string }>} */
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
        // It comes behind what the object had to say; what of that is still gathered goes first.
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

  /** Passes on what has come. */
  #pass() {
    const frames = this.#frames;
    if (frames === "") return;
    this.#frames = "";
    const encoder = this.#encoder;
    if (!encoder) return this.#tell(frames);
    this.#say(() => encoder.push(frames));
  }

  /** Says what the encoder makes of something. @param {() => string} make */
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

  /** Asks the object what the encoder wants to know, as often as it does. */
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

  /** Calls the object, and again where it was restarted: what is asked may be asked twice. @param {string} text */
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
   * Writes what frames are, and passes on what comes meanwhile behind it, together. Where frames come close upon each other a little more
   * is waited for: each that is passed on by itself costs as much as many.
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

  /** Passes on what has come, and waits for no more. */
  #goOn() {
    clearTimeout(this.#gathering);
    this.#gathering = null;
    this.#takes = false;
    this.#pass();
  }

  /** Resolves when it is taken, or never will be. @param {string} text */
  #write(text) {
    const bytes = this.#text.encode(text);
    if (this.#waiting === 0) this.#takenAt = Date.now();
    this.#waiting += bytes.byteLength;
    // Where the reader has left, a write is rejected with `undefined`.
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
