//! The table `runs`. A run: from idle to idle. Its row is the engine's program counter: a process that dies anywhere is re-entered at
//! the stored phase (docs/durability.md).
//!
//! * `end`: how a run ended. `session_result`: what a session came to. `diagnostics`: what was found wrong.
//! * `usage`: what its requests have taken. `ledger`: its budget. `totals`: what all runs have used together. `recall`: what
//!   was looked up for it.
//! * `traces`: runs as those read them that tell others of what was done.

/// The columns of [`Run`], in the order of [`Run::read`].
macro_rules! run_columns {
    () => {
        "id, phase, side, turn_from, started_us, ended_us, reason, error, step, steps, side_steps, block, model,
         attempt, stream, recoveries, resume_us, short_below, turns, asked, result, diagnostics, trace, snapshot, retry, budget, first"
    };
}

pub(crate) mod diagnostics;
pub(crate) mod end;
pub(crate) mod ledger;
pub(crate) mod recall;
pub(crate) mod session_result;
pub(crate) mod totals;
pub(crate) mod traces;
pub(crate) mod usage;

use std::ops::ControlFlow;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql};
use crate::json;
use crate::limits;
use crate::store::runs::diagnostics::Diagnostics;
use crate::store::runs::end::{End, Outcome, Reason};
use crate::store::runs::ledger::Ledger;
use crate::store::runs::session_result::SessionResult;
use crate::store::side::{Asked, Side};
use crate::store::table::Table;

/// The program counter of the engine. At most the newest row is unfinished.
pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE runs (
        id INTEGER PRIMARY KEY, phase TEXT NOT NULL, side TEXT NOT NULL, turn_from INTEGER NOT NULL,
        started_us INTEGER NOT NULL, ended_us INTEGER, outcome TEXT, reason TEXT, error TEXT,
        step INTEGER NOT NULL, steps INTEGER NOT NULL, side_steps TEXT NOT NULL, block INTEGER NOT NULL,
        model INTEGER NOT NULL, attempt INTEGER NOT NULL, stream INTEGER NOT NULL, recoveries INTEGER NOT NULL,
        resume_us INTEGER, short_below INTEGER NOT NULL, turns INTEGER NOT NULL DEFAULT 0, asked TEXT, result TEXT,
        diagnostics TEXT, trace TEXT, snapshot TEXT, retry TEXT, budget TEXT, recall TEXT,
        first INTEGER NOT NULL DEFAULT 0)"],
    drop: "DROP TABLE runs",
};

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The next step is still to be opened.
    Start,
    /// A step is open; its model has not answered yet.
    Model,
    /// The reply is stored, which is what tells this phase from the one before; its calls run one after another.
    /// Which one is next follows from the stored results.
    Tools,
    /// A call waits for something outside; nothing is in memory and nothing is billed.
    Parked,
    /// The same before a step is opened: the call is one that code has queued.
    ParkedAtStart,
    /// The same of an open step: its model is asked again later.
    ParkedAtModel,
    /// Over.
    Ended,
}

impl Phase {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Phase::Start => "start",
            Phase::Model => "model",
            Phase::Tools => "tools",
            Phase::Parked => "parked",
            Phase::ParkedAtStart => "parked_start",
            Phase::ParkedAtModel => "parked_model",
            Phase::Ended => "ended",
        }
    }

    fn parse(text: &str) -> Result<Phase> {
        Ok(match text {
            "start" => Phase::Start,
            "model" => Phase::Model,
            "tools" => Phase::Tools,
            "parked" => Phase::Parked,
            "parked_start" => Phase::ParkedAtStart,
            "parked_model" => Phase::ParkedAtModel,
            "ended" => Phase::Ended,
            other => return Err(Error::internal(format!("a run has the unknown phase {other:?}"))),
        })
    }
}

