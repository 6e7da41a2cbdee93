//! Every constant of the runtime, named once. Times are microseconds unless the name says otherwise, sizes are bytes.

/// One second in microseconds.
pub const SECOND_US: i64 = 1_000_000;
/// One day in microseconds.
pub const DAY_US: i64 = 24 * 3600 * SECOND_US;

/// Body of any request but a message post or a file.
pub const REQUEST_BYTES: usize = 4 << 20;
/// What a WebSocket is sent at most without an answered `ping`; one that is sent more is closed.
pub const SOCKET_UNANSWERED_BYTES: u32 = 8 << 20;
/// What the open WebSockets of a thread are sent so, together; the one with the most is closed.
pub const SOCKETS_UNANSWERED_BYTES: u32 = 24 << 20;
/// What closed WebSockets of a thread, whose clients have not taken it, may hold; above it no new one is opened.
pub const SOCKETS_LEFT_BYTES: u32 = 16 << 20;
/// How much more a WebSocket is sent before it is looked at again.
pub const SOCKET_LOOK_BYTES: u32 = 1 << 20;
/// A request is given up when so long, in seconds, neither 64 KB more of its body came nor the end (`worker/bodies.js`).
pub const BODY_SILENCE_S: u32 = 30;
/// Body of `POST …/messages`.
pub const MESSAGE_REQUEST_BYTES: usize = 12 << 20;
/// `history` of a new thread, altogether.
pub const HISTORY_BYTES: usize = 4 << 20;
/// The highest number of a message that is copied from another deployment.
pub const COPIED_SEQ: i64 = 1 << 40;
/// The longest time after which a thread may delete itself, seconds.
pub const EXPIRE_S: i64 = 365 * 24 * 3_600;
/// After this a thread tries again to delete itself that could not.
pub const EXPIRE_AGAIN_US: i64 = 600 * SECOND_US;
/// `content` of one message.
pub const CONTENT_BYTES: usize = 1 << 20;
/// `metadata` of one message, and `tags` or `properties` of a thread, as JSON.
pub const METADATA_BYTES: usize = 64 << 10;
/// Arrays and objects within each other, in JSON that is stored; the parser reads 128 levels, and an answer has some around a value.
pub const JSON_DEPTH: usize = 100;
/// Rows of a page when the request does not say.
pub const PAGE_DEFAULT: u32 = 100;
/// Rows of a page at most.
pub const PAGE_MAX: u32 = 500;
/// Rows of a page together, as JSON, unless one alone has more. It crosses as one message of at most 32 MiB, in which a
/// character may take two bytes; and many readers at once are to fit into an isolate of 128 MB.
pub const PAGE_BYTES: usize = 1 << 20;
/// A list that has no pages, as JSON: beyond it, it is refused.
pub const LIST_BYTES: usize = 12 << 20;
/// Rows of a snapshot on a stream.
pub const SNAPSHOT_ROWS: u32 = 100;
/// Rows of a snapshot together, as JSON, unless one alone has more: it is one message of a WebSocket.
pub const SNAPSHOT_BYTES: usize = 512 << 10;
/// Rows a resuming stream is sent one by one; beyond it gets a snapshot.
pub const RESUME_ROWS: u32 = 500;
/// Messages that wait for a run.
pub const QUEUE_MESSAGES: u32 = 1_000;

/// Arguments of a call that code queues, as JSON.
pub const QUEUED_ARGS_BYTES: usize = 1_000_000;
/// Arguments of a call that code makes and waits for, as JSON; its receipt keeps them with the result.
pub const INVOKED_ARGS_BYTES: usize = 100_000;
/// Receipts after which the mark that says where calls apart from any run may be open is moved (`thread/apart`).
pub const DETACHED_SPAN: i64 = 1_000;
/// Calls within calls: prompts that call prompts, tools that call tools.
pub const CALL_DEPTH: u32 = 8;

