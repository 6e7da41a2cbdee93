//! Receipts of calls with an unknown outcome: they were stopped, or the process crashed.

use crate::definitions::scrub::ScrubCounts;
use crate::error::Result;
use crate::host::{Param, Sql};
use crate::store::receipts::{Receipt, ReceiptState, close, list, names};

/// Closes the receipts of calls that were open when their run was stopped; their outcome is unknown. Returns
/// them with their former state, the innermost last.
pub(crate) fn abandon_run(sql: &dyn Sql, block: i64, now: i64) -> Result<Vec<Receipt>> {
    let open = list(
        sql,
        "SELECT id, reply, call_id, name, kind, state, runs, started_us, ended_us, error, data, result
         FROM calls WHERE id > ? AND state IN ('started', 'waiting') AND json_extract(data, '$.work') IS NULL",
        &[Param::Int(block)],
    )?;
    for receipt in &open {
        let state =
            if receipt.has_only_waited() { ReceiptState::Failed } else { ReceiptState::Indeterminate };
        close(sql, receipt.id, state, None, now, ScrubCounts::default())?;
    }
    Ok(open)
}

/// Closes the calls that started since a call of the run, which has ended. Calls of a run are made one after
/// another, so these were made within it, except those of the same reply, which run concurrently.
pub(crate) fn abandon_since(sql: &dyn Sql, id: i64, reply: i64, now: i64) -> Result<()> {
    sql.run(
        "UPDATE calls SET state = 'indeterminate', ended_us = ?
         WHERE id > ? AND state = 'started' AND reply <> ? AND json_extract(data, '$.work') IS NULL",
        &[Param::Int(now), Param::Int(id), Param::Int(reply)],
    )
}

/// Closes the calls that code made within this call, while other work may make calls concurrently.
pub(crate) fn abandon_within(sql: &dyn Sql, id: i64, now: i64) -> Result<()> {
    sql.run(
        "UPDATE calls SET state = 'indeterminate', ended_us = ? WHERE id > ? AND state = 'started' AND reply = ?",
        &[Param::Int(now), Param::Int(id), Param::Int(-id)],
    )
}

/// Closes the calls of detached work that a crash interrupted, with receipts from `from` to `last`. Returns
/// the ids and names of the prompts among them.
pub(crate) fn abandon_lost(sql: &dyn Sql, from: i64, last: i64, now: i64) -> Result<Vec<(i64, String)>> {
    let open = names(
        sql,
        "SELECT id, name FROM calls WHERE id >= ? AND id <= ? AND kind = 'prompt' AND state = 'started'
         AND json_extract(data, '$.work') IS NOT NULL",
        &[Param::Int(from), Param::Int(last)],
    )?;
    sql.run(
        "UPDATE calls SET state = 'indeterminate', ended_us = ?3, error = 'The runtime restarted while \"' || name
            || '\" was running. It may or may not have taken effect.'
         WHERE id >= ?1 AND id <= ?2 AND state = 'started' AND json_extract(data, '$.work') IS NOT NULL",
        &[Param::Int(from), Param::Int(last), Param::Int(now)],
    )?;
    Ok(open)
}

/// Closes the calls of one detached work, whose receipts begin at `from`. Returns the prompts among them.
pub(crate) fn abandon_work(sql: &dyn Sql, from: i64, work: &str, now: i64) -> Result<Vec<(i64, String)>> {
    let open = names(
        sql,
        "SELECT id, name FROM calls WHERE id >= ? AND kind = 'prompt' AND state = 'started'
         AND json_extract(data, '$.work') = ?",
        &[Param::Int(from), Param::Text(work)],
    )?;
    sql.run(
        "UPDATE calls SET state = 'indeterminate', ended_us = ?3, error = 'What called \"' || name
            || '\" ended without it. It may or may not have taken effect.'
         WHERE id >= ?1 AND state = 'started' AND json_extract(data, '$.work') = ?2",
        &[Param::Int(from), Param::Text(work), Param::Int(now)],
    )?;
    Ok(open)
}
