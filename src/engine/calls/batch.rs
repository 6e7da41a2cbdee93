//! The calls of a step. `call_outcome` is the entry for each of them: it returns a stored result, starts a batch, or
//! runs one call.
//!
//! A batch is neighbouring read-only calls of a reply, made in parallel (docs/tools.md). Their receipts are stored
//! together before any of them starts. Their messages are stored one by one, in the order of the calls, so
//! that the stored rows and the events are the same as for sequential calls.
//!
//! A result that arrives before its turn is kept on its receipt. After a crash in the middle, those results
//! are reused, and the other calls are made again with their keys, which such tools allow.

use std::future::poll_fn;
use std::task::Poll;

use futures::FutureExt;
use futures::future::{Either, LocalBoxFuture, select};
use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::definitions::retry::RetryMode;
use crate::definitions::tier::tier;
use crate::definitions::{Callable, Implementation, SideConfig, Tier, Tool, ToolEntry};
use crate::engine::calls::call::ToolRun;
use crate::engine::calls::call::{Call, CallOutcome, Executable, arguments};
use crate::engine::calls::tool_call::{CallWork, NEEDS_APPROVAL, fitting};
use crate::engine::calls::tool_events::ToolCallEvent;
use crate::engine::definitions::Definitions;
use crate::engine::features::Budgets;
use crate::engine::progress::RunningTool;
use crate::engine::thread::Thread;
use crate::engine::waits::gate::{WOULD_WAIT, waiting_call};
use crate::engine::waits::question::PriorApproval;
use crate::error::{Error, Result};
use crate::limits;
use crate::sdk::scope::{EntryMode, Scope};
use crate::store::messages::{Inbound, SharedRow};
use crate::store::receipts::{Kind, NewReceipt, Receipt, ReceiptState};
use crate::store::waits::WaitState;
use crate::store::{receipts, waits};

/// A call that may run in parallel with others.
struct Member<'a> {
    call: Call,
    tool: &'a Tool,
    entry: &'a ToolEntry,
    args: Value,
    /// Whether an earlier flow may have started this call.
    entered: EntryMode,
}

/// A call that was started.
struct StartedCall<'a> {
    seq: i64,
    tool: &'a Tool,
    args: Value,
    /// `None` once it has ended.
    running: Option<LocalBoxFuture<'a, Result<CallOutcome>>>,
    /// Its outcome, until its turn.
    ended: Option<CallOutcome>,
}

/// Calls that were started together, and whose messages are not stored yet.
#[derive(Default)]
pub(in crate::engine) struct Batch<'a>(Vec<StartedCall<'a>>);

impl<'a> Batch<'a> {
    fn place(&self, seq: i64) -> Option<usize> {
        self.0.iter().position(|begun| begun.seq == seq)
    }

