//! Threads as OpenAI's conversations, and requests of their clients.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::openai::conversation_items::{ItemSettings, NewConversation, added, changed, conversation};
use crate::openai::item_id;
use bobbin_definitions::json;

const THREAD: &str = "6f0c8a52-1111-4111-8111-111111111111";

fn row(seq: i64, role: &str, more: Value) -> Value {
    let mut row = json!({ "id": format!("m_6f_{seq}"), "role": role, "content": format!("{role} {seq}") });
    if let (Some(row), Some(more)) = (row.as_object_mut(), more.as_object()) {
        row.extend(more.clone());
    }
    row
}

fn calls(calls: &[(&str, &str)]) -> Value {
    let listed = calls.iter().map(
        |(id, name)| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": "{}" } }),
    );
    json!({ "tool_calls": Value::Array(listed.collect()).to_string() })
}

fn rows() -> Vec<Value> {
    vec![
        row(1, "user", json!({ "attachments": [{ "name": "a.png" }] })),
        row(2, "assistant", calls(&[("c1", "work"), ("c2", "locate")])),
        row(3, "tool", json!({ "tool_call_id": "c1", "tool_status": "error" })),
        row(4, "tool", json!({ "tool_call_id": "c2", "tool_status": "success" })),
        row(259, "assistant", json!({})),
        row(516, "user", json!({ "metadata": { "prompt": "other side" } })),
        row(517, "system", json!({})),
    ]
}

fn page(rows: &[Value], more: bool, newest_first: bool, limit: usize) -> Value {
    let client_tools = BTreeSet::from_iter(["locate".to_owned()]);
    ItemSettings { thread: THREAD, client_tools: &client_tools }.page(rows, more, newest_first, limit)
}

