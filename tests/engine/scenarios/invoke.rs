//! Calls that code makes and waits for (spec §6.4).

use bobbin::Code;
use bobbin::definitions::message::{ToolResult, ToolStatus};
use bobbin::engine::ThreadState;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::handoff::billing;
use super::subprompts::checking;
use super::{INDETERMINATE, clerk, story};
use crate::host::{Native, SECOND_US, Say};
use crate::sim::{Sim, native};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![by_a_tool(false), by_a_tool(true), by_an_effect(), a_prompt(), a_hand_off()]
}

/// `deeper` exists beside `work`; no prompt lists it.
fn with_deeper(catalog: &mut Value) {
    catalog["tools"]["deeper"] = native(false);
    catalog["tools"]["deeper"]["run"]["native"] = json!("deeper");
    catalog["prompts"]["p"]["tools"] = json!(["work"]);
}

fn deeper(sim: &Sim) {
    sim.world.outside.native("deeper", |call, before| {
        Native::Gives(SECOND_US, ToolResult::success(format!("deeper {} {before}", call.args["n"])))
    });
}

/// What `work` calls while it works, one after another; its result is all of theirs.
fn working(calls: Vec<(&'static str, Value)>) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let calls = calls.clone();
        sim.world.outside.native("work", move |call, _| {
            let (state, calls) = (call.state.clone(), calls.clone());
            Native::Works(Box::pin(async move { invoke_all(&state, calls).await }))
        });
    }
}

async fn invoke_all(state: &ThreadState, calls: Vec<(&'static str, Value)>) -> ToolResult {
    let mut results = Vec::new();
    for (name, args) in calls {
        match state.invoke_tool(name, args).await {
            Ok(result) => results.push(result.text()),
            Err(error) => return ToolResult::error(error.into_message()),
        }
    }
    ToolResult::success(results.join("; "))
}

fn runs(sim: &Sim, name: &str) -> usize {
    sim.world.outside.executions.borrow().iter().filter(|execution| execution.name == name).count()
}

fn receipts(sim: &Sim) -> Vec<String> {
    sim.world
        .database
        .ask("SELECT call_id || ' ' || name || ' ' || state FROM calls WHERE reply <= 0 ORDER BY id")
}

/// A tool that calls another twice. If it may be repeated it gets the results that it had.
fn by_a_tool(idempotent: bool) -> Scenario {
    story("a tool that calls tools")
        .define(move |catalog| {
            with_deeper(catalog);
            catalog["tools"]["work"]["idempotent"] = json!(idempotent);
        })
        .says(clerk)
        .setup(deeper)
        .setup(working(vec![("deeper", json!({ "n": 1 })), ("deeper", json!({ "n": 2 }))]))
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(move |sim, history| {
            let keys: Vec<String> =
                sim.world.outside.executions.borrow().iter().map(|execution| execution.key.clone()).collect();
            let within: Vec<&String> = keys.iter().filter(|key| key.matches('.').count() == 2).collect();
            let mut distinct = within.clone();
            distinct.dedup();
            assert_eq!(within, distinct, "no call of unknown outcome is made again: {keys:?}");
            let open: Vec<i64> = sim.world.database.ask("SELECT count(*) FROM calls WHERE state = 'started'");
            assert_eq!(open, [0], "{:?}", receipts(sim));
            let result = history.texts("tool")[0].to_owned();
            if history.faults == 0 {
                assert_eq!(result, "deeper 1 0; deeper 2 1");
                assert_eq!(receipts(sim), ["r2.0.0 deeper succeeded", "r2.0.1 deeper succeeded"]);
                assert_eq!(history.messages.len(), 4, "no messages of their own");
            } else if !idempotent {
                assert!(result == INDETERMINATE || result == "deeper 1 0; deeper 2 1", "{result}");
            } else {
                assert!(
                    result.contains("deeper 1 0") || result.contains("while \"deeper\" was running"),
                    "{result}"
                );
            }
        })
}

#[test]
fn a_tool_calls_tools_and_their_receipts_are_its_own() {
    by_a_tool(false).sweep();
}

#[test]
fn a_tool_that_is_run_again_gets_the_results_that_it_had() {
    by_a_tool(true).sweep();
}

fn by_an_effect() -> Scenario {
    story("an effect that calls a tool")
        .define(|catalog| {
            with_deeper(catalog);
            catalog["effects"]["later"] = json!({ "description": "Later.", "run": { "native": "later" } });
        })
        .setup(deeper)
        .setup(|sim| {
            sim.world.outside.effect("later", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    assert!(state.execution().unwrap().is_none());
                    invoke_all(&state, vec![("deeper", json!({ "n": 5 }))]).await
                }))
            });
        })
        .drive(|sim| async move {
            let body = json!({ "name": "later", "delay": 1_000 }).to_string();
            let seen = sim.insist(ThreadRoute::PostEffect, &[], Some("once"), body).await;
            assert!(seen.status < 300, "{}", seen.body);
            sim.world.pause(60 * SECOND_US).await;
        })
        .check(|sim, history| {
            let times = runs(sim, "deeper");
            assert!(
                times == 1 || (times == 0 && history.faults > 0),
                "an attempt that comes again calls nothing again"
            );
            let receipts = receipts(sim);
            assert_eq!(receipts.len(), 1, "{receipts:?}");
            assert!(receipts[0].starts_with('e') && !receipts[0].ends_with("started"), "{receipts:?}");
        })
}

