//! What ends a run that would not end by itself.

use bobbin::definitions::message::ToolResult;
use serde_json::json;

use super::{INDETERMINATE, story, with_work, work};
use crate::host::{Native, Say};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![max_steps(), repeated_error(), says_nothing(), vanished()]
}

fn fails(scenario: Scenario) -> Scenario {
    scenario.terms(|terms| terms.outcomes = vec!["failed"])
}

fn max_steps() -> Scenario {
    fails(story("max steps"))
        .define(|catalog| catalog["agents"]["helper"]["sideA"]["maxSteps"] = 3.into())
        .drive(|sim| async move {
            let outcome = sim.ask("loop 10").await;
            assert_eq!(outcome["reason"], "max_steps", "{outcome}");
            assert!(outcome["error"]["message"].as_str().is_some_and(|text| text.contains('3')), "{outcome}");
        })
        .check(|sim, history| {
            assert_eq!(history.statuses("run_failed").len(), 1);
            assert_eq!(history.texts("tool").len(), 3);
            if history.faults == 0 {
                assert_eq!(sim.world.outside.requests.borrow().len(), 3);
            }
        })
}

#[test]
fn max_steps_ends_the_run_with_a_reason_in_the_history() {
    max_steps().sweep();
}

#[test]
fn a_message_that_starts_a_run_resets_the_steps() {
    story("steps reset")
        .define(|catalog| catalog["agents"]["helper"]["sideA"]["maxSteps"] = 3.into())
        .drive(|sim| async move {
            for n in 0..4 {
                let outcome = sim.ask(&format!("loop {}", n % 3)).await;
                assert_eq!(outcome["outcome"], "completed", "{outcome}");
            }
        })
        .terms(|terms| terms.texts_repeat = true)
        .calm();
}

pub(super) fn hard_cap() -> Scenario {
    fails(story("hard cap"))
        .drive(|sim| async move {
            let outcome = sim.ask("loop 1000").await;
            assert_eq!(outcome["reason"], "max_total_steps", "{outcome}");
        })
        .check(|sim, history| {
            assert_eq!(sim.world.outside.requests.borrow().len(), 250);
            assert_eq!(history.statuses("run_failed").len(), 1);
            assert!(sim.world.most_requests() <= 32, "{} in one event", sim.world.most_requests());
            assert!(sim.world.alarms_fired.get() >= 8, "{} alarms", sim.world.alarms_fired.get());
        })
}

#[test]
fn no_run_takes_more_than_250_steps() {
    hard_cap().once();
}

#[test]
fn a_flow_yields_to_a_fresh_event_whatever_fails() {
    story("yielding")
        .setup(|sim| {
            sim.world.vars.borrow_mut().insert("BOBBIN_OUTGOING_PER_EVENT".into(), "3".into());
        })
        .drive(|sim| async move {
            sim.ask("loop 8").await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool").len(), 8);
            assert!(sim.world.most_requests() <= 4, "{}", sim.world.most_requests());
            if history.faults == 0 {
                assert_eq!(sim.world.outside.requests.borrow().len(), 9);
            }
        })
        .sampled(150)
        .sweep();
}

fn repeated_error() -> Scenario {
    fails(story("repeated error"))
        .setup(|sim| {
            sim.world.outside.native("work", |_, before| {
                Native::Gives(0, ToolResult::error(format!("no route to host (try {before})")))
            });
        })
        .drive(|sim| async move {
            let outcome = sim.ask("loop 100").await;
            assert_eq!(outcome["reason"], "repeated_tool_error", "{outcome}");
        })
        .terms(|terms| terms.more_requests = 7)
        .check(|sim, history| {
            let requests = sim.world.outside.requests.borrow().len();
            // What is said of a call that was lost is another error.
            assert!(requests == 8 || history.faults > 0, "{requests}");
            let told = history.statuses("run_failed")[0]["content"].as_str().unwrap().to_owned();
            assert!(told.contains("no route to host"), "{told}");
        })
}

#[test]
fn the_same_error_eight_times_stops_the_run_and_says_so() {
    repeated_error().sweep();
}

#[test]
fn errors_with_a_success_between_them_do_not_stop_the_run() {
    story("errors between")
        .setup(|sim| {
            sim.world.outside.native("work", |_, before| {
                let result = match before % 7 {
                    6 => ToolResult::success("ok"),
                    _ => ToolResult::error("no"),
                };
                Native::Gives(0, result)
            });
        })
        .drive(|sim| async move {
            sim.ask("loop 20").await;
        })
        .calm();
}

