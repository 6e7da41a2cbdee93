//! What listeners of a thread are sent (spec §28.1, `GET /stream` and `GET /events`).

use serde_json::Value;

/// One frame. The socket sends [`Frame::socket_text`], a server-sent-events stream [`Frame::event_text`].
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// `message_data`, `message_chunk`, … (spec §28.1); also the `type` inside `data`.
    pub kind: &'static str,
    /// Where a client resumes after it; only durable and text frames have one.
    pub id: Option<String>,
    /// The frame's object, `type` included.
    pub data: Value,
    /// Only for listeners that asked for silent messages.
    pub silent: bool,
    /// Only for listeners that asked for this depth or more (0 = top level).
    pub depth: u32,
}

/// What a listener wants to see; kept with its socket across hibernation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Filter {
    /// Also silent messages.
    pub silent: bool,
    /// Messages down to this depth.
    pub depth: u32,
    /// Also the model's reasoning, as it streams.
    pub reasoning: bool,
    /// Server-sent-events text (the `/events` bridge) instead of JSON.
    pub events: bool,
}

impl Frame {
    /// Whether a listener with this filter gets it.
    pub fn passes(&self, filter: &Filter) -> bool {
        (!self.silent || filter.silent)
            && self.depth <= filter.depth
            && (filter.reasoning || self.kind != "reasoning_chunk")
    }

    /// The JSON text for a socket; `id` is added to the object when there is one.
    pub fn socket_text(&self) -> String {
        match (&self.id, &self.data) {
            (Some(id), Value::Object(fields)) => {
                let mut fields = fields.clone();
                fields.insert("id".into(), Value::String(id.clone()));
                Value::Object(fields).to_string()
            }
            (_, data) => data.to_string(),
        }
    }

    /// The text for a server-sent-events stream.
    pub fn event_text(&self) -> String {
        let id = self.id.as_ref().map(|id| format!("id: {id}\n")).unwrap_or_default();
        format!("{id}event: {}\ndata: {}\n\n", self.kind, self.data)
    }

    /// The text for a listener with this filter.
    pub fn text(&self, filter: &Filter) -> String {
        if filter.events { self.event_text() } else { self.socket_text() }
    }
}
