//! The tables of a thread. A new thread gets them as they are today ([`NEW`]); an older one is brought there by
//! [`MIGRATIONS`], forward only, in one transaction when it wakes. Both ways lead to the same tables, which a test
//! holds them to. Few indexes on purpose: each is a written row on every insert.

use crate::env;
use crate::error::{Error, Result};
use crate::host::{Param, Sql};

/// Today's tables.
const NEW: &[&[&str]] = &[CORE, VALUES, EFFECTS, FILES, BUCKET, ENV, CHILDREN];

/// What leads from each version to the next; the first entry leads from 1 to 2.
const MIGRATIONS: &[&[&str]] =
    &[VALUES, EFFECTS, FILES, ATTACHMENTS, BUCKET, SIDES, CALLED, ENVS, REASONING, HOOKS, FAMILY, APART];

const CORE: &[&str] = &[
    // One row: who the thread is, and the few values that outlive runs.
    "CREATE TABLE meta (
        id INTEGER PRIMARY KEY CHECK (id = 1), schema INTEGER NOT NULL, thread_id TEXT NOT NULL, agent TEXT NOT NULL,
        origin_agent TEXT NOT NULL, owner TEXT, tags TEXT NOT NULL, properties TEXT NOT NULL,
        created_us INTEGER NOT NULL, terminated_us INTEGER, stopped INTEGER NOT NULL DEFAULT 0,
        edits INTEGER NOT NULL DEFAULT 0, seq_floor INTEGER NOT NULL DEFAULT 0, window_cut INTEGER NOT NULL DEFAULT 0,
        window_bytes INTEGER, version INTEGER NOT NULL DEFAULT 1,
        env INTEGER NOT NULL DEFAULT 0, created_told INTEGER NOT NULL DEFAULT 1,
        parent TEXT, children INTEGER NOT NULL DEFAULT 0,
        activates INTEGER NOT NULL DEFAULT 0, apart INTEGER NOT NULL DEFAULT 0)",
    // seq orders everything (spec §35.19). Rows with inbound = 2 beyond the last run's block are the queue.
    "CREATE TABLE messages (
        seq INTEGER PRIMARY KEY, role TEXT NOT NULL, content TEXT, name TEXT, tool_calls TEXT, tool_call_id TEXT,
        status TEXT, created_us INTEGER NOT NULL, parent INTEGER, depth INTEGER NOT NULL DEFAULT 0,
        silent INTEGER NOT NULL DEFAULT 0, inbound INTEGER NOT NULL DEFAULT 0, metadata TEXT, attachments TEXT,
        reasoning TEXT, hooked INTEGER NOT NULL DEFAULT 0)",
    // The program counter of the engine. At most the newest row is unfinished.
    "CREATE TABLE runs (
        id INTEGER PRIMARY KEY, phase TEXT NOT NULL, side TEXT NOT NULL, turn_from INTEGER NOT NULL,
        started_us INTEGER NOT NULL, ended_us INTEGER, outcome TEXT, reason TEXT, error TEXT,
        step INTEGER NOT NULL, steps INTEGER NOT NULL, side_steps TEXT NOT NULL, block INTEGER NOT NULL,
        model INTEGER NOT NULL, attempt INTEGER NOT NULL, stream INTEGER NOT NULL, recoveries INTEGER NOT NULL,
        resume_us INTEGER, short_below INTEGER NOT NULL, turns INTEGER NOT NULL DEFAULT 0, asked TEXT, result TEXT)",
    // Receipts: inserted before a tool starts, which makes them the tool log too. id = seq of the result row.
    "CREATE TABLE calls (
        id INTEGER PRIMARY KEY, reply INTEGER NOT NULL, call_id TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
        state TEXT NOT NULL, runs INTEGER NOT NULL, started_us INTEGER NOT NULL, ended_us INTEGER, error TEXT, data TEXT,
        result TEXT)",
    // One row per model attempt and one per stop, recovery, failure and termination (spec §29).
    "CREATE TABLE logs (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, run INTEGER, at_us INTEGER NOT NULL, reply INTEGER,
        retry_of INTEGER, data TEXT NOT NULL)",
    // Request and response bodies, only with BOBBIN_LOG_BODIES=1; pruned on the next write after 7 days.
    "CREATE TABLE bodies (id INTEGER PRIMARY KEY, log INTEGER NOT NULL, at_us INTEGER NOT NULL, kind TEXT NOT NULL,
        text TEXT NOT NULL)",
    // What another object must be told at least once; one row per subject, the newest wins.
    "CREATE TABLE outbox (
        subject TEXT PRIMARY KEY, target TEXT NOT NULL, body TEXT NOT NULL, version INTEGER NOT NULL,
        tries INTEGER NOT NULL, due_us INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE idempotency (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, hash TEXT NOT NULL, seq INTEGER NOT NULL,
        at_us INTEGER NOT NULL)",
];

/// The values of the thread (spec §18): JSON text by key.
const VALUES: &[&str] = &["CREATE TABLE vals (
    key TEXT PRIMARY KEY, value TEXT NOT NULL, updated_us INTEGER NOT NULL) WITHOUT ROWID"];

/// Effects (spec §10). `open`: 0 has ended, 1 waits, 2 is under way; with `at_us` it orders what is due next and what
/// is to be forgotten first.
const EFFECTS: &[&str] = &[
    "CREATE TABLE effects (
        id INTEGER PRIMARY KEY, open INTEGER NOT NULL, status TEXT NOT NULL, at_us INTEGER NOT NULL,
        name TEXT NOT NULL, args TEXT NOT NULL, repeats TEXT, scheduled_us INTEGER NOT NULL,
        created_us INTEGER NOT NULL, occurrence INTEGER NOT NULL, attempts INTEGER NOT NULL, error TEXT,
        of_effect INTEGER, replay_of INTEGER)",
    "CREATE INDEX effects_at ON effects (open, at_us)",
];

