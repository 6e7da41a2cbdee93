//! Every way in which a run can end is that of a story whose runs the contract looks at, whatever fails: each has its status,
//! its reason, and a trace with one beginning and one end.

use serde_json::json;

use super::waits::{asking, until_open, with};
use super::{failures, limits, story};
use crate::contract;
use crate::host::SECOND_US;
use crate::host::fault::Fault;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![expired(), blocked()]
}

/// Nobody decides in time about a call whose definition wants the run to fail then.
fn expired() -> Scenario {
    let approval = json!({ "mode": "always", "onExpiry": "fail", "expiresAfterSeconds": 3_600 });
    story("a run that fails because nobody decides")
        .define(with(json!({ "pay": asking(approval) })))
        .drive(|sim| async move {
            let message = sim.send("use pay,work").await;
            let waits = until_open(&sim, 1).await;
            assert_eq!(waits[0]["onExpiry"], "fail");
            sim.world.pause(7_200 * SECOND_US).await;
            let outcome = sim.outcome(&message).await;
            assert_eq!(
                (&outcome["reason"], &outcome["waits"]),
                (&json!("wait_expired"), &json!([])),
                "{outcome}"
            );
        })
        .terms(|terms| {
            terms.outcomes = vec!["failed"];
            // What came after the call never had its turn.
            terms.pairs = false;
        })
        .check(|sim, history| {
            assert_eq!(history.statuses("run_failed").len(), 1);
            assert_eq!(history.texts("tool"), ["Denied: Nobody answered within 60 minutes."]);
            assert_eq!(sim.world.outside.executions.borrow().len(), 0);
            let states: Vec<String> = sim.member.database.ask("SELECT state FROM waits");
            assert_eq!(states, ["expired"]);
        })
}

#[test]
fn a_run_fails_when_nobody_decides_in_time_if_its_tool_says_so() {
    expired().sweep();
}

/// A hook says that the model must not be asked.
fn blocked() -> Scenario {
    story("a run that a hook blocks")
        .define(|catalog| {
            catalog["hooks"] =
                json!({ "h": { "id": "h", "hook": "prefilter_llm_history", "run": { "native": "h" } } });
            catalog["agents"]["helper"]["hooks"] = json!(["h"]);
        })
        .setup(|sim| {
            sim.world
                .outside
                .hook("h", |_| Box::pin(async { Ok(json!({ "error": "Not here.", "block": true })) }));
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .terms(|terms| terms.outcomes = vec!["failed", "completed"])
        .check(|sim, history| {
            // A panic in the hook is its failure: then it has blocked nothing.
            let asked = sim.world.outside.requests.borrow().len();
            assert!(asked <= history.faults, "{asked}");
            assert_eq!(history.statuses("run_failed").len() + asked, 1);
        })
}

#[test]
fn a_hook_that_blocks_the_model_fails_the_run() {
    blocked().sweep();
}

/// Stories that end, between them, in the other ways that there are: with them first, no more are run.
const RARE: [&str; 18] = [
    "plain turns",
    "a debate",
    "forced turns",
    "stopped in the middle",
    "a tool that a client calls",
    "an answer in the background, terminated",
    "a chain that is exhausted",
    "a skill changes while a person is asked",
    "max steps",
    "repeated error",
    "nothing but empty replies",
    "vanished",
    "files for a child",
    "a run whose budget is used up",
    "a run that finishes by itself",
    "strict without a key",
    "a stop while a child's call is asked about",
    "a child that ends its session, well and badly",
];

#[test]
fn every_ending_is_that_of_a_story_whose_runs_are_looked_at() {
    let first = [failures::kills(Fault::CrashLost), limits::hard_cap(), expired(), blocked()];
    let mut stories = super::all();
    stories.sort_by_key(|story| !RARE.contains(&story.name));
    let mut left = contract::endings().clone();
    for story in first.into_iter().chain(stories) {
        if left.is_empty() {
            break;
        }
        for reached in story.reasons() {
            left.remove(&reached);
        }
    }
    assert!(left.is_empty(), "no story ends by {left:?}");
}
