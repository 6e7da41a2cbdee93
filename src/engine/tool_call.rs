//! Tool calls and their receipts. A receipt is stored before a tool starts, so that a call whose outcome is unknown
//! after a crash is never run again unless the tool says that this is safe (docs/durability.md).

use std::ops::ControlFlow;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::engine::call::{Call, Done, Work, arguments, off, too_deep};
use crate::engine::definitions::Definitions;
use crate::engine::stop::Cap;
use crate::engine::thread::Thread;
use crate::engine::timeout::Watch;
use crate::engine::{handoff, tool_queue};
use crate::error::{Error, Result};
use crate::host::{Param, Sql};
use crate::limits;
use crate::sdk::scope::{Entered, Place, Scope, Where};
use crate::spec::message::{ToolResult, ToolStatus};
use crate::spec::{Run, Tool, ToolEntry};
use crate::store::messages::{Inbound, Shared};
use crate::store::state::State;
use crate::work::native::NativeCall;
use crate::work::native::tools::execute;

/// How far a call came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// No row yet: it was refused, or done at once. Its kind, and what its receipt keeps.
    None(&'static str, Option<String>),
    /// A row says that it started.
    Started,
}

/// What is told of a call that was running when the process was lost.
pub(crate) fn interrupted(name: &str) -> String {
    format!(
        "The runtime restarted while \"{name}\" was running. It may or may not have taken effect. Check before trying again."
    )
}

