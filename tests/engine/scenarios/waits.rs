//! What people are asked: the run is parked, costs nothing, and goes on with what they say, once, whatever fails.

use bobbin::definitions::message::ToolResult;
use bobbin::engine::feed::FeedTarget;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::story;
use crate::host::{DAY_US, Native, SECOND_US, Say};
use crate::sim::{Seen, Sim};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![
        approved(),
        approved_and_hooked(),
        denied(),
        together(),
        in_another_order(),
        expired(),
        stopped(),
        answered(),
        carried_out(),
        asked_after(),
        asked_again(),
    ]
}

/// A native tool that asks before it runs.
pub(super) fn asking(approval: Value) -> Value {
    let properties = json!({ "amount": { "type": "integer" }, "to": { "type": "string" } });
    json!({ "description": "Pays.", "args": { "type": "object", "properties": properties },
        "run": { "native": "work" }, "approval": approval })
}

pub(super) fn with(tools: Value) -> impl FnOnce(&mut Value) {
    move |catalog: &mut Value| {
        for (name, tool) in tools.as_object().unwrap() {
            catalog["tools"][name] = tool.clone();
            catalog["prompts"]["p"]["tools"].as_array_mut().unwrap().push(json!(name));
        }
    }
}

/// The open waits, oldest first.
pub(super) async fn open(sim: &Sim) -> Vec<Value> {
    let body = sim.get(ThreadRoute::ListWaits, &[]).await;
    let mut waits = body["waits"].as_array().unwrap().clone();
    waits.reverse();
    waits
}

/// Waits until so many are open.
pub(super) async fn until_open(sim: &Sim, count: usize) -> Vec<Value> {
    for _ in 0..2_000 {
        let waits = open(sim).await;
        if waits.len() == count {
            return waits;
        }
        sim.world.pause(SECOND_US / 4).await;
    }
    panic!("{count} waits never opened: {:?}", open(sim).await);
}

pub(super) async fn decide(sim: &Sim, wait: &Value, body: Value) -> Seen {
    let route = ThreadRoute::DecideWait(wait["id"].as_str().unwrap().to_owned());
    let key = sim.key();
    sim.insist(route, &[], Some(&key), body.to_string()).await
}

pub(super) async fn decides(sim: &Sim, wait: &Value, body: Value) {
    let seen = decide(sim, wait, body).await;
    assert_eq!(seen.status, 200, "{}", seen.body);
    assert_ne!(seen.body["wait"]["state"], "open", "{}", seen.body);
}

/// How often the tool ran.
pub(super) fn runs(sim: &Sim) -> usize {
    sim.world.outside.executions.borrow().len()
}

/// What the trace of a run says of its pauses.
fn pauses(sim: &Sim, run: &str) -> Vec<Value> {
    let (asked, route) = (sim.clone(), ThreadRoute::GetRun(run.to_owned()));
    let body = sim.world.drive(async move { asked.get(route, &[("trace", "1")]).await });
    let trace = body["trace"].as_array().cloned().unwrap_or_default();
    let of_pauses = |entry: &Value| matches!(entry["kind"].as_str(), Some("run.paused" | "run.resumed"));
    trace.into_iter().filter(of_pauses).collect()
}

