//! What was stored before the message that opens a turn: it is history, and has to fit.

use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::{clerk, story};
use crate::host::Answer;
use crate::host::outside::ModelRequest;
use crate::sim::Sim;
use crate::sweep::Scenario;

/// The tokens that requests may have.
const WINDOW: u32 = 1_500;

pub fn all() -> Vec<Scenario> {
    vec![began_with_a_long_history()]
}

/// A scenario in a window of [`WINDOW`] tokens, whose thread begins with so many messages of some 70 tokens.
fn began_with(name: &'static str, messages: usize) -> Scenario {
    story(name)
        .define(|catalog| {
            catalog["prompts"]["p"]["context"] = json!({ "maxInputTokens": WINDOW });
        })
        .setup(move |sim| {
            *sim.born.borrow_mut() = json!({ "agent_id": "helper", "history": history(messages) });
        })
        // Replies of the history are no run's.
        .terms(|terms| terms.one_answer = false)
}

/// A system message, which starts nothing.
async fn note(sim: &Sim, text: String) {
    let body = json!({ "role": "system", "content": text }).to_string();
    let key = sim.key();
    assert_eq!(sim.insist(ThreadRoute::PostMessage, &[], Some(&key), body).await.status, 202);
}

fn history(messages: usize) -> Vec<Value> {
    let role = |n: usize| if n.is_multiple_of(2) { "user" } else { "assistant" };
    let message = |n| json!({ "role": role(n), "content": format!("m{n} {}", "word ".repeat(80)) });
    (0..messages).map(message).collect()
}

/// Messages behind the prompt, and whether they are about as long as the window at most.
fn sent(request: &ModelRequest) -> (&[Value], bool) {
    let messages = request.messages().get(1..).unwrap_or_default();
    let words = |message: &Value| message["content"].as_str().map_or(0, |text| text.split(' ').count());
    (messages, messages.iter().map(words).sum::<usize>() < WINDOW as usize)
}

fn requests(sim: &Sim) -> Vec<ModelRequest> {
    sim.world.outside.requests.borrow().clone()
}

fn began_with_a_long_history() -> Scenario {
    began_with("a history before the first turn", 64)
        .drive(|sim| async move {
            sim.ask("loop 3").await;
            sim.ask("hello").await;
        })
        .check(|sim, _| {
            let requests = requests(sim);
            for (n, request) in requests.iter().enumerate() {
                let (messages, fits) = sent(request);
                assert!(fits, "request {n} has {} messages", messages.len());
                assert!(messages.len() > 5, "the newest of them are sent");
            }
            for pair in requests.windows(2) {
                assert!(pair[1].messages().starts_with(pair[0].messages()), "the beginning has changed");
            }
        })
}

#[test]
fn what_came_with_a_thread_keeps_to_the_budget_and_does_not_move_whatever_fails() {
    began_with_a_long_history().sampled(40).sweep();
}

#[test]
fn a_long_history_takes_few_statements_and_nothing_of_it_is_lost() {
    let odd = ["\0 and \u{1f9f5}", "'quoted' \"twice\" \\u0000", "last"];
    let list = (0..18_000).map(|n| format!("m{n}")).chain(odd.map(str::to_owned));
    let list: Vec<Value> = list.map(|text| json!({ "role": "system", "content": text })).collect();
    let count = list.len() as i64;
    story("twenty thousand messages")
        .setup(move |sim| {
            *sim.born.borrow_mut() = json!({ "agent_id": "helper", "history": list });
            sim.meter();
        })
        .drive(move |sim| async move {
            let spent = sim.metered().statements;
            assert!(spent < 300, "{spent} statements");
            let stored: Vec<i64> =
                sim.world.database.ask("SELECT count(*) FROM messages WHERE inbound = 1 AND seq = rowid");
            assert_eq!(stored, [count]);
            sim.ask("hello").await;
        })
        .check(move |sim, _| {
            let last = requests(sim).pop().unwrap();
            let system = last.texts("system");
            assert_eq!(system[system.len() - 3..], odd);
        })
        .terms(|terms| terms.one_answer = false)
        .calm();
}

#[test]
fn what_came_with_a_thread_is_shortened_where_a_server_finds_it_too_long() {
    let too_long = |request: &ModelRequest| request.body["messages"].to_string().len() > 5_000;
    story("a window that nobody knows")
        .setup(|sim| *sim.born.borrow_mut() = json!({ "agent_id": "helper", "history": history(16) }))
        .answers(move |request| match too_long(request) {
            true => {
                Answer::status(400, json!({ "error": { "code": "context_length_exceeded" } }).to_string())
            }
            false => clerk(request).stream(request.index),
        })
        .drive(|sim| async move {
            assert_eq!(sim.ask("hello").await["outcome"], "completed");
        })
        .check(|sim, history| {
            assert_eq!(history.answers().last(), Some(&"re: hello"));
            assert_eq!(requests(sim).len(), 2);
        })
        .terms(|terms| terms.one_answer = false)
        .calm();
}

#[test]
fn without_include_chat_only_what_nobody_has_answered_is_sent() {
    began_with("no chat", 64)
        .define(|catalog| catalog["prompts"]["p"]["includeChat"] = false.into())
        .drive(|sim| async move {
            sim.ask("hello").await;
            for n in 0..3 {
                note(&sim, format!("note {n}")).await;
            }
            sim.ask("loop 2").await;
            sim.evict().await;
            sim.ask("bye").await;
        })
        .check(|sim, _| {
            let requests = requests(sim);
            assert_eq!(requests[0].messages().len(), 2);
            for request in &requests[1..4] {
                assert_eq!(request.texts("system")[1..], ["note 0", "note 1", "note 2"]);
                assert_eq!(request.texts("user"), ["loop 2"]);
            }
            assert_eq!(requests[4].messages().len(), 2);
        })
        .calm();
}

#[test]
fn system_messages_between_two_turns_have_to_fit() {
    for include_chat in [true, false] {
        began_with("many notes", 0)
            .define(move |catalog| catalog["prompts"]["p"]["includeChat"] = include_chat.into())
            .drive(|sim| async move {
                sim.ask("hello").await;
                for n in 0..30 {
                    note(&sim, format!("note {n} {}", "word ".repeat(200))).await;
                }
                sim.ask("loop 4").await;
            })
            .check(|sim, _| {
                let requests = requests(sim);
                for pair in requests[1..].windows(2) {
                    let (messages, fits) = sent(&pair[1]);
                    assert!(fits, "{} messages", messages.len());
                    assert!(pair[1].texts("system").len() > 2, "the newest of them are sent");
                    assert!(pair[1].messages().starts_with(pair[0].messages()), "the beginning has changed");
                }
            })
            .calm();
    }
}

#[test]
fn a_turn_that_an_older_build_began_with_its_history_is_shortened() {
    began_with("an older build's turn", 64)
        .drive(|sim| async move {
            sim.ask("loop 1").await;
            sim.evict().await;
            sim.world.database.alter("UPDATE runs SET turn_from = 1; UPDATE meta SET window_cut = 0");
            assert_eq!(sim.go_on().await.status, 202);
            sim.world.pause(60_000_000).await;
        })
        .check(|sim, _| {
            let last = requests(sim).pop().unwrap();
            assert_eq!(last.last_user(), "Continue.");
            assert!(sent(&last).1, "{} messages", last.messages().len());
        })
        .calm();
}
