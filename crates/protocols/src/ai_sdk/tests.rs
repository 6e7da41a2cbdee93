//! The stream of the AI SDK, derived from feeds that are live, replayed, and resumed after any frame.

use serde_json::Value;

use crate::ai_sdk::message::{RunFrames, history};
use crate::ai_sdk::stream::{CallLocation, ContinuedMessage, Settings, UiStream};
use crate::sse;
use bobbin_definitions::json;

fn run() -> (&'static str, Value) {
    ("run", json!({ "type": "run", "run": "r_1", "startedAt": 1_795_300_000_000_000_i64 }))
}

fn step(id: &str) -> (&'static str, Value) {
    ("step_started", json!({ "run": "r_1", "step": 1, "message_id": id }))
}

fn chunk(id: &str, attempt: u64, offset: usize, text: &str) -> (&'static str, Value) {
    let data = json!({ "message_id": id, "depth": 0, "chunk": text, "attempt": attempt, "offset": offset });
    ("message_chunk", data)
}

fn reset(id: &str, attempt: u64) -> (&'static str, Value) {
    ("message_reset", json!({ "message_id": id, "attempt": attempt }))
}

fn message(data: Value) -> (&'static str, Value) {
    ("message_data", json!({ "message_id": data["id"], "depth": 0, "data": data }))
}

fn reply(id: &str, text: &str, calls: &[(&str, &str, &str)]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(id, name, arguments)| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } }))
        .collect();
    let calls = if calls.is_empty() { Value::Null } else { Value::Array(calls).to_string().into() };
    json!({ "id": id, "role": "assistant", "content": text, "tool_calls": calls, "metadata": { "prompt": "p" } })
}

fn result(id: &str, call: &str, text: &str, status: &str) -> Value {
    json!({ "id": id, "role": "tool", "content": text, "tool_call_id": call, "tool_status": status, "metadata": {} })
}

fn said(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "content": text, "metadata": { "ui_id": format!("ui-{id}") } })
}

fn ended(outcome: &str, reason: &str) -> (&'static str, Value) {
    ("run_ended", json!({ "run": "r_1", "outcome": outcome, "reason": reason, "usage": null }))
}

fn wait(kind: &str, call: &str) -> Value {
    json!({ "id": format!("w_{call}"), "kind": kind, "call": { "id": call, "tool": "pay", "messageId": "m_t_2" } })
}

fn parked(waits: &[Value]) -> (&'static str, Value) {
    ("run_parked", json!({ "run": "r_1", "pauseKind": "human", "waits": waits }))
}

