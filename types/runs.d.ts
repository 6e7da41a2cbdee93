// Outcomes of runs, their waits and their budgets (docs/approvals.md, docs/budgets.md). They are part of the module in
// bobbin.d.ts.

declare module "bobbin" {
  /** The outcome of a run: the response of `?wait=true` and of `GET …/runs/:run`. */
  interface RunOutcome {
    /** `null` for a message that no run accepted. */
    run: string | null;
    status: "ok" | "paused" | "error" | "running";
    outcome: "completed" | "failed" | "stopped" | "parked" | null;
    reason?: string | null;
    message: Message | null;
    artefact: { message: Message | null; /** Paths. */ files: string[]; result: JsonObject | null };
    token: string | null;
    /** The waits of a parked run. */
    waits: (Wait | SubagentWait)[];
    pauseKind?: "human" | "external" | "system";
    error: { /** The reason. */ code: string; message: string } | null;
    diagnostics: Diagnostic[];
    usage: RunUsage | null;
    result?: JsonObject;
    /** Only for `GET …/runs/:run`: microseconds since 1970. */
    startedAt?: number;
    endedAt?: number | null;
    /** With `trace=1`. */
    trace?: TraceEvent[];
    truncated?: boolean;
  }

  interface RunUsage {
    costUsd: number;
    inputTokens: number;
    outputTokens: number;
    modelCalls: number;
    toolCalls: number;
    steps: number;
    seconds: number;
  }

  /** A question of a run to a person or to a client (docs/approvals.md). */
  interface Wait {
    id: string;
    kind: "approval" | "question" | "client_tool" | "budget" | "retry" | "children" | "elicitation" | "task" | "sign_in";
    state: "open" | "decided" | "expired" | "cancelled" | "void";
    threadId: string;
    run: string | null;
    /** Waits with the same batch belong to one reply. */
    batch: string | null;
    call: WaitingCall | null;
    title: string;
    reason: string | null;
    allows: ("approve" | "deny" | "edit" | "answer" | "defer" | "retry" | "extend" | "finish")[];
    /** Arguments that the person may change with an approval. */
    edit?: string[];
    /** For a question. */
    choices?: string[];
    freeText?: boolean;
    /** For a wait for workers. */
    agentIds?: string[];
    for?: "all" | "any";
    /** For a question of an MCP server, also for a sign-in: its name in the folder, and a form (JSON Schema) or a page. */
    server?: string;
    form?: JsonObject;
    url?: string;
    /** For a budget: the reached limit, and what the next step needs. */
    budget?: BudgetQuestion;
    by: "thread" | "owner" | "admin";
    /** Microseconds since 1970, like the other times. */
    createdAt: number;
    expiresAt: number;
    /** `continue`: for a pause before the next attempt, which is all that the run waits for. */
    onExpiry: "deny" | "fail" | "continue" | "finish";
    decision: "approve" | "deny" | "answer" | "retry" | "extend" | "finish" | null;
    decidedAt: number | null;
    decidedBy: { scope: string; fingerprint: string | null; actor: string | null } | null;
  }

  /** The question when a limit is reached (docs/budgets.md). */
  interface BudgetQuestion {
    scope: "run" | "thread" | "parent";
    unit: BudgetUnit;
    /** USD, seconds, or a number. */
    limit: number;
    spent: number;
    needed: number;
    /** The subagent that needs it. */
    forChild: string | null;
    /** `parent`: the question of a subagent, which its parent answers. People decide nothing there. */
    asks: "people" | "parent";
  }

  type BudgetUnit = "costUsd" | "tokens" | "modelCalls" | "steps" | "toolCalls" | "seconds";

  /** Amounts that a thread shares with its subagents. */
  type SharedAmounts = Record<"costUsd" | "tokens" | "modelCalls", number>;

  /** Limits of a run or of a thread. */
  type BudgetLimits = Partial<Record<`max${Capitalize<BudgetUnit>}`, number>>;

