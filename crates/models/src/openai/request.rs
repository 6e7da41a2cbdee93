//! The bytes of a request. Keys are always in the same order, and history is always written in the same way,
//! so that the provider's prompt cache finds the prefix of the previous request.

use bytes::Bytes;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::address::address;
use crate::http::{HeaderSelection, Request};
use crate::openai::messages::Messages;
use crate::{CachedJson, ChatRequest, JsonMode, Reasoning, ResponseMode, ToolDefinition};
use bobbin_definitions::definitions::model::refuses_effort_with_tools;
use bobbin_definitions::definitions::model::{OutputLimitName, OutputLimitParam};
use bobbin_definitions::definitions::prompt::ToolChoice;
use bobbin_definitions::json;

/// OpenAI's own address.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// The HTTP request of a chat request. `base_url` may end with a slash, and a query in it (Azure's
/// `?api-version=…`) is kept; empty means [`DEFAULT_BASE_URL`]. Without a key there is no `authorization`.
pub fn request(chat: &ChatRequest, base_url: &str, api_key: Option<&str>, answer: ResponseMode) -> Request {
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("accept".to_owned(), answer.media_type().to_owned()),
    ];
    if let Some(key) = api_key.map(str::trim).filter(|key| !key.is_empty()) {
        headers.push(("authorization".to_owned(), format!("Bearer {key}")));
    }
    // Serialization cannot fail: keys are strings, and the output is memory.
    let url = address(base_url, DEFAULT_BASE_URL, &["/chat/completions"], "/chat/completions");
    let is_openai = url.starts_with(DEFAULT_BASE_URL);
    let body = serde_json::to_vec(&Body { chat, answer, is_openai }).unwrap_or_default();
    Request { method: "POST", url, headers, body: Some(Bytes::from(body)), reads: HeaderSelection::Type }
}

/// Bytes of the body, including all images.
pub fn bytes(chat: &ChatRequest) -> usize {
    written(chat).len()
}

/// The body, for purposes other than sending it.
pub fn written(chat: &ChatRequest) -> String {
    let body = Body { chat, answer: ResponseMode::Stream, is_openai: false };
    serde_json::to_string(&body).unwrap_or_default()
}

struct Body<'a> {
    chat: &'a ChatRequest,
    answer: ResponseMode,
    /// Whether it goes to OpenAI.
    is_openai: bool,
}

/// Keys that options cannot replace.
const FIXED: [&str; 2] = ["messages", "stream"];

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ChatRequest { model, messages, tools, tool_choice, parallel_tool_calls, options, user, .. } =
            self.chat;
        let mut map = serializer.serialize_map(None)?;
        let mut ours = DefaultEntries { map: &mut map, options };
        ours.entry("model", model)?;
        // Tools before messages: both are in the cached prefix, and tools change less often.
        if !tools.is_empty() {
            ours.entry("tools", &OfferedTools(tools))?;
            if *tool_choice != ToolChoice::Auto {
                ours.entry("tool_choice", tool_choice)?;
            }
            ours.entry("parallel_tool_calls", parallel_tool_calls)?;
        }
        ours.map.serialize_entry("messages", &Messages(messages))?;
        let stream = self.answer == ResponseMode::Stream;
        ours.map.serialize_entry("stream", &stream)?;
        if stream {
            ours.entry("stream_options", &json!({ "include_usage": true }))?;
        }
        if let Some(user) = user {
            ours.entry("user", user)?;
        }
        if let Some(tokens) = self.chat.max_output_tokens {
            // OpenAI's reasoning models refuse the old name, and most other servers do not know the new one.
            let name = match self.chat.output_limit_param {
                OutputLimitParam::None => None,
                OutputLimitParam::Named(name) => Some(name),
                OutputLimitParam::ByAddress if self.is_openai => Some(OutputLimitName::MaxCompletionTokens),
                OutputLimitParam::ByAddress => Some(OutputLimitName::MaxTokens),
            };
            let names = match name {
                None => None,
                Some(OutputLimitName::MaxCompletionTokens) => Some(("max_completion_tokens", "max_tokens")),
                Some(OutputLimitName::MaxTokens) => Some(("max_tokens", "max_completion_tokens")),
            };
            if let Some((name, other)) = names
                && !options.contains_key(other)
            {
                ours.entry(name, &tokens)?;
            }
        }
        if let Some(mode) = &self.chat.json {
            ours.entry("response_format", &response_format(mode))?;
        }
        let none = !tools.is_empty() && refuses_effort_with_tools(model);
        if let Some(effort) = if none { Some("none") } else { effort(&self.chat.reasoning) } {
            ours.entry("reasoning_effort", effort)?;
        }
        for (key, value) in options {
            // `null` omits a key, for servers that refuse it.
            if !FIXED.contains(&key.as_str()) && !value.is_null() {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

/// The model's own name for a level, else OpenAI's. A number of tokens has none.
pub fn effort(reasoning: &Reasoning) -> Option<&str> {
    let usual = |level: u8| match level {
        0..50 => "low",
        50..83 => "medium",
        _ => "high",
    };
    reasoning.word.as_deref().or(reasoning.level.map(usual))
}

/// Without a schema any object is valid. The API requires a name for a schema.
fn response_format(mode: &JsonMode) -> Value {
    match &mode.schema {
        None => json!({ "type": "json_object" }),
        Some(schema) if mode.strict => {
            json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema, "strict": true } })
        }
        Some(schema) => {
            json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema } })
        }
    }
}

