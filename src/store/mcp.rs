//! The table `mcp`: data of the thread about MCP servers, one row each. It is created with the first row; a
//! thread needs none if it calls no server or only stateless ones.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::host::{Cell, Param, Sql};
use crate::store::table::{Table, is_missing};

/// `principal`: a hash of the server's URL and headers; a session is valid for one principal.
/// `session`: JSON, sealed if the deployment has keys. `list`: the tools listed for `listed_for`, as a JSON
/// array. It is valid until `until_us` and, regardless of the time, in the run `run`. `why`: the reason if
/// listing failed.
pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS mcp (
        server TEXT PRIMARY KEY, principal TEXT, session TEXT, listed_for TEXT, list TEXT, until_us INTEGER, run INTEGER,
        why TEXT)"],
    drop: "DROP TABLE IF EXISTS mcp",
};

/// The session with a server for a principal.
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

/// Stores another session, or none. Runs inside the caller's transaction.
pub(crate) fn set_session(sql: &dyn Sql, server: &str, principal: &str, session: Option<&str>) -> Result<()> {
    TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))?;
    sql.run(
        "INSERT INTO mcp (server, principal, session) VALUES (?, ?, ?)
         ON CONFLICT (server) DO UPDATE SET principal = excluded.principal, session = excluded.session",
        &[Param::Text(server), Param::Text(principal), session.into()],
    )
}

/// The tool list of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct List {
    /// Its principal; empty if that is unknown.
    pub(crate) principal: String,
    /// The tools, as a JSON array; `None` if they were never listed for this principal.
    pub(crate) tools: Option<String>,
    /// End of its validity for new runs, microseconds since 1970.
    pub(crate) until_us: i64,
    /// The run in which it is valid in any case.
    pub(crate) run: i64,
    /// The reason of the last failure.
    pub(crate) why: Option<String>,
}

/// Passes the list of each server to `each`.
pub(crate) fn lists(sql: &dyn Sql, each: &mut dyn FnMut(String, List)) -> Result<()> {
    let read = sql.each(
        "SELECT server, listed_for, list, until_us, run, why FROM mcp WHERE listed_for IS NOT NULL",
        &[],
        &mut |cells| {
            let text = |column: usize| cells.get(column).and_then(Cell::text).map(str::to_owned);
            let number = |column: usize| cells.get(column).and_then(Cell::int).unwrap_or_default();
            let list = List {
                principal: text(1).unwrap_or_default(),
                tools: text(2),
                until_us: number(3),
                run: number(4),
                why: text(5),
            };
            each(text(0).unwrap_or_default(), list);
            Ok(ControlFlow::Continue(()))
        },
    );
    match read {
        Err(error) if !is_missing(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Stores a new list, or a longer validity. Runs inside the caller's transaction.
pub(crate) fn set_list(sql: &dyn Sql, server: &str, list: &List) -> Result<()> {
    TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))?;
    sql.run(
        "INSERT INTO mcp (server, listed_for, list, until_us, run, why) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (server) DO UPDATE SET listed_for = excluded.listed_for, list = excluded.list,
            until_us = excluded.until_us, run = excluded.run, why = excluded.why",
        &[
            Param::Text(server),
            Param::Text(&list.principal),
            list.tools.as_deref().into(),
            Param::Int(list.until_us),
            Param::Int(list.run),
            list.why.as_deref().into(),
        ],
    )
}
