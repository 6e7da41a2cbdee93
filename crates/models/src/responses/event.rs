//! One event of a stream, or a whole response, as JSON. An absent or `null` field is empty. Items stay raw,
//! because some are sent back unchanged.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::lenient::{List, Number, Object, Text};
use bobbin_definitions::definitions::model::Usage;

/// An event, or a whole response (`object` is `response`).
#[derive(Debug, Default, Deserialize)]
pub struct Event<'a> {
    #[serde(borrow, default)]
    pub(crate) r#type: Text<'a>,
    #[serde(borrow, default)]
    pub(super) object: Text<'a>,
    /// Id of the event's item, or of its call.
    #[serde(borrow, default)]
    pub item_id: Text<'a>,
    /// Position of an item in the response.
    #[serde(default)]
    pub output_index: Number,
    /// Position of a part in a summary.
    #[serde(default)]
    pub summary_index: Number,
    #[serde(borrow, default)]
    pub(crate) delta: Text<'a>,
    /// All arguments of a call, when complete.
    #[serde(borrow, default)]
    pub arguments: Text<'a>,
    #[serde(borrow, default)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

/// A response, as far as it has come.
#[derive(Debug, Default, Deserialize)]
pub struct ResponseBody<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) status: Text<'a>,
    #[serde(borrow, default)]
    pub(super) output: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    pub(super) incomplete_details: Object<IncompleteDetails<'a>>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct IncompleteDetails<'a> {
    #[serde(borrow, default)]
    pub(super) reason: Text<'a>,
}

/// A message, a call, reasoning, or something else; begun or complete.
#[derive(Debug, Default, Deserialize)]
pub struct Item<'a> {
    #[serde(borrow, default)]
    pub(super) r#type: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    /// The phase of a message.
    #[serde(borrow, default)]
    pub phase: Text<'a>,
    /// The parts of a message, or the text of reasoning that is not encrypted.
    #[serde(borrow, default)]
    pub(super) content: List<ItemPart<'a>>,
    #[serde(borrow, default)]
    pub(super) summary: List<ItemPart<'a>>,
    #[serde(borrow, default)]
    pub(super) encrypted_content: Text<'a>,
    #[serde(borrow, default)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ItemPart<'a> {
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
}

/// Token counts, read as `f64` because some servers write `12.0`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    input_tokens: Option<f64>,
    input_tokens_details: Option<Details>,
    output_tokens: Option<f64>,
    output_tokens_details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Option<f64>,
    cache_write_tokens: Option<f64>,
    reasoning_tokens: Option<f64>,
}

/// The usage of a response; `None` when it is unreadable, which must not fail the response.
pub fn usage(raw: &RawValue) -> Option<Usage> {
    let wire: Option<WireUsage> = bobbin_definitions::json::from_str(raw.get()).ok()?;
    let wire = wire?;
    // `as` saturates: a negative count is 0.
    let count = |tokens: Option<f64>| tokens.unwrap_or(0.0) as u64;
    let (input, output) =
        (wire.input_tokens_details.unwrap_or_default(), wire.output_tokens_details.unwrap_or_default());
    Some(Usage {
        input_tokens: count(wire.input_tokens),
        cached_tokens: count(input.cached_tokens),
        written_tokens: count(input.cache_write_tokens),
        output_tokens: count(wire.output_tokens),
        reasoning_tokens: count(output.reasoning_tokens),
    })
}
