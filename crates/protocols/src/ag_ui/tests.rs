//! AG-UI events, derived from feeds that are live, replayed, and repeated after any frame, checked against
//! the rules that its clients enforce; and requests of clients.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::access::{Caller, Scope, Via};
use crate::ag_ui::events::{AgUi, Settings};
use crate::ag_ui::message::{DisplaySettings, messages};
use crate::ag_ui::request::{Answer, HistoryLimit, RunRequest, UserMessage, Version};
use crate::ag_ui::tanstack::with_parts;
use crate::encode::Encode;
use crate::openai::tests::{Frame, chunk, ended, event, live, message, parked, reply, run, settled};
use bobbin_definitions::error::Code;
use bobbin_definitions::json;

const USER: &str = r#"{"id":"u1","role":"user","content":"Hi"}"#;

pub(super) fn settings() -> Settings {
    Settings {
        conversation: "chat-1".into(),
        run: "run-1".into(),
        thread: "t".into(),
        reasoning: true,
        held: USER.into(),
        caller: Some(caller()),
        ..Settings::default()
    }
}

pub(super) fn caller() -> Caller {
    Caller { scope: Scope::Admin, via: Via::Key }
}

/// The state of a client, which checks its events.
#[derive(Default)]
pub(super) struct Client {
    pub(super) messages: Vec<Value>,
    open: BTreeSet<String>,
    kinds: Vec<String>,
    ends: usize,
}

impl Client {
    fn of_user() -> Client {
        Client { messages: vec![bobbin_definitions::json::from_str(USER).unwrap()], ..Client::default() }
    }

    fn of_id(&mut self, id: &str, role: &str) -> &mut Value {
        let at = self.messages.iter().position(|message| message["id"] == id).unwrap_or_else(|| {
            self.messages.push(json!({ "id": id, "role": role, "content": "" }));
            self.messages.len() - 1
        });
        &mut self.messages[at]
    }

    fn append(&mut self, id: &str, delta: &str) {
        assert!(!delta.is_empty());
        let message = self.messages.iter_mut().find(|message| message["id"] == id).unwrap();
        message["content"] = format!("{}{delta}", message["content"].as_str().unwrap()).into();
    }

    fn begins(&mut self, kind: &str, id: &str) {
        assert!(!self.open.contains(&format!("{kind} {id}")), "{kind} {id} is open");
        self.open.insert(format!("{kind} {id}"));
    }

    fn ends(&mut self, kind: &str, id: &str) {
        assert!(self.open.remove(&format!("{kind} {id}")), "{kind} {id} is not open");
    }

    fn reason(&mut self, kind: &str, id: &str, delta: &str) {
        match kind {
            "REASONING_START" => self.begins("span", id),
            "REASONING_END" => self.ends("span", id),
            "REASONING_MESSAGE_START" => {
                self.begins("reasoning", id);
                self.of_id(id, "reasoning");
            }
            "REASONING_MESSAGE_CONTENT" => {
                assert!(self.open.contains(&format!("reasoning {id}")));
                self.append(id, delta);
            }
            "REASONING_MESSAGE_END" => self.ends("reasoning", id),
            other => panic!("{other}"),
        }
    }

