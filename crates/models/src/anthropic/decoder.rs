//! Decodes a response into deltas: a stream of events, or one JSON body. Unknown events and blocks (server
//! tools, citations, future ones) are skipped with their deltas.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::anthropic::event::{Block, Delta as Change, Event, WireUsage};
use crate::decoding::{End, EventError, Format, ResponseDecoder};
use crate::literal::{Literal, shown};
use crate::response::SeenNames;
use crate::{Delta, FinishReason, surrogates};
use bobbin_definitions::definitions::opaque::Opaque;

/// Decoder of one response. It is complete with a stop reason or with `message_stop`.
pub type Decoder = ResponseDecoder<State>;

/// State of a response so far.
#[derive(Debug, Default)]
pub struct State {
    /// Blocks that have begun and not ended, by their index.
    open: BTreeMap<u64, OpenBlock>,
    calls: usize,
    usage: WireUsage,
    named: SeenNames,
    end: End,
}

/// A block that is arriving.
#[derive(Debug)]
enum OpenBlock {
    Text,
    /// Sent back unchanged, so its strings keep their escapes.
    Thinking {
        thinking: Literal,
        signature: Literal,
    },
    /// A block that arrives whole and is sent back unchanged.
    Whole(Opaque),
    Call {
        index: usize,
        /// Arguments in the start event; used if no others follow.
        whole: Option<String>,
    },
    Unknown,
}

impl Format for State {
    fn read(&mut self, json: &[u8], out: &mut Vec<Delta>) -> Result<(), EventError> {
        let event: Event<'_> = bobbin_definitions::json::from_slice(json)?;
        self.take(event, out)
    }

    fn end(&self) -> End {
        self.end
    }
}

