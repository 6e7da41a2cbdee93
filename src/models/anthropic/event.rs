//! One event of a stream, or a whole answer, in its shape on the wire. What is absent or `null` counts as empty; blocks
//! stay raw, because some are sent back unchanged.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::models::lenient::{Number, Object, Text};
use crate::spec::model::Usage;

/// An event (`type` tells which) or a whole answer (`type` is `message`).
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Event<'a> {
    #[serde(borrow, default)]
    pub(crate) r#type: Text<'a>,
    /// Place of a block in the reply.
    #[serde(default)]
    pub(crate) index: Number,
    /// In `message_start`.
    #[serde(borrow, default)]
    pub(crate) message: Object<Message<'a>>,
    #[serde(borrow, default)]
    pub(crate) content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) delta: Object<Delta<'a>>,
    #[serde(default)]
    pub(crate) usage: Object<WireUsage>,
    /// Of a whole answer.
    #[serde(borrow, default)]
    pub(crate) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) stop_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) id: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) model: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(default)]
    pub(crate) usage: Object<WireUsage>,
    #[serde(borrow, default)]
    pub(crate) stop_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) id: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) model: Text<'a>,
}

/// A change of a block, or in `message_delta` of the message.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(crate) r#type: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) text: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) partial_json: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) signature: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) stop_reason: Text<'a>,
}

/// A block that begins, or a whole one.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Block<'a> {
    #[serde(borrow, default)]
    pub(crate) r#type: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) text: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) id: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) name: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) signature: Option<&'a RawValue>,
}

/// Token counts; each event tells some of them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireUsage {
    input_tokens: Number,
    cache_creation_input_tokens: Number,
    cache_read_input_tokens: Number,
    output_tokens: Number,
}

impl WireUsage {
    /// Takes over what an event tells, which is the sum so far.
    pub(crate) fn update(&mut self, told: &WireUsage) {
        for (known, told) in [
            (&mut self.input_tokens, told.input_tokens),
            (&mut self.cache_creation_input_tokens, told.cache_creation_input_tokens),
            (&mut self.cache_read_input_tokens, told.cache_read_input_tokens),
            (&mut self.output_tokens, told.output_tokens),
        ] {
            known.0 = told.0.or(known.0);
        }
    }

    /// In our terms: what was written to the cache or read from it is not part of Anthropic's `input_tokens`. What was
    /// spent on thinking is not told apart.
    pub(crate) fn total(&self) -> Usage {
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
