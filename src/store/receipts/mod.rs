//! The table `calls`: the receipts. A receipt is stored before its call begins, so that the table is also the
//! log of tools (spec §7.4, §29; docs/durability.md). Its id is the seq of the call's result.
//!
//! * here: the row, and how it ends. `abandon`: calls with an unknown outcome.

mod abandon;

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::message::{ToolResult, ToolStatus};
use crate::definitions::scrub::ScrubCounts;
use crate::definitions::variable::is_default;
use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer, pairs};
use crate::store::log_record::AttemptState;
use crate::store::opening::Opening;
use crate::store::table::Table;

pub(crate) use abandon::{abandon_lost, abandon_run, abandon_since, abandon_within, abandon_work};

pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE calls (
        id INTEGER PRIMARY KEY, reply INTEGER NOT NULL, call_id TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
        state TEXT NOT NULL, runs INTEGER NOT NULL, started_us INTEGER NOT NULL, ended_us INTEGER, error TEXT, data TEXT,
        result TEXT)"],
    drop: "DROP TABLE calls",
};

/// The kind of work that a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Native,
    Http,
    Code,
    Prompt,
    /// A child responds.
    Subagent,
    /// An agent takes over when the step closes; the receipt has no end until then.
    Handoff,
    /// A hand-off that code has queued.
    Queued,
    /// No work: the call was refused.
    Refused,
    /// The client carries it out.
    Client,
    /// A tool of an MCP server.
    Mcp,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Native,
        Kind::Http,
        Kind::Code,
        Kind::Prompt,
        Kind::Subagent,
        Kind::Handoff,
        Kind::Queued,
        Kind::Refused,
        Kind::Client,
        Kind::Mcp,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Kind::Native => "native",
            Kind::Http => "http",
            Kind::Code => "code",
            Kind::Prompt => "prompt",
            Kind::Subagent => "subagent",
            Kind::Handoff => "handoff",
            Kind::Queued => "queued",
            Kind::Refused => "refused",
            Kind::Client => "client",
            Kind::Mcp => "mcp",
        }
    }
}

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiptState {
    Started,
    /// Waits for a child or a person; no work is being done.
    Waiting,
    Succeeded,
    Failed,
    /// Interrupted by a crash or a stop: it may or may not have taken effect.
    Indeterminate,
    /// A hook removed its result.
    Dropped,
}

impl ReceiptState {
    const ALL: [ReceiptState; 6] = [
        ReceiptState::Started,
        ReceiptState::Waiting,
        ReceiptState::Succeeded,
        ReceiptState::Failed,
        ReceiptState::Indeterminate,
        ReceiptState::Dropped,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            ReceiptState::Started => "started",
            ReceiptState::Waiting => "waiting",
            ReceiptState::Succeeded => "succeeded",
            ReceiptState::Failed => "failed",
            ReceiptState::Indeterminate => "indeterminate",
            ReceiptState::Dropped => "dropped",
        }
    }

    /// The state of a completed call.
    pub(crate) const fn ended(status: ToolStatus) -> ReceiptState {
        match status {
            ToolStatus::Success => ReceiptState::Succeeded,
            ToolStatus::Error => ReceiptState::Failed,
        }
    }
}

/// Optional data of a receipt; most have none.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReceiptData {
    /// The detached work that makes the call; a stop of the run does not affect it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) work: Option<String>,
    /// Arguments of a call by code, which no message holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) args: Option<Value>,
    /// Result of such a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<ToolResult>,
    /// State of the open step of a called prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) inner: Option<AttemptState>,
    /// First message of the agent that takes over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) opening: Option<Opening>,
    /// Secrets and other data that were removed from its result.
    #[serde(default, skip_serializing_if = "ScrubCounts::is_none")]
    pub(crate) scrubbed: ScrubCounts,
    /// State at the MCP server, if the server waits before it continues the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mcp: Option<ServerCallState>,
}

/// State of a call at an MCP server that has started it and waits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServerCallState {
    /// Number of requests for input.
    pub(crate) round: u32,
    /// The waits for people's input that it has requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) waits: Vec<i64>,
    /// Its state, sealed, which the server requires back with the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<Value>,
    /// The task that it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<ServerTask>,
    /// Number of sign-ins that the call has needed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) sign_ins: u32,
}

