//! Messages that arrive while something happens: they join, wait, and keep their order.

use serde_json::json;

use super::{clerk, story, with_work, work};
use crate::host::{DAY_US, SECOND_US, Say};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![joins(), during_the_last_call(), three_at_once(), storm()]
}

/// A message posted while a model call runs joins the next call of that run.
fn joins() -> Scenario {
    Scenario::new("joining", &with_work())
        .setup(work)
        .answers(|request| {
            let users = request.texts("user");
            let say = match (users.last().copied(), request.results().len()) {
                (Some("first"), 0) => Say::call("work", &json!({})),
                (Some("first"), _) => Say::text("one").chunks(2),
                (_, _) => Say::text(format!("saw {}", users.len())),
            };
            say.stream(request.index).pace(SECOND_US)
        })
        .drive(|sim| async move {
            let first = sim.send("first").await;
            sim.until_requests(1).await;
            let second = sim.send("second").await;
            let outcomes = (sim.outcome(&first).await, sim.outcome(&second).await);
            if sim.world.faults.borrow().fired.is_empty() {
                assert_eq!(outcomes.0["run"], outcomes.1["run"]);
                assert_eq!(outcomes.0["message"]["content"], "saw 2");
            }
        })
        .check(|sim, history| {
            assert_eq!(history.texts("user"), ["first", "second"]);
            if history.faults == 0 {
                let roles: Vec<&str> = history.messages.iter().filter_map(|m| m["role"].as_str()).collect();
                assert_eq!(roles, ["user", "assistant", "tool", "user", "assistant"]);
                assert_eq!(sim.world.outside.requests.borrow().len(), 2);
            }
        })
        .terms(|terms| terms.more_requests = 2)
}

#[test]
fn a_message_joins_the_next_model_call_and_keeps_its_place() {
    joins().sweep();
}

fn during_the_last_call() -> Scenario {
    story("during the last call")
        .answers(|request| clerk(request).stream(request.index).pace(SECOND_US))
        .drive(|sim| async move {
            let first = sim.send("first").await;
            sim.until_requests(1).await;
            let second = sim.send("second").await;
            let outcomes = (sim.outcome(&first).await, sim.outcome(&second).await);
            if sim.world.faults.borrow().fired.is_empty() {
                assert_ne!(outcomes.0["run"], outcomes.1["run"]);
            }
        })
        .check(|_, history| {
            assert_eq!(history.texts("user"), ["first", "second"]);
            if history.faults == 0 {
                assert_eq!(history.answers(), ["re: first", "re: second"]);
            }
        })
        .terms(|terms| terms.more_requests = 1)
}

#[test]
fn a_message_during_the_last_call_starts_a_new_run() {
    during_the_last_call().sweep();
}

fn three_at_once() -> Scenario {
    story("three at once")
        .answers(|request| clerk(request).stream(request.index).pace(300_000))
        .drive(|sim| async move {
            let first = sim.send("loop 3").await;
            sim.until_requests(1).await;
            for n in 0..3 {
                let client = sim.clone();
                sim.world.client(async move {
                    client.send(&format!("extra {n}")).await;
                });
            }
            sim.outcome(&first).await;
        })
        .check(|_, history| {
            let mut users = history.texts("user");
            users.sort_unstable();
            assert_eq!(users, ["extra 0", "extra 1", "extra 2", "loop 3"]);
        })
        .terms(|terms| terms.more_requests = 6)
}

#[test]
fn three_messages_at_once_are_in_one_history() {
    three_at_once().sweep();
}

/// Many clients that each send three messages and wait for their last answer.
fn storm() -> Scenario {
    story("storm")
        .drive(|sim| async move {
            for client in 0..4 {
                let sim = sim.clone();
                let world = sim.world.clone();
                world.client(async move {
                    for n in 0..3 {
                        let message = sim.send(&format!("c{client} n{n}")).await;
                        if n == 2 {
                            sim.outcome(&message).await;
                        }
                    }
                });
            }
        })
        .terms(|terms| terms.more_requests = 30)
        .sampled(60)
}

#[test]
fn many_clients_at_once_lose_and_double_nothing() {
    storm().sweep();
}

