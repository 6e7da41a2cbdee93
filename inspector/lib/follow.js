// Follows a thread: the newest messages over a stream, older ones page by page.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { frames } from "bobbin-client/frames.ts";
import { EMPTY, after } from "bobbin-client/view.ts";
import { connection, get, ofThread, told as changed } from "./api.js";

/** @typedef {import("bobbin-client/view.ts").View} View */

/** Text arrives in small pieces, which are drawn together. */
const DRAW_MS = 40;
const PAGE = 500;

/**
 * @typedef {object} Followed
 * @property {View} view
 * @property {any[]} messages       all loaded messages, in the order of the conversation
 * @property {boolean} hasMore      whether there are older ones
 * @property {unknown} error
 * @property {() => Promise<void>} loadOlder
 * @property {(wait: string) => void} decided
 * @property {() => void} again     starts over with a snapshot: streams do not report changed or deleted messages
 */

/** @param {string} id @returns {Followed} */
export function useThread(id) {
  const [view, setView] = useState(EMPTY);
  const [error, setError] = useState(/** @type {unknown} */ (undefined));
  const [older, setOlder] = useState(/** @type {{ messages: any[], hasMore: boolean | undefined }} */ ({ messages: [], hasMore: undefined }));
  const [turn, setTurn] = useState(0);
  const again = useCallback(() => setTurn((n) => n + 1), []);
  const shown = useRef({ id, view: EMPTY });
  useEffect(() => {
    const ending = new AbortController();
    let current = shown.current.id === id ? shown.current.view : EMPTY;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let drawing;
    const draw = () => {
      drawing ??= setTimeout(() => {
        drawing = undefined;
        shown.current = { id, view: current };
        setView(current);
      }, DRAW_MS);
    };
    const change = (/** @type {Partial<View>} */ by) => {
      current = { ...current, ...by };
      draw();
    };
    const told = (/** @type {boolean} */ connected) => {
      change({ connected });
      // A continued stream repeats only messages, so load the other state again.
      if (connected && current.state !== null) void caughtUp(id, ending.signal).then(change, () => {});
    };
    const follow = async () => {
      for await (const { frame } of frames(connection, id, { signal: ending.signal, includeSilent: true, onConnection: told })) {
        if (frame.type === "snapshot") setOlder({ messages: [], hasMore: undefined });
        current = after(current, frame);
        if (frame.type === "stopped") changed();
        draw();
      }
    };
    follow().catch((failed) => {
      if (ending.signal.aborted) return;
      setError(failed);
      change({ connected: false });
    });
    return () => {
      ending.abort();
      clearTimeout(drawing);
    };
  }, [id, turn]);
  const messages = useMemo(() => [...older.messages, ...view.messages], [older.messages, view.messages]);
  const loading = useRef(false);
  const first = messages[0]?.id;
  const hasMore = older.hasMore ?? view.hasMore;
  const loadOlder = useCallback(async () => {
    if (loading.current || !hasMore || first === undefined) return;
    loading.current = true;
    try {
      const page = await get(ofThread(id, `/messages?limit=${PAGE}&includeSilent=true&before=${first}`));
      setOlder((before) => ({ messages: [...page.messages, ...before.messages], hasMore: page.hasMore }));
    } finally {
      loading.current = false;
    }
  }, [id, first, hasMore]);
  // Hides decided waits at once; the frame comes a moment later.
  const [over, setOver] = useState(/** @type {Set<string>} */ (new Set()));
  const decided = useCallback((/** @type {string} */ wait) => setOver((before) => new Set(before).add(wait)), []);
  const pending = view.pending.filter((wait) => !over.has(wait.id));
  return { view: pending.length === view.pending.length ? view : { ...view, pending }, decided, messages, hasMore, error, loadOlder, again };
}

/** @param {string} id @param {AbortSignal} signal @returns {Promise<Partial<View>>} */
async function caughtUp(id, signal) {
  const [{ thread }, { waits }] = await Promise.all([get(ofThread(id), signal), get(ofThread(id, "/waits"), signal)]);
  return { state: thread.state, pending: waits, ...(thread.executing ? {} : { progress: null }) };
}
