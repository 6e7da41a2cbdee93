//! Answers that are followed: in the thread where nothing was said since, in a copy of it otherwise; each message once, whatever fails.

use bobbin::request::{COPY, FOLLOWS, ThreadRoute, thread_id};
use serde_json::{Value, json};

use super::stops::may_stop;
use super::{clerk, story};
use crate::host::SECOND_US;
use crate::sim::{Seen, Sim};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![followed(), passing(), stopped()]
}

/// The id of the copy.
fn copy_id() -> String {
    thread_id::of_parts(&["copy of the tests"])
}

/// Says something behind the answer to a message.
async fn follow(sim: &Sim, after: &str, key: &str, text: &str) -> Seen {
    let body = json!({ "role": "user", "content": text });
    sim.with_header(FOLLOWS, after).post_with(key, body, &[]).await
}

async fn fork(sim: &Sim, body: Value) -> Seen {
    sim.with_header(COPY, &copy_id()).insist(ThreadRoute::Fork, &[], None, body.to_string()).await
}

fn refused(seen: &Seen, status: u16, code: &str, field: &str) {
    let error = &seen.body["error"];
    assert_eq!((seen.status, &error["code"]), (status, &json!(code)), "{}", seen.body);
    assert_eq!(error["field"].as_str().unwrap_or_default(), field, "{}", seen.body);
}

fn texts(messages: &[Value]) -> Vec<Value> {
    messages.iter().map(|message| message["content"].clone()).collect()
}

/// The first answer is followed twice: the second time the conversation has gone on, and a copy takes it.
fn followed() -> Scenario {
    story("an answer is followed twice")
        .drive(|sim| async move {
            sim.ask("use work").await;
            let first = sim.history().await[0]["id"].as_str().unwrap().to_owned();
            for _ in 0..2 {
                let seen = follow(&sim, &first, "second", "two").await;
                assert_eq!(seen.status, 202, "the same request again is no other one: {}", seen.body);
            }
            let second = sim.accepted.borrow().last().unwrap().clone();
            sim.outcome(&second).await;
            refused(&follow(&sim, &first, "other", "other").await, 409, "conflict", FOLLOWS);
            for _ in 0..2 {
                let seen = fork(&sim, json!({ "answer_to": first })).await;
                assert!(matches!(seen.status, 200 | 201), "{}", seen.body);
                assert_eq!(seen.body["threadId"], copy_id());
            }
            let copy = sim.of(&copy_id());
            copy.ask("other").await;
        })
        .check(|_, history| {
            assert_eq!(history.texts("user"), ["use work", "two"]);
            let copy = &history.family[&copy_id()];
            assert_eq!(copy.texts("user"), ["use work", "other"]);
            assert_eq!(copy.answers().len(), 2, "{:?}", copy.answers());
        })
}

#[test]
fn an_answer_that_was_followed_is_followed_in_a_copy_whatever_fails() {
    followed().sampled(300).sweep();
}

/// A copy that answers once, and deletes itself.
fn passing() -> Scenario {
    story("an answer is followed in a copy that passes")
        .drive(|sim| async move {
            sim.ask("one").await;
            let first = sim.history().await[0]["id"].clone();
            sim.ask("two").await;
            for _ in 0..2 {
                let seen = fork(&sim, json!({ "answer_to": first, "expires_in": 5_000 })).await;
                assert!(matches!(seen.status, 200 | 201), "{}", seen.body);
            }
            let copy = sim.of(&copy_id());
            copy.ask("other").await;
            assert_eq!(texts(&copy.history().await), ["one", "re: one", "other", "re: other"]);
            copy.accepted.borrow_mut().clear();
            sim.world.pause(6_000 * SECOND_US).await;
            assert_eq!(copy.insist(ThreadRoute::Get, &[], None, String::new()).await.status, 404);
            sim.ask("three").await;
        })
        .check(|sim, history| {
            assert_eq!(
                history.answers(),
                ["re: one", "re: two", "re: three"],
                "of the thread nothing is gone"
            );
            let tables = "SELECT count(*) FROM sqlite_master WHERE name = 'meta'";
            assert_eq!(sim.of(&copy_id()).member.database.ask::<i64>(tables), [0], "nothing is left");
            let rows = sim.world.outside.siblings.borrow();
            assert!(rows.iter().any(|(_, call)| call["call"] == "delete" && call["id"] == copy_id()));
        })
}

#[test]
fn a_copy_that_passes_is_gone_alone_whatever_fails() {
    passing().sampled(200).sweep();
}

/// Stops the run that is at the answer to a message; gives how many runs were stopped so far.
async fn stop_at(sim: &Sim, message: &str) -> i64 {
    let body = json!({ "answer_to": message }).to_string();
    let seen = sim.insist(ThreadRoute::Stop, &[], None, body).await;
    assert_eq!(seen.status, 200, "{}", seen.body);
    sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE outcome = 'stopped'")[0]
}