    /// The next call to end: its position and its outcome. Never resolves when all have ended.
    async fn next(&mut self) -> (usize, Result<CallOutcome>) {
        poll_fn(|context| {
            for (place, begun) in self.0.iter_mut().enumerate() {
                let Some(running) = &mut begun.running else { continue };
                if let Poll::Ready(ended) = running.poll_unpin(context) {
                    begun.running = None;
                    return Poll::Ready((place, ended));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Keeps a result until its turn, also on the receipt, so that the call is not made again.
    fn keep(&mut self, thread: &Thread, (place, ended): (usize, Result<CallOutcome>)) -> Result<()> {
        let ended = ended?;
        let Some(begun) = self.0.get_mut(place) else { return Ok(()) };
        // A call that needs an approval, or that must run alone, has not ended yet.
        if ended.result.error_code.as_deref() != Some(NEEDS_APPROVAL)
            && !waits_alone(begun.tool, &ended.result)
        {
            let text = serde_json::to_string(&ended.result).map_err(Error::internal)?;
            if text.len() <= limits::KEPT_RESULT_BYTES {
                let (seq, now) = (begun.seq, thread.host.now_us());
                thread.transition(|_, sql| receipts::keep_early(sql, seq, &text, now))?;
            }
        }
        begun.ended = Some(ended);
        Ok(())
    }

    /// The outcome of the call whose turn it is.
    async fn take(&mut self, thread: &Thread, seq: i64) -> Result<(CallOutcome, &'a Tool, Value)> {
        loop {
            let gone = || Error::internal("a call of a batch is gone");
            let wanted = self.place(seq).ok_or_else(gone)?;
            if self.0.get(wanted).is_some_and(|begun| begun.ended.is_some()) {
                let StartedCall { tool, args, ended, .. } = self.0.remove(wanted);
                return Ok((ended.ok_or_else(gone)?, tool, args));
            }
            let (place, ended) = self.next().await;
            if place == wanted {
                let StartedCall { tool, args, .. } = self.0.remove(wanted);
                return Ok((ended?, tool, args));
            }
            self.keep(thread, (place, ended))?;
        }
    }

    /// Waits for all remaining calls and keeps their outcomes.
    async fn finish(&mut self, thread: &Thread) -> Result<()> {
        while self.0.iter().any(|begun| begun.running.is_some()) {
            let ended = self.next().await;
            self.keep(thread, ended)?;
        }
        Ok(())
    }

    /// Runs other work while the calls continue.
    pub(in crate::engine) async fn beside(
        &mut self,
        thread: &Thread,
        work: impl Future<Output = Result<SharedRow>>,
    ) -> Result<SharedRow> {
        if self.0.is_empty() {
            return work.await;
        }
        futures::pin_mut!(work);
        loop {
            let ended = {
                let next = self.next();
                futures::pin_mut!(next);
                match select(work.as_mut(), next).await {
                    Either::Left((done, _)) => return done,
                    Either::Right((ended, _)) => ended,
                }
            };
            self.keep(thread, ended)?;
        }
    }
}

impl Thread {
    /// The outcome of the call whose turn it is. Starts a batch here if this call and the following ones
    /// allow it.
    pub(in crate::engine) async fn call_outcome<'a>(
        &'a self,
        batch: &mut Batch<'a>,
        definitions: &'a Definitions<'a>,
        reply: &SharedRow,
        call: &Call,
    ) -> Result<CallOutcome> {
        if batch.place(call.seq).is_none() {
            let scope = self.step_scope(definitions)?;
            let earlier = self.hooks().earlier_receipt(scope.entered, call)?;
            if let Some((earlier, result)) =
                earlier.as_ref().and_then(|earlier| Some((earlier, earlier.result.clone()?)))
            {
                return self.stored_outcome(&scope, earlier, result);
            }
            if !self.begin_batch(batch, definitions, reply, call)? {
                let run = ToolRun { thread: self, scope: &scope, definitions, reply, call };
                return run.outcome(earlier).await;
            }
        }
        let scope = self.step_scope(definitions)?;
        let run = ToolRun { thread: self, scope: &scope, definitions, reply, call };
        self.activity().send_calls(&scope, reply, call)?;
        self.activity().announce_tool_start(&ToolCallEvent::of(call));
        let (mut done, tool, args) = batch.take(self, call.seq).await?;
        if waits_alone(tool, &done.result) {
            // The run may be parked, which aborts the calls in progress.
            batch.finish(self).await?;
            let earlier = self.read(|_, sql| receipts::find(sql, call.seq))?;
            return run.outcome(earlier).await;
        }
        self.activity().announce_tool_end(&ToolCallEvent::of(call), done.result.status);
        if done.result.error_code.as_deref() == Some(NEEDS_APPROVAL) {
            // The run may be parked, which aborts the calls in progress.
            batch.finish(self).await?;
            if let Some(refused) = self.waits().ask_after(run, tool, &args).await? {
                done.replace_result(refused);
            }
        }
        Ok(done)
    }

    /// The outcome of a call whose receipt has its result: the process crashed after the call ended, or a
    /// person or client supplied the result.
    fn stored_outcome(&self, scope: &Scope, earlier: &Receipt, result: ToolResult) -> Result<CallOutcome> {
        if earlier.kind == Kind::Subagent {
            return Ok(CallOutcome::ran(result));
        }
        let waited = earlier.state == ReceiptState::Waiting;
        let at_server = earlier.data.mcp.is_some();
        if waited && at_server {
            self.waits().close_waits_of_call(earlier.id, WaitState::Cancelled)?;
        }
        let done =
            if waited && !at_server { CallOutcome::answered(result) } else { CallOutcome::ran(result) };
        // Code may have ended before its inner calls.
        let open_inner_calls = (!waited).then(|| scope.origin.clone());
        Ok(CallOutcome { approval: self.waits().approval_of(earlier.id)?, open_inner_calls, ..done })
    }

    /// Starts this call and the read-only calls behind it, if there is more than one. One transaction for all
    /// receipts.
    fn begin_batch<'a>(
        &'a self,
        batch: &mut Batch<'a>,
        definitions: &'a Definitions<'a>,
        reply: &SharedRow,
        call: &Call,
    ) -> Result<bool> {
        let prompt = definitions.prompt;
        // A prompt that allows one call per reply makes them one by one, even if the model sends several.
        if !prompt.parallel_read_only || !prompt.parallel_tool_calls || reply.inbound == Inbound::QueuedTool {
            return Ok(false);
        }
        let scope = self.step_scope(definitions)?;
        let mut members = Vec::new();
        // Calls beyond a budget take their turns, where they are refused.
        let room = self.budgets().calls_left()?.unwrap_or(limits::BATCH).min(limits::BATCH);
        for index in (call.index..reply.calls.len()).take(room) {
            let Some(member) = self.member(definitions, &scope, reply, index)? else { break };
            members.push(member);
        }
        if members.len() < 2 {
            return Ok(false);
        }
        let now = self.host.now_us();
        self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            let first = members.iter().filter(|member| member.entered == EntryMode::First).count();
            Budgets::count_calls(state, first);
            for Member { call, tool, entered, .. } in &members {
                if *entered == EntryMode::Again {
                    receipts::restart(sql, call.seq)?;
                    continue;
                }
                let (id, name) = (&call.call.id, &call.call.name);
                let kind = Executable::Tool(tool).kind();
                NewReceipt::started(call.seq, reply.seq, id, name, kind, now).insert(sql)?;
            }
            Ok(())
        })?;
        batch.0 =
            members.into_iter().map(|member| self.begun(definitions, &scope, reply.seq, member)).collect();
        Ok(true)
    }

    /// A call that may run in parallel: its tool is read-only, its arguments are valid, it needs no approval,
    /// and it has no result yet.
    fn member<'a>(
        &'a self,
        definitions: &'a Definitions<'a>,
        scope: &Scope,
        reply: &SharedRow,
        index: usize,
    ) -> Result<Option<Member<'a>>> {
        let Some(call) = Call::of(reply, index) else { return Ok(None) };
        let name = &call.call.name;
        let (Some(entry), Some(callable)) = (definitions.prompt.tool(name), self.catalog.callable(name))
        else {
            return Ok(None);
        };
        let Callable::Tool(tool) = callable else { return Ok(None) };
        if tier(tool) != Tier::ReadOnly
            || of_session(definitions.side, name)
            || !self.delegates().permits(name)?
        {
            return Ok(None);
        }
        let Ok(args) = arguments(callable, &call.call) else { return Ok(None) };
        // A call whose retries park the run takes its turn alone.
        let policy = self.retries().tool_retry(definitions, tool)?;
        if policy.is_some_and(|policy| policy.max_attempts > 1 && policy.mode == RetryMode::Park) {
            return Ok(None);
        }
        let asked = waiting_call(tool, &call, &args);
        let (asks, earlier) = self.read(|state, sql| {
            let asks =
                self.waits().question(state, sql, definitions, tool, asked, PriorApproval::No)?.is_some();
            let earlier = match scope.entered {
                EntryMode::First => None,
                EntryMode::Again => receipts::find(sql, call.seq)?,
            };
            let asked = match &earlier {
                Some(earlier) if state.meta.wait_next > 1 => waits::of_receipt(sql, earlier.id)?.is_some(),
                _ => false,
            };
            Ok((asks || asked, earlier))
        })?;
        let again = earlier.is_some();
        let open = earlier.is_none_or(|earlier| {
            let runs = earlier.state == ReceiptState::Started && earlier.result.is_none();
            runs && Executable::Tool(tool).repeats(&earlier)
        });
        if asks || !open {
            return Ok(None);
        }
        let entered = if again { EntryMode::Again } else { EntryMode::First };
        Ok(Some(Member { call, tool, entry, args, entered }))
    }

    /// Starts a call.
    fn begun<'a>(
        &'a self,
        definitions: &'a Definitions<'a>,
        scope: &Scope,
        reply: i64,
        member: Member<'a>,
    ) -> StartedCall<'a> {
        let Member { call, tool, entry, args, entered } = member;
        let inside = scope.within(format!("r{reply}.{}", call.index), call.seq, entered);
        // An MCP server that wants to ask a person is called once more, alone.
        let of_mcp = matches!(tool.run, Implementation::Mcp(_));
        let inside = if of_mcp { inside.held_by_code() } else { inside };
        let (seq, given) = (call.seq, args.clone());
        let scope = scope.clone();
        let running = async move {
            let executable = Executable::Tool(tool);
            let name = &call.call.name;
            let asked = CallWork {
                definitions,
                entry,
                executable,
                call_id: &call.call.id,
                args: given,
                approved: false,
            };
            let work = Box::pin(self.work_of(&inside, asked));
            let result = self.activity().with_heartbeats(RunningTool { name, scope: &scope }, work).await??;
            let result = fitting(name, result);
            let open_inner_calls = inside.may_have_invoked().then(|| inside.origin.clone());
            Ok(CallOutcome { open_inner_calls, ..CallOutcome::ran(result) })
        };
        StartedCall { seq, tool, args, running: Some(Box::pin(running)), ended: None }
    }
}

/// Whether a call has to wait for a person, which it can only do alone.
fn waits_alone(tool: &Tool, result: &ToolResult) -> bool {
    matches!(tool.run, Implementation::Mcp(_)) && result.error_code.as_deref() == Some(WOULD_WAIT)
}

/// Whether a tool ends or reports on the session.
fn of_session(side: &SideConfig, name: &str) -> bool {
    let tools = [&side.session_stop, &side.session_fail, &side.session_status];
    tools.into_iter().flatten().any(|tool| tool.name == name)
}
