//! Children that are written to again.

use serde_json::{Value, json};

use super::{agent, heard, lists, office, references, settled, states, story, tell, times};
use crate::host::{Native, SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![waited_for(), not_waited_for(), explicit(), one_at_a_time()]
}

fn resumable(blocking: bool, edit: impl FnOnce(&mut Value)) -> impl FnOnce(&mut Value) {
    move |catalog| {
        agent(catalog, "research", &json!(["work"]));
        let mut entry = json!({ "name": "research", "blocking": blocking,
            "resumable": { "receives_messages": "side_a" } });
        edit(&mut entry);
        lists(catalog, json!([entry]));
    }
}

/// Asks the model to create one that says this.
fn create(text: &str) -> String {
    let args = json!({ "agent": "research", "message": text, "attachments": [], "name": "a name",
        "arguments": { "q": "?" } });
    format!("call subagent_create {args}")
}

/// Asks the model to write this to the first one.
fn message(sim: &Sim, text: &str) -> String {
    let reference = references(sim).first().cloned().unwrap_or_default();
    let args = json!({ "referenceId": reference, "message": text, "attachments": [] });
    format!("call subagent_message {args}")
}

fn waited_for() -> Scenario {
    story("a child that is asked twice and waited for")
        .define(resumable(true, |_| {}))
        .drive(|sim| async move {
            tell(&sim, &create("say one.")).await;
            tell(&sim, &message(&sim, "say two.")).await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert_eq!(
                (results.len(), times(&results, "one."), times(&results, "two.")),
                (2, 1, 1),
                "{results:?}"
            );
            assert!(heard(history).is_empty());
            assert_eq!(states(sim), ["live idle"]);
            let child = history.family.values().next().unwrap();
            assert_eq!(
                (child.texts("user"), child.answers()),
                (vec!["say one.", "say two."], vec!["one.", "two."])
            );
        })
}

fn not_waited_for() -> Scenario {
    story("a child that is asked twice and not waited for")
        .define(resumable(false, |_| {}))
        .terms(|terms| {
            terms.one_answer = false;
            terms.more_requests = 4;
        })
        .drive(|sim| async move {
            tell(&sim, &create("say one.")).await;
            tell(&sim, &message(&sim, "say two.")).await;
            tell(&sim, &message(&sim, "say three.")).await;
        })
        .check(|sim, history| {
            let heard = heard(history);
            assert_eq!(heard.len(), 3, "{heard:?}");
            assert_eq!((times(&heard, "one."), times(&heard, "three.")), (1, 1), "{heard:?}");
            assert_eq!(states(sim), ["live idle"]);
            let child = history.family.values().next().unwrap();
            assert_eq!(child.texts("user"), ["say one.", "say two.", "say three."]);
        })
}

/// Only what its code says reaches the parent, and its state.
fn explicit() -> Scenario {
    story("a child that speaks for itself")
        .define(resumable(false, |entry| entry["resumable"]["parentCommunication"] = "explicit".into()))
        .terms(|terms| terms.one_answer = false)
        .says(|request| match (request.system(), request.results().is_empty()) {
            ("You are research.", true) => Say::call("work", &json!({})),
            ("You are research.", false) => Say::text("silence"),
            _ => office(request),
        })
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Acts(Box::new(move || {
                    let told = state.set_status("on it").and_then(|()| state.notify_parent("half of it."));
                    match told {
                        Ok(()) => bobbin::definitions::message::ToolResult::success("told"),
                        Err(error) => bobbin::definitions::message::ToolResult::error(error.to_string()),
                    }
                }))
            });
        })
        .drive(|sim| async move { tell(&sim, &create("go")).await })
        .check(|sim, history| {
            let heard = heard(history);
            assert_eq!(times(&heard, "silence"), 0, "{heard:?}");
            // A tool that was interrupted before it spoke, or right after, is not run again.
            let spoken = usize::from(history.faults == 0);
            assert!((spoken..=1).contains(&times(&heard, "half of it.")), "{heard:?}");
            assert_eq!(states(sim)[0].split(' ').next(), Some("live"));
        })
}

fn one_at_a_time() -> Scenario {
    story("no more of a kind than there may be")
        .define(resumable(true, |entry| entry["resumable"]["maxInstances"] = 1.into()))
        .drive(|sim| async move {
            tell(&sim, &create("say one.")).await;
            tell(&sim, &create("say two.")).await;
            sim.of(&references(&sim)[0]).terminate().await;
            settled(&sim, SECOND_US / 20).await;
            tell(&sim, &create("say three.")).await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            let known = references(sim);
            assert_eq!(known.len(), 2);
            assert!(results[0].contains("one.") && results[2].contains("three."), "{results:?}");
            assert!(results[1].contains("the limit") && results[1].contains(&known[0]), "{results:?}");
            assert_eq!(states(sim), ["terminated terminated", "live idle"]);
        })
}

#[test]
fn a_child_is_asked_again_and_answers_each_time_once() {
    waited_for().sampled(300).sweep();
}

#[test]
fn a_child_that_is_not_waited_for_is_asked_again() {
    not_waited_for().sampled(300).sweep();
}

#[test]
fn of_a_child_that_speaks_for_itself_nothing_else_is_heard() {
    explicit().sampled(300).sweep();
}

#[test]
fn a_kind_has_its_limit() {
    one_at_a_time().sampled(300).sweep();
}