/// Steps of one run, whatever `maxSteps` says (spec §21). A larger `maxSteps` is a catalog error.
pub const RUN_STEPS: u32 = 250;
/// Text of an error in a line on the server's terminal.
pub const OPERATOR_ERROR_BYTES: usize = 500;
/// Failures that are remembered within a run, so that none is told twice there.
pub const OPERATOR_FAILURES: usize = 64;
/// Text of an error of a tool that the log keeps.
pub const LOGGED_ERROR_BYTES: usize = 1 << 10;
/// Where it happened, as the tool says.
pub const LOGGED_STACK_BYTES: usize = 4 << 10;
/// Identical tool errors in a row that stop a run (spec §19).
pub const REPEATED_ERRORS: u32 = 8;
/// Sequence numbers that a step reserves: its reply and up to 256 results.
pub const BLOCK: i64 = 257;
/// Tool calls in one reply; one with more is refused whole.
pub const CALLS_PER_REPLY: usize = 256;
/// Attempts at one model before the next fallback.
pub const MODEL_ATTEMPTS: u32 = 2;
/// Attempts that a policy may ask for, the first one included.
pub const ATTEMPTS_MAX: u32 = 10;
/// Attempts at all models of a step together.
pub const ATTEMPTS_STEP: u32 = 20;
/// The longest pause between attempts that a policy may ask for, milliseconds.
pub const BACKOFF_MAX_MS: u64 = 86_400_000;
/// The longest `timeoutMs` of one attempt that a policy may ask for, milliseconds.
pub const ATTEMPT_MAX_MS: u64 = 3_600_000;
/// Base of the backoff between attempts; doubled each time, with full jitter.
pub const BACKOFF_US: i64 = SECOND_US;
/// The longest `Retry-After` that is honoured, and the longest pause that is waited for within the object.
pub const RETRY_AFTER_MAX_US: i64 = 60 * SECOND_US;
/// Between two lines that say that a tool is still at work, while somebody listens.
pub const HEARTBEAT_US: i64 = 5 * SECOND_US;
/// Characters of a line that says what a run does.
pub const PROGRESS_CHARS: usize = 200;
/// A longer pause before an attempt parks the run, where its policy says so.
pub const PARK_ABOVE_US: i64 = 30 * SECOND_US;
/// Wait for the first chunk of a model's answer that carries payload.
pub const FIRST_CHUNK_US: i64 = 120 * SECOND_US;
/// Silence in the middle of a model's answer; comments, which keep a connection open, are silence.
pub const STALL_US: i64 = 45 * SECOND_US;
/// Events that carry nothing, such as the `ping` of a provider that makes a long argument: after so long they are silence, too.
pub const IDLE_EVENTS_US: i64 = 300 * SECOND_US;
/// Reasoning alone: after so long without a text or a call the attempt has failed, unless its policy allows it a longer time.
pub const REASONING_US: i64 = 1_800 * SECOND_US;
/// Streams of a model that break before they begin, after which its last attempt asks for the answer in one piece.
pub const BROKEN_STREAMS: u32 = 2;
/// Silences of a model that its definition may allow, milliseconds.
pub const SILENCE_MAX_MS: u64 = 900_000;
/// Re-entries of one step after a crash.
pub const RECOVERIES: u32 = 6;
/// Calls that only read, made at the same time: the platform waits for the headers of so many requests at once.
pub const BATCH: usize = 6;
/// Runs of one call of an idempotent tool, first one included.
pub const IDEMPOTENT_RUNS: u32 = 3;
/// Outgoing requests of one event before the flow yields to a fresh alarm (free plan: 50 a request).
pub const OUTGOING_PER_EVENT: u32 = 30;
/// How long an alarm's handler holds for a flow before it hands over to a fresh alarm.
pub const ALARM_HOLD_US: i64 = 14 * 60 * SECOND_US;

