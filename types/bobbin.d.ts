// Types for files of code in the folder of definitions: tools, effects, hooks and endpoints with `"run": { "code":
// "file.ts" }` (docs/run-code.md). The runtime erases types without checking them. To check them with an editor or
// `tsc`, add this file to `include` and set `"lib": ["esnext"]` and `"types": []` in tsconfig.json.

// web.d.ts declares the globals. The other two files are parts of the module `bobbin`.

/// <reference path="./web.d.ts" />
/// <reference path="./memories.d.ts" />
/// <reference path="./runs.d.ts" />

declare module "bobbin" {
  /** Any JSON value. */
  type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
  type JsonObject = { [key: string]: Json };

  // Default exports of files.

  /** A tool. Returns text, a `ToolResult` or any JSON value. The model reads a thrown exception as an error. */
  type ToolHandler<Args extends object = JsonObject> = (state: ThreadState, args: Args, call: ToolCallAbout) => Awaitable<ToolOutput>;
  /** Facts about a call besides its arguments. */
  interface ToolCallAbout {
    /** Whether a person has approved the call. */
    approved: boolean;
    /** People's answers to the questions of earlier runs of the call (`needs_input`), by name. */
    answers: { [name: string]: { action: "accept"; content?: JsonObject } | { action: "decline" } };
  }
  type ToolOutput = ToolResult | string | number | boolean | null | undefined | void | object;
  /** An effect. Its return value is ignored. If it throws, the attempt has failed. */
  type EffectHandler<Args extends object = JsonObject> = (state: ThreadState, args: Args) => unknown;
  /** A hook, by its name: `HookHandler<"filter_messages">`. */
  type HookHandler<Name extends keyof Hooks> = (state: ThreadState, ...args: Hooks[Name]["args"]) => Awaitable<Hooks[Name]["gives"]>;
  /** An endpoint. Returns a `Response`, or a value that is sent as JSON. */
  type EndpointHandler<Params extends Record<string, string> = Record<string, string>> = (
    request: Request,
    state: ThreadState,
    params: Params,
  ) => Awaitable<Response | ToolOutput>;

  type Awaitable<T> = T | Promise<T>;

  /** The arguments of each hook after `state`, and its result (docs/hooks.md). */
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

  /** Changes to a stored message. Absent fields stay unchanged. */
  interface MessageUpdates {
    content?: string;
    silent?: boolean;
    /** Merged into the existing metadata. */
    metadata?: JsonObject;
  }

