//! Answers that the provider goes on with by itself: one whose process was lost is fetched, not paid twice, and one that nobody
//! waits for any more is cancelled.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use bobbin::limits::SECOND_US;
use bytes::Bytes;
use futures::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::story;
use crate::host::Answer;
use crate::host::answer::Piece;
use crate::host::outside::ModelRequest;
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![fetched(), cancelled(), cancelled_for_good()]
}

/// How long an answer takes, in microseconds, and how many pieces it has.
const TAKES_US: i64 = 600_000;
const PIECES: i64 = 6;

thread_local! {
    /// Answers by their id, and when each was begun: what the provider has been paid for. Tests run one simulation a thread at
    /// a time.
    static BEGUN: RefCell<BTreeMap<String, i64>> = const { RefCell::new(BTreeMap::new()) };
    /// Those that are to be cancelled.
    static CANCELLED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

fn forget() {
    BEGUN.with_borrow_mut(BTreeMap::clear);
    CANCELLED.with_borrow_mut(BTreeSet::clear);
}

fn text(id: &str) -> String {
    format!("answer {id}")
}

fn whole(id: &str, status: &str) -> Value {
    let part = json!({ "type": "output_text", "text": text(id) });
    let output = match status {
        "completed" => json!([{ "type": "message", "role": "assistant", "content": [part] }]),
        _ => json!([]),
    };
    let usage = json!({ "input_tokens": 10, "output_tokens": 5, "total_tokens": 15 });
    json!({ "id": id, "object": "response", "status": status, "model": "m", "output": output, "usage": usage })
}

/// Its events from the beginning, those that are still to come at their time.
fn stream(id: &str, begun_us: i64, now_us: i64) -> Answer {
    let event = |body: Value| Piece::Data(Bytes::from(format!("data: {body}\n\n")));
    let mut pieces = vec![event(json!({ "type": "response.created", "response": whole(id, "in_progress") }))];
    let (text, mut waited) = (text(id), 0);
    for (at, piece) in (1..).zip(text.split_inclusive(' ')) {
        let due = (begun_us + TAKES_US / PIECES * at - now_us).max(0);
        pieces.push(Piece::Wait(due - waited));
        waited = due;
        pieces
            .push(event(json!({ "type": "response.output_text.delta", "output_index": 0, "delta": piece })));
    }
    let due = (begun_us + TAKES_US - now_us).max(0);
    pieces.push(Piece::Wait(due - waited));
    pieces.push(event(json!({ "type": "response.completed", "response": whole(id, "completed") })));
    Answer {
        status: Some(200),
        headers: vec![("content-type".into(), "text/event-stream".into())],
        delay_us: Some(0),
        pieces,
    }
}

fn provider(request: &ModelRequest) -> Answer {
    let now = request.at_us;
    if let Some(id) = request.path.strip_prefix("/responses/").and_then(|rest| rest.strip_suffix("/cancel")) {
        assert_eq!(request.method, "POST");
        CANCELLED.with_borrow_mut(|all| all.insert(id.to_owned()));
        return Answer::json(&whole(id, "cancelled"));
    }
    if request.method == "POST" {
        let id = format!("resp_{}", request.index);
        BEGUN.with_borrow_mut(|begun| begun.insert(id.clone(), now));
        return stream(&id, now, now);
    }
    let (path, streams) = match request.path.split_once('?') {
        Some((path, query)) => (path, query == "stream=true"),
        None => (request.path.as_str(), false),
    };
    let id = path.strip_prefix("/responses/").unwrap();
    let Some(begun) = BEGUN.with_borrow(|all| all.get(id).copied()) else {
        return Answer::status(404, r#"{"error":{"message":"not found"}}"#);
    };
    match (streams, now - begun >= TAKES_US) {
        (true, _) => stream(id, begun, now),
        (false, true) => Answer::json(&whole(id, "completed")),
        (false, false) => Answer::json(&whole(id, "in_progress")),
    }
}

/// A story of a model that answers so.
fn of_background(name: &'static str) -> Scenario {
    story(name)
        .define(|catalog| {
            catalog["models"]["m"]["api"] = json!("responses");
            catalog["models"]["m"]["providerOptions"] = json!({ "background": true });
        })
        .setup(|_| forget())
        .answers(provider)
}

fn fetched() -> Scenario {
    of_background("answers in the background")
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            // Once its name is stored, an answer is never asked for again.
            let named = sim
                .world
                .database
                .ask::<i64>("SELECT count(*) FROM logs WHERE kind = 'background' GROUP BY reply");
            assert!(named.iter().all(|count| *count == 1), "{named:?}");
            let id = sim
                .world
                .database
                .ask::<String>("SELECT data ->> 'response_id' FROM logs WHERE kind = 'background'");
            for answer in history.answers() {
                assert_eq!(
                    id.first().map(|id| text(id)).as_deref(),
                    Some(answer),
                    "the one that was paid for first"
                );
            }
            let paid = BEGUN.with_borrow(BTreeMap::len);
            assert!(paid <= 1 + history.faults, "{paid} answers with {} faults", history.faults);
        })
}

#[test]
fn an_answer_in_the_background_is_fetched_and_not_paid_twice_whatever_fails() {
    fetched().sweep();
}

/// How the run ends before its answer has come.
fn ended_in_the_middle(name: &'static str, end: fn(&Sim) -> LocalBoxFuture<'_, ()>) -> Scenario {
    of_background(name)
        .terms(|terms| {
            terms.outcomes = vec!["completed", "stopped"];
            terms.one_answer = false;
            terms.more_requests = 8;
            // A stopped flow lets go of its request a moment after the other one is made.
            terms.overlap = true;
        })
        .drive(move |sim| async move {
            sim.send("hello").await;
            sim.until_requests(1).await;
            sim.world.pause(TAKES_US / 3).await;
            end(&sim).await;
            sim.world.pause(600 * SECOND_US).await;
        })
        .check(|sim, history| {
            let left = "SELECT data ->> 'response_id' FROM logs WHERE kind = 'background' AND data ->> 'response_id' NOT IN
                (SELECT data ->> 'response_id' FROM logs WHERE kind = 'llm_request' AND data ->> 'status' = 'completed')";
            let over = |id: &String| CANCELLED.with_borrow(|all| all.contains(id));
            let left = sim.world.database.ask::<String>(left);
            assert!(left.iter().all(over), "{left:?} goes on with nobody to read it");
            if history.faults == 0 {
                assert_eq!((left.len(), CANCELLED.with_borrow(BTreeSet::len)), (1, 1));
            }
            assert_eq!(sim.world.database.ask::<i64>("SELECT jobs FROM meta"), [0], "nothing is owed any more");
        })
}

fn cancelled() -> Scenario {
    ended_in_the_middle("an answer in the background, stopped", |sim| {
        Box::pin(async { drop(sim.stop().await) })
    })
}

fn cancelled_for_good() -> Scenario {
    ended_in_the_middle("an answer in the background, terminated", |sim| {
        Box::pin(async { drop(sim.terminate().await) })
    })
}

#[test]
fn an_answer_that_nobody_waits_for_is_cancelled_whatever_fails() {
    cancelled().sweep();
    cancelled_for_good().sweep();
}
