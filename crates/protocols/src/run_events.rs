//! The events of a run, derived from its feed. Each occurs once and in order, wherever the feed is cut and
//! however often a frame is repeated. Protocols that stream one reply are built on it.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use bobbin_definitions::error::{Error, Result};

/// An event of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// A reply begins; the id of its message.
    Begins(String),
    /// More of the reasoning, which comes before the text.
    Reasoning(String),
    /// More of the reply's text.
    Text(String),
    /// The attempt was lost. Discard everything emitted for this reply.
    TakenBack,
    /// The reply is complete.
    Whole(Reply),
    /// The client has this reply, and its calls continue.
    Continues(Reply),
    /// A call of a reply begins.
    CallBegins(Call),
    /// A call has ended.
    Result(CallResult),
    /// The run waits for people or clients.
    Waits(Vec<OpenWait>),
    /// Another message of a person joined the run. The following reply answers it, too.
    Joined,
    /// The run is over.
    Over(RunEnd),
}

/// A reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// Its message.
    pub message: String,
    /// Its calls, in order.
    pub calls: Vec<Call>,
    /// The waits that these calls first parked the run for. Empty if the feed is live: they follow as [`RunEvent::Waits`].
    pub waits: Vec<OpenWait>,
}

impl Reply {
    /// Ids of the calls before the first one with a wait. They had results when the run was parked.
    pub(super) fn calls_before_waits(&self) -> impl Iterator<Item = String> + '_ {
        let waits = |call: &Call| self.waits.iter().any(|wait| wait.call.as_ref() == Some(call));
        let first = self.calls.iter().position(waits).unwrap_or(0);
        self.calls.iter().take(first).map(|call| call.id.clone())
    }
}

/// A call of a reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// The model's id of it.
    pub id: String,
    /// What is called.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallResult {
    /// Its message.
    pub message: String,
    /// The model's id of the call.
    pub call: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments.
    pub arguments: String,
    /// The text for the model.
    pub text: String,
    /// Whether it failed.
    pub failed: bool,
    /// The decided wait of the call.
    pub wait: Option<String>,
    /// Whether the call was denied by that decision.
    pub denied: bool,
}

/// A wait of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenWait {
    /// The wait.
    pub id: String,
    /// `approval`, `question`, `client_tool`, … (docs/approvals.md).
    pub kind: String,
    /// The call of the wait.
    pub call: Option<Call>,
    /// In the form of `GET …/waits`.
    pub shown: Value,
}

impl OpenWait {
    /// A text for people, if the client cannot show the wait.
    pub(super) fn line(&self, thread: &str) -> String {
        let OpenWait { id, kind, call, .. } = self;
        let what = match (kind.as_str(), call) {
            ("approval", Some(call)) => format!("A person has to approve of the call of `{}`", call.name),
            ("question", _) => "A person is asked something".to_owned(),
            (kind, Some(call)) => format!("The call of `{}` waits ({kind})", call.name),
            (kind, None) => format!("This waits ({kind})"),
        };
        format!("{what}: /api/threads/{thread}/waits/{id}")
    }
}

/// The end of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunEnd {
    /// `completed`, `stopped` or `failed`.
    pub outcome: String,
    /// The reason (docs/http.md).
    pub reason: String,
    /// The text for people about a failure.
    pub told: String,
    /// The usage, if known.
    pub usage: Option<Value>,
}

/// A text in progress.
#[derive(Debug)]
struct Text {
    message: String,
    attempt: u64,
    sent: String,
}

/// Derives events from the frames of a feed.
#[derive(Debug, Default)]
pub struct Listener {
    reasoning: bool,
    /// A reply that was sent before; its calls are known.
    continues: Option<String>,
    opened: bool,
    over: bool,
    /// The reply in progress.
    reply: Option<String>,
    text: Option<Text>,
    /// The last reply whose reasoning was emitted.
    reasoned: Option<String>,
    /// Replies and results that were emitted.
    told: HashSet<String>,
    calls: HashMap<String, Call>,
    failure: Option<String>,
    out: Vec<RunEvent>,
}

impl Listener {
    /// A listener at the beginning. `continues`: a reply that the client has, whose calls continue.
    pub fn new(reasoning: bool, continues: Option<String>) -> Listener {
        Listener { reasoning, continues, ..Listener::default() }
    }

