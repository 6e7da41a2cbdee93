//! Tiers of tools: what one that only reads may do to its thread, and where a tier is shown.

use bobbin::definitions::message::ToolResult;
use bobbin::engine::{NativeCall, NewEffect, NewMessage, Side};
use bobbin::request::{Query, ThreadRoute};
use serde_json::{Value, json};

use super::{clerk, story};
use crate::host::{Native, Say};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![refused()]
}

/// A native tool with a definition of its own.
fn tool(native: &str, more: Value) -> Value {
    let mut tool = json!({ "description": "Does.", "run": { "native": native } });
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tool
}

/// Tries a change; what becomes of it.
type Change = fn(NativeCall) -> bobbin::Result<()>;

const CHANGES: [(&str, Change); 19] = [
    ("set a value", |call| call.state.set_value("k", &1)),
    ("set a value", |call| call.state.compare_and_set("k", &Value::Null, &json!(1)).map(drop)),
    ("send a message", |call| call.state.queue_message(NewMessage::user("x")).map(drop)),
    ("send a message", |call| call.state.queue_message_once(NewMessage::user("x"), "k").map(drop)),
    ("queue a call", |call| call.state.queue_tool("work", json!({})).map(drop)),
    ("delete a message", |call| call.state.delete_message("m_x").map(drop)),
    ("schedule an effect", |call| call.state.schedule_effect(NewEffect::once("e", json!({}), 1)).map(drop)),
    ("cancel an effect", |call| call.state.remove_scheduled_effect("e_1").map(drop)),
    ("terminate the thread", |call| call.state.terminate()),
    ("write a file", |call| call.state.write_file("/f", "x", "text/plain", Default::default()).map(drop)),
    ("delete a file", |call| call.state.unlink_file("/f")),
    ("make a directory", |call| call.state.mkdir_file("/d").map(drop)),
    ("delete a directory", |call| call.state.rmdir_file("/d")),
    ("delete files", |call| call.state.remove_all("/d")),
    ("move a file", |call| call.state.move_file("/f", "/g").map(drop)),
    ("set the value of a variable", |call| call.state.set_env("V", "x", None)),
    ("tell the parent", |call| call.state.notify_parent("x")),
    ("say how the thread is", |call| call.state.set_status("x")),
    ("add to the trace", |call| call.state.trace("app.x", json!({}))),
];

/// Does something that says nothing of whether it was done.
type Quiet = fn(NativeCall);

/// Those that are told of nothing, or only later.
const QUIET: [(&str, Quiet); 4] = [
    ("emit an event", |call| call.state.emit("x", json!({}))),
    ("set the context", |call| call.state.set_context("k", json!(1))),
    ("set the context", |call| call.state.remove_context("k")),
    ("end or turn the run", |call| {
        let run = call.state.execution().unwrap().unwrap();
        assert!(run.stop().is_err() && run.force_turn(Side::A).is_err());
    }),
];

/// A tool that only reads tries everything, one thing a call.
fn refused() -> Scenario {
    let calls = CHANGES.len() + QUIET.len();
    Scenario::new("a tool that only reads", &json!({ "peek": tool("peek", json!({ "tier": "read_only" })) }))
        .says(move |request| match request.results().len() {
            done if done < calls => Say::call("peek", &json!({ "n": done })),
            _ => Say::text("all tried"),
        })
        .setup(|sim| {
            sim.world.outside.native("peek", |call, _| {
                let call = call.clone();
                Native::Acts(Box::new(move || {
                    let page = call.state.get_messages(&Query(vec![("limit".into(), "1".into())])).unwrap();
                    assert_eq!(page["messages"][0]["role"], "assistant", "it may look");
                    let n = call.args["n"].as_u64().unwrap() as usize;
                    match CHANGES.get(n) {
                        Some((what, change)) => {
                            let error = change(call).unwrap_err();
                            assert_eq!(
                                (json!(error.code), error.message.clone()),
                                (json!("read_only"), format!("A `read_only` tool cannot {what}."))
                            );
                        }
                        None => QUIET[n - CHANGES.len()].1(call),
                    }
                    ToolResult::success("done all the same")
                }))
            });
        })
        .drive(|sim| async move {
            sim.ask("go").await;
        })
        .check(move |sim, history| {
            let results: Vec<&Value> = history.of("tool").collect();
            assert_eq!(results.len(), calls);
            let tried = CHANGES.iter().map(|(what, _)| what).chain(QUIET.iter().map(|(what, _)| what));
            for (result, what) in results.iter().zip(tried) {
                let told = result["content"].as_str().unwrap();
                if history.faults == 0 || told.contains("read_only") {
                    assert_eq!(told, format!("\"peek\" is `read_only`, and tried to {what}."));
                    assert_eq!(result["metadata"]["error_code"], "read_only", "{result}");
                }
            }
            assert_eq!(history.answers(), ["all tried"]);
            let written: Vec<i64> = sim.member.database.ask(
                "SELECT (SELECT count(*) FROM vals) + (SELECT count(*) FROM files) + (SELECT count(*) FROM effects)
                     + (SELECT count(*) FROM messages WHERE role = 'user')",
            );
            assert_eq!(written, [1], "one message of the user's and nothing else");
        })
}

