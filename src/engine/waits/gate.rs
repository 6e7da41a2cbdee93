//! Holds the calls of a reply that have to wait before they run. All questions about the calls of a reply are
//! asked together, in the transaction that parks the run. Each call continues in its turn, when it is
//! decided.

use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::definitions::tier::tier;
use crate::definitions::{Callable, Tool};
use crate::engine::calls::call::ToolRun;
use crate::engine::calls::call::{Call, CallOutcome, Executable, StoredReceipt, arguments};
use crate::engine::definitions::Definitions;
use crate::engine::features::Waits;
use crate::engine::waits::NewWait;
use crate::engine::waits::digest::digest;
use crate::engine::waits::question::{PriorApproval, Question};
use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::store::receipts::{Kind, NewReceipt, Receipt, ReceiptState};
use crate::store::runs::Parking;
use crate::store::state::State;
use crate::store::waits::{Decision, Wait, WaitData, WaitKind, WaitState, WaitingCall};
use crate::store::{receipts, waits};

/// The outcome of the questions about a call.
pub(crate) enum Gate {
    /// The call may run.
    Passes(Box<PermittedCall>),
    /// The call does not run; this is its result.
    Ends(Box<CallOutcome>),
}

/// A call that may run.
pub(crate) struct PermittedCall {
    /// Its arguments, as approved.
    pub(crate) args: Value,
    /// Its approval, if it had one.
    pub(crate) approval: Option<Approval>,
}

/// An approval that a call had.
#[derive(Clone)]
pub(crate) struct Approval {
    /// Its form in the metadata of the result.
    pub(crate) shown: Value,
    /// The changed arguments, if any.
    changed: Option<Value>,
    /// Whether the call had run before and requested this approval itself.
    pub(crate) again: bool,
}

/// The outcome for a call whose decision is void.
enum Reapproval {
    Asked(Box<Wait>),
    /// It may not be asked again; this is the result for the model.
    Refused(Box<ToolResult>),
    /// The tool's current definition needs no approval.
    Passes,
}

/// Where a call stands whose tool may need a decision.
enum Standing {
    /// It has not begun, and nothing was asked about it.
    New,
    /// It has begun, without a question or with all of them answered.
    Begun,
    /// It waits for a decision.
    Waits,
    /// It does not run: its result was supplied by a person, by a client, or by its server.
    Ended(Box<CallOutcome>),
    /// It was approved. `begins`: it has not run since.
    Approved { wait: Box<Wait>, decision: Box<Decision>, begins: bool },
}

