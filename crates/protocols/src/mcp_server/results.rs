//! Results for MCP clients, derived from the feed of a run: a tool result with progress notifications, the
//! state of a thread, or a task.

use serde_json::{Map, Value};

use crate::access::{Caller, Scope};
use crate::encode::{Encode, call};
use crate::mcp_server::content::{self, CallTarget};
use crate::mcp_server::input::{Reaction, pending, reaction, requests, told};
use crate::mcp_server::messages::{Era, INTERNAL, Refusal, answer, fresh};
use crate::mcp_server::state::{QuestionState, Seal};
use crate::request::{Query, ThreadRoute};
use crate::run_events::{Listener, RunEnd, RunEvent, text_of};
use crate::sse;
use bobbin_definitions::dates::iso;
use bobbin_definitions::error::{Error, Result};
use bobbin_definitions::json;

/// The kind of result.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// The result of `ask_<agent>`.
    Answer,
    /// The result of a tool's call.
    Call(CallTarget),
    /// The result of `thread_get`.
    Thread,
    /// A task.
    Task(Task),
}

/// The fixed fields of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// When it was created, microseconds since 1970.
    pub created_us: i64,
    /// Now.
    pub now_us: i64,
}

/// The fields of `_meta` that name the thread of a call, and its run.
const THREAD: &str = "dev.bobbin/thread";
const RUN: &str = "dev.bobbin/run";

/// Poll interval for work in progress, milliseconds.
const POLL_MS: u32 = 2_000;

/// Interval of heartbeats on a stream, milliseconds. A disconnected client is only detected by a failed
/// write.
const BEAT_MS: u32 = 2_000;
/// Number of heartbeats per progress notification.
const BEATS_PER_NOTE: u32 = 3;

/// Settings of a response.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The id of the request.
    pub id: Option<Value>,
    /// The client's kind of revision.
    pub era: Era,
    /// The kind of result.
    pub shape: Shape,
    /// The thread.
    pub thread: String,
    /// The message whose run it is.
    pub message: String,
    /// The token of progress notifications, if the client wants any.
    pub progress: Option<Value>,
    /// Whether the client shows forms.
    pub forms: bool,
    /// The seal for states of forms. Without it only tasks use forms.
    pub seal: Option<Seal>,
    /// Answers that the client sent in advance, by the names that a tool gives its questions.
    pub given: Map<String, Value>,
    /// The seal for ids of requests on the stream. Without it no request is sent there.
    pub elicits: Option<Seal>,
    /// The caller.
    pub caller: Caller,
    /// The run, if this call began it and nobody else waits for it. It is stopped if the client disconnects.
    pub began: Option<String>,
}

/// Converts frames into a response.
#[derive(Debug)]
pub struct Ask {
    settings: Settings,
    listener: Listener,
    run: Option<String>,
    /// The last completed text, and the one in progress.
    last: String,
    text: String,
    told: u64,
    beats: u32,
    doing: String,
    /// The result of the last tool.
    given: String,
    /// Waits for which requests were sent on the stream.
    elicited: Vec<String>,
    /// Decisions to send to the thread, from answers that the client sent in advance.
    decided: Option<String>,
    /// The waits of these decisions.
    waits: Vec<Value>,
    end: Option<End>,
    /// The outcome of a finished call, after the thread has returned it.
    called: Option<Value>,
}

#[derive(Debug)]
enum End {
    Waits(Vec<Value>),
    Over(RunEnd),
}

impl Ask {
    /// A response without content.
    pub fn new(settings: Settings) -> Ask {
        Ask {
            listener: Listener::new(false, None),
            run: settings.began.clone(),
            settings,
            last: String::new(),
            text: String::new(),
            told: 0,
            beats: 0,
            doing: "The agent is at work.".to_owned(),
            given: String::new(),
            elicited: Vec::new(),
            decided: None,
            waits: Vec::new(),
            end: None,
            called: None,
        }
    }

