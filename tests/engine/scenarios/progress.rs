//! What a run does, in one line, for whoever shows it (docs/streams.md).

use std::cell::RefCell;

use bobbin::definitions::message::ToolResult;
use bobbin::host::{Filter, Frame};
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::subprompts::checking;
use super::waits::{asking, decides, until_open, with};
use super::{clerk, story};
use crate::host::{Answer, Native, SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

thread_local! {
    /// What the running simulation's frames said.
    static TOLD: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
}

fn listening() -> Filter {
    Filter { events: true, ..Filter::default() }
}

fn is_progress(frame: &Frame) -> bool {
    frame.kind == "progress"
}

/// All lines, in their order.
fn lines(sim: &Sim) -> Vec<Value> {
    let frames = sim.world.frames.borrow();
    frames.iter().filter(|(_, frame)| is_progress(frame)).map(|(_, frame)| frame.data.clone()).collect()
}

fn messages(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["message"].as_str().unwrap()).collect()
}

/// `other` beside `work`, and a side that takes eight steps at most.
fn two_tools(scenario: Scenario) -> Scenario {
    scenario.define(|catalog| {
        catalog["tools"]["other"] = catalog["tools"]["work"].clone();
        catalog["prompts"]["p"]["tools"] = json!(["work", "other"]);
        catalog["agents"]["helper"]["sideA"]["maxSteps"] = json!(8);
    })
}

#[test]
fn a_run_says_what_it_does_step_by_step() {
    two_tools(story("three steps"))
        .says(|request| match request.results().len() {
            0 => Say::default().and_call("work", "{}").and_call("other", "{}"),
            2 => Say::default().and_call("other", "{}"),
            _ => Say::text("done"),
        })
        .drive(|sim| async move {
            sim.listen(listening(), None).await.unwrap();
            sim.ask("hello").await;
            let listener = sim.listen(listening(), None).await.unwrap();
            assert_eq!(listener.frames.borrow()[0].data["progress"], Value::Null, "the run is over");
        })
        .check(|sim, _| {
            let lines = lines(sim);
            let expected = [
                "[1/8] Calling m",
                "[1/8] Executing tools: work, other",
                "[1/8] Executing tools: other",
                "[2/8] Calling m",
                "[2/8] Executing tools: other",
                "[3/8] Calling m",
            ];
            assert_eq!(messages(&lines), expected);
            assert_eq!(lines[1]["kind"], "tool_execution");
            assert_eq!(lines[1]["tool_names"], json!(["work", "other"]));
            assert_eq!((&lines[1]["step"], &lines[1]["max_steps"]), (&json!(1), &json!(8)));
            assert!(lines.iter().all(|line| line["depth"] == 0 && line["timestamp"].is_i64()), "{lines:?}");
            let frames = sim.world.frames.borrow();
            assert!(
                frames.iter().filter(|(_, frame)| is_progress(frame)).all(|(_, frame)| frame.id.is_none())
            );
        })
        .calm();
}

#[test]
fn the_nearest_limit_of_steps_is_named_and_what_was_used_of_the_money() {
    for (of_side, budget, expected) in [
        (8, json!({ "maxSteps": 3 }), ["[1/3] Calling m", "[2/3] Calling m"]),
        (2, json!({ "maxSteps": 9 }), ["[1/2] Calling m", "[2/2] Calling m"]),
        (8, json!({}), ["[1/8] Calling m", "[2/8] Calling m"]),
    ] {
        let limited = budget != json!({});
        two_tools(story("limits of a step"))
            .says(|request| super::clerk(request).using(100, 10))
            .define(move |catalog| {
                let model = &mut catalog["models"]["m"];
                (model["inputPrice"], model["outputPrice"]) = (json!(10), json!(20));
                model["capabilities"] = json!({ "maxOutputTokens": 300 });
                catalog["agents"]["helper"]["sideA"]["maxSteps"] = json!(of_side);
                if limited {
                    catalog["agents"]["helper"]["budget"] =
                        json!({ "run": budget, "thread": { "maxCostUsd": 0.5 } });
                }
            })
            .drive(|sim| async move {
                sim.listen(listening(), None).await.unwrap();
                sim.ask("use work").await;
            })
            .check(move |sim, _| {
                let lines = lines(sim);
                let calling: Vec<&Value> =
                    lines.iter().filter(|line| line["kind"] == "provider_call").collect();
                let told: Vec<&str> = calling.iter().map(|line| line["message"].as_str().unwrap()).collect();
                assert_eq!(told, expected);
                match limited {
                    true => {
                        assert_eq!(calling[1]["budget"]["limit"], 0.5, "{calling:?}");
                        let used = calling[1]["budget"]["costUsd"].as_f64().unwrap();
                        // What the first has used, and what the second may.
                        assert!((0.0012..0.02).contains(&used), "{used}");
                    }
                    false => assert!(lines.iter().all(|line| line["budget"].is_null()), "{lines:?}"),
                }
            })
            .calm();
    }
}

