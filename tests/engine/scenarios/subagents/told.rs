//! `after_subagent_created`: each child is there when the parent's hook is told of it, and begins afterwards.

use bobbin::definitions::message::ToolResult;
use bobbin::engine::{NewMessage, RemoteThread};
use bobbin::request::Query;
use serde_json::{Value, json};

use super::{agent, goes_on, lists, references, story, tell, waits};
use crate::host::Native;
use crate::sim::{Sim, native};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![told_of(waits), told_of(goes_on)]
}

const HOOK: &str = "after_subagent_created";

/// The child's thread can be read when the hook is told, and nothing was said in it by a model.
fn watched(name: &'static str) -> Scenario {
    story(name)
        .define(|catalog| {
            catalog["hooks"][HOOK] = json!({ "hook": HOOK, "run": { "native": HOOK } });
            catalog["agents"]["helper"]["hooks"] = json!([HOOK]);
        })
        .setup(|sim| {
            sim.world.outside.hook(HOOK, |call| {
                Box::pin(async move {
                    let child =
                        call.child().map_err(|error| error.into_message())?.ok_or("it has no child")?;
                    let page =
                        child.get_messages(&Query::default()).await.map_err(|error| error.into_message())?;
                    let messages = page["messages"].as_array().cloned().unwrap_or_default();
                    if messages.iter().any(|message| message["role"] == "assistant") {
                        return Err("it has begun".to_owned());
                    }
                    (call.sleep)(4_000_000).await;
                    Ok(Value::Null)
                })
            });
        })
        .terms(|terms| terms.one_answer = false)
}

/// Each child was told of, about itself, each time by the same id.
fn told(sim: &Sim) {
    let asked = sim.world.outside.hooked.borrow();
    let children = references(sim);
    assert!(!children.is_empty());
    for reference in &children {
        let of: Vec<_> = asked.iter().filter(|asked| asked.args[0]["reference"] == **reference).collect();
        assert!(!of.is_empty(), "{reference} was never told of");
        let id = format!("{}/h{reference}.{HOOK}", sim.member.id);
        assert!(of.iter().all(|asked| asked.call_id == id), "{of:?}");
    }
}

fn told_of(entry: fn(&str) -> Value) -> Scenario {
    watched("a hook that is told of a child")
        .define(move |catalog| {
            agent(catalog, "research", &json!([]));
            lists(catalog, json!([entry("research")]));
        })
        .drive(|sim| async move {
            let args = json!({ "q": "say found.", });
            tell(&sim, &format!("call research {args}")).await;
        })
        .check(|sim, history| {
            told(sim);
            let child = &history.family[&references(sim)[0]];
            assert_eq!(child.answers().first(), Some(&"found."), "{:?}", child.messages);
            let handed =
                child.messages.iter().filter(|m| m["metadata"]["subagent_event"] == "parent_handoff");
            assert_eq!(handed.count(), 1, "the child notes that its parent was told");
            let early: Vec<String> = sim.world.database.ask("SELECT data FROM logs WHERE kind = 'hook'");
            assert!(early.len() <= history.faults, "{early:?}");
        })
}

#[test]
fn a_hook_is_told_of_a_child_that_is_waited_for_before_it_begins() {
    told_of(waits).sampled(250).sweep();
}

#[test]
fn a_hook_is_told_of_a_child_that_is_not_waited_for_before_it_begins() {
    told_of(goes_on).sampled(250).sweep();
}

#[test]
fn a_hook_is_told_of_children_that_code_makes() {
    watched("a child that code makes")
        .define(|catalog| {
            catalog["tools"]["hire"] = native(true);
            catalog["tools"]["hire"]["run"]["native"] = "hire".into();
            agent(catalog, "research", &json!([]));
            lists(catalog, json!([goes_on("research"), "hire"]));
        })
        .setup(|sim| {
            sim.world.outside.native("hire", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    let made = state.invoke_tool("research", json!({ "q": "say found." })).await;
                    ToolResult::success(format!("{:?}", made.map(|result| result.text())))
                }))
            });
        })
        .drive(|sim| async move {
            tell(&sim, "call hire {}").await;
        })
        .check(|sim, _| told(sim))
        .calm();
}

