//! Hooks that change something or observe it: once, whatever fails where.

use bobbin::definitions::message::ToolResult;
use serde_json::{Value, json};

use super::INDETERMINATE;
use super::hooks::{Kind, asked, asked_of, behind, failures, hooked, react};
use crate::contract::History;
use crate::host::outside::Asked;
use crate::host::{Answer, Native};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![marks(Kind::Native), marks(Kind::Http), drops(), failing_calls(), observed()]
}

/// Every hook that changes something appends a mark to it. Stored texts must have exactly one each, requests too.
fn marks(kind: Kind) -> Scenario {
    const MARKING: [&str; 8] = [
        "after_thread_created",
        "before_create_message",
        "after_create_message",
        "after_system_message",
        "filter_messages",
        "prefilter_llm_history",
        "after_tool_call_success",
        "before_store_tool_result",
    ];
    let name = if kind == Kind::Native { "marks of native hooks" } else { "marks of http hooks" };
    behind(kind, name, &MARKING)
        .setup(|sim| {
            for hook in MARKING {
                sim.world.outside.hook(hook, |call| {
                    let marked = marked(call.hook.as_str(), &call.args);
                    Box::pin(async move {
                        (call.sleep)(10_000).await;
                        Ok(marked)
                    })
                });
                sim.world.outside.server(&format!("/{hook}"), |request, _| {
                    let body: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
                    assert!(body["threadId"].is_string() && body["agentId"] == "helper");
                    let args = body["args"].as_array().unwrap();
                    let value = marked(body["hook"].as_str().unwrap(), args);
                    Answer::json(&json!({ "value": value })).after(10_000)
                });
            }
        })
        .says(|request| {
            let user = request.last_user();
            match request.results() {
                results if results.is_empty() && user.starts_with("use work") => {
                    crate::host::Say::call("work", &json!({}))
                }
                results => crate::host::Say::text(format!("done {}", results.len())),
            }
        })
        .drive(|sim| async move {
            let first = sim.send("use work").await;
            let second = sim.send("use work too").await;
            sim.outcome(&first).await;
            sim.outcome(&second).await;
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            // A panic in a native hook is its failure: that one mark is missing.
            let mut missing = failures(sim).len();
            assert!(missing <= history.faults, "{:?}", failures(sim));
            let mut marked = |what: &Value, count: usize, expected: usize| {
                assert!(count <= expected, "{count} marks, not {expected}: {what}");
                let lacks = expected - count;
                assert!(lacks <= missing, "{count} marks, not {expected}: {what}");
                missing -= lacks;
            };
            for message in history.messages.iter().filter(|m| m["metadata"]["status_kind"].is_null()) {
                let text = message["content"].as_str().unwrap_or_default();
                marked(message, text.matches('!').count(), 1);
                // A call whose end is not known is no success; its text is stored by the same hooks.
                let results = match (message["role"] == "tool", text.starts_with(INDETERMINATE)) {
                    (true, unknown) => 2 - usize::from(unknown),
                    (false, _) => 0,
                };
                marked(message, text.matches('#').count(), results);
                assert!(!text.contains('$') && !text.contains('%'), "{message}");
            }
            if missing == 0 {
                for request in sim.world.outside.requests.borrow().iter() {
                    assert_eq!(request.texts("system"), ["You help.$"]);
                    for user in request.texts("user") {
                        assert_eq!(user.matches('%').count(), 2, "{user}");
                        assert!(user.matches('!').count() == 1 || history.faults > 0, "{user}");
                    }
                }
            }
            assert!(asked(sim).contains(&"after_thread_created".to_owned()));
        })
}

/// What the marking hooks make of their arguments.
fn marked(hook: &str, args: &[Value]) -> Value {
    let mark = |value: &Value, mark: &str| json!(format!("{}{mark}", value.as_str().unwrap_or_default()));
    match hook {
        "after_system_message" => mark(&args[0], "$"),
        "before_create_message" => {
            let mut message = args[0].clone();
            message["content"] = mark(&message["content"], "!");
            message
        }
        "filter_messages" | "prefilter_llm_history" => {
            let mut messages = args[0].clone();
            for message in messages.as_array_mut().unwrap().iter_mut().filter(|m| m["role"] == "user") {
                message["content"] = mark(&message["content"], "%");
            }
            messages
        }
        "after_tool_call_success" | "before_store_tool_result" => {
            let mut result = args[1].clone();
            let field = if result["status"] == "error" { "error" } else { "result" };
            result[field] = mark(&result[field], "#");
            result
        }
        _ => Value::Null,
    }
}