    fn take(&mut self, event: &Value) {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let (kind, id, call) = (text("type"), text("messageId"), text("toolCallId"));
        assert_eq!(self.kinds.is_empty(), kind == "RUN_STARTED", "{kind}");
        assert_eq!(self.ends, 0, "{kind} behind the end");
        match kind.as_str() {
            "TEXT_MESSAGE_START" => {
                self.begins("text", &id);
                self.of_id(&id, "assistant");
            }
            "TEXT_MESSAGE_CONTENT" => {
                assert!(self.open.contains(&format!("text {id}")));
                self.append(&id, &text("delta"));
            }
            "TEXT_MESSAGE_END" => self.ends("text", &id),
            reasons if reasons.starts_with("REASONING") => self.reason(reasons, &id, &text("delta")),
            "STEP_STARTED" => self.begins("step", &text("stepName")),
            "STEP_FINISHED" => self.ends("step", &text("stepName")),
            "TOOL_CALL_START" => {
                self.begins("call", &call);
                let made = json!({ "id": call, "type": "function", "function": { "name": text("toolCallName"), "arguments": "" } });
                let message = self.of_id(&text("parentMessageId"), "assistant");
                match message.get_mut("toolCalls").and_then(Value::as_array_mut) {
                    Some(calls) => calls.push(made),
                    None => message["toolCalls"] = json!([made]),
                }
            }
            "TOOL_CALL_ARGS" => {
                assert!(self.open.contains(&format!("call {call}")));
                let calls = self.messages.iter_mut().filter_map(|message| message.get_mut("toolCalls"));
                let mut calls = calls.filter_map(Value::as_array_mut).flatten();
                let made = calls.find(|made| made["id"] == call).unwrap();
                made["function"]["arguments"] = text("delta").into();
            }
            "TOOL_CALL_END" => self.ends("call", &call),
            "TOOL_CALL_RESULT" => {
                let message =
                    json!({ "id": id, "role": "tool", "toolCallId": call, "content": text("content") });
                self.messages.push(message);
            }
            "MESSAGES_SNAPSHOT" => {
                let open: Vec<_> = self.open.iter().filter(|open| !open.starts_with("step")).collect();
                assert!(open.is_empty(), "{open:?} while all is told anew");
                self.messages = event["messages"].as_array().unwrap().clone();
            }
            "RUN_FINISHED" | "RUN_ERROR" => {
                assert!(self.open.is_empty(), "{:?}", self.open);
                self.ends += 1;
            }
            "RUN_STARTED" | "STATE_SNAPSHOT" | "STATE_DELTA" | "CUSTOM" => {}
            other => panic!("{other}"),
        }
        self.kinds.push(kind);
    }
}

fn events_of(frames: &[Frame], settings: Settings) -> Vec<Value> {
    let text = pushed(&mut AgUi::new(settings), frames, &Map::new());
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|json| bobbin_definitions::json::from_str(json).unwrap())
        .collect()
}

/// The events of frames, for a client of a thread with these values.
pub(super) fn pushed(encoder: &mut AgUi, frames: &[Frame], values: &Map<String, Value>) -> String {
    let mut text = String::new();
    for frame in frames {
        text.push_str(&encoder.push(&event(frame)).unwrap());
        while let Some(asked) = encoder.asks() {
            let asked: Value = bobbin_definitions::json::from_str(asked.lines().next().unwrap()).unwrap();
            let query = &asked["query"];
            let key = values.keys().find(|key| *query == json!([["key", key]]));
            let listed = values.iter().map(|(key, value)| json!({ "key": key, "value": value }));
            let (status, answer) = match key {
                Some(key) => (200, json!({ "key": key, "value": values[key] })),
                None if query.to_string().contains("limit") => {
                    (200, json!({ "values": listed.collect::<Vec<_>>() }))
                }
                None => (404, json!({ "error": { "code": "not_found" } })),
            };
            text.push_str(&encoder.answered(status, &answer.to_string()).unwrap());
        }
    }
    text
}

pub(super) fn told(frames: &[Frame], settings: Settings) -> (Client, Vec<Value>) {
    let events = events_of(frames, settings);
    let mut client = Client::of_user();
    events.iter().for_each(|event| client.take(event));
    (client, events)
}

fn whole() -> Vec<Value> {
    vec![
        json!({ "id": "u1", "role": "user", "content": "Hi" }),
        json!({ "id": "m_t_2", "role": "assistant", "content": "Grüße", "toolCalls": [
            { "id": "c1", "type": "function", "function": { "name": "work", "arguments": "{\"n\":1}" } } ] }),
        json!({ "id": "m_t_3", "role": "tool", "toolCallId": "c1", "content": "done" }),
        json!({ "id": "m_t_5", "role": "assistant", "content": "日本" }),
    ]
}

#[test]
fn a_run_is_told_as_clients_want_it_and_what_was_lost_is_taken_back() {
    let (client, events) = told(&live(), settings());
    assert_eq!(client.messages, whole());
    assert_eq!(client.kinds.iter().filter(|kind| *kind == "MESSAGES_SNAPSHOT").count(), 1);
    let first = &events[0];
    assert_eq!((&first["threadId"], &first["runId"]), (&json!("chat-1"), &json!("run-1")));
    let ours = events.iter().filter(|event| event["name"] == "bobbin.run").collect::<Vec<_>>();
    assert_eq!(ours.len(), 1);
    assert_eq!(ours[0]["value"], json!({ "threadId": "t", "run": "r_1" }));
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["outcome"]["type"]), (&json!("RUN_FINISHED"), &json!("success")));
    assert_eq!(last["usage"][0]["totalTokens"], 10);
    let (settled, _) = told(&settled(), settings());
    assert_eq!(settled.messages, whole(), "long after");
}

