//! Workers AI: Cloudflare's models, through the binding `AI`. Requests and responses are those of chat
//! completions. Older models use other names for text and calls, which the decoder of chat completions knows.

use serde_json::Value;

use crate::ai::AiRequest;
use crate::{ChatRequest, ResponseMode, openai};

/// The option for the gateway, such as `{"id": "default"}`. It is not part of the request.
pub const GATEWAY: &str = "gateway";

/// A dummy address. It must not be one of OpenAI's, whose field names differ.
pub const ADDRESS: &str = "workers-ai:";

/// Fields of chat completions that these models do not know, or that the binding receives separately.
const LEFT_OUT: [&str; 4] = ["model", "parallel_tool_calls", "stream_options", GATEWAY];

/// The request to the binding.
pub fn request(chat: &ChatRequest, answer: ResponseMode) -> AiRequest {
    let mut chat = ChatRequest { user: None, ..chat.clone() };
    let gateway = chat.options.get(GATEWAY).filter(|gateway| !gateway.is_null()).map(Value::to_string);
    for key in LEFT_OUT {
        chat.options.insert(key.to_owned(), Value::Null);
    }
    let body = openai::request(&chat, ADDRESS, None, answer).body.unwrap_or_default();
    AiRequest { model: chat.model, input: body, gateway }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChatMessage, Part};

    #[test]
    fn the_gateway_goes_beside_the_request() {
        let said = ChatMessage::User(vec![Part::Text("Hi".into())]);
        let mut chat = ChatRequest {
            model: "@cf/x/y".into(),
            messages: vec![said.into()],
            max_output_tokens: Some(500),
            user: Some("t1".into()),
            ..ChatRequest::default()
        };
        let asked = |chat: &ChatRequest| {
            let AiRequest { model, input, gateway } = request(chat, ResponseMode::Stream);
            (model, String::from_utf8(input.to_vec()).unwrap(), gateway)
        };
        let input =
            r#"{"messages":[{"role":"user","content":"Hi"}],"stream":true,"max_tokens":500}"#.to_owned();
        assert_eq!(asked(&chat), ("@cf/x/y".to_owned(), input.clone(), None));
        chat.options.insert(GATEWAY.into(), bobbin_definitions::json!({ "id": "mine" }));
        assert_eq!(asked(&chat), ("@cf/x/y".to_owned(), input, Some(r#"{"id":"mine"}"#.to_owned())));
    }
}
