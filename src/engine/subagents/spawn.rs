//! A call creates a child or sends it a message. One transition writes the registry's row, the envelope and
//! the receipt.

use crate::definitions::ParentCommunication as Communication;
use crate::definitions::message::{ToolCall, ToolResult, ToolStatus};
use crate::engine::calls::call::ToolRun;
use crate::engine::calls::call::{Call, CallOutcome};
use crate::engine::calls::tool_events::ToolCallEvent;
use crate::engine::features::Subagents;
use crate::engine::subagents::call::{Dispatch, NewChild, SubagentCall};
use crate::engine::subagents::checks::{may_wait, refused};
use crate::engine::subagents::deferred::PendingChild;
use crate::engine::subagents::delegates::manage;
use crate::engine::subagents::envelope::{ChildSpec, Content, EnvelopeBody};
use crate::engine::subagents::follow_up::FollowUp;
use crate::engine::subagents::shown::listed;
use crate::engine::subagents::values::env_required;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::request::thread_id;
use crate::sdk::scope::{EntryMode, Scope};
use crate::store::children::{Child, ChildState, Wait};
use crate::store::log_record::Event;
use crate::store::messages::{Inbound, SharedRow};
use crate::store::receipts;
use crate::store::receipts::{Kind, NewReceipt, ReceiptData, ReceiptState};
use crate::store::runs::Parking;
use crate::store::side::Side;
use crate::store::state::State;

/// A success that concerns a child.
fn about(child: &Child, text: String) -> ToolResult {
    ToolResult { subagent_id: Some(child.reference.clone()), ..ToolResult::success(text) }
}

/// The receipt of a call that a child answers: it waits, or has an immediate result.
fn receipt_of<'a>(
    scope: &Scope,
    reply: &SharedRow,
    call: &'a Call,
    dispatch: &'a Dispatch,
    now: i64,
) -> NewReceipt<'a> {
    let ToolCall { id, name, .. } = &call.call;
    let waits = dispatch.result.is_none();
    NewReceipt {
        state: if waits { ReceiptState::Waiting } else { ReceiptState::Started },
        data: ReceiptData { work: scope.detached_work(), ..ReceiptData::default() },
        result: dispatch.result.as_ref(),
        ..NewReceipt::started(call.seq, reply.seq, id, name, Kind::Subagent, now)
    }
}

/// The result for a child that was not created because its values are unavailable. Other errors are not
/// errors of the call.
fn not_created(name: &str, error: Error) -> Result<Result<Dispatch, ToolResult>> {
    match error.code {
        Code::EncryptionUnavailable | Code::TooLarge => {
            Ok(Err(refused(format!("\"{name}\" was not created: {}", error.message))))
        }
        _ => Err(error),
    }
}

/// The result of a call that created a child. A call that waits for the child receives its result later.
fn started_dispatch(child: &Child, receipt: Option<i64>) -> Dispatch {
    let result = receipt.is_none().then(|| match child.is_worker() {
        true => manage::started(child),
        false => about(child, started(child)),
    });
    let mut applied = FollowUp::default();
    applied.add_event("started", child);
    Dispatch { result, applied, ..Dispatch::default() }
}

