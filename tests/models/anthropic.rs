//! Anthropic's messages: answers cut at every byte, and requests to the letter.

use bobbin::definitions::message::{ToolCall, ToolStatus};
use bobbin::definitions::opaque::Opaque;
use bobbin::host::http::Request;
use bobbin::models::anthropic::{Decoder as Anthropic, request};
use bobbin::models::{
    ChatMessage, ChatRequest, Decoder, FinishReason, JsonMode, Part, PositionedBlock, ProviderCode,
    ProviderError, Reasoning, Reply, ResponseMode, ToolChoice, ToolDefinition, Usage,
};
use serde_json::{Value, json};

use super::{Fixture, call, decode_with, fixture, in_every_way, payload, usage};

fn decoder() -> Decoder {
    Decoder::Anthropic(Anthropic::new(Some("sk-ant-secret")))
}

#[test]
fn answers_give_their_reply_however_they_are_cut() {
    let cases: Vec<(Fixture, Reply)> = vec![
        (
            fixture!("anthropic_text"),
            Reply {
                content: "A bobbin is a small\nspool: “Spule” 🧵.".into(),
                finish_reason: Some(FinishReason::Stop),
                usage: usage(12 + 248 + 1024, 1024, 18, 0)
                    .map(|usage| Usage { written_tokens: 248, ..usage }),
                ..Reply::default()
            },
        ),
        (
            fixture!("anthropic_calls"),
            Reply {
                content: "Okay, let's check both:".into(),
                tool_calls: vec![
                    call("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "lookup", r#"{"word": "bobbin \"x\""}"#),
                    call("toolu_02", "weather", r#"{"city": "Köln"}"#),
                    call("toolu_03", "now", ""),
                ],
                finish_reason: Some(FinishReason::ToolCalls),
                usage: usage(472, 0, 89, 0),
                ..Reply::default()
            },
        ),
        (
            fixture!("anthropic_thinking"),
            Reply {
                content: "One moment.".into(),
                reasoning: "Let me look\né 🧵 \"it\" up/.".into(),
                tool_calls: vec![call("toolu_01", "lookup", r#"{"word":"bobbin"}"#)],
                // Escaped as it came.
                payload: payload(&[(
                    0,
                    0,
                    r#"{"type":"thinking","thinking":"Let me look\n\u00e9 🧵 \"it\" up\/.","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk/+="}"#,
                )]),
                finish_reason: Some(FinishReason::ToolCalls),
                usage: usage(60, 0, 120, 0),
            },
        ),
        (
            fixture!("anthropic_interleaved"),
            Reply {
                content: "First. Second.".into(),
                reasoning: "Second thoughts".into(),
                tool_calls: vec![call("toolu_04", "now", "")],
                payload: payload(&[
                    (
                        0,
                        0,
                        r#"{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpP"}"#,
                    ),
                    (7, 0, r#"{"type":"thinking","thinking":"Second thoughts","signature":"Sig/2=="}"#),
                ]),
                finish_reason: Some(FinishReason::ToolCalls),
                usage: usage(80, 0, 44, 0),
            },
        ),
        (
            fixture!("anthropic_whole"),
            Reply {
                content: "Moment…".into(),
                reasoning: "Looké.".into(),
                tool_calls: vec![
                    call("toolu_01", "lookup", r#"{"word":"bobbin", "n": 1.50}"#),
                    call("toolu_02", "now", ""),
                ],
                payload: payload(&[
                    (0, 0, r#"{"type":"thinking","thinking":"Look\u00e9.","signature":"WaUj+/="}"#),
                    (0, 0, r#"{"type":"redacted_thinking","data":"Emw="}"#),
                ]),
                finish_reason: Some(FinishReason::ToolCalls),
                usage: usage(37, 7, 12, 0),
            },
        ),
    ];
    for (fixture, expected) in cases {
        assert_eq!(in_every_way(fixture, &decoder), Ok(expected), "{}", fixture.0);
    }
}

#[test]
fn failures_are_the_same_however_they_are_cut() {
    use ProviderCode::{RateLimit, ServerError};
    for (fixture, code, message) in [
        (fixture!("anthropic_error"), ServerError, "Overloaded"),
        (fixture!("anthropic_rate_limited"), RateLimit, "This request would exceed your rate limit"),
        (fixture!("anthropic_broke_off"), ServerError, "the stream broke off before the answer was complete"),
    ] {
        let error = in_every_way(fixture, &decoder).expect_err(fixture.0);
        assert_eq!((error.code, error.message.as_str()), (code, message), "{}", fixture.0);
        assert!(error.retryable(), "{}", fixture.0);
    }
}

#[test]
fn an_answer_cut_short_anywhere_is_never_taken_for_a_whole_one() {
    for (name, text) in
        [fixture!("anthropic_calls"), fixture!("anthropic_thinking"), fixture!("anthropic_whole")]
    {
        let whole = decode_with(decoder(), [text.as_bytes()]).expect(name);
        for end in 0..text.len() {
            if let Ok(reply) = decode_with(decoder(), [&text.as_bytes()[..end]]) {
                assert_eq!(reply, whole, "{name} up to {end}");
            }
        }
    }
}

#[test]
fn refusals_are_understood() {
    use ProviderCode::{AuthError, ContentFilter, ContextLength, InvalidRequest, RateLimit, ServerError};
    for (status, kind, message, code, retryable) in [
        (400, "invalid_request_error", "max_tokens: Field required", InvalidRequest, false),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 213462 tokens > 200000 maximum",
            ContextLength,
            false,
        ),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
            ContextLength,
            false,
        ),
        (400, "invalid_request_error", "Output blocked by content filtering policy", ContentFilter, false),
        (401, "authentication_error", "invalid x-api-key", AuthError, false),
        (403, "permission_error", "Your API key does not have permission", AuthError, false),
        (404, "not_found_error", "model: claude-none", InvalidRequest, false),
        (413, "request_too_large", "Request exceeds the maximum size", ContextLength, false),
        (429, "rate_limit_error", "Number of requests has exceeded your rate limit", RateLimit, true),
        (500, "api_error", "Internal server error", ServerError, true),
        (529, "overloaded_error", "Overloaded", ServerError, true),
    ] {
        let body = json!({ "type": "error", "error": { "type": kind, "message": message } }).to_string();
        let headers = [("retry-after".to_owned(), "3".to_owned())];
        let error = ProviderError::from_response(status, &headers, body.as_bytes(), &[], 0);
        assert_eq!(
            (error.code, error.retryable(), error.retry_after_ms),
            (code, retryable, Some(3000)),
            "{body}"
        );
        assert_eq!(error.message, message);
        // The same in a stream, where no status says more.
        if !matches!(status, 401..=404) {
            let stream = format!("event: error\ndata: {body}\n\n");
            let error = decode_with(decoder(), [stream.as_bytes()]).unwrap_err();
            assert_eq!(error.code, code, "{body}");
        }
    }
    let leak =
        r#"{"type":"error","error":{"type":"authentication_error","message":"sk-ant-secret is wrong"}}"#;
    let error = decode_with(decoder(), [leak.as_bytes()]).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ProviderCode::AuthError, "[redacted] is wrong"));
}

#[test]
fn reasons_to_stop() {
    for (reason, expected) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("tool_use", FinishReason::ToolCalls),
        ("max_tokens", FinishReason::Length),
        ("refusal", FinishReason::ContentFilter),
        ("pause_turn", FinishReason::Other),
    ] {
        let body =
            json!({ "type": "message", "content": [{ "type": "text", "text": "a" }], "stop_reason": reason });
        let reply = decode_with(decoder(), [body.to_string().as_bytes()]).unwrap();
        assert_eq!((reply.finish_reason, reply.content.as_str()), (Some(expected), "a"), "{reason}");
    }
}

#[test]
fn the_end_is_known_before_the_connection_closes() {
    let (mut decoder, mut out) = (decoder(), Vec::new());
    let text = fixture!("anthropic_text").1;
    decoder.push(&text.as_bytes()[..text.len() - 1], &mut out).unwrap();
    assert!(!decoder.is_done());
    decoder.push(b"\n", &mut out).unwrap();
    assert!(decoder.is_done());
}

fn user(text: &str) -> ChatMessage {
    ChatMessage::User(vec![Part::Text(text.into())])
}

fn assistant(content: &str, tool_calls: Vec<ToolCall>, payload: &[(usize, usize, &str)]) -> ChatMessage {
    let placed = |(text, calls, block): &(usize, usize, &str)| PositionedBlock {
        text: *text,
        calls: *calls,
        block: Opaque::parse((*block).into()).unwrap(),
    };
    ChatMessage::Assistant {
        content: content.into(),
        tool_calls,
        payload: payload.iter().map(placed).collect(),
    }
}

fn result(id: &str, content: &str, status: ToolStatus) -> ChatMessage {
    ChatMessage::Tool {
        call_id: id.into(),
        name: "f".into(),
        content: content.into(),
        status,
        images: vec![],
    }
}

fn chat(messages: Vec<ChatMessage>) -> ChatRequest {
    ChatRequest {
        model: "claude-sonnet-4-5".into(),
        messages: messages.into_iter().map(Into::into).collect(),
        ..ChatRequest::default()
    }
}

fn offer(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        description: "Does it.".into(),
        parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        strict: false,
    }
}

fn text(chat: &ChatRequest) -> String {
    let Request { body, .. } = request(chat, "", None, ResponseMode::Stream);
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
            r#"{"model":"claude-sonnet-4-5","max_tokens":8192,"#,
            r#""system":[{"type":"text","text":"Be short.","cache_control":{"type":"ephemeral"}}],"#,
            r#""messages":[{"role":"user","content":[{"type":"text","text":"Hi \"you\"","cache_control":{"type":"ephemeral"}}]}],"#,
            r#""stream":true,"metadata":{"user_id":"t1"}}"#
        )
    );
    assert_eq!(text(&chat), text(&chat.clone()), "the same request gives the same bytes");
    let whole = request(&chat, "", None, ResponseMode::Whole);
    assert!(String::from_utf8_lossy(&whole.body.unwrap()).contains(r#""stream":false"#));
}

#[test]
fn address_and_headers() {
    let chat = chat(vec![user("Hi")]);
    for (base, url) in [
        ("", "https://api.anthropic.com/v1/messages"),
        ("https://h", "https://h/v1/messages"),
        ("https://h/v1", "https://h/v1/messages"),
        ("https://h/anthropic/v1/", "https://h/anthropic/v1/messages"),
        ("https://h/v1/messages?beta=true", "https://h/v1/messages?beta=true"),
    ] {
        assert_eq!(request(&chat, base, None, ResponseMode::Stream).url, url);
    }
    let headers = |chat: &ChatRequest, key| request(chat, "", key, ResponseMode::Stream).headers;
    let with = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let sent = headers(&chat, Some("sk-ant-1\n"));
    assert!(sent.contains(&with("x-api-key", "sk-ant-1")), "{sent:?}");
    assert!(sent.contains(&with("anthropic-version", "2023-06-01")), "{sent:?}");
    assert!(headers(&chat, Some(" ")).iter().all(|(name, _)| name != "x-api-key" && name != "authorization"));
    let beta = ChatRequest {
        options: options(json!({ "anthropic_beta": ["interleaved-thinking-2025-05-14", "x"] })),
        ..chat
    };
    assert!(headers(&beta, None).contains(&with("anthropic-beta", "interleaved-thinking-2025-05-14,x")));
    assert!(!text(&beta).contains("beta"));
}

#[test]
fn images_of_results_stand_in_them() {
    let image = || Part::Image { media_type: "image/png".into(), data: "iVBO/+=".into() };
    let ChatMessage::Tool { call_id, name, content, status, .. } =
        result("c1", "Drawn.", ToolStatus::Success)
    else {
        panic!()
    };
    let history = chat(vec![
        user("Draw."),
        assistant("", vec![call("c1", "f", "{}")], &[]),
        ChatMessage::Tool { call_id, name, content, status, images: vec![image()] },
        user("And?"),
    ]);
    let sent = body(&ChatRequest { tools: vec![offer("f")].into(), ..history });
    assert_eq!(
        sent["messages"][2]["content"][0],
        json!({ "type": "tool_result", "tool_use_id": "c1", "content": [
            { "type": "text", "text": "Drawn." },
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "iVBO/+=" } },
        ] })
    );
}

