//! Every constant of the runtime. Times are microseconds unless the name says otherwise, sizes are bytes.

/// One second in microseconds.
pub const SECOND_US: i64 = 1_000_000;
/// One day in microseconds.
pub const DAY_US: i64 = 24 * 3600 * SECOND_US;

/// Body of a request that is neither a message post nor a file.
pub const REQUEST_BYTES: usize = 4 << 20;
/// Bytes sent to a WebSocket since its last answered `ping`. A socket above the limit is closed.
pub const SOCKET_UNANSWERED_BYTES: u32 = 8 << 20;
/// The same sum over all open WebSockets of a thread. Above it, the socket with the most is closed.
pub const SOCKETS_UNANSWERED_BYTES: u32 = 24 << 20;
/// Bytes that the closed WebSockets of a thread hold for clients that do not read; above it, none opens.
pub const SOCKETS_LEFT_BYTES: u32 = 16 << 20;
/// Bytes sent to a WebSocket between two checks of its last `ping`.
pub const SOCKET_LOOK_BYTES: u32 = 1 << 20;
/// A request is aborted when 64 KB of its body, or its end, take longer, in seconds (`worker/bodies.js`).
pub const BODY_SILENCE_S: u32 = 30;
/// Body of `POST …/messages`.
pub const MESSAGE_REQUEST_BYTES: usize = 12 << 20;
/// `history` of a new thread, in total.
pub const HISTORY_BYTES: usize = 4 << 20;
/// The highest seq of a message that is copied from another deployment.
pub const COPIED_SEQ: i64 = 1 << 40;
/// The longest time after which a thread may delete itself, seconds.
pub const EXPIRE_S: i64 = 365 * 24 * 3_600;
/// Pause before a thread that could not delete itself tries again.
pub const EXPIRE_AGAIN_US: i64 = 600 * SECOND_US;
/// `content` of one message.
pub const CONTENT_BYTES: usize = 1 << 20;
/// `metadata` of one message, and `tags` or `properties` of a thread, as JSON.
pub const METADATA_BYTES: usize = 64 << 10;
/// Nesting depth of stored JSON. The parser reads 128 levels, and a response adds some around a value.
pub const JSON_DEPTH: usize = 100;
/// Rows of a page when the request names no limit.
pub const PAGE_DEFAULT: u32 = 100;
/// Largest limit of a page.
pub const PAGE_MAX: u32 = 500;
/// Rows of a page together, as JSON; one larger row may exceed it. A page is one message of at most 32 MiB,
/// in which a character may take two bytes, and many readers share an isolate of 128 MB.
pub const PAGE_BYTES: usize = 1 << 20;
/// A list without pages, as JSON; a larger one is refused.
pub const LIST_BYTES: usize = 12 << 20;
/// Rows of a snapshot on a stream.
pub const SNAPSHOT_ROWS: u32 = 100;
/// Rows of a snapshot together, as JSON; one larger row may exceed it. A snapshot is one WebSocket message.
pub const SNAPSHOT_BYTES: usize = 512 << 10;
/// Rows that a resuming stream receives one by one; above it, it receives a snapshot.
pub const RESUME_ROWS: u32 = 500;
/// Messages that wait for a run, in one thread.
pub const QUEUE_MESSAGES: u32 = 1_000;

/// Arguments of a call that code queues, as JSON.
pub const QUEUED_ARGS_BYTES: usize = 1_000_000;
/// Arguments of a call that code makes and awaits, as JSON. Its receipt keeps them together with the result.
pub const INVOKED_ARGS_BYTES: usize = 100_000;
/// Seqs after which the mark of open detached calls is cleared when no such work runs (`engine/calls/detached.rs`).
pub const DETACHED_SPAN: i64 = 1_000;
/// Nesting depth of calls: prompts that call prompts, tools that call tools.
pub const CALL_DEPTH: u32 = 8;

