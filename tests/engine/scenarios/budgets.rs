//! What a turn may cost in SQL (docs/performance.md): warm, from the second turn on, the thread's own tables.

use bobbin::definitions::message::ToolResult;
use bobbin::request::ThreadRoute;
use serde_json::json;

use super::{story, waits};
use crate::host::{Counters, Native, SECOND_US, Say};
use crate::sim::Sim;

/// Messages that wait for their answer are not counted as accepted, so that no second post adds to the cost.
fn bare(name: &'static str) -> crate::sweep::Scenario {
    story(name).terms(|terms| terms.one_answer = false)
}

fn within(what: &str, spent: Counters, statements: u64, read: u64, written: u64) {
    assert!(
        spent.statements <= statements && spent.read <= read && spent.written <= written,
        "{what}: {spent:?}, at most {statements} / {read} / {written} (BOBBIN_SQL=1 shows the statements)"
    );
}

/// A turn with everything that it leaves behind.
async fn turn(sim: &Sim, text: &str) -> Counters {
    let body = serde_json::json!({ "role": "user", "content": text });
    let (_, spent) = sim
        .spent(async {
            let seen = sim
                .insist(
                    bobbin::request::ThreadRoute::PostMessage,
                    &[("wait", "true")],
                    None,
                    body.to_string(),
                )
                .await;
            assert_eq!(seen.body["outcome"], "completed", "{}", seen.body);
            sim.until("idle", |sim| sim.world.executor.waiting(false).is_empty()).await;
        })
        .await;
    spent
}

#[test]
fn a_plain_turn_and_a_tool_step_cost_what_they_may() {
    bare("budget of a turn")
        .answers(|request| super::clerk(request).stream(request.index))
        .drive(|sim| async move {
            turn(&sim, "hello").await;
            turn(&sim, "loop 1").await;
            let plain = turn(&sim, "again").await;
            within("a plain turn", plain, 8, 10, 8);
            let one = turn(&sim, "loop 1").await;
            let two = turn(&sim, "loop 2").await;
            within("a tool step", two - one, 8, 10, 8);
            let eleven = turn(&sim, "loop 11").await;
            within("ten tool steps", eleven - one, 80, 100, 80);
        })
        .calm();
}

#[test]
fn limits_cost_no_statement_and_no_row() {
    let cost = |limited: bool| {
        let spent = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let place = spent.clone();
        bare("limits")
            .define(move |catalog| {
                if limited {
                    catalog["models"]["m"]["inputPrice"] = serde_json::json!(1);
                    catalog["agents"]["helper"]["budget"] = serde_json::json!({
                        "run": { "maxCostUsd": 1, "maxTokens": 900_000, "maxModelCalls": 90, "maxToolCalls": 90, "maxSeconds": 900 },
                        "thread": { "maxCostUsd": 5, "maxTokens": 9_000_000 },
                    });
                }
            })
            .drive(move |sim| {
                let place = place.clone();
                async move {
                    turn(&sim, "hello").await;
                    turn(&sim, "loop 1").await;
                    let plain = turn(&sim, "again").await;
                    let one = turn(&sim, "loop 1").await;
                    let two = turn(&sim, "loop 2").await;
                    let each = |spent: Counters| (spent.statements, spent.read, spent.written);
                    *place.borrow_mut() = vec![each(plain), each(two - one)];
                }
            })
            .once();
        spent.borrow().clone()
    };
    assert_eq!(cost(true), cost(false), "a plain turn, and a tool step");
}

#[test]
fn a_streamed_chunk_costs_no_sql() {
    let cost = |chunks: usize| {
        let spent = std::rc::Rc::new(std::cell::Cell::new(Counters::default()));
        let place = spent.clone();
        bare("chunks")
            .answers(move |request| Say::text("x".repeat(400)).chunks(chunks).stream(request.index))
            .drive(move |sim| {
                let place = place.clone();
                async move {
                    sim.listen(bobbin::host::Filter { events: true, ..Default::default() }, None)
                        .await
                        .unwrap();
                    turn(&sim, "one").await;
                    place.set(turn(&sim, "two").await);
                }
            })
            .once();
        spent.get().statements
    };
    assert_eq!(cost(2), cost(400));
}

#[test]
fn a_new_thread_costs_thirty_statements_at_most() {
    bare("new thread")
        .setup(Sim::meter)
        .drive(|sim| async move {
            sim.ask("hello").await;
            sim.until("idle", |sim| sim.world.executor.waiting(false).is_empty()).await;
            within("a new thread and its first turn", sim.metered(), 30, 30, 30);
        })
        .calm();
}

#[test]
fn a_turn_on_a_long_thread_costs_no_more() {
    bare("2,000 messages")
        .drive(|sim| async move {
            for n in 0..1_000 {
                turn(&sim, &format!("m{n}")).await;
            }
            let warm = turn(&sim, "warm").await;
            within("a warm turn", warm, 8, 10, 8);
            sim.evict().await;
            let cold = turn(&sim, "cold").await;
            within("a cold turn", cold, 20, 450, 8);
            // The messages are counted once while the object lives.
            sim.get(bobbin::request::ThreadRoute::ListMessages, &[("limit", "20")]).await;
            let listing =
                sim.spent(sim.get(bobbin::request::ThreadRoute::ListMessages, &[("limit", "20")])).await.1;
            assert!(listing.read <= 60, "a page of 20: {listing:?}");
        })
        .once();
}

