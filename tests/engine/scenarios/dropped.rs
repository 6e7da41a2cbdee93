//! Calls that code starts and does not wait for, apart from any run: they end with it, and their receipts say that nobody
//! knows their outcome.

use bobbin::definitions::message::ToolResult;
use bobbin::engine::{EndpointAnswer, ThreadState};
use bobbin::host::Sleep;
use bobbin::request::ThreadRoute;
use futures::future::select;
use serde_json::{Value, json};

use super::hooks::hooked;
use super::story;
use super::subprompts::checking;
use crate::contract::History;
use crate::host::{Handler, Native, SECOND_US, Say};
use crate::sim::{Ask, Sim, native};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![by_an_effect(), by_an_endpoint(), by_a_hook(), a_prompt(false), a_prompt(true)]
}

fn with_deeper(story: Scenario) -> Scenario {
    story
        .define(|catalog| {
            catalog["tools"]["deeper"] = native(false);
            catalog["tools"]["deeper"]["run"]["native"] = json!("deeper");
            catalog["prompts"]["p"]["tools"] = json!(["work"]);
        })
        .setup(|sim| {
            sim.world
                .outside
                .native("deeper", |_, _| Native::Gives(SECOND_US, ToolResult::success("deeper")));
        })
}

/// Starts a call of `deeper`, which takes a second, and drops it after half of one.
async fn started(state: ThreadState, sleep: Sleep) {
    let call = state.invoke_tool("deeper", json!({}));
    drop(select(call, sleep(SECOND_US / 2)).await);
}

/// What became of it.
fn unknown(sim: &Sim, history: &History) {
    let names = sim.world.outside.executions.borrow();
    let times = names.iter().filter(|execution| execution.name == "deeper").count();
    let receipts: Vec<String> =
        sim.world.database.ask("SELECT state FROM calls WHERE name = 'deeper' ORDER BY id");
    if history.faults == 0 {
        assert_eq!((times, receipts.as_slice()), (1, ["indeterminate".to_owned()].as_slice()));
    }
    assert!(receipts.iter().all(|state| state == "indeterminate"), "{receipts:?}");
}