/// Steps of one run, regardless of `maxSteps` (spec §21). A larger `maxSteps` is a catalog error.
pub const RUN_STEPS: u32 = 250;
/// Text of an error in one line on the server's terminal.
pub const OPERATOR_ERROR_BYTES: usize = 500;
/// Failures remembered within a run, so that each is reported to the operator once.
pub const OPERATOR_FAILURES: usize = 64;
/// Text of a tool error in the log.
pub const LOGGED_ERROR_BYTES: usize = 1 << 10;
/// Stack of a tool error in the log.
pub const LOGGED_STACK_BYTES: usize = 4 << 10;
/// Identical tool errors in a row that stop a run (spec §19).
pub const REPEATED_ERRORS: u32 = 8;
/// Sequence numbers that a step reserves: one for its reply and up to 256 for results.
pub const BLOCK: i64 = 257;
/// Tool calls in one reply; a reply with more is refused whole.
pub const CALLS_PER_REPLY: usize = 256;
/// Attempts at one model before the next fallback.
pub const MODEL_ATTEMPTS: u32 = 2;
/// Most attempts that a policy may allow, including the first.
pub const ATTEMPTS_MAX: u32 = 10;
/// Attempts at all models of a step together.
pub const ATTEMPTS_STEP: u32 = 20;
/// The longest pause between attempts that a policy may set, milliseconds.
pub const BACKOFF_MAX_MS: u64 = 86_400_000;
/// The longest `timeoutMs` of one attempt that a policy may set, milliseconds.
pub const ATTEMPT_MAX_MS: u64 = 3_600_000;
/// Base of the backoff between attempts; doubled each time, with full jitter.
pub const BACKOFF_US: i64 = SECOND_US;
/// The longest `Retry-After` that is honoured, and the longest pause spent within the object.
pub const RETRY_AFTER_MAX_US: i64 = 60 * SECOND_US;
/// Interval of the events that report a tool still running, while clients are connected.
pub const HEARTBEAT_US: i64 = 5 * SECOND_US;
/// Characters of a progress line.
pub const PROGRESS_CHARS: usize = 200;
/// A longer pause before an attempt parks the run, if its policy allows that.
pub const PARK_ABOVE_US: i64 = 30 * SECOND_US;
/// Longest wait for the first chunk with content of a model's response.
pub const FIRST_CHUNK_US: i64 = 120 * SECOND_US;
/// Longest silence within a model's response. Comments that only keep the connection open count as silence.
pub const STALL_US: i64 = 45 * SECOND_US;
/// After this, events without content are silence, such as a provider's `ping`s within a long argument.
pub const IDLE_EVENTS_US: i64 = 300 * SECOND_US;
/// An attempt fails after this time of reasoning without text or a call, unless its policy allows more.
pub const REASONING_US: i64 = 1_800 * SECOND_US;
/// Broken streams without content after which the last attempt at a model requests the response whole.
pub const BROKEN_STREAMS: u32 = 2;
/// The longest silence of a model that its definition may allow, milliseconds.
pub const SILENCE_MAX_MS: u64 = 900_000;
/// Times that one step is entered again after a crash.
pub const RECOVERIES: u32 = 6;
/// Read-only calls that run at once: the platform lets so many requests wait for headers.
pub const BATCH: usize = 6;
/// Runs of one call of an idempotent tool, including the first.
pub const IDEMPOTENT_RUNS: u32 = 3;
/// Outgoing requests of one event before the flow yields to a new alarm (free plan: 50 per request).
pub const OUTGOING_PER_EVENT: u32 = 30;
/// Time that an alarm's handler spends on a flow before it hands over to a new alarm.
pub const ALARM_HOLD_US: i64 = 14 * 60 * SECOND_US;

