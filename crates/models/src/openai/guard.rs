//! Models that refuse a part of a request, and cannot be recognized by name, such as a deployment at Azure.
//! After one refusal the request is repeated in an accepted form, and the refusal is remembered.
//!
//! Call ids go back unchanged, because some models read them (Kimi's prompt contains them). Servers have
//! rules for foreign ids, though: Mistral accepts nine letters or digits, OpenAI's chat completions 40
//! characters. One form satisfies all.

use std::borrow::Cow;
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{CachedJson, ChatMessage, ChatRequest, ProviderError};

/// Maximum number of remembered refusals.
const REMEMBERED: usize = 64;

/// Characters of an id that every server accepts.
const ID_CHARS: usize = 9;

thread_local! {
    // Refusals by address and model. A cache of the isolate, which may be lost at any time.
    static REFUSED: RefCell<Vec<(RefusedFeature, String, String)>> = const { RefCell::new(Vec::new()) };
}

/// A part of a request that a model refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedFeature {
    /// Functions together with a reasoning effort.
    Effort,
    /// Call ids from other servers.
    Ids,
}

impl RefusedFeature {
    /// Everything that a model may refuse.
    pub const ALL: [RefusedFeature; 2] = [RefusedFeature::Effort, RefusedFeature::Ids];

    /// Whether a failure reports this refusal.
    pub fn is_meant(self, error: &ProviderError) -> bool {
        match self {
            RefusedFeature::Effort => refuses_effort(error),
            RefusedFeature::Ids => refuses_ids(error),
        }
    }

    /// The request without it; `None` when there is nothing to change.
    pub fn without(self, chat: &ChatRequest) -> Option<ChatRequest> {
        match self {
            RefusedFeature::Effort => without_effort(chat),
            RefusedFeature::Ids => with_short_ids(chat),
        }
    }

    /// Log text for the change.
    pub fn note(self, model: &str) -> String {
        match self {
            RefusedFeature::Effort => format!(
                "\"{model}\" refuses functions together with reasoning in chat completions, and is asked for no reasoning: set the model's `api` to \"responses\" if its server has them"
            ),
            RefusedFeature::Ids => {
                format!("\"{model}\" refuses ids of calls that are not its own, and is sent short ones")
            }
        }
    }

    /// Whether this model has refused it here before.
    pub fn was(self, base_url: &str, model: &str) -> bool {
        REFUSED.with_borrow(|all| {
            all.iter().any(|(what, url, name)| *what == self && url == base_url && name == model)
        })
    }

    /// Remembers the refusal.
    pub fn remember(self, base_url: &str, model: &str) {
        REFUSED.with_borrow_mut(|all| {
            if all.len() >= REMEMBERED {
                all.remove(0);
            }
            all.push((self, base_url.to_owned(), model.to_owned()));
        });
    }
}

/// The request without everything that its model has refused before.
pub fn adjusted<'a>(chat: &'a ChatRequest, base_url: &str) -> Cow<'a, ChatRequest> {
    let was_refused = RefusedFeature::ALL.into_iter().filter(|refused| refused.was(base_url, &chat.model));
    was_refused.fold(Cow::Borrowed(chat), |chat, refused| match refused.without(&chat) {
        Some(adjusted) => Cow::Owned(adjusted),
        None => chat,
    })
}

/// Whether a failure says that functions and a reasoning effort exclude each other.
fn refuses_effort(error: &ProviderError) -> bool {
    error.status == Some(400) && error.message.contains("reasoning_effort") && error.message.contains("tools")
}

/// The request without a reasoning effort. `None` when it has no functions, or already requests none.
fn without_effort(chat: &ChatRequest) -> Option<ChatRequest> {
    let none = chat.options.get(EFFORT).is_some_and(|effort| effort == "none");
    (!chat.tools.is_empty() && !none).then(|| {
        let mut adjusted = chat.clone();
        adjusted.options.insert(EFFORT.to_owned(), "none".into());
        adjusted
    })
}

const EFFORT: &str = "reasoning_effort";

/// Whether a failure says that a call's id is not accepted.
fn refuses_ids(error: &ProviderError) -> bool {
    let message = error.message.to_ascii_lowercase();
    let names_id = ["tool call id", "tool_call_id", "tool_calls[0].id", "].id'"]
        .iter()
        .any(|name| message.contains(name));
    matches!(error.status, Some(400 | 422)) && names_id
}

