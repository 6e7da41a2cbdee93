//! Runs as they are seen afterwards: what was wrong with them, what came of them, and what happened in them. The contract
//! looks at the outcome and the trace of every run of every story; here is what is in them.

use bobbin::definitions::message::ToolResult;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::{clerk, story, with_work};
use crate::host::{Answer, Native, Say};
use crate::sim::{Sim, model};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![without_a_key(), strict_without_a_key(), a_hook_fails_strictly(), traced_by_code()]
}

/// A run with its trace.
async fn run(sim: &Sim, id: &str) -> Value {
    sim.get(ThreadRoute::GetRun(id.into()), &[("trace", "1")]).await
}

fn codes(run: &Value) -> Vec<&str> {
    run["diagnostics"].as_array().unwrap().iter().filter_map(|entry| entry["code"].as_str()).collect()
}

fn kinds(run: &Value) -> Vec<&str> {
    run["trace"].as_array().unwrap().iter().filter_map(|entry| entry["kind"].as_str()).collect()
}

async fn post(sim: &Sim, body: Value) -> Value {
    let seen =
        sim.insist(ThreadRoute::PostMessage, &[("wait", "true")], Some(&sim.key()), body.to_string()).await;
    assert_eq!(seen.status, 200, "{}", seen.body);
    seen.body
}

fn keyless(scenario: Scenario) -> Scenario {
    scenario.define(|catalog| {
        catalog["models"] = json!({ "m": { "provider": "openai", "model": "m", "apiKeyEnv": "NO_KEY", "fallbacks": ["m2"] },
            "m2": model("m2") });
    })
}

fn without_a_key() -> Scenario {
    keyless(story("a model without its key")).drive(|sim| async move {
        let outcome = sim.ask("hello").await;
        assert_eq!((&outcome["status"], codes(&outcome)), (&json!("ok"), vec!["model.unusable"]));
        let entry = &outcome["diagnostics"][0];
        assert_eq!((&entry["level"], &entry["kind"]), (&json!("warn"), &json!("requirement")));
        assert!(
            entry["message"].as_str().unwrap().ends_with("NO_KEY is not set; \"m2\" is used."),
            "{entry}"
        );
        // They are stored, too.
        sim.evict().await;
        let stored = run(&sim, outcome["run"].as_str().unwrap()).await;
        assert_eq!(stored["diagnostics"], outcome["diagnostics"]);
    })
}

#[test]
fn a_model_without_its_key_is_told_of_whatever_fails() {
    without_a_key().sweep();
}

fn strict_without_a_key() -> Scenario {
    keyless(story("strict without a key"))
        .define(|catalog| {
            catalog["agents"]["helper"]["diagnostics"] = "strict".into();
            catalog["prompts"]["p"]["tools"] = json!(["work", "gone"]);
            catalog["tools"]["gone"] = json!({ "description": "Is not there.", "run": { "native": "gone" } });
        })
        .setup(|sim| sim.world.outside.missing.borrow_mut().push("gone".into()))
        .drive(|sim| async move {
            let outcome = sim.ask("hello").await;
            assert_eq!(
                (&outcome["status"], &outcome["reason"], &outcome["error"]["code"]),
                (&json!("error"), &json!("strict_diagnostics"), &json!("strict_diagnostics")),
                "{outcome}"
            );
            let text = outcome["error"]["message"].as_str().unwrap();
            assert!(text.contains("NO_KEY") && text.contains("\"gone\""), "{text}");
            assert!(outcome["diagnostics"].as_array().unwrap().iter().all(|entry| entry["level"] == "error"));
            let traced = run(&sim, outcome["run"].as_str().unwrap()).await;
            let mut kinds = kinds(&traced);
            kinds.retain(|kind| *kind != "run.recovered");
            assert_eq!(kinds, ["run.start", "run.error", "run.end"]);
        })
        .terms(|terms| terms.outcomes = vec!["failed"])
        .check(|sim, history| {
            assert!(sim.world.outside.requests.borrow().is_empty(), "a request left");
            assert_eq!(history.statuses("run_failed").len(), 1);
        })
}

#[test]
fn a_strict_run_that_lacks_something_ends_without_any_request() {
    strict_without_a_key().sweep();
}

