// Globals for files of code (docs/run-code.md). There is no DOM, and nothing from Node.

interface Console {
  log(...args: unknown[]): void;
  info(...args: unknown[]): void;
  warn(...args: unknown[]): void;
  error(...args: unknown[]): void;
  debug(...args: unknown[]): void;
}
declare var console: Console;

/** At most 256 timers at a time, each of at most ten minutes. They end with their call. */
declare function setTimeout<Args extends unknown[]>(callback: (...args: Args) => void, ms?: number, ...args: Args): number;
declare function clearTimeout(id?: number): void;
/** Repeats until it is cleared or its call ends, at least 4 ms apart. It counts as one of the 256 timers. */
declare function setInterval<Args extends unknown[]>(callback: (...args: Args) => void, ms?: number, ...args: Args): number;
declare function clearInterval(id?: number): void;
declare function queueMicrotask(callback: () => void): void;
declare function structuredClone<T>(value: T, options?: { transfer?: ArrayBuffer[] }): T;
declare function atob(data: string): string;
declare function btoa(data: string): string;

declare var crypto: {
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): string;
};

declare class TextEncoder {
  readonly encoding: "utf-8";
  encode(input?: string): Uint8Array<ArrayBuffer>;
  encodeInto(source: string, destination: Uint8Array): { read: number; written: number };
}

/** Supports only UTF-8. */
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: "utf-8";
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(input?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}

declare class DOMException extends Error {
  constructor(message?: string, options?: string | { name?: string; cause?: unknown });
  readonly code: number;
}

declare class Event {
  constructor(type: string, init?: { cancelable?: boolean });
  readonly type: string;
  readonly target: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly cancelable: boolean;
  readonly defaultPrevented: boolean;
  readonly timeStamp: number;
  preventDefault(): void;
  stopPropagation(): void;
  stopImmediatePropagation(): void;
}

type EventListener = ((event: Event) => void) | { handleEvent(event: Event): void };

declare class EventTarget {
  addEventListener(type: string, listener: EventListener | null, options?: boolean | { once?: boolean; signal?: AbortSignal }): void;
  removeEventListener(type: string, listener: EventListener | null): void;
  dispatchEvent(event: Event): boolean;
}

declare class AbortSignal extends EventTarget {
  private constructor();
  static abort(reason?: unknown): AbortSignal;
  static timeout(ms: number): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: Event) => void) | null;
  throwIfAborted(): void;
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}

declare class URLSearchParams implements Iterable<[name: string, value: string]> {
  constructor(init?: string | Iterable<Iterable<string>> | Record<string, string>);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(callback: (value: string, name: string, params: URLSearchParams) => void, self?: unknown): void;
  entries(): IterableIterator<[name: string, value: string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[name: string, value: string]>;
  toString(): string;
}

declare class URL {
  constructor(input: string | URL, base?: string | URL);
  static parse(input: string | URL, base?: string | URL): URL | null;
  static canParse(input: string | URL, base?: string | URL): boolean;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toString(): string;
  toJSON(): string;
}

type HeadersInit = Headers | Iterable<Iterable<string>> | Record<string, string>;
/** Texts only: there are no files. */
declare class FormData implements Iterable<[name: string, value: string]> {
  append(name: string, value: string): void;
  set(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string): boolean;
  forEach(callback: (value: string, name: string, form: FormData) => void, self?: unknown): void;
  entries(): IterableIterator<[name: string, value: string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[name: string, value: string]>;
}

/** Bodies are complete: there are no streams, files or forms with files. */
type BodyInit = string | ArrayBuffer | ArrayBufferView | URLSearchParams | FormData;

interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit | null;
  /** Aborts the request, also on the network. */
  signal?: AbortSignal | null;
}

interface ResponseInit {
  status?: number;
  statusText?: string;
  headers?: HeadersInit;
}

declare class Headers implements Iterable<[name: string, value: string]> {
  constructor(init?: HeadersInit);
  append(name: string, value: string): void;
  set(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  has(name: string): boolean;
  getSetCookie(): string[];
  forEach(callback: (value: string, name: string, headers: Headers) => void, self?: unknown): void;
  entries(): IterableIterator<[name: string, value: string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[name: string, value: string]>;
}

interface Body {
  readonly headers: Headers;
  readonly body: null;
  readonly bodyUsed: boolean;
  text(): Promise<string>;
  json<T = any>(): Promise<T>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
}

interface Request extends Body {}
declare class Request {
  constructor(input: string | URL | Request, init?: RequestInit);
  readonly url: string;
  readonly method: string;
  readonly signal: AbortSignal;
  clone(): Request;
}

interface Response extends Body {}
declare class Response {
  constructor(body?: BodyInit | null, init?: ResponseInit);
  static json(value: unknown, init?: ResponseInit): Response;
  static redirect(url: string | URL, status?: 301 | 302 | 303 | 307 | 308): Response;
  readonly status: number;
  readonly statusText: string;
  readonly ok: boolean;
  readonly url: string;
  readonly type: "default" | "basic";
  readonly redirected: false;
  clone(): Response;
}

/** Can reach the hosts of `run.code.allowedHosts`. Redirects are not followed. */
declare function fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