fn approved() -> Scenario {
    story("a call that is approved")
        .define(with(json!({ "pay": asking(json!("always")) })))
        .drive(|sim| async move {
            let sent = sim.send("use pay").await;
            let waits = until_open(&sim, 1).await;
            assert_eq!((&waits[0]["kind"], &waits[0]["call"]["tool"]), (&json!("approval"), &json!("pay")));
            assert_eq!(runs(&sim), 0, "nothing has run before anybody decided");
            sim.world.pause(3600 * SECOND_US).await;
            assert_eq!(sim.outcome(&sent).await["outcome"], "parked");
            decides(&sim, &waits[0], json!({ "decision": "approve", "actor": "Ann" })).await;
            let again = decide(&sim, &waits[0], json!({ "decision": "deny" })).await;
            assert_eq!((again.status, &again.body["error"]["code"]), (409, &json!("conflict")));
            assert_eq!(again.body["error"]["details"]["wait"]["decision"], "approve");
        })
        .check(|sim, history| {
            let results: Vec<&Value> = history.of("tool").collect();
            let text = results[0]["content"].as_str().unwrap();
            assert!(text == "w0" || history.faults > 0 && text.contains("restarted while"), "{text}");
            assert_eq!(results[0]["metadata"]["approval"]["by"], "Ann", "{results:?}");
            assert!(runs(sim) <= 1, "it ran once");
            let told = pauses(sim, "r_1");
            let kinds: Vec<&str> = told.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
            assert_eq!(kinds, ["run.paused", "run.resumed"], "{told:?}");
            assert_eq!(
                (&told[0]["data"]["pauseKind"], &told[1]["data"]["decision"]),
                (&json!("human"), &json!("approve"))
            );
            assert_eq!(told[0]["data"]["wait"], told[1]["data"]["wait"]);
        })
}

#[test]
fn a_call_that_is_approved_runs_once_and_only_then() {
    approved().sweep();
}

/// The result is kept while a hook works on it; a process that is lost meanwhile finds it there.
fn approved_and_hooked() -> Scenario {
    const HOOK: &str = "before_store_tool_result";
    story("a call that is approved, and a hook that sees its result")
        .define(with(json!({ "pay": asking(json!("always")) })))
        .define(|catalog| {
            catalog["hooks"] = json!({ HOOK: { "hook": HOOK, "run": { "native": HOOK } } });
            catalog["agents"]["helper"]["hooks"] = json!([HOOK]);
        })
        .setup(|sim| {
            sim.world.outside.hook(HOOK, |call| {
                let result = call.args[1].clone();
                Box::pin(async move {
                    (call.sleep)(SECOND_US).await;
                    Ok(result)
                })
            });
        })
        .drive(|sim| async move {
            sim.send("use pay").await;
            let waits = until_open(&sim, 1).await;
            decides(&sim, &waits[0], json!({ "decision": "approve", "actor": "Ann" })).await;
        })
        .check(|sim, history| {
            let result = history.of("tool").next().unwrap();
            assert_eq!(result["metadata"]["approval"]["by"], "Ann", "{result}");
            assert!(runs(sim) <= 1, "it ran once");
        })
}

#[test]
fn a_result_that_waits_for_its_hooks_keeps_its_approval() {
    approved_and_hooked().sweep();
}

fn denied() -> Scenario {
    story("a call that is denied")
        .define(with(json!({ "pay": asking(json!("always")) })))
        .drive(|sim| async move {
            sim.send("use pay").await;
            let waits = until_open(&sim, 1).await;
            decides(&sim, &waits[0], json!({ "decision": "deny", "reason": "too much" })).await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool"), ["Denied: too much"]);
            let result = history.of("tool").next().unwrap();
            let told = &result["metadata"]["approval"];
            assert_eq!(
                (&told["decision"], &told["reason"]),
                (&json!("deny"), &json!("too much")),
                "{result}"
            );
            assert!(told["id"].as_str().unwrap().starts_with("w_") && told["at"].is_i64(), "{result}");
            assert_eq!(history.texts("assistant").last().unwrap(), &"done: Denied: too much");
            assert_eq!(runs(sim), 0);
            let reports = sim.world.log.borrow().iter().filter(|line| line.contains("\"pay\"")).count();
            assert_eq!(reports, 0, "the operator reads of no failure of a tool that never ran");
        })
}

#[test]
fn a_call_that_is_denied_never_runs_and_the_model_goes_on() {
    denied().sweep();
}

