//! What a worker came to. It is kept in the worker's row, and handed over once: to the call that waits for it, or as a message
//! when the run ends without one, or at once when no run is active.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::accept::room;
use crate::engine::attachments::store;
use crate::engine::features::Delegates;
use crate::engine::subagents::applied::Applied;
use crate::engine::subagents::envelope::{Content, Ending, Report};
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::spec::message::ToolResult;
use crate::store::attachment::AttachmentRef;
use crate::store::children::{Child, ChildState};
use crate::store::messages::{Inbound, Shared};
use crate::store::state::State;
use crate::text::first_bytes;

/// What the last run of a worker came to: [`Child::body`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkerOutcome {
    /// The newest envelope that it answers.
    answers: i64,
    /// The worker's run; 0 if there was none.
    run: i64,
    ending: Ending,
    text: String,
    /// Its files, copied into this thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<Value>,
    /// Whether it was handed over.
    pub(crate) seen: bool,
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

    /// The one that a worker's row has.
    pub(crate) fn of(child: &Child) -> Result<Option<WorkerOutcome>> {
        let body = child.body.as_deref().filter(|_| child.is_worker() && child.state != ChildState::Pending);
        let damaged = |error| Error::internal(format!("the outcome of a worker is damaged: {error}"));
        body.map(crate::json::from_str).transpose().map_err(damaged)
    }

    /// Puts it into the row, which is still to be written.
    pub(crate) fn keep(&self, child: &mut Child) -> Result<()> {
        child.body = Some(serde_json::to_string(self).map_err(Error::internal)?);
        Ok(())
    }

    /// Puts it into the row as one that was handed over.
    pub(crate) fn keep_seen(self, child: &mut Child) -> Result<()> {
        WorkerOutcome { seen: true, ..self }.keep(child)
    }

    /// As models read it, with at most so many bytes of its text.
    pub(crate) fn told(&self, child: &Child, bytes: usize) -> Result<Value> {
        let files = store::stored(&self.files)?;
        let mut told = json!({
            "agentId": child.facts.alias, "status": self.status(child), "text": cut(&self.text, bytes),
            "attachments": files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
            "run": (self.run > 0).then(|| format!("r_{}", self.run)),
        });
        if let Some(fields) = told.as_object_mut().filter(|_| self.seen) {
            fields.insert("seen".into(), true.into());
        }
        Ok(told)
    }

    /// The files that come with it.
    pub(crate) fn files(&self) -> &[Value] {
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

    /// The result of a call that has waited for this one alone.
    fn result(&self, child: &Child) -> Result<ToolResult> {
        let told = self.told(child, limits::OUTCOME_BYTES)?;
        let result = match self.ending {
            Ending::Result => ToolResult { result: Some(told), ..ToolResult::success("") },
            Ending::Failure | Ending::Stopped => ToolResult::error(told.to_string()),
        };
        Ok(ToolResult { stored: self.files.clone(), ..result })
    }
}

/// A text of at most so many bytes; what is left out is said.
fn cut(text: &str, bytes: usize) -> String {
    match text.len() <= bytes {
        true => text.to_owned(),
        false => format!("{}\n\n[Cut off here: {} bytes in all.]", first_bytes(text, bytes), text.len()),
    }
}

/// Whether something that a worker was told has no answer yet.
pub(crate) fn works(child: &Child) -> Result<bool> {
    let answered = WorkerOutcome::of(child)?.map_or(0, |outcome| outcome.answers);
    Ok(child.is_open() && answered < child.asked)
}

/// Nothing more will come of what a worker was told, and whoever told it knows. One that nobody has heard of stays.
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
    /// A run of a worker has ended. Writes the row.
    pub(crate) fn receive_outcome(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        report: &Report,
        files: &[AttachmentRef],
        applied: &mut Applied,
    ) -> Result<()> {
        let mut outcome = WorkerOutcome::of_report(report, files)?;
        // Of what was settled in the meantime nothing more comes.
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

    /// Nothing more comes of what a worker was told, for a reason that nobody knows yet. Writes the row.
    pub(crate) fn fail_worker(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        text: &str,
        applied: &mut Applied,
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

    /// An earlier outcome that nobody has taken makes way for a new one: it arrives as a message.
    fn replace_outcome(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        applied: &mut Applied,
    ) -> Result<()> {
        match WorkerOutcome::of(child)? {
            Some(known) if !known.seen => self.outcome_message(state, sql, child, known, applied),
            _ => Ok(()),
        }
    }

    /// Gives a new outcome to the calls that wait for it. Without any it waits for the end of the run, if there is one and the
    /// worker's row stays where that looks.
    fn hand_over(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        applied: &mut Applied,
    ) -> Result<()> {
        if !works(child)? {
            // Nobody need ask it how it is.
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

    /// The outcome as a message; the row is still to be written.
    fn outcome_message(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        known: WorkerOutcome,
        applied: &mut Applied,
    ) -> Result<()> {
        let (event, words, files, inbound) = known.as_message()?;
        self.subagents().queue_words(state, sql, child, event, &words, files, inbound, applied)?;
        known.keep_seen(child)
    }

    /// The run is over: what workers have come to and nobody has waited for becomes messages. Nothing is read of a thread that
    /// never had a worker.
    pub(crate) fn tell_untaken(&self, state: &mut State, sql: &dyn Sql) -> Result<Vec<Shared>> {
        let mut rows = Vec::new();
        if state.meta.workers == 0 || state.meta.children == 0 {
            return Ok(rows);
        }
        let workers: Vec<Child> =
            state.open_children(sql)?.iter().filter(|child| child.is_worker()).cloned().collect();
        for mut child in workers {
            let Some(known) = WorkerOutcome::of(&child)?.filter(|known| !known.seen) else { continue };
            if room(state).is_err() {
                // It comes with the end of another run.
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
    /// What a message says of it. What a person has stopped wakes nobody.
    fn as_message(&self) -> Result<(&'static str, Content, Vec<AttachmentRef>, Inbound)> {
        let inbound = if self.ending == Ending::Stopped { Inbound::Stored } else { Inbound::Triggers };
        let words = Content { text: self.text.clone(), ..Content::default() };
        Ok((self.ending.as_str(), words, store::stored(&self.files)?, inbound))
    }
}
