//! The export of spans to a collector (docs/observability.md). A job is written when a run ends, parks, or has
//! made many steps. It reads the rows from its last position, sends one request, and stores the new position. A
//! collector never delays a run: a rejected request is retried for a while and then dropped.
//!
//! * This file: the runs that are to be exported, and the job. `position`: how far spans are exported. `detached`:
//!   detached work. `config`: the collector. `send`: one request and its response.

pub(super) mod config;
pub(crate) mod detached;
mod position;
mod send;

use serde_json::Value;

use crate::engine::export::config::{Collector, Protocol};
use crate::engine::export::position::{Position, encoded};
use crate::engine::export::send::{SendOutcome, Signal};
use crate::engine::features::Telemetry;
use crate::engine::jobs::JobEnd;
use crate::engine::outbox::DIRECTORY_US;
use crate::engine::spans::attributes::SpanDetails;
use crate::engine::spans::facts::Facts;
use crate::engine::spans::{RunRelation as Of, Span, build, metrics, otlp};
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::store::detached_work as table;
use crate::store::jobs::{Job, Kind};
use crate::store::log_record::Event;
use crate::store::runs::{Run, traces};
use crate::store::state::State;
use crate::store::{jobs, meta};
use crate::trace::Trace;

/// The content of one request.
struct Batch {
    spans: Vec<Value>,
    /// The spans for metrics.
    told: Vec<Span>,
    rest: Remainder,
}

/// The remaining work after an accepted request.
struct Remainder {
    /// The position of the next request.
    place: Position,
    open: StopReason,
    /// The newest run when the rows were read. It may have continued since.
    seen: RunProgress,
}

/// The reason for which reading stopped.
enum StopReason {
    /// The request was full.
    Batch,
    /// The newest run is in progress; its trace.
    Run(Trace),
    /// Everything has ended and is in the request.
    Nothing,
}

/// The progress of the newest run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RunProgress {
    run: i64,
    block: i64,
    parked: bool,
    ended: bool,
}

impl RunProgress {
    fn of(run: &Run) -> RunProgress {
        RunProgress { run: run.id, block: run.block, parked: run.phase.is_parked(), ended: run.end.is_some() }
    }
}

/// Data that a collector has refused permanently.
struct Rejection {
    spans: u64,
    /// Its response.
    why: String,
}

/// Number of spans in the last attempt of a job.
pub(super) fn spans_of(data: &str) -> u64 {
    crate::json::from_str(data).map(|place: Position| place.spans).unwrap_or_default()
}