/// A tool that takes twelve seconds.
fn slow(name: &'static str) -> Scenario {
    two_tools(story(name)).setup(|sim| {
        sim.world.outside.native("work", |_, _| Native::Gives(12 * SECOND_US, ToolResult::success("worked")));
    })
}

#[test]
fn a_tool_that_takes_long_gives_a_sign_every_five_seconds() {
    slow("twelve seconds")
        .drive(|sim| async move {
            sim.listen(listening(), None).await.unwrap();
            sim.ask("use work").await;
        })
        .check(|sim, _| {
            let lines = lines(sim);
            let beats: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "tool_heartbeat").collect();
            let told: Vec<(&str, i64)> = beats
                .iter()
                .map(|line| (line["message"].as_str().unwrap(), line["elapsed_seconds"].as_i64().unwrap()))
                .collect();
            assert_eq!(
                told,
                [("[1/8] Still executing: work (5 s)", 5), ("[1/8] Still executing: work (10 s)", 10)]
            );
        })
        .calm();
}

/// Lines of a reply with two calls of slow tools that only read.
fn lines_of_two_readers(parallel: bool) -> Vec<String> {
    slow("two readers")
        .define(move |catalog| {
            for name in ["work", "other"] {
                catalog["tools"][name]["tier"] = json!("read_only");
                catalog["tools"][name]["idempotent"] = json!(true);
            }
            catalog["prompts"]["p"]["parallelToolCalls"] = json!(parallel);
            catalog["prompts"]["p"]["parallelReadOnly"] = json!(parallel);
        })
        .says(|request| match request.results().len() {
            0 => Say::default().and_call("work", "{}").and_call("other", "{}"),
            _ => Say::text("done"),
        })
        .drive(|sim| async move {
            sim.listen(listening(), None).await.unwrap();
            sim.ask("hello").await;
        })
        .check(|sim, _| {
            let lines = lines(sim);
            TOLD.with(|told| told.borrow_mut().push(json!(messages(&lines))));
        })
        .once();
    TOLD.with(|told| told.borrow_mut().pop()).map(|lines| serde_json::from_value(lines).unwrap()).unwrap()
}

#[test]
fn calls_at_the_same_time_give_the_signs_that_calls_one_by_one_give() {
    let mut together = lines_of_two_readers(true);
    assert_eq!(
        together,
        [
            "[1/8] Calling m",
            "[1/8] Executing tools: work, other",
            "[1/8] Still executing: work (5 s)",
            "[1/8] Still executing: other (5 s)",
            "[1/8] Still executing: work (10 s)",
            "[1/8] Still executing: other (10 s)",
            "[1/8] Executing tools: other",
            "[2/8] Calling m",
        ]
    );
    let mut one_by_one = lines_of_two_readers(false);
    together.sort();
    one_by_one.sort();
    assert_eq!(together, one_by_one);
}

#[test]
fn who_comes_later_sees_the_last_line_at_once_and_those_that_follow() {
    slow("somebody comes later")
        .drive(|sim| async move {
            sim.send("use work").await;
            sim.until_executions(1).await;
            sim.world.pause(3 * SECOND_US).await;
            assert!(lines(&sim).is_empty(), "nobody has listened");
            let first = sim.listen(listening(), None).await.unwrap();
            let snapshot = first.frames.borrow()[0].clone();
            assert_eq!(snapshot.data["progress"], Value::Null, "nothing was made while nobody listened");
            sim.world.pause(3 * SECOND_US).await;
            assert_eq!(messages(&lines(&sim)), ["[1/8] Still executing: work (5 s)"]);
            let second = sim.listen(listening(), None).await.unwrap();
            let message = second.frames.borrow()[0].data["progress"]["message"].clone();
            assert_eq!(message, "[1/8] Still executing: work (5 s)");
            let again = sim.listen(listening(), snapshot.id.as_deref()).await.unwrap();
            assert!(again.frames.borrow().last().is_some_and(is_progress), "{:?}", again.frames.borrow());
            let quiet = Filter { quiet: true, ..listening() };
            let silent = sim.listen(quiet, None).await.unwrap();
            assert_eq!(silent.frames.borrow()[0].data["progress"], Value::Null);
            sim.world.pause(10 * SECOND_US).await;
            assert!(!silent.frames.borrow().iter().any(is_progress));
        })
        .calm();
}

