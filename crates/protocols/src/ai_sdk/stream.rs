//! The stream of the AI SDK (`useChat`) for its majors 5, 6 and 7 at once: the feed of a run as
//! `UIMessageChunk`s.
//!
//! One message of the SDK is a run from one message of a person to the next. Each step of the model is one of
//! its steps. Clients throw at a delta without its start, at a result without its call, and at a second end.
//! The stream contains none of these, wherever a feed begins and however often it is cut. (Version 7.0.173
//! accepts a delta whose part has ended with its step, so only the other two majors reveal that mistake.)

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use crate::access::links::Links;
use crate::ai_sdk::tools::CallTable;
use crate::sse;
use bobbin_definitions::error::{Error, Result};
use bobbin_definitions::json;

/// Settings of a stream.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The thread's id.
    pub thread: String,
    /// The requested agent.
    pub agent: String,
    /// Whether a lost attempt is retracted with `reset-step`, which only clients of major 7 support.
    pub reset_step: bool,
    /// Whether reasoning is shown.
    pub reasoning: bool,
    /// Whether approvals are sent as `data-approval`, for clients of major 5.
    pub approvals_as_data: bool,
    /// The client's message that continues, if any.
    pub continues: Option<ContinuedMessage>,
    /// Tools that the page runs.
    pub client_tools: BTreeSet<String>,
    /// The signer of links to files.
    pub links: Option<Links>,
}

/// A message of the client that continues.
#[derive(Clone, Debug, Default)]
pub struct ContinuedMessage {
    /// Its id.
    pub message: String,
    /// The reply whose calls it shows.
    pub reply: String,
    /// The message with these calls.
    pub calls: CallLocation,
    /// The calls that had waits which this request has answered.
    pub asked: BTreeSet<String>,
}

/// The message in which a client has the calls that continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallLocation {
    /// In the message that continues.
    #[default]
    Here,
    /// In an earlier one, which a client no longer updates.
    Elsewhere,
}

impl Settings {
    pub(super) fn is_of_client(&self, tool: &str) -> bool {
        self.client_tools.contains(tool)
    }
}

/// A text in progress.
#[derive(Debug)]
struct Text {
    message: String,
    attempt: u64,
    /// The part that was sent.
    sent: String,
}

impl Text {
    fn id(&self) -> String {
        format!("{}:{}", self.message, self.attempt)
    }
}

/// Converts frames into chunks.
#[derive(Debug, Default)]
pub struct UiStream {
    settings: Settings,
    run: Value,
    started_at: Value,
    started: bool,
    over: bool,
    /// The reply of the open step.
    step: Option<String>,
    /// Replies that were sent completely.
    told: HashSet<String>,
    text: Option<Text>,
    /// Id of the reasoning in progress.
    reasoning: Option<String>,
    /// The last reply whose reasoning was sent.
    reasoned: Option<String>,
    calls: CallTable,
    /// Whether the newest step has a result of a call that the page has run.
    page_has_done: bool,
    /// The text for people about a failure.
    failure: Option<String>,
    out: Vec<Value>,
}

impl UiStream {
    /// A stream without chunks.
    pub fn new(settings: Settings) -> UiStream {
        UiStream { settings, ..UiStream::default() }
    }

    /// Whether the last chunk was sent.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Encodes events of the feed for the client.
    ///
    /// # Errors
    /// The feed does not continue at its last position. The stream must be aborted, and the client must start again.
    pub fn push(&mut self, events: &str) -> Result<String> {
        if self.over {
            return Ok(String::new());
        }
        let mut text = String::new();
        for (kind, frame) in sse::frames(events)? {
            text.extend(self.take(kind, &frame)?.iter().map(sse::data));
        }
        if self.over {
            text.push_str(sse::DONE);
        }
        Ok(text)
    }

    /// The chunks of a frame.
    ///
    /// # Errors
    /// As [`UiStream::push`].
    pub fn take(&mut self, kind: &str, frame: &Value) -> Result<Vec<Value>> {
        if self.over || frame.get("depth").and_then(Value::as_u64).unwrap_or(0) > 0 {
            return Ok(Vec::new());
        }
        match kind {
            "run" => self.opened(frame)?,
            "step_started" => self.step_started(frame),
            "message_chunk" => self.chunk(frame)?,
            "message_reset" => self.reset(frame),
            "reasoning_chunk" => self.reasoning_chunk(frame),
            "message_data" => self.message(frame)?,
            "tool_started" => {
                if let Some(id) = frame.get("call_id").and_then(Value::as_str) {
                    self.call_begins(id);
                }
            }
            "event" => self.event(frame),
            "fallback_triggered" | "agent_handoff" => self.notice(frame.clone()),
            "run_parked" => self.parked(frame),
            "run_ended" => self.ended(frame),
            _ => {}
        }
        Ok(std::mem::take(&mut self.out))
    }

