//! Stop, continue, terminate, delete (spec §30). Each operation commits first and then drops the running
//! flow, which cancels the flow's requests in progress.

use crate::definitions::AgentKind;
use crate::definitions::message::{Role, ToolResult, ToolStatus};
use crate::engine::calls::call::{interrupted, result_metadata};
use crate::engine::calls::tool_result::{content_of, logged_error};
use crate::engine::cycle::answer_end::is_being_made;
use crate::engine::cycle::run_end::HaltedRun;
use crate::engine::ephemeral::MessageOutcome;
use crate::engine::features::Control;
use crate::engine::hooks::result::CHANGING;
use crate::engine::outbox::Targets;
use crate::engine::subagents::delete::{BY_PARENT, ParentNotice};
use crate::engine::subagents::envelope::EnvelopeBody;
use crate::error::{Code, Error, Result};
use crate::host::{Sibling, Sql};
use crate::limits;
use crate::protocols::responses::threads::{Continued, Stopped, Terminated, ThreadDeleted};
use crate::request::directory_call::DirectoryCall;
use crate::request::fields::Body;
use crate::request::{Reply, ThreadRequest, directory_call as call, thread_id};
use crate::sdk::scope::EntryMode;
use crate::store::generations::PreviousThread;
use crate::store::log_record::{Event, UnfinishedReason};
use crate::store::messages::{Row, SharedRow};
use crate::store::meta::Meta;
use crate::store::receipts::{Kind, Receipt, ReceiptState};
use crate::store::runs::end::{Outcome, Reason};
use crate::store::runs::usage::Usage;
use crate::store::runs::{Phase, Run};
use crate::store::side::Side;
use crate::store::state::State;
use crate::store::{messages as rows, receipts, schema};

