// Frames of a thread as they happen, over server-sent events: what breaks off is taken up again where it was.

import type { components } from "./api.js";
import type { Connection } from "./connection.js";
import { BobbinError, delay, pause, unanswered } from "./errors.js";

/** A frame: docs/http.md, "Streams". */
export type Frame = components["schemas"]["Frame"];

export interface FramesOptions {
  /** Where to go on, as an earlier frame's `id` says it; from a snapshot unless given. */
  lastEventId?: string;
  signal?: AbortSignal;
  /** Frames of what the model shows of its reasoning. */
  reasoning?: boolean;
  /** After a break: goes on behind the last frame, or begins with a snapshot again, which also has what is no message: whether a run is under way, and what is asked. */
  afterBreak?: "resume" | "snapshot";
  includeSilent?: boolean;
  /** Only those of this run, or of what comes behind this message, to the frame `run_ended`, which is the last. */
  of?: { run: string } | { after: string };
  /** Is told when the connection was lost, and when it is there again. */
  onConnection?: (open: boolean) => void;
}

/** A frame, and the place to go on from after it, if it has one. */
export interface Told {
  frame: Frame;
  id?: string;
}

/** The server sends something at least every 15 seconds. */
const SILENCE_MS = 40_000;

/** The frames of a thread, until the signal ends them, the server refuses, or the run that they are of has ended. */
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
      // Its time was over: the next one begins where it ended.
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

/** The events of a body. A connection that says nothing for too long is dead, whatever the system believes of it. */
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