    fn take(&mut self, said: RunEvent) -> Option<String> {
        match said {
            RunEvent::Begins(_) | RunEvent::Reasoning(_) | RunEvent::Continues(_) | RunEvent::Joined => None,
            RunEvent::Text(text) => {
                self.text.push_str(&text);
                None
            }
            RunEvent::TakenBack => {
                self.text.clear();
                None
            }
            RunEvent::Whole(_) => {
                let text = std::mem::take(&mut self.text);
                if !text.is_empty() {
                    self.last = text;
                }
                None
            }
            RunEvent::CallBegins(call) => self.progress(format!("Calls {}.", call.name)),
            RunEvent::Result(result) => {
                let how = if result.failed { "failed" } else { "has answered" };
                self.given = result.text;
                self.progress(format!("{} {how}.", result.name))
            }
            RunEvent::Waits(waits) => {
                let waits: Vec<Value> = waits.into_iter().map(|wait| wait.shown).collect();
                if self.decides(&waits) {
                    self.waits = waits;
                    return None;
                }
                let asked = self.elicit(&waits);
                if asked.is_none() {
                    self.end = Some(End::Waits(waits));
                }
                asked
            }
            RunEvent::Over(over) => {
                self.end = Some(End::Over(over));
                None
            }
        }
    }

    /// Decides waits with answers that the client sent in advance. Returns whether it has any.
    fn decides(&mut self, waits: &[Value]) -> bool {
        let mut decisions = Vec::new();
        for wait in waits {
            // Each answer is used once. If it does not fit, the question is sent.
            let response = self.settings.given.remove(text_of(wait, "name"));
            if let Reaction::Decided(mut decision) = reaction(wait, response.as_ref()) {
                set(&mut decision, "id", wait.get("id").cloned().unwrap_or_default());
                decisions.push(decision);
            }
        }
        if decisions.is_empty() {
            return false;
        }
        self.decided = self.request(ThreadRoute::DecideWaits, &json!({ "decisions": decisions }).to_string());
        self.decided.is_some()
    }

    /// Requests on the stream, for clients of the older revisions. `None` if no wait can be sent that way.
    /// The run is followed until it continues.
    fn elicit(&mut self, waits: &[Value]) -> Option<String> {
        let seal = self.settings.elicits.clone()?;
        let (asked, ids) = self.asked(waits);
        let mut text = String::new();
        for (key, id) in ids {
            let Some(request) = asked.get(&key).filter(|_| !self.elicited.contains(&id)) else { continue };
            self.elicited.push(id.clone());
            let Settings { thread, message, .. } = &self.settings;
            let state = QuestionState {
                thread: thread.clone(),
                message: message.clone(),
                began: None,
                waits: vec![(key, id)],
            };
            let mut request = request.clone();
            set(&mut request, "jsonrpc", "2.0".into());
            set(&mut request, "id", seal.close(state).into());
            text.push_str(&sse::data(&request));
        }
        (!asked.is_empty()).then_some(text)
    }

