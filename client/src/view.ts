// The view of a thread, built from its frames. A client is always correct if it applies `after`.

import type { components } from "./api.js";
import type { Frame } from "./frames.js";

export type Message = components["schemas"]["Message"];
export type Wait = components["schemas"]["Wait"];
export type ThreadState = components["schemas"]["ThreadState"];

/** The text of a reply that is being written. */
export interface Partial {
  messageId: string;
  attempt: number;
  text: string;
}

export interface View {
  /** In the order of the conversation. */
  messages: Message[];
  /** Whether there are older ones, available with `GET …/messages`. */
  hasMore: boolean;
  partial: Partial | null;
  state: ThreadState | null;
  /** Open waits for people. */
  pending: Wait[];
  /** The current activity of the run, in a line. */
  progress: string | null;
  /** Whether the stream is connected. */
  connected: boolean;
}

export const EMPTY: View = { messages: [], hasMore: false, partial: null, state: null, pending: [], progress: null, connected: false };

/** The view after a frame; the same object if nothing changed. */
export function after(view: View, frame: Frame): View {
  switch (frame.type) {
    case "snapshot": {
      const { messages, hasMore, partial, state, waits } = frame;
      return {
        ...view,
        messages,
        hasMore,
        state,
        partial: partial && { messageId: partial.message_id, attempt: partial.attempt, text: partial.text },
        pending: waits ?? [],
        progress: null,
      };
    }
    case "message_data": {
      const { data } = frame;
      const done = view.partial?.messageId === data.id ? null : view.partial;
      return { ...view, messages: placed(view.messages, data), partial: done, state: begun(view.state, data) };
    }
    case "messages_cut": {
      const last = sequence(frame.after);
      return { ...view, messages: view.messages.filter(({ id }) => sequence(id) <= last), partial: null };
    }
    case "message_chunk": {
      const { message_id: messageId, attempt, offset, chunk } = frame;
      const same = view.partial?.messageId === messageId && view.partial.attempt === attempt;
      const text = first(same ? (view.partial?.text ?? "") : "", offset) + chunk;
      return { ...view, partial: { messageId, attempt, text }, state: "running" };
    }
    case "message_reset":
      return view.partial?.messageId === frame.message_id ? { ...view, partial: null } : view;
    case "step_started":
      return { ...view, state: "running" };
    case "wait_opened":
      return { ...view, pending: [...view.pending.filter(({ id }) => id !== frame.wait.id), frame.wait] };
    case "wait_closed":
      return { ...view, pending: view.pending.filter(({ id }) => id !== frame.id) };
    case "progress":
      return { ...view, progress: frame.message, state: frame.kind === "waiting" ? "parked" : view.state };
    case "stopped":
      return { ...view, state: HALTED.has(frame.reason ?? "") ? "stopped" : "idle", partial: null, progress: null };
    default:
      return view;
  }
}

/** Reasons after which queued messages wait for the next message of a user. */
const HALTED = new Set(["stopped_by_user", "stopped_by_code", "stopped_by_parent"]);

/** The state after a message: a user message to an idle thread starts a run. */
function begun(state: ThreadState | null, { role }: Message): ThreadState | null {
  return role === "user" && state === "idle" ? "running" : state;
}

/** Adds a message to the list, or replaces the one with its id. */
function placed(messages: Message[], message: Message): Message[] {
  const place = sequence(message.id);
  const others = messages.filter(({ id }) => id !== message.id);
  const rest = message.role === "assistant" ? others.map((other) => (sequence(other.id) < place ? taken(other) : other)) : others;
  const at = rest.findIndex(({ id }) => sequence(id) > place);
  return at < 0 ? [...rest, message] : [...rest.slice(0, at), message, ...rest.slice(at)];
}

/** A queued message once a reply follows it. */
function taken(message: Message): Message {
  if (message.status !== "pending" || message.role !== "user") return message;
  const { queued: _, queue_status: __, ...metadata } = message.metadata;
  return { ...message, status: "completed", metadata };
}

/** The number after the last `_` of an id, which gives the order of messages. */
const sequence = (id: string): number => Number(id.slice(id.lastIndexOf("_") + 1));

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The first bytes of a text, as UTF-8. */
function first(text: string, bytes: number): string {
  if (bytes === 0) return "";
  // If all of it is ASCII, a character is a byte.
  const encoded = encoder.encode(text);
  return encoded.length <= bytes ? text : decoder.decode(encoded.subarray(0, bytes));
}
