//! The table `runs`. A run lasts from idle to idle. Its row is the engine's program counter: after a crash at
//! any point, the run continues at the stored phase (docs/durability.md).
//!
//! * `end`: how a run ended. `session_result`: the result of a session. `diagnostics`: problems of a run.
//! * `usage`: use by its requests. `ledger`: its budget. `totals`: use by all runs together. `recall`: memory
//!   searches.
//! * `traces`: queries for trace exports.

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

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql};
use crate::limits;
use crate::protocols::responses::diagnostics::DiagnosedRun;
use crate::store::runs::diagnostics::Diagnostics;
use crate::store::runs::end::{End, Outcome, Reason};
use crate::store::runs::ledger::Ledger;
use crate::store::runs::session_result::SessionResult;
use crate::store::side::{CodeRequest, Side};
use crate::store::table::Table;

/// The program counter of the engine. At most the newest row is unfinished.
pub(super) const TABLE: Table = Table {
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

/// The phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The next step is not open yet.
    Start,
    /// A step is open; its model has not answered yet.
    Model,
    /// The reply is stored, which distinguishes this phase from [`Phase::Model`]. Its calls run one after
    /// another; the stored results determine the next one.
    Tools,
    /// A call waits for something outside. Nothing is in memory, and nothing is billed.
    Parked,
    /// Like [`Phase::Parked`], before a step is open: the call was queued by code.
    ParkedAtStart,
    /// Like [`Phase::Parked`], in an open step whose model is called again later.
    ParkedAtModel,
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
    /// Seq of the first message of the current turn; requests include everything from here on.
    pub(crate) turn_from: i64,
    pub(crate) started_us: i64,
    pub(crate) end: Option<End>,
    /// Steps of this run.
    pub(crate) step: u32,
    /// Steps since the counters were last reset by a message that started a run; the hard cap applies to
    /// these.
    pub(crate) steps: u32,
    /// The same for each side; `maxSteps` applies to these.
    pub(crate) side_steps: [u32; 2],
    /// Seq reserved for the reply of the current step or, between steps, of the last one. Everything below is
    /// drained.
    pub(crate) block: i64,
    /// Index of the model in its chain of fallbacks.
    pub(crate) model: u32,
    /// Attempts at that model, from 1.
    pub(crate) attempt: u32,
    /// Number of the stream under the reply's id; grows with every request.
    pub(crate) stream: u32,
    /// Re-entries of the current step after a crash.
    pub(crate) recoveries: u32,
    /// Set if the run continues by itself at this time, after a yield or before a recovery.
    pub(crate) resume_us: Option<i64>,
    /// Tool results below this seq are sent shortened.
    pub(crate) short_below: i64,
    /// Complete turns of the session, of both sides together (spec §35.2).
    pub(crate) turns: u32,
    /// Request by code since the last step.
    pub(crate) asked: Option<CodeRequest>,
    /// Result from the session tool that ended it.
    pub(crate) result: Option<SessionResult>,
    pub(crate) diagnostics: Diagnostics,
    /// The trace that it belongs to: ids in hexadecimal.
    pub(crate) trace: Option<String>,
    /// Hash of the definitions at its start.
    pub(crate) snapshot: Option<String>,
    /// Retry policy in the message that started it, as JSON.
    pub(crate) retry: Option<String>,
    /// Its limits and use, if anything limits it.
    pub(crate) ledger: Option<Box<Ledger>>,
    /// The first free seq at its start: its steps write at this seq or later.
    pub(crate) first: i64,
}

impl Run {
    /// A run of this side that is about to open its first step. It continues the session of `last`, the
    /// thread's previous run, unless that ended it. `floor`: see
    /// [`Meta::floor`](crate::store::meta::Meta::floor).
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

    /// Whether work remains that does not wait for anything outside.
    pub(crate) fn runnable(&self) -> bool {
        !self.phase.is_parked() && self.phase != Phase::Ended
    }

