// The types of `bobbin/test` (docs/testing-agents.md).

/** One response of a model. */
export interface Answer {
  text?: string;
  reasoning?: string;
  /** A string is sent unchanged. */
  calls?: { tool: string; arguments?: unknown }[];
  /** Tokens. Estimated by default. */
  usage?: { input?: number; output?: number; cached?: number; reasoning?: number };
  /** The number of requests that first fail with `status`, by default 503. */
  fails?: number;
  status?: number;
  /** Applies only to conversations whose first message contains this text. */
  to?: string;
}

export interface Outcome {
  response?: unknown;
  throw?: string;
  delayMs?: number;
  crash?: true;
}

export interface Stub {
  tool?: string;
  /** Instead of a tool: requests of code to this address. `*` matches anything. */
  url?: string;
  method?: string;
  /** By argument, a value or a JSON Schema. */
  match?: Record<string, unknown>;
  outcome?: Outcome;
  outcomes?: Outcome[];
  status?: number;
  times?: number;
  delayMs?: number;
  crash?: true;
  /** A repeated call with the same idempotency key does no harm. */
  repeatable?: boolean;
}

export type Matcher = string | { includes?: string | string[]; excludes?: string | string[]; equals?: unknown; matches?: string; schema?: object };
export type Range = number | { min?: number; max?: number };

export interface Expectation {
  called?: string;
  with?: Record<string, unknown>;
  times?: Range;
  result?: Matcher;
  notCalled?: string;
  toolOrder?: string[];
  toolCalls?: Range;
  reply?: Matcher;
  outcome?: "completed" | "failed" | "stopped" | "parked";
  reason?: string;
  steps?: Range;
  /** USD. */
  cost?: Range;
  parked?: boolean | string;
  values?: Record<string, unknown>;
  files?: Record<string, boolean | Matcher>;
  judge?: string;
  model?: string;
  min?: number;
  hard?: boolean;
}

/** The fields of a case except its turns. */
export interface Settings {
  script?: Answer[] | Record<string, Answer[]>;
  model?: "live";
  stubs?: Stub[];
  tools?: "closed" | "real";
  env?: Record<string, string>;
  vars?: Record<string, string>;
  history?: object[];
  values?: Record<string, unknown>;
  files?: Record<string, string>;
  /** The time limit of a turn, such as `30s`. */
  within?: string;
  /** The folder of definitions. The default is `agents` in the working directory. */
  agents?: string;
}

export interface Called {
  tool: string;
  args: unknown;
  state: string;
  runs: number;
  tier: string;
  result: string | null;
}

/** The state after a turn. Calls and cost are those of the whole conversation. */
export interface Looked {
  reply: string;
  outcome: string | undefined;
  reason: string | null | undefined;
  calls: Called[];
  waits: { kind: string; tool: string }[];
  values: Record<string, unknown>;
  /** USD. */
  cost: number;
}

/** An expectation failed, or something could not be played. */
export class CaseFailed extends Error {}

/** Registers a test with vitest or node:test, whichever runs this. */
export function test(name: string, body: () => void | Promise<void>): void;

/** A conversation with an agent, in its own thread. */
export function agent(name: string, settings?: Settings): Conversation;

export class Conversation {
  send(text: string, more?: { attachments?: object[]; metadata?: object }): Promise<Looked>;
  approve(tool: string, args?: Record<string, unknown>): Promise<Looked>;
  deny(tool: string, reason?: string): Promise<Looked>;
  answer(text: string): Promise<Looked>;
  result(tool: string, result: unknown): Promise<Looked>;
  /** Lets time pass, such as `3d`. */
  advance(duration: string): Promise<Looked>;
  stop(): Promise<Looked>;
  continue(): Promise<Looked>;
  /** Plays a turn as written in a file. */
  turn(turn: { [field: string]: unknown }): Promise<Looked>;
  /** Rejects if an expectation fails. */
  expect(...expected: Expectation[]): Promise<Looked>;
}
