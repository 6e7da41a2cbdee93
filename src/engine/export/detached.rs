//! Detached work that is exported to a collector: effects, endpoints and jobs. Each is one span in its own
//! trace, linked to its cause. If a collector is configured, facts that no other row has are written in the
//! transactions that begin and end the work, and deleted after the span was accepted.

use crate::engine::export::config::Collector;
use crate::engine::export::position::{Position, encoded};
use crate::engine::features::Telemetry;
use crate::engine::jobs::JobEnd;
use crate::engine::outbox::DIRECTORY_US;
use crate::engine::spans::{detached, otlp};
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::sdk::scope::Scope;
use crate::store::detached_work;
use crate::store::detached_work::{WorkKind, WorkLink, WorkRecord};
use crate::store::effects::{Effect, Status, effect_id, processing};
use crate::store::jobs;
use crate::store::jobs::{Job, Kind};
use crate::store::runs::{Run, traces};
use crate::store::state::State;
use crate::text::first_bytes;
use crate::trace::{Trace, span_id};

/// The subject of the job that sends these spans.
pub(crate) const SUBJECT: &str = "works";

/// The outcome of a request to an endpoint.
pub(crate) struct EndpointSpan {
    /// The id of the request.
    pub(crate) id: String,
    /// The endpoint's method and path.
    pub(crate) route: String,
    /// The time of its arrival.
    pub(crate) began_us: i64,
    pub(crate) status: u16,
    /// The error, if it failed.
    pub(crate) error: Option<String>,
}

/// Whether an effect occurs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recurrence {
    Again,
    NoMore,
}