impl Waits<'_> {
    /// Lets a call pass, ends it, or parks the run until there is a decision. When it parks it never returns.
    pub(crate) async fn gate(
        &self,
        run: ToolRun<'_>,
        executable: Executable<'_>,
        args: Value,
        earlier: Option<&Receipt>,
    ) -> Result<Gate> {
        let Executable::Tool(tool) = executable else { return Ok(passes(args)) };
        match self.standing(earlier)? {
            Standing::New => self.first_question(run, tool, args).await,
            Standing::Begun => Ok(passes(args)),
            Standing::Waits => self.park_behind().await,
            Standing::Ended(outcome) => Ok(Gate::Ends(outcome)),
            // A call that was running before a crash was checked when it began.
            Standing::Approved { wait, begins: true, .. }
                if wait.digest.as_deref() != Some(&*digest(tool, &args)?) =>
            {
                self.ask_again(run, tool, &args, wait.id).await
            }
            Standing::Approved { wait, decision, begins } => {
                let changed = decision.args;
                let thread = self.read(|state, _| Ok(state.meta.stem.clone()))?;
                let passed = PermittedCall {
                    args: with_changes(args, changed.as_ref()),
                    approval: Some(Approval {
                        shown: shown(&wait, &thread),
                        changed,
                        again: wait.asked.again,
                    }),
                };
                if begins && wait.asked.call.is_some() && !wait.asked.again {
                    return self.next_question(run, tool, passed).await;
                }
                Ok(Gate::Passes(Box::new(passed)))
            }
        }
    }

    /// Where a call stands, by its receipt and its wait.
    fn standing(&self, earlier: Option<&Receipt>) -> Result<Standing> {
        let Some(earlier) = earlier else { return Ok(Standing::New) };
        let at_server = earlier.data.mcp.is_some();
        if at_server && let Some(standing) = self.standing_at_server(earlier)? {
            return Ok(standing);
        }
        let wait = self.read(|state, sql| match state.meta.wait_next {
            1 => Ok(None),
            _ => waits::of_receipt(sql, earlier.id),
        })?;
        let Some(wait) = wait else { return Ok(Standing::Begun) };
        // For a call that began at its server, earlier questions are decided.
        let begins = earlier.state == ReceiptState::Waiting && !at_server;
        match earlier.result.clone().filter(|_| begins) {
            Some(result) => {
                let approval = self.read(|state, _| Ok(approval_by(&wait, &state.meta.stem)))?;
                return Ok(Standing::Ended(Box::new(CallOutcome {
                    approval,
                    ..CallOutcome::answered(result)
                })));
            }
            None if wait.state == WaitState::Open => return Ok(Standing::Waits),
            None => {}
        }
        let approved = wait.decision.clone().filter(|_| wait.kind == WaitKind::Approval);
        Ok(match approved {
            Some(decision) => {
                Standing::Approved { wait: Box::new(wait), decision: Box::new(decision), begins }
            }
            None if begins => Standing::Waits,
            None => Standing::Begun,
        })
    }

    /// Where a call stands that has begun at its MCP server and waits; `None` if it does not wait there.
    fn standing_at_server(&self, earlier: &Receipt) -> Result<Option<Standing>> {
        if earlier.state != ReceiptState::Waiting {
            return Ok(None);
        }
        if let Some(result) = earlier.result.clone() {
            let approval = self.approval_of(earlier.id)?;
            self.close_waits_of_call(earlier.id, WaitState::Cancelled)?;
            return Ok(Some(Standing::Ended(Box::new(CallOutcome { approval, ..CallOutcome::ran(result) }))));
        }
        // Waits for a task are not decided by people; the server is polled.
        let of_call = |wait: &Wait| wait.receipt == Some(earlier.id) && wait.kind != WaitKind::Task;
        let waits = self.read(|_, sql| Ok(waits::open(sql)?.iter().any(of_call)))?;
        Ok(waits.then_some(Standing::Waits))
    }

    /// Closes the open waits of a call that has ended.
    pub(crate) fn close_waits_of_call(&self, receipt: i64, to: WaitState) -> Result<()> {
        let closed = self.transition(|state, sql| {
            let mut open = waits::open(sql)?;
            open.retain(|wait| wait.receipt == Some(receipt));
            for wait in &mut open {
                self.close_wait(state, sql, wait, to, None)?;
            }
            Ok(open)
        })?;
        self.announce_waits(&closed)
    }

    /// Parks the run again: all earlier calls have run, and this call's wait is still open.
    async fn park_behind<T>(&self) -> Result<T> {
        self.transition(|state, sql| match state.active_mut()?.phase.is_parked() {
            true => Ok(()),
            false => self.park_run(state, sql),
        })?;
        self.end_parked_flow(&[]).await
    }

    /// Opens the first wait of a call, together with those of later calls in the reply.
    async fn first_question(&self, run: ToolRun<'_>, tool: &Tool, args: Value) -> Result<Gate> {
        let call = run.call;
        let about = |state: &State, sql: &dyn Sql, tool: &Tool, call: &Call, args: &Value| {
            self.question(
                state,
                sql,
                run.definitions,
                tool,
                waiting_call(tool, call, args),
                PriorApproval::No,
            )
        };
        let first = self.read(|state, sql| about(state, sql, tool, call, &args))?;
        match first {
            None => return Ok(passes(args)),
            Some(Question::Forbidden) => return Ok(ends(forbidden(tool))),
            Some(_) if run.scope.parking == Parking::Impossible => return Ok(ends(would_wait(&tool.name))),
            Some(Question::TooLarge) => return Ok(ends(too_large(tool))),
            Some(Question::Asked { .. }) => {}
        }
        let behind = (call.index + 1..run.reply.calls.len()).filter_map(|index| self.tool_at(run, index));
        let behind: Vec<_> = behind.collect();
        let opened = self.transition(|state, sql| {
            let mut opened = Vec::new();
            let own = std::iter::once((call.clone(), tool, args.clone()));
            for (call, tool, args) in own.chain(behind) {
                if let Some(Question::Asked { kind, asked, lasts_us }) =
                    about(state, sql, tool, &call, &args)?
                {
                    self.waiting_receipt(sql, run, tool, &call)?;
                    let new = wait_of(run, &call, tool, &args, (kind, *asked, lasts_us))?;
                    opened.push(self.open_wait(state, sql, new)?);
                }
            }
            self.park_run(state, sql)?;
            Ok(opened)
        })?;
        self.end_parked_flow(&opened).await
    }

    /// Handles an approved call that is itself a question, or runs at the client.
    async fn next_question(&self, run: ToolRun<'_>, tool: &Tool, passed: PermittedCall) -> Result<Gate> {
        let about = waiting_call(tool, run.call, &passed.args);
        let next = self
            .read(|state, sql| self.question(state, sql, run.definitions, tool, about, PriorApproval::Yes))?;
        match next {
            Some(Question::Asked { kind, asked, lasts_us }) => {
                let new = wait_of(run, run.call, tool, &passed.args, (kind, *asked, lasts_us))?;
                let opened = self.transition(|state, sql| {
                    let opened = self.open_wait(state, sql, new)?;
                    self.park_run(state, sql)?;
                    Ok(opened)
                })?;
                self.end_parked_flow(&[opened]).await
            }
            Some(Question::TooLarge) => Ok(ends(too_large(tool))),
            Some(Question::Forbidden) | None => Ok(Gate::Passes(Box::new(passed))),
        }
    }

    /// Voids a decision about a call that has changed since, and asks again.
    async fn ask_again(&self, run: ToolRun<'_>, tool: &Tool, args: &Value, void: i64) -> Result<Gate> {
        let about = waiting_call(tool, run.call, args);
        let reapproval = self.transition(|state, sql| {
            waits::void(sql, void)?;
            let question = self.question(state, sql, run.definitions, tool, about, PriorApproval::No)?;
            let (kind, asked, lasts_us) = match question {
                Some(Question::Asked { kind, asked, lasts_us }) => (kind, asked, lasts_us),
                Some(Question::Forbidden) => return Ok(Reapproval::Refused(Box::new(forbidden(tool)))),
                Some(Question::TooLarge) => return Ok(Reapproval::Refused(Box::new(too_large(tool)))),
                None => return Ok(Reapproval::Passes),
            };
            let new = wait_of(run, run.call, tool, args, (kind, *asked, lasts_us))?;
            let opened = self.open_wait(state, sql, new)?;
            self.park_run(state, sql)?;
            Ok(Reapproval::Asked(Box::new(opened)))
        })?;
        match reapproval {
            Reapproval::Asked(opened) => self.end_parked_flow(&[*opened]).await,
            Reapproval::Refused(result) => Ok(ends(*result)),
            Reapproval::Passes => Ok(passes(args.clone())),
        }
    }

    /// Parks a call that has run and needs an approval to run again (`on_failure`). Returns only if it may
    /// not ask: with an error result where asking is forbidden.
    pub(crate) async fn ask_after(
        &self,
        run: ToolRun<'_>,
        tool: &Tool,
        args: &Value,
    ) -> Result<Option<ToolResult>> {
        let question =
            self.question_after_failure(run.definitions, tool, waiting_call(tool, run.call, args))?;
        let (kind, asked, lasts_us) = match question {
            Some(Question::Forbidden) => return Ok(Some(forbidden(tool))),
            Some(_) if run.scope.parking == Parking::Impossible => return Ok(None),
            Some(Question::Asked { kind, asked, lasts_us }) => (kind, asked, lasts_us),
            Some(Question::TooLarge) => return Ok(Some(too_large(tool))),
            None => return Ok(None),
        };
        let new = wait_of(run, run.call, tool, args, (kind, *asked, lasts_us))?;
        let opened = self.transition(|state, sql| {
            receipts::wait_again(sql, run.call.seq)?;
            let opened = self.open_wait(state, sql, new)?;
            self.park_run(state, sql)?;
            Ok(opened)
        })?;
        self.end_parked_flow(&[opened]).await
    }

    /// The outcome of a call with an earlier question. If a deployment made the call impossible, its open
    /// wait becomes void.
    pub(crate) fn void_question(&self, receipt: i64, outcome: CallOutcome) -> Result<CallOutcome> {
        if !matches!(outcome.stored_receipt, StoredReceipt::None { kind: Kind::Refused, .. }) {
            return Ok(outcome);
        }
        let closed = self.transition(|state, sql| {
            let open = |wait: &Wait| wait.state == WaitState::Open;
            let found = waits::of_receipt(sql, receipt)?.filter(open);
            let Some(mut wait) = found else { return Ok(None) };
            self.close_wait(state, sql, &mut wait, WaitState::Void, None)?;
            Ok(Some(wait))
        })?;
        self.announce_waits(closed.as_slice())?;
        // The receipt exists already.
        Ok(CallOutcome { stored_receipt: StoredReceipt::Waited, ..outcome })
    }

    /// The metadata of a call's result about its approval, if it had one.
    pub(crate) fn approval_of(&self, receipt: i64) -> Result<Option<Value>> {
        let (wait, thread) = self.read(|state, sql| {
            let thread = state.meta.stem.clone();
            match state.meta.wait_next {
                1 => Ok((None, thread)),
                _ => Ok((waits::of_receipt(sql, receipt)?, thread)),
            }
        })?;
        Ok(wait.and_then(|wait| approval_by(&wait, &thread)))
    }

    /// The error result if a call that code awaits would have to wait: code cannot wait that long (spec
    /// §6.4).
    pub(crate) fn refusal_to_wait(
        &self,
        definitions: &Definitions<'_>,
        executable: Executable<'_>,
        args: &Value,
    ) -> Result<Option<ToolResult>> {
        let Executable::Tool(tool) = executable else { return Ok(None) };
        let call =
            WaitingCall { tool: tool.name.clone(), tier: tier(tool), args: args.clone(), id: String::new() };
        let question =
            self.read(|state, sql| self.question(state, sql, definitions, tool, call, PriorApproval::No))?;
        Ok(question.map(|question| match question {
            Question::Forbidden => forbidden(tool),
            Question::Asked { .. } | Question::TooLarge => would_wait(&tool.name),
        }))
    }

    /// A call of the reply, if it is for a tool and valid.
    fn tool_at<'a>(&'a self, run: ToolRun<'_>, index: usize) -> Option<(Call, &'a Tool, Value)> {
        let call = Call::of(run.reply, index)?;
        let name = &call.call.name;
        run.definitions.prompt.tool(name)?;
        let callable = self.catalog.callable(name)?;
        let Callable::Tool(tool) = callable else { return None };
        let args = arguments(callable, &call.call).ok()?;
        Some((call, tool, args))
    }

    fn waiting_receipt(&self, sql: &dyn Sql, run: ToolRun<'_>, tool: &Tool, call: &Call) -> Result<()> {
        let now = self.host.now_us();
        let kind: Kind = Executable::Tool(tool).kind();
        let new = NewReceipt::started(call.seq, run.reply.seq, &call.call.id, &call.call.name, kind, now);
        NewReceipt { state: ReceiptState::Waiting, runs: 0, ..new }.insert(sql)
    }
}

