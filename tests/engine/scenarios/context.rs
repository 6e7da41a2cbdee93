//! Requests keep to the tokens that a model takes: counted, corrected by what its provider reports, and shown.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::{ModelRequest, clerk, story};
use crate::host::{Answer, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

/// Texts, and their tokens by the vocabulary `o200k_base`.
fn corpus() -> Vec<(String, u64)> {
    let read = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("a line of JSON");
        (row["text"].as_str().expect("a text").trim().to_owned(), row["o200k"].as_u64().expect("a count"))
    };
    include_str!("../../fixtures/tokens.jsonl").lines().map(read).collect()
}

/// Tokens of a request as a server counts them that has the vocabulary: of texts of the corpus it is known, of what else there
/// is (system prompt, tools) a token for three bytes is more than enough.
fn counted(request: &ModelRequest, known: &HashMap<String, u64>) -> u64 {
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let of = |text: String| known.get(&text).copied().unwrap_or(text.len() as u64 / 3);
    let said: u64 = request.messages().iter().map(|message| of(text(message)) + 4).sum();
    said + request.body["tools"].to_string().len() as u64 / 3
}

fn too_long() -> Answer {
    let error = json!({ "error": { "code": "context_length_exceeded", "message": "This request is too long.",
        "type": "invalid_request_error" } });
    Answer::status(400, error.to_string())
}

#[test]
fn a_server_that_counts_with_a_vocabulary_refuses_none_of_200_turns() {
    let texts = Rc::new(corpus());
    let known: Rc<HashMap<String, u64>> = Rc::new(texts.iter().cloned().collect());
    let refused = Rc::new(RefCell::new(Vec::new()));
    let most = Rc::new(RefCell::new(0));
    let (told, fullest) = (refused.clone(), most.clone());
    story("a window of 8,192")
        .define(|catalog| catalog["models"]["m"]["capabilities"] = json!({ "maxContextTokens": 8_192 }))
        .answers({
            let (texts, known) = (texts.clone(), known.clone());
            move |request| {
                let tokens = counted(request, &known);
                // The answer is to fit as well: a quarter of the window.
                if tokens + 2_048 > 8_192 {
                    told.borrow_mut().push(tokens);
                    return too_long();
                }
                let most = tokens.max(*fullest.borrow());
                *fullest.borrow_mut() = most;
                let (answer, _) = &texts[(request.index * 7 + 3) % texts.len()];
                Say::text(answer.clone()).using(tokens, 5).stream(request.index)
            }
        })
        .drive(move |sim| {
            let texts = texts.clone();
            async move {
                for n in 0..200 {
                    sim.ask(&texts[(n * 11) % texts.len()].0).await;
                }
            }
        })
        .terms(|terms| terms.one_answer = false)
        .once();
    assert_eq!(*refused.borrow(), Vec::<u64>::new(), "tokens of requests that were refused");
    assert!(*most.borrow() > 4_000, "the window is used: {} tokens at most", most.borrow());
}

#[test]
fn what_a_provider_reports_corrects_the_budget_of_later_requests() {
    let kept = |share: f64| {
        let lengths = Rc::new(RefCell::new(Vec::new()));
        let place = lengths.clone();
        story("correction")
            .define(|catalog| {
                catalog["prompts"]["p"]["context"] = json!({ "maxInputTokens": 3_000, "safetyTokens": 0 });
            })
            .answers(move |request| {
                let words: usize = request.body.to_string().split_whitespace().count();
                Say::text("fine").using((words as f64 * share) as u64, 5).stream(request.index)
            })
            .drive(move |sim| {
                let place = place.clone();
                async move {
                    for n in 0..3 {
                        sim.ask(&format!("{n} {}", "word ".repeat(1_000))).await;
                    }
                    let factor = sim.get(ThreadRoute::GetContext, &[]).await["factor"].clone();
                    sim.evict().await;
                    let again = sim.get(ThreadRoute::GetContext, &[]).await["factor"].clone();
                    place.borrow_mut().push((factor.as_f64().unwrap(), again.as_f64().unwrap()));
                }
            })
            .check(|sim, _| {
                let requests = sim.world.outside.requests.borrow();
                assert_eq!(requests.len(), 3);
            })
            .terms(|terms| terms.one_answer = false)
            .once();
        lengths.take()
    };
    // Words count for 0.82 tokens.
    let (factor, stored) = kept(0.82)[0];
    assert!((0.95..=1.05).contains(&factor) && (stored - 1.0).abs() < 0.06, "{factor}, stored {stored}");
    let (factor, stored) = kept(0.82 * 1.4)[0];
    // Three reports of 1.4, each for a fifth.
    assert!((1.15..=1.25).contains(&factor), "{factor}");
    assert!((factor - stored).abs() / factor <= 0.05, "stored {stored} of {factor}");
}

#[test]
fn the_third_request_keeps_to_the_corrected_budget() {
    let thirds = |share: f64| {
        let sizes = Rc::new(RefCell::new(Vec::new()));
        let place = sizes.clone();
        story("third request")
            .define(|catalog| {
                catalog["prompts"]["p"]["context"] = json!({ "maxInputTokens": 2_700, "safetyTokens": 0 });
            })
            .answers(move |request| {
                let words: usize = request.body.to_string().split_whitespace().count();
                place.borrow_mut().push(request.texts("user").len());
                Say::text("fine").using((words as f64 * share) as u64, 5).stream(request.index)
            })
            .drive(|sim| async move {
                for n in 0..3 {
                    sim.ask(&format!("{n} {}", "word ".repeat(1_000))).await;
                }
            })
            .terms(|terms| terms.one_answer = false)
            .once();
        sizes.take()
    };
    // Three messages of 820 tokens fit into 2,700, and not once each token counts for more: then the cut jumps.
    assert_eq!(thirds(0.82), [1, 2, 3]);
    assert_eq!(thirds(0.82 * 1.4), [1, 2, 1]);
}

