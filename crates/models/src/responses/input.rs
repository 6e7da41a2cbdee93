//! The history of a request, as items. A reply is several: texts, calls and reasoning, in their positions.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;

use crate::cached_json::Blocks;
use crate::openai::messages::parseable;
use crate::writing::{comma, quoted, result_text};
use crate::{CachedJson, ChatMessage, Part, PositionedBlock};
use bobbin_definitions::definitions::message::ToolCall;
use bobbin_definitions::definitions::opaque::Opaque;
use bobbin_definitions::text::{boundary, first_bytes};

/// Maximum characters of a call's id.
const ID_CHARS: usize = 64;

/// The leading system messages as `instructions`, and their number.
pub fn instructions(messages: &[CachedJson<ChatMessage>]) -> (Option<Cow<'_, str>>, usize) {
    let texts: Vec<&str> = messages
        .iter()
        .map_while(|message| match &**message {
            ChatMessage::System(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let text = match &texts[..] {
        [] => None,
        [one] => Some(Cow::Borrowed(*one)),
        several => Some(several.join("\n\n").into()),
    };
    (text, texts.len())
}

/// The messages after them, as the list `input`.
pub fn input(messages: &[CachedJson<ChatMessage>]) -> String {
    let mut out = String::from("[");
    for message in messages {
        let items = message.blocks(Blocks::Responses, items);
        if out.len() > 1 && !items.is_empty() {
            out.push(',');
        }
        out.push_str(&items);
    }
    out.push(']');
    out
}

/// The items of a message, separated by commas.
fn items(message: &ChatMessage) -> String {
    let mut out = String::new();
    match message {
        ChatMessage::System(text) => push_message("system", text, None, &mut out),
        ChatMessage::User(parts) => {
            comma(&mut out);
            out.push_str(r#"{"role":"user","content":"#);
            content(parts, &mut out);
            out.push('}');
        }
        ChatMessage::Assistant { content, tool_calls, payload } => {
            reply(content, tool_calls, payload, &mut out);
        }
        ChatMessage::Tool { call_id, content, status, images, .. } => {
            let content = result_text(content, *status);
            out.push_str(r#"{"type":"function_call_output","call_id":"#);
            out.push_str(&quoted(&permitted(call_id)));
            out.push_str(r#","output":"#);
            match images.is_empty() {
                true => out.push_str(&quoted(&content)),
                false => result(&content, images, &mut out),
            }
            out.push('}');
        }
    }
    out
}

fn push_message(role: &str, text: &str, phase: Option<&str>, out: &mut String) {
    comma(out);
    out.push_str(r#"{"role":""#);
    out.push_str(role);
    out.push_str(r#"","content":"#);
    out.push_str(&quoted(text));
    if let Some(phase) = phase {
        out.push_str(r#","phase":"#);
        out.push_str(&quoted(phase));
    }
    out.push('}');
}

/// A user's content: a string when it is only text.
fn content(parts: &[Part], out: &mut String) {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
        .collect();
    match texts.len() == parts.len() {
        true => out.push_str(&quoted(&texts.join("\n"))),
        false => list(parts.iter(), out),
    }
}

/// A result with its text and images.
fn result(content: &str, images: &[Part], out: &mut String) {
    let text = (!content.trim().is_empty()).then(|| Part::Text(content.to_owned()));
    list(text.iter().chain(images), out);
}

fn list<'a>(parts: impl Iterator<Item = &'a Part>, out: &mut String) {
    out.push('[');
    for (at, part) in parts.enumerate() {
        if at > 0 {
            out.push(',');
        }
        match part {
            Part::Text(text) => {
                out.push_str(r#"{"type":"input_text","text":"#);
                out.push_str(&quoted(text));
            }
            Part::Image { media_type, data } => {
                // Base64 needs no escapes. The media type comes from a file and may.
                let prefix = quoted(&format!("data:{media_type};base64,"));
                out.push_str(r#"{"type":"input_image","detail":"auto","image_url":"#);
                out.push_str(prefix.strip_suffix('"').unwrap_or(&prefix));
                out.push_str(data);
                out.push('"');
            }
        }
        out.push('}');
    }
    out.push(']');
}

/// A stored piece: an item to send back, or the phase of the text after it.
#[derive(Default, Deserialize)]
struct StoredItem<'a> {
    #[serde(borrow, default)]
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    phase: Option<Cow<'a, str>>,
}

/// Whether a stored piece belongs to the responses API.
pub fn is_item(block: &Opaque) -> bool {
    let kept: StoredItem<'_> = bobbin_definitions::json::from_str(block.get()).unwrap_or_default();
    matches!(&*kept.r#type, "reasoning" | "message")
}

/// A reply: the server's items at their positions, and texts and calls between them.
fn reply(content: &str, calls: &[ToolCall], payload: &[PositionedBlock], out: &mut String) {
    let (mut text_at, mut call_at) = (0, 0);
    // Text and calls may be shorter than when they were stored. Clamping loses and repeats nothing.
    let mut up_to = |text: usize, call: usize, phase: Option<&str>, out: &mut String| {
        let (text, call) = (boundary(content, text).max(text_at), call.min(calls.len()).max(call_at));
        let piece = content.get(text_at..text).unwrap_or_default();
        if !piece.is_empty() {
            push_message("assistant", piece, phase, out);
        }
        calls.get(call_at..call).unwrap_or_default().iter().for_each(|call| function_call(call, out));
        (text_at, call_at) = (text, call);
    };
    let mut phase = None;
    // The API refuses reasoning without a continuation, which it takes as cut off.
    let leads_on = |placed: &PositionedBlock| placed.text < content.len() || placed.calls < calls.len();
    for placed in payload.iter().filter(|placed| leads_on(placed)) {
        let kept: StoredItem<'_> = bobbin_definitions::json::from_str(placed.block.get()).unwrap_or_default();
        match &*kept.r#type {
            "reasoning" => {
                up_to(placed.text, placed.calls, phase.take().as_deref(), out);
                comma(out);
                out.push_str(placed.block.get());
            }
            "message" => {
                up_to(placed.text, placed.calls, phase.take().as_deref(), out);
                phase = kept.phase;
            }
            // Data for chat completions is not used here.
            _ => {}
        }
    }
    up_to(content.len(), calls.len(), phase.as_deref(), out);
    if out.is_empty() {
        push_message("assistant", "", None, out);
    }
}

fn function_call(call: &ToolCall, out: &mut String) {
    comma(out);
    out.push_str(r#"{"type":"function_call","call_id":"#);
    out.push_str(&quoted(&permitted(&call.id)));
    out.push_str(r#","name":"#);
    out.push_str(&quoted(&call.name));
    out.push_str(r#","arguments":"#);
    out.push_str(&quoted(&parseable(&call.arguments)));
    out.push('}');
}

/// An id that the API accepts. Longer ones, from other providers, end with a hash.
fn permitted(id: &str) -> Cow<'_, str> {
    if id.len() <= ID_CHARS {
        return id.into();
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    format!("{}_{:016x}", first_bytes(id, ID_CHARS - 17), hasher.finish()).into()
}