/// A task of an MCP server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServerTask {
    /// The server's id.
    pub(crate) id: String,
    /// When it began.
    pub(crate) since_us: i64,
    /// Failed polls in a row.
    #[serde(default)]
    pub(crate) misses: u32,
    /// Requests for input that people have answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) answered: Vec<String>,
}

impl ReceiptData {
    fn text(&self) -> Result<Option<String>> {
        let text = serde_json::to_string(self).map_err(Error::internal)?;
        Ok((text != "{}").then_some(text))
    }
}

/// A row to insert.
#[derive(Debug)]
pub(crate) struct NewReceipt<'a> {
    /// Seq of the result.
    pub(crate) id: i64,
    /// Seq of the reply with the call. For calls by code: the negated id of the surrounding call, or 0.
    pub(crate) reply: i64,
    /// The model's id of the call. For calls by code: their key.
    pub(crate) call_id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) kind: Kind,
    pub(crate) state: ReceiptState,
    /// Number of starts.
    pub(crate) runs: i64,
    pub(crate) started_us: i64,
    pub(crate) ended_us: Option<i64>,
    pub(crate) error: Option<&'a str>,
    pub(crate) data: ReceiptData,
    /// The result, until the message with it is stored.
    pub(crate) result: Option<&'a ToolResult>,
}

impl<'a> NewReceipt<'a> {
    /// A row for a call that starts.
    pub(crate) fn started(
        id: i64,
        reply: i64,
        call_id: &'a str,
        name: &'a str,
        kind: Kind,
        now: i64,
    ) -> NewReceipt<'a> {
        NewReceipt {
            id,
            reply,
            call_id,
            name,
            kind,
            state: ReceiptState::Started,
            runs: 1,
            started_us: now,
            ended_us: None,
            error: None,
            data: ReceiptData::default(),
            result: None,
        }
    }

    pub(crate) fn insert(&self, sql: &dyn Sql) -> Result<()> {
        let (data, result) = (self.data.text()?, self.result.map(json).transpose()?);
        sql.run(
            "INSERT INTO calls
                (id, reply, call_id, name, kind, state, runs, started_us, ended_us, error, data, result)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            &[
                Param::Int(self.id),
                Param::Int(self.reply),
                Param::Text(self.call_id),
                Param::Text(self.name),
                Param::Text(self.kind.as_str()),
                Param::Text(self.state.as_str()),
                Param::Int(self.runs),
                Param::Int(self.started_us),
                self.ended_us.into(),
                self.error.into(),
                data.as_ref().into(),
                result.as_ref().into(),
            ],
        )
    }
}

/// A stored row.
#[derive(Debug)]
pub(crate) struct Receipt {
    pub(crate) id: i64,
    pub(crate) reply: i64,
    pub(crate) call_id: String,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) state: ReceiptState,
    pub(crate) runs: i64,
    pub(crate) started_us: i64,
    pub(crate) ended_us: Option<i64>,
    pub(crate) error: Option<String>,
    pub(crate) data: ReceiptData,
    pub(crate) result: Option<ToolResult>,
}

impl Receipt {
    /// Whether it has waited for a person and never started.
    pub(crate) fn has_only_waited(&self) -> bool {
        self.state == ReceiptState::Waiting && self.kind != Kind::Subagent && self.data.mcp.is_none()
    }

    /// The task of an MCP server that works on the call. Polling the task has no side effects.
    pub(crate) fn task(&self) -> Option<&ServerTask> {
        self.data.mcp.as_ref().and_then(|at| at.task.as_ref())
    }

    /// Data that was removed from its result; a kept result has its own record.
    pub(crate) fn scrubbed(&self) -> ScrubCounts {
        self.data.result.as_ref().map_or(self.data.scrubbed, |result| result.scrubbed)
    }

