//! The table `children`: the registry of subagents (spec §8.5). A row is written before its child exists.
//!
//! * here: the row. `open`: the children that are not terminated, kept in memory after the first use.

pub(crate) mod open;

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::ParentCommunication as Communication;
use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::json;
use crate::json_text::JsonText;
use crate::limits;
use crate::page::Page;
use crate::protocols::responses::diagnostics::{DiagnosedChild, WaitingReceipt};
use crate::protocols::responses::threads::ListedSubagent;
use crate::store::amounts::Amounts;
use crate::store::grants::ChildBudget;
use crate::store::side::Side;
use crate::store::table::Table;

/// `open`: 0 is terminated, 1 is not; `meta.children` counts the latter. `facts`: the constant facts of a
/// child, as JSON.
pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE children (
    open INTEGER NOT NULL, reference TEXT NOT NULL, state TEXT NOT NULL, status TEXT NOT NULL, agent TEXT NOT NULL,
    facts TEXT NOT NULL, created_us INTEGER NOT NULL, sent INTEGER NOT NULL, received INTEGER NOT NULL, receipt INTEGER,
    asked INTEGER NOT NULL, due_us INTEGER, expires_us INTEGER, checks INTEGER NOT NULL DEFAULT 0, body TEXT, budget TEXT,
    PRIMARY KEY (open, reference)) WITHOUT ROWID"],
    drop: "DROP TABLE children",
};

/// The state of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildState {
    /// Waits for values of variables before it is created.
    Pending,
    /// Is being created.
    Creating,
    Live,
    /// Accepts no more work.
    Terminated,
}

impl ChildState {
    const fn as_str(self) -> &'static str {
        match self {
            ChildState::Pending => "pending",
            ChildState::Creating => "creating",
            ChildState::Live => "live",
            ChildState::Terminated => "terminated",
        }
    }

    fn parse(text: &str) -> Result<ChildState> {
        Ok(match text {
            "pending" => ChildState::Pending,
            "creating" => ChildState::Creating,
            "live" => ChildState::Live,
            "terminated" => ChildState::Terminated,
            other => return Err(Error::internal(format!("a child has the unknown state {other:?}"))),
        })
    }
}

/// The constant facts of a child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChildInfo {
    /// Its label, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// Title and description of its agent, for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) blocking: bool,
    pub(crate) resumable: bool,
    #[serde(default)]
    pub(crate) communication: Communication,
    /// The side that created it, `a` or `b`: its messages wake that side.
    pub(crate) side: String,
    /// Names of the values that only this child received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) own: Vec<String>,
    /// Whether its creation waited for values that its call lacked. No call waits for its first response
    /// then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) deferred: bool,
    /// The message whose calls created it, together with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    /// The id that the model uses for it if it is a worker (docs/subagents.md). No other child of the thread
    /// ever gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) alias: Option<String>,
    /// The tools that it may call, sorted, if its agent has more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<String>>,
    /// Whether the messages that created it were cut out: its messages are ignored then. The only fact that
    /// changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cut: bool,
}

impl ChildInfo {
    pub(crate) fn side(&self) -> Side {
        Side::parse(&self.side).unwrap_or(Side::A)
    }
}

/// A receipt that is parked until the child answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) receipt: i64,
    /// End of the wait, microseconds since 1970.
    pub(crate) expires_us: i64,
}

/// A row of `children`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Child {
    /// Id of its thread, which models use as the reference.
    pub(crate) reference: String,
    pub(crate) state: ChildState,
    /// Shown to models and people: `running`, `idle`, `failed`, `terminated`, or a status that it has set.
    pub(crate) status: String,
    /// The agent that it was created with.
    pub(crate) agent: String,
    pub(crate) facts: ChildInfo,
    pub(crate) created_us: i64,
    pub(crate) envelopes: Envelopes,
    /// Number of the last envelope that requires a response.
    pub(crate) asked: i64,
    pub(crate) wait: Option<Wait>,
    /// When the alarm next handles it: its next check, or the end of a wait.
    pub(crate) due_us: Option<i64>,
    /// Checks during this wait.
    pub(crate) checks: i64,
    /// The request that creates a child in [`ChildState::Pending`], or the outcome of a worker, as JSON.
    pub(crate) body: Option<String>,
    /// Its allocation of the thread's budget.
    pub(crate) budget: Option<Box<ChildBudget>>,
}

