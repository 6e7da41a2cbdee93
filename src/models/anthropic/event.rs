//! One event of a stream, or a whole answer, in its shape on the wire. What is absent or `null` counts as empty; blocks
//! stay raw, because some are sent back unchanged.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::models::Usage;
use crate::models::openai::chunk::Text;

/// An event (`type` tells which) or a whole answer (`type` is `message`).
#[derive(Debug, Default, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default)]
    pub(super) r#type: Text<'a>,
    /// Place of a block in the reply.
    #[serde(default)]
    pub(super) index: Option<u64>,
    /// In `message_start`.
    #[serde(borrow, default)]
    pub(super) message: Option<Message<'a>>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(default)]
    pub(super) usage: Option<WireUsage>,
    /// Of a whole answer.
    #[serde(borrow, default)]
    pub(super) content: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(default)]
    pub(super) usage: Option<WireUsage>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
}

/// A change of a block, or in `message_delta` of the message.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta<'a> {
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

/// A block that begins, or a whole one.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Block<'a> {
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

/// Token counts; each event tells some of them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl WireUsage {
    /// Takes over what an event tells, which is the sum so far.
    pub(super) fn update(&mut self, told: &WireUsage) {
        self.input_tokens = told.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens =
            told.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = told.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens = told.output_tokens.or(self.output_tokens);
    }

    /// In our terms: what was written to the cache or read from it is not part of Anthropic's `input_tokens`. What was
    /// spent on thinking is not told apart.
    pub(super) fn total(&self) -> Usage {
        let count = |tokens: Option<u64>| tokens.unwrap_or(0);
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