/// The files of the thread (spec §16). Ids are never given out twice: they are versions. A row without `parent` has no
/// place in the tree: content that is being written, or that was replaced. The index over texts is made with the first
/// text (`files/search.rs`).
const FILES: &[&str] = &[
    "CREATE TABLE files (
        id INTEGER PRIMARY KEY AUTOINCREMENT, parent TEXT, name TEXT NOT NULL, kind INTEGER NOT NULL,
        mime TEXT NOT NULL, size INTEGER NOT NULL, chunks INTEGER NOT NULL, metadata TEXT, width INTEGER,
        height INTEGER, created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL, search INTEGER NOT NULL,
        UNIQUE (parent, name))",
    // id: the file's, shifted by 20 bits, and the chunk's place.
    "CREATE TABLE chunks (id INTEGER PRIMARY KEY, data BLOB NOT NULL)",
];

/// From 4 to 5. Files that a message shows (spec §16.4): a JSON array.
const ATTACHMENTS: &[&str] = &["ALTER TABLE messages ADD COLUMN attachments TEXT"];

/// Files that the bucket has something of, and how far they are (`files/table.rs`). id: the file's.
const BUCKET: &[&str] = &[
    "CREATE TABLE objects (id INTEGER PRIMARY KEY, storage INTEGER NOT NULL)",
    "CREATE INDEX objects_moving ON objects (storage)",
];

/// From 6 to 7. Turns of the session (spec §21), what code has asked of the run, and what the session came to.
const SIDES: &[&str] = &[
    "ALTER TABLE runs ADD COLUMN turns INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN asked TEXT",
    "ALTER TABLE runs ADD COLUMN result TEXT",
];

/// From 7 to 8. What a receipt keeps besides, as JSON: where an inner step stands, how a hand-off begins, what code called.
const CALLED: &[&str] = &["ALTER TABLE calls ADD COLUMN data TEXT"];

/// Values of variables (spec §11), encrypted. `meta.env` counts them.
const ENV: &[&str] = &[env::TABLE];

/// From 8 to 9.
const ENVS: &[&str] = &[env::TABLE, "ALTER TABLE meta ADD COLUMN env INTEGER NOT NULL DEFAULT 0"];

/// From 9 to 10. What a reply's provider wants back (`replay`): JSON.
const REASONING: &[&str] = &["ALTER TABLE messages ADD COLUMN reasoning TEXT"];

/// From 10 to 11. How far hooks are (`hooks/`): with the new thread, with a message from outside, with a tool's result, which is kept
/// until what they make of it is stored.
const HOOKS: &[&str] = &[
    "ALTER TABLE meta ADD COLUMN created_told INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE messages ADD COLUMN hooked INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE calls ADD COLUMN result TEXT",
];

/// The registry of subagents (spec §8.5). `open`: 0 is terminated, 1 is not; `meta.children` counts the latter.
/// `facts`: what never changes of a child, as JSON.
const CHILDREN_TABLE: &str = "CREATE TABLE children (
    open INTEGER NOT NULL, reference TEXT NOT NULL, state TEXT NOT NULL, status TEXT NOT NULL, agent TEXT NOT NULL,
    facts TEXT NOT NULL, created_us INTEGER NOT NULL, told INTEGER NOT NULL, heard INTEGER NOT NULL, receipt INTEGER,
    asked INTEGER NOT NULL, due_us INTEGER, expires_us INTEGER, checks INTEGER NOT NULL DEFAULT 0, body TEXT,
    PRIMARY KEY (open, reference)) WITHOUT ROWID";

const CHILDREN: &[&str] = &[CHILDREN_TABLE];

/// From 11 to 12. `meta.parent`: what a child knows of its parent, as JSON.
const FAMILY: &[&str] = &[
    CHILDREN_TABLE,
    "ALTER TABLE meta ADD COLUMN parent TEXT",
    "ALTER TABLE meta ADD COLUMN children INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE meta ADD COLUMN activates INTEGER NOT NULL DEFAULT 0",
];

/// From 12 to 13. Calls that were made apart from any run, and that a lost process may have left open: all there are.
const APART: &[&str] = &[
    "ALTER TABLE meta ADD COLUMN apart INTEGER NOT NULL DEFAULT 0",
    "UPDATE meta SET apart = 1 WHERE EXISTS (SELECT 1 FROM calls WHERE state = 'started' AND data IS NOT NULL)",
];

/// The version that this code writes.
pub(crate) const VERSION: i64 = 1 + MIGRATIONS.len() as i64;

/// Brings a database from `version` (0 = empty) to [`VERSION`]. Runs inside the caller's transaction.
///
/// # Errors
/// A database newer than this code is refused: it would be written wrongly.
pub(crate) fn migrate(sql: &dyn Sql, version: i64) -> Result<()> {
    if version > VERSION {
        return Err(Error::internal(format!(
            "This thread has schema {version}; this version of Bobbin knows {VERSION}. Deploy the newer version again."
        )));
    }
    let run = |lists: &[&[&'static str]]| {
        lists.iter().copied().flatten().try_for_each(|statement| sql.run(statement, &[]))
    };
    let Some(passed) = usize::try_from(version - 1).ok() else { return run(NEW) };
    if version < VERSION {
        run(MIGRATIONS.get(passed..).unwrap_or_default())?;
        sql.run("UPDATE meta SET schema = ? WHERE id = 1", &[Param::Int(VERSION)])?;
    }
    Ok(())
}
