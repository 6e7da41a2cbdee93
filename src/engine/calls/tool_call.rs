//! Tool calls and their receipts. A receipt is stored before a tool starts. A call with an unknown outcome
//! after a crash is thus never run again, unless its tool is declared safe to repeat (docs/durability.md).

use serde_json::{Map, Value};

use crate::definitions::message::{ToolCall, ToolResult};
use crate::definitions::retry::{EffectivePolicy, RetryOn};
use crate::definitions::tier::tier;
use crate::definitions::{Implementation, Tier, Tool, ToolEntry};
use crate::engine::calls::call::{Call, Executable};
use crate::engine::calls::tool_events::ToolCallEvent;
use crate::engine::calls::tool_queue;
use crate::engine::definitions::Definitions;
use crate::engine::mcp::ServerCall;
use crate::engine::thread::Thread;
use crate::engine::waits::input::InputCall;
use crate::engine::waits::retry::{LaterAttempt, parks};
use crate::error::{Error, Result};
use crate::models::backoff_us;
use crate::sdk::scope::{EntryMode, Scope};
use crate::store::messages::{Inbound, SharedRow};
use crate::store::receipts;
use crate::store::receipts::NewReceipt;
use crate::store::state::State;
use crate::store::waits::Wait;
use crate::work::native::NativeCall;
use crate::work::{ExecutionPlan, Failure};
use crate::{limits, work};

/// A call that is ready to run. From here on all callers take the same path ([`Thread::perform`]).
pub(in crate::engine) struct PreparedCall<'a> {
    /// The scope in which it is made.
    pub(in crate::engine) scope: &'a Scope,
    pub(in crate::engine) definitions: &'a Definitions<'a>,
    pub(in crate::engine) entry: &'a ToolEntry,
    pub(in crate::engine) executable: Executable<'a>,
    /// Its key in the thread.
    pub(in crate::engine) key: String,
    pub(in crate::engine) call_id: &'a str,
    pub(in crate::engine) name: &'a str,
    pub(in crate::engine) args: Value,
    /// The model's own call, which may be of a session tool. Inner calls never act on the session.
    pub(in crate::engine) session: Option<&'a ToolCall>,
    /// Whether a person has approved it.
    pub(in crate::engine) approved: bool,
    /// The event data for a call of a reply.
    pub(in crate::engine) told: Option<ToolCallEvent<'a>>,
}

/// The `error_code` with which a tool asks for an approval (docs/approvals.md).
pub(in crate::engine) const NEEDS_APPROVAL: &str = "needs_approval";

/// The next action after a failed run of a call.
enum NextRun {
    /// The call has failed.
    None,
    /// Another run, after this pause in microseconds.
    After(i64),
    /// Another run, for which the run of the thread is parked.
    Parked(Box<Wait>),
}

/// The work of a call.
pub(in crate::engine) struct CallWork<'a> {
    pub(in crate::engine) definitions: &'a Definitions<'a>,
    pub(in crate::engine) entry: &'a ToolEntry,
    pub(in crate::engine) executable: Executable<'a>,
    pub(in crate::engine) call_id: &'a str,
    pub(in crate::engine) args: Value,
    pub(in crate::engine) approved: bool,
}

impl Thread {
    /// The first call without a stored result, of the reply or else of a queued tool, with the message that
    /// holds it.
    pub(in crate::engine) fn next_call(&self, reply: &SharedRow) -> Result<Option<(SharedRow, Call)>> {
        self.read(|state, sql| {
            let index = match reply.inbound {
                Inbound::QueuedTool => reply.calls.len(),
                _ => usize::try_from(state.filled - 1).unwrap_or(0),
            };
            if index < reply.calls.len() {
                return Ok(Call::of(reply, index).map(|call| (reply.clone(), call)));
            }
            let Some(seq) = state.next_tool() else { return Ok(None) };
            let tool =
                tool_queue::row(state, sql, seq)?.ok_or_else(|| Error::internal("a queued tool is gone"))?;
            Ok(Call::of(&tool, 0).map(|call| (tool, call)))
        })
    }

