// The types of `bobbin/test` (docs/testing-agents.md).

/** One answer of a model. */
export interface Answer {
  text?: string;
  reasoning?: string;
  /** Arguments that are a text are sent as they are. */
  calls?: { tool: string; arguments?: unknown }[];
  /** Tokens; estimated unless given. */
  usage?: { input?: number; output?: number; cached?: number; reasoning?: number };
  /** So many requests are answered with `status` first; 503 unless given. */
  fails?: number;
  status?: number;
  /** Only for conversations whose first message has this in it. */
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
  /** Instead of a tool: requests of code to this address; `*` is anything. */
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
  /** A second call with the same idempotency key does no harm. */
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

/** The fields of a case but its turns. */
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
  /** How long a turn may take, such as `30s`. */
  within?: string;
  /** The folder of definitions: `agents` of the working directory unless given. */
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

/** What there is after a turn; calls and cost of the whole conversation. */
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

/** An expectation that does not hold, or something that could not be played. */
export class CaseFailed extends Error {}

/** A test of the runner that runs this: vitest, or node:test. */
export function test(name: string, body: () => void | Promise<void>): void;

/** A conversation with an agent, in a thread of its own. */
export function agent(name: string, settings?: Settings): Conversation;

export class Conversation {
  send(text: string, more?: { attachments?: object[]; metadata?: object }): Promise<Looked>;
  approve(tool: string, args?: Record<string, unknown>): Promise<Looked>;
  deny(tool: string, reason?: string): Promise<Looked>;
  answer(text: string): Promise<Looked>;
  result(tool: string, result: unknown): Promise<Looked>;
  /** Time passes, such as `3d`. */
  advance(duration: string): Promise<Looked>;
  stop(): Promise<Looked>;
  continue(): Promise<Looked>;
  /** A turn as a file has it. */
  turn(turn: { [field: string]: unknown }): Promise<Looked>;
  /** Rejects with what does not hold. */
  expect(...expected: Expectation[]): Promise<Looked>;
}
