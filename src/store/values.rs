//! The table `vals`: the values of a thread (spec §18), JSON text by key.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::store::table::Table;

pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE vals (
    key TEXT PRIMARY KEY, value TEXT NOT NULL, updated_us INTEGER NOT NULL) WITHOUT ROWID"],
    drop: "DROP TABLE vals",
};

/// A row of `vals`, without its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueRow {
    /// JSON.
    pub(crate) text: String,
    pub(crate) updated_us: i64,
}

/// Passes the keys from one on to `look`, in byte order, until it breaks.
pub(crate) fn each_key(
    sql: &dyn Sql,
    from: &str,
    mut look: impl FnMut(&str) -> ControlFlow<()>,
) -> Result<()> {
    sql.each("SELECT key FROM vals WHERE key >= ? ORDER BY key", &[Param::Text(from)], &mut |cells| {
        Ok(look(cells.first().and_then(Cell::text).unwrap_or_default()))
    })
}

/// Passes the rows after a key to `look`, in byte order of the keys, until it breaks: key, JSON, time of
/// storage.
pub(crate) fn each_after(
    sql: &dyn Sql,
    after: &str,
    look: &mut dyn FnMut(&str, &str, i64) -> ControlFlow<()>,
) -> Result<()> {
    let statement = "SELECT key, value, updated_us FROM vals WHERE key > ? ORDER BY key";
    sql.each(statement, &[Param::Text(after)], &mut |cells| {
        let [key, value, updated] = cells else {
            return Err(Error::internal("a value has the wrong number of columns"));
        };
        let updated = updated.int().unwrap_or_default();
        Ok(look(key.text().unwrap_or_default(), value.text().unwrap_or_default(), updated))
    })
}

/// The row of a key.
pub(crate) fn find(sql: &dyn Sql, key: &str) -> Result<Option<ValueRow>> {
    let mut found = None;
    sql.each("SELECT value, updated_us FROM vals WHERE key = ?", &[Param::Text(key)], &mut |cells| {
        if let [value, updated] = cells {
            let text = value.text().unwrap_or_default().to_owned();
            found = Some(ValueRow { text, updated_us: updated.int().unwrap_or_default() });
        }
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// The JSON of a key.
pub(crate) fn text(sql: &dyn Sql, key: &str) -> Result<Option<String>> {
    let mut found = None;
    sql.each("SELECT value FROM vals WHERE key = ?", &[Param::Text(key)], &mut |cells| {
        found = cells.first().and_then(Cell::text).map(str::to_owned);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Whether a key has a value.
pub(crate) fn exists(sql: &dyn Sql, key: &str) -> Result<bool> {
    Ok(integer(sql, "SELECT 1 FROM vals WHERE key = ?", &[Param::Text(key)])?.is_some())
}

/// Number of values.
pub(crate) fn count(sql: &dyn Sql) -> Result<i64> {
    Ok(integer(sql, "SELECT count(*) FROM vals", &[])?.unwrap_or(0))
}

/// Stores a value, replacing an earlier one.
pub(crate) fn put(sql: &dyn Sql, key: &str, text: &str, now_us: i64) -> Result<()> {
    sql.run(
        "INSERT INTO vals (key, value, updated_us) VALUES (?, ?, ?)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_us = excluded.updated_us",
        &[Param::Text(key), Param::Text(text), Param::Int(now_us)],
    )
}

/// Deletes the value of a key.
pub(crate) fn delete(sql: &dyn Sql, key: &str) -> Result<()> {
    sql.run("DELETE FROM vals WHERE key = ?", &[Param::Text(key)])
}
