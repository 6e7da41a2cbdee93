//! One event of a stream, or a whole response, as JSON. An absent or `null` field is empty. Blocks stay raw,
//! because some are sent back unchanged.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::lenient::{Number, Object, Text};
use bobbin_definitions::definitions::model::Usage;

/// An event, or a whole response (`type` is `message`).
#[derive(Debug, Default, Deserialize)]
pub struct Event<'a> {
    #[serde(borrow, default)]
    pub(crate) r#type: Text<'a>,
    /// Index of a block in the reply.
    #[serde(default)]
    pub index: Number,
    /// In `message_start`.
    #[serde(borrow, default)]
    pub(super) message: Object<Message<'a>>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) delta: Object<Delta<'a>>,
    #[serde(default)]
    pub(super) usage: Object<WireUsage>,
    /// In a whole response.
    #[serde(borrow, default)]
    pub content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(default)]
    pub(super) usage: Object<WireUsage>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
}

/// A change of a block, or of the message in `message_delta`.
#[derive(Debug, Default, Deserialize)]
pub struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) r#type: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) partial_json: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) signature: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
}

/// The start of a block, or a whole one.
#[derive(Debug, Default, Deserialize)]
pub struct Block<'a> {
    #[serde(borrow, default)]
    pub(super) r#type: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) signature: Option<&'a RawValue>,
}

/// Token counts; each event has some of them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WireUsage {
    input_tokens: Number,
    cache_creation_input_tokens: Number,
    cache_read_input_tokens: Number,
    output_tokens: Number,
}

impl WireUsage {
    /// Updates the counts with those of an event, which are totals so far.
    pub fn update(&mut self, told: &WireUsage) {
        for (known, told) in [
            (&mut self.input_tokens, told.input_tokens),
            (&mut self.cache_creation_input_tokens, told.cache_creation_input_tokens),
            (&mut self.cache_read_input_tokens, told.cache_read_input_tokens),
            (&mut self.output_tokens, told.output_tokens),
        ] {
            known.0 = told.0.or(known.0);
        }
    }

    /// The usage in Bobbin's terms: Anthropic's `input_tokens` exclude tokens written to the cache or read
    /// from it. Thinking is not reported separately.
    pub fn total(&self) -> Usage {
        let count = |tokens: Number| tokens.0.unwrap_or(0);
        let cached_tokens = count(self.cache_read_input_tokens);
        let written_tokens = count(self.cache_creation_input_tokens);
        let fresh = count(self.input_tokens).saturating_add(written_tokens);
        Usage {
            input_tokens: fresh.saturating_add(cached_tokens),
            cached_tokens,
            written_tokens,
            output_tokens: count(self.output_tokens),
            reasoning_tokens: 0,
        }
    }
}