    fn say(&mut self, chunk: Value) {
        self.out.push(chunk);
    }

    fn opened(&mut self, frame: &Value) -> Result<()> {
        if self.started {
            return Err(Error::internal("the history changed while it was read"));
        }
        self.run = frame.get("run").cloned().unwrap_or_default();
        self.started_at = frame.get("startedAt").cloned().unwrap_or_default();
        if let Some(ContinuedMessage { message, reply, .. }) = self.settings.continues.clone() {
            self.start(Some(&message));
            self.step = Some(reply);
        }
        Ok(())
    }

    /// Sends the start of the message, once.
    fn start(&mut self, message: Option<&str>) {
        if self.started {
            return;
        }
        self.started = true;
        let metadata = self.metadata();
        self.say(match message {
            Some(id) => json!({ "type": "start", "messageId": id, "messageMetadata": metadata }),
            None => json!({ "type": "start", "messageMetadata": metadata }),
        });
    }

    fn metadata(&self) -> Value {
        let mut metadata = json!({ "threadId": self.settings.thread, "agent": self.settings.agent });
        if let (Some(fields), true) = (metadata.as_object_mut(), self.run.is_string()) {
            fields.insert("runId".into(), self.run.clone());
            if let Some(us) = self.started_at.as_i64() {
                fields.insert("createdAt".into(), (us / 1_000).into());
            }
        }
        metadata
    }

    fn step_started(&mut self, frame: &Value) {
        if self.run.is_null() {
            self.run = frame.get("run").cloned().unwrap_or_default();
        }
        if let Some(message) = frame.get("message_id").and_then(Value::as_str) {
            self.begin_step(message);
        }
    }

    /// Begins the step of this reply, unless it is open.
    fn begin_step(&mut self, reply: &str) {
        if self.step.as_deref() == Some(reply) {
            return;
        }
        self.end_step();
        self.start(Some(reply));
        self.say(json!({ "type": "start-step" }));
        self.step = Some(reply.to_owned());
        self.page_has_done = false;
    }

    fn end_step(&mut self) {
        self.end_reasoning();
        self.end_text();
        if self.step.take().is_some() {
            self.say(json!({ "type": "finish-step" }));
        }
    }

    fn end_text(&mut self) {
        if let Some(text) = self.text.take() {
            self.say(json!({ "type": "text-end", "id": text.id() }));
        }
    }

    fn end_reasoning(&mut self) {
        if let Some(id) = self.reasoning.take() {
            self.say(json!({ "type": "reasoning-end", "id": id }));
        }
    }

    fn chunk(&mut self, frame: &Value) -> Result<()> {
        let (message, chunk) = (text_of(frame, "message_id"), text_of(frame, "chunk"));
        let number = |name: &str| frame.get(name).and_then(Value::as_u64).unwrap_or(0);
        let (attempt, offset) = (number("attempt"), number("offset"));
        if self.is_written_already(message) {
            return Ok(());
        }
        self.begin_step(message);
        let goes_on = |text: &Text| text.message == message && text.attempt == attempt;
        if self.text.as_ref().is_some_and(|text| !goes_on(text)) {
            self.take_back(message);
        }
        let sent = self.text.as_ref().map_or(0, |text| text.sent.len());
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let new = sent.checked_sub(offset).and_then(|known| chunk.get(known.min(chunk.len())..));
        let new = new.ok_or_else(|| Error::internal("a piece of a text is missing"))?;
        self.write(message, attempt, new);
        Ok(())
    }

    /// Whether a continued message already has this reply, at which it was parked.
    fn is_written_already(&self, reply: &str) -> bool {
        self.settings.continues.as_ref().is_some_and(|continued| continued.reply == reply)
    }

    fn write(&mut self, message: &str, attempt: u64, new: &str) {
        if new.is_empty() {
            return;
        }
        self.end_reasoning();
        if self.text.is_none() {
            let text = Text { message: message.to_owned(), attempt, sent: String::new() };
            self.say(json!({ "type": "text-start", "id": text.id() }));
            self.text = Some(text);
        }
        if let Some(text) = &mut self.text {
            text.sent.push_str(new);
            let chunk = json!({ "type": "text-delta", "id": text.id(), "delta": new });
            self.say(chunk);
        }
    }

