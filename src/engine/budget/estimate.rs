//! How many tokens a request has, and what tokens cost, before the provider has said so. Whatever is in doubt counts as more.

use crate::limits;
use crate::models::{ChatMessage, ChatRequest, Part};
use crate::page::json_bytes;
use crate::spec::message::ToolCall;
use crate::spec::model::{Model, Provider, Usage};
use crate::store::log::Worst;
use crate::store::runs::ledger::Amounts;

/// Tokens that a message has besides its text.
const MESSAGE: u64 = 4;

/// Tokens of so many bytes of text.
pub(crate) fn tokens(bytes: usize) -> u64 {
    (bytes as f64 / limits::BYTES_PER_TOKEN).ceil() as u64
}

/// Tokens of a request.
pub(crate) fn input(request: &ChatRequest) -> u64 {
    let tools = request.tools.iter().map(|tool| {
        MESSAGE + tokens(tool.name.len() + tool.description.len() + json_bytes(&tool.parameters))
    });
    let json = request.json.as_ref().and_then(|mode| mode.schema.as_ref()).map_or(0, json_bytes);
    let messages = request.messages.iter().map(|message| MESSAGE + tokens(bytes(message)));
    tools.chain(messages).sum::<u64>() + tokens(json)
}

fn bytes(message: &ChatMessage) -> usize {
    let parts = |parts: &[Part]| -> usize {
        parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.len(),
                Part::Image { .. } => (limits::IMAGE_TOKENS as f64 * limits::BYTES_PER_TOKEN) as usize,
            })
            .sum()
    };
    let call = |call: &ToolCall| call.id.len() + call.name.len() + call.arguments.len();
    match message {
        ChatMessage::System(text) => text.len(),
        ChatMessage::User(content) => parts(content),
        ChatMessage::Assistant { content, tool_calls, payload } => {
            content.len()
                + tool_calls.iter().map(call).sum::<usize>()
                + payload.iter().map(|placed| placed.block.get().len()).sum::<usize>()
        }
        ChatMessage::Tool { call_id, content, images, .. } => call_id.len() + content.len() + parts(images),
    }
}

/// Millionths of a dollar that a token of a request and one of an answer cost at most: a price is in USD for a million.
pub(crate) fn prices(model: &Model) -> (f64, f64) {
    let input = model.input_price.unwrap_or(0.0);
    // What is written to a cache costs a quarter more.
    let written = if model.provider == Provider::Anthropic { input * 1.25 } else { input };
    (written.max(model.cached_price.unwrap_or(0.0)), model.output_price.unwrap_or(0.0))
}

/// Millionths of a dollar, rounded up.
pub(crate) fn micro(cost: f64) -> i64 {
    (cost - 1e-6).ceil().clamp(0.0, 9e15) as i64
}

/// What an attempt of that size uses at most.
pub(crate) fn worst(model: &Model, Worst { input, output }: Worst) -> Amounts {
    let (each_in, each_out) = prices(model);
    let cost = micro(input as f64 * each_in + output as f64 * each_out);
    Amounts::attempt(cost, whole(input.saturating_add(output)))
}

/// What an attempt has used by what its provider says.
pub(crate) fn reported(model: &Model, usage: &Usage) -> Amounts {
    let cost = micro(model.cost(usage).unwrap_or(0.0) * 1e6);
    Amounts::attempt(cost, whole(usage.input_tokens.saturating_add(usage.output_tokens)))
}

pub(crate) fn whole(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::ToolDefinition;

    #[test]
    fn every_part_of_a_request_counts() {
        let text = |n: usize| "x".repeat(n);
        let mut request = ChatRequest {
            messages: vec![
                ChatMessage::System(text(30)).into(),
                ChatMessage::User(vec![Part::Text(text(30))]).into(),
            ],
            ..ChatRequest::default()
        };
        assert_eq!(input(&request), 28);
        request.tools = vec![ToolDefinition {
            name: text(3),
            description: text(25),
            parameters: serde_json::json!({}),
            strict: false,
        }]
        .into();
        assert_eq!(input(&request), 42);
    }

    #[test]
    fn costs_are_rounded_up_and_never_by_what_binary_fractions_lose() {
        assert_eq!(
            [micro(0.0), micro(0.2), micro(4_000.000_000_000_1), micro(4_000.1)],
            [0, 1, 4_000, 4_001]
        );
    }
}