impl Thread {
    /// The first call of the reply whose result is not stored, or else of a queued tool; with the message that holds it.
    pub(crate) fn next_call(&self, reply: &Shared) -> Result<Option<(Shared, Call)>> {
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

    /// Runs a call of the open step, or says why not. Only what comes back from here is left to store.
    pub(crate) async fn run_call(
        self: &Rc<Self>,
        definitions: &Definitions<'_>,
        reply: &Shared,
        call: &Call,
    ) -> Result<Done> {
        let scope = self.step_scope(definitions)?;
        self.call(&scope, definitions, reply, call).await
    }

    /// The same in any place.
    pub(crate) async fn call(
        self: &Rc<Self>,
        scope: &Scope,
        definitions: &Definitions<'_>,
        reply: &Shared,
        call: &Call,
    ) -> Result<Done> {
        let name = &call.call.name;
        // What code calls need not be listed.
        let unlisted = (reply.inbound == Inbound::Tool).then(|| ToolEntry::unlisted(name));
        let listed = definitions.prompt.tool(name).or(unlisted.as_ref());
        let known = listed.and_then(|entry| Some((entry, self.catalog.callable(name)?)));
        if let Some(wanted) = self.wanted(definitions, listed, &call.call)? {
            return self.call_child(scope, definitions, reply, call, wanted).await;
        }
        let started = self.started(scope, call)?;
        if let Some((runs, kind)) = &started
            && !known
                .and_then(|(_, callable)| Work::of(callable))
                .is_some_and(|work| work.repeats(*runs, kind))
        {
            return Ok(Done::unknown(name, scope.place));
        }
        if started.is_none() && self.is_off(definitions, name) && known.is_some() {
            return Ok(Done::refused(off(definitions, name)));
        }
        let Some((entry, callable)) = known else {
            return Ok(Done::refused(self.unknown_tool(definitions, name)?));
        };
        if started.is_none() && unlisted.is_some() && self.at_hard_cap()? {
            return Ok(Done::refused(format!("Not run: {}", Cap::Total.message())));
        }
        let args = match arguments(callable, &call.call) {
            Ok(args) => args,
            // A call that started had good arguments then; today's definition asks for others.
            Err(_) if started.is_some() => return Ok(Done::unknown(name, scope.place)),
            Err(text) => return Ok(Done::refused(text)),
        };
        let Some(work) = Work::of(callable) else {
            return Ok(match scope.place {
                Place::Run => Done::handed(name, handoff::kept(entry, &args)),
                Place::Apart => {
                    Done::refused(format!("\"{name}\" cannot take over here: no run is under way."))
                }
            });
        };
        if scope.depth >= limits::CALL_DEPTH {
            return Ok(Done::refused(too_deep(name)));
        }
        self.start_call(scope, work, reply, call, started.is_some())?;
        self.announce_tool_start(name);
        let entered = if started.is_some() { Entered::Again } else { Entered::First };
        let inside = scope.within(format!("r{}.{}", reply.seq, call.index), call.seq, entered);
        let result = self.work(&inside, definitions, entry, work, &call.call.id, args).await?;
        if scope.place == Place::Run && self.read(|state, _| Ok(state.active().is_none()))? {
            // The tool has terminated its own thread. That has aborted this flow, which ends at its next await.
            std::future::pending::<()>().await;
        }
        // Within a call no tool has a meaning for the session.
        let result = match scope.depth {
            0 => self.checked_for_session(definitions, &call.call, result)?,
            _ => result,
        };
        if scope.depth == 0 {
            self.announce_status(definitions, &call.call, &result)?;
        }
        self.announce_tool_end(name, result.status);
        Ok(Done {
            within: inside.may_have_invoked().then_some(scope.place),
            ..Done::ran(fitting(name, result))
        })
    }

    /// How often the call was started before the process was lost, and as what. Only a place that is entered again can
    /// have such a call.
    fn started(&self, scope: &Scope, call: &Call) -> Result<Option<(i64, String)>> {
        let mut found = None;
        if scope.entered == Entered::Again {
            self.read(|_, sql| {
                sql.each("SELECT runs, kind FROM calls WHERE id = ?", &[Param::Int(call.seq)], &mut |cells| {
                    if let [runs, kind] = cells {
                        found = runs.int().zip(kind.text().map(str::to_owned));
                    }
                    Ok(ControlFlow::Break(()))
                })
            })?;
        }
        Ok(found)
    }

    /// Stores that the call starts, before it does.
    fn start_call(
        &self,
        scope: &Scope,
        work: Work<'_>,
        reply: &Shared,
        call: &Call,
        again: bool,
    ) -> Result<()> {
        let now = self.host.now_us();
        let apart = scope.apart_data();
        self.transition(|state, sql| {
            if again {
                return restart(state, sql, scope.place, call.seq);
            }
            state.starts_apart(sql, scope.place, call.seq)?;
            sql.run(
                "INSERT INTO calls (id, reply, call_id, name, kind, state, runs, started_us, data)
                 VALUES (?, ?, ?, ?, ?, 'started', 1, ?, ?)",
                &[
                    Param::Int(call.seq),
                    Param::Int(reply.seq),
                    Param::Text(&call.call.id),
                    Param::Text(&call.call.name),
                    Param::Text(work.kind()),
                    Param::Int(now),
                    apart.as_ref().into(),
                ],
            )
        })
    }

    /// Does what a call is for. `inside`: of that call.
    pub(crate) async fn work(
        self: &Rc<Self>,
        inside: &Scope,
        definitions: &Definitions<'_>,
        entry: &ToolEntry,
        work: Work<'_>,
        call_id: &str,
        args: Value,
    ) -> Result<ToolResult> {
        let tool = match work {
            Work::Tool(tool) => tool,
            // A prompt's calls may be prompts.
            Work::Prompt(prompt) => {
                return Box::pin(self.subprompt(inside, definitions, entry, prompt, &args)).await;
            }
        };
        let thread_id = self.read(|state, _| Ok(state.meta.thread_id.clone()))?;
        let env = |name: &str| self.tool_env(definitions, entry, name);
        if let Some(text) = self.unready(definitions, entry, tool).await? {
            return Ok(ToolResult::error(text));
        }
        let declared = tool.variables.iter().filter_map(|variable| {
            env(&variable.name).map(|value| (variable.name.clone(), Value::String(value)))
        });
        let at = if inside.place == Place::Run { Where::Step } else { Where::Apart };
        // Code of a model's calls what the prompt offers.
        let owner = if execute::runs(&tool.run) { &definitions.prompt.name } else { &tool.name };
        let call = NativeCall {
            name: tool.name.clone(),
            args,
            options: entry.options.clone(),
            idempotency_key: format!("{thread_id}/{}", inside.key),
            thread_id,
            agent_id: definitions.agent.name.clone(),
            call_id: call_id.to_owned(),
            now_us: self.host.now_us(),
            random: self.host.random(),
            env: declared.collect::<Map<_, _>>(),
            sleep: self.sleep(),
            state: self.state_in(at, inside.clone().in_package(self.catalog.packages.of(owner))),
        };
        match &tool.run {
            Run::Native(name) => {
                let running = self.natives.tool(NativeCall { name: name.clone(), ..call });
                Ok(self.given(self.in_time(tool, running).await))
            }
            Run::Http(http) => Ok(self.given(self.http_tool(http, tool, &env, call).await)),
            Run::Code(code) => Ok(self.given(self.in_time(tool, self.code_tool(code, call)).await)),
        }
    }

    /// A tool's own result, without what only the runtime says.
    fn given(&self, result: ToolResult) -> ToolResult {
        self.redact_result(ToolResult { stored: Vec::new(), ..result })
    }

    /// The result of a tool, which may have a time limit.
    async fn in_time(&self, tool: &Tool, running: impl Future<Output = ToolResult>) -> ToolResult {
        let Some(limit_ms) = tool.timeout_ms else { return running.await };
        let finished = Watch::for_ms(&*self.host, limit_ms).within(running).await;
        finished.unwrap_or_else(|| timed_out(&tool.name, limit_ms))
    }

    pub(crate) fn sleep(self: &Rc<Self>) -> crate::host::Sleep {
        let thread = self.clone();
        Rc::new(move |us| {
            let until = thread.host.now_us() + us.max(0);
            Box::pin(thread.host.sleep_until(until))
        })
    }

    /// Whether the run has taken as many steps as any may; a queued tool counts as one.
    fn at_hard_cap(&self) -> Result<bool> {
        self.read(|state, _| Ok(state.active().is_some_and(|run| run.steps >= limits::RUN_STEPS)))
    }
}

/// The state of a receipt whose call came to its end.
pub(crate) fn ended(result: &ToolResult) -> &'static str {
    match result.status {
        ToolStatus::Success => "succeeded",
        ToolStatus::Error => "failed",
    }
}