/// Time limit of an http tool when it names none.
pub const HTTP_TOOL_US: i64 = 60 * SECOND_US;
/// Time limit of a tool that runs within the object and names none, milliseconds.
pub const NATIVE_MS: u64 = 900_000;
/// The longest `timeoutMs` a tool may name, in milliseconds.
pub const HTTP_TOOL_MAX_MS: u64 = 600_000;
/// Answer of an http tool.
pub const HTTP_TOOL_BYTES: usize = 1 << 20;
/// Answer of an MCP server, with its files.
pub const MCP_ANSWER_BYTES: usize = 8 << 20;
/// How often the task of an MCP server is asked for, where that does not say.
pub const MCP_POLL_US: i64 = 5 * SECOND_US;
/// How seldom it is at most.
pub const MCP_POLL_MAX_US: i64 = 600 * SECOND_US;
/// Times in a row that a task is asked for in vain before its call is given up.
pub const MCP_POLL_MISSES: u32 = 20;
/// Times that an MCP server may ask for input before it answers a call.
pub const MCP_ROUNDS: u32 = 10;
/// Part of a failing http tool's body that the model is told.
pub const HTTP_TOOL_ERROR_BYTES: usize = 1 << 10;
/// Bytes of what the deployment is told of a failure of an MCP server.
pub const MCP_TOLD_BYTES: usize = 500;
/// Bytes of what one MCP server lists while threads run, as far as it may be offered.
pub const MCP_LIST_BYTES: usize = 1 << 20;
/// Tools of one MCP server that a catalog or a live list holds.
pub const MCP_TOOLS: usize = 256;
/// Bytes of the name of an MCP server's tool.
pub const MCP_TOOL_NAME_BYTES: usize = 256;
/// Bytes of an MCP tool's description that models are shown.
pub const MCP_DESCRIPTION_BYTES: usize = 16 << 10;
/// Bytes of the schema of an MCP tool's arguments.
pub const MCP_SCHEMA_BYTES: usize = 64 << 10;
/// Bytes of what an authorization server says at once.
pub const MCP_AUTH_BYTES: usize = 64 << 10;
/// Levels of schemas within it.
pub const MCP_SCHEMA_DEPTH: usize = 32;
/// Part of a tool result that enters the model's context; the row keeps the whole.
pub const RESULT_IN_CONTEXT_BYTES: usize = 32 << 10;
/// Text and tool calls of one reply together; a larger reply is refused whole.
pub const REPLY_BYTES: usize = 1_200_000;
/// Text of a model's reasoning; a reply with more of it is refused whole. That is about a million tokens.
pub const REASONING_BYTES: usize = 4 << 20;
/// What a provider wants back with a reply (thinking, signatures); a larger one is not kept.
pub const PAYLOAD_BYTES: usize = 512 << 10;
/// `max_tokens` of an answer, where the provider asks for it and the model's definition does not say; thinking comes on top. Tokens.
pub const OUTPUT_TOKENS: u64 = 8_192;
/// Tokens of thinking at a level of 100, where the provider counts in tokens.
pub const THINKING_TOKENS: u64 = 32_000;
/// Tokens of thinking that a provider asks for at least.
pub const THINKING_TOKENS_MIN: u64 = 1_024;

/// Tokens of the least answer that is worth a request.
pub const BUDGET_LEAST_OUTPUT: u64 = 256;
/// Tokens that are kept back for the last step of a run whose budget is used up.
pub const BUDGET_FINISH: u64 = 2_000;
/// Tokens that an answer is taken to have at most where its model's definition does not say.
pub const BUDGET_FULL_OUTPUT: u64 = 16_384;
/// Share of what is left of a budget that a subagent is lent.
pub const BUDGET_SHARE: f64 = 0.25;
/// Runs that have ended and whose limits are kept, because subagents work on that they have lent to.
pub const BUDGET_ERRANDS: usize = 32;
/// Share of a limit at which listeners are told.
pub const WARN_AT: f64 = 0.8;

