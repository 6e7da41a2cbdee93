//! Turns that go well, and what failures make of them: nothing.

use serde_json::json;

use super::{INDETERMINATE, clerk, story, work};
use crate::host::fault::Fault;
use crate::host::{At, SECOND_US};
use crate::sim::native;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![plain(), one_tool(), several_tools(), waiting()]
}

fn plain() -> Scenario {
    story("plain turns")
        .drive(|sim| async move {
            let outcome = sim.ask("hello").await;
            assert_eq!(outcome["message"]["content"], "re: hello", "{outcome}");
            assert_eq!(outcome["reason"], "stop_on_response");
            sim.ask("again").await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("user"), ["hello", "again"]);
            assert_eq!(history.answers(), ["re: hello", "re: again"]);
            if history.faults == 0 {
                assert_eq!(sim.world.outside.requests.borrow().len(), 2);
                // Each run's alarm fires once and joins the run; that of the first may still be busy with its letters.
                assert!((1..=2).contains(&sim.world.alarms_fired.get()), "{}", sim.world.alarms_fired.get());
            }
        })
}

#[test]
fn a_plain_turn_gets_one_answer_whatever_fails() {
    plain().sweep();
}

#[test]
fn a_message_may_have_any_metadata_and_is_seen() {
    story("metadata of a status")
        .drive(|sim| async move {
            let body = json!({ "role": "user", "content": "hello", "metadata": { "status_kind": "mine" } });
            sim.post(body).await;
            let message = sim.accepted.borrow().last().cloned().unwrap();
            assert_eq!(sim.outcome(&message).await["message"]["content"], "re: hello");
        })
        .calm();
}

fn one_tool() -> Scenario {
    story("one tool")
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert_eq!(results.len(), 1);
            let known = results[0] == "w0" || history.faults > 0 && results[0] == INDETERMINATE;
            assert!(known, "{results:?}");
            assert_eq!(history.answers(), [format!("done: {}", results[0])]);
            let calls = history.of("assistant").flat_map(crate::contract::History::calls).count();
            assert_eq!(calls, 1);
            if history.faults == 0 {
                assert_eq!(sim.world.outside.executions.borrow().len(), 1);
            }
        })
}

#[test]
fn a_tool_runs_at_most_once_whatever_fails() {
    one_tool().sweep();
}

fn several_tools() -> Scenario {
    Scenario::new("several tools", &json!({ "work": native(false), "safe": native(true) }))
        .says(clerk)
        .setup(work)
        .drive(|sim| async move {
            sim.ask("use work,safe,work").await;
        })
        .check(|sim, history| {
            let names: Vec<&str> = history.of("tool").filter_map(|m| m["name"].as_str()).collect();
            assert_eq!(names, ["work", "safe", "work"]);
            assert_eq!(history.answers().len(), 1);
            let executions = sim.world.outside.executions.borrow();
            if history.faults == 0 {
                assert_eq!(history.texts("tool"), ["w0", "w1", "w2"]);
            }
            // One after another, in the order of the reply: a key never comes back after a later one.
            let keys: Vec<&str> = executions.iter().map(|e| e.key.as_str()).collect();
            let mut distinct = keys.clone();
            distinct.dedup();
            let mut once = distinct.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(distinct.len(), once.len(), "{keys:?}");
        })
}

#[test]
fn several_calls_run_in_order_whatever_fails() {
    several_tools().sweep();
}

#[test]
fn fifty_tool_steps_survive_any_failure() {
    story("fifty steps")
        .drive(|sim| async move {
            let outcome = sim.ask("loop 50").await;
            assert_eq!(outcome["message"]["content"], "done 50");
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool").len(), 50);
            if history.faults == 0 {
                assert_eq!(sim.world.outside.requests.borrow().len(), 51);
            }
        })
        .sampled(40)
        .sweep();
}

fn waiting() -> Scenario {
    story("waiting clients").answers(|request| clerk(request).stream(request.index).pace(SECOND_US)).drive(
        |sim| async move {
            let first = sim.send("hello").await;
            let twin = sim.clone();
            let same = first.clone();
            sim.world.client(async move {
                let outcome = twin.outcome(&same).await;
                assert_eq!(outcome["message"]["content"], "re: hello");
            });
            let outcome = sim.outcome(&first).await;
            assert_eq!(outcome["outcome"], "completed", "{outcome}");
            // Asked again when all is over: the same run.
            let again = sim.outcome(&first).await;
            assert_eq!((&again["run"], &again["message"]), (&outcome["run"], &outcome["message"]));
        },
    )
}

#[test]
fn every_waiting_client_gets_its_runs_answer() {
    waiting().sweep();
}

/// The commit that ends a run may be the last that its flow does.
#[test]
fn who_waits_is_answered_from_what_is_stored_after_a_panic_behind_any_commit() {
    waiting().sweep_at(At::AfterCommit, Fault::Panic);
}
