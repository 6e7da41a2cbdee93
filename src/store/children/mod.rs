//! The table `children`: the registry of subagents (spec §8.5), one row each, written before the child exists.
//!
//! * here: the row. `open`: the children that are not terminated, in memory once they were needed.

pub(crate) mod open;

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::json;
use crate::page::Page;
use crate::spec::ParentCommunication as Communication;
use crate::store::amounts::Amounts;
use crate::store::grants::ChildBudget;
use crate::store::side::Side;
use crate::store::table::Table;

/// `open`: 0 is terminated, 1 is not; `meta.children` counts the latter. `facts`: what never changes of a child, as JSON.
pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE children (
    open INTEGER NOT NULL, reference TEXT NOT NULL, state TEXT NOT NULL, status TEXT NOT NULL, agent TEXT NOT NULL,
    facts TEXT NOT NULL, created_us INTEGER NOT NULL, sent INTEGER NOT NULL, received INTEGER NOT NULL, receipt INTEGER,
    asked INTEGER NOT NULL, due_us INTEGER, expires_us INTEGER, checks INTEGER NOT NULL DEFAULT 0, body TEXT, budget TEXT,
    PRIMARY KEY (open, reference)) WITHOUT ROWID"],
    drop: "DROP TABLE children",
};

/// How far a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildState {
    /// It waits for values of variables before it is made.
    Pending,
    /// It is being made.
    Creating,
    /// It exists.
    Live,
    /// It takes no more work.
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

/// What never changes of a child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChildInfo {
    /// Its label, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The agent's title and what a model reads about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) blocking: bool,
    pub(crate) resumable: bool,
    #[serde(default)]
    pub(crate) communication: Communication,
    /// The side that made it, `a` or `b`: what it says wakes that one.
    pub(crate) side: String,
    /// Names of the values that were given to it alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) own: Vec<String>,
    /// Whether it was made once it had the values that its call lacked: nobody waits for its first answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) deferred: bool,
    /// The message whose calls made it, and others with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    /// The id that the model calls it by, if it is a worker (docs/subagents.md); no other child of the thread ever has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) alias: Option<String>,
    /// The tools that it may call, sorted, where these are a part of its agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<String>>,
    /// Whether the messages that made it were cut out: nothing that it says is heard any more. The one thing here that changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cut: bool,
}

impl ChildInfo {
    /// The side that made it.
    pub(crate) fn side(&self) -> Side {
        Side::parse(&self.side).unwrap_or(Side::A)
    }
}

/// A receipt that is parked until the child answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The receipt.
    pub(crate) receipt: i64,
    /// When the wait is over, microseconds since 1970.
    pub(crate) expires_us: i64,
}

/// A row of `children`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Child {
    /// Its thread's id, which is also the reference that models use.
    pub(crate) reference: String,
    pub(crate) state: ChildState,
    /// As models and people see it: `running`, `idle`, `failed`, `terminated`, or what it says of itself.
    pub(crate) status: String,
    /// The agent that it was created with.
    pub(crate) agent: String,
    pub(crate) facts: ChildInfo,
    pub(crate) created_us: i64,
    pub(crate) envelopes: Envelopes,
    /// The last letter that wants an answer.
    pub(crate) asked: i64,
    pub(crate) wait: Option<Wait>,
    /// When the alarm looks after it: the next time it is asked how it is, or the end of a wait.
    pub(crate) due_us: Option<i64>,
    /// How often it was asked in this wait.
    pub(crate) checks: i64,
    /// What a child in [`ChildState::Pending`] is to be made with, or what a worker came to, as JSON.
    pub(crate) body: Option<String>,
    /// What it holds of the thread's budget.
    pub(crate) budget: Option<Box<ChildBudget>>,
}