#[test]
fn a_stop_before_a_child_has_begun_keeps_it_from_beginning() {
    watched("a child that is stopped before it begins")
        .define(|catalog| {
            agent(catalog, "research", &json!([]));
            lists(catalog, json!([goes_on("research")]));
        })
        .drive(|sim| async move {
            let args = json!({ "q": "say found.", });
            sim.ask(&format!("call research {args}")).await;
            sim.until("the hook", |sim| !sim.world.outside.hooked.borrow().is_empty()).await;
            sim.stop().await;
            super::settled(&sim, 50_000).await;
            sim.world.pause(10_000_000).await;
        })
        .check(|sim, history| {
            let child = &history.family[&references(sim)[0]];
            assert!(child.answers().is_empty(), "{:?}", child.messages);
        })
        .calm();
}

#[test]
fn what_a_child_begins_with_is_marked() {
    story("arguments of a child")
        .define(|catalog| {
            agent(catalog, "research", &json!([]));
            let properties = &mut catalog["prompts"]["research"]["requiredSchema"]["properties"];
            properties["depth"] = json!({ "type": "integer" });
            lists(catalog, json!([waits("research")]));
        })
        .drive(|sim| async move {
            let args = json!({ "q": "say found.", "depth": 3 });
            tell(&sim, &format!("call research {args}")).await;
        })
        .check(|sim, history| {
            let child = &history.family[&references(sim)[0]];
            let first = &child.messages[0];
            assert_eq!(first["metadata"]["subagentInitialArguments"], true, "{first}");
            assert_eq!((&first["role"], &first["silent"]), (&json!("system"), &json!(true)));
            assert!(first["content"].as_str().unwrap().contains("\"depth\": 3"), "{first}");
            assert_eq!(child.messages[1]["content"], "say found.");
        })
        .terms(|terms| terms.one_answer = false)
        .calm();
}

/// Tries everything that changes a thread of the family; what it is told each time.
async fn changes(other: RemoteThread) -> Vec<(&'static str, bobbin::Result<()>)> {
    let message = || NewMessage::user("x");
    vec![
        ("queue", other.queue_message(message()).await.map(drop)),
        ("queue once", other.queue_message_once(message(), "k").await.map(drop)),
        ("inject", other.inject_message(message()).await.map(drop)),
        ("delete", other.delete_message("m_x").await.map(drop)),
        ("queue a tool", other.queue_tool("work", json!({})).await),
        ("schedule", other.schedule_effect("e", json!({}), 1).await.map(drop)),
        ("cancel", other.remove_scheduled_effect("e_1").await.map(drop)),
        ("emit", other.emit("x", json!({})).await),
        ("write a file", other.write_file("/f", b"x", "text/plain").await.map(drop)),
        ("stop", other.stop().await),
        ("terminate", other.terminate().await),
    ]
}

#[test]
fn a_tool_that_only_reads_changes_no_thread_of_its_family() {
    story("a reader in a family")
        .define(|catalog| {
            catalog["tools"]["peek"] = json!({ "description": "Looks.", "run": { "native": "peek" },
                "args": { "type": "object", "properties": {} }, "tier": "read_only" });
            agent(catalog, "research", &json!(["peek"]));
            lists(catalog, json!([waits("research"), "peek"]));
        })
        .setup(|sim| {
            sim.world.outside.native("peek", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    let child = state.children().unwrap().first().map(|child| child.reference.clone());
                    let other = match state.get_parent_thread().unwrap() {
                        Some(parent) => parent,
                        None => state.get_child_thread(&child.unwrap()).unwrap().unwrap(),
                    };
                    let page = other.get_messages(&Query::default()).await.unwrap();
                    assert!(!page["messages"].as_array().unwrap().is_empty(), "it may look");
                    for (what, refused) in changes(other).await {
                        let error = refused.expect_err(what);
                        assert_eq!(
                            (json!(error.code), &*error.message),
                            (json!("read_only"), "A `read_only` tool cannot change another thread."),
                            "{what}"
                        );
                    }
                    ToolResult::success("looked")
                }))
            });
        })
        .terms(|terms| terms.one_answer = false)
        .drive(|sim| async move {
            // Upwards from the child, and then down to it.
            tell(&sim, &format!("call research {}", json!({ "q": "call peek {}" }))).await;
            tell(&sim, "call peek {}").await;
        })
        .check(|sim, history| {
            let refused = "\"peek\" is `read_only`, and tried to change another thread.";
            assert_eq!(history.texts("tool")[1], refused);
            let child = &history.family[&references(sim)[0]];
            assert_eq!(child.texts("tool"), [refused]);
            for thread in sim.family() {
                let written: Vec<i64> = thread.member.database.ask(
                    "SELECT (SELECT count(*) FROM files) + (SELECT count(*) FROM effects)
                         + (SELECT count(*) FROM messages WHERE content = 'x')",
                );
                assert_eq!(written, [0], "{}", thread.member.id);
            }
        })
        .calm();
}
