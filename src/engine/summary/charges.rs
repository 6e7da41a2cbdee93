//! Costs of requests for summaries. They are charged to the run that caused them while it is in progress,
//! otherwise to the thread (`engine/budget/detached`). Their log entries name the run.

use crate::engine::budget::estimate;
use crate::engine::features::Summarizer;
use crate::engine::summary::SummaryProgress;
use crate::engine::summary::write::PURPOSE;
use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::models::ChatRequest;
use crate::store::jobs::{Job, Kind};
use crate::store::log_record::{Attempt, MaxTokens, UnfinishedReason};
use crate::store::state::State;
use crate::store::{jobs, logs};

impl Summarizer<'_> {
    /// Logs an attempt that has ended, and charges its usage.
    pub(super) fn charge_summary(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        mut attempt: Attempt,
        run: i64,
    ) -> Result<()> {
        let active = state.run.as_mut().filter(|active| active.id == run && active.end.is_none());
        match active {
            Some(active) => {
                attempt.run = run;
                if let Some(ledger) = active.ledger.as_mut() {
                    ledger.charge_logged(&attempt);
                }
                state.log_attempt(sql, &attempt)?;
            }
            None => {
                attempt.of_run = run;
                state.log_attempt(sql, &attempt)?;
                self.telemetry().schedule_late_span(state, sql, run, attempt.started_us)?;
                if let Some(booked) = attempt.booked {
                    self.budgets().charge_thread(state, sql, &booked)?;
                }
            }
        }
        state.calibrate(sql, &attempt)
    }

    /// Logs an attempt that was lost in a crash. It may have cost tokens, which are charged with the next
    /// attempt.
    pub(crate) fn log_lost_summary(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        job: &mut Job,
        now: i64,
    ) -> Result<()> {
        let Some(mut progress) = SummaryProgress::read(&job.data) else { return Ok(()) };
        progress.lost += 1;
        job.data = progress.column()?;
        let asked = self.asked_in(&progress, job.attempts);
        let (error_type, error) = UnfinishedReason::Lost.error();
        let mut data = json!({
            "model_name": asked.map(|(_, _, model)| &model.name), "model": asked.map(|(_, _, model)| &model.model),
            "prompt_name": progress.prompt, "attempt": job.attempts, "purpose": PURPOSE, "ended_at": now,
            "status": "failed", "error_type": error_type, "error": error,
        });
        let is_active = state.active().is_some_and(|run| run.id == progress.run);
        if !is_active && let Some(data) = data.as_object_mut() {
            data.insert("of_run".into(), progress.run.into());
        }
        logs::insert(sql, logs::ATTEMPT, is_active.then_some(progress.run), now, None, None, &data)?;
        if is_active {
            // Forces the run's usage to be read from the log again.
            state.usage = None;
            Ok(())
        } else {
            self.telemetry().schedule_late_span(state, sql, progress.run, now)
        }
    }

    /// Charges lost attempts once their size is known, before the next request is sent.
    pub(super) fn charge_lost(
        &self,
        progress: &mut SummaryProgress,
        job: &Job,
        request: &ChatRequest,
    ) -> Result<()> {
        let asked = self.asked_in(progress, job.attempts.saturating_sub(1)).filter(|_| progress.lost > 0);
        let Some((_, _, model)) = asked else { return Ok(()) };
        let size = self.budgets().size_of(model, request)?;
        let worst = MaxTokens { input: size.input, output: size.full };
        let used = estimate::lost(model, request, worst).times(progress.lost);
        progress.lost = 0;
        self.transition(|state, sql| {
            // An edit may have marked the job meanwhile.
            let theirs = jobs::of_kind(state, sql, Kind::Summary)?.filter(|theirs| theirs.id == job.id);
            let Some(mut theirs) = theirs else { return Ok(()) };
            let Some(mut noted) = SummaryProgress::read(&theirs.data) else { return Ok(()) };
            noted.lost = 0;
            theirs.data = noted.column()?;
            jobs::update(sql, &theirs)?;
            if self.budgets().has_ledger(state, sql)? {
                self.budgets().charge_run(state, sql, noted.run, &used)
            } else {
                Ok(())
            }
        })
    }

    /// Charges the lost attempts of a job that is given up. An attempt of unknown size is charged at its
    /// maximum.
    pub(crate) fn charge_given_up(&self, state: &mut State, sql: &dyn Sql, job: &Job) -> Result<()> {
        let Some(progress) = SummaryProgress::read(&job.data).filter(|progress| progress.lost > 0) else {
            return Ok(());
        };
        let Some((_, settings, model)) = self.asked_in(&progress, job.attempts) else { return Ok(()) };
        if !self.budgets().has_ledger(state, sql)? {
            return Ok(());
        }
        let input = model.capabilities.max_context_tokens.unwrap_or(limits::WINDOW_TOKENS);
        let output = settings.most() as u64 * 2;
        let used = estimate::worst(model, MaxTokens { input, output }).times(progress.lost);
        self.budgets().charge_run(state, sql, progress.run, &used)
    }
}
