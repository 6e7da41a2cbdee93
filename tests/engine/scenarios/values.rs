//! Values, from clients and from tools; and what else a tool does in its thread.

use bobbin::definitions::message::ToolResult;
use bobbin::engine::{NativeCall, NewMessage};
use bobbin::host::Filter;
use bobbin::request::{Query, ThreadRoute};
use bobbin::{Code, limits};
use futures::FutureExt;
use serde_json::{Value, json};

use super::{clerk, story, with_work};
use crate::host::{Native, SECOND_US};
use crate::sim::{Seen, Sim};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![kept(), telling(), ending(), counting(4)]
}

async fn post(sim: &Sim, body: Value) -> Seen {
    sim.insist(ThreadRoute::PostValue, &[], None, body.to_string()).await
}

async fn set(sim: &Sim, key: &str, value: Value) {
    let seen = post(sim, json!({ "key": key, "value": value })).await;
    assert_eq!((seen.status, &seen.body["deleted"]), (200, &json!(value.is_null())), "{}", seen.body);
}

/// One value; `null` when there is none.
async fn value(sim: &Sim, key: &str) -> Value {
    let seen = sim.insist(ThreadRoute::GetValues, &[("key", key)], None, String::new()).await;
    assert!(matches!(seen.status, 200 | 404), "{}", seen.body);
    seen.body["value"].clone()
}

async fn page(sim: &Sim, query: &[(&str, &str)]) -> Value {
    sim.get(ThreadRoute::GetValues, query).await
}

fn keys(page: &Value) -> Vec<&str> {
    page["values"].as_array().unwrap().iter().map(|value| value["key"].as_str().unwrap()).collect()
}

/// A tool that is a function of its call.
fn does(act: impl Fn(&NativeCall) -> ToolResult + Clone + 'static) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let act = act.clone();
        sim.world.outside.native("work", move |call, _| Native::Gives(SECOND_US, act(call)));
    }
}

/// The same, with no await between the act and its result.
fn acts(act: impl Fn(&NativeCall) -> ToolResult + Clone + 'static) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let act = act.clone();
        sim.world.outside.native("work", move |call, _| {
            let (act, call) = (act.clone(), call.clone());
            Native::Acts(Box::new(move || act(&call)))
        });
    }
}

/// A tool that counts in a value how often it ran.
fn counts(call: &NativeCall) -> ToolResult {
    let before: i64 = call.state.get_value("count").unwrap().unwrap_or(0);
    call.state.set_value("count", &(before + 1)).unwrap();
    ToolResult::success(format!("{}", before + 1))
}

fn kept() -> Scenario {
    Scenario::new("values", &with_work()).says(clerk).setup(does(counts)).drive(|sim| async move {
        set(&sim, "a", json!({ "b": [1, "two", null, 2.5] })).await;
        set(&sim, "gone", json!(true)).await;
        sim.ask("use work").await;
        set(&sim, "gone", Value::Null).await;
        let seen = post(&sim, json!({ "key": "new", "value": 1, "previousKey": "a" })).await;
        assert_eq!(seen.status, 200);
        sim.ask("use work").await;
        let counted = value(&sim, "count").await.as_i64().unwrap_or(0);
        // A tool that ran may have been lost before it wrote; one that gave a result has written.
        let executions = sim.world.outside.executions.borrow().len() as i64;
        let results = sim.history().await.iter().filter(|m| m["tool_status"] == "success").count() as i64;
        assert!(results <= counted && counted <= executions, "{results} {counted} {executions}");
        assert_eq!((value(&sim, "gone").await, value(&sim, "a").await), (Value::Null, Value::Null));
        let listed = page(&sim, &[]).await;
        let expected: &[&str] = if counted > 0 { &["count", "new"] } else { &["new"] };
        assert_eq!((keys(&listed), &listed["total"]), (expected.to_vec(), &json!(expected.len())));
    })
}

#[test]
fn a_value_that_was_accepted_is_kept_whatever_fails() {
    kept().sweep();
}