#[test]
fn a_run_tells_of_models_without_a_price_and_of_memories_without_vectors() {
    story("nobody knows what it costs")
        .define(|catalog| {
            catalog["models"]["v"] =
                json!({ "provider": "openai", "model": "v", "kind": "embedding", "apiKeyEnv": "NO_KEY" });
            catalog["memories"] = json!({ "notes": { "description": "Notes.", "embedding": "v" } });
            catalog["prompts"]["p"]["memory"] = json!([{ "name": "notes", "tools": ["search"] }]);
        })
        .drive(|sim| async move {
            assert_eq!(codes(&sim.ask("one").await), ["embedding.unusable"]);
            // Its model has no price, and what the thread may cost is limited as long as nobody says that this is meant so.
            for (meant, expected) in [
                ("ignore", vec!["embedding.unusable"]),
                ("refuse", vec!["model.unpriced", "embedding.unusable"]),
            ] {
                let catalog = sim.catalog.borrow().clone();
                let mut limited = serde_json::to_value(&*catalog).unwrap();
                limited["settings"] =
                    json!({ "budget": { "run": { "maxCostUsd": 1.0 }, "unpriced": meant } });
                sim.deploy(&limited);
                assert_eq!(codes(&sim.ask(meant).await), expected, "{meant}");
            }
        })
        .calm();
}

#[test]
fn a_message_makes_its_run_strict_and_no_other_and_a_folder_all() {
    keyless(story("strict by a message"))
        .drive(|sim| async move {
            let strict = |text: &str| json!({ "role": "user", "content": text, "diagnostics": "strict" });
            assert_eq!(post(&sim, strict("one")).await["reason"], "strict_diagnostics");
            assert_eq!(sim.ask("two").await["reason"], "stop_on_response");
            for (body, field) in [
                (json!({ "role": "user", "content": "x", "diagnostics": "default" }), "diagnostics"),
                (json!({ "role": "system", "content": "x", "diagnostics": "strict" }), "diagnostics"),
            ] {
                let seen = sim.insist(ThreadRoute::PostMessage, &[], None, body.to_string()).await;
                assert_eq!(
                    (seen.status, &seen.body["error"]["field"]),
                    (400, &json!(field)),
                    "{}",
                    seen.body
                );
            }
            let catalog = sim.catalog.borrow().clone();
            let mut strict = serde_json::to_value(&*catalog).unwrap();
            strict["settings"] = json!({ "diagnostics": "strict" });
            sim.deploy(&strict);
            assert_eq!(sim.ask("three").await["reason"], "strict_diagnostics");
        })
        .terms(|terms| {
            terms.outcomes = vec!["completed", "failed"];
            terms.one_answer = false;
        })
        .calm();
}

#[test]
fn a_strict_message_that_joins_a_run_ends_it_after_its_step() {
    keyless(story("strict joins"))
        .drive(|sim| async move {
            let first = sim.send("loop 3").await;
            sim.until("asked", |sim| !sim.world.outside.requests.borrow().is_empty()).await;
            let joined =
                post(&sim, json!({ "role": "user", "content": "now", "diagnostics": "strict" })).await;
            assert_eq!(joined["reason"], "strict_diagnostics", "{joined}");
            assert_eq!(sim.outcome(&first).await["run"], joined["run"]);
        })
        .terms(|terms| {
            terms.outcomes = vec!["failed"];
            terms.one_answer = false;
        })
        .calm();
}

fn a_hook_fails_strictly() -> Scenario {
    story("a hook fails in a strict run")
        .define(|catalog| {
            catalog["hooks"] =
                json!({ "h": { "id": "h", "hook": "after_system_message", "run": { "native": "h" } } });
            catalog["agents"]["helper"]["hooks"] = json!(["h"]);
            catalog["agents"]["helper"]["diagnostics"] = "strict".into();
        })
        .setup(|sim| {
            sim.world.outside.hook("h", |_| Box::pin(async { Err("it is broken".into()) }));
        })
        .drive(|sim| async move {
            let outcome = sim.ask("hello").await;
            assert_eq!(
                (&outcome["reason"], codes(&outcome)),
                (&json!("strict_diagnostics"), vec!["hook.failed"])
            );
            // What it said is there all the same.
            assert_eq!(outcome["artefact"]["message"]["content"], "re: hello");
        })
        .terms(|terms| {
            terms.outcomes = vec!["failed"];
            terms.one_answer = false;
        })
}