#[test]
fn a_feed_that_is_opened_anew_anywhere_tells_nothing_twice() {
    let live = live();
    for cut in 1..live.len() {
        // After a reconnect the first frame may be one that the client has.
        let mut frames = live[..cut].to_vec();
        frames.extend_from_slice(&live[cut - 1..]);
        if cut == 1 {
            frames.remove(0);
        }
        let (client, _) = told(&frames, settings());
        assert_eq!(client.messages, whole(), "behind {cut}");
    }
}

#[test]
fn who_asks_again_forgets_what_it_has_of_the_reply() {
    let (_, events) = told(&settled(), Settings { afresh: true, ..settings() });
    assert_eq!(events[1], json!({ "type": "MESSAGES_SNAPSHOT", "messages": [whole()[0]] }));
}

#[test]
fn reasoning_is_a_message_of_its_own_and_anew_after_a_loss() {
    let reasons =
        |text: &str| ("reasoning_chunk", json!({ "message_id": "m_t_2", "depth": 0, "chunk": text }));
    let frames = [
        run(),
        reasons("Let me "),
        reasons("see."),
        ("message_reset", json!({ "message_id": "m_t_2", "attempt": 2 })),
        reasons("So."),
        chunk("m_t_2", 2, 0, "Yes"),
        reply("m_t_2", "Yes", &[]),
        ended("completed", "stop_on_response"),
    ];
    let (client, _) = told(&frames, settings());
    let said: Vec<_> =
        client.messages[1..].iter().map(|message| (&message["id"], &message["content"])).collect();
    assert_eq!(
        said,
        [
            (&json!("m_t_2:reasoning"), &json!("Let me see.")),
            (&json!("m_t_2:reasoning:2"), &json!("So.")),
            (&json!("m_t_2"), &json!("Yes")),
        ]
    );
}

#[test]
fn a_conversation_that_is_too_long_to_be_kept_is_not_told_anew() {
    let long = json!({ "id": "u1", "role": "user", "content": "x".repeat(1 << 20) }).to_string();
    let (client, _) = told(&live(), Settings { held: long, ..settings() });
    let said = client.messages.iter().skip(3).map(|message| (&message["id"], &message["content"]));
    let said: Vec<_> = said.collect();
    assert_eq!(
        said,
        [(&json!("m_t_5"), &json!("lost")), (&json!("m_t_5:2"), &json!("日本"))],
        "what was lost stays, and the other is whole"
    );
    assert!(!client.kinds.iter().any(|kind| kind == "MESSAGES_SNAPSHOT"));
}

#[test]
fn what_people_are_asked_is_an_interrupt_and_what_is_left_to_the_client_is_pending() {
    let calls: &[(&str, &str, &str)] = &[("c1", "pay", "{}")];
    let (_, events) = told(&[run(), reply("m_t_2", "", calls), parked("approval", "c1")], settings());
    let last = events.last().unwrap();
    assert_eq!(last["outcome"]["type"], "interrupt");
    let asked = &last["outcome"]["interrupts"][0];
    assert_eq!(
        (&asked["id"], &asked["reason"], &asked["toolCallId"]),
        (&json!("w_c1"), &json!("tool_call"), &json!("c1"))
    );
    assert_eq!(asked["responseSchema"]["required"], json!(["approved"]));
    let mark = &asked["metadata"]["tanstack:interruptBinding"];
    assert_eq!((&mark["interruptId"], &mark["interruptedRunId"]), (&json!("w_c1"), &json!("run-1")));
    let kinds: Vec<_> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds[kinds.len() - 2], "MESSAGES_SNAPSHOT", "they have all of it before they are asked");

    let frames = [run(), reply("m_t_2", "", calls), parked("client_tool", "c1")];
    for (version, outcome) in [
        (Version::From1, json!({ "type": "success", "pendingToolCallIds": ["c1"] })),
        (Version::Before1, json!({ "type": "success" })),
    ] {
        let (_, events) = told(&frames, Settings { version, ..settings() });
        assert_eq!(events.last().unwrap()["outcome"], outcome, "{version:?}");
    }
}