fn together() -> Scenario {
    story("calls that are asked about together")
        .define(with(json!({ "pay": asking(json!("always")), "send": asking(json!({ "mode": "always", "edit": ["to"] })) })))
        .drive(|sim| async move {
            sim.send("use work,pay,work,send").await;
            let waits = until_open(&sim, 2).await;
            assert_eq!(waits[0]["batch"], waits[1]["batch"]);
            let wrong = decide(&sim, &waits[1], json!({ "decision": "approve", "args": { "amount": 1 } })).await;
            assert_eq!((wrong.status, &wrong.body["error"]["code"]), (422, &json!("invalid_args")));
            let wrong = decide(&sim, &waits[1], json!({ "decision": "approve", "args": { "to": 1 } })).await;
            assert_eq!((wrong.status, &wrong.body["error"]["code"]), (422, &json!("invalid_args")));
            let unknown = json!({ "decisions": [{ "id": waits[0]["id"], "decision": "approve" }, { "id": "w_6f0c0000_99", "decision": "deny" }] });
            let seen = sim.insist(ThreadRoute::DecideWaits, &[], None, unknown.to_string()).await;
            assert_eq!((seen.status, &seen.body["error"]["code"]), (409, &json!("conflict")));
            assert_eq!(open(&sim).await.len(), 2, "nothing was changed");
            let both = json!({ "decisions": [
                { "id": waits[0]["id"], "decision": "approve" },
                { "id": waits[1]["id"], "decision": "approve", "args": { "to": "bob" } },
            ] });
            let key = sim.key();
            let seen = sim.insist(ThreadRoute::DecideWaits, &[], Some(&key), both.to_string()).await;
            assert_eq!(seen.status, 200, "{}", seen.body);
        })
        .check(|_, history| {
            let results = history.texts("tool");
            assert_eq!(results.len(), 4, "{results:?}");
            if history.faults == 0 {
                assert_eq!(results, ["w0", "w1", "w2", "[Approved with changes: {\"to\":\"bob\"}]\nw3"]);
            }
        })
}

#[test]
fn calls_of_a_reply_are_asked_about_together_and_run_in_their_order() {
    together().sweep();
}

/// The initial waits that a feed lists for each reply: kinds and calls.
async fn initial_waits(sim: &Sim, message: &str) -> Vec<Vec<(String, String)>> {
    let (feed, _) = sim.follow(FeedTarget::Message(message.to_owned()), None).await.unwrap();
    let frames = feed.frames.borrow();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |waits: &Value| -> Vec<(String, String)> {
        let waits = waits.as_array().unwrap().iter();
        waits.map(|wait| (text(&wait["kind"]), text(&wait["call"]["id"]))).collect()
    };
    let replies = frames.iter().filter(|frame| frame.kind == "message_data");
    replies.filter_map(|frame| frame.data.get("waits")).map(of).collect()
}

#[test]
fn a_feed_lists_the_initial_waits_of_a_reply_however_far_its_run_is() {
    story("initial waits")
        .define(with(json!({
            "pay": asking(json!("always")),
            // Needs an approval with the others, and the client later.
            "show": { "description": "Shows.", "args": { "type": "object", "properties": {} },
                "run": { "client": {} }, "approval": "always" },
        })))
        .drive(|sim| async move {
            let sent = sim.send("use work,pay,show,pay").await;
            let waits = until_open(&sim, 3).await;
            let expected: Vec<(String, String)> = waits
                .iter()
                .map(|wait| ("approval".to_owned(), wait["call"]["id"].as_str().unwrap().to_owned()))
                .collect();
            let expected = [expected];
            assert_eq!(initial_waits(&sim, &sent.id).await, expected);
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
            let left = until_open(&sim, 2).await;
            assert_eq!(initial_waits(&sim, &sent.id).await, expected, "one is decided");
            decides(&sim, &left[0], json!({ "decision": "approve" })).await;
            sim.until("the client is asked", |sim| {
                sim.member.database.ask::<i64>("SELECT count(*) FROM waits WHERE kind = 'client_tool'") == [1]
            })
            .await;
            assert_eq!(initial_waits(&sim, &sent.id).await, expected, "a later wait is none of them");
            for wait in open(&sim).await {
                let answer = match wait["kind"].as_str() {
                    Some("client_tool") => json!({ "decision": "answer", "result": "shown" }),
                    _ => json!({ "decision": "deny" }),
                };
                decides(&sim, &wait, answer).await;
            }
            sim.outcome(&sent).await;
            assert_eq!(initial_waits(&sim, &sent.id).await, expected, "all is over");
        })
        .calm();
}