/// The request with ids that every server accepts. A call and its result get the same id, and it is the same
/// each time. `None` when all ids already fit.
fn with_short_ids(chat: &ChatRequest) -> Option<ChatRequest> {
    let mut changed = false;
    let mut short = |id: &mut String| {
        let fits = id.len() == ID_CHARS && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !fits {
            *id = short_id(id);
            changed = true;
        }
    };
    let of = |message: &CachedJson<ChatMessage>| match &**message {
        ChatMessage::Assistant { tool_calls, .. } if !tool_calls.is_empty() => {
            let mut message = ChatMessage::clone(message);
            if let ChatMessage::Assistant { tool_calls, .. } = &mut message {
                tool_calls.iter_mut().for_each(|call| short(&mut call.id));
            }
            message.into()
        }
        ChatMessage::Tool { .. } => {
            let mut message = ChatMessage::clone(message);
            if let ChatMessage::Tool { call_id, .. } = &mut message {
                short(call_id);
            }
            message.into()
        }
        _ => message.clone(),
    };
    let messages = chat.messages.iter().map(of).collect();
    changed.then(|| ChatRequest { messages, ..chat.clone() })
}

fn short_id(id: &str) -> String {
    const SIGNS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let mut rest = hasher.finish();
    let sign = |_| {
        let sign = SIGNS.get((rest % 36) as usize).copied().unwrap_or(b'0');
        rest /= 36;
        char::from(sign)
    };
    (0..ID_CHARS).map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolDefinition;
    use bobbin_definitions::definitions::message::{ToolCall, ToolStatus};

    #[test]
    fn only_requests_that_can_be_adjusted_are() {
        let tool = || ToolDefinition {
            name: "f".into(),
            description: String::new(),
            parameters: bobbin_definitions::json!({}),
            strict: false,
        };
        let plain = ChatRequest::default();
        assert_eq!(without_effort(&plain), None, "no functions");
        let mut with = ChatRequest { tools: vec![tool()].into(), ..plain };
        assert_eq!(without_effort(&with).unwrap().options[EFFORT], "none");
        with.options.insert(EFFORT.into(), "high".into());
        let adjusted = without_effort(&with).unwrap();
        assert_eq!(adjusted.options[EFFORT], "none");
        assert_eq!(without_effort(&adjusted), None, "asked for none already");
    }

    #[test]
    fn one_refusal_is_told_from_others() {
        let refusal = |status, text: &str| {
            let body = bobbin_definitions::json!({ "error": { "message": text } }).to_string();
            refuses_effort(&ProviderError::from_response(status, &[], body.as_bytes(), &[], 0))
        };
        let text = "Function tools with reasoning_effort are not supported for x in /v1/chat/completions.";
        assert!(refusal(400, text));
        assert!(!refusal(500, text));
        assert!(!refusal(400, "Unsupported value: reasoning_effort does not support 'xhigh'"));
    }

    #[test]
    fn short_ids_are_the_same_for_a_call_and_its_result_and_each_time() {
        let call = |id: &str| ToolCall { id: id.into(), name: "f".into(), ..ToolCall::default() };
        let result = |id: &str| ChatMessage::Tool {
            call_id: id.into(),
            name: "f".into(),
            content: "r".into(),
            status: ToolStatus::Success,
            images: Vec::new(),
        };
        let of = |ids: [&str; 2]| {
            let tool_calls = ids.map(call).to_vec();
            let reply = ChatMessage::Assistant { content: String::new(), tool_calls, payload: Vec::new() };
            let messages = [reply, result(ids[0]), result(ids[1])].map(CachedJson::from).to_vec();
            ChatRequest { messages, ..ChatRequest::default() }
        };
        let own = of(["AbCd12345", "000000000"]);
        assert_eq!(with_short_ids(&own), None);
        let adjusted = with_short_ids(&of(["functions.echo:0", "AbCd12345"])).unwrap();
        let short = short_id("functions.echo:0");
        assert_eq!(adjusted, of([&short, "AbCd12345"]));
        assert!(short.len() == 9 && short.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{short}");
        assert_eq!(short, short_id("functions.echo:0"));
        assert_eq!(with_short_ids(&adjusted), None);
    }

    #[test]
    fn refusals_of_ids_are_told_from_others() {
        for (status, text, refuses) in [
            (400, "Tool call id was call_x but must be a-z, A-Z, 0-9, with a length of 9.", true),
            (
                400,
                "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40",
                true,
            ),
            (400, "Invalid 'messages[2].tool_calls[3].id': string too long.", true),
            (500, "Tool call id was x", false),
            (400, "Invalid 'tools[0].function.name'", false),
        ] {
            let body = bobbin_definitions::json!({ "error": { "message": text } }).to_string();
            let error = ProviderError::from_response(status, &[], body.as_bytes(), &[], 0);
            assert_eq!(refuses_ids(&error), refuses, "{text}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let effort = RefusedFeature::Effort;
        assert!(!effort.was("u", "m"));
        effort.remember("u", "m");
        assert!(effort.was("u", "m") && !effort.was("v", "m") && !effort.was("u", "n"));
        assert!(!RefusedFeature::Ids.was("u", "m"));
        (0..REMEMBERED).for_each(|n| effort.remember("u", &n.to_string()));
        assert!(!effort.was("u", "m") && effort.was("u", "0"));
        assert_eq!(REFUSED.with_borrow(Vec::len), REMEMBERED);
    }
}
