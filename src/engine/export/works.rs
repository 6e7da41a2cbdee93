//! Work beside runs that a collector is told of: effects, endpoints, jobs. Each is one span in a trace of its own, linked to what has
//! made it necessary. What no other row says of it is written in the transactions that begin and end it, where there is a collector,
//! and deleted once its span was taken.

use std::rc::Rc;

use crate::engine::export::config::Collector;
use crate::engine::export::send::Answered;
use crate::engine::export::{Place, encoded};
use crate::engine::jobs::JobEnd;
use crate::engine::outbox::DIRECTORY_US;
use crate::engine::spans::{otlp, work};
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::sdk::scope::Scope;
use crate::store::effects::{Effect, Status, effect_id, processing};
use crate::store::jobs;
use crate::store::jobs::{Job, Kind};
use crate::store::state::State;
use crate::store::works;
use crate::store::works::{Work, WorkKind, WorkLink};
use crate::trace::{Trace, span_id};

/// The subject of the job that sends these spans.
pub(crate) const SUBJECT: &str = "works";

/// Whether an effect comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comes {
    Again,
    NoMore,
}

impl Thread {
    /// Code has scheduled an effect: its spans are linked to the run that the code works in, or to the work beside runs.
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
        let mut work = Work::new(WorkKind::Effect, effect.series_key());
        work.data.links.push(link);
        work.put(state, sql)
    }

    /// An attempt at an effect begins: if it is the first one, its span does.
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
            Some(work) if work.began_us.is_none() => Work { began_us: Some(now), ..work }.put(state, sql),
            _ => Ok(()),
        }
    }

    /// An effect has ended, or this occurrence of it.
    pub(crate) fn effect_is_over(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        effect: &Effect,
        comes: Comes,
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
                self.owe_work(state, sql, &work, now)?;
            }
        }
        works::forget(state, sql, WorkKind::Effect, &own)?;
        match comes {
            Comes::NoMore if own != series => works::forget(state, sql, WorkKind::Effect, &series),
            _ => Ok(()),
        }
    }

    /// The thread is terminated: what has begun ends with it, and what has not is told of to nobody.
    pub(crate) fn effects_are_over(&self, state: &mut State, sql: &dyn Sql, now: i64) -> Result<()> {
        if !self.exports() {
            return Ok(());
        }
        for effect in processing(sql)? {
            let effect = Effect { status: Status::AgentCanceled, ..effect };
            self.effect_is_over(state, sql, &effect, Comes::NoMore, now)?;
        }
        works::forget_all(state, sql)
    }

    /// What is known of an effect that has not ended; `None` where its trace is not recorded.
    fn work_of_effect(&self, state: &mut State, sql: &dyn Sql, effect: &Effect) -> Result<Option<Work>> {
        let (own, series) = (effect.key(), effect.series_key());
        let thread = state.meta.thread_id.clone();
        let trace = Trace::begun(&thread, WorkKind::Effect.as_str(), &own, self.share());
        if !trace.is_sampled() {
            return Ok(None);
        }
        if let Some(work) = works::find(state, sql, WorkKind::Effect, &own)?.filter(Work::is_named) {
            return Ok(Some(work));
        }
        let scheduled = works::find(state, sql, WorkKind::Effect, &series)?;
        let mut work = Work::new(WorkKind::Effect, own);
        work.data.links = scheduled.map(|scheduled| scheduled.data.links).unwrap_or_default();
        work.data.name.clone_from(&effect.name);
        work.data.shown = effect_id(&thread, effect.of.unwrap_or(effect.id));
        work.data.occurrence = (effect.occurrence > 0).then_some(effect.occurrence);
        work.data.trace = trace.to_string();
        Ok(Some(work))
    }

    /// What code that works there is, for what it makes necessary.
    pub(crate) fn link_to(&self, state: &State, by: &Scope) -> Option<WorkLink> {
        if by.origin.in_step() {
            return state.active().map(|run| self.link_to_run(state, run));
        }
        by.trace.as_ref().map(|trace| WorkLink { to: trace.to_string(), run: None })
    }

    /// A run, for what it makes necessary.
    pub(crate) fn link_to_run(&self, state: &State, run: &crate::store::runs::Run) -> WorkLink {
        let trace = self.trace_of(state, run).within(span_id(&state.meta.thread_id, "run", run.id));
        WorkLink { to: trace.to_string(), run: Some(run.id) }
    }

    /// It has ended: it is to be exported.
    pub(crate) fn owe_work(&self, state: &mut State, sql: &dyn Sql, work: &Work, now: i64) -> Result<()> {
        work.put(state, sql)?;
        let due = now + DIRECTORY_US;
        if jobs::add(state, sql, Kind::Export, SUBJECT, due, &encoded(&Place::default())?)? {
            self.arm_at(state, sql, due, now)?;
        }
        Ok(())
    }

    /// One attempt at the job that tells of them.
    pub(crate) async fn export_works(self: &Rc<Self>, job: &Job, collector: &Collector) -> Result<JobEnd> {
        let (thread, works) = self.read(|state, sql| {
            Ok((state.meta.thread_id.clone(), works::ended(sql, limits::EXPORT_SPANS)?))
        })?;
        let (mut spans, mut told, mut bytes) = (Vec::new(), Vec::new(), 0);
        for work in works {
            if let Some((trace, span)) = work::span(&thread, &work) {
                let span = otlp::span(&trace, &span);
                bytes += span.to_string().len();
                if bytes > limits::EXPORT_BYTES && !spans.is_empty() {
                    break;
                }
                spans.push(span);
            }
            told.push((work.kind, work.id));
        }
        let count = spans.len() as u64;
        if !spans.is_empty() {
            let body = self.redact_json(otlp::traces(&self.service(), spans)).to_string();
            if let Answered::Later { why, after_us } = self.send(collector, &collector.traces, body).await {
                let data = encoded(&Place { spans: count, ..Place::default() })?;
                return Ok(JobEnd::Failed { error: why, after_us, data });
            }
        }
        let data = job.data.clone();
        Ok(JobEnd::Done(Box::new(move |_, sql| Ok(works::told(sql, &told)?.then_some(data)))))
    }
}
