//! OpenAI's responses: the feed of a run as one `response`, or as its events.
//!
//! Clients reject a delta without its item, an index that is repeated or skipped, and an end that lacks an
//! item. So an item of a lost attempt is closed as `incomplete`, and the next attempt gets a new index. The
//! numbers of events say how far a client has read, independent of how the text was cut ([`Events`]).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::encode::Encode;
use crate::openai::item_id;
use crate::openai::response_events::Events;
use crate::openai::response_items as items;
use crate::run_events::{Call, CallResult, Listener, OpenWait, Reply, RunEnd, RunEvent};
use crate::sse;
use bobbin_definitions::error::Result;
use bobbin_definitions::json;

/// Settings of a response.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The response's id.
    pub id: String,
    /// The requested agent.
    pub model: String,
    /// Seconds since 1970.
    pub created: i64,
    /// The thread.
    pub thread: String,
    /// Fields of the response that repeat the request.
    pub asked: Value,
    /// Whether reasoning is shown.
    pub reasoning: bool,
    /// Whether the client supports approvals, and needs no text about them.
    pub approves: bool,
    /// Tools that the client runs.
    pub client_tools: BTreeSet<String>,
    /// A reply that continues after its calls were answered.
    pub continues: Option<String>,
    /// The number of the last event that the client has.
    pub after: Option<u64>,
}

/// The status of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Queued,
    InProgress,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    const fn as_str(self) -> &'static str {
        match self {
            Status::Queued => "queued",
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }
}

/// An item in progress.
#[derive(Debug)]
enum OpenItem {
    Reasoning(String),
    Message { text: String },
}

/// A call of the server in progress. Whether it needs an approval is known when it begins; until then it is
/// not an item.
#[derive(Debug)]
struct PendingCall {
    call: Call,
    begun: bool,
    /// The index of its item, which it gets when it is the next to end.
    index: Option<usize>,
    result: Option<CallResult>,
}

/// The pause that ended a response which is read again after its run has continued.
#[derive(Debug)]
struct Pause {
    /// Calls that had results by then.
    calls_before: BTreeSet<String>,
    waits: Vec<OpenWait>,
}

/// Converts frames into events, or a whole response.
#[derive(Debug)]
pub struct Responses {
    settings: Settings,
    listener: Listener,
    events: Events,
    status: Status,
    /// Items that are done or in progress, each at its index.
    output: Vec<Value>,
    /// The reply in progress, and the number of its restarts.
    reply: String,
    tries: u32,
    open: Option<OpenItem>,
    pending: Vec<PendingCall>,
    /// Calls that are left to the client.
    asked: BTreeSet<String>,
    pause: Option<Pause>,
    /// Calls that are items of the previous response, which ended at a pause of the same reply.
    earlier: BTreeSet<String>,
    over: Option<RunEnd>,
}

impl Responses {
    /// A response without content.
    pub fn new(settings: Settings) -> Responses {
        let reply = settings.continues.clone().unwrap_or_default();
        Responses {
            listener: Listener::new(settings.reasoning, settings.continues.clone()),
            events: Events::new(settings.after),
            status: Status::Queued,
            settings,
            output: Vec::new(),
            reply,
            tries: 0,
            open: None,
            pending: Vec::new(),
            asked: BTreeSet::default(),
            pause: None,
            earlier: BTreeSet::default(),
            over: None,
        }
    }

    fn is_done(&self) -> bool {
        matches!(self.status, Status::Completed | Status::Failed | Status::Cancelled)
    }

    /// Sends the first events, once.
    fn begin(&mut self) {
        if self.status == Status::Queued {
            self.status = Status::InProgress;
            let response = self.response();
            self.events.say(json!({ "type": "response.created", "response": response }));
            self.events.say(json!({ "type": "response.in_progress", "response": response }));
        }
    }