#[test]
fn roles_take_turns_and_results_come_first() {
    let history = chat(vec![
        ChatMessage::System("One.".into()),
        ChatMessage::System(" ".into()),
        assistant("Earlier.", vec![], &[]),
        user("Look:"),
        ChatMessage::User(vec![
            Part::Text(" ".into()),
            Part::Image { media_type: "image/png".into(), data: "iVBO/+=".into() },
        ]),
        ChatMessage::System("Mind\nthe \"gap\".".into()),
        assistant("Both.", vec![call("c1", "f", r#"{"b":1, "a":2.50}"#), call("c:2", "g.h", "{oops")], &[]),
        result("c1", "One", ToolStatus::Success),
        result("c:2", "not JSON", ToolStatus::Error),
        result("c3", " ", ToolStatus::Success),
        user("And?"),
        assistant(" ", vec![], &[]),
    ]);
    let history = ChatRequest { tools: vec![offer("f")].into(), ..history };
    let cached = json!({ "type": "ephemeral" });
    let sent = body(&history);
    assert_eq!(sent["system"], json!([{ "type": "text", "text": "One.", "cache_control": cached }]));
    assert_eq!(
        sent["messages"],
        json!([
            { "role": "user", "content": [{ "type": "text", "text": "Continue." }] },
            { "role": "assistant", "content": [{ "type": "text", "text": "Earlier." }] },
            { "role": "user", "content": [
                { "type": "text", "text": "Look:" },
                { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "iVBO/+=" } },
                { "type": "text", "text": "<system>\nMind\nthe \"gap\".\n</system>" },
            ] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "Both." },
                { "type": "tool_use", "id": "c1", "name": "f", "input": { "b": 1, "a": 2.5 } },
                { "type": "tool_use", "id": "c_2", "name": "g_h", "input": { "malformed_arguments": "{oops" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "c1", "content": "One" },
                { "type": "tool_result", "tool_use_id": "c_2", "content": "not JSON", "is_error": true },
                { "type": "tool_result", "tool_use_id": "c3" },
                { "type": "text", "text": "And?", "cache_control": cached },
            ] },
        ])
    );
    assert!(text(&history).contains(r#""input":{"b":1, "a":2.50}"#), "arguments stay as they were");
    // Nothing at all, and an end that is the assistant's.
    let empty = body(&chat(vec![ChatMessage::System("x".into())]));
    assert_eq!(empty["messages"][0]["content"][0]["text"], "Continue.");
    let open = body(&chat(vec![user("a"), assistant("b", vec![], &[])]));
    assert_eq!(open["messages"][2]["content"][0]["text"], "Continue.");
}

#[test]
fn the_prefix_of_a_longer_request_is_the_same() {
    let turn = |n: usize| [user(&format!("u{n}")), assistant(&format!("a{n}"), vec![], &[])];
    let of = |turns: usize| {
        let history = (0..turns).flat_map(turn).chain([user("last")]);
        text(&chat(history.collect())).replace(r#","cache_control":{"type":"ephemeral"}"#, "")
    };
    let short = of(3);
    let prefix = short.find(r#"{"role":"user","content":[{"type":"text","text":"last""#).unwrap();
    assert_eq!(short[..prefix], of(4)[..prefix]);
}

#[test]
fn tools_and_whether_they_must_be_called() {
    let with = ChatRequest { tools: vec![offer("f"), offer("g")].into(), ..chat(vec![user("Hi")]) };
    let sent = body(&with);
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    assert_eq!(
        sent["tools"],
        json!([
            { "name": "f", "description": "Does it.", "input_schema": schema },
            { "name": "g", "description": "Does it.", "input_schema": schema, "cache_control": { "type": "ephemeral" } },
        ])
    );
    assert_eq!(sent["tool_choice"], json!({ "type": "auto", "disable_parallel_tool_use": true }));
    for (tool_choice, parallel_tool_calls, expected) in [
        (ToolChoice::Auto, true, json!({ "type": "auto" })),
        (ToolChoice::Required, true, json!({ "type": "any" })),
        (ToolChoice::Required, false, json!({ "type": "any", "disable_parallel_tool_use": true })),
        (ToolChoice::None, false, json!({ "type": "none" })),
    ] {
        let chat = ChatRequest { tool_choice, parallel_tool_calls, ..with.clone() };
        assert_eq!(body(&chat)["tool_choice"], expected, "{tool_choice:?}");
    }
    let without = body(&chat(vec![user("Hi")]));
    assert!(without.get("tools").is_none() && without.get("tool_choice").is_none());
    // Calls of the past with no tools of today.
    let past = body(&chat(vec![
        user("Hi"),
        assistant("", vec![call("c1", "f", "{}")], &[]),
        result("c1", "x", ToolStatus::Success),
    ]));
    assert_eq!((&past["tools"][0]["name"], &past["tool_choice"]["type"]), (&json!("none"), &json!("none")));
}

#[test]
fn how_much_is_thought() {
    let level = |level: u8| Reasoning { level: Some(level), ..Reasoning::default() };
    let tokens = |tokens: u64| Reasoning { max_tokens: Some(tokens), ..Reasoning::default() };
    let word = Reasoning { word: Some("xhigh".into()), ..level(100) };
    let enabled = |tokens: u64| json!({ "type": "enabled", "budget_tokens": tokens });
    for (reasoning, max_output_tokens, thinking, max_tokens) in [
        (Reasoning::default(), None, Value::Null, 8_192),
        (Reasoning::default(), Some(4_096), Value::Null, 4_096),
        (level(33), None, enabled(10_560), 18_752),
        (level(66), None, enabled(21_120), 29_312),
        (level(100), Some(64_000), enabled(32_000), 64_000),
        (level(100), Some(16_000), enabled(12_000), 16_000),
        (level(100), Some(1_200), Value::Null, 1_200),
        (tokens(100), None, enabled(1_024), 9_216),
        (tokens(5_000), Some(64_000), enabled(5_000), 64_000),
        (word.clone(), Some(64_000), json!({ "type": "adaptive" }), 64_000),
        (Reasoning { max_tokens: Some(2_000), ..word.clone() }, None, enabled(2_000), 10_192),
    ] {
        let sent =
            body(&ChatRequest { reasoning: reasoning.clone(), max_output_tokens, ..chat(vec![user("Hi")]) });
        assert_eq!(
            (&sent["thinking"], &sent["max_tokens"]),
            (&thinking, &json!(max_tokens)),
            "{reasoning:?}"
        );
    }
    let sent = body(&ChatRequest { reasoning: word, ..chat(vec![user("Hi")]) });
    assert_eq!(sent["output_config"], json!({ "effort": "xhigh" }));
    // The schema of the answer stands beside the effort.
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let format = json!({ "type": "json_schema", "schema": schema });
    let held = |schema| Some(JsonMode { schema, strict: false });
    let sent = body(&ChatRequest { json: held(Some(schema.clone())), ..chat(vec![user("Hi")]) });
    assert_eq!(sent["output_config"], json!({ "format": format }));
    let reasoning = Reasoning { word: Some("xhigh".into()), ..level(100) };
    let sent = body(&ChatRequest { reasoning, json: held(Some(schema)), ..chat(vec![user("Hi")]) });
    assert_eq!(sent["output_config"], json!({ "effort": "xhigh", "format": format }));
    let sent = body(&ChatRequest { json: held(None), ..chat(vec![user("Hi")]) });
    assert_eq!(sent.get("output_config"), None);
    // What does not go with thinking.
    let forced = ChatRequest {
        reasoning: level(33),
        tools: vec![offer("f")].into(),
        tool_choice: ToolChoice::Required,
        options: options(json!({ "temperature": 0.2, "top_k": 5, "top_p": 0.9, "stop_sequences": ["x"] })),
        ..chat(vec![user("Hi")])
    };
    let sent = body(&forced);
    assert_eq!(sent["tool_choice"]["type"], "auto");
    for key in ["temperature", "top_k", "top_p"] {
        assert!(sent.get(key).is_none(), "{key}");
    }
    assert_eq!(sent["stop_sequences"], json!(["x"]));
    let sent = body(&ChatRequest { reasoning: Reasoning::default(), ..forced });
    assert_eq!((&sent["tool_choice"]["type"], &sent["temperature"]), (&json!("any"), &json!(0.2)));
}

#[test]
fn options_come_last() {
    let sent = body(&ChatRequest {
        options: options(json!({
            "max_tokens": 2_000, "metadata": null, "thinking": { "type": "enabled", "budget_tokens": 1_500 },
            "messages": [], "system": "no", "stream": false,
        })),
        user: Some("t".into()),
        reasoning: Reasoning { level: Some(100), ..Reasoning::default() },
        ..chat(vec![ChatMessage::System("yes".into()), user("Hi")])
    });
    assert_eq!(sent["max_tokens"], 2_000);
    assert_eq!(sent["thinking"], json!({ "type": "enabled", "budget_tokens": 1_500 }));
    assert_eq!((&sent["stream"], &sent["system"][0]["text"]), (&json!(true), &json!("yes")));
    assert!(sent.get("metadata").is_none() && sent["messages"].as_array().unwrap().len() == 1);
}

const THOUGHT: &str = r#"{"type":"thinking","thinking":"a\u00e9\/","signature":"S+/="}"#;
const REDACTED: &str = r#"{"type":"redacted_thinking","data":"E="}"#;

/// A request in the middle of an exchange of calls, with a reply that thought before its first call and before its last.
fn exchange(first: ChatMessage) -> ChatRequest {
    ChatRequest {
        tools: vec![offer("f")].into(),
        reasoning: Reasoning { level: Some(33), ..Reasoning::default() },
        ..chat(vec![
            user("Hi"),
            first,
            result("c1", "1", ToolStatus::Success),
            result("c2", "2", ToolStatus::Success),
        ])
    }
}

fn two_calls(payload: &[(usize, usize, &str)]) -> ChatMessage {
    assistant("Önce. Dann.", vec![call("c1", "f", "{}"), call("c2", "f", "{}")], payload)
}

#[test]
fn thinking_goes_back_where_it_stood_byte_for_byte() {
    let sent = text(&exchange(two_calls(&[(0, 0, REDACTED), (7, 1, THOUGHT), (12, 2, REDACTED)])));
    let call = |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}"#);
    let said = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let blocks = [
        REDACTED.into(),
        said("Önce. "),
        call("c1"),
        THOUGHT.into(),
        said("Dann."),
        call("c2"),
        REDACTED.into(),
    ];
    assert!(sent.contains(&format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","))), "{sent}");
    assert!(sent.contains(r#""thinking":{"type":"enabled""#));
    // A text that was made shorter since: nothing is lost, nothing breaks.
    let shorter = text(&exchange(assistant(
        "Ö",
        vec![call_of("c1"), call_of("c2")],
        &[(0, 0, REDACTED), (1, 9, THOUGHT), (7, 9, THOUGHT)],
    )));
    assert_eq!(
        serde_json::from_str::<Value>(&shorter).unwrap()["messages"][1]["content"].as_array().unwrap().len(),
        6
    );
}

fn call_of(id: &str) -> ToolCall {
    call(id, "f", "{}")
}

#[test]
fn thinking_is_left_off_where_the_api_would_refuse_the_history() {
    // The exchange of calls began without thinking: another model, another prompt, a payload that was too large.
    for first in [two_calls(&[]), two_calls(&[(6, 0, THOUGHT)])] {
        let sent = text(&exchange(first));
        assert!(!sent.contains("thinking"), "{sent}");
    }
    // It began before the last reply, which need not have thought again.
    let mut later = exchange(two_calls(&[(0, 0, THOUGHT)]));
    later.messages.push(assistant("", vec![call_of("c4")], &[]).into());
    later.messages.push(result("c4", "4", ToolStatus::Success).into());
    assert!(text(&later).contains(r#""budget_tokens""#));
    // An exchange that is over asks for nothing.
    let mut over = exchange(two_calls(&[]));
    over.messages.push(assistant("Done.", vec![], &[]).into());
    over.messages.push(user("More").into());
    assert!(text(&over).contains(r#""budget_tokens""#));
    // A model that thinks as it sees fit takes any history.
    let mut adaptive = exchange(two_calls(&[]));
    adaptive.reasoning.word = Some("high".into());
    assert!(text(&adaptive).contains(r#""thinking":{"type":"adaptive"}"#));
    // Without thinking nothing of it is sent.
    let mut off = exchange(two_calls(&[(0, 0, THOUGHT)]));
    off.reasoning = Reasoning::default();
    assert!(!text(&off).contains("thinking"));
}