#[test]
fn native_hooks_transform_once_whatever_fails_where() {
    marks(Kind::Native).sweep();
}

#[test]
fn http_hooks_transform_once_whatever_fails_where() {
    marks(Kind::Http).sweep();
}

/// Calls with an even number in their arguments are dropped.
fn drops() -> Scenario {
    hooked("dropped calls", &["after_tool_call_success", "after_create_message"])
        .setup(|sim| {
            react(sim, "after_tool_call_success", |call| {
                let arguments = call.args[0]["function"]["arguments"].as_str().unwrap();
                let even = arguments.contains('0') || arguments.contains('2');
                Ok(if even { Value::Null } else { call.args[1].clone() })
            });
        })
        .says(|request| {
            let call = |n: u32| json!({ "n": n }).to_string();
            let asked = request.last_user();
            let say = crate::host::Say::default();
            match (asked, request.texts("assistant").len(), request.results().len()) {
                ("three", 0, 0) => {
                    say.and_call("work", &call(0)).and_call("work", &call(1)).and_call("work", &call(2))
                }
                // Its only call is dropped; a model that is asked the same again says something else.
                ("one", ..) if request.index % 2 == 0 => say.and_call("work", &call(2)),
                _ => crate::host::Say::text("done"),
            }
        })
        .drive(|sim| async move {
            sim.ask("three").await;
            sim.evict().await;
            sim.ask("one").await;
        })
        .check(|sim, history| {
            let calls: Vec<(String, String)> = history.of("assistant").flat_map(History::calls).collect();
            let results = history.texts("tool");
            assert_eq!(calls.len(), results.len());
            let unknown = results.iter().filter(|text| **text == INDETERMINATE).count();
            // A call whose end is not known has not succeeded: no such hook runs for it.
            assert!(unknown <= history.faults);
            let database = &sim.world.database;
            let states: Vec<String> = database.ask("SELECT state FROM calls ORDER BY id");
            let dropped = states.iter().filter(|state| *state == "dropped").count();
            assert_eq!(states.len() - dropped, results.len(), "{states:?}");
            let kept: Vec<i64> = database.ask("SELECT count(*) FROM calls WHERE result IS NOT NULL");
            assert_eq!(kept, [0]);
            // Nor where the hook was lost in a panic.
            let whole = unknown + failures(sim).len();
            let stored: Vec<String> =
                database.ask("SELECT tool_calls FROM messages WHERE tool_calls IS NOT NULL");
            for (text, number) in stored.iter().flat_map(|text| [(text, 0), (text, 2)]) {
                assert!(whole > 0 || !text.contains(&format!("\\\"n\\\":{number}")), "{text}");
            }
            if history.faults == 0 {
                assert!(dropped >= 2 && !states.contains(&"indeterminate".to_owned()), "{states:?}");
                // What the model was told of the first reply: one call, one result.
                let requests = sim.world.outside.requests.borrow();
                let (one, more) = (&requests[1].messages()[2], &requests[1].messages()[3..]);
                assert_eq!(one["tool_calls"].as_array().unwrap().len(), 1, "{one}");
                assert_eq!((more.len(), &more[0]["role"]), (1, &json!("tool")));
            }
            let told = asked_of(sim, "after_create_message");
            assert!(told.iter().all(|asked| !asked.args[0]["content"].is_null()));
        })
        .terms(|terms| terms.more_requests = 4)
}

#[test]
fn a_dropped_call_is_gone_from_history_and_storage_whatever_fails_where() {
    drops().sweep();
}

/// A failing tool whose failure a hook turns into a success.
fn failing_calls() -> Scenario {
    hooked("failures turned", &["after_tool_call_success", "after_tool_call_failure"])
        .setup(|sim| {
            sim.world.outside.native("work", |_, _| Native::Gives(1_000, ToolResult::error("no luck")));
            react(sim, "after_tool_call_failure", |call| {
                let said = call.args[1]["error"].as_str().unwrap();
                Ok(json!({ "status": "success", "result": format!("turned: {said}") }))
            });
        })
        .drive(|sim| async move {
            sim.ask("use work,nothing").await;
        })
        .check(|sim, history| {
            let mut left = 0;
            for result in history.of("tool") {
                let text = result["content"].as_str().unwrap();
                let turned = text.matches("turned: ").count();
                assert_eq!(result["tool_status"] == "success", turned == 1, "{result}");
                left += 1 - turned;
            }
            // A panic in the hook is its failure, and the result stays as it was.
            assert_eq!(left, failures(sim).len());
            assert!(asked_of(sim, "after_tool_call_success").is_empty());
            let states: Vec<String> = sim.world.database.ask("SELECT state FROM calls ORDER BY id");
            if history.faults == 0 {
                assert_eq!(states, ["succeeded", "succeeded"]);
                assert_eq!(
                    history.texts("tool")[1],
                    "turned: There is no tool \"nothing\" here. Available: work."
                );
            }
        })
}

