// Hooks that screens share: loading and polling, keyboard shortcuts, and actions of buttons.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { CHANGED, said } from "./api.js";

/** The delay before polled data is loaded again after a change: lists lag behind their threads. */
const SOON_MS = 400;

/**
 * @template T
 * @typedef {object} Loaded
 * @property {T | undefined} data       the last result, which stays while the next one loads
 * @property {unknown} error
 * @property {boolean} loading
 * @property {() => void} again
 */

/**
 * Loads data, again when `of` changes, and every `everyMs` while the page is visible.
 *
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {unknown[]} of
 * @param {{ everyMs?: number }} [how]
 * @returns {Loaded<T>}
 */
export function useLoaded(load, of, { everyMs } = {}) {
  const [state, setState] = useState(/** @type {{ data?: T, error?: unknown, loading: boolean }} */ ({ loading: true }));
  const [turn, setTurn] = useState(0);
  const loading = useRef(load);
  loading.current = load;
  // Data that was loaded for other dependencies is not shown.
  const shown = useRef(of);
  const same = of.every((part, at) => part === shown.current[at]);
  useEffect(() => {
    const going = new AbortController();
    const fresh = shown.current !== of && !of.every((part, at) => part === shown.current[at]);
    shown.current = of;
    setState((before) => (fresh ? { loading: true } : { ...before, loading: true }));
    loading.current(going.signal).then(
      (data) => going.signal.aborted || setState({ data, loading: false }),
      (error) => going.signal.aborted || setState((before) => ({ ...before, error, loading: false })),
    );
    return () => going.abort();
  }, [...of, turn]);
  useEffect(() => {
    if (everyMs === undefined) return;
    const look = () => document.visibilityState === "visible" && setTurn((n) => n + 1);
    const timer = setInterval(look, everyMs);
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let soon;
    const changed = () => {
      clearTimeout(soon);
      soon = setTimeout(look, SOON_MS);
    };
    addEventListener(CHANGED, changed);
    return () => {
      clearInterval(timer);
      clearTimeout(soon);
      removeEventListener(CHANGED, changed);
    };
  }, [everyMs]);
  const again = useCallback(() => setTurn((n) => n + 1), []);
  return { data: same ? state.data : undefined, error: same ? state.error : undefined, loading: state.loading || !same, again };
}

/**
 * The state of a button's action: whether it is running, and its error.
 *
 * @template {unknown[]} A
 * @param {(...args: A) => Promise<unknown>} act
 */
export function useAction(act) {
  const [state, setState] = useState({ busy: false, problem: "" });
  const acting = useRef(act);
  acting.current = act;
  const run = useCallback(async (/** @type {A} */ ...args) => {
    setState({ busy: true, problem: "" });
    try {
      const done = await acting.current(...args);
      setState({ busy: false, problem: "" });
      return done;
    } catch (error) {
      setState({ busy: false, problem: said(error) });
      return undefined;
    }
  }, []);
  return { ...state, run };
}

/** Whether the target takes text input. @param {EventTarget | null} target */
const isTyping = (target) => target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/**
 * Keyboard shortcuts of the whole page, except while typing.
 *
 * @param {Record<string, (event: KeyboardEvent) => void>} keys
 */
export function useKeys(keys) {
  const held = useRef(keys);
  held.current = keys;
  useEffect(() => {
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const act = held.current[event.key];
      if (!act) return;
      event.preventDefault();
      act(event);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

/** The current time in milliseconds, updated at this interval. @param {number} everyMs */
export function useNow(everyMs) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** Sets the title of the document. @param {string} title */
export function useTitle(title) {
  useEffect(() => void (document.title = title), [title]);
}