/// A tool that queues a message and injects another.
fn tells(call: &NativeCall) -> ToolResult {
    let queued = call.state.queue_message(NewMessage::user("more")).unwrap();
    let silent = NewMessage { silent: true, ..NewMessage::user("aside") };
    let injected = call.state.inject_message(silent).now_or_never().unwrap().unwrap();
    assert_eq!(call.state.get_message(&injected).unwrap().unwrap()["content"], "aside");
    assert!(call.state.delete_message(&injected).unwrap() && !call.state.delete_message(&injected).unwrap());
    call.state.update_message(&queued, "more!").now_or_never().unwrap().unwrap();
    ToolResult::success("told")
}

fn telling() -> Scenario {
    Scenario::new("a tool that writes messages", &with_work())
        .says(|request| match request.last_user() {
            "use work" => clerk(request),
            _ => crate::host::Say::text("done"),
        })
        .setup(does(tells))
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, history| {
            let told = history.texts("tool").iter().filter(|text| **text == "told").count();
            let more = history.texts("user").iter().filter(|text| text.starts_with("more")).count();
            assert!(told <= more && more <= 1, "{told} results, {more} messages");
            if told == 1 {
                let requests = sim.world.outside.requests.borrow();
                assert!(requests.last().unwrap().texts("user").contains(&"more!"));
            }
        })
}

#[test]
fn a_tool_that_writes_messages_writes_them_once() {
    telling().sweep();
}

/// A tool that terminates its own thread, twice.
fn ending() -> Scenario {
    Scenario::new("a tool that terminates", &with_work())
        .says(clerk)
        .setup(acts(|call| {
            let page = call.state.get_messages(&Query(vec![("limit".into(), "1".into())])).unwrap();
            assert_eq!((&page["total"], &page["messages"][0]["role"]), (&json!(2), &json!("assistant")));
            call.state.set_value("last words", "bye").unwrap();
            call.state.terminate().unwrap();
            call.state.terminate().unwrap();
            assert_eq!(call.state.set_value("more", &1).unwrap_err().code, Code::Terminated);
            assert_eq!(call.state.queue_message(NewMessage::user("x")).unwrap_err().code, Code::Terminated);
            ToolResult::success("nobody reads this")
        }))
        .drive(|sim| async move {
            sim.ask("use work").await;
            // It may have been lost before it came to that, and is then not run again.
            if sim.get(ThreadRoute::Get, &[]).await["thread"]["terminated"].is_null() {
                assert!(!sim.world.faults.borrow().fired.is_empty());
            } else {
                assert_eq!(value(&sim, "last words").await, "bye");
            }
        })
        .terms(|terms| terms.outcomes = vec!["stopped", "completed"])
        .check(|sim, history| {
            assert!(!history.texts("tool").contains(&"nobody reads this"));
            let log = sim.world.log.borrow();
            assert!(history.faults > 0 || log.is_empty(), "nothing went wrong: {log:?}");
        })
}

#[test]
fn a_tool_may_end_its_own_thread() {
    ending().sweep();
}

#[test]
fn caps_are_named() {
    story("caps")
        .drive(|sim| async move {
            let key = |bytes: usize| "k".repeat(bytes);
            set(&sim, &key(limits::VALUE_KEY_BYTES), json!(1)).await;
            // A text takes two quotes more as JSON.
            let largest = "v".repeat(limits::VALUE_BYTES - 2);
            set(&sim, "large", json!(largest)).await;
            assert_eq!(value(&sim, "large").await, largest);
            for (body, field, says) in [
                (json!({ "key": key(513), "value": 1 }), "key", "513 bytes; the limit is 512"),
                // Bytes, not characters.
                (json!({ "key": "ü".repeat(257), "value": 1 }), "key", "514 bytes"),
                (
                    json!({ "key": "v", "value": format!("{largest}v") }),
                    "value",
                    "1000001 bytes as JSON; the limit is 1000000",
                ),
                (json!({ "key": "", "value": 1 }), "key", "must not be empty"),
                (json!({ "value": 1 }), "key", "required"),
                (json!({ "key": "v" }), "value", "required"),
                (json!({ "key": 1, "value": 1 }), "key", "must be a string"),
            ] {
                let seen = post(&sim, body).await;
                let error = &seen.body["error"];
                assert!(matches!(seen.status, 400 | 413), "{error}");
                assert!(
                    error["field"] == field && error["message"].as_str().unwrap().contains(says),
                    "{error}"
                );
            }
            for text in [r#"{"key":"v","value":NaN}"#, r#"{"key":"v","value":-Infinity}"#] {
                let seen = sim.insist(ThreadRoute::PostValue, &[], None, text.into()).await;
                assert_eq!(
                    (seen.status, &seen.body["error"]["code"]),
                    (400, &json!("bad_json")),
                    "{}",
                    seen.body
                );
                assert!(seen.body["error"]["message"].as_str().unwrap().contains("no JSON"), "{}", seen.body);
            }
            assert_eq!(page(&sim, &[]).await["total"], 2);
        })
        .calm();
}