#[test]
fn a_failure_may_be_turned_into_a_success_once_whatever_fails_where() {
    failing_calls().sweep();
}

/// A native tool that has ended is not lost while hooks work on its result.
#[test]
fn a_result_survives_a_crash_in_the_middle_of_its_hooks() {
    use crate::host::At;
    use crate::host::fault::{Fault, whenever};
    for fault in [Fault::CrashLost, Fault::CrashKept] {
        hooked("kept results", &["before_store_tool_result"])
            .suffers(move || {
                whenever(1, fault, |point| {
                    point.at == At::NativeDone && point.what == "before_store_tool_result"
                })
            })
            .setup(|sim| {
                react(sim, "before_store_tool_result", |call| {
                    let text = call.args[1]["result"].as_str().unwrap();
                    Ok(json!({ "status": "success", "result": format!("{text}!") }))
                });
            })
            .drive(|sim| async move {
                sim.ask("use work").await;
            })
            .check(|sim, history| {
                assert_eq!((history.faults, history.texts("tool")), (1, vec!["w0!"]));
                let told = asked_of(sim, "before_store_tool_result");
                assert_eq!((told.len(), &told[0]), (2, &told[1]));
            })
            .calm();
    }
}

/// Every stored message, and the new thread, is told of.
fn observed() -> Scenario {
    hooked("observed", &["after_thread_created", "after_create_message"])
        .drive(|sim| async move {
            let first = sim.send("loop 2").await;
            sim.until_requests(1).await;
            let second = sim.send("hello").await;
            sim.outcome(&first).await;
            sim.outcome(&second).await;
        })
        .check(|sim, history| {
            let told = asked_of(sim, "after_create_message");
            for message in history.messages.iter().filter(|m| m["metadata"]["status_kind"].is_null()) {
                let of: Vec<&Asked> =
                    told.iter().filter(|asked| asked.args[0]["id"] == message["id"]).collect();
                assert!(!of.is_empty() && of.len() <= 1 + history.faults, "{} times: {message}", of.len());
                assert!(of.iter().all(|asked| asked.args[0] == *message && asked.call_id == of[0].call_id));
            }
            let created = asked_of(sim, "after_thread_created").len();
            assert!((1..=1 + history.faults).contains(&created), "{created} times");
            assert_eq!(sim.world.outside.hooked.borrow()[0].hook, "after_thread_created");
        })
        .terms(|terms| terms.more_requests = 3)
}

#[test]
fn what_was_stored_is_told_at_least_once_whatever_fails_where() {
    observed().sweep();
}

#[test]
fn a_long_queue_with_http_hooks_yields_to_fresh_events() {
    behind(Kind::Http, "many requests", &["before_create_message", "after_create_message"])
        .setup(|sim| {
            for hook in ["before_create_message", "after_create_message"] {
                sim.world.outside.server(&format!("/{hook}"), |request, _| {
                    let body: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
                    Answer::json(&json!({ "value": marked(body["hook"].as_str().unwrap(), body["args"].as_array().unwrap()) }))
                });
            }
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
            sim.stop().await;
            for n in 0..40 {
                let body = json!({ "role": "system", "content": format!("m{n}") });
                sim.post(body).await;
            }
            sim.accepted.borrow_mut().truncate(1);
            sim.ask("go on").await;
        })
        .check(|sim, history| {
            assert!(history.texts("system").iter().all(|text| text.matches('!').count() == 1));
            assert_eq!(history.texts("system").len(), 40);
            assert_eq!(asked_of(sim, "after_create_message").len(), 44);
            let yields: Vec<i64> = sim.world.database.ask("SELECT count(*) FROM logs WHERE kind = 'recovery'");
            assert_eq!(yields, [0], "a yield is no recovery");
        })
        .calm();
}
