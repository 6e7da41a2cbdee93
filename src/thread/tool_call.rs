//! Tool calls and their receipts. A receipt is stored before a tool starts, so that a call whose outcome is unknown
//! after a crash is never run again unless the tool says that this is safe (docs/durability.md).

use std::ops::ControlFlow;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::Thread;
use super::handoff;
use super::host::{Cell, Host, NativeCall, Param, Sql};
use super::model_call::Watch;
use super::rows::{self, Inbound, Row, Shared};
use super::step::Definitions;
use super::stop::Cap;
use super::thread_state::Where;
use super::tool_queue;
use crate::error::{Error, Result};
use crate::limits;
use crate::spec::message::{Role, ToolCall, ToolResult, ToolStatus};
use crate::spec::{Callable, Run, Tool, ToolEntry, schema};

/// A call of the open step's reply.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// Place in the reply.
    index: usize,
    /// Seq of its result, and id of its receipt.
    seq: i64,
    call: ToolCall,
}

impl Call {
    fn of(reply: &Row, index: usize) -> Option<Call> {
        reply.calls.get(index).map(|call| Call {
            index,
            seq: reply.seq + 1 + index as i64,
            call: call.clone(),
        })
    }
}

/// How far a call came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Receipt {
    /// No row yet: it was refused, or done at once. Its kind, and what its receipt keeps.
    None(&'static str, Option<String>),
    /// A row says that it started.
    Started,
}

/// A call's result, still to be stored.
pub(super) struct Done {
    result: ToolResult,
    receipt: Receipt,
    state: &'static str,
}

impl Done {
    fn refused(text: String) -> Done {
        Done { result: ToolResult::error(text), receipt: Receipt::None("refused", None), state: "failed" }
    }

    /// The thread is handed off when the step is closed.
    fn handed(agent: &str, kept: Option<String>) -> Done {
        let result = ToolResult::success(handoff::told(agent));
        Done { result, receipt: Receipt::None(handoff::KIND, kept), state: "succeeded" }
    }

    fn hands_off(&self) -> bool {
        matches!(self.receipt, Receipt::None(handoff::KIND, _)) && self.state == "succeeded"
    }

    /// The call was running when the process was lost, and must not run again.
    fn unknown(name: &str) -> Done {
        let text = format!(
            "The runtime restarted while \"{name}\" was running. It may or may not have taken effect. Check before trying again."
        );
        Done { result: ToolResult::error(text), receipt: Receipt::Started, state: "indeterminate" }
    }

    fn ran(result: ToolResult) -> Done {
        let state = match result.status {
            ToolStatus::Success => "succeeded",
            ToolStatus::Error => "failed",
        };
        Done { result, receipt: Receipt::Started, state }
    }
}

