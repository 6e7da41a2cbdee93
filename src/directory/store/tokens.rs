//! The table `mcp_tokens`: tokens for MCP servers, sealed by their threads. It is created with the first row.

use crate::directory::{int_at, text_at};
use crate::error::Result;
use crate::host::{Param, Sql};
use crate::store::table::{Table, is_missing};

/// `name`: `<thread, or nothing>/<purpose>`. `holder`: the thread that renews the token, until `until_us`.
const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS mcp_tokens (
        name TEXT PRIMARY KEY, version INTEGER NOT NULL, token TEXT, holder TEXT, until_us INTEGER NOT NULL) WITHOUT ROWID"],
    drop: "DROP TABLE IF EXISTS mcp_tokens",
};

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// Grows with each token.
    pub(crate) version: i64,
    pub(crate) token: Option<String>,
    pub(crate) holder: Option<String>,
    pub(crate) until_us: i64,
}

/// The row of a name; an empty one if there is none.
pub(crate) fn read(sql: &dyn Sql, name: &str) -> Result<Row> {
    let mut found = Row::default();
    let read = sql.each(
        "SELECT version, token, holder, until_us FROM mcp_tokens WHERE name = ?",
        &[Param::Text(name)],
        &mut |row| {
            let text = |column| text_at(row, column).map(str::to_owned);
            found =
                Row { version: int_at(row, 0)?, token: text(1), holder: text(2), until_us: int_at(row, 3)? };
            Ok(std::ops::ControlFlow::Break(()))
        },
    );
    match read {
        Err(error) if !is_missing(&error) => Err(error),
        _ => Ok(found),
    }
}

/// Writes the row of a name. Runs inside the caller's transaction.
pub(crate) fn write(sql: &dyn Sql, name: &str, row: &Row) -> Result<()> {
    TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))?;
    sql.run(
        "INSERT INTO mcp_tokens (name, version, token, holder, until_us) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (name) DO UPDATE SET version = excluded.version, token = excluded.token, holder = excluded.holder,
            until_us = excluded.until_us",
        &[
            Param::Text(name),
            Param::Int(row.version),
            row.token.as_ref().into(),
            row.holder.as_ref().into(),
            Param::Int(row.until_us),
        ],
    )
}

/// Deletes the tokens of a deleted thread.
pub(crate) fn forget_thread(sql: &dyn Sql, thread: &str) -> Result<()> {
    // `0` is the character after `/`.
    let (from, to) = (format!("{thread}/"), format!("{thread}0"));
    let gone = sql
        .run("DELETE FROM mcp_tokens WHERE name >= ? AND name < ?", &[Param::Text(&from), Param::Text(&to)]);
    match gone {
        Err(error) if !is_missing(&error) => Err(error),
        _ => Ok(()),
    }
}