    /// The events of a frame.
    ///
    /// # Errors
    /// The feed does not continue at its last position. The response must be aborted.
    pub fn take(&mut self, kind: &str, frame: &Value) -> Result<Vec<RunEvent>> {
        if self.over || frame.get("depth").and_then(Value::as_u64).unwrap_or(0) > 0 {
            return Ok(Vec::new());
        }
        match kind {
            "run" if std::mem::replace(&mut self.opened, true) => {
                return Err(Error::internal("the history changed while it was read"));
            }
            "message_chunk" => self.chunk(frame)?,
            "message_reset" if self.reply.as_deref() == Some(text_of(frame, "message_id")) => {
                self.take_back()
            }
            "reasoning_chunk" => self.reasoning_chunk(frame),
            "message_data" => self.message(frame),
            "tool_started" => self.call_begins(frame),
            "run_parked" if text_of(frame, "pauseKind") == "human" => {
                let waits = frame.get("waits").and_then(Value::as_array).into_iter().flatten();
                let waits = waits.map(|wait| self.waiting(wait)).collect();
                self.out.push(RunEvent::Waits(waits));
            }
            "run_ended" => self.ended(frame),
            _ => {}
        }
        Ok(std::mem::take(&mut self.out))
    }

    fn is_known(&self, message: &str) -> bool {
        self.told.contains(message) || self.continues.as_deref() == Some(message)
    }

    fn begin(&mut self, message: &str) {
        if self.reply.as_deref() != Some(message) {
            self.reply = Some(message.to_owned());
            self.text = None;
            self.out.push(RunEvent::Begins(message.to_owned()));
        }
    }

    fn take_back(&mut self) {
        let said = self.text.take().is_some();
        if said || (self.reasoned.is_some() && self.reasoned == self.reply) {
            self.reasoned = None;
            self.out.push(RunEvent::TakenBack);
        }
    }

    fn chunk(&mut self, frame: &Value) -> Result<()> {
        let (message, chunk) = (text_of(frame, "message_id"), text_of(frame, "chunk"));
        if self.is_known(message) {
            return Ok(());
        }
        let number = |name: &str| frame.get(name).and_then(Value::as_u64).unwrap_or(0);
        let (attempt, offset) = (number("attempt"), number("offset"));
        self.begin(message);
        if self.text.as_ref().is_some_and(|text| text.attempt != attempt) {
            self.take_back();
        }
        let sent = self.text.as_ref().map_or(0, |text| text.sent.len());
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let new = sent.checked_sub(offset).and_then(|known| chunk.get(known.min(chunk.len())..));
        let new = new.ok_or_else(|| Error::internal("a piece of a text is missing"))?;
        self.write(message, attempt, new);
        Ok(())
    }

    fn write(&mut self, message: &str, attempt: u64, new: &str) {
        if new.is_empty() {
            return;
        }
        let text = self.text.get_or_insert_with(|| Text {
            message: message.to_owned(),
            attempt,
            sent: String::new(),
        });
        text.sent.push_str(new);
        self.out.push(RunEvent::Text(new.to_owned()));
    }

    fn reasoning_chunk(&mut self, frame: &Value) {
        let (message, chunk) = (text_of(frame, "message_id"), text_of(frame, "chunk"));
        let begun = self.text.as_ref().is_some_and(|text| text.message == message);
        if self.reasoning && !chunk.is_empty() && !self.is_known(message) && !begun {
            self.begin(message);
            self.reasoned = Some(message.to_owned());
            self.out.push(RunEvent::Reasoning(chunk.to_owned()));
        }
    }

    fn message(&mut self, frame: &Value) {
        let Some(message) = frame.get("data") else { return };
        let metadata = |name: &str| message.pointer(&format!("/metadata/{name}")).is_some();
        if message.get("silent").and_then(Value::as_bool) == Some(true) {
            return;
        }
        let id = text_of(frame, "message_id");
        match text_of(message, "role") {
            "assistant" if metadata("status_kind") => {
                self.failure = message.get("content").and_then(Value::as_str).map(str::to_owned);
            }
            "assistant" => self.reply(id, message, frame.get("waits")),
            // The other side of an agent with two sides.
            "user" if metadata("prompt") => self.reply(id, message, frame.get("waits")),
            "user" if self.reply.is_some() => self.out.push(RunEvent::Joined),
            "tool" => self.result(id, message),
            _ => {}
        }
    }

