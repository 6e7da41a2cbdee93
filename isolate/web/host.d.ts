// What the harness's run has at module scope (src/thread/code/file.rs).

interface HostAnswer {
  status: number;
  headers: [name: string, value: string][];
  body: Uint8Array;
}

declare const host: {
  sleep(ms: number): Promise<void>;
  fetch(
    url: string,
    init: { method: string; headers: [name: string, value: string][]; body?: string | Uint8Array | undefined },
  ): Promise<HostAnswer>;
};
declare const facts: { entropy: Uint8Array };
declare const console: { error(...args: unknown[]): void };
