// The parts of client/src that the page uses. The client's own types are generated from the API's description by its build.

declare module "bobbin-client/errors.ts" {
  export class BobbinError extends Error {
    readonly code: string;
    readonly status: number;
    readonly hint?: string;
    readonly again: boolean;
  }
}

declare module "bobbin-client/connection.ts" {
  export class Connection {
    constructor(options: { url?: string; fetch?: typeof fetch });
    readonly url: string;
    send(path: string, init: RequestInit, how?: { signal?: AbortSignal; attempts?: number }): Promise<Response>;
  }
}

declare module "bobbin-client/frames.ts" {
  import type { Connection } from "bobbin-client/connection.ts";
  export type Frame = { type: string } & Record<string, any>;
  export interface FramesOptions {
    signal?: AbortSignal;
    includeSilent?: boolean;
    reasoning?: boolean;
    onConnection?: (open: boolean) => void;
  }
  export function frames(connection: Connection, thread: string, options?: FramesOptions): AsyncGenerator<{ frame: Frame; id?: string }>;
}

declare module "bobbin-client/view.ts" {
  import type { Frame } from "bobbin-client/frames.ts";
  export interface View {
    messages: any[];
    hasMore: boolean;
    partial: { messageId: string; attempt: number; text: string } | null;
    state: string | null;
    pending: any[];
    progress: string | null;
    connected: boolean;
  }
  export const EMPTY: View;
  export function after(view: View, frame: Frame): View;
}
