//! What strangers send is read in work that grows with its length, and no faster. Bytes that reading asks memory for are
//! counted, not time: for 10, 100 and 1,000 times as much they stay in proportion, and few for each byte of what was sent.
//!
//! A new route, decoder or reader is one line in the table of its kind; one that is private has a door in `bobbin::growth`. What
//! moves or compares and makes nothing is seen by the tests of `sorted`, `env::redact`, `env::scrub`, `memory::extract` and
//! `spec::schema`, which count steps.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod allocated;

use std::collections::BTreeMap;

use bobbin::definitions::message::{ToolCall, ToolStatus};
use bobbin::definitions::schema::{validate, with_defaults};
use bobbin::definitions::{Catalog, EndpointRoute, ListedTool, McpServer};
use bobbin::env::{Change, Level, Redactor};
use bobbin::growth;
use bobbin::models::{
    CachedJson, ChatMessage, Decoder, ProviderError, ReplyBuilder, anthropic, fit, openai, responses,
};
use bobbin::protocols::ag_ui::request::RunRequest;
use bobbin::protocols::ai_sdk::request::ChatRequest;
use bobbin::protocols::mcp_server::messages;
use bobbin::protocols::openai::completion_request::CompletionRequest;
use bobbin::protocols::openai::conversation_items;
use bobbin::protocols::openai::response_request::ResponseRequest;
use bobbin::request::fields::Body;
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
            |body| drop(messages::parse(body, &|_| None)),
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
        case("anthropic: calls that end with half a character", anthropic, |n| {
            let of_each = |event: &str| many(n, &format!("data: {event}\n\n"), "");
            let start = of_each(
                r##"{"type":"content_block_start","index":1#,"content_block":{"type":"tool_use","id":"c#","name":"f"}}"##,
            );
            let piece = r#"{"type":"content_block_delta","index":1#,"delta":{"type":"input_json_delta","partial_json":"\ud83d"}}"#;
            start + &of_each(piece) + &of_each(&piece.replace("d83d", "de00"))
        }),
        case(
            "anthropic: thoughts with half a character each",
            anthropic,
            listed(
                r#"{"type":"message","content":["#,
                r#"{"type":"thinking","thinking":"\ud83d","signature":"\ude00"}"#,
                "]}",
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
            "responses: calls that end with half a character",
            responses,
            events(
                r#"{"type":"response.function_call_arguments.delta","output_index":1#,"item_id":"c#","delta":"\ud83d"}"#,
            ),
        ),
        case(
            "responses: a whole answer with half a character in each item",
            responses,
            listed(
                r#"{"object":"response","status":"completed","output":["#,
                r#"{"type":"function_call","call_id":"c#","name":"f","arguments":"\ud83d"}"#,
                "]}",
            ),
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

#[test]
fn answers_of_mcp_servers() {
    let call: fn(&str) = |answer| growth::mcp_call("application/json", answer);
    let result = |begin: &'static str, piece: &'static str, end: &'static str| {
        let inside = listed(begin, piece, end);
        move |n: usize| format!(r#"{{"jsonrpc":"2.0","id":"q","result":{}}}"#, inside(n))
    };
    let stream: fn(&str) = |answer| growth::mcp_call("text/event-stream", answer);
    let events = |piece: &'static str| move |n| many(n, piece, "");
    in_proportion(vec![
        case("texts", call, result(r#"{"content":["#, r##"{"type":"text","text":"t#"}"##, "]}")),
        case(
            "files",
            call,
            result(r#"{"content":["#, r#"{"type":"image","mimeType":"image/png","data":"aW1n"}"#, "]}"),
        ),
        case(
            "resources",
            call,
            result(
                r#"{"content":["#,
                r##"{"type":"resource","resource":{"uri":"file:///a/b/r#.pdf","blob":"cGRm"}}"##,
                "]}",
            ),
        ),
        case("unknown parts", call, result(r#"{"content":["#, r##"{"type":"hologram","x":"#"}"##, "]}")),
        case("what is structured", call, result(r#"{"structuredContent":{"result":["#, r##""t#""##, "]}}")),
        case("what is structured, and texts that repeat it", call, |n| {
            let (texts, items) =
                (many(n, r##"{"type":"text","text":"t#"}"##, ","), many(n, r##""t#""##, ","));
            let result = format!(r#"{{"content":[{texts}],"structuredContent":{{"result":[{items}]}}}}"#);
            format!(r#"{{"jsonrpc":"2.0","id":"q","result":{result}}}"#)
        }),
        case(
            "a failure",
            call,
            result(r#"{"isError":true,"content":["#, r#"{"type":"text","text":"x"}"#, "]}"),
        ),
        case(
            "questions",
            call,
            result(
                r#"{"resultType":"input_required","inputRequests":{"#,
                r##""q#":{"method":"elicitation/create","params":{}}"##,
                "}}",
            ),
        ),
        case("many messages as one", call, listed("[", r##"{"id":"q","result":{"a":"#"}}"##, "]")),
        case(
            "many messages in a stream",
            stream,
            events("id: #\ndata: {\"id\":\"q\",\"result\":{\"a\":1}}\n\n"),
        ),
        case(
            "notifications",
            stream,
            events("event: message\r\ndata: {\"method\":\"n\",\"params\":{}}\r\n\r\n"),
        ),
        case("requests of the server", stream, events("data: {\"id\":1,\"method\":\"m\"}\n\n")),
        case("comments", stream, events(": nothing yet\n\n")),
        case("one event of many lines", stream, |n| many(n, "data: [\n", "") + "\n"),
        case("one event of many pieces", stream, |n| format!("data: \"{}\"\n\n", many(n, "abc", ""))),
        case(
            "tools",
            growth::mcp_list,
            result(r#"{"tools":["#, r##"{"name":"t#","inputSchema":{"type":"object"}}"##, "]}"),
        ),
        case(
            "fields of a tool",
            growth::mcp_list,
            result(r#"{"tools":[{"name":"t","inputSchema":{"type":"object"},"#, r##""f#":1"##, "}]}"),
        ),
        case(
            "refusals",
            growth::mcp_refusal,
            listed(r#"{"id":"q","error":{"code":1,"message":"no","data":["#, r#"{"a":1}"#, "]}}"),
        ),
    ]);
}

#[test]
fn vectors_and_values_of_code() {
    let vectors: fn(&str) = |body| growth::vectors(body, body.matches("embedding").count());
    let value = |begin: &'static str, piece: &'static str, end: &'static str| {
        let inside = listed(begin, piece, end);
        move |n: usize| format!("[[1],{}]", inside(n))
    };
    in_proportion(vec![
        case("vectors", vectors, listed(r#"{"data":["#, r#"{"index":1#,"embedding":[0.5,0.25]}"#, "]}")),
        case("numbers of a vector", vectors, listed(r#"{"data":[{"embedding":["#, "0.125", "]}]}")),
        case(
            "vectors with other fields",
            vectors,
            listed(r#"{"data":[{"embedding":[1],"#, r##""f#":1"##, "}]}"),
        ),
        case("a list of code", growth::code_value, value(r#"["a",["#, "[\"u\"],1.5,\"x\"", "]]")),
        case("an object of code", growth::code_value, value(r#"["o",["#, r##""f#",1"##, "]]")),
        case("a map of code with texts", growth::code_value, value(r#"["m",["#, r##""k#","v""##, "]]")),
        case("a map of code", growth::code_value, value(r#"["m",["#, r#"1,"v""#, "]]")),
        case("a set of code", growth::code_value, value(r#"["s",["#, r##""v#""##, "]]")),
        case("what code uses often", growth::code_value, |n| {
            format!(r#"[[1],["a",[{}]],["d",0]]"#, many(n, r#"[2],"used often""#, ","))
        }),
        case("values within values of code", growth::code_value, |n| {
            let nodes: Vec<String> = (2..=n + 1).map(|at| format!(r#"["a",[[{at}],0]]"#)).collect();
            format!(r#"[[1],{},["d",0]]"#, nodes.join(","))
        }),
        case("halves of characters of code", growth::code_value, value(r#"["a",["#, r#""\ud83d""#, ",0]]")),
    ]);
}

/// Calls on their way to a provider: a reply for each of these lists of ids.
fn calls(replies: &str) {
    let replies: Vec<Vec<String>> = serde_json::from_str(replies).unwrap();
    let mut messages = Vec::new();
    for ids in replies {
        let result = |id: &String| ChatMessage::Tool {
            call_id: id.clone(),
            name: String::new(),
            content: String::new(),
            status: ToolStatus::Success,
            images: Vec::new(),
        };
        let results: Vec<_> = ids.iter().map(result).collect();
        let tool_calls = ids.into_iter().map(|id| ToolCall { id, ..ToolCall::default() }).collect();
        let reply = ChatMessage::Assistant { content: String::new(), tool_calls, payload: Vec::new() };
        messages.extend(std::iter::once(reply).chain(results).map(CachedJson::from));
    }
    fit(&mut messages);
}

#[test]
fn what_threads_and_memories_begin_with() {
    let copied = |n: usize| {
        let call = r##"{"id":"c#","function":{"name":"f","arguments":"{}"}}"##;
        let calls = json!(format!("[{}]", many(n, call, ",")));
        let mut seq = 1;
        let results = many(n, r##"{"id":"m_@","role":"tool","tool_call_id":"c#","content":"x"}"##, ",");
        let results = results.split('@').map(|piece| {
            seq += 1;
            format!("{piece}{seq}")
        });
        let results: String = results.collect();
        let results = results.trim_end_matches(|c: char| c.is_ascii_digit());
        let reply = format!(r#"{{"id":"m_1","role":"assistant","content":"a","tool_calls":{calls}}}"#);
        format!(r#"{{"copied_from":"t","history":[{reply},{results}]}}"#)
    };
    let pages = |piece: &'static str| move |n| many(n, piece, "");
    in_proportion(vec![
        case(
            "history",
            growth::history,
            listed(r#"{"history":["#, r##"{"role":"user","content":"c#"}"##, "]}"),
        ),
        case("history of unknown fields", growth::history, listed(r#"{"history":[{"#, r##""f#":1"##, "}]}")),
        case("a copied history", growth::copied, copied),
        case("replies whose calls have the same id", calls, listed("[", r#"["call_0"]"#, "]")),
        case("calls of a reply with the same id", calls, listed("[[", r#""call_0""#, "]]")),
        case("paths of a call", growth::paths, listed("[", r##""/a/p#""##, "]")),
        case("paragraphs", growth::page, pages("<p>a paragraph</p>")),
        case("scripts", growth::page, pages("<script>x()</script>")),
        case("letters by name", growth::page, pages("&amp; &x; & ")),
        case("a text without blanks", growth::page, pages("abc")),
        case("lines with names", growth::scrubbed, pages("password=hunter2-4711 # \n")),
        case("lines of JSON", growth::scrubbed, pages("{\"token\":\"hunter2-4711\",\"n\":#}\n")),
        case("JSON within JSON", growth::scrubbed, |n| {
            json!({ "a": json!({ "b": many(n, "token=x1y2z3w4 ", "") }).to_string() }).to_string()
        }),
        case("random texts", growth::scrubbed, pages("4eC39HqLyjWDarjtT1zdp7dcQ,")),
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
            |text| drop(serde_json::from_str::<BTreeMap<String, u32>>(text)),
            listed("{", r##""f#":1"##, "}"),
        ),
        case("what secrets begin with", alike, |n| format!("\\ % {}", "a".repeat(100 * n))),
        case("secrets", alike, |n| many(n, &format!("{}7 ", "a".repeat(40)), "")),
    ]);
}
