// What platform.test.mjs asks the runtime. Each path is a question, and the response is the answer as JSON.

import { DurableObject } from "cloudflare:workers";

/** Written to a stream until its reader has left. */
const PIECE = new Uint8Array(64 << 10);

export class Store extends DurableObject {
  /** How values are stored that are bound to a statement, in columns without a type. */
  bound() {
    const { sql } = this.ctx.storage;
    sql.exec("CREATE TABLE bound (any, flag INTEGER)");
    sql.exec("INSERT INTO bound VALUES (?, ?), (?, ?)", true, true, 1, 1);
    return sql.exec("SELECT typeof(any) AS any, typeof(flag) AS flag FROM bound").toArray();
  }

  /** Whether a value is stored that a deployed object refuses. */
  large() {
    const { sql } = this.ctx.storage;
    sql.exec("CREATE TABLE large (bytes)");
    sql.exec("INSERT INTO large VALUES (?)", new Uint8Array(4 << 20));
    return sql.exec("SELECT length(bytes) AS length FROM large").one().length;
  }

  /** Rows that are billed for one entry of an index over words. */
  indexed() {
    const { sql } = this.ctx.storage;
    sql.exec("CREATE VIRTUAL TABLE words USING fts5(text)");
    return sql.exec("INSERT INTO words VALUES (?)", "one two three ".repeat(100)).rowsWritten;
  }

  fail(isCloneable) {
    throw Object.assign(new TypeError("it failed"), { code: "lost", detail: isCloneable ? "text" : () => {} });
  }

  /** A socket that hibernates, and one that does not. */
  fetch(request) {
    const [client, server] = Object.values(new WebSocketPair());
    if (request.url.endsWith("/hibernating")) this.ctx.acceptWebSocket(server);
    else server.accept();
    return new Response(null, { status: 101, webSocket: client });
  }

  webSocketClose(socket, code) {
    this.ctx.storage.kv.put("closed", code);
  }

  closed() {
    return this.ctx.storage.kv.get("closed") ?? null;
  }
}

/** The error of a call, without what the call was. */
const errorOf = (error) => ({ name: error.name, message: error.message, code: error.code ?? null });

/** Writes to a stream until one is rejected. @param {IdentityTransformStream} stream */
async function rejection({ writable }) {
  const writer = writable.getWriter();
  try {
    for (;;) await writer.write(PIECE);
  } catch (error) {
    return error === undefined ? "undefined" : String(error);
  }
}

/** Of the stream whose client left: how a write was rejected, and whether the request's signal told. */
const left = { rejected: "nothing", aborted: false };

const QUESTIONS = {
  ready: () => true,
  temporal: () => typeof Temporal,
  bound: (_, store) => store.bound(),
  large: (_, store) => store.large(),
  indexed: (_, store) => store.indexed(),
  closed: (_, store) => store.closed(),
  fails: async (_, store) => ({ cloneable: await store.fail(true).catch(errorOf), uncloneable: await store.fail(false).catch(errorOf) }),
  loads: async (_, __, { LOADER }) => {
    const code = (text) => ({ compatibilityDate: "2026-10-01", mainModule: "a.js", modules: { "a.js": text } });
    const right = "export default { fetch: () => new Response('it works') }";
    const asked = async (worker) => {
      try {
        return await (await worker.getEntrypoint().fetch("http://a/")).text();
      } catch {
        return "it fails";
      }
    };
    const got = [await asked(LOADER.get("a", () => code("throw new Error('no')"))), await asked(LOADER.get("a", () => code(right)))];
    return { get: got, load: [await asked(LOADER.load(code("throw new Error('no')"))), await asked(LOADER.load(code(right)))] };
  },
  left: () => left,
};

export default {
  async fetch(request, env, ctx) {
    const store = env.STORE.get(env.STORE.idFromName("one"));
    const path = new URL(request.url).pathname.slice(1);
    if (request.headers.get("upgrade")) return store.fetch(request);
    if (path === "stream") {
      request.signal.addEventListener("abort", () => (left.aborted = true));
      const stream = new IdentityTransformStream();
      ctx.waitUntil(rejection(stream).then((told) => (left.rejected = told)));
      return new Response(stream.readable);
    }
    return Response.json(await QUESTIONS[path](request, store, env));
  },
};