    fn progress(&mut self, doing: String) -> Option<String> {
        self.doing = doing;
        self.told += 1;
        let token = self.settings.progress.as_ref()?;
        let params = json!({ "progressToken": token, "progress": self.told, "message": self.doing });
        Some(sse::data(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })))
    }

    /// A request to the thread's object.
    fn request(&self, route: ThreadRoute, body: &str) -> Option<String> {
        call(&self.settings.thread, &self.settings.caller, route, Query::default(), body)
    }

    /// The text so far.
    fn words(&self) -> &str {
        if self.text.is_empty() { &self.last } else { &self.text }
    }

    /// The result of `ask_<agent>`. It repeats the text in its structured content, because some clients show
    /// a model nothing else.
    fn answered(
        &self,
        text: &str,
        outcome: Option<&str>,
        reason: Option<&str>,
        failed: ResultStatus,
    ) -> Value {
        let mut structured = self.structured(outcome, reason);
        let words = self.words();
        set(&mut structured, "reply", if words.is_empty() { Value::Null } else { words.into() });
        complete(text, structured, failed)
    }

    fn structured(&self, outcome: Option<&str>, reason: Option<&str>) -> Value {
        json!({ "thread": self.settings.thread, "run": self.run, "outcome": outcome, "reason": reason })
    }

    /// The outcome of a call.
    fn call(&self, of: &CallTarget) -> Result<Value, String> {
        let over = match &self.end {
            Some(End::Over(over)) => over,
            Some(End::Waits(waits)) => return Ok(self.parked(waits)),
            None => return Ok(complete(&self.doing, self.structured(None, None), ResultStatus::No)),
        };
        let called = self.called.clone().filter(|called| called.get("failed").is_some());
        // It was stopped before it had a result.
        let called = called.unwrap_or_else(|| json!({ "failed": true, "text": over.told }));
        let mut result = content::result(of, &self.settings.thread, &called)?;
        if let (CallTarget::Resource { .. }, Era::Modern) = (of, self.settings.era) {
            result = fresh(result);
        }
        set(&mut result, "_meta", json!({ THREAD: self.settings.thread, RUN: self.run }));
        Ok(result)
    }

    /// The result of a tool.
    fn result(&self) -> Value {
        match &self.end {
            None => self.answered(self.words(), None, None, ResultStatus::No),
            Some(End::Waits(waits)) => self.parked(waits),
            Some(End::Over(over)) => {
                let failed = if over.outcome == "completed" { ResultStatus::No } else { ResultStatus::Yes };
                let text = if failed == ResultStatus::No { self.words() } else { &over.told };
                self.answered(text, Some(&over.outcome), Some(&over.reason), failed)
            }
        }
    }

    /// The result with open questions, as forms if the client shows them.
    fn parked(&self, waits: &[Value]) -> Value {
        let Settings { thread, message, began, .. } = &self.settings;
        let (asked, ids) = self.asked(waits);
        if let (false, Some(seal), Era::Modern) = (asked.is_empty(), &self.settings.seal, self.settings.era) {
            let state = QuestionState {
                thread: thread.clone(),
                message: message.clone(),
                began: began.clone(),
                waits: ids,
            };
            return json!({
                "resultType": "input_required", "inputRequests": asked, "requestState": seal.close(state),
            });
        }
        let reason = format!("waiting_for_{}", waits.first().map_or("", |wait| text_of(wait, "kind")));
        let mut structured = self.structured(Some("parked"), Some(&reason));
        set(&mut structured, "pending", pending(waits).into());
        complete(&told(thread, waits), structured, ResultStatus::No)
    }

    /// The forms that the client is to show.
    fn asked(&self, waits: &[Value]) -> (Map<String, Value>, Vec<(String, String)>) {
        if !self.settings.forms {
            return Default::default();
        }
        let may =
            |wait: &&Value| self.settings.caller.scope == Scope::Admin || text_of(wait, "by") != "admin";
        let waits: Vec<Value> = waits.iter().filter(may).cloned().collect();
        requests(&waits)
    }

    /// The state of the thread.
    fn thread(&self) -> Value {
        let mut structured = match &self.end {
            None => self.structured(None, None),
            Some(End::Waits(waits)) => {
                let mut structured = self.structured(Some("parked"), None);
                set(&mut structured, "pending", pending(waits).into());
                structured
            }
            Some(End::Over(over)) => self.structured(Some(&over.outcome), Some(&over.reason)),
        };
        let (state, poll) = match &self.end {
            None => ("running", Some(POLL_MS)),
            Some(End::Waits(_)) => ("parked", Some(POLL_MS)),
            Some(End::Over(_)) => ("idle", None),
        };
        set(&mut structured, "state", state.into());
        set(&mut structured, "poll_after_ms", json!(poll));
        let words = self.words();
        // The thread of a call has no text except the tool's result.
        let words = if words.is_empty() && self.end.is_some() { &self.given } else { words };
        set(&mut structured, "reply", if words.is_empty() { Value::Null } else { words.into() });
        let text = match &self.end {
            Some(End::Waits(waits)) => told(&self.settings.thread, waits),
            Some(End::Over(over)) if over.outcome != "completed" => over.told.clone(),
            Some(End::Over(_)) => words.to_owned(),
            None => format!("It is at work. {} Look again with thread_get.", self.doing),
        };
        complete(&text, structured, ResultStatus::No)
    }

    fn task(&self, task: &Task) -> Value {
        let mut shown = shown(task, "working");
        match &self.end {
            None => set(&mut shown, "statusMessage", self.doing.as_str().into()),
            Some(End::Waits(waits)) => {
                let (asked, _) = self.asked(waits);
                if asked.is_empty() {
                    set(&mut shown, "statusMessage", told(&self.settings.thread, waits).into());
                } else {
                    set(&mut shown, "status", "input_required".into());
                    set(&mut shown, "inputRequests", Value::Object(asked));
                }
            }
            Some(End::Over(over)) if over.outcome == "stopped" => {
                set(&mut shown, "status", "cancelled".into());
                set(&mut shown, "statusMessage", over.told.as_str().into());
            }
            Some(End::Over(_)) => {
                let mut result = self.result();
                set(&mut result, "resultType", "complete".into());
                set(&mut shown, "status", "completed".into());
                set(&mut shown, "result", result);
            }
        }
        shown
    }
}

