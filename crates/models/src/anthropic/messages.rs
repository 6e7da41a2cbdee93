//! The history of a request. Anthropic's roles must alternate, so adjacent messages of one role become one
//! message with several blocks, and results come first in the message after their calls. The JSON is written
//! directly: the engine's cached JSON is copied, and data for a provider must not be serialized again.

use crate::cached_json::Blocks;
use crate::fit::{CONTINUE, permitted};
use crate::openai::messages::parseable;
use crate::writing::{comma, quoted};
use crate::{CachedJson, ChatMessage, Part, PositionedBlock};
use bobbin_definitions::definitions::message::{ToolCall, ToolStatus};
use bobbin_definitions::text::boundary;

/// Added to the last block of a stable part: the provider caches the request up to here.
const CACHED: &str = r#","cache_control":{"type":"ephemeral"}}"#;

/// Whether thinking is sent back with its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replay {
    Yes,
    No,
}

/// The leading system messages as `system`, and their number. `None` when they have no text.
pub fn system(messages: &[CachedJson<ChatMessage>]) -> (Option<String>, usize) {
    let texts = messages.iter().map_while(|message| match &**message {
        ChatMessage::System(text) => Some(text),
        _ => None,
    });
    let (mut blocks, mut count) = (String::new(), 0);
    for text in texts {
        text_block(text, &mut blocks);
        count += 1;
    }
    ((!blocks.is_empty()).then(|| format!("[{}]", cached(blocks))), count)
}

/// The messages after them.
pub(super) fn messages(messages: &[CachedJson<ChatMessage>], replay: Replay) -> String {
    let mut out = Turns(String::from("["), None);
    for message in messages {
        let has_payload = matches!(&**message, ChatMessage::Assistant { payload, .. } if !payload.is_empty());
        if replay == Replay::No && has_payload {
            out.push(role(message), &blocks(message, Replay::No));
        } else {
            out.push(
                role(message),
                &message.blocks(Blocks::Anthropic, |message| blocks(message, Replay::Yes)),
            );
        }
    }
    out.finish()
}