#[test]
fn an_empty_reply_is_fed_back_once_and_then_fails() {
    for empties in [1, 2, 3] {
        let scenario = Scenario::new("empty reply", &with_work())
            .says(move |request| {
                if request.index > 0 {
                    let told = "Your last reply was empty. Answer in text or call a tool.";
                    assert!(request.body.to_string().contains(told), "{}", request.body);
                }
                if request.index < empties { Say::text("") } else { Say::text("sorry") }
            })
            .setup(work)
            .drive(move |sim| async move {
                let outcome = sim.ask("go").await;
                match empties {
                    1 => assert_eq!(outcome["message"]["content"], "sorry"),
                    _ => assert_eq!(outcome["reason"], "empty_reply", "{outcome}"),
                }
            });
        match empties {
            1 => scenario,
            _ => fails(scenario).check(|sim, history| {
                assert_eq!(sim.world.outside.requests.borrow().len(), 2);
                assert_eq!(history.statuses("run_failed").len(), 1);
            }),
        }
        .calm();
    }
}

fn says_nothing() -> Scenario {
    fails(story("nothing but empty replies"))
        .says(|_| Say::text(""))
        .drive(|sim| async move {
            let outcome = sim.ask("go").await;
            assert_eq!(outcome["reason"], "empty_reply", "{outcome}");
        })
        .check(|_, history| assert_eq!(history.statuses("run_failed").len(), 1))
}

#[test]
fn a_model_that_says_nothing_fails_its_run_whatever_else_fails() {
    says_nothing().sweep();
}

#[test]
fn a_stop_tool_ends_the_turn_and_gives_its_text() {
    Scenario::new("stop tool", &with_work())
        .define(|catalog| {
            catalog["tools"]["finish"] = json!({ "description": "Ends.", "args": { "type": "object",
                "properties": { "answer": { "type": "string" } } }, "run": { "native": "work" } });
            catalog["prompts"]["p"]["tools"] = json!(["work", "finish"]);
            catalog["agents"]["helper"]["sideA"] = json!({ "prompt": "p", "stopOnResponse": false,
                "stopTool": "finish", "stopToolResponseProperty": "answer" });
        })
        .says(|request| match request.texts("assistant").len() {
            0 => Say::text("thinking"),
            _ => Say::call("finish", &json!({ "answer": "42" })),
        })
        .setup(work)
        .drive(|sim| async move {
            let outcome = sim.ask("go").await;
            assert_eq!(
                (&outcome["reason"], &outcome["message"]["content"]),
                (&json!("stop_tool"), &json!("42"))
            );
        })
        .terms(|terms| terms.one_answer = false)
        .calm();
}

fn vanished() -> Scenario {
    fails(story("vanished"))
        .drive(|sim| async move {
            let message = sim.send("loop 2").await;
            sim.until_executions(1).await;
            let mut catalog = crate::sim::catalog(&with_work());
            catalog["agents"] = json!({});
            sim.deploy(&catalog);
            let outcome = sim.outcome(&message).await;
            assert_eq!(outcome["reason"], "definition_missing", "{outcome}");
        })
        .terms(|terms| terms.pairs = false)
}

#[test]
fn a_definition_that_vanished_fails_the_run_with_its_code() {
    vanished().sweep();
}

#[test]
fn a_tool_that_vanished_is_an_error_result_and_of_unknown_outcome_where_it_had_started() {
    story("vanished tool")
        .says(|request| match request.results().len() {
            0 => Say::default().and_call("work", "{}").and_call("work", "{}"),
            _ => Say::text("fine"),
        })
        .drive(|sim| async move {
            let message = sim.send("go").await;
            sim.until_executions(1).await;
            sim.deploy(&crate::sim::catalog(&json!({})));
            sim.outcome(&message).await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            let unlisted = |text: &str| text.contains("There is no tool \"work\" here.");
            for execution in sim.world.outside.executions.borrow().iter() {
                let (_, at) = execution.key.rsplit_once('.').unwrap();
                assert!(!unlisted(results[at.parse::<usize>().unwrap()]), "{at} ran: {results:?}");
            }
            if history.faults == 0 {
                assert!(results[0] == INDETERMINATE && unlisted(results[1]), "{results:?}");
            }
        })
        .sweep();
}
