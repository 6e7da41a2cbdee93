// Types for files of code in the folder of definitions: tools, effects, hooks and endpoints with
// `"run": { "code": "file.ts" }` (docs/run-code.md). Types are erased before the code runs, not checked: an editor and
// `tsc` check them, with this file in `include`, `"lib": ["esnext"]` and `"types": []` in tsconfig.json.

// What exists beside the language is in web.d.ts; the other two are parts of the module `bobbin`.

/// <reference path="./web.d.ts" />
/// <reference path="./memories.d.ts" />
/// <reference path="./runs.d.ts" />

declare module "bobbin" {
  /** What JSON has. */
  type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
  type JsonObject = { [key: string]: Json };

  // What a file exports as its default.

  /** A tool: text, a `ToolResult`, or anything that JSON has. What it throws the model reads as an error. */
  type ToolHandler<Args extends object = JsonObject> = (state: ThreadState, args: Args, call: ToolCallAbout) => Awaitable<ToolOutput>;
  /** What is known of a tool's call besides its arguments. */
  interface ToolCallAbout {
    /** Whether a person has approved of it. */
    approved: boolean;
    /** What people have answered to what earlier runs of the call have asked (`needs_input`), by name. */
    answers: { [name: string]: { action: "accept"; content?: JsonObject } | { action: "decline" } };
  }
  type ToolOutput = ToolResult | string | number | boolean | null | undefined | void | object;
  /** An effect. What it gives is left; what it throws is a failed attempt. */
  type EffectHandler<Args extends object = JsonObject> = (state: ThreadState, args: Args) => unknown;
  /** A hook, by its name: `HookHandler<"filter_messages">`. */
  type HookHandler<Name extends keyof Hooks> = (state: ThreadState, ...args: Hooks[Name]["args"]) => Awaitable<Hooks[Name]["gives"]>;
  /** An endpoint: a `Response`, or a value that is answered as JSON. */
  type EndpointHandler<Params extends Record<string, string> = Record<string, string>> = (
    request: Request,
    state: ThreadState,
    params: Params,
  ) => Awaitable<Response | ToolOutput>;

  type Awaitable<T> = T | Promise<T>;

  /** What each hook is given after `state`, and what it gives (docs/hooks.md). */
  interface Hooks {
    after_thread_created: { args: []; gives: unknown };
    after_subagent_created: { args: [child: Subagent]; gives: unknown };
    after_system_message: { args: [text: string]; gives: string | null };
    filter_messages: { args: [messages: Message[]]; gives: (Message | NewHistoryMessage)[] | null };
    prefilter_llm_history: { args: [messages: JsonObject[]]; gives: object[] | { error: string; block: true } | null };
    before_create_message: { args: [message: Message]; gives: object | null };
    after_create_message: { args: [message: Message]; gives: unknown };
    before_update_message: { args: [id: string, updates: MessageUpdates]; gives: MessageUpdates | null };
    after_update_message: { args: [message: Message]; gives: unknown };
    after_tool_call_success: { args: [call: ToolCall, result: ToolResult]; gives: ToolResult | null };
    after_tool_call_failure: { args: [call: ToolCall, result: ToolResult]; gives: ToolResult | null };
    before_store_tool_result: { args: [call: ToolCall, result: ToolResult]; gives: ToolResult | null };
  }

  /** How a stored message changes: fields that are absent stay. */
  interface MessageUpdates {
    content?: string;
    silent?: boolean;
    /** Merged into what there is. */
    metadata?: JsonObject;
  }

  /** A message that a hook adds to a request, without an `id`. */
  interface NewHistoryMessage {
    id?: never;
    role: "system" | "user" | "assistant";
    content: string;
  }

  interface ToolCall {
    id: string;
    type: "function";
    function: { name: string; /** JSON text, as the model wrote it. */ arguments: string };
    extra_content?: Json;
  }

  interface ToolResult {
    status: "success" | "error";
    /** What the model reads; anything but a string as JSON. */
    result?: unknown;
    error?: string;
    error_code?: string;
    error_data?: JsonObject;
    /** Where it went wrong; only the log has it. */
    stack?: string;
    /** In place of `result`: texts are joined, images are files. */
    content?: ({ type: "text"; text: string } | { type: "image"; mimeType: string; data: string })[];
    /** Files that are stored with the result; models that see are shown the images. */
    attachments?: (NewAttachment | AttachmentRef)[];
    /** The subagent that it is about. */
    subagent_id?: string;
  }

