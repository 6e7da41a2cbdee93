// What the harness's run has at module scope (src/work/code/file.rs).

interface HostAnswer {
  status: number;
  headers: [name: string, value: string][];
  body: Uint8Array;
}

interface HostRequest {
  method: string;
  headers: [name: string, value: string][];
  body?: string | Uint8Array | undefined;
  /** What `abort` is told to end it. */
  id?: number;
}

declare const host: {
  sleep(ms: number): Promise<void>;
  fetch(url: string, init: HostRequest): Promise<HostAnswer>;
  /** Ends a request that was given this id. */
  abort(id: number): Promise<void>;
};
declare const facts: { entropy: Uint8Array };
declare const console: { error(...args: unknown[]): void };