#[test]
fn ends_are_told_as_what_they_are() {
    let begun = [run(), chunk("m_t_2", 1, 0, "words")];
    let end = |outcome: &str| {
        let frames: Vec<Frame> = begun.iter().cloned().chain([ended(outcome, "why")]).collect();
        told(&frames, Settings { version: Version::From1, ..settings() }).1.pop().unwrap()
    };
    assert_eq!(end("stopped")["outcome"]["type"], "cancelled");
    let frames: Vec<Frame> = begun.iter().cloned().chain([ended("stopped", "why")]).collect();
    assert_eq!(
        told(&frames, settings()).1.pop().unwrap().get("outcome"),
        None,
        "earlier clients know no such end"
    );
    let failed = end("failed");
    assert_eq!(
        (&failed["type"], &failed["code"], &failed["message"]),
        (&json!("RUN_ERROR"), &json!("why"), &json!("It went wrong."))
    );
    let joined = message(json!({ "id": "m_t_4", "role": "user", "content": "And?" }));
    let (client, _) = told(&[run(), reply("m_t_2", "Yes", &[]), joined], settings());
    assert_eq!(client.ends, 1, "what follows answers another message");
}

/// A frame about a changed value.
fn changed(key: &str) -> Frame {
    let data = json!({ "key": key, "deleted": false, "updated_at": 1 });
    ("event", json!({ "eventType": "kv_changed", "depth": 0, "data": data }))
}

fn events_in(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|json| bobbin_definitions::json::from_str(json).unwrap())
        .collect()
}

#[test]
fn values_are_the_state_and_what_changes_is_a_patch_of_it() {
    let mut encoder = AgUi::new(settings());
    let mut values = Map::new();
    values.insert("a/b~c".into(), json!({ "n": 1 }));
    values.insert("kept".into(), json!(true));
    let begun = events_in(&pushed(&mut encoder, &[run()], &values));
    assert_eq!(begun[0]["type"], "RUN_STARTED");
    assert_eq!(begun[1], json!({ "type": "STATE_SNAPSHOT", "snapshot": values }), "before anything is said");
    assert_eq!((begun.len(), &begun[2]["name"]), (3, &json!("bobbin.run")));
    let mut change = |frame: &str, values: &Map<String, Value>| {
        events_in(&pushed(&mut encoder, &[changed(frame)], values))
            .first()
            .map(|event| event["delta"].clone())
    };
    values.insert("new".into(), json!([1]));
    assert_eq!(change("new", &values), Some(json!([{ "op": "add", "path": "/new", "value": [1] }])));
    assert_eq!(change("new", &values), None, "it is what the client knows");
    values.insert("a/b~c".into(), json!(2));
    assert_eq!(change("a/b~c", &values), Some(json!([{ "op": "replace", "path": "/a~1b~0c", "value": 2 }])));
    values.remove("a/b~c");
    assert_eq!(change("a/b~c", &values), Some(json!([{ "op": "remove", "path": "/a~1b~0c" }])));
    assert_eq!(change("unknown", &values), None);
}

