//! The table `owners`, of the root alone: how many threads each owner has. The key is the name of the owner's directory,
//! which tells an owner from none.

use std::ops::ControlFlow;

use crate::directory::{int_at, text_at};
use crate::error::Result;
use crate::host::{Sql, integer};
use crate::store::table::Table;

pub(crate) const TABLE: Table = Table {
    create: &[
        "CREATE TABLE owners (
        name TEXT PRIMARY KEY, owner TEXT, threads INTEGER NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID",
    ],
    drop: "DROP TABLE owners",
};

/// Writes how many threads an owner has, unless something newer is known.
pub(crate) fn put(sql: &dyn Sql, name: &str, owner: Option<&str>, threads: i64, version: i64) -> Result<()> {
    sql.run(
        "INSERT INTO owners (name, owner, threads, version) VALUES (?, ?, ?, ?)
         ON CONFLICT (name) DO UPDATE SET threads = excluded.threads, version = excluded.version
         WHERE version <= excluded.version",
        &[name.into(), owner.into(), threads.into(), version.into()],
    )
}

/// How many owners have threads.
pub(crate) fn count(sql: &dyn Sql) -> Result<i64> {
    Ok(integer(sql, "SELECT count(*) FROM owners WHERE threads > 0", &[])?.unwrap_or(0))
}

/// Takes an owner and how many threads it has.
pub(crate) type EachOwner<'a> = dyn FnMut(Option<&str>, i64) -> Result<ControlFlow<()>> + 'a;

/// Owners that have threads and how many, by name, as long as `each` goes on.
pub(crate) fn page(sql: &dyn Sql, limit: u32, offset: u32, each: &mut EachOwner<'_>) -> Result<()> {
    sql.each(
        "SELECT owner, threads FROM owners WHERE threads > 0 ORDER BY name LIMIT ? OFFSET ?",
        &[i64::from(limit).into(), i64::from(offset).into()],
        &mut |row| each(text_at(row, 0), int_at(row, 1)?),
    )
}
