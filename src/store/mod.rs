//! The tables of a thread, one file or folder each: the row, its enums, its `CREATE TABLE`, its statements.
//! No other file names the table; `npm test` checks that.
//!
//! * Identity and data: `meta`, `state` (the cache in memory), `calibration` (of the token estimate),
//!   `parent`, `generations`, `fork`, `children`, `values`, `env`, `mcp`.
//! * Messages and runs: `messages`, `window` (the newest messages, in memory), `summaries` (of older
//!   messages), `side`, `runs`, `receipts` (the table `calls`) with `opening`, `effects` with `repeat`,
//!   `jobs`, `idempotency`.
//! * Questions to people: `waits`. Budgets: `amounts`, `budget_policy`, `grants` (allocations to subagents),
//!   `thread_budget`.
//! * Logs and delivery: `log_record`, `logs`, `bodies`, `outbox`, `detached_work` (until a collector has its
//!   span).
//! * Files: `files`, `chunks`, `objects`, `file_texts`, `file_path`, `file_record`, `attachment`,
//!   `base64_text`.
//! * Memories: `memory`; `changes` notes what they have to ingest.
//! * `schema`: all tables. `table`: the declaration of one.

mod amounts;
pub(crate) mod attachment;
pub(crate) mod base64_text;
pub(crate) mod bodies;
mod budget_policy;
mod calibration;
pub(crate) mod changes;
pub(crate) mod children;
pub(crate) mod chunks;
pub(crate) mod detached_work;
pub(crate) mod effects;
pub(crate) mod env;
pub(crate) mod file_path;
pub(crate) mod file_record;
pub(crate) mod file_texts;
pub(crate) mod files;
pub(crate) mod fork;
pub(crate) mod generations;
pub(crate) mod grants;
pub(crate) mod idempotency;
pub(crate) mod jobs;
pub(crate) mod log_record;
pub(crate) mod logs;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod messages;
pub(crate) mod meta;
pub(crate) mod objects;
pub(crate) mod opening;
pub(crate) mod outbox;
pub(crate) mod parent;
pub(crate) mod receipts;
pub(crate) mod repeat;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod side;
pub(crate) mod state;
pub(crate) mod summaries;
pub(crate) mod table;
pub(crate) mod thread_budget;
pub(crate) mod values;
pub(crate) mod waits;
pub(crate) mod window;