    /// Stores the start of a call beforehand: in a new receipt, or again in its existing one. Returns the
    /// receipt's id.
    pub(in crate::engine) fn open_receipt<'a>(
        &self,
        scope: &Scope,
        earlier: Option<i64>,
        new: impl FnOnce(&mut State) -> NewReceipt<'a>,
    ) -> Result<(i64, EntryMode)> {
        self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            if let Some(id) = earlier {
                state.starts_detached(sql, scope, id)?;
                receipts::restart(sql, id)?;
                return Ok((id, EntryMode::Again));
            }
            let receipt = new(state);
            state.starts_detached(sql, scope, receipt.id)?;
            receipt.insert(sql)?;
            Ok((receipt.id, EntryMode::First))
        })
    }

    /// Makes a call whose start is stored. Returns its result, and whether inner calls may be open.
    pub(in crate::engine) async fn perform(
        &self,
        call: PreparedCall<'_>,
        receipt: i64,
        entered: EntryMode,
    ) -> Result<(ToolResult, bool)> {
        let PreparedCall {
            scope,
            definitions,
            entry,
            executable,
            key,
            call_id,
            name,
            args,
            session,
            approved,
            told,
        } = call;
        let told = told.unwrap_or(ToolCallEvent { name, id: None, arguments: None, seq: None });
        let inside = scope.within(key, receipt, entered);
        self.activity().announce_tool_start(&told);
        let asked = CallWork { definitions, entry, executable, call_id, args, approved };
        let mut result = self.work_of(&inside, asked).await?;
        if !scope.is_detached() && self.read(|state, _| Ok(state.active().is_none()))? {
            // The call has terminated its own thread. That aborted this flow, which ends at its next await.
            std::future::pending::<()>().await;
        }
        if let Some(call) = session {
            result = self.checked_for_session(definitions, call, result)?;
            self.announce_status(definitions, call, &result)?;
        }
        let result = fitting(name, result);
        self.activity().announce_tool_end(&told, result.status);
        Ok((result, inside.may_have_invoked()))
    }

    /// Does the work of a call, and removes secrets from its result. `inside`: the scope within that call.
    pub(in crate::engine) async fn work_of(&self, inside: &Scope, asked: CallWork<'_>) -> Result<ToolResult> {
        let CallWork { definitions, entry, executable, .. } = asked;
        match executable {
            Executable::Tool(tool) if crate::engine::skills::loads(tool) => {
                Ok(self.skills().load_skill(definitions, &asked.args))
            }
            Executable::Tool(tool) if crate::engine::memory::tools::is_of_memory(tool) => {
                let result = self.memories().memory_tool(definitions, inside, tool, &asked.args).await;
                self.scrubbing().clean_result(&tool.name, Some(tool), self.variables().redact_result(result))
            }
            Executable::Tool(tool) => {
                let result = self.tool_work(inside, asked, tool).await?;
                // Drop the fields that only the runtime may set.
                let result = ToolResult { stored: Vec::new(), ..result };
                self.scrubbing().clean_result(&tool.name, Some(tool), self.variables().redact_result(result))
            }
            Executable::Prompt(prompt) => {
                // A prompt's calls may be prompts.
                let result =
                    Box::pin(self.subprompts().subprompt(inside, definitions, entry, prompt, &asked.args))
                        .await?;
                self.scrubbing().clean_result(&prompt.name, None, result)
            }
        }
    }

    async fn tool_work(
        &self,
        inside: &Scope,
        CallWork { definitions, entry, call_id, args, approved, .. }: CallWork<'_>,
        tool: &Tool,
    ) -> Result<ToolResult> {
        let (thread_id, stem) =
            self.read(|state, _| Ok((state.meta.thread_id.clone(), state.meta.stem.clone())))?;
        let env = |name: &str| self.variables().tool_env(definitions, entry, name);
        let call_state = self.waits().input_state_of_call(inside, tool)?;
        let answers = match &call_state {
            Some(call_state) => self.waits().input_answers(call_state)?,
            None => Map::new(),
        };
        if let Some(text) = self.variables().missing_variable(definitions, entry, tool).await? {
            return Ok(ToolResult::error(text));
        }
        let declared = tool.variables.iter().filter_map(|variable| {
            env(&variable.name).map(|value| (variable.name.clone(), Value::String(value)))
        });
        // Model-written code calls the tools that the prompt offers.
        let owner = if crate::definitions::execute_code::runs(&tool.run) {
            &definitions.prompt.name
        } else {
            &tool.name
        };
        let at = inside.clone().in_package(self.catalog.packages.of(owner)).held_by_code();
        let at = if tier(tool) == Tier::ReadOnly { at.reading() } else { at };
        let call = NativeCall {
            name: tool.name.clone(),
            args,
            options: entry.options.clone(),
            idempotency_key: format!("{stem}/{}", inside.key),
            thread_id,
            agent_id: definitions.agent.name.clone(),
            call_id: call_id.to_owned(),
            approved,
            answers,
            now_us: self.host.now_us(),
            random: self.host.random(),
            env: declared.collect::<Map<_, _>>(),
            sleep: self.sleep(),
            state: self.state_in(at.clone()),
        };
        let asking = InputCall { tool, server: None, inside, definitions, call: call.id_and_args() };
        let result = self.run_tool(inside, definitions, tool, &env, call).await?;
        let Some(what) = at.refused() else {
            return self.waits().request_input(asking, result, call_state).await;
        };
        let text = format!("\"{}\" is `read_only`, and tried to {what}.", tool.name);
        Ok(ToolResult { error_code: Some("read_only".into()), ..ToolResult::error(text) })
    }

    /// Runs a tool, and repeats it by its policy after a transient failure. Each run is counted in the call's
    /// receipt beforehand, so that crashes cannot add runs.
    async fn run_tool(
        &self,
        inside: &Scope,
        definitions: &Definitions<'_>,
        tool: &Tool,
        env: &dyn Fn(&str) -> Option<String>,
        mut call: NativeCall,
    ) -> Result<ToolResult> {
        let policy = self.retries().tool_retry(definitions, tool)?;
        let timeout_ms = attempt_ms(tool, policy.as_ref());
        let left_ms = if inside.is_detached() { None } else { self.budgets().time_left()? };
        let left_ms = left_ms.and_then(|us| u64::try_from(us / 1000).ok());
        let limit_ms = Some(timeout_ms.unwrap_or(limits::NATIVE_MS)).into_iter().chain(left_ms).min();
        let http_ms = match left_ms {
            Some(left) => Some(left.min(timeout_ms.unwrap_or((limits::HTTP_TOOL_US / 1000) as u64))),
            None => timeout_ms,
        };
        let trace = || self.traces().trace_at(inside);
        let plan = ExecutionPlan { run: &tool.run, limit_ms, http_ms, env, trace: &trace };
        let policy = policy.filter(|policy| policy.max_attempts > 1);
        loop {
            let again = policy.as_ref().map(|policy| (policy, call.clone()));
            let (failed, may_pass) = match self.run_once(inside, definitions, tool, &plan, call).await? {
                Ok(result) => return Ok(result),
                Err(failed) => failed,
            };
            if let Some((policy, again)) =
                again.filter(|(policy, _)| policy.retries(may_pass, may_pass.is_some()))
            {
                match self.next_tool_run(
                    inside,
                    policy,
                    &tool.name,
                    failed.error.as_deref().unwrap_or_default(),
                )? {
                    NextRun::After(pause) => {
                        let depth = inside.depth.saturating_sub(1);
                        self.activity().send_retry(&format!("{} failed", tool.name), depth, pause)?;
                        self.retries().pause_before_retry(pause).await;
                        call = again;
                        continue;
                    }
                    NextRun::Parked(wait) => return self.waits().end_parked_flow(&[*wait]).await,
                    NextRun::None => {}
                }
            }
            return Ok(*failed);
        }
    }

    /// Runs a tool once. A failure comes with its result and its kind for retries.
    async fn run_once(
        &self,
        inside: &Scope,
        definitions: &Definitions<'_>,
        tool: &Tool,
        plan: &ExecutionPlan<'_>,
        call: NativeCall,
    ) -> Result<Result<ToolResult, (Box<ToolResult>, Option<RetryOn>)>> {
        if let Implementation::Mcp(of) = &tool.run {
            let ran = self.mcp().mcp_call(ServerCall { tool, of, inside, definitions }, plan, call).await?;
            return Ok(ran.map_err(|trouble| {
                let result = ToolResult::error(trouble.text);
                (Box::new(ToolResult { error_code: Some(trouble.code.into()), ..result }), trouble.may_pass)
            }));
        }
        Ok(work::run(self.work_context(), *plan, call).await.map_err(|failure| {
            let may_pass = failure.may_pass();
            let late = matches!(failure, Failure::Late(_));
            let text = failure.of(&format!("\"{}\"", tool.name));
            (Box::new(ToolResult::error(if late { text + "." } else { text })), may_pass)
        }))
    }

    /// The next action after a run that failed with this text. Another run is counted in the call's receipt,
    /// together with recoveries. If the run is parked first, it is counted when the call is entered again.
    fn next_tool_run(
        &self,
        inside: &Scope,
        policy: &EffectivePolicy,
        name: &str,
        failed: &str,
    ) -> Result<NextRun> {
        let Some(id) = inside.receipt else { return Ok(NextRun::None) };
        let most = i64::from(policy.max_attempts.min(limits::IDEMPOTENT_RUNS));
        let random = self.host.random();
        self.transition(|state, sql| {
            let Some(receipt) = receipts::find(sql, id)?.filter(|receipt| receipt.runs < most) else {
                return Ok(NextRun::None);
            };
            let pause_us = backoff_us(policy, u32::try_from(receipt.runs).unwrap_or(1), random, None);
            if !parks(policy, inside.parking, pause_us) {
                receipts::restart(sql, id)?;
                return Ok(NextRun::After(pause_us));
            }
            let later = LaterAttempt {
                receipt: Some(id),
                reply: receipt.reply,
                title: format!("Call “{name}” again"),
                reason: failed.to_owned(),
                pause_us,
            };
            self.waits().park_for_attempt(state, sql, later).map(|wait| NextRun::Parked(Box::new(wait)))
        })
    }
}

/// The time limit of one run of a tool in milliseconds: the shorter of the tool's and its policy's.
fn attempt_ms(tool: &Tool, policy: Option<&EffectivePolicy>) -> Option<u64> {
    let attempt_ms = policy.and_then(|policy| u64::try_from(policy.timeout_us? / 1000).ok());
    match (tool.timeout_ms, attempt_ms) {
        (Some(tool), Some(attempt)) => Some(tool.min(attempt)),
        (tool, attempt) => tool.or(attempt),
    }
}

/// The result, or an error if it is too large to store.
pub(in crate::engine) fn fitting(name: &str, result: ToolResult) -> ToolResult {
    let bytes = result.text().len();
    if bytes <= limits::CONTENT_BYTES {
        return result;
    }
    ToolResult::error(format!(
        "The result of \"{name}\" has {bytes} bytes; the limit is {}. Ask for less.",
        limits::CONTENT_BYTES
    ))
}
