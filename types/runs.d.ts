// Outcomes of runs, what they wait for, and what they may spend (docs/approvals.md, docs/budgets.md). The module goes on in
// bobbin.d.ts.

declare module "bobbin" {
  /** What came of a run: the answer of `?wait=true` and of `GET …/runs/:run`. */
  interface RunOutcome {
    /** `null` of a message that no run has taken in. */
    run: string | null;
    status: "ok" | "paused" | "error" | "running";
    outcome: "completed" | "failed" | "stopped" | "parked" | null;
    reason?: string | null;
    message: Message | null;
    artefact: { message: Message | null; /** Paths. */ files: string[]; result: JsonObject | null };
    token: string | null;
    /** What a parked run waits for. */
    waits: (Wait | SubagentWait)[];
    pauseKind?: "human" | "external" | "system";
    error: { /** The reason. */ code: string; message: string } | null;
    diagnostics: Diagnostic[];
    usage: RunUsage | null;
    result?: JsonObject;
    /** Of `GET …/runs/:run`: microseconds since 1970. */
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

  /** What a run asks of a person, or of whoever reads the thread (docs/approvals.md). */
  interface Wait {
    id: string;
    kind: "approval" | "question" | "client_tool" | "budget" | "retry" | "children" | "elicitation" | "task" | "sign_in";
    state: "open" | "decided" | "expired" | "cancelled" | "void";
    threadId: string;
    run: string | null;
    /** Waits with the same one are of one reply. */
    batch: string | null;
    call: WaitingCall | null;
    title: string;
    reason: string | null;
    allows: ("approve" | "deny" | "edit" | "answer" | "defer" | "retry" | "extend" | "finish")[];
    /** Arguments that who approves may change. */
    edit?: string[];
    /** Of a question. */
    choices?: string[];
    freeText?: boolean;
    /** Of a wait for workers. */
    agentIds?: string[];
    for?: "all" | "any";
    /** Of what an MCP server asks: its name in the folder, and a form to fill in (JSON Schema) or a page to visit; also of a sign-in. */
    server?: string;
    form?: JsonObject;
    url?: string;
    /** Of a budget: the limit that is reached, and what the next step needs. */
    budget?: BudgetQuestion;
    by: "thread" | "owner" | "admin";
    /** Microseconds since 1970, as the other times. */
    createdAt: number;
    expiresAt: number;
    /** `continue`: of a pause before the next attempt, which is all that the run waits for. */
    onExpiry: "deny" | "fail" | "continue" | "finish";
    decision: "approve" | "deny" | "answer" | "retry" | "extend" | "finish" | null;
    decidedAt: number | null;
    decidedBy: { scope: string; fingerprint: string | null; actor: string | null } | null;
  }

  /** What is asked when a limit is reached (docs/budgets.md). */
  interface BudgetQuestion {
    scope: "run" | "thread" | "parent";
    unit: BudgetUnit;
    /** USD, seconds, or a number. */
    limit: number;
    spent: number;
    needed: number;
    /** The subagent that needs it. */
    forChild: string | null;
    /** `parent`: of a subagent, whose parent answers; people decide nothing there. */
    asks: "people" | "parent";
  }

  type BudgetUnit = "costUsd" | "tokens" | "modelCalls" | "steps" | "toolCalls" | "seconds";

  /** Of what a thread shares with its subagents. */
  type SharedAmounts = Record<"costUsd" | "tokens" | "modelCalls", number>;

  /** The limits of a run, or of a thread. */
  type BudgetLimits = Partial<Record<`max${Capitalize<BudgetUnit>}`, number>>;

  /** `GET …/budget`. */
  interface ThreadBudget {
    run: string | null;
    /** `parent`: of a subagent, what it was lent. */
    limits: { run: BudgetLimits; thread: BudgetLimits; parent?: BudgetLimits };
    spent: { run: Record<BudgetUnit, number>; thread: Record<BudgetUnit, number>; parent?: Record<BudgetUnit, number> };
    lent: SharedAmounts & { children: (SharedAmounts & { id: string; spent: SharedAmounts })[] };
    /** Of what is limited. */
    left: Partial<Record<BudgetUnit, number>>;
    estimated: boolean;
    wait: string | null;
  }

  /** The call of a tool that waits. */
  interface WaitingCall {
    id: string;
    tool: string;
    /** What the tool may change. */
    tier: "read_only" | "side_effecting" | "privileged";
    args: JsonObject;
    /** What exactly is decided on. */
    digest: string;
    messageId: string;
  }

  /** What is posted to `…/waits/:wait`. */
  type WaitDecision = { /** For the log. */ actor?: string; /** `restart` drops the reply with its calls, and the model is asked again. */ interrupt?: "continue" | "restart" } & (
    | { decision: "approve"; /** Only those in `edit`. */ args?: JsonObject }
    | { decision: "deny"; reason?: string; /** Ends the run, too. */ stop?: boolean }
    | { decision: "answer"; text: string }
    | { decision: "answer"; /** Position in `choices`. */ choice: number }
    | { decision: "answer"; /** Of a client's tool. */ result: Json; isError?: boolean }
    | { decision: "defer"; /** Seconds since 1970. */ until: number }
    | { decision: "retry" }
    | { decision: "extend"; /** Of a budget: by how much. */ add: BudgetLimits }
    | { /** One last step without tools. */ decision: "finish" }
  );

  /** A run that waits for a subagent. */
  type SubagentWait = { kind: "subagent" } & JsonObject;

  /** What was wrong with a run. */
  interface Diagnostic {
    level: "info" | "warn" | "error";
    kind: "requirement" | "contract" | "pipeline" | "workflow" | "resume" | "adapter" | "recipe";
    code: string;
    message: string;
    data: JsonObject;
    /** An ISO date. */
    at: string;
  }

  /** What a run begins with (docs/agents.md). Lists that are too long for the log are their number and hash. */
  interface LoopSnapshot {
    agent: string;
    selectedAgentIds: string[];
    prompt: string;
    promptHash: string;
    /** Of the other side, if there is one. */
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
    /** Of all definitions. */
    catalog: string;
    /** The version. */
    bobbin: string;
    /** `sha256:…` over all but the last three fields. */
    hash: string;
  }

  interface HashedList {
    count: number;
    hash: string;
  }

  /** What happened in a run. */
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
