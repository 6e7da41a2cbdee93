// A client for Bobbin's HTTP API: every route by its path, with types, and threads that survive disconnects.

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

/** A thread by its id, or by your key: then it is created with this agent if it does not exist. */
export type ThreadName = string | { key: string; agent: string };

export interface NewThreadOptions {
  tags?: string[];
  properties?: Record<string, unknown>;
  user_id?: string;
  idempotencyKey?: string;
}

export interface Client extends FetchClient<paths> {
  /** Returns the same object for the same name. */
  thread(name: ThreadName): Thread;
  /** Creates a thread. Calls with the same `idempotencyKey` create it only once. */
  createThread(agent: string, more?: NewThreadOptions): Promise<Thread>;
}

/** Attempts to create a thread with a key. */
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
    // openapi-fetch would return an error response; here it throws like any other error.
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