/// The columns of [`Child`], with a condition; statements are literals.
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

    /// Whether it is not terminated.
    pub(crate) fn is_open(&self) -> bool {
        self.state != ChildState::Terminated
    }

    /// Whether a model leads it: what it comes to is kept until it is asked for.
    pub(crate) fn is_worker(&self) -> bool {
        self.facts.alias.is_some()
    }

    /// Whether it was stopped by a person and can be called no more: only a person can go on with it.
    pub(crate) fn rests_for_good(&self) -> bool {
        self.state == ChildState::Live
            && !self.facts.resumable
            && self.wait.is_none()
            && self.status == "idle"
    }

    /// As the API and code see it (spec §8.5).
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

    /// Adds the id that a worker has.
    pub(crate) fn add_alias(&self, shown: &mut Value) {
        if let (Some(alias), Some(fields)) = (&self.facts.alias, shown.as_object_mut()) {
            fields.insert("agentId".into(), alias.as_str().into());
        }
    }

    /// As `GET …/diagnostics` shows it.
    pub(crate) fn to_diagnostics(&self) -> Value {
        let state = self.state.as_str();
        json!({
            "reference": self.reference, "agent": self.agent, "state": state, "status": self.status,
            "sent": self.envelopes.sent, "received": self.envelopes.received,
        })
    }

    /// What a parked run waits for, when it is this child, for whoever waits for the run.
    pub(crate) fn waited_for(&self) -> Option<Value> {
        let Wait { expires_us, .. } = self.wait?;
        Some(json!({
            "subagent": self.reference, "agent_name": self.agent, "threadName": self.facts.name,
            "status": self.status, "expiresAt": expires_us,
        }))
    }

    /// The receipt that waits for it, as `GET …/diagnostics` shows it.
    pub(crate) fn waiting(&self) -> Option<Value> {
        let Wait { receipt, expires_us } = self.wait?;
        Some(json!({
            "receipt": receipt, "subagent": self.reference, "expiresAt": expires_us, "checkAt": self.due_us,
            "checks": self.checks,
        }))
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

/// Those that are not terminated.
fn open_rows(sql: &dyn Sql) -> Result<Vec<Child>> {
    read(sql, children!("WHERE open = 1"), &[])
}

/// A terminated one.
fn terminated(sql: &dyn Sql, reference: &str) -> Result<Option<Child>> {
    let found = read(sql, children!("WHERE open = 0 AND reference = ?"), &[Param::Text(reference)])?;
    Ok(found.into_iter().next())
}

/// Any of them.
fn by_reference(sql: &dyn Sql, reference: &str) -> Result<Option<Child>> {
    let statement = children!("WHERE open IN (0, 1) AND reference = ?");
    Ok(read(sql, statement, &[Param::Text(reference)])?.into_iter().next())
}

/// A terminated worker, by the id that its parent calls it by.
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

/// Forgets a child, terminated or not.
pub(crate) fn delete(sql: &dyn Sql, reference: &str) -> Result<()> {
    sql.run("DELETE FROM children WHERE open IN (0, 1) AND reference = ?", &[Param::Text(reference)])
}

/// All children, newest first, without what those that are not made yet are to be made with.
pub(crate) fn all(sql: &dyn Sql) -> Result<Vec<Child>> {
    let statement =
        "SELECT reference, state, status, agent, facts, created_us, sent, received, receipt, asked, due_us,
        expires_us, checks, NULL, budget FROM children";
    let mut found = read(sql, statement, &[])?;
    found.sort_by_key(|child| std::cmp::Reverse(child.created_us));
    Ok(found)
}

/// Fills a page with children, newest first, after the first `offset`. How many there are.
pub(crate) fn list(
    sql: &dyn Sql,
    page: &mut Page,
    offset: u32,
    shown: impl Fn(&Child) -> Value,
) -> Result<usize> {
    let places = places(sql)?;
    for (_, open, reference) in places.iter().skip(offset as usize) {
        if let Some(child) = at(sql, *open, reference)?
            && page.add(|| Ok(shown(&child)))?.is_break()
        {
            break;
        }
    }
    Ok(places.len())
}

/// When each child was made, whether it is open, and its reference; newest first.
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

/// What children hold of what a run has lent, and what they have used of it.
pub(crate) fn lent_by(sql: &dyn Sql, run: i64) -> Result<(Amounts, Amounts)> {
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

/// When the alarm must next look after one that is not terminated.
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

/// Numbers of the envelopes between two threads, which grow by one each way: what was received is not received again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Envelopes {
    /// The last one that was written to the other.
    pub(crate) sent: i64,
    /// The last one that came from the other.
    pub(crate) received: i64,
}
