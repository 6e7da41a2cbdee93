// A Worker with only the bridge of worker/platform.js, with short timeouts, between a response and a socket that the
// request selects. `/log` returns and clears the events.

import { bridge } from "./platform.js";

const HEARTBEAT_MS = 200;
const PATIENCE_MS = 700;
const LIFE_MS = 60_000;

let log = [];

/** A socket to an object that may answer pings. */
class ObjectSocket extends EventTarget {
  constructor(answers) {
    super();
    this.answers = answers;
  }
  accept() {
    log.push("accepted");
  }
  send(text) {
    log.push(`sent ${text}`);
    if (this.answers) queueMicrotask(() => this.say("pong"));
  }
  close(code) {
    log.push(`closed ${code}`);
  }
  say(data) {
    this.dispatchEvent(Object.assign(new Event("message"), { data }));
  }
}

const block = `data: ${"x".repeat(50_000)}\n\n`;

/** The object's behaviour, by the request's path. */
const stories = {
  "/quiet": () => {},
  "/mute": () => {},
  "/short": () => {},
  "/says": (socket) => ["data: one\n\n", "pong", "data: two\n\n"].forEach((text) => socket.say(text)),
  "/some": (socket) => Array.from({ length: 150 }).forEach(() => socket.say(block)),
  "/flood": (socket) => Array.from({ length: 300 }).forEach(() => socket.say(block)),
  "/closes": (socket) => socket.dispatchEvent(new Event("close")),
  "/breaks": (socket) => socket.dispatchEvent(new Event("error")),
};

export default {
  fetch(request, _env, ctx) {
    const { pathname } = new URL(request.url);
    if (pathname === "/log") return Response.json(log.splice(0));
    const socket = new ObjectSocket(pathname !== "/mute");
    const context = { waitUntil: (promise) => ctx.waitUntil(promise.then(() => log.push("over"))) };
    const life = pathname === "/short" ? 500 : LIFE_MS;
    const response = bridge(socket, context, life, HEARTBEAT_MS, PATIENCE_MS, undefined);
    setTimeout(() => stories[pathname](socket), 50);
    return response;
  },
};
