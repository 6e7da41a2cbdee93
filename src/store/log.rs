//! What the rows of `logs` say (spec §29): one bounded row per attempt at a model, and one per recovery, stop, failure
//! and termination. Tool calls have their receipts. Bodies are kept only on request, in a table of their own.

use std::rc::Rc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::env::Shown;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::models::response::ResponseNames;
use crate::models::{ChatRequest, ProviderError, Reply};
use crate::spec::model::Usage;
use crate::spec::retry::RetrySource;
use crate::spec::{Hook, Model, Prompt, Snapshot};
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
    /// What else was asked for, by the names that the log has.
    pub(crate) asked: Map<String, Value>,
    pub(crate) started_us: i64,
    /// When the first chunk that carries payload came.
    pub(crate) first_us: Option<i64>,
    pub(crate) ended_us: i64,
    pub(crate) end: Option<Value>,
    /// The request, when bodies are logged.
    pub(crate) body: Option<Bytes>,
    /// The reply's text, when bodies are logged.
    pub(crate) answer: Option<String>,
    pub(crate) output_tokens: u64,
    /// Tokens of the request: as they were estimated, where that can be told, and as the provider reported them.
    pub(crate) estimated_tokens: Option<usize>,
    pub(crate) input_tokens: u64,
    /// What it is for, where it is no reply: nobody is shown what comes.
    pub(crate) purpose: Option<&'static str>,
    /// Where the policy is from by which it is tried again.
    pub(crate) retry_source: RetrySource,
    /// What the thread's first run began with, where its row is written together with this one.
    pub(crate) snapshot: Option<Rc<Snapshot>>,
    /// What it may use at most, where a budget limits it.
    pub(crate) worst: Option<Worst>,
    /// What the provider calls its answer.
    pub(crate) response: ResponseNames,
    /// What the provider has reported by now.
    pub(crate) reported: Option<Usage>,
    /// Bytes of the answer by now.
    pub(crate) received: usize,
    /// What a budget books for it, once it is over.
    pub(crate) booked: Option<Amounts>,
    /// Whether that is an estimate.
    pub(crate) is_estimated: bool,
    /// The run that has caused it, where it is of none any more; 0 for none.
    pub(crate) of_run: i64,
}

/// What an attempt may use at most, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Worst {
    /// Of the request, estimated.
    pub(crate) input: u64,
    /// Of the answer: what was asked for at most.
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
            asked: asked(request),
            estimated_tokens: request.tokens(),
            ..Attempt::of(run, step, stream, model, &prompt.name, now)
        }
    }

    /// One of which only this is known.
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

    /// `error` without secrets: see [`Thread::told_failure`].
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

    /// How long it took, in milliseconds.
    pub(crate) fn latency_ms(&self) -> i64 {
        (self.ended_us - self.started_us) / 1000
    }

    /// Writes it. A retry names the attempt before it.
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

/// What a request asks for that few do.
fn asked(request: &ChatRequest) -> Map<String, Value> {
    let most = request.max_output_tokens.map(Value::from);
    let option = |name: &str| request.options.get(name).filter(|value| value.is_number()).cloned();
    let asked = [("max_tokens", most), ("temperature", option("temperature")), ("top_p", option("top_p"))];
    asked.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Why the end of an attempt was never seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// Its process was lost.
    Lost,
    /// Its run was stopped or its thread terminated.
    Cancelled,
}

impl Unfinished {
    pub(crate) const fn told(self) -> (&'static str, &'static str) {
        match self {
            Unfinished::Lost => ("interrupted", "The process was lost before the answer was stored."),
            Unfinished::Cancelled => ("cancelled", "The run was stopped before the answer came."),
        }
    }
}

/// The last attempt of a prompt that was called, whose end nobody saw.
pub(crate) struct Lost<'a> {
    pub(crate) step: Step,
    pub(crate) tries: &'a AttemptState,
    pub(crate) prompt: &'a Prompt,
    pub(crate) why: Unfinished,
}

/// Something other than an attempt or a tool call.
pub(crate) struct Event {
    kind: &'static str,
    run: Option<i64>,
    reply: Option<i64>,
    data: Value,
}

impl Event {
    /// The run is entered again after the process was lost.
    pub(crate) fn recovery(run: &Run) -> Event {
        let data = json!({
            "phase": run.phase.as_str(), "step": run.step, "recoveries": run.recoveries, "resume_at": run.resume_us,
        });
        Event { kind: "recovery", run: Some(run.id), reply: Some(run.block), data }
    }

    /// The first part of an answer that may not begin anew is about to be shown.
    pub(crate) fn shown(attempt: &Attempt) -> Event {
        let run = (attempt.run > 0).then_some(attempt.run);
        let data = json!({ "attempt": attempt.stream, "model_name": attempt.model });
        Event { kind: logs::SHOWN, run, reply: Some(attempt.step.block), data }
    }