/// Entries that options may replace.
struct DefaultEntries<'a, M> {
    map: &'a mut M,
    options: &'a Map<String, Value>,
}

impl<M: SerializeMap> DefaultEntries<'_, M> {
    fn entry<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), M::Error> {
        if self.options.contains_key(key) { Ok(()) } else { self.map.serialize_entry(key, value) }
    }
}

struct OfferedTools<'a>(&'a CachedJson<Vec<ToolDefinition>>);

impl Serialize for OfferedTools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(|tools| Tools(tools), serializer)
    }
}

struct Tools<'a>(&'a [ToolDefinition]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tool<'a> {
            r#type: &'static str,
            function: Function<'a>,
        }
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            description: &'a str,
            parameters: &'a Value,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            strict: bool,
        }
        serializer.collect_seq(self.0.iter().map(|tool| Tool {
            r#type: "function",
            function: Function {
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.parameters,
                strict: tool.strict,
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChatMessage, Part};

    fn chat() -> ChatRequest {
        ChatRequest {
            model: "gpt-5-mini".into(),
            messages: vec![
                ChatMessage::System("Be short.".into()).into(),
                ChatMessage::User(vec![Part::Text("Hi".into())]).into(),
            ],
            ..ChatRequest::default()
        }
    }

    fn offer(name: &str, strict: bool) -> ToolDefinition {
        ToolDefinition {
            name: name.into(),
            description: "Does it.".into(),
            parameters: json!({ "type": "object", "properties": { "z": {}, "a": {} }, "additionalProperties": false }),
            strict,
        }
    }

    fn body(chat: &ChatRequest) -> String {
        let request = request(chat, "", None, ResponseMode::Stream);
        String::from_utf8(request.body.unwrap().to_vec()).unwrap()
    }

    #[test]
    fn the_plain_request() {
        assert_eq!(
            body(&chat()),
            r#"{"model":"gpt-5-mini","messages":[{"role":"system","content":"Be short."},{"role":"user","content":"Hi"}],"stream":true,"stream_options":{"include_usage":true}}"#
        );
    }

    #[test]
    fn address_and_key() {
        for (base, url) in [
            ("", "https://api.openai.com/v1/chat/completions"),
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/chat/completions"),
            ("http://127.0.0.1:8080/v1//", "http://127.0.0.1:8080/v1/chat/completions"),
            ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
            (
                "https://r.example/openai/deployments/d?api-version=2024-10-21",
                "https://r.example/openai/deployments/d/chat/completions?api-version=2024-10-21",
            ),
        ] {
            assert_eq!(request(&chat(), base, None, ResponseMode::Stream).url, url);
        }
        let authorization = |key| {
            let request = request(&chat(), "", key, ResponseMode::Stream);
            request.headers.into_iter().find(|(name, _)| name == "authorization").map(|(_, value)| value)
        };
        assert_eq!(authorization(Some("sk-1\n")), Some("Bearer sk-1".to_owned()));
        assert_eq!(authorization(Some(" ")), None);
        assert_eq!(authorization(None), None);
    }

    #[test]
    fn tools_bring_their_settings_along() {
        let with = ChatRequest {
            tools: vec![offer("f", true), offer("g", false)].into(),
            tool_choice: ToolChoice::Required,
            ..chat()
        };
        assert_eq!(
            body(&with),
            concat!(
                r#"{"model":"gpt-5-mini","tools":[{"type":"function","function":{"name":"f","description":"Does it.","parameters":{"type":"object","properties":{"z":{},"a":{}},"additionalProperties":false},"strict":true}},"#,
                r#"{"type":"function","function":{"name":"g","description":"Does it.","parameters":{"type":"object","properties":{"z":{},"a":{}},"additionalProperties":false}}}],"#,
                r#""tool_choice":"required","parallel_tool_calls":false,"messages":[{"role":"system","content":"Be short."},{"role":"user","content":"Hi"}],"stream":true,"stream_options":{"include_usage":true}}"#
            )
        );
        let auto =
            body(&ChatRequest { tool_choice: ToolChoice::Auto, parallel_tool_calls: true, ..with.clone() });
        assert!(!auto.contains("tool_choice") && auto.contains(r#""parallel_tool_calls":true"#), "{auto}");
        let without = body(&ChatRequest { tools: vec![].into(), ..with });
        assert!(!without.contains("tool"), "{without}");
    }

    #[test]
    fn options_come_last_and_replace_whole_keys() {
        let options = json!({
            "temperature": 0.2, "model": "other", "stream": false, "messages": [], "stream_options": { "x": 1 },
            "user": null, "metadata": null
        });
        let Value::Object(options) = options else { panic!() };
        let chat = ChatRequest { options, user: Some("t1".into()), ..chat() };
        assert_eq!(
            body(&chat),
            r#"{"messages":[{"role":"system","content":"Be short."},{"role":"user","content":"Hi"}],"stream":true,"temperature":0.2,"model":"other","stream_options":{"x":1}}"#
        );
    }

    #[test]
    fn a_model_that_cannot_stream_is_asked_for_a_whole_answer() {
        let request = request(&chat(), "", None, ResponseMode::Whole);
        let body: Value = bobbin_definitions::json::from_slice(&request.body.unwrap()).unwrap();
        assert_eq!((&body["stream"], body.get("stream_options")), (&json!(false), None));
    }

    #[test]
    fn the_limit_of_an_answer_has_the_name_that_its_server_knows() {
        let limited = |base: &str, options: Value| {
            let Value::Object(options) = options else { panic!() };
            let chat = ChatRequest { max_output_tokens: Some(500), options, ..chat() };
            let body = request(&chat, base, None, ResponseMode::Stream).body.unwrap();
            let body: Value = bobbin_definitions::json::from_slice(&body).unwrap();
            (body["max_completion_tokens"].as_u64(), body["max_tokens"].as_u64())
        };
        assert_eq!(limited("", json!({})), (Some(500), None));
        assert_eq!(limited("http://127.0.0.1:8080/v1", json!({})), (None, Some(500)));
        assert_eq!(limited("", json!({ "max_tokens": 7 })), (None, Some(7)));
        assert_eq!(limited("https://h/v1", json!({ "max_completion_tokens": 7 })), (Some(7), None));
        assert_eq!(limited("https://h/v1", json!({ "max_tokens": null })), (None, None));
    }

    #[test]
    fn json_is_asked_for_with_or_without_a_schema() {
        let schema =
            json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false });
        for (schema, strict, expected) in [
            (None, false, json!({ "type": "json_object" })),
            (
                Some(schema.clone()),
                true,
                json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema, "strict": true } }),
            ),
            (
                Some(schema.clone()),
                false,
                json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema } }),
            ),
        ] {
            let chat = ChatRequest { json: Some(JsonMode { schema, strict }), ..chat() };
            let body: Value = bobbin_definitions::json::from_str(&body(&chat)).unwrap();
            assert_eq!(body["response_format"], expected);
        }
        assert!(!body(&chat()).contains("response_format"));
    }

    #[test]
    fn no_effort_goes_with_tools_where_that_is_refused() {
        for (model, refuses) in [
            ("gpt-5.4-mini", true),
            ("gpt-5.6", true),
            ("gpt-5.10-2027-01-01", true),
            ("gpt-6", true),
            ("gpt-5", false),
            ("gpt-5.3-codex", false),
            ("gpt-4o", false),
            ("gpt-4.1", false),
            ("gpt-oss-120b", false),
            ("o3", false),
            ("llama", false),
        ] {
            assert_eq!(refuses_effort_with_tools(model), refuses, "{model}");
        }
        let effort = |model: &str, tools: bool| {
            let reasoning = Reasoning { level: Some(66), ..Reasoning::default() };
            let tools = if tools { vec![offer("f", true)] } else { vec![] };
            let body = body(&ChatRequest { model: model.into(), tools: tools.into(), reasoning, ..chat() });
            bobbin_definitions::json::from_str::<Value>(&body).unwrap()["reasoning_effort"].clone()
        };
        assert_eq!(effort("gpt-5.4", true), "none");
        assert_eq!(effort("gpt-5.4", false), "medium");
        assert_eq!(effort("gpt-5", true), "medium");
    }

    #[test]
    fn the_same_request_gives_the_same_bytes() {
        let chat = ChatRequest { tools: vec![offer("f", true)].into(), user: Some("t".into()), ..chat() };
        assert_eq!(body(&chat), body(&chat.clone()));
        let longer = ChatRequest {
            messages: [
                chat.messages.clone(),
                vec![ChatMessage::User(vec![Part::Text("More".into())]).into()],
            ]
            .concat(),
            ..chat.clone()
        };
        let (short, long) = (body(&chat), body(&longer));
        let prefix = short.find(r#"],"stream""#).unwrap();
        assert_eq!(short[..prefix], long[..prefix]);
    }
}