/// Bytes of text per token, where a budget is reckoned: whatever is in doubt counts as more.
pub const BYTES_PER_TOKEN: f64 = 3.0;
/// Factor on the estimate of a request whose end nobody saw: the error of 95 in 100 estimates at most (tests of `tokens`).
pub const BUDGET_LOST_INPUT: f64 = 1.25;
/// Tokens of the window of a model that does not say.
pub const WINDOW_TOKENS: u64 = 48_000;
/// Tokens that an answer may have where the model does not say; a quarter of its window at most.
pub const ANSWER_TOKENS: u64 = 8_192;
/// Tokens of a window that are left free, because requests are only estimated; a quarter of the window at most.
pub const SAFETY_TOKENS: u64 = 1_024;
/// Share of the tokens left for messages from which on a summary is made of the older ones.
pub const TRIGGER_RATIO: f64 = 0.85;
/// Tokens of a summary.
pub const SUMMARY_TOKENS: usize = 1_500;
/// Complete turns that must have come since the last one.
pub const SUMMARY_TURNS: u32 = 6;
/// Share of the room that stays with messages.
pub const SUMMARY_TARGET: f64 = 0.5;
/// Attempts at one in a row, after which none is made for [`SUMMARY_PAUSE_TURNS`].
pub const SUMMARY_FAILURES: u32 = 3;
/// See [`SUMMARY_FAILURES`].
pub const SUMMARY_PAUSE_TURNS: u64 = 10;
/// How often one is made of which a part was changed meanwhile.
pub const SUMMARY_TRIES: u32 = 3;
/// Summaries that are kept.
pub const SUMMARIES: i64 = 10;
/// One request for a summary, altogether.
pub const SUMMARY_US: i64 = 120 * SECOND_US;
/// A step waits for a summary at most.
pub const SUMMARY_WAIT_US: i64 = 60 * SECOND_US;
/// Tokens of messages that are sent at least, however short a provider wants its requests.
pub const LEAST_HISTORY_TOKENS: usize = 100;
/// Tokens that an image is reckoned at.
pub const IMAGE_TOKENS: usize = 1_400;
/// Messages of history at most.
pub const WINDOW_MESSAGES: usize = 400;
/// When history outgrows its budget the cut jumps, so that this share of the budget remains.
pub const WINDOW_KEEP: f64 = 0.6;

/// Description of a skill, characters.
pub const SKILL_DESCRIPTION_CHARS: usize = 1_024;
/// Text of a skill, tokens, as far as they can be told without a tokenizer.
pub const SKILL_TOKENS: usize = 3_000;
/// Texts of the skills that are active at the same time, tokens.
pub const SKILLS_TOKENS: usize = 6_000;
/// A file beside a skill.
pub const SKILL_FILE_BYTES: usize = 256 << 10;
/// The files beside a skill together.
pub const SKILL_FILES_BYTES: usize = 1 << 20;

/// Body of a request to a custom endpoint.
pub const ENDPOINT_REQUEST_BYTES: usize = 4 << 20;
/// Time limit of a custom endpoint that names none, milliseconds.
pub const ENDPOINT_MS: u64 = 60_000;
/// What a provider calls its answer, or the model that gave it: bytes that the log keeps.
pub const RESPONSE_NAME_BYTES: usize = 200;
/// Part of a path that a log row keeps.
pub const LOGGED_PATH_BYTES: usize = 1 << 10;

/// Time limit of a hook, milliseconds (spec §35.15); a definition may name a shorter one.
pub const HOOK_MS: u64 = 30_000;
/// A tool result, as JSON, that is kept on its receipt while hooks work on it or until its turn; a crash loses a larger one.
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
/// Values of variables of a thread, an account or the instance.
pub const ENV_VALUES: usize = 200;
/// All of them together, bytes.
pub const ENV_BYTES: usize = 256 << 10;
/// Pauses between tries to read the values of the account and the instance.
pub const ENV_PAUSES_US: [i64; 2] = [SECOND_US / 10, SECOND_US];

