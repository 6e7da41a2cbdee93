//! The table `waits`: what is asked of the outside, and what was decided (docs/approvals.md). A row is written in the
//! transaction that parks the run, and closed in the one that lets it go on. `initial`: the waits of the first pause of a reply. `shown`: a
//! row as clients see it. `sign_in`: what one keeps for which somebody has to sign in.

mod initial;
mod shown;
mod sign_in;

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer, pairs};
use crate::limits;
use crate::page::json_bytes;
use crate::spec::Tier;
use crate::spec::budget::Unit;
use crate::store::amounts::BudgetScope;
use crate::store::state::State;
use crate::store::table::Table;
pub(crate) use crate::store::waits::initial::{InitialWait, initial};
pub(crate) use crate::store::waits::sign_in::AskedSignIn;

/// It is made with the first wait: a thread that asks nothing has no such table. `open`: 1 while it is asked; with `id` it is
/// the key, so that what is open is found without an index. `receipt`: the call that waits; `batch`: seq of the reply with it.
pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS waits (
        open INTEGER NOT NULL, id INTEGER NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, run INTEGER, receipt INTEGER,
        batch INTEGER, digest TEXT, data TEXT NOT NULL, decision TEXT, created_us INTEGER NOT NULL,
        expires_us INTEGER NOT NULL, closed_us INTEGER, PRIMARY KEY (open, id)) WITHOUT ROWID"],
    drop: "DROP TABLE IF EXISTS waits",
};

/// Of SHA-256, in hexadecimal.
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

/// Who is asked what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitKind {
    /// Whether a call may run.
    Approval,
    /// What a person says to a question of the model's.
    Question,
    /// What a client made of a call that it carries out.
    ClientTool,
    /// Whether the run may go on spending.
    Budget,
    /// Nobody: the pause before the next attempt at a model or a tool is long. Who does not want to wait may say so.
    Retry,
    /// Subagents that were spawned.
    Children,
    /// What people say to a question of an MCP server's, or that they have visited its page.
    Elicitation,
    /// Nobody: an MCP server takes its time, and is asked when this ends, which it does again and again.
    Task,
    /// That somebody signs in to an MCP server. Meanwhile it is looked now and then whether that was done elsewhere.
    SignIn,
}

impl WaitKind {
    const ALL: [WaitKind; 9] = [
        WaitKind::Approval,
        WaitKind::Question,
        WaitKind::ClientTool,
        WaitKind::Budget,
        WaitKind::Retry,
        WaitKind::Children,
        WaitKind::Elicitation,
        WaitKind::Task,
        WaitKind::SignIn,
    ];

    /// As the table and clients have it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            WaitKind::Approval => "approval",
            WaitKind::Question => "question",
            WaitKind::ClientTool => "client_tool",
            WaitKind::Budget => "budget",
            WaitKind::Retry => "retry",
            WaitKind::Children => "children",
            WaitKind::Elicitation => "elicitation",
            WaitKind::Task => "task",
            WaitKind::SignIn => "sign_in",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<WaitKind> {
        WaitKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitState {
    Open,
    Decided,
    /// Nobody decided in time.
    Expired,
    /// The run was stopped, or the thread terminated.
    Cancelled,
    /// What was asked about has changed.
    Void,
}

impl WaitState {
    const ALL: [WaitState; 5] =
        [WaitState::Open, WaitState::Decided, WaitState::Expired, WaitState::Cancelled, WaitState::Void];

    /// As the table and clients have it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            WaitState::Open => "open",
            WaitState::Decided => "decided",
            WaitState::Expired => "expired",
            WaitState::Cancelled => "cancelled",
            WaitState::Void => "void",
        }
    }
}

/// Who may decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DecidedBy {
    /// Whoever may send to the thread.
    Thread,
    /// Its owner, and admins.
    #[default]
    Owner,
    Admin,
}

/// What becomes of the call when nobody decides in time; never an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnExpiry {
    /// The call is denied, and the run goes on.
    #[default]
    Deny,
    /// The run fails.
    Fail,
    /// The run goes on: time is all that it waits for.
    Continue,
    /// The run has one last step, if its budget is what is asked about.
    Finish,
}

/// The call that waits, as who decides sees it: this very call runs when it is approved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AskedCall {
    /// The model's id of the call.
    pub(crate) id: String,
    pub(crate) tool: String,
    /// What the tool may change, as it was when this was asked.
    #[serde(default)]
    pub(crate) tier: Tier,
    pub(crate) args: Value,
}

