//! Effects beside each other: the places that they share, and events that have sent enough.

use serde_json::json;

use super::effects::{list, over, schedule, with_effects};
use crate::host::{Answer, SECOND_US, TOOL_URL};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![beside_slow()]
}

/// Two effects behind URLs, one quick and one that takes 25 seconds.
fn slow_and_quick(name: &'static str) -> Scenario {
    with_effects(name)
        .define(|catalog| {
            let http = |path: &str| json!({ "description": "Calls.", "run": { "http": { "url": format!("{TOOL_URL}/{path}") } } });
            catalog["effects"]["slow"] = http("slow");
            catalog["effects"]["quick"] = http("quick");
            catalog["effects"]["other"] = http("slow");
        })
        .setup(|sim| {
            sim.world.outside.server("/slow", |_, _| Answer::json(&json!({})).after(25 * SECOND_US));
            sim.world.outside.server("/quick", |_, _| Answer::json(&json!({})));
        })
        // Effects that run beside each other are what this is about.
        .terms(|terms| terms.overlap = true)
}

async fn count(sim: &Sim, name: &str, status: &str) -> usize {
    let listed = list(sim).await;
    let effects = listed["effects"].as_array().unwrap();
    effects.iter().filter(|effect| effect["name"] == name && effect["status"] == status).count()
}

#[test]
fn one_slow_effect_delays_no_other() {
    slow_and_quick("a slow effect")
        .drive(|sim| async move {
            schedule(&sim, json!({ "name": "slow", "delay": 1_000 })).await;
            // More than one event may send.
            for n in 0..60 {
                schedule(&sim, json!({ "name": "quick", "delay": 2_000 + n * 100 })).await;
            }
            sim.world.pause(9 * SECOND_US).await;
            assert_eq!(
                (count(&sim, "quick", "completed").await, count(&sim, "slow", "processing").await),
                (60, 1)
            );
            sim.world.pause(30 * SECOND_US).await;
            assert_eq!(count(&sim, "slow", "completed").await, 1);
        })
        .calm();
}

#[test]
fn effects_that_hang_leave_places_for_others() {
    slow_and_quick("effects that hang")
        .setup(|sim| {
            sim.world.outside.server("/slow", |_, _| Answer::json(&json!({})).after(50 * SECOND_US));
            sim.world.outside.server("/quick", |_, _| Answer::json(&json!({})));
        })
        .drive(|sim| async move {
            for name in ["slow", "other"] {
                for _ in 0..40 {
                    schedule(&sim, json!({ "name": name, "delay": 1_000 })).await;
                }
            }
            for n in 0..20 {
                schedule(&sim, json!({ "name": "quick", "delay": 2_000 + n * 100 })).await;
            }
            sim.world.pause(8 * SECOND_US).await;
            let hanging = (count(&sim, "slow", "processing").await, count(&sim, "other", "processing").await);
            assert_eq!((hanging, count(&sim, "quick", "completed").await), ((16, 8), 20));
            // Those of a name that has its share come as places of it are free again.
            sim.world.pause(400 * SECOND_US).await;
            assert_eq!(
                (count(&sim, "slow", "completed").await, count(&sim, "other", "completed").await),
                (40, 40)
            );
        })
        .calm();
}

/// The event is handed over while an effect runs.
fn beside_slow() -> Scenario {
    slow_and_quick("a slow effect beside many").drive(|sim| async move {
        let slow = schedule(&sim, json!({ "name": "slow", "delay": 1_000 })).await;
        let mut quick = Vec::new();
        for n in 0..32 {
            quick.push(schedule(&sim, json!({ "name": "quick", "delay": 2_000 + n * 10 })).await);
        }
        for id in quick.iter().chain([&slow]) {
            assert_eq!(over(&sim, id).await["status"], "completed");
        }
    })
}

#[test]
fn an_event_that_has_sent_enough_hands_over_beside_an_effect_whatever_fails() {
    beside_slow().sampled(60).sweep();
}