  /** A message without an `id` that a hook adds to a request. */
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
    /** The text for the model. Other values are sent as JSON. */
    result?: unknown;
    error?: string;
    error_code?: string;
    error_data?: JsonObject;
    /** The stack trace of an error. It appears only in the log. */
    stack?: string;
    /** Replaces `result`. Texts are joined, and images become files. */
    content?: ({ type: "text"; text: string } | { type: "image"; mimeType: string; data: string })[];
    /** Files to store with the result. Models with vision see the images. */
    attachments?: (NewAttachment | AttachmentRef)[];
    /** The subagent that the result is about. */
    subagent_id?: string;
  }

  /** The thread in which the code runs. Times are microseconds since 1970. */
  interface ThreadState extends ThreadFacts {
    readonly children: readonly Subagent[];
    /** The arguments of a subagent's creation. */
    readonly arguments: JsonObject;
    /**
     * Scratch space of one run, in memory. When a tool ends, its contents, including changes within values, become
     * visible to the run's other tools.
     */
    readonly context: { [key: string]: any };
    /** The current run. null in effects and endpoints. */
    readonly execution: Execution | null;

    getMessages(options?: MessagesOptions): Promise<MessagesResult>;
    getMessage(id: string): Promise<Message | null>;
    /** Stores a message without starting a run. */
    injectMessage(input: NewMessage): Promise<Message>;
    /** Queues a message. It starts a run or joins the current one. */
    queueMessage(input: NewMessage): Promise<void>;
    /** Merges `metadata` key by key. `null` removes a key. */
    updateMessage(id: string, updates: MessageUpdates): Promise<Message>;
    /** Returns whether the message existed. */
    deleteMessage(id: string): Promise<boolean>;
    getLogs(options?: { limit?: number; offset?: number; order?: "asc" | "desc"; ids?: string; messageIds?: string }): Promise<Log[]>;

    loadModel<T extends object = JsonObject>(name: string): Promise<T>;
    loadPrompt<T extends object = JsonObject>(name: string): Promise<T>;
    loadAgent<T extends object = JsonObject>(name: string): Promise<T>;
    getModelNames(): string[];
    getPromptNames(): string[];
    getAgentNames(): string[];

    /** The child with this reference, or null. */
    getChildThread(reference: string): Promise<RemoteThread | null>;
    getParentThread(): Promise<RemoteThread | null>;
    notifyParent(content: string): Promise<void>;
    setStatus(status: string): Promise<void>;

    /**
     * The value of a variable that the definition lists in `variables`, or that `setEnv` has set in this call. Rejects
     * for all others, and if there is no value.
     */
    env(name: string): Promise<string>;
    /** The deployment's value of such a variable, or null. */
    instanceEnv(name: string): Promise<string | null>;
    envType(name: string): Promise<"text" | "secret">;
    setEnv(name: string, value: string, options?: { type?: "text" | "secret" }): Promise<void>;

    /** Queues a call. It runs after the calls of this step, or starts a run. */
    queueTool(name: string, args?: object): void;
    /** Makes a call immediately. */
    invokeTool(name: string, args?: object): Promise<ToolResult>;

    /** Returns the id of the effect. `options`: a delay in milliseconds, or a time or schedule. */
    scheduleEffect(name: string, args?: object, options?: number | EffectOptions): Promise<string>;
    getScheduledEffects(name?: string): Promise<ScheduledEffect[]>;
    /** Returns whether the effect had not run yet. */
    removeScheduledEffect(id: string): Promise<boolean>;

    /** Sends an event to the thread's clients. Nothing is stored. */
    emit(event: string, data?: unknown): void;
    /**
     * Adds an entry to the trace of the current run. `kind` begins with `app.`; `data` is at most 8 KB as JSON. A run
     * keeps 100 entries. Throws if there is no current run.
     */
    trace(kind: `app.${string}`, data?: unknown): void;
    /** Sends a progress text to the thread's clients: at most 200 characters, at most once a second. Nothing is stored. */
    progress(text: string): void;

    getValue<T = Json>(key: string): Promise<T | null>;
    /** `null` and `undefined` delete the key. Values that are not JSON are rejected. */
    setValue(key: string, value: unknown): Promise<void>;
    /**
     * Sets the value only if the current value is `ifValue`, as it was read. `null` means that there is none. Returns
     * whether it did. If not, read the value and try again.
     */
    setValue(key: string, value: unknown, options: { ifValue: unknown }): Promise<boolean>;

    writeFile(path: string, data: string | ArrayBuffer | ArrayBufferView, mimeType: string, options?: FileOptions): Promise<FileRecord>;
    readFile(path: string): Promise<ArrayBuffer | null>;
    readFileStream(path: string, options?: { signal?: AbortSignal }): Promise<AsyncIterable<FileChunk> | null>;
    statFile(path: string): Promise<FileRecord | null>;
    /** All entries, or a page of at most `limit` (500). The full list of a large directory can exceed the memory. */
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

    /** Runs code in its own sandbox. */
    runCode<T = unknown>(source: string, options?: CodeExecutionOptions): CodeExecution<T>;

    /** Ends the thread permanently. */
    terminate(): Promise<void>;
  }

  interface ThreadFacts {
    readonly threadId: string;
    readonly agentId: string;
    readonly userId: string | null;
    readonly createdAt: number;
    /** The time of termination. */
    readonly terminated: number | null;
  }

  /**
   * Another thread of the family. Its methods act on that thread. Its properties are those at the time of the request.
   * Values and variables are private to a thread: these members reject. Files of up to 16 MB can be written.
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
    /** The side that requested the stop. */
    readonly stoppedBy?: Side;
    /** The newest 100 messages in order of time, including silent ones, as they were when the call began. */
    readonly messageHistory: readonly Message[];
    /** For functions that accept a signal. Code ends with its run, so it never sees this signal abort. */
    readonly abortSignal: AbortSignal;
    readonly promptPath: readonly string[];
    /** Gives the next turn to that side. Only for agents of type `dual_ai`. */
    forceTurn(side: Side): void;
    /** Ends the run after the current work. */
    stop(): void;
  }
  type Side = "a" | "b";

  interface Message {
    id: string;
    role: "system" | "user" | "assistant" | "tool";
    content: string | null;
    /** For a tool's result: the name of the tool. */
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
    /** For a reply that cites memories: `citations`, a list of `Citation`. */
    metadata: JsonObject;
    attachments: AttachmentRef[];
    subagent_id: string | null;
    /** Present if `subagent_id` names a subagent of the thread, with its current values from the registry. */
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
    /** Newest first by default. */
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
    /** The reason why models do not see this image. */
    notShown?: "no_image" | "cut_off" | "too_many_pixels" | "too_many_bytes";
  }

  /** A file of the thread, or a new file with base64 in `data`. */
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
    /** The id by which a model calls it, if it is a worker. */
    readonly agentId?: string;
  }

  /** The outcome of a worker, as returned by `agent_wait` and `agent_send` (docs/subagents.md). */
  interface WorkerOutcome {
    agentId: string;
    status: "completed" | "failed" | "stopped" | "terminated" | "idle" | "closed";
    text: string;
    /** Paths of files in this thread. */
    attachments: string[];
    run: string | null;
    /** It was delivered before. */
    seen?: true;
  }

  interface EffectOptions {
    /** Milliseconds. */
    delay?: number;
    /** The due time: a date, its text, or milliseconds since 1970. Excludes `delay`. */
    at?: Date | string | number;
    /** Milliseconds. Excludes `cron`. */
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
    /** A small preview image: its bytes, or base64. */
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
    /** The export to run, by default `default`, and its arguments. */
    execute?: { fn?: string; args?: unknown[] };
    /** Your own modules, by bare specifier. */
    imports?: Record<string, Record<string, unknown>>;
    /** Modules of source code, by relative specifier. */
    modules?: Record<string, string>;
    /** Names at module scope. */
    globals?: Record<string, unknown>;
    /** By default 16 MB, at most 64 MB. */
    memoryLimitBytes?: number;
    /** A safety limit: loop iterations and calls of the engine. */
    fuel?: number;
    filename?: string;
    /** Called with each value that the code passes to its global `report`. */
    report?: (value: unknown) => void;
  }

  /** Running code. Awaiting it never rejects. The result contains any error. */
  interface CodeExecution<T = unknown> extends PromiseLike<CodeExecutionResult<T>> {
    readonly running: boolean;
    /** The reported values. Complete once the code has ended. */
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
