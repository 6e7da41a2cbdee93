//! Calls of tools that clients of MCP make (docs/mcp-server.md): in a thread of an agent that has no model.

use bobbin::definitions::message::ToolResult;
use bobbin::engine::feed::FeedTarget;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::story;
use crate::host::{Native, SECOND_US};
use crate::sim::{Sim, native};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![called(false), called(true), approved(), asking()]
}

fn offer(catalog: &mut Value, idempotent: bool) {
    catalog["tools"]["work"] = native(idempotent);
    catalog["settings"] = json!({ "mcp": { "tools": ["work"] } });
}

fn born(sim: &Sim) {
    *sim.born.borrow_mut() = json!({ "agent_id": "tool:work" });
}

/// The call, which is made once under this key; its message.
async fn call(sim: &Sim) -> String {
    let body = json!({ "name": "work", "args": { "n": 1 } }).to_string();
    let seen = sim.insist(ThreadRoute::Call, &[], Some("mcp:one"), body).await;
    assert_eq!((seen.status, &seen.body["run"]), (202, &json!("r_1")), "{seen:?}");
    seen.body["messageId"].as_str().unwrap().to_owned()
}

/// What came of it.
async fn outcome(sim: &Sim, message: &str) -> Value {
    for _ in 0..200 {
        let seen = sim.insist(ThreadRoute::Called(message.to_owned()), &[], None, String::new()).await;
        assert_eq!(seen.status, 200, "{seen:?}");
        if seen.body.get("failed").is_some() {
            return seen.body;
        }
        sim.world.pause(SECOND_US).await;
    }
    panic!("nothing came of the call");
}

fn executions(sim: &Sim) -> usize {
    sim.world.outside.executions.borrow().iter().filter(|execution| execution.name == "work").count()
}

fn called(idempotent: bool) -> Scenario {
    story(if idempotent { "an idempotent tool that a client calls" } else { "a tool that a client calls" })
        .define(move |catalog| offer(catalog, idempotent))
        .setup(born)
        .drive(|sim| async move {
            let message = call(&sim).await;
            // Whoever has not heard the answer says it again.
            assert_eq!(call(&sim).await, message);
            let told = outcome(&sim, &message).await;
            let failed = told["failed"] == true;
            let lost = told["text"].as_str().unwrap().contains("may or may not have taken effect");
            assert!(!failed || lost, "{told}");
            assert_eq!(call(&sim).await, message, "it is over, and is not made again");
        })
        .terms(|terms| terms.one_answer = false)
        .check(move |sim, history| {
            let results: Vec<&str> = history.texts("tool");
            assert_eq!(results.len(), 1, "{results:?}");
            if history.faults == 0 {
                assert_eq!(executions(sim), 1);
            }
            assert!(idempotent || executions(sim) <= 1, "what may not be made again is not");
            assert_eq!(sim.world.outside.requests.borrow().len(), 0, "no model is asked");
        })
}

fn approved() -> Scenario {
    story("a tool that a client calls and a person approves of")
        .define(|catalog| {
            offer(catalog, false);
            catalog["tools"]["work"]["approval"] = json!("always");
        })
        .setup(born)
        .drive(|sim| async move {
            let message = call(&sim).await;
            let mut open = Value::Null;
            for _ in 0..200 {
                let seen = sim.insist(ThreadRoute::ListWaits, &[], None, String::new()).await;
                open = seen.body["waits"][0].clone();
                if open.is_object() {
                    break;
                }
                sim.world.pause(SECOND_US).await;
            }
            let id = open["id"].as_str().unwrap().to_owned();
            assert_eq!(executions(&sim), 0, "nothing ran before it was approved");
            let body = json!({ "decision": "approve" }).to_string();
            let seen = sim.insist(ThreadRoute::DecideWait(id), &[], Some("decided"), body).await;
            assert_eq!(seen.status, 200, "{seen:?}");
            outcome(&sim, &message).await;
        })
        .terms(|terms| terms.one_answer = false)
        .check(|sim, history| {
            assert!(executions(sim) <= 1);
            if history.faults == 0 {
                assert_eq!(executions(sim), 1);
            }
        })
}