/// What never changes of a wait, but what its kind has of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<AskedCall>,
    pub(crate) title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    pub(crate) by: DecidedBy,
    pub(crate) on_expiry: OnExpiry,
    /// Arguments that who approves may change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) edit: Vec<String>,
    /// What later calls are compared with, where an approval counts for them too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remember: Option<Remembered>,
    /// Answers that a question offers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) choices: Vec<String>,
    /// Whether a question takes any text.
    pub(crate) free_text: bool,
    /// Whether the call has run once and asked for this itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) again: bool,
    /// The workers that are waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workers: Option<AwaitedWorkers>,
    /// The limit that is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<AskedBudget>,
    /// What an MCP server wants to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<AskedInput>,
    /// For whom a sign-in counts, and what it needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sign_in: Option<AskedSignIn>,
}

impl Asked {
    /// Whether its row may hold it: what is asked, with the call's arguments, the answers that are offered and all else, and the
    /// digest.
    pub(crate) fn fits(&self) -> bool {
        json_bytes(self) + DIGEST_BYTES <= limits::WAIT_DATA_BYTES
    }
}

/// What an MCP server or a tool wants to know, which the title says: a form that is filled in, or a page that is visited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AskedInput {
    /// Its name in the folder; empty where a tool of the application asks.
    pub(crate) server: String,
    /// As whoever asks calls it.
    pub(crate) name: String,
    /// JSON Schema of what is filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) form: Option<Value>,
    /// The page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
}

/// A limit that forbids what is to come next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AskedBudget {
    pub(crate) scope: BudgetScope,
    pub(crate) unit: Unit,
    pub(crate) limit: i64,
    pub(crate) spent: i64,
    /// What the next attempt needs at least.
    pub(crate) needed: i64,
    /// The subagent whose attempt that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) for_child: Option<String>,
    /// The run that has lent to it and whose limit it is; it may end meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) of_run: Option<i64>,
}

/// Workers that a call waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AwaitedWorkers {
    /// Their references and ids, as they were named.
    pub(crate) named: Vec<(String, String)>,
    /// Whether one of them is enough.
    pub(crate) any: bool,
}

/// For which calls an approval counts, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Remembered {
    /// `run` or `thread`.
    pub(crate) within: String,
    /// `<tool>:<hash of the arguments>`.
    pub(crate) key: String,
}

