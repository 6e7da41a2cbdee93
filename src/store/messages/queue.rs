//! Rows of `messages` that came from outside: those that no drain took in yet, and how far hooks are with them.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Param, Sql};
use crate::store::messages::{Row, columns, read};
use crate::store::side::Side;

/// Rows from outside that no drain took in yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undrained {
    /// The oldest one.
    pub(crate) first: Option<i64>,
    /// The oldest one that starts a run, or is a queued tool.
    pub(crate) opens: Option<i64>,
    /// How many of them start a run.
    pub(crate) waking: u32,
    /// The side that the oldest of these makes act.
    pub(crate) wakes: Option<Side>,
    /// Tools that code has queued.
    pub(crate) tools: i64,
}

/// A queued tool whose step is not closed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    /// Its message; the result has the next seq.
    pub(crate) seq: i64,
    /// Whether the result is stored.
    pub(crate) done: bool,
}

/// How far hooks are with a message from outside, as column `hooked` has it; 0 is not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookStage {
    /// `before_create_message` has run, which is stored with what that made of it.
    Before = 1,
    /// `after_create_message` was told.
    After = 2,
}

/// What is beyond the last block.
pub(crate) fn undrained(sql: &dyn Sql, block: i64) -> Result<Undrained> {
    let mut undrained = Undrained::default();
    sql.each(
        "SELECT min(seq), min(CASE WHEN inbound > 1 THEN seq END), sum(inbound = 2),
            min(CASE WHEN inbound = 2 THEN seq * 2 + (role = 'assistant') END) & 1, sum(inbound = 3)
         FROM messages WHERE seq > ? AND inbound > 0",
        &[Param::Int(block)],
        &mut |cells| {
            if let [first, opens, waking, by_a, tools] = cells {
                undrained = Undrained {
                    first: first.int(),
                    opens: opens.int(),
                    waking: waking.int().and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
                    wakes: by_a.int().map(|by_a| if by_a == 1 { Side::B } else { Side::A }),
                    tools: tools.int().unwrap_or(0),
                };
            }
            Ok(ControlFlow::Break(()))
        },
    )?;
    Ok(undrained)
}

/// The queued tools beyond the last block, in order.
pub(crate) fn tools(sql: &dyn Sql, block: i64) -> Result<Vec<Queued>> {
    let mut tools = Vec::new();
    sql.each(
        "SELECT seq, EXISTS (SELECT 1 FROM messages AS result WHERE result.seq = messages.seq + 1) FROM messages
         WHERE seq > ? AND inbound = 3 ORDER BY seq",
        &[Param::Int(block)],
        &mut |cells| {
            if let [seq, done] = cells {
                tools.push(Queued { seq: seq.int().unwrap_or_default(), done: done.int() == Some(1) });
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(tools)
}

/// Rows that one statement writes at most, and bytes of their texts from which on it takes no more.
const BATCH_ROWS: usize = 500;
const BATCH_BYTES: usize = 256 << 10;

/// Writes rows that have a role, a text and nothing else, and start nothing: many with one statement.
pub(crate) fn insert_stored(sql: &dyn Sql, rows: &[Row]) -> Result<()> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    for row in rows {
        let content = row.content.as_deref().unwrap_or_default();
        // SQLite's JSON does not keep it.
        if content.contains('\0') {
            row.insert(sql)?;
            continue;
        }
        bytes += content.len();
        batch.push((row.seq, row.role.as_str(), content, row.created_us, row.silent));
        if batch.len() == BATCH_ROWS || bytes >= BATCH_BYTES {
            insert_batch(sql, &std::mem::take(&mut batch))?;
            bytes = 0;
        }
    }
    insert_batch(sql, &batch)
}

fn insert_batch(sql: &dyn Sql, rows: &[(i64, &str, &str, i64, bool)]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let rows = serde_json::to_string(rows).map_err(Error::internal)?;
    sql.run(
        "INSERT INTO messages (seq, role, content, created_us, depth, silent, inbound)
         SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, 0, value ->> 4, 1 FROM json_each(?)",
        &[Param::Text(&rows)],
    )
}

/// The queued tools in a range are those of a step that is closed.
pub(crate) fn settle_tools(sql: &dyn Sql, first: i64, last: i64) -> Result<()> {
    sql.run(
        "UPDATE messages SET inbound = 0 WHERE seq >= ? AND seq <= ? AND inbound = 3",
        &[Param::Int(first), Param::Int(last)],
    )
}

/// Hooks are this far with a message.
pub(crate) fn set_hooked(sql: &dyn Sql, seq: i64, stage: HookStage) -> Result<()> {
    let statement = match stage {
        HookStage::Before => "UPDATE messages SET hooked = 1 WHERE seq = ?",
        HookStage::After => "UPDATE messages SET hooked = 2 WHERE seq = ?",
    };
    sql.run(statement, &[Param::Int(seq)])
}

/// The first message from outside in a range with which hooks are not that far.
pub(crate) fn unhooked(sql: &dyn Sql, from: i64, below: i64, stage: HookStage) -> Result<Option<Row>> {
    let rows = read(
        sql,
        concat!(
            "SELECT ",
            columns!(),
            " FROM messages WHERE seq >= ? AND seq < ? AND inbound IN (1, 2) AND hooked < ? ORDER BY seq LIMIT 1"
        ),
        &[Param::Int(from), Param::Int(below), Param::Int(stage as i64)],
    )?;
    Ok(rows.into_iter().next())
}
