//! Assembles a reply from its deltas.

use crate::{Delta, FinishReason, Payload, PositionedBlock, ProviderError, Reply, surrogates};
use bobbin_definitions::definitions::message::ToolCall;
use bobbin_definitions::definitions::opaque::Opaque;
use bobbin_definitions::limits::{CALLS_PER_REPLY, PAYLOAD_BYTES, REASONING_BYTES, REPLY_BYTES};

/// Folds deltas into a [`Reply`].
#[derive(Debug, Default)]
pub struct ReplyBuilder {
    reply: Reply,
    /// The provider's index of each call, in the order of `reply.tool_calls`.
    places: Vec<usize>,
    /// Bytes of text and calls.
    bytes: usize,
    payload_bytes: usize,
    reasoning_bytes: usize,
}

impl ReplyBuilder {
    /// Adds a delta. Reasoning beyond [`REPLY_BYTES`] is dropped, because it is only informative.
    ///
    /// # Errors
    /// A reply over [`REPLY_BYTES`], or with more than [`CALLS_PER_REPLY`] calls, is refused entirely: a part
    /// of it would be a different reply. A reply with more than [`REASONING_BYTES`] of reasoning is refused
    /// too, because it would not end.
    pub fn push(&mut self, delta: &Delta) -> Result<(), ProviderError> {
        match delta {
            Delta::Text(text) => {
                self.room_for(text.len())?;
                self.reply.content.push_str(text);
            }
            Delta::Reasoning(text) => {
                self.count_reasoning(text.len())?;
                if self.reply.reasoning.len() + text.len() <= REPLY_BYTES {
                    self.reply.reasoning.push_str(text);
                }
            }
            Delta::CallStart { index, id, name } => {
                self.room_for(id.len() + name.len())?;
                let call = self.call(*index)?;
                if call.id.is_empty() {
                    call.id.push_str(id);
                }
                if name.starts_with(&call.name) {
                    call.name.clone_from(name);
                }
            }
            Delta::CallArguments { index, text } => {
                self.room_for(text.len())?;
                self.call(*index)?.arguments.push_str(text);
            }
            Delta::CallExtra { index, extra } => {
                self.room_for(extra.get().len())?;
                self.call(*index)?.extra_content = Some(extra.clone());
            }
            Delta::Payload(block) => self.keep(block),
            Delta::Usage(usage) => self.reply.usage = Some(*usage),
            Delta::Finish(reason) => self.reply.finish_reason = Some(*reason),
            // It describes the attempt, not the reply.
            Delta::Response { .. } => {}
        }
        Ok(())
    }

    /// Counts reasoning, even when it is hidden.
    ///
    /// # Errors
    /// There is more than [`REASONING_BYTES`].
    pub fn count_reasoning(&mut self, bytes: usize) -> Result<(), ProviderError> {
        self.reasoning_bytes += bytes;
        if self.reasoning_bytes > REASONING_BYTES {
            return Err(ProviderError::invalid_reply(format!(
                "the reply is refused: its reasoning is over {REASONING_BYTES} bytes"
            )));
        }
        Ok(())
    }

    /// The text so far.
    pub fn content(&self) -> &str {
        &self.reply.content
    }

    /// The whole reply, with its calls in the order in which the provider began them. In a reply with
    /// calls, `Stop` becomes `ToolCalls`, because some servers say `stop`.
    pub fn finish(mut self) -> Reply {
        if self.reply.finish_reason == Some(FinishReason::Stop) && !self.reply.tool_calls.is_empty() {
            self.reply.finish_reason = Some(FinishReason::ToolCalls);
        }
        for call in &mut self.reply.tool_calls {
            call.arguments = surrogates::whole(std::mem::take(&mut call.arguments));
        }
        // Both share a row.
        if self.payload_bytes > 0 && self.bytes + self.payload_bytes > REPLY_BYTES {
            self.reply.payload = Payload::TooLarge(self.payload_bytes);
        }
        self.reply
    }

    /// A payload that is too large is dropped entirely, because the provider would refuse a part of it.
    fn keep(&mut self, block: &Opaque) {
        self.payload_bytes += block.get().len();
        if self.payload_bytes > PAYLOAD_BYTES {
            self.reply.payload = Payload::TooLarge(self.payload_bytes);
            return;
        }
        let (text, calls) = (self.reply.content.len(), self.reply.tool_calls.len());
        let placed = PositionedBlock { text, calls, block: block.clone() };
        match &mut self.reply.payload {
            Payload::Blocks(blocks) => blocks.push(placed),
            payload => *payload = Payload::Blocks(vec![placed]),
        }
    }

