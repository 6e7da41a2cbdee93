//! Providers that fail: retries, fallbacks, watchdogs, broken streams.

use bobbin::host::Filter;
use serde_json::{Value, json};

use super::{clerk, story};
use crate::host::answer::Piece;
use crate::host::{Answer, SECOND_US};
use crate::sim::model;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![unavailable_once(), cut_once(), fallbacks()]
}

fn with_fallbacks(scenario: Scenario) -> Scenario {
    scenario.define(|catalog| {
        catalog["models"] = json!({ "m": model("m"), "m2": model("m2"), "m3": model("m3") });
        catalog["models"]["m"]["fallbacks"] = json!(["m2", "m3"]);
    })
}

fn asked(sim: &crate::sim::Sim) -> Vec<String> {
    sim.world.outside.requests.borrow().iter().map(|request| request.model.clone()).collect()
}

fn gap_s(sim: &crate::sim::Sim, n: usize) -> i64 {
    let requests = sim.world.outside.requests.borrow();
    // A request's way to its server differs by milliseconds.
    (requests[n].at_us - requests[n - 1].at_us + SECOND_US / 2) / SECOND_US
}

#[test]
fn the_key_goes_with_every_request_and_nowhere_else() {
    story("key")
        .define(|catalog| catalog["models"]["m"]["apiKeyEnv"] = "MODEL_KEY".into())
        .setup(|sim| {
            sim.world.vars.borrow_mut().insert("MODEL_KEY".into(), "sk-secret".into());
        })
        .answers(|request| match request.index {
            0 => Answer::status(401, r#"{"error":{"message":"no such key: sk-secret"}}"#),
            _ => clerk(request).stream(request.index),
        })
        .drive(|sim| async move {
            let outcome = sim.ask("hello").await;
            assert!(!outcome.to_string().contains("sk-secret"), "{outcome}");
            let logs = sim.get(bobbin::request::ThreadRoute::ListLogs, &[]).await;
            assert!(!logs.to_string().contains("sk-secret"), "{logs}");
        })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            assert!(requests[0].headers.contains(&("authorization".into(), "Bearer sk-secret".into())));
            assert!(!requests[0].body.to_string().contains("sk-secret"));
        })
        .terms(|terms| terms.outcomes = vec!["failed"])
        .calm();
}

fn unavailable_once() -> Scenario {
    story("503 once")
        .answers(|request| match request.index {
            0 => Answer::status(503, r#"{"error":{"message":"busy"}}"#),
            _ => clerk(request).stream(request.index),
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["re: hello"]);
            if history.faults == 0 {
                assert_eq!(asked(sim), ["m", "m"]);
                assert!(gap_s(sim, 1) <= 1, "full jitter over at most a second");
            }
        })
}

#[test]
fn a_503_is_tried_again() {
    unavailable_once().sweep();
}

/// Statuses, the wait that the second request keeps at least, and at most, seconds.
#[test]
fn retry_after_is_honoured_up_to_a_minute() {
    for (after, least, most) in [("7", 7, 8), ("300", 60, 61)] {
        story("429")
            .answers(move |request| match request.index {
                0 => Answer::status(429, "{}").header("retry-after", after),
                _ => clerk(request).stream(request.index),
            })
            .drive(|sim| async move {
                sim.ask("hello").await;
            })
            .check(move |sim, _| {
                let waited = gap_s(sim, 1);
                assert!((least..=most).contains(&waited), "{after}: {waited} s");
            })
            .calm();
    }
}

