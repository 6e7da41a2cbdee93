//! Hooks of messages that code stores and changes: in a step they have its run, elsewhere they have none.

use bobbin::definitions::message::ToolResult;
use bobbin::engine::NewMessage;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::hooks::{asked_of, failures, hooked, react};
use crate::host::{Native, Say};

const NAMES: &[&str] = &["before_create_message", "before_update_message", "after_update_message"];

#[test]
fn hooks_of_what_a_tool_changes_are_in_its_step() {
    hooked("of_the_step", NAMES)
        .setup(|sim| {
            for name in NAMES {
                react(sim, name, |call| {
                    // The message, or what is to change of one, comes last.
                    let text = call.args.last().map(|arg| arg["content"].clone()).unwrap_or_default();
                    let step = call.state.execution().unwrap().map(|run| run.step_count);
                    let traced = call.state.trace("app.hook", json!({ "text": text })).is_ok();
                    match (text.as_str(), step, traced) {
                        (Some("aside" | "changed"), Some(1), true) | (Some("outside"), None, false) => {
                            Ok(Value::Null)
                        }
                        (Some("aside" | "changed" | "outside"), ..) => Err(format!("{step:?} {traced}")),
                        _ => Ok(Value::Null),
                    }
                });
            }
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    let id = state.inject_message(NewMessage::user("aside")).await.unwrap();
                    state.update_message(&id, "changed").await.unwrap();
                    ToolResult::success("w0")
                }))
            });
        })
        .drive(|sim| async move {
            let message = sim.send("use work").await;
            sim.outcome(&message).await;
            sim.accepted.borrow_mut().clear();
            let body = json!({ "content": "outside" }).to_string();
            let seen = sim.insist(ThreadRoute::PatchMessage(message.id.clone()), &[], None, body).await;
            assert_eq!(seen.status, 200);
        })
        .says(|request| match request.index {
            0 => Say::call("work", &json!({})),
            _ => Say::text("done"),
        })
        .check(|sim, history| {
            assert_eq!(history.texts("user"), ["outside", "changed"]);
            assert_eq!(failures(sim), []);
            for name in ["before_update_message", "after_update_message"] {
                assert_eq!(asked_of(sim, name).len(), 2);
            }
        })
        .terms(|terms| terms.one_answer = false)
        .calm();
}
