//! Hooks that fail: it is logged, and nothing has changed.

use bobbin::definitions::message::ToolResult;
use bobbin::limits;
use bobbin::request::ThreadRoute;
use serde_json::json;

use super::hooks::{ALL, Kind, asked_of, behind, failures, hooked, react};
use crate::host::{Answer, Native};
use crate::sim::Sim;

/// Ways to fail, and what the log then says.
fn failing(sim: &Sim, hook: &'static str, way: &'static str) {
    match way {
        "an error" => react(sim, hook, |_| Err("no luck".into())),
        "a panic" => react(sim, hook, |_| panic!("oh")),
        "late" => sim.world.outside.hook(hook, |_| Box::pin(std::future::pending())),
        _ => react(sim, hook, |_| Ok(json!(7))),
    }
}

#[test]
fn a_hook_that_fails_is_logged_and_has_changed_nothing() {
    // What is observed may give anything.
    let changing = |hook: &str| !hook.contains("after_create") && !hook.contains("after_update");
    for way in ["an error", "a panic", "late", "the wrong shape"] {
        for hook in ALL {
            let observes = !changing(hook) || hook == "after_thread_created";
            let expected = match way {
                "an error" => "no luck",
                "a panic" => "it panicked: oh",
                "late" => "it did not answer within 30 s",
                _ => "it gave a number, not ",
            };
            // A model is told that a result is an error.
            let answer = if hook == "after_tool_call_failure" { "done: Error: w0" } else { "done: w0" };
            hooked("failures", &ALL)
                .setup(move |sim| {
                    if hook == "after_tool_call_failure" {
                        sim.world.outside.native("work", |_, _| Native::Gives(0, ToolResult::error("w0")));
                    }
                    failing(sim, hook, way);
                })
                .drive(move |sim| async move {
                    let message = sim.send("use work").await;
                    assert_eq!(sim.outcome(&message).await["message"]["content"], answer);
                    let body = json!({ "content": "changed" }).to_string();
                    let seen = sim.insist(ThreadRoute::PatchMessage(message.id), &[], None, body).await;
                    assert_eq!(seen.status, 200);
                    sim.accepted.borrow_mut().clear();
                })
                .check(move |sim, history| {
                    assert_eq!(history.texts("user"), ["changed"]);
                    assert_eq!(history.texts("tool"), ["w0"]);
                    assert_eq!(history.answers(), [answer]);
                    let requests = sim.world.outside.requests.borrow();
                    assert_eq!((requests.len(), requests[0].texts("user")), (2, vec!["use work"]));
                    let told = failures(sim);
                    let times = asked_of(sim, hook).len();
                    if way == "the wrong shape" && observes {
                        assert_eq!(told, []);
                    } else {
                        assert_eq!(told.len(), times, "{told:?}");
                    }
                    assert!(times > 0, "{hook} was never asked");
                    for (name, error) in told {
                        assert_eq!(name, hook);
                        assert!(error.starts_with(expected), "{hook}: {error}");
                    }
                })
                .terms(|terms| terms.one_answer = false)
                .once();
        }
    }
}

#[test]
fn an_http_hook_that_does_not_answer_as_it_should_has_changed_nothing() {
    let cases: Vec<(Answer, &str)> = vec![
        (Answer::status(500, "broken"), "http 500 from before_create_message: broken"),
        (Answer::status(302, ""), "http 302 from before_create_message: a redirect"),
        (Answer::refused(), "\"before_create_message\" could not be reached"),
        (Answer::silence(), "it did not answer within 2 s"),
        (Answer::status(200, "fine"), "its answer is no JSON object"),
        (Answer::status(200, "[]"), "its answer is no JSON object"),
        (Answer::json(&json!({})), "its answer has no `value`"),
        (Answer::json(&json!({ "error": "not today" })), "not today"),
        (Answer::json(&json!({ "value": [] })), "it gave a list, not a message or null"),
        (Answer::json(&json!({ "value": "x".repeat(limits::HTTP_TOOL_BYTES) })), "The answer of"),
    ];
    for (answer, expected) in cases {
        behind(Kind::Http, "http failures", &["before_create_message"])
            .define(|catalog| catalog["hooks"]["before_create_message"]["timeoutMs"] = json!(2_000))
            .setup(move |sim| {
                let answer = answer.clone();
                sim.world.outside.server("/before_create_message", move |_, _| answer.clone());
            })
            .drive(|sim| async move {
                sim.ask("hello").await;
            })
            .check(move |sim, history| {
                assert_eq!((history.texts("user"), history.answers()), (vec!["hello"], vec!["re: hello"]));
                let told = failures(sim);
                assert_eq!(told.len(), 2);
                assert!(
                    told.iter().all(|(_, error)| error.starts_with(expected)),
                    "{told:?}, not {expected}"
                );
            })
            .once();
    }
}
