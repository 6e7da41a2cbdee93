//! The events of AG-UI, made of the feed of a run.
//!
//! Clients refuse what continues before it begins, a run that ends while something of it is open, and anything behind the end. They add
//! what comes under a known id to what they have. So what was said in an attempt that was lost is taken back by a snapshot of the
//! messages without it. Reasoning stays, as snapshots do not take that back, and the next attempt's has an id of its own; so has the text
//! where the conversation is too long to be kept for snapshots.

use serde_json::{Map, Value};

use crate::api::wire::ag_ui_answers::response_schema;
use crate::api::wire::ag_ui_tanstack::{BINDING, binding};
use crate::api::wire::encode::Encode;
use crate::api::wire::said::{Call, CallResult, Listener, Over, Reply, Said, Waiting, text_of};
use crate::api::wire::sse;
use crate::dates::iso;
use crate::error::Result;
use crate::json;
use crate::sorted::SortedSet;

/// The version of the protocol that is spoken.
const VERSION: &str = "1.0";

/// Bytes of messages that are kept for snapshots while a run is told: many are told at once in one process.
const KEPT_BYTES: usize = 1 << 20;

/// What a client is told, and how.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The conversation as the client names it.
    pub conversation: String,
    /// The client's id of the run.
    pub run: String,
    /// The client's id of the run before.
    pub parent: Option<String>,
    /// The thread.
    pub thread: String,
    /// What models show of their reasoning.
    pub reasoning: bool,
    /// The thread's values.
    pub state: Map<String, Value>,
    /// The messages that the client has: JSON, with commas between them.
    pub held: String,
    /// Whether it has more than those, which it is to forget.
    pub afresh: bool,
    /// Calls whose results the client has.
    pub answered: SortedSet<String>,
    /// A reply that goes on, after its calls were answered.
    pub continues: Option<String>,
}

/// A reply that is being told.
#[derive(Debug, Default)]
struct Open {
    /// The reply.
    message: String,
    /// As what it is told.
    id: String,
    /// How often it was begun.
    tries: u32,
    reasoning: Option<String>,
    /// Whether the reasoning is still open.
    reasons: bool,
    text: Option<String>,
}

impl Open {
    fn reasoning_id(&self) -> String {
        reasoning_id(&self.message, self.tries)
    }
}

/// The id of a message with reasoning.
pub(super) fn reasoning_id(message: &str, tries: u32) -> String {
    match tries {
        0 => format!("{message}:reasoning"),
        tries => format!("{message}:reasoning:{}", tries + 1),
    }
}

/// Makes events of frames.
#[derive(Debug)]
pub struct AgUi {
    settings: Settings,
    listener: Listener,
    begun: bool,
    /// Whether the run was named.
    named: bool,
    open: Option<Open>,
    /// Messages that hold, JSON: those that the client has had, and those of this run that are whole. None if they are too many.
    kept: Option<Vec<String>>,
    bytes: usize,
    over: bool,
    out: String,
}

impl AgUi {
    /// One that has said nothing.
    pub fn new(mut settings: Settings) -> AgUi {
        let held = std::mem::take(&mut settings.held);
        AgUi {
            listener: Listener::new(settings.reasoning, settings.continues.clone()),
            settings,
            begun: false,
            named: false,
            open: None,
            bytes: held.len(),
            kept: Some(vec![held]),
            over: false,
            out: String::new(),
        }
    }

    fn say(&mut self, event: &Value) {
        self.out.push_str(&sse::data(event));
    }

    fn begin(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let Settings { conversation, run, parent, .. } = &self.settings;
        let mut event = json!({
            "type": "RUN_STARTED", "threadId": conversation, "runId": run, "protocolVersion": VERSION,
        });
        if let (Some(parent), Some(fields)) = (parent, event.as_object_mut()) {
            fields.insert("parentRunId".into(), parent.as_str().into());
        }
        self.say(&event);
        if self.settings.afresh {
            self.snapshot();
        }
        self.bound();
        let state = json!({ "type": "STATE_SNAPSHOT", "snapshot": self.settings.state });
        self.say(&state);
    }

