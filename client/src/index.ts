// A client for Bobbin's HTTP API: every route by its address, with types; and threads that survive what breaks off.

import createFetchClient from "openapi-fetch";
import type { Client as FetchClient } from "openapi-fetch";
import type { paths } from "./api.js";
import { Connection } from "./connection.js";
import type { ConnectionOptions } from "./connection.js";
import { Thread } from "./thread.js";

export type { components, paths } from "./api.js";
export type { ConnectionOptions } from "./connection.js";
export { BobbinError } from "./errors.js";
export type { Frame, FramesOptions, Told } from "./frames.js";
export { Thread, ThreadView } from "./thread.js";
export type { Decision, ForkOptions, NewMessage, RunOutcome, SendOptions } from "./thread.js";
export { EMPTY, after } from "./view.js";
export type { Message, Partial, View, Wait } from "./view.js";

/** A thread by its id, or by a key of yours: then it is made with this agent where it is not there. */
export type ThreadName = string | { key: string; agent: string };

export interface NewThreadOptions {
  tags?: string[];
  properties?: Record<string, unknown>;
  user_id?: string;
  idempotencyKey?: string;
}

export interface Client extends FetchClient<paths> {
  /** The same object for the same name. */
  thread(name: ThreadName): Thread;
  /** A new thread: one, however often it is asked for with the same `idempotencyKey`. */
  createThread(agent: string, more?: NewThreadOptions): Promise<Thread>;
}

/** Attempts at making a thread that has a key. */
const ATTEMPTS = 6;

/** A client of one server. */
export function createClient(options: ConnectionOptions = {}): Client {
  const connection = new Connection(options);
  const threads = new Map<string, Thread>();
  const json = { "content-type": "application/json" };
  const create = async (body: object, key: string) => {
    const init = { method: "POST", headers: { ...json, "idempotency-key": key }, body: JSON.stringify(body) };
    const response = await connection.send("/api/threads", init, { attempts: ATTEMPTS });
    return ((await response.json()) as { threadId: string }).threadId;
  };
  const own: Pick<Client, "thread" | "createThread"> = {
    thread(name) {
      const id = typeof name === "string" ? name : `key:${name.key}\0${name.agent}`;
      const found = threads.get(id);
      if (found) return found;
      let made: Promise<string> | undefined;
      const lookUp = () => {
        if (typeof name === "string") return Promise.resolve(name);
        made ??= create({ agent_id: name.agent, key: name.key }, crypto.randomUUID()).catch((error: unknown) => {
          made = undefined;
          throw error;
        });
        return made;
      };
      const thread = new Thread(connection, lookUp);
      threads.set(id, thread);
      return thread;
    },
    async createThread(agent, { idempotencyKey, ...more } = {}) {
      return own.thread(await create({ agent_id: agent, ...more }, idempotencyKey ?? crypto.randomUUID()));
    },
  };
  const routes = createFetchClient<paths>({
    baseUrl: connection.url,
    // The middleware of openapi-fetch would see an answer that refuses; here it is an error like any other.
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      const body = request.method === "GET" || request.method === "HEAD" ? undefined : await request.arrayBuffer();
      const init: RequestInit = { method: request.method, headers: request.headers, signal: request.signal };
      if (body !== undefined && body.byteLength > 0) init.body = body;
      return connection.send(pathname + search, init);
    },
  });
  return { ...routes, ...own };
}
