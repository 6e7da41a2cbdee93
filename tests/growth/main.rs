//! What strangers send is read in work that grows with its length, and no faster. Bytes that reading asks memory for are
//! counted, not time: for 10, 100 and 1,000 times as much they stay in proportion, and few for each byte of what was sent.
//!
//! A new route, decoder or reader is one line in the table of its kind. What moves or compares and makes nothing is seen by
//! the tests of `sorted`, `env::redact` and `spec::schema`, which count steps.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod allocated;

use bobbin::api::wire::ag_ui_request::RunRequest;
use bobbin::api::wire::completion_request::CompletionRequest;
use bobbin::api::wire::response_request::ResponseRequest;
use bobbin::api::wire::ui_request::ChatRequest;
use bobbin::api::wire::{conversation_items, mcp};
use bobbin::env::{Change, Level, Redactor};
use bobbin::models::{Decoder, ProviderError, ReplyBuilder, anthropic, openai, responses};
use bobbin::request::fields::Body;
use bobbin::sorted::SortedMap;
use bobbin::spec::schema::{validate, with_defaults};
use bobbin::spec::{Catalog, EndpointRoute, ListedTool, McpServer};
use serde_json::{Value, json};

/// Bytes that reading may ask for, for each byte that was sent.
const FOR_EACH: usize = 160;
/// Bytes that it may ask for in any case.
const IN_ANY_CASE: usize = 64 << 10;

/// Something that reads what a stranger sends.
struct Case {
    what: &'static str,
    /// So many times as much.
    sent: Box<dyn Fn(usize) -> String>,
    /// Whether it is taken or refused does not count.
    read: fn(&str),
}

fn case(what: &'static str, read: fn(&str), sent: impl Fn(usize) -> String + 'static) -> Case {
    Case { what, sent: Box::new(sent), read }
}

/// The same piece many times, each with its number in the place of `#`.
fn many(n: usize, piece: &str, between: &str) -> String {
    (0..n).rev().map(|n| piece.replace('#', &format!("{n:06}"))).collect::<Vec<_>>().join(between)
}

/// `begin`, the piece many times, with commas between, and `end`.
fn listed(begin: &'static str, piece: &'static str, end: &'static str) -> impl Fn(usize) -> String {
    move |n| format!("{begin}{}{end}", many(n, piece, ","))
}

