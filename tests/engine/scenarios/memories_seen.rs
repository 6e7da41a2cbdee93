//! Searches of memories and requests for vectors, as the log, listeners, traces and spans have them; and how often they are made.

use bobbin::host::Filter;
use bobbin::request::{MemoryRoute, ThreadRoute};
use serde_json::{Value, json};

use super::memories::{add, route, text_about, until_state, whole, with_book};
use super::{ModelRequest, story};
use crate::host::collector::{attribute, text};
use crate::host::{Answer, COLLECTOR_URL, SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![seen()]
}

fn count(sim: &Sim, condition: &str) -> i64 {
    sim.member.database.ask::<i64>(&format!("SELECT count(*) FROM logs WHERE {condition}"))[0]
}

/// A run that has something put before its turn and looks something up itself, with a collector.
fn seen() -> Scenario {
    story("searches are seen")
        .define(|catalog| {
            with_book(catalog);
            catalog["models"]["embed"]["inputPrice"] = json!(1_000);
            catalog["prompts"]["p"]["memory"] =
                json!([{ "name": "book", "inject": true, "tools": ["search"] }]);
            catalog["agents"]["helper"]["budget"] =
                json!({ "run": { "maxTokens": 100_000, "maxCostUsd": 5 } });
        })
        .setup(|sim| {
            sim.world.vars.borrow_mut().insert("BOBBIN_OTLP_ENDPOINT".into(), COLLECTOR_URL.into());
            sim.world.outside.embeddings.tokens.set(Some(11));
        })
        .says(|request: &ModelRequest| match request.results().len() {
            0 => Say::call("memory_search", &json!({ "query": "lighthouse" })),
            _ => Say::text("It is tall [m1]."),
        })
        .drive(|sim| async move {
            let accepted = add(&sim, json!({ "text": text_about("lighthouse") })).await;
            until_state(&sim, &accepted, "ready").await;
            sim.listen(Filter { events: true, ..Filter::default() }, None).await.ok();
            sim.ask("How tall is the lighthouse?").await;
            let quiet = "SELECT jobs FROM meta";
            sim.until("all spans are sent", |sim| sim.member.database.ask::<i64>(quiet) == [0]).await;
        })
        .check(|sim, history| {
            whole(sim);
            let collector = &sim.world.outside.collector;
            let (spans, mut wrong) = collector.distinct();
            wrong.extend(collector.orphans(&[]));
            assert!(wrong.is_empty(), "{wrong:#?}");
            let named = |name: &str| -> Vec<&Value> {
                spans.values().filter(|span| text(&span["name"]).starts_with(name)).collect()
            };
            let searches = named("search_memory book");
            let rows = count(sim, "kind = 'memory' AND run IS NOT NULL");
            assert_eq!(searches.len() as i64, rows, "a span for each search: {searches:#?}");
            assert!(
                rows >= 2 && searches.iter().all(|span| attribute(span, "gen_ai.data_source.id") == "book")
            );
            let requests = named("embeddings e1");
            let asked = count(sim, "data ->> 'purpose' = 'embedding' AND run IS NOT NULL");
            assert_eq!(requests.len() as i64, asked, "{requests:#?}");
            // Each is below its search, and the model's own below its call.
            let calls: Vec<&str> =
                named("execute_tool memory_search").iter().map(|span| text(&span["spanId"])).collect();
            let below = |span: &&&Value, ids: &[&str]| ids.contains(&text(&span["parentSpanId"]));
            let ids: Vec<&str> = searches.iter().map(|span| text(&span["spanId"])).collect();
            assert!(requests.iter().all(|span| below(&span, &ids)), "{requests:#?}");
            assert!(searches.iter().any(|span| below(&span, &calls)), "{searches:#?}");
            assert!(!searches.iter().all(|span| below(&span, &calls)), "{searches:#?}");
            let found = searches.iter().map(|span| attribute(span, "gen_ai.memory.record.count"));
            assert!(found.into_iter().all(|count| count.as_str().is_some_and(|count| count != "0")));
            // What vectors cost is part of what the run has.
            if history.faults == 0 {
                let given = requests.iter().map(|span| attribute(span, "gen_ai.response.model"));
                assert!(given.into_iter().all(|model| model == "e1-2026"), "{requests:#?}");
                let run = named("invoke_agent")[0];
                assert_eq!(attribute(run, "bobbin.budget.limit_usd"), 5.0, "{run:#?}");
                let spent = attribute(run, "bobbin.budget.spent_usd").as_f64().unwrap();
                assert!((spent - 2.0 * 0.011).abs() < 1e-9, "two questions of 11 tokens: {spent}");
                let lines = sim.world.frames.borrow();
                let lines = lines.iter().filter(|(_, frame)| frame.data["kind"] == "memory_search");
                let lines: Vec<&str> =
                    lines.filter_map(|(_, frame)| frame.data["message"].as_str()).collect();
                assert_eq!(lines, ["Searching memory: book", "Searching memory: book"]);
                let looking = sim.clone();
                let run = sim.world.drive(async move {
                    looking.get(ThreadRoute::GetRun("r_1".to_owned()), &[("trace", "1")]).await
                });
                let told =
                    run["trace"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "memory.search");
                let told: Vec<&Value> = told.map(|entry| &entry["data"]["by"]).collect();
                assert_eq!(told, ["turn", "call"]);
            }
        })
}

