//! Summaries in threads that are limited: what their requests use is booked, whatever becomes of the run that has caused them.

use serde_json::json;

use super::spending::{counted, ledgers};
use super::summary::{both, is_summary, said, settled, summarise, summarised};
use crate::host::SECOND_US;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![paid_later()]
}

/// Summaries that take longer than the runs that have caused them, in a thread that is limited.
fn paid_later() -> Scenario {
    summarised("paid after the run")
        .define(|catalog| {
            for model in ["m", "cheap"] {
                catalog["models"][model]["capabilities"] = json!({ "maxOutputTokens": 300 });
            }
            catalog["agents"]["helper"]["budget"] = json!({ "thread": { "maxTokens": 1_000_000 } });
        })
        .answers(|request| {
            let answer = counted(request, both(request)).stream(request.index);
            if is_summary(request) { answer.after(3 * SECOND_US) } else { answer }
        })
        .drive(|sim| async move {
            for n in 0..6 {
                sim.ask(&said(n)).await;
            }
            summarise(&sim).await;
            settled(&sim).await;
        })
        .check(|sim, history| {
            let runs: i64 = ledgers(sim).iter().map(|ledger| ledger["s"][1].as_i64().unwrap()).sum();
            let apart: Vec<i64> = sim.member.database.ask("SELECT ifnull(budget ->> '$.a[1]', 0) FROM meta");
            let given: u64 = sim.world.outside.given.borrow().iter().map(|given| given.input + given.output).sum();
            let booked = runs + apart[0];
            assert!(booked >= given as i64, "{booked} of {given}");
            if history.faults == 0 {
                assert!(apart[0] > 0, "a summary was paid by the thread");
                assert_eq!(booked, given as i64, "to the token");
            }
            let of_none: Vec<i64> = sim.member.database.ask(
                "SELECT count(*) FROM logs WHERE data ->> 'purpose' = 'summary' AND run IS NULL AND data ->> 'of_run' IS NULL",
            );
            assert_eq!(of_none, [0], "each is of the run that has caused it");
        })
        .sampled(60)
}

#[test]
fn what_a_summary_uses_after_its_run_is_booked_on_the_thread_whatever_fails() {
    paid_later().sweep();
}
