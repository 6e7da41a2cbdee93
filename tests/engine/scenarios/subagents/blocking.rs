//! Children that are waited for.

use bobbin::request::ThreadRoute;
use serde_json::json;

use super::{agent, lists, office, references, settled, states, story, tell, times, waits};
use crate::host::{Answer, DAY_US, SECOND_US};
use crate::sim::{Sim, THREAD};
use crate::sweep::Scenario;

const HOUR_US: i64 = 3_600 * SECOND_US;

pub fn all() -> Vec<Scenario> {
    vec![one(), two_in_a_row(), fails(), comes_to_a_result(), comes_to_nothing(), tells_a_secret()]
}

fn one() -> Scenario {
    story("a child that is waited for")
        .define(|catalog| {
            agent(catalog, "research", &json!([]));
            lists(catalog, json!([waits("research")]));
        })
        .drive(|sim| async move { tell(&sim, r#"call research {"q":"say because"}"#).await })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert_eq!((results.len(), times(&results, "because")), (1, 1), "{results:?}");
            assert_eq!(times(&history.answers(), "because"), 1, "{:?}", history.answers());
            assert_eq!(states(sim), ["terminated terminated"]);
            let [child] = history.family.values().collect::<Vec<_>>()[..] else { panic!("one child") };
            assert_eq!(child.texts("user"), ["say because"]);
            assert_eq!(child.answers(), ["because"]);
            // The pause is told of, and its end.
            let looking = sim.clone();
            let run = ThreadRoute::GetRun("r_1".into());
            let run = sim.world.drive(async move { looking.get(run, &[("trace", "1")]).await });
            let of_pause = |entry: &&serde_json::Value| {
                ["run.paused", "run.resumed"].iter().any(|kind| entry["kind"] == *kind)
            };
            assert_eq!(run["trace"].as_array().unwrap().iter().filter(of_pause).count(), 2, "{run}");
        })
}

fn two_in_a_row() -> Scenario {
    story("two children that are waited for, and a tool between")
        .define(|catalog| {
            agent(catalog, "research", &json!([]));
            lists(catalog, json!([waits("research"), "work"]));
        })
        .drive(|sim| async move {
            let call = r#"all [["research",{"q":"say first"}],["work",{}],["research",{"q":"say second"}]]"#;
            tell(&sim, call).await;
        })
        .check(|_, history| {
            let results = history.texts("tool");
            let [first, _, second] = results[..] else { panic!("{results:?}") };
            assert!(first.contains("first") && second.contains("second"), "{results:?}");
            assert_eq!(history.family.len(), 2);
        })
}

fn fails() -> Scenario {
    story("a child whose model refuses")
        .define(|catalog| {
            agent(catalog, "research", &json!([]));
            lists(catalog, json!([waits("research")]));
        })
        .answers(|request| match request.system() {
            "You are research." => Answer::status(400, r#"{"error":{"message":"no such thing"}}"#),
            _ => office(request).stream(request.index),
        })
        .drive(|sim| async move { tell(&sim, r#"call research {"q":"say because"}"#).await })
        .check(|sim, history| {
            let results: Vec<_> = history.of("tool").collect();
            assert_eq!(results.len(), 1);
            assert_eq!(results[0]["tool_status"], "error", "{results:?}");
            assert_eq!(states(sim), ["terminated failed"]);
        })
}

/// An agent that ends its session by a tool.
fn with_bindings(catalog: &mut serde_json::Value) {
    agent(catalog, "research", &json!(["finish", "give_up"]));
    let text = json!({ "type": "object", "properties": { "summary": { "type": "string" } } });
    for name in ["finish", "give_up"] {
        catalog["tools"][name] =
            json!({ "description": "Ends.", "args": text, "run": { "native": "work" }, "idempotent": true });
    }
    catalog["agents"]["research"]["sideA"] = json!({ "prompt": "research",
        "sessionStop": { "name": "finish", "messageProperty": "summary" },
        "sessionFail": { "name": "give_up", "messageProperty": "summary" } });
    lists(catalog, json!([waits("research")]));
}

fn comes_to_a_result() -> Scenario {
    story("a child that ends its session, well and badly")
        .define(with_bindings)
        .drive(|sim| async move {
            let call = |tool: &str, text: &str| format!("call {tool} {}", json!({ "summary": text }));
            let calls = json!([["research", { "q": call("finish", "all is well") }],
                ["research", { "q": call("give_up", "no way") }]]);
            tell(&sim, &format!("all {calls}")).await;
        })
        .check(|sim, history| {
            let results: Vec<_> = history.of("tool").collect();
            assert!(results[0]["content"].as_str().unwrap().starts_with("all is well"), "{results:?}");
            assert!(results[1]["content"].as_str().unwrap().starts_with("no way"), "{results:?}");
            assert_eq!(
                (&results[0]["tool_status"], &results[1]["tool_status"]),
                (&json!("success"), &json!("error"))
            );
            assert_eq!(states(sim), ["terminated terminated", "terminated failed"]);
        })
}

fn comes_to_nothing() -> Scenario {
    story("a child that never says what it came to")
        .define(with_bindings)
        .drive(|sim| async move { tell(&sim, r#"call research {"q":"say a lot"}"#).await })
        .check(|_, history| {
            let results: Vec<_> = history.of("tool").collect();
            let text = results[0]["content"].as_str().unwrap();
            assert_eq!(results[0]["tool_status"], "error");
            assert!(
                text.contains("ended without a result (max_session_turns)") && text.contains("a lot"),
                "{text}"
            );
        })
}

/// The thread waits for a child, that for one which cannot be reached for so long.
fn patient(name: &'static str, unreachable_us: i64) -> Scenario {
    story(name)
        .define(|catalog| {
            agent(catalog, "leaf", &json!([]));
            agent(catalog, "research", &json!([waits("leaf")]));
            lists(catalog, json!([waits("research")]));
        })
        .lasting(20)
        .terms(|terms| terms.one_answer = false)
        .drive(move |sim| async move {
            // What the child says to its own child does not come through.
            sim.world.cut(|from, to| from != THREAD && to != THREAD);
            let leaf = json!({ "q": r#"call leaf {"q":"say leaf"}"# });
            sim.send(&format!("call research {leaf}")).await;
            // Its key is forgotten before its outcome is there.
            sim.accepted.borrow_mut().clear();
            let asked = |sim: &Sim| sim.family().get(1).is_some_and(|child| !references(child).is_empty());
            sim.until("a grandchild", asked).await;
            sim.world.pause(HOUR_US).await;
            for _ in 0..unreachable_us / HOUR_US {
                sim.world.pause(HOUR_US).await;
                let asleep =
                    || sim.world.executor.waiting(false).is_empty() && sim.world.open_calls.get() == 0;
                if !asleep() {
                    // What is due in this moment takes a moment.
                    sim.world.pause(SECOND_US).await;
                }
                assert!(asleep() || !sim.world.faults.borrow().fired.is_empty(), "something waits in memory");
            }
            sim.world.cut(|_, _| false);
            settled(&sim, 60 * SECOND_US).await;
        })
}

/// Three days: then the answer comes.
fn for_days() -> Scenario {
    patient("a wait of three days", 3 * DAY_US)
        .check(|sim, history| {
            let results = history.texts("tool");
            assert_eq!(times(&results, "leaf"), 1, "{results:?}");
            // Asked after 1, 2, 4 … 60 minutes and each hour from then on, and little besides.
            if history.faults == 0 {
                let alarms = sim.world.alarms_fired.get();
                assert!((70..90).contains(&alarms), "{alarms} alarms");
            }
        })
        .sampled(40)
}

/// Eight days: after seven the wait is over, and the children are stopped.
fn for_too_long() -> Scenario {
    patient("a wait that expires", 8 * DAY_US)
        // After a crash it may be unknown whether the grandchild was made: it is told of its work and of the stop, one
        // after the other, and may ask its model in between.
        .terms(|terms| terms.more_requests = 1)
        .check(|sim, history| {
            let results: Vec<_> = history.of("tool").collect();
            assert_eq!(results.len(), 1, "{results:?}");
            assert_eq!(results[0]["tool_status"], "error");
            let text = results[0]["content"].as_str().unwrap();
            assert!(
                text.contains("did not answer within 7 days") && text.contains(&references(sim)[0]),
                "{text}"
            );
        })
        .sampled(40)
}

#[test]
fn a_call_of_a_child_has_its_answer_whatever_fails() {
    one().sweep();
}

#[test]
fn calls_of_children_and_of_tools_run_in_order() {
    two_in_a_row().sampled(300).sweep();
}

#[test]
fn a_child_that_fails_is_an_error_of_its_call() {
    fails().sampled(300).sweep();
}

#[test]
fn what_a_childs_session_came_to_is_the_calls_result() {
    comes_to_a_result().sampled(300).sweep();
}

#[test]
fn a_child_that_ends_without_its_bindings_has_failed() {
    comes_to_nothing().sampled(300).sweep();
}

#[test]
fn a_parent_that_waits_for_days_holds_nothing_open() {
    for_days().sweep();
}

#[test]
fn a_wait_ends_after_seven_days() {
    for_too_long().sweep();
}

fn tells_a_secret() -> Scenario {
    story("a child that tells a secret")
        .define(|catalog| {
            agent(catalog, "research", &json!([]));
            lists(catalog, json!([waits("research")]));
        })
        .drive(|sim| async move {
            tell(&sim, r#"call research {"q":"say the password is canary-4711-hunter"}"#).await
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert_eq!((results.len(), times(&results, "the password is [REDACTED]")), (1, 1), "{results:?}");
            let counted: Vec<i64> =
                sim.member.database.ask("SELECT data ->> '$.scrubbed.keywords' FROM calls");
            assert_eq!(counted, [1]);
        })
}

#[test]
fn the_answer_of_a_child_passes_as_any_result() {
    tells_a_secret().sweep();
}