/// What was decided, and by whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Decision {
    /// `approve`, `deny`, `answer`, `retry`, `extend` or `finish`.
    pub(crate) decision: String,
    /// Arguments that were changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) args: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// What was filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Value>,
    /// What was added to a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) add: Option<Value>,
    /// The credentials' scope and fingerprint.
    pub(crate) scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprint: Option<String>,
    /// Who decided, as the caller says.
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
    /// Seq of the reply whose calls are asked about together.
    pub(crate) batch: Option<i64>,
    /// Of what is decided on: the call's tool, its definition and its arguments.
    pub(crate) digest: Option<String>,
    pub(crate) asked: Asked,
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
        let state = state.text().unwrap_or_default();
        Ok(Wait {
            id: id.int().unwrap_or_default(),
            kind: kind.text().and_then(WaitKind::parse).ok_or_else(damaged)?,
            state: WaitState::ALL.into_iter().find(|of| of.as_str() == state).ok_or_else(damaged)?,
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

    /// Whether it stands for the task that an MCP server works on for the call with this receipt.
    pub(crate) fn is_of_task(&self, receipt: i64) -> bool {
        self.kind == WaitKind::Task && self.receipt == Some(receipt)
    }

    /// Writes a new one, which is open.
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

    /// Writes that it is over, and how.
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

    /// When the run went on with what came of it, if it did: what was decided ahead of its turn is taken up with what was
    /// asked before it. `others`: all waits of the run.
    pub(crate) fn resumed_us(&self, others: &[Wait]) -> Option<i64> {
        let closed_us = self.closed_us?;
        let restarts = |other: &Wait| {
            other.batch == self.batch
                && other.decision.as_ref().is_some_and(|decision| decision.interrupt.is_some())
        };
        // What is cancelled otherwise ends with its run.
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

/// Makes the table.
pub(crate) fn create(sql: &dyn Sql) -> Result<()> {
    TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))
}

/// Those that are open, oldest first.
pub(crate) fn open(sql: &dyn Sql) -> Result<Vec<Wait>> {
    let statement = concat!("SELECT ", columns!(), " FROM waits WHERE open = 1 ORDER BY id");
    let mut found = Vec::new();
    sql.each(statement, &[], &mut |cells| {
        found.push(Wait::read(cells)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// The one with this id, open or not.
pub(crate) fn find(sql: &dyn Sql, id: i64) -> Result<Option<Wait>> {
    let statement = concat!("SELECT ", columns!(), " FROM waits WHERE open IN (0, 1) AND id = ?");
    one(sql, statement, &[Param::Int(id)])
}

/// Those of a run, newest first, open or not. A thread that never asked anything is not read.
pub(crate) fn of_run(state: &State, sql: &dyn Sql, run: i64) -> Result<Vec<Wait>> {
    let mut found = Vec::new();
    if state.meta.wait_next == 1 {
        return Ok(found);
    }
    // Runs come one after another, and so do their waits.
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

/// The newest question about the call with this receipt. That it was tried again later says nothing of that, nor what an MCP
/// server asked, or that somebody has signed in to it.
pub(crate) fn of_receipt(sql: &dyn Sql, receipt: i64) -> Result<Option<Wait>> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM waits WHERE open IN (0, 1) AND receipt = ? AND kind NOT IN ('retry', 'elicitation', 'task', 'sign_in') ORDER BY id DESC LIMIT 1"
    );
    one(sql, statement, &[Param::Int(receipt)])
}

/// Whether one of the last approvals counts for a call with this key, in this run. Of one that has changed the arguments nobody
/// has said that they may stand.
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

/// Approvals count for no later call any more.
pub(crate) fn forget_remembered(sql: &dyn Sql) -> Result<()> {
    sql.run(
        "UPDATE waits SET data = json_remove(data, '$.remember')
         WHERE open = 0 AND json_extract(data, '$.remember') IS NOT NULL",
        &[],
    )
}

/// Newest first, from below `before`, as long as `each` goes on.
pub(crate) fn list(
    sql: &dyn Sql,
    before: i64,
    each: &mut dyn FnMut(Wait) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let statement =
        concat!("SELECT ", columns!(), " FROM waits WHERE open IN (0, 1) AND id < ? ORDER BY id DESC");
    sql.each(statement, &[Param::Int(before)], &mut |cells| each(Wait::read(cells)?))
}

/// A decision counts for nothing: what was decided on has changed.
pub(crate) fn void(sql: &dyn Sql, id: i64) -> Result<()> {
    sql.run("UPDATE waits SET state = 'void' WHERE open = 0 AND id = ?", &[Param::Int(id)])
}

/// Moves the end of one that is open.
pub(crate) fn defer(sql: &dyn Sql, id: i64, until_us: i64) -> Result<()> {
    sql.run(
        "UPDATE waits SET expires_us = ? WHERE open = 1 AND id = ?",
        &[Param::Int(until_us), Param::Int(id)],
    )
}

/// When the first one ends, as it is known while the object lives.
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

/// How many are open, and the newest id.
pub(crate) fn tally(sql: &dyn Sql) -> Result<(i64, i64)> {
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
        let call = |args: Value| AskedCall { id: "c".into(), tool: "pay".into(), tier: Tier::ReadOnly, args };
        let of = |text: String| Asked { call: Some(call(json!({ "to": text }))), ..Asked::default() };
        let most = limits::WAIT_DATA_BYTES - DIGEST_BYTES - json_bytes(&of(String::new()));
        assert!(of("x".repeat(most)).fits());
        assert!(!of("x".repeat(most + 1)).fits());
        // As JSON writes it, in bytes.
        assert!(!of("\n".repeat(most / 2 + 1)).fits());
        assert!(!of("ä".repeat(most / 2 + 1)).fits());
        let half = || "x".repeat(most / 2 + 1);
        assert!(of(half()).fits());
        for more in [
            Asked { title: half(), ..of(half()) },
            Asked { reason: Some(half()), ..of(half()) },
            Asked { choices: vec![half()], ..of(half()) },
            Asked { edit: vec![half()], ..of(half()) },
        ] {
            assert!(!more.fits());
        }
    }
}
