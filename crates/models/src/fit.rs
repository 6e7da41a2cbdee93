//! Requirements of every provider, for any history: unique call ids, and a last message that is not the
//! assistant's (docs/durability.md). Stored ids are unique within the thread's memory; this module makes
//! them unique in the request.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use crate::{CachedJson, ChatMessage, Part};

/// A user message that is not stored, inserted where a request must have one.
pub const CONTINUE: &str = "Continue.";

/// Maximum characters of an id for Anthropic.
const ID_CHARS: usize = 128;

/// Adjusts the messages. Each reply must be followed directly by its results, in the order of its calls.
pub fn fit(messages: &mut Vec<CachedJson<ChatMessage>>) {
    unique_ids(messages);
    let says = || CachedJson::from(ChatMessage::User(vec![Part::Text(CONTINUE.to_owned())]));
    if !messages.iter().any(|message| matches!(**message, ChatMessage::User(_))) {
        // Code started this run; some providers reject requests without a user message.
        let leading =
            messages.iter().take_while(|message| matches!(***message, ChatMessage::System(_))).count();
        messages.insert(leading, says());
    }
    let own = |message: &CachedJson<ChatMessage>| {
        matches!(**message, ChatMessage::Assistant { .. } | ChatMessage::System(_))
    };
    if messages.last().is_none_or(own) {
        messages.push(says());
    }
}

/// Replaces duplicate call ids, as any provider sees them, in calls and results. The same messages
/// always get the same ids, so that providers' caches stay valid.
fn unique_ids(messages: &mut [CachedJson<ChatMessage>]) {
    // Capacity: about one call for two messages.
    let mut seen: HashSet<Cow<'_, str>, RandomState> =
        HashSet::with_capacity_and_hasher(messages.len() / 2, RandomState::default());
    let mut replaced: Vec<(usize, usize, String)> = Vec::new();
    // Next number per id, because some servers give all calls the same id.
    let mut numbers: HashMap<String, u32, RandomState> = HashMap::default();
    for (at, message) in messages.iter().enumerate() {
        let ChatMessage::Assistant { tool_calls, .. } = &**message else { continue };
        for (index, call) in tool_calls.iter().enumerate() {
            let id = permitted(&call.id);
            if !call.id.is_empty() && seen.insert(id) {
                continue;
            }
            let base: String = permitted(&call.id).chars().take(ID_CHARS - 8).collect();
            let number = numbers.entry(base.clone()).or_insert(2);
            let fresh = loop {
                let id = format!("{base}_{number}");
                *number += 1;
                if !seen.contains(id.as_str()) {
                    break id;
                }
            };
            seen.insert(fresh.clone().into());
            replaced.push((at, index, fresh));
        }
    }
    drop(seen);
    for of_reply in replaced.chunk_by(|(a, ..), (b, ..)| a == b) {
        replace(messages, of_reply);
    }
}

/// Replaces the ids of calls of one reply. Each entry has the index of the reply, the index of the call,
/// and the new id.
fn replace(messages: &mut [CachedJson<ChatMessage>], of_reply: &[(usize, usize, String)]) {
    for (at, index, id) in of_reply {
        if let Some(result) = messages.get_mut(at + 1 + index)
            && matches!(**result, ChatMessage::Tool { .. })
        {
            let mut changed = ChatMessage::clone(result);
            if let ChatMessage::Tool { call_id, .. } = &mut changed {
                call_id.clone_from(id);
            }
            *result = changed.into();
        }
    }
    // The reply is cloned once, however many calls it has.
    let Some(reply) = of_reply.first().and_then(|(at, ..)| messages.get_mut(*at)) else { return };
    let mut changed = ChatMessage::clone(reply);
    if let ChatMessage::Assistant { tool_calls, .. } = &mut changed {
        for (_, index, id) in of_reply {
            if let Some(call) = tool_calls.get_mut(*index) {
                call.id.clone_from(id);
            }
        }
    }
    *reply = changed.into();
}