/// Effects of a thread that are still to run.
pub const EFFECTS: u32 = 20_000;
/// The arguments of an effect, as JSON.
pub const EFFECT_ARGS_BYTES: usize = 100_000;
/// Attempts at an effect unless its definition says otherwise.
pub const EFFECT_ATTEMPTS: u32 = 6;
/// Attempts that a definition may ask for.
pub const EFFECT_ATTEMPTS_MAX: u32 = 20;
/// The longest pause between two attempts at an effect.
pub const EFFECT_BACKOFF_MAX_US: i64 = 3_600 * SECOND_US;
/// Time limit of an attempt at a native effect that names none.
pub const EFFECT_NATIVE_MS: u64 = 600_000;
/// The shortest `every` of an effect.
pub const EFFECT_EVERY_MIN_MS: i64 = 1_000;
/// How far ahead an effect may be scheduled, and the longest `every`: ten years.
pub const EFFECT_AHEAD_US: i64 = 3_653 * DAY_US;
/// The earliest and the latest `at` of an effect that is a number: milliseconds since 1970, from 1973 to the year 5138.
pub const EFFECT_AT_MIN_MS: i64 = 100_000_000_000;
/// See [`EFFECT_AT_MIN_MS`].
pub const EFFECT_AT_MAX_MS: i64 = 100_000_000_000_000;
/// A cron expression, bytes.
pub const CRON_BYTES: usize = 256;
/// Effects of a thread that run at the same time. Those of one name take a place only while they hold fewer than are free.
pub const EFFECTS_AT_ONCE: usize = 32;
/// How long a wait may last.
pub const WAIT_MAX_US: i64 = 30 * DAY_US;
/// How long it lasts unless a definition says so.
pub const WAIT_DEFAULT_US: i64 = 7 * DAY_US;
/// The same of a call that the client carries out.
pub const CLIENT_WAIT_US: i64 = 600 * SECOND_US;
/// Bytes of what a wait keeps of what is asked, all of it together: title, reason, arguments, choices, digest. What is larger is not asked.
pub const WAIT_DATA_BYTES: usize = 64 * 1024;
/// Bytes of why a run waits that is tried again by itself.
pub const WAIT_REASON_BYTES: usize = 4 << 10;
/// Waits that one request decides.
pub const WAITS_PER_DECISION: usize = 100;
/// How long a token for one wait may live, seconds.
pub const WAIT_TOKEN_S: u64 = 7 * 24 * 3600;
/// Characters of the name of who decides.
pub const ACTOR_CHARS: usize = 200;
/// Bytes of the reason of a denial, and of an answer in text.
pub const ANSWER_BYTES: usize = 64 * 1024;
/// Effects that are due and are looked at for one that may start.
pub const EFFECTS_LOOKED_AT: i64 = 2_000;
/// The alarm's handler waits in memory for an effect that is due so soon: an alarm would cost a row.
pub const EFFECT_SOON_US: i64 = SECOND_US;
/// How long an effect that has ended is listed.
pub const EFFECT_HISTORY_US: i64 = 30 * DAY_US;
/// Effects that have ended and are listed.
pub const EFFECT_HISTORY: u32 = 20_000;

/// Attachments of a message.
pub const ATTACHMENTS: usize = 20;
/// Attachments that come with a message, together, before base64.
pub const ATTACHMENT_BYTES: usize = 8 << 20;
/// Description of an attachment.
pub const ATTACHMENT_TEXT_BYTES: usize = 4 << 10;
/// Name of an attachment, bytes of UTF-8.
pub const ATTACHMENT_NAME_BYTES: usize = 255;
/// Type of a file (`text/plain`), bytes.
pub const FILE_TYPE_BYTES: usize = 255;
/// An image that a model is shown.
pub const IMAGE_BYTES: usize = 5 << 20;
/// Pixels of a side of an image that a model is shown; providers refuse larger ones.
pub const IMAGE_PIXELS: u32 = 8_000;
/// Images of one request to a model together; earlier ones are told of in words.
pub const IMAGES_BYTES: usize = 8 << 20;
/// Images of one request to a model.
pub const IMAGES: usize = 20;

/// Path of a file, bytes of UTF-8.
pub const FILE_PATH_BYTES: usize = 1_024;
/// One part of a path, bytes of UTF-8.
pub const FILE_NAME_BYTES: usize = 255;
/// Files and directories of a thread.
pub const FILES: u32 = 10_000;
/// One file.
pub const FILE_BYTES: u64 = 5_000_000_000;
/// The thread's database, beyond which no file is written; the platform's own limit is 10 GB.
pub const THREAD_BYTES: i64 = 9_000_000_000;
/// Content that one row holds.
pub const FILE_CHUNK_BYTES: usize = 1_000_000;
/// A file that native code reads or writes as a whole.
pub const FILE_WHOLE_BYTES: usize = 32 << 20;
/// Bytes that code can give another thread at once: a message between two objects has 32 MiB at most, and bytes travel in it as text.
pub const REMOTE_BYTES: usize = 16 << 20;
/// Thumbnail of a file.
pub const THUMBNAIL_BYTES: usize = 256 << 10;
/// Uploads of a thread that are under way.
pub const UPLOADS: usize = 100;
/// Files of more than one chunk that are being written in a thread at the same time.
pub const WRITES: usize = 100;
/// How long an upload may take.
pub const UPLOAD_US: i64 = DAY_US;
/// Chunks of replaced files that one write deletes.
pub const PRUNED_CHUNKS: i64 = 64;
/// Pause between two such deletions, where one follows the other.
pub const PRUNE_PAUSE_US: i64 = 1_000;
/// Objects of a bucket that one call deletes; the platform's own limit is 1,000.
pub const DELETED_OBJECTS: i64 = 1_000;
/// Files that may fail to move to or from the bucket before the rest waits for the next write.
pub const FAILED_MOVES: usize = 3;
/// Pattern of a search in files, bytes of UTF-8.
pub const FILE_PATTERN_BYTES: usize = 1_000;
/// A text file that searches look into.
pub const GREP_FILE_BYTES: u64 = 1 << 20;
/// Text that one search reads.
pub const GREP_SCAN_BYTES: u64 = 64 << 20;
/// Steps of one search by path: characters of paths times words of 64 places that the pattern has.
pub const FIND_STEPS: u64 = 64_000_000;
/// Steps after which a search by path lets others go on.
pub const FIND_SLICE_STEPS: u64 = 4_000_000;
/// Paths after which it does so.
pub const FIND_SLICE_PATHS: usize = 1_000;
/// How long it then waits.
pub const FIND_PAUSE_US: i64 = 1_000;
/// Files of an answer to a search, which is a page of [`PAGE_BYTES`] as well.
pub const FOUND_FILES: u32 = 100;
/// Lines of one file in an answer to a search.
pub const FOUND_LINES: usize = 50;
/// Characters of a line in an answer to a search.
pub const FOUND_LINE_CHARS: usize = 500;