/// Time limit of an HTTP tool that sets none.
pub const HTTP_TOOL_US: i64 = 60 * SECOND_US;
/// Time limit of a native tool that sets none, milliseconds.
pub const NATIVE_MS: u64 = 900_000;
/// The longest `timeoutMs` of a tool, milliseconds.
pub const HTTP_TOOL_MAX_MS: u64 = 600_000;
/// Response of an HTTP tool.
pub const HTTP_TOOL_BYTES: usize = 1 << 20;
/// Response of an MCP server, including its files.
pub const MCP_ANSWER_BYTES: usize = 8 << 20;
/// Interval at which an MCP server's task is polled, unless the server names one.
pub const MCP_POLL_US: i64 = 5 * SECOND_US;
/// The longest interval that an MCP server may name.
pub const MCP_POLL_MAX_US: i64 = 600 * SECOND_US;
/// Failed polls of a task in a row before its call fails.
pub const MCP_POLL_MISSES: u32 = 20;
/// Times that an MCP server may request input for one call.
pub const MCP_ROUNDS: u32 = 10;
/// Part of a failed HTTP tool's body that the model receives.
pub const HTTP_TOOL_ERROR_BYTES: usize = 1 << 10;
/// Text of an MCP server's failure in reports to the deployment, bytes.
pub const MCP_TOLD_BYTES: usize = 500;
/// Tools of one MCP server's live list that may be offered, bytes.
pub const MCP_LIST_BYTES: usize = 1 << 20;
/// Tools of one MCP server in a catalog or a live list.
pub const MCP_TOOLS: usize = 256;
/// Name of an MCP server's tool, bytes.
pub const MCP_TOOL_NAME_BYTES: usize = 256;
/// Description of an MCP tool that models receive, bytes.
pub const MCP_DESCRIPTION_BYTES: usize = 16 << 10;
/// Schema of an MCP tool's arguments, bytes.
pub const MCP_SCHEMA_BYTES: usize = 64 << 10;
/// Response of an authorization server, bytes.
pub const MCP_AUTH_BYTES: usize = 64 << 10;
/// Nesting depth of the schema of an MCP tool's arguments.
pub const MCP_SCHEMA_DEPTH: usize = 32;
/// Part of a tool result that enters the model's context; the row keeps all of it.
pub const RESULT_IN_CONTEXT_BYTES: usize = 32 << 10;
/// Text and tool calls of one reply together; a larger reply is refused whole.
pub const REPLY_BYTES: usize = 1_200_000;
/// Reasoning text of one reply, about a million tokens; a reply with more is refused whole.
pub const REASONING_BYTES: usize = 4 << 20;
/// Provider payload of a reply (thinking, signatures) that later requests return; a larger one is not kept.
pub const PAYLOAD_BYTES: usize = 512 << 10;
/// `max_tokens` where a provider requires it and the model's definition sets none, without thinking. Tokens.
pub const OUTPUT_TOKENS: u64 = 8_192;
/// Thinking tokens at a level of 100, for providers that count in tokens.
pub const THINKING_TOKENS: u64 = 32_000;
/// Fewest thinking tokens that a provider accepts.
pub const THINKING_TOKENS_MIN: u64 = 1_024;

/// Output tokens below which a request is not worth sending.
pub const BUDGET_LEAST_OUTPUT: u64 = 256;
/// Tokens reserved for the last step of a run whose budget is used up.
pub const BUDGET_FINISH: u64 = 2_000;
/// Output tokens that an attempt reserves if its model's definition sets no maximum.
pub const BUDGET_FULL_OUTPUT: u64 = 16_384;
/// Share of a budget's remainder that a subagent is allocated.
pub const BUDGET_SHARE: f64 = 0.25;
/// Ended runs whose limits are kept, because subagents still work with what they were allocated.
pub const BUDGET_ERRANDS: usize = 32;
/// Share of a limit at which clients are warned.
pub const WARN_AT: f64 = 0.8;

/// Bytes of text per token in a budget; low, so that estimates err on the side of more tokens.
pub const BYTES_PER_TOKEN: f64 = 3.0;
/// Factor on the estimate of a request whose end was not seen; 95 in 100 errors are below it (see `tokens`).
pub const BUDGET_LOST_INPUT: f64 = 1.25;
/// Context window of a model whose definition sets none, tokens.
pub const WINDOW_TOKENS: u64 = 48_000;
/// Output tokens of a model whose definition sets no maximum; at most a quarter of its window.
pub const ANSWER_TOKENS: u64 = 8_192;
/// Tokens of a window that stay free, because requests are estimated; at most a quarter of the window.
pub const SAFETY_TOKENS: u64 = 1_024;
/// Share of the tokens for messages at which the older ones are summarized.
pub const TRIGGER_RATIO: f64 = 0.85;
/// Tokens of a summary.
pub const SUMMARY_TOKENS: usize = 1_500;
/// Complete turns between two summaries.
pub const SUMMARY_TURNS: u32 = 6;
/// Share of the tokens for messages that messages keep after a summary.
pub const SUMMARY_TARGET: f64 = 0.5;
/// Failed summaries in a row, after which none is written for [`SUMMARY_PAUSE_TURNS`].
pub const SUMMARY_FAILURES: u32 = 3;
/// See [`SUMMARY_FAILURES`].
pub const SUMMARY_PAUSE_TURNS: u64 = 10;
/// Times that a summary is written again because a message that it covers has changed.
pub const SUMMARY_TRIES: u32 = 3;
/// Summaries kept per thread.
pub const SUMMARIES: i64 = 10;
/// Time limit of one request for a summary.
pub const SUMMARY_US: i64 = 120 * SECOND_US;
/// Longest wait of a step for a summary.
pub const SUMMARY_WAIT_US: i64 = 60 * SECOND_US;
/// Fewest tokens of messages in a request, however small the provider's limit is.
pub const LEAST_HISTORY_TOKENS: usize = 100;
/// Tokens charged for an image.
pub const IMAGE_TOKENS: usize = 1_400;
/// Messages of history at most.
pub const WINDOW_MESSAGES: usize = 400;
/// When history outgrows its budget, the cut jumps so that this share of the budget remains.
pub const WINDOW_KEEP: f64 = 0.6;