    fn read(cells: &[Cell]) -> Result<Receipt> {
        let [id, reply, call_id, name, kind, state, runs, started, ended, error, data, result] = cells else {
            return Err(Error::internal("a receipt has the wrong number of columns"));
        };
        let (kind, state) = (text(kind), text(state));
        let damaged = |what: &str| Error::internal(format!("a receipt is damaged: {what}"));
        Ok(Receipt {
            id: id.int().unwrap_or_default(),
            reply: reply.int().unwrap_or_default(),
            call_id: text(call_id),
            name: text(name),
            kind: Kind::ALL.into_iter().find(|k| k.as_str() == kind).ok_or_else(|| damaged(&kind))?,
            state: ReceiptState::ALL
                .into_iter()
                .find(|s| s.as_str() == state)
                .ok_or_else(|| damaged(&state))?,
            runs: runs.int().unwrap_or_default(),
            started_us: started.int().unwrap_or_default(),
            ended_us: ended.int(),
            error: error.text().map(str::to_owned),
            data: parsed(data)?.unwrap_or_default(),
            result: parsed(result)?,
        })
    }
}

/// The receipt with an id.
pub(crate) fn find(sql: &dyn Sql, id: i64) -> Result<Option<Receipt>> {
    one(
        sql,
        "SELECT id, reply, call_id, name, kind, state, runs, started_us, ended_us, error, data, result
         FROM calls WHERE id = ?",
        &[Param::Int(id)],
    )
}

/// Receipts with ids after one and up to another, oldest first, without arguments and results.
pub(crate) fn between(sql: &dyn Sql, after: i64, last: i64) -> Result<Vec<Receipt>> {
    list(
        sql,
        "SELECT id, reply, call_id, name, kind, state, runs, started_us, ended_us, error,
            json_remove(data, '$.args', '$.result'), NULL
         FROM calls WHERE id > ? AND id <= ? ORDER BY id",
        &[Param::Int(after), Param::Int(last)],
    )
}

/// The receipt of a call that code made within the call `around`, by its key.
pub(crate) fn by_key(sql: &dyn Sql, outer: Option<i64>, key: &str) -> Result<Option<Receipt>> {
    one(
        sql,
        "SELECT id, reply, call_id, name, kind, state, runs, started_us, ended_us, error, data, result
         FROM calls WHERE id > ? AND reply <= 0 AND call_id = ?",
        &[Param::Int(outer.unwrap_or(0)), Param::Text(key)],
    )
}

/// Starts a call again that may be made again.
pub(crate) fn restart(sql: &dyn Sql, id: i64) -> Result<()> {
    sql.run(
        "UPDATE calls SET runs = runs + 1, state = 'started', ended_us = NULL, error = NULL WHERE id = ?",
        &[Param::Int(id)],
    )
}

/// Deletes the calls of a dropped reply, none of which has started.
pub(crate) fn forget_waiting(sql: &dyn Sql, reply: i64, last: i64) -> Result<()> {
    sql.run(
        "DELETE FROM calls WHERE id > ?1 AND id <= ?2 AND reply = ?1",
        &[Param::Int(reply), Param::Int(last)],
    )
}

/// Sets a call that has run to wait for approval before it runs again.
pub(crate) fn wait_again(sql: &dyn Sql, id: i64) -> Result<()> {
    sql.run(
        "UPDATE calls SET state = 'waiting', result = NULL, ended_us = NULL WHERE id = ?",
        &[Param::Int(id)],
    )
}

/// Sets a call to wait at its MCP server. It counts as one run, however often it continues.
pub(crate) fn wait_at_server(sql: &dyn Sql, id: i64, at: &ServerCallState) -> Result<()> {
    let at = serde_json::to_string(at).map_err(Error::internal)?;
    sql.run(
        "UPDATE calls SET runs = 1, state = 'waiting', result = NULL, ended_us = NULL,
            data = json_set(ifnull(data, '{}'), '$.mcp', json(?)) WHERE id = ?",
        &[Param::Text(&at), Param::Int(id)],
    )
}

/// Keeps the result of a call that hooks still work on, unless one is kept. `result`: its JSON.
pub(crate) fn keep_result(sql: &dyn Sql, id: i64, result: &str) -> Result<()> {
    sql.run(
        "UPDATE calls SET result = ? WHERE id = ? AND result IS NULL",
        &[Param::Text(result), Param::Int(id)],
    )
}