    /// The messages that hold, all of them, as far as they are kept.
    fn snapshot(&mut self) {
        let Some(kept) = &self.kept else { return };
        let messages: Vec<&str> = kept.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        self.out.push_str("data: {\"type\":\"MESSAGES_SNAPSHOT\",\"messages\":[");
        self.out.push_str(&messages.join(","));
        self.out.push_str("]}\n\n");
    }

    /// Keeps a message of this run.
    fn keep(&mut self, message: &Value) {
        if let Some(kept) = &mut self.kept {
            let text = message.to_string();
            self.bytes += text.len();
            kept.push(text);
        }
        self.bound();
    }

    fn bound(&mut self) {
        if self.bytes > KEPT_BYTES {
            self.kept = None;
        }
    }

    /// What frames say besides: which run it is, and what changes around it.
    fn beside(&mut self, kind: &str, frame: &Value) {
        let names = !self.named && matches!(kind, "run" | "step_started" | "run_parked" | "run_ended");
        if (!names && kind != "event") || frame.get("depth").and_then(Value::as_u64).unwrap_or(0) > 0 {
            return;
        }
        if kind == "event" {
            self.happened(frame);
        } else if let Some(run) = frame.get("run").and_then(Value::as_str) {
            self.named = true;
            let value = json!({ "threadId": self.settings.thread, "run": run });
            self.say(&json!({ "type": "CUSTOM", "name": "bobbin.run", "value": value }));
        }
    }

    /// What a tool tells whoever listens, and what changes in the thread's values.
    fn happened(&mut self, frame: &Value) {
        let (name, data) = (text_of(frame, "eventType"), frame.get("data").cloned().unwrap_or_default());
        if name != "kv_changed" {
            if !name.is_empty() && name != "summary_updated" {
                self.say(&json!({ "type": "CUSTOM", "name": name, "value": data }));
            }
            return;
        }
        let key = text_of(&data, "key");
        let is_gone = data.get("deleted").and_then(Value::as_bool) == Some(true);
        if is_gone && self.settings.state.remove(key).is_some() {
            let path = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
            self.say(&json!({ "type": "STATE_DELTA", "delta": [{ "op": "remove", "path": path }] }));
        } else if !is_gone {
            // A frame has no value: the next snapshot does, and who wants it earlier reads it.
            self.say(&json!({ "type": "CUSTOM", "name": "bobbin.state_changed", "value": { "key": key } }));
        }
    }

    fn take(&mut self, said: Said) {
        if self.over {
            return;
        }
        match said {
            Said::Begins(message) => {
                self.close();
                self.say(&json!({ "type": "STEP_STARTED", "stepName": message }));
                self.open = Some(Open { id: message.clone(), message, ..Open::default() });
            }
            Said::Reasoning(text) => self.reason(&text),
            Said::Text(text) => self.write(&text),
            Said::TakenBack => self.take_back(),
            Said::Whole(reply) => self.whole_reply(&reply),
            Said::CallBegins(_) => {}
            Said::Result(result) => self.result(&result),
            Said::Waits(waits) => self.wait(&waits),
            Said::Joined => self.finish(&json!({ "type": "success" }), None),
            Said::Over(over) => self.end(&over),
        }
    }

