//! Tools: native and behind a URL, that fail, hang, say too much, or are called wrongly.

use bobbin::definitions::message::ToolResult;
use serde_json::{Value, json};

use super::{INDETERMINATE, clerk, story, with_work, work};
use crate::host::fault::{Fault, whenever};
use crate::host::{Answer, At, Native, SECOND_US, Say, TOOL_URL};
use crate::sim::native;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![http(), panicking(), failing()]
}

fn http_tool(path: &str, idempotent: bool) -> Value {
    json!({ "description": "Looks up.", "args": { "type": "object", "properties": {} },
        "run": { "http": { "url": format!("{TOOL_URL}{path}"), "headers": { "x-key": "k" } } },
        "idempotent": idempotent, "timeoutMs": 30_000 })
}

fn http() -> Scenario {
    Scenario::new("http tools", &json!({ "work": http_tool("/w", false), "safe": http_tool("/s", true) }))
        .says(clerk)
        .setup(|sim| {
            for path in ["/w", "/s"] {
                sim.world.outside.server(path, |request, _| {
                    assert!(request.headers.contains(&("x-key".into(), "k".into())));
                    Answer::json(&json!({ "status": "success", "result": "found" })).after(SECOND_US)
                });
            }
        })
        .drive(|sim| async move {
            sim.ask("use work,safe").await;
        })
        .check(|_, history| {
            let results = history.texts("tool");
            assert_eq!(results.len(), 2);
            assert!(
                results[0] == "found" || history.faults > 0 && results[0] == INDETERMINATE,
                "{results:?}"
            );
            assert_eq!(results[1], "found", "an idempotent tool is simply called again");
        })
}

#[test]
fn http_tools_are_called_once_or_again_with_the_same_key() {
    http().sweep();
}

fn panicking() -> Scenario {
    story("a tool that panics")
        .setup(|sim| {
            sim.world
                .outside
                .native("work", |_, _| Native::Works(Box::pin(async { panic!("over its feet") })));
        })
        .drive(|sim| async move {
            sim.ask("use work,safe").await;
        })
        .check(|_, history| {
            let results = history.texts("tool");
            let own = results[0] == "\"work\" panicked: over its feet";
            assert!(own || history.faults > 0 && results[0] == INDETERMINATE, "{results:?}");
            assert_eq!(results.len(), 2, "the run goes on with the next call");
        })
}

#[test]
fn a_tool_that_panics_ends_its_own_call_alone() {
    panicking().sweep();
}

fn failing() -> Scenario {
    story("a failing tool")
        .setup(|sim| {
            sim.world.outside.native("work", |_, _| Native::Gives(1_000, ToolResult::error("no luck")));
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|_, history| {
            let results = history.texts("tool");
            assert!(results[0].contains("no luck") || history.faults > 0 && results[0] == INDETERMINATE);
            assert_eq!(history.of("tool").next().unwrap()["tool_status"], "error");
        })
}

#[test]
fn a_failing_tool_is_a_result() {
    failing().sweep();
}

#[test]
fn a_started_call_is_not_run_again_after_a_crash() {
    for (at, fault) in [
        (At::NativeDone, Fault::CrashLost),
        (At::NativeDone, Fault::CrashKept),
        (At::NativeDone, Fault::Panic),
    ] {
        story("started, then lost")
            .suffers(move || whenever(1, fault, move |point| point.at == at))
            .drive(|sim| async move {
                sim.ask("use work").await;
            })
            .check(|sim, history| {
                assert_eq!(history.faults, 1);
                assert_eq!(sim.world.outside.executions.borrow().len(), 1);
                assert_eq!(history.texts("tool"), [INDETERMINATE]);
                assert_eq!(history.answers(), [format!("done: {INDETERMINATE}")]);
            })
            .calm();
    }
}

#[test]
fn an_idempotent_tool_runs_at_most_three_times_with_one_key() {
    Scenario::new("idempotent", &json!({ "work": native(true) }))
        .says(clerk)
        .setup(work)
        .suffers(|| whenever(100, Fault::CrashLost, |point| point.at == At::NativeDone))
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, history| {
            let executions = sim.world.outside.executions.borrow();
            assert_eq!(executions.len(), 3);
            assert!(executions.iter().all(|e| e.key == executions[0].key));
            assert_eq!(history.texts("tool"), [INDETERMINATE]);
        })
        .calm();
}

#[test]
fn a_tool_that_never_returns_is_ended_by_a_kill() {
    story("hanging")
        .setup(|sim| sim.world.outside.native("work", |_, _| Native::Never))
        .drive(|sim| async move {
            let message = sim.send("use work").await;
            sim.until_executions(1).await;
            sim.world.pause(14 * 60 * SECOND_US + 30 * SECOND_US).await;
            assert!(sim.world.alarms_fired.get() >= 2, "the alarm hands over after 14 minutes");
            sim.world.kill();
            let outcome = sim.outcome(&message).await;
            assert_eq!(outcome["outcome"], "completed");
        })
        .check(|_, history| assert_eq!(history.texts("tool"), [INDETERMINATE]))
        .calm();
}

#[test]
fn a_tool_that_names_no_limit_has_fifteen_minutes() {
    story("hanging for long")
        .setup(|sim| sim.world.outside.native("work", |_, _| Native::Never))
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|_, history| {
            assert_eq!(history.texts("tool"), ["\"work\" did not answer within 900 s."]);
        })
        .calm();
}

