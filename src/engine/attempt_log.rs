//! Log rows of attempts that a crash or a stop has cut off, and the bodies of requests and responses.

use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::store::log_record::{Attempt, LostAttempt, UnfinishedReason};
use crate::store::logs::insert;
use crate::store::runs::Step;
use crate::store::state::State;
use crate::store::{bodies, logs, messages as rows, receipts};
use crate::text::first_bytes;

impl Thread {
    /// Writes the row of an unfinished attempt of a called prompt.
    pub(super) fn log_lost(
        &self,
        state: &State,
        sql: &dyn Sql,
        lost: &LostAttempt<'_>,
        now: i64,
    ) -> Result<()> {
        let chain = self.usable_chain(&lost.prompt.model);
        let model = usize::try_from(lost.tries.model).ok().and_then(|place| chain.get(place));
        let (error_type, error) = lost.why.error();
        let stream = lost.tries.stream;
        let data = json!({
            "model_name": model.map(|model| &model.name),
            "model": model.map(|model| &model.model),
            "prompt_name": lost.prompt.name,
            "attempt": stream,
            "ended_at": now,
            "status": "failed",
            "error_type": error_type,
            "error": error,
            "parent_call": lost.step.call.map(|receipt| format!("c_{receipt}")),
        });
        let retry_of = (stream > 1).then(|| i64::from(stream) - 1);
        let run = state.active().map(|run| run.id);
        insert(sql, "llm_request", run, now, Some(lost.step.block), retry_of, &data)
    }

    /// Writes the row of an unfinished attempt of the active run. It may still have cost tokens.
    pub(super) fn log_unfinished(
        &self,
        state: &State,
        sql: &dyn Sql,
        stream: u32,
        why: UnfinishedReason,
        now: i64,
    ) -> Result<()> {
        let Some(run) = state.active() else { return Ok(()) };
        // The end of the last attempt is stored before the end of its run; then it is among the newest rows.
        if logs::has_recent_attempt(sql, run.block, stream)? {
            return Ok(());
        }
        let definitions = self.definitions_of(&state.meta.agent, run.side);
        let model = definitions.as_ref().and_then(|found| found.chain.get(usize::try_from(run.model).ok()?));
        let (error_type, error) = why.error();
        let data = json!({
            "model_name": model.map(|model| &model.name),
            "model": model.map(|model| &model.model),
            "prompt_name": definitions.as_ref().map(|found| &found.prompt.name),
            "attempt": stream,
            "ended_at": now,
            "status": "failed",
            "error_type": error_type,
            "error": error,
        });
        let retry_of = (stream > 1).then(|| i64::from(stream) - 1);
        insert(sql, "llm_request", Some(run.id), now, Some(run.block), retry_of, &data)
    }

    /// Whether request and response bodies are kept.
    pub(super) fn logs_bodies(&self) -> bool {
        self.host.var("BOBBIN_LOG_BODIES").as_deref() == Some("1")
    }

    /// Logs an attempt of a prompt's step that will not end. `receipt`: of the prompt's call.
    pub(super) fn log_cut_off(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        receipt: i64,
        name: &str,
        why: UnfinishedReason,
        now: i64,
    ) -> Result<()> {
        let (Some(mut tries), Some(prompt)) =
            (receipts::inner(sql, receipt)?, self.catalog.prompts.get(name))
        else {
            return Ok(());
        };
        if tries.failed.is_some() || tries.logged >= tries.stream || rows::find(sql, tries.block)?.is_some() {
            return Ok(());
        }
        let step = Step { call: Some(receipt), depth: 1, ..Step::own(tries.block) };
        self.log_lost(state, sql, &LostAttempt { step, tries: &tries, prompt, why }, now)?;
        state.usage = None;
        self.ephemeral.spending.cut_off();
        tries.logged = tries.stream;
        tries.store(state, sql, step)
    }

    pub(super) fn log_bodies(&self, attempt: &Attempt) {
        if let Err(error) = self.try_log_bodies(attempt) {
            // The bodies are a debugging aid; the attempt itself is in the log.
            self.variables().log(&format!("a request body could not be logged: {error}"));
        }
    }

    /// Stores the bodies of an attempt, if enabled, and prunes old ones.
    pub(super) fn try_log_bodies(&self, attempt: &Attempt) -> Result<()> {
        let Some(body) = &attempt.body else { return Ok(()) };
        let now = self.host.now_us();
        let shown = |text: String| self.scrubbing().scrub_logged(self.variables().redact(text));
        let request = shown(String::from_utf8_lossy(body).into_owned());
        let answer = attempt.answer.clone().map(shown);
        self.transition(|_, sql| {
            bodies::forget_before(sql, now - limits::LOG_BODY_US)?;
            for (kind, text) in [("request", Some(request.as_str())), ("response", answer.as_deref())] {
                let Some(text) = text else { continue };
                bodies::insert(sql, now, kind, first_bytes(text, limits::LOG_BODY_BYTES))?;
            }
            Ok(())
        })
    }
}