/// Description of a skill, characters.
pub const SKILL_DESCRIPTION_CHARS: usize = 1_024;
/// Text of a skill, estimated tokens.
pub const SKILL_TOKENS: usize = 3_000;
/// Texts of the skills that are active at the same time, estimated tokens.
pub const SKILLS_TOKENS: usize = 6_000;
/// A file of a skill.
pub const SKILL_FILE_BYTES: usize = 256 << 10;
/// All files of a skill together.
pub const SKILL_FILES_BYTES: usize = 1 << 20;

/// Body of a request to a custom endpoint.
pub const ENDPOINT_REQUEST_BYTES: usize = 4 << 20;
/// Time limit of a custom endpoint that sets none, milliseconds.
pub const ENDPOINT_MS: u64 = 60_000;
/// The provider's id of a response, or of the model that wrote it, in the log, bytes.
pub const RESPONSE_NAME_BYTES: usize = 200;
/// Part of a path that a log row keeps.
pub const LOGGED_PATH_BYTES: usize = 1 << 10;

/// Time limit of a hook, milliseconds (spec §35.15); a definition may set a shorter one.
pub const HOOK_MS: u64 = 30_000;
/// A tool result, as JSON, kept on its receipt until its turn or its hooks' end; a crash loses a larger one.
pub const KEPT_RESULT_BYTES: usize = 1_200_000;

/// Key of a value, bytes of UTF-8.
pub const VALUE_KEY_BYTES: usize = 512;
/// A value, as JSON.
pub const VALUE_BYTES: usize = 1_000_000;
/// Values of a thread.
pub const VALUES: u32 = 10_000;

/// Name of a variable, bytes.
pub const ENV_NAME_BYTES: usize = 128;
/// Value of a variable, bytes.
pub const ENV_VALUE_BYTES: usize = 32 << 10;
/// Variables with a value, of one thread, account or instance.
pub const ENV_VALUES: usize = 200;
/// All values of one thread, account or instance together, bytes.
pub const ENV_BYTES: usize = 256 << 10;
/// Pauses between attempts to read the values of the account and the instance.
pub const ENV_PAUSES_US: [i64; 2] = [SECOND_US / 10, SECOND_US];

