//! Runs one call of a reply: the checks, the questions to people, the receipt, the tool.

use futures::future::LocalBoxFuture;
use serde_json::Value;

use crate::definitions::{Callable, ToolEntry};
use crate::engine::calls::call::{CallOutcome, Executable, ToolRun, arguments, off, too_deep};
use crate::engine::calls::tool_call::{NEEDS_APPROVAL, PreparedCall};
use crate::engine::calls::tool_events::ToolCallEvent;
use crate::engine::cycle::stop::Cap;
use crate::engine::features::Delegates;
use crate::engine::progress::RunningTool;
use crate::engine::waits::gate::{Gate, PermittedCall};
use crate::error::Result;
use crate::limits;
use crate::sdk::scope::EntryMode;
use crate::store::messages::Inbound;
use crate::store::opening::Opening;
use crate::store::receipts;
use crate::store::receipts::{NewReceipt, Receipt, ReceiptState};

impl ToolRun<'_> {
    /// Runs the call, or refuses it. The caller stores the outcome. `earlier`: its receipt, if the call may
    /// have been made before.
    pub(in crate::engine) async fn outcome(&self, earlier: Option<Receipt>) -> Result<CallOutcome> {
        let asked = |earlier: &Receipt| {
            earlier.state == ReceiptState::Waiting && earlier.kind != receipts::Kind::Subagent
        };
        let asked = earlier.as_ref().is_some_and(asked);
        let name = &self.call.call.name;
        let is_agent = |callable| matches!(callable, Callable::Agent(..) | Callable::Subagent(..));
        if asked && self.catalog.callable(name).is_some_and(is_agent) {
            let text = format!("\"{name}\" is not the tool any more that was asked about.");
            return self.waits().void_question(self.call.seq, CallOutcome::refused(text));
        }
        let outcome = self.checked(earlier).await?;
        if asked { self.waits().void_question(self.call.seq, outcome) } else { Ok(outcome) }
    }

    /// Checks whether the call may be made, by the current definitions, and makes it.
    async fn checked(&self, earlier: Option<Receipt>) -> Result<CallOutcome> {
        let ToolRun { scope, definitions, reply, call, .. } = *self;
        let name = &call.call.name;
        // Calls made by code need not be listed.
        let unlisted = (reply.inbound == Inbound::QueuedTool).then(|| ToolEntry::unlisted(name));
        let listed = definitions.prompt.tool(name).or(unlisted.as_ref());
        let known = listed.and_then(|entry| Some((entry, self.catalog.callable(name)?)));
        if known.is_some() && !self.delegates().permits(name)? {
            return Ok(CallOutcome::refused(Delegates::not_permitted(name)));
        }
        if let Some(wanted) = self.subagents().wanted(definitions, listed, &call.call)? {
            return self.subagents().call_child(*self, wanted).await;
        }
        let executable = known.and_then(|(_, callable)| Executable::of(callable));
        if let Some(earlier) = &earlier
            && earlier.state != ReceiptState::Waiting
            && !executable.is_some_and(|executable| executable.repeats(earlier))
        {
            let unknown = CallOutcome::unknown(name, &scope.origin);
            return Ok(CallOutcome { approval: self.waits().approval_of(earlier.id)?, ..unknown });
        }
        if earlier.is_none() && self.is_off(definitions, name) && known.is_some() {
            return Ok(CallOutcome::refused(off(definitions, name)));
        }
        let Some((entry, callable)) = known else {
            self.diagnosis().note_unlisted(definitions, name)?;
            return Ok(CallOutcome::refused(self.subagents().unknown_tool(definitions, name)?));
        };
        if earlier.is_none() && unlisted.is_some() && self.at_hard_cap()? {
            return Ok(CallOutcome::refused(format!("Not run: {}", Cap::Total.message())));
        }
        let args = match arguments(callable, &call.call) {
            Ok(args) => args,
            // The arguments of a started call were valid then; the definition has changed.
            Err(_) if earlier.is_some_and(|earlier| earlier.runs > 0) => {
                return Ok(CallOutcome::unknown(name, &scope.origin));
            }
            Err(text) => return Ok(CallOutcome::refused(text)),
        };
        match executable {
            None if scope.is_detached() => {
                let text = format!("\"{name}\" cannot take over here: no run is under way.");
                Ok(CallOutcome::refused(text))
            }
            None => Ok(CallOutcome::handed(name, Opening::of(entry, &args))),
            Some(_) if scope.depth >= limits::CALL_DEPTH => Ok(CallOutcome::refused(too_deep(name))),
            Some(executable) => self.approved(entry, executable, args, earlier).await,
        }
    }

    /// Runs a tool or a prompt after its approval, if one is needed before or during the call.
    async fn approved(
        &self,
        entry: &ToolEntry,
        executable: Executable<'_>,
        args: Value,
        earlier: Option<Receipt>,
    ) -> Result<CallOutcome> {
        let ToolRun { scope, definitions, reply, call, .. } = *self;
        let PermittedCall { args, approval } =
            match self.waits().gate(*self, executable, args, earlier.as_ref()).await? {
                Gate::Passes(passed) => *passed,
                Gate::Ends(outcome) => return Ok(*outcome),
            };
        let prepared = PreparedCall {
            scope,
            definitions,
            entry,
            executable,
            // A second call needs another key: a server that deduplicates by key must not return the first
            // result.
            key: match &approval {
                Some(approval) if approval.again => format!("r{}.{}.approved", reply.seq, call.index),
                _ => format!("r{}.{}", reply.seq, call.index),
            },
            call_id: &call.call.id,
            name: &call.call.name,
            args: args.clone(),
            session: (scope.depth == 0).then_some(&call.call),
            approved: approval.is_some(),
            told: Some(ToolCallEvent::of(call)),
        };
        self.activity().send_calls(scope, reply, call)?;
        let mut done = self.started(prepared, earlier).await?;
        if let (Executable::Tool(tool), None) = (executable, &approval)
            && done.result.error_code.as_deref() == Some(NEEDS_APPROVAL)
            && let Some(refused) = self.waits().ask_after(*self, tool, &args).await?
        {
            done.replace_result(refused);
        }
        if let Some(approval) = approval {
            done.result = approval.annotate(done.result);
            done.approval = Some(approval.shown);
        }
        Ok(done)
    }

    /// Stores the start of a tool or a prompt, and runs it.
    async fn started(&self, call: PreparedCall<'_>, earlier: Option<Receipt>) -> Result<CallOutcome> {
        let scope = call.scope;
        let (now, id) = (self.host.now_us(), self.call.seq);
        let mut new =
            NewReceipt::started(id, self.reply.seq, call.call_id, call.name, call.executable.kind(), now);
        new.data.work = scope.detached_work();
        // A call that has only waited starts now.
        let begins = earlier.as_ref().is_some_and(|earlier| earlier.runs == 0);
        if (begins || earlier.is_none())
            && let Some(result) = self.budgets().count_call(scope.is_detached())?
        {
            return Ok(match begins {
                true => CallOutcome::answered(result),
                false => CallOutcome::refused_with(result),
            });
        }
        let (receipt, entered) = self.open_receipt(scope, earlier.map(|earlier| earlier.id), |_| new)?;
        let entered = if begins { EntryMode::First } else { entered };
        let (name, is_tool) = (call.name, matches!(call.executable, Executable::Tool(_)));
        let work: LocalBoxFuture<'_, _> = Box::pin(self.perform(call, receipt, entered));
        // A prompt reports progress by its own calls.
        let done = match is_tool {
            true => self.activity().with_heartbeats(RunningTool { name, scope }, work).await?,
            false => work.await,
        };
        let (result, has_invoked) = done?;
        let open_inner_calls = has_invoked.then(|| scope.origin.clone());
        Ok(CallOutcome { open_inner_calls, ..CallOutcome::ran(result) })
    }

    /// Whether the run has reached the runtime's limit on steps; a queued tool counts as one.
    fn at_hard_cap(&self) -> Result<bool> {
        self.read(|state, _| Ok(state.active().is_some_and(|run| run.steps >= limits::RUN_STEPS)))
    }
}
