//! Receipts that wait for a child. The run is parked with nothing in memory, and the child's report resumes
//! it. The alarm polls the child, and ends the wait when it expires.

use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::engine::calls::call::Call;
use crate::engine::ephemeral::MessageOutcome;
use crate::engine::features::Subagents;
use crate::engine::subagents::delegates::outcome;
use crate::engine::subagents::envelope::{Ending, Envelope, EnvelopeBody};
use crate::engine::subagents::follow_up::FollowUp;
use crate::error::{Code, Error, Result};
use crate::host::{Sibling, Sql};
use crate::limits;
use crate::request::directory_call as call;
use crate::sdk::scope::EntryMode;
use crate::store::children::{Child, ChildState};
use crate::store::log_record::Event;
use crate::store::outbox::TO_THREAD;
use crate::store::receipts::Kind;
use crate::store::runs::{Phase, Run};
use crate::store::state::State;
use crate::store::{outbox, receipts};

impl Subagents<'_> {
    /// Parks the run on a receipt, unless its result exists already. When it parks, it never returns: this
    /// flow ends, and another one continues the run.
    pub(super) async fn park(&self, call: &Call) -> Result<ToolResult> {
        let parked = self.transition(|state, sql| {
            let receipt = receipts::find(sql, call.seq)?.filter(|receipt| receipt.kind == Kind::Subagent);
            if let Some(result) = receipt.and_then(|receipt| receipt.result) {
                return Ok(Err(result));
            }
            let run = state.active_mut()?;
            run.phase = run.phase.parked();
            run.update(sql)?;
            let run = run.clone();
            self.telemetry().schedule_spans(state, sql, &run, self.host.now_us())?;
            Ok(Ok(run))
        })?;
        let run = match parked {
            Err(result) => return Ok(result),
            Ok(run) => run,
        };
        if self.activity().wants_progress() {
            self.activity().send_waiting(format!("Waiting for subagent: {}", call.call.name))?;
        }
        self.send_parked()?;
        self.settle(|_| Some(MessageOutcome::Parked(Some(run.clone()))));
        self.ephemeral.abort_flow();
        std::future::pending().await
    }

    /// Ends the wait for a child. Stores the result on the receipt and resumes the run.
    pub(super) fn end_wait(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        result: &ToolResult,
        applied: &mut FollowUp,
    ) -> Result<()> {
        let Some(wait) = child.wait.take() else { return Ok(()) };
        child.due_us = None;
        child.checks = 0;
        if child.is_worker() {
            outcome::settle(child, Ending::Failure, &result.text())?;
        }
        let result = ToolResult { subagent_id: Some(child.reference.clone()), ..result.clone() };
        receipts::answer(sql, wait.receipt, &result)?;
        applied.ended = Some(result.status);
        let Some(run) = state.run.as_mut().filter(|run| run.phase.is_parked()) else { return Ok(()) };
        let now = self.host.now_us();
        run.resume(now);
        run.update(sql)?;
        applied.entry = Some(EntryMode::Again);
        self.arm(Some(now))
    }

    /// Polls the children that are due. A child that cannot be reached is polled again later.
    pub(crate) async fn poll_children(&self) -> Result<()> {
        let now = self.host.now_us();
        let due: Vec<Child> = self.read_mut(|state, sql| {
            if state.meta.children == 0 {
                return Ok(Vec::new());
            }
            let due = |child: &&Child| child.due_us.is_some_and(|at| at <= now);
            Ok(state.open_children(sql)?.iter().filter(due).cloned().collect())
        })?;
        for child in due {
            if child.state == ChildState::Pending {
                self.give_up(&child.reference)?;
                continue;
            }
            let expired = child.wait.is_some_and(|wait| wait.expires_us <= now);
            let lost = match (expired, child.wait) {
                (true, _) => Some(format!(
                    "The subagent did not answer within {} days; it was stopped. Its reference is {}.",
                    limits::WAIT_US / limits::DAY_US,
                    child.reference
                )),
                (false, Some(_)) => self.ask_child(&child.reference, child.asked).await?,
                (false, None) if self.read(|state, sql| self.still_needs(state, sql, &child))? => {
                    self.ask_child(&child.reference, child.asked).await?
                }
                (false, None) => None,
            };
            self.record_poll(&child, lost, expired)?;
        }
        Ok(())
    }

    /// Whether an open wait still needs an outcome of this worker.
    fn still_needs(&self, state: &State, sql: &dyn Sql, child: &Child) -> Result<bool> {
        Ok(outcome::works(child)? && self.delegates().is_awaited(state, sql, child)?)
    }

    fn record_poll(&self, seen: &Child, lost: Option<String>, expired: bool) -> Result<()> {
        let now = self.host.now_us();
        let applied = self.transition(|state, sql| {
            let mut applied = FollowUp::default();
            let Some(mut child) = state.child(sql, &seen.reference)?.filter(|child| child.wait == seen.wait)
            else {
                return Ok(applied);
            };
            match lost {
                Some(text) if child.wait.is_some() => {
                    "idle".clone_into(&mut child.status);
                    if expired && child.facts.resumable {
                        self.send_to_child(state, sql, &mut child, EnvelopeBody::Stop)?;
                    } else if expired {
                        // It is not resumable, so no call could message it again.
                        self.send_to_child(state, sql, &mut child, EnvelopeBody::Terminate)?;
                        child.state = ChildState::Terminated;
                        "terminated".clone_into(&mut child.status);
                    }
                    Event::subagent("failure", &child, state.active(), Some(&text)).insert(sql, now)?;
                    self.end_wait(state, sql, &mut child, &ToolResult::error(text), &mut applied)?;
                }
                Some(text) if self.still_needs(state, sql, &child)? => {
                    child.due_us = None;
                    Event::subagent("failure", &child, state.active(), Some(&text)).insert(sql, now)?;
                    self.delegates().fail_worker(state, sql, &mut child, &text, &mut applied)?;
                }
                _ => {
                    child.checks += 1;
                    let pause = (limits::CHECK_US << child.checks.min(10)).min(limits::CHECK_MAX_US);
                    let end = child.wait.map(|wait| wait.expires_us);
                    let awaited = || self.still_needs(state, sql, &child);
                    child.due_us = match end {
                        Some(end) => Some(end.min(now + pause)),
                        None => awaited()?.then_some(now + pause),
                    };
                }
            }
            state.update_child(sql, child)?;
            Ok(applied)
        })?;
        self.after_commit(applied)
    }

    /// Polls a child. Returns the reason if the answer to envelope `asked` will not come.
    async fn ask_child(&self, reference: &str, asked: i64) -> Result<Option<String>> {
        let (from, life) =
            self.read(|state, _| Ok((state.meta.thread_id.clone(), state.meta.family_generation())))?;
        let envelope = Envelope { from, n: 0, what: EnvelopeBody::Check(asked), life };
        let body = serde_json::to_string(&envelope).map_err(Error::internal)?;
        let text = format!("{}\n{body}", self.envelope_head(reference)?);
        let answer = match self.host.sibling(Sibling::Thread(reference.to_owned()), text).await {
            Ok(text) => call::answer(&text),
            Err(error) => Err(error),
        };
        let reply = match answer {
            Ok(reply) => reply,
            Err(error) => {
                self.variables()
                    .log(&format!("the subagent {reference} could not be asked how it is: {error}"));
                return Ok(None);
            }
        };
        let body: Value =
            reply.body.and_then(|body| crate::json::from_str(body.get()).ok()).unwrap_or_default();
        let gone = reply.status == 404 && body.pointer("/error/code") == Some(&"thread_not_found".into());
        // An undelivered envelope brings the answer, or creates the child.
        let entries = self.read(|_, sql| outbox::count_for(sql, &format!("{TO_THREAD}{reference}")))?;
        Ok(match (entries, gone, body.get("comes").and_then(Value::as_bool)) {
            (n, _, _) if n > 0 => None,
            (_, true, _) => Some(format!("The subagent {reference} was deleted before it answered.")),
            (_, false, Some(false)) => Some(format!("The subagent {reference} ended without an answer.")),
            _ => None,
        })
    }

    /// The child's answer to a poll.
    pub(super) fn answer_check(&self, asked: i64) -> Result<Value> {
        self.read(|state, sql| {
            let Some(parent) = &state.meta.parent else {
                return Err(Error::new(Code::Conflict, "It is no subagent."));
            };
            let told = outbox::count_for(sql, &format!("{TO_THREAD}{}", parent.thread))?;
            let unheard = parent.envelopes.received < asked;
            let queued = state.active().is_some() || state.waiting() > 0;
            let comes = state.meta.terminated_us.is_none() && (unheard || queued);
            Ok(crate::json!({ "comes": comes || told > 0 }))
        })
    }
}

