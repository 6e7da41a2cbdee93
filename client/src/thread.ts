// A thread: what can be done with it, and what it looks like now.

import type { components } from "./api.js";
import type { Connection, Sending } from "./connection.js";
import { BobbinError } from "./errors.js";
import { frames } from "./frames.js";
import type { FramesOptions, Told } from "./frames.js";
import { EMPTY, after } from "./view.js";
import type { View, Wait } from "./view.js";

type Schemas = components["schemas"];
export type RunOutcome = Schemas["RunOutcome"];
export type NewMessage = Schemas["NewMessage"];
export type Decision = Schemas["Decision"];

export interface SendOptions {
  /** The message is stored once, however often it is sent; a new one unless given. */
  idempotencyKey?: string;
  attachments?: NewMessage["attachments"];
  metadata?: Record<string, unknown>;
  signal?: AbortSignal;
}

export interface ForkOptions extends Pick<SendOptions, "idempotencyKey" | "signal"> {
  /** The id of the last message that is copied; the last one that is complete unless given. */
  upTo?: string;
  /** Instead: the id of a message whose whole answer is copied, up to what was said next. */
  answerTo?: string;
  /** What the copy is called. */
  key?: string;
  /** Those of the thread unless given. */
  tags?: string[];
  /** Those of the thread unless given. */
  properties?: Record<string, unknown>;
  /** Seconds after which it deletes itself. */
  expiresIn?: number;
}

/** Attempts at what may be repeated. */
const ATTEMPTS = 6;
/** How long nobody may look before the view stops following the thread. */
const IDLE_MS = 1_000;

export class Thread {
  readonly #connection: Connection;
  readonly #id: () => Promise<string>;
  #view: ThreadView | undefined;

  /** @internal */
  constructor(connection: Connection, id: () => Promise<string>) {
    this.#connection = connection;
    this.#id = id;
  }

  /** Its id; of a thread with a key it is made where it is not there. */
  id(): Promise<string> {
    return this.#id();
  }

  /** Sends a message of a user: it is stored once the promise resolves. What fails is sent again. */
  async send(text: string, options: SendOptions = {}): Promise<Schemas["Queued"]> {
    return this.#post("messages", message(text, options), keyed(options));
  }

  /** Sends a message, and waits for what comes of its run, however long that takes. */
  async ask(text: string, options: SendOptions = {}): Promise<RunOutcome> {
    return this.#post("messages?wait=true", message(text, options), keyed(options));
  }

  /** Ends the run at once. */
  async stop(): Promise<void> {
    await this.#post("stop", undefined, { attempts: ATTEMPTS });
  }

  /** Starts a run without a new message. */
  async continue(): Promise<void> {
    await this.#post("continue", undefined, { attempts: ATTEMPTS });
  }

  /** Has what was said before a message answered anew; what followed that is dropped. The newest message unless one is named. */
  async regenerate(message = "last"): Promise<Schemas["Regenerated"]> {
    return this.#post(`messages/${encodeURIComponent(message)}/regenerate`, undefined, keyed({}));
  }

  /** Changes what was said, drops what followed it, and has it answered as it is now. */
  async edit(message: string, text: string): Promise<void> {
    await this.#post(`messages/${encodeURIComponent(message)}?truncate=true&run=true`, { content: text }, { ...keyed({}), method: "PATCH" });
  }