  /** The thread that the code works in. Times are microseconds since 1970. */
  interface ThreadState extends ThreadFacts {
    readonly children: readonly Subagent[];
    /** What a subagent was created with. */
    readonly arguments: JsonObject;
    /**
     * Scratch space of one run, in memory: what is in it when a tool ends, changes within its values too, the run's other
     * tools find.
     */
    readonly context: { [key: string]: any };
    /** The run under way; null in effects and endpoints. */
    readonly execution: Execution | null;

    getMessages(options?: MessagesOptions): Promise<MessagesResult>;
    getMessage(id: string): Promise<Message | null>;
    /** Stores a message that starts nothing. */
    injectMessage(input: NewMessage): Promise<Message>;
    /** Queues a message, which starts a run or joins the one under way. */
    queueMessage(input: NewMessage): Promise<void>;
    /** `metadata` is merged into what is there, key by key; `null` takes a key away. */
    updateMessage(id: string, updates: MessageUpdates): Promise<Message>;
    /** Whether there was one. */
    deleteMessage(id: string): Promise<boolean>;
    getLogs(options?: { limit?: number; offset?: number; order?: "asc" | "desc"; ids?: string; messageIds?: string }): Promise<Log[]>;

    loadModel<T extends object = JsonObject>(name: string): Promise<T>;
    loadPrompt<T extends object = JsonObject>(name: string): Promise<T>;
    loadAgent<T extends object = JsonObject>(name: string): Promise<T>;
    getModelNames(): string[];
    getPromptNames(): string[];
    getAgentNames(): string[];

    /** The child with this reference; null for every other thread. */
    getChildThread(reference: string): Promise<RemoteThread | null>;
    getParentThread(): Promise<RemoteThread | null>;
    notifyParent(content: string): Promise<void>;
    setStatus(status: string): Promise<void>;

    /**
     * The value of a variable that the definition lists in `variables`, or that `setEnv` has set in this call; rejects for
     * all others, and when there is none.
     */
    env(name: string): Promise<string>;
    /** Of these, the value that the deployment gives; null when it gives none. */
    instanceEnv(name: string): Promise<string | null>;
    envType(name: string): Promise<"text" | "secret">;
    setEnv(name: string, value: string, options?: { type?: "text" | "secret" }): Promise<void>;

    /** Queues a call, which runs after those of this step, or starts a run. */
    queueTool(name: string, args?: object): void;
    /** Makes a call now. */
    invokeTool(name: string, args?: object): Promise<ToolResult>;

    /** The id of the effect. `options`: a delay in milliseconds, or when and how often. */
    scheduleEffect(name: string, args?: object, options?: number | EffectOptions): Promise<string>;
    getScheduledEffects(name?: string): Promise<ScheduledEffect[]>;
    /** Whether it was still to run. */
    removeScheduledEffect(id: string): Promise<boolean>;

    /** Tells whoever listens to the thread; nothing is stored. */
    emit(event: string, data?: unknown): void;
    /**
     * Adds an entry to the trace of the run that this works in. `kind` begins with `app.`; `data` is at most 8 KB as
     * JSON. 100 entries of a run are kept. Fails where no run is under way.
     */
    trace(kind: `app.${string}`, data?: unknown): void;
    /** Tells whoever listens what this does: at most 200 characters, at most once a second; nothing is stored. */
    progress(text: string): void;

    getValue<T = Json>(key: string): Promise<T | null>;
    /** `null` and `undefined` delete the key. What JSON has not is refused. */
    setValue(key: string, value: unknown): Promise<void>;
    /**
     * The same, but only while the value that is there is `ifValue`, as it was read; `null`: while there is none. Whether it
     * did: who is told no reads again, and tries again.
     */
    setValue(key: string, value: unknown, options: { ifValue: unknown }): Promise<boolean>;

    writeFile(path: string, data: string | ArrayBuffer | ArrayBufferView, mimeType: string, options?: FileOptions): Promise<FileRecord>;
    readFile(path: string): Promise<ArrayBuffer | null>;
    readFileStream(path: string, options?: { signal?: AbortSignal }): Promise<AsyncIterable<FileChunk> | null>;
    statFile(path: string): Promise<FileRecord | null>;
    /** All entries, or a page of at most `limit` (500): a large directory as a whole takes more memory than there is. */
    readdirFile(path: string): Promise<{ entries: FileRecord[] }>;
    readdirFile(path: string, options: { limit?: number; cursor?: string | null }): Promise<{ entries: FileRecord[]; cursor: string | null }>;
    unlinkFile(path: string): Promise<void>;
    mkdirFile(path: string): Promise<FileRecord>;
    rmdirFile(path: string): Promise<void>;
    moveFile(from: string, to: string): Promise<FileRecord>;
    renameFile(from: string, to: string): Promise<FileRecord>;
    getFileStats(): Promise<FileStats>;
    grepFiles(pattern: string): Promise<GrepResult[]>;
    findFiles(pattern: string): Promise<{ paths: string[] }>;
    getFileThumbnail(path: string): Promise<ArrayBuffer | null>;