/// Selects the columns of [`Child`] with a condition. A macro, because statements must be literals.
macro_rules! children {
    ($condition:literal) => {
        concat!(
            "SELECT reference, state, status, agent, facts, created_us, sent, received, receipt, asked, due_us,
                expires_us, checks, body, budget FROM children ",
            $condition
        )
    };
}

impl Child {
    fn read(cells: &[Cell]) -> Result<Child> {
        let [
            reference,
            state,
            status,
            agent,
            facts,
            created,
            sent,
            received,
            receipt,
            asked,
            due,
            expires,
            checks,
            body,
            budget,
        ] = cells
        else {
            return Err(Error::internal("a row of children has the wrong number of columns"));
        };
        let text = |cell: &Cell| cell.text().unwrap_or_default().to_owned();
        let number = |cell: &Cell| cell.int().unwrap_or_default();
        let damaged = |error| Error::internal(format!("the facts of a child are damaged: {error}"));
        Ok(Child {
            reference: text(reference),
            state: ChildState::parse(&text(state))?,
            status: text(status),
            agent: text(agent),
            facts: crate::json::from_str(&text(facts)).map_err(damaged)?,
            created_us: number(created),
            envelopes: Envelopes { sent: number(sent), received: number(received) },
            asked: number(asked),
            wait: receipt.int().map(|receipt| Wait { receipt, expires_us: number(expires) }),
            due_us: due.int(),
            checks: number(checks),
            body: body.text().map(str::to_owned),
            budget: budget.text().map(crate::json::from_str).transpose().map_err(damaged)?,
        })
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state != ChildState::Terminated
    }

    /// Whether a model manages it: its outcome is then kept until the model requests it.
    pub(crate) fn is_worker(&self) -> bool {
        self.facts.alias.is_some()
    }

    /// Whether a person has stopped it and no call can resume it, so that only a person can continue it.
    pub(crate) fn rests_for_good(&self) -> bool {
        self.state == ChildState::Live
            && !self.facts.resumable
            && self.wait.is_none()
            && self.status == "idle"
    }

    /// The form for the API and for code (spec §8.5).
    pub(crate) fn to_json(&self) -> Value {
        let facts = &self.facts;
        let mut shown = json!({
            "reference": self.reference,
            "name": self.agent,
            "title": facts.title,
            "description": facts.description,
            "resumable": facts.resumable,
            "blocking": facts.blocking,
            "threadName": facts.name,
            "spawnGroupId": facts.group,
            "createdAt": self.created_us,
            "status": self.status,
            "parentCommunication": facts.communication.as_str(),
        });
        self.add_alias(&mut shown);
        shown
    }

