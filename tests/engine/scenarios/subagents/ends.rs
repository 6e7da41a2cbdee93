//! Families that are stopped and terminated while they work (`family` deletes them).

use serde_json::{Value, json};

use super::{agent, goes_on, heard, lists, references, settled, states, story, waits};
use crate::contract::History;
use crate::host::SECOND_US;
use crate::sample;
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![
        stopped(waits),
        stopped(goes_on),
        terminated(waits),
        terminated(goes_on),
        child_terminated(waits),
        making_room(),
    ]
}

/// A child that naps and a grandchild that does, and what is done to the thread `after_us`.
fn napping<F>(
    name: &'static str,
    entry: fn(&str) -> Value,
    after_us: i64,
    act: impl Fn(Sim) -> F + Clone + 'static,
) -> Scenario
where
    F: Future<Output = ()> + 'static,
{
    story(name)
        .define(move |catalog| {
            agent(catalog, "leaf", &json!(["nap"]));
            agent(catalog, "research", &json!([entry("leaf"), "nap"]));
            lists(catalog, json!([entry("research")]));
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.pairs = false;
            // What is done to it comes later when something fails.
            terms.more_requests = 10;
            terms.outcomes = vec!["completed", "stopped"];
        })
        .drive(move |sim| {
            let act = act.clone();
            async move {
                let leaf = json!({ "q": "call nap {}" });
                let calls = json!([["leaf", leaf], ["nap", {}]]);
                sim.send(&format!("call research {}", json!({ "q": format!("all {calls}") }))).await;
                sim.world.pause(after_us).await;
                act(sim.clone()).await;
                settled(&sim, SECOND_US / 20).await;
            }
        })
}

/// Each moment of the story: before the child exists, while it is made, while it works, and after.
const MOMENTS: [i64; 7] = [0, 1_500, 4_000, 20_000, SECOND_US, 3 * SECOND_US, 30 * SECOND_US];

fn stopped_after(entry: fn(&str) -> Value, after_us: i64) -> Scenario {
    napping("a family that is stopped", entry, after_us, |sim| async move {
        sim.stop().await;
    })
    .check(|sim, history| {
        for child in sim.family() {
            let open = child.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE phase != 'ended'");
            assert_eq!(open, [0]);
        }
        pairs_of_families(history);
    })
}

fn stopped(entry: fn(&str) -> Value) -> Scenario {
    stopped_after(entry, SECOND_US)
}

/// A child that was stopped with its parent says nothing of that.
fn pairs_of_families(history: &History) {
    let heard = heard(history);
    assert!(heard.iter().all(|text| !text.contains("was stopped")), "{heard:?}");
}

fn terminated_after(entry: fn(&str) -> Value, after_us: i64) -> Scenario {
    napping("a family that is terminated", entry, after_us, |sim| async move {
        sim.terminate().await;
    })
    .check(|sim, _| {
        assert!(states(sim).iter().all(|state| state.starts_with("terminated")), "{:?}", states(sim));
    })
}

fn terminated(entry: fn(&str) -> Value) -> Scenario {
    terminated_after(entry, SECOND_US)
}

/// The child alone is terminated, by a client.
fn child_terminated(entry: fn(&str) -> Value) -> Scenario {
    napping("a child that is terminated by a person", entry, SECOND_US, |sim| async move {
        sim.until("a child", |sim| sim.family().len() > 1).await;
        sim.of(&references(&sim)[0]).terminate().await;
    })
    .check(|sim, history| {
        assert_eq!(states(sim), ["terminated terminated"]);
        let results = history.texts("tool");
        assert_eq!(results.len(), 1, "{results:?}");
    })
}

/// The child alone is stopped, by a client.
fn child_stopped(entry: fn(&str) -> Value) -> Scenario {
    napping("a child that is stopped by a person", entry, SECOND_US, |sim| async move {
        sim.until("a child", |sim| sim.family().len() > 1).await;
        sim.of(&references(&sim)[0]).stop().await;
    })
    .check(|_, history| {
        let results = history.texts("tool");
        assert!(results.len() == 1 && results[0].contains("stopped"), "{results:?}");
    })
}

#[test]
fn a_stop_reaches_a_family_whatever_fails() {
    stopped(waits).sampled(250).sweep();
    stopped(goes_on).sampled(250).sweep();
}

#[test]
fn a_stop_at_any_moment_leaves_nobody_waiting() {
    for after_us in sample::some("stopped", MOMENTS.into(), 3) {
        stopped_after(waits, after_us).sampled(25).sweep();
        stopped_after(goes_on, after_us).sampled(25).sweep();
    }
}

#[test]
fn a_termination_reaches_a_family_whatever_fails() {
    terminated(waits).sampled(250).sweep();
    terminated(goes_on).sampled(250).sweep();
}

#[test]
fn a_termination_at_any_moment_leaves_nobody_waiting() {
    for after_us in sample::some("terminated", MOMENTS.into(), 3) {
        terminated_after(waits, after_us).sampled(25).sweep();
        terminated_after(goes_on, after_us).sampled(25).sweep();
    }
}

#[test]
fn who_waits_for_a_child_that_is_terminated_or_stopped_is_told() {
    child_terminated(waits).sampled(300).sweep();
    child_stopped(waits).sampled(300).sweep();
}

/// A thread that has as many subagents as it may, one of which a person has stopped.
fn making_room() -> Scenario {
    napping("a place for another subagent", goes_on, SECOND_US, |sim| async move {
        sim.until("a child", |sim| sim.family().len() > 1).await;
        sim.of(&references(&sim)[0]).stop().await;
        settled(&sim, SECOND_US / 20).await;
        sim.until("it rests", |sim| states(sim).iter().all(|state| state == "live idle")).await;
        // The others are not there, but count.
        sim.evict().await;
        sim.member.database.alter("UPDATE meta SET children = children + 999");
        sim.ask("call research {\"q\":\"say hi\"}").await;
        settled(&sim, SECOND_US / 20).await;
        sim.evict().await;
        sim.member.database.alter("UPDATE meta SET children = children - 999");
    })
    .check(|sim, _| {
        assert_eq!(states(sim), ["terminated terminated", "terminated terminated"]);
        let stopped = sim.of(&references(sim)[0]);
        let ended: Vec<Option<i64>> = stopped.member.database.ask("SELECT terminated_us FROM meta");
        assert!(ended[0].is_some(), "it has heard of it");
    })
}

#[test]
fn a_subagent_that_was_stopped_for_good_takes_no_place_from_another() {
    making_room().sampled(120).sweep();
}
