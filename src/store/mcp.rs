//! The table `mcp`: what the thread keeps of MCP servers, one row for each. It is made with the first: a thread that calls none, or
//! only such as need nothing kept, has no such table.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::host::{Cell, Param, Sql};
use crate::store::table::{Table, is_missing};

/// `principal`: a hash of the server's address and of what it is shown; a session counts for no other. `session`: as JSON, sealed
/// where the deployment has keys. `list`: the tools that it listed for `listed_for`, as a JSON array, counting until `until_us` and,
/// however long it takes, in the run `run`; `why` where it could not be listed.
pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS mcp (
        server TEXT PRIMARY KEY, principal TEXT, session TEXT, listed_for TEXT, list TEXT, until_us INTEGER, run INTEGER,
        why TEXT)"],
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

/// What a server listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct List {
    /// For whom; empty where not even that is known.
    pub(crate) principal: String,
    /// The tools, as a JSON array; `None` where it was never listed for this principal.
    pub(crate) tools: Option<String>,
    /// Until when it counts for runs that begin; microseconds since 1970.
    pub(crate) until_us: i64,
    /// The run that it counts for until that ends.
    pub(crate) run: i64,
    /// Why it could not be listed the last time.
    pub(crate) why: Option<String>,
}

/// Takes what each server listed.
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

/// It has listed something else, or the same counts for longer. Runs inside the caller's transaction.
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