/// An id or a name in Anthropic's alphabet: letters, digits, `_` and `-`. Other providers' ids may
/// contain more.
pub fn permitted(name: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match name {
        "" => "_".into(),
        name if name.len() <= ID_CHARS && name.bytes().all(|byte| allowed(char::from(byte))) => name.into(),
        name => name.chars().take(ID_CHARS).map(|c| if allowed(c) { c } else { '_' }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bobbin_definitions::definitions::message::{ToolCall, ToolStatus};

    fn said(text: &str) -> CachedJson<ChatMessage> {
        ChatMessage::User(vec![Part::Text(text.into())]).into()
    }

    fn system() -> CachedJson<ChatMessage> {
        ChatMessage::System("s".into()).into()
    }

    fn exchange(ids: &[&str]) -> Vec<CachedJson<ChatMessage>> {
        let call = |id: &&str| ToolCall { id: (*id).into(), ..ToolCall::default() };
        let tool_calls = ids.iter().map(call).collect();
        let result = |id: &&str| ChatMessage::Tool {
            call_id: (*id).into(),
            name: "work".into(),
            content: (*id).into(),
            status: ToolStatus::Success,
            images: Vec::new(),
        };
        let reply = ChatMessage::Assistant { content: String::new(), tool_calls, payload: Vec::new() };
        std::iter::once(reply).chain(ids.iter().map(result)).map(CachedJson::from).collect()
    }

    fn ids(messages: &[CachedJson<ChatMessage>]) -> Vec<&str> {
        let of = |message: &'_ CachedJson<ChatMessage>| match &**message {
            ChatMessage::Tool { call_id, .. } => vec![call_id.clone()],
            ChatMessage::Assistant { tool_calls, .. } => {
                tool_calls.iter().map(|call| call.id.clone()).collect()
            }
            _ => Vec::new(),
        };
        messages.iter().flat_map(of).map(|id| &*id.leak()).collect()
    }

    #[test]
    fn ids_that_come_again_are_others_for_the_call_and_its_result() {
        let mut messages = vec![system(), said("u")];
        let long = "x".repeat(200);
        let longer = format!("{long}y");
        let twice = [
            exchange(&["a", "a.b:c", "a_b_c"]),
            exchange(&["a", "", "b"]),
            exchange(&["a_2", &long]),
            exchange(&[&longer, "a"]),
        ];
        messages.extend(twice.into_iter().flatten());
        fit(&mut messages);
        let cut = format!("{}_2", "x".repeat(120));
        let expected = [
            ["a", "a.b:c", "a_b_c_2"].repeat(2),
            ["a_2", "__2", "b"].repeat(2),
            ["a_2_2", &long].repeat(2),
            [cut.as_str(), "a_3"].repeat(2),
        ];
        assert_eq!(ids(&messages), expected.concat());
        let again = messages.clone();
        fit(&mut messages);
        assert_eq!(messages, again, "what fits stays as it is");
    }

    #[test]
    fn somebody_else_has_the_last_word() {
        let reply = || -> CachedJson<ChatMessage> {
            ChatMessage::Assistant { content: "r".into(), tool_calls: Vec::new(), payload: Vec::new() }.into()
        };
        let go = || said(CONTINUE);
        for (messages, expected) in [
            (vec![system()], vec![system(), go()]),
            (vec![system(), said("u")], vec![system(), said("u")]),
            (vec![system(), said("u"), system()], vec![system(), said("u"), system(), go()]),
            (vec![system(), said("u"), reply()], vec![system(), said("u"), reply(), go()]),
            (vec![system(), reply()], vec![system(), go(), reply(), go()]),
            (vec![system(), system()], vec![system(), system(), go()]),
        ] {
            let mut fitted = messages;
            fit(&mut fitted);
            assert_eq!(fitted, expected);
        }
    }
}