impl State {
    fn take(&mut self, event: Event<'_>, out: &mut Vec<Delta>) -> Result<(), EventError> {
        match &*event.r#type.0 {
            "message_start" => {
                let message = event.message.0.unwrap_or_default();
                self.named.take(&message.id.0, &message.model.0, out);
                self.usage(message.usage.0.as_ref(), out);
                self.stop(&message.stop_reason.0, out);
            }
            "content_block_start" => {
                if let Some(raw) = event.content_block {
                    // Without an index it follows the last open block.
                    let next = self.open.last_key_value().map_or(0, |(index, _)| index + 1);
                    self.start(event.index.0.unwrap_or(next), raw, out);
                }
            }
            "content_block_delta" => {
                if let (Some(index), Some(delta)) = (self.index(&event), &event.delta.0) {
                    self.change(index, delta, out);
                }
            }
            "content_block_stop" => self.close(self.index(&event), out),
            "message_delta" => {
                self.usage(event.usage.0.as_ref(), out);
                self.stop(&event.delta.0.unwrap_or_default().stop_reason.0, out);
            }
            "message_stop" => self.end = End::Done,
            "error" => return Err(EventError::Reports(None)),
            "message" => self.whole(&event, out),
            _ if event.error.is_some() => return Err(EventError::Reports(None)),
            _ => {}
        }
        Ok(())
    }

    /// The block of an event; without an index, the last open one.
    fn index(&self, event: &Event<'_>) -> Option<u64> {
        event.index.0.or_else(|| self.open.last_key_value().map(|(index, _)| *index))
    }

    /// Reads a whole response: each block begins and ends at once.
    fn whole(&mut self, event: &Event<'_>, out: &mut Vec<Delta>) {
        self.named.take(&event.id.0, &event.model.0, out);
        let blocks = event.content.map(RawValue::get).unwrap_or_default();
        let blocks: Vec<&RawValue> = bobbin_definitions::json::from_str(blocks).unwrap_or_default();
        for (index, raw) in blocks.into_iter().enumerate() {
            self.start(index as u64, raw, out);
            self.close(Some(index as u64), out);
        }
        self.usage(event.usage.0.as_ref(), out);
        self.stop(&event.stop_reason.0, out);
    }

    fn usage(&mut self, told: Option<&WireUsage>, out: &mut Vec<Delta>) {
        if let Some(told) = told {
            self.usage.update(told);
            out.push(Delta::Usage(self.usage.total()));
        }
    }

    fn stop(&mut self, reason: &str, out: &mut Vec<Delta>) {
        if !reason.is_empty() {
            self.end = End::Finished;
            out.push(Delta::Finish(finish_reason(reason)));
        }
    }

    fn start(&mut self, index: u64, raw: &RawValue, out: &mut Vec<Delta>) {
        // Raw parts were not searched for halves of characters yet.
        let mended = surrogates::marked(raw.get());
        let block: Block<'_> =
            bobbin_definitions::json::from_str(mended.as_deref().unwrap_or(raw.get())).unwrap_or_default();
        let open = match &*block.r#type.0 {
            "text" => {
                text(&block.text.0, out);
                OpenBlock::Text
            }
            "thinking" => {
                let (mut thinking, mut signature) = (Literal::default(), Literal::default());
                block.thinking.iter().for_each(|piece| thought(piece, &mut thinking, out));
                block.signature.iter().for_each(|piece| signature.push(piece));
                OpenBlock::Thinking { thinking, signature }
            }
            "redacted_thinking" => OpenBlock::Whole(Opaque::new(raw)),
            "tool_use" => {
                let index = self.calls;
                self.calls += 1;
                let (id, name) = (block.id.0.into_owned(), block.name.0.into_owned());
                out.push(Delta::CallStart { index, id, name });
                let whole = block.input.map(RawValue::get).filter(|input| !matches!(*input, "{}" | "null"));
                OpenBlock::Call { index, whole: whole.map(str::to_owned) }
            }
            _ => OpenBlock::Unknown,
        };
        self.open.insert(index, open);
    }

    fn change(&mut self, index: u64, delta: &Change<'_>, out: &mut Vec<Delta>) {
        let Some(open) = self.open.get_mut(&index) else { return };
        match (open, &*delta.r#type.0) {
            (OpenBlock::Text, "text_delta") => text(&delta.text.0, out),
            (OpenBlock::Call { index, whole }, "input_json_delta") if !delta.partial_json.is_empty() => {
                *whole = None;
                out.push(Delta::CallArguments {
                    index: *index,
                    text: delta.partial_json.0.clone().into_owned(),
                });
            }
            (OpenBlock::Thinking { thinking, .. }, "thinking_delta") => {
                delta.thinking.iter().for_each(|piece| thought(piece, thinking, out));
            }
            (OpenBlock::Thinking { signature, .. }, "signature_delta") => {
                delta.signature.iter().for_each(|piece| signature.push(piece));
            }
            _ => {}
        }
    }

    fn close(&mut self, index: Option<u64>, out: &mut Vec<Delta>) {
        let Some(open) = index.and_then(|index| self.open.remove(&index)) else { return };
        match open {
            OpenBlock::Thinking { thinking, signature } => {
                let mut block = String::from(r#"{"type":"thinking","thinking":"#);
                thinking.write(&mut block);
                // Compatible servers send no signatures.
                if !signature.is_empty() {
                    block.push_str(r#","signature":"#);
                    signature.write(&mut block);
                }
                block.push('}');
                out.extend(Opaque::parse(block).map(Delta::Payload));
            }
            OpenBlock::Whole(block) => out.push(Delta::Payload(block)),
            OpenBlock::Call { index, whole: Some(text) } => out.push(Delta::CallArguments { index, text }),
            OpenBlock::Text | OpenBlock::Call { .. } | OpenBlock::Unknown => {}
        }
    }
}

fn text(text: &str, out: &mut Vec<Delta>) {
    if !text.is_empty() {
        out.push(Delta::Text(text.to_owned()));
    }
}

/// Reads a piece of thinking: stored with its escapes, and streamed as text.
fn thought(piece: &RawValue, thinking: &mut Literal, out: &mut Vec<Delta>) {
    thinking.push(piece);
    let text = shown(piece);
    if !text.is_empty() {
        out.push(Delta::Reasoning(text));
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::ContentFilter,
        // Such as `pause_turn`: only server tools pause, and Bobbin offers none.
        _ => FinishReason::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bobbin_definitions::definitions::model::Usage;

    fn decode(events: &[&str]) -> Vec<Delta> {
        let (mut decoder, mut out) = (Decoder::new(None), Vec::new());
        for event in events {
            decoder.push(format!("data: {event}\n\n").as_bytes(), &mut out).unwrap();
        }
        decoder.finish(&mut out).unwrap();
        out
    }

    #[test]
    fn no_type_of_a_field_costs_the_answer() {
        for odd in ["null", "\"\"", "\"7\"", "7.0", "-1", "[]", "[null]", "{}"] {
            let start = format!(
                r#"{{"type":"message_start","message":{{"usage":{{"input_tokens":{odd},"output_tokens":{odd}}},"id":{odd}}}}}"#
            );
            let odds = format!(
                r#"{{"type":"ping","index":{odd},"message":{odd},"delta":{odd},"usage":{odd},"content":{odd}}}"#
            );
            let out = decode(&[
                &start,
                r#"{"type":"content_block_start","content_block":{"type":"text","text":"a"}}"#,
                r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"b"}}"#,
                r#"{"type":"content_block_stop"}"#,
                &odds,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            ]);
            let text =
                |delta: &Delta| if let Delta::Text(text) = delta { text.clone() } else { String::new() };
            let text: String = out.iter().map(text).collect();
            assert_eq!(text, "ab", "{odd}: blocks without an index");
        }
        let counts = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":"7","output_tokens":8.0}}"#;
        let usage = Usage { input_tokens: 7, output_tokens: 8, ..Usage::default() };
        assert!(decode(&[counts]).contains(&Delta::Usage(usage)));
    }
}
