//! Reception of envelopes. Each is processed in one transition, in the order of the sequence numbers. A
//! duplicate changes nothing. An envelope that arrives too early is refused, and sent again later.

use serde_json::Value;

use crate::definitions::ParentCommunication as Communication;
use crate::definitions::message::ToolResult;
use crate::engine::cycle::accept::room;
use crate::engine::delivery::EnvelopeAnswers;
use crate::engine::features::Subagents;
use crate::engine::outbox::forget_envelope;
use crate::engine::subagents::copy::{Copies, MissingFile};
use crate::engine::subagents::delete::ParentNotice;
use crate::engine::subagents::envelope::{Content, Ending, Envelope, EnvelopeBody, Report};
use crate::engine::subagents::follow_up::{ChildEvent, FollowUp};
use crate::engine::subagents::report::{STATUS_BYTES, metadata};
use crate::engine::subagents::shown::listed;
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::request::{Reply, ThreadRequest};
use crate::sdk::scope::EntryMode;
use crate::store::attachment::AttachmentRef;
use crate::store::children::{Child, ChildState};
use crate::store::grants::{UsageReport, held};
use crate::store::log_record::Event;
use crate::store::messages::{Inbound, Row, SharedRow};
use crate::store::outbox;
use crate::store::outbox::TO_THREAD;
use crate::store::runs::end::Reason;
use crate::store::state::State;
use crate::text::first_bytes;

impl EnvelopeAnswers for Thread {
    async fn envelope_answered(&self, to: &str, n: i64, body: &str, reply: Reply) -> Result<()> {
        self.subagents().take_answer(to, n, body, reply).await
    }
}