/// Open effects of a thread.
pub const EFFECTS: u32 = 20_000;
/// Arguments of an effect, as JSON.
pub const EFFECT_ARGS_BYTES: usize = 100_000;
/// Attempts at an effect whose definition sets none.
pub const EFFECT_ATTEMPTS: u32 = 6;
/// Most attempts that a definition may set.
pub const EFFECT_ATTEMPTS_MAX: u32 = 20;
/// The longest pause between two attempts at an effect.
pub const EFFECT_BACKOFF_MAX_US: i64 = 3_600 * SECOND_US;
/// Time limit of an attempt at a native effect that sets none.
pub const EFFECT_NATIVE_MS: u64 = 600_000;
/// The shortest `every` of an effect.
pub const EFFECT_EVERY_MIN_MS: i64 = 1_000;
/// How far ahead an effect may be scheduled, and the longest `every`: ten years.
pub const EFFECT_AHEAD_US: i64 = 3_653 * DAY_US;
/// The earliest and latest numeric `at` of an effect, in milliseconds since 1970: the years 1973 to 5138.
pub const EFFECT_AT_MIN_MS: i64 = 100_000_000_000;
/// See [`EFFECT_AT_MIN_MS`].
pub const EFFECT_AT_MAX_MS: i64 = 100_000_000_000_000;
/// A cron expression, bytes.
pub const CRON_BYTES: usize = 256;
/// Effects of a thread that run at once. A name starts more only while it holds fewer slots than are free.
pub const EFFECTS_AT_ONCE: usize = 32;
/// Longest duration of a wait.
pub const WAIT_MAX_US: i64 = 30 * DAY_US;
/// Duration of a wait whose definition sets none.
pub const WAIT_DEFAULT_US: i64 = 7 * DAY_US;
/// Duration of a wait for a call that the client carries out, if its definition sets none.
pub const CLIENT_WAIT_US: i64 = 600 * SECOND_US;
/// Data of a wait: title, reason, arguments, choices and digest together, bytes. More is not asked.
pub const WAIT_DATA_BYTES: usize = 64 * 1024;
/// Reason of a wait that ends by itself with a retry, bytes.
pub const WAIT_REASON_BYTES: usize = 4 << 10;
/// Waits that one request decides.
pub const WAITS_PER_DECISION: usize = 100;
/// Longest validity of a token for one wait, seconds.
pub const WAIT_TOKEN_S: u64 = 7 * 24 * 3600;
/// Name of the person who decides a wait, characters.
pub const ACTOR_CHARS: usize = 200;
/// Reason of a denial, or a text answer, bytes.
pub const ANSWER_BYTES: usize = 64 * 1024;
/// Due effects that are searched for one that may start.
pub const EFFECTS_LOOKED_AT: i64 = 2_000;
/// The alarm's handler waits in memory for an effect that is due this soon: an alarm would cost a row.
pub const EFFECT_SOON_US: i64 = SECOND_US;
/// Time that an ended effect stays listed.
pub const EFFECT_HISTORY_US: i64 = 30 * DAY_US;
/// Ended effects that stay listed.
pub const EFFECT_HISTORY: u32 = 20_000;

/// Attachments of a message.
pub const ATTACHMENTS: usize = 20;
/// All attachments sent with one message, before base64.
pub const ATTACHMENT_BYTES: usize = 8 << 20;
/// Description of an attachment.
pub const ATTACHMENT_TEXT_BYTES: usize = 4 << 10;
/// Name of an attachment, bytes of UTF-8.
pub const ATTACHMENT_NAME_BYTES: usize = 255;
/// Media type of a file (`text/plain`), bytes.
pub const FILE_TYPE_BYTES: usize = 255;
/// An image in a request to a model.
pub const IMAGE_BYTES: usize = 5 << 20;
/// Pixels on a side of an image in a request to a model; providers refuse larger ones.
pub const IMAGE_PIXELS: u32 = 8_000;
/// Images of one request to a model together; earlier ones are described in text.
pub const IMAGES_BYTES: usize = 8 << 20;
/// Images of one request to a model.
pub const IMAGES: usize = 20;

/// Path of a file, bytes of UTF-8.
pub const FILE_PATH_BYTES: usize = 1_024;
/// One segment of a path, bytes of UTF-8.
pub const FILE_NAME_BYTES: usize = 255;
/// Files and directories of a thread.
pub const FILES: u32 = 10_000;
/// Size of one file.
pub const FILE_BYTES: u64 = 5_000_000_000;
/// Size of a thread's database above which no file is written; the platform's limit is 10 GB.
pub const THREAD_BYTES: i64 = 9_000_000_000;
/// Content in one row.
pub const FILE_CHUNK_BYTES: usize = 1_000_000;
/// A file that native code reads or writes whole.
pub const FILE_WHOLE_BYTES: usize = 32 << 20;
/// Bytes that code may send to another thread at once: as text, in one message of at most 32 MiB.
pub const REMOTE_BYTES: usize = 16 << 20;
/// Thumbnail of a file.
pub const THUMBNAIL_BYTES: usize = 256 << 10;
/// Open uploads of a thread.
pub const UPLOADS: usize = 100;
/// Files of more than one chunk that are written in a thread at the same time.
pub const WRITES: usize = 100;
/// Longest duration of an upload.
pub const UPLOAD_US: i64 = DAY_US;
/// Chunks of replaced files that one write deletes.
pub const PRUNED_CHUNKS: i64 = 64;
/// Pause between two consecutive deletions of chunks.
pub const PRUNE_PAUSE_US: i64 = 1_000;
/// Objects of a bucket that one call deletes; the platform's limit is 1,000.
pub const DELETED_OBJECTS: i64 = 1_000;
/// Failed moves to or from the bucket after which the others wait for the next write.
pub const FAILED_MOVES: usize = 3;
/// Pattern of a file search, bytes of UTF-8.
pub const FILE_PATTERN_BYTES: usize = 1_000;
/// A text file that searches read.
pub const GREP_FILE_BYTES: u64 = 1 << 20;
/// Text that one search reads in total.
pub const GREP_SCAN_BYTES: u64 = 64 << 20;
/// Steps of one search by path: characters of the paths times 64-bit words of the pattern.
pub const FIND_STEPS: u64 = 64_000_000;
/// Steps after which a search by path yields.
pub const FIND_SLICE_STEPS: u64 = 4_000_000;
/// Paths after which a search by path yields.
pub const FIND_SLICE_PATHS: usize = 1_000;
/// Duration of that yield.
pub const FIND_PAUSE_US: i64 = 1_000;
/// Files in the response to a search, which is also a page of [`PAGE_BYTES`].
pub const FOUND_FILES: u32 = 100;
/// Lines of one file in the response to a search.
pub const FOUND_LINES: usize = 50;
/// Characters of a line in the response to a search.
pub const FOUND_LINE_CHARS: usize = 500;