    /** Runs code in a sandbox of its own. */
    runCode<T = unknown>(source: string, options?: CodeExecutionOptions): CodeExecution<T>;

    /** Ends the thread for good. */
    terminate(): Promise<void>;
  }

  interface ThreadFacts {
    readonly threadId: string;
    readonly agentId: string;
    readonly userId: string | null;
    readonly createdAt: number;
    /** When it was terminated. */
    readonly terminated: number | null;
  }

  /**
   * Another thread of the family: what is done to it is done over there. Its properties were read when it was asked for.
   * What is a thread's own does not reach: its values and those of its variables; these members reject. Files of up to
   * 16 MB can be written.
   */
  interface RemoteThread extends Omit<ThreadState, "getValue" | "setValue" | "env" | "instanceEnv" | "readFileStream" | "runCode" | "execution"> {
    readonly execution: null;
  }

  interface Execution {
    readonly flowId: string;
    readonly currentSide: Side;
    readonly stepCount: number;
    readonly sideAStepCount: number;
    readonly sideBStepCount: number;
    readonly stopped: boolean;
    /** The side that asked for that. */
    readonly stoppedBy?: Side;
    /** The newest 100 messages, silent ones too, in order of time, as they were when the call began. */
    readonly messageHistory: readonly Message[];
    /** For what takes a signal. Code ends with its run, so that it never sees this one abort. */
    readonly abortSignal: AbortSignal;
    readonly promptPath: readonly string[];
    /** The next turn goes to that side; agents of type `dual_ai` only. */
    forceTurn(side: Side): void;
    /** The run ends after what is being done. */
    stop(): void;
  }
  type Side = "a" | "b";

  interface Message {
    id: string;
    role: "system" | "user" | "assistant" | "tool";
    content: string | null;
    /** Of a tool's result: the tool. */
    name: string | null;
    /** JSON text: a list of `ToolCall`. */
    tool_calls: string | null;
    tool_call_id: string | null;
    tool_status: "success" | "error" | null;
    status: "pending" | "completed";
    created_at: number;
    parent_id: string | null;
    depth: number;
    silent: boolean;
    /** Of a reply that cites memories: `citations`, a list of `Citation`. */
    metadata: JsonObject;
    attachments: AttachmentRef[];
    subagent_id: string | null;
    /** These are there where `subagent_id` names a subagent of the thread, as the registry has it now. */
    subagent_name?: string;
    subagent_title?: string | null;
    subagent_description?: string;
    subagent_status?: string;
    subagent_resumable?: boolean;
    subagent_blocking?: boolean;
    subagent_thread_name?: string | null;
    subagent_spawn_group_id?: string | null;
    [field: string]: unknown;
  }

  interface NewMessage {
    role: "user" | "assistant" | "system";
    content?: string;
    silent?: boolean;
    metadata?: JsonObject;
    attachments?: NewAttachment[];
  }

  interface MessagesOptions {
    limit?: number;
    offset?: number;
    /** The newest first, unless it is `asc`. */
    order?: "asc" | "desc";
    includeSilent?: boolean;
    maxDepth?: number;
  }

  interface MessagesResult {
    messages: Message[];
    total: number;
    hasMore: boolean;
  }

  interface AttachmentRef {
    id: string;
    type: "file";
    path: string;
    name: string;
    mimeType: string;
    size: number;
    width?: number;
    height?: number;
    description?: string;
    /** Why models are not shown what is said to be an image. */
    notShown?: "no_image" | "cut_off" | "too_many_pixels" | "too_many_bytes";
  }

  /** A file of the thread's, or a new one with base64 in `data`. */
  type NewAttachment =
    | { path: string; description?: string }
    | { name: string; mimeType: string; data: string; width?: number; height?: number; description?: string };

  interface Log {
    id: string;
    type: string;
    [field: string]: unknown;
  }