#[test]
fn an_idempotency_key_gives_the_first_answer_for_a_day() {
    story("keys")
        .drive(|sim| async move {
            let body = || json!({ "role": "user", "content": "once" });
            let first = sim.post_with("k", body(), &[]).await;
            let again = sim.post_with("k", body(), &[]).await;
            assert_eq!((first.status, again.status), (202, 202));
            assert_eq!(first.body["messageId"], again.body["messageId"]);
            let other = sim.post_with("k", json!({ "role": "user", "content": "other" }), &[]).await;
            assert_eq!(
                (other.status, other.body["error"]["code"].as_str()),
                (422, Some("idempotency_mismatch"))
            );
            sim.world.pause(DAY_US + SECOND_US).await;
            let late = sim.post_with("k", body(), &[]).await;
            assert_eq!(late.status, 202);
            assert_ne!(first.body["messageId"], late.body["messageId"]);
        })
        // The same text twice on purpose: once within the day, once after it.
        .terms(|terms| {
            terms.texts_repeat = true;
            terms.one_answer = false;
        })
        .check(|_, history| assert_eq!(history.texts("user"), ["once", "once"]))
        .calm();
}

#[test]
fn a_system_message_starts_nothing_and_is_in_the_next_request() {
    story("system message")
        .drive(|sim| async move {
            let seen = sim
                .insist(
                    bobbin::request::ThreadRoute::PostMessage,
                    &[],
                    None,
                    json!({ "role": "system", "content": "Be brief." }).to_string(),
                )
                .await;
            assert_eq!(seen.status / 100, 2);
            sim.world.pause(60 * SECOND_US).await;
            assert!(sim.world.outside.requests.borrow().is_empty());
            sim.ask("hello").await;
        })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            assert!(requests[0].body["messages"].to_string().contains("Be brief."));
        })
        .calm();
}

#[test]
fn bad_posts_are_refused_and_leave_nothing() {
    story("bad posts")
        .drive(|sim| async move {
            for (body, code) in [
                ("{", "bad_json"),
                ("[]", "bad_json"),
                ("{}", "missing_field"),
                (r#"{"role":"user"}"#, "missing_field"),
                (r#"{"role":"user","content":""}"#, ""),
                (r#"{"role":"user","content":7}"#, "invalid_field"),
                (r#"{"role":"tool","content":"x"}"#, "invalid_field"),
                (r#"{"role":7,"content":"x"}"#, "invalid_field"),
                (r#"{"role":"user","content":"x","silent":"yes"}"#, "invalid_field"),
            ] {
                let seen = sim
                    .once(bobbin::request::ThreadRoute::PostMessage, &[], None, body.into())
                    .await
                    .unwrap();
                assert_eq!(seen.status, 400, "{body}: {}", seen.body);
                if !code.is_empty() {
                    assert_eq!(seen.body["error"]["code"], code, "{body}: {}", seen.body);
                }
            }
            let big = json!({ "role": "user", "content": "x".repeat((1 << 20) + 1) }).to_string();
            let seen = sim.once(bobbin::request::ThreadRoute::PostMessage, &[], None, big).await.unwrap();
            assert_eq!((seen.status, seen.body["error"]["code"].as_str()), (413, Some("too_large")));
        })
        .check(|sim, history| {
            assert!(history.messages.is_empty());
            assert!(sim.world.outside.requests.borrow().is_empty());
        })
        .calm();
}

#[test]
fn a_full_queue_is_refused_with_a_time_to_come_back() {
    story("full queue")
        .answers(|request| clerk(request).stream(request.index).after(100 * SECOND_US))
        .drive(|sim| async move {
            sim.send("first").await;
            sim.until_requests(1).await;
            for n in 0..1_000 {
                sim.send(&format!("q{n}")).await;
            }
            let seen = sim.post(json!({ "role": "user", "content": "one too many" })).await;
            assert_eq!((seen.status, seen.body["error"]["code"].as_str()), (429, Some("queue_full")));
            assert!(seen.retry_after.is_some());
            sim.world.pause(300 * SECOND_US).await;
        })
        .check(|_, history| assert_eq!(history.texts("user").len(), 1_001))
        .once();
}
