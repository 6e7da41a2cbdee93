//! The table `waits`: questions to the outside, and their decisions (docs/approvals.md). The transaction that
//! parks the run inserts a row, and the one that resumes the run closes it. `initial`: the waits of a reply's
//! first pause. `shown`: the public form of a row. `sign_in`: the data of a sign-in.

mod initial;
mod shown;
mod sign_in;

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::Tier;
use crate::definitions::budget::Unit;
use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer, pairs};
use crate::limits;
use crate::page::json_bytes;
use crate::protocols::responses::budgets::BudgetScope;
pub(crate) use crate::protocols::responses::waits::{DecisionScope, OnExpiry, WaitKind, WaitState};
use crate::store::state::State;
use crate::store::table::Table;
pub(crate) use crate::store::waits::initial::{InitialWait, initial};
pub(crate) use crate::store::waits::sign_in::SignInState;

/// Created with the first wait: other threads have no such table. `open` is 1 while the wait is open. It
/// leads the primary key, so that open waits are found without an index. `receipt`: the waiting call;
/// `batch`: seq of its reply.
pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS waits (
        open INTEGER NOT NULL, id INTEGER NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, run INTEGER, receipt INTEGER,
        batch INTEGER, digest TEXT, data TEXT NOT NULL, decision TEXT, created_us INTEGER NOT NULL,
        expires_us INTEGER NOT NULL, closed_us INTEGER, PRIMARY KEY (open, id)) WITHOUT ROWID"],
    drop: "DROP TABLE IF EXISTS waits",
};

/// The length of a SHA-256 digest in hexadecimal.
const DIGEST_BYTES: usize = 64;

/// `w_<thread>_<number>`, where the thread's id is as messages have it.
fn public_id(thread: &str, id: i64) -> String {
    format!("w_{}_{id}", thread.split('-').next().unwrap_or(thread))
}

/// The columns of [`Wait`], in the order of [`Wait::read`].
macro_rules! columns {
    () => {
        "id, kind, state, run, receipt, batch, digest, data, decision, created_us, expires_us, closed_us"
    };
}

/// The call that waits, as shown to the person who decides. An approval runs exactly this call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WaitingCall {
    /// The model's id of the call.
    pub(crate) id: String,
    pub(crate) tool: String,
    /// The tool's tier when the question was asked.
    #[serde(default)]
    pub(crate) tier: Tier,
    pub(crate) args: Value,
}

/// The constant data of a wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct WaitData {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<WaitingCall>,
    pub(crate) title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    pub(crate) by: DecisionScope,
    pub(crate) on_expiry: OnExpiry,
    /// Arguments that the approver may change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) edit: Vec<String>,
    /// The key for later calls to which the approval applies too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remember: Option<ApprovalScope>,
    /// Answers that a question offers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) choices: Vec<String>,
    /// Whether a question takes any text.
    pub(crate) free_text: bool,
    /// Whether the call has run once and requested this approval itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) again: bool,
    /// The workers that the call waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workers: Option<AwaitedWorkers>,
    /// The limit that was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<BudgetQuestion>,
    /// The input that an MCP server or a tool requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<InputForm>,
    /// The data of a sign-in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sign_in: Option<SignInState>,
}

impl WaitData {
    /// Whether its JSON and the digest fit in a row.
    pub(crate) fn fits(&self) -> bool {
        json_bytes(self) + DIGEST_BYTES <= limits::WAIT_DATA_BYTES
    }
}

/// The input that an MCP server or a tool requests, besides the title: a form to fill in, or a page to visit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct InputForm {
    /// The server's name in the folder; empty if a tool of the application asks.
    pub(crate) server: String,
    /// The asker's name for this input.
    pub(crate) name: String,
    /// The JSON Schema of the form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) form: Option<Value>,
    /// The URL of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
}