/// Keeps the result of a call that has ended before its turn, and the time of its end. `result`: its JSON.
pub(crate) fn keep_early(sql: &dyn Sql, id: i64, result: &str, now: i64) -> Result<()> {
    sql.run(
        "UPDATE calls SET result = ?, ended_us = ? WHERE id = ? AND state = 'started' AND result IS NULL",
        &[Param::Text(result), Param::Int(now), Param::Int(id)],
    )
}

/// Stores the result of a call that waited.
pub(crate) fn answer(sql: &dyn Sql, id: i64, result: &ToolResult) -> Result<()> {
    sql.run(
        "UPDATE calls SET result = ? WHERE id = ? AND state = 'waiting'",
        &[Param::Text(&json(result)?), Param::Int(id)],
    )
}

/// Closes a receipt whose result is now in a message. A call that ended before its turn keeps its earlier
/// end.
pub(crate) fn close(
    sql: &dyn Sql,
    id: i64,
    state: ReceiptState,
    error: Option<&str>,
    now: i64,
    scrubbed: ScrubCounts,
) -> Result<()> {
    let state = Param::Text(state.as_str());
    let scrubbed = (!scrubbed.is_none()).then(|| serde_json::to_string(&scrubbed)).transpose();
    let scrubbed = scrubbed.map_err(Error::internal)?;
    sql.run(
        "UPDATE calls SET state = ?1, ended_us = ifnull(ended_us, ?2), error = ?3, result = NULL,
            data = iif(?4 IS NULL, data, json_set(ifnull(data, '{}'), '$.scrubbed', json(?4))) WHERE id = ?5",
        &[state, Param::Int(now), error.into(), scrubbed.as_ref().into(), Param::Int(id)],
    )
}

/// Closes the receipt of a call by code, which keeps its result.
pub(crate) fn close_with(
    sql: &dyn Sql,
    id: i64,
    state: ReceiptState,
    error: Option<&str>,
    result: &ToolResult,
    now: i64,
) -> Result<()> {
    sql.run(
        "UPDATE calls SET state = ?, ended_us = ?, error = ?, data = json_set(data, '$.result', json(?)) WHERE id = ?",
        &[
            Param::Text(state.as_str()),
            Param::Int(now),
            error.into(),
            Param::Text(&json(result)?),
            Param::Int(id),
        ],
    )
}

/// Ends a hand-off that has taken place, or that another one has replaced.
pub(crate) fn end(sql: &dyn Sql, id: i64, now: i64) -> Result<()> {
    sql.run("UPDATE calls SET ended_us = ? WHERE id = ?", &[Param::Int(now), Param::Int(id)])
}

/// Ends all hand-offs of a step that begins at `block`, up to this one.
pub(crate) fn end_handoffs(sql: &dyn Sql, block: i64, last: i64, now: i64) -> Result<()> {
    sql.run(
        "UPDATE calls SET ended_us = ? WHERE id > ? AND id <= ? AND kind = 'handoff'",
        &[Param::Int(now), Param::Int(block), Param::Int(last)],
    )
}

/// The newest open hand-off of the open step, which begins at `block`.
pub(super) fn pending_handoff(sql: &dyn Sql, block: i64) -> Result<Option<i64>> {
    integer(
        sql,
        "SELECT max(id) FROM calls WHERE id > ? AND kind = 'handoff' AND ended_us IS NULL",
        &[Param::Int(block)],
    )
}

/// State of the step of a called prompt, if the step was opened.
pub(crate) fn inner(sql: &dyn Sql, id: i64) -> Result<Option<AttemptState>> {
    Ok(find(sql, id)?.and_then(|receipt| receipt.data.inner))
}

/// Stores the state of the step of a called prompt.
pub(super) fn set_inner(sql: &dyn Sql, id: i64, inner: &AttemptState) -> Result<()> {
    let text = serde_json::to_string(inner).map_err(Error::internal)?;
    sql.run(
        "UPDATE calls SET data = json_set(ifnull(data, '{}'), '$.inner', json(?)) WHERE id = ?",
        &[Param::Text(&text), Param::Int(id)],
    )
}

