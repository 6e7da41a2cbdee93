//! Children that are not waited for: what they come to arrives as a message.

use serde_json::json;

use super::{agent, goes_on, heard, lists, office, references, states, story, tell, times};
use crate::host::{Answer, SECOND_US};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![one(), fails(), at_the_same_instant(), five()]
}

fn research(name: &'static str) -> Scenario {
    story(name)
        .define(|catalog| {
            agent(catalog, "research", &json!([]));
            lists(catalog, json!([goes_on("research"), "work"]));
        })
        .terms(|terms| terms.one_answer = false)
}

fn one() -> Scenario {
    research("a child that is not waited for")
        .drive(|sim| async move { tell(&sim, r#"call research {"q":"say because"}"#).await })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert!(results.len() == 1 && results[0].contains(&references(sim)[0]), "{results:?}");
            let heard = heard(history);
            assert_eq!((heard.len(), times(&heard, "because")), (1, 1), "{heard:?}");
            assert_eq!(history.answers().last(), Some(&"noted"), "it is read");
            assert_eq!(times(&history.answers(), "noted"), 1);
            assert_eq!(states(sim), ["terminated terminated"]);
        })
}

fn fails() -> Scenario {
    research("a child whose model refuses, not waited for")
        .answers(|request| match request.system() {
            "You are research." => Answer::status(400, r#"{"error":{"message":"no such thing"}}"#),
            _ => office(request).stream(request.index),
        })
        .drive(|sim| async move { tell(&sim, r#"call research {"q":"say because"}"#).await })
        .check(|sim, history| {
            let heard = heard(history);
            assert!(heard.len() == 1 && heard[0].contains("has failed"), "{heard:?}");
            assert_eq!(states(sim), ["terminated failed"]);
        })
}

/// Several children, and the time that each model takes.
fn several(name: &'static str, n: usize) -> Scenario {
    research(name)
        // Those that arrive together are read together.
        .terms(move |terms| terms.more_requests = n)
        .answers(|request| match request.system() {
            "You are research." => office(request).stream(request.index).after(SECOND_US),
            _ => office(request).stream(request.index),
        })
        .drive(move |sim| async move {
            let calls: Vec<_> =
                (0..n).map(|i| json!(["research", { "q": format!("say part {i}.") }])).collect();
            tell(&sim, &format!("all {}", json!(calls))).await;
        })
        .check(move |sim, history| {
            let heard = heard(history);
            assert_eq!(heard.len(), n, "{heard:?}");
            for i in 0..n {
                assert_eq!(times(&heard, &format!("part {i}.")), 1, "{heard:?}");
            }
            assert_eq!((references(sim).len(), history.family.len()), (n, n));
            assert!(states(sim).iter().all(|state| state == "terminated terminated"));
        })
}

fn at_the_same_instant() -> Scenario {
    several("two children that answer at the same instant", 2)
}

fn five() -> Scenario {
    several("five children at once", 5).sampled(250)
}

#[test]
fn what_a_child_comes_to_arrives_once_whatever_fails() {
    one().sweep();
}

#[test]
fn a_child_that_fails_says_so_once() {
    fails().sweep();
}

#[test]
fn two_children_that_answer_at_the_same_instant_are_both_heard() {
    at_the_same_instant().sweep();
}

#[test]
fn five_children_are_all_heard() {
    five().sweep();
}
