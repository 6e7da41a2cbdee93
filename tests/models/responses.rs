//! OpenAI's responses: answers however they are cut, and what is sent.

use bobbin::definitions::message::{ToolCall, ToolStatus};
use bobbin::host::http::Request;
use bobbin::models::{
    ChatMessage, ChatRequest, Decoder, Delta, FinishReason, JsonMode, Part, ProviderCode, Reasoning, Reply,
    ResponseMode, ToolChoice, ToolDefinition, openai, responses,
};
use serde_json::{Value, json};

use crate::{Fixture, call, fixture, in_every_way, payload, usage};

fn decode(fixture: Fixture) -> Result<Reply, bobbin::models::ProviderError> {
    let key = Some("sk-key-of-the-fixture");
    in_every_way(fixture, &|| Decoder::Responses(responses::Decoder::new(key)))
}

const FIRST: &str = r#"{"id":"rs_1","type":"reasoning","content":[],"encrypted_content":"gAAAAABo\/x\u002b1==","summary":[{"type":"summary_text","text":"**Looking up**\n\u00e9 \ud83e\uddf5"},{"type":"summary_text","text":"Both."}]}"#;
const SECOND: &str =
    r#"{"id":"rs_2", "type":"reasoning","encrypted_content":"gAAAAABsecond/+","summary":[]}"#;

