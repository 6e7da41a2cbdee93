//! Data that a provider requires back with its replies, such as signed thinking (spec §4.3, §5.3). It is
//! stored in the reply's row, shown by no API, and sent back byte for byte, but only to the prompt, model and
//! provider that wrote it.

use serde::Deserialize;

use crate::definitions::message::ToolCall;
use crate::engine::definitions::Definitions;
use crate::engine::thread::Thread;
use crate::error::{Error, Result};
use crate::models::{Payload, PositionedBlock, Reply};
use crate::store::runs::Step;
use crate::store::window::{Author, Replay};

/// The replay column of a reply without one of its calls: drops the blocks with the call's id.
pub(in crate::engine) fn without(column: Option<&str>, call_id: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow, default)]
        id: Option<std::borrow::Cow<'a, str>>,
    }
    let of_call = |placed: &PositionedBlock| {
        let named: Option<Named<'_>> = crate::json::from_str(placed.block.get()).ok();
        named.and_then(|named| named.id).is_some_and(|id| id == call_id)
    };
    let mut replay: Replay = crate::json::from_str(column?).ok()?;
    replay.blocks.retain(|placed| !of_call(placed));
    serde_json::to_string(&replay).ok()
}

/// Empties the position of a dropped call. The provider's data on the first call of a reply moves to the next
/// one.
pub(in crate::engine) fn drop_call(calls: &mut [ToolCall], index: usize) {
    let Some(place) = calls.get_mut(index) else { return };
    let gone = std::mem::replace(place, ToolCall::dropped(&place.name));
    let first = calls.iter().take(index).all(ToolCall::is_dropped);
    let next = calls.iter_mut().skip(index).find(|call| !call.is_dropped());
    if let Some(next) = next.filter(|next| first && next.extra_content.is_none()) {
        next.extra_content = gone.extra_content;
    }
}

impl Thread {
    /// The replay column for a reply. `None` if its provider requires nothing back, or if that is too large.
    pub(in crate::engine) fn replay_column(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
        reply: &Reply,
    ) -> Result<Option<String>> {
        let blocks = match &reply.payload {
            Payload::Blocks(blocks) => blocks.clone(),
            // Its calls may still carry data.
            Payload::None => Vec::new(),
            Payload::TooLarge(bytes) => {
                self.variables().log(&format!("a reply's reasoning of {bytes} bytes or more is not kept"));
                Vec::new()
            }
        };
        if blocks.is_empty() && reply.tool_calls.iter().all(|call| call.extra_content.is_none()) {
            return Ok(None);
        }
        let author = Author::new(self.current_model(definitions, step)?, definitions.prompt);
        serde_json::to_string(&Replay { author, blocks }).map(Some).map_err(Error::internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::message::Role;
    use crate::definitions::model::Provider;
    use crate::definitions::opaque::Opaque;
    use crate::store::messages::Row;

    fn call(id: &str, extra: Option<&str>) -> ToolCall {
        let extra_content = extra.and_then(|text| Opaque::parse(text.to_owned()));
        ToolCall { id: id.into(), name: "work".into(), arguments: "{}".into(), extra_content }
    }

    #[test]
    fn what_stood_before_calls_that_are_all_gone_goes_with_them() {
        // Pieces: bytes of text and calls before each. Then which of three calls are gone, and what is left.
        type Places = &'static [(usize, usize)];
        let cases: [(Places, [bool; 3], Places); 8] = [
            (&[(0, 0), (0, 1)], [false; 3], &[(0, 0), (0, 1)]),
            (&[(0, 0)], [true, false, false], &[(0, 0)]),
            (&[(0, 0), (0, 0), (0, 1)], [true, false, false], &[(0, 0)]),
            (&[(0, 0), (0, 1)], [false, true, true], &[(0, 0)]),
            (&[(0, 0), (0, 1), (0, 2)], [false, true, false], &[(0, 0), (0, 1)]),
            (&[(0, 0), (5, 0)], [true; 3], &[(0, 0)]),
            (&[(0, 0), (0, 2)], [true, false, true], &[(0, 0)]),
            (&[(5, 3)], [true; 3], &[(5, 0)]),
        ];
        for (pieces, gone, left) in cases {
            let author = Author {
                provider: Provider::Anthropic,
                definition: "m".into(),
                model: "m".into(),
                prompt: "p".into(),
            };
            let block = Opaque::parse(r#"{"type":"thinking"}"#.to_owned()).unwrap();
            let place = |(text, calls): &(usize, usize)| PositionedBlock {
                text: *text,
                calls: *calls,
                block: block.clone(),
            };
            let replay = Replay { author, blocks: pieces.iter().map(place).collect() };
            let mut calls = vec![call("a", None), call("b", None), call("c", None)];
            for (index, _) in gone.iter().enumerate().filter(|(_, gone)| **gone) {
                drop_call(&mut calls, index);
            }
            let content = if pieces.iter().any(|place| place.0 > 0) { "Well." } else { "" };
            let row = Row { calls, ..Row::new(7, Role::Assistant, content, 0) };
            let found: Vec<_> =
                replay.placed(&row).iter().map(|placed| (placed.text, placed.calls)).collect();
            assert_eq!(found, left, "{pieces:?} {gone:?}");
        }
    }

    #[test]
    fn what_comes_with_the_first_call_goes_to_the_next() {
        let mut calls = vec![call("a", Some(r#"{"sig":1}"#)), call("b", None), call("c", None)];
        drop_call(&mut calls, 0);
        assert_eq!(calls[1].extra_content.as_ref().map(Opaque::get), Some(r#"{"sig":1}"#));
        drop_call(&mut calls, 1);
        assert_eq!(calls[2].extra_content.as_ref().map(Opaque::get), Some(r#"{"sig":1}"#));
        let mut calls = vec![call("a", None), call("b", Some("7")), call("c", None)];
        drop_call(&mut calls, 1);
        assert_eq!(calls[2].extra_content, None, "only the first one's is asked for");
    }

    #[test]
    fn a_piece_that_names_a_call_goes_with_it() {
        let column = r#"{"author":{"provider":"openai","definition":"m","model":"m","prompt":"p"},"blocks":[{"text":0,"calls":0,"block":{"id":"a","data":"\u002b"}},{"text":0,"calls":0,"block":{"id":7}},{"text":0,"calls":1,"block":{"data":"x"}}]}"#;
        let left = without(Some(column), "a").unwrap();
        assert!(
            !left.contains("u002b") && left.contains(r#"{"id":7}"#) && left.contains(r#"{"data":"x"}"#),
            "{left}"
        );
        assert_eq!(without(Some(column), "b").as_deref(), Some(column));
        assert_eq!(without(None, "a"), None);
    }
}
