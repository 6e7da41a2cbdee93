//! Calls that code starts and does not wait for, apart from any run: they end with it, and their receipts say that nobody
//! knows their outcome.

use bobbin::api::ThreadRoute;
use bobbin::spec::message::ToolResult;
use bobbin::thread::{EndpointAnswer, Sleep, ThreadState};
use futures_util::future::select;
use serde_json::{Value, json};

use super::hooks::hooked;
use super::story;
use crate::contract::History;
use crate::host::{Handler, Native, SECOND_US};
use crate::sim::{Ask, Sim, native};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![by_an_effect(), by_an_endpoint(), by_a_hook()]
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

/// What became of it. Where the process was lost with code that is not run again the receipt stays as it was.
fn unknown(sim: &Sim, history: &History, again: bool) {
    let names = sim.world.outside.executions.borrow();
    let times = names.iter().filter(|execution| execution.name == "deeper").count();
    let receipts: Vec<String> =
        sim.world.database.ask("SELECT state FROM calls WHERE name = 'deeper' ORDER BY id");
    if history.faults == 0 {
        assert_eq!((times, receipts.as_slice()), (1, ["indeterminate".to_owned()].as_slice()));
    }
    let last = receipts.last().map(String::as_str);
    assert!(!again || last.is_none_or(|state| state == "indeterminate"), "{receipts:?}");
    assert!(receipts.iter().all(|state| state == "indeterminate" || state == "started"), "{receipts:?}");
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
            unknown(sim, history, true);
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
        .check(|sim, history| unknown(sim, history, true))
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
        .check(|sim, history| unknown(sim, history, false))
}

#[test]
fn calls_that_a_hook_drops_are_of_unknown_outcome() {
    by_a_hook().sweep();
}