/// Time that an idempotency key is remembered.
pub const IDEMPOTENCY_US: i64 = DAY_US;
/// Length of an idempotency key.
pub const IDEMPOTENCY_KEY_BYTES: usize = 255;
/// Characters of the key of a thread.
pub const THREAD_KEY_CHARS: usize = 255;
/// Text of the running attempt that is kept for resuming streams.
pub const PARTIAL_BYTES: usize = 1 << 20;
/// Arguments of a call in a frame, as the model wrote them; longer ones are in the message only.
pub const FRAME_ARGUMENTS_BYTES: usize = 8 << 10;
/// Lifetime of a thread that was created for one request of a client without a thread id, seconds.
pub const EPHEMERAL_S: i64 = 24 * 3_600;
/// Time in which a client may repeat a request without a key; clients wait up to ten minutes themselves.
pub const RESENT_US: i64 = 15 * 60 * SECOND_US;
/// Validity of a link to a file, seconds.
pub const LINK_S: i64 = 3_600;
/// One log row, as JSON.
pub const LOG_ROW_BYTES: usize = 8 << 10;
/// Definitions of a run in its snapshot row, as JSON; longer lists are replaced by their length.
pub const SNAPSHOT_FIELDS_BYTES: usize = 7 << 10;
/// One logged request or response body.
pub const LOG_BODY_BYTES: usize = 256 << 10;
/// Time that logged bodies are kept.
pub const LOG_BODY_US: i64 = 7 * DAY_US;
/// Attempts at a job.
pub const JOB_ATTEMPTS: u32 = 6;
/// Pause after the first attempt at a job. It doubles with each attempt, up to [`JOB_PAUSE_MAX_US`].
pub const JOB_PAUSE_US: i64 = SECOND_US;
/// See [`JOB_PAUSE_US`].
pub const JOB_PAUSE_MAX_US: i64 = 3_600 * SECOND_US;
/// Time limit of a provider's response to a cancellation, milliseconds.
pub const CANCEL_MS: u64 = 10_000;
/// Most messages that a fork fetches at once.
pub const FORK_MESSAGES: i64 = 256;
/// Bytes of messages or of values after which a page for a fork is full.
pub const FORK_BYTES: usize = 1 << 20;
/// Files that a fork fetches in one attempt of its job.
pub const FORK_FILES: i64 = 8;
/// Times that a fork fetches the messages again because one has changed meanwhile.
pub const FORK_RESTARTS: u32 = 16;
/// Longest wait of a request for a thread that is being forked.
pub const FORK_WAIT_US: i64 = 10 * SECOND_US;
/// Interval at which such a request checks the fork.
pub const FORK_LOOK_US: i64 = SECOND_US / 20;
/// Estimated bytes of a row without its texts.
pub const ROW_BYTES: usize = 128;
/// An attempt at a job whose end is not stored after this time is considered lost.
pub const JOB_LOST_US: i64 = 30 * SECOND_US;
/// Spans in one request to a collector.
pub const EXPORT_SPANS: usize = 512;
/// Bytes of one request to a collector.
pub const EXPORT_BYTES: usize = 1 << 20;
/// Time limit of a collector's response, milliseconds.
pub const EXPORT_MS: u64 = 10_000;
/// Steps after which a run that continues exports its spans.
pub const EXPORT_STEPS: u32 = 50;
/// Content of a message in a span, bytes.
pub const SPAN_CONTENT_BYTES: usize = 16 << 10;
/// Links of a span.
pub const SPAN_LINKS: usize = 16;
/// Spans in one response of the API.
pub const SPANS_SHOWN: usize = 5_000;