impl Telemetry<'_> {
    /// The collector of this deployment.
    pub(crate) fn collector(&self) -> Option<Collector> {
        let var = |name: &str| self.host.var(name);
        if let Err(wrong) = Protocol::of(&var) {
            self.variables().log_once(wrong);
        }
        Collector::of(&var)
    }

    /// Schedules the export of a run that has ended, parked, or made many steps. Does nothing without a
    /// collector.
    pub(super) fn schedule_spans(&self, state: &mut State, sql: &dyn Sql, run: &Run, now: i64) -> Result<()> {
        if !self.exports() {
            return Ok(());
        }
        let trace = self.traces().trace_of(state, run);
        if !trace.is_sampled() {
            return Ok(());
        }
        let place = Position { run: run.id, after: trace.exported, ..Position::default() };
        let data = encoded(&place)?;
        // At the same time as the update of the directory, so that one alarm serves both.
        let due = now + DIRECTORY_US;
        if jobs::add(state, sql, Kind::Export, "", due, &data)? {
            self.arm_at(state, sql, due, now)?;
        }
        Ok(())
    }

    /// Schedules the export of a request that a run caused and that ended after the run. `began`: the time at
    /// which it began.
    pub(super) fn schedule_late_span(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        run: i64,
        began: i64,
    ) -> Result<()> {
        if !self.exports() {
            return Ok(());
        }
        let Some(run) = traces::find(sql, run)? else { return Ok(()) };
        if !self.traces().trace_of(state, &run).is_sampled() {
            return Ok(());
        }
        let now = self.host.now_us();
        let place = Position { run: run.id, late: Some(began), ..Position::default() };
        let data = encoded(&place)?;
        let due = now + DIRECTORY_US;
        if jobs::add(state, sql, Kind::Export, &format!("late {began}"), due, &data)? {
            self.arm_at(state, sql, due, now)?;
        }
        Ok(())
    }

    /// One attempt at the job.
    pub(super) async fn export(&self, job: &Job) -> Result<JobEnd> {
        let place: Position = crate::json::from_str(&job.data).unwrap_or_default();
        let of_works = job.subject == detached::SUBJECT;
        let Some(collector) = self.collector() else {
            // Without a collector there is nothing left to export.
            return Ok(JobEnd::Done(Box::new(move |state, sql| match of_works {
                true => table::drop_ended(state, sql).map(|_| None),
                false => Ok(None),
            })));
        };
        if of_works {
            return self.export_works(job, &collector).await;
        }
        let Batch { spans, told, rest } = self.batch(&place)?;
        let count = spans.len() as u64;
        let mut given_up = match self.send_spans(&collector, spans).await {
            Ok(refused) => Vec::from_iter(refused),
            Err((error, after_us)) => {
                let data = encoded(&Position { spans: count, ..place })?;
                return Ok(JobEnd::Failed { error, after_us, data });
            }
        };
        given_up.extend(self.send_metrics(&collector, &told).await);
        let (thread, job) = (self.0.clone(), job.clone());
        Ok(JobEnd::Done(Box::new(move |state, sql| {
            thread.telemetry().spans_given_up(state, sql, &job, &given_up)?;
            rest.stored(state, sql)
        })))
    }

    /// Sends spans, if there are any. Returns the refused spans, or an error that allows a retry and its
    /// pause in microseconds.
    async fn send_spans(
        &self,
        collector: &Collector,
        spans: Vec<Value>,
    ) -> Result<Option<Rejection>, (String, i64)> {
        let sent = spans.len() as u64;
        if sent == 0 {
            return Ok(None);
        }
        match self.send(collector, Signal::Spans, otlp::traces(&self.service(), spans)).await {
            SendOutcome::Taken => Ok(None),
            SendOutcome::Refused { count, why } => {
                Ok(Some(Rejection { spans: count.map_or(sent, |count| count.min(sent)), why }))
            }
            SendOutcome::Later { why, after_us } => Err((why, after_us)),
        }
    }

    /// Sends metrics without retries, because a collector would count them twice. Returns the error, once
    /// while the object lives.
    async fn send_metrics(&self, collector: &Collector, told: &[Span]) -> Option<Rejection> {
        collector.metrics.as_ref()?;
        let metrics = metrics::metrics(told);
        if metrics.is_empty() {
            return None;
        }
        let why = match self.send(collector, Signal::Metrics, otlp::metrics(&self.service(), metrics)).await {
            SendOutcome::Taken => return None,
            SendOutcome::Refused { why, .. } => why,
            SendOutcome::Later { why, .. } => {
                self.variables().log_once(format!("metrics were not taken: {why}"));
                return None;
            }
        };
        let before = self.ephemeral.reported.metrics_refusal.replace(Some(why.clone()));
        (before.as_ref() != Some(&why)).then_some(Rejection { spans: 0, why })
    }

    /// Counts and logs spans that a collector refused permanently.
    fn spans_given_up(&self, state: &mut State, sql: &dyn Sql, job: &Job, all: &[Rejection]) -> Result<()> {
        for Rejection { spans, why } in all {
            Self::count_dropped(state, sql, *spans)?;
            let why = self.variables().shown_within(state, sql, why.clone())?;
            Event::job_failure(job, Some(*spans), &why).insert(sql, self.host.now_us())?;
        }
        Ok(())
    }

    /// Counts dropped spans. The next run reports them.
    pub(super) fn count_dropped(state: &mut State, sql: &dyn Sql, spans: u64) -> Result<()> {
        let spans = i64::try_from(spans).unwrap_or(i64::MAX);
        if spans == 0 {
            return Ok(());
        }
        state.meta.dropped = state.meta.dropped.saturating_add(spans);
        meta::set_dropped(sql, state.meta.dropped)
    }

    fn service(&self) -> String {
        config::service(&|name| self.host.var(name))
    }

    /// The next spans, up to the limit of one request.
    fn batch(&self, place: &Position) -> Result<Batch> {
        self.read(|state, sql| {
            let Some(seen) = state.run.as_ref().map(RunProgress::of) else {
                return Err(Error::internal("spans are owed of a thread without runs"));
            };
            let place = Position { spans: 0, ..place.clone() };
            let mut batch = Batch {
                spans: Vec::new(),
                told: Vec::new(),
                rest: Remainder { place, open: StopReason::Nothing, seen },
            };
            if let Some(began) = batch.rest.place.late {
                if let Some(facts) = self.facts_of(state, sql, batch.rest.place.run)? {
                    let spans = self.spans(sql, &facts)?.into_iter();
                    batch.told =
                        spans.filter(|span| span.place == Of::After && span.start_us == began).collect();
                    batch.spans = batch.told.iter().map(|span| otlp::span(&facts.trace, span)).collect();
                }
                return Ok(batch);
            }
            let mut bytes = 0;
            while batch.rest.place.run <= seen.run {
                let Some(facts) = self.facts_of(state, sql, batch.rest.place.run)? else { break };
                let spans = match facts.trace.is_sampled() {
                    true => self.spans_from(sql, &facts, batch.rest.place.after)?,
                    false => Vec::new(),
                };
                for span in spans.into_iter().skip(batch.rest.place.skip) {
                    let json = otlp::span(&facts.trace, &span);
                    bytes += json.to_string().len();
                    let full = batch.spans.len() >= limits::EXPORT_SPANS || bytes > limits::EXPORT_BYTES;
                    if full && !batch.spans.is_empty() {
                        batch.rest.open = StopReason::Batch;
                        return Ok(batch);
                    }
                    batch.spans.push(json);
                    batch.told.push(span);
                    batch.rest.place.skip += 1;
                }
                if facts.run.end.is_none() {
                    (batch.rest.place.after, batch.rest.place.skip) = (facts.run.block, 0);
                    batch.rest.open = StopReason::Run(facts.trace);
                    break;
                }
                batch.rest.place = Position { run: facts.run.id + 1, ..Position::default() };
            }
            Ok(batch)
        })
    }

    fn spans_from(&self, sql: &dyn Sql, facts: &Facts, after: i64) -> Result<Vec<Span>> {
        let mut spans = self.spans(sql, facts)?;
        // A step in progress is exported as a whole, unless it has been idle for long.
        let all = facts.run.end.is_some() || facts.run.phase.is_parked();
        spans.retain(|span| span.place != Of::After && span.block >= after && (all || span.settled));
        Ok(spans)
    }

    /// All spans of a run that have ended.
    pub(crate) fn spans(&self, sql: &dyn Sql, facts: &Facts) -> Result<Vec<Span>> {
        let wanted = self.host.var(config::CONTENT).as_deref() == Some("1");
        let content = wanted.then(|| self.content_of(sql, facts)).transpose()?;
        let deployment = |name: &str| self.variables().deployment(name);
        let told = SpanDetails { catalog: &self.catalog, deployment: &deployment, content };
        Ok(build::spans(facts, &told))
    }

    /// A run in the format that a collector receives.
    pub(crate) fn spans_as_sent(&self, facts: &Facts, spans: &[Span]) -> Value {
        let spans = spans.iter().map(|span| otlp::span(&facts.trace, span)).collect();
        self.variables().redact_json(otlp::traces(&self.service(), spans))
    }
}

impl Remainder {
    /// Stores that the request was accepted, with the progress of a run that is active. Returns the remaining
    /// work.
    fn stored(self, state: &mut State, sql: &dyn Sql) -> Result<Option<String>> {
        let Remainder { place, open, seen } = self;
        if place.late.is_some() {
            return Ok(None);
        }
        let Some(now) = state.run.as_ref().map(RunProgress::of) else { return Ok(None) };
        // A run that has ended or parked since the read adds no job while this one exists.
        let since = place.run == now.run && now != seen && (now.ended || now.parked);
        let behind = match &open {
            StopReason::Batch => true,
            StopReason::Run(_) | StopReason::Nothing => place.run < now.run || since,
        };
        if behind {
            return encoded(&place).map(Some);
        }
        if let (StopReason::Run(mut trace), Some(run)) =
            (open, state.run.as_mut().filter(|run| run.id == place.run))
        {
            trace.exported = place.after;
            let text = trace.to_string();
            traces::set_trace(sql, run.id, &text)?;
            run.trace = Some(text);
        }
        Ok(None)
    }
}
