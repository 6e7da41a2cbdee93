//! The table `claims`: the threads that idempotency keys have created.

use std::ops::ControlFlow;

use crate::directory::{int_at, text_at};
use crate::error::Result;
use crate::host::Sql;
use crate::store::table::Table;

pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE claims (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, hash TEXT NOT NULL, thread_id TEXT NOT NULL,
        at_us INTEGER NOT NULL)"],
    drop: "DROP TABLE claims",
};

/// The request of a key, and its thread.
pub(crate) struct Claim {
    pub(crate) hash: String,
    pub(crate) thread_id: String,
    pub(crate) at_us: i64,
}

/// The claim of a key.
pub(crate) fn find(sql: &dyn Sql, key: &str) -> Result<Option<Claim>> {
    let mut found = None;
    sql.each("SELECT hash, thread_id, at_us FROM claims WHERE key = ?", &[key.into()], &mut |row| {
        found = Some(Claim {
            hash: text_at(row, 0).unwrap_or_default().to_owned(),
            thread_id: text_at(row, 1).unwrap_or_default().to_owned(),
            at_us: int_at(row, 2)?,
        });
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Deletes up to two claims from before a time without a scan. With two deletions for each new claim, the
/// table cannot outgrow a day's keys.
pub(crate) fn forget_two(sql: &dyn Sql, until_us: i64) -> Result<()> {
    sql.run(
        "DELETE FROM claims WHERE at_us <= ?1 AND id IN (SELECT id FROM claims ORDER BY id LIMIT 2)",
        &[until_us.into()],
    )
}

/// Writes a claim, replacing an older one of the same key.
pub(crate) fn put(sql: &dyn Sql, key: &str, claim: &Claim) -> Result<()> {
    sql.run(
        "INSERT OR REPLACE INTO claims (key, hash, thread_id, at_us) VALUES (?, ?, ?, ?)",
        &[key.into(), (&claim.hash).into(), (&claim.thread_id).into(), claim.at_us.into()],
    )
}