fn in_another_order() -> Scenario {
    story("decisions in another order")
        .define(with(json!({ "pay": asking(json!("always")), "send": asking(json!("always")) })))
        .drive(|sim| async move {
            sim.send("use pay,send").await;
            let waits = until_open(&sim, 2).await;
            decides(&sim, &waits[1], json!({ "decision": "deny" })).await;
            sim.world.pause(10 * SECOND_US).await;
            assert_eq!(runs(&sim), 0, "what comes first is still open");
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert!(results[0] == "w0" || history.faults > 0, "{results:?}");
            assert_eq!(results[1], "Denied.");
            // What was decided ahead of its turn is taken up at it.
            let told = pauses(sim, "r_1");
            let kinds: Vec<&str> = told.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
            assert_eq!(kinds, ["run.paused", "run.paused", "run.resumed", "run.resumed"], "{told:?}");
            assert_eq!(told[2]["at"], told[3]["at"]);
        })
}

#[test]
fn a_decision_about_a_later_call_is_kept_until_it_is_its_turn() {
    in_another_order().sweep();
}

fn expired() -> Scenario {
    story("a question that nobody answers")
        .define(with(json!({ "pay": asking(json!("always")) })))
        .lasting(20)
        .terms(|terms| terms.one_answer = false)
        .drive(|sim| async move {
            sim.send("use pay").await;
            let waits = until_open(&sim, 1).await;
            // Its key is forgotten before its outcome is there.
            sim.accepted.borrow_mut().clear();
            sim.world.pause(3 * DAY_US).await;
            assert!(
                sim.world.executor.waiting(false).is_empty() || !sim.world.faults.borrow().fired.is_empty()
            );
            sim.world.pause(5 * DAY_US).await;
            let late = decide(&sim, &waits[0], json!({ "decision": "approve" })).await;
            assert_eq!(late.status, 409, "{}", late.body);
            assert_eq!(late.body["error"]["details"]["wait"]["state"], "expired");
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool"), ["Denied: Nobody answered within 7 days."]);
            let told = pauses(sim, "r_1");
            assert_eq!(
                (&told[1]["kind"], &told[1]["data"]["state"]),
                (&json!("run.resumed"), &json!("expired"))
            );
            assert_eq!(runs(sim), 0);
        })
}

#[test]
fn a_question_that_nobody_answers_ends_by_itself_and_never_as_an_approval() {
    expired().sweep();
}

fn stopped() -> Scenario {
    story("a stop while a person is asked")
        .define(with(json!({ "pay": asking(json!("always")) })))
        .terms(|terms| {
            terms.outcomes = vec!["stopped", "completed"];
            terms.pairs = false;
        })
        .drive(|sim| async move {
            sim.send("use pay,work").await;
            let waits = until_open(&sim, 1).await;
            sim.stop().await;
            assert!(open(&sim).await.is_empty());
            let late = decide(&sim, &waits[0], json!({ "decision": "approve" })).await;
            assert_eq!(late.body["error"]["details"]["wait"]["state"], "cancelled", "{}", late.body);
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            assert!(history.texts("tool")[0].starts_with("Not run: "), "{:?}", history.texts("tool"));
            assert_eq!(pauses(sim, "r_1").len(), 1, "it was never resumed");
            assert_eq!(runs(sim), 0);
        })
}

