// A thread: its actions and its current view.

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
  /** The message is stored once, however often it is sent with the same key. Default: a new key. */
  idempotencyKey?: string;
  attachments?: NewMessage["attachments"];
  metadata?: Record<string, unknown>;
  signal?: AbortSignal;
}

export interface ForkOptions extends Pick<SendOptions, "idempotencyKey" | "signal"> {
  /** The id of the last message to copy. Default: the last complete one. */
  upTo?: string;
  /** Instead: the id of a message whose complete answer is copied, up to the next user message. */
  answerTo?: string;
  /** The key of the copy. */
  key?: string;
  /** Default: those of the thread. */
  tags?: string[];
  /** Default: those of the thread. */
  properties?: Record<string, unknown>;
  /** Seconds after which the copy deletes itself. */
  expiresIn?: number;
}

/** Attempts of a repeatable request. */
const ATTEMPTS = 6;
/** How long a view without listeners keeps following the thread. */
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

  /** Its id. A thread with a key is created if it does not exist. */
  id(): Promise<string> {
    return this.#id();
  }

  /** Sends a user message, with retries. It is stored once the promise resolves. */
  async send(text: string, options: SendOptions = {}): Promise<Schemas["Queued"]> {
    return this.#post("messages", message(text, options), keyed(options));
  }

  /** Sends a message, and waits for the outcome of its run, however long that takes. */
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

  /** Answers a message again, by default the newest one, and drops what followed it. */
  async regenerate(message = "last"): Promise<Schemas["Regenerated"]> {
    return this.#post(`messages/${encodeURIComponent(message)}/regenerate`, undefined, keyed({}));
  }

  /** Changes the text of a message, drops what followed it, and answers it again. */
  async edit(message: string, text: string): Promise<void> {
    await this.#post(`messages/${encodeURIComponent(message)}?truncate=true&run=true`, { content: text }, { ...keyed({}), method: "PATCH" });
  }

  /** Creates an independent copy. Requests to it wait until everything is copied. */
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

  /** Decides a wait. Repeating the same decision is allowed; a different one is refused. */
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

  /** Answers a question with text, or returns the result of a client tool. */
  answer(wait: string | Wait, answer: string | { result: unknown; isError?: boolean }): Promise<Wait> {
    return this.decide(wait, typeof answer === "string" ? { decision: "answer", text: answer } : { decision: "answer", ...answer });
  }

  /** Frames as they happen, across disconnects. Leave the loop, or abort the signal, to end it. */
  async *frames(options: FramesOptions = {}): AsyncGenerator<Told> {
    yield* frames(this.#connection, await this.#id(), options);
  }

  /** The current view of the thread. All callers share one object. */
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

/** Options of a request that takes effect once, and may therefore be repeated. */
function keyed({ idempotencyKey, signal }: Pick<SendOptions, "idempotencyKey" | "signal">): Sending & { key: string } {
  return { key: idempotencyKey ?? crypto.randomUUID(), attempts: ATTEMPTS, ...(signal && { signal }) };
}

/** The current view of a thread for a user interface: `subscribe` and `current`. It follows the thread while it has listeners. */
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

  /** Never changes in place: every change creates a new object. */
  get current(): View {
    return this.#current;
  }

  /** Why the frames have ended, if the server refused them. */
  get error(): BobbinError | undefined {
    return this.#error;
  }

  /** Calls `listener` after each change. Returns a function that ends this. */
  subscribe(listener: () => void): () => void {
    clearTimeout(this.#leaving);
    this.#listeners.add(listener);
    if (!this.#following) void this.#follow();
    return () => {
      this.#listeners.delete(listener);
      // A page that renders again unsubscribes for a moment.
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