#[test]
fn answers_give_their_reply_however_they_are_cut() {
    let cases: Vec<(Fixture, Reply)> = vec![
        (
            fixture!("responses_text"),
            Reply {
                content: "A bobbin is a small\nspool: “Spule” 🧵.".into(),
                finish_reason: Some(FinishReason::Stop),
                usage: usage(1043, 1024, 12, 0)
                    .map(|usage| bobbin::models::Usage { written_tokens: 16, ..usage }),
                ..Reply::default()
            },
        ),
        (
            fixture!("responses_calls"),
            Reply {
                content: "A moment.".into(),
                reasoning: "**Looking up**\né 🧵\n\nBoth.".into(),
                tool_calls: vec![
                    call("call_9YpQ", "lookup", r#"{"word":"bobbin \"x\""}"#),
                    call("call_Zz01", "weather", r#"{"city":"Köln"}"#),
                ],
                payload: payload(&[
                    (0, 0, FIRST),
                    (0, 0, r#"{"type":"message","phase":"commentary"}"#),
                    (9, 1, SECOND),
                ]),
                finish_reason: Some(FinishReason::ToolCalls),
                usage: usage(82, 0, 143, 100),
            },
        ),
        (
            fixture!("responses_incomplete"),
            Reply {
                content: "Too lo".into(),
                finish_reason: Some(FinishReason::Length),
                usage: usage(20, 0, 16, 8),
                ..Reply::default()
            },
        ),
        (
            fixture!("responses_refusal"),
            Reply {
                content: "I cannot help.".into(),
                finish_reason: Some(FinishReason::ContentFilter),
                ..Reply::default()
            },
        ),
        (
            fixture!("responses_whole"),
            Reply {
                content: "Done.".into(),
                tool_calls: vec![call("call_8", "now", "{}")],
                payload: payload(&[(0, 0, SECOND), (0, 0, r#"{"type":"message","phase":"final_answer"}"#)]),
                finish_reason: Some(FinishReason::ToolCalls),
                usage: usage(20, 16, 8, 4),
                ..Reply::default()
            },
        ),
        (
            fixture!("responses_local"),
            Reply {
                content: "Hi".into(),
                reasoning: "The user".into(),
                tool_calls: vec![call("c1", "now", "{}")],
                payload: payload(&[(
                    0,
                    0,
                    r#"{"type":"reasoning","id":"rs","summary":[],"content":[{"type":"reasoning_text","text":"The user"}],"encrypted_content":""}"#,
                )]),
                finish_reason: Some(FinishReason::ToolCalls),
                usage: usage(5, 0, 3, 0),
            },
        ),
    ];
    for (fixture, expected) in cases {
        assert_eq!(decode(fixture).unwrap(), expected, "{}", fixture.0);
    }
}

#[test]
fn errors_keep_their_kind_however_they_are_cut() {
    for (fixture, code, message) in [
        (fixture!("responses_failed"), ProviderCode::RateLimit, "Rate limit reached for [redacted]"),
        (
            fixture!("responses_error"),
            ProviderCode::ContextLength,
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
        ),
        (
            fixture!("responses_broke_off"),
            ProviderCode::ServerError,
            "the stream broke off before the answer was complete",
        ),
    ] {
        let error = decode(fixture).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (code, message), "{}", fixture.0);
    }
}

#[test]
fn an_answer_that_is_still_being_made_is_none() {
    for status in ["queued", "in_progress", "failed", "cancelled"] {
        let body = json!({ "object": "response", "id": "r", "status": status, "output": [] }).to_string();
        let mut decoder = responses::Decoder::new(None);
        let read =
            decoder.push(body.as_bytes(), &mut Vec::new()).and_then(|()| decoder.finish(&mut Vec::new()));
        let message = read.unwrap_err().message;
        assert_eq!(message, format!("the provider ended with an answer that is \"{status}\""));
    }
}

#[test]
fn an_answer_is_named_once_and_over_with_its_last_event() {
    let (_, text) = fixture!("responses_calls");
    let (mut decoder, mut out) = (responses::Decoder::new(None), Vec::new());
    let (last, but_last) = (text.find("event: response.completed").unwrap(), text.len() - 1);
    decoder.push(&text.as_bytes()[..last], &mut out).unwrap();
    assert!(!decoder.is_done());
    decoder.push(&text.as_bytes()[last..but_last], &mut out).unwrap();
    assert!(!decoder.is_done());
    decoder.push(&text.as_bytes()[but_last..], &mut out).unwrap();
    assert!(decoder.is_done());
    let named: Vec<_> = out.iter().filter(|delta| matches!(delta, Delta::Response { .. })).collect();
    let expected = Delta::Response { id: "resp_2".into(), model: "gpt-6.1-terra-2026-10-26".into() };
    assert_eq!(named, [&expected]);
}

fn user(text: &str) -> ChatMessage {
    ChatMessage::User(vec![Part::Text(text.into())])
}

fn image() -> Part {
    Part::Image { media_type: "image/png".into(), data: "iVBO/+=".into() }
}

fn result(id: &str, content: &str, images: Vec<Part>) -> ChatMessage {
    let (call_id, name, status) = (id.to_owned(), "f".to_owned(), ToolStatus::Success);
    ChatMessage::Tool { call_id, name, content: content.into(), status, images }
}

fn reply(content: &str, tool_calls: Vec<ToolCall>, blocks: &[(usize, usize, &str)]) -> ChatMessage {
    let bobbin::models::Payload::Blocks(payload) = payload(blocks) else { panic!() };
    ChatMessage::Assistant { content: content.into(), tool_calls, payload }
}

fn chat(messages: Vec<ChatMessage>) -> ChatRequest {
    ChatRequest {
        model: "gpt-6.1-terra".into(),
        messages: messages.into_iter().map(Into::into).collect(),
        ..ChatRequest::default()
    }
}

fn text(chat: &ChatRequest) -> String {
    let Request { body, .. } = responses::request(chat, "", None, ResponseMode::Stream);
    String::from_utf8(body.unwrap().to_vec()).unwrap()
}

fn body(chat: &ChatRequest) -> Value {
    serde_json::from_str(&text(chat)).unwrap()
}

fn options(options: Value) -> serde_json::Map<String, Value> {
    let Value::Object(options) = options else { panic!() };
    options
}

#[test]
fn the_plain_request() {
    let chat = ChatRequest {
        user: Some("t1".into()),
        ..chat(vec![ChatMessage::System("Be short.".into()), user("Hi \"you\"")])
    };
    assert_eq!(
        text(&chat),
        concat!(
            r#"{"model":"gpt-6.1-terra","instructions":"Be short.","input":[{"role":"user","content":"Hi \"you\""}],"#,
            r#""stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"t1"}"#
        )
    );
    assert_eq!(text(&chat), text(&chat.clone()), "the same request gives the same bytes");
    let old = ChatRequest { model: "gpt-4.1-mini".into(), ..chat };
    assert_eq!(body(&old).get("include"), None, "a model that never reasons is not asked for it");
}

#[test]
fn address_and_key() {
    for (base, url) in [
        ("", "https://api.openai.com/v1/responses"),
        ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1/responses"),
        ("https://h/openai/v1/responses?api-version=v1", "https://h/openai/v1/responses?api-version=v1"),
        ("https://h/v1/chat/completions", "https://h/v1/responses"),
    ] {
        assert_eq!(responses::request(&chat(vec![user("Hi")]), base, None, ResponseMode::Stream).url, url);
    }
    let sent = responses::request(&chat(vec![user("Hi")]), "", Some(" sk-1\n"), ResponseMode::Whole);
    assert!(sent.headers.contains(&("authorization".into(), "Bearer sk-1".into())));
    let none = responses::request(&chat(vec![user("Hi")]), "", Some(" "), ResponseMode::Whole);
    assert!(none.headers.iter().all(|(name, _)| name != "authorization"));
}

#[test]
fn a_reply_goes_back_as_the_items_that_it_came_as() {
    let commentary = r#"{"type":"message","phase":"commentary"}"#;
    let answer = r#"{"type":"message","phase":"final_answer"}"#;
    let history = chat(vec![
        user("Look."),
        reply(
            "A moment.",
            vec![call("call_1", "f", r#"{"a":1}"#), call("call_2", "g", "{\"a\": ")],
            &[(0, 0, FIRST), (0, 0, commentary), (9, 1, SECOND), (9, 2, FIRST)],
        ),
        result("call_1", "", vec![]),
        result("call_2", "Drawn.", vec![image()]),
        ChatMessage::System("Be brief.".into()),
        reply("Found. All.", vec![], &[(0, 0, SECOND), (0, 0, answer)]),
        ChatMessage::User(vec![Part::Text("See".into()), image()]),
    ]);
    let sent = text(&history);
    assert!(sent.contains(FIRST) && sent.contains(SECOND), "byte for byte: {sent}");
    assert_eq!(sent.matches(FIRST).count(), 1, "what led to nothing is not sent");
    let item = |raw: &str| serde_json::from_str::<Value>(raw).unwrap();
    let picture =
        json!({ "type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBO/+=" });
    assert_eq!(
        body(&history)["input"],
        json!([
            { "role": "user", "content": "Look." },
            item(FIRST),
            { "role": "assistant", "content": "A moment.", "phase": "commentary" },
            { "type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{\"a\":1}" },
            item(SECOND),
            { "type": "function_call", "call_id": "call_2", "name": "g", "arguments": "{\"malformed_arguments\":\"{\\\"a\\\": \"}" },
            { "type": "function_call_output", "call_id": "call_1", "output": "" },
            { "type": "function_call_output", "call_id": "call_2", "output": [{ "type": "input_text", "text": "Drawn." }, picture] },
            { "role": "system", "content": "Be brief." },
            item(SECOND),
            { "role": "assistant", "content": "Found. All.", "phase": "final_answer" },
            { "role": "user", "content": [{ "type": "input_text", "text": "See" }, picture] },
        ])
    );
}

#[test]
fn what_one_api_wants_back_is_not_sent_to_the_other() {
    let detail = r#"{"type":"reasoning.encrypted","data":"x","id":"d"}"#;
    let history =
        chat(vec![user("Look."), reply("Found.", vec![], &[(0, 0, SECOND), (0, 0, detail)]), user("And?")]);
    assert_eq!(
        body(&history)["input"].as_array().unwrap()[1..],
        [
            serde_json::from_str::<Value>(SECOND).unwrap(),
            json!({ "role": "assistant", "content": "Found." }),
            json!({ "role": "user", "content": "And?" })
        ]
    );
    let history =
        chat(vec![user("Look."), reply("Found.", vec![], &[(0, 0, SECOND), (0, 0, detail)]), user("And?")]);
    let chat = openai::request(&history, "https://h/v1", None, ResponseMode::Stream).body.unwrap();
    let chat: Value = serde_json::from_slice(&chat).unwrap();
    assert_eq!(
        chat["messages"][1]["reasoning_details"],
        json!([serde_json::from_str::<Value>(detail).unwrap()])
    );
    assert!(!chat.to_string().contains("gAAAA"));
}

#[test]
fn a_request_that_another_provider_was_sent_first_is_written_anew() {
    let history =
        chat(vec![ChatMessage::System("s".into()), user("Hi"), reply("Well.", vec![], &[]), user("So?")]);
    let alone = text(&history.clone());
    for first in 0..2 {
        let history =
            chat(vec![ChatMessage::System("s".into()), user("Hi"), reply("Well.", vec![], &[]), user("So?")]);
        match first {
            0 => drop(bobbin::models::anthropic::request(&history, "", None, ResponseMode::Stream)),
            _ => drop(openai::request(&history, "https://h/v1", None, ResponseMode::Stream)),
        }
        assert_eq!(text(&history), alone);
    }
    drop(text(&history));
    let claude = bobbin::models::anthropic::request(&history, "", None, ResponseMode::Stream).body.unwrap();
    assert!(String::from_utf8_lossy(&claude).contains(r#"[{"type":"text","text":"Hi"}]"#), "{claude:?}");
}

#[test]
fn tools_are_not_strict_unless_they_say_so() {
    let parameters = || json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let offer = |name: &str, strict| ToolDefinition {
        name: name.into(),
        description: "Does it.".into(),
        parameters: parameters(),
        strict,
    };
    let with = ChatRequest {
        tools: vec![offer("f", true), offer("g", false)].into(),
        tool_choice: ToolChoice::Required,
        parallel_tool_calls: true,
        ..chat(vec![user("Hi")])
    };
    let sent = body(&with);
    let tool = |name: &str, strict: bool| json!({ "type": "function", "name": name, "description": "Does it.", "parameters": parameters(), "strict": strict });
    assert_eq!(sent["tools"], json!([tool("f", true), tool("g", false)]));
    assert_eq!((&sent["tool_choice"], &sent["parallel_tool_calls"]), (&json!("required"), &json!(true)));
    let auto = body(&ChatRequest { tool_choice: ToolChoice::Auto, ..with });
    assert_eq!(auto.get("tool_choice"), None);
}

#[test]
fn options_replace_keys_and_add_to_reasoning_and_text() {
    let schema = json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false });
    let asked = ChatRequest {
        reasoning: Reasoning { level: Some(33), ..Reasoning::default() },
        json: Some(JsonMode { schema: Some(schema.clone()), strict: true }),
        max_output_tokens: Some(7),
        user: Some("t1".into()),
        options: options(json!({
            "reasoning": { "summary": "auto" }, "text": { "verbosity": "low" }, "store": true, "include": null,
            "stream": false, "input": "x", "instructions": "x", "prompt_cache_key": "mine", "temperature": 0.2
        })),
        ..chat(vec![user("Hi")])
    };
    let format = json!({ "type": "json_schema", "name": "answer", "schema": schema, "strict": true });
    assert_eq!(
        body(&asked),
        json!({
            "model": "gpt-6.1-terra", "input": [{ "role": "user", "content": "Hi" }], "stream": true, "max_output_tokens": 16,
            "text": { "format": format, "verbosity": "low" }, "reasoning": { "effort": "low", "summary": "auto" },
            "store": true, "prompt_cache_key": "mine", "temperature": 0.2
        })
    );
    let own = ChatRequest {
        options: options(json!({ "reasoning": { "effort": "xhigh" }, "text": null })),
        max_output_tokens: Some(500),
        ..asked
    };
    let sent = body(&own);
    assert_eq!((&sent["reasoning"], sent.get("text")), (&json!({ "effort": "xhigh" }), None));
    assert_eq!(sent["max_output_tokens"], 500);
    let any = ChatRequest { json: Some(JsonMode { schema: None, strict: false }), ..chat(vec![user("Hi")]) };
    assert_eq!(body(&any)["text"], json!({ "format": { "type": "json_object" } }));
}

#[test]
fn ids_that_are_too_long_are_cut_and_stay_apart() {
    let long = |end: char| format!("{}{end}", "é".repeat(60));
    let ids = [long('a'), long('b'), "x".repeat(64)];
    let calls = ids.iter().map(|id| call(id, "f", "{}")).collect();
    let mut messages = vec![user("Hi"), reply("", calls, &[])];
    messages.extend(ids.iter().map(|id| result(id, "r", vec![])));
    let sent = body(&chat(messages));
    let id = |at: usize| sent["input"][at]["call_id"].as_str().unwrap();
    for at in 1..4 {
        assert_eq!(id(at), id(at + 3));
        assert!(id(at).len() <= 64, "{}", id(at));
    }
    assert_ne!(id(1), id(2));
    assert_eq!(id(3), ids[2]);
}
