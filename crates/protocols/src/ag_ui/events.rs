//! AG-UI events, derived from the feed of a run.
//!
//! Clients reject a continuation without its start, a run that ends while a part of it is open, and events
//! after the end. They append content with a known id to the content that they have. So a snapshot of the
//! messages without the text of a lost attempt retracts that text. Snapshots do not retract reasoning, so
//! reasoning stays and the next attempt uses a new id. The text also gets a new id if the conversation is too
//! long to be kept for snapshots.
//!
//! A client that reconnects with the id of its last event receives the events after it ([`ResumableStream`]). If that
//! client has read text of a lost attempt, a snapshot retracts the text here too.
//!
//! The thread's values are read after the socket is open, so that no change between the two is missed. No
//! other event is sent before them. The end of the run is sent after all earlier changes of values.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::access::Caller;
use crate::ag_ui::parts::{assistant, pending, reasoning_id, tool, with_usage};
use crate::ag_ui::request::{Results, Version};
use crate::ag_ui::resume::{Position, ResumableStream};
use crate::ag_ui::state::ClientState;
use crate::encode::{Encode, call};
use crate::request::{Query, ThreadRoute};
use crate::run_events::{Call, CallResult, Listener, OpenWait, Reply, RunEnd, RunEvent, seq_of, text_of};
use crate::sse;
use bobbin_definitions::error::Result;
use bobbin_definitions::json;

/// The version of the protocol.
const VERSION: &str = "1.0";

/// Maximum size of the messages that are kept for snapshots during a run, bytes. One process serves many
/// runs.
const KEPT_BYTES: usize = 1 << 20;

/// Settings of a stream.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The client's id of the conversation.
    pub conversation: String,
    /// The client's id of the run.
    pub run: String,
    /// The client's id of the run before.
    pub parent: Option<String>,
    /// The thread.
    pub thread: String,
    /// Whether reasoning is shown.
    pub reasoning: bool,
    /// The prefix of the ids of events; different for each message or run that is streamed.
    pub told_of: String,
    /// The position up to which the client has read this stream.
    pub after: Option<Position>,
    /// The caller.
    pub caller: Option<Caller>,
    /// The client's messages: JSON, separated by commas.
    pub held: String,
    /// Whether the client has messages besides those, which it must discard.
    pub afresh: bool,
    /// Results of calls that the client has.
    pub results: Results,
    /// Tools that clients run.
    pub client_tools: BTreeSet<String>,
    /// The client's version of the protocol.
    pub version: Version,
    /// A reply that continues after its calls were answered.
    pub continues: Option<String>,
}

/// A reply that is being streamed.
#[derive(Debug, Default)]
struct OpenReply {
    /// The reply.
    message: String,
    /// The message id that the client receives.
    id: String,
    /// The number of restarts.
    tries: u32,
    reasoning: Option<String>,
    /// Whether the reasoning is still open.
    reasons: bool,
    text: Option<String>,
}

impl OpenReply {
    fn reasoning_id(&self) -> String {
        reasoning_id(&self.message, self.tries)
    }
}

/// Converts frames into events.
#[derive(Debug)]
pub struct AgUi {
    settings: Settings,
    listener: Listener,
    begun: bool,
    /// Whether the run's id is known.
    named: bool,
    open: Option<OpenReply>,
    /// Valid messages as JSON: those that the client had, and the complete ones of this run. `None` if they
    /// are too large.
    kept: Option<Vec<String>>,
    bytes: usize,
    state: ClientState,
    /// The end of the run, held back until the values are sent.
    end: Option<Value>,
    over: bool,
    events: ResumableStream,
}

impl AgUi {
    /// A stream without events.
    pub fn new(mut settings: Settings) -> AgUi {
        let held = std::mem::take(&mut settings.held);
        let after = settings.after.take();
        let known = after.is_some();
        let after = after.filter(|place| place.is_of(&settings.told_of));
        // The client has read another stream, so its state in this one is unknown.
        settings.afresh |= known && after.is_none();
        AgUi {
            events: ResumableStream::new(&settings.told_of, after),
            listener: Listener::new(settings.reasoning, settings.continues.clone()),
            settings,
            begun: false,
            named: false,
            open: None,
            bytes: held.len(),
            kept: Some(vec![held]),
            state: ClientState::default(),
            end: None,
            over: false,
        }
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
        self.events.say(&event);
        if self.settings.afresh {
            self.snapshot();
        }
        self.bound();
    }

    /// Sends a snapshot of all valid messages, if they are kept.
    fn snapshot(&mut self) {
        if let Some(held) = self.held() {
            self.events.say_snapshot(&held);
        }
    }

    fn held(&self) -> Option<String> {
        let kept = self.kept.as_ref()?;
        let messages: Vec<&str> = kept.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        Some(messages.join(","))
    }