#[test]
fn a_stop_ends_what_is_asked_and_the_thread_goes_on_with_the_next_message() {
    stopped().sweep();
}

fn answered() -> Scenario {
    Scenario::new("a question to a person", &json!({}))
        .define(|catalog| {
            let tool = json!({ "description": "Asks.", "run": { "native": "ask_user" }, "args": { "type": "object", "properties": {
                "question": { "type": "string" }, "choices": { "type": "array", "items": { "type": "string" } },
                "free_text": { "type": "boolean" } } } });
            with(json!({ "ask_user": tool }))(catalog);
        })
        .says(|request| match request.results().last() {
            Some(answer) => Say::text(format!("you said {answer}")),
            None => Say::call("ask_user", &json!({ "question": "Tea?", "choices": ["yes", "no"], "free_text": false })),
        })
        .drive(|sim| async move {
            sim.send("hello").await;
            let waits = until_open(&sim, 1).await;
            assert_eq!((&waits[0]["kind"], &waits[0]["title"], &waits[0]["choices"]), (&json!("question"), &json!("Tea?"), &json!(["yes", "no"])));
            for wrong in [json!({ "decision": "answer", "text": "milk" }), json!({ "decision": "answer", "choice": 2 }), json!({ "decision": "approve" })] {
                let seen = decide(&sim, &waits[0], wrong).await;
                assert_eq!(seen.status, 400, "{}", seen.body);
            }
            decides(&sim, &waits[0], json!({ "decision": "answer", "choice": 1 })).await;
        })
        .check(|_, history| assert_eq!(history.texts("assistant").last().unwrap(), &"you said no"))
}

#[test]
fn a_question_waits_for_its_answer_and_the_model_gets_it_once() {
    answered().sweep();
}

fn carried_out() -> Scenario {
    story("a call that the client carries out")
        .define(with(json!({ "locate": { "description": "Where the person is.", "run": { "client": {} } } })))
        .drive(|sim| async move {
            sim.send("use locate").await;
            let waits = until_open(&sim, 1).await;
            assert_eq!(waits[0]["kind"], "client_tool");
            decides(&sim, &waits[0], json!({ "decision": "answer", "result": { "city": "Bern" } })).await;
        })
        .check(|_, history| assert_eq!(history.texts("tool"), [r#"{"city":"Bern"}"#]))
}

#[test]
fn a_call_that_the_client_carries_out_has_the_clients_result() {
    carried_out().sweep();
}

fn asked_after() -> Scenario {
    story("a tool that asks once it has looked")
        .define(with(json!({ "pay": asking(json!("on_failure")) })))
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let result = match call.approved {
                    true => ToolResult::success("paid"),
                    false => ToolResult {
                        error_code: Some("needs_approval".into()),
                        ..ToolResult::error("over the limit")
                    },
                };
                Native::Gives(1_000, result)
            });
        })
        .drive(|sim| async move {
            sim.send("use pay").await;
            let mut waits = open(&sim).await;
            for _ in 0..400 {
                if !waits.is_empty() || sim.get(ThreadRoute::Diagnostics, &[]).await["state"] == "idle" {
                    break;
                }
                sim.world.pause(SECOND_US / 4).await;
                waits = open(&sim).await;
            }
            if let Some(wait) = waits.first() {
                decides(&sim, wait, json!({ "decision": "approve" })).await;
            }
        })
        .check(|_, history| {
            let results = history.texts("tool");
            assert!(
                results == ["paid"] || history.faults > 0 && results[0].contains("restarted while"),
                "{results:?}"
            );
        })
}

#[test]
fn a_tool_that_asks_after_it_has_looked_is_called_once_more_when_it_is_approved() {
    asked_after().sweep();
}