fn in_proportion(cases: Vec<Case>) {
    let mut wrong = Vec::new();
    for Case { what, sent, read } in cases {
        let [few, some, much] = [10, 100, 1_000].map(|times| {
            let text = sent(times);
            (text.len(), allocated::while_doing(|| read(&text)))
        });
        let bound = |(length, _): (usize, usize)| FOR_EACH * length + IN_ANY_CASE;
        let more = |(a, made_a): (usize, usize), (b, made_b): (usize, usize)| {
            made_b.saturating_sub(made_a) as f64 / (b - a) as f64
        };
        // What is refused early asks for less; nothing asks for three times as much a byte.
        let grows = more(some, much) > 3.0 * more(few, some) + 16.0;
        if grows || much.1 > bound(much) {
            wrong.push(format!("{what}: {few:?}, {some:?}, {much:?} (bytes sent, bytes asked for)"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn bodies_of_public_routes() {
    let chat: fn(&str) = |body| drop(ChatRequest::parse(body));
    let run: fn(&str) = |body| {
        if let Ok(request) = RunRequest::parse(body) {
            drop(request.history());
        }
    };
    let completion: fn(&str) = |body| {
        if let Ok(request) = CompletionRequest::parse(body) {
            drop((request.history(), request.new_messages()));
        }
    };
    let response: fn(&str) = |body| drop(ResponseRequest::parse(body));
    let fields: fn(&str) = |body| drop(Body::parse(body).and_then(|body| body.known(&["limit", "offset"])));
    let strings: fn(&str) = |body| {
        drop(Body::parse(body).and_then(|body| body.known(&["names"])?.strings("names")));
    };
    let values: fn(&str) = |body| {
        let mut body: Value = serde_json::from_str(body).unwrap();
        let mut given = |name| (name, body.get_mut(name).map(Value::take));
        let (values, types, delete) = (given("env"), given("types"), given("delete"));
        drop(Change::parse(values, types, delete, Level::Thread, &Catalog::default()));
    };
    in_proportion(vec![
        case("chat: unknown fields", chat, listed(r#"{"id":"c","messages":[],"#, r##""f#":1"##, "}")),
        case(
            "chat: messages",
            chat,
            listed(
                r#"{"id":"c","messages":["#,
                r#"{"id":"m#","role":"user","parts":[{"type":"text","text":"hello"}]}"#,
                "]}",
            ),
        ),
        case(
            "chat: answers",
            chat,
            listed(
                r#"{"id":"c","messages":[{"id":"a","role":"assistant","parts":["#,
                r#"{"type":"tool-x","toolCallId":"c#","state":"output-available","output":1}"#,
                "]}]}",
            ),
        ),
        case(
            "AG-UI: results of calls",
            run,
            listed(
                r#"{"threadId":"t","runId":"r","messages":["#,
                r#"{"id":"m#","role":"tool","toolCallId":"c#","content":"x"}"#,
                "]}",
            ),
        ),
        case(
            "completions: unknown fields",
            completion,
            listed(r#"{"model":"m","messages":[],"#, r##""f#":1"##, "}"),
        ),
        case(
            "completions: messages",
            completion,
            listed(r#"{"model":"m","messages":["#, r#"{"role":"user","content":"hello"}"#, "]}"),
        ),
        case(
            "responses: unknown fields",
            response,
            listed(r#"{"model":"m","input":"x","#, r##""f#":1"##, "}"),
        ),
        case(
            "responses: items",
            response,
            listed(r#"{"model":"m","input":["#, r#"{"role":"user","content":"hello"}"#, "]}"),
        ),
        case(
            "responses: results of calls",
            response,
            listed(
                r#"{"model":"m","input":["#,
                r#"{"type":"function_call_output","call_id":"c#","output":"x"}"#,
                "]}",
            ),
        ),
        case(
            "conversations",
            |body| drop(conversation_items::NewConversation::parse(body)),
            listed(r#"{"items":["#, r#"{"role":"user","content":"hello"}"#, "]}"),
        ),
        case(
            "items of conversations",
            |body| drop(conversation_items::added(body)),
            listed(r#"{"items":["#, r#"{"role":"user","content":"hello"}"#, "]}"),
        ),
        case(
            "MCP: arguments",
            |body| drop(mcp::parse(body, &|_| None)),
            listed(
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"#,
                r##""f#":1"##,
                "}}}",
            ),
        ),
        case("other bodies: unknown fields", fields, listed("{", r##""f#":1"##, "}")),
        case("other bodies: a long name", fields, |n| json!({ "limi".repeat(n): 1 }).to_string()),
        case("other bodies: lists", strings, listed(r#"{"names":["#, r##""n#""##, "]}")),
        case("values of variables", values, listed(r#"{"env":{"#, r##""V#":"x""##, "}}")),
        case("types of variables", values, listed(r#"{"types":{"#, r##""V#":"text""##, "}}")),
        case("variables to delete", values, listed(r#"{"env":{"A":"1"},"delete":["#, r##""V#""##, "]}")),
        case(
            "paths of endpoints",
            |path| drop(path.parse::<EndpointRoute>()),
            |n| format!("GET /{}", many(n, "a#", "/")),
        ),
    ]);
}

/// Feeds an answer to a decoder in one piece.
fn decode(mut decoder: Decoder, answer: &str) {
    let (mut builder, mut deltas) = (ReplyBuilder::default(), Vec::new());
    let decoded = decoder.push(answer.as_bytes(), &mut deltas).and_then(|()| decoder.finish(&mut deltas));
    let built = deltas.iter().try_for_each(|delta| builder.push(delta));
    drop((decoded, built, builder.finish()));
}

#[test]
fn answers_of_providers() {
    let openai: fn(&str) = |answer| decode(Decoder::Openai(openai::Decoder::new(None)), answer);
    let anthropic: fn(&str) = |answer| decode(Decoder::Anthropic(anthropic::Decoder::new(None)), answer);
    let responses: fn(&str) = |answer| decode(Decoder::Responses(responses::Decoder::new(None)), answer);
    let events = |piece: &'static str| move |n| many(n, &format!("data: {piece}\n\n"), "");
    in_proportion(vec![
        case("openai: pieces", openai, events(r##"{"choices":[{"delta":{"content":"a"}}]}"##)),
        case(
            "openai: calls, an event each",
            openai,
            events(r##"{"choices":[{"delta":{"tool_calls":[{"index":#,"function":{"name":"f"}}]}}]}"##),
        ),
        case(
            "openai: calls in one event",
            openai,
            listed(
                r#"data: {"choices":[{"delta":{"tool_calls":["#,
                r#"{"id":"c#","function":{"name":"f","arguments":"{}"}}"#,
                "]}}]}\n\n",
            ),
        ),
        case(
            "openai: members of what is kept",
            openai,
            listed(r#"data: {"choices":[{"delta":{"reasoning_details":[{"#, r##""k#":1"##, "}]}}]}\n\n"),
        ),
        case(
            "openai: unknown fields",
            openai,
            listed(r#"data: {"choices":[{"delta":{"content":"a"}}],"#, r##""k#":1"##, "}\n\n"),
        ),
        case(
            "anthropic: blocks that never end",
            anthropic,
            events(r#"{"type":"content_block_start","index":1#,"content_block":{"type":"text","text":"a"}}"#),
        ),
        case(
            "anthropic: calls",
            anthropic,
            events(
                r#"{"type":"content_block_start","index":1#,"content_block":{"type":"tool_use","id":"c#","name":"f"}}"#,
            ),
        ),
        case(
            "anthropic: a whole answer",
            anthropic,
            listed(r#"{"type":"message","content":["#, r#"{"type":"text","text":"a"}"#, "]}"),
        ),
        case(
            "responses: items",
            responses,
            events(r#"{"type":"response.output_text.delta","output_index":1#,"delta":"a"}"#),
        ),
        case(
            "responses: calls",
            responses,
            events(
                r#"{"type":"response.output_item.added","output_index":1#,"item":{"type":"function_call","call_id":"c#","name":"f"}}"#,
            ),
        ),
        case(
            "errors",
            |body| drop(ProviderError::in_stream(body.as_bytes(), &["sk-secret-secret"])),
            listed(r#"{"error":{"message":"no","details":["#, r#"{"a":"b"}"#, "]}}"),
        ),
    ]);
}

/// A schema of items and items, so many of each.
fn both(schema: impl Fn(usize) -> Value, item: Value) -> impl Fn(usize) -> String {
    move |n| json!({ "schema": { "items": schema(n) }, "value": vec![item.clone(); n] }).to_string()
}

/// A tool of an MCP server, with its schema.
fn tool(schema: &str) {
    let input_schema = serde_json::from_str(schema).unwrap();
    let listed = ListedTool { name: "t".into(), input_schema, ..ListedTool::default() };
    let server =
        serde_json::from_value::<McpServer>(json!({ "name": "s", "url": "https://s.test/" })).unwrap();
    drop(server.tool(&listed));
}

#[test]
fn schemas_and_what_is_held_against_them() {
    // Both grow: `{ "schema", "value" }`.
    let held: fn(&str) = |text| {
        let mut text: Value = serde_json::from_str(text).unwrap();
        let (schema, value) = (text["schema"].take(), text["value"].take());
        drop((validate(&schema, &value), with_defaults(&schema, value)));
    };
    let names = |n: usize| (0..n).map(|n| format!("name-{n}")).collect::<Vec<_>>();
    let branches = |n: usize| (0..n).map(|n| json!({ "const": format!("v{n}") })).collect::<Vec<_>>();
    in_proportion(vec![
        case("alternatives", held, both(move |n| json!({ "anyOf": branches(n) }), json!("x"))),
        case("exclusive alternatives", held, both(move |n| json!({ "oneOf": branches(n) }), json!("x"))),
        case("choices", held, both(move |n| json!({ "enum": names(n) }), json!("x"))),
        case(
            "unknown properties",
            held,
            both(
                move |n| {
                    let known: serde_json::Map<_, _> =
                        names(n).into_iter().map(|name| (name, json!({}))).collect();
                    json!({ "properties": known, "additionalProperties": false })
                },
                json!({ "x": 1 }),
            ),
        ),
        case("required properties", held, both(move |n| json!({ "required": names(n) }), json!({}))),
        case("types", held, both(move |n| json!({ "type": names(n) }), json!("x"))),
        case("a tool: properties", tool, listed(r#"{"type":"object","properties":{"#, r##""p#":{}"##, "}}")),
        case(
            "a tool: arguments in headers",
            tool,
            listed(
                r#"{"type":"object","properties":{"#,
                r##""p#":{"type":"string","x-mcp-header":"H#"}"##,
                "}}",
            ),
        ),
        case("a tool: what is in a property with a long name", tool, |n| {
            let inner: serde_json::Map<_, _> = (0..n).map(|n| (format!("p{n}"), json!({}))).collect();
            let outer = json!({ "x".repeat(20 * n): { "type": "object", "properties": inner } });
            json!({ "type": "object", "properties": outer }).to_string()
        }),
    ]);
}

#[test]
fn maps_and_texts_with_secrets() {
    let alike: fn(&str) = |text| {
        let secrets: Vec<String> = (0..20).map(|n| format!("{}{n}", "a".repeat(40))).collect();
        drop(Redactor::new(secrets.iter().map(|secret| ("KEY", secret.as_str()))).text(text));
    };
    in_proportion(vec![
        case(
            "a map",
            |text| drop(serde_json::from_str::<SortedMap<String, u32>>(text)),
            listed("{", r##""f#":1"##, "}"),
        ),
        case("what secrets begin with", alike, |n| format!("\\ % {}", "a".repeat(100 * n))),
        case("secrets", alike, |n| many(n, &format!("{}7 ", "a".repeat(40)), "")),
    ]);
}
