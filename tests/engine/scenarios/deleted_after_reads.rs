//! A thread is deleted after reads that stopped before their last row. SQLite drops no table while a statement is open.

use bobbin::request::{MemoryRoute, ThreadRoute};
use serde_json::json;

use super::family::{begin_anew, delete};
use super::memories::{add, route, search, until_state, with_book};
use super::story;
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![deleted()]
}

/// What lists show of the first rows, and what is looked for from a row on.
async fn reads_that_stop(sim: &Sim) {
    let one = [("limit", "1")];
    for list in [
        ThreadRoute::ListRuns,
        ThreadRoute::ListMessages,
        ThreadRoute::ListLogs,
        ThreadRoute::ListEffects,
        ThreadRoute::GetValues,
        route(MemoryRoute::ListDocuments),
    ] {
        sim.get(list, &one).await;
    }
    sim.get(ThreadRoute::GetRun("r_1".into()), &[]).await;
    sim.get(ThreadRoute::GetRun("r_1".into()), &[("trace", "1")]).await;
    sim.get(ThreadRoute::GetSpans("r_1".into()), &[]).await;
    search(sim, json!({ "query": "mill", "topK": 1, "mode": "text" })).await;
    search(sim, json!({ "query": "mill", "topK": 1, "tags": ["mills"] })).await;
}

fn deleted() -> Scenario {
    story("deleted after reads that stopped")
        .define(with_book)
        .drive(|sim| async move {
            for word in ["one", "two", "use work"] {
                sim.ask(word).await;
            }
            for n in 0..8 {
                let text = format!("Mill {n} stands by the river.");
                let accepted = add(&sim, json!({ "text": text, "tags": ["mills"] })).await;
                until_state(&sim, &accepted, "ready").await;
            }
            reads_that_stop(&sim).await;
            delete(&sim).await;
            let left: Vec<String> =
                sim.member.database.ask("SELECT name FROM sqlite_schema WHERE name LIKE 'mem_%'");
            assert!(left.is_empty(), "tables that are left: {left:?}");
            begin_anew(&sim).await;
        })
        .terms(|terms| terms.alarm_may_stay = true)
}

#[test]
fn a_thread_is_deleted_after_reads_that_stopped_whatever_fails() {
    deleted().sampled(200).sweep();
}