/// Interval of the comments that keep an idle SSE response open, milliseconds.
pub const SSE_HEARTBEAT_MS: u32 = 15_000;
/// Longest duration of an SSE response, milliseconds; the client then resumes.
pub const SSE_LIFE_MS: u32 = 600_000;
/// An SSE response ends when its client has read nothing for this time, milliseconds.
pub const SSE_PATIENCE_MS: u32 = 30_000;
/// Longest validity of a browser token, seconds.
pub const TOKEN_TTL_S: u64 = 3_600;

/// Children of a thread that are not terminated.
pub const CHILDREN: i64 = 1_000;
/// Characters of a subagent's name; longer names are cut.
pub const SUBAGENT_NAME_CHARS: usize = 200;
/// Other threads that a thread queries at the same time.
pub const CHILDREN_ASKED: usize = 20;
/// Subagents within subagents (spec §35.18).
pub const SUBAGENT_DEPTH: u32 = 8;
/// An envelope between threads, as JSON, bytes.
pub const ENVELOPE_BYTES: usize = 1_200_000;
/// Longest wait of a deletion for envelopes in transit, microseconds.
pub const ENVELOPE_US: i64 = 10 * SECOND_US;
/// Report of a child, bytes.
pub const REPORT_BYTES: usize = 256 << 10;
/// Longest wait of a parent for a child, and of a child for its variables, microseconds.
pub const WAIT_US: i64 = 7 * DAY_US;
/// Most workers that a prompt may allow a thread at the same time.
pub const WORKERS: u32 = 100;
/// Characters of a worker's id.
pub const WORKER_ID_CHARS: usize = 64;
/// Outcome of a worker that its parent keeps, bytes; longer texts are cut.
pub const OUTCOME_BYTES: usize = 64 << 10;
/// All outcomes in one result, bytes, divided equally between them.
pub const OUTCOMES_BYTES: usize = 512 << 10;
/// Pause before a parent checks a child that it waits for; doubles with each check, up to [`CHECK_MAX_US`].
pub const CHECK_US: i64 = 60 * SECOND_US;
/// Pauses between attempts to reach other objects before a thread is deleted: its parent, or shared memories.
pub const TELL_PAUSES_US: [i64; 2] = [SECOND_US / 10, SECOND_US];
/// See [`CHECK_US`].
pub const CHECK_MAX_US: i64 = 3_600 * SECOND_US;

/// Default heap of sandboxed code, bytes.
pub const CODE_MEMORY_BYTES: u64 = 16 << 20;
/// A serialized value between a thread and its sandboxed code, bytes; a value used twice counts twice. All
/// threads of a process share 128 MB, and a value exists several times on its way.
pub const CODE_VALUE_BYTES: usize = 8 << 20;
/// Bytes that each part of such a value counts in addition to its text.
pub const CODE_PART_BYTES: usize = 16;
/// Binary contents in such a value, bytes.
pub const CODE_RAW_BYTES: usize = 24 << 20;
/// Arguments of the calls that one run has in flight, and results that it has not taken, bytes as for values.
pub const CODE_CALLS_BYTES: usize = 16 << 20;
/// Time that sandboxed code has to finish after it was told to end, microseconds.
pub const CODE_END_US: i64 = 45_000;
/// Body of a response that sandboxed code fetches, bytes.
pub const CODE_FETCH_BYTES: usize = 4 << 20;
/// Longest delay of a timer in sandboxed code, milliseconds; `isolate/web/timers.js` refuses more.
pub const CODE_TIMER_MS: f64 = 600_000.0;

/// Diagnostics of a run.
pub const DIAGNOSTICS: usize = 64;
/// All diagnostics of a run together, as JSON.
pub const DIAGNOSTICS_BYTES: usize = 16 << 10;
/// Message of one diagnostic.
pub const DIAGNOSTIC_MESSAGE_BYTES: usize = 512;
/// Entries of a run's trace.
pub const TRACE_ENTRIES: u32 = 2_000;
/// Entries that code may add to the trace of one run.
pub const TRACE_OF_CODE: u32 = 100;
/// Data of such an entry, bytes of JSON.
pub const TRACE_DATA_BYTES: usize = 8 << 10;
/// Kind of such an entry, characters.
pub const TRACE_KIND_CHARS: usize = 64;
/// Runs on a page when the request names no limit; it may name a larger one.
pub const RUNS_DEFAULT: u32 = 20;