/// A row of `runs`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) id: i64,
    pub(crate) phase: Phase,
    pub(crate) side: Side,
    /// Seq of the first message of the current turn: from here on everything is in the request.
    pub(crate) turn_from: i64,
    pub(crate) started_us: i64,
    pub(crate) end: Option<End>,
    /// Steps of this run.
    pub(crate) step: u32,
    /// Steps since the counters were last reset (a message that started a run); the hard cap counts these.
    pub(crate) steps: u32,
    /// The same for each side; `maxSteps` counts these.
    pub(crate) side_steps: [u32; 2],
    /// Seq reserved for the current (or, between steps, the last) step's reply. Everything below is drained.
    pub(crate) block: i64,
    /// Place of the model in its chain of fallbacks.
    pub(crate) model: u32,
    /// Attempts at that model, from 1.
    pub(crate) attempt: u32,
    /// Number of the stream under the reply's id; grows with every request to a provider.
    pub(crate) stream: u32,
    /// Re-entries of the current step after a crash.
    pub(crate) recoveries: u32,
    /// Set when the run is to go on by itself at this time: a yield, or the wait before a recovery.
    pub(crate) resume_us: Option<i64>,
    /// Tool results below this seq are sent shortened.
    pub(crate) short_below: i64,
    /// Turns of the session that are complete, of both sides together (spec §35.2).
    pub(crate) turns: u32,
    /// What code has asked of it since its last step.
    pub(crate) asked: Option<Asked>,
    /// What a session tool that ended it has said.
    pub(crate) result: Option<SessionResult>,
    /// What was found wrong while it ran.
    pub(crate) diagnostics: Diagnostics,
    /// The trace that it belongs to: ids in hexadecimal.
    pub(crate) trace: Option<String>,
    /// Hash of the definitions that it began with.
    pub(crate) snapshot: Option<String>,
    /// How the message that started it wants failures to be retried, as JSON.
    pub(crate) retry: Option<String>,
    /// What it may use and has used, where anything limits it.
    pub(crate) ledger: Option<Box<Ledger>>,
    /// The first seq that was free when it began: what its steps write is not before it.
    pub(crate) first: i64,
}

impl Run {
    /// A run of this side that is about to open its first step. `last` is the thread's previous run, whose session goes
    /// on unless it ended with it. `floor`: the number of the last run before the first one, and the last message that was there.
    pub(crate) fn start(
        last: Option<&Run>,
        floor: (i64, i64),
        side: Side,
        turn_from: i64,
        counters: Counters,
        (first, now_us): (i64, i64),
    ) -> Run {
        let session = last.filter(|run| !run.end.as_ref().is_some_and(|end| end.reason.ends_session()));
        let keep = match counters {
            Counters::Reset => None,
            Counters::Keep => last,
        };
        let completed =
            |run: &&Run| run.end.as_ref().is_some_and(|end| end.reason.outcome() == Outcome::Completed);
        let resumed = keep.filter(|run| !completed(run));
        Run {
            id: last.map_or(floor.0 + 1, |run| run.id + 1),
            phase: Phase::Start,
            side,
            turn_from,
            started_us: now_us,
            end: None,
            step: 0,
            steps: keep.map_or(0, |run| run.steps),
            side_steps: keep.map_or([0, 0], |run| run.side_steps),
            block: last.map_or(floor.1, |run| run.block),
            model: 0,
            attempt: 0,
            stream: 0,
            recoveries: 0,
            resume_us: None,
            short_below: keep.map_or(0, |run| run.short_below),
            turns: session.map_or(0, |run| run.turns),
            asked: None,
            result: None,
            diagnostics: last.map(|run| run.diagnostics.of_next(run.block)).unwrap_or_default(),
            trace: None,
            snapshot: resumed.and_then(|run| run.snapshot.clone()),
            retry: None,
            ledger: None,
            first,
        }
    }

    /// Whether work is left that nobody outside holds up.
    pub(crate) fn runnable(&self) -> bool {
        !self.phase.is_parked() && self.phase != Phase::Ended
    }

    /// Whether its step's block of seqs is taken.
    pub(crate) fn block_open(&self) -> bool {
        matches!(self.phase, Phase::Model | Phase::Tools | Phase::Parked | Phase::ParkedAtModel)
    }

    /// Steps of the side that acts.
    pub(crate) fn own_steps(&mut self) -> &mut u32 {
        let [a, b] = &mut self.side_steps;
        match self.side {
            Side::A => a,
            Side::B => b,
        }
    }