impl Subagents<'_> {
    /// Receives an envelope from the parent or a child.
    pub(crate) async fn receive_envelope(&self, request: &ThreadRequest) -> Result<Reply> {
        let mut envelope: Envelope = crate::json::from_str(&request.body)
            .map_err(|error| Error::new(Code::BadJson, format!("This is no envelope: {error}.")))?;
        if let EnvelopeBody::Create(birth) = &envelope.what
            && let Some(applied) = self.create_as_child(&request.thread_id, &envelope, birth)?
        {
            self.after_commit(applied)?;
            return Ok(Reply::json(200, &json!({ "received": envelope.n })));
        }
        self.wake()?;
        if let EnvelopeBody::Check(asked) = envelope.what {
            return Ok(Reply::json(200, &self.answer_check(asked)?));
        }
        let copies = self.files_of(&mut envelope).await?;
        let now = self.host.now_us();
        let applied = self.transition(|state, sql| {
            let Some(from_parent) = self.is_new(state, sql, &envelope)? else {
                return Ok(FollowUp::default());
            };
            let files = copies.place(self, state, sql, now)?;
            if from_parent && !copies.missing.is_empty() {
                self.decline(state, sql, &envelope, &copies.missing)
            } else if from_parent {
                self.receive_from_parent(state, sql, &envelope, files)
            } else {
                self.receive_from_child(state, sql, &envelope, files)
            }
        });
        self.copied(copies);
        self.after_commit(applied?)?;
        Ok(Reply::json(200, &json!({ "received": envelope.n })))
    }

    /// Returns `Some` if the envelope is new: true for the parent's, false for a child's. `None` is a
    /// duplicate.
    fn is_new(&self, state: &mut State, sql: &dyn Sql, envelope: &Envelope) -> Result<Option<bool>> {
        if let Some(parent) = state.meta.parent.as_ref().filter(|parent| parent.thread == envelope.from) {
            return Ok((envelope.n > parent.envelopes.received).then_some(true));
        }
        let Some(child) = state.child(sql, &envelope.from)? else { return Err(not_related()) };
        Ok((envelope.n > child.envelopes.received).then_some(false))
    }

    /// Copies the files that an envelope names. Missing files are listed in the text of a report.
    async fn files_of(&self, envelope: &mut Envelope) -> Result<Copies> {
        let wanted = self.read_mut(|state, sql| {
            let new = self.is_new(state, sql, envelope)?.is_some() && state.meta.terminated_us.is_none();
            Ok(match &envelope.what {
                EnvelopeBody::Create(birth) if new => birth.words.files.clone(),
                EnvelopeBody::Message(words) if new => words.files.clone(),
                EnvelopeBody::Report(report) if new => {
                    let told = state.child(sql, &envelope.from)?.is_some_and(|child| {
                        let implicit = child.facts.communication == Communication::Implicit;
                        (child.wait.is_some() || implicit) && !child.facts.cut
                    });
                    if told { report.words.files.clone() } else { Vec::new() }
                }
                _ => Vec::new(),
            })
        })?;
        // Transient, so the envelope is sent again. Permanent failures are in `missing`.
        let later = |error: Error| Error::new(Code::Overloaded, error.into_message());
        let copies = self.copy_from(&envelope.from, &wanted).await.map_err(later)?;
        if let EnvelopeBody::Report(report) = &mut envelope.what {
            let text = &mut report.words.text;
            copies.missing.iter().for_each(|missing| text.push_str(&format!("\n- {missing}")));
        }
        Ok(copies)
    }

    /// Declines an envelope whose files could not be copied, and reports the failure to the parent. A child
    /// that the envelope created is terminated.
    fn decline(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        envelope: &Envelope,
        missing: &[MissingFile],
    ) -> Result<FollowUp> {
        state.ensure_not_terminated()?;
        let Some(parent) = state.meta.parent.as_mut() else { return Err(not_related()) };
        in_order(envelope.n, parent.envelopes.received)?;
        parent.envelopes.received = envelope.n;
        let resumable = parent.resumable;
        let missing: Vec<String> = missing.iter().map(MissingFile::to_string).collect();
        let text = format!(
            "The message was not taken, because its files are not there:\n- {}",
            missing.join("\n- ")
        );
        let words = Content { text, files: Vec::new(), ..Content::default() };
        let back =
            envelope.what.grant().map(|grant| UsageReport { back: held(grant), ..UsageReport::default() });
        let report = Report { run: 0, answers: envelope.n, ending: Ending::Failure, words, books: back };
        self.send_to_parent(state, sql, EnvelopeBody::Report(report))?;
        let mut applied = FollowUp::default();
        if matches!(envelope.what, EnvelopeBody::Create(_)) {
            self.descendants().end_for_good(state, sql, self.host.now_us())?;
            applied.terminated = true;
            if resumable {
                self.send_to_parent(state, sql, EnvelopeBody::Terminated)?;
            }
        }
        state.meta.update(sql)?;
        Ok(applied)
    }

    /// Performs the effects of a received envelope after its transition.
    pub(super) fn after_commit(&self, applied: FollowUp) -> Result<()> {
        if applied.terminated {
            self.effects().abort_effects();
        }
        if let Some(halted) = applied.halted {
            self.control().halted(halted)?;
        }
        if let Some(failed) = applied.failed {
            self.control().cut_off(failed)?;
        }
        self.waits().announce_waits(&applied.closed)?;
        for (reference, frame) in applied.asked {
            self.waits().announce_wait(frame, Some(&reference));
        }
        for (kind, reached) in applied.budgets {
            self.budgets().announce_budget(kind, &[reached]);
        }
        for ChildEvent { event, alias, reference, agent } in &applied.events {
            self.announce_subagent(event, alias.as_deref(), Some(reference), agent);
        }
        if let Some(entry) = applied.entry {
            self.start_flow(entry);
        }
        for row in &applied.rows {
            self.broadcast_message(row)?;
        }
        self.send_envelopes();
        Ok(())
    }

    pub(super) fn receive_from_parent(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        envelope: &Envelope,
        files: Vec<AttachmentRef>,
    ) -> Result<FollowUp> {
        let now = self.host.now_us();
        let mut applied = FollowUp::default();
        let Some(parent) = state.meta.parent.as_mut() else { return Err(not_related()) };
        if envelope.n <= parent.envelopes.received {
            return Ok(applied);
        }
        in_order(envelope.n, parent.envelopes.received)?;
        parent.envelopes.received = envelope.n;
        if let Some(grant) = envelope.what.grant() {
            self.budgets().take_grant(state, grant);
        }
        match &envelope.what {
            EnvelopeBody::Grant(granted) => {
                self.budgets().receive_grant(state, sql, granted, &mut applied)?
            }
            EnvelopeBody::Create(birth) => self.begin(state, sql, birth, files, envelope.n, &mut applied)?,
            EnvelopeBody::Message(words) => {
                self.receive_words(state, sql, words, files, envelope.n, &mut applied)?
            }
            EnvelopeBody::SetEnv(sealed) => self.descendants().receive_env(state, sql, sealed.clone())?,
            EnvelopeBody::Begin if state.meta.terminated_us.is_none() && !state.meta.stopped => {
                self.start_for_parent(state, sql, &mut applied)?;
            }
            EnvelopeBody::Stop if state.meta.terminated_us.is_none() => {
                state.meta.stopped = true;
                Event::stop(state.active()).insert(sql, now)?;
                self.descendants().stop_children(state, sql)?;
                applied.halted = Some(self.control().halt(state, sql, Reason::StoppedByParent, now)?);
                self.budgets().return_grant(state, sql, None)?;
            }
            EnvelopeBody::Terminate if state.meta.terminated_us.is_none() => {
                self.terminate_for_parent(state, sql, now, &mut applied)?;
            }
            EnvelopeBody::Begin | EnvelopeBody::Stop | EnvelopeBody::Terminate => {}
            EnvelopeBody::Check(_)
            | EnvelopeBody::Report(_)
            | EnvelopeBody::Status(_)
            | EnvelopeBody::Asks(_)
            | EnvelopeBody::Notify(_)
            | EnvelopeBody::Books(_)
            | EnvelopeBody::Spent(_)
            | EnvelopeBody::TopUp { .. }
            | EnvelopeBody::Terminated => {
                return Err(not_related());
            }
        }
        state.meta.update(sql)?;
        Ok(applied)
    }

    fn terminate_for_parent(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        now: i64,
        applied: &mut FollowUp,
    ) -> Result<()> {
        self.descendants().end_for_good(state, sql, now)?;
        applied.halted = Some(self.control().halt(state, sql, Reason::Terminated, now)?);
        self.budgets().return_grant(state, sql, None)?;
        applied.terminated = true;
        // Sent even when nothing else is left to report. If the parent was deleted while this thread was
        // created, its refusal lets this thread delete itself.
        self.send_to_parent(state, sql, EnvelopeBody::Terminated)
    }

    fn receive_from_child(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        envelope: &Envelope,
        files: Vec<AttachmentRef>,
    ) -> Result<FollowUp> {
        let now = self.host.now_us();
        let mut applied = FollowUp::default();
        let Some(mut child) = state.child(sql, &envelope.from)? else { return Err(not_related()) };
        if envelope.n <= child.envelopes.received {
            return Ok(applied);
        }
        in_order(envelope.n, child.envelopes.received)?;
        child.envelopes.received = envelope.n;
        match &envelope.what {
            EnvelopeBody::Report(report) => {
                self.receive_report(state, sql, &mut child, report, files, &mut applied)?
            }
            EnvelopeBody::Status(text) => {
                if child.is_open() {
                    first_bytes(text, STATUS_BYTES).clone_into(&mut child.status);
                }
                Event::subagent("status", &child, state.active(), Some(text)).insert(sql, now)?;
            }
            EnvelopeBody::Asks(news) => {
                self.waits().receive_question(state, sql, &mut child, news, &mut applied)?;
            }
            EnvelopeBody::Notify(text) => {
                Event::subagent("notify", &child, state.active(), None).insert(sql, now)?;
                if !child.facts.cut {
                    let words = Content { text: text.clone(), files: Vec::new(), ..Content::default() };
                    let inbound = Inbound::Triggers;
                    self.queue_words(state, sql, &child, "notify", &words, files, inbound, &mut applied)?;
                }
            }
            EnvelopeBody::Books(books) => self.budgets().charge_child(state, sql, &mut child, books)?,
            EnvelopeBody::Spent(spent) => self.budgets().receive_spend(state, sql, &mut child, spent)?,
            EnvelopeBody::TopUp { wanted, books } => {
                let budgets = self.budgets();
                budgets.receive_budget_request(state, sql, &mut child, (wanted, books), &mut applied)?;
            }
            EnvelopeBody::Terminated => {
                self.lose_child(state, sql, &mut child, "was terminated", &mut applied)?;
            }
            _ => return Err(not_related()),
        }
        state.update_child(sql, child)?;
        Ok(applied)
    }

    fn receive_report(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        report: &Report,
        files: Vec<AttachmentRef>,
        applied: &mut FollowUp,
    ) -> Result<()> {
        let now = self.host.now_us();
        if let Some(books) = &report.books {
            self.budgets().charge_child(state, sql, child, books)?;
        }
        let Report { ending, words, answers, .. } = report;
        let answer = ToolResult::success(words.text.clone());
        let answer = self.scrubbing().clean_result_within(state, &child.agent, None, answer);
        let words = &Content { text: answer.text(), ..words.clone() };
        let over = !child.facts.resumable && *ending != Ending::Stopped;
        if over {
            child.state = ChildState::Terminated;
        }
        if child.is_open() && *answers >= child.asked {
            "idle".clone_into(&mut child.status);
        } else if over {
            (if *ending == Ending::Failure { "failed" } else { "terminated" }).clone_into(&mut child.status);
        }
        let kind = if *ending == Ending::Result { "return" } else { "failure" };
        Event::subagent(kind, child, state.active(), Some(&words.text)).insert(sql, now)?;
        applied.add_event(if *ending == Ending::Result { "completed" } else { "failed" }, child);
        if child.facts.cut {
            return Ok(());
        }
        if child.is_worker() {
            return self.delegates().receive_outcome(state, sql, child, report, &files, applied);
        }
        // A terminated child may have failed before it received the message. No other answer will come.
        if child.wait.is_some() && (over || *answers >= child.asked) {
            let text = format!("{}\n\n[subagent {}]", with_files(&words.text, &files), listed(child));
            let result = match ending {
                Ending::Result => ToolResult::success(text),
                Ending::Failure | Ending::Stopped => ToolResult::error(text),
            };
            let stored = crate::engine::attachments::store::kept(&files)?;
            let result = ToolResult { stored, scrubbed: answer.scrubbed, ..result };
            return self.end_wait(state, sql, child, &result, applied);
        }
        // The first answer of a deferred child arrives as a message: the call that created it is over.
        let first = child.facts.deferred && child.asked <= 1;
        let wanted = child.facts.blocking && first;
        if child.facts.communication == Communication::Explicit && !wanted {
            return Ok(());
        }
        // A stopped child starts no run, nor does an answer that no call waits for any longer.
        let late = child.facts.blocking && !first;
        let inbound = if *ending == Ending::Stopped || late { Inbound::Stored } else { Inbound::Triggers };
        self.queue_words(state, sql, child, ending.as_str(), words, files, inbound, applied)
    }

    /// Queues a silent message with a child's text, in the role that triggers the side that created it (spec
    /// §35.9).
    #[expect(clippy::too_many_arguments, reason = "one message's facts")]
    pub(super) fn queue_words(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &Child,
        event: &str,
        words: &Content,
        files: Vec<AttachmentRef>,
        inbound: Inbound,
        applied: &mut FollowUp,
    ) -> Result<()> {
        if state.meta.terminated_us.is_none() {
            room(state)?;
        }
        let row = self.insert_words(state, sql, child, event, words, files, inbound)?;
        let waits = row.is_some() && inbound == Inbound::Triggers;
        applied.rows.extend(row);
        if waits && state.active().is_none() && !state.meta.stopped {
            self.start_for_queue(state, sql, None, self.host.now_us())?;
            applied.entry = Some(EntryMode::First);
        }
        Ok(())
    }

    /// Inserts the message without checking for room. Returns `None` in a terminated thread.
    #[expect(clippy::too_many_arguments, reason = "one message's facts")]
    pub(super) fn insert_words(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &Child,
        event: &str,
        words: &Content,
        files: Vec<AttachmentRef>,
        inbound: Inbound,
    ) -> Result<Option<SharedRow>> {
        if state.meta.terminated_us.is_some() {
            return Ok(None);
        }
        let now = self.host.now_us();
        let says = match event {
            "result" => "has finished",
            "failure" => "has failed",
            "stopped" => "was stopped",
            _ => "says",
        };
        let text = format!("Subagent {} {says}:\n\n{}", listed(child), with_files(&words.text, &files));
        let row = Row {
            inbound,
            silent: true,
            attachments: files,
            metadata: Some(metadata(&child.reference, event).to_string()),
            ..Row::new(state.next_seq(), child.facts.side().other().role(), text, now)
        };
        state.insert(sql, row).map(Some)
    }

    /// Marks a child as terminated, and ends the calls that wait for it.
    pub(super) fn lose_child(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        how: &str,
        applied: &mut FollowUp,
    ) -> Result<()> {
        if !child.is_open() {
            return Ok(());
        }
        let now = self.host.now_us();
        child.state = ChildState::Terminated;
        "terminated".clone_into(&mut child.status);
        // A pending creation must not create the child again.
        outbox::forget_target(sql, &format!("{TO_THREAD}{}", child.reference))?;
        let text = format!("The subagent {} {how}.", listed(child));
        Event::subagent("terminated", child, state.active(), Some(&text)).insert(sql, now)?;
        applied.add_event("closed", child);
        match child.is_worker() {
            true => self.delegates().fail_worker(state, sql, child, &text, applied),
            false => self.end_wait(state, sql, child, &ToolResult::error(text), applied),
        }
    }

    /// Handles the reply to an envelope: received, or refused for good.
    async fn take_answer(&self, to: &str, n: i64, body: &str, reply: Reply) -> Result<()> {
        let taken = reply.status < 300;
        let error: Value = match reply.body {
            Some(body) if !taken => crate::json::from_str(body.get()).unwrap_or_default(),
            _ => Value::Null,
        };
        let code = error.pointer("/error/code").and_then(Value::as_str).unwrap_or_default().to_owned();
        let why = error.pointer("/error/message").and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_parent =
            self.read(|state, _| Ok(state.meta.parent.as_ref().is_some_and(|parent| parent.thread == to)))?;
        if !taken {
            self.variables().log(&format!("the thread {to} refused envelope {n}: {code} {why}"));
        }
        if is_parent && code == "thread_not_found" {
            // The parent's tree was deleted while this thread was created.
            self.control().delete_tree(ParentNotice::NotOwed).await?;
            return Ok(());
        }
        // Before the envelope is forgotten. After a crash here the envelope is sent again, and its hooks run
        // again.
        let envelope: Option<Envelope> =
            if n == 1 && taken { crate::json::from_str(body).ok() } else { None };
        let held = !is_parent && envelope.is_some_and(|envelope| envelope.holds());
        if held {
            self.hooks().run_created_hooks(to).await?;
        }
        let applied = self.transition(|state, sql| {
            let mut applied = FollowUp::default();
            forget_envelope(sql, to, n)?;
            if is_parent {
                return Ok(applied);
            }
            let Some(mut child) = state.child(sql, to)? else { return Ok(applied) };
            if taken {
                if child.state == ChildState::Creating {
                    child.state = ChildState::Live;
                    if held {
                        self.send_to_child(state, sql, &mut child, EnvelopeBody::Begin)?;
                    }
                    state.update_child(sql, child)?;
                }
                return Ok(applied);
            }
            self.refused_by(state, sql, &mut child, body, &code, &why, &mut applied)?;
            state.update_child(sql, child)?;
            Ok(applied)
        })?;
        if held || applied.entry.is_some() || !applied.rows.is_empty() {
            self.after_commit(applied)?;
        }
        Ok(())
    }

    /// Handles an envelope that a child refused, because it could not be created or takes no more messages.
    #[expect(clippy::too_many_arguments, reason = "one refusal's facts")]
    fn refused_by(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        body: &str,
        code: &str,
        why: &str,
        applied: &mut FollowUp,
    ) -> Result<()> {
        let envelope: Envelope = crate::json::from_str(body).map_err(Error::internal)?;
        let gone = match (&envelope.what, code) {
            (EnvelopeBody::Create(_), _) | (_, "thread_not_found" | "terminated") => true,
            (EnvelopeBody::Message(_), _) => false,
            _ => return Ok(()),
        };
        if let Some(grant) = envelope.what.grant() {
            self.budgets().charge_child(
                state,
                sql,
                child,
                &UsageReport { back: held(grant), ..UsageReport::default() },
            )?;
        }
        let waited = child.wait.is_some();
        if gone {
            let how = match &envelope.what {
                EnvelopeBody::Create(_) => format!("could not be created: {why}"),
                _ => "takes no more messages".to_owned(),
            };
            self.lose_child(state, sql, child, &how, applied)?;
            "failed".clone_into(&mut child.status);
        } else {
            let text = format!("The subagent {} did not take the message: {why}", listed(child));
            match child.is_worker() {
                true => self.delegates().fail_worker(state, sql, child, &text, applied)?,
                false => self.end_wait(state, sql, child, &ToolResult::error(text), applied)?,
            }
        }
        if waited || child.is_worker() {
            return Ok(());
        }
        let words = Content { text: why.to_owned(), files: Vec::new(), ..Content::default() };
        self.queue_words(state, sql, child, "failure", &words, Vec::new(), Inbound::Triggers, applied)
    }
}

/// A text, followed by the paths of its files.
fn with_files(text: &str, files: &[AttachmentRef]) -> String {
    let mut told = if text.trim().is_empty() { "(no text)".to_owned() } else { text.to_owned() };
    for file in files {
        told.push_str(&format!("\n- {}", file.path));
    }
    told
}

/// Refuses an envelope that arrives before its predecessor.
fn in_order(n: i64, received: i64) -> Result<()> {
    if n == received + 1 {
        return Ok(());
    }
    Err(Error::new(Code::Overloaded, format!("Envelope {n} came before {}.", received + 1)))
}

fn not_related() -> Error {
    Error::new(Code::Conflict, "These two threads are not parent and child.")
}