/// A limit that forbids the next attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BudgetQuestion {
    pub(crate) scope: BudgetScope,
    pub(crate) unit: Unit,
    pub(crate) limit: i64,
    pub(crate) spent: i64,
    /// The minimum that the next attempt needs.
    pub(crate) needed: i64,
    /// The subagent that makes the attempt, if it is a subagent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) for_child: Option<String>,
    /// The run that granted to the subagent and whose limit it is. It may end while the wait is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) of_run: Option<i64>,
}

/// Workers that a call waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AwaitedWorkers {
    /// Their references and ids, as given in the call.
    pub(crate) named: Vec<(String, String)>,
    /// Whether one of them is enough.
    pub(crate) any: bool,
}

/// The later calls to which an approval applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApprovalScope {
    /// `run` or `thread`.
    pub(crate) within: String,
    /// `<tool>:<hash of the arguments>`.
    pub(crate) key: String,
}

/// The decision, and who made it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Decision {
    /// `approve`, `deny`, `answer`, `retry`, `extend` or `finish`.
    pub(crate) decision: String,
    /// Changed arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) args: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// The content of a form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Value>,
    /// Amounts added to a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) add: Option<Value>,
    /// The credentials' scope and fingerprint.
    pub(crate) scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprint: Option<String>,
    /// The decider's name, as given by the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<String>,
    /// `restart` if the model was asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interrupt: Option<String>,
}

/// A row of `waits`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wait {
    pub(crate) id: i64,
    pub(crate) kind: WaitKind,
    pub(crate) state: WaitState,
    pub(crate) run: Option<i64>,
    pub(crate) receipt: Option<i64>,
    /// Seq of the reply. Questions about its calls are asked together.
    pub(crate) batch: Option<i64>,
    /// The digest of the decided call: its tool, definition and arguments.
    pub(crate) digest: Option<String>,
    pub(crate) asked: WaitData,
    pub(crate) decision: Option<Decision>,
    pub(crate) created_us: i64,
    pub(crate) expires_us: i64,
    pub(crate) closed_us: Option<i64>,
}

impl Wait {
    fn read(cells: &[Cell]) -> Result<Wait> {
        let [id, kind, state, run, receipt, batch, digest, data, decision, created, expires, closed] = cells
        else {
            return Err(Error::internal("a wait has the wrong number of columns"));
        };
        let damaged = || Error::internal("a stored wait is damaged");
        Ok(Wait {
            id: id.int().unwrap_or_default(),
            kind: kind.text().and_then(WaitKind::parse).ok_or_else(damaged)?,
            state: state.text().and_then(WaitState::parse).ok_or_else(damaged)?,
            run: run.int(),
            receipt: receipt.int(),
            batch: batch.int(),
            digest: digest.text().map(str::to_owned),
            asked: crate::json::from_str(data.text().unwrap_or_default()).map_err(|_| damaged())?,
            decision: decision.text().map(crate::json::from_str).transpose().map_err(|_| damaged())?,
            created_us: created.int().unwrap_or_default(),
            expires_us: expires.int().unwrap_or_default(),
            closed_us: closed.int(),
        })
    }

    /// Whether it waits for the MCP server's task of the call with this receipt.
    pub(crate) fn is_of_task(&self, receipt: i64) -> bool {
        self.kind == WaitKind::Task && self.receipt == Some(receipt)
    }

    /// Inserts a new, open row.
    pub(crate) fn insert(&self, sql: &dyn Sql) -> Result<()> {
        if !self.asked.fits() {
            return Err(Error::internal("a wait is larger than its row may be"));
        }
        let data = serde_json::to_string(&self.asked).map_err(Error::internal)?;
        sql.run(
            "INSERT INTO waits (open, id, kind, state, run, receipt, batch, digest, data, created_us, expires_us)
             VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            &[
                Param::Int(self.id),
                Param::Text(self.kind.as_str()),
                Param::Text(self.state.as_str()),
                self.run.into(),
                self.receipt.into(),
                self.batch.into(),
                self.digest.as_ref().into(),
                Param::Text(&data),
                Param::Int(self.created_us),
                Param::Int(self.expires_us),
            ],
        )
    }