/// A task with its current status.
pub fn shown(task: &Task, status: &str) -> Value {
    json!({
        "taskId": task.id, "status": status, "createdAt": iso(task.created_us), "lastUpdatedAt": iso(task.now_us),
        "ttlMs": null, "pollIntervalMs": POLL_MS,
    })
}

/// Whether a tool has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultStatus {
    /// It has not.
    No,
    /// It has; the result has the reason.
    Yes,
}

/// The result of a tool.
pub fn complete(text: &str, structured: Value, failed: ResultStatus) -> Value {
    json!({
        "content": [{ "type": "text", "text": text }],
        "structuredContent": structured,
        "isError": failed == ResultStatus::Yes,
    })
}

impl Ask {
    /// The thread refused the client's advance answers, so the questions are sent.
    fn asks_after_all(&mut self, body: &str) -> Result<String> {
        let waits = std::mem::take(&mut self.waits);
        if waits.is_empty() {
            return Err(Error::internal(format!("answers were refused: {body}")));
        }
        self.end = Some(End::Waits(waits));
        Ok(sse::data(&self.whole()))
    }
}

impl Encode for Ask {
    fn push(&mut self, events: &str) -> Result<String> {
        let mut text = String::new();
        if self.end.is_some() {
            return Ok(text);
        }
        for (kind, frame) in sse::frames(events)? {
            if let ("run" | "run_parked" | "run_ended", Some(run)) =
                (kind, frame.get("run").and_then(Value::as_str))
            {
                self.run = Some(run.to_owned());
            }
            if let ("progress", Some("note"), Some(note)) = (
                kind,
                frame.get("kind").and_then(Value::as_str),
                frame.get("message").and_then(Value::as_str),
            ) {
                text.extend(self.progress(note.to_owned()));
            }
            for said in self.listener.take(kind, &frame)? {
                if self.end.is_none() {
                    text.extend(self.take(said));
                }
            }
        }
        if self.is_over() {
            text.push_str(&sse::data(&self.whole()));
        }
        Ok(text)
    }

    fn is_over(&self) -> bool {
        match (&self.end, &self.settings.shape) {
            (Some(End::Over(_)), Shape::Call(_)) => self.called.is_some(),
            (end, _) => end.is_some(),
        }
    }

    fn asks(&mut self) -> Option<String> {
        if let Some(decided) = self.decided.take() {
            return Some(decided);
        }
        if self.is_over() || self.end.is_none() {
            return None;
        }
        self.request(ThreadRoute::Called(self.settings.message.clone()), "")
    }

    fn answered(&mut self, status: u16, body: &str) -> Result<String> {
        if self.end.is_none() {
            return if status < 300 { Ok(String::new()) } else { self.asks_after_all(body) };
        }
        let called: Value = bobbin_definitions::json::from_str(body).map_err(Error::internal)?;
        if status >= 500 {
            return Err(Error::internal("a thread could not say what came of a call"));
        }
        self.called = Some(called);
        Ok(sse::data(&self.whole()))
    }

    fn status(&self) -> u16 {
        200
    }

    fn whole(&self) -> Value {
        let Settings { id, era, .. } = &self.settings;
        let result = match &self.settings.shape {
            Shape::Answer => self.result(),
            Shape::Call(of) => match self.call(of) {
                Ok(result) => result,
                Err(text) => return Refusal::new(200, id.as_ref(), INTERNAL, &text, None).body,
            },
            Shape::Thread => self.thread(),
            Shape::Task(task) => self.task(task),
        };
        answer(id.as_ref(), *era, result)
    }

    fn beat_ms(&self) -> Option<u32> {
        Some(BEAT_MS)
    }

    fn beat(&mut self) -> Option<String> {
        self.beats += 1;
        if self.beats.is_multiple_of(BEATS_PER_NOTE) { self.progress(self.doing.clone()) } else { None }
    }

    fn leaving(&self) -> Option<String> {
        let run = self.settings.began.as_ref().filter(|_| self.end.is_none())?;
        self.request(ThreadRoute::Stop, &json!({ "run": run }).to_string())
    }
}

fn set(value: &mut Value, name: &str, field: Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(name.to_owned(), field);
    }
}