/// Asks for a name, then for a color, and says both.
fn asks(sim: &Sim) {
    sim.world.outside.native("work", |call, _| {
        let said = |name: &str| call.answers.get(name).and_then(|answer| answer["content"]["text"].as_str());
        let schema =
            json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        let ask = |name: &str| {
            let asked = json!({ name: { "message": format!("Which {name}?"), "schema": schema } });
            ToolResult {
                error_code: Some("needs_input".into()),
                error_data: asked.as_object().cloned(),
                ..ToolResult::error("This needs an answer.")
            }
        };
        let result = match (said("name"), said("color")) {
            (None, _) => ask("name"),
            (_, None) => ask("color"),
            (Some(name), Some(color)) => ToolResult::success(format!("{name} likes {color}")),
        };
        Native::Gives(SECOND_US, result)
    });
}

fn asking() -> Scenario {
    story("a tool that asks people twice")
        .define(|catalog| offer(catalog, true))
        .setup(born)
        .setup(asks)
        .drive(|sim| async move {
            let message = call(&sim).await;
            for (name, text) in [("name", "Ada"), ("color", "blue")] {
                let open = open_wait(&sim, name).await;
                assert_eq!((&open["kind"], open.get("server")), (&json!("elicitation"), None), "{open}");
                let id = open["id"].as_str().unwrap().to_owned();
                let body = json!({ "decision": "answer", "content": { "text": text } }).to_string();
                let seen = sim.insist(ThreadRoute::DecideWait(id), &[], Some(name), body).await;
                assert_eq!(seen.status, 200, "{seen:?}");
            }
            let told = outcome(&sim, &message).await;
            assert_eq!((&told["failed"], &told["text"]), (&json!(false), &json!("Ada likes blue")));
        })
        .terms(|terms| {
            terms.one_answer = false;
            // Three runs of the call are its own.
            terms.idempotent_runs += 2;
        })
        .check(|sim, _| {
            let asked: Vec<i64> = sim.world.database.ask("SELECT count(*) FROM waits");
            assert_eq!(asked, [2], "each thing is asked once");
        })
}

/// The open wait of this name.
async fn open_wait(sim: &Sim, name: &str) -> Value {
    for _ in 0..200 {
        let seen = sim.insist(ThreadRoute::ListWaits, &[], None, String::new()).await;
        let waits = seen.body["waits"].as_array().cloned().unwrap_or_default();
        if let Some(found) = waits.into_iter().find(|wait| wait["name"] == name) {
            return found;
        }
        sim.world.pause(SECOND_US).await;
    }
    panic!("nothing is asked");
}

#[test]
fn what_a_tool_asks_is_answered_once_and_its_call_goes_on() {
    asking().sweep();
}

#[test]
fn a_call_of_a_client_is_made_once() {
    called(false).sweep();
}

#[test]
fn a_call_of_a_client_that_may_be_made_again_has_a_result() {
    called(true).sweep();
}

#[test]
fn a_call_of_a_client_waits_for_its_approval() {
    approved().sweep();
}

#[test]
fn who_comes_late_to_a_call_of_a_client_is_told_its_result() {
    story("a call that is looked at late")
        .define(|catalog| offer(catalog, false))
        .setup(born)
        .drive(|sim| async move {
            let message = call(&sim).await;
            outcome(&sim, &message).await;
            sim.world.pause(SECOND_US).await;
            let (feed, _) = sim.follow(FeedTarget::Run("r_1".into()), None).await.unwrap();
            let kinds: Vec<&str> = feed.frames.borrow().iter().map(|frame| frame.kind).collect();
            assert_eq!(kinds, ["run", "message_data", "message_data", "run_ended"]);
        })
        .terms(|terms| terms.one_answer = false)
        .calm();
}