    /// The entry in lists of subagents.
    fn response(&self) -> ListedSubagent<'_> {
        let facts = &self.facts;
        ListedSubagent {
            id: &self.reference,
            agent_name: &self.agent,
            title: facts.title.as_deref(),
            thread_name: facts.name.as_deref(),
            description: &facts.description,
            status: &self.status,
            resumable: facts.resumable,
            blocking: facts.blocking,
            parent_communication: facts.communication.as_str(),
            spawn_group_id: facts.group.as_deref(),
            created_at: self.created_us / limits::SECOND_US,
            agent_id: facts.alias.as_deref(),
        }
    }

    /// Adds a worker's id.
    pub(crate) fn add_alias(&self, shown: &mut Value) {
        if let (Some(alias), Some(fields)) = (&self.facts.alias, shown.as_object_mut()) {
            fields.insert("agentId".into(), alias.as_str().into());
        }
    }

    /// The form in `GET …/diagnostics`.
    pub(crate) fn diagnosed(&self) -> DiagnosedChild<'_> {
        DiagnosedChild {
            reference: &self.reference,
            agent: &self.agent,
            state: self.state.as_str(),
            status: &self.status,
            sent: self.envelopes.sent,
            received: self.envelopes.received,
        }
    }

    /// Describes the wait of a parked run for this child, for clients that wait for the run.
    pub(crate) fn waited_for(&self) -> Option<Value> {
        let Wait { expires_us, .. } = self.wait?;
        Some(json!({
            "subagent": self.reference, "agent_name": self.agent, "threadName": self.facts.name,
            "status": self.status, "expiresAt": expires_us,
        }))
    }

    /// Describes the receipt that waits for this child, in `GET …/diagnostics`.
    pub(crate) fn waiting(&self) -> Option<WaitingReceipt<'_>> {
        let Wait { receipt, expires_us } = self.wait?;
        Some(WaitingReceipt {
            receipt,
            subagent: &self.reference,
            expires_at: expires_us,
            check_at: self.due_us,
            checks: self.checks,
        })
    }

    fn insert(&self, sql: &dyn Sql) -> Result<()> {
        self.write(
            sql,
            "INSERT INTO children (open, reference, state, status, agent, facts, created_us, sent, received, receipt, asked,
                due_us, expires_us, checks, body, budget) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
    }

    fn update(&self, sql: &dyn Sql) -> Result<()> {
        self.write(
            sql,
            "UPDATE children SET open = ?1, state = ?3, status = ?4, agent = ?5, facts = ?6, created_us = ?7, sent = ?8,
                received = ?9, receipt = ?10, asked = ?11, due_us = ?12, expires_us = ?13, checks = ?14, body = ?15,
                budget = ?16
             WHERE open IN (0, 1) AND reference = ?2",
        )
    }

    fn write(&self, sql: &dyn Sql, statement: &'static str) -> Result<()> {
        let facts = serde_json::to_string(&self.facts).map_err(Error::internal)?;
        let budget = self.budget.as_ref().map(serde_json::to_string).transpose().map_err(Error::internal)?;
        sql.run(
            statement,
            &[
                Param::Int(i64::from(self.is_open())),
                Param::Text(&self.reference),
                Param::Text(self.state.as_str()),
                Param::Text(&self.status),
                Param::Text(&self.agent),
                Param::Text(&facts),
                Param::Int(self.created_us),
                Param::Int(self.envelopes.sent),
                Param::Int(self.envelopes.received),
                self.wait.map(|wait| wait.receipt).into(),
                Param::Int(self.asked),
                self.due_us.into(),
                self.wait.map(|wait| wait.expires_us).into(),
                Param::Int(self.checks),
                self.body.as_ref().into(),
                budget.as_ref().into(),
            ],
        )
    }
}

/// The children that are not terminated.
fn open_rows(sql: &dyn Sql) -> Result<Vec<Child>> {
    read(sql, children!("WHERE open = 1"), &[])
}

/// A terminated child.
fn terminated(sql: &dyn Sql, reference: &str) -> Result<Option<Child>> {
    let found = read(sql, children!("WHERE open = 0 AND reference = ?"), &[Param::Text(reference)])?;
    Ok(found.into_iter().next())
}

/// A child, terminated or not.
fn by_reference(sql: &dyn Sql, reference: &str) -> Result<Option<Child>> {
    let statement = children!("WHERE open IN (0, 1) AND reference = ?");
    Ok(read(sql, statement, &[Param::Text(reference)])?.into_iter().next())
}