    fn take(&mut self, said: RunEvent) {
        if self.is_done() {
            return;
        }
        match said {
            RunEvent::Begins(message) => {
                self.close(true);
                (self.reply, self.tries) = (message, 0);
            }
            RunEvent::Reasoning(text) => self.reason(&text),
            RunEvent::Text(text) => self.write(&text),
            RunEvent::TakenBack => {
                self.close(false);
                self.tries += 1;
            }
            RunEvent::Whole(reply) => self.whole_reply(reply),
            RunEvent::Continues(reply) => self.earlier = reply.calls_before_waits().collect(),
            RunEvent::CallBegins(call) => {
                let pending = self.pending.iter_mut().find(|pending| pending.call.id == call.id);
                if let Some(pending) = pending {
                    pending.begun = true;
                    self.settle();
                }
            }
            RunEvent::Result(result) => self.result(result),
            RunEvent::Waits(waits) => self.wait(&waits),
            RunEvent::Joined => self.end(Status::Completed),
            RunEvent::Over(over) => {
                let status = match over.outcome.as_str() {
                    "completed" => Status::Completed,
                    "stopped" => Status::Cancelled,
                    _ => Status::Failed,
                };
                self.over = Some(over);
                self.end(status);
            }
        }
    }

    /// An id within the response. A restarted item gets a new one.
    fn id(&self, kind: &str) -> String {
        let id = item_id::of_message(kind, &self.settings.thread, &self.reply);
        match self.tries {
            0 => id,
            tries => format!("{id}_{}", tries + 1),
        }
    }

    fn add(&mut self, item: Value) -> usize {
        let index = self.output.len();
        self.events.say(json!({ "type": "response.output_item.added", "output_index": index, "item": item }));
        self.output.push(item);
        index
    }

