//! Responses of OpenAI's chat completions: the feed of a run as one `chat.completion`, or as its chunks.
//!
//! The texts of all replies of the run form one text, with a blank line between them. Calls of the server's
//! own tools are not shown as `tool_calls`, because clients try to run those. Text of a lost attempt cannot
//! be retracted from a stream: the next attempt follows after a blank line. The stored message, and a whole
//! response, contain the last attempt only.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::encode::Encode;
use crate::openai::call_id;
use crate::openai::errors;
use crate::run_events::{Call, Listener, OpenWait, RunEnd, RunEvent};
use crate::sse;
use bobbin_definitions::error::Result;
use bobbin_definitions::json;

/// Settings of a response.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The answer's id.
    pub id: String,
    /// The requested agent.
    pub model: String,
    /// Seconds since 1970.
    pub created: i64,
    /// The thread, for texts about decisions that are made elsewhere.
    pub thread: String,
    /// Whether the last chunk of a stream has the usage.
    pub usage: bool,
    /// Whether reasoning is shown, as `reasoning_content`.
    pub reasoning: bool,
    /// Whether calls of the server's tools are shown, as lines of `reasoning_content`.
    pub tools: bool,
    /// Tools that the client runs.
    pub client_tools: BTreeSet<String>,
    /// A reply that continues after its calls were answered.
    pub continues: Option<String>,
    /// A call of the thread's object for the case that the client disconnects before the end.
    pub leaving: Option<String>,
}

/// Converts frames into chunks, or a whole response.
#[derive(Debug)]
pub struct Completion {
    settings: Settings,
    listener: Listener,
    /// Whether anything was sent.
    begun: bool,
    /// Texts of the valid replies so far; the last one is in progress.
    texts: Vec<String>,
    /// Whether a blank line is due before the next text.
    apart: bool,
    sent_text: bool,
    reasoning: String,
    /// Calls of the last reply that are left to the client.
    asked: Vec<Call>,
    calls: Vec<Call>,
    end: Option<End>,
    out: Vec<Value>,
}

/// The end of the response.
#[derive(Debug)]
enum End {
    Finished { reason: &'static str, parked: bool, usage: Option<Value> },
    Failed(RunEnd),
}

impl Completion {
    /// A response without content.
    pub fn new(settings: Settings) -> Completion {
        let reasoning = settings.reasoning;
        let listener = Listener::new(reasoning, settings.continues.clone());
        Completion {
            settings,
            listener,
            begun: false,
            texts: Vec::new(),
            apart: false,
            sent_text: false,
            reasoning: String::new(),
            asked: Vec::new(),
            calls: Vec::new(),
            end: None,
            out: Vec::new(),
        }
    }

    fn take(&mut self, said: RunEvent) {
        if self.end.is_some() {
            return;
        }
        match said {
            RunEvent::Begins(_) => {
                self.texts.push(String::new());
                self.apart = true;
            }
            RunEvent::Reasoning(text) => self.reason(&text),
            RunEvent::Text(text) => self.write(&text),
            RunEvent::TakenBack => {
                if let Some(text) = self.texts.last_mut() {
                    text.clear();
                }
                self.apart = true;
            }
            RunEvent::Whole(reply) => {
                let of_client = reply.calls.into_iter().filter(|call| self.is_of_client(&call.name));
                self.asked = of_client.collect();
            }
            // The response had ended with this call, and is read again.
            RunEvent::Result(result) if self.asked.iter().any(|call| call.id == result.call) => {
                let asked = std::mem::take(&mut self.asked);
                self.leave(asked);
            }
            RunEvent::CallBegins(call) if self.settings.tools && !self.is_of_client(&call.name) => {
                self.reason(&format!("{}({})\n", call.name, call.arguments));
            }
            RunEvent::Result(result) if self.settings.tools && !self.is_of_client(&result.name) => {
                self.reason(&format!("{}: {}\n", result.name, if result.failed { "failed" } else { "done" }));
            }
            RunEvent::CallBegins(_) | RunEvent::Result(_) | RunEvent::Continues(_) => {}
            RunEvent::Waits(waits) => self.wait(&waits),
            RunEvent::Joined => self.finish(End::Finished { reason: "stop", parked: false, usage: None }),
            RunEvent::Over(over) if over.outcome == "completed" => {
                self.finish(End::Finished { reason: "stop", parked: false, usage: over.usage });
            }
            RunEvent::Over(over) => self.finish(End::Failed(over)),
        }
    }

    fn is_of_client(&self, tool: &str) -> bool {
        self.settings.client_tools.contains(tool)
    }

    fn write(&mut self, text: &str) {
        if let Some(last) = self.texts.last_mut() {
            last.push_str(text);
        }
        let apart = std::mem::replace(&mut self.apart, false) && self.sent_text;
        self.sent_text = true;
        let sent = if apart { format!("\n\n{text}") } else { text.to_owned() };
        self.delta(json!({ "content": sent }));
    }

    /// More reasoning. Clients that use OpenAI's package to collect a stream get all of it in Python, but
    /// only the last piece in JavaScript, because the field is not part of OpenAI's types.
    fn reason(&mut self, text: &str) {
        self.reasoning.push_str(text);
        self.delta(json!({ "reasoning_content": text }));
    }

