//! Stop, continue, terminate: in every phase.

use bobbin::definitions::message::ToolResult;
use bobbin::request::ThreadRoute;
use serde_json::json;

use super::{clerk, story, with_work};
use crate::contract::Terms;
use crate::host::{Native, SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![
        stop_then_post(),
        stop_in_tool(),
        stop_then_continue(),
        terminate(During::Model),
        terminate(During::Tool),
    ]
}

pub fn may_stop(terms: &mut Terms) {
    terms.outcomes = vec!["completed", "stopped"];
    terms.one_answer = false;
    terms.overlap = true;
    // Results of calls that never started are made when a request needs them.
    terms.pairs = false;
    terms.more_requests = 2;
}

/// `work` takes a minute.
fn slow_work(sim: &Sim) {
    sim.world.outside.native("work", |_, _| Native::Gives(60 * SECOND_US, ToolResult::success("slow")));
}

/// A model that says every reply over ten seconds.
fn slow(name: &'static str) -> Scenario {
    story(name)
        .answers(|request| clerk(request).stream(request.index).pace(2 * SECOND_US))
        .setup(slow_work)
        .terms(may_stop)
}

fn stop_then_post() -> Scenario {
    slow("stop during a model call, then a post")
        .drive(|sim| async move {
            sim.send("hello").await;
            sim.until_requests(1).await;
            sim.world.pause(3 * SECOND_US).await;
            let seen = sim.stop().await;
            assert_eq!((seen.status, seen.body["status"].as_str()), (200, Some("stopped")));
            sim.world.pause(60 * SECOND_US).await;
            if sim.world.faults.borrow().fired.is_empty() {
                assert_eq!(sim.world.outside.requests.borrow().len(), 1, "a stopped thread is quiet");
                assert_eq!(sim.world.open_requests.get(), 0, "the request was let go");
            }
            let outcome = sim.ask("again").await;
            assert_eq!(outcome["outcome"], "completed");
        })
        .check(|_, history| {
            assert_eq!(history.texts("user"), ["hello", "again"]);
            assert_eq!(history.answers().last(), Some(&"re: again"));
            if history.faults == 0 {
                let first = history.outcomes.values().next().unwrap();
                assert_eq!(
                    (&first["outcome"], &first["reason"]),
                    (&json!("stopped"), &json!("stopped_by_user"))
                );
                assert_eq!(history.answers(), ["re: again"]);
            }
        })
}

#[test]
fn stop_ends_a_model_call_and_a_post_clears_it() {
    stop_then_post().sweep();
}

fn stop_in_tool() -> Scenario {
    slow("stop during a tool")
        .drive(|sim| async move {
            sim.send("use work,work").await;
            sim.until_executions(1).await;
            sim.stop().await;
        })
        .check(|sim, history| {
            if history.faults == 0 {
                let results = history.texts("tool");
                assert!(results.len() == 1 && results[0].contains("was stopped while \"work\" was running"));
                assert_eq!(sim.world.outside.executions.borrow().len(), 1);
                assert_eq!(sim.world.outside.requests.borrow().len(), 1);
            }
        })
}

#[test]
fn stop_during_a_tool_answers_every_call() {
    stop_in_tool().sweep();
}

#[test]
fn stop_of_an_idle_thread_changes_nothing_for_the_next_message() {
    slow("stop when idle")
        .drive(|sim| async move {
            assert_eq!(sim.stop().await.status, 200);
            sim.ask("hello").await;
            assert_eq!(sim.stop().await.status, 200);
            assert_eq!(sim.stop().await.status, 200);
            sim.ask("again").await;
        })
        .check(|_, history| assert_eq!(history.answers(), ["re: hello", "re: again"]))
        .sampled(120)
        .sweep();
}

fn stop_then_continue() -> Scenario {
    slow("stop, then continue")
        .drive(|sim| async move {
            sim.send("use work,work").await;
            sim.until_executions(1).await;
            sim.stop().await;
            sim.world.pause(10 * SECOND_US).await;
            let seen = sim.go_on().await;
            assert_eq!(seen.status, 202, "{}", seen.body);
        })
        .check(|sim, history| {
            let last =
                history.messages.iter().rev().find(|m| m["metadata"]["status_kind"].is_null()).unwrap();
            assert_eq!(last["role"], "assistant", "{last}");
            assert!(last["content"].as_str().unwrap().starts_with("done: "), "{last}");
            assert_eq!(history.answers().len(), 1);
            if history.faults == 0 {
                let requests = sim.world.outside.requests.borrow();
                let results = requests[1].results();
                assert_eq!(results.len(), 2);
                assert!(results[0].contains("was stopped while \"work\" was running"), "{results:?}");
                assert_eq!(results[1], "Not run: the run was stopped.");
            }
        })
}