impl Phase {
    /// The parked form of a phase.
    pub(crate) const fn parked(self) -> Phase {
        match self {
            Phase::Start | Phase::ParkedAtStart => Phase::ParkedAtStart,
            Phase::Model | Phase::ParkedAtModel => Phase::ParkedAtModel,
            _ => Phase::Parked,
        }
    }

    /// The phase in which a parked run continues.
    const fn resumed(self) -> Phase {
        match self {
            Phase::ParkedAtStart => Phase::Start,
            Phase::ParkedAtModel => Phase::Model,
            Phase::Parked => Phase::Tools,
            other => other,
        }
    }

    /// Whether the run is parked: it waits for an external event or a distant time.
    pub(crate) const fn is_parked(self) -> bool {
        matches!(self, Phase::Parked | Phase::ParkedAtStart | Phase::ParkedAtModel)
    }
}

impl Run {
    /// Resumes the run at the point where it was parked. The caller starts a flow at once. `resume_us`
    /// records that no model attempt was lost; in other phases a crash before the flow starts counts as
    /// usual.
    pub(crate) fn resume(&mut self, now: i64) {
        self.phase = self.phase.resumed();
        self.resume_us = (self.phase == Phase::Model).then_some(now);
    }

    /// Whether the run can continue without clearing `resume_us` first.
    pub(crate) const fn is_resumed(&self) -> bool {
        self.resume_us.is_none()
    }
}

impl ChildState {
    /// Whether the child's thread exists or is being created, by the registry.
    pub(crate) const fn exists(self) -> bool {
        matches!(self, ChildState::Creating | ChildState::Live)
    }
}