    /// Ends at a wait: calls of the client, or decisions that are made elsewhere.
    fn wait(&mut self, waits: &[OpenWait]) {
        let of_client = |wait: &&OpenWait| wait.kind == "client_tool";
        let calls: Vec<Call> = waits.iter().filter(of_client).filter_map(|wait| wait.call.clone()).collect();
        if calls.len() == waits.len() && !calls.is_empty() {
            return self.leave(calls);
        }
        let lines: Vec<String> = waits.iter().map(|wait| wait.line(&self.settings.thread)).collect();
        self.texts.push(String::new());
        self.apart = true;
        self.write(&lines.join("\n"));
        self.finish(End::Finished { reason: "stop", parked: true, usage: None });
    }

    /// Ends with calls that the client is to run.
    fn leave(&mut self, mut calls: Vec<Call>) {
        for call in &mut calls {
            call.id = call_id::told(&call.id, &self.settings.thread);
        }
        let listed = calls.iter().enumerate().map(|(index, call)| shown(call, Some(index)));
        let delta = json!({ "tool_calls": listed.collect::<Vec<_>>() });
        self.calls = calls;
        self.delta(delta);
        self.finish(End::Finished { reason: "tool_calls", parked: true, usage: None });
    }

    fn delta(&mut self, mut delta: Value) {
        if !std::mem::replace(&mut self.begun, true)
            && let Some(fields) = delta.as_object_mut()
        {
            fields.insert("role".into(), "assistant".into());
        }
        let chunk =
            self.chunk(json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": null }]));
        self.out.push(chunk);
    }

    fn chunk(&self, choices: Value) -> Value {
        let Settings { id, model, created, .. } = &self.settings;
        json!({ "id": id, "object": "chat.completion.chunk", "created": created, "model": model, "choices": choices })
    }

    fn finish(&mut self, end: End) {
        match &end {
            End::Failed(over) => self.out.push(error_of(over)),
            End::Finished { reason, usage, .. } => {
                if !self.begun {
                    self.delta(json!({ "content": "" }));
                }
                let choices = json!([{ "index": 0, "delta": {}, "logprobs": null, "finish_reason": reason }]);
                let last = self.chunk(choices);
                self.out.push(last);
                if self.settings.usage {
                    let mut chunk = self.chunk(json!([]));
                    if let Some(fields) = chunk.as_object_mut() {
                        fields.insert("usage".into(), usage.as_ref().map(usage_of).unwrap_or_default());
                    }
                    self.out.push(chunk);
                }
            }
        }
        self.end = Some(end);
    }
}

impl Encode for Completion {
    fn push(&mut self, events: &str) -> Result<String> {
        if self.end.is_some() {
            return Ok(String::new());
        }
        for (kind, frame) in sse::frames(events)? {
            for said in self.listener.take(kind, &frame)? {
                self.take(said);
            }
        }
        let mut text: String = std::mem::take(&mut self.out).iter().map(sse::data).collect();
        if self.end.is_some() {
            text.push_str(sse::DONE);
        }
        Ok(text)
    }

    fn is_over(&self) -> bool {
        self.end.is_some()
    }

    fn status(&self) -> u16 {
        match &self.end {
            Some(End::Failed(_)) => FAILED,
            _ => 200,
        }
    }

    fn whole(&self) -> Value {
        let Settings { id, model, created, .. } = &self.settings;
        let (reason, usage) = match &self.end {
            Some(End::Failed(over)) => return error_of(over),
            Some(End::Finished { reason, usage, .. }) => (*reason, usage.as_ref().map(usage_of)),
            None => ("stop", None),
        };
        let texts: Vec<&str> =
            self.texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        let mut message = Map::new();
        message.insert("role".into(), "assistant".into());
        let content = texts.join("\n\n");
        message.insert(
            "content".into(),
            if self.calls.is_empty() || !content.is_empty() { content.into() } else { Value::Null },
        );
        message.insert("refusal".into(), Value::Null);
        if !self.reasoning.is_empty() {
            message.insert("reasoning_content".into(), self.reasoning.as_str().into());
        }
        if !self.calls.is_empty() {
            message.insert("tool_calls".into(), self.calls.iter().map(|call| shown(call, None)).collect());
        }
        let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": reason });
        let mut whole = json!({
            "id": id, "object": "chat.completion", "created": created, "model": model, "choices": [choice],
        });
        if let (Some(usage), Some(fields)) = (usage, whole.as_object_mut()) {
            fields.insert("usage".into(), usage);
        }
        whole
    }

    fn leaving(&self) -> Option<String> {
        self.settings.leaving.clone().filter(|_| self.end.is_none())
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        match &self.end {
            Some(End::Finished { parked: true, .. }) => vec![("x-bobbin-state", "parked".to_owned())],
            // A retry would fail in the same way, because the run has already retried as its models allow.
            Some(End::Failed(_)) => vec![("x-should-retry", "false".to_owned())],
            _ => Vec::new(),
        }
    }
}

/// The status of a run that failed.
const FAILED: u16 = 502;

fn error_of(over: &RunEnd) -> Value {
    errors::body(FAILED, &over.reason, &over.told, None)
}

fn shown(call: &Call, index: Option<usize>) -> Value {
    let mut shown = json!({
        "id": call.id, "type": "function", "function": { "name": call.name, "arguments": call.arguments },
    });
    if let (Some(index), Some(fields)) = (index, shown.as_object_mut()) {
        fields.insert("index".into(), index.into());
    }
    shown
}

/// The usage in OpenAI's format.
pub(super) fn usage_of(usage: &Value) -> Value {
    let number = |name: &str| usage.get(name).and_then(Value::as_i64).unwrap_or(0);
    let (input, output) = (number("inputTokens"), number("outputTokens"));
    json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output })
}