  /** A copy of it, which goes its own way. Requests to it wait until all is copied. */
  async fork(options: ForkOptions = {}): Promise<Thread> {
    const { upTo, answerTo, key, tags, properties, expiresIn, ...sending } = options;
    const body: Schemas["NewFork"] = {
      ...(upTo !== undefined && { up_to: upTo }),
      ...(answerTo !== undefined && { answer_to: answerTo }),
      ...(key !== undefined && { key }),
      ...(tags && { tags }),
      ...(properties && { properties }),
      ...(expiresIn !== undefined && { expires_in: expiresIn }),
    };
    const { threadId } = await this.#post<Schemas["Forked"]>("fork", body, keyed(sending));
    return new Thread(this.#connection, () => Promise.resolve(threadId));
  }

  /** Decides what a person is asked. The same decision may come twice; another one is refused. */
  async decide(wait: string | Wait, decision: Decision): Promise<Wait> {
    const id = typeof wait === "string" ? wait : wait.id;
    const answer = await this.#post<Schemas["WaitDecided"]>(`waits/${encodeURIComponent(id)}`, decision, keyed({}));
    return answer.wait;
  }

  approve(wait: string | Wait, args?: Record<string, unknown>): Promise<Wait> {
    return this.decide(wait, { decision: "approve", ...(args && { args }) });
  }

  deny(wait: string | Wait, reason?: string): Promise<Wait> {
    return this.decide(wait, { decision: "deny", ...(reason && { reason }) });
  }

  /** Answers a question in words, or gives what a tool of this client came to. */
  answer(wait: string | Wait, answer: string | { result: unknown; isError?: boolean }): Promise<Wait> {
    return this.decide(wait, typeof answer === "string" ? { decision: "answer", text: answer } : { decision: "answer", ...answer });
  }

  /** Frames as they happen. What breaks off is taken up again; leave the loop, or abort the signal, to end it. */
  async *frames(options: FramesOptions = {}): AsyncGenerator<Told> {
    yield* frames(this.#connection, await this.#id(), options);
  }

  /** What it looks like: the same object for all who look. */
  view(): ThreadView {
    return (this.#view ??= new ThreadView(this));
  }

  async #post<T>(path: string, body: unknown, sending: Sending & { key?: string; method?: string }): Promise<T> {
    const { key, method = "POST", ...how } = sending;
    const headers: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
    if (key !== undefined) headers["idempotency-key"] = key;
    const init: RequestInit = { method, headers };
    if (body !== undefined) init.body = JSON.stringify(body);
    const response = await this.#connection.send(`/api/threads/${encodeURIComponent(await this.#id())}/${path}`, init, how);
    return response.json() as Promise<T>;
  }
}

function message(text: string, { attachments, metadata }: SendOptions): NewMessage {
  return { role: "user", content: text, ...(attachments && { attachments }), ...(metadata && { metadata }) };
}

/** A request that takes effect once, and may therefore be repeated. */
function keyed({ idempotencyKey, signal }: Pick<SendOptions, "idempotencyKey" | "signal">): Sending & { key: string } {
  return { key: idempotencyKey ?? crypto.randomUUID(), attempts: ATTEMPTS, ...(signal && { signal }) };
}

/** A thread as it looks now, for whoever draws it: `subscribe` and `current`. It follows the thread while somebody looks. */
export class ThreadView {
  readonly #thread: Thread;
  readonly #listeners = new Set<() => void>();
  #current: View = EMPTY;
  #error: BobbinError | undefined;
  #following: AbortController | undefined;
  #leaving: ReturnType<typeof setTimeout> | undefined;

  /** @internal */
  constructor(thread: Thread) {
    this.#thread = thread;
  }

  /** Never changes in place: another object where anything is different. */
  get current(): View {
    return this.#current;
  }

  /** Why frames come no more, if the server has refused them. */
  get error(): BobbinError | undefined {
    return this.#error;
  }

  /** Calls `listener` after each change; what it returns ends that. */
  subscribe(listener: () => void): () => void {
    clearTimeout(this.#leaving);
    this.#listeners.add(listener);
    if (!this.#following) void this.#follow();
    return () => {
      this.#listeners.delete(listener);
      // A page that draws itself anew looks away for a moment.
      if (this.#listeners.size === 0) this.#leaving = setTimeout(() => this.#leave(), IDLE_MS);
    };
  }

  #leave(): void {
    if (this.#listeners.size > 0) return;
    this.#following?.abort();
    this.#following = undefined;
    this.#show({ ...this.#current, connected: false });
  }

  async #follow(): Promise<void> {
    const following = new AbortController();
    this.#following = following;
    this.#error = undefined;
    const options: FramesOptions = {
      signal: following.signal,
      onConnection: (connected) => this.#show({ ...this.#current, connected }),
      afterBreak: "snapshot",
    };
    try {
      for await (const { frame } of this.#thread.frames(options)) {
        const next = after(this.#current, frame);
        if (next !== this.#current) this.#show(next);
      }
    } catch (error) {
      if (following.signal.aborted) return;
      this.#error = error instanceof BobbinError ? error : new BobbinError("failed", String(error), 0);
      this.#following = undefined;
      this.#show({ ...this.#current, connected: false });
    }
  }

  #show(view: View): void {
    this.#current = view;
    for (const listener of this.#listeners) listener();
  }
}
