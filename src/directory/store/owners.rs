//! The table `owners`, only in the root: the number of threads of each owner. The key is the name of the
//! owner's directory, which distinguishes every owner from the absence of one.

use std::ops::ControlFlow;

use crate::directory::{int_at, text_at};
use crate::error::Result;
use crate::host::{Sql, integer};
use crate::request::directory_call::OwnerOrder;
use crate::store::table::Table;

pub(crate) const TABLE: Table = Table {
    create: &[
        "CREATE TABLE owners (
        name TEXT PRIMARY KEY, owner TEXT, threads INTEGER NOT NULL, version INTEGER NOT NULL,
        changed_us INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID",
        BY_CHANGE,
    ],
    drop: "DROP TABLE owners",
};

/// From version 1 of the tables to 2: the time of the last change.
pub(super) const ADD_CHANGED: &str = "ALTER TABLE owners ADD COLUMN changed_us INTEGER NOT NULL DEFAULT 0";
/// For listing the owners whose threads changed last.
pub(super) const BY_CHANGE: &str = "CREATE INDEX owners_by_change ON owners (changed_us) WHERE threads > 0";

/// Writes the number of threads of an owner as of `now` (microseconds since 1970), unless a newer one is
/// known.
pub(crate) fn put(
    sql: &dyn Sql,
    name: &str,
    owner: Option<&str>,
    threads: i64,
    (version, now): (i64, i64),
) -> Result<()> {
    sql.run(
        "INSERT INTO owners (name, owner, threads, version, changed_us) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (name) DO UPDATE SET
            threads = excluded.threads, version = excluded.version, changed_us = excluded.changed_us
         WHERE version <= excluded.version",
        &[name.into(), owner.into(), threads.into(), version.into(), now.into()],
    )
}

/// Number of owners with threads.
pub(crate) fn count(sql: &dyn Sql) -> Result<i64> {
    Ok(integer(sql, "SELECT count(*) FROM owners WHERE threads > 0", &[])?.unwrap_or(0))
}

/// A callback for an owner and its number of threads.
type EachOwner<'a> = dyn FnMut(Option<&str>, i64) -> Result<ControlFlow<()>> + 'a;

/// Passes owners with threads to `each` in this order, until it breaks.
pub(crate) fn page(
    sql: &dyn Sql,
    order: OwnerOrder,
    limit: u32,
    offset: u32,
    each: &mut EachOwner<'_>,
) -> Result<()> {
    sql.each(
        match order {
            OwnerOrder::Name => {
                "SELECT owner, threads FROM owners WHERE threads > 0 ORDER BY name LIMIT ? OFFSET ?"
            }
            OwnerOrder::Changed => {
                "SELECT owner, threads FROM owners WHERE threads > 0
                 ORDER BY changed_us DESC, name LIMIT ? OFFSET ?"
            }
        },
        &[i64::from(limit).into(), i64::from(offset).into()],
        &mut |row| each(text_at(row, 0), int_at(row, 1)?),
    )
}