    fn reason(&mut self, new: &str) {
        let Some(open) = &mut self.open else { return };
        let (id, begins) = (open.reasoning_id(), !open.reasons);
        open.reasons = true;
        open.reasoning.get_or_insert_default().push_str(new);
        if begins {
            self.say(&json!({ "type": "REASONING_START", "messageId": id }));
            self.say(&json!({ "type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning" }));
        }
        self.say(&json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": new }));
    }

    fn end_reasoning(&mut self) {
        let Some(open) = &mut self.open else { return };
        if std::mem::take(&mut open.reasons) {
            let id = open.reasoning_id();
            self.say(&json!({ "type": "REASONING_MESSAGE_END", "messageId": id }));
            self.say(&json!({ "type": "REASONING_END", "messageId": id }));
        }
    }

    fn write(&mut self, new: &str) {
        self.end_reasoning();
        let Some(open) = &mut self.open else { return };
        let (id, begins) = (open.id.clone(), open.text.is_none());
        open.text.get_or_insert_default().push_str(new);
        if begins {
            self.say(&json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" }));
        }
        self.say(&json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": new }));
    }

    /// Ends the text, which is given back.
    fn end_text(&mut self) -> Option<String> {
        self.end_reasoning();
        let open = self.open.as_mut()?;
        let (id, text) = (open.id.clone(), open.text.take()?);
        self.say(&json!({ "type": "TEXT_MESSAGE_END", "messageId": id }));
        Some(text)
    }

    fn take_back(&mut self) {
        let said = self.end_text().is_some();
        let can_be_unsaid = self.kept.is_some();
        if let Some(open) = &mut self.open {
            open.tries += 1;
            open.reasoning = None;
            if said && !can_be_unsaid {
                open.id = format!("{}:{}", open.message, open.tries + 1);
            }
        }
        if said {
            self.snapshot();
        }
    }

    fn whole_reply(&mut self, reply: &Reply) {
        let text = self.end_text();
        let Some(open) = &mut self.open else { return };
        let (id, reasoning_id, reasoning) = (open.id.clone(), open.reasoning_id(), open.reasoning.take());
        if let Some(reasoning) = reasoning {
            self.keep(&json!({ "id": reasoning_id, "role": "reasoning", "content": reasoning }));
        }
        for Call { id: call, name, arguments } in &reply.calls {
            let begins = json!({
                "type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": name, "parentMessageId": id,
            });
            self.say(&begins);
            if !arguments.is_empty() {
                self.say(&json!({ "type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": arguments }));
            }
            self.say(&json!({ "type": "TOOL_CALL_END", "toolCallId": call }));
        }
        if text.is_some() || !reply.calls.is_empty() {
            self.keep(&assistant(&id, &text.unwrap_or_default(), &reply.calls));
        }
    }

    fn result(&mut self, result: &CallResult) {
        // A client that has carried it out has the result under an id of its own.
        if self.settings.answered.contains(&result.call) {
            return;
        }
        let CallResult { message, call, text, failed, .. } = result;
        let mut event = json!({
            "type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": call, "content": text, "role": "tool",
        });
        if let (true, Some(fields)) = (*failed, event.as_object_mut()) {
            fields.insert("metadata".into(), json!({ "bobbin": { "failed": true } }));
        }
        self.say(&event);
        self.keep(&tool(message, call, text, *failed));
    }

    /// What is waited for: calls that the client makes, and what people are asked.
    fn wait(&mut self, waits: &[Waiting]) {
        let interrupts: Vec<Value> =
            waits.iter().filter_map(|wait| pending(&wait.shown, &self.settings.run)).collect();
        if interrupts.is_empty() {
            let calls = waits.iter().filter(|wait| wait.kind == "client_tool");
            let ids: Vec<&Value> = calls.filter_map(|wait| wait.shown.pointer("/call/id")).collect();
            return self.finish(&json!({ "type": "success", "pendingToolCallIds": ids }), None);
        }
        self.close();
        // They are to have all of it before they are asked.
        self.snapshot();
        self.finish(&json!({ "type": "interrupt", "interrupts": interrupts }), None);
    }

    fn end(&mut self, over: &Over) {
        match over.outcome.as_str() {
            "completed" => self.finish(&json!({ "type": "success" }), over.usage.as_ref()),
            "stopped" => self.finish(&json!({ "type": "cancelled" }), over.usage.as_ref()),
            _ => {
                self.close();
                let mut event = json!({ "type": "RUN_ERROR", "message": over.told, "code": over.reason });
                with_usage(&mut event, over.usage.as_ref());
                self.say(&event);
                self.over = true;
            }
        }
    }

    /// Ends what is open.
    fn close(&mut self) {
        self.end_text();
        if let Some(open) = self.open.take() {
            self.say(&json!({ "type": "STEP_FINISHED", "stepName": open.message }));
        }
    }

    fn finish(&mut self, outcome: &Value, usage: Option<&Value>) {
        self.close();
        let Settings { conversation, run, .. } = &self.settings;
        let mut event =
            json!({ "type": "RUN_FINISHED", "threadId": conversation, "runId": run, "outcome": outcome });
        with_usage(&mut event, usage);
        self.say(&event);
        self.over = true;
    }
}

impl Encode for AgUi {
    fn push(&mut self, events: &str) -> Result<String> {
        if self.over {
            return Ok(String::new());
        }
        self.begin();
        for (kind, frame) in sse::frames(events)? {
            if self.over {
                break;
            }
            self.beside(kind, &frame);
            for said in self.listener.take(kind, &frame)? {
                self.take(said);
            }
        }
        Ok(std::mem::take(&mut self.out))
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn status(&self) -> u16 {
        200
    }

    fn whole(&self) -> Value {
        json!({ "threadId": self.settings.conversation, "runId": self.settings.run })
    }
}

/// A reply as a message.
pub(super) fn assistant(id: &str, text: &str, calls: &[Call]) -> Value {
    let mut message = json!({ "id": id, "role": "assistant", "content": text });
    if let (false, Some(fields)) = (calls.is_empty(), message.as_object_mut()) {
        let calls = calls.iter().map(|Call { id, name, arguments }| {
            json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
        });
        fields.insert("toolCalls".into(), calls.collect());
    }
    message
}

/// The result of a call as a message.
pub(super) fn tool(id: &str, call: &str, text: &str, failed: bool) -> Value {
    let mut message = json!({ "id": id, "role": "tool", "toolCallId": call, "content": text });
    if let (true, Some(fields)) = (failed, message.as_object_mut()) {
        fields.insert("error".into(), text.into());
    }
    message
}

/// What somebody is asked in a run, as the list of waits shows it; nothing for what is left to the client, and what nobody decides.
pub fn pending(wait: &Value, run: &str) -> Option<Value> {
    let asks = !matches!(text_of(wait, "kind"), "client_tool" | "children" | "retry" | "task");
    asks.then(|| interrupt(wait, run))
}

/// What somebody is asked.
fn interrupt(wait: &Value, run: &str) -> Value {
    let reason = match text_of(wait, "kind") {
        "approval" => "tool_call".to_owned(),
        "question" | "elicitation" => "input_required".to_owned(),
        kind => format!("bobbin:{kind}"),
    };
    let schema = response_schema(wait);
    let mut interrupt = json!({
        "id": wait.get("id"), "reason": reason,
        "metadata": { "bobbin": wait, BINDING: binding(text_of(wait, "id"), run, &schema) },
        "responseSchema": schema,
    });
    if let Some(fields) = interrupt.as_object_mut() {
        let title = ["title", "reason"].into_iter().map(|name| text_of(wait, name));
        let lines: Vec<&str> = title.filter(|line| !line.is_empty()).collect();
        if !lines.is_empty() {
            fields.insert("message".into(), lines.join("\n").into());
        }
        let call = wait.pointer("/call/id").filter(|id| id.is_string());
        fields.extend(call.map(|id| ("toolCallId".to_owned(), id.clone())));
        let until = wait.get("expiresAt").and_then(Value::as_i64);
        fields.extend(until.map(|us| ("expiresAt".to_owned(), iso(us).into())));
    }
    interrupt
}

/// What was used, in their words.
fn with_usage(event: &mut Value, usage: Option<&Value>) {
    let (Some(usage), Some(fields)) = (usage, event.as_object_mut()) else { return };
    let number = |name: &str| usage.get(name).and_then(Value::as_i64).unwrap_or(0).max(0);
    let (input, output) = (number("inputTokens"), number("outputTokens"));
    let usage = json!([{ "inputTokens": input, "outputTokens": output, "totalTokens": input + output }]);
    fields.insert("usage".into(), usage);
}
