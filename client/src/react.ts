// The hook for React.

import { useCallback, useMemo, useSyncExternalStore } from "react";
import type { Client, ThreadName } from "./index.js";
import type { BobbinError } from "./errors.js";
import type { SendOptions, Thread } from "./thread.js";
import { EMPTY } from "./view.js";
import type { View, Wait } from "./view.js";

export interface UseThread extends View {
  thread: Thread;
  send(text: string, options?: SendOptions): Promise<void>;
  stop(): Promise<void>;
  regenerate(message?: string): Promise<void>;
  edit(message: string, text: string): Promise<void>;
  approve(wait: string | Wait, args?: Record<string, unknown>): Promise<void>;
  deny(wait: string | Wait, reason?: string): Promise<void>;
  answer(wait: string | Wait, answer: string | { result: unknown; isError?: boolean }): Promise<void>;
  /** Why the frames have ended, if the server refused them. */
  error: BobbinError | undefined;
}

/** Follows a thread, by its id or by a key and an agent. */
export function useThread(client: Client, name: ThreadName): UseThread {
  const [id, key, agent] = typeof name === "string" ? [name] : [undefined, name.key, name.agent];
  const thread = useMemo(
    () => client.thread(id ?? { key: key ?? "", agent: agent ?? "" }),
    [client, id, key, agent],
  );
  const view = thread.view();
  const subscribe = useCallback((listener: () => void) => view.subscribe(listener), [view]);
  const current = useSyncExternalStore(subscribe, () => view.current, () => EMPTY);
  return useMemo(
    () => ({
      ...current,
      thread,
      error: view.error,
      send: async (text, options) => void (await thread.send(text, options)),
      stop: () => thread.stop(),
      regenerate: async (message) => void (await thread.regenerate(message)),
      edit: (message, text) => thread.edit(message, text),
      approve: async (wait, args) => void (await thread.approve(wait, args)),
      deny: async (wait, reason) => void (await thread.deny(wait, reason)),
      answer: async (wait, answer) => void (await thread.answer(wait, answer)),
    }),
    [current, thread, view],
  );
}