    fn reply(&mut self, id: &str, message: &Value, waits: Option<&Value>) {
        let calls = calls_of(message);
        for call in &calls {
            self.calls.insert(call.id.clone(), call.clone());
        }
        let waits = waits.and_then(Value::as_array).into_iter().flatten();
        let waits = waits.map(|wait| self.waiting(wait)).collect();
        let reply = Reply { message: id.to_owned(), calls, waits };
        if self.is_known(id) {
            self.reply.get_or_insert_with(|| id.to_owned());
            if self.continues.as_deref() == Some(id) {
                self.out.push(RunEvent::Continues(reply));
            }
            return;
        }
        self.begin(id);
        let content = text_of(message, "content");
        let reasoning = message.pointer("/metadata/reasoning").and_then(Value::as_str);
        let untold = self.reasoned.as_deref() != Some(id) && self.text.is_none();
        if let Some(reasoning) = reasoning.filter(|text| self.reasoning && untold && !text.is_empty()) {
            self.out.push(RunEvent::Reasoning(reasoning.to_owned()));
        }
        let known = self.text.as_ref().map(|text| (text.attempt, content.strip_prefix(text.sent.as_str())));
        match known {
            Some((attempt, Some(rest))) => self.write(id, attempt, rest),
            Some((attempt, None)) => {
                self.take_back();
                self.write(id, attempt + 1, content);
            }
            None => self.write(id, 0, content),
        }
        self.text = None;
        self.told.insert(id.to_owned());
        self.out.push(RunEvent::Whole(reply));
    }

    fn waiting(&self, wait: &Value) -> OpenWait {
        let call = wait.pointer("/call/id").and_then(Value::as_str).and_then(|id| self.calls.get(id));
        OpenWait {
            id: text_of(wait, "id").to_owned(),
            kind: text_of(wait, "kind").to_owned(),
            call: call.cloned(),
            shown: wait.clone(),
        }
    }

    fn call_begins(&mut self, frame: &Value) {
        if let Some(call) = self.calls.get(text_of(frame, "call_id")) {
            self.out.push(RunEvent::CallBegins(call.clone()));
        }
    }

    fn result(&mut self, id: &str, message: &Value) {
        if self.told.contains(id) {
            return;
        }
        self.told.insert(id.to_owned());
        let approval =
            |name: &str| message.pointer(&format!("/metadata/approval/{name}")).and_then(Value::as_str);
        let wait = approval("id");
        let known = self.calls.get(text_of(message, "tool_call_id"));
        let arguments = known.map(|call| call.arguments.clone()).unwrap_or_default();
        self.out.push(RunEvent::Result(CallResult {
            message: id.to_owned(),
            call: text_of(message, "tool_call_id").to_owned(),
            name: text_of(message, "name").to_owned(),
            arguments,
            text: text_of(message, "content").to_owned(),
            failed: text_of(message, "tool_status") == "error",
            wait: wait.map(str::to_owned),
            denied: approval("decision").is_some_and(|decision| decision != "approve"),
        }));
    }

    fn ended(&mut self, frame: &Value) {
        self.over = true;
        let reason = text_of(frame, "reason").to_owned();
        let told = frame.pointer("/error/message").and_then(Value::as_str).map(str::to_owned);
        let told = self.failure.take().or(told).unwrap_or_else(|| format!("The run ended ({reason})."));
        self.out.push(RunEvent::Over(RunEnd {
            outcome: text_of(frame, "outcome").to_owned(),
            reason,
            told,
            usage: frame.get("usage").filter(|usage| !usage.is_null()).cloned(),
        }));
    }
}

pub(super) fn calls_of(message: &Value) -> Vec<Call> {
    let calls = message.get("tool_calls").and_then(Value::as_str);
    let calls: Vec<Value> =
        calls.and_then(|text| bobbin_definitions::json::from_str(text).ok()).unwrap_or_default();
    let made = calls.iter().map(|call| {
        let text = |at: &str| call.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        Call { id: text("/id"), name: text("/function/name"), arguments: text("/function/arguments") }
    });
    made.filter(|call| !call.id.is_empty()).collect()
}

pub(super) fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The seq of a message, which is the end of its id.
pub fn seq_of(id: &str) -> i64 {
    id.rsplit_once('_').and_then(|(_, seq)| seq.parse().ok()).unwrap_or(0)
}