#[test]
fn the_end_waits_for_what_has_changed_before_it() {
    let mut encoder = AgUi::new(settings());
    let began = pushed(&mut encoder, &[run()], &Map::new());
    assert!(began.contains("STATE_SNAPSHOT"));
    let frames: String =
        [changed("n"), reply("m_t_2", "Hi", &[]), ended("completed", "why")].iter().map(event).collect();
    let text = encoder.push(&frames).unwrap();
    assert!(text.contains("Hi") && !text.contains("RUN_FINISHED") && !encoder.is_over(), "{text}");
    assert!(encoder.asks().is_some() && encoder.asks().is_none(), "it is asked once");
    let rest = events_in(&encoder.answered(200, r#"{"key":"n","value":5}"#).unwrap());
    let kinds: Vec<_> = rest.iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds, ["STATE_DELTA", "RUN_FINISHED"]);
    assert!(encoder.is_over() && encoder.asks().is_none());
}

#[test]
fn what_was_said_before_the_values_are_known_comes_behind_them() {
    let mut encoder = AgUi::new(settings());
    let first = encoder.push(&settled().iter().map(event).collect::<String>()).unwrap();
    assert_eq!(events_in(&first).len(), 1, "{first}");
    assert!(encoder.asks().is_some());
    let rest = events_in(&encoder.answered(200, r#"{"values":[]}"#).unwrap());
    assert_eq!(
        (&rest[0]["type"], &rest.last().unwrap()["type"]),
        (&json!("STATE_SNAPSHOT"), &json!("RUN_FINISHED"))
    );
    assert!(encoder.answered(500, "").is_err(), "what cannot be read breaks the answer");
}

#[test]
fn where_very_much_changes_all_is_read_anew() {
    let mut encoder = AgUi::new(settings());
    let mut values = Map::new();
    pushed(&mut encoder, &[run()], &values);
    values.insert("k7".into(), json!(7));
    let frames: String = (0..300).map(|n| event(&changed(&format!("k{n}")))).collect();
    let mut text = encoder.push(&frames).unwrap();
    text.push_str(&pushed(&mut encoder, &[ended("completed", "why")], &values));
    let kinds: Vec<_> = events_in(&text).iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds, ["STATE_SNAPSHOT", "RUN_FINISHED"]);
}

#[test]
fn what_tools_tell_comes_under_their_own_names() {
    let found = ("event", json!({ "eventType": "found", "depth": 0, "data": { "n": 2 } }));
    let (_, events) = told(&[run(), found, ended("completed", "why")], settings());
    assert_eq!((&events[3]["name"], &events[3]["value"]), (&json!("found"), &json!({ "n": 2 })));
}

#[test]
fn the_history_is_what_the_stream_has_told() {
    let rows: Vec<Value> = settled()
        .iter()
        .filter(|(kind, _)| *kind == "message_data")
        .map(|(_, frame)| frame["data"].clone())
        .collect();
    let user = json!({ "id": "m_t_1", "role": "user", "content": "Hi", "metadata": { "ag_ui": { "messages": ["u0", "u1"] } } });
    let rows: Vec<Value> = std::iter::once(user).chain(rows).collect();
    assert_eq!(messages(&rows, &DisplaySettings::default()), whole());
}

#[test]
fn parts_have_results_with_their_calls_and_reasoning_with_its_reply() {
    let messages = [
        json!({ "id": "u1", "role": "user", "content": [ { "type": "text", "text": "Hi" }, { "type": "image", "source": {} } ] }),
        json!({ "id": "r1", "role": "reasoning", "content": "Hm." }),
        json!({ "id": "a1", "role": "assistant", "content": "", "toolCalls": [
            { "id": "c1", "type": "function", "function": { "name": "work", "arguments": "{\"n\":1}" } },
            { "id": "c2", "type": "function", "function": { "name": "work", "arguments": "{" } } ] }),
        json!({ "id": "t1", "role": "tool", "toolCallId": "c1", "content": "[1]" }),
        json!({ "id": "t2", "role": "tool", "toolCallId": "c2", "content": "no", "error": "no" }),
        json!({ "id": "t3", "role": "tool", "toolCallId": "unknown", "content": "" }),
        json!({ "id": "r2", "role": "reasoning", "content": "Left." }),
        json!({ "id": "u2", "role": "user", "content": "And?" }),
    ];
    let wanted = [
        json!({ "id": "u1", "role": "user", "parts": [ { "type": "text", "content": "Hi" }, { "type": "image", "source": {} } ] }),
        json!({ "id": "a1", "role": "assistant", "parts": [
            { "type": "thinking", "content": "Hm.", "stepId": "a1" },
            { "type": "tool-call", "id": "c1", "name": "work", "arguments": "{\"n\":1}", "state": "complete", "input": { "n": 1 }, "output": [1] },
            { "type": "tool-call", "id": "c2", "name": "work", "arguments": "{", "state": "error", "output": "no" },
            { "type": "tool-result", "toolCallId": "c1", "content": "[1]", "state": "complete" },
            { "type": "tool-result", "toolCallId": "c2", "content": "no", "state": "error", "error": "no" } ] }),
        json!({ "id": "r2", "role": "assistant", "parts": [ { "type": "thinking", "content": "Left.", "stepId": "r2" } ] }),
        json!({ "id": "u2", "role": "user", "parts": [ { "type": "text", "content": "And?" } ] }),
    ];
    assert_eq!(with_parts(&messages), wanted);
}

pub(super) fn input(messages: Value, more: Value) -> String {
    let mut body = json!({ "threadId": "chat-1", "runId": "run-1", "state": {}, "messages": messages, "tools": [],
        "context": [], "forwardedProps": {} });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body.to_string()
}

#[test]
fn only_what_comes_behind_the_last_answer_is_new() {
    let body = input(
        json!([
            { "id": "s", "role": "system", "content": "Be brief." },
            { "id": "u1", "role": "user", "content": "Hi" },
            { "id": "r", "role": "reasoning", "content": "Hm." },
            { "id": "a1", "role": "assistant", "toolCalls": [ { "id": "c1", "type": "function", "function": { "name": "work", "arguments": "{}" } } ] },
            { "id": "t1", "role": "tool", "toolCallId": "c1", "content": "done" },
            { "id": "a2", "role": "assistant", "content": "Hello" },
            { "id": "u2", "role": "user", "content": [ { "type": "text", "text": "And this?" },
                { "type": "image", "source": { "type": "data", "value": "aGk=", "mimeType": "image/png" } } ] },
        ]),
        json!({ "context": [ { "description": "Page", "value": "cart" } ], "forwardedProps": { "a": 1 } }),
    );
    let request = RunRequest::parse(&body).unwrap();
    let files = vec![json!({ "name": "image.png", "mimeType": "image/png", "data": "aGk=" })];
    assert_eq!(request.said, [UserMessage { id: "u2".into(), text: "And this?".into(), files }]);
    assert!(request.answers.is_empty());
    let held = request.held(HistoryLimit::All).unwrap();
    assert_eq!(
        (held.results.has("c1", "t1", ""), held.results.has("c1", "t2", "done"), held.afresh),
        (true, true, false)
    );
    let held = request.held(HistoryLimit::Reply("a1")).unwrap();
    assert!(held.afresh, "what is behind its results is told again");
    assert!(held.messages.contains(r#""id":"t1""#) && !held.messages.contains(r#""id":"a2""#));
    let roles: Vec<Value> =
        request.history().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user", "assistant"]);
    assert!(request.context.unwrap().contains("- Page: cart"));
    assert_eq!(request.forwarded, Some(json!({ "a": 1 })));
}

#[test]
fn answers_come_beside_the_messages_and_nothing_new_asks_again() {
    let said = json!([
        { "id": "u1", "role": "user", "content": "Hi" },
        { "id": "a1", "role": "assistant", "content": "Where are y" },
    ]);
    let body = input(said.clone(), json!({}));
    let again = RunRequest::parse(&body).unwrap();
    assert!(again.said.is_empty() && again.answers.is_empty());
    let held = again.held(HistoryLimit::LastSaid).unwrap();
    let only: Value = bobbin_definitions::json::from_str(&held.messages).unwrap();
    assert_eq!((&only["id"], held.afresh), (&json!("u1"), true), "without what was left half");
    let mut done = said.clone();
    done.as_array_mut()
        .unwrap()
        .push(json!({ "id": "t", "role": "tool", "toolCallId": "c1", "content": "", "error": "no" }));
    let body = input(
        done,
        json!({ "resume": [ { "interruptId": "w_1", "status": "resolved", "payload": { "approved": true } },
            { "interruptId": "w_2", "status": "cancelled" } ] }),
    );
    let request = RunRequest::parse(&body).unwrap();
    assert_eq!(
        request.answers,
        [
            Answer::Result { call: "c1".into(), output: "no".into(), failed: true },
            Answer::Interrupt { wait: "w_1".into(), payload: Some(json!({ "approved": true })) },
            Answer::Interrupt { wait: "w_2".into(), payload: None },
        ]
    );
    assert_eq!(request.held(HistoryLimit::All).unwrap().messages.matches("\"id\"").count(), 3);
}

#[test]
fn what_is_wrong_is_named() {
    let user = |content: Value| json!([{ "id": "u1", "role": "user", "content": content }]);
    let link =
        json!([{ "type": "image", "source": { "type": "url", "value": "https://example.com/a.png" } }]);
    for (body, field) in [
        (r#"{"runId":"r","messages":[]}"#.to_owned(), "threadId"),
        (r#"{"threadId":"t","messages":[]}"#.to_owned(), "runId"),
        (r#"{"threadId":"t","runId":"r"}"#.to_owned(), "messages"),
        (input(user(link), json!({})), "messages[0].content"),
        (input(user(json!([{ "type": "binary" }])), json!({})), "messages[0].content"),
        (input(json!([{ "id": "u", "role": "robot", "content": "" }]), json!({})), "messages[0].role"),
        (input(json!([{ "role": "user", "content": "Hi" }]), json!({})), "messages[0].id"),
        (input(json!([]), json!({ "runId": "r".repeat(201) })), "runId"),
        (input(json!([]), json!({ "forwardedProps": { "a": "x".repeat(70_000) } })), "forwardedProps"),
    ] {
        let error = RunRequest::parse(&body).unwrap_err();
        assert_eq!(error.field.as_deref(), Some(field), "{}", error.message);
    }
    assert_eq!(RunRequest::parse("{").unwrap_err().code, Code::BadJson);
}
