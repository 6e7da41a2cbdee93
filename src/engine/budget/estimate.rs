//! Estimates the tokens and the cost of a request before the provider reports them. Estimates err on the high
//! side.

use crate::definitions::model::{Model, Provider, Usage};
use crate::limits;
use crate::models::{ChatMessage, ChatRequest, Part, openai};
use crate::store::log_record::MaxTokens;
use crate::store::runs::ledger::Amounts;
use crate::tokens::tokens;

/// The tokens of bytes with unknown content.
pub(crate) fn of_bytes(bytes: usize) -> u64 {
    (bytes as f64 / limits::BYTES_PER_TOKEN).ceil() as u64
}

/// The tokens of a request as its provider would count them. Texts are counted as for the model's window
/// (`tokens`), times the thread's calibration factor for the model. The factor does not apply to images.
pub(super) fn input(request: &ChatRequest, factor: f64) -> u64 {
    let besides: (usize, usize) = request
        .messages
        .iter()
        .map(|message| besides_text(message))
        .fold((0, 0), |(texts, images), (more, shown)| (texts + more, images + shown));
    let schema = request.json.as_ref().and_then(|mode| mode.schema.as_ref());
    let texts = request.text_tokens() + besides.0 + schema.map_or(0, |schema| tokens(&schema.to_string()));
    let counted = (texts as f64 * factor).ceil() as u64;
    counted.saturating_add((besides.1 * limits::IMAGE_TOKENS) as u64)
}

/// The other content of a message: tokens of data that the provider wants back, and the number of images.
fn besides_text(message: &ChatMessage) -> (usize, usize) {
    let images = |parts: &[Part]| parts.iter().filter(|part| matches!(part, Part::Image { .. })).count();
    match message {
        ChatMessage::System(_) => (0, 0),
        ChatMessage::User(parts) => (0, images(parts)),
        ChatMessage::Assistant { payload, .. } => {
            (payload.iter().map(|placed| tokens(placed.block.get())).sum(), 0)
        }
        ChatMessage::Tool { images: parts, .. } => (0, images(parts)),
    }
}

/// The highest prices of a token of a request and of an answer, in millionths of a dollar. Models state
/// prices in USD per million tokens.
pub(super) fn prices(model: &Model) -> (f64, f64) {
    let input = model.input_price.unwrap_or(0.0);
    // Anthropic charges a quarter more for cache writes.
    let written = if model.provider == Provider::Anthropic { input * 1.25 } else { input };
    (written.max(model.cached_price.unwrap_or(0.0)), model.output_price.unwrap_or(0.0))
}

/// Millionths of a dollar, rounded up.
pub(super) fn micro(cost: f64) -> i64 {
    (cost - 1e-6).ceil().clamp(0.0, 9e15) as i64
}

/// The maximum usage of an attempt of this size.
pub(crate) fn worst(model: &Model, MaxTokens { input, output }: MaxTokens) -> Amounts {
    let (each_in, each_out) = prices(model);
    let cost = micro(input as f64 * each_in + output as f64 * each_out);
    Amounts::attempt(cost, whole(input.saturating_add(output)))
}

/// The maximum usage of a lost attempt of this size. No report corrects its estimate. Its input therefore
/// counts a quarter more, or as large as all of its JSON.
pub(crate) fn lost(model: &Model, request: &ChatRequest, size: MaxTokens) -> Amounts {
    let larger = (size.input as f64 * limits::BUDGET_LOST_INPUT).ceil() as u64;
    // All providers' requests hold the same texts with similar overhead. Images are written in many times the
    // bytes that they count for.
    let written = request.tokens().map_or(0, |_| of_bytes(openai::bytes(request)));
    worst(model, MaxTokens { input: larger.max(written), ..size })
}

/// The usage of an attempt by its provider's report.
pub(super) fn reported(model: &Model, usage: &Usage) -> Amounts {
    let cost = micro(model.cost(usage).unwrap_or(0.0) * 1e6);
    Amounts::attempt(cost, whole(usage.input_tokens.saturating_add(usage.output_tokens)))
}

pub(super) fn whole(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::ToolDefinition;

    #[test]
    fn every_part_of_a_request_counts() {
        let of = |request: &ChatRequest| input(request, 1.0);
        let text = "The lighthouse is forty metres tall. ".repeat(20);
        let user =
            |parts| ChatRequest { messages: vec![ChatMessage::User(parts).into()], ..ChatRequest::default() };
        let plain = user(vec![Part::Text(text.clone())]);
        let with_tool = ChatRequest {
            tools: vec![ToolDefinition {
                name: "look".into(),
                description: text.clone(),
                parameters: crate::json!({}),
                strict: false,
            }]
            .into(),
            ..plain.clone()
        };
        let image = Part::Image { media_type: "image/png".into(), data: "AAAA".into() };
        let with_image = user(vec![Part::Text(text.clone()), image]);
        // A vocabulary counts 160 tokens. The overhead of a message is added.
        assert!((128..200).contains(&of(&plain)), "{}", of(&plain));
        assert!(of(&with_tool) > 2 * of(&plain) - 8);
        assert_eq!(of(&with_image), of(&plain) + limits::IMAGE_TOKENS as u64);
        let doubled = 2 * of(&plain) + limits::IMAGE_TOKENS as u64;
        assert_eq!(input(&with_image, 2.0), doubled, "what is learnt of texts is not of images");
    }

    #[test]
    fn costs_are_rounded_up_and_never_by_what_binary_fractions_lose() {
        assert_eq!(
            [micro(0.0), micro(0.2), micro(4_000.000_000_000_1), micro(4_000.1)],
            [0, 1, 4_000, 4_001]
        );
    }
}
