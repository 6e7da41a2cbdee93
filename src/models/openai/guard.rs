//! Models that refuse functions together with an effort of reasoning, and cannot be told by their name, such as a deployment
//! at Azure: one refusal teaches it, and the request is made again without an effort.

use std::cell::RefCell;

use crate::models::{ChatRequest, ProviderError};

/// Models that are remembered at most.
const REMEMBERED: usize = 64;

thread_local! {
    // Addresses and models that have refused: what an isolate has learned, which may be forgotten at any moment.
    static REFUSED: RefCell<Vec<(String, String)>> = const { RefCell::new(Vec::new()) };
}

/// Whether a failure says that functions and an effort do not go together.
pub(crate) fn refuses_effort(error: &ProviderError) -> bool {
    error.status == Some(400) && error.message.contains("reasoning_effort") && error.message.contains("tools")
}

/// The request without an effort. `None` where there is nothing to leave out: it has no functions, or asks for none already.
pub(crate) fn without_effort(chat: &ChatRequest) -> Option<ChatRequest> {
    let none = chat.options.get(EFFORT).is_some_and(|effort| effort == "none");
    (!chat.tools.is_empty() && !none).then(|| {
        let mut adjusted = chat.clone();
        adjusted.options.insert(EFFORT.to_owned(), "none".into());
        adjusted
    })
}

const EFFORT: &str = "reasoning_effort";

/// Whether this model has refused them here before.
pub(crate) fn was_refused(base_url: &str, model: &str) -> bool {
    REFUSED.with_borrow(|all| all.iter().any(|(url, name)| url == base_url && name == model))
}

/// Remembers that it has.
pub(crate) fn remember_refusal(base_url: &str, model: &str) {
    REFUSED.with_borrow_mut(|all| {
        if all.len() >= REMEMBERED {
            all.remove(0);
        }
        all.push((base_url.to_owned(), model.to_owned()));
    });
}

/// What is told of it.
pub(crate) fn adjusted_note(model: &str) -> String {
    format!(
        "\"{model}\" refuses functions together with reasoning in chat completions, and is asked for no reasoning: set the model's `api` to \"responses\" if its server has them"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::ToolDefinition;

    #[test]
    fn only_requests_that_can_be_adjusted_are() {
        let tool = || ToolDefinition {
            name: "f".into(),
            description: String::new(),
            parameters: crate::json!({}),
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
            let body = crate::json!({ "error": { "message": text } }).to_string();
            refuses_effort(&ProviderError::from_response(status, &[], body.as_bytes(), &[], 0))
        };
        let text = "Function tools with reasoning_effort are not supported for x in /v1/chat/completions.";
        assert!(refusal(400, text));
        assert!(!refusal(500, text));
        assert!(!refusal(400, "Unsupported value: reasoning_effort does not support 'xhigh'"));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        assert!(!was_refused("u", "m"));
        remember_refusal("u", "m");
        assert!(was_refused("u", "m") && !was_refused("v", "m") && !was_refused("u", "n"));
        (0..REMEMBERED).for_each(|n| remember_refusal("u", &n.to_string()));
        assert!(!was_refused("u", "m") && was_refused("u", "0"));
        assert_eq!(REFUSED.with_borrow(Vec::len), REMEMBERED);
    }
}
