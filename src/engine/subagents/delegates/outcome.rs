//! Outcomes of workers. An outcome is stored in the worker's row and delivered once: to the call that waits
//! for it, or as a message. The message is sent at the end of the run, or at once when no run is active.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::engine::attachments::store;
use crate::engine::cycle::accept::room;
use crate::engine::features::Delegates;
use crate::engine::subagents::envelope::{Content, Ending, Report};
use crate::engine::subagents::follow_up::FollowUp;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::store::attachment::AttachmentRef;
use crate::store::children::{Child, ChildState};
use crate::store::messages::{Inbound, SharedRow};
use crate::store::state::State;
use crate::text::first_bytes;

/// The outcome of a worker's last run, stored in [`Child::body`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WorkerOutcome {
    /// The newest envelope that it answers.
    answers: i64,
    /// The worker's run; 0 if there was none.
    run: i64,
    ending: Ending,
    text: String,
    /// The files of the outcome, copied into this thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<Value>,
    /// Whether the outcome was delivered.
    pub(super) seen: bool,
}

impl WorkerOutcome {
    fn of_report(report: &Report, files: &[AttachmentRef]) -> Result<WorkerOutcome> {
        Ok(WorkerOutcome {
            answers: report.answers,
            run: report.run,
            ending: report.ending,
            text: cut(&report.words.text, limits::OUTCOME_BYTES),
            files: store::kept(files)?,
            seen: false,
        })
    }

    /// The outcome in a worker's row.
    pub(super) fn of(child: &Child) -> Result<Option<WorkerOutcome>> {
        let body = child.body.as_deref().filter(|_| child.is_worker() && child.state != ChildState::Pending);
        let damaged = |error| Error::internal(format!("the outcome of a worker is damaged: {error}"));
        body.map(crate::json::from_str).transpose().map_err(damaged)
    }

    /// Stores the outcome in the row, which must be written afterwards.
    fn keep(&self, child: &mut Child) -> Result<()> {
        child.body = Some(serde_json::to_string(self).map_err(Error::internal)?);
        Ok(())
    }

    /// Stores the outcome in the row as delivered.
    pub(super) fn keep_seen(self, child: &mut Child) -> Result<()> {
        WorkerOutcome { seen: true, ..self }.keep(child)
    }

    /// The outcome for models, with a text of at most `bytes` bytes.
    pub(super) fn to_json(&self, child: &Child, bytes: usize) -> Result<Value> {
        let files = store::stored(&self.files)?;
        let mut outcome = json!({
            "agentId": child.facts.alias, "status": self.status(child), "text": cut(&self.text, bytes),
            "attachments": files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
            "run": (self.run > 0).then(|| format!("r_{}", self.run)),
        });
        if let Some(fields) = outcome.as_object_mut().filter(|_| self.seen) {
            fields.insert("seen".into(), true.into());
        }
        Ok(outcome)
    }

    /// The files of the outcome.
    pub(super) fn files(&self) -> &[Value] {
        &self.files
    }

    fn status(&self, child: &Child) -> &'static str {
        match self.ending {
            Ending::Failure if !child.is_open() => "terminated",
            Ending::Result => "completed",
            Ending::Failure => "failed",
            Ending::Stopped => "stopped",
        }
    }

    /// The result of a call that waited for this worker alone.
    fn result(&self, child: &Child) -> Result<ToolResult> {
        let outcome = self.to_json(child, limits::OUTCOME_BYTES)?;
        let result = match self.ending {
            Ending::Result => ToolResult { result: Some(outcome), ..ToolResult::success("") },
            Ending::Failure | Ending::Stopped => ToolResult::error(outcome.to_string()),
        };
        Ok(ToolResult { stored: self.files.clone(), ..result })
    }
}

/// Cuts a text to a number of bytes, with a note about the cut.
fn cut(text: &str, bytes: usize) -> String {
    match text.len() <= bytes {
        true => text.to_owned(),
        false => format!("{}\n\n[Cut off here: {} bytes in all.]", first_bytes(text, bytes), text.len()),
    }
}

/// Whether the worker still owes an answer to a message.
pub(crate) fn works(child: &Child) -> Result<bool> {
    let answered = WorkerOutcome::of(child)?.map_or(0, |outcome| outcome.answers);
    Ok(child.is_open() && answered < child.asked)
}

/// Marks the worker's open messages as answered, because no answer will come and their sender knows. An
/// undelivered outcome is kept.
pub(crate) fn settle(child: &mut Child, ending: Ending, text: &str) -> Result<()> {
    if !works(child)? {
        return Ok(());
    }
    let known = WorkerOutcome::of(child)?.filter(|known| !known.seen);
    let settled = match known {
        Some(known) => WorkerOutcome { answers: child.asked, ..known },
        None => WorkerOutcome {
            answers: child.asked,
            run: 0,
            ending,
            text: cut(text, limits::OUTCOME_BYTES),
            files: Vec::new(),
            seen: true,
        },
    };
    settled.keep(child)
}

