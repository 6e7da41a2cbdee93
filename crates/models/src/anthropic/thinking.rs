//! Whether and how much a model thinks.
//!
//! A level of 100 is [`THINKING_TOKENS`], and a lower level is its share; `maxTokens` is used as it is. A
//! quarter of a model's `maxOutputTokens` is reserved for the reply. Below [`THINKING_TOKENS_MIN`], the API's
//! minimum, thinking is off. A model that declares `reasoningLevels` decides itself (`adaptive`), and
//! receives the effort under its own name.

use serde_json::Value;

use crate::{CachedJson, ChatMessage, ChatRequest};
use bobbin_definitions::json;
use bobbin_definitions::limits::{OUTPUT_TOKENS, THINKING_TOKENS, THINKING_TOKENS_MIN};

/// The mode of thinking in a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Thinking {
    Off,
    /// At most that many tokens.
    Budget(u64),
    /// As the model decides, with an effort.
    Adaptive(String),
    /// As the options specify.
    Own,
}

impl Thinking {
    /// The mode of a request. Options can set it, because they come last. Their `thinking` must not be sent
    /// when this is [`Thinking::Off`].
    pub(super) fn of(chat: &ChatRequest) -> Thinking {
        let kind = |options: &Value| options["type"].as_str().unwrap_or_default().to_owned();
        let own = chat.options.get("thinking").map(kind);
        let reasoning = &chat.reasoning;
        let thinking = match (&own, &reasoning.word) {
            (Some(kind), _) if matches!(kind.as_str(), "" | "disabled") => Thinking::Off,
            (Some(_), _) => Thinking::Own,
            (None, Some(word)) if reasoning.max_tokens.is_none() => Thinking::Adaptive(word.clone()),
            (None, _) => budget(chat).map_or(Thinking::Off, Thinking::Budget),
        };
        // Only adaptive thinking accepts any history.
        let strict = matches!(thinking, Thinking::Budget(_)) || own.as_deref() == Some("enabled");
        if strict && !history_allows(&chat.messages) { Thinking::Off } else { thinking }
    }

    /// The request's `thinking`.
    pub(super) fn json(&self) -> Option<Value> {
        match self {
            Thinking::Off | Thinking::Own => None,
            Thinking::Budget(tokens) => Some(json!({ "type": "enabled", "budget_tokens": tokens })),
            Thinking::Adaptive(_) => Some(json!({ "type": "adaptive" })),
        }
    }

    /// The request's `max_tokens`, which the API requires and which includes thinking.
    pub(super) fn max_tokens(&self, chat: &ChatRequest) -> u64 {
        declared(chat).unwrap_or(match self {
            Thinking::Off | Thinking::Own => OUTPUT_TOKENS,
            Thinking::Budget(tokens) => OUTPUT_TOKENS + tokens,
            Thinking::Adaptive(_) => OUTPUT_TOKENS + THINKING_TOKENS,
        })
    }
}

/// Tokens of the reply, if options or the model's definition limit them.
fn declared(chat: &ChatRequest) -> Option<u64> {
    chat.options.get("max_tokens").and_then(Value::as_u64).or(chat.max_output_tokens)
}

fn budget(chat: &ChatRequest) -> Option<u64> {
    let level = chat.reasoning.level.map(|level| THINKING_TOKENS * u64::from(level) / 100);
    let wanted = chat.reasoning.max_tokens.or(level)?.max(THINKING_TOKENS_MIN);
    let budget = declared(chat).map_or(wanted, |tokens| wanted.min(tokens / 4 * 3));
    (budget >= THINKING_TOKENS_MIN).then_some(budget)
}

/// Whether the API accepts this history with thinking on. If the last reply has calls, its exchange of calls
/// must have begun with thinking. That is not so when another model or prompt began it (a fallback, a
/// hand-off), or when the payload was too large to be kept. The model then replies without thinking until the
/// exchange is over.
fn history_allows(messages: &[CachedJson<ChatMessage>]) -> bool {
    let mut exchange = messages
        .iter()
        .rev()
        .skip_while(|message| !matches!(***message, ChatMessage::Assistant { .. }))
        .take_while(|message| matches!(***message, ChatMessage::Assistant { .. } | ChatMessage::Tool { .. }));
    let last = exchange.next();
    let first =
        exchange.filter(|message| matches!(***message, ChatMessage::Assistant { .. })).last().or(last);
    match (last.map(|message| &**message), first.map(|message| &**message)) {
        (Some(ChatMessage::Assistant { tool_calls, .. }), Some(ChatMessage::Assistant { payload, .. })) => {
            tool_calls.is_empty() || payload.first().is_some_and(|first| first.text == 0 && first.calls == 0)
        }
        _ => true,
    }
}