/// Only the run at the answer that is named is stopped, once, and none that begins afterwards.
fn stopped() -> Scenario {
    story("stopped at an answer, and again")
        .drive(|sim| async move {
            let first = sim.send("one").await;
            sim.outcome(&first).await;
            let second = sim.send("loop 50").await;
            sim.until_executions(1).await;
            assert_eq!(stop_at(&sim, &first.id).await, 0, "that is answered");
            for _ in 0..2 {
                assert_eq!(stop_at(&sim, &second.id).await, 1, "once");
            }
            sim.outcome(&second).await;
            let third = sim.send("three").await;
            assert_eq!(stop_at(&sim, &second.id).await, 1, "that has been stopped");
            sim.outcome(&third).await;
        })
        .terms(may_stop)
        .check(|_, history| {
            assert_eq!(history.texts("user"), ["one", "loop 50", "three"]);
            assert_eq!(history.answers(), ["re: one", "re: three"]);
            let outcomes: Vec<&Value> =
                history.outcomes.values().map(|outcome| &outcome["outcome"]).collect();
            assert_eq!(outcomes.iter().filter(|outcome| **outcome == "stopped").count(), 1, "{outcomes:?}");
        })
}

#[test]
fn only_the_run_at_the_named_answer_is_stopped_whatever_fails() {
    stopped().sampled(300).sweep();
}

#[test]
fn an_answer_ends_where_the_next_message_was_taken_in() {
    story("joined")
        .answers(|request| clerk(request).stream(request.index).pace(SECOND_US))
        .drive(|sim| async move {
            let first = sim.send("use work").await;
            sim.until_requests(1).await;
            let open = fork(&sim, json!({ "answer_to": first.id })).await;
            refused(&open, 409, "conflict", "answer_to");
            // Nobody has said anything since: it joins.
            let seen = follow(&sim, &first.id, "k", "joins").await;
            assert_eq!(seen.status, 202, "{}", seen.body);
            let second = sim.accepted.borrow().last().unwrap().clone();
            refused(&follow(&sim, &first.id, "other", "x").await, 409, "conflict", FOLLOWS);
            sim.outcome(&second).await;
            let history = sim.history().await;
            let joined = history.iter().position(|message| message["id"] == second.id).unwrap();
            let seen = fork(&sim, json!({ "answer_to": first.id })).await;
            assert_eq!(seen.status, 201, "{}", seen.body);
            assert_eq!(seen.body["fork"]["upTo"], history[joined - 1]["id"], "{history:?}");
            let copy = sim.of(&copy_id());
            copy.until("it is copied", |copy| {
                copy.member.database.ask::<i64>("SELECT jobs FROM meta") == [0]
            })
            .await;
            assert_eq!(texts(&copy.history().await), texts(&history[..joined]));
            assert_eq!(follow(&sim, &second.id, "last", "last").await.status, 202);
        })
        .calm();
}

#[test]
fn what_cannot_be_followed_is_refused_by_name() {
    story("not followed")
        .drive(|sim| async move {
            let first = sim.send("one").await;
            sim.outcome(&first).await;
            refused(&follow(&sim, "m_6f0c0000_99", "k", "x").await, 404, "message_not_found", "after");
            refused(
                &fork(&sim, json!({ "answer_to": "m_6f0c0000_99" })).await,
                404,
                "message_not_found",
                "answer_to",
            );
            let both = json!({ "answer_to": first.id, "up_to": first.id });
            refused(&fork(&sim, both).await, 400, "invalid_field", "answer_to");
            refused(&fork(&sim, json!({ "expires_in": 0 })).await, 400, "invalid_field", "expires_in");
            let seen = fork(&sim, json!({ "answer_to": first.id, "expires_in": 60 })).await;
            assert_eq!(seen.status, 201, "{}", seen.body);
            let copy = sim.of(&copy_id());
            copy.ask("two").await;
            copy.until("it has deleted itself", |copy| !copy.member.exists()).await;
        })
        .terms(|terms| terms.one_answer = false)
        .calm();
}

#[test]
fn a_run_is_stopped_only_at_the_answer_that_is_named() {
    story("stopped at an answer")
        .answers(|request| clerk(request).stream(request.index).pace(SECOND_US))
        .drive(|sim| async move {
            let first = sim.send("one").await;
            sim.outcome(&first).await;
            let second = sim.send("use work").await;
            sim.until_requests(2).await;
            assert_eq!(stop_at(&sim, &first.id).await, 0, "that is answered");
            let third = sim.send("waits").await;
            assert_eq!(stop_at(&sim, &second.id).await, 0, "another message waits behind it");
            sim.outcome(&third).await;
            let fourth = sim.send("use work").await;
            sim.until_executions(2).await;
            assert_eq!(stop_at(&sim, &fourth.id).await, 1);
            assert_eq!(stop_at(&sim, &fourth.id).await, 1, "once");
            let body = json!({ "answer_to": "m_6f0c0000_99" }).to_string();
            let seen = sim.insist(ThreadRoute::Stop, &[], None, body).await;
            let idle = seen.status == 200;
            assert!(idle, "nothing runs: {}", seen.body);
        })
        .terms(|terms| terms.outcomes = vec!["completed", "stopped"])
        .calm();
}