fn ids(page: &Value) -> Vec<&str> {
    page["data"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[test]
fn what_was_said_is_items_in_both_orders() {
    let hex = THREAD.replace('-', "");
    let told = format!("c2-{hex}");
    let message = |seq: i64| format!("msg_{hex}_6f_{seq}");
    let call = |kind: &str, id: &str| format!("{kind}_{id}-{hex}");
    let expected = [
        message(1),
        message(2),
        call("mcp", "c1"),
        call("fc", "c2"),
        call("fco", "c2"),
        message(259),
        message(516),
        message(517),
    ];
    let all = page(&rows(), false, false, 100);
    assert_eq!(ids(&all), expected);
    assert_eq!((&all["has_more"], &all["last_id"]), (&json!(false), &json!(message(517))));
    let data = &all["data"];
    assert_eq!(data[0]["content"][1], json!({ "type": "input_file", "filename": "a.png" }));
    assert_eq!((&data[2]["status"], &data[2]["error"]), (&json!("failed"), &json!("tool 3")));
    assert_eq!((&data[4]["call_id"], &data[4]["output"]), (&json!(told), &json!("tool 4")));
    assert_eq!((&data[6]["role"], &data[7]["role"]), (&json!("assistant"), &json!("system")));
    let mut newest = expected;
    newest.reverse();
    assert_eq!(ids(&page(&rows(), false, true, 100)), newest);
}

#[test]
fn pages_end_behind_whole_replies_and_lose_nothing() {
    let rows = rows();
    let seq = |row: &Value| row["id"].as_str().unwrap().rsplit_once('_').unwrap().1.parse::<i64>().unwrap();
    for newest_first in [false, true] {
        for (limit, held) in [(1, 4), (2, 4), (3, 5), (20, 7)] {
            let all = page(&rows, false, newest_first, 100);
            let (mut read, mut after): (Vec<String>, Option<i64>) = (Vec::new(), None);
            for _ in 0..10 {
                let rest = |row: &&Value| match (after, newest_first) {
                    (None, _) => true,
                    (Some(at), true) => seq(row) < at,
                    (Some(at), false) => seq(row) > at,
                };
                // In the form of a thread's response: `held` rows from the requested position, in order.
                let mut some: Vec<Value> = rows.iter().filter(rest).cloned().collect();
                let more = some.len() > held;
                let spare = some.len().saturating_sub(held);
                if newest_first {
                    some.drain(..spare);
                } else {
                    some.truncate(held);
                }
                let part = page(&some, more, newest_first, limit);
                read.extend(ids(&part).into_iter().map(str::to_owned));
                if part["has_more"] == false {
                    break;
                }
                let last = item_id::message_of(part["last_id"].as_str().unwrap()).unwrap();
                after = Some(seq(&json!({ "id": last })));
            }
            assert_eq!(read, ids(&all), "{newest_first} {limit} {held}");
        }
    }
}

#[test]
fn a_message_is_read_by_itself() {
    let client_tools = BTreeSet::default();
    let made = ItemSettings { thread: THREAD, client_tools: &client_tools };
    let reply = made.item(&rows()[1]).unwrap();
    let id = item_id::of_message("msg", THREAD, "m_6f_2");
    assert_eq!((&reply["id"], &reply["content"][0]["text"]), (&json!(id), &json!("assistant 2")));
    let mut silent = rows()[1].clone();
    silent["content"] = "".into();
    assert_eq!(made.item(&silent), None, "it has nothing but calls");
}

#[test]
fn a_conversation_begins_with_items_and_keeps_metadata() {
    let body = json!({
        "metadata": { "agent": "helper", "topic": "x" },
        "items": [
            { "role": "user", "content": "one" },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "two" }] },
            { "role": "user", "content": [{ "type": "input_image", "image_url": "https://a.example/x.png" }] },
        ],
    });
    let new = NewConversation::parse(&body.to_string()).unwrap();
    assert_eq!(new.agent.as_deref(), Some("helper"));
    let roles: Vec<&Value> = new.history.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let shown = conversation(&json!({ "id": THREAD, "created_at": 7, "properties": new.properties }));
    assert_eq!(
        shown,
        json!({
            "id": THREAD, "object": "conversation", "created_at": 7, "metadata": { "agent": "helper", "topic": "x" },
        })
    );
    assert_eq!(conversation(&json!({ "id": THREAD, "created_at": 7 }))["metadata"], json!({}));
    assert_eq!(NewConversation::parse("").unwrap().history, Vec::<Value>::new());
    let other =
        changed(r#"{"metadata":{"a":"b"}}"#, &json!({ "mine": 1, "openai": { "metadata": { "c": "d" } } }));
    assert_eq!(other.unwrap(), json!({ "mine": 1, "openai": { "metadata": { "a": "b" } } }));
}

#[test]
fn what_is_wrong_with_a_conversation_is_named() {
    let new = |body: Value| NewConversation::parse(&body.to_string()).unwrap_err();
    let add = |body: Value| added(&body.to_string()).unwrap_err();
    for (error, field) in [
        (new(json!({ "metadata": { "a": 1 } })), "metadata"),
        (new(json!({ "items": "x" })), "items"),
        (
            new(json!({ "items": [{ "role": "user", "content": "x" }, { "type": "computer_call" }] })),
            "items[1]",
        ),
        (changed("{}", &Value::Null).unwrap_err(), "metadata"),
        (add(json!({})), "items"),
        (add(json!({ "items": [] })), "items"),
        (
            add(
                json!({ "items": [{ "role": "system", "content": "x" }, { "role": "user", "content": "x" }] }),
            ),
            "items[1]",
        ),
    ] {
        assert_eq!(error.field.as_deref(), Some(field), "{error}");
    }
    assert!(NewConversation::parse("[").is_err());
    let instructs = json!({ "items": [{ "type": "message", "role": "developer", "content": "x" }] });
    assert_eq!(added(&instructs.to_string()).unwrap(), [json!({ "role": "system", "content": "x" })]);
}
