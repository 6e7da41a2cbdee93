// The parts of the Worker's wasm that the shim uses (worker/src/, through wasm-bindgen).

declare module "bobbin-wasm" {
  interface Entries {
    fetch(request: Request): Response | Promise<Response>;
    alarm(info: unknown): Promise<void>;
    /** Resolves with `[status, retryAfter, body]`. */
    call(text: string): Promise<unknown>;
    webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void;
    webSocketClose(socket: WebSocket, code: number, reason: string, clean: boolean): void;
    webSocketError(socket: WebSocket, error: unknown): void;
  }
  type Constructor = new (ctx: DurableObjectState, env: unknown, catalog: string) => Entries;
  export const ThreadObject: Constructor;
  export const DirectoryObject: Constructor;
  export const MemoryObject: Constructor;

  /** Handles every request to the Worker. */
  export function fetch(request: Request, env: unknown, ctx: ExecutionContext, catalog: string): Promise<Response>;
  /** Resolves as soon as the executor runs tasks. */
  export function probe(): Promise<void>;
  /** `instanceId` grows with each instance; calling this replaces an instance that a trap has destroyed. */
  export function instances(): { instanceId: number };
  /** Replaces the instance. */
  export function __wbg_reset_state(): void;
}

declare module "*/catalog.json" {
  /** The text, or the object that wrangler made of it. */
  const definitions: string | object;
  export default definitions;
}

declare module "bobbin-openapi" {
  const text: string;
  export default text;
}

declare module "bobbin-inspector" {
  export const html: string;
  /** Its Content-Security-Policy. */
  export const policy: string;
  /** Differs between versions of the page. */
  export const tag: string;
}
