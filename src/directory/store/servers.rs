//! The table `servers`, only in the root: health of MCP servers, one row each. It is created with the first
//! row.

use std::ops::ControlFlow;

use crate::directory::text_at;
use crate::error::{Error, Result};
use crate::host::{Cell, Sql};
use crate::request::directory_call::{McpError, McpKnown, McpReport};
use crate::store::table::{Table, is_missing};

pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS servers (
        name TEXT PRIMARY KEY, success_us INTEGER, failure_us INTEGER, code TEXT, message TEXT,
        listed_us INTEGER, listed TEXT) WITHOUT ROWID"],
    drop: "DROP TABLE IF EXISTS servers",
};

/// Stores the result of a request, unless a newer one of its kind is known. Runs inside the caller's
/// transaction.
pub(crate) fn put(sql: &dyn Sql, report: &McpReport) -> Result<()> {
    TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))?;
    if let Some(error) = &report.error {
        return sql.run(
            "INSERT INTO servers (name, failure_us, code, message) VALUES (?, ?, ?, ?)
             ON CONFLICT (name) DO UPDATE SET
                failure_us = excluded.failure_us, code = excluded.code, message = excluded.message
             WHERE ifnull(failure_us, 0) <= excluded.failure_us",
            &[(&report.server).into(), report.at_us.into(), (&error.code).into(), (&error.message).into()],
        );
    }
    sql.run(
        "INSERT INTO servers (name, success_us) VALUES (?, ?)
         ON CONFLICT (name) DO UPDATE SET success_us = max(ifnull(success_us, 0), excluded.success_us)",
        &[(&report.server).into(), report.at_us.into()],
    )?;
    let Some(listed) = &report.listed else { return Ok(()) };
    let listed = serde_json::to_string(listed).map_err(Error::internal)?;
    sql.run(
        "UPDATE servers SET listed_us = ?2, listed = ?3 WHERE name = ?1 AND ifnull(listed_us, 0) <= ?2",
        &[(&report.server).into(), report.at_us.into(), (&listed).into()],
    )
}

/// Passes the health of each server to `each`, by name.
pub(crate) fn each(sql: &dyn Sql, each: &mut dyn FnMut(McpKnown)) -> Result<()> {
    let read = sql.each(
        "SELECT name, success_us, failure_us, code, message, listed FROM servers ORDER BY name",
        &[],
        &mut |row| {
            let text = |column| text_at(row, column).map(str::to_owned);
            let time = |column: usize| row.get(column).and_then(Cell::int);
            each(McpKnown {
                server: text(0).unwrap_or_default(),
                success_us: time(1),
                failure_us: time(2),
                error: text(3).map(|code| McpError { code, message: text(4).unwrap_or_default() }),
                listed: text(5).and_then(|listed| crate::json::from_str(&listed).ok()),
            });
            Ok(ControlFlow::Continue(()))
        },
    );
    match read {
        Err(error) if !is_missing(&error) => Err(error),
        _ => Ok(()),
    }
}
