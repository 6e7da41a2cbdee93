// A Worker with an object that runs code in the isolate Worker as the object of a thread does, and whose functions are
// those of the test: everything that comes through the door goes over a WebSocket to the test, and its answers come
// back that way.

import { DurableObject, RpcTarget } from "cloudflare:workers";

const toText = ({ text, bytes }) => ({ text, bytes: bytes.map((content) => Buffer.from(content).toString("base64")) });
const fromText = ({ text, bytes }) => ({ text, bytes: bytes.map((content) => new Uint8Array(Buffer.from(content, "base64"))) });
const answerToText = (answer) => ("value" in answer ? { value: toText(answer.value) } : { error: toText(answer.error) });

class Door extends RpcTarget {
  constructor(side) {
    super();
    this.side = side;
    this.whenEnded = new Promise((resolve) => (this.resolveEnded = resolve));
  }
  async call(fn, args, back) {
    this.side.keep(back);
    const answer = await this.side.ask({ op: "call", fn, args: toText(args) });
    return "value" in answer ? { value: fromText(answer.value) } : { error: fromText(answer.error) };
  }
  async report(value, back) {
    this.side.keep(back);
    await this.side.ask({ op: "report", value: toText(value) });
  }
  ended() {
    return this.whenEnded;
  }
}

/** For measuring: a function that gives back its argument, without asking the test. */
class LocalDoor extends Door {
  async call(_fn, { text, bytes }) {
    return { value: { text: text.replace(/^\[\[1\],\["a",\[(.*)\]\]\]$/, "[$1]"), bytes } };
  }
}

/** This side of one run. */
class Side {
  constructor(socket, run) {
    this.socket = socket;
    this.run = run;
    this.asked = new Map();
    this.last = 0;
    this.door = new Door(this);
  }
  say(message) {
    this.socket.send(JSON.stringify({ run: this.run, ...message }));
  }
  ask(message) {
    const call = ++this.last;
    this.say({ ...message, call });
    return new Promise((resolve) => this.asked.set(call, resolve));
  }
  keep(back) {
    // The stub of an argument is gone after the call.
    if (back) this.back ??= back.dup();
  }
  end(ended) {
    this.endedAt ??= performance.now();
    this.door.resolveEnded(ended);
  }
  async start(isolate, request) {
    const { values, local, ...rest } = request;
    const door = local ? (this.door = new LocalDoor(this)) : this.door;
    const started = performance.now();
    let outcome;
    try {
      outcome = await isolate.run({ ...rest, values: fromText(values) }, door);
    } catch (error) {
      return this.say({ op: "rejected", message: String(error) });
    }
    const tookMs = performance.now() - started;
    const settleMs = this.endedAt === undefined ? undefined : performance.now() - this.endedAt;
    const { functions, value, logs, ...told } = outcome;
    this.keep(functions);
    if (!functions) this.end(null);
    this.say({
      op: "outcome",
      outcome: {
        ...told,
        ...(value && { value: toText(value) }),
        logs: logs.map((log) => ({ ...log, args: toText(log.args) })),
        functions: functions !== undefined,
      },
      settleMs,
      tookMs,
    });
    outcome[Symbol.dispose]?.();
  }
  async take(message) {
    if (message.op === "answer") {
      this.asked.get(message.call)?.(message.answer);
      this.asked.delete(message.call);
    } else if (message.op === "ended") {
      this.end(message.reason === null ? null : { reason: message.reason });
    } else if (message.op === "invoke") {
      const answer = await this.back.call(message.fn, fromText(message.args)).catch((error) => ({
        error: { text: JSON.stringify([[1], ["e", "Lost", String(error), ""]]), bytes: [] },
      }));
      this.say({ op: "answer", call: message.call, answer: answerToText(answer) });
    }
  }
}

export class Caller extends DurableObject {
  fetch() {
    const [client, server] = Object.values(new WebSocketPair());
    server.accept();
    const sides = new Map();
    server.addEventListener("message", ({ data }) => {
      const message = JSON.parse(data);
      if (message.op === "abort") return this.ctx.abort("the test wants it");
      if (message.op === "run") {
        const side = new Side(server, message.run);
        sides.set(message.run, side);
        side.start(this.env.ISOLATE, message.request);
      } else if (message.op === "forget") {
        sides.get(message.run)?.back?.[Symbol.dispose]();
        sides.delete(message.run);
      } else sides.get(message.run)?.take(message);
    });
    return new Response(null, { status: 101, webSocket: client });
  }
}

export default {
  fetch(request, env) {
    const { pathname } = new URL(request.url);
    return pathname === "/" ? new Response("up") : env.CALLERS.getByName(pathname).fetch(request);
  },
};
