//! Responses, derived from feeds that are live, replayed, and resumed after any event.

use serde_json::Value;

use super::tests::{Frame, chunk, ended, event, live, message, parked, reply, result, run, settled};
use crate::encode::Encode;
use crate::openai::call_id;
use crate::openai::item_id::{self, ItemLocation, place_of};
use crate::openai::response_request::{ResponseRequest, parse_id, response_id};
use crate::openai::responses::{Responses, Settings};
use crate::request::history;
use bobbin_definitions::error::Code;
use bobbin_definitions::json;

const THREAD: &str = "6f0c8a52-1111-4111-8111-111111111111";

fn settings() -> Settings {
    Settings { id: "resp_1".into(), model: "helper".into(), thread: THREAD.into(), ..Settings::default() }
}

fn told(frames: &[Frame], settings: Settings) -> (Vec<Value>, Responses) {
    let mut responses = Responses::new(settings);
    let text: String = frames.iter().map(|frame| responses.push(&event(frame)).unwrap()).collect();
    let events = text.split("\n\n").filter_map(|event| event.split_once("\ndata: "));
    (events.map(|(_, json)| bobbin_definitions::json::from_str(json).unwrap()).collect(), responses)
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn text_of(events: &[Value]) -> String {
    let deltas = events.iter().filter(|event| event["type"] == "response.output_text.delta");
    deltas.filter_map(|event| event["delta"].as_str()).collect()
}

/// Checks events from the beginning as a strict client does.
fn checked(events: &[Value]) {
    assert_eq!(kinds(events)[..2], ["response.created", "response.in_progress"], "{events:#?}");
    let (mut added, mut done): (Vec<Value>, Vec<(usize, Value)>) = Default::default();
    let mut last = None;
    for event in events {
        let number = event["sequence_number"].as_u64().unwrap();
        assert!(last.is_none_or(|last| last < number), "{events:#?}");
        last = Some(number);
        let index = event["output_index"].as_u64().map(|index| usize::try_from(index).unwrap());
        match event["type"].as_str().unwrap() {
            "response.output_item.added" => {
                assert_eq!(index, Some(added.len()), "{events:#?}");
                added.push(event["item"]["id"].clone());
            }
            "response.output_item.done" => {
                assert_eq!(added[index.unwrap()], event["item"]["id"]);
                done.push((index.unwrap(), event["item"].clone()));
            }
            "response.completed" | "response.failed" | "response.incomplete" => {
                done.sort_by_key(|(index, _)| *index);
                let items: Vec<Value> = done.iter().map(|(_, item)| item.clone()).collect();
                assert_eq!(event["response"]["output"], json!(items), "{events:#?}");
            }
            kind => assert!(index.is_none_or(|index| index < added.len()), "{kind}: {events:#?}"),
        }
    }
    assert_eq!(added.len(), done.len(), "{events:#?}");
}

/// The live feed without the lost attempt.
fn calm() -> Vec<Frame> {
    live().into_iter().filter(|(kind, data)| *kind != "message_reset" && data["chunk"] != "lost").collect()
}

#[test]
fn a_run_is_one_response_whose_items_are_in_order() {
    for frames in [live(), calm(), settled()] {
        let (events, responses) = told(&frames, settings());
        checked(&events);
        let whole = responses.whole();
        assert_eq!((&whole["status"], &whole["usage"]["total_tokens"]), (&json!("completed"), &json!(10)));
        let last: Vec<&Value> =
            whole["output"].as_array().unwrap().iter().filter(|item| item["status"] == "completed").collect();
        let kinds: Vec<&str> = last.iter().map(|item| item["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["message", "mcp_call", "message"]);
        assert_eq!(last[1]["output"], "done");
        assert_eq!(last[2]["content"][0]["text"], "日本");
    }
    let (events, responses) = told(&live(), settings());
    assert_eq!(text_of(&events), "Grüßelost日本");
    assert_eq!(
        responses.whole()["output"][2]["status"],
        "incomplete",
        "the lost attempt is an item of its own"
    );
}

#[test]
fn a_client_reads_on_behind_any_event_also_when_the_run_is_long_over() {
    let (all, _) = told(&calm(), settings());
    for then in [calm(), settled()] {
        for at in 0..all.len() {
            let after = all[at]["sequence_number"].as_u64();
            let (rest, responses) = told(&then, Settings { after, ..settings() });
            let known = &all[..=at];
            assert_eq!(text_of(known) + &text_of(&rest), "Grüße日本", "behind {}", all[at]);
            assert!(kinds(&rest).iter().all(|kind| *kind != "response.created"), "{rest:#?}");
            assert!(responses.is_over());
            let ends = kinds(&rest).last() == Some(&"response.completed");
            assert!(ends || at + 1 == all.len(), "{rest:#?}");
        }
    }
}

#[test]
fn who_has_read_of_a_lost_attempt_is_told_all_of_it_anew() {
    let (all, _) = told(&live(), settings());
    let lost = all.iter().position(|event| event["delta"] == "lost").unwrap();
    for event in &all[lost..] {
        let after = event["sequence_number"].as_u64();
        let (rest, _) = told(&settled(), Settings { after, ..settings() });
        checked(&rest);
        assert_eq!(text_of(&rest), "Grüße日本", "behind {event}");
    }
    // A number that this response does not have.
    let (rest, _) = told(&settled(), Settings { after: Some(u64::MAX), ..settings() });
    checked(&rest);
}

#[test]
fn what_is_left_to_the_client_ends_the_response_live_and_later() {
    let client_tools = || ["work".to_owned()].into_iter().collect();
    let of_client = || Settings { client_tools: client_tools(), ..settings() };
    let mut frames = live();
    frames.truncate(4);
    frames.push(parked("client_tool", "c1"));
    let (events, responses) = told(&frames, of_client());
    checked(&events);
    let call = responses.whole()["output"][1].clone();
    assert_eq!((&call["type"], &call["arguments"]), (&json!("function_call"), &json!(r#"{"n":1}"#)));
    let id = call["call_id"].as_str().unwrap();
    assert_eq!(call_id::of(id), ("c1", Some(THREAD.to_owned())));
    // The run has continued since.
    let (later, _) = told(&settled(), of_client());
    assert_eq!(kinds(&later).last(), Some(&"response.completed"));
    assert_eq!(text_of(&later), "Grüße");
    // The continuation is a separate response, without the reply that was shown.
    let continues = Some("m_t_2".to_owned());
    let (events, responses) = told(&settled(), Settings { continues, ..of_client() });
    checked(&events);
    assert_eq!(text_of(&events), "日本");
    assert_eq!(responses.whole()["output"].as_array().unwrap().len(), 1);
}

#[test]
fn an_approval_is_asked_for_and_what_follows_is_another_response() {
    let mut frames = live();
    frames.truncate(4);
    frames.push(parked("approval", "c1"));
    let settings = || Settings { approves: true, ..settings() };
    let (events, responses) = told(&frames, settings());
    checked(&events);
    let whole = responses.whole();
    let types: Vec<&Value> = whole["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(types, ["message", "mcp_approval_request"], "the call is made when it is approved");
    let asked = whole["output"][1]["id"].clone();
    assert_eq!(call_id::of(asked.as_str().unwrap()), ("w_c1", Some(THREAD.to_owned())));
    let decided = message(json!({
        "id": "m_t_3", "role": "tool", "name": "work", "content": "done", "tool_call_id": "c1", "tool_status": "success",
        "metadata": { "approval": { "id": "w_c1", "decision": "approve" } },
    }));
    let later = vec![run(), settled()[1].clone(), decided.clone(), reply("m_t_5", "日本", &[])];
    assert_eq!(told(&later, settings()).1.whole(), whole, "it is the same later");
    let all: Vec<Frame> = later.into_iter().chain([ended("completed", "stop_on_response")]).collect();
    let (events, responses) = told(&all, Settings { continues: Some("m_t_2".into()), ..settings() });
    checked(&events);
    let output = responses.whole()["output"].clone();
    assert_eq!((&output[0]["approval_request_id"], &output[0]["output"]), (&asked, &json!("done")));
    assert_eq!(output[1]["content"][0]["text"], "日本");
}

/// A reply of a stored run, with its initial waits: pairs of a kind and a call.
fn parked_reply(calls: &[(&str, &str, &str)], asked: &[(&str, &str)]) -> Frame {
    let (kind, mut frame) = reply("m_t_2", "", calls);
    let waits = asked
        .iter()
        .map(|(kind, call)| json!({ "id": format!("w_{call}"), "kind": kind, "call": { "id": call } }));
    frame["waits"] = waits.collect();
    (kind, frame)
}

fn parked_for(asked: &[(&str, &str)]) -> Frame {
    let (kind, mut frame) = parked("approval", "");
    frame["waits"] = parked_reply(&[], asked).1["waits"].clone();
    (kind, frame)
}

fn decided(id: &str, call: &str, name: &str) -> Frame {
    message(json!({
        "id": id, "role": "tool", "name": name, "content": "done", "tool_call_id": call, "tool_status": "success",
        "metadata": { "approval": { "id": format!("w_{call}"), "decision": "approve" } },
    }))
}

#[test]
fn a_response_has_every_wait_of_its_pause_live_and_after_any_decision() {
    type Calls<'a> = &'a [(&'a str, &'a str, &'a str)];
    type Asked<'a> = &'a [(&'a str, &'a str)];
    let settings =
        || Settings { approves: true, client_tools: ["show".to_owned()].into_iter().collect(), ..settings() };
    let cases: [(Calls<'_>, Asked<'_>, usize); 5] = [
        (&[("c1", "work", "{}"), ("c2", "work", "{}")], &[("approval", "c1"), ("approval", "c2")], 2),
        (&[("c1", "show", "{}"), ("c2", "show", "{}")], &[("client_tool", "c1"), ("client_tool", "c2")], 2),
        (&[("c1", "show", "{}"), ("c2", "work", "{}")], &[("client_tool", "c1"), ("approval", "c2")], 2),
        // A client tool that needs an approval, and a call without a wait.
        (
            &[("c1", "show", "{}"), ("c2", "read", "{}"), ("c3", "work", "{}")],
            &[("approval", "c1"), ("approval", "c3")],
            3,
        ),
        // A question is shown as a line of text.
        (&[("c1", "ask", "{}"), ("c2", "work", "{}")], &[("question", "c1"), ("approval", "c2")], 2),
    ];
    for (calls, asked, items) in cases {
        let calls: Vec<_> = [("c0", "read", "{}")].iter().chain(calls).copied().collect();
        let first = result("m_t_3", "c0", "read", "here");
        let live = [run(), reply("m_t_2", "", &calls), first.clone(), parked_for(asked)];
        let (events, responses) = told(&live, settings());
        checked(&events);
        let whole = responses.whole();
        let output = whole["output"].as_array().unwrap();
        assert_eq!((output.len(), &whole["status"]), (1 + items, &json!("completed")), "{output:#?}");
        // The run has continued with none, some or all of the decisions.
        let rest = || {
            let results = calls.iter().skip(1).enumerate();
            results.map(|(at, (call, name, _))| decided(&format!("m_t_{}", at + 4), call, name))
        };
        for answered in 0..calls.len() {
            let mut later = vec![run(), parked_reply(&calls, asked), first.clone()];
            later.extend(rest().take(answered));
            later.extend((answered + 1 == calls.len()).then(|| reply("m_t_9", "日本", &[])));
            let (again, responses) = told(&later, settings());
            assert_eq!(responses.whole(), whole, "after {answered} answers");
            assert_eq!(again, events, "with the same numbers");
        }
        // The next response repeats no item of this one.
        let mut frames = vec![run(), parked_reply(&calls, asked), first.clone()];
        frames.extend(rest());
        frames.extend([reply("m_t_9", "日本", &[]), ended("completed", "stop_on_response")]);
        let (events, responses) = told(&frames, Settings { continues: Some("m_t_2".into()), ..settings() });
        checked(&events);
        let output = responses.whole()["output"].clone();
        let made: Vec<&str> =
            calls.iter().skip(1).filter(|(_, name, _)| *name != "show").map(|(call, ..)| *call).collect();
        let told: Vec<&str> = output
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|item| item["id"].as_str()?.strip_prefix("mcp_"))
            .collect();
        assert!(told.iter().zip(&made).all(|(id, call)| id.starts_with(call)), "{output:#?}");
        assert_eq!(told.len(), made.len(), "{output:#?}");
    }
}

#[test]
fn a_response_with_a_question_alone_continues_with_its_answer() {
    let calls = [("c1", "ask", "{}")];
    let frames = [
        run(),
        parked_reply(&calls, &[("question", "c1")]),
        result("m_t_3", "c1", "ask", "blue"),
        reply("m_t_5", "日本", &[]),
        ended("completed", "stop_on_response"),
    ];
    let (events, _) = told(&frames, settings());
    checked(&events);
    assert_eq!(text_of(&events), "日本");
}

#[test]
fn calls_behind_one_that_is_asked_about_are_items_of_what_comes_of_it() {
    let calls = [("c0", "read", "{}"), ("c1", "work", "{}"), ("c2", "read", "{}")];
    let frames = [
        run(),
        reply("m_t_2", "", &calls),
        ("tool_started", json!({ "tool": "read", "call_id": "c0" })),
        result("m_t_3", "c0", "read", "here"),
        parked("approval", "c1"),
    ];
    let types = |settings: Settings| {
        let (events, responses) = told(&frames, settings);
        checked(&events);
        let output = responses.whole()["output"].as_array().unwrap().clone();
        output.iter().map(|item| item["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(types(Settings { approves: true, ..settings() }), ["mcp_call", "mcp_approval_request"]);
    // A client that does not know approvals reads where to decide, so that the response is not empty.
    assert_eq!(types(settings()), ["mcp_call", "message", "mcp_approval_request"]);
}

#[test]
fn a_call_is_an_item_as_soon_as_it_begins() {
    let begins = |call: &str| ("tool_started", json!({ "tool": "read", "call_id": call }));
    let frames = [
        run(),
        reply("m_t_2", "", &[("c1", "read", "{}"), ("c2", "read", "{}")]),
        begins("c1"),
        begins("c2"),
        result("m_t_4", "c2", "read", "two"),
        result("m_t_3", "c1", "read", "one"),
        ended("completed", "stop_on_response"),
    ];
    let (live, _) = told(&frames, settings());
    checked(&live);
    assert_eq!(live.iter().position(|event| event["item"]["status"] == "in_progress"), Some(2));
    let settled: Vec<Frame> = frames.iter().filter(|(kind, _)| *kind != "tool_started").cloned().collect();
    assert_eq!(told(&settled, settings()).0, live, "later the events are the same, with the same numbers");
    let (_, stopped) = told(&[&frames[..3], &[ended("stopped", "stopped")]].concat(), settings());
    let output = stopped.whole()["output"].clone();
    assert_eq!((&output[0]["status"], &output[1]["status"]), (&json!("incomplete"), &json!("incomplete")));
}

#[test]
fn references_say_what_is_followed() {
    let id = item_id::of_message("msg", THREAD, "m_6f0c8a52_2");
    let request = |items: Value| ResponseRequest::parse(&json!({ "model": "m", "input": items }).to_string());
    let (one, two) =
        (json!({ "role": "user", "content": "one" }), json!({ "role": "user", "content": "two" }));
    let reference = |id: &str| json!({ "type": "item_reference", "id": id });
    let followed = request(json!([one, reference("msg_of_somebody"), reference(&id), two])).unwrap();
    let wanted = ItemLocation { thread: THREAD.into(), message: Some("m_6f0c8a52_2".into()) };
    assert_eq!((followed.referred.unwrap().place(), followed.new.text.as_str()), (Ok(wanted), "two"));
    let unknown = request(json!([one, reference("msg_of_somebody"), two])).unwrap();
    let error = unknown.referred.unwrap().place().unwrap_err();
    assert_eq!((error.code, error.field.as_deref()), (Code::InvalidField, Some("input[1].id")));
    // A reply that is sent in full, not as a reference, does not locate the thread.
    let said = json!({ "role": "assistant", "content": "a" });
    let mixed = request(json!([one, reference(&id), one, said, two])).unwrap();
    assert_eq!(mixed.referred, None);
    assert_eq!(
        mixed.history().unwrap_err().field.as_deref(),
        Some("input[1]"),
        "nothing is left out in silence"
    );
    let approval = json!({ "type": "mcp_approval_response", "approval_request_id": "w", "approve": true });
    let asked = item_id::in_thread("w_6f0c8a52_1", THREAD);
    let answered = request(json!([one, reference(&asked), approval])).unwrap();
    assert_eq!(place_of(&asked), answered.referred.unwrap().place().ok());
    assert_eq!(answered.new.approvals.len(), 1);
}

#[test]
fn the_servers_own_tools_are_declared_under_their_label() {
    let tools = |tools: Value| {
        ResponseRequest::parse(&json!({ "model": "m", "input": "x", "tools": tools }).to_string())
    };
    let declared = tools(json!([
        { "type": "mcp", "server_label": "bobbin", "server_url": "https://x.example", "require_approval": "always" },
        { "type": "function", "name": "f" },
    ]))
    .unwrap();
    assert_eq!((declared.approves, declared.tools), (true, vec!["f".to_owned()]));
    let other = tools(json!([{ "type": "mcp", "server_label": "other", "server_url": "https://x.example" }]));
    assert_eq!(other.unwrap_err().field.as_deref(), Some("tools"));
    assert!(!tools(json!([])).unwrap().approves);
}

#[test]
fn a_response_says_how_it_ended() {
    for (outcome, kind, status) in
        [("failed", "response.failed", "failed"), ("stopped", "response.incomplete", "cancelled")]
    {
        let frames = vec![run(), chunk("m_t_2", 1, 0, "some"), ended(outcome, "model_error")];
        let (events, responses) = told(&frames, settings());
        checked(&events);
        assert_eq!(kinds(&events).last(), Some(&kind));
        assert_eq!(responses.whole()["status"], status);
    }
    assert_eq!(Responses::new(settings()).whole()["status"], "queued");
    let (_, responses) = told(&[run(), result("m_t_3", "c9", "work", "r")], settings());
    assert_eq!(responses.whole()["status"], "in_progress");
}

#[test]
fn requests_say_what_is_new() {
    let parsed = |body: Value| ResponseRequest::parse(&body.to_string());
    let plain =
        parsed(json!({ "model": "m", "input": "hello", "instructions": "Be brief.", "temperature": 1 }))
            .unwrap();
    assert_eq!((plain.new.text.as_str(), plain.store, plain.history()), ("hello", true, Ok(Vec::new())));
    assert_eq!(plain.ignored, ["temperature"]);
    let items = parsed(json!({ "model": "m", "input": [
        { "role": "system", "content": "Be kind." },
        { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "one" }] },
        { "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "c", "output": [{ "type": "input_text", "text": "r" }] },
    ] }))
    .unwrap();
    assert_eq!(items.new.results, [("c".to_owned(), "r".to_owned())]);
    assert_eq!(items.history().unwrap().len(), 3);
    for (body, field) in [
        (json!({ "input": "x" }), "model"),
        (json!({ "model": "m" }), "input"),
        (json!({ "model": "m", "input": [] }), "input"),
        (json!({ "model": "m", "input": [{ "type": "computer_call" }] }), "input[0]"),
        (
            json!({ "model": "m", "input": "x", "conversation": "c", "previous_response_id": "r" }),
            "conversation",
        ),
        (json!({ "model": "m", "input": "x", "text": { "format": { "type": "json_schema" } } }), "text"),
        (json!({ "model": "m", "input": "x", "tools": [{ "type": "web_search" }] }), "tools"),
    ] {
        let error = parsed(body.clone()).unwrap_err();
        assert_eq!(error.field.as_deref(), Some(field), "{body}: {error}");
    }
    let id = response_id(THREAD, "m_6f0c8a52_7");
    assert_eq!(parse_id(&id), Some((THREAD.to_owned(), "m_6f0c8a52_7".to_owned())));
    for no in [
        "",
        "resp_",
        "resp_x",
        "chatcmpl-1",
        "resp_6f0c8a5211114111811111111111111é_1",
        &format!("{id}/../x"),
    ] {
        assert_eq!(parse_id(no), None, "{no}");
    }
}

#[test]
fn more_items_than_a_thread_begins_with_are_refused_before_they_are_read() {
    let request = |items: usize| {
        // Items of an unknown kind.
        let items = vec![r#"{"type":"x"}"#; items].join(",");
        ResponseRequest::parse(&format!(r#"{{"model":"m","input":[{items}]}}"#)).unwrap_err()
    };
    assert_eq!(request(history::MESSAGES).code, Code::UnsupportedParameter);
    let refused = request(history::MESSAGES + 1);
    assert_eq!((refused.code, refused.field.as_deref()), (Code::TooLarge, Some("input")));
}
