//! The table `mcp`: what the thread keeps of MCP servers, one row for each. It is made with the first: a thread that calls none, or
//! only such as need nothing kept, has no such table.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::host::{Cell, Param, Sql};
use crate::store::table::{Table, is_missing};

/// `principal`: a hash of the server's address and of what it is shown; a row counts for no other. `session`: as JSON, sealed where
/// the deployment has keys.
pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS mcp (
        server TEXT PRIMARY KEY, principal TEXT NOT NULL, session TEXT) WITHOUT ROWID"],
    drop: "DROP TABLE IF EXISTS mcp",
};

/// The session with a server, if there is one of this principal.
pub(crate) fn session(sql: &dyn Sql, server: &str, principal: &str) -> Result<Option<String>> {
    let mut found = None;
    let read = sql.each(
        "SELECT session FROM mcp WHERE server = ? AND principal = ?",
        &[Param::Text(server), Param::Text(principal)],
        &mut |cells| {
            found = cells.first().and_then(Cell::text).map(str::to_owned);
            Ok(ControlFlow::Break(()))
        },
    );
    match read {
        Err(error) if !is_missing(&error) => Err(error),
        _ => Ok(found),
    }
}

/// There is another one, or none any more. Runs inside the caller's transaction.
pub(crate) fn set_session(sql: &dyn Sql, server: &str, principal: &str, session: Option<&str>) -> Result<()> {
    TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))?;
    sql.run(
        "INSERT INTO mcp (server, principal, session) VALUES (?, ?, ?)
         ON CONFLICT (server) DO UPDATE SET principal = excluded.principal, session = excluded.session",
        &[Param::Text(server), Param::Text(principal), session.into()],
    )
}