    fn reset(&mut self, frame: &Value) {
        let message = text_of(frame, "message_id").to_owned();
        if self.step.as_deref() == Some(message.as_str()) {
            self.take_back(&message);
        }
    }

    /// Retracts the content of a reply.
    fn take_back(&mut self, message: &str) {
        let said = self.text.take();
        let reasoning = self.reasoning.take();
        if said.is_none() && reasoning.is_none() {
            return;
        }
        if self.settings.reset_step {
            self.reasoned = None;
            return self.say(json!({ "type": "reset-step" }));
        }
        if let Some(id) = reasoning {
            self.say(json!({ "type": "reasoning-end", "id": id }));
        }
        if let Some(text) = said {
            let id = text.id();
            self.say(json!({ "type": "text-end", "id": id }));
            self.say(json!({ "type": "data-bobbin-reset", "id": message, "data": { "superseded": id } }));
        }
    }

    fn reasoning_chunk(&mut self, frame: &Value) {
        let (message, chunk) = (text_of(frame, "message_id").to_owned(), text_of(frame, "chunk"));
        if !self.settings.reasoning || chunk.is_empty() || self.is_written_already(&message) {
            return;
        }
        self.begin_step(&message);
        self.reason(&message, chunk);
    }

    fn reason(&mut self, message: &str, chunk: &str) {
        let id = match &self.reasoning {
            Some(id) => id.clone(),
            None => {
                let id = format!("{message}:reasoning");
                self.say(json!({ "type": "reasoning-start", "id": id }));
                self.reasoning = Some(id.clone());
                self.reasoned = Some(message.to_owned());
                id
            }
        };
        self.say(json!({ "type": "reasoning-delta", "id": id, "delta": chunk }));
    }

    fn message(&mut self, frame: &Value) -> Result<()> {
        let Some(message) = frame.get("data") else { return Ok(()) };
        let id = text_of(frame, "message_id");
        let metadata = |name: &str| message.pointer(&format!("/metadata/{name}"));
        if message.get("silent").and_then(Value::as_bool) == Some(true) {
            return Ok(());
        }
        match text_of(message, "role") {
            "assistant" if metadata("status_kind").is_some() => {
                self.failure = message.get("content").and_then(Value::as_str).map(str::to_owned);
            }
            "assistant" => self.reply(id, message),
            // The other side of an agent with two sides.
            "user" if metadata("prompt").is_some() && metadata("ui_id").is_none() => self.reply(id, message),
            "user" if self.started && !self.answers_this() => self.joined(),
            "tool" => self.result(message),
            _ => {}
        }
        Ok(())
    }

    fn reply(&mut self, id: &str, message: &Value) {
        if self.is_written_already(id) {
            let before = self.settings.continues.as_ref();
            return self.calls.of_reply(message, &self.settings, before);
        }
        // After a reconnect a row may be repeated.
        if !self.told.insert(id.to_owned()) {
            return;
        }
        self.begin_step(id);
        let content = text_of(message, "content");
        let reasoning = message.pointer("/metadata/reasoning").and_then(Value::as_str);
        let unsaid = self.reasoned.as_deref() != Some(id) && self.text.is_none();
        if let Some(reasoning) = reasoning.filter(|_| self.settings.reasoning && unsaid) {
            self.reason(id, reasoning);
        }
        self.end_reasoning();
        let known =
            self.text.as_ref().map(|text| (text.attempt, text.sent.len(), content.starts_with(&text.sent)));
        match known {
            Some((attempt, sent, true)) => self.write(id, attempt, content.get(sent..).unwrap_or_default()),
            Some((attempt, _, false)) => {
                self.take_back(id);
                self.write(id, attempt + 1, content);
            }
            None => self.write(id, 0, content),
        }
        self.end_text();
        self.files(message);
        self.calls.of_reply(message, &self.settings, None);
    }

    /// Whether the continued message comes after this message of a person, and nothing of it was sent yet.
    fn answers_this(&self) -> bool {
        self.settings.continues.as_ref().is_some_and(|continued| {
            continued.calls == CallLocation::Elsewhere && self.step.as_deref() == Some(&continued.reply)
        })
    }

    /// A person's message joined the run. The answer to it is a separate message.
    fn joined(&mut self) {
        self.end_step();
        self.finish("stop", &json!({ "outcome": "joined" }));
    }

    fn call_begins(&mut self, id: &str) {
        let chunk = self.calls.input(id);
        self.out.extend(chunk);
    }

