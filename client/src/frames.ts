// Frames of a thread as they happen, over server-sent events. After a disconnect the stream continues where it was.

import type { components } from "./api.js";
import type { Connection } from "./connection.js";
import { BobbinError, delay, pause, unanswered } from "./errors.js";

/** A frame: docs/streams.md. */
export type Frame = components["schemas"]["Frame"];

export interface FramesOptions {
  /** Where to continue: the `id` of an earlier frame. Default: begin with a snapshot. */
  lastEventId?: string;
  signal?: AbortSignal;
  /** Includes frames of the model's reasoning. */
  reasoning?: boolean;
  /** After a disconnect: continue after the last frame, or begin with a snapshot, which also has the run's state and open waits. */
  afterBreak?: "resume" | "snapshot";
  includeSilent?: boolean;
  /** Only the frames of this run, or of the run after this message, up to `run_ended`, which is the last. */
  of?: { run: string } | { after: string };
  /** Called when the connection is lost, and when it is restored. */
  onConnection?: (open: boolean) => void;
}

/** A frame, and the id to continue from after it, if it has one. */
export interface Told {
  frame: Frame;
  id?: string;
}

/** The server sends something at least every 15 seconds. */
const SILENCE_MS = 40_000;

/** The frames of a thread, until the signal aborts, the server refuses, or the requested run ends. */
export async function* frames(connection: Connection, thread: string, options: FramesOptions = {}): AsyncGenerator<Told> {
  const query = new URLSearchParams(options.of);
  if (options.reasoning) query.set("reasoning", "1");
  if (options.includeSilent) query.set("includeSilent", "true");
  const path = `/api/threads/${encodeURIComponent(thread)}/events${query.size > 0 ? `?${query}` : ""}`;
  let last = options.lastEventId;
  for (let failures = 0; ; ) {
    const silence = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, silence.signal]) : silence.signal;
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (last !== undefined && options.afterBreak !== "snapshot") headers["last-event-id"] = last;
      const response = await connection.send(path, { headers }, { signal });
      options.onConnection?.(true);
      for await (const { id, data } of events(response, silence)) {
        failures = 0;
        if (id !== undefined) last = id;
        const frame = JSON.parse(data) as Frame;
        yield { frame, ...(id !== undefined && { id }) };
        if (frame.type === "run_ended") return;
      }
      // The server closed the stream regularly: the next one continues from here.
    } catch (error) {
      if (options.signal?.aborted) return;
      const failed = error instanceof BobbinError ? error : unanswered(error);
      if (!failed.again) throw failed;
      options.onConnection?.(false);
      failures++;
      await pause(failed.retryAfter ?? delay(failures), options.signal).catch(() => {});
    }
    if (options.signal?.aborted) return;
  }
}

interface ServerEvent {
  id?: string;
  data: string;
}

/** The events of a body. A connection that is silent for too long is dead, even if the system reports it as open. */
async function* events(response: Response, silence: AbortController): AsyncGenerator<ServerEvent> {
  if (!response.body) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const timer = setTimeout(() => silence.abort(unanswered("nothing came")), SILENCE_MS);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      text += decoder.decode(value, { stream: true });
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const event = parsed(text.slice(0, end));
        text = text.slice(end + 2);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function parsed(block: string): ServerEvent | undefined {
  const event: ServerEvent = { data: "" };
  for (const line of block.split("\n")) {
    if (line.startsWith("data:")) event.data += (event.data && "\n") + line.slice(5).replace(/^ /, "");
    else if (line.startsWith("id:")) event.id = line.slice(3).trim();
  }
  return event.data === "" ? undefined : event;
}
