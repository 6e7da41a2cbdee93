//! What a collector refuses for good: it is sent once, counted once, and told.

use bobbin::request::ThreadRoute;
use serde_json::json;

use super::spans::{all_sent, exports, set, shown, told};
use super::story;
use crate::host::Answer;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![refused()]
}

#[test]
fn what_a_collector_refuses_is_not_sent_again() {
    for (answer, line) in [
        (Answer::status(400, "no"), "the collector refused spans with 400 at /v1/traces: no"),
        (
            Answer::json(&json!({ "partialSuccess": { "rejectedSpans": "2", "errorMessage": "full" } })),
            "the collector did not take 2 of the spans: full",
        ),
        (Answer::status(302, ""), "the collector refused spans with 302 at /v1/traces"),
        (
            Answer::status(404, "\n<!doctype html>\n<html>no hush-hush-hush here</html>"),
            "the collector refused spans with 404 at /v1/traces: <!doctype html>",
        ),
    ] {
        story("a collector that refuses")
            .setup(exports)
            .setup(move |sim| {
                let answer = answer.clone();
                sim.world.outside.collector.script(move |_| answer.clone());
            })
            .drive(|sim| async move {
                sim.ask("hello").await;
                told(&sim).await;
                sim.ask("again").await;
                told(&sim).await;
            })
            .check(move |sim, _| {
                assert_eq!(sim.world.outside.collector.requests.borrow().len(), 2);
                let lines = sim.world.log.borrow().iter().filter(|said| said.ends_with(line)).count();
                assert_eq!(lines, 1, "{:?}", sim.world.log.borrow());
                let refused: Vec<String> =
                    sim.member.database.ask("SELECT data ->> 'error' FROM logs WHERE kind = 'failure'");
                assert_eq!(refused, [line, line]);
            })
            .once();
    }
}

/// A collector that takes another format: each span is lost, and counted once.
fn refused() -> Scenario {
    story("a collector that takes no JSON")
        .setup(exports)
        .setup(|sim| sim.world.outside.collector.script(|_| Answer::status(415, "Unsupported")))
        .drive(|sim| async move {
            sim.ask("use work").await;
            told(&sim).await;
            sim.ask("hello").await;
            told(&sim).await;
        })
        .check(|sim, _| {
            let looking = sim.clone();
            let said = sim.world.drive(async move { looking.get(ThreadRoute::Diagnostics, &[]).await });
            let error = "the collector refused spans with 415 at /v1/traces: Unsupported";
            assert_eq!(said["export"], json!({ "dropped": shown(sim).len(), "error": error }));
        })
}

#[test]
fn what_a_collector_refuses_for_good_is_counted_once_whatever_fails() {
    refused().sweep();
}

#[test]
fn a_collector_without_metrics_is_logged_once_and_loses_no_spans() {
    story("a collector without metrics")
        .setup(exports)
        .setup(|sim| {
            set(sim, "BOBBIN_OTLP_METRICS", "1");
            sim.world.outside.collector.script_metrics(|| Answer::status(404, "<!doctype html>\n<p>"));
        })
        .drive(|sim| async move {
            for text in ["hello", "again"] {
                sim.ask(text).await;
                told(&sim).await;
            }
        })
        .check(|sim, _| {
            let line = "the collector refused metrics with 404 at /v1/metrics: <!doctype html>";
            let lines = sim.world.log.borrow().iter().filter(|said| said.ends_with(line)).count();
            assert_eq!(lines, 1, "{:?}", sim.world.log.borrow());
            let refused: Vec<String> = sim.member.database.ask(
                "SELECT data ->> 'error' || ', ' || (data ->> 'dropped') FROM logs WHERE kind = 'failure'",
            );
            assert_eq!(refused, [format!("{line}, 0")]);
            all_sent(sim, &[]);
        })
        .calm();
}