    fn done(&mut self, index: usize, item: Value) {
        self.events.say(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
        if let Some(place) = self.output.get_mut(index) {
            *place = item;
        }
    }

    /// The index of the item in progress.
    fn last(&self) -> usize {
        self.output.len().saturating_sub(1)
    }

    fn reason(&mut self, new: &str) {
        if !matches!(self.open, Some(OpenItem::Reasoning(_))) {
            self.close(true);
            let id = self.id("rs");
            let index = self.add(items::reasoning(&id, &[]));
            self.events.say(json!({
                "type": "response.reasoning_summary_part.added", "item_id": id, "output_index": index,
                "summary_index": 0, "part": items::summary(""),
            }));
            self.open = Some(OpenItem::Reasoning(String::new()));
        }
        let (id, index) = (self.id("rs"), self.last());
        if let Some(OpenItem::Reasoning(text)) = &mut self.open {
            text.push_str(new);
        }
        let event = json!({
            "type": "response.reasoning_summary_text.delta", "item_id": id, "output_index": index, "summary_index": 0,
        });
        self.events.delta(event, new);
    }

    fn write(&mut self, new: &str) {
        if !matches!(self.open, Some(OpenItem::Message { .. })) {
            self.close(true);
            let id = self.id("msg");
            let index = self.add(items::message(&id, "in_progress", &[]));
            self.events.say(json!({
                "type": "response.content_part.added", "item_id": id, "output_index": index, "content_index": 0,
                "part": items::text(""),
            }));
            self.open = Some(OpenItem::Message { text: String::new() });
        }
        let (id, index) = (self.id("msg"), self.last());
        if let Some(OpenItem::Message { text }) = &mut self.open {
            text.push_str(new);
        }
        let event = json!({
            "type": "response.output_text.delta", "item_id": id, "output_index": index, "content_index": 0,
            "logprobs": [],
        });
        self.events.delta(event, new);
    }

    /// Ends the item in progress. `holds` is false if its attempt was lost.
    fn close(&mut self, holds: bool) {
        let index = self.last();
        match self.open.take() {
            None => {}
            Some(OpenItem::Reasoning(text)) => {
                let id = self.id("rs");
                self.events.say(json!({
                    "type": "response.reasoning_summary_text.done", "item_id": id, "output_index": index,
                    "summary_index": 0, "text": text,
                }));
                self.events.say(json!({
                    "type": "response.reasoning_summary_part.done", "item_id": id, "output_index": index,
                    "summary_index": 0, "part": items::summary(&text),
                }));
                self.done(index, items::reasoning(&id, &[items::summary(&text)]));
            }
            Some(OpenItem::Message { text }) => {
                let id = self.id("msg");
                let place = json!({ "item_id": id, "output_index": index, "content_index": 0 });
                let with = |mut event: Value| {
                    if let (Some(fields), Some(place)) = (event.as_object_mut(), place.as_object()) {
                        fields.extend(place.clone());
                    }
                    event
                };
                let done = json!({ "type": "response.output_text.done", "text": text, "logprobs": [] });
                self.events.say(with(done));
                self.events
                    .say(with(json!({ "type": "response.content_part.done", "part": items::text(&text) })));
                let status = if holds { "completed" } else { "incomplete" };
                self.done(index, items::message(&id, status, &[items::text(&text)]));
            }
        }
    }

    /// The calls of a reply, each at an index of its own, in their order.
    fn whole_reply(&mut self, reply: Reply) {
        self.close(true);
        for call in &reply.calls {
            if self.settings.client_tools.contains(&call.name) {
                self.asked.insert(call.id.clone());
                let thread = self.settings.thread.clone();
                let index = self.add(items::function_call(call, &thread, "in_progress"));
                let id = items::function_call_id(call, &thread);
                self.events.say(json!({
                    "type": "response.function_call_arguments.delta", "item_id": id, "output_index": index,
                    "delta": call.arguments,
                }));
                self.events.say(json!({
                    "type": "response.function_call_arguments.done", "item_id": id, "output_index": index,
                    "name": call.name, "arguments": call.arguments,
                }));
                self.done(index, items::function_call(call, &thread, "completed"));
            } else {
                self.pending.push(PendingCall {
                    call: call.clone(),
                    begun: false,
                    index: None,
                    result: None,
                });
            }
        }
        // A client cannot answer other kinds with another request, so this response continues with their results.
        if reply.waits.iter().any(|wait| matches!(wait.kind.as_str(), "approval" | "client_tool")) {
            self.pause =
                Some(Pause { calls_before: reply.calls_before_waits().collect(), waits: reply.waits });
            self.end_at_pause();
        }
    }

    /// Ends the response with the same items as when the run was parked, once the calls before the pause have their results.
    fn end_at_pause(&mut self) {
        let is_early =
            |pause: &Pause| self.pending.iter().any(|pending| pause.calls_before.contains(&pending.call.id));
        if let Some(pause) = self.pause.take_if(|pause| !is_early(pause)) {
            self.wait(&pause.waits);
        }
    }

    fn result(&mut self, result: CallResult) {
        if self.earlier.contains(&result.call) {
            return;
        }
        // The client's answer: this response had ended with the call.
        if self.asked.contains(&result.call) {
            return self.end(Status::Completed);
        }
        let at = self.pending.iter().position(|pending| pending.call.id == result.call);
        match (at.and_then(|at| self.pending.get_mut(at)), &result.wait) {
            (Some(pending), Some(wait)) => {
                let (id, call) = (wait.clone(), Some(pending.call.clone()));
                return self.wait(&[OpenWait { id, kind: "approval".into(), call, shown: Value::Null }]);
            }
            (Some(pending), None) => pending.result = Some(result),
            // A call of a reply that the client has seen before.
            (None, _)
                if self.settings.continues.is_some()
                    && !self.settings.client_tools.contains(&result.name) =>
            {
                let CallResult { call: id, name, arguments, .. } = result.clone();
                let call = Call { id, name, arguments };
                self.server_call(PendingCall { call, begun: true, index: None, result: Some(result) });
            }
            (None, _) => {}
        }
        self.settle();
        self.end_at_pause();
    }

    /// Ends calls in their order, so that the events do not depend on the order of results.
    fn settle(&mut self) {
        while self.pending.first().is_some_and(|pending| pending.result.is_some()) {
            let pending = self.pending.remove(0);
            self.server_call(pending);
        }
        if let Some(first) = self.pending.first()
            && first.begun
            && first.index.is_none()
        {
            let item = items::server_call(&first.call, &self.settings.thread, None);
            let index = Some(self.add(item));
            if let Some(first) = self.pending.first_mut() {
                first.index = index;
            }
        }
    }

    /// Ends a call, with or without its result.
    fn server_call(&mut self, pending: PendingCall) {
        let PendingCall { call, index, result, .. } = pending;
        let thread = self.settings.thread.clone();
        let index = index.unwrap_or_else(|| self.add(items::server_call(&call, &thread, None)));
        let item = match &result {
            Some(_) => items::server_call(&call, &thread, result.as_ref()),
            None => items::unfinished(&call, &thread),
        };
        self.done(index, item);
    }

    /// Sends the waits and ends the response. The next request has the answers to approvals. The calls that
    /// need them, and those after them, are run after the decision, and are items of the next response.
    fn wait(&mut self, waits: &[OpenWait]) {
        self.close(true);
        self.settle();
        for pending in std::mem::take(&mut self.pending) {
            if pending.index.is_some() || pending.result.is_some() {
                self.server_call(pending);
            }
        }
        let is_asked = |wait: &&OpenWait| match wait.kind.as_str() {
            "client_tool" => true,
            "approval" => self.settings.approves,
            _ => false,
        };
        let told = waits.iter().filter(|wait| !is_asked(wait)).map(|wait| wait.line(&self.settings.thread));
        let told: Vec<String> = told.collect();
        if !told.is_empty() {
            // A separate text, which is not part of the reply.
            self.tries += 1;
            self.write(&told.join("\n"));
            self.close(true);
        }
        for OpenWait { id, kind, call, .. } in waits {
            if let ("approval", Some(call)) = (kind.as_str(), call) {
                let item = items::approval_request(id, call, &self.settings.thread);
                let index = self.add(item.clone());
                self.done(index, item);
            }
        }
        self.end(Status::Completed);
    }

    fn end(&mut self, status: Status) {
        self.begin();
        self.close(status == Status::Completed);
        self.settle();
        for pending in std::mem::take(&mut self.pending) {
            self.server_call(pending);
        }
        self.status = status;
        let response = self.response();
        let kind = match status {
            // Without an `error` event: OpenAI's package for JavaScript throws on it from 7.59 on. Older
            // versions, and Python's, return it.
            Status::Failed => "response.failed",
            // OpenAI has no event for a cancelled response.
            Status::Cancelled => "response.incomplete",
            _ => "response.completed",
        };
        self.events.last(json!({ "type": kind, "response": response }));
    }

    /// The current response object.
    fn response(&self) -> Value {
        let failed = self.over.as_ref().filter(|_| self.status == Status::Failed);
        let error = failed.map(|over| json!({ "code": over.reason, "message": over.told }));
        let usage = self.over.as_ref().and_then(|over| over.usage.as_ref()).map(items::usage);
        items::response(&items::Facts {
            settings: &self.settings,
            status: self.status.as_str(),
            output: &self.output,
            error,
            usage,
        })
    }
}

impl Encode for Responses {
    fn push(&mut self, events: &str) -> Result<String> {
        if self.is_done() {
            return Ok(String::new());
        }
        for (kind, frame) in sse::frames(events)? {
            let said = self.listener.take(kind, &frame)?;
            self.begin();
            for said in said {
                self.take(said);
            }
        }
        Ok(self.events.take())
    }

    fn is_over(&self) -> bool {
        self.is_done()
    }

    fn status(&self) -> u16 {
        200
    }

    fn whole(&self) -> Value {
        self.response()
    }
}