    /// Whether the seqs of its step are reserved.
    pub(crate) fn block_open(&self) -> bool {
        matches!(self.phase, Phase::Model | Phase::Tools | Phase::Parked | Phase::ParkedAtModel)
    }

    /// Step counter of the acting side.
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

    /// Writes the columns that change during a run, and its end.
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
                self.asked.map(CodeRequest::as_str).into(),
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

    /// Number of complete steps.
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
    pub(super) fn last(sql: &dyn Sql) -> Result<Option<Run>> {
        Run::query(sql, concat!("SELECT ", run_columns!(), " FROM runs ORDER BY id DESC LIMIT 1"), &[])
    }

    /// The run of that number.
    pub(crate) fn find(sql: &dyn Sql, id: i64) -> Result<Option<Run>> {
        Run::query(sql, concat!("SELECT ", run_columns!(), " FROM runs WHERE id = ?"), &[Param::Int(id)])
    }

    /// The runs before a number, newest first.
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

    /// The run that took in the message `seq`: the first whose block is greater.
    pub(crate) fn of_message(sql: &dyn Sql, seq: i64) -> Result<Option<Run>> {
        // Blocks grow with ids, and a message is nearly always among the newest, so search from that end.
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

    /// The newest run after another one whose turn begins with the message `seq`.
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
            asked: asked.text().and_then(CodeRequest::parse),
            result: result.text().map(crate::json::from_str).transpose().map_err(Error::internal)?,
            diagnostics: Diagnostics::parse(diagnostics.text())?,
            trace: trace.text().map(str::to_owned),
            snapshot: snapshot.text().map(str::to_owned),
            retry: retry.text().map(str::to_owned),
            ledger: Ledger::parse(budget.text())?,
            first: number(first),
        })
    }

    /// The first seq after the rows that an open step may write.
    pub(crate) fn beyond_block(&self) -> i64 {
        if self.block_open() { self.block + limits::BLOCK } else { self.block + 1 }
    }

    /// The form in diagnostics.
    pub(crate) fn diagnosed(&self) -> DiagnosedRun<'_> {
        let end = self.end.as_ref();
        DiagnosedRun {
            id: self.public_id(),
            phase: if self.phase.is_parked() { "parked" } else { self.phase.as_str() },
            side: self.side.as_str(),
            session_turns: self.turns,
            step: self.step,
            steps: self.steps,
            attempt: self.attempt,
            stream: self.stream,
            recoveries: self.recoveries,
            resume_at: self.resume_us,
            started_at: self.started_us,
            ended_at: end.map(|end| end.at_us),
            outcome: end.map(|end| end.reason.outcome().as_str()),
            reason: end.map(|end| end.reason.as_str()),
            error: end.and_then(|end| end.message.as_deref()),
        }
    }

    /// `r_<number>`.
    pub(crate) fn public_id(&self) -> String {
        format!("r_{}", self.id)
    }
}

/// Whether a new run continues the step counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counters {
    /// A queued message starts it.
    Reset,
    /// `continue`, or a queued tool.
    Keep,
}

/// An open step, whose seqs are reserved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Seq of its reply.
    pub(crate) block: i64,
    /// Receipt of the call whose prompt makes this step; `None` for the run's own steps.
    pub(crate) call: Option<i64>,
    /// Number of surrounding calls.
    pub(crate) depth: u32,
    /// Whether the run may be parked in this step.
    pub(crate) parking: Parking,
    /// Whether it belongs to detached work, which continues when the run ends.
    pub(crate) apart: bool,
}

impl Step {
    /// A step of the run.
    pub(crate) const fn own(block: i64) -> Step {
        Step { block, call: None, depth: 0, parking: Parking::Possible, apart: false }
    }
}

/// Whether the run may be parked at a call site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Parking {
    /// The position is stored, and the run is entered there again.
    Possible,
    /// Code holds the position in memory, or the work is not part of the run.
    #[default]
    Impossible,
}
