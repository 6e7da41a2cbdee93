//! Results of calls for AG-UI clients that have their own messages for them.

use serde_json::Value;

use crate::ag_ui::events::Settings;
use crate::ag_ui::request::{HistoryLimit, Results, RunRequest};
use crate::ag_ui::tests::{input, settings, told};
use crate::openai::tests::{ended, message, reply, result, run};
use bobbin_definitions::json;

/// Results of calls that a client has.
fn held(messages: &[Value]) -> Results {
    let said = json!({ "id": "u1", "role": "user", "content": "Hi" });
    let listed: Vec<&Value> = std::iter::once(&said).chain(messages).collect();
    let body = input(json!(listed), json!({}));
    RunRequest::parse(&body).unwrap().held(HistoryLimit::All).unwrap().results
}

#[test]
fn a_reply_goes_on_behind_what_the_client_has() {
    let frames = [
        run(),
        reply("m_t_2", "One moment.", &[("c0", "work", "{}"), ("c1", "locate", "{}")]),
        result("m_t_3", "c0", "work", "done"),
        result("m_t_4", "c1", "locate", "Lisbon"),
        reply("m_t_5", "There.", &[]),
        ended("completed", "stop_on_response"),
    ];
    let settings = Settings {
        continues: Some("m_t_2".into()),
        client_tools: ["locate".to_owned()].into_iter().collect(),
        ..settings()
    };
    // The messages that it received, with the result of its own tool in its own form.
    let known = [
        json!({ "id": "m_t_3", "role": "tool", "toolCallId": "c0", "content": "of an older snapshot" }),
        json!({ "id": "mine", "role": "tool", "toolCallId": "c1", "content": "Lisbon, Portugal" }),
    ];
    let (client, _) = told(&frames, Settings { results: held(&known), ..settings.clone() });
    assert_eq!(client.messages[1..], [json!({ "id": "m_t_5", "role": "assistant", "content": "There." })]);
    // A client's message for a call of the server is not its result, unless the text is equal.
    let of_server = |text: &str| json!({ "id": "mine", "role": "tool", "toolCallId": "c0", "content": text });
    for (text, told_again) in [(r#"{"approved":true}"#, true), ("done", false)] {
        let results = held(&[of_server(text), known[1].clone()]);
        let (_, events) = told(&frames, Settings { results, ..settings.clone() });
        let results: Vec<_> = events.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT").collect();
        assert_eq!(results.iter().any(|event| event["content"] == "done"), told_again, "{text}");
        assert_eq!(results.len(), usize::from(told_again));
    }
}

#[test]
fn a_client_tool_that_was_denied_is_no_result_of_the_clients() {
    let denied = message(json!({
        "id": "m_t_3", "role": "tool", "name": "locate", "content": "Denied.", "tool_call_id": "c1", "tool_status": "error",
        "metadata": { "approval": { "id": "w_1", "decision": "deny" } },
    }));
    let frames = [run(), reply("m_t_2", "", &[("c1", "locate", "{}")]), denied, ended("completed", "why")];
    let results = held(&[json!({ "id": "mine", "role": "tool", "toolCallId": "c1", "content": "no" })]);
    let client_tools = ["locate".to_owned()].into_iter().collect();
    let (_, events) = told(&frames, Settings { results, client_tools, ..settings() });
    assert!(events.iter().any(|event| event["type"] == "TOOL_CALL_RESULT" && event["content"] == "Denied."));
}