/// How long an idempotency key is remembered.
pub const IDEMPOTENCY_US: i64 = DAY_US;
/// Length of an idempotency key.
pub const IDEMPOTENCY_KEY_BYTES: usize = 255;
/// Characters of the key of a thread.
pub const THREAD_KEY_CHARS: usize = 255;
/// Text of the running attempt that is kept for resuming streams.
pub const PARTIAL_BYTES: usize = 1 << 20;
/// Arguments of a call that a frame repeats, as the model wrote them; longer ones are in the message alone.
pub const FRAME_ARGUMENTS_BYTES: usize = 8 << 10;
/// A thread of one request of a client that names none deletes itself after this, seconds.
pub const EPHEMERAL_S: i64 = 24 * 3_600;
/// So long after a request a client may repeat it without saying by a key that it does. Its own patience is ten minutes.
pub const RESENT_US: i64 = 15 * 60 * SECOND_US;
/// How long a link to a file is good, seconds.
pub const LINK_S: i64 = 3_600;
/// One log row, as JSON.
pub const LOG_ROW_BYTES: usize = 8 << 10;
/// What the log holds of the definitions that a run begins with, as JSON; longer lists are told by their number.
pub const SNAPSHOT_FIELDS_BYTES: usize = 7 << 10;
/// One logged request or response body.
pub const LOG_BODY_BYTES: usize = 256 << 10;
/// How long logged bodies are kept.
pub const LOG_BODY_US: i64 = 7 * DAY_US;
/// Attempts at a job that a thread owes.
pub const JOB_ATTEMPTS: u32 = 6;
/// The pause after its first attempt; after each further one twice as long, at most [`JOB_PAUSE_MAX_US`].
pub const JOB_PAUSE_US: i64 = SECOND_US;
/// See [`JOB_PAUSE_US`].
pub const JOB_PAUSE_MAX_US: i64 = 3_600 * SECOND_US;
/// How long a provider may take to cancel an answer, milliseconds.
pub const CANCEL_MS: u64 = 10_000;
/// Messages that a copy of a thread fetches together, at most.
pub const FORK_MESSAGES: i64 = 256;
/// Bytes of messages or of values after which a page for a copy is full.
pub const FORK_BYTES: usize = 1 << 20;
/// Files that a copy fetches in one attempt of its job.
pub const FORK_FILES: i64 = 8;
/// How often the messages of a copy are fetched anew because one was changed meanwhile.
pub const FORK_RESTARTS: u32 = 16;
/// How long a request waits for a thread that is being copied.
pub const FORK_WAIT_US: i64 = 10 * SECOND_US;
/// How often it looks.
pub const FORK_LOOK_US: i64 = SECOND_US / 20;
/// About the bytes of a row without its texts.
pub const ROW_BYTES: usize = 128;
/// An attempt at a job whose end is not stored after this was lost.
pub const JOB_LOST_US: i64 = 30 * SECOND_US;
/// Spans in one request to a collector.
pub const EXPORT_SPANS: usize = 512;
/// Bytes of one request to a collector.
pub const EXPORT_BYTES: usize = 1 << 20;
/// How long a collector may take for its answer, milliseconds.
pub const EXPORT_MS: u64 = 10_000;
/// Steps of a run after which its spans are exported while it goes on.
pub const EXPORT_STEPS: u32 = 50;
/// Content of a message in a span, bytes.
pub const SPAN_CONTENT_BYTES: usize = 16 << 10;
/// Links of a span.
pub const SPAN_LINKS: usize = 16;
/// Spans that one answer of the API holds.
pub const SPANS_SHOWN: usize = 5_000;

