//! What of a long history enters a request: a budget, with a beginning that stays the same for long.

use serde_json::{Value, json};

use super::{clerk, story, with_work, work};
use crate::host::Say;
use crate::sim::Sim;
use crate::sweep::Scenario;

/// A scenario whose requests may have so many tokens.
fn small_window(scenario: Scenario, tokens: u32) -> Scenario {
    scenario.define(|catalog| {
        catalog["prompts"]["p"]["context"] = json!({ "maxInputTokens": tokens });
    })
}

fn contents(sim: &Sim, n: usize) -> Vec<Value> {
    let requests = sim.world.outside.requests.borrow();
    requests[n].messages().iter().filter(|m| m["role"] != "system").cloned().collect()
}

/// Tokens of texts of plain short words: four of five words, and what a message has besides.
fn tokens(messages: &[Value]) -> usize {
    let words = |m: &Value| m["content"].as_str().map_or(0, |text| text.split_whitespace().count());
    messages.iter().map(|m| words(m) * 82 / 100 + 6).sum()
}

#[test]
fn history_keeps_to_its_budget_and_moves_in_jumps() {
    let budget = 1_500;
    for evicting in [false, true] {
        small_window(story("budget"), 1_500)
            .drive(move |sim| async move {
                for n in 0..120 {
                    sim.ask(&format!("{n} {}", "word ".repeat(60))).await;
                    if evicting && n % 7 == 0 {
                        sim.evict().await;
                    }
                }
            })
            .check(move |sim, _| {
                let mut jumps = 0;
                for n in 1..120 {
                    let (before, now) = (contents(sim, n - 1), contents(sim, n));
                    assert!(tokens(&now) <= budget, "request {n}: {} tokens", tokens(&now));
                    assert_eq!(now[0]["role"], "user", "a window begins with a message, not in an exchange");
                    if now.starts_with(&before) {
                        continue;
                    }
                    jumps += 1;
                    assert!(
                        tokens(&now) <= budget * 7 / 10,
                        "request {n}: a jump leaves room: {} tokens after {}",
                        tokens(&now),
                        tokens(&before)
                    );
                    assert!(tokens(&now) >= budget * 4 / 10, "and keeps enough: {} tokens", tokens(&now));
                }
                // 120 turns of some 110 tokens; a jump makes room for five.
                assert!((15..=30).contains(&jumps), "{jumps} jumps");
            })
            .once();
    }
}

#[test]
fn a_cold_turn_on_two_thousand_messages_reads_no_more_rows_than_on_two_hundred() {
    small_window(story("cold"), 1_500)
        .drive(|sim| async move {
            let mut read = Vec::new();
            let mut said = 0;
            for turns in [100, 1_000] {
                while said < turns {
                    sim.ask(&format!("{said} {}", "word ".repeat(60))).await;
                    said += 1;
                }
                let mut most = 0;
                // Where the window begins moves by some turns.
                for _ in 0..6 {
                    sim.evict().await;
                    sim.meter();
                    sim.ask(&format!("{said} {}", "word ".repeat(60))).await;
                    most = most.max(sim.metered().read);
                    said += 1;
                }
                read.push(most);
            }
            assert!(read[1] <= read[0] + 2 && read[0] < 100, "{read:?}");
        })
        .once();
}

#[test]
fn at_most_400_messages_are_sent() {
    story("many short messages")
        .drive(|sim| async move {
            for n in 0..260 {
                sim.ask(&format!("{n}")).await;
            }
        })
        .check(|sim, _| {
            for n in 0..260 {
                assert!(contents(sim, n).len() <= 401, "request {n}");
            }
            assert!(contents(sim, 259).len() >= 200);
        })
        .once();
}

#[test]
fn the_messages_that_opened_a_turn_are_always_in() {
    // The opening message alone is far beyond it.
    small_window(Scenario::new("opening", &with_work()), 1_000)
        .setup(|sim| {
            sim.world.outside.native("work", |_, before| {
                let text = format!("{before} {}", "r".repeat(2_000));
                crate::host::Native::Gives(0, bobbin::definitions::message::ToolResult::success(text))
            });
        })
        .says(|request| {
            let opening = request.texts("user");
            assert!(
                opening.iter().any(|text| text.starts_with("open") && text.len() == 20_004),
                "the opening message is missing or cut"
            );
            match request.results().len() {
                n if n < 12 => Say::call("work", &json!({ "n": n })),
                _ => Say::text("done"),
            }
        })
        .drive(|sim| async move {
            sim.ask(&format!("open{}", "y".repeat(20_000))).await;
        })
        .check(|sim, _| {
            let last = contents(sim, 12);
            let results: Vec<usize> = last
                .iter()
                .filter(|m| m["role"] == "tool")
                .map(|m| m["content"].as_str().map_or(0, str::len))
                .collect();
            assert_eq!(results.len(), 12, "every result is there");
            assert!(results[0] < 1_000, "older ones are shortened: {results:?}");
            assert!(results[11] >= 2_000, "the newest is whole: {results:?}");
            // Shortened oldest first.
            assert!(results.windows(2).all(|pair| pair[0] <= pair[1] + 10), "{results:?}");
        })
        .calm();
}

#[test]
fn a_long_turn_is_kept_whole_by_recoveries() {
    small_window(story("long turn"), 1_000)
        .drive(|sim| async move {
            for n in 0..5 {
                sim.ask(&format!("before {n} {}", "word ".repeat(200))).await;
            }
            sim.ask("loop 6").await;
        })
        .check(|_, history| {
            assert_eq!(history.texts("tool").len(), 6);
            assert_eq!(history.answers().last(), Some(&"done 6"));
        })
        .sampled(100)
        .sweep();
}

#[test]
fn without_include_chat_only_the_current_turn_is_sent() {
    story("no chat")
        .define(|catalog| {
            catalog["prompts"]["p"]["includeChat"] = false.into();
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
            sim.ask("use work").await;
        })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            assert_eq!(requests[1].texts("user"), ["use work"]);
            assert_eq!(requests[2].texts("user"), ["use work"]);
            assert_eq!(requests[2].results(), ["w0"]);
        })
        .calm();
}

#[test]
fn without_include_past_tools_earlier_exchanges_are_left_out() {
    story("no past tools")
        .define(|catalog| {
            catalog["prompts"]["p"]["includePastTools"] = false.into();
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            sim.ask("hello").await;
        })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            assert_eq!(requests[1].results(), ["w0"], "the current turn's are in");
            let last = requests[2].body["messages"].to_string();
            assert!(!last.contains("tool_calls") && !last.contains("\"tool\""), "{last}");
            assert!(last.contains("done: w0"));
        })
        .calm();
}

#[test]
fn a_request_never_ends_with_an_assistant_message() {
    story("continue after an answer")
        .setup(work)
        .answers(|request| clerk(request).stream(request.index))
        .drive(|sim| async move {
            sim.ask("hello").await;
            let seen = sim.go_on().await;
            assert_eq!(seen.status, 202, "{}", seen.body);
            sim.world.pause(60_000_000).await;
            let last = sim.world.outside.requests.borrow().last().cloned().unwrap();
            assert_eq!(last.last_user(), "Continue.");
            assert!(sim.history().await.iter().all(|m| m["content"] != "Continue."), "it is not stored");
        })
        .terms(|terms| terms.one_answer = false)
        .calm();
}