#[test]
fn a_thread_holds_so_many_values() {
    story("many values")
        .setup(does(|call| {
            for n in 0..limits::VALUES {
                call.state.set_value(&format!("k{n:05}"), &n).unwrap();
            }
            let error = call.state.set_value("one more", &1).unwrap_err();
            assert!(error.message.contains("10000"), "{error}");
            call.state.set_value("k00000", "as many as before").unwrap();
            let error = call.state.set_value("k00000", &[1.0, f64::NAN]).unwrap_err();
            assert!(error.message.contains("NaN is no JSON value"), "{error}");
            assert_eq!(call.state.get_value("k00000").unwrap(), Some("as many as before".to_owned()));
            assert_eq!(call.state.get_value::<i64>("none").unwrap(), None);
            assert!(call.state.get_value::<i64>("k00000").unwrap_err().message.contains("k00000"));
            ToolResult::success("full")
        }))
        .drive(|sim| async move {
            sim.ask("use work").await;
            sim.evict().await;
            assert_eq!(post(&sim, json!({ "key": "one more", "value": 1 })).await.status, 413);
            set(&sim, "k00001", Value::Null).await;
            set(&sim, "one more", json!(1)).await;
            assert_eq!(post(&sim, json!({ "key": "and more", "value": 1 })).await.status, 413);
        })
        .calm();
}

#[test]
fn values_are_listed_in_pages() {
    story("pages")
        .drive(|sim| async move {
            for key in ["a", "b/1", "b/2\u{0}x", "b/3", "c", "ü"] {
                set(&sim, key, json!(key)).await;
            }
            let all = page(&sim, &[]).await;
            assert_eq!(keys(&all), ["a", "b/1", "b/2\u{0}x", "b/3", "c", "ü"]);
            assert_eq!((&all["values"][1]["size"], &all["cursor"]), (&json!(5), &Value::Null));
            let of_b = page(&sim, &[("prefix", "b/")]).await;
            assert_eq!((keys(&of_b).len(), &of_b["total"]), (3, &json!(3)));
            assert_eq!(keys(&page(&sim, &[("prefix", "b/2\u{0}")]).await), ["b/2\u{0}x"]);
            assert_eq!(keys(&page(&sim, &[("search", "/")]).await).len(), 3);
            assert_eq!(keys(&page(&sim, &[("offset", "4")]).await), ["c", "ü"]);
            assert!(keys(&page(&sim, &[("limit", "0")]).await).is_empty());
            let mut seen = Vec::new();
            let mut cursor = String::new();
            loop {
                let next = page(&sim, &[("limit", "2"), ("prefix", ""), ("cursor", &cursor)]).await;
                seen.extend(keys(&next).into_iter().map(str::to_owned));
                match next["cursor"].as_str() {
                    Some(text) => cursor = text.to_owned(),
                    None => break,
                }
            }
            assert_eq!(seen, ["a", "b/1", "b/2\u{0}x", "b/3", "c", "ü"]);
            let wrong = sim.insist(ThreadRoute::GetValues, &[("cursor", "!")], None, String::new()).await;
            assert_eq!((wrong.status, &wrong.body["error"]["code"]), (400, &json!("bad_cursor")));
            // Large values: a page ends before it is too large, and the next one goes on.
            for n in 0..6 {
                set(&sim, &format!("large{n}"), json!("v".repeat(225_000))).await;
            }
            let first = page(&sim, &[("prefix", "large")]).await;
            let second =
                page(&sim, &[("prefix", "large"), ("cursor", first["cursor"].as_str().unwrap())]).await;
            assert_eq!((keys(&first).len(), keys(&second).len(), &second["cursor"]), (4, 2, &Value::Null));
        })
        .calm();
}