/// A run with two steps, a call between them, text in pieces.
fn told() -> Vec<(&'static str, Value)> {
    let calls = [("c1", "work", r#"{"n":1}"#), ("c2", "work", "{"), ("c3", "work", "")];
    vec![
        run(),
        step("m_t_2"),
        chunk("m_t_2", 1, 0, "Grü"),
        chunk("m_t_2", 1, 4, "ße"),
        message(reply("m_t_2", "Grüße", &calls)),
        ("tool_started", json!({ "tool": "work", "call_id": "c1" })),
        message(result("m_t_3", "c1", r#"{"a":1}"#, "success")),
        message(result("m_t_4", "c2", "no JSON", "error")),
        message(result("m_t_5", "c3", "plain", "success")),
        step("m_t_259"),
        chunk("m_t_259", 1, 0, "lost"),
        reset("m_t_259", 2),
        chunk("m_t_259", 2, 0, "done"),
        message(reply("m_t_259", "done", &[])),
        ended("completed", "stop_on_response"),
    ]
}

/// Checks the rules that pages enforce, and content that a page would wrongly treat as complete.
fn checked(chunks: &[Value]) {
    let (mut open, mut inputs) = (Vec::new(), Vec::new());
    let (mut starts, mut ends, mut step) = (0, 0, false);
    for chunk in chunks {
        let text = |name: &str| chunk[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(ends, 0, "nothing follows the end: {chunks:#?}");
        match text("type").as_str() {
            "start" => starts += 1,
            "start-step" => assert!(!std::mem::replace(&mut step, true), "{chunks:#?}"),
            "finish-step" => assert!(std::mem::replace(&mut step, false), "{chunks:#?}"),
            "text-start" | "reasoning-start" => open.push(text("id")),
            "text-delta" | "reasoning-delta" => assert!(open.contains(&text("id")), "{chunk}: {chunks:#?}"),
            "text-end" | "reasoning-end" => {
                let known = open.iter().position(|id| *id == text("id"));
                open.remove(known.unwrap_or_else(|| panic!("{chunk}: {chunks:#?}")));
            }
            "reset-step" => open.clear(),
            "tool-approval-response" => {
                let asked = |one: &Value| {
                    one["type"] == "tool-approval-request" && one["approvalId"] == chunk["approvalId"]
                };
                assert!(chunks.iter().any(asked), "{chunk}: {chunks:#?}");
            }
            "tool-input-available" | "tool-input-start" => inputs.push(text("toolCallId")),
            "tool-input-delta"
            | "tool-output-available"
            | "tool-output-error"
            | "tool-output-denied"
            | "tool-approval-request" => {
                assert!(inputs.contains(&text("toolCallId")), "{chunk}: {chunks:#?}");
            }
            "finish" | "abort" => ends += 1,
            "error" | "file" => {}
            other => assert!(other.starts_with("data-"), "{other}"),
        }
        assert!(starts == 1 || matches!(text("type").as_str(), "error" | "abort" | "finish"), "{chunks:#?}");
    }
    assert!(starts <= 1 && open.is_empty(), "{chunks:#?}");
}

fn chunks(settings: &Settings, frames: &[(&'static str, Value)]) -> Vec<Value> {
    let mut stream = UiStream::new(settings.clone());
    frames.iter().flat_map(|(kind, frame)| stream.take(kind, frame).unwrap()).collect()
}

fn types(chunks: &[Value]) -> Vec<&str> {
    chunks.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect()
}

fn texts(chunks: &[Value]) -> String {
    chunks.iter().filter_map(|chunk| chunk["delta"].as_str()).collect()
}

#[test]
fn a_run_is_one_message_with_a_step_for_each_reply() {
    let made = chunks(&Settings { thread: "t".into(), agent: "a".into(), ..Settings::default() }, &told());
    checked(&made);
    assert_eq!(
        types(&made),
        [
            "start",
            "start-step",
            "text-start",
            "text-delta",
            "text-delta",
            "text-end",
            "tool-input-available",
            "tool-output-available",
            "tool-input-available",
            "tool-output-error",
            "tool-input-available",
            "tool-output-available",
            "finish-step",
            "start-step",
            "text-start",
            "text-delta",
            "text-end",
            "data-bobbin-reset",
            "text-start",
            "text-delta",
            "text-end",
            "finish-step",
            "finish",
        ]
    );
    assert_eq!(made[0]["messageId"], "m_t_2");
    assert_eq!(made[7]["output"], json!({ "a": 1 }), "JSON is given as JSON");
    assert!(
        made.iter()
            .filter(|chunk| chunk["type"] == "tool-input-available")
            .all(|chunk| chunk["providerExecuted"] == true)
    );
    assert_eq!(made[8]["input"], "{", "what is no JSON is a text");
    assert_eq!(made[10]["input"], json!({}), "no arguments are an empty object");
    let with = chunks(&Settings { reset_step: true, ..Settings::default() }, &told());
    checked(&with);
    assert!(types(&with).contains(&"reset-step") && !types(&with).contains(&"data-bobbin-reset"));
}

#[test]
fn a_feed_that_is_resumed_after_any_frame_makes_the_same_message() {
    let whole = told();
    for cut in 1..whole.len() {
        // Stored messages, the text in progress, and the rest.
        let (before, after) = whole.split_at(cut);
        let mut frames: Vec<_> =
            before.iter().filter(|(kind, _)| matches!(*kind, "run" | "message_data")).cloned().collect();
        let last = |kind: &str| before.iter().rposition(|(other, _)| *other == kind);
        let resets = last("message_reset");
        if let Some(at) = last("message_chunk").filter(|at| {
            last("message_data").is_none_or(|stored| stored < *at) && resets.is_none_or(|reset| reset < *at)
        }) {
            let (id, attempt) = (&before[at].1["message_id"], before[at].1["attempt"].as_u64().unwrap());
            let of = |frame: &&(&'static str, Value)| {
                frame.0 == "message_chunk" && frame.1["message_id"] == *id && frame.1["attempt"] == attempt
            };
            let text: String =
                before.iter().filter(of).map(|frame| frame.1["chunk"].as_str().unwrap()).collect();
            frames.push(chunk(id.as_str().unwrap(), attempt, 0, &text));
        }
        frames.extend(after.iter().cloned());
        let made = chunks(&Settings { reset_step: true, ..Settings::default() }, &frames);
        checked(&made);
        assert_eq!(types(&made).last(), Some(&"finish"), "{cut}");
        let calls = made.iter().filter(|chunk| chunk["type"] == "tool-output-available").count();
        assert_eq!(calls, 2, "{cut}");
        assert!(
            texts(&made).ends_with("done") && texts(&made).starts_with("Grüße"),
            "{cut}: {}",
            texts(&made)
        );
    }
}

#[test]
fn a_stream_that_ends_anywhere_is_never_whole() {
    let whole = told();
    for cut in 0..whole.len() {
        let made = chunks(&Settings::default(), &whole[..cut]);
        assert!(!types(&made).iter().any(|kind| matches!(*kind, "finish" | "abort")), "{cut}");
    }
}

#[test]
fn a_piece_that_is_missing_breaks_the_stream() {
    let mut stream = UiStream::new(Settings::default());
    for (kind, frame) in [run(), step("m_t_2"), chunk("m_t_2", 1, 0, "ab")] {
        stream.take(kind, &frame).unwrap();
    }
    let (kind, frame) = chunk("m_t_2", 1, 3, "d");
    assert!(stream.take(kind, &frame).is_err());
    let (kind, frame) = run();
    assert!(stream.take(kind, &frame).is_err(), "a history that changed is read anew by the client");
}

#[test]
fn every_end_is_one_terminal() {
    for (outcome, kinds) in
        [("completed", vec!["finish"]), ("failed", vec!["error", "finish"]), ("stopped", vec!["abort"])]
    {
        let frames = [run(), step("m_t_2"), chunk("m_t_2", 1, 0, "half"), ended(outcome, "x")];
        let made = chunks(&Settings::default(), &frames);
        checked(&made);
        assert_eq!(types(&made)[4..], [vec!["text-end", "finish-step"], kinds.clone()].concat());
        // Before any content.
        let made = chunks(&Settings::default(), &[run(), ended(outcome, "x")]);
        checked(&made);
        assert_eq!(types(&made).last(), kinds.last());
    }
}

#[test]
fn what_is_asked_ends_the_reply_and_its_answer_goes_on() {
    let calls = [("c0", "work", "{}"), ("c1", "pay", r#"{"amount":1}"#), ("c2", "work", "{}")];
    let first = [
        run(),
        message(reply("m_t_2", "I pay.", &calls)),
        message(result("m_t_3", "c0", "ok", "success")),
        parked(&[wait("approval", "c1")]),
    ];
    let made = chunks(&Settings::default(), &first);
    checked(&made);
    let asked: Vec<&Value> = made.iter().filter(|chunk| chunk["type"] == "tool-approval-request").collect();
    assert_eq!(
        asked,
        [&json!({ "type": "tool-approval-request", "approvalId": "w_c1", "toolCallId": "c1" })]
    );
    assert_eq!(made.last().unwrap()["finishReason"], "tool-calls");
    // A later call has not begun, because a page would wait for it and never send the decision.
    assert!(made.iter().all(|chunk| chunk["toolCallId"] != "c2"));
    let mut denied = result("m_t_4", "c1", "Denied: no", "error");
    denied["metadata"] = json!({ "approval": { "id": "w_c1", "decision": "deny", "reason": "no" } });
    let then = [
        run(),
        message(reply("m_t_2", "I pay.", &calls)),
        message(result("m_t_3", "c0", "ok", "success")),
        message(denied.clone()),
        message(result("m_t_5", "c2", "ok", "success")),
        message(reply("m_t_259", "Well.", &[])),
        ended("completed", "stop_on_response"),
    ];
    let continued = |calls| {
        let asked = ["c1".to_owned()].into_iter().collect();
        Some(ContinuedMessage { message: "ui-1".into(), reply: "m_t_2".into(), calls, asked })
    };
    let made = chunks(&Settings { continues: continued(CallLocation::Here), ..Settings::default() }, &then);
    assert_eq!(made[0]["messageId"], "ui-1");
    assert_eq!(texts(&made), "Well.", "what was said is not said again");
    assert!(types(&made).contains(&"tool-output-denied") && !types(&made).contains(&"tool-approval-request"));
    // Content after the calls goes to another message than that of the calls.
    let elsewhere = Settings { continues: continued(CallLocation::Elsewhere), ..Settings::default() };
    let made = chunks(&elsewhere, &then);
    assert!(made.iter().all(|chunk| chunk.get("toolCallId").is_none()), "{made:#?}");
    assert_eq!((texts(&made).as_str(), types(&made).last()), ("Well.", Some(&"finish")));
    let mut joined = then.to_vec();
    joined.insert(5, message(said("m_t_258", "and?")));
    assert_eq!(texts(&chunks(&elsewhere, &joined)), "Well.", "the message answers what was said before it");
    // A client that reads from the beginning gets the same.
    let replayed = chunks(&Settings::default(), &then);
    checked(&replayed);
    let of_call = |chunk: &&Value| chunk["toolCallId"] == "c1";
    let told: Vec<&str> =
        replayed.iter().filter(of_call).map(|chunk| chunk["type"].as_str().unwrap()).collect();
    assert_eq!(told, ["tool-input-available", "tool-approval-request", "tool-output-denied"]);
    let of_major_7 = Settings { reset_step: true, ..Settings::default() };
    let replayed = chunks(&of_major_7, &then);
    checked(&replayed);
    let at = types(&replayed).iter().position(|kind| *kind == "tool-approval-response").unwrap();
    let answered =
        json!({ "type": "tool-approval-response", "approvalId": "w_c1", "approved": false, "reason": "no" });
    assert_eq!(replayed[at], answered);
    assert_eq!(
        types(&replayed)[at - 1..=at + 1],
        ["tool-approval-request", types(&replayed)[at], "tool-output-denied"]
    );
    // The page that has answered knows the decision.
    let made = chunks(&Settings { continues: continued(CallLocation::Here), ..of_major_7 }, &then);
    assert!(!types(&made).contains(&"tool-approval-response"));
    let as_data = chunks(&Settings { approvals_as_data: true, ..Settings::default() }, &then);
    assert!(as_data.iter().all(|chunk| !chunk["type"].as_str().unwrap().starts_with("tool-approval")));
    assert!(!types(&as_data).contains(&"tool-output-denied"));
}

#[test]
fn only_calls_of_the_page_are_left_to_it() {
    let client_tools = ["pay".to_owned()].into_iter().collect();
    let frames = [
        run(),
        message(reply("m_t_2", "", &[("c1", "pay", "{}"), ("c2", "work", "{}")])),
        parked(&[wait("client_tool", "c1")]),
    ];
    let made = chunks(&Settings { client_tools, ..Settings::default() }, &frames);
    checked(&made);
    let input: Vec<&Value> = made.iter().filter(|chunk| chunk["type"] == "tool-input-available").collect();
    assert_eq!((input.len(), input[0].get("providerExecuted")), (1, None));
    assert_eq!(input[0]["toolCallId"], "c1");
}

#[test]
fn a_page_carries_out_each_of_its_calls_once() {
    let client_tools = ["locate".to_owned()].into_iter().collect();
    let settings = Settings { client_tools, ..Settings::default() };
    let said = || message(reply("m_t_2", "", &[("c1", "locate", r#"{"of":"me"}"#)]));
    let starts = |made: &[Value]| {
        let left = |chunk: &&Value| {
            chunk["type"] == "tool-input-available" && chunk.get("providerExecuted").is_none()
        };
        made.iter().filter(left).count()
    };
    let asked = chunks(&settings, &[run(), said(), parked(&[wait("client_tool", "c1")])]);
    assert_eq!(starts(&asked), 1);
    // A call that needs an approval first.
    let first = chunks(&settings, &[run(), said(), parked(&[wait("approval", "c1")])]);
    checked(&first);
    assert_eq!(starts(&first), 0);
    assert!(types(&first).contains(&"tool-approval-request"));
    let continues = |asked: &[&str]| {
        let asked = asked.iter().map(|id| (*id).to_owned()).collect();
        let (message, reply, calls) = ("ui".into(), "m_t_2".into(), CallLocation::Here);
        Some(ContinuedMessage { message, reply, calls, asked })
    };
    let approved = Settings { continues: continues(&["c1"]), ..settings.clone() };
    assert_eq!(starts(&chunks(&approved, &[run(), said(), parked(&[wait("client_tool", "c1")])])), 1);
    // A finished call is not run again by a page that reads it.
    let mut done = vec![run(), said(), message(result("m_t_3", "c1", "Lisbon", "success"))];
    done.push(ended("completed", "stop_tool"));
    let replayed = chunks(&settings, &done);
    checked(&replayed);
    assert_eq!(starts(&replayed), 0);
    let answered = chunks(&Settings { continues: continues(&[]), ..settings.clone() }, &done);
    assert_eq!(starts(&answered), 0);
    // A page sends its chat again automatically if the last step has its own results.
    for made in [&replayed, &answered] {
        let at = made.iter().rposition(|chunk| chunk["type"] == "start-step").unwrap();
        assert!(made[at..].iter().all(|chunk| chunk.get("toolCallId").is_none()), "{made:#?}");
    }
    let ran =
        RunFrames { opening: run().1, last: "m_t_2".into(), closing: Some(ended("completed", "stop_tool")) };
    let rows: Vec<Value> = done[1..3].iter().map(|(_, frame)| frame["data"].clone()).collect();
    let told = history(&rows, &[ran], &settings).unwrap();
    let part = json!({ "type": "tool-locate", "toolCallId": "c1", "state": "output-available",
        "input": { "of": "me" }, "output": "Lisbon" });
    assert_eq!(told[0]["parts"], json!([{ "type": "step-start" }, part, { "type": "step-start" }]));
}

#[test]
fn a_history_says_what_was_decided() {
    let mut rows = vec![reply("m_t_2", "", &[("c1", "pay", "{}"), ("c2", "pay", "{}")])];
    for (seq, call, decision, status) in [(3, "c1", "approve", "success"), (4, "c2", "deny", "error")] {
        let mut row = result(&format!("m_t_{seq}"), call, "x", status);
        row["metadata"] =
            json!({ "approval": { "id": format!("w_{call}"), "decision": decision, "reason": "so" } });
        rows.push(row);
    }
    let closing = Some(ended("completed", "stop_tool"));
    let told = history(
        &rows,
        &[RunFrames { opening: run().1, last: "m_t_2".into(), closing }],
        &Settings::default(),
    );
    let told = told.unwrap();
    let of = |at: usize| (&told[0]["parts"][at]["state"], &told[0]["parts"][at]["approval"]);
    let decided = |id: &str, approved: bool| json!({ "id": id, "approved": approved, "reason": "so" });
    assert_eq!(of(1), (&json!("output-available"), &decided("w_c1", true)));
    assert_eq!(of(2), (&json!("output-denied"), &decided("w_c2", false)));
}

#[test]
fn a_person_who_joins_ends_the_message() {
    let frames = [
        run(),
        message(reply("m_t_2", "one", &[("c1", "work", "{}")])),
        message(result("m_t_3", "c1", "ok", "success")),
        message(said("m_t_259", "and this")),
        message(reply("m_t_260", "two", &[])),
        ended("completed", "stop_on_response"),
    ];
    let made = chunks(&Settings::default(), &frames);
    checked(&made);
    assert_eq!(texts(&made), "one");
    let ran = RunFrames {
        opening: run().1,
        last: "m_t_260".into(),
        closing: Some(ended("completed", "stop_on_response")),
    };
    let rows: Vec<Value> = std::iter::once(said("m_t_1", "go"))
        .chain(
            frames.iter().filter(|(kind, _)| *kind == "message_data").map(|(_, frame)| frame["data"].clone()),
        )
        .collect();
    let told = history(&rows, &[ran], &Settings::default()).unwrap();
    let shown: Vec<(&str, &str)> = told
        .iter()
        .map(|message| (message["id"].as_str().unwrap(), message["role"].as_str().unwrap()))
        .collect();
    assert_eq!(
        shown,
        [("ui-m_t_1", "user"), ("m_t_2", "assistant"), ("ui-m_t_259", "user"), ("m_t_260", "assistant")]
    );
    assert_eq!(told[1]["parts"][2]["state"], "output-available", "{told:#?}");
}

#[test]
fn a_reply_that_is_under_way_is_left_to_the_stream() {
    let rows = [said("m_t_1", "go"), reply("m_t_2", "half", &[("c1", "work", "{}")])];
    let ran = RunFrames { opening: run().1, last: "m_t_2".into(), closing: None };
    let told = history(&rows, &[ran], &Settings::default()).unwrap();
    assert_eq!(told.len(), 1, "{told:#?}");
}

#[test]
fn events_are_read_whatever_stands_around_them() {
    let read = sse::frames("id: 0.1\nevent: run\ndata: {\"run\":\"r_1\"}\n\n").unwrap();
    assert_eq!(read, [("run", json!({ "run": "r_1" }))]);
    assert!(sse::frames(": \n\n").is_err());
}

#[test]
fn pieces_of_a_text_that_lie_side_by_side_are_read_as_one() {
    let read = |frames: &[(&'static str, Value)]| -> Vec<(String, u64)> {
        let event = |(kind, frame): &(&str, Value)| format!("id: 0.1\nevent: {kind}\ndata: {frame}\n\n");
        let events: String = frames.iter().map(event).collect();
        let of = |(_, frame): &(&str, Value)| {
            (frame["chunk"].as_str().unwrap_or("-").to_owned(), frame["offset"].as_u64().unwrap_or(0))
        };
        sse::frames(&events).unwrap().iter().map(of).collect()
    };
    let first = || chunk("m_t_2", 0, 0, "a\n");
    let together = [first(), chunk("m_t_2", 0, 2, "é"), chunk("m_t_2", 0, 4, "b")];
    assert_eq!(read(&together), [("a\néb".to_owned(), 0)]);
    for (apart, offset) in
        [(chunk("m_t_2", 0, 3, "b"), 3), (chunk("m_t_2", 1, 2, "b"), 2), (chunk("m_t_4", 0, 2, "b"), 2)]
    {
        assert_eq!(read(&[first(), apart]), [("a\n".to_owned(), 0), ("b".to_owned(), offset)]);
    }
    let between = [first(), run(), chunk("m_t_2", 0, 2, "b")];
    assert_eq!(read(&between), [("a\n".to_owned(), 0), ("-".to_owned(), 0), ("b".to_owned(), 2)]);
}

#[test]
fn a_reply_that_comes_again_after_a_break_is_told_once() {
    let reply = || message(reply("m_t_2", "one", &[("c1", "work", "{}")]));
    let frames = [run(), reply(), reply(), message(result("m_t_3", "c1", "ok", "success")), reply()];
    let made = chunks(&Settings::default(), &frames);
    assert_eq!(texts(&made), "one");
    let count = |kind: &str| types(&made).iter().filter(|one| **one == kind).count();
    assert_eq!((count("start-step"), count("tool-input-available")), (1, 1), "{made:#?}");
}

#[test]
fn a_subagent_that_is_under_way_is_an_output_that_another_one_takes_the_place_of() {
    let waits = |status: &str| {
        let subagent = json!({ "call_id": "c1", "thread": "t_1", "agent": "a", "status": status });
        let other = json!({ "call_id": "c9", "thread": "t_9", "agent": "a", "status": status });
        let data =
            json!({ "run": "r_1", "pauseKind": "external", "waits": [], "subagents": [subagent, other] });
        ("run_parked", data)
    };
    let begun = || vec![run(), message(reply("m_t_2", "", &[("c1", "research", "{}")]))];
    let mut frames = begun();
    frames.extend([waits("running"), waits("running"), waits("nearly done")]);
    frames.push(message(result("m_t_3", "c1", "found", "success")));
    frames.push(ended("completed", "stop_on_response"));
    let made = chunks(&Settings::default(), &frames);
    checked(&made);
    let outputs: Vec<&Value> = made.iter().filter(|chunk| chunk["type"] == "tool-output-available").collect();
    let told: Vec<(&Value, bool)> =
        outputs.iter().map(|one| (&one["output"], one["preliminary"] == true)).collect();
    let of = |status: &str| json!({ "status": status, "thread": "t_1" });
    assert_eq!(told, [(&of("running"), true), (&of("nearly done"), true), (&json!("found"), false)]);
    assert!(outputs.iter().all(|one| one["providerExecuted"] == true));
    // A page that reads all of it later gets the same.
    let rows = [reply("m_t_2", "", &[("c1", "research", "{}")]), result("m_t_3", "c1", "found", "success")];
    let ran = RunFrames {
        opening: run().1,
        last: "m_t_2".into(),
        closing: Some(ended("completed", "stop_on_response")),
    };
    let kept = history(&rows, &[ran], &Settings::default()).unwrap();
    assert_eq!(
        (&kept[0]["parts"][1]["output"], &kept[0]["parts"][1]["preliminary"]),
        (&json!("found"), &Value::Null)
    );
}