impl Control<'_> {
    /// Ends the active run. Queued messages wait until the next send or `continue`. If the request names a
    /// run, nothing happens unless that run is active.
    pub(crate) fn stop(&self, request: &str) -> Result<Reply> {
        let mut body = Body::parse(request)?.known(&["run", "answer_to"])?;
        let (run, answer_to) = (body.string("run")?, body.string("answer_to")?);
        let now = self.host.now_us();
        let is_meant = self.read(|state, sql| {
            let named = run.is_none() || state.active().map(Run::public_id) == run;
            let answers = answer_to.as_deref().map(|message| is_being_made(state, sql, message));
            Ok(named && answers.transpose()?.unwrap_or(true))
        })?;
        if !is_meant {
            let message = "This run is not active; nothing was stopped.";
            return Ok(Reply::json(200, &Stopped { status: "stopped", message }));
        }
        let halted = self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            state.meta.stopped = true;
            state.meta.update(sql)?;
            Event::stop(state.active()).insert(sql, now)?;
            self.descendants().stop_children(state, sql)?;
            self.halt(state, sql, Reason::StoppedByUser, now)
        })?;
        let message = match &halted.finished {
            Some(_) => "The run was stopped.",
            None => "Nothing was running. Queued messages wait for the next send.",
        };
        self.halted(halted)?;
        if self.read(|state, _| Ok(state.meta.children > 0))? {
            // They continue until they receive the message.
            self.subagents().send_envelopes();
        }
        Ok(Reply::json(200, &Stopped { status: "stopped", message }))
    }

    /// Refuses all further work. Deletes nothing. A second call changes nothing.
    pub(crate) async fn terminate(&self) -> Result<Reply> {
        self.terminate_now()?;
        self.outbox().deliver_now(Targets::All).await;
        self.read(|state, _| {
            let terminated = state.meta.terminated_us.map(|us| us / limits::SECOND_US);
            let body = Terminated { status: "terminated", thread_id: &state.meta.thread_id, terminated };
            Ok(Reply::json(200, &body))
        })
    }

    pub(in crate::engine) fn terminate_now(&self) -> Result<()> {
        let now = self.host.now_us();
        let halted = self.transition(|state, sql| {
            if state.meta.terminated_us.is_some() {
                return Ok(HaltedRun::default());
            }
            self.descendants().end_for_good(state, sql, now)?;
            self.subagents().send_to_parent(state, sql, EnvelopeBody::Terminated)?;
            self.halt(state, sql, Reason::Terminated, now)
        })?;
        self.effects().abort_effects();
        self.halted(halted)
    }

    /// The part of a stop inside a transition: ends the run, and gives a running call the result "outcome
    /// unknown".
    pub(in crate::engine) fn halt(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        reason: Reason,
        now: i64,
    ) -> Result<HaltedRun> {
        self.halt_saying(state, sql, reason, None, now)
    }

    /// Like [`Control::halt`], for a run that fails from outside, with the text of its failure.
    pub(in crate::engine) fn halt_saying(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        reason: Reason,
        message: Option<String>,
        now: i64,
    ) -> Result<HaltedRun> {
        let Some(run) = state.active().cloned() else {
            // Waits for subagents' requests belong to no run.
            return Ok(HaltedRun { waits: self.waits().cancel_waits(state, sql)?, ..HaltedRun::default() });
        };
        // A run that waits for its next attempt has none in progress.
        if run.phase == Phase::Model && run.resume_us.is_none() {
            self.log_unfinished(state, sql, run.stream, UnfinishedReason::Cancelled, now)?;
            self.ephemeral.spending.cut_off();
            state.usage = None;
        }
        self.schedule_cancels(state, sql, &run, now)?;
        let results = self.close_calls(state, sql, &run, reason, now)?;
        let finished = self.finish(state, sql, reason, message)?;
        Ok(HaltedRun { finished: Some(finished), results, waits: Vec::new() })
    }

    /// Stores results for the open calls of a run that ends in the middle of its step: kept ones, or else
    /// errors.
    pub(in crate::engine) fn close_calls(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        run: &Run,
        reason: Reason,
        now: i64,
    ) -> Result<Vec<SharedRow>> {
        let mut results = Vec::new();
        if run.phase != Phase::Tools && !run.phase.is_parked() && state.queued_tools.is_empty() {
            return Ok(results);
        }
        let stopped = reason.outcome() == Outcome::Stopped;
        let unhooked = self.stores_as_is(&state.meta.agent, run.side);
        for receipt in receipts::abandon_run(sql, run.block, now)? {
            let waited = receipt.has_only_waited();
            self.mcp().schedule_task_cancel(state, sql, &receipt, now)?;
            let early = unhooked && ended_early(&receipt);
            if let Some(result) = receipt.result.as_ref().filter(|_| early) {
                let error =
                    (result.status == ToolStatus::Error).then(|| logged_error(&result.text(), result));
                let ended = ReceiptState::ended(result.status);
                receipts::close(sql, receipt.id, ended, error.as_deref(), now, result.scrubbed)?;
            }
            let Receipt { id: seq, reply, call_id, name, kind, result, .. } = receipt;
            if kind == Kind::Prompt {
                let why = if stopped { UnfinishedReason::Cancelled } else { UnfinishedReason::Lost };
                self.log_cut_off(state, sql, seq, &name, why, now)?;
            }
            if reply <= 0 {
                // A call made by code has no message.
                continue;
            }
            let of = rows::find(sql, reply)?;
            let kept = result.filter(|_| early || waited || kind == Kind::Subagent);
            let result = kept.unwrap_or_else(|| unfinished(&name, kind, waited, stopped));
            let row = Row {
                name: Some(name),
                tool_call_id: Some(call_id),
                status: Some(result.status),
                metadata: result_metadata(&result),
                attachments: crate::engine::attachments::store::stored(&result.stored)?,
                parent: of.as_ref().and_then(|of| of.parent),
                depth: of.as_ref().map_or(0, |of| of.depth),
                ..Row::new(seq, Role::Tool, content_of(&result), now)
            };
            results.push(state.insert(sql, row)?);
        }
        Ok(results)
    }

    /// Whether no hook changes the stored results of an agent's calls.
    fn stores_as_is(&self, agent: &str, side: Side) -> bool {
        let definitions = self.definitions_of(agent, side);
        definitions.is_some_and(|definitions| !self.hooks().has_hooks(&definitions, &CHANGING))
    }

    /// Runs after the commit of a stop. Settles the clients that wait for queued messages.
    pub(in crate::engine) fn halted(&self, halted: HaltedRun) -> Result<()> {
        self.cut_off(halted)?;
        self.send_held(None)?;
        self.settle(|waiter| waiter.run.is_none().then_some(MessageOutcome::Stopped));
        Ok(())
    }

    /// Runs after the commit that ended a run from outside.
    pub(in crate::engine) fn cut_off(&self, halted: HaltedRun) -> Result<()> {
        self.ephemeral.abort_flow();
        self.waits().announce_waits(&halted.waits)?;
        for row in &halted.results {
            self.broadcast_message(row)?;
        }
        halted.finished.map_or(Ok(()), |finished| self.announce_end(finished))
    }

    /// Continues without a new message. The counters of the session continue too, unless messages were
    /// queued.
    pub(crate) fn continue_run(&self, request: &ThreadRequest) -> Result<Reply> {
        let trace = request.trace().map(|trace| trace.to_string());
        let mut body = Body::parse(&request.body)?.known(&["side"])?;
        let wanted = match body.string("side")?.as_deref() {
            None => None,
            Some(letter) => Some(
                Side::parse(letter)
                    .ok_or_else(|| Error::field("side", format!("`side` is a or b, not “{letter}”.")))?,
            ),
        };
        if wanted == Some(Side::B) && self.read(|state, _| Ok(self.kind(state)))? == AgentKind::AiHuman {
            return Err(Error::field(
                "side",
                "Side b is a person here; only an agent with two AI sides has it.",
            ));
        }
        let now = self.host.now_us();
        let (run, started) = self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            if state.meta.stopped {
                state.meta.stopped = false;
                state.meta.update(sql)?;
            }
            if let Some(run) = state.active() {
                return Ok((run.clone(), false));
            }
            let run = Run { trace: trace.clone(), ..state.next_run(wanted, now) };
            let run = self.with_snapshot(state, sql, run, now)?;
            let run = self.diagnosis().with_given_up(state, sql, run)?;
            let run = self.budgets().with_budget(state, sql, run, None)?;
            run.insert(sql)?;
            state.usage = Some(Usage::none(run.id));
            state.run = Some(run.clone());
            self.arm(Some(now))?;
            Ok((run, true))
        })?;
        if started {
            self.start_flow(EntryMode::First);
        }
        let message = if started { "The thread continues." } else { "A run is active already." };
        Ok(Reply::json(202, &Continued { status: "queued", queue_id: run.public_id(), message }))
    }

    /// Deletes the thread and all threads below it. Safe to repeat.
    pub(crate) async fn delete(&self, request: &ThreadRequest) -> Result<Reply> {
        let id = self.read(|state, _| Ok(state.meta.thread_id.clone()))?;
        let notice = match request.header(BY_PARENT) {
            Some(_) => ParentNotice::NotOwed,
            None => ParentNotice::Owed,
        };
        let deleted = self.delete_tree(notice).await?;
        let body = ThreadDeleted {
            success: true,
            thread_id: &id,
            deleted_thread_ids: &deleted,
            deleted_count: deleted.len() as i64,
            message: "Thread deleted",
        };
        Ok(Reply::json(200, &body))
    }

    /// Deletes the thread, in this order: ends its run, deletes the threads below it and its objects in the
    /// bucket, notifies its parent, removes it from the directory, drops its tables. Returns the deleted ids,
    /// its own first.
    pub(in crate::engine) async fn delete_tree(&self, parent: ParentNotice) -> Result<Vec<String>> {
        self.terminate_now()?;
        let below = self.descendants().delete_children().await?;
        self.files().delete_objects().await?;
        if parent == ParentNotice::Owed {
            self.descendants().flush_parent_notice().await?;
        }
        self.memories().flush_outbox().await?;
        let (id, owner, past) = self.read(|state, _| {
            let Meta { thread_id, owner, life, edits, run_floor, .. } = &state.meta;
            let run = state.run.as_ref().map_or(*run_floor, |run| run.id);
            Ok((thread_id.clone(), owner.clone(), PreviousThread { life: *life, run, edits: *edits }))
        })?;
        let call = DirectoryCall::Delete { id: id.clone(), life: past.life };
        let call = call.to_json()?;
        let directory = Sibling::Directory(call::name_of(owner.as_deref()));
        let answer = call::answer(&self.host.sibling(directory, call).await?)?;
        if answer.status >= 300 {
            return Err(Error::new(
                Code::Overloaded,
                "The thread's directory could not be told of the deletion.",
            )
            .hint("The thread is terminated; delete it again."));
        }
        // Another delete may have finished in the meantime.
        self.read(|_, _| Ok(()))?;
        // Clear the memory of the deleted thread first, in case something fails right after the commit.
        self.state.borrow_mut().take();
        self.transaction(|sql| {
            schema::drop_all(sql)?;
            if thread_id::is_of_key(&id) {
                past.write(sql)?;
            }
            // A running handler keeps its event. After a crash the event goes to the next thread in this
            // object.
            self.arm(None)
        })?;
        self.go();
        self.host.listeners().close("the thread was deleted");
        Ok(std::iter::once(id).chain(below).collect())
    }
}

/// The result of a call that had none when its run ended.
fn unfinished(name: &str, kind: Kind, waited: bool, stopped: bool) -> ToolResult {
    let of_subagent = kind == Kind::Subagent;
    ToolResult::error(match (of_subagent, stopped) {
        _ if waited => "Not run: the run was ended before anybody had decided about this call.".to_owned(),
        (true, true) => {
            format!("The run was stopped while \"{name}\" was waited for; the subagent was stopped too.")
        }
        (true, false) => format!("The run was given up while \"{name}\" was waited for."),
        (false, true) => {
            format!("The run was stopped while \"{name}\" was running. It may or may not have taken effect.")
        }
        (false, false) => interrupted(name),
    })
}

/// Whether a reply's call ended before its turn with a result without files. Files are stored only with a
/// message that its hooks have seen.
fn ended_early(receipt: &Receipt) -> bool {
    let of_tool = receipt.reply > 0 && matches!(receipt.kind, Kind::Native | Kind::Http | Kind::Code);
    let mut result = receipt.result.clone().filter(|_| of_tool && receipt.state == ReceiptState::Started);
    result.as_mut().is_some_and(|result| result.take_files().is_empty())
}