    fn result(&mut self, message: &Value) {
        let id = text_of(message, "tool_call_id");
        // A client that reads the call for the first time gets it as decided.
        let begun = self.calls.draft(id);
        let asked = self.calls.decided(id, message, &self.settings);
        let answered = self.calls.answered(id, message, &self.settings);
        self.out.extend(begun.into_iter().chain(asked).chain(answered));
        if self.calls.is_of_page(id) {
            self.page_has_done = true;
        }
        let chunk = self.calls.output(id, message, &self.settings);
        self.out.extend(chunk);
        self.files(message);
    }

    fn files(&mut self, message: &Value) {
        let Some(links) = &self.settings.links else { return };
        let files = message.get("attachments").and_then(Value::as_array).into_iter().flatten();
        let chunks: Vec<Value> = files
            .filter_map(|file| {
                let (path, kind) = (file.get("path")?.as_str()?, file.get("mimeType")?.as_str()?);
                Some(json!({ "type": "file", "url": links.to(&self.settings.thread, path), "mediaType": kind }))
            })
            .collect();
        self.out.extend(chunks);
    }

    /// Sends an event that a tool emitted. The runtime's own events are not sent to pages.
    fn event(&mut self, frame: &Value) {
        let name = text_of(frame, "eventType");
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !is_name || matches!(name, "kv_changed" | "summary_updated") || !self.started {
            return;
        }
        let data = frame.get("data").cloned().unwrap_or_default();
        self.say(json!({ "type": format!("data-{name}"), "data": data, "transient": true }));
    }

    fn notice(&mut self, data: Value) {
        if self.started {
            self.say(json!({ "type": "data-bobbin-notice", "data": data, "transient": true }));
        }
    }

    fn parked(&mut self, frame: &Value) {
        let waits = frame.get("waits").and_then(Value::as_array).cloned().unwrap_or_default();
        if text_of(frame, "pauseKind") != "human" {
            self.subagents(frame);
            return self.notice(json!({ "kind": "waiting", "waits": waits.len() }));
        }
        self.end_reasoning();
        self.end_text();
        for wait in &waits {
            let call = wait.pointer("/call/id").and_then(Value::as_str);
            let id = text_of(wait, "id").to_owned();
            match (text_of(wait, "kind"), call) {
                ("approval", Some(call)) => {
                    let begun = self.calls.draft(call);
                    self.out.extend(begun);
                    let chunk = self.calls.approval(call, &id, &self.settings);
                    self.out.extend(chunk);
                }
                ("client_tool" | "question", Some(call)) => self.call_begins(call),
                _ if self.started => {
                    self.say(json!({ "type": "data-bobbin-wait", "id": id, "data": wait }));
                }
                _ => {}
            }
        }
        self.start(None);
        self.end_step();
        self.finish("tool-calls", &json!({ "outcome": "parked" }));
    }

    /// Sends the threads of subagents for calls that are in progress.
    fn subagents(&mut self, frame: &Value) {
        for subagent in frame.get("subagents").and_then(Value::as_array).into_iter().flatten() {
            let call = text_of(subagent, "call_id");
            let output = json!({ "status": subagent.get("status"), "thread": subagent.get("thread") });
            let begun = self.calls.draft(call);
            let chunk = self.calls.under_way(call, output);
            self.out.extend(begun.into_iter().chain(chunk));
        }
    }

    fn ended(&mut self, frame: &Value) {
        if text_of(frame, "outcome") == "completed" {
            self.start(None);
        }
        self.end_step();
        if std::mem::take(&mut self.page_has_done) && self.started {
            // A page sends its chat again automatically if the last step has results of its own calls and
            // nothing else.
            self.say(json!({ "type": "start-step" }));
            self.say(json!({ "type": "finish-step" }));
        }
        let reason = text_of(frame, "reason").to_owned();
        let metadata = json!({
            "outcome": frame.get("outcome"), "reason": reason,
            "usage": frame.get("usage").filter(|usage| !usage.is_null()),
        });
        let told = frame.pointer("/error/message").and_then(Value::as_str).unwrap_or(&reason).to_owned();
        match text_of(frame, "outcome") {
            "completed" => self.finish("stop", &metadata),
            "stopped" => {
                self.say(json!({ "type": "abort", "reason": reason }));
                self.over = true;
            }
            _ => {
                let told = self.failure.take().unwrap_or(told);
                self.say(json!({ "type": "error", "errorText": told }));
                self.finish("error", &metadata);
            }
        }
    }

    fn finish(&mut self, reason: &str, metadata: &Value) {
        self.say(json!({ "type": "finish", "finishReason": reason, "messageMetadata": metadata }));
        self.over = true;
    }
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