#[test]
fn continue_goes_on_where_a_stop_ended() {
    stop_then_continue().sweep();
}

#[test]
fn queued_messages_of_a_stopped_thread_wait_for_continue() {
    slow("queue behind a stop")
        .drive(|sim| async move {
            sim.send("first").await;
            sim.until_requests(1).await;
            let second = sim.send("second").await;
            sim.stop().await;
            sim.world.pause(3_600 * SECOND_US).await;
            assert_eq!(sim.world.outside.requests.borrow().len(), 1);
            let waiting = sim.outcome(&second).await;
            assert_eq!((&waiting["outcome"], &waiting["message"]), (&json!("stopped"), &json!(null)));
            assert_eq!(sim.go_on().await.status, 202);
            let outcome = sim.outcome(&second).await;
            assert_eq!(outcome["message"]["content"], "re: second");
        })
        .check(|_, history| assert_eq!(history.answers(), ["re: second"]))
        .calm();
}

#[test]
fn continue_after_the_step_limit_does_not_reset_it() {
    story("continue at the limit")
        .define(|catalog| catalog["agents"]["helper"]["sideA"]["maxSteps"] = 3.into())
        .drive(|sim| async move {
            let outcome = sim.ask("loop 10").await;
            assert_eq!(outcome["reason"], "max_steps");
            sim.go_on().await;
            sim.world.pause(60 * SECOND_US).await;
            assert_eq!(sim.world.outside.requests.borrow().len(), 3, "continue resets nothing");
            sim.ask("hello").await;
        })
        .terms(|terms| {
            terms.outcomes = vec!["failed", "completed"];
        })
        .calm();
}

/// When a thread is terminated.
#[derive(Clone, Copy)]
enum During {
    Idle,
    Model,
    Tool,
}

fn terminate(during: During) -> Scenario {
    slow("terminate")
        .drive(move |sim| async move {
            match during {
                During::Idle => {
                    sim.ask("hello").await;
                }
                During::Model => {
                    sim.send("hello").await;
                    sim.until_requests(1).await;
                    sim.world.pause(3 * SECOND_US).await;
                }
                During::Tool => {
                    sim.send("use work,work").await;
                    sim.until_executions(1).await;
                }
            }
            let seen = sim.terminate().await;
            assert_eq!(seen.status, 200, "{}", seen.body);
            let again = sim.terminate().await;
            assert_eq!(again.status, 200, "a second one is no error: {}", again.body);
            for (route, body) in [
                (ThreadRoute::PostMessage, r#"{"role":"user","content":"late"}"#),
                (ThreadRoute::Continue, "{}"),
            ] {
                let refused = sim.insist(route.clone(), &[], None, body.into()).await;
                assert_eq!(
                    (refused.status, refused.body["error"]["code"].as_str()),
                    (409, Some("terminated")),
                    "{route:?}"
                );
            }
            assert!(!sim.history().await.is_empty(), "it stays readable");
        })
        .check(move |sim, history| {
            assert_eq!(history.texts("user").len(), 1);
            if history.faults == 0 && !matches!(during, During::Idle) {
                let outcome = history.outcomes.values().next().unwrap();
                assert_eq!(
                    (&outcome["outcome"], &outcome["reason"]),
                    (&json!("stopped"), &json!("terminated"))
                );
                assert_eq!(sim.world.outside.requests.borrow().len(), 1);
            }
        })
}

#[test]
fn terminate_ends_work_in_every_phase_and_leaves_the_thread_readable() {
    for during in [During::Idle, During::Model, During::Tool] {
        terminate(during).sampled(120).sweep();
    }
}

#[test]
fn stop_and_posts_at_the_same_time_lose_nothing() {
    Scenario::new("stop storm", &with_work())
        .setup(slow_work)
        .answers(|request| {
            Say::text(format!("re: {}", request.last_user())).stream(request.index).pace(100_000)
        })
        .drive(|sim| async move {
            for n in 0..4 {
                let client = sim.clone();
                sim.world.client(async move {
                    client.world.pause(n * 130_000).await;
                    client.send(&format!("m{n}")).await;
                });
                let stopper = sim.clone();
                sim.world.client(async move {
                    stopper.world.pause(n * 170_000).await;
                    stopper.stop().await;
                });
            }
            sim.world.pause(20 * SECOND_US).await;
            sim.go_on().await;
        })
        .terms(|terms| {
            may_stop(terms);
            terms.more_requests = 20;
        })
        .check(|_, history| assert_eq!(history.texts("user").len(), 4))
        .sampled(80)
        .sweep();
}
