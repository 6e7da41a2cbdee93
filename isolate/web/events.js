// DOMException, Event, EventTarget, AbortController and AbortSignal, for code in the sandbox. Targets have no parents, so
// there is no capturing and no bubbling.

import { clearTimeout, setTimeout } from "./timers.js";

/** Names with a legacy code. @type {Record<string, number>} */
const CODES = { InvalidCharacterError: 5, SyntaxError: 12, AbortError: 20, QuotaExceededError: 22, TimeoutError: 23, DataCloneError: 25 };

export class DOMException extends Error {
  #name;

  /** @param {string} [message] @param {string | { name?: string, cause?: unknown }} [options] */
  constructor(message = "", options = "Error") {
    const { name = "Error", ...more } = typeof options === "object" && options !== null ? options : { name: String(options) };
    super(String(message), more);
    this.#name = String(name);
  }

  get name() {
    return this.#name;
  }

  get code() {
    return CODES[this.#name] ?? 0;
  }

  get [Symbol.toStringTag]() {
    return "DOMException";
  }
}

/** @typedef {((event: Event) => void) | { handleEvent: (event: Event) => void }} Listener */
/** @typedef {{ once?: boolean, signal?: AbortSignal, capture?: boolean, passive?: boolean }} ListenerOptions */

/** Sets the target; throws for anything but an event. @type {(event: Event, target: EventTarget) => void} */
let begin;
/** @type {(event: Event) => boolean} */
let stopped;

export class Event {
  #type;
  #cancelable;
  #prevented = false;
  #stopped = false;
  /** @type {EventTarget | null} */
  #target = null;
  #at = Date.now();

  /** @param {string} type @param {{ cancelable?: boolean, bubbles?: boolean }} [init] */
  constructor(type, init = {}) {
    this.#type = String(type);
    this.#cancelable = Boolean(init.cancelable);
  }

  get type() {
    return this.#type;
  }
  get target() {
    return this.#target;
  }
  get currentTarget() {
    return this.#target;
  }
  get bubbles() {
    return false;
  }
  get cancelable() {
    return this.#cancelable;
  }
  get defaultPrevented() {
    return this.#prevented;
  }
  get timeStamp() {
    return this.#at;
  }

  preventDefault() {
    if (this.#cancelable) this.#prevented = true;
  }

  stopPropagation() {}

  stopImmediatePropagation() {
    this.#stopped = true;
  }

  static {
    begin = (event, target) => {
      if (!(event instanceof Event)) throw new TypeError("dispatchEvent: an Event is expected");
      event.#target = target;
      event.#stopped = false;
    };
    stopped = (event) => event.#stopped;
  }

  get [Symbol.toStringTag]() {
    return "Event";
  }
}

export class EventTarget {
  /** @type {{ type: string, listener: Listener, once: boolean }[]} */
  #listeners = [];

  /** @param {string} type @param {Listener | null} listener @param {boolean | ListenerOptions} [options] */
  addEventListener(type, listener, options = {}) {
    if (listener === null || listener === undefined) return;
    if (typeof listener !== "function" && typeof listener !== "object") throw new TypeError("addEventListener: a function is expected");
    const { once = false, signal } = typeof options === "object" && options !== null ? options : {};
    if (signal?.aborted || this.#listeners.some((known) => known.type === String(type) && known.listener === listener)) return;
    this.#listeners.push({ type: String(type), listener, once: Boolean(once) });
    signal?.addEventListener("abort", () => this.removeEventListener(type, listener), { once: true });
  }

  /** @param {string} type @param {Listener | null} listener */
  removeEventListener(type, listener) {
    this.#listeners = this.#listeners.filter((known) => known.type !== String(type) || known.listener !== listener);
  }

  /** @param {Event} event */
  dispatchEvent(event) {
    begin(event, this);
    for (const known of this.#listeners.filter(({ type }) => type === event.type)) {
      // A listener may remove the next one.
      if (stopped(event) || !this.#listeners.includes(known)) continue;
      if (known.once) this.#listeners = this.#listeners.filter((other) => other !== known);
      told(known.listener, this, event);
    }
    return !event.defaultPrevented;
  }

  get [Symbol.toStringTag]() {
    return "EventTarget";
  }
}

/** Calls a listener and logs what it throws. @param {Listener} listener @param {EventTarget} target @param {Event} event */
function told(listener, target, event) {
  try {
    if (typeof listener === "function") listener.call(target, event);
    else listener.handleEvent(event);
  } catch (error) {
    console.error("Uncaught:", error);
  }
}

/** The key of the constructor: only controllers, timers and other signals create signals. */
const OWN = Symbol("AbortSignal");
/** Aborts a signal, once. @type {(signal: AbortSignal, reason: unknown) => void} */
let end;

export class AbortSignal extends EventTarget {
  #aborted = false;
  /** @type {any} */
  #reason;
  /** @type {((event: Event) => void) | null} */
  #onabort = null;

  /** @param {symbol} [own] */
  constructor(own) {
    if (own !== OWN) throw new TypeError("AbortSignal: make one with AbortController, AbortSignal.timeout or AbortSignal.any");
    super();
  }

  get aborted() {
    return this.#aborted;
  }
  get reason() {
    return this.#reason;
  }

  get onabort() {
    return this.#onabort;
  }
  set onabort(listener) {
    this.removeEventListener("abort", this.#onabort);
    this.#onabort = typeof listener === "function" ? listener : null;
    this.addEventListener("abort", this.#onabort);
  }

  throwIfAborted() {
    if (this.#aborted) throw this.#reason;
  }

  static {
    end = (signal, reason) => {
      if (signal.#aborted) return;
      signal.#aborted = true;
      signal.#reason = reason === undefined ? new DOMException("The operation was aborted", "AbortError") : reason;
      signal.dispatchEvent(new Event("abort"));
    };
  }

  /** @param {unknown} [reason] */
  static abort(reason) {
    const signal = new AbortSignal(OWN);
    end(signal, reason);
    return signal;
  }

  /** @param {number} ms */
  static timeout(ms) {
    const signal = new AbortSignal(OWN);
    const timer = setTimeout(() => end(signal, new DOMException("The operation timed out", "TimeoutError")), ms);
    signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
    return signal;
  }

  /** @param {Iterable<AbortSignal>} signals */
  static any(signals) {
    const all = [...signals];
    const done = all.find(({ aborted }) => aborted);
    if (done) return AbortSignal.abort(done.reason);
    const any = new AbortSignal(OWN);
    for (const signal of all) signal.addEventListener("abort", () => end(any, signal.reason), { once: true, signal: any });
    return any;
  }

  get [Symbol.toStringTag]() {
    return "AbortSignal";
  }
}

export class AbortController {
  #signal = new AbortSignal(OWN);

  get signal() {
    return this.#signal;
  }

  /** @param {unknown} [reason] */
  abort(reason) {
    end(this.#signal, reason);
  }

  get [Symbol.toStringTag]() {
    return "AbortController";
  }
}
