//! The table `calls`: a receipt for each call of a tool, written before the call begins (spec §7.4).

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql};
use crate::spec::message::ToolResult;

/// A call that was running when its run was stopped.
pub(crate) struct Abandoned {
    pub(crate) seq: i64,
    /// Seq of the reply that holds it; code made the call when it is not positive.
    pub(crate) reply: i64,
    pub(crate) call_id: String,
    pub(crate) name: String,
    pub(crate) kind: String,
    /// Its result, if that was kept already.
    pub(crate) result: Option<ToolResult>,
}

/// Closes the receipts of calls that were running when their run was stopped: their outcome is not known. Innermost last.
pub(crate) fn abandon_started(sql: &dyn Sql, block: i64, now: i64) -> Result<Vec<Abandoned>> {
    let mut open = Vec::new();
    sql.each(
        "SELECT id, reply, call_id, name, kind, result FROM calls
         WHERE id > ? AND state IN ('started', 'waiting') AND json_extract(data, '$.apart') IS NULL",
        &[Param::Int(block)],
        &mut |cells| {
            let [id, reply, call_id, name, kind, result] = cells else {
                return Err(Error::internal("a receipt has the wrong number of columns"));
            };
            let text = |cell: &Cell| cell.text().unwrap_or_default().to_owned();
            open.push(Abandoned {
                seq: id.int().unwrap_or_default(),
                reply: reply.int().unwrap_or_default(),
                call_id: text(call_id),
                name: text(name),
                kind: text(kind),
                result: result.text().and_then(|text| serde_json::from_str(text).ok()),
            });
            Ok(ControlFlow::Continue(()))
        },
    )?;
    for call in &open {
        sql.run(
            "UPDATE calls SET state = 'indeterminate', ended_us = ?, result = NULL WHERE id = ?",
            &[Param::Int(now), Param::Int(call.seq)],
        )?;
    }
    Ok(open)
}

/// The kind of a receipt whose call is a child's to answer.
pub(crate) const KIND: &str = "subagent";