fn passes(args: Value) -> Gate {
    Gate::Passes(Box::new(PermittedCall { args, approval: None }))
}

fn ends(result: ToolResult) -> Gate {
    Gate::Ends(Box::new(CallOutcome::refused_with(result)))
}

/// The wait for the answer to a question about a call.
fn wait_of(
    run: ToolRun<'_>,
    call: &Call,
    tool: &Tool,
    args: &Value,
    (kind, asked, lasts_us): (WaitKind, WaitData, i64),
) -> Result<NewWait> {
    let digest = digest(tool, args)?;
    Ok(NewWait { kind, receipt: call.seq, batch: run.reply.seq, digest, asked, lasts_us })
}

pub(crate) fn waiting_call(tool: &Tool, call: &Call, args: &Value) -> WaitingCall {
    WaitingCall { id: call.call.id.clone(), tool: tool.name.clone(), tier: tier(tool), args: args.clone() }
}

/// The metadata of a wait, if it is a decided approval.
fn approval_by(wait: &Wait, thread: &str) -> Option<Value> {
    (wait.kind == WaitKind::Approval && wait.decision.is_some()).then(|| shown(wait, thread))
}

/// The metadata of an approval.
fn shown(wait: &Wait, thread: &str) -> Value {
    let decision = wait.decision.as_ref();
    json!({
        "id": wait.public_id(thread), "decision": decision.map(|decision| &decision.decision),
        "reason": decision.and_then(|decision| decision.reason.as_ref()),
        "by": decision.map(|decision| decision.actor.as_ref().unwrap_or(&decision.scope)),
        "at": wait.closed_us, "edited": decision.is_some_and(|decision| decision.args.is_some()),
    })
}

