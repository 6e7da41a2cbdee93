//! The contents of the rows of `logs` (spec §29): one bounded row per attempt at a model, recovery, stop,
//! failure and termination. Tool calls have receipts instead. Bodies are kept only on request, in a separate
//! table.

use std::rc::Rc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::model::Usage;
use crate::definitions::retry::RetrySource;
use crate::definitions::{Hook, Model, Prompt, Snapshot};
use crate::env::Redacted;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::models::response::ResponseNames;
use crate::models::{ChatRequest, ProviderError, Reply};
use crate::store::children::Child;
use crate::store::jobs::{Job, Kind};
use crate::store::logs::{insert, insert_first};
use crate::store::runs::ledger::Amounts;
use crate::store::runs::{Run, Step};
use crate::store::state::State;
use crate::store::waits::Wait;
use crate::store::{logs, receipts};
use crate::text::first_bytes;

/// One request to a model.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) run: i64,
    pub(crate) step: Step,
    /// Number of the stream; unique under its reply.
    pub(crate) stream: u32,
    /// Name of the model's definition.
    pub(crate) model: String,
    pub(crate) provider_model: String,
    pub(crate) prompt: String,
    pub(crate) messages: usize,
    pub(crate) tools: usize,
    /// Other options of the request, by their names in the log.
    pub(crate) asked: Map<String, Value>,
    pub(crate) started_us: i64,
    /// When the first chunk with content arrived.
    pub(crate) first_us: Option<i64>,
    pub(crate) ended_us: i64,
    pub(crate) end: Option<Value>,
    /// The request, when bodies are logged.
    pub(crate) body: Option<Bytes>,
    /// The reply's text, when bodies are logged.
    pub(crate) answer: Option<String>,
    pub(crate) output_tokens: u64,
    /// Tokens of the request: the estimate, if there is one, and the provider's report.
    pub(crate) estimated_tokens: Option<usize>,
    pub(crate) input_tokens: u64,
    /// The purpose of an attempt that is not a reply; clients do not see its output.
    pub(crate) purpose: Option<&'static str>,
    /// Origin of the policy by which it is retried.
    pub(crate) retry_source: RetrySource,
    /// The snapshot of the thread's first run, if its row is written together with this one.
    pub(crate) snapshot: Option<Rc<Snapshot>>,
    /// The most that it may use, if a budget limits it.
    pub(crate) worst: Option<MaxTokens>,
    /// The provider's names of the response and its model.
    pub(crate) response: ResponseNames,
    /// The usage that the provider has reported so far.
    pub(crate) reported: Option<Usage>,
    /// Bytes of the response received so far.
    pub(crate) received: usize,
    /// The amounts that a budget charges for it, set when it has ended.
    pub(crate) booked: Option<Amounts>,
    /// Whether `booked` is an estimate.
    pub(crate) is_estimated: bool,
    /// The run that caused an attempt which belongs to no run; 0 for none.
    pub(crate) of_run: i64,
}

/// The most that an attempt may use, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MaxTokens {
    /// Tokens of the request, estimated.
    pub(crate) input: u64,
    /// Tokens of the response: the most that the request allows.
    pub(crate) output: u64,
}

impl Attempt {
    pub(crate) fn begin(
        run: i64,
        step: Step,
        stream: u32,
        model: &Model,
        prompt: &Prompt,
        request: &ChatRequest,
        now: i64,
    ) -> Attempt {
        Attempt {
            messages: request.messages.len(),
            tools: request.tools.len(),
            asked: request_options(request),
            estimated_tokens: request.tokens(),
            ..Attempt::of(run, step, stream, model, &prompt.name, now)
        }
    }

    /// An attempt of which only these fields are known.
    pub(crate) fn of(run: i64, step: Step, stream: u32, model: &Model, prompt: &str, now: i64) -> Attempt {
        Attempt {
            run,
            step,
            stream,
            model: model.name.clone(),
            provider_model: model.model.clone(),
            prompt: prompt.to_owned(),
            messages: 0,
            tools: 0,
            asked: Map::new(),
            started_us: now,
            first_us: None,
            ended_us: now,
            end: None,
            body: None,
            answer: None,
            output_tokens: 0,
            estimated_tokens: None,
            input_tokens: 0,
            purpose: None,
            retry_source: RetrySource::BuiltIn,
            snapshot: None,
            worst: None,
            response: ResponseNames::default(),
            reported: None,
            received: 0,
            booked: None,
            is_estimated: false,
            of_run: 0,
        }
    }