  /** The response of `GET …/budget`. */
  interface ThreadBudget {
    run: string | null;
    /** `parent`: for a subagent, what its parent allocated to it. */
    limits: { run: BudgetLimits; thread: BudgetLimits; parent?: BudgetLimits };
    spent: { run: Record<BudgetUnit, number>; thread: Record<BudgetUnit, number>; parent?: Record<BudgetUnit, number> };
    lent: SharedAmounts & { children: (SharedAmounts & { id: string; spent: SharedAmounts })[] };
    /** For limited units only. */
    left: Partial<Record<BudgetUnit, number>>;
    estimated: boolean;
    wait: string | null;
  }

  /** The tool call that waits. */
  interface WaitingCall {
    id: string;
    tool: string;
    /** The effects that the tool may have. */
    tier: "read_only" | "side_effecting" | "privileged";
    args: JsonObject;
    /** The digest of what is decided. */
    digest: string;
    messageId: string;
  }

  /** The body of `POST …/waits/:wait`. */
  type WaitDecision = { /** For the log. */ actor?: string; /** `restart` drops the reply with its calls and requests it again. */ interrupt?: "continue" | "restart" } & (
    | { decision: "approve"; /** Only those in `edit`. */ args?: JsonObject }
    | { decision: "deny"; reason?: string; /** Ends the run, too. */ stop?: boolean }
    | { decision: "answer"; text: string }
    | { decision: "answer"; /** Index in `choices`. */ choice: number }
    | { decision: "answer"; /** The result of a client's tool. */ result: Json; isError?: boolean }
    | { decision: "defer"; /** Seconds since 1970. */ until: number }
    | { decision: "retry" }
    | { decision: "extend"; /** For a budget: the amounts to add. */ add: BudgetLimits }
    | { /** One last step without tools. */ decision: "finish" }
  );

  /** A run that waits for a subagent. */
  type SubagentWait = { kind: "subagent" } & JsonObject;

  /** A problem of a run. */
  interface Diagnostic {
    level: "info" | "warn" | "error";
    kind: "requirement" | "contract" | "pipeline" | "workflow" | "resume" | "adapter" | "recipe";
    code: string;
    message: string;
    data: JsonObject;
    /** An ISO date. */
    at: string;
  }

  /** The configuration at the beginning of a run (docs/agents.md). A list that is too long for the log is given as its length and hash. */
  interface LoopSnapshot {
    agent: string;
    selectedAgentIds: string[];
    prompt: string;
    promptHash: string;
    /** The prompt of the other side, if there is one. */
    promptB?: string;
    promptBHash?: string;
    models: string[] | HashedList;
    tools: string[] | HashedList;
    skills: { scope: "repo"; name: string; path: string; hash: string }[] | HashedList;
    mcp: { name: string; hash: string }[] | HashedList;
    subagents: string[] | HashedList;
    approvals: { policy: "on-request" | "on-failure" | "unless-trusted" | "never" };
    approvalsB?: LoopSnapshot["approvals"];
    trusted: string[] | HashedList;
    memories: { name: string; hash: string }[] | HashedList;
    /** The hash of all definitions. */
    catalog: string;
    /** The version of Bobbin. */
    bobbin: string;
    /** `sha256:…` over all but the last three fields. */
    hash: string;
  }

  interface HashedList {
    count: number;
    hash: string;
  }

  /** An event of a run. */
  type TraceEvent = { /** An ISO date. */ at: string } & (
    | { kind: "agent.loop.snapshot"; data: LoopSnapshot }
    | { kind: TraceKind; data?: Json }
  );

  type TraceKind =
    | "run.start" | "run.paused" | "run.resumed" | "run.recovered" | "run.output" | "run.success" | "run.error" | "run.end"
    | "adapter.retry" | "adapter.retry.exhausted" | "model.attempt" | "tool.call" | "hook.failed"
    | "summary.updated" | "summary.stale" | "summary.paused" | "memory.search"
    | `budget.${string}` | `subagent.${string}` | `app.${string}`;
}