#[test]
fn listeners_are_told_of_changes() {
    story("kv_changed")
        .setup(does(|call| {
            call.state.set_value("by a tool", &1).unwrap();
            call.state.emit("progress", json!({ "done": 0.5 }));
            let identity = call.state.identity().unwrap();
            assert_eq!((identity.agent_id.as_str(), identity.terminated_us), ("helper", None));
            ToolResult::success("")
        }))
        .drive(|sim| async move {
            let listener = sim.listen(Filter::default(), None).await.unwrap();
            set(&sim, "a", json!(1)).await;
            post(&sim, json!({ "key": "b", "value": 2, "previousKey": "a" })).await;
            let gone = sim.insist(ThreadRoute::DeleteValue, &[("key", "b")], None, String::new()).await;
            assert_eq!((gone.status, gone.body), (204, Value::Null));
            sim.ask("use work").await;
            let frames = listener.frames.borrow();
            let events: Vec<String> = frames
                .iter()
                .filter(|frame| frame.kind == "event")
                .map(|frame| {
                    let data = &frame.data["data"];
                    format!("{} {} {}", frame.data["eventType"], data["key"], data["deleted"])
                })
                .collect();
            let changed = |key: &str, deleted: bool| format!("\"kv_changed\" \"{key}\" {deleted}");
            assert_eq!(
                events,
                [
                    changed("a", false),
                    changed("a", true),
                    changed("b", false),
                    changed("b", true),
                    changed("by a tool", false),
                    "\"progress\" null null".to_owned(),
                ]
            );
        })
        .calm();
}

#[test]
fn a_terminated_thread_keeps_its_values_and_takes_no_more() {
    story("terminated")
        .drive(|sim| async move {
            set(&sim, "a", json!(1)).await;
            sim.terminate().await;
            let seen = post(&sim, json!({ "key": "a", "value": 2 })).await;
            assert_eq!((seen.status, &seen.body["error"]["code"]), (409, &json!("terminated")));
            assert_eq!(value(&sim, "a").await, 1);
        })
        .calm();
}

#[test]
fn what_is_nested_too_deep_is_refused_and_a_damaged_value_hides_no_other() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let (deepest, deeper) = (nested(limits::JSON_DEPTH), nested(limits::JSON_DEPTH + 1));
    let by_tool = deeper.clone();
    story("nesting")
        .define(|catalog| {
            catalog["effects"] = json!({ "ring": { "description": "Rings.", "run": { "native": "ring" } } });
        })
        .setup(does(move |call| {
            let error = call.state.set_value("deep", &by_tool).unwrap_err();
            assert!(error.message.contains("deeper than 100 levels"), "{error}");
            let error = call.state.queue_tool("work", json!({ "a": by_tool })).unwrap_err();
            assert!(error.message.contains("deeper than 100 levels"), "{error}");
            ToolResult::success("refused")
        }))
        .drive(move |sim| {
            let (deepest, deeper) = (deepest.clone(), deeper.clone());
            async move {
                set(&sim, "deepest", deepest.clone()).await;
                assert_eq!(value(&sim, "deepest").await, deepest);
                sim.ask("use work").await;
                let effect = json!({ "name": "ring", "args": { "a": deeper }, "delay": 60_000 });
                for (route, body) in [
                    (ThreadRoute::PostValue, json!({ "key": "deeper", "value": deeper })),
                    (ThreadRoute::PostEffect, effect),
                    (ThreadRoute::Patch, json!({ "properties": { "a": deeper } })),
                    (
                        ThreadRoute::PostMessage,
                        json!({ "role": "user", "content": "x", "metadata": { "a": deeper } }),
                    ),
                ] {
                    let seen = sim.insist(route.clone(), &[], None, body.to_string()).await;
                    let error = seen.body["error"]["message"].as_str().unwrap_or_default();
                    assert!(seen.status == 400 && error.contains("deeper than 100"), "{route:?} {error}");
                }
                // Written by an earlier version of the runtime.
                let text = nested(150).to_string();
                sim.world
                    .database
                    .alter(&format!("INSERT INTO vals (key, value, updated_us) VALUES ('old', '{text}', 1)"));
                let listed = page(&sim, &[]).await;
                assert_eq!(keys(&listed), ["deepest", "old"]);
                assert_eq!(listed["values"][1]["value"], Value::Null);
                assert!(listed["values"][1]["damaged"].as_str().unwrap().contains("recursion"), "{listed}");
                let gone = sim.insist(ThreadRoute::DeleteValue, &[("key", "old")], None, String::new()).await;
                assert_eq!(gone.status, 204);
            }
        })
        .calm();
}