impl Telemetry<'_> {
    /// Links the spans of a scheduled effect to the run in which the code works, or to the detached work.
    pub(crate) fn link_effect(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        effect: &Effect,
        by: &Scope,
    ) -> Result<()> {
        if !self.exports() {
            return Ok(());
        }
        let Some(link) = self.link_to(state, by) else { return Ok(()) };
        let mut work = WorkRecord::new(WorkKind::Effect, effect.series_key());
        work.data.links.push(link);
        work.put(state, sql)
    }

    /// Begins the span of an effect with its first attempt.
    pub(crate) fn effect_begins(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        effect: &Effect,
        now: i64,
    ) -> Result<()> {
        if !self.exports() {
            return Ok(());
        }
        match self.work_of_effect(state, sql, effect)? {
            Some(work) if work.began_us.is_none() => {
                WorkRecord { began_us: Some(now), ..work }.put(state, sql)
            }
            _ => Ok(()),
        }
    }

    /// Ends the span of an effect, or of this occurrence.
    pub(crate) fn effect_is_over(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        effect: &Effect,
        comes: Recurrence,
        now: i64,
    ) -> Result<()> {
        if !self.exports() {
            return Ok(());
        }
        let (own, series) = (effect.key(), effect.series_key());
        if let Some(mut work) = self.work_of_effect(state, sql, effect)? {
            let ran = matches!(effect.status, Status::Completed | Status::Failed);
            if let Some(began) = work.began_us.or(ran.then_some(now)) {
                (work.began_us, work.ended_us) = (Some(began), Some(now));
                work.data.attempts = Some(effect.attempts);
                work.data.outcome = Some(effect.status.as_str().to_owned());
                let failed = effect.status == Status::Failed;
                work.data.error = failed.then(|| effect.error.clone().unwrap_or_default());
                self.schedule_work(state, sql, &work, now)?;
            }
        }
        detached_work::forget(state, sql, WorkKind::Effect, &own)?;
        match comes {
            Recurrence::NoMore if own != series => {
                detached_work::forget(state, sql, WorkKind::Effect, &series)
            }
            _ => Ok(()),
        }
    }

    /// Ends the spans of work that has begun when the thread is terminated, and discards those of work that
    /// has not.
    pub(crate) fn works_are_over(&self, state: &mut State, sql: &dyn Sql, now: i64) -> Result<()> {
        if !self.exports() {
            return Ok(());
        }
        for effect in processing(sql)? {
            let effect = Effect { status: Status::AgentCanceled, ..effect };
            self.effect_is_over(state, sql, &effect, Recurrence::NoMore, now)?;
        }
        for work in detached_work::begun(state, sql, WorkKind::Job)? {
            self.end_job_record(state, sql, work, Some("terminated"), None, now)?;
        }
        detached_work::forget_all(state, sql)
    }

    /// Links the span of a scheduled job to the run that caused it.
    pub(crate) fn link_job(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        job: (Kind, &str),
        run: &Run,
    ) -> Result<()> {
        if !self.exports() {
            return Ok(());
        }
        let id = open_id(job);
        let found = detached_work::find(state, sql, WorkKind::Job, &id)?;
        let mut work = found.unwrap_or_else(|| WorkRecord::new(WorkKind::Job, id));
        let link = self.link_to_run(state, run);
        if work.data.links.len() >= limits::SPAN_LINKS || work.data.links.contains(&link) {
            return Ok(());
        }
        work.data.links.push(link);
        work.put(state, sql)
    }

    /// Begins the span of a job with its first attempt.
    pub(crate) fn job_begins(&self, state: &mut State, sql: &dyn Sql, job: &Job, now: i64) -> Result<()> {
        let Some(kind) = job.kind.filter(|kind| *kind != Kind::Export && self.exports()) else {
            return Ok(());
        };
        let id = open_id((kind, &job.subject));
        let found = detached_work::find(state, sql, WorkKind::Job, &id)?;
        let mut work = found.unwrap_or_else(|| WorkRecord::new(WorkKind::Job, id));
        if work.began_us.is_none() {
            work.began_us = Some(now);
            work.data.name = format!("{} {}", kind.as_str(), job.subject).trim_end().to_owned();
            if let Some(run) = cause(job).map(|run| traces::find(sql, run)).transpose()?.flatten() {
                work.data.links.push(self.link_to_run(state, &run));
            }
        }
        work.data.attempts = Some(work.data.attempts.unwrap_or(0) + 1);
        work.put(state, sql)
    }

    /// Ends the span of a job, which is done or has failed with this error.
    pub(crate) fn job_is_over(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        job: &Job,
        error: Option<&str>,
        now: i64,
    ) -> Result<()> {
        let Some(kind) = job.kind.filter(|kind| *kind != Kind::Export && self.exports()) else {
            return Ok(());
        };
        let Some(work) = detached_work::find(state, sql, WorkKind::Job, &open_id((kind, &job.subject)))?
        else {
            return Ok(());
        };
        self.end_job_record(state, sql, work, None, error, now)
    }

    /// Gives the span its own id at its beginning, because other jobs of the same kind follow.
    fn end_job_record(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        mut work: WorkRecord,
        outcome: Option<&str>,
        error: Option<&str>,
        now: i64,
    ) -> Result<()> {
        detached_work::forget(state, sql, WorkKind::Job, &work.id)?;
        let Some(began) = work.began_us else { return Ok(()) };
        work.id = format!("{}.{began}", work.id);
        let trace = Trace::begun(&state.meta.stem, WorkKind::Job.as_str(), &work.id, self.traces().share());
        if !trace.is_sampled() {
            return Ok(());
        }
        work.data.trace = trace.to_string();
        work.ended_us = Some(now);
        let ended = if error.is_some() { "failed" } else { "ended" };
        work.data.outcome = Some(outcome.unwrap_or(ended).to_owned());
        let error =
            error.map(|error| self.variables().redact_within(state, sql, error.to_owned())).transpose()?;
        work.data.error = error.map(|error| first_bytes(&error, limits::HTTP_TOOL_ERROR_BYTES).to_owned());
        self.schedule_work(state, sql, &work, now)
    }

    /// The data of an effect that has not ended; `None` if its trace is not recorded.
    fn work_of_effect(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        effect: &Effect,
    ) -> Result<Option<WorkRecord>> {
        let (own, series) = (effect.key(), effect.series_key());
        let thread = state.meta.stem.clone();
        let trace = Trace::begun(&thread, WorkKind::Effect.as_str(), &own, self.traces().share());
        if !trace.is_sampled() {
            return Ok(None);
        }
        if let Some(work) =
            detached_work::find(state, sql, WorkKind::Effect, &own)?.filter(WorkRecord::is_named)
        {
            return Ok(Some(work));
        }
        let scheduled = detached_work::find(state, sql, WorkKind::Effect, &series)?;
        let mut work = WorkRecord::new(WorkKind::Effect, own);
        work.data.links = scheduled.map(|scheduled| scheduled.data.links).unwrap_or_default();
        work.data.name.clone_from(&effect.name);
        work.data.shown = effect_id(&thread, effect.of.unwrap_or(effect.id));
        work.data.occurrence = (effect.occurrence > 0).then_some(effect.occurrence);
        work.data.trace = trace.to_string();
        Ok(Some(work))
    }

    /// Notes the run that detached work has woken, if it is exported.
    pub(crate) fn note_run(&self, scope: &Scope) -> Result<()> {
        if scope.trace.is_none() || !self.exports() {
            return Ok(());
        }
        let Some(run) = self.read(|state, _| Ok(state.active().map(|run| run.id)))? else { return Ok(()) };
        let mut runs = scope.runs.borrow_mut();
        if runs.len() < limits::SPAN_LINKS && !runs.contains(&run) {
            runs.push(run);
        }
        Ok(())
    }

    /// The trace of a request to an endpoint, within its span: the trace that it names, or its own. If the
    /// span is not exported, the request's span stands for it.
    pub(crate) fn trace_of_request(&self, named: Option<&Trace>, id: &str) -> Result<Trace> {
        let kind = WorkKind::Endpoint.as_str();
        Ok(match named {
            Some(named) if self.exports() && named.is_sampled() => {
                named.within(self.read(|state, _| Ok(span_id(&state.meta.stem, kind, id)))?)
            }
            Some(named) => named.clone(),
            None => self.traces().trace_of_work(kind, id),
        })
    }

    /// Records the response of an endpoint: the route, the time of the request, and the trace that it named.
    pub(crate) fn endpoint_answered(
        &self,
        answered: EndpointSpan,
        named: Option<Trace>,
        runs: &[i64],
    ) -> Result<()> {
        if !self.exports() {
            return Ok(());
        }
        let now = self.host.now_us();
        self.transition(|state, sql| {
            let own = || {
                Trace::begun(
                    &state.meta.stem,
                    WorkKind::Endpoint.as_str(),
                    &answered.id,
                    self.traces().share(),
                )
            };
            let trace = named.unwrap_or_else(own);
            if !trace.is_sampled() {
                return Ok(());
            }
            let mut work = WorkRecord::new(WorkKind::Endpoint, answered.id.clone());
            (work.began_us, work.ended_us) = (Some(answered.began_us), Some(now));
            work.data.links = self.links_to(state, sql, runs)?;
            work.data.name = answered.route;
            work.data.shown = answered.id;
            work.data.status = Some(answered.status);
            work.data.error = answered.error;
            work.data.trace = trace.to_string();
            self.schedule_work(state, sql, &work, now)
        })
    }

    fn links_to(&self, state: &State, sql: &dyn Sql, runs: &[i64]) -> Result<Vec<WorkLink>> {
        let mut links = Vec::with_capacity(runs.len());
        for run in runs {
            links.extend(traces::find(sql, *run)?.map(|run| self.link_to_run(state, &run)));
        }
        Ok(links)
    }

    /// The link to the code's run or work, for other work that it causes.
    fn link_to(&self, state: &State, by: &Scope) -> Option<WorkLink> {
        if by.origin.in_step() {
            return state.active().map(|run| self.link_to_run(state, run));
        }
        by.trace.as_ref().map(|trace| WorkLink { to: trace.to_string(), run: None })
    }

    /// The link to a run, for work that it causes.
    fn link_to_run(&self, state: &State, run: &Run) -> WorkLink {
        let trace = self.traces().trace_of(state, run).within(span_id(&state.meta.stem, "run", run.id));
        WorkLink { to: trace.to_string(), run: Some(run.id) }
    }

    /// Schedules the export of work that has ended.
    fn schedule_work(&self, state: &mut State, sql: &dyn Sql, work: &WorkRecord, now: i64) -> Result<()> {
        work.put(state, sql)?;
        let due = now + DIRECTORY_US;
        if jobs::add(state, sql, Kind::Export, SUBJECT, due, &encoded(&Position::default())?)? {
            self.arm_at(state, sql, due, now)?;
        }
        Ok(())
    }

    /// One attempt at the job that exports detached work.
    pub(super) async fn export_works(&self, job: &Job, collector: &Collector) -> Result<JobEnd> {
        let (thread, stem, works) = self.read(|state, sql| {
            let (thread, stem) = (state.meta.thread_id.clone(), state.meta.stem.clone());
            Ok((thread, stem, detached_work::ended(sql, limits::EXPORT_SPANS)?))
        })?;
        let (mut spans, mut sent, mut bytes) = (Vec::new(), Vec::new(), 0);
        for work in works {
            if let Some((trace, span)) = detached::span(&thread, &stem, &work) {
                let span = otlp::span(&trace, &span);
                bytes += span.to_string().len();
                if bytes > limits::EXPORT_BYTES && !spans.is_empty() {
                    break;
                }
                spans.push(span);
            }
            sent.push((work.kind, work.id));
        }
        let count = spans.len() as u64;
        let given_up = match self.send_spans(collector, spans).await {
            Ok(refused) => refused,
            Err((error, after_us)) => {
                let data = encoded(&Position { spans: count, ..Position::default() })?;
                return Ok(JobEnd::Failed { error, after_us, data });
            }
        };
        let (thread, job) = (self.0.clone(), job.clone());
        Ok(JobEnd::Done(Box::new(move |state, sql| {
            thread.telemetry().spans_given_up(state, sql, &job, given_up.as_slice())?;
            Ok(detached_work::delete_sent(sql, &sent)?.then_some(job.data))
        })))
    }
}

/// The id of a pending job. There is one per kind and subject.
fn open_id((kind, subject): (Kind, &str)) -> String {
    format!("{}/{subject}", kind.as_str())
}

/// The run that caused a job.
fn cause(job: &Job) -> Option<i64> {
    let data: serde_json::Value = crate::json::from_str(&job.data).ok()?;
    data.get("run")?.as_i64().filter(|run| *run > 0)
}