    /// Writes a new run.
    pub(crate) fn insert(&self, sql: &dyn Sql) -> Result<()> {
        let side_steps = self.side_steps_text();
        let diagnostics = self.diagnostics.column()?;
        let budget = self.budget_text()?;
        sql.run(
            "INSERT INTO runs (id, phase, side, turn_from, started_us, step, steps, side_steps, block, model, attempt,
                stream, recoveries, resume_us, short_below, turns, trace, snapshot, retry, diagnostics, budget, first)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            &[
                Param::Int(self.id),
                Param::Text(self.phase.as_str()),
                Param::Text(self.side.as_str()),
                Param::Int(self.turn_from),
                Param::Int(self.started_us),
                Param::Int(i64::from(self.step)),
                Param::Int(i64::from(self.steps)),
                Param::Text(&side_steps),
                Param::Int(self.block),
                Param::Int(i64::from(self.model)),
                Param::Int(i64::from(self.attempt)),
                Param::Int(i64::from(self.stream)),
                Param::Int(i64::from(self.recoveries)),
                self.resume_us.into(),
                Param::Int(self.short_below),
                Param::Int(i64::from(self.turns)),
                self.trace.as_ref().into(),
                self.snapshot.as_ref().into(),
                self.retry.as_ref().into(),
                diagnostics.as_ref().into(),
                budget.as_ref().into(),
                Param::Int(self.first),
            ],
        )
    }

    /// Writes what changes while it runs, and its end.
    pub(crate) fn update(&self, sql: &dyn Sql) -> Result<()> {
        let side_steps = self.side_steps_text();
        let end = self.end.as_ref();
        let budget = self.budget_text()?;
        let diagnostics = self.diagnostics.column()?;
        let result = self.result.as_ref().map(serde_json::to_string).transpose().map_err(Error::internal)?;
        sql.run(
            "UPDATE runs SET phase = ?, ended_us = ?, outcome = ?, reason = ?, error = ?, step = ?, steps = ?,
                side_steps = ?, block = ?, model = ?, attempt = ?, stream = ?, recoveries = ?, resume_us = ?,
                short_below = ?, turn_from = ?, side = ?, turns = ?, asked = ?, result = ?, diagnostics = ?,
                snapshot = ?, budget = ?
             WHERE id = ?",
            &[
                Param::Text(self.phase.as_str()),
                end.map(|end| end.at_us).into(),
                end.map(|end| end.reason.outcome().as_str()).into(),
                end.map(|end| end.reason.as_str()).into(),
                end.and_then(|end| end.message.as_deref()).into(),
                Param::Int(i64::from(self.step)),
                Param::Int(i64::from(self.steps)),
                Param::Text(&side_steps),
                Param::Int(self.block),
                Param::Int(i64::from(self.model)),
                Param::Int(i64::from(self.attempt)),
                Param::Int(i64::from(self.stream)),
                Param::Int(i64::from(self.recoveries)),
                self.resume_us.into(),
                Param::Int(self.short_below),
                Param::Int(self.turn_from),
                Param::Text(self.side.as_str()),
                Param::Int(i64::from(self.turns)),
                self.asked.map(Asked::as_str).into(),
                result.as_ref().into(),
                diagnostics.as_ref().into(),
                self.snapshot.as_ref().into(),
                budget.as_ref().into(),
                Param::Int(self.id),
            ],
        )
    }

    fn budget_text(&self) -> Result<Option<String>> {
        self.ledger.as_ref().map(serde_json::to_string).transpose().map_err(Error::internal)
    }

    /// Steps that are complete.
    pub(crate) fn steps_done(&self) -> u32 {
        match self.phase {
            Phase::Model | Phase::ParkedAtModel => self.step.saturating_sub(1),
            _ => self.step,
        }
    }

    fn side_steps_text(&self) -> String {
        let [a, b] = self.side_steps;
        format!("{a},{b}")
    }

    /// The newest run.
    pub(crate) fn last(sql: &dyn Sql) -> Result<Option<Run>> {
        Run::query(sql, concat!("SELECT ", run_columns!(), " FROM runs ORDER BY id DESC LIMIT 1"), &[])
    }

    /// The run of that number.
    pub(crate) fn find(sql: &dyn Sql, id: i64) -> Result<Option<Run>> {
        Run::query(sql, concat!("SELECT ", run_columns!(), " FROM runs WHERE id = ?"), &[Param::Int(id)])
    }

    /// Those before a number, newest first.
    pub(crate) fn newest(
        sql: &dyn Sql,
        before: i64,
        take: &mut dyn FnMut(Run) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        sql.each(
            concat!("SELECT ", run_columns!(), " FROM runs WHERE id < ? ORDER BY id DESC"),
            &[Param::Int(before)],
            &mut |cells| take(Run::read(cells)?),
        )
    }

    /// The run that took in the message `seq`: the first one that opened a block beyond it.
    pub(crate) fn of_message(sql: &dyn Sql, seq: i64) -> Result<Option<Run>> {
        // Blocks grow with ids, and a message is nearly always one of the newest: look from that end.
        let mut found = None;
        sql.each(concat!("SELECT ", run_columns!(), " FROM runs ORDER BY id DESC"), &[], &mut |cells| {
            let run = Run::read(cells)?;
            if run.block <= seq {
                return Ok(ControlFlow::Break(()));
            }
            found = Some(run);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// The newest run behind another one whose turn begins with the message `seq`.
    pub(crate) fn answering(sql: &dyn Sql, seq: i64, behind: i64) -> Result<Option<Run>> {
        let statement = concat!(
            "SELECT ",
            run_columns!(),
            " FROM runs WHERE id > ? AND turn_from = ? ORDER BY id DESC LIMIT 1"
        );
        Run::query(sql, statement, &[Param::Int(behind), Param::Int(seq)])
    }

    /// The run whose step wrote the row `seq`.
    pub(crate) fn of_written(sql: &dyn Sql, seq: i64) -> Result<Option<Run>> {
        let statement =
            concat!("SELECT ", run_columns!(), " FROM runs WHERE first <= ? ORDER BY id DESC LIMIT 1");
        Run::query(sql, statement, &[Param::Int(seq)])
    }

    fn query(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Option<Run>> {
        let mut found = None;
        sql.each(statement, params, &mut |cells| {
            found = Some(Run::read(cells)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    fn read(cells: &[Cell]) -> Result<Run> {
        let [
            id,
            phase,
            side,
            turn_from,
            started,
            ended,
            reason,
            error,
            step,
            steps,
            side_steps,
            block,
            model,
            attempt,
            stream,
            recoveries,
            resume,
            short_below,
            turns,
            asked,
            result,
            diagnostics,
            trace,
            snapshot,
            retry,
            budget,
            first,
        ] = cells
        else {
            return Err(Error::internal("a run row has the wrong number of columns"));
        };
        let number = |cell: &Cell| cell.int().unwrap_or_default();
        let small = |cell: &Cell| u32::try_from(number(cell)).unwrap_or_default();
        let (a, b) = side_steps.text().and_then(|text| text.split_once(',')).unwrap_or(("0", "0"));
        Ok(Run {
            id: number(id),
            phase: Phase::parse(phase.text().unwrap_or_default())?,
            side: side.text().and_then(Side::parse).unwrap_or(Side::A),
            turn_from: number(turn_from),
            started_us: number(started),
            end: ended.int().map(|at_us| End {
                reason: reason.text().and_then(Reason::parse).unwrap_or(Reason::StoppedByUser),
                message: error.text().map(str::to_owned),
                at_us,
            }),
            step: small(step),
            steps: small(steps),
            side_steps: [a.parse().unwrap_or_default(), b.parse().unwrap_or_default()],
            block: number(block),
            model: small(model),
            attempt: small(attempt),
            stream: small(stream),
            recoveries: small(recoveries),
            resume_us: resume.int(),
            short_below: number(short_below),
            turns: small(turns),
            asked: asked.text().and_then(Asked::parse),
            result: result.text().map(crate::json::from_str).transpose().map_err(Error::internal)?,
            diagnostics: Diagnostics::parse(diagnostics.text())?,
            trace: trace.text().map(str::to_owned),
            snapshot: snapshot.text().map(str::to_owned),
            retry: retry.text().map(str::to_owned),
            ledger: Ledger::parse(budget.text())?,
            first: number(first),
        })
    }

    /// The first seq that no row of an open step can take.
    pub(crate) fn beyond_block(&self) -> i64 {
        if self.block_open() { self.block + limits::BLOCK } else { self.block + 1 }
    }

    /// As diagnostics and waiters show it.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "id": self.public_id(),
            "phase": if self.phase.is_parked() { "parked" } else { self.phase.as_str() },
            "side": self.side.as_str(),
            "session_turns": self.turns,
            "step": self.step,
            "steps": self.steps,
            "attempt": self.attempt,
            "stream": self.stream,
            "recoveries": self.recoveries,
            "resume_at": self.resume_us,
            "started_at": self.started_us,
            "ended_at": self.end.as_ref().map(|end| end.at_us),
            "outcome": self.end.as_ref().map(|end| end.reason.outcome().as_str()),
            "reason": self.end.as_ref().map(|end| end.reason.as_str()),
            "error": self.end.as_ref().and_then(|end| end.message.as_deref()),
        })
    }

    /// `r_<number>`.
    pub(crate) fn public_id(&self) -> String {
        format!("r_{}", self.id)
    }
}

/// Whether a new run counts its steps anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counters {
    /// A queued message starts it.
    Reset,
    /// `continue`, or a queued tool.
    Keep,
}

/// A step that is open: its block of seqs is reserved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Seq of the reply to come.
    pub(crate) block: i64,
    /// Receipt of the call whose prompt this is the step of; none for the run's own steps.
    pub(crate) call: Option<i64>,
    /// Calls around it.
    pub(crate) depth: u32,
    /// Whether the run may be parked for it.
    pub(crate) parking: Parking,
    /// Whether it is of work apart from the run, which goes on when the run ends.
    pub(crate) apart: bool,
}

impl Step {
    /// A step of the run.
    pub(crate) const fn own(block: i64) -> Step {
        Step { block, call: None, depth: 0, parking: Parking::Possible, apart: false }
    }
}

/// Whether the run may be parked while a place waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Parking {
    /// Where it stands is stored, and it is entered again there.
    Possible,
    /// Code holds the place, or what works there is not the run.
    #[default]
    Impossible,
}