fn with_changes(mut args: Value, changed: Option<&Value>) -> Value {
    if let (Some(fields), Some(Value::Object(changed))) = (args.as_object_mut(), changed) {
        fields.extend(changed.clone());
    }
    args
}

impl Approval {
    /// Adds a note to the result of a call that ran with changed arguments.
    pub(crate) fn annotate(&self, result: ToolResult) -> ToolResult {
        let Some(changed) = &self.changed else { return result };
        let note = format!("[Approved with changes: {changed}]");
        if !result.content.is_empty() {
            let mut content = vec![json!({ "type": "text", "text": note })];
            content.extend(result.content);
            return ToolResult { content, ..result };
        }
        match &result.error {
            Some(error) => ToolResult { error: Some(format!("{note}\n{error}")), ..result },
            None => ToolResult { result: Some(format!("{note}\n{}", result.text()).into()), ..result },
        }
    }
}

/// The error code of a call that would have to wait.
pub(crate) const WOULD_WAIT: &str = "would_wait";

/// The error result of a call that would have to wait where it cannot.
pub(crate) fn would_wait(name: &str) -> ToolResult {
    let text =
        format!("\"{name}\" has to be decided on by a person, and cannot wait here; queue it instead.");
    ToolResult { error_code: Some("would_wait".into()), ..ToolResult::error(text) }
}

fn forbidden(tool: &Tool) -> ToolResult {
    let text = format!("\"{}\" needs an approval, and nobody is asked here.", tool.name);
    ToolResult { error_code: Some("approval_required".into()), ..ToolResult::error(text) }
}

pub(crate) fn too_large(tool: &Tool) -> ToolResult {
    let text = format!(
        "A call of \"{}\" has to be decided on or carried out elsewhere first, and what would be shown for it is over {} bytes. \
         Nobody was asked. Send less.",
        tool.name,
        limits::WAIT_DATA_BYTES
    );
    ToolResult { error_code: Some("too_large".into()), ..ToolResult::error(text) }
}