#[test]
fn a_strict_run_ends_with_the_step_in_which_a_hook_failed() {
    a_hook_fails_strictly().sweep();
}

fn traced_by_code() -> Scenario {
    Scenario::new("traced by code", &with_work())
        .says(clerk)
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    for (kind, size) in [("work", 10), ("app.big", 9_000)] {
                        assert!(state.trace(kind, json!("x".repeat(size))).is_err(), "{kind}");
                    }
                    match state.trace("app.work", json!({ "n": 1 })) {
                        Ok(()) => ToolResult::success("traced"),
                        Err(error) => ToolResult::error(error.into_message()),
                    }
                }))
            });
        })
        .drive(|sim| async move {
            let outcome = sim.ask("use work").await;
            let traced = run(&sim, outcome["run"].as_str().unwrap()).await;
            let entries: Vec<&Value> = traced["trace"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|entry| entry["kind"] == "app.work")
                .collect();
            // A call that was lost with its process may have told nothing yet.
            assert!(entries.len() <= 1 && entries.iter().all(|entry| entry["data"] == json!({ "n": 1 })));
            assert!(kinds(&traced).contains(&"tool.call"));
        })
}

#[test]
fn code_adds_to_the_trace_of_its_run() {
    traced_by_code().sweep();
}

#[test]
fn a_trace_tells_of_retries_fallbacks_and_tools_and_is_the_same_when_read_again() {
    story("a trace")
        .define(|catalog| {
            catalog["models"] = json!({ "m": model("m"), "m2": model("m2") });
            catalog["models"]["m"]["fallbacks"] = json!(["m2"]);
        })
        .answers(|request| match request.index {
            0 => Answer::status(503, r#"{"error":{"message":"busy"}}"#),
            1 => Answer::status(401, r#"{"error":{"message":"no"}}"#),
            _ => clerk(request).stream(request.index),
        })
        .drive(|sim| async move {
            let outcome = sim.ask("loop 1").await;
            let id = outcome["run"].as_str().unwrap().to_owned();
            assert_eq!(codes(&outcome), ["fallback"]);
            let traced = run(&sim, &id).await;
            assert_eq!(
                kinds(&traced),
                [
                    "run.start",
                    "agent.loop.snapshot",
                    "model.attempt",
                    "adapter.retry",
                    "model.attempt",
                    "adapter.retry.exhausted",
                    "model.attempt",
                    "tool.call",
                    "model.attempt",
                    "run.output",
                    "run.success",
                    "run.end"
                ]
            );
            assert_eq!(traced["usage"]["modelCalls"], 4);
            assert_eq!((&traced["usage"]["steps"], &traced["usage"]["toolCalls"]), (&json!(2), &json!(1)));
            assert!(traced["trace"][0]["data"]["trigger"].as_str().unwrap().starts_with("m_"));
            sim.evict().await;
            assert_eq!(run(&sim, &id).await, traced);
            let listed = sim.get(ThreadRoute::ListRuns, &[]).await;
            assert_eq!((&listed["runs"][0]["run"], &listed["hasMore"]), (&json!(id), &json!(false)));
            let missing = sim.insist(ThreadRoute::GetRun("r_99".into()), &[], None, String::new()).await;
            assert_eq!(missing.status, 404);
        })
        .terms(|terms| terms.more_requests = 2)
        .calm();
}

#[test]
fn a_failure_is_told_in_the_same_words_whenever_it_is_asked_for() {
    story("too many steps")
        .define(|catalog| catalog["agents"]["helper"]["sideA"]["maxSteps"] = json!(2))
        .drive(|sim| async move {
            let body = json!({ "role": "user", "content": "loop 5" });
            let (key, query) = (sim.key(), [("wait", "true")]);
            let mut told = Vec::new();
            for _ in 0..2 {
                let seen = sim.insist(ThreadRoute::PostMessage, &query, Some(&key), body.to_string()).await;
                assert_eq!((seen.status, &seen.body["reason"]), (200, &json!("max_steps")), "{}", seen.body);
                told.push(seen.body["message"].clone());
                sim.evict().await;
            }
            told.push(run(&sim, "r_1").await["message"].clone());
            assert_eq!(told[0]["metadata"]["status_kind"], "run_failed", "{told:?}");
            assert!(told.iter().all(|message| *message == told[0]), "{told:?}");
        })
        .terms(|terms| {
            terms.outcomes = vec!["failed"];
            terms.one_answer = false;
        })
        .calm();
}

#[test]
fn runs_are_listed_newest_first_in_pages() {
    story("pages of runs")
        .drive(|sim| async move {
            for n in 0..5 {
                sim.ask(&format!("m{n}")).await;
            }
            let ids = |page: &Value| -> Vec<String> {
                page["runs"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|run| run["run"].as_str().unwrap().into())
                    .collect()
            };
            let first = sim.get(ThreadRoute::ListRuns, &[("limit", "2")]).await;
            assert_eq!(
                (ids(&first), &first["hasMore"]),
                (vec!["r_5".to_owned(), "r_4".into()], &json!(true))
            );
            let rest = sim.get(ThreadRoute::ListRuns, &[("before", "r_4")]).await;
            assert_eq!(ids(&rest), ["r_3", "r_2", "r_1"]);
            let wrong = sim.insist(ThreadRoute::ListRuns, &[("before", "x")], None, String::new()).await;
            assert_eq!(wrong.body["error"]["code"], "bad_cursor", "{}", wrong.body);
            // Each is found among the rows of the others.
            for n in 1..=5 {
                let one = run(&sim, &format!("r_{n}")).await;
                assert_eq!(one["usage"]["modelCalls"], 1, "{one}");
                let mut kinds = kinds(&one);
                // Only where the definitions differ from those of the run before.
                kinds.retain(|kind| *kind != "agent.loop.snapshot");
                assert_eq!(kinds, ["run.start", "model.attempt", "run.output", "run.success", "run.end"]);
            }
        })
        .calm();
}

#[test]
fn code_has_room_for_a_hundred_entries() {
    Scenario::new("many entries", &with_work())
        .says(clerk)
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    (0..150).for_each(|n| state.trace("app.n", json!(n)).unwrap());
                    ToolResult::success("done")
                }))
            });
        })
        .drive(|sim| async move {
            let outcome = sim.ask("use work").await;
            assert_eq!(codes(&outcome), ["trace.dropped"]);
            let traced = run(&sim, outcome["run"].as_str().unwrap()).await;
            assert_eq!(kinds(&traced).iter().filter(|kind| **kind == "app.n").count(), 100);
        })
        .calm();
}

