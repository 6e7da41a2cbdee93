//! Messages that are changed or deleted, and what the model sees then.

use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::{clerk, story};
use crate::host::SECOND_US;
use crate::sim::Sim;

async fn patch(sim: &Sim, id: &str, content: &str) -> u16 {
    let body = json!({ "content": content }).to_string();
    sim.insist(ThreadRoute::PatchMessage(id.into()), &[], None, body).await.status
}

async fn delete(sim: &Sim, id: &str) -> u16 {
    sim.insist(ThreadRoute::DeleteMessage(id.into()), &[], None, String::new()).await.status
}

#[test]
fn a_changed_message_is_what_the_model_sees() {
    for evicted in [false, true] {
        story("patched")
            .drive(move |sim| async move {
                let message = sim.send("hello").await;
                sim.outcome(&message).await;
                assert_eq!(patch(&sim, &message.id, "changed").await, 200);
                assert_eq!(patch(&sim, "m_6f0c0000_999", "x").await, 404);
                assert_eq!(patch(&sim, "nonsense", "x").await, 404);
                if evicted {
                    sim.evict().await;
                }
                sim.accepted.borrow_mut().clear();
                sim.ask("again").await;
                let requests = sim.world.outside.requests.borrow();
                assert_eq!(requests[1].texts("user"), ["changed", "again"]);
            })
            .terms(|terms| terms.one_answer = false)
            .calm();
    }
}

#[test]
fn whatever_is_deleted_calls_and_results_still_pair() {
    // Which rows go: by role and place among them.
    for gone in [("user", 0), ("assistant", 0), ("assistant", 1), ("tool", 0), ("tool", 1)] {
        for evicted in [false, true] {
            story("deleted")
                .drive(move |sim| async move {
                    sim.ask("use work,work").await;
                    let history = sim.history().await;
                    let rows: Vec<&serde_json::Value> =
                        history.iter().filter(|m| m["role"] == gone.0).collect();
                    let id = rows[gone.1]["id"].as_str().unwrap().to_owned();
                    assert_eq!(delete(&sim, &id).await, 200);
                    assert_eq!(delete(&sim, &id).await, 404);
                    let seen =
                        sim.insist(ThreadRoute::GetMessage(id.clone()), &[], None, String::new()).await;
                    assert_eq!(seen.status, 404);
                    if evicted {
                        sim.evict().await;
                    }
                    sim.accepted.borrow_mut().clear();
                    // The strict model refuses what does not pair.
                    sim.ask("again").await;
                    let last = sim.world.outside.requests.borrow().last().cloned().unwrap();
                    assert_eq!(last.last_user(), "again");
                })
                .terms(|terms| {
                    terms.one_answer = false;
                    terms.pairs = false;
                })
                .calm();
        }
    }
}

#[test]
fn rows_of_an_open_step_cannot_be_changed() {
    story("open step")
        .answers(|request| clerk(request).stream(request.index).pace(SECOND_US))
        .drive(|sim| async move {
            let message = sim.send("use work").await;
            sim.until_executions(1).await;
            let history = sim.history().await;
            let call =
                history.iter().find(|m| m["role"] == "assistant").unwrap()["id"].as_str().unwrap().to_owned();
            assert_eq!(patch(&sim, &call, "x").await, 409);
            assert_eq!(delete(&sim, &call).await, 409);
            sim.outcome(&message).await;
        })
        .calm();
}

#[test]
fn a_queued_message_can_be_taken_back() {
    story("taken back")
        .answers(|request| clerk(request).stream(request.index).pace(SECOND_US))
        .drive(|sim| async move {
            let first = sim.send("first").await;
            sim.until_requests(1).await;
            let second = sim.send("second").await;
            assert_eq!(delete(&sim, &second.id).await, 200);
            sim.accepted.borrow_mut().pop();
            sim.outcome(&first).await;
            sim.world.pause(60 * SECOND_US).await;
            assert_eq!(sim.world.outside.requests.borrow().len(), 1, "nothing is left to answer");
        })
        .calm();
}

/// A change of everything that may change is there whole, or not at all.
#[test]
fn a_message_is_changed_as_a_whole_whatever_fails() {
    let body = |fields: Value| fields.to_string();
    story("changed whole")
        .drive(move |sim| async move {
            let message = sim.send("hello").await;
            sim.outcome(&message).await;
            let route = || ThreadRoute::PatchMessage(message.id.clone());
            let change = json!({ "content": "changed", "silent": true, "metadata": { "a": 1, "gone": 1 } });
            assert_eq!(sim.insist(route(), &[], None, body(change)).await.status, 200);
            let merged = json!({ "metadata": { "b": [2], "gone": null } });
            assert_eq!(sim.insist(route(), &[], None, body(merged)).await.status, 200);
            let seen =
                sim.insist(ThreadRoute::GetMessage(message.id.clone()), &[], None, String::new()).await.body;
            assert_eq!(
                (&seen["content"], &seen["silent"], &seen["metadata"]),
                (&json!("changed"), &json!(true), &json!({ "a": 1, "b": [2] }))
            );
            let page = sim.insist(ThreadRoute::ListMessages, &[], None, String::new()).await.body;
            let shown = page["messages"].as_array().unwrap().len();
            assert_eq!(page["total"], json!(shown), "what is silent is not counted: {page}");
            let silent = page["messages"].as_array().unwrap().iter().any(|m| m["content"] == "changed");
            assert!(!silent, "{page}");
        })
        .terms(|terms| {
            terms.one_answer = false;
            // Its text is another one then.
            terms.texts_repeat = true;
        })
        .sweep();
}

#[test]
fn a_change_that_is_none_is_refused_by_name() {
    story("no change")
        .drive(|sim| async move {
            let message = sim.send("hello").await;
            sim.outcome(&message).await;
            for (body, field) in [
                (json!({}), "content"),
                (json!({ "content": "x", "metdata": {} }), "metdata"),
                (json!({ "content": " " }), "content"),
                (json!({ "silent": "yes" }), "silent"),
                (json!({ "metadata": [] }), "metadata"),
            ] {
                let route = ThreadRoute::PatchMessage(message.id.clone());
                let seen = sim.insist(route, &[], None, body.to_string()).await;
                assert_eq!((seen.status, &seen.body["error"]["field"]), (400, &json!(field)), "{body}");
            }
            let seen =
                sim.insist(ThreadRoute::GetMessage(message.id.clone()), &[], None, String::new()).await;
            assert_eq!(seen.body["content"], "hello");
        })
        .calm();
}