    /// Stores the closed state and the decision.
    pub(crate) fn close(&self, sql: &dyn Sql) -> Result<()> {
        let decision =
            self.decision.as_ref().map(serde_json::to_string).transpose().map_err(Error::internal)?;
        sql.run(
            "UPDATE waits SET open = 0, state = ?, decision = ?, closed_us = ? WHERE open = 1 AND id = ?",
            &[
                Param::Text(self.state.as_str()),
                decision.as_ref().into(),
                self.closed_us.into(),
                Param::Int(self.id),
            ],
        )
    }

    /// `w_<thread>_<number>`, where the thread's id is as messages have it.
    pub(crate) fn public_id(&self, thread: &str) -> String {
        public_id(thread, self.id)
    }

    /// The time at which the run resumed with this wait's outcome, if it did. A decision ahead of its turn
    /// takes effect after earlier waits. `others`: all waits of the run.
    pub(crate) fn resumed_us(&self, others: &[Wait]) -> Option<i64> {
        let closed_us = self.closed_us?;
        let restarts = |other: &Wait| {
            other.batch == self.batch
                && other.decision.as_ref().is_some_and(|decision| decision.interrupt.is_some())
        };
        // Other cancelled waits end with their run.
        if others.iter().any(restarts) {
            return Some(closed_us);
        }
        let expired = self.state == WaitState::Expired && self.asked.on_expiry == OnExpiry::Fail;
        let denied = |decision: &Decision| decision.decision == "deny";
        let failed = self.kind == WaitKind::Budget && self.decision.as_ref().is_some_and(denied);
        if expired || failed || self.state == WaitState::Cancelled {
            return None;
        }
        let ahead = |other: &&Wait| other.receipt < self.receipt && other.created_us <= closed_us;
        others.iter().filter(ahead).try_fold(closed_us, |at, other| Some(at.max(other.closed_us?)))
    }
}

/// Creates the table.
pub(crate) fn create(sql: &dyn Sql) -> Result<()> {
    TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))
}