#[test]
fn the_route_says_what_the_next_request_would_hold() {
    story("shown")
        .define(|catalog| {
            catalog["models"]["m"]["capabilities"] = json!({ "maxContextTokens": 128_000 });
        })
        .drive(|sim| async move {
            let empty = sim.get(ThreadRoute::GetContext, &[]).await;
            assert_eq!(empty["model"], "m");
            assert_eq!((&empty["window"], &empty["budget"]), (&json!(128_000), &json!(118_784)));
            assert_eq!(empty["history"], json!({ "from": null, "messages": 0, "left_out": 0 }));
            assert_eq!(empty["parts"]["history"], 0);
            assert!(empty["parts"]["tools"].as_u64().unwrap() > 10, "{empty}");
            sim.ask(&"word ".repeat(1_000)).await;
            let one = sim.get(ThreadRoute::GetContext, &[]).await;
            let history = one["parts"]["history"].as_u64().unwrap();
            // The message and the answer, which repeats it.
            assert!((1_500..1_800).contains(&history), "{one}");
            assert_eq!(one["history"]["messages"], 2);
            let parts = one["parts"].as_object().unwrap();
            let sum: u64 = parts.values().filter_map(Value::as_u64).sum();
            let used = one["used"].as_f64().unwrap();
            assert!((used - sum as f64 / 118_784.0).abs() < 0.001, "{one}");
            sim.evict().await;
            assert_eq!(sim.get(ThreadRoute::GetContext, &[]).await, one, "read anew it is the same");
        })
        .calm();
}

#[test]
fn history_that_is_left_out_is_counted_by_the_route() {
    story("left out")
        .define(|catalog| {
            catalog["prompts"]["p"]["context"] = json!({ "maxInputTokens": 1_000 });
        })
        .drive(|sim| async move {
            for n in 0..12 {
                sim.ask(&format!("{n} {}", "word ".repeat(60))).await;
            }
            let shown = sim.get(ThreadRoute::GetContext, &[]).await;
            let messages = shown["history"]["messages"].as_u64().unwrap();
            assert!(messages < 24 && shown["used"].as_f64().unwrap() <= 1.0, "{shown}");
            assert_eq!(shown["history"]["left_out"].as_u64().unwrap() + messages, 24);
            let history = sim.history().await;
            let first = history.iter().position(|m| m["id"] == shown["history"]["from"]).unwrap();
            assert_eq!(first as u64 + messages, 24, "{shown}");
        })
        .calm();
}

#[test]
fn tools_that_take_more_than_half_are_told_of_and_sent() {
    story("large tools")
        .define(|catalog| {
            catalog["tools"]["work"]["description"] = "word ".repeat(1_000).into();
            catalog["prompts"]["p"]["context"] = json!({ "maxInputTokens": 1_200 });
        })
        .drive(|sim| async move {
            let outcome = sim.ask("hello").await;
            let found = &outcome["diagnostics"];
            assert_eq!(found[0]["code"], "context.tools", "{outcome}");
            assert_eq!((&found[0]["kind"], &found[0]["level"]), (&json!("requirement"), &json!("warn")));
        })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            assert_eq!(requests.len(), 1);
            assert_eq!(requests[0].body["tools"][0]["function"]["name"], "work");
        })
        .calm();
}

#[test]
fn a_request_that_is_too_long_all_the_same_is_halved_once() {
    let limit = 400;
    story("halved")
        .answers(move |request| {
            let words: usize = request
                .messages()
                .iter()
                .map(|m| m["content"].as_str().unwrap_or("").split(' ').count())
                .sum();
            if words > limit { too_long() } else { clerk(request).stream(request.index) }
        })
        .drive(|sim: Sim| async move {
            for n in 0..10 {
                let outcome = sim.ask(&format!("{n} {}", "word ".repeat(60))).await;
                assert_eq!(outcome["outcome"], "completed", "{outcome}");
            }
        })
        .terms(|terms| terms.one_answer = false)
        .calm();
}

/// Stories for the sweep.
pub fn all() -> Vec<Scenario> {
    vec![calibrated()]
}

/// Reports move the factor while the process dies anywhere.
fn calibrated() -> Scenario {
    story("calibrated")
        .answers(|request| {
            let words: usize = request.body.to_string().split_whitespace().count();
            Say::text("fine").using(words as u64 * 2, 5).stream(request.index)
        })
        .drive(|sim| async move {
            for n in 0..3 {
                sim.ask(&format!("{n} {}", "word ".repeat(200))).await;
            }
            let shown = sim.get(ThreadRoute::GetContext, &[]).await;
            let factor = shown["factor"].as_f64().unwrap();
            // A process that is lost forgets what has moved too little to be stored, and nothing else.
            assert!((1.3..=1.6).contains(&factor), "{shown}");
        })
}

#[test]
fn a_factor_outlives_every_crash() {
    calibrated().sweep();
}