/// So many clients at the same time, each of which adds itself to one value.
fn counting(clients: usize) -> Scenario {
    Scenario::new("a value that many change", &with_work())
        .says(clerk)
        .setup(acts(|call| {
            // A tool among them.
            for _ in 0..3 {
                let before = call.state.get_value::<Value>("count").unwrap().unwrap_or_default();
                let mut after = before.as_array().cloned().unwrap_or_default();
                after.push(json!("tool"));
                assert!(call.state.compare_and_set("count", &before, &json!(after)).unwrap());
                assert!(!call.state.compare_and_set("count", &before, &json!(["lost"])).unwrap());
            }
            ToolResult::success("counted")
        }))
        .drive(move |sim| async move {
            let done = std::rc::Rc::new(std::cell::Cell::new(0));
            for client in 0..clients {
                let (sim, done) = (sim.clone(), done.clone());
                let world = sim.world.clone();
                world.client(async move {
                    loop {
                        let before = value(&sim, "count").await;
                        let mut after = before.as_array().cloned().unwrap_or_default();
                        // An answer may have been lost.
                        if after.contains(&json!(client)) {
                            break;
                        }
                        after.push(json!(client));
                        let body = json!({ "key": "count", "value": after, "ifValue": before });
                        let seen = post(&sim, body).await;
                        assert!(matches!(seen.status, 200 | 412), "{}", seen.body);
                    }
                    done.set(done.get() + 1);
                });
            }
            sim.ask("use work").await;
            sim.until("all have counted", |_| done.get() == clients).await;
            let counted = value(&sim, "count").await;
            let counted = counted.as_array().unwrap();
            let by = |who: Value| counted.iter().filter(|one| **one == who).count();
            for client in 0..clients {
                assert_eq!(by(json!(client)), 1, "{counted:?}");
            }
            assert!(matches!(by(json!("tool")), 0..=3));
        })
}

#[test]
fn of_writers_at_the_same_time_none_is_lost_when_they_compare() {
    counting(20).calm();
    counting(4).sampled(120).sweep();
}

#[test]
fn a_value_is_compared_by_what_it_is() {
    story("comparing")
        .drive(|sim| async move {
            let swap = async |from: Value, to: Value| {
                post(&sim, json!({ "key": "k", "value": to, "ifValue": from })).await
            };
            let refused = swap(json!(1), json!(2)).await;
            let error = &refused.body["error"];
            assert_eq!((refused.status, &error["code"]), (412, &json!("precondition_failed")), "{error}");
            assert_eq!(swap(Value::Null, json!({ "b": 1, "a": [1.0] })).await.status, 200);
            assert_eq!(swap(json!({ "a": [1], "b": 2 }), json!(2)).await.status, 412);
            assert_eq!(swap(json!({ "a": [1], "b": 1 }), json!(2)).await.status, 200);
            assert_eq!(swap(json!(2), Value::Null).await.status, 200);
            assert_eq!(swap(json!(2), json!(3)).await.status, 412);
            assert_eq!(value(&sim, "k").await, Value::Null);
            let seen = swap(Value::Null, json!(u64::MAX)).await;
            assert_eq!(seen.status, 200);
            assert_eq!(swap(json!(u64::MAX - 1), json!(1)).await.status, 412);
        })
        .calm();
}