impl<H: Host> Thread<H> {
    /// The first call of the reply whose result is not stored, or else of a queued tool; with the message that holds it.
    pub(super) fn next_call(&self, reply: &Shared) -> Result<Option<(Shared, Call)>> {
        self.read(|state, sql| {
            let index = match reply.inbound {
                Inbound::Tool => reply.calls.len(),
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

    /// Runs a call, or says why not. Only what comes back from here is left to store.
    pub(super) async fn run_call(
        self: &Rc<Self>,
        definitions: &Definitions<'_>,
        reply: &Shared,
        call: &Call,
    ) -> Result<Done> {
        let name = &call.call.name;
        // What code calls need not be listed.
        let unlisted = (reply.inbound == Inbound::Tool).then(|| ToolEntry::unlisted(name));
        let listed = definitions.prompt.tool(name).or(unlisted.as_ref());
        let known = listed.and_then(|entry| Some((entry, self.catalog.callable(name)?)));
        let started = self.started(call)?;
        let again = |callable: Callable<'_>| match callable {
            Callable::Tool(tool) => tool.idempotent && started < i64::from(limits::IDEMPOTENT_RUNS),
            Callable::Prompt(_) | Callable::Agent(..) => true,
        };
        if started > 0 && !known.is_some_and(|(_, callable)| again(callable)) {
            return Ok(Done::unknown(name));
        }
        let Some((entry, callable)) = known else {
            return Ok(Done::refused(unknown_tool(name, definitions)));
        };
        if started == 0 && unlisted.is_some() && self.at_hard_cap()? {
            return Ok(Done::refused(format!("Not run: {}", Cap::Total.message())));
        }
        let args = match arguments(callable, &call.call) {
            Ok(args) => args,
            // A call that started had good arguments then; today's definition asks for others.
            Err(_) if started > 0 => return Ok(Done::unknown(name)),
            Err(text) => return Ok(Done::refused(text)),
        };
        let tool = match callable {
            Callable::Tool(tool) => tool,
            Callable::Prompt(_) => return Ok(Done::refused("prompts: not yet".to_owned())),
            Callable::Agent(..) => return Ok(Done::handed(name, handoff::kept(entry, &args))),
        };
        self.start_call(tool, reply, call, started)?;
        self.announce_tool_start(name);
        let result = self.execute(definitions, entry, tool, reply, call, args).await?;
        if self.read(|state, _| Ok(state.active().is_none()))? {
            // The tool has terminated its own thread. That has aborted this flow, which ends at its next await.
            std::future::pending::<()>().await;
        }
        let result = self.checked_for_session(definitions, &call.call, result)?;
        self.announce_status(definitions, &call.call, &result);
        self.announce_tool_end(name, result.status);
        Ok(Done::ran(fitting(name, result)))
    }

    /// How often the call was started before the process was lost. Only a recovered step can have such a call.
    fn started(&self, call: &Call) -> Result<i64> {
        self.read(|state, sql| match state.active() {
            Some(run) if run.recoveries > 0 => {
                let runs =
                    rows::integer(sql, "SELECT runs FROM calls WHERE id = ?", &[Param::Int(call.seq)])?;
                Ok(runs.unwrap_or(0))
            }
            _ => Ok(0),
        })
    }

    /// Stores that the call starts, before it does.
    fn start_call(&self, tool: &Tool, reply: &Shared, call: &Call, started: i64) -> Result<()> {
        let now = self.host.now_us();
        let kind = match tool.run {
            Run::Native(_) => "native",
            Run::Http(_) => "http",
        };
        self.transition(|_, sql| {
            if started > 0 {
                return sql.run("UPDATE calls SET runs = runs + 1 WHERE id = ?", &[Param::Int(call.seq)]);
            }
            sql.run(
                "INSERT INTO calls (id, reply, call_id, name, kind, state, runs, started_us)
                 VALUES (?, ?, ?, ?, ?, 'started', 1, ?)",
                &[
                    Param::Int(call.seq),
                    Param::Int(reply.seq),
                    Param::Text(&call.call.id),
                    Param::Text(&call.call.name),
                    Param::Text(kind),
                    Param::Int(now),
                ],
            )
        })
    }

    async fn execute(
        self: &Rc<Self>,
        definitions: &Definitions<'_>,
        entry: &ToolEntry,
        tool: &Tool,
        reply: &Shared,
        call: &Call,
        args: Value,
    ) -> Result<ToolResult> {
        let thread_id = self.read(|state, _| Ok(state.meta.thread_id.clone()))?;
        let env = |name: &str| self.tool_env(definitions, entry, name);
        if let Some(text) = self.unready(definitions, entry, tool).await? {
            return Ok(ToolResult::error(text));
        }
        let declared = tool.variables.iter().filter_map(|variable| {
            env(&variable.name).map(|value| (variable.name.clone(), Value::String(value)))
        });
        let call = NativeCall {
            name: tool.name.clone(),
            args,
            options: entry.options.clone(),
            idempotency_key: format!("{thread_id}/r{}.{}", reply.seq, call.index),
            thread_id,
            agent_id: definitions.agent.name.clone(),
            call_id: call.call.id.clone(),
            now_us: self.host.now_us(),
            random: self.host.random(),
            env: declared.collect::<Map<_, _>>(),
            sleep: self.sleep(),
            state: self.state_at(Where::Step),
        };
        match &tool.run {
            Run::Native(name) => {
                let running = self.host.native(NativeCall { name: name.clone(), ..call });
                let Some(limit_ms) = tool.timeout_ms else { return Ok(self.redact_result(running.await)) };
                let finished = Watch::for_ms(&self.host, limit_ms).within(running).await;
                Ok(self.redact_result(finished.unwrap_or_else(|| timed_out(&tool.name, limit_ms))))
            }
            Run::Http(http) => Ok(self.redact_result(self.http_tool(http, tool, &env, call).await)),
        }
    }

    pub(super) fn sleep(self: &Rc<Self>) -> super::host::Sleep {
        let thread = self.clone();
        Rc::new(move |us| {
            let until = thread.host.now_us() + us.max(0);
            Box::pin(thread.host.sleep_until(until))
        })
    }

    /// Stores a result: receipt and message in one transition.
    pub(super) fn store_result(&self, reply: &Shared, call: &Call, done: Done) -> Result<()> {
        let now = self.host.now_us();
        let text = done.result.text();
        let content = match done.result.status {
            ToolStatus::Success if text.is_empty() => "The tool finished and gave no output.".to_owned(),
            _ => text,
        };
        let error = (done.result.status == ToolStatus::Error).then(|| first_bytes(&content, 1024).to_owned());
        let row = Row {
            name: Some(call.call.name.clone()),
            tool_call_id: Some(call.call.id.clone()),
            status: Some(done.result.status),
            ..Row::new(call.seq, Role::Tool, content, now)
        };
        let row = self.transition(|state, sql| {
            match &done.receipt {
                Receipt::Started => sql.run(
                    "UPDATE calls SET state = ?, ended_us = ?, error = ? WHERE id = ?",
                    &[Param::Text(done.state), Param::Int(now), error.as_ref().into(), Param::Int(call.seq)],
                )?,
                Receipt::None(kind, kept) => sql.run(
                    "INSERT INTO calls (id, reply, call_id, name, kind, state, runs, started_us, ended_us, error, data)
                     VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)",
                    &[
                        Param::Int(call.seq),
                        Param::Int(reply.seq),
                        Param::Text(&call.call.id),
                        Param::Text(&call.call.name),
                        Param::Text(kind),
                        Param::Text(done.state),
                        Param::Int(now),
                        // A hand-off ends when it takes place.
                        (!done.hands_off()).then_some(now).into(),
                        error.as_ref().into(),
                        kept.as_ref().into(),
                    ],
                )?,
            }
            if done.hands_off() {
                state.handoff = Some(call.seq);
            }
            if reply.inbound == Inbound::Tool {
                let run = state.active_mut()?;
                run.steps += 1;
                run.update(sql)?;
            }
            state.insert(sql, row)
        })?;
        if reply.inbound == Inbound::Tool {
            // It does not wait any more.
            self.broadcast_message(reply)?;
        }
        self.broadcast_message(&row)
    }

    /// Whether the run has taken as many steps as any may; a queued tool counts as one.
    fn at_hard_cap(&self) -> Result<bool> {
        self.read(|state, _| Ok(state.active().is_some_and(|run| run.steps >= limits::RUN_STEPS)))
    }
}

/// The call's arguments, or what the model is told about them.
fn arguments(callable: Callable<'_>, call: &ToolCall) -> std::result::Result<Value, String> {
    let name = &call.name;
    // Models that call a tool without arguments often send nothing at all.
    let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    let args: Value = serde_json::from_str(text)
        .map_err(|error| format!("The arguments for \"{name}\" are not valid JSON: {error}."))?;
    callable
        .check(args)
        .map_err(|problems| format!("Invalid arguments for \"{name}\": {}", schema::lines(&problems)))
}

fn unknown_tool(name: &str, definitions: &Definitions<'_>) -> String {
    let available: Vec<&str> = definitions.prompt.tools.iter().map(|entry| entry.name.as_str()).collect();
    let available = if available.is_empty() { "none".to_owned() } else { available.join(", ") };
    format!("There is no tool \"{name}\" here. Available: {available}.")
}

pub(super) fn timed_out(name: &str, limit_ms: u64) -> ToolResult {
    ToolResult::error(format!("\"{name}\" did not answer within {} s.", limit_ms as f64 / 1000.0))
}

/// The result, unless it is too large to store.
fn fitting(name: &str, result: ToolResult) -> ToolResult {
    let bytes = result.text().len();
    if bytes <= limits::CONTENT_BYTES {
        return result;
    }
    ToolResult::error(format!(
        "The result of \"{name}\" has {bytes} bytes; the limit is {}. Ask for less.",
        limits::CONTENT_BYTES
    ))
}

/// At most `max` bytes from the start of a text.
pub(super) fn first_bytes(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Closes the receipts of calls that were running when their run was stopped: their outcome is not known.
pub(super) fn abandon_started<S: Sql>(sql: &S, reply: i64, now: i64) -> Result<Vec<(i64, String, String)>> {
    let mut open = Vec::new();
    sql.each(
        "SELECT id, call_id, name FROM calls WHERE id > ? AND state = 'started'",
        &[Param::Int(reply)],
        &mut |cells| {
            let [id, call_id, name] = cells else {
                return Err(Error::internal("a receipt has the wrong number of columns"));
            };
            let text = |cell: &Cell| cell.text().unwrap_or_default().to_owned();
            open.push((id.int().unwrap_or_default(), text(call_id), text(name)));
            Ok(ControlFlow::Continue(()))
        },
    )?;
    for (id, ..) in &open {
        sql.run(
            "UPDATE calls SET state = 'indeterminate', ended_us = ? WHERE id = ?",
            &[Param::Int(now), Param::Int(*id)],
        )?;
    }
    Ok(open)
}