fn by_an_effect() -> Scenario {
    with_deeper(story("an effect that drops a call"))
        .define(|catalog| {
            catalog["effects"]["later"] = json!({ "description": "Later.", "run": { "native": "later" } });
        })
        .setup(|sim| {
            sim.world.outside.effect("later", |call, _| {
                let (state, sleep) = (call.state.clone(), call.sleep.clone());
                Native::Works(Box::pin(async move {
                    started(state, sleep).await;
                    ToolResult::success("")
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
            unknown(sim, history);
            let names = sim.world.outside.executions.borrow();
            let times = names.iter().filter(|execution| execution.name == "deeper").count();
            assert!(times <= 1, "an attempt that comes again calls nothing again");
        })
}

#[test]
fn calls_that_an_effect_drops_are_of_unknown_outcome() {
    by_an_effect().sweep();
}

fn by_an_endpoint() -> Scenario {
    with_deeper(story("an endpoint that drops a call"))
        .define(|catalog| catalog["endpoints"]["POST /start"] = json!({ "run": { "native": "start" } }))
        .setup(|sim| {
            sim.world.outside.endpoint("start", |call| {
                let (state, sleep) = (call.state.clone(), call.sleep.clone());
                Handler::Works(Box::pin(async move {
                    started(state, sleep).await;
                    EndpointAnswer::text(200, "left it")
                }))
            });
        })
        .drive(|sim| async move {
            assert_eq!(sim.reach_surely(Ask::of("POST", "/start")).await.status, 200);
        })
        .check(unknown)
}

#[test]
fn calls_that_an_endpoint_drops_are_of_unknown_outcome() {
    by_an_endpoint().sweep();
}

fn by_a_hook() -> Scenario {
    with_deeper(hooked("a hook that drops a call", &["after_create_message"]))
        .setup(|sim| {
            sim.world.outside.hook("after_create_message", |call| {
                let first = call.args.first().is_some_and(|message| message["role"] == "user");
                let (state, sleep) = (call.state.clone(), call.sleep.clone());
                Box::pin(async move {
                    if first {
                        started(state, sleep).await;
                    }
                    Ok(Value::Null)
                })
            });
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(unknown)
}

#[test]
fn calls_that_a_hook_drops_are_of_unknown_outcome() {
    by_a_hook().sweep();
}

/// An endpoint that asks the prompt `check`, which calls `deeper`; and one that drops it in the middle.
fn a_prompt(drops: bool) -> Scenario {
    with_deeper(story("an endpoint that asks a prompt"))
        .define(|catalog| {
            checking(catalog);
            catalog["prompts"]["check"]["tools"] = json!(["deeper"]);
            catalog["prompts"]["p"]["tools"] = json!(["work"]);
            catalog["endpoints"]["POST /start"] = json!({ "run": { "native": "start" } });
        })
        .answers(|request| {
            let say = match request.texts("system")[0].starts_with("You check") {
                true => Say::text("checked").and_call("deeper", "{}"),
                false => Say::text("hello"),
            };
            say.stream(request.index).pace(SECOND_US / 4)
        })
        .setup(move |sim| {
            sim.world.outside.endpoint("start", move |call| {
                let (state, sleep) = (call.state.clone(), call.sleep.clone());
                Handler::Works(Box::pin(async move {
                    let asked = state.invoke_tool("check", json!({ "what": "it" }));
                    if drops {
                        drop(select(asked, sleep(SECOND_US / 2)).await);
                    } else {
                        asked.await.unwrap();
                    }
                    EndpointAnswer::text(200, "over")
                }))
            });
        })
        .terms(|terms| {
            terms.pairs = false;
            terms.more_requests = 2;
        })
        .drive(|sim| async move {
            assert_eq!(sim.reach_surely(Ask::of("POST", "/start")).await.status, 200);
            sim.ask("hello").await;
        })
        .check(move |sim, history| {
            let states: Vec<String> =
                sim.world.database.ask("SELECT kind || ' ' || state FROM calls ORDER BY id");
            if history.faults == 0 && !drops {
                assert_eq!(states, ["prompt succeeded", "native succeeded"]);
            } else if history.faults == 0 {
                assert_eq!(states, ["prompt indeterminate"]);
            }
        })
}

#[test]
fn a_prompt_that_an_endpoint_asks_is_of_unknown_outcome_when_the_process_is_lost() {
    a_prompt(false).sweep();
}

#[test]
fn a_prompt_that_an_endpoint_drops_is_of_unknown_outcome() {
    a_prompt(true).sweep();
}

#[test]
fn a_call_that_was_lost_says_so_in_the_log() {
    with_deeper(story("the log of a lost call"))
        .define(|catalog| catalog["endpoints"]["POST /start"] = json!({ "run": { "native": "start" } }))
        .setup(|sim| {
            sim.world.outside.endpoint("start", |call| {
                let state = call.state.clone();
                Handler::Works(Box::pin(async move {
                    let result = state.invoke_tool("deeper", json!({})).await.unwrap();
                    EndpointAnswer::text(200, result.text())
                }))
            });
        })
        .drive(|sim| async move {
            let (asking, killing) = (sim.clone(), sim.clone());
            let asked = async move { asking.reach(Ask::of("POST", "/start")).await.is_err() };
            let killed = async move {
                killing.until_executions(1).await;
                killing.world.kill();
            };
            assert!(futures::join!(asked, killed).0, "it got no answer");
            let log = sim.get(ThreadRoute::ListLogs, &[]).await;
            let rows = log["logs"].as_array().unwrap();
            let row = rows.iter().find(|row| row["tool_name"] == "deeper").unwrap();
            assert_eq!(row["state"], "indeterminate", "{row}");
            let told = row["error"].as_str().unwrap();
            assert!(told.contains("restarted while \"deeper\" was running. It may or may not"), "{row}");
        })
        .calm();
}
