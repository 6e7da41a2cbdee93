//! Chat completions, derived from feeds that are live, replayed, and repeated after any frame; and requests
//! of clients.

use serde_json::Value;

use crate::encode::Encode;
use crate::openai::chat_completions::{Completion, Settings};
use crate::openai::completion_request::{CompletionRequest, NewContent};
use bobbin_definitions::json;

pub(crate) type Frame = (&'static str, Value);

pub(crate) fn event((kind, data): &Frame) -> String {
    format!("event: {kind}\ndata: {data}\n\n")
}

pub(crate) fn run() -> Frame {
    ("run", json!({ "type": "run", "run": "r_1", "startedAt": 1_795_300_000_000_000_i64 }))
}

pub(crate) fn chunk(id: &str, attempt: u64, offset: usize, text: &str) -> Frame {
    let data = json!({ "message_id": id, "depth": 0, "chunk": text, "attempt": attempt, "offset": offset });
    ("message_chunk", data)
}

pub(crate) fn message(data: Value) -> Frame {
    ("message_data", json!({ "message_id": data["id"], "depth": 0, "data": data }))
}

pub(crate) fn reply(id: &str, text: &str, calls: &[(&str, &str, &str)]) -> Frame {
    let listed = calls.iter().map(|(id, name, arguments)| {
        json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
    });
    let listed: Vec<Value> = listed.collect();
    let calls = if calls.is_empty() { Value::Null } else { Value::Array(listed).to_string().into() };
    message(json!({ "id": id, "role": "assistant", "content": text, "tool_calls": calls, "metadata": {} }))
}

pub(crate) fn result(id: &str, call: &str, name: &str, text: &str) -> Frame {
    message(
        json!({ "id": id, "role": "tool", "name": name, "content": text, "tool_call_id": call, "tool_status": "success" }),
    )
}

pub(crate) fn ended(outcome: &str, reason: &str) -> Frame {
    let usage = json!({ "inputTokens": 7, "outputTokens": 3 });
    let error = (outcome != "completed").then(|| json!({ "code": reason, "message": "It went wrong." }));
    (
        "run_ended",
        json!({ "run": "r_1", "outcome": outcome, "reason": reason, "usage": usage, "error": error }),
    )
}

pub(crate) fn parked(kind: &str, call: &str) -> Frame {
    let wait = json!({ "id": format!("w_{call}"), "kind": kind, "call": { "id": call } });
    ("run_parked", json!({ "run": "r_1", "pauseKind": "human", "waits": [wait] }))
}

/// A run with two steps, a call between them, text in pieces, and a lost attempt.
pub(crate) fn live() -> Vec<Frame> {
    vec![
        run(),
        chunk("m_t_2", 1, 0, "Grü"),
        chunk("m_t_2", 1, 4, "ße"),
        reply("m_t_2", "Grüße", &[("c1", "work", r#"{"n":1}"#)]),
        ("tool_started", json!({ "tool": "work", "call_id": "c1" })),
        result("m_t_3", "c1", "work", "done"),
        chunk("m_t_5", 1, 0, "lost"),
        ("message_reset", json!({ "message_id": "m_t_5", "attempt": 2 })),
        chunk("m_t_5", 2, 0, "日"),
        reply("m_t_5", "日本", &[]),
        ended("completed", "stop_on_response"),
    ]
}

/// The same run after its end.
pub(crate) fn settled() -> Vec<Frame> {
    vec![
        run(),
        reply("m_t_2", "Grüße", &[("c1", "work", r#"{"n":1}"#)]),
        result("m_t_3", "c1", "work", "done"),
        reply("m_t_5", "日本", &[]),
        ended("completed", "stop_on_response"),
    ]
}

fn settings() -> Settings {
    Settings {
        id: "chatcmpl-t_1".into(),
        model: "helper".into(),
        created: 1,
        usage: true,
        ..Settings::default()
    }
}

fn told(frames: &[Frame], settings: Settings) -> (Vec<Value>, Completion) {
    let mut completion = Completion::new(settings);
    let text: String = frames.iter().map(|frame| completion.push(&event(frame)).unwrap()).collect();
    let chunks = text.split("\n\n").filter_map(|line| line.strip_prefix("data: {"));
    let chunks =
        chunks.map(|json| bobbin_definitions::json::from_str(&format!("{{{json}")).unwrap()).collect();
    assert_eq!(text.matches("[DONE]").count(), usize::from(completion.is_over()));
    (chunks, completion)
}

fn text_of(chunks: &[Value]) -> String {
    chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
}

#[test]
fn a_run_is_one_answer() {
    let (chunks, completion) = told(&live(), settings());
    assert_eq!(text_of(&chunks), "Grüße\n\nlost\n\n日本");
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let roles = chunks.iter().filter(|chunk| !chunk["choices"][0]["delta"]["role"].is_null()).count();
    let ends = chunks.iter().filter(|chunk| chunk["choices"][0]["finish_reason"] == "stop").count();
    assert_eq!((roles, ends), (1, 1));
    let last = chunks.last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]["total_tokens"]), (&json!([]), &json!(10)));
    let whole = completion.whole();
    assert_eq!(whole["choices"][0]["message"]["content"], "Grüße\n\n日本", "what was lost is not there");
    let (chunks, again) = told(&settled(), settings());
    assert_eq!(text_of(&chunks), "Grüße\n\n日本");
    assert_eq!(again.whole(), whole);
}

#[test]
fn what_comes_twice_is_said_once() {
    let frames = live();
    let expected = text_of(&told(&frames, settings()).0);
    for at in 1..frames.len() {
        // As after a reconnect: messages are repeated.
        let (before, rest) = frames.split_at(at);
        let again = before.iter().filter(|(kind, _)| *kind == "message_data");
        let all: Vec<Frame> = before.iter().chain(again).chain(rest).cloned().collect();
        assert_eq!(text_of(&told(&all, settings()).0), expected, "after {at}");
    }
}

#[test]
fn a_failure_before_anything_was_said_is_an_error_and_nothing_else() {
    let frames = vec![run(), ended("failed", "model_error")];
    let (chunks, completion) = told(&frames, settings());
    assert_eq!(chunks.len(), 1);
    assert_eq!((completion.status(), &completion.whole()["error"]["code"]), (502, &json!("model_error")));
    assert_eq!(completion.headers(), [("x-should-retry", "false".to_owned())]);
    let frames = vec![run(), chunk("m_t_2", 1, 0, "some"), ended("failed", "model_error")];
    let (chunks, _) = told(&frames, settings());
    assert_eq!(chunks.last().unwrap()["error"]["message"], "It went wrong.");
}

#[test]
fn calls_of_the_client_are_its_and_others_are_lines_at_most() {
    let mut frames = live();
    frames.truncate(4);
    frames.push(parked("client_tool", "c1"));
    let (chunks, completion) = told(&frames, settings());
    let calls = &chunks[chunks.len() - 3]["choices"][0]["delta"]["tool_calls"];
    assert_eq!((&calls[0]["id"], &calls[0]["function"]["arguments"]), (&json!("c1-"), &json!(r#"{"n":1}"#)));
    assert_eq!(completion.whole()["choices"][0]["finish_reason"], "tool_calls");
    *frames.last_mut().unwrap() = parked("approval", "c1");
    let (chunks, completion) = told(&frames, Settings { thread: "T".into(), ..settings() });
    assert!(text_of(&chunks).ends_with("`work`: /api/threads/T/waits/w_c1"), "{}", text_of(&chunks));
    assert_eq!(completion.headers(), [("x-bobbin-state", "parked".to_owned())]);
    let (_, completion) = told(&live(), Settings { tools: true, ..settings() });
    let reasoning = completion.whole()["choices"][0]["message"]["reasoning_content"].clone();
    assert_eq!(reasoning, "work({\"n\":1})\nwork: done\n");
}

#[test]
fn a_message_of_somebody_else_ends_the_answer() {
    let mut frames = live();
    frames.insert(6, message(json!({ "id": "m_t_4", "role": "user", "content": "and?" })));
    let (chunks, completion) = told(&frames, settings());
    assert_eq!(text_of(&chunks), "Grüße");
    assert!(completion.is_over());
}

#[test]
fn what_comes_behind_the_last_answer_is_new() {
    let body = json!({
        "model": "helper", "stream": true, "temperature": 1, "metadata": { "thread_id": "chat" }, "x y": 1,
        "messages": [
            { "role": "user", "content": "one" },
            { "role": "assistant", "content": null, "tool_calls": [{ "id": "c", "function": { "name": "f", "arguments": "{}" } }] },
            { "role": "tool", "tool_call_id": "c", "content": "r" },
            { "role": "assistant", "content": "two" },
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "three" },
            { "role": "user", "content": [
                { "type": "text", "text": "four" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
            ] },
        ],
    })
    .to_string();
    let request = CompletionRequest::parse(&body).unwrap();
    assert_eq!((request.stream, request.thread.as_deref()), (true, Some("chat")));
    assert_eq!(request.ignored, ["temperature"]);
    let files = vec![json!({ "name": "image.png", "mimeType": "image/png", "data": "AAAA" })];
    assert_eq!(request.new_messages().unwrap(), NewContent::Said { text: "three\n\nfour".into(), files });
    let history: Vec<String> = request
        .history()
        .unwrap()
        .iter()
        .map(|message| {
            format!("{}: {}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap())
        })
        .collect();
    let expected = [
        "user: one",
        "assistant: [Call of f] {}",
        "user: [Result of a call] r",
        "assistant: two",
        "system: Be brief.",
    ];
    assert_eq!(history, expected);
}

#[test]
fn a_client_that_goes_leaves_a_call_until_the_answer_is_complete() {
    let cancels = Settings { leaving: Some("stop".into()), ..settings() };
    let (frames, all) = (live(), live().len());
    let (_, half) = told(&frames[..all - 1], cancels.clone());
    assert_eq!(half.leaving().as_deref(), Some("stop"));
    assert_eq!(told(&frames, cancels.clone()).1.leaving(), None);
    // A run that waits for a person is not cancelled by a disconnect.
    let waits = [run(), reply("m_t_2", "", &[("c1", "work", "{}")]), parked("approval", "c1")];
    assert_eq!(told(&waits, cancels).1.leaving(), None);
    assert_eq!(told(&frames[..all - 1], settings()).1.leaving(), None);
}

#[test]
fn what_open_webui_asks_for_itself_is_told_by_its_form() {
    let is_utility_request = |body: Value| {
        let body = body.to_string();
        let request = CompletionRequest::parse(&body).unwrap();
        request.is_utility_request(&request.new_messages().unwrap())
    };
    let asks =
        |stream: bool, messages: Value| json!({ "model": "m", "stream": stream, "messages": messages });
    let task = || json!({ "role": "user", "content": "### Task:\nGenerate a title." });
    assert!(is_utility_request(asks(false, json!([task()]))));
    assert!(is_utility_request(asks(false, json!([{ "role": "system", "content": "x" }, task()]))));
    assert!(!is_utility_request(asks(true, json!([task()]))), "a person's");
    assert!(!is_utility_request(asks(
        false,
        json!([task(), { "role": "assistant", "content": "x" }, task()])
    )));
    assert!(!is_utility_request(asks(false, json!([{ "role": "user", "content": "What is ### Task:?" }]))));
}