/// Chunks of a memory.
pub const MEMORY_CHUNKS: usize = 50_000;
/// Smallest chunk, characters.
pub const CHUNK_CHARS_MIN: usize = 100;
/// Largest chunk, characters.
pub const CHUNK_CHARS_MAX: usize = 4_000;
/// Most results of a search.
pub const RECALL_TOP_K_MAX: usize = 20;
/// Results of a search by a model that names no number.
pub const SEARCH_TOP_K: usize = 5;
/// Most tokens of recalled text in a request.
pub const RECALL_TOKENS_MAX: usize = 16_000;
/// Characters of a turn's messages that are used as a query.
pub const RECALL_QUERY_CHARS: usize = 2_000;
/// Candidates from each side of a search, per result.
pub const CANDIDATES: usize = 4;
/// Time limit of a search that a run waits for, milliseconds.
pub const MEMORY_SEARCH_MS: u64 = 5_000;
/// Log rows of a shared memory.
pub const MEMORY_LOG_ROWS: i64 = 10_000;
/// A query, bytes.
pub const MEMORY_QUERY_BYTES: usize = 4 << 10;
/// Words of a query that are searched; for scripts without spaces, twice as many pairs of letters.
pub const MEMORY_QUERY_WORDS: usize = 32;
/// Text of a document in a request, bytes.
pub const DOCUMENT_BYTES: usize = 1 << 20;
/// A file that becomes a document, bytes: it is in memory several times while its text is extracted.
pub const DOCUMENT_FILE_BYTES: usize = 8 << 20;
/// A request with a document, bytes of JSON.
pub const DOCUMENT_REQUEST_BYTES: usize = 4 << 20;
/// Text of a document in one row that waits to be chunked, bytes.
pub const DOCUMENT_PIECE_BYTES: usize = 64 << 10;
/// Text of a message that a memory ingests, bytes; escaped, it must fit into one row of the outbox.
pub const MEMORY_MESSAGE_BYTES: usize = 256 << 10;
/// Messages that one step of a memory's work ingests.
pub const MEMORY_MESSAGES: usize = 64;
/// Outbox entries for a memory above which no more messages are ingested for it.
pub const MEMORY_OUTBOX_ENTRIES: i64 = 256;
/// File patterns that a memory ingests.
pub const MEMORY_PATTERNS: usize = 32;
/// Files that one step of a memory's work checks.
pub const MEMORY_PATHS: usize = 500;
/// Changed files of a transition that are noted one by one.
pub const CHANGED_FILES: usize = 256;
/// Pieces of text that one step of indexing chunks.
pub const INDEX_BATCH: usize = 64;
/// Time that a memory remembers an outbox entry, in case it is delivered again.
pub const MEMORY_APPLIED_US: i64 = 30 * 24 * 3_600 * SECOND_US;
/// Attempts at embeddings, about a day's, after which a document stays without until something changes.
pub const EMBEDDING_ATTEMPTS: u32 = 30;
/// Most dimensions of an embedding.
pub const EMBEDDING_DIMENSIONS: usize = 4_096;
/// Default number of texts in a request for embeddings.
pub const EMBEDDING_BATCH: usize = 64;
/// Most texts in a request for embeddings.
pub const EMBEDDING_BATCH_MAX: usize = 512;
/// A response with embeddings, bytes.
pub const EMBEDDING_ANSWER_BYTES: usize = 24 << 20;
/// A note, bytes.
pub const NOTE_BYTES: usize = 8 << 10;
/// Tags of a document.
pub const MEMORY_TAGS: usize = 16;
/// Characters of a tag.
pub const MEMORY_TAG_CHARS: usize = 64;
/// Characters of a document's key, title or URL.
pub const DOCUMENT_NAME_CHARS: usize = 1_000;
/// Lines of a scratchpad.
pub const SCRATCHPAD_ITEMS: usize = 32;
/// Characters of one scratchpad line.
pub const SCRATCHPAD_CHARS: usize = 240;
/// All lines of a scratchpad together, bytes.
pub const SCRATCHPAD_BYTES: usize = 8 << 10;