    fn room_for(&mut self, bytes: usize) -> Result<(), ProviderError> {
        self.bytes += bytes;
        if self.bytes > REPLY_BYTES {
            return Err(ProviderError::invalid_reply(format!(
                "the reply is refused: text and tool calls together are over {REPLY_BYTES} bytes"
            )));
        }
        Ok(())
    }

    /// The call at a provider's index; a new one is added.
    fn call(&mut self, index: usize) -> Result<&mut ToolCall, ProviderError> {
        let calls = &mut self.reply.tool_calls;
        let at = match self.places.iter().rposition(|place| *place == index) {
            Some(at) => at,
            None if calls.len() == CALLS_PER_REPLY => {
                return Err(ProviderError::invalid_reply(format!(
                    "the reply is refused: it has more than {CALLS_PER_REPLY} tool calls"
                )));
            }
            None => {
                self.places.push(index);
                calls.push(ToolCall::default());
                calls.len() - 1
            }
        };
        calls.get_mut(at).ok_or_else(|| ProviderError::invalid_reply("the reply's calls do not add up"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProviderCode;
    use bobbin_definitions::definitions::model::Usage;

    fn start(index: usize, id: &str, name: &str) -> Delta {
        Delta::CallStart { index, id: id.into(), name: name.into() }
    }

    fn arguments(index: usize, text: &str) -> Delta {
        Delta::CallArguments { index, text: text.into() }
    }

    fn build(deltas: &[Delta]) -> Result<Reply, ProviderError> {
        let mut builder = ReplyBuilder::default();
        deltas.iter().try_for_each(|delta| builder.push(delta))?;
        Ok(builder.finish())
    }

    #[test]
    fn deltas_add_up() {
        let usage = |output_tokens| Usage { input_tokens: 3, output_tokens, ..Usage::default() };
        let reply = build(&[
            Delta::Reasoning("Hm".into()),
            Delta::Reasoning(".".into()),
            Delta::Text("A ".into()),
            Delta::Usage(usage(1)),
            start(7, "", "later"),
            start(2, "b", "second"),
            arguments(7, "{\"x\""),
            arguments(2, "{}"),
            arguments(7, ":1}"),
            start(7, "a", "ignored"),
            Delta::Text("spool.".into()),
            Delta::Finish(FinishReason::Stop),
            Delta::Usage(usage(9)),
        ])
        .unwrap();
        let call = |id: &str, name: &str, arguments: &str| ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            extra_content: None,
        };
        assert_eq!(
            reply,
            Reply {
                content: "A spool.".into(),
                reasoning: "Hm.".into(),
                tool_calls: vec![call("a", "later", "{\"x\":1}"), call("b", "second", "{}")],
                finish_reason: Some(FinishReason::ToolCalls),
                usage: Some(usage(9)),
                ..Reply::default()
            }
        );
    }

    #[test]
    fn a_reply_over_its_limits_is_refused_whole() {
        let half = "x".repeat(REPLY_BYTES / 2);
        assert!(build(&[Delta::Text(half.clone()), start(0, "", ""), arguments(0, &half)]).is_ok());
        let error = build(&[Delta::Text(half.clone()), start(0, "", "f"), arguments(0, &half)]).unwrap_err();
        assert_eq!(
            error.message,
            "the reply is refused: text and tool calls together are over 1200000 bytes"
        );
        assert_eq!((error.code, error.retryable(), error.moves_on()), (ProviderCode::Unknown, false, true));

        let calls: Vec<Delta> = (0..CALLS_PER_REPLY).map(|index| start(index, "", "f")).collect();
        assert_eq!(build(&calls).unwrap().tool_calls.len(), CALLS_PER_REPLY);
        let error = build(&[calls, vec![arguments(999, "{}")]].concat()).unwrap_err();
        assert_eq!(error.message, "the reply is refused: it has more than 256 tool calls");
    }

    #[test]
    fn endless_reasoning_costs_no_memory() {
        let piece = Delta::Reasoning("r".repeat(REPLY_BYTES / 2));
        let reply = build(&[piece.clone(), piece.clone(), piece, Delta::Text("a".into())]).unwrap();
        assert_eq!((reply.reasoning.len(), reply.content.as_str()), (REPLY_BYTES, "a"));
        let error = build(&vec![Delta::Reasoning("r".repeat(1 << 20)); 5]).unwrap_err();
        assert_eq!(error.message, "the reply is refused: its reasoning is over 4194304 bytes");
    }
}
