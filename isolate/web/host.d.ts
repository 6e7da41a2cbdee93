// The globals of the run that the harness belongs to (src/work/code/file.rs).

interface HostAnswer {
  status: number;
  headers: [name: string, value: string][];
  body: Uint8Array;
}

interface HostRequest {
  method: string;
  headers: [name: string, value: string][];
  body?: string | Uint8Array | undefined;
  /** The id to pass to `abort`. */
  id?: number;
}

declare const host: {
  sleep(ms: number): Promise<void>;
  fetch(url: string, init: HostRequest): Promise<HostAnswer>;
  /** Ends the request with this id. */
  abort(id: number): Promise<void>;
};
declare module "bobbin/url" {
  /** isolate/harness/url.js */
  export function urlParts(asked: string): string;
}
declare const facts: { entropy: Uint8Array };
declare const console: { error(...args: unknown[]): void };