impl Subagents<'_> {
    /// Sends a message to a child, with its share of the budget. The child's row must be written afterwards.
    /// Returns an error result if the budget does not suffice.
    pub(super) fn write_to_child(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        words: &Content,
    ) -> Result<Result<(), ToolResult>> {
        let grant = match self.budgets().lend(state, sql, child, None, false)? {
            Ok(grant) => grant,
            Err(result) => return Ok(Err(result)),
        };
        let what = EnvelopeBody::Message(Content { grant, ..words.clone() });
        self.send_to_child(state, sql, child, what)?;
        child.asked = child.envelopes.sent;
        "running".clone_into(&mut child.status);
        Ok(Ok(()))
    }

    /// Makes a call for a child. A call that waits for the child's answer parks the run and never returns:
    /// the flow that continues the run finds the result on the receipt.
    pub(crate) async fn call_child(
        &self,
        run: ToolRun<'_>,
        wanted: Result<SubagentCall<'_>, ToolResult>,
    ) -> Result<CallOutcome> {
        let ToolRun { scope, definitions, reply, call, .. } = run;
        if scope.entered == EntryMode::Again
            && let Some(stored) = self.read(|_, sql| receipts::find(sql, call.seq))?
            && stored.kind == Kind::Subagent
        {
            return match stored.result {
                Some(result) => Ok(CallOutcome::ran(result)),
                None => self.park(call).await.map(CallOutcome::ran),
            };
        }
        let mut wanted = match wanted {
            Ok(wanted) => wanted,
            Err(result) => return Ok(CallOutcome::refused_with(result)),
        };
        if let SubagentCall::Wait(wait) = &mut wanted {
            wait.batch = reply.seq;
        }
        if let SubagentCall::Create(new) = &mut wanted {
            if reply.inbound == Inbound::QueuedTool {
                new.begun_by(reply);
            }
            self.descendants().ready_child(new.agent).await?;
        }
        if scope.depth >= limits::CALL_DEPTH {
            return Ok(CallOutcome::refused(crate::engine::calls::call::too_deep(&call.call.name)));
        }
        if let Some(result) = self.budgets().count_call(scope.is_detached())? {
            return Ok(CallOutcome::refused_with(result));
        }
        let group = self.read(|state, _| Ok(reply.id(&state.meta.stem)))?;
        let dispatch = self.transition(|state, sql| {
            let side = definitions.active;
            let by = group.clone();
            let trace = self.traces().trace_of_call(state, scope, Some(call.seq));
            let wanted = wanted.in_trace(trace);
            match self.write_in(state, sql, &wanted, side, Some(group), &by, Some(call.seq), scope.parking)? {
                Err(result) => Ok(Err(result)),
                Ok(dispatch) => {
                    state.starts_detached(sql, scope, call.seq)?;
                    receipt_of(scope, reply, call, &dispatch, self.host.now_us()).insert(sql)?;
                    Ok(Ok(dispatch))
                }
            }
        })?;
        let dispatch = match dispatch {
            Ok(dispatch) => dispatch,
            Err(result) => return Ok(CallOutcome::refused_with(result)),
        };
        self.activity().send_calls(scope, reply, call)?;
        self.finish_dispatch(call, dispatch).await
    }

    /// The work after the commit of a call for a child.
    async fn finish_dispatch(&self, call: &Call, dispatch: Dispatch) -> Result<CallOutcome> {
        self.activity().announce_tool_start(&ToolCallEvent::of(call));
        self.after_commit(dispatch.applied)?;
        if let Some(opened) = dispatch.opened {
            return self.waits().end_parked_flow(&[opened]).await;
        }
        match dispatch.result {
            Some(result) => {
                self.activity().announce_tool_end(&ToolCallEvent::of(call), result.status);
                Ok(CallOutcome::ran(result))
            }
            None => self.park(call).await.map(CallOutcome::ran),
        }
    }

    /// Makes a call for a child from code that waits for the result (spec §6.4). A call that must wait for
    /// the child is refused.
    pub(crate) fn invoke_child(
        &self,
        scope: &Scope,
        wanted: &SubagentCall<'_>,
        insert: impl FnOnce(&mut State, &dyn Sql, &ToolResult) -> Result<()>,
    ) -> Result<ToolResult> {
        let dispatch = self.transition(|state, sql| {
            let side = state.run.as_ref().map_or(Side::A, |run| run.side);
            let trace = self.traces().trace_of_call(state, scope, None);
            let wanted = wanted.in_trace(trace);
            match self.write_in(state, sql, &wanted, side, None, &scope.key, None, scope.parking)? {
                Err(result) => Ok(Dispatch::now(result)),
                Ok(dispatch) => {
                    let result = dispatch.result.unwrap_or_else(|| refused("This call has no answer."));
                    insert(state, sql, &result)?;
                    Ok(Dispatch { result: Some(result), ..dispatch })
                }
            }
        })?;
        self.after_commit(dispatch.applied)?;
        Ok(dispatch.result.unwrap_or_else(|| refused("This call has no answer.")))
    }

    /// The part inside a transition. The call receives an error result; the transition has then written
    /// nothing.
    #[expect(clippy::too_many_arguments, reason = "one transition's facts")]
    fn write_in(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        wanted: &SubagentCall<'_>,
        side: Side,
        group: Option<String>,
        by: &str,
        receipt: Option<i64>,
        parking: Parking,
    ) -> Result<Result<Dispatch, ToolResult>> {
        state.ensure_not_terminated()?;
        match wanted {
            SubagentCall::Create(new) => {
                let waits = new.blocking();
                if let Err(result) = may_wait(waits, receipt, parking, &new.agent.name) {
                    return Ok(Err(result));
                }
                if let Err(result) = self.room_for(state, sql, new)? {
                    return Ok(Err(result));
                }
                let mut new = new.clone();
                if let Err(result) = self.delegates().place_worker(state, sql, &mut new)? {
                    // An existing worker is not an error.
                    return Ok(if result.status == ToolStatus::Success {
                        Ok(Dispatch::now(result))
                    } else {
                        Err(result)
                    });
                }
                self.make_child(state, sql, &new, side, group, by, waits.then_some(receipt).flatten())
            }
            SubagentCall::Message { reference, words } => {
                self.message_child(state, sql, reference, words, receipt, parking)
            }
            SubagentCall::Send(message) => {
                self.delegates().send_to_worker(state, sql, message, receipt, parking)
            }
            SubagentCall::Wait(wait) => self.delegates().wait_for_workers(state, sql, wait, receipt, parking),
            SubagentCall::Close(id) => self.delegates().close_worker(state, sql, id),
        }
    }

    /// Sends a message to an existing child.
    fn message_child(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        reference: &str,
        words: &Content,
        receipt: Option<i64>,
        parking: Parking,
    ) -> Result<Result<Dispatch, ToolResult>> {
        let now = self.host.now_us();
        let inactive = || {
            refused(format!(
                "There is no active subagent \"{reference}\". Use the reference that subagent_create gave."
            ))
        };
        let addressed = |child: &Child| child.is_open() && !child.is_worker();
        let Some(mut child) = state.child(sql, reference)?.filter(addressed) else {
            return Ok(Err(inactive()));
        };
        if !child.facts.resumable || child.state == ChildState::Pending {
            return Ok(Err(inactive()));
        }
        if let Err(result) = may_wait(child.facts.blocking, receipt, parking, "subagent_message") {
            return Ok(Err(result));
        }
        if let Some(result) = self.check_content(sql, words)? {
            return Ok(Err(result));
        }
        if let Err(result) = self.write_to_child(state, sql, &mut child, words)? {
            return Ok(Err(result));
        }
        let waits = child.facts.blocking;
        if waits && let Some(receipt) = receipt {
            self.begin_wait(state, sql, &mut child, receipt, now)?;
        }
        state.update_child(sql, child.clone())?;
        Event::subagent("message", &child, state.active(), None).insert(sql, now)?;
        let result = (!waits).then(|| about(&child, written(&child)));
        Ok(Ok(Dispatch { result, ..Dispatch::default() }))
    }

    /// Writes the row of a child and the envelope that creates it. If values of variables are missing, stores
    /// a pending child.
    #[expect(clippy::too_many_arguments, reason = "one transition's facts")]
    fn make_child(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        new: &NewChild<'_>,
        side: Side,
        group: Option<String>,
        by: &str,
        receipt: Option<i64>,
    ) -> Result<Result<Dispatch, ToolResult>> {
        let now = self.host.now_us();
        let begun = new.begun.as_ref();
        let taken = match self.taken_by(state, sql, new.entry, begun) {
            Ok(taken) => taken,
            Err(error) => return not_created(&new.agent.name, error),
        };
        let mut child = new.child(thread_id::from_random(self.host.random()), side, group, now);
        child.facts.own = taken.given.values.iter().map(|value| value.name.clone()).collect();
        let mut birth = ChildSpec {
            owner: state.meta.owner.clone(),
            depth: state.meta.parent.as_ref().map_or(1, |parent| parent.depth + 1),
            held: self.hooks().holds_children(state),
            spawns: match &new.worker {
                Some(worker) => worker.can_spawn,
                None => state.meta.parent.as_ref().is_none_or(|parent| parent.spawns),
            },
            ..new.spec(&child)
        };
        let begins = self.descendants().begin_with(state, sql, new.agent, &child.reference, &taken.given);
        let (env, needs) = match begins {
            Ok(begins) => begins,
            Err(error) => return not_created(&new.agent.name, error),
        };
        birth.env = env;
        if needs.missing.is_empty() {
            let lent = self.budgets().lend(state, sql, &mut child, new.share(), birth.idle)?;
            let Ok(grant) = lent else { return Ok(lent.map(|_| Dispatch::default())) };
            birth.words.grant = grant;
        }
        self.take_away(state, sql, begun, &taken)?;
        if !needs.missing.is_empty() {
            let withheld = taken.given.withheld;
            let deferred = PendingChild { birth, withheld, most: new.most(), by: by.to_owned() };
            let child = self.defer_child(state, sql, child, deferred)?;
            Event::subagent("variables", &child, state.active(), None).insert(sql, now)?;
            let mut result = env_required(&child.agent, &needs, &state.meta.thread_id, &child.reference);
            if let (Some(alias), Some(data)) = (&child.facts.alias, &mut result.error_data) {
                data.insert("agentId".into(), alias.as_str().into());
            }
            return Ok(Ok(Dispatch::now(result)));
        }
        self.send_to_child(state, sql, &mut child, EnvelopeBody::Create(Box::new(birth)))?;
        if let Some(receipt) = receipt {
            self.begin_wait(state, sql, &mut child, receipt, now)?;
        }
        state.insert_child(sql, child.clone())?;
        Event::subagent("create", &child, state.active(), None).insert(sql, now)?;
        Ok(Ok(started_dispatch(&child, receipt)))
    }

    /// Makes the receipt wait for the answer to the last envelope.
    pub(super) fn begin_wait(
        &self,
        state: &State,
        sql: &dyn Sql,
        child: &mut Child,
        receipt: i64,
        now: i64,
    ) -> Result<()> {
        let expires_us = now + limits::WAIT_US;
        child.wait = Some(Wait { receipt, expires_us });
        child.due_us = Some(now + limits::CHECK_US);
        child.checks = 0;
        self.arm_at(state, sql, now + limits::CHECK_US, now)
    }
}

fn started(child: &Child) -> String {
    let after = match (child.facts.resumable, child.facts.communication) {
        (true, Communication::Implicit) => {
            "What it says arrives as a message; write to it with subagent_message and this reference."
        }
        (true, Communication::Explicit) => "Write to it with subagent_message and this reference.",
        (false, _) => "Its result arrives as a message.",
    };
    format!("Subagent \"{}\" was started with the reference {}. {after}", child.agent, child.reference)
}

fn written(child: &Child) -> String {
    format!("The message was sent to the subagent {}. Its answer arrives as a message.", listed(child))
}
