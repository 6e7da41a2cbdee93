//! Rows of `messages` from outside: the ones that no drain has taken in, and the stage of their hooks.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Param, Sql};
use crate::store::messages::{Row, columns, read};
use crate::store::side::Side;

/// Rows from outside that no drain has taken in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueState {
    /// The oldest.
    pub(crate) first: Option<i64>,
    /// The oldest that starts a run or is a queued tool.
    pub(crate) opens: Option<i64>,
    /// Number of rows that start a run.
    pub(crate) waking: u32,
    /// The side that the oldest of these activates.
    pub(crate) wakes: Option<Side>,
    /// Number of tools that code has queued.
    pub(crate) tools: i64,
}

/// A queued tool whose step is still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedTool {
    /// Seq of its message; the result has the next seq.
    pub(crate) seq: i64,
    /// Whether the result is stored.
    pub(crate) done: bool,
}

/// Stage of the hooks for a message from outside, as in the column `hooked`; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookStage {
    /// `before_create_message` has run, and its changes are stored.
    Before = 1,
    /// `after_create_message` has run.
    After = 2,
}

/// Reads the state of the rows after the last block.
pub(crate) fn undrained(sql: &dyn Sql, block: i64) -> Result<QueueState> {
    let mut undrained = QueueState::default();
    sql.each(
        "SELECT min(seq), min(CASE WHEN inbound > 1 THEN seq END), sum(inbound = 2),
            min(CASE WHEN inbound = 2 THEN seq * 2 + (role = 'assistant') END) & 1, sum(inbound = 3)
         FROM messages WHERE seq > ? AND inbound > 0",
        &[Param::Int(block)],
        &mut |cells| {
            if let [first, opens, waking, by_a, tools] = cells {
                undrained = QueueState {
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

/// The queued tools after the last block, in order.
pub(crate) fn tools(sql: &dyn Sql, block: i64) -> Result<Vec<QueuedTool>> {
    let mut tools = Vec::new();
    sql.each(
        "SELECT seq, EXISTS (SELECT 1 FROM messages AS result WHERE result.seq = messages.seq + 1) FROM messages
         WHERE seq > ? AND inbound = 3 ORDER BY seq",
        &[Param::Int(block)],
        &mut |cells| {
            if let [seq, done] = cells {
                tools.push(QueuedTool { seq: seq.int().unwrap_or_default(), done: done.int() == Some(1) });
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(tools)
}

/// Maximum rows of one statement, and bytes of text after which no more rows are added.
const BATCH_ROWS: usize = 500;
const BATCH_BYTES: usize = 256 << 10;

/// Writes rows with only a role and a text that start nothing, many with one statement.
pub(crate) fn insert_stored(sql: &dyn Sql, rows: &[Row]) -> Result<()> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    for row in rows {
        let content = row.content.as_deref().unwrap_or_default();
        // SQLite's JSON does not preserve NULs.
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

/// Marks the queued tools in a range as belonging to a closed step.
pub(crate) fn settle_tools(sql: &dyn Sql, first: i64, last: i64) -> Result<()> {
    sql.run(
        "UPDATE messages SET inbound = 0 WHERE seq >= ? AND seq <= ? AND inbound = 3",
        &[Param::Int(first), Param::Int(last)],
    )
}

/// Stores the stage of the hooks for a message.
pub(crate) fn set_hooked(sql: &dyn Sql, seq: i64, stage: HookStage) -> Result<()> {
    let statement = match stage {
        HookStage::Before => "UPDATE messages SET hooked = 1 WHERE seq = ?",
        HookStage::After => "UPDATE messages SET hooked = 2 WHERE seq = ?",
    };
    sql.run(statement, &[Param::Int(seq)])
}

/// The first message from outside in a range whose hooks have not reached a stage.
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