/// The list of messages that is being written, and the role of the open one. The API requires that the first
/// and the last message are the user's.
struct Turns(String, Option<&'static str>);

impl Turns {
    fn push(&mut self, role: &'static str, blocks: &str) {
        match self.1 {
            _ if blocks.is_empty() => return,
            None if role == "assistant" => self.push("user", &text_block_of(CONTINUE)),
            _ => {}
        }
        if self.1 == Some(role) {
            self.0.push(',');
        } else {
            self.close();
            self.0.push_str(r#"{"role":""#);
            self.0.push_str(role);
            self.0.push_str(r#"","content":["#);
            self.1 = Some(role);
        }
        self.0.push_str(blocks);
    }

    fn close(&mut self) {
        if self.1.is_some() {
            self.0.push_str("]},");
        }
    }

    fn finish(mut self) -> String {
        if self.1 != Some("user") {
            self.push("user", &text_block_of(CONTINUE));
        }
        let mut out = cached(self.0);
        out.push_str("]}]");
        out
    }
}

/// Marks the last block as the end of a cached part.
pub fn cached(mut blocks: String) -> String {
    if blocks.pop() == Some('}') {
        blocks.push_str(CACHED);
    }
    blocks
}

fn role(message: &ChatMessage) -> &'static str {
    match message {
        ChatMessage::Assistant { .. } => "assistant",
        ChatMessage::System(_) | ChatMessage::User(_) | ChatMessage::Tool { .. } => "user",
    }
}

fn text_block_of(text: &str) -> String {
    let mut block = String::new();
    text_block(text, &mut block);
    block
}

/// The blocks of a message, separated by commas, without brackets. Blank texts are omitted, because the API
/// refuses them.
fn blocks(message: &ChatMessage, replay: Replay) -> String {
    let mut out = String::new();
    match message {
        // The API has no system role within the history.
        ChatMessage::System(text) if text.trim().is_empty() => {}
        ChatMessage::System(text) => text_block(&format!("<system>\n{text}\n</system>"), &mut out),
        ChatMessage::User(parts) => parts.iter().for_each(|part| match part {
            Part::Text(text) => text_block(text, &mut out),
            Part::Image { media_type, data } => image_block(media_type, data, &mut out),
        }),
        ChatMessage::Assistant { content, tool_calls, payload } => {
            let payload = if replay == Replay::Yes { &payload[..] } else { &[] };
            reply(content, tool_calls, payload, &mut out);
        }
        ChatMessage::Tool { call_id, content, status, images, .. } => {
            out.push_str(r#"{"type":"tool_result","tool_use_id":"#);
            out.push_str(&quoted(&permitted(call_id)));
            if !images.is_empty() {
                out.push_str(r#","content":["#);
                out.push_str(&parts(content, images));
                out.push(']');
            } else if !content.trim().is_empty() {
                out.push_str(r#","content":"#);
                out.push_str(&quoted(content));
            }
            // The API refuses an error without content.
            if *status == ToolStatus::Error && !(content.trim().is_empty() && images.is_empty()) {
                out.push_str(r#","is_error":true"#);
            }
            out.push('}');
        }
    }
    out
}

/// The text and the images of a result.
fn parts(text: &str, images: &[Part]) -> String {
    let mut out = String::new();
    text_block(text, &mut out);
    for part in images {
        match part {
            Part::Text(text) => text_block(text, &mut out),
            Part::Image { media_type, data } => image_block(media_type, data, &mut out),
        }
    }
    out
}

fn image_block(media_type: &str, data: &str, out: &mut String) {
    comma(out);
    out.push_str(r#"{"type":"image","source":{"type":"base64","media_type":"#);
    out.push_str(&quoted(media_type));
    out.push_str(r#","data":"#);
    out.push_str(&quoted(data));
    out.push_str("}}");
}

/// A reply: the provider's pieces at their positions, and text and calls between them.
fn reply(content: &str, calls: &[ToolCall], payload: &[PositionedBlock], out: &mut String) {
    let (mut text_at, mut call_at) = (0, 0);
    // Text and calls may be shorter than when they were stored. Clamping loses and repeats nothing.
    let mut up_to = |text: usize, call: usize, out: &mut String| {
        let (text, call) = (boundary(content, text).max(text_at), call.min(calls.len()).max(call_at));
        text_block(content.get(text_at..text).unwrap_or_default(), out);
        calls.get(call_at..call).unwrap_or_default().iter().for_each(|call| call_block(call, out));
        (text_at, call_at) = (text, call);
    };
    for placed in without_trailing(content, calls, payload) {
        up_to(placed.text, placed.calls, out);
        comma(out);
        out.push_str(placed.block.get());
    }
    up_to(content.len(), calls.len(), out);
}

/// The provider's pieces without trailing ones: the API refuses a reply that ends with thinking, which it
/// takes as cut off. A reply with calls is sent unchanged.
fn without_trailing<'a>(
    content: &str,
    calls: &[ToolCall],
    payload: &'a [PositionedBlock],
) -> &'a [PositionedBlock] {
    if !calls.is_empty() {
        return payload;
    }
    let follows = |placed: &PositionedBlock| {
        let text = content.get(boundary(content, placed.text)..).unwrap_or_default();
        !text.trim().is_empty()
    };
    let kept = payload.iter().rposition(follows).map_or(0, |last| last + 1);
    payload.get(..kept).unwrap_or_default()
}

fn text_block(text: &str, out: &mut String) {
    if !text.trim().is_empty() {
        comma(out);
        out.push_str(r#"{"type":"text","text":"#);
        out.push_str(&quoted(text));
        out.push('}');
    }
}

fn call_block(call: &ToolCall, out: &mut String) {
    comma(out);
    out.push_str(r#"{"type":"tool_use","id":"#);
    out.push_str(&quoted(&permitted(&call.id)));
    out.push_str(r#","name":"#);
    out.push_str(&quoted(&permitted(&call.name)));
    out.push_str(r#","input":"#);
    out.push_str(parseable(&call.arguments).trim());
    out.push('}');
}
