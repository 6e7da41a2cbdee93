//! Who listens to a thread, and what they are sent (spec §28.1, `GET /stream` and `GET /events`).

use serde_json::Value;

/// The connections that listen to a thread.
pub trait Listeners {
    /// Whether anybody listens; frames are not even built when nobody does.
    fn any(&self) -> bool;

    /// Whether a listener asked for items ([`Filter::items`]).
    fn want_items(&self) -> bool;

    /// Whether a listener wants to be told what a run does ([`Filter::quiet`]).
    fn want_progress(&self) -> bool;

    /// Sends a frame to every listener whose filter lets it through. Never fails: a broken listener is dropped.
    fn broadcast(&self, frame: &Frame);

    /// Whether a listener follows one run ([`Filter::feed`]).
    fn follow_run(&self) -> bool;

    /// Ends every listener's connection: the thread is gone, or had to start over.
    fn close(&self, reason: &str);
}

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
    /// Where it belongs, for those who follow one run.
    pub place: Place,
}

/// Where a frame belongs in the history of a thread, for those who follow one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// To no run.
    #[default]
    Outside,
    /// To the run that works at this seq.
    At(i64),
    /// It is the end of a run, whose last block begins at `block`.
    End {
        /// The run.
        run: i64,
        /// Everything before it was taken in.
        block: i64,
    },
    /// No run takes in what is queued: this message alone, or all.
    Held(Option<i64>),
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
    /// Also items: stored messages in the words of pages that show what is done.
    #[serde(default)]
    pub items: bool,
    /// No lines that say what a run does.
    #[serde(default)]
    pub quiet: bool,
    /// The replies of a feed list their initial waits, for the encoders of other protocols. Clients cannot set it.
    #[serde(default)]
    pub waits: bool,
    /// Server-sent-events text (the `/events` bridge) instead of JSON.
    pub events: bool,
    /// One run and nothing else, to its end.
    #[serde(default)]
    pub feed: Option<Feed>,
}

/// The run that a listener follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Feed {
    /// Its number; none while the message that it is to take in is queued.
    pub run: Option<i64>,
    /// What comes behind this seq is told.
    pub after: i64,
}

impl Feed {
    fn has(self, place: Place) -> bool {
        match place {
            Place::Outside => false,
            Place::At(seq) => seq > self.after,
            Place::End { run, block } => self.run.map_or(block > self.after, |own| own == run),
            Place::Held(None) => self.run.is_none(),
            Place::Held(Some(seq)) => self.run.is_none() && seq == self.after,
        }
    }
}

impl Frame {
    /// Whether a listener with this filter gets it.
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

    /// Whether nothing follows it for a listener with this filter.
    pub fn ends(&self, filter: &Filter) -> bool {
        self.is_end() && self.passes(filter)
    }

    fn is_end(&self) -> bool {
        matches!(self.place, Place::End { .. } | Place::Held(_))
    }

    /// The JSON text for a socket; `id` is added to the object when there is one.
    pub fn socket_text(&self) -> String {
        let mut text = json_text(&self.data);
        if let Some(id) = &self.id
            && text.len() > 2
            && text.ends_with('}')
        {
            // Spliced in as text: a frame is made for every piece of a reply, and copying its object takes longer.
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

/// What `Display` writes too, without going through a formatter.
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
            place: Place::Outside,
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
