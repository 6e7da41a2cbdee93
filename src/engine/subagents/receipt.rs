//! The receipt of a call that a child answers: one of those of `tool_call`, which may wait.

use std::ops::ControlFlow;

use crate::engine::call::Call;
use crate::engine::subagents::call::Told;
use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql};
use crate::sdk::scope::Scope;
use crate::spec::message::ToolResult;
use crate::store::messages::Shared;
use crate::store::receipts::KIND;
use crate::store::state::State;

/// The receipt of a call that a child answers: it waits, or has its result at once.
pub(crate) fn insert(
    state: &mut State,
    sql: &dyn Sql,
    reply: &Shared,
    call: &Call,
    told: &Told,
    scope: &Scope,
    now: i64,
) -> Result<()> {
    let result = told.result.as_ref().map(serde_json::to_string).transpose().map_err(Error::internal)?;
    let apart = scope.apart_data();
    state.starts_apart(sql, scope.place, call.seq)?;
    sql.run(
        "INSERT INTO calls (id, reply, call_id, name, kind, state, runs, started_us, data, result)
         VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?)",
        &[
            Param::Int(call.seq),
            Param::Int(reply.seq),
            Param::Text(&call.call.id),
            Param::Text(&call.call.name),
            Param::Text(KIND),
            Param::Text(if result.is_some() { "started" } else { "waiting" }),
            Param::Int(now),
            apart.as_ref().into(),
            result.as_ref().into(),
        ],
    )
}

/// The receipt of a call that a child answers, and its result if that is there.
pub(crate) fn result(sql: &dyn Sql, id: i64) -> Result<Option<Option<ToolResult>>> {
    let mut found = None;
    sql.each(
        "SELECT result FROM calls WHERE id = ? AND kind = 'subagent'",
        &[Param::Int(id)],
        &mut |cells| {
            let text = cells.first().and_then(Cell::text);
            let damaged = |error| Error::internal(format!("the result on a receipt is damaged: {error}"));
            found = Some(text.map(serde_json::from_str).transpose().map_err(damaged)?);
            Ok(ControlFlow::Break(()))
        },
    )?;
    Ok(found)
}