#[test]
fn a_turn_whose_spans_are_exported_costs_two_statements_more() {
    let cost = |exports: bool| {
        let spent = std::rc::Rc::new(std::cell::Cell::new(Counters::default()));
        let place = spent.clone();
        bare("export")
            .setup(move |sim| {
                if exports {
                    let endpoint = crate::host::COLLECTOR_URL.to_owned();
                    sim.world.vars.borrow_mut().insert("BOBBIN_OTLP_ENDPOINT".into(), endpoint);
                }
            })
            .drive(move |sim| {
                let place = place.clone();
                async move {
                    turn(&sim, "one").await;
                    sim.world.pause(crate::host::SECOND_US).await;
                    // What the export itself reads comes after the answer.
                    let body = serde_json::json!({ "role": "user", "content": "two" }).to_string();
                    let route = bobbin::request::ThreadRoute::PostMessage;
                    let spent = sim.spent(sim.insist(route, &[("wait", "true")], None, body)).await.1;
                    place.set(spent);
                }
            })
            .once();
        spent.get().statements
    };
    let (without, with) = (cost(false), cost(true));
    assert!(with <= without + 2, "{with} with export, {without} without");
}

/// The statements of what is done, and how many of them write letters. When these are delivered, and how many at a time, is a
/// matter of moments.
async fn whole<T>(sim: &Sim, work: impl Future<Output = T>) -> (usize, usize) {
    sim.meter();
    work.await;
    let log = sim.member.database.log.borrow_mut().take().unwrap_or_default();
    let of_letters = |statement: &str| statement.contains("outbox");
    let posts = log.iter().filter(|(statement, ..)| statement.contains("INTO outbox")).count();
    (log.iter().filter(|(statement, ..)| !of_letters(statement)).count() + posts, posts)
}

/// Of an approval that is asked for, given and used, with everything that it leaves behind. `later`: the directory is told of
/// the question before it is decided, and not of both at once.
async fn question(sim: &Sim, later: bool) {
    let idle = async || {
        sim.world.pause(2 * SECOND_US).await;
        sim.until("idle", |sim| sim.world.executor.waiting(false).is_empty()).await;
    };
    let body = json!({ "role": "user", "content": "use pay" }).to_string();
    sim.insist(ThreadRoute::PostMessage, &[], None, body).await;
    let open = "SELECT id FROM waits WHERE open = 1";
    let asks = |sim: &Sim| sim.member.has_table("waits") && !sim.member.database.ask::<i64>(open).is_empty();
    sim.until("asked", asks).await;
    if later {
        idle().await;
    }
    let [id] = sim.member.database.ask::<i64>(open).try_into().unwrap();
    let body = json!({ "decision": "approve" }).to_string();
    let seen = sim.insist(ThreadRoute::DecideWait(format!("w_6f0c0000_{id}")), &[], None, body).await;
    assert_eq!(seen.status, 200, "{}", seen.body);
    idle().await;
}

#[test]
fn a_question_and_its_answer_cost_twelve_statements_more_than_the_step() {
    bare("a question")
        .define(waits::with(json!({ "pay": waits::asking(json!("always")) })))
        .setup(|sim| sim.world.outside.native("work", |_, _| Native::Gives(0, ToolResult::success("done"))))
        .drive(|sim| async move {
            question(&sim, false).await;
            turn(&sim, "use work").await;
            sim.world.pause(2 * SECOND_US).await;
            let step = whole(&sim, async {
                let body = json!({ "role": "user", "content": "use work" }).to_string();
                sim.insist(ThreadRoute::PostMessage, &[], None, body).await;
                sim.world.pause(4 * SECOND_US).await;
            })
            .await;
            for later in [false, true] {
                let asked = whole(&sim, question(&sim, later)).await;
                assert!(asked.0 <= step.0 + 12, "{asked:?} with a question, {step:?} without");
                assert_eq!(asked.1, step.1 + 2, "one letter when it is asked, and one when it is decided");
            }
        })
        .calm();
}

#[test]
fn a_turn_with_a_summary_costs_no_statement_more_and_one_when_cold() {
    let cost = |summarised: bool| {
        let spent = std::rc::Rc::new(std::cell::Cell::new((Counters::default(), Counters::default())));
        let place = spent.clone();
        bare("summary")
            .define(|catalog| catalog["prompts"]["p"]["summary"] = true.into())
            .answers(|request| Say::text("fine").stream(request.index))
            .drive(move |sim| {
                let place = place.clone();
                async move {
                    for n in 0..4 {
                        turn(&sim, &format!("m{n}")).await;
                    }
                    if summarised {
                        sim.insist(bobbin::request::ThreadRoute::Summarize, &[], None, String::new()).await;
                        sim.until("it is stored", |sim| {
                            let made: Vec<i64> =
                                sim.member.database.ask("SELECT ifnull(summary ->> 'epoch', 0) FROM meta");
                            made == [1] && sim.world.executor.waiting(false).is_empty()
                        })
                        .await;
                    }
                    turn(&sim, "one").await;
                    let warm = turn(&sim, "two").await;
                    sim.evict().await;
                    place.set((warm, turn(&sim, "cold").await));
                }
            })
            .once();
        spent.get()
    };
    let (with, without) = (cost(true), cost(false));
    assert_eq!(with.0.statements, without.0.statements, "warm");
    assert_eq!(with.0.written, without.0.written, "warm");
    assert_eq!(with.1.statements, without.1.statements + 1, "cold");
    assert!(with.1.read <= without.1.read + 1, "cold: {} rows, {} without", with.1.read, without.1.read);
}