#[test]
fn a_search_and_its_requests_are_logged_told_traced_and_paid_for() {
    seen().sweep();
}

/// Places that say how often vectors are asked for, how often that is for one question, and whose word it is.
const CASES: [(&str, usize, &str); 5] = [
    (r"{}", 2, "built_in"),
    (r#"{"file":{"maxAttempts":3}}"#, 3, "definition"),
    (r#"{"file":{"maxAttempts":3},"folder":{"maxAttempts":1}}"#, 1, "folder"),
    (r#"{"folder":{"maxAttempts":1},"prompt":{"maxAttempts":4}}"#, 4, "prompt"),
    (r#"{"prompt":{"maxAttempts":4},"run":{"maxAttempts":2,"retryOn":["rate_limit"]}}"#, 1, "run"),
];

#[test]
fn a_question_is_embedded_again_as_often_as_the_first_place_says() {
    for (places, asked, source) in CASES {
        let places: Value = serde_json::from_str(places).unwrap();
        let (of, run) = (places.clone(), places["run"].clone());
        story("policies of embedding")
            .define(move |catalog| {
                with_book(catalog);
                let policy = |place: &str| of.get(place).cloned().unwrap_or_else(|| json!({}));
                catalog["models"]["embed"]["retry"] = policy("file");
                catalog["settings"]["retryDefaults"] = json!({ "embedding": policy("folder") });
                catalog["prompts"]["p"]["retry"] = json!({ "embedding": policy("prompt") });
                catalog["prompts"]["p"]["memory"] = json!([{ "name": "book", "inject": true }]);
            })
            .drive(move |sim| {
                let run = run.clone();
                async move {
                    let accepted = add(&sim, json!({ "text": text_about("lighthouse") })).await;
                    until_state(&sim, &accepted, "ready").await;
                    sim.world.outside.embeddings.script(|_| Some(Answer::status(503, "busy")));
                    let before = sim.world.outside.embeddings.requests.borrow().len();
                    let mut body = json!({ "role": "user", "content": "lighthouse" });
                    if !run.is_null() {
                        body["retry"] = json!({ "embedding": run });
                    }
                    assert_eq!(sim.post(body).await.status, 202);
                    let message = sim.accepted.borrow().last().cloned().unwrap();
                    let outcome = sim.outcome(&message).await;
                    assert_eq!(outcome["outcome"], "completed", "{outcome}");
                    let told = outcome["diagnostics"].as_array().cloned().unwrap_or_default();
                    let degraded = told.iter().filter(|entry| entry["code"] == "memory.degraded").count();
                    assert_eq!(degraded, 1, "said once: {told:?}");
                    let requests = sim.world.outside.embeddings.requests.borrow().len() - before;
                    assert_eq!((requests, source), (asked, source), "{outcome}");
                    let told = "data ->> 'purpose' = 'embedding' AND data ->> 'status' = 'failed'";
                    let of = format!("{told} AND data ->> 'retry_source' = '{source}'");
                    assert_eq!((count(&sim, told), count(&sim, &of)), (asked as i64, asked as i64));
                }
            })
            .terms(|terms| terms.alarm_may_stay = true)
            .once();
    }
}

#[test]
fn a_server_of_vectors_is_asked_again_when_the_policy_and_its_own_wish_say() {
    story("pauses of indexing")
        .define(|catalog| {
            with_book(catalog);
            catalog["models"]["embed"]["retry"] =
                json!({ "maxAttempts": 3, "backoffMs": 40_000, "maxBackoffMs": 40_000, "jitter": "none" });
        })
        .setup(|sim| {
            let busy =
                |n: usize| Answer::status(503, "busy").header("retry-after", if n == 0 { "90" } else { "1" });
            sim.world.outside.embeddings.script(move |n| (n < 2).then(|| busy(n)));
        })
        .drive(|sim| async move {
            let begun = sim.world.now_us();
            let accepted = add(&sim, json!({ "text": text_about("lighthouse") })).await;
            until_state(&sim, &accepted, "ready").await;
            let took = (sim.world.now_us() - begun) / SECOND_US;
            assert!(
                (130..134).contains(&took),
                "90 s that the server wished, then 40 s by the policy: {took}"
            );
        })
        .check(|sim, _| whole(sim))
        .once();
}

#[test]
fn a_search_from_outside_has_no_run_and_waits_five_seconds_at_most() {
    story("a search from outside")
        .define(with_book)
        .drive(|sim| async move {
            let accepted = add(&sim, json!({ "text": text_about("lighthouse") })).await;
            until_state(&sim, &accepted, "ready").await;
            sim.world.outside.embeddings.script(|_| Some(Answer::silence()));
            let begun = sim.world.now_us();
            let body = json!({ "query": "lighthouse" }).to_string();
            let seen = sim.insist(route(MemoryRoute::Search), &[], None, body).await;
            assert!(sim.world.now_us() - begun < 6 * SECOND_US);
            assert_eq!(seen.body["degraded"], true, "{seen:?}");
            assert!(seen.body["error"].as_str().unwrap().starts_with("embedding_failed: "), "{seen:?}");
            assert!(seen.body["results"][0]["text"].as_str().unwrap().contains("lighthouse"), "{seen:?}");
            let failed = "kind = 'llm_request' AND run IS NULL AND data ->> 'status' = 'failed'";
            assert_eq!(count(&sim, failed), 1);
            assert_eq!(count(&sim, "kind = 'memory'"), 0);
        })
        .once();
}
