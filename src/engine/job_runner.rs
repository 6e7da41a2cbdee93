//! Runs jobs. The alarm's handler makes the attempts, one at a time, beside its other work. Each attempt is
//! counted before it is made.

use crate::engine::effects::run::{RemainingWork, RequestCount};
use crate::engine::export::detached;
use crate::engine::features::Telemetry;
use crate::engine::jobs::JobEnd;
use crate::engine::thread::Thread;
use crate::error::{Code, Result};
use crate::host::Sql;
use crate::limits;
use crate::store::detached_work::drop_ended;
use crate::store::jobs as table;
use crate::store::jobs::{Job, Kind, pause_us};
use crate::store::log_record::Event;
use crate::store::state::State;

/// Allows the next job when dropped, however this one ends.
struct JobGuard(Thread);

impl Drop for JobGuard {
    fn drop(&mut self) {
        self.0.ephemeral.job.set(false);
        self.0.ephemeral.summaries.notify();
        self.0.ephemeral.notify_alarm();
    }
}

impl Thread {
    /// Starts the job that is due first, unless one is running.
    pub(super) fn start_job(&self, begun: &mut RequestCount) -> Result<RemainingWork> {
        let now = self.host.now_us();
        let next = match self.read(|state, sql| table::next_due(state, sql)) {
            Err(error) if error.code == Code::ThreadNotFound => return Ok(RemainingWork::default()),
            next => next?,
        };
        if self.ephemeral.job.get() || next.is_none_or(|at| at > now) {
            return Ok(RemainingWork { next: next.filter(|at| *at > now), spent: false });
        }
        if begun.0 >= self.outgoing_limit() {
            return Ok(RemainingWork { next: None, spent: true });
        }
        let Some(job) = self.transition(|state, sql| self.take_job(state, sql, now))? else {
            // The job was given up; look for the next one.
            return Ok(RemainingWork { next: Some(now), spent: false });
        };
        begun.0 += requests_of(&job);
        self.ephemeral.job.set(true);
        let under_way = JobGuard(self.clone());
        let thread = self.clone();
        self.host.spawn(Box::pin(async move {
            let _under_way = under_way;
            let end = match job.kind {
                Some(Kind::Export) => thread.telemetry().export(&job).await,
                Some(Kind::Summary) => thread.summarizer().summarise(&job).await,
                Some(Kind::Index) => thread.memories().index(&job).await,
                Some(Kind::Fork) => thread.history().copy_fork(&job).await,
                Some(Kind::Cancel) => thread.cancel_answer(&job).await,
                Some(Kind::CancelTask) => thread.mcp().cancel_task(&job).await,
                None => return,
            };
            let ended = end
                .and_then(|end| thread.job_ended(job, end))
                .and_then(|()| thread.summarizer().announce_summary());
            // A copy may be complete now.
            let ended = ended.and_then(|()| thread.hooks().start_created_hook());
            if let Err(error) = ended
                && error.code != Code::ThreadNotFound
            {
                // The row has counted the attempt; the next one follows by the alarm.
                thread.variables().log(&format!("the end of a job could not be stored: {error}"));
            }
        }));
        Ok(RemainingWork::default())
    }

    /// Counts the attempt that starts now. Gives up a job without attempts left: its last attempt crashed.
    fn take_job(&self, state: &mut State, sql: &dyn Sql, now: i64) -> Result<Option<Job>> {
        let Some(mut job) = table::first_due(state, sql, now)? else { return Ok(None) };
        // A failed attempt has stored its error; one without an error crashed.
        if job.kind == Some(Kind::Summary) && job.attempts > 0 && job.error.take().is_none() {
            self.summarizer().log_lost_summary(state, sql, &mut job, now)?;
        }
        if job.kind == Some(Kind::Index) && job.attempts > 0 {
            self.memories().log_lost_vectors(state, sql, &job, now)?;
        }
        if job.attempts >= attempts_of(&job) || job.kind.is_none() {
            let lost = || "The process was lost in the middle of it.".to_owned();
            let error = job.error.clone().unwrap_or_else(lost);
            self.give_up_job(state, sql, &job, error, now)?;
            return Ok(None);
        }
        job.attempts += 1;
        let lost_us = match job.kind {
            // Repeating these stores nothing twice, so a crashed attempt need not wait long.
            Some(Kind::Index | Kind::Summary | Kind::Fork | Kind::Cancel | Kind::CancelTask) => {
                pause_us(job.attempts, self.host.random())
            }
            Some(Kind::Export) | None => limits::JOB_LOST_US,
        };
        job.due_us = now + lost_us;
        table::update(sql, &job)?;
        self.telemetry().job_begins(state, sql, &job, now)?;
        self.arm_at(state, sql, job.due_us, now)?;
        Ok(Some(job))
    }

    fn job_ended(&self, mut job: Job, end: JobEnd) -> Result<()> {
        let now = self.host.now_us();
        self.transition(|state, sql| {
            match end {
                JobEnd::Done(then) => match then(state, sql)? {
                    None => {
                        self.telemetry().job_is_over(state, sql, &job, None, now)?;
                        return table::remove(state, sql, job.id);
                    }
                    Some(data) => (job.data, job.attempts, job.due_us, job.error) = (data, 0, now, None),
                },
                JobEnd::Later { then, error, pause_us } => {
                    let Some(data) = then(state, sql)? else {
                        self.telemetry().job_is_over(state, sql, &job, Some(&error), now)?;
                        return table::remove(state, sql, job.id);
                    };
                    job.due_us = now + pause_us.min(limits::JOB_PAUSE_MAX_US);
                    (job.data, job.attempts, job.error) = (data, 0, Some(error));
                }
                JobEnd::Failed { error, data, .. } if job.attempts >= attempts_of(&job) => {
                    job.data = data;
                    return self.give_up_job(state, sql, &job, error, now);
                }
                JobEnd::Failed { error, after_us, data } => {
                    let pause = pause_us(job.attempts, self.host.random());
                    job.due_us = now + pause.max(after_us).min(limits::JOB_PAUSE_MAX_US);
                    (job.data, job.error) = (data, Some(error));
                }
            }
            table::update(sql, &job)?;
            self.arm_at(state, sql, job.due_us, now)
        })
    }

    fn give_up_job(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        job: &Job,
        error: String,
        now: i64,
    ) -> Result<()> {
        table::remove(state, sql, job.id)?;
        let dropped = match job.kind {
            Some(Kind::Export) if job.subject == detached::SUBJECT => Some(drop_ended(state, sql)?),
            Some(Kind::Export) => Some(crate::engine::export::spans_of(&job.data)),
            _ => None,
        };
        if let Some(spans) = dropped {
            Telemetry::count_dropped(state, sql, spans.max(1))?;
        }
        if job.kind == Some(Kind::Summary) {
            self.summarizer().charge_given_up(state, sql, job)?;
            self.summarizer().pause_summaries(state, sql)?;
        }
        let error = self.variables().shown_within(state, sql, error)?;
        if job.kind == Some(Kind::Fork) {
            self.history().fork_failed(state, sql, &error)?;
        }
        self.telemetry().job_is_over(state, sql, job, Some(&error), now)?;
        Event::job_failure(job, dropped, &error).insert(sql, now)
    }
}

fn attempts_of(job: &Job) -> u32 {
    job.kind.map_or(limits::JOB_ATTEMPTS, Kind::attempts)
}

/// The approximate number of requests of an attempt.
const fn requests_of(job: &Job) -> u32 {
    match job.kind {
        Some(Kind::Fork) => 1 + limits::FORK_FILES as u32,
        _ => 1,
    }
}
