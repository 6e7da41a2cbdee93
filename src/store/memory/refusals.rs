//! The table `mem_refusals`: content that memories refused while no run could be informed, kept until the
//! next run. One row for a memory and a reason. Created with its first row.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Param, Sql, integer};
use crate::store::state::State;
use crate::store::table::Table;

/// `n`: the number of refusals. `text`: the reason of the last one.
pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS mem_refusals (
        memory TEXT NOT NULL, code TEXT NOT NULL, n INTEGER NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (memory, code)) WITHOUT ROWID"],
    drop: "DROP TABLE IF EXISTS mem_refusals",
};

/// Refusals by a memory for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) memory: String,
    pub(crate) code: String,
    pub(crate) n: i64,
    pub(crate) text: String,
}

/// Adds a refusal for the next run.
pub(crate) fn add(state: &mut State, sql: &dyn Sql, memory: &str, code: &str, text: &str) -> Result<()> {
    if state.memory_refusals != Some(true) {
        TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))?;
        state.memory_refusals = Some(true);
    }
    sql.run(
        "INSERT INTO mem_refusals (memory, code, n, text) VALUES (?, ?, 1, ?)
         ON CONFLICT DO UPDATE SET n = n + 1, text = excluded.text",
        &[Param::Text(memory), Param::Text(code), Param::Text(text)],
    )
}

/// Removes and returns all refusals.
pub(crate) fn take(state: &mut State, sql: &dyn Sql) -> Result<Vec<Refusal>> {
    let there = *state.memory_refusals.get_or_insert_with(|| {
        let statement = "SELECT 1 FROM sqlite_schema WHERE name = 'mem_refusals'";
        matches!(integer(sql, statement, &[]), Ok(Some(_)))
    });
    let mut found = Vec::new();
    if !there {
        return Ok(found);
    }
    sql.each("SELECT memory, code, n, text FROM mem_refusals ORDER BY memory, code", &[], &mut |cells| {
        let [memory, code, n, text] = cells else {
            return Err(Error::internal("a refusal has the wrong number of columns"));
        };
        let text_of = |cell: &crate::host::Cell| cell.text().unwrap_or_default().to_owned();
        found.push(Refusal {
            memory: text_of(memory),
            code: text_of(code),
            n: n.int().unwrap_or_default(),
            text: text_of(text),
        });
        Ok(ControlFlow::Continue(()))
    })?;
    if !found.is_empty() {
        sql.run("DELETE FROM mem_refusals", &[])?;
    }
    Ok(found)
}