/// One reply with one call, the text that the model must be told, and how often the tool runs.
#[test]
fn a_wrong_call_is_told_plainly_and_runs_nothing() {
    for (name, arguments, told) in [
        ("nope", "{}", "There is no tool \"nope\" here. Available: work."),
        ("work", "{\"n\":\"x\"}", "Invalid arguments for \"work\": n: expected integer, got string."),
        ("work", "{\"n\":", "not valid JSON"),
        ("work", "[]", "Invalid arguments for \"work\""),
    ] {
        Scenario::new("wrong call", &with_work())
            .says(move |request| match request.results().is_empty() {
                true => Say::default().and_call(name, arguments),
                false => Say::text("sorry"),
            })
            .setup(work)
            .drive(|sim| async move {
                sim.ask("go").await;
            })
            .check(move |sim, history| {
                let results = history.texts("tool");
                assert!(results.len() == 1 && results[0].contains(told), "{arguments}: {results:?}");
                assert_eq!(sim.world.outside.executions.borrow().len(), 0);
                assert_eq!(history.answers(), ["sorry"]);
            })
            .calm();
    }
}

#[test]
fn empty_arguments_are_an_empty_object() {
    Scenario::new("no arguments", &with_work())
        .says(|request| match request.results().is_empty() {
            true => Say::default().and_call("work", ""),
            false => Say::text("fine"),
        })
        .setup(work)
        .drive(|sim| async move {
            sim.ask("go").await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool"), ["w0"]);
            assert_eq!(sim.world.outside.executions.borrow()[0].args, json!({}));
        })
        .calm();
}

#[test]
fn empty_and_repeated_call_ids_are_replaced() {
    Scenario::new("call ids", &with_work())
        .says(|request| match request.results().len() {
            0 => Say::default().and_call_id("", "work", "{}").and_call_id("", "work", "{}"),
            2 => Say::default().and_call_id("x", "work", "{}").and_call_id("x", "work", "{}"),
            4 => Say::default().and_call_id("x", "work", "{}"),
            _ => Say::text("fine"),
        })
        .setup(work)
        .drive(|sim| async move {
            sim.ask("go").await;
            sim.ask("go").await;
        })
        .check(|_, history| {
            let mut ids: Vec<String> =
                history.of("assistant").flat_map(crate::contract::History::calls).map(|(id, _)| id).collect();
            assert_eq!(ids.len(), 10);
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), 10);
        })
        .calm();
}

#[test]
fn a_large_result_is_stored_whole_and_sent_short() {
    for bytes in [40_000, 900_000, 3_000_000] {
        story("large result")
            .setup(move |sim| {
                sim.world
                    .outside
                    .native("work", move |_, _| Native::Gives(0, ToolResult::success("é".repeat(bytes / 2))));
            })
            .answers(|request| {
                match request.results().first() {
                    None => Say::default().and_call("work", "{}"),
                    Some(result) => {
                        assert!(result.len() <= (32 << 10) + 400, "{} bytes in the request", result.len());
                        Say::text("seen")
                    }
                }
                .stream(request.index)
            })
            .drive(|sim| async move {
                sim.ask("go").await;
                sim.ask("go on").await;
            })
            .check(move |_, history| {
                let stored = history.texts("tool")[0].len();
                if bytes < 1_000_000 {
                    assert_eq!(stored, bytes);
                } else {
                    assert!(stored > 0);
                }
            })
            .calm();
    }
}

#[test]
fn http_answers_become_results_by_the_rules() {
    let cases: Vec<(&'static str, Answer, &'static str, &'static str)> = vec![
        ("/text", Answer::status(200, "plain words"), "success", "plain words"),
        ("/json", Answer::json(&json!({ "a": 1 })), "success", "{\"a\":1}"),
        ("/result", Answer::json(&json!({ "status": "error", "error": "not there" })), "error", "not there"),
        ("/503", Answer::status(503, "down for a while"), "error", "http 503 from work: down for a while"),
        ("/302", Answer::status(302, "").header("location", "http://10.0.0.1/"), "error", "302"),
        ("/big", Answer::status(200, "x".repeat((1 << 20) + 1)), "error", ""),
        ("/refused", Answer::refused(), "error", ""),
        ("/silent", Answer::silence(), "error", ""),
        ("/stalls", Answer::status(200, "x").stall_after(1), "error", ""),
        ("/cut", Answer::status(200, "x").cut_after(1), "error", ""),
    ];
    for (path, answer, status, text) in cases {
        Scenario::new("http answers", &json!({ "work": http_tool(path, true) }))
            .says(clerk)
            .setup(move |sim| {
                let answer = answer.clone();
                sim.world.outside.server(path, move |_, _| answer.clone());
            })
            .drive(|sim| async move {
                sim.ask("use work").await;
            })
            .check(move |sim, history| {
                let row = history.of("tool").next().unwrap();
                assert_eq!(row["tool_status"], status, "{path}: {row}");
                assert!(row["content"].as_str().unwrap().contains(text), "{path}: {row}");
                assert_eq!(sim.world.outside.executions.borrow().len(), 1, "{path}: not repeated by us");
            })
            .calm();
    }
}