/// The reference of a terminated worker, by its id.
pub(crate) fn terminated_worker(sql: &dyn Sql, alias: &str) -> Result<Option<String>> {
    let mut found = None;
    sql.each(
        "SELECT reference FROM children WHERE open = 0 AND json_extract(facts, '$.alias') = ? LIMIT 1",
        &[Param::Text(alias)],
        &mut |cells| {
            found = cells.first().and_then(|cell| cell.text().map(str::to_owned));
            Ok(ControlFlow::Break(()))
        },
    )?;
    Ok(found)
}

/// Deletes a child, terminated or not.
pub(crate) fn delete(sql: &dyn Sql, reference: &str) -> Result<()> {
    sql.run("DELETE FROM children WHERE open IN (0, 1) AND reference = ?", &[Param::Text(reference)])
}

/// All children, newest first, without their `body`.
pub(crate) fn all(sql: &dyn Sql) -> Result<Vec<Child>> {
    let statement =
        "SELECT reference, state, status, agent, facts, created_us, sent, received, receipt, asked, due_us,
        expires_us, checks, NULL, budget FROM children";
    let mut found = read(sql, statement, &[])?;
    found.sort_by_key(|child| std::cmp::Reverse(child.created_us));
    Ok(found)
}

/// Fills a page with children, newest first, after the first `offset`. Returns how many there are.
pub(crate) fn list(
    sql: &dyn Sql,
    page: &mut Page<JsonText<ListedSubagent<'static>>>,
    offset: u32,
) -> Result<usize> {
    let places = places(sql)?;
    for (_, open, reference) in places.iter().skip(offset as usize) {
        if let Some(child) = at(sql, *open, reference)?
            && page.add_text(|| JsonText::new(&child.response()))?.is_break()
        {
            break;
        }
    }
    Ok(places.len())
}

/// Creation time, `open` and reference of each child, newest first.
fn places(sql: &dyn Sql) -> Result<Vec<(i64, i64, String)>> {
    let mut places = Vec::new();
    sql.each("SELECT created_us, open, reference FROM children", &[], &mut |cells| {
        if let [created, open, reference] = cells {
            let reference = reference.text().unwrap_or_default().to_owned();
            places.push((created.int().unwrap_or_default(), open.int().unwrap_or_default(), reference));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    places.sort_by_key(|(created, _, _)| std::cmp::Reverse(*created));
    Ok(places)
}

fn at(sql: &dyn Sql, open: i64, reference: &str) -> Result<Option<Child>> {
    let statement =
        "SELECT reference, state, status, agent, facts, created_us, sent, received, receipt, asked, due_us,
        expires_us, checks, NULL, budget FROM children WHERE open = ? AND reference = ?";
    Ok(read(sql, statement, &[Param::Int(open), Param::Text(reference)])?.into_iter().next())
}

/// Amounts that children hold of a run's budget, and that they have used of it.
pub(super) fn lent_by(sql: &dyn Sql, run: i64) -> Result<(Amounts, Amounts)> {
    let (mut lent, mut spent) = (Amounts::default(), Amounts::default());
    let statement = "SELECT budget FROM children WHERE budget IS NOT NULL";
    sql.each(statement, &[], &mut |cells| {
        let text = cells.first().and_then(Cell::text).unwrap_or_default();
        let budget: ChildBudget = crate::json::from_str(text)
            .map_err(|error| Error::internal(format!("the budget of a child is damaged: {error}")))?;
        if budget.run == run {
            lent.add(&budget.granted);
            spent.add(&budget.spent);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((lent, spent))
}

/// When the alarm must next handle a child that is not terminated.
fn first_due(sql: &dyn Sql) -> Result<Option<i64>> {
    integer(sql, "SELECT min(due_us) FROM children WHERE open = 1", &[])
}

fn read(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<Child>> {
    let mut rows = Vec::new();
    sql.each(statement, params, &mut |cells| {
        rows.push(Child::read(cells)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

/// Numbers of the envelopes between two threads, which grow by one in each direction, so that none is taken
/// in twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Envelopes {
    /// The last one written to the other thread.
    pub(crate) sent: i64,
    /// The last one received from the other thread.
    pub(crate) received: i64,
}
