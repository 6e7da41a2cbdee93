//! The connections that follow a thread, and the frames for them (spec §28.1, `GET /stream` and
//! `GET /events`).

use serde_json::Value;

/// The connections that follow a thread.
pub trait Listeners {
    /// Whether there are any; without any, frames are not built.
    fn any(&self) -> bool;

    /// Whether one wants items ([`Filter::items`]).
    fn want_items(&self) -> bool;

    /// Whether one wants progress lines ([`Filter::quiet`]).
    fn want_progress(&self) -> bool;

    /// Sends a frame to every listener whose filter accepts it. Never fails: a broken listener is dropped.
    fn broadcast(&self, frame: &Frame);

    /// Whether one follows a single run ([`Filter::feed`]).
    fn follow_run(&self) -> bool;

    /// Closes every connection, because the thread was deleted or had to start over.
    fn close(&self, reason: &str);
}

/// One frame. A socket sends [`Frame::socket_text`], a stream of server-sent events [`Frame::event_text`].
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// `message_data`, `message_chunk`, … (spec §28.1); also the `type` inside `data`.
    pub kind: &'static str,
    /// Position to resume after this frame; only durable and text frames have one.
    pub id: Option<String>,
    /// The frame's object, `type` included.
    pub data: Value,
    /// Only for listeners that requested silent messages.
    pub silent: bool,
    /// Only for listeners that requested this depth or more (0 = top level).
    pub depth: u32,
    /// Position in the history, for listeners that follow one run.
    pub place: FramePosition,
}

/// Position of a frame in the history of a thread, for listeners that follow one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FramePosition {
    /// Belongs to no run.
    #[default]
    Outside,
    /// Belongs to the run that works at this seq.
    At(i64),
    /// The end of a run whose last block begins at `block`.
    End {
        /// The run.
        run: i64,
        /// Seq below which everything was taken in.
        block: i64,
    },
    /// No run takes in this queued message, or any queued message.
    Held(Option<i64>),
}

/// The frames that a listener wants; kept with its socket across hibernation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Filter {
    /// Include silent messages.
    pub silent: bool,
    /// Maximum depth of messages.
    pub depth: u32,
    /// Include the model's reasoning while it streams.
    pub reasoning: bool,
    /// Include items: stored messages in the form for pages that show activity.
    #[serde(default)]
    pub items: bool,
    /// Exclude progress lines.
    #[serde(default)]
    pub quiet: bool,
    /// Include initial waits in the replies of a feed, for the encoders of other protocols. Clients cannot
    /// set it.
    #[serde(default)]
    pub waits: bool,
    /// Send server-sent events (the `/events` bridge) instead of JSON.
    pub events: bool,
    /// Include only one run, up to its end.
    #[serde(default)]
    pub feed: Option<Feed>,
}

/// The run that a listener follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Feed {
    /// Its number; `None` while its message is queued.
    pub run: Option<i64>,
    /// Only frames after this seq are sent.
    pub after: i64,
}

impl Feed {
    fn has(self, place: FramePosition) -> bool {
        match place {
            FramePosition::Outside => false,
            FramePosition::At(seq) => seq > self.after,
            FramePosition::End { run, block } => self.run.map_or(block > self.after, |own| own == run),
            FramePosition::Held(None) => self.run.is_none(),
            FramePosition::Held(Some(seq)) => self.run.is_none() && seq == self.after,
        }
    }
}

impl Frame {
    /// Whether a listener with this filter receives the frame.
    pub fn passes(&self, filter: &Filter) -> bool {
        (!self.silent || filter.silent)
            && self.depth <= filter.depth
            && (filter.reasoning || self.kind != "reasoning_chunk")
            && (filter.items || self.kind != "item")
            && !(filter.quiet && self.kind == "progress")
            && match filter.feed {
                Some(feed) => feed.has(self.place),
                None => !self.is_end(),
            }
    }

    /// Whether the frame is the last one for a listener with this filter.
    pub fn ends(&self, filter: &Filter) -> bool {
        self.is_end() && self.passes(filter)
    }

    fn is_end(&self) -> bool {
        matches!(self.place, FramePosition::End { .. } | FramePosition::Held(_))
    }

    /// The JSON text for a socket; `id` is added to the object when there is one.
    pub fn socket_text(&self) -> String {
        let mut text = json_text(&self.data);
        if let Some(id) = &self.id
            && text.len() > 2
            && text.ends_with('}')
        {
            // Spliced as text: a frame is made for every piece of a reply, and copying its object would take
            // longer.
            text.pop();
            text.push_str(",\"id\":");
            text.push_str(&Value::from(id.as_str()).to_string());
            text.push('}');
        }
        text
    }

    /// The text for a server-sent-events stream.
    pub fn event_text(&self) -> String {
        let data = json_text(&self.data);
        match &self.id {
            Some(id) => format!("id: {id}\nevent: {}\ndata: {data}\n\n", self.kind),
            None => format!("event: {}\ndata: {data}\n\n", self.kind),
        }
    }

    /// The text for a listener with this filter.
    pub fn text(&self, filter: &Filter) -> String {
        if filter.events { self.event_text() } else { self.socket_text() }
    }
}

/// The same text as `Display`, without the cost of a formatter.
fn json_text(data: &Value) -> String {
    serde_json::to_string(data).unwrap_or_else(|_| data.to_string())
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;

    fn frame(id: Option<&str>) -> Frame {
        let data = json!({ "type": "message_chunk", "chunk": "a \"b\"\n" });
        Frame {
            kind: "message_chunk",
            id: id.map(str::to_owned),
            data,
            silent: false,
            depth: 0,
            place: FramePosition::Outside,
        }
    }

    #[test]
    fn a_sockets_text_is_the_object_with_its_id() {
        let text = frame(Some("0.1\"")).socket_text();
        let value: Value = crate::json::from_str(&text).unwrap();
        assert_eq!(value, json!({ "type": "message_chunk", "chunk": "a \"b\"\n", "id": "0.1\"" }));
        let without: Value = crate::json::from_str(&frame(None).socket_text()).unwrap();
        assert_eq!(without, frame(None).data);
    }

    #[test]
    fn an_events_text_is_one_event() {
        let data = r#"{"type":"message_chunk","chunk":"a \"b\"\n"}"#;
        assert_eq!(frame(None).event_text(), format!("event: message_chunk\ndata: {data}\n\n"));
        assert_eq!(
            frame(Some("0.1")).event_text(),
            format!("id: 0.1\nevent: message_chunk\ndata: {data}\n\n")
        );
    }
}