/// Comment that keeps an idle SSE response alive, milliseconds.
pub const SSE_HEARTBEAT_MS: u32 = 15_000;
/// An SSE response ends after this; the client resumes. Milliseconds.
pub const SSE_LIFE_MS: u32 = 600_000;
/// An SSE response ends when its client has taken nothing for so long. Milliseconds.
pub const SSE_PATIENCE_MS: u32 = 30_000;
/// Longest life of a browser token, seconds.
pub const TOKEN_TTL_S: u64 = 3_600;

/// Children of a thread that are not terminated.
pub const CHILDREN: i64 = 1_000;
/// Characters of a subagent's name; of a longer one the rest is left out.
pub const SUBAGENT_NAME_CHARS: usize = 200;
/// Threads that a thread asks at the same time.
pub const CHILDREN_ASKED: usize = 20;
/// Subagents within subagents (spec §35.18).
pub const SUBAGENT_DEPTH: u32 = 8;
/// Bytes of an envelope between threads, as JSON.
pub const LETTER_BYTES: usize = 1_200_000;
/// How long a deletion waits for envelopes that are on their way, microseconds.
pub const LETTER_US: i64 = 10 * SECOND_US;
/// Bytes of what a child reports.
pub const REPORT_BYTES: usize = 256 << 10;
/// How long a parent waits for a child, and a child for its variables, microseconds.
pub const WAIT_US: i64 = 7 * DAY_US;
/// Workers that a prompt may let a thread have at the same time, at most.
pub const WORKERS: u32 = 100;
/// Characters of a worker's id.
pub const WORKER_ID_CHARS: usize = 64;
/// Bytes of what a worker came to, as its parent keeps it; longer texts are cut.
pub const OUTCOME_BYTES: usize = 64 << 10;
/// Bytes of all outcomes in one answer: each has its part of them.
pub const OUTCOMES_BYTES: usize = 512 << 10;
/// After this a child that is waited for is asked how it is; each time twice as long, at most [`CHECK_MAX_US`].
pub const CHECK_US: i64 = 60 * SECOND_US;
/// Pauses between tries to tell a parent that its child is deleted.
pub const TELL_PAUSES_US: [i64; 2] = [SECOND_US / 10, SECOND_US];
/// See [`CHECK_US`].
pub const CHECK_MAX_US: i64 = 3_600 * SECOND_US;

/// Heap of sandboxed code, bytes, unless given.
pub const CODE_MEMORY_BYTES: u64 = 16 << 20;
/// A value that crosses between a thread and its sandboxed code, bytes, written out: what is used twice counts twice. All
/// threads of a process share 128 MB, and a value is there several times on its way.
pub const CODE_VALUE_BYTES: usize = 8 << 20;
/// What each part of such a value counts besides its text, bytes.
pub const CODE_PART_BYTES: usize = 16;
/// Contents of the binary values in such a value, bytes.
pub const CODE_RAW_BYTES: usize = 24 << 20;
/// Arguments of calls that one run has under way, bytes, counted like those of a value; and answers that it has not taken yet.
pub const CODE_CALLS_BYTES: usize = 16 << 20;
/// How long sandboxed code that was told to end may take for its last words, microseconds.
pub const CODE_END_US: i64 = 45_000;
/// Body of an answer that sandboxed code fetches, bytes.
pub const CODE_FETCH_BYTES: usize = 4 << 20;
/// How long a timer of sandboxed code may wait, milliseconds; isolate/web/timers.js refuses more.
pub const CODE_TIMER_MS: f64 = 600_000.0;