    pub(crate) fn succeed(&mut self, reply: &Reply, model: &Model, now: i64) {
        self.ended_us = now;
        let usage = reply.usage.unwrap_or_default();
        self.output_tokens = usage.output_tokens;
        self.input_tokens = usage.input_tokens;
        if self.body.is_some() {
            self.answer =
                Some(json!({ "content": reply.content, "tool_calls": reply.tool_calls }).to_string());
        }
        let called: Vec<&str> = reply.tool_calls.iter().map(|call| call.name.as_str()).take(32).collect();
        self.end = Some(json!({
            "status": "completed",
            "finish_reason": reply.finish_reason,
            "usage_reported": reply.usage.is_some(),
            "input_tokens": usage.input_tokens,
            "cached_tokens": usage.cached_tokens,
            "output_tokens": usage.output_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "cost_total": model.cost(&usage),
            "tools_called": called,
        }));
    }

    /// `error` must be free of secrets: see [`Thread::redacted_failure`].
    pub(crate) fn fail(&mut self, error: &ProviderError, now: i64) {
        self.ended_us = now;
        self.end = Some(json!({
            "status": "failed",
            "error_type": error.code,
            "status_code": error.status,
            "network": error.is_network,
            "error": error.message,
        }));
    }

    /// Duration in milliseconds.
    pub(crate) fn latency_ms(&self) -> i64 {
        (self.ended_us - self.started_us) / 1000
    }

    /// Writes the row. A retry names the attempt before it.
    pub(crate) fn insert(&self, sql: &dyn Sql) -> Result<()> {
        let mut data = json!({
            "model_name": self.model,
            "model": self.provider_model,
            "prompt_name": self.prompt,
            "attempt": self.stream,
            "message_history_length": self.messages,
            "tools_available": self.tools,
            "latency_ms": self.latency_ms(),
            "time_to_first_token_ms": self.first_us.map(|first| (first - self.started_us) / 1000),
            "ended_at": self.ended_us,
            "retry_source": self.retry_source,
        });
        if let Some(data) = data.as_object_mut() {
            data.extend(self.asked.clone());
            let ResponseNames { id, model } = &self.response;
            let told = [("response_id", id), ("response_model", model)].into_iter();
            let told = told.filter(|(_, text)| !text.is_empty());
            data.extend(told.map(|(name, text)| (name.to_owned(), text.as_str().into())));
        }
        if let (Some(data), Some(Value::Object(end))) = (data.as_object_mut(), &self.end) {
            data.extend(end.clone());
        }
        if let (Some(data), Some(receipt)) = (data.as_object_mut(), self.step.call) {
            data.insert("parent_call".into(), format!("c_{receipt}").into());
        }
        if let (Some(data), Some(booked)) = (data.as_object_mut(), &self.booked) {
            data.insert("booked".into(), json!(booked));
            if self.is_estimated {
                data.insert("usage_estimated".into(), true.into());
            }
        }
        let retry_of = (self.stream > 1).then(|| i64::from(self.stream) - 1);
        let run = (self.run > 0).then_some(self.run);
        if let (Some(data), Some(purpose)) = (data.as_object_mut(), self.purpose) {
            data.insert("purpose".into(), purpose.into());
            if self.of_run > 0 {
                data.insert("of_run".into(), self.of_run.into());
            }
            return insert(
                sql,
                "llm_request",
                run,
                self.started_us,
                None,
                retry_of,
                &Value::Object(data.clone()),
            );
        }
        if let Some(snapshot) = &self.snapshot {
            let of_run = Value::Object(snapshot.fields.clone());
            return insert_first(sql, self.run, &of_run, self.started_us, self.step.block, retry_of, &data);
        }
        insert(sql, "llm_request", run, self.started_us, Some(self.step.block), retry_of, &data)
    }
}