    /// The provider goes on with this answer by itself, whatever happens here.
    pub(crate) fn in_background(attempt: &Attempt, response_id: &str) -> Event {
        let run = (attempt.run > 0).then_some(attempt.run);
        let call = attempt.step.call.map(|receipt| format!("c_{receipt}"));
        let data = json!({
            "attempt": attempt.stream, "model_name": attempt.model, "response_id": response_id, "parent_call": call,
        });
        Event { kind: logs::BACKGROUND, run, reply: Some(attempt.step.block), data }
    }

    /// The run failed.
    pub(crate) fn failure(run: &Run, text: &Shown) -> Event {
        let reason = run.end.as_ref().map(|end| end.reason.as_str());
        Event {
            kind: "failure",
            run: Some(run.id),
            reply: None,
            data: json!({ "reason": reason, "error": &**text }),
        }
    }

    /// An effect, or one occurrence of it, was given up.
    pub(crate) fn effect_failure(id: &str, name: &str, attempts: u32, error: &Shown) -> Event {
        let data = json!({ "effect_id": id, "effect_name": name, "attempts": attempts, "error": &**error });
        Event { kind: "effect_failure", run: None, reply: None, data }
    }

    /// Work beside runs was given up; with how many spans were dropped with it, if it was to export them.
    pub(crate) fn job_failure(job: &Job, dropped: Option<u64>, error: &Shown) -> Event {
        let data = json!({
            "job": job.kind.map(Kind::as_str), "subject": job.subject, "attempts": job.attempts, "dropped": dropped,
            "error": &**error,
        });
        Event { kind: "failure", run: None, reply: None, data }
    }

    /// A hook failed.
    pub(crate) fn hook(run: Option<&Run>, hook: &Hook, call_id: &str, error: &Shown) -> Event {
        let data =
            json!({ "hook_id": hook.id, "hook": hook.hook, "hook_call_id": call_id, "error": &**error });
        Event { kind: "hook", run: run.map(|run| run.id), reply: None, data }
    }

    /// What a run begins with.
    pub(crate) fn snapshot(run: i64, data: Value) -> Event {
        Event { kind: "snapshot", run: Some(run), reply: None, data }
    }

    /// A limit of a run or thread was reached, asked about or raised.
    pub(crate) fn budget(run: Option<&Run>, event: &str, mut data: Value) -> Event {
        if let Some(fields) = data.as_object_mut() {
            fields.insert("event".into(), event.into());
        }
        let (id, block) = (run.map(|run| run.id), run.map(|run| run.block));
        Event { kind: "budget", run: id, reply: block, data }
    }

    /// Something that a run finds wrong and goes on with.
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

    /// A run has looked something up in a memory.
    pub(crate) fn memory(run: Option<i64>, data: Value) -> Event {
        Event { kind: logs::MEMORY, run, reply: None, data }
    }

    /// The thread was terminated.
    pub(crate) fn termination(run: Option<&Run>) -> Event {
        Event { kind: "termination", run: run.map(|run| run.id), reply: None, data: json!({}) }
    }

    /// Something about a subagent: `create`, `message`, `return`, `failure`, `status`, `notify`, `terminated`.
    pub(crate) fn subagent(event: &str, child: &Child, run: Option<&Run>, text: Option<&str>) -> Event {
        let data = json!({
            "event": event, "reference": child.reference, "agent": child.agent, "name": child.facts.name,
            "status": child.status, "text": text.map(|text| first_bytes(text, limits::LOGGED_PATH_BYTES)),
        });
        Event { kind: "subagent", run: run.map(|run| run.id), reply: None, data }
    }

    /// The parent is told what a run came to.
    pub(crate) fn told_parent(parent: &str, ending: &str, run: &Run) -> Event {
        let data = json!({ "event": ending, "parent_thread_id": parent });
        Event { kind: "subagent_report", run: Some(run.id), reply: None, data }
    }

    /// A wait is over: who decided what, for ever.
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
        error: &Shown,
    ) -> Event {
        let path = first_bytes(path, limits::LOGGED_PATH_BYTES);
        let data = json!({
            "name": name, "method": method, "path": path, "status": status, "request_id": id, "error": &**error,
        });
        Event { kind: "endpoint", run: None, reply: None, data }
    }

    /// Writes it.
    pub(crate) fn insert(&self, sql: &dyn Sql, now: i64) -> Result<()> {
        insert(sql, self.kind, self.run, now, self.reply, None, &self.data)
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttemptState {
    /// Seq reserved for the reply.
    pub(crate) block: i64,
    /// Place of the model in its chain of fallbacks.
    pub(crate) model: u32,
    /// Attempts at that model, from 1.
    pub(crate) attempt: u32,
    /// Number of the stream under the reply's id; grows with every request.
    pub(crate) stream: u32,
    /// What is told of an inner step whose every attempt has failed. A run ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
    /// Attempts whose end nobody saw, and which no budget has booked yet.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) unseen: u32,
    /// Number of the last stream of which the log says that its end was not seen.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) logged: u32,
}

impl AttemptState {
    /// Of a step.
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

    /// Stores it.
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
pub(crate) const fn is_zero(n: &u32) -> bool {
    *n == 0
}
