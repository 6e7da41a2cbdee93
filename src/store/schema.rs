//! The tables of a thread, each created by its own file. A new thread gets the current tables. The tables of
//! an older version are migrated by [`MIGRATIONS`], forward only, in one transaction when the thread wakes.
//! There are few indexes on purpose: each costs a written row on every insert.

use crate::error::{Error, Result};
use crate::host::Sql;
use crate::store::table::Table;
use crate::store::{
    bodies, children, chunks, detached_work, effects, env, file_texts, files, idempotency, jobs, logs, mcp,
    memory, messages, meta, objects, outbox, receipts, runs, summaries, values, waits,
};

/// All tables except `meta`, which exists exactly if the thread does, and those created on first use: the
/// full-text index, waits, jobs, summaries, detached work, MCP servers and memories.
const TABLES: [Table; 14] = [
    messages::TABLE,
    runs::TABLE,
    receipts::TABLE,
    logs::TABLE,
    bodies::TABLE,
    outbox::TABLE,
    idempotency::TABLE,
    values::TABLE,
    effects::TABLE,
    files::TABLE,
    chunks::TABLE,
    objects::TABLE,
    env::TABLE,
    children::TABLE,
];

/// The statements from each version to the next; the first entry leads from 1 to 2. The result must equal a
/// new thread's tables.
const MIGRATIONS: &[&[&str]] = &[];

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
    let Some(passed) = usize::try_from(version - 1).ok() else {
        let tables = std::iter::once(&meta::TABLE).chain(&TABLES);
        return tables.flat_map(|table| table.create).try_for_each(|statement| sql.run(statement, &[]));
    };
    if version < VERSION {
        let missing = MIGRATIONS.get(passed..).unwrap_or_default().iter().copied().flatten();
        missing.into_iter().try_for_each(|statement| sql.run(statement, &[]))?;
        meta::set_schema(sql, VERSION)?;
    }
    Ok(())
}

/// Drops every table, because the thread is deleted. If another thread may follow in this object, the caller
/// notes this one in the same transaction ([`super::generations`]).
pub(crate) fn drop_all(sql: &dyn Sql) -> Result<()> {
    if memory::is_there(sql) {
        memory::drop_all(sql)?;
    }
    let tables = TABLES.iter().chain([
        &file_texts::TABLE,
        &waits::TABLE,
        &jobs::TABLE,
        &summaries::TABLE,
        &memory::sources::TABLE,
        &memory::refusals::TABLE,
        &detached_work::TABLE,
        &mcp::TABLE,
        &meta::TABLE,
    ]);
    tables.into_iter().try_for_each(|table| sql.run(table.drop, &[]))
}
