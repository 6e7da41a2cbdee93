//! Finds the item of an event. In the standard every event has the item's position, and events of pieces have
//! its id. Servers differ: some send no position (llama.cpp), the same position for all, or another id in
//! each event.

use crate::ProviderError;
use crate::decoding::EventError;
use crate::responses::event::{Event, Item};

/// Maximum number of items of a response.
const ITEMS: usize = 2048;

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Call,
    Reasoning,
    Other,
}

impl Kind {
    fn of(item: &Item<'_>) -> Kind {
        match &*item.r#type.0 {
            "message" => Kind::Message,
            "function_call" => Kind::Call,
            "reasoning" => Kind::Reasoning,
            _ => Kind::Other,
        }
    }
}

/// The items that have begun, in their order.
#[derive(Debug, Default)]
pub struct Items(Vec<Progress>);

/// The progress of an item.
#[derive(Debug)]
pub struct Progress {
    pub(super) kind: Kind,
    /// Its id, and its call's id.
    ids: [String; 2],
    /// Its position in the response; without one, after the previous item.
    place: u64,
    /// For a call: its index among the calls.
    pub call: Option<usize>,
    /// For a message: whether its phase was passed on.
    pub phased: bool,
    /// Whether its text, arguments or reasoning have begun.
    pub said: bool,
    /// Whether it is complete.
    pub done: bool,
}

impl Progress {
    fn has_id(&self, id: &str) -> bool {
        !id.is_empty() && self.ids.iter().any(|known| known == id)
    }
}

impl Items {
    /// Begins an item. Only its own id shows that it has begun before.
    pub fn begin(&mut self, place: Option<u64>, item: &Item<'_>) -> Result<&mut Progress, EventError> {
        let id = if item.id.is_empty() { &item.call_id } else { &item.id };
        let known = self.last(|progress| progress.has_id(&id.0));
        self.at(known, place, Kind::of(item), [&item.id.0, &item.call_id.0])
    }

    /// Finds a complete item: by its ids, else by its position, else the first incomplete one of its kind.
    pub fn whole(&mut self, place: Option<u64>, item: &Item<'_>) -> Result<&mut Progress, EventError> {
        let kind = Kind::of(item);
        let by_id = self
            .last(|progress| progress.has_id(&item.id.0))
            .or_else(|| self.last(|progress| progress.kind == kind && progress.has_id(&item.call_id.0)));
        let known = match place {
            _ if by_id.is_some() => by_id,
            Some(place) => self.last(|progress| progress.kind == kind && progress.place == place),
            None => self.0.iter().position(|progress| progress.kind == kind && !progress.done),
        };
        self.at(known, place, kind, [&item.id.0, &item.call_id.0])
    }

    /// Finds the item of a piece: by its id, else by its position, else the last one of its kind.
    pub(super) fn of(&mut self, event: &Event<'_>, kind: Kind) -> Result<&mut Progress, EventError> {
        let of_kind = |progress: &Progress| progress.kind == kind;
        let known = self.last(|progress| of_kind(progress) && progress.has_id(&event.item_id.0));
        let known = known.or_else(|| match event.output_index.0 {
            Some(place) => self.last(|progress| of_kind(progress) && progress.place == place),
            None => self.last(of_kind),
        });
        self.at(known, event.output_index.0, kind, [&event.item_id.0, ""])
    }

    fn last(&self, is: impl Fn(&Progress) -> bool) -> Option<usize> {
        self.0.iter().rposition(is)
    }

    /// Returns the known item, or adds one.
    fn at(
        &mut self,
        known: Option<usize>,
        place: Option<u64>,
        kind: Kind,
        ids: [&str; 2],
    ) -> Result<&mut Progress, EventError> {
        let too_many = || {
            let text = format!("the reply is refused: it has more than {ITEMS} items");
            EventError::Failed(ProviderError::invalid_reply(text))
        };
        let at = match known {
            Some(at) => at,
            None if self.0.len() == ITEMS => return Err(too_many()),
            None => {
                let place = place.unwrap_or_else(|| self.0.last().map_or(0, |last| last.place + 1));
                let ids = ids.map(str::to_owned);
                let (call, phased, said, done) = (None, false, false, false);
                self.0.push(Progress { kind, ids, place, call, phased, said, done });
                self.0.len() - 1
            }
        };
        self.0.get_mut(at).ok_or_else(too_many)
    }
}

