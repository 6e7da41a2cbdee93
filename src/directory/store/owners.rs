//! The table `owners`, of the root alone: how many threads each owner has. The key is the name of the owner's directory,
//! which tells an owner from none.

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
pub(crate) const ADD_CHANGED: &str = "ALTER TABLE owners ADD COLUMN changed_us INTEGER NOT NULL DEFAULT 0";
/// For lists of the owners whose threads changed last.
pub(crate) const BY_CHANGE: &str = "CREATE INDEX owners_by_change ON owners (changed_us) WHERE threads > 0";

/// Writes how many threads an owner has since `now` (microseconds since 1970), unless something newer is known.
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

/// How many owners have threads.
pub(crate) fn count(sql: &dyn Sql) -> Result<i64> {
    Ok(integer(sql, "SELECT count(*) FROM owners WHERE threads > 0", &[])?.unwrap_or(0))
}

/// Takes an owner and how many threads it has.
pub(crate) type EachOwner<'a> = dyn FnMut(Option<&str>, i64) -> Result<ControlFlow<()>> + 'a;

/// Owners that have threads and how many, in this order, until `each` breaks.
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