fn asked_again() -> Scenario {
    story("the model is asked again")
        .define(with(json!({ "pay": asking(json!("always")), "send": asking(json!("always")) })))
        .terms(|terms| terms.more_requests = 1)
        .drive(|sim| async move {
            sim.send("use pay,send").await;
            let old = until_open(&sim, 2).await;
            for wrong in [
                json!({ "decision": "deny", "interrupt": "again" }),
                json!({ "decision": "deny", "interrupt": "restart", "stop": true }),
            ] {
                let seen = decide(&sim, &old[0], wrong).await;
                assert_eq!(
                    (seen.status, &seen.body["error"]["field"]),
                    (400, &json!("interrupt")),
                    "{}",
                    seen.body
                );
            }
            decides(&sim, &old[0], json!({ "decision": "deny", "interrupt": "restart" })).await;
            let beside = sim.get(ThreadRoute::GetWait(old[1]["id"].as_str().unwrap().into()), &[]).await;
            assert_eq!(beside["wait"]["state"], "cancelled", "what was asked beside it is over: {beside}");
            let waits = until_open(&sim, 2).await;
            assert_ne!(waits[0]["batch"], old[0]["batch"]);
            decides(&sim, &waits[0], json!({ "decision": "approve", "interrupt": "continue" })).await;
            // Now a call has begun.
            let late = decide(&sim, &waits[1], json!({ "decision": "deny", "interrupt": "restart" })).await;
            assert_eq!(
                (late.status, &late.body["error"]["code"]),
                (409, &json!("conflict")),
                "{}",
                late.body
            );
            assert_eq!(open(&sim).await.len(), 1, "nothing was changed");
            decides(&sim, &waits[1], json!({ "decision": "approve" })).await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert_eq!(results.len(), 2, "the dropped calls have no results: {results:?}");
            assert!(results == ["w0", "w1"] || history.faults > 0, "{results:?}");
            assert!(runs(sim) <= 2);
        })
}

#[test]
fn a_decision_may_drop_what_the_model_said_and_ask_it_again() {
    asked_again().sweep();
}

#[test]
fn what_needs_an_approval_is_refused_where_nobody_is_asked() {
    story("nobody is asked")
        .define(|catalog| {
            with(json!({ "pay": asking(json!("always")) }))(catalog);
            catalog["settings"] = json!({ "approvals": { "policy": "never" } });
        })
        .drive(|sim| async move {
            sim.ask("use pay,work").await;
            assert!(open(&sim).await.is_empty());
        })
        .check(|_, history| {
            let results = history.texts("tool");
            assert!(results[0].contains("needs an approval, and nobody is asked here"), "{results:?}");
        })
        .calm();
}

#[test]
fn a_tool_that_asks_after_it_has_looked_is_refused_where_nobody_is_asked() {
    asked_after()
        .define(|catalog| catalog["settings"] = json!({ "approvals": { "policy": "never" } }))
        .drive(|sim| async move {
            sim.ask("use pay").await;
            let all = sim.get(ThreadRoute::ListWaits, &[("state", "all")]).await;
            assert_eq!(all["waits"], json!([]));
        })
        .check(|_, history| {
            let result = history.of("tool").next().unwrap();
            assert_eq!(result["metadata"]["error_code"], "approval_required", "{result}");
        })
        .once();
}

#[test]
fn a_policy_asks_about_every_tool_that_is_not_trusted() {
    story("a policy")
        .define(|catalog| {
            with(json!({ "pay": asking(json!("never")), "look": asking(json!("never")) }))(catalog);
            catalog["settings"] = json!({ "approvals": { "policy": "unless-trusted", "trusted": ["work"] } });
            catalog["prompts"]["p"]["approvals"] = json!({ "policy": "on-request", "trusted": ["look"] });
        })
        .drive(|sim| async move {
            sim.send("use work,look,pay").await;
            let waits = until_open(&sim, 1).await;
            assert_eq!((waits.len(), &waits[0]["call"]["tool"]), (1, &json!("pay")));
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
        })
        .check(|_, history| assert_eq!(history.texts("tool"), ["w0", "w1", "w2"]))
        .calm();
}