/// The options of a request that few requests set.
fn request_options(request: &ChatRequest) -> Map<String, Value> {
    let most = request.max_output_tokens.map(Value::from);
    let option = |name: &str| request.options.get(name).filter(|value| value.is_number()).cloned();
    let asked = [("max_tokens", most), ("temperature", option("temperature")), ("top_p", option("top_p"))];
    asked.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The reason why an attempt has no known end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnfinishedReason {
    /// The process crashed.
    Lost,
    /// The run was stopped, or the thread terminated.
    Cancelled,
}

impl UnfinishedReason {
    pub(crate) const fn error(self) -> (&'static str, &'static str) {
        match self {
            UnfinishedReason::Lost => ("interrupted", "The process was lost before the answer was stored."),
            UnfinishedReason::Cancelled => ("cancelled", "The run was stopped before the answer came."),
        }
    }
}

/// The last attempt of a called prompt, which has no known end.
pub(crate) struct LostAttempt<'a> {
    pub(crate) step: Step,
    pub(crate) tries: &'a AttemptState,
    pub(crate) prompt: &'a Prompt,
    pub(crate) why: UnfinishedReason,
}

/// A row about something other than an attempt or a tool call.
pub(crate) struct Event {
    kind: &'static str,
    run: Option<i64>,
    reply: Option<i64>,
    data: Value,
}

impl Event {
    /// The run continues after the process crashed.
    pub(crate) fn recovery(run: &Run) -> Event {
        let data = json!({
            "phase": run.phase.as_str(), "step": run.step, "recoveries": run.recoveries, "resume_at": run.resume_us,
        });
        Event { kind: "recovery", run: Some(run.id), reply: Some(run.block), data }
    }

    /// The first part of a response that must not start over is about to be shown.
    pub(crate) fn shown(attempt: &Attempt) -> Event {
        let run = (attempt.run > 0).then_some(attempt.run);
        let data = json!({ "attempt": attempt.stream, "model_name": attempt.model });
        Event { kind: logs::SHOWN, run, reply: Some(attempt.step.block), data }
    }

    /// The provider continues this response in the background, even if the connection breaks.
    pub(crate) fn in_background(attempt: &Attempt, response_id: &str) -> Event {
        let run = (attempt.run > 0).then_some(attempt.run);
        let call = attempt.step.call.map(|receipt| format!("c_{receipt}"));
        let data = json!({
            "attempt": attempt.stream, "model_name": attempt.model, "response_id": response_id, "parent_call": call,
        });
        Event { kind: logs::BACKGROUND, run, reply: Some(attempt.step.block), data }
    }

    /// The run failed.
    pub(crate) fn failure(run: &Run, text: &Redacted) -> Event {
        let reason = run.end.as_ref().map(|end| end.reason.as_str());
        Event {
            kind: "failure",
            run: Some(run.id),
            reply: None,
            data: json!({ "reason": reason, "error": &**text }),
        }
    }

    /// An effect, or one occurrence of it, has failed for good.
    pub(crate) fn effect_failure(id: &str, name: &str, attempts: u32, error: &Redacted) -> Event {
        let data = json!({ "effect_id": id, "effect_name": name, "attempts": attempts, "error": &**error });
        Event { kind: "effect_failure", run: None, reply: None, data }
    }

    /// A job has failed for good. `dropped`: the spans lost with an export.
    pub(crate) fn job_failure(job: &Job, dropped: Option<u64>, error: &Redacted) -> Event {
        let data = json!({
            "job": job.kind.map(Kind::as_str), "subject": job.subject, "attempts": job.attempts, "dropped": dropped,
            "error": &**error,
        });
        Event { kind: "failure", run: None, reply: None, data }
    }

    /// A hook failed.
    pub(crate) fn hook(run: Option<&Run>, hook: &Hook, call_id: &str, error: &Redacted) -> Event {
        let data =
            json!({ "hook_id": hook.id, "hook": hook.hook, "hook_call_id": call_id, "error": &**error });
        Event { kind: "hook", run: run.map(|run| run.id), reply: None, data }
    }

    /// The definitions that a run begins with.
    pub(crate) fn snapshot(run: i64, data: Value) -> Event {
        Event { kind: "snapshot", run: Some(run), reply: None, data }
    }

    pub(crate) fn budget(run: Option<&Run>, event: &str, mut data: Value) -> Event {
        if let Some(fields) = data.as_object_mut() {
            fields.insert("event".into(), event.into());
        }
        let (id, block) = (run.map(|run| run.id), run.map(|run| run.block));
        Event { kind: "budget", run: id, reply: block, data }
    }

    /// A problem that a run has noticed and does not fail with.
    pub(crate) fn note(run: Option<i64>, code: &str, message: &str, data: &Value) -> Event {
        Event {
            kind: "note",
            run,
            reply: None,
            data: json!({ "code": code, "message": message, "data": data }),
        }
    }