#[test]
fn a_model_that_never_answers_fails_the_run_and_stays_quiet() {
    for (answer, times) in [
        (Answer::status(503, "{}"), 2),
        (Answer::refused(), 2),
        (Answer::status(401, r#"{"error":{"message":"bad key"}}"#), 1),
        (Answer::status(400, r#"{"error":{"message":"no such field"}}"#), 1),
        (Answer::silence(), 1),
    ] {
        story("never answers")
            .answers(move |_| answer.clone())
            .drive(|sim| async move {
                let outcome = sim.ask("hello").await;
                assert_eq!(outcome["reason"], "model_error", "{outcome}");
            })
            .check(move |sim, history| {
                let asked = asked(sim).len();
                assert!(
                    asked == times || (asked == times + 1 && history.faults == 1),
                    "{asked}, not {times}"
                );
                assert_eq!(history.statuses("run_failed").len(), 1);
                assert_eq!(history.of("assistant").count(), 0);
            })
            .terms(|terms| terms.outcomes = vec!["failed"])
            .sweep();
    }
}

fn fallbacks() -> Scenario {
    with_fallbacks(story("fallbacks"))
        .answers(|request| match request.model.as_str() {
            "m" => Answer::status(500, "{}"),
            "m2" => Answer::status(401, "{}"),
            _ => clerk(request).stream(request.index),
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["re: hello"]);
            if history.faults == 0 {
                assert_eq!(asked(sim), ["m", "m", "m2", "m3"]);
            }
        })
}

#[test]
fn fallbacks_are_tried_in_order() {
    fallbacks().sweep();
}

#[test]
fn a_fallback_that_knows_no_json_is_asked_for_a_plain_answer() {
    with_fallbacks(story("json"))
        .define(|catalog| {
            catalog["models"]["m"]["capabilities"] = json!({ "supportsJsonMode": true });
            catalog["prompts"]["p"]["responseFormat"] = json!({ "type": "json" });
        })
        .answers(|request| match request.model.as_str() {
            "m" => Answer::status(400, "{}"),
            _ => clerk(request).stream(request.index),
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            let formats: Vec<_> = requests.iter().map(|request| &request.body["response_format"]).collect();
            assert_eq!(formats, [&json!({ "type": "json_object" }), &json!(null)]);
        })
        .calm();
}

/// The beginning of an answer, and then the same line for ever.
fn kept_open(every_s: i64, line: &'static str) -> Answer {
    let mut answer = crate::host::Say::text("abc").chunks(3).stream(0);
    answer.pieces.truncate(2);
    for _ in 0..100 {
        answer.pieces.push(Piece::Wait(every_s * SECOND_US));
        answer.pieces.push(Piece::Data(line.into()));
    }
    answer
}

const REASONING: &str = "data: {\"choices\":[{\"delta\":{\"reasoning\":\"r\"}}]}\n\n";

#[test]
fn ids_that_a_server_refuses_are_sent_in_a_form_that_fits_all() {
    story("ids of calls")
        .define(|catalog| catalog["models"]["m"] = model("takes-nine-letters"))
        .answers(|request| {
            let of = |message: &Value| match message["tool_calls"].as_array() {
                Some(calls) => calls.iter().map(|call| call["id"].clone()).collect(),
                None => vec![message["tool_call_id"].clone()],
            };
            let mut ids = request.messages().iter().flat_map(of).filter(|id| !id.is_null());
            let fits = |id: &Value| id.as_str().is_some_and(|id| id.len() == 9 && !id.contains('_'));
            let fits_all = ids.all(|id| fits(&id));
            match fits_all {
                true => clerk(request).stream(request.index),
                false => Answer::status(400, r#"{"message":"Tool call id was x but must be a-z, A-Z, 0-9"}"#),
            }
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            sim.ask("hello").await;
            assert_eq!(asked(&sim).len(), 4, "one refusal teaches it");
            // It was made twice in one attempt.
            sim.world.outside.requests.borrow_mut().remove(1);
        })
        .check(|_, history| assert_eq!(history.answers(), ["done: w0", "re: hello"]))
        .once();
}

#[test]
fn a_refusal_that_may_mean_too_long_is_tried_with_half_if_the_request_is_long() {
    let refusal = r#"{"error":{"message":"Your conversation has more tokens than we like."}}"#;
    for (window, outcome) in [(20_000, "completed"), (200_000, "failed")] {
        story("unknown words")
            .define(move |catalog| {
                catalog["models"]["m"]["capabilities"] = json!({ "maxContextTokens": window });
            })
            .answers(move |request| match request.body["messages"].to_string().len() > 45_000 {
                true => Answer::status(400, refusal),
                false => clerk(request).stream(request.index),
            })
            .drive(move |sim| async move {
                for n in 0..14 {
                    sim.ask(&format!("{n} {}", "word ".repeat(700))).await;
                }
                assert_eq!(sim.ask("last").await["outcome"], outcome, "{window}");
            })
            .terms(|terms| terms.outcomes = vec!["completed", "failed"])
            .calm();
    }
}

#[test]
fn silence_moves_on_to_the_fallback() {
    for (name, answer, least, most) in [
        ("no headers", Answer::silence(), 120, 121),
        ("no first chunk", crate::host::Say::text("x").stream(0).stall_after(0), 120, 121),
        ("stalled", crate::host::Say::text("abc").chunks(3).stream(0).stall_after(2), 45, 46),
        ("comments", kept_open(5, ": keep-alive\n\n"), 45, 46),
        ("events that carry nothing", kept_open(40, "data: {\"choices\":[]}\n\n"), 300, 301),
        ("reasoning", kept_open(40, REASONING), 1_800, 1_801),
    ] {
        with_fallbacks(story(name))
            .answers(move |request| match request.model.as_str() {
                "m" => answer.clone(),
                _ => clerk(request).stream(request.index),
            })
            .drive(|sim| async move {
                sim.ask("hello").await;
            })
            .check(move |sim, history| {
                assert_eq!(asked(sim), ["m", "m2"]);
                let waited = gap_s(sim, 1);
                assert!((least..=most).contains(&waited), "{name}: {waited} s");
                assert_eq!(history.answers(), ["re: hello"]);
            })
            .calm();
    }
}

#[test]
fn slow_chunks_that_keep_coming_are_no_stall() {
    story("slow")
        .answers(|request| {
            crate::host::Say::text("abcdefghij").chunks(10).stream(request.index).pace(40 * SECOND_US)
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            assert_eq!(asked(sim).len(), 1);
            assert_eq!(history.answers(), ["abcdefghij"]);
        })
        .calm();
}

fn cut_once() -> Scenario {
    story("cut stream")
        .answers(|request| match request.index {
            0 => crate::host::Say::text("lost words").chunks(5).stream(0).cut_after(3),
            _ => clerk(request).stream(request.index),
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|_, history| assert_eq!(history.answers(), ["re: hello"]))
}

#[test]
fn a_stream_that_breaks_off_starts_a_new_attempt() {
    cut_once().sweep();
}

#[test]
fn a_broken_attempt_is_reset_on_the_stream() {
    for answer in [
        crate::host::Say::text("lost words").chunks(5).stream(0).cut_after(3),
        crate::host::Say::text("lost words").chunks(5).stream(0).end_after(3),
    ] {
        story("reset")
            .answers(move |request| match request.index {
                0 => answer.clone(),
                _ => clerk(request).stream(request.index),
            })
            .drive(|sim| async move {
                sim.listen(Filter { events: true, ..Filter::default() }, None).await.unwrap();
                sim.ask("hello").await;
            })
            .check(|sim, _| {
                let frames = sim.world.frames.borrow();
                let kinds: Vec<&str> = frames
                    .iter()
                    .map(|(_, frame)| frame.kind)
                    .filter(|kind| matches!(*kind, "message_chunk" | "message_reset"))
                    .collect();
                let reset = kinds.iter().position(|kind| *kind == "message_reset");
                assert_eq!(reset, Some(3), "{kinds:?}");
                let text: String = frames
                    .iter()
                    .filter(|(_, frame)| frame.kind == "message_chunk" && frame.data["attempt"] == 2)
                    .filter_map(|(_, frame)| frame.data["chunk"].as_str())
                    .collect();
                assert_eq!(text, "re: hello");
            })
            .calm();
    }
}

#[test]
fn a_history_that_is_too_long_is_halved_once_and_remembered() {
    story("context length")
        .answers(|request| {
            let bytes = request.body["messages"].to_string().len();
            if bytes > 60_000 {
                let error = json!({ "error": { "code": "context_length_exceeded", "message": "too long" } });
                return Answer::status(400, error.to_string());
            }
            clerk(request).stream(request.index)
        })
        .drive(|sim| async move {
            for n in 0..60 {
                let outcome = sim.ask(&format!("{n} {}", "x".repeat(1_000))).await;
                assert_eq!(outcome["outcome"], "completed", "{outcome}");
            }
        })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow().len();
            assert!(requests <= 62, "{requests} requests: each turn runs into the same wall");
        })
        .calm();
}