#[test]
fn a_trace_has_two_thousand_entries_at_most_and_says_so() {
    const CALLS: usize = 20;
    // Of each step: its request, and its calls.
    let whole = |steps: usize| 1 + steps * (CALLS + 1) + 1 + 3;
    for (steps, truncated) in [(94, false), (110, true)] {
        Scenario::new("a long trace", &with_work())
            .says(move |request| match request.results().len() {
                done if done < steps * CALLS => {
                    (0..CALLS).fold(Say::default(), |say, _| say.and_call("work", "{}"))
                }
                _ => Say::text("done"),
            })
            .setup(|sim| {
                sim.world.outside.native("work", |_, _| Native::Gives(0, ToolResult::success("w")));
            })
            .define(|catalog| catalog["prompts"]["p"]["parallelToolCalls"] = json!(true))
            .drive(move |sim| async move {
                let outcome = sim.ask("go").await;
                assert_eq!(outcome["outcome"], "completed", "{outcome}");
                let traced = run(&sim, outcome["run"].as_str().unwrap()).await;
                let mut kinds = kinds(&traced);
                kinds.retain(|kind| *kind != "agent.loop.snapshot");
                assert_eq!(traced["truncated"], truncated);
                if truncated {
                    assert_eq!(traced["trace"].as_array().unwrap().len(), 2_000);
                } else {
                    assert_eq!(kinds.len(), whole(steps));
                }
                // What is left out is what came last but its end.
                assert_eq!(kinds[0], "run.start");
                assert_eq!(kinds[kinds.len() - 3..], ["run.output", "run.success", "run.end"]);
                let of_end = |kind: &&&str| matches!(**kind, "run.start" | "run.end");
                assert_eq!(kinds.iter().filter(of_end).count(), 2);
            })
            .once();
    }
}