#[cfg(test)]
mod tests {
    use crate::responses::Decoder;
    use crate::{Reply, ReplyBuilder};

    fn reply(events: &[String]) -> Reply {
        let (mut decoder, mut out, mut builder) = (Decoder::new(None), Vec::new(), ReplyBuilder::default());
        for event in events {
            decoder.push(format!("data: {event}\n\n").as_bytes(), &mut out).unwrap();
        }
        decoder.finish(&mut out).unwrap();
        out.iter().for_each(|delta| builder.push(delta).unwrap());
        builder.finish()
    }

    /// A server's way to identify the item of an event.
    struct Manner {
        /// Position of an item.
        place: fn(usize) -> String,
        /// Its id in later events.
        later_id: fn(&str) -> String,
    }

    /// Reasoning, a text and two calls. The pieces of the first call come after both have begun, and all
    /// items end last.
    fn events(manner: &Manner) -> Vec<String> {
        let Manner { place, later_id } = manner;
        let items = [
            (r#""type":"reasoning","id":"rs""#, r#""content":[{"text":"T."}],"summary":[]"#, "rs"),
            (r#""type":"message","id":"msg""#, r#""content":[{"text":"S."}]"#, "msg"),
            (r#""type":"function_call","call_id":"c1","name":"f""#, r#""arguments":"{\"x\":1}""#, "c1"),
            (r#""type":"function_call","call_id":"c2","name":"f""#, r#""arguments":"{}""#, "c2"),
        ];
        let mut events = Vec::new();
        for (at, (head, _, id)) in items.iter().enumerate() {
            let place = place(at);
            events.push(format!(r#"{{"type":"response.output_item.added"{place},"item":{{{head}}}}}"#));
            let piece = match at {
                0 => r#""response.reasoning_text.delta","delta":"T.""#,
                1 => r#""response.output_text.delta","delta":"S.""#,
                _ => continue,
            };
            events.push(format!(r#"{{"type":{piece}{place},"item_id":"{}"}}"#, later_id(id)));
        }
        let piece = r#""response.function_call_arguments.delta","delta":"{\"x\":1}""#;
        events.push(format!(r#"{{"type":{piece}{},"item_id":"{}"}}"#, place(2), later_id("c1")));
        let mut output = Vec::new();
        for (at, (head, rest, id)) in items.iter().enumerate() {
            let own = |id: &str| format!(r#""id":"{id}""#);
            let item = format!("{{{},{rest}}}", head.replace(&own(id), &own(&later_id(id))));
            events.push(format!(r#"{{"type":"response.output_item.done"{},"item":{item}}}"#, place(at)));
            output.push(item);
        }
        let output = output.join(",");
        events.push(format!(
            r#"{{"type":"response.completed","response":{{"status":"completed","output":[{output}]}}}}"#
        ));
        events
    }

    #[test]
    fn items_are_told_apart_however_servers_name_them() {
        let same = |id: &str| id.to_owned();
        let by_place = |at: usize| format!(r#","output_index":{at}"#);
        for (name, manner) in [
            ("by the book", Manner { place: by_place, later_id: same }),
            ("no places", Manner { place: |_| String::new(), later_id: same }),
            ("one place for all", Manner { place: |_| r#","output_index":0"#.to_owned(), later_id: same }),
            ("other ids in each event", Manner { place: by_place, later_id: |id| format!("{id}-again") }),
        ] {
            let reply = reply(&events(&manner));
            let calls: Vec<_> = reply.tool_calls.iter().map(|call| (&*call.id, &*call.arguments)).collect();
            assert_eq!((&*reply.reasoning, &*reply.content), ("T.", "S."), "{name}");
            assert_eq!(calls, [("c1", r#"{"x":1}"#), ("c2", "{}")], "{name}");
        }
    }
}