/// The open waits, oldest first.
pub(crate) fn open(sql: &dyn Sql) -> Result<Vec<Wait>> {
    let statement = concat!("SELECT ", columns!(), " FROM waits WHERE open = 1 ORDER BY id");
    let mut found = Vec::new();
    sql.each(statement, &[], &mut |cells| {
        found.push(Wait::read(cells)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// The wait with this id, open or closed.
pub(crate) fn find(sql: &dyn Sql, id: i64) -> Result<Option<Wait>> {
    let statement = concat!("SELECT ", columns!(), " FROM waits WHERE open IN (0, 1) AND id = ?");
    one(sql, statement, &[Param::Int(id)])
}

/// The waits of a run, newest first. A thread without waits reads nothing.
pub(crate) fn of_run(state: &State, sql: &dyn Sql, run: i64) -> Result<Vec<Wait>> {
    let mut found = Vec::new();
    if state.meta.wait_next == 1 {
        return Ok(found);
    }
    // Runs are sequential, and therefore their waits too.
    list(sql, i64::MAX >> 11, &mut |wait| {
        if wait.run < Some(run) {
            return Ok(ControlFlow::Break(()));
        }
        if wait.run == Some(run) {
            found.push(wait);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// The newest question about the call with this receipt. Ignores retries, sign-ins, and the questions and
/// tasks of MCP servers.
pub(crate) fn of_receipt(sql: &dyn Sql, receipt: i64) -> Result<Option<Wait>> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM waits WHERE open IN (0, 1) AND receipt = ? AND kind NOT IN ('retry', 'elicitation', 'task', 'sign_in') ORDER BY id DESC LIMIT 1"
    );
    one(sql, statement, &[Param::Int(receipt)])
}

/// Whether a remembered approval applies to a call with this key in this run. An approval with changed
/// arguments is not remembered.
pub(crate) fn is_remembered(sql: &dyn Sql, key: &str, run: Option<i64>) -> Result<bool> {
    let found = integer(
        sql,
        "SELECT 1 FROM (SELECT state, run, data, decision FROM waits WHERE open = 0 ORDER BY id DESC LIMIT 1000)
         WHERE state = 'decided' AND json_extract(data, '$.remember.key') = ?1
           AND json_extract(decision, '$.decision') = 'approve' AND json_extract(decision, '$.args') IS NULL
           AND (json_extract(data, '$.remember.within') = 'thread' OR run IS ?2) LIMIT 1",
        &[Param::Text(key), run.into()],
    )?;
    Ok(found.is_some())
}

/// Makes all remembered approvals ineffective.
pub(crate) fn forget_remembered(sql: &dyn Sql) -> Result<()> {
    sql.run(
        "UPDATE waits SET data = json_remove(data, '$.remember')
         WHERE open = 0 AND json_extract(data, '$.remember') IS NOT NULL",
        &[],
    )
}

/// Visits waits below the id `before`, newest first, until `each` breaks.
pub(crate) fn list(
    sql: &dyn Sql,
    before: i64,
    each: &mut dyn FnMut(Wait) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let statement =
        concat!("SELECT ", columns!(), " FROM waits WHERE open IN (0, 1) AND id < ? ORDER BY id DESC");
    sql.each(statement, &[Param::Int(before)], &mut |cells| each(Wait::read(cells)?))
}

/// Voids a decision, because the decided call has changed.
pub(crate) fn void(sql: &dyn Sql, id: i64) -> Result<()> {
    sql.run("UPDATE waits SET state = 'void' WHERE open = 0 AND id = ?", &[Param::Int(id)])
}

/// Moves the expiry of an open wait.
pub(crate) fn defer(sql: &dyn Sql, id: i64, until_us: i64) -> Result<()> {
    sql.run(
        "UPDATE waits SET expires_us = ? WHERE open = 1 AND id = ?",
        &[Param::Int(until_us), Param::Int(id)],
    )
}

/// The earliest expiry, cached while the object is in memory.
pub(crate) fn next_due(state: &State, sql: &dyn Sql) -> Result<Option<i64>> {
    if state.meta.waits == 0 {
        return Ok(None);
    }
    if let Some(known) = state.wait_due.get() {
        return Ok(known);
    }
    let due = integer(sql, "SELECT min(expires_us) FROM waits WHERE open = 1", &[])?;
    state.wait_due.set(Some(due));
    Ok(due)
}

/// The number of open waits, and the newest id.
pub(super) fn tally(sql: &dyn Sql) -> Result<(i64, i64)> {
    let statement =
        "SELECT count(*), max(ifnull(max(id), 0), ifnull((SELECT max(id) FROM waits WHERE open = 0), 0))
        FROM waits WHERE open = 1";
    Ok(pairs(sql, statement, &[])?.first().copied().unwrap_or_default())
}

fn one(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Option<Wait>> {
    let mut found = None;
    sql.each(statement, params, &mut |cells| {
        found = Some(Wait::read(cells)?);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;

    #[test]
    fn all_that_is_asked_counts_to_the_byte() {
        let call =
            |args: Value| WaitingCall { id: "c".into(), tool: "pay".into(), tier: Tier::ReadOnly, args };
        let of = |text: String| WaitData { call: Some(call(json!({ "to": text }))), ..WaitData::default() };
        let most = limits::WAIT_DATA_BYTES - DIGEST_BYTES - json_bytes(&of(String::new()));
        assert!(of("x".repeat(most)).fits());
        assert!(!of("x".repeat(most + 1)).fits());
        // Sizes are in bytes of JSON.
        assert!(!of("\n".repeat(most / 2 + 1)).fits());
        assert!(!of("ä".repeat(most / 2 + 1)).fits());
        let half = || "x".repeat(most / 2 + 1);
        assert!(of(half()).fits());
        for more in [
            WaitData { title: half(), ..of(half()) },
            WaitData { reason: Some(half()), ..of(half()) },
            WaitData { choices: vec![half()], ..of(half()) },
            WaitData { edit: vec![half()], ..of(half()) },
        ] {
            assert!(!more.fits());
        }
    }
}
