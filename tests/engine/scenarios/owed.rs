//! What a thread owes when it ends: of its jobs only the one that tells of the past is still done, and a deleted thread owes nothing.

use bobbin::request::ThreadRoute;
use serde_json::json;

use super::memories::{add, text_about, until_state, with_book};
use super::story;
use crate::host::{Answer, COLLECTOR_URL, SECOND_US};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![terminated(), deleted()]
}

/// The kinds of jobs that are open.
fn owed(sim: &Sim) -> Vec<String> {
    match sim.member.has_table("jobs") {
        true => sim.member.database.ask("SELECT kind FROM jobs ORDER BY kind"),
        false => Vec::new(),
    }
}

/// A thread that has to tell a collector of its run, and to index a document: the collector is busy for half a minute, and no vectors
/// can be had at all.
fn owing(name: &'static str) -> Scenario {
    story(name)
        .define(with_book)
        .setup(|sim| {
            sim.world.vars.borrow_mut().insert("BOBBIN_OTLP_ENDPOINT".into(), COLLECTOR_URL.into());
            sim.world.outside.embeddings.script(|_| Some(Answer::status(503, "busy")));
            let world = sim.world.clone();
            sim.world.outside.collector.script(move |_| {
                match world.now_us() < crate::host::world::START_US + 30 * SECOND_US {
                    true => Answer::status(503, "{}").header("retry-after", "10"),
                    false => Answer::json(&json!(null)),
                }
            });
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.outcomes = vec!["completed", "stopped"];
        })
}

async fn begun(sim: &Sim) {
    let accepted = add(sim, json!({ "text": text_about("lighthouse") })).await;
    until_state(sim, &accepted, "partial").await;
    sim.ask("hello").await;
}

fn terminated() -> Scenario {
    owing("a thread that is terminated while it owes something")
        .drive(|sim| async move {
            begun(&sim).await;
            assert_eq!(sim.terminate().await.status, 200);
            assert!(!owed(&sim).contains(&"index".to_owned()), "{:?}", owed(&sim));
            sim.until("the collector is told", |sim| owed(sim).is_empty()).await;
        })
        .check(|sim, _| {
            let (spans, wrong) = sim.world.outside.collector.distinct();
            assert!(wrong.is_empty(), "{wrong:?}");
            let told = spans.values().any(|span| span["name"] == "invoke_agent helper");
            assert!(told, "what happened before is told: {spans:?}");
        })
}

fn deleted() -> Scenario {
    owing("a thread that is deleted while it owes something")
        .drive(|sim| async move {
            let accepted = add(&sim, json!({ "text": text_about("lighthouse") })).await;
            until_state(&sim, &accepted, "partial").await;
            assert_eq!(owed(&sim), ["index"]);
            let seen = sim.insist(ThreadRoute::Delete, &[], None, String::new()).await;
            assert!(matches!(seen.status, 200 | 404), "{}", seen.body);
            assert!(owed(&sim).is_empty(), "{:?}", owed(&sim));
            let asked = sim.world.outside.embeddings.requests.borrow().len();
            sim.world.pause(600 * SECOND_US).await;
            let after = sim.world.outside.embeddings.requests.borrow().len();
            assert_eq!(after, asked, "nobody is asked any more");
            // The contract's last look needs a thread.
            sim.create().await;
        })
        .terms(|terms| terms.alarm_may_stay = true)
}

#[test]
fn a_terminated_thread_still_tells_of_its_past_and_does_nothing_else() {
    terminated().sweep();
}

#[test]
fn a_deleted_thread_owes_nothing() {
    deleted().sweep();
}
