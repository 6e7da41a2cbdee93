//! Estimated number of tokens of a request.

use crate::{CachedJson, ChatMessage, ChatRequest, Part, PositionedBlock, ToolDefinition};
use bobbin_definitions::definitions::message::ToolCall;
use bobbin_definitions::tokens::tokens;

/// Tokens of a message besides its texts: its role and separators.
pub const MESSAGE: usize = 4;
/// Tokens of a call or a tool besides its texts.
pub const CALL: usize = 8;

impl ChatMessage {
    fn tokens(&self) -> usize {
        let parts = |parts: &[Part]| -> usize {
            let text = |part: &Part| if let Part::Text(text) = part { tokens(text) } else { 0 };
            parts.iter().map(text).sum()
        };
        MESSAGE
            + match self {
                ChatMessage::System(text) => tokens(text),
                ChatMessage::User(all) => parts(all),
                ChatMessage::Assistant { content, tool_calls, payload } => {
                    let calls: usize = tool_calls.iter().map(of_call).sum();
                    tokens(content) + calls + payload.iter().map(PositionedBlock::tokens).sum::<usize>()
                }
                ChatMessage::Tool { content, images, .. } => tokens(content) + parts(images),
            }
    }

    fn shows_images(&self) -> bool {
        match self {
            ChatMessage::User(parts) | ChatMessage::Tool { images: parts, .. } => {
                parts.iter().any(|part| matches!(part, Part::Image { .. }))
            }
            ChatMessage::System(_) | ChatMessage::Assistant { .. } => false,
        }
    }
}

/// Tokens of a call.
pub fn of_call(call: &ToolCall) -> usize {
    CALL + tokens(&call.name) + tokens(&call.arguments)
}

impl CachedJson<ChatMessage> {
    /// Tokens of a message, counted once.
    pub fn tokens(&self) -> usize {
        self.counted(ChatMessage::tokens)
    }
}

impl CachedJson<Vec<ToolDefinition>> {
    /// Tokens of all tools, counted once.
    pub fn tokens(&self) -> usize {
        let of = |tool: &ToolDefinition| {
            CALL + tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.parameters.to_string())
        };
        self.counted(|tools| tools.iter().map(of).sum())
    }
}

impl ChatRequest {
    /// Tokens of the whole request; `None` when it has images, because each provider counts those
    /// differently.
    pub fn tokens(&self) -> Option<usize> {
        if self.messages.iter().any(|message| message.shows_images()) {
            return None;
        }
        Some(self.text_tokens())
    }

    /// Tokens of its texts, tools and calls.
    pub fn text_tokens(&self) -> usize {
        self.tools.tokens() + self.messages.iter().map(CachedJson::<ChatMessage>::tokens).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bobbin_definitions::definitions::message::ToolStatus;

    fn request(messages: Vec<ChatMessage>) -> ChatRequest {
        let tool = ToolDefinition {
            name: "lookup".into(),
            description: "Looks a word up.".into(),
            parameters: bobbin_definitions::json!({ "type": "object" }),
            strict: false,
        };
        let messages = messages.into_iter().map(CachedJson::from).collect();
        ChatRequest { messages, tools: vec![tool].into(), ..ChatRequest::default() }
    }

    #[test]
    fn every_part_of_a_request_counts_once() {
        let call =
            ToolCall { name: "lookup".into(), arguments: "{\"word\":1}".into(), ..ToolCall::default() };
        let reply = ChatMessage::Assistant {
            content: "I look.".into(),
            tool_calls: vec![call.clone()],
            payload: Vec::new(),
        };
        let said = ChatMessage::User(vec![Part::Text("Find the word.".into())]);
        let nothing = request(Vec::new()).tokens().unwrap();
        assert!(nothing >= CALL + tokens("Looks a word up."));
        let whole = request(vec![said.clone(), reply.clone()]);
        let expected =
            nothing + (MESSAGE + tokens("Find the word.")) + (MESSAGE + tokens("I look.") + of_call(&call));
        assert_eq!(whole.tokens(), Some(expected));
        assert_eq!(whole.tokens(), Some(expected), "counted again it is the same");
    }

    #[test]
    fn images_have_no_size_that_can_be_told() {
        let image = || Part::Image { media_type: "image/png".into(), data: "AAAA".into() };
        let shown = ChatMessage::User(vec![Part::Text("Look.".into()), image()]);
        assert_eq!(request(vec![shown]).tokens(), None);
        let result = ChatMessage::Tool {
            call_id: "c".into(),
            name: "draw".into(),
            content: "drawn".into(),
            status: ToolStatus::Success,
            images: vec![image()],
        };
        assert_eq!(request(vec![result]).tokens(), None);
    }
}