impl Delegates<'_> {
    /// Stores and delivers the outcome of a worker's run. Writes the row.
    pub(crate) fn receive_outcome(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        report: &Report,
        files: &[AttachmentRef],
        applied: &mut FollowUp,
    ) -> Result<()> {
        let mut outcome = WorkerOutcome::of_report(report, files)?;
        // Messages that were settled meanwhile stay answered.
        let settled = WorkerOutcome::of(child)?.map_or(0, |known| known.answers);
        outcome.answers = outcome.answers.max(settled);
        self.replace_outcome(state, sql, child, applied)?;
        if child.wait.is_some() && outcome.answers >= child.asked {
            let result = outcome.result(child)?;
            outcome.keep_seen(child)?;
            return self.subagents().end_wait(state, sql, child, &result, applied);
        }
        outcome.keep(child)?;
        self.hand_over(state, sql, child, applied)
    }

    /// Ends a worker's open messages with a failure that was not reported yet. Writes the row.
    pub(crate) fn fail_worker(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        text: &str,
        applied: &mut FollowUp,
    ) -> Result<()> {
        if child.wait.is_some() {
            return self.subagents().end_wait(state, sql, child, &ToolResult::error(text), applied);
        }
        let known = WorkerOutcome::of(child)?;
        let answered = known.as_ref().is_none_or(|known| known.answers >= child.asked);
        let gone = !child.is_open() && child.asked > 0 && known.is_none();
        if !answered || gone {
            self.replace_outcome(state, sql, child, applied)?;
            let report = Report {
                run: 0,
                answers: child.asked,
                ending: Ending::Failure,
                words: Content { text: text.to_owned(), ..Content::default() },
                books: None,
            };
            WorkerOutcome::of_report(&report, &[])?.keep(child)?;
        }
        self.hand_over(state, sql, child, applied)
    }

    /// Delivers an earlier, undelivered outcome as a message, to make room for a new one.
    fn replace_outcome(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        applied: &mut FollowUp,
    ) -> Result<()> {
        match WorkerOutcome::of(child)? {
            Some(known) if !known.seen => self.outcome_message(state, sql, child, known, applied),
            _ => Ok(()),
        }
    }

    /// Delivers a new outcome to the calls that wait for it. Otherwise it stays in the row until the end of the
    /// active run. Without an active run, or for a closed worker, it becomes a message at once.
    fn hand_over(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        applied: &mut FollowUp,
    ) -> Result<()> {
        if !works(child)? {
            // No more polls are needed.
            (child.due_us, child.checks) = (None, 0);
        }
        state.update_child(sql, child.clone())?;
        self.answer_waits(state, sql, applied)?;
        if let Some(now) = state.child(sql, &child.reference)? {
            *child = now;
        }
        let stays = state.active().is_some() && child.is_open();
        match WorkerOutcome::of(child)?.filter(|known| !known.seen) {
            Some(known) if !stays && !self.is_awaited(state, sql, child)? => {
                self.outcome_message(state, sql, child, known, applied)
            }
            _ => Ok(()),
        }
    }

    /// Delivers the outcome as a message. The row must be written afterwards.
    fn outcome_message(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        known: WorkerOutcome,
        applied: &mut FollowUp,
    ) -> Result<()> {
        let (event, words, files, inbound) = known.as_message()?;
        self.subagents().queue_words(state, sql, child, event, &words, files, inbound, applied)?;
        known.keep_seen(child)
    }

    /// Delivers the outcomes that no call waited for as messages, at the end of a run. Reads nothing in a
    /// thread that never had workers.
    pub(crate) fn deliver_unclaimed(&self, state: &mut State, sql: &dyn Sql) -> Result<Vec<SharedRow>> {
        let mut rows = Vec::new();
        if state.meta.workers == 0 || state.meta.children == 0 {
            return Ok(rows);
        }
        let workers: Vec<Child> =
            state.open_children(sql)?.iter().filter(|child| child.is_worker()).cloned().collect();
        for mut child in workers {
            let Some(known) = WorkerOutcome::of(&child)?.filter(|known| !known.seen) else { continue };
            if room(state).is_err() {
                // The queue is full. The rest follows at the end of another run.
                break;
            }
            let (event, words, files, inbound) = known.as_message()?;
            let Some(row) =
                self.subagents().insert_words(state, sql, &child, event, &words, files, inbound)?
            else {
                break;
            };
            rows.push(row);
            known.keep_seen(&mut child)?;
            state.update_child(sql, child)?;
        }
        Ok(rows)
    }
}

impl WorkerOutcome {
    /// The content of the message. An outcome that a person stopped starts no run.
    fn as_message(&self) -> Result<(&'static str, Content, Vec<AttachmentRef>, Inbound)> {
        let inbound = if self.ending == Ending::Stopped { Inbound::Stored } else { Inbound::Triggers };
        let words = Content { text: self.text.clone(), ..Content::default() };
        Ok((self.ending.as_str(), words, store::stored(&self.files)?, inbound))
    }
}
