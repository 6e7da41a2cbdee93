//! The tables of a directory. Migrations go forward only, like those of a thread.

use crate::env;
use crate::error::{Error, Result};
use crate::host::Sql;

/// One list of statements per version; version n is the n-th list.
const MIGRATIONS: &[&[&str]] = &[&[
    // One row: counts that the default listing would otherwise have to read all threads for, and how far the root
    // was told of them.
    "CREATE TABLE state (
        id INTEGER PRIMARY KEY CHECK (id = 1), schema INTEGER NOT NULL, owner TEXT,
        threads INTEGER NOT NULL DEFAULT 0, top INTEGER NOT NULL DEFAULT 0, changes INTEGER NOT NULL DEFAULT 0,
        told INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0)",
    // agent_id is NULL before the thread's row arrived (an activity was faster) and after it was deleted; such a row
    // is listed nowhere and in no index.
    "CREATE TABLE threads (
        id TEXT PRIMARY KEY, agent_id TEXT, origin_agent_id TEXT, tags TEXT NOT NULL DEFAULT '[]',
        created_us INTEGER NOT NULL DEFAULT 0, terminated_us INTEGER, parent TEXT, version INTEGER NOT NULL DEFAULT -1,
        executing INTEGER NOT NULL DEFAULT 0, activity_us INTEGER NOT NULL DEFAULT 0, preview TEXT, message_us INTEGER,
        activity_version INTEGER NOT NULL DEFAULT -1, deleted INTEGER NOT NULL DEFAULT 0)",
    "CREATE INDEX threads_by_activity ON threads (activity_us) WHERE agent_id IS NOT NULL",
    "CREATE INDEX threads_by_creation ON threads (created_us) WHERE agent_id IS NOT NULL",
    "CREATE TABLE claims (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, hash TEXT NOT NULL, thread_id TEXT NOT NULL,
        at_us INTEGER NOT NULL)",
    // Of the root alone. The key is the name of the owner's directory, which tells an owner from none.
    "CREATE TABLE owners (
        name TEXT PRIMARY KEY, owner TEXT, threads INTEGER NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID",
], &[
    // Values of the owner or, in the root, of the instance. The version grows with each change.
    env::TABLE,
    "ALTER TABLE state ADD COLUMN env_version INTEGER NOT NULL DEFAULT 0",
]];

/// The version that this code writes.
const VERSION: i64 = MIGRATIONS.len() as i64;

/// Brings the database to [`VERSION`]. Runs inside the caller's transaction.
///
/// # Errors
/// A database newer than this code is refused: it would be written wrongly.
pub(crate) fn migrate(sql: &dyn Sql) -> Result<()> {
    let found = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'state'";
    let version = match crate::directory::int(sql, found, &[])? {
        None => 0,
        Some(_) => crate::directory::int(sql, "SELECT schema FROM state", &[])?.unwrap_or(0),
    };
    if version > VERSION {
        return Err(Error::internal(format!(
            "This directory has schema {version}; this version of Bobbin knows {VERSION}. Deploy the newer version again."
        )));
    }
    for statement in MIGRATIONS.iter().skip(version as usize).copied().flatten() {
        sql.run(statement, &[])?;
    }
    if version < VERSION {
        sql.run(
            "INSERT INTO state (id, schema) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET schema = excluded.schema",
            &[VERSION.into()],
        )?;
    }
    Ok(())
}