#[test]
fn an_effect_that_is_tried_again_makes_no_call_twice() {
    by_an_effect().sweep();
}

/// The prompt `check`, called by a tool that may be repeated: its step is entered again.
fn a_prompt() -> Scenario {
    story("a tool that asks a prompt")
        .define(|catalog| {
            checking(catalog);
            with_deeper(catalog);
            catalog["prompts"]["check"]["tools"] = json!(["deeper"]);
            catalog["tools"]["work"]["idempotent"] = json!(true);
        })
        .says(|request| match request.texts("system")[0].starts_with("You check") {
            true => Say::text("checked").and_call("deeper", "{}"),
            false => clerk(request),
        })
        .setup(deeper)
        .setup(working(vec![("check", json!({ "what": "it" }))]))
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, history| {
            assert!(runs(sim, "deeper") <= 1);
            let asked = sim.world.outside.requests.borrow();
            let inner =
                asked.iter().filter(|request| request.texts("system")[0].starts_with("You check")).count();
            assert!(inner <= 1 + history.faults, "{inner}");
            if history.faults == 0 {
                assert_eq!(history.texts("tool"), ["checked\n\nTool calls:\n- deeper({})\n  deeper null 0"]);
            }
        })
}

#[test]
fn a_tool_asks_a_prompt() {
    a_prompt().sweep();
}

fn a_hand_off() -> Scenario {
    story("a tool that hands off")
        .define(|catalog| {
            billing(catalog);
            catalog["prompts"]["p"]["tools"] = json!(["work"]);
            catalog["tools"]["work"]["idempotent"] = json!(true);
        })
        .says(|request| match request.texts("system")[0].contains("bill") {
            true => Say::text("billing here"),
            false => clerk(request),
        })
        .setup(working(vec![("billing", json!({}))]))
        .drive(|sim| async move {
            assert_eq!(sim.ask("use work").await["message"]["content"], "billing here");
        })
        .check(|_, history| {
            let handed = history.of("assistant").filter(|row| row["metadata"]["queuedTool"] == true).count();
            assert_eq!(handed, 1, "queued once, also where the tool is run again");
        })
}

#[test]
fn a_tool_hands_off_after_the_step() {
    a_hand_off().sweep();
}

#[test]
fn a_wrong_call_is_an_error_result() {
    story("wrong calls by a tool")
        .define(|catalog| {
            with_deeper(catalog);
            billing(catalog);
            catalog["tools"]["deeper"]["timeoutMs"] = json!(1_000);
        })
        .says(clerk)
        .setup(|sim| {
            sim.world.outside.native("deeper", |_, _| Native::Never);
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    let told = async |name: &str, args: Value| {
                        let result = state.invoke_tool(name, args).await.unwrap();
                        assert_eq!(result.status, ToolStatus::Error);
                        result.text()
                    };
                    assert_eq!(told("nope", json!({})).await, "There is no tool \"nope\".");
                    assert!(
                        told("deeper", json!({ "n": "x" }))
                            .await
                            .contains("n: expected integer, got string.")
                    );
                    assert!(
                        told("deeper", json!({ "x": "y".repeat(100_000) }))
                            .await
                            .contains("the limit is 100000")
                    );
                    assert_eq!(told("deeper", json!({})).await, "\"deeper\" did not answer within 1 s.");
                    ToolResult::success("all told")
                }))
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|_, history| assert_eq!(history.texts("tool"), ["all told"]))
        .calm();
}