    /// Sends the valid messages to a client that has read invalid ones.
    fn make_right(&mut self) {
        self.events.right();
        match (self.held(), &mut self.open) {
            (Some(held), _) => self.events.take_back_by(&held),
            (None, Some(open)) => {
                self.events.leave();
                open.id = format!("{}:{}", open.message, self.events.told() + 1);
            }
            (None, None) => {}
        }
        let Some((id, Some(text))) = self.open.as_ref().map(|open| (&open.id, &open.text)) else { return };
        let begins = json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" });
        let content = json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text });
        self.events.beside(&begins);
        self.events.tell_anew(&content);
    }

    /// Keeps a message of this run for snapshots.
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

    /// Frames that belong to no message: the run's id, and changes of values.
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
            self.events.beside(&json!({ "type": "CUSTOM", "name": "bobbin.run", "value": value }));
        }
    }

    /// Events that a tool emits, and changes of the thread's values.
    fn happened(&mut self, frame: &Value) {
        let (name, data) = (text_of(frame, "eventType"), frame.get("data").cloned().unwrap_or_default());
        match name {
            "kv_changed" => self.state.changes(text_of(&data, "key")),
            "" | "summary_updated" => {}
            _ => self.events.beside(&json!({ "type": "CUSTOM", "name": name, "value": data })),
        }
    }

    fn take(&mut self, said: RunEvent) {
        if self.is_ending() {
            return;
        }
        match said {
            RunEvent::Begins(message) => {
                self.close();
                self.events.enter(seq_of(&message));
                self.events.begin(&json!({ "type": "STEP_STARTED", "stepName": message }));
                self.open = Some(OpenReply { id: message.clone(), message, ..OpenReply::default() });
            }
            RunEvent::Reasoning(text) => self.reason(&text),
            RunEvent::Text(text) => self.write(&text),
            RunEvent::TakenBack => self.take_back(),
            RunEvent::Whole(reply) => self.whole_reply(&reply),
            RunEvent::CallBegins(_) | RunEvent::Continues(_) => {}
            RunEvent::Result(result) => self.result(&result),
            RunEvent::Waits(waits) => self.wait(&waits),
            RunEvent::Joined => self.finish(Some(&json!({ "type": "success" })), None),
            RunEvent::Over(over) => self.end(&over),
        }
        if self.events.out_of_sync() {
            self.make_right();
        }
    }

    fn reason(&mut self, new: &str) {
        let Some(open) = &mut self.open else { return };
        let begins = !std::mem::replace(&mut open.reasons, true);
        open.reasoning.get_or_insert_default().push_str(new);
        if begins {
            self.begin_reasoning();
        }
        let Some(id) = self.open.as_ref().map(OpenReply::reasoning_id) else { return };
        self.events.aside(&json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": new }));
    }

    fn begin_reasoning(&mut self) {
        let Some(open) = &mut self.open else { return };
        let begins = |id: &str| json!({ "type": "REASONING_START", "messageId": id });
        if self.events.begin(&begins(&open.reasoning_id())) {
            // The client has an unknown part of it, so it is sent again under another id.
            open.tries += 1;
            self.events.aside(&begins(&open.reasoning_id()));
        }
        let id = open.reasoning_id();
        self.events
            .aside(&json!({ "type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning" }));
    }

    fn end_reasoning(&mut self) {
        let Some(open) = &mut self.open else { return };
        if std::mem::take(&mut open.reasons) {
            let id = open.reasoning_id();
            self.events.aside(&json!({ "type": "REASONING_MESSAGE_END", "messageId": id }));
            self.events.aside(&json!({ "type": "REASONING_END", "messageId": id }));
        }
    }

    fn write(&mut self, new: &str) {
        self.end_reasoning();
        let Some(open) = &mut self.open else { return };
        let (id, begins) = (open.id.clone(), open.text.is_none());
        open.text.get_or_insert_default().push_str(new);
        if begins {
            self.events.say(&json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" }));
        }
        self.events.text(json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id }), new);
    }

    /// Ends the text and returns it.
    fn end_text(&mut self) -> Option<String> {
        self.end_reasoning();
        let open = self.open.as_mut()?;
        let (id, text) = (open.id.clone(), open.text.take()?);
        self.events.say(&json!({ "type": "TEXT_MESSAGE_END", "messageId": id }));
        Some(text)
    }

    fn take_back(&mut self) {
        let said = self.end_text().is_some();
        if let Some(open) = &mut self.open {
            open.tries += 1;
            open.reasoning = None;
        }
        match self.held() {
            _ if !said || self.events.is_behind() => self.events.rewind(),
            Some(held) => {
                self.events.rewind();
                self.events.take_back_by(&held);
            }
            None => {
                self.events.leave();
                if let Some(open) = &mut self.open {
                    open.id = format!("{}:{}", open.message, self.events.told() + 1);
                }
            }
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
            self.events.say(&begins);
            if !arguments.is_empty() {
                let event = json!({ "type": "TOOL_CALL_ARGS", "toolCallId": call });
                self.events.text(event, arguments);
            }
            self.events.say(&json!({ "type": "TOOL_CALL_END", "toolCallId": call }));
        }
        if text.is_some() || !reply.calls.is_empty() {
            self.keep(&assistant(&id, &text.unwrap_or_default(), &reply.calls));
        }
    }

    fn result(&mut self, result: &CallResult) {
        let CallResult { message, call, name, text, failed, denied, .. } = result;
        let Settings { results, client_tools, .. } = &self.settings;
        // A client that has run the call has the result under its own id.
        let is_of_client = client_tools.contains(name) && !denied && results.has_any(call);
        if is_of_client || results.has(call, message, text) {
            return;
        }
        let mut event = json!({
            "type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": call, "content": text, "role": "tool",
        });
        if let (true, Some(fields)) = (*failed, event.as_object_mut()) {
            fields.insert("metadata".into(), json!({ "bobbin": { "failed": true } }));
        }
        self.events.enter(seq_of(message));
        self.events.say(&event);
        self.keep(&tool(message, call, text, *failed));
    }

    /// Ends the run at a wait: client tools, and questions to people.
    fn wait(&mut self, waits: &[OpenWait]) {
        let interrupts: Vec<Value> =
            waits.iter().filter_map(|wait| pending(&wait.shown, &self.settings.run)).collect();
        if interrupts.is_empty() {
            let calls = waits.iter().filter(|wait| wait.kind == "client_tool");
            let ids: Vec<&Value> = calls.filter_map(|wait| wait.shown.pointer("/call/id")).collect();
            let outcome = match self.settings.version {
                Version::Before1 => json!({ "type": "success" }),
                Version::From1 => json!({ "type": "success", "pendingToolCallIds": ids }),
            };
            return self.finish(Some(&outcome), None);
        }
        self.close();
        // Clients need the complete messages before the interrupt.
        self.snapshot();
        self.finish(Some(&json!({ "type": "interrupt", "interrupts": interrupts })), None);
    }

    fn end(&mut self, over: &RunEnd) {
        match over.outcome.as_str() {
            "completed" => self.finish(Some(&json!({ "type": "success" })), over.usage.as_ref()),
            "stopped" => {
                let outcome = json!({ "type": "cancelled" });
                // Clients before version 1.0 accept only an end without an outcome.
                let outcome = (self.settings.version == Version::From1).then_some(&outcome);
                self.finish(outcome, over.usage.as_ref());
            }
            _ => {
                let event = json!({ "type": "RUN_ERROR", "message": over.told, "code": over.reason });
                self.conclude(event, over.usage.as_ref());
            }
        }
    }

    /// Ends all open parts.
    fn close(&mut self) {
        self.end_text();
        if let Some(open) = self.open.take() {
            self.events.say(&json!({ "type": "STEP_FINISHED", "stepName": open.message }));
        }
    }

    fn finish(&mut self, outcome: Option<&Value>, usage: Option<&Value>) {
        let Settings { conversation, run, .. } = &self.settings;
        let mut event = json!({ "type": "RUN_FINISHED", "threadId": conversation, "runId": run });
        if let Some(fields) = event.as_object_mut() {
            fields.extend(outcome.map(|outcome| ("outcome".to_owned(), outcome.clone())));
        }
        self.conclude(event, usage);
    }

    fn conclude(&mut self, mut event: Value, usage: Option<&Value>) {
        self.close();
        if self.events.out_of_sync() || self.events.is_after(&event) {
            self.make_right();
        }
        with_usage(&mut event, usage);
        self.end = Some(event);
        self.may_end();
    }

    fn is_ending(&self) -> bool {
        self.over || self.end.is_some()
    }

    fn may_end(&mut self) {
        if self.state.is_settled()
            && let Some(end) = self.end.take()
        {
            self.events.last(&end);
            self.over = true;
        }
    }
}

impl Encode for AgUi {
    fn push(&mut self, events: &str) -> Result<String> {
        if self.is_ending() {
            return Ok(String::new());
        }
        self.begin();
        let begun = if self.state.is_known() { String::new() } else { self.events.take() };
        for (kind, frame) in sse::frames(events)? {
            if self.is_ending() {
                break;
            }
            self.beside(kind, &frame);
            for said in self.listener.take(kind, &frame)? {
                self.take(said);
            }
        }
        Ok(if self.state.is_known() { self.events.take() } else { begun })
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

    fn asks(&mut self) -> Option<String> {
        if !self.begun || self.over {
            return None;
        }
        let caller = self.settings.caller.as_ref()?;
        let query = Query(self.state.asks()?);
        call(&self.settings.thread, caller, ThreadRoute::GetValues, query, "")
    }

    fn answered(&mut self, status: u16, body: &str) -> Result<String> {
        let was_known = self.state.is_known();
        let told = self.state.answered(status, body)?;
        let held = if was_known { String::new() } else { self.events.take() };
        if let Some(event) = told {
            self.events.beside(&event);
        }
        let told = self.events.take();
        self.may_end();
        Ok(told + &held + &self.events.take())
    }
}
