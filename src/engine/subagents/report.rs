//! Reports of a child's run to its parent, written in the transition that ends the run (spec §8.8, §24.2).

use serde_json::Value;

use crate::definitions::message::Role;
use crate::engine::features::Subagents;
use crate::engine::subagents::envelope::{Content, Ending, EnvelopeBody, Report, bounded};
use crate::error::{Error, Result, unstopped};
use crate::host::Sql;
use crate::json;
use crate::store::log_record::Event;
use crate::store::messages::{Row, SharedRow};
use crate::store::runs::Run;
use crate::store::runs::end::{Outcome, Reason};
use crate::store::state::State;

impl Subagents<'_> {
    /// Reports the end of a run to the parent, if there is one. Terminates a child that is not resumable.
    pub(crate) fn report(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        run: &Run,
        answer: Option<&SharedRow>,
        now: i64,
    ) -> Result<()> {
        let Some(parent) = state.meta.parent.clone() else { return Ok(()) };
        let Some(end) = &run.end else { return Ok(()) };
        if matches!(end.reason, Reason::StoppedByParent | Reason::Terminated) {
            return self.budgets().return_grant(state, sql, Some(run));
        }
        let (ending, mut words) = self.run_outcome(state, run, answer);
        words.text = bounded(&self.variables().redact_within(state, sql, words.text)?);
        let answers = parent.asked.filter(|(_, seq)| *seq < run.block).map_or(0, |(n, _)| n);
        let books = self.budgets().settle_grant(state, Some(run));
        let report = Report { run: run.id, answers, ending, words, books };
        Event::parent_report(&parent.thread, ending.as_str(), run).insert(sql, now)?;
        self.send_to_parent(state, sql, EnvelopeBody::Report(report))?;
        let metadata = json!({
            "status_kind": "subagent_event", "subagent_event": "parent_handoff", "handoff_kind": ending.as_str(),
            "parent_thread_id": parent.thread,
        });
        let text = format!("The parent was told: {}.", ending.as_str());
        let marker = Row {
            silent: true,
            metadata: Some(metadata.to_string()),
            ..Row::new(state.next_seq(), Role::System, text, now)
        };
        state.insert(sql, marker)?;
        if parent.resumable || ending == Ending::Stopped {
            return Ok(());
        }
        self.descendants().end_for_good(state, sql, now)
    }

    /// The outcome of a run. Its text is neither bounded nor redacted yet.
    fn run_outcome(&self, state: &State, run: &Run, answer: Option<&SharedRow>) -> (Ending, Content) {
        let words = |text: &str| Content { text: text.to_owned(), files: Vec::new(), ..Content::default() };
        let Some(end) = &run.end else { return (Ending::Failure, words("")) };
        let name = &state.meta.agent;
        if end.reason.outcome() == Outcome::Stopped {
            return (Ending::Stopped, words(&format!("\"{name}\" was stopped ({}).", end.reason.as_str())));
        }
        if let Some(result) = &run.result {
            let ending = if end.reason == Reason::SessionStop { Ending::Result } else { Ending::Failure };
            return (
                ending,
                Content {
                    text: result.text.clone(),
                    files: result.attachments.clone(),
                    ..Content::default()
                },
            );
        }
        let said =
            answer.filter(|row| row.is_reply()).and_then(|row| row.content.as_deref()).unwrap_or_default();
        let bound = self.catalog.agents.get(name).is_some_and(|agent| {
            [Some(&agent.side_a), agent.side_b.as_ref()]
                .into_iter()
                .flatten()
                .any(|side| side.session_stop.is_some() || side.session_fail.is_some())
        });
        let by_turns = end.reason == Reason::MaxSessionTurns;
        match (bound, end.reason.outcome()) {
            (false, Outcome::Completed) => (Ending::Result, words(said)),
            (false, _) if by_turns => (Ending::Result, words(said)),
            (false, _) => (Ending::Failure, words(end.message.as_deref().unwrap_or(end.reason.as_str()))),
            (true, _) => {
                let why =
                    end.message.as_deref().map_or(String::new(), |text| format!(": {}", unstopped(text)));
                let last =
                    if said.trim().is_empty() { String::new() } else { format!(" Its last words: {said}") };
                let text = format!("\"{name}\" ended without a result ({}){why}.{last}", end.reason.as_str());
                (Ending::Failure, words(&text))
            }
        }
    }

    /// Sends a notification from code in a child to the parent (spec §24.2). Without a parent it does
    /// nothing.
    ///
    /// # Errors
    /// `missing_field` for a blank text; `terminated`.
    pub(crate) fn notify_parent(&self, text: &str) -> Result<()> {
        self.post_to_parent(text, "content", EnvelopeBody::Notify)
    }

    /// Sets the child's status in the parent's registry (spec §24.3). Without a parent it does nothing.
    ///
    /// # Errors
    /// `missing_field` for a blank text; `terminated`.
    pub(crate) fn set_status(&self, text: &str) -> Result<()> {
        self.post_to_parent(text, "status", EnvelopeBody::Status)
    }

    fn post_to_parent(
        &self,
        text: &str,
        field: &str,
        what: impl FnOnce(String) -> EnvelopeBody,
    ) -> Result<()> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Error::missing(field));
        }
        if self.read(|state, _| Ok(state.meta.parent.is_none()))? {
            return Ok(());
        }
        let text = bounded(&self.variables().redact(text.to_owned()));
        self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            self.send_to_parent(state, sql, what(text))
        })?;
        self.send_envelopes();
        Ok(())
    }
}

/// The maximum size of a custom status, in bytes.
pub(super) const STATUS_BYTES: usize = 512;

/// The metadata of a message from a child.
pub(super) fn metadata(reference: &str, event: &str) -> Value {
    json!({ "subagent_id": reference, "subagent_event": event })
}