  interface Subagent {
    readonly reference: string;
    readonly name: string;
    readonly title: string | null;
    readonly description: string;
    readonly resumable: boolean;
    readonly blocking: boolean;
    readonly threadName: string | null;
    readonly spawnGroupId: string | null;
    readonly createdAt: number;
    readonly status: string;
    readonly parentCommunication: "implicit" | "explicit";
    /** The id that a model calls it by, if it is a worker. */
    readonly agentId?: string;
  }

  /** What a worker came to, as `agent_wait` gives it, and `agent_send` (docs/subagents.md). */
  interface WorkerOutcome {
    agentId: string;
    status: "completed" | "failed" | "stopped" | "terminated" | "idle" | "closed";
    text: string;
    /** Paths of files of this thread. */
    attachments: string[];
    run: string | null;
    /** It was handed over before. */
    seen?: true;
  }

  interface EffectOptions {
    /** Milliseconds. */
    delay?: number;
    /** When it is due: a date, its text, or milliseconds since 1970; not with `delay`. */
    at?: Date | string | number;
    /** Milliseconds; not with `cron`. */
    every?: number;
    cron?: string;
  }

  interface ScheduledEffect {
    id: string;
    name: string;
    args: Json;
    status: "pending" | "processing" | "completed" | "failed" | "agent_canceled" | "user_canceled";
    scheduledAt: number;
    dueAt: number | null;
    endedAt: number | null;
    createdAt: number;
    repeat: JsonObject | null;
    occurrence: number | null;
    attempts: number;
    error: string | null;
    occurrenceOf: string | null;
    replayedFrom: string | null;
    idempotencyKey: string;
  }

  interface FileRecord {
    path: string;
    name: string;
    mimeType: string;
    storage: "local" | "r2";
    size: number;
    isDirectory: boolean;
    metadata?: JsonObject;
    width?: number;
    height?: number;
    createdAt: number;
    updatedAt: number;
    isChunked: boolean;
    chunkCount: number;
    etag?: string;
  }

  interface FileOptions {
    width?: number;
    height?: number;
    metadata?: JsonObject;
    /** A small picture of it: its bytes, or base64. */
    thumbnail?: ArrayBuffer | ArrayBufferView | string;
  }

  interface FileChunk {
    data: Uint8Array;
    index: number;
    totalChunks: number;
    isLast: boolean;
  }

  interface FileStats {
    fileCount: number;
    directoryCount: number;
    totalSize: number;
  }

  interface GrepResult {
    path: string;
    matches: { line: number; text: string }[];
  }

  interface CodeExecutionOptions {
    language?: "typescript" | "javascript";
    engine?: "quickjs" | "v8";
    /** Which export runs, `default` unless given, and what it is given. */
    execute?: { fn?: string; args?: unknown[] };
    /** Modules of yours, by bare specifier. */
    imports?: Record<string, Record<string, unknown>>;
    /** Modules of source, by relative specifier. */
    modules?: Record<string, string>;
    /** Names at module scope. */
    globals?: Record<string, unknown>;
    /** 16 MB unless given, 64 MB at most. */
    memoryLimitBytes?: number;
    /** A safety cap, in loop iterations and calls of the engine. */
    fuel?: number;
    filename?: string;
    /** Is called with what the code gives to its global `report`. */
    report?: (value: unknown) => void;
  }

  /** Code that runs. To wait for it never rejects: what went wrong is in the result. */
  interface CodeExecution<T = unknown> extends PromiseLike<CodeExecutionResult<T>> {
    readonly running: boolean;
    /** What was reported; complete once it has ended. */
    readonly reports: readonly unknown[];
    terminate(reason?: string): void;
    catch<R = never>(rejected?: ((reason: unknown) => R | PromiseLike<R>) | null): Promise<CodeExecutionResult<T> | R>;
    finally(settled?: (() => void) | null): Promise<CodeExecutionResult<T>>;
  }

  type CodeExecutionResult<T = unknown> = (
    | { status: "success"; result: T; error?: never }
    | { status: "error" | "link_error" | "memory" | "terminated"; result?: never; error: CodeExecutionError }
  ) & {
    logs: { level: "log" | "info" | "warn" | "error" | "debug"; args: unknown[]; timestamp: number }[];
    reports: unknown[];
    durationMs: number;
  };

  interface CodeExecutionError {
    name: string;
    message: string;
    stack?: string;
    line?: number;
    column?: number;
    filename?: string;
    specifier?: string;
  }
}