/// Start times and ids of the first `limit` receipts by id, or of the last ones.
pub(crate) fn times(sql: &dyn Sql, limit: i64, ascending: bool) -> Result<Vec<(i64, i64)>> {
    let statement = match ascending {
        true => "SELECT started_us, id FROM calls ORDER BY id LIMIT ?",
        false => "SELECT started_us, id FROM calls ORDER BY id DESC LIMIT ?",
    };
    pairs(sql, statement, &[Param::Int(limit)])
}

/// Start times and ids of the receipts with these ids, and of those that belong to these messages: to the one
/// with the call, or to the one with the result, whose seq is the receipt's id. Both lists are JSON.
pub(crate) fn times_of(sql: &dyn Sql, ids: &str, messages: &str) -> Result<Vec<(i64, i64)>> {
    pairs(
        sql,
        "SELECT started_us, id FROM calls
         WHERE id IN (SELECT value FROM json_each(?)) OR reply IN (SELECT value FROM json_each(?))
            OR reply > 0 AND id IN (SELECT value FROM json_each(?))",
        &[Param::Text(ids), Param::Text(messages), Param::Text(messages)],
    )
}

/// The receipts of a run: their ids follow the last step of the previous run, they started during the run,
/// and no detached work made them.
pub(crate) fn of_run(
    sql: &dyn Sql,
    beyond: i64,
    (from_us, until_us): (i64, i64),
    take: &mut dyn FnMut(Receipt) -> Result<ControlFlow<()>>,
) -> Result<()> {
    sql.each(
        "SELECT id, reply, call_id, name, kind, state, runs, started_us, ended_us, error, data, result
         FROM calls WHERE id > ? ORDER BY id",
        &[Param::Int(beyond)],
        &mut |cells| {
            let receipt = Receipt::read(cells)?;
            if receipt.started_us > until_us {
                return Ok(ControlFlow::Break(()));
            }
            if receipt.started_us < from_us || receipt.data.work.is_some() {
                return Ok(ControlFlow::Continue(()));
            }
            take(receipt)
        },
    )
}

/// The agent of the last hand-off before this time. `last`: an upper bound of its receipt's id.
pub(crate) fn handed_before(sql: &dyn Sql, last: i64, before_us: i64) -> Result<Option<String>> {
    let receipt = one(
        sql,
        "SELECT id, reply, call_id, name, kind, state, runs, started_us, ended_us, error, data, result
         FROM calls WHERE id < ? AND kind = 'handoff' AND state = 'succeeded' AND started_us < ?
         ORDER BY id DESC LIMIT 1",
        &[Param::Int(last), Param::Int(before_us)],
    )?;
    Ok(receipt.map(|receipt| receipt.name))
}

/// Number of calls of runs started after a seq, including nested ones, plus those that a budget has refused.
pub(super) fn begun_since(sql: &dyn Sql, after: i64) -> Result<i64> {
    let statement =
        "SELECT count(*) FROM calls WHERE id > ? AND json_extract(data, '$.work') IS NULL AND (runs > 0
         AND kind NOT IN ('handoff', 'queued', 'refused') OR error LIKE 'Not run: the budget %')";
    integer(sql, statement, &[Param::Int(after)]).map(|found| found.unwrap_or(0))
}

fn one(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Option<Receipt>> {
    let mut found = None;
    sql.each(statement, params, &mut |cells| {
        found = Some(Receipt::read(cells)?);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

fn list(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<Receipt>> {
    let mut found = Vec::new();
    sql.each(statement, params, &mut |cells| {
        found.push(Receipt::read(cells)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

fn names(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<(i64, String)>> {
    let mut found = Vec::new();
    sql.each(statement, params, &mut |cells| {
        if let [id, name] = cells {
            found.push((id.int().unwrap_or_default(), text(name)));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

fn text(cell: &Cell) -> String {
    cell.text().unwrap_or_default().to_owned()
}

fn json(result: &ToolResult) -> Result<String> {
    serde_json::to_string(result).map_err(Error::internal)
}

fn parsed<T: for<'a> Deserialize<'a>>(cell: &Cell) -> Result<Option<T>> {
    let damaged = |error| Error::internal(format!("a receipt is damaged: {error}"));
    cell.text().map(crate::json::from_str).transpose().map_err(damaged)
}