#[test]
fn a_tool_that_only_reads_changes_nothing() {
    refused().sweep();
}

#[test]
fn a_tool_that_only_reads_makes_no_calls() {
    story("calls of a reader")
        .define(|catalog| {
            catalog["tools"]["peek"] = tool("peek", json!({ "tier": "read_only" }));
            catalog["prompts"]["p"]["tools"] = json!(["peek", "work"]);
        })
        .setup(|sim| {
            sim.world.outside.native("peek", |call, _| {
                let call = call.clone();
                Native::Works(Box::pin(async move {
                    let refused = call.state.invoke_tool("work", json!({})).await.unwrap_err();
                    ToolResult::success(refused.message.clone())
                }))
            });
        })
        .drive(|sim| async move {
            sim.ask("use peek").await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool"), ["\"peek\" is `read_only`, and tried to make calls."]);
            let names: Vec<String> =
                sim.world.outside.executions.borrow().iter().map(|ran| ran.name.clone()).collect();
            assert_eq!(names, ["peek"]);
        })
        .calm();
}

#[test]
fn a_tier_is_shown_to_who_decides_and_in_the_log_and_one_that_reads_is_trusted() {
    Scenario::new(
        "tiers",
        &json!({
            "look": tool("work", json!({ "tier": "read_only" })),
            "sums": tool("calculate", json!({})),
            "rule": tool("work", json!({ "tier": "privileged" })),
        }),
    )
    .define(|catalog| catalog["settings"] = json!({ "approvals": { "policy": "unless-trusted" } }))
    .says(clerk)
    .setup(super::work)
    .drive(|sim| async move {
        sim.send("use look,sums,rule").await;
        sim.until("a wait", |sim| sim.member.has_table("waits")).await;
        let waits = sim.get(ThreadRoute::ListWaits, &[]).await["waits"].clone();
        let waits = waits.as_array().unwrap();
        assert_eq!(waits.len(), 1, "those that read are not asked about: {waits:?}");
        assert_eq!(
            (&waits[0]["call"]["tool"], &waits[0]["call"]["tier"]),
            (&json!("rule"), &json!("privileged"))
        );
        let route = ThreadRoute::DecideWait(waits[0]["id"].as_str().unwrap().to_owned());
        sim.insist(route, &[], Some(&sim.key()), json!({ "decision": "approve" }).to_string()).await;
        sim.until("the end", |sim| {
            sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE ended_us IS NOT NULL") == [1]
        })
        .await;
        let logs = sim.get(ThreadRoute::ListLogs, &[("order", "asc")]).await["logs"].clone();
        let calls = logs.as_array().unwrap().iter().filter(|entry| entry["type"] == "tool_call");
        let tiers: Vec<(&Value, &Value)> = calls.map(|entry| (&entry["tool_name"], &entry["tier"])).collect();
        // In the order of time: the receipt of the call that waits was written while none had run yet.
        for expected in [("look", "read_only"), ("sums", "read_only"), ("rule", "privileged")] {
            let expected = (&json!(expected.0), &json!(expected.1));
            assert!(tiers.contains(&expected), "{expected:?} in {tiers:?}");
        }
        let spans = sim.get(ThreadRoute::GetSpans("r_1".to_owned()), &[]).await.to_string();
        for tier in ["read_only", "privileged"] {
            assert!(spans.contains(tier), "{tier} in {spans}");
        }
    })
    .check(|_, history| assert_eq!(history.texts("tool").len(), 3))
    .calm();
}
