//! The history of a request. Anthropic's roles must alternate, so neighbours of one role become one message with several
//! blocks, and results come first in the message after their calls. The text is written directly instead of through a
//! tree: what the engine kept of the last request is copied, and what a provider wants back must not be serialised
//! again.

use crate::models::cached_json::Blocks;
use crate::models::fit::{CONTINUE, permitted};
use crate::models::openai::messages::parseable;
use crate::models::writing::{comma, quoted};
use crate::models::{CachedJson, ChatMessage, Part, Placed};
use crate::spec::message::{ToolCall, ToolStatus};
use crate::text::boundary;

/// Put on the last block of what stays the same: the provider caches the request up to here.
const CACHED: &str = r#","cache_control":{"type":"ephemeral"}}"#;

/// Whether thinking goes back with the replies that had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replay {
    Yes,
    No,
}

/// The system messages that stand at the beginning, as `system`, and how many they are. `None`: there are none.
pub(crate) fn system(messages: &[CachedJson<ChatMessage>]) -> (Option<String>, usize) {
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

/// The other messages.
pub(crate) fn messages(messages: &[CachedJson<ChatMessage>], replay: Replay) -> String {
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

/// The list of messages that is being written, and whose message is open in it. The API wants the first one to be the
/// user's, and the last.
struct Turns(String, Option<&'static str>);

impl Turns {
    fn push(&mut self, role: &'static str, blocks: &str) {
        match self.1 {
            _ if blocks.is_empty() => return,
            None if role == "assistant" => self.push("user", &said(CONTINUE)),
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
            self.push("user", &said(CONTINUE));
        }
        let mut out = cached(self.0);
        out.push_str("]}]");
        out
    }
}

/// Blocks whose last one marks the end of what is cached.
pub(crate) fn cached(mut blocks: String) -> String {
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

fn said(text: &str) -> String {
    let mut block = String::new();
    text_block(text, &mut block);
    block
}

/// The blocks of a message, with commas between them and no brackets around them. Blank texts are left out: the API
/// refuses them.
fn blocks(message: &ChatMessage, replay: Replay) -> String {
    let mut out = String::new();
    match message {
        // A system message in the middle: there is no such role here.
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

/// A reply: what its provider wants back, each piece where it stood, and between them text and calls.
fn reply(content: &str, calls: &[ToolCall], payload: &[Placed], out: &mut String) {
    let (mut text_at, mut call_at) = (0, 0);
    // Text and calls may be fewer than they were: nothing then is lost, nor said twice.
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

/// What a provider wants back, without what nothing follows: the API refuses a reply that ends with thinking, because it was
/// cut off there. One with calls goes back as it came.
fn without_trailing<'a>(content: &str, calls: &[ToolCall], payload: &'a [Placed]) -> &'a [Placed] {
    if !calls.is_empty() {
        return payload;
    }
    let follows = |placed: &Placed| {
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