/// Entries about what is wrong with a run.
pub const DIAGNOSTICS: usize = 64;
/// Their bytes together, as JSON.
pub const DIAGNOSTICS_BYTES: usize = 16 << 10;
/// The text of one.
pub const DIAGNOSTIC_MESSAGE_BYTES: usize = 512;
/// Entries of a run's trace.
pub const TRACE_ENTRIES: u32 = 2_000;
/// Entries that code adds to the trace of one run.
pub const TRACE_OF_CODE: u32 = 100;
/// Data of such an entry, bytes of JSON.
pub const TRACE_DATA_BYTES: usize = 8 << 10;
/// Characters of the kind of such an entry.
pub const TRACE_KIND_CHARS: usize = 64;
/// Runs of a page, unless fewer are asked for; more may be.
pub const RUNS_DEFAULT: u32 = 20;

/// Chunks of a memory at most.
pub const MEMORY_CHUNKS: usize = 50_000;
/// Characters of a chunk, at least.
pub const CHUNK_CHARS_MIN: usize = 100;
/// Characters of a chunk, at most.
pub const CHUNK_CHARS_MAX: usize = 4_000;
/// Results of a search at most.
pub const RECALL_TOP_K_MAX: usize = 20;
/// Results of a search by a model, unless it says.
pub const SEARCH_TOP_K: usize = 5;
/// Tokens of what is put before a model, at most.
pub const RECALL_TOKENS_MAX: usize = 16_000;
/// Characters of a turn's messages that are looked for.
pub const RECALL_QUERY_CHARS: usize = 2_000;
/// Candidates from each side of a search, for each result.
pub const CANDIDATES: usize = 4;
/// How long a search may take that a run waits for, milliseconds.
pub const MEMORY_SEARCH_MS: u64 = 5_000;
/// Rows that the log of a memory keeps which threads share.
pub const MEMORY_LOG_ROWS: i64 = 10_000;
/// A question, bytes.
pub const MEMORY_QUERY_BYTES: usize = 4 << 10;
/// Words of a question that are looked for, of a script without blanks twice as many pairs of letters.
pub const MEMORY_QUERY_WORDS: usize = 32;
/// Text of a document in a request, bytes.
pub const DOCUMENT_BYTES: usize = 1 << 20;
/// A file that becomes a document, bytes: it is in memory several times while its text is taken out.
pub const DOCUMENT_FILE_BYTES: usize = 8 << 20;
/// A request with a document, bytes of JSON.
pub const DOCUMENT_REQUEST_BYTES: usize = 4 << 20;
/// Text of a document that waits to be cut, bytes of a row.
pub const DOCUMENT_PIECE_BYTES: usize = 64 << 10;
/// Text of a message that a memory takes in, bytes: it is sent as a letter, which has to fit a row however it is escaped.
pub const MEMORY_MESSAGE_BYTES: usize = 256 << 10;
/// Messages that one step of a memory's work takes in.
pub const MEMORY_MESSAGES: usize = 64;
/// Letters to a memory that wait at the same time before no more messages are taken in for it.
pub const MEMORY_LETTERS: i64 = 256;
/// Patterns of files that a memory takes in.
pub const MEMORY_PATTERNS: usize = 32;
/// Files that one step of a memory's work looks through.
pub const MEMORY_PATHS: usize = 500;
/// Changed files of a transition that are told one by one.
pub const CHANGED_FILES: usize = 256;
/// Pieces of texts that one step of the work of indexing cuts.
pub const INDEX_BATCH: usize = 64;
/// A letter to a memory is remembered so long after it was taken, should it come again.
pub const MEMORY_LETTERS_US: i64 = 30 * 24 * 3_600 * SECOND_US;
/// Attempts at vectors, about a day's, after which a document stays without until there is a new reason.
pub const EMBEDDING_ATTEMPTS: u32 = 30;
/// Numbers of a vector at most.
pub const EMBEDDING_DIMENSIONS: usize = 4_096;
/// Texts of a request for vectors, unless given.
pub const EMBEDDING_BATCH: usize = 64;
/// Texts of a request for vectors at most.
pub const EMBEDDING_BATCH_MAX: usize = 512;
/// An answer with vectors, bytes.
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
/// Characters of one of them.
pub const SCRATCHPAD_CHARS: usize = 240;
/// All of them, bytes.
pub const SCRATCHPAD_BYTES: usize = 8 << 10;