pub(crate) fn timed_out(name: &str, limit_ms: u64) -> ToolResult {
    ToolResult::error(format!("\"{name}\" did not answer within {} s.", limit_ms as f64 / 1000.0))
}

/// The result, unless it is too large to store.
pub(crate) fn fitting(name: &str, result: ToolResult) -> ToolResult {
    let bytes = result.text().len();
    if bytes <= limits::CONTENT_BYTES {
        return result;
    }
    ToolResult::error(format!(
        "The result of \"{name}\" has {bytes} bytes; the limit is {}. Ask for less.",
        limits::CONTENT_BYTES
    ))
}

/// A call that may be made again is under way once more.
pub(crate) fn restart(state: &mut State, sql: &dyn Sql, place: Place, receipt: i64) -> Result<()> {
    state.starts_apart(sql, place, receipt)?;
    sql.run(
        "UPDATE calls SET runs = runs + 1, state = 'started', ended_us = NULL, error = NULL WHERE id = ?",
        &[Param::Int(receipt)],
    )
}

/// Closes the receipts of calls within a call that has ended without them.
pub(crate) fn abandon_within(sql: &dyn Sql, place: Place, receipt: i64, now: i64) -> Result<()> {
    match place {
        // Calls of a run are made one after another: whatever has started since is within this one.
        Place::Run => sql.run(
            "UPDATE calls SET state = 'indeterminate', ended_us = ?
             WHERE id > ? AND state = 'started' AND json_extract(data, '$.apart') IS NULL",
            &[Param::Int(now), Param::Int(receipt)],
        ),
        Place::Apart => sql.run(
            "UPDATE calls SET state = 'indeterminate', ended_us = ? WHERE id > ? AND state = 'started' AND reply = ?",
            &[Param::Int(now), Param::Int(receipt), Param::Int(-receipt)],
        ),
    }
}