#[test]
fn a_call_that_would_have_to_wait_is_refused_where_it_cannot() {
    story("a hand-off by an effect")
        .define(|catalog| {
            billing(catalog);
            catalog["effects"]["later"] = json!({ "description": "Later.", "run": { "native": "later" } });
        })
        .setup(|sim| {
            sim.world.outside.effect("later", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    let refused = state.invoke_tool("billing", json!({})).await.unwrap();
                    assert_eq!(refused.error_code.as_deref(), Some("would_wait"));
                    assert_eq!(refused.text(), "\"billing\" cannot wait here; queue it instead.");
                    state.terminate().unwrap();
                    let error = state.invoke_tool("work", json!({})).await.unwrap_err();
                    assert_eq!(error.code, Code::Terminated);
                    ToolResult::success("")
                }))
            });
        })
        .drive(|sim| async move {
            let body = json!({ "name": "later", "delay": 1_000 }).to_string();
            sim.insist(ThreadRoute::PostEffect, &[], None, body).await;
            sim.until("it ran", |sim| !sim.world.outside.executions.borrow().is_empty()).await;
        })
        .calm();
}

/// Code that waits for the prompt would be lost if the run were parked for one of its calls.
#[test]
fn nothing_waits_for_a_person_within_a_prompt_that_code_asks() {
    story("an approval within a prompt that code asks")
        .define(|catalog| {
            checking(catalog);
            with_deeper(catalog);
            catalog["prompts"]["check"]["tools"] = json!(["deeper"]);
            catalog["tools"]["deeper"]["approval"] = json!("always");
        })
        .says(|request| match request.texts("system")[0].starts_with("You check") {
            true => Say::call("deeper", &json!({})),
            false => clerk(request),
        })
        .setup(deeper)
        .setup(working(vec![("check", json!({ "what": "it" }))]))
        .drive(|sim| async move {
            let outcome = sim.ask("use work").await;
            assert_eq!(outcome["outcome"], "completed", "{outcome}");
        })
        .check(|sim, history| {
            assert_eq!(runs(sim, "deeper"), 0);
            assert_eq!(runs(sim, "work"), 1);
            let told = history.texts("tool");
            assert!(told[0].contains("has to be decided on by a person, and cannot wait here"), "{told:?}");
        })
        .calm();
}

#[test]
fn tools_call_tools_eight_deep() {
    story("a tool that calls itself")
        .says(clerk)
        .setup(working(vec![("work", json!({}))]))
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, history| {
            assert_eq!(runs(sim, "work"), 8, "the call of the reply, and seven within it");
            assert!(history.texts("tool")[0].contains("calls within calls go 8 deep at most"));
            let keys: Vec<String> = receipts(sim);
            assert!(keys.last().unwrap().starts_with("r2.0.0.0.0.0.0.0.0 "), "{keys:?}");
        })
        .once();
}

#[test]
fn a_stop_leaves_no_call_open() {
    story("stopped within a call")
        .define(with_deeper)
        .says(clerk)
        .setup(deeper)
        .setup(working(vec![("deeper", json!({}))]))
        .drive(|sim| async move {
            sim.send("use work").await;
            sim.until_executions(2).await;
            sim.stop().await;
            assert_eq!(receipts(&sim), ["r2.0.0 deeper indeterminate"]);
        })
        .terms(|terms| {
            terms.outcomes = vec!["stopped"];
            terms.one_answer = false;
        })
        .calm();
}

#[test]
fn the_log_shows_a_call_with_its_arguments_and_result() {
    story("the log of a call")
        .define(with_deeper)
        .says(clerk)
        .setup(deeper)
        .setup(working(vec![("deeper", json!({ "n": 3 }))]))
        .drive(|sim| async move {
            sim.ask("use work").await;
            let log = sim.get(ThreadRoute::ListLogs, &[]).await;
            let row =
                log["logs"].as_array().unwrap().iter().find(|row| row["tool_name"] == "deeper").unwrap();
            assert_eq!((&row["receipt"], &row["message_id"]), (&json!("r2.0.0"), &Value::Null));
            let id = row["id"].as_str().unwrap().to_owned();
            let whole = sim.get(ThreadRoute::GetLog(id), &[]).await;
            assert_eq!((&whole["arguments"], &whole["result"]), (&json!("{\"n\":3}"), &json!("deeper 3 0")));
            assert_eq!(whole["parent_call"], "c_3");
        })
        .calm();
}