    /// A user stopped the thread.
    pub(crate) fn stop(run: Option<&Run>) -> Event {
        Event { kind: "stop", run: run.map(|run| run.id), reply: None, data: json!({}) }
    }

    /// A run has searched a memory.
    pub(crate) fn memory(run: Option<i64>, data: Value) -> Event {
        Event { kind: logs::MEMORY, run, reply: None, data }
    }

    /// The thread was terminated.
    pub(crate) fn termination(run: Option<&Run>) -> Event {
        Event { kind: "termination", run: run.map(|run| run.id), reply: None, data: json!({}) }
    }

    /// An event of a subagent: `create`, `message`, `return`, `failure`, `status`, `notify`, `terminated`.
    pub(crate) fn subagent(event: &str, child: &Child, run: Option<&Run>, text: Option<&str>) -> Event {
        let data = json!({
            "event": event, "reference": child.reference, "agent": child.agent, "name": child.facts.name,
            "status": child.status, "text": text.map(|text| first_bytes(text, limits::LOGGED_PATH_BYTES)),
        });
        Event { kind: "subagent", run: run.map(|run| run.id), reply: None, data }
    }

    /// The parent receives the outcome of a run.
    pub(crate) fn parent_report(parent: &str, ending: &str, run: &Run) -> Event {
        let data = json!({ "event": ending, "parent_thread_id": parent });
        Event { kind: "subagent_report", run: Some(run.id), reply: None, data }
    }

    /// A wait is decided: the permanent record of who decided what.
    pub(crate) fn wait(wait: &Wait, thread: &str) -> Event {
        let data = json!({
            "wait": wait.public_id(thread), "wait_kind": wait.kind.as_str(), "state": wait.state.as_str(),
            "tool": wait.asked.call.as_ref().map(|call| &call.tool), "call": wait.receipt.map(|id| format!("c_{id}")),
            "digest": wait.digest, "decision": wait.decision,
        });
        Event { kind: "approval", run: wait.run, reply: wait.batch, data }
    }

    /// A custom endpoint failed.
    pub(crate) fn endpoint(
        name: &str,
        method: &str,
        path: &str,
        status: u16,
        id: &str,
        error: &Redacted,
    ) -> Event {
        let path = first_bytes(path, limits::LOGGED_PATH_BYTES);
        let data = json!({
            "name": name, "method": method, "path": path, "status": status, "request_id": id, "error": &**error,
        });
        Event { kind: "endpoint", run: None, reply: None, data }
    }

    pub(crate) fn insert(&self, sql: &dyn Sql, now: i64) -> Result<()> {
        insert(sql, self.kind, self.run, now, self.reply, None, &self.data)
    }
}

/// State of the attempts of one step, as the run's row or the receipt stores it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttemptState {
    /// Seq reserved for the reply.
    pub(crate) block: i64,
    /// Index of the model in its chain of fallbacks.
    pub(crate) model: u32,
    /// Attempts at that model, from 1.
    pub(crate) attempt: u32,
    /// Number of the stream under the reply's id; grows with every request.
    pub(crate) stream: u32,
    /// The error of an inner step after all its attempts have failed. A run ends instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
    /// Attempts without a known end that no budget was charged for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) unseen: u32,
    /// Number of the last stream that the log records as having no known end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) logged: u32,
}

impl AttemptState {
    /// The state of a step's attempts.
    pub(crate) fn of(state: &State, sql: &dyn Sql, step: Step) -> Result<AttemptState> {
        match step.call {
            Some(receipt) => {
                receipts::inner(sql, receipt)?.ok_or_else(|| Error::internal("an inner step is not open"))
            }
            None => Ok(state.active().map_or(AttemptState::default(), |run| AttemptState {
                block: run.block,
                model: run.model,
                attempt: run.attempt,
                stream: run.stream,
                failed: None,
                unseen: 0,
                logged: 0,
            })),
        }
    }

    pub(crate) fn store(&self, state: &mut State, sql: &dyn Sql, step: Step) -> Result<()> {
        if let Some(receipt) = step.call {
            return receipts::set_inner(sql, receipt, self);
        }
        let run = state.active_mut()?;
        (run.model, run.attempt, run.stream) = (self.model, self.attempt, self.stream);
        run.update(sql)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
const fn is_zero(n: &u32) -> bool {
    *n == 0
}