/// The timers of a run with a slow tool, by who listens.
fn timers(filter: Option<Filter>) -> usize {
    slow("timers")
        .drive(move |sim| async move {
            if let Some(filter) = filter {
                sim.listen(filter, None).await.unwrap();
            }
            let before = sim.member.sleeps.get();
            sim.ask("use work").await;
            let set = sim.member.sleeps.get() - before;
            TOLD.with(|told| told.borrow_mut().push(json!(set)));
        })
        .check(move |sim, _| {
            assert_eq!(lines(sim).is_empty(), filter.is_none_or(|filter| filter.quiet));
        })
        .once();
    TOLD.with(|told| told.borrow_mut().pop()).and_then(|set| set.as_u64()).unwrap() as usize
}

#[test]
fn without_listeners_no_timer_is_set_and_no_line_is_made() {
    let alone = timers(None);
    assert_eq!(timers(Some(Filter { quiet: true, ..listening() })), alone);
    let listened = timers(Some(listening()));
    assert!(listened > alone, "{listened} timers, {alone} where nobody listens");
}

#[test]
fn a_called_prompt_says_for_whom_it_works() {
    story("within a prompt")
        .define(checking)
        .says(|request| {
            match (request.texts("system")[0].starts_with("You check"), request.results().len()) {
                (true, _) => Say::call("work", &json!({})),
                (false, 0) => Say::call("check", &json!({ "what": "it" })),
                (false, _) => Say::text("done"),
            }
        })
        .drive(|sim| async move {
            sim.listen(listening(), None).await.unwrap();
            sim.ask("hello").await;
        })
        .check(|sim, _| {
            let lines = lines(sim);
            let told: Vec<(&str, i64)> = messages(&lines)
                .into_iter()
                .zip(lines.iter().map(|line| line["depth"].as_i64().unwrap()))
                .collect();
            assert_eq!(
                told,
                [
                    ("[1/250] Calling m", 0),
                    ("[1/250] Executing tools: check", 0),
                    ("[2/250] Calling m for check", 1),
                    ("[2/250] Executing tools: work for check", 1),
                    ("[3/250] Calling m", 0),
                ]
            );
        })
        .calm();
}

#[test]
fn a_run_that_waits_says_for_what() {
    story("waiting")
        .define(with(json!({ "pay": asking(json!("always")) })))
        .answers(|request| match request.index {
            0 => Answer::status(429, "{}").header("retry-after", "4"),
            _ => clerk(request).stream(request.index),
        })
        .drive(|sim| async move {
            sim.listen(listening(), None).await.unwrap();
            sim.send("use pay").await;
            let waits = until_open(&sim, 1).await;
            let known = [
                "[1/250] Calling m",
                "m is busy, trying again in 4 s",
                "[1/250] Calling m",
                "Waiting for approval: pay",
            ];
            assert_eq!(messages(&lines(&sim)), known);
            sim.evict().await;
            let later = sim.listen(listening(), None).await.unwrap();
            let progress = later.frames.borrow()[0].data["progress"].clone();
            assert_eq!((&progress["kind"], &progress["message"]), (&json!("waiting"), &json!(known[3])));
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
        })
        .check(|sim, _| {
            let lines = lines(sim);
            assert_eq!(messages(&lines)[4..], ["[1/250] Executing tools: pay", "[2/250] Calling m"]);
        })
        .calm();
}

#[test]
fn code_says_what_it_does_once_a_second() {
    story("notes")
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let (state, sleep) = (call.state.clone(), call.sleep.clone());
                Native::Works(Box::pin(async move {
                    for n in 0..5 {
                        state.progress(&format!("row {n}")).unwrap();
                        sleep(600_000).await;
                    }
                    sleep(SECOND_US).await;
                    state.progress(&"x".repeat(300)).unwrap();
                    state.progress(" ").unwrap();
                    ToolResult::success("read")
                }))
            });
        })
        .drive(|sim| async move {
            sim.listen(listening(), None).await.unwrap();
            sim.meter();
            sim.ask("use work").await;
            let log = sim.member.database.log.borrow().clone().unwrap_or_default();
            assert!(log.iter().all(|(sql, _, _)| !sql.contains("row ")), "nothing of it is stored");
        })
        .check(|sim, _| {
            let lines = lines(sim);
            let notes: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "note").collect();
            let told: Vec<String> =
                notes.iter().map(|note| note["message"].as_str().unwrap().to_owned()).collect();
            assert_eq!(told[..3], ["row 0", "row 2", "row 4"]);
            assert_eq!((told.len(), told[3].chars().count()), (4, 200), "{told:?}");
            let looking = sim.clone();
            let logs = sim.world.drive(async move { looking.get(ThreadRoute::ListLogs, &[]).await });
            assert!(!logs.to_string().contains("row 2"));
        })
        .calm();
}
