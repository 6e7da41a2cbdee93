//! The tables of a thread, each as its own file makes it. A new thread gets them as they are today; one that an older
//! version has written is brought there by [`MIGRATIONS`], forward only, in one transaction when it wakes. Few indexes on
//! purpose: each is a written row on every insert.

use crate::error::{Error, Result};
use crate::host::Sql;
use crate::store::table::Table;
use crate::store::{
    bodies, children, chunks, effects, env, file_texts, files, idempotency, jobs, logs, mcp, memory,
    messages, meta, objects, outbox, receipts, runs, summaries, values, waits, works,
};

/// All but `meta`, which says that the thread exists, and those that are made once they are needed: the index over texts, the
/// waits, the jobs, the summaries, the work that a collector is told of, what is kept of MCP servers and memories, with their first row.
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

/// What leads from each version to the next; the first entry leads from 1 to 2. Whatever one does, a new table has to
/// come to the same.
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

/// Drops every table: the thread is gone. Of one whose place may have another one later ([`super::lives`]) that is noted in the same
/// transaction, by the caller.
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
        &works::TABLE,
        &mcp::TABLE,
        &meta::TABLE,
    ]);
    tables.into_iter().try_for_each(|table| sql.run(table.drop, &[]))
}
