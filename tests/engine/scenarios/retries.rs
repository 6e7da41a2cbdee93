//! How what fails is tried again: which place counts, what is tried again, and how often (docs/models.md).

use std::cell::RefCell;
use std::collections::BTreeSet;

use bobbin::host::{Filter, Frame};
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::subprompts::checking;
use super::{clerk, story};
use crate::host::outside::TOOL_URL;
use crate::host::{Answer, SECOND_US, Say};
use crate::sim::{Sim, model};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![
        by_the_run(),
        a_chain(),
        a_tool_again(),
        once_only(),
        once_only_within(),
        one_piece("wait"),
        one_piece("park"),
    ]
}

/// A message whose run goes by a policy, and its outcome.
async fn ask_with(sim: &Sim, text: &str, retry: &Value) -> Value {
    let mut body = json!({ "role": "user", "content": text });
    if !retry.is_null() {
        body["retry"] = retry.clone();
    }
    let seen = sim.post(body).await;
    assert_eq!(seen.status, 202, "{}", seen.body);
    let accepted = sim.accepted.borrow().last().cloned().unwrap();
    sim.outcome(&accepted).await
}

/// What a server does, always.
fn failure(name: &str) -> Answer {
    match name {
        "refused" => Answer::refused(),
        "silence" => Answer::silence(),
        "cut" => Say::text("lost words").chunks(5).stream(0).cut_after(3),
        "slow" => Say::text("abcdefghij").chunks(10).stream(0).pace(2 * SECOND_US),
        status => Answer::status(status.parse().unwrap(), r#"{"error":{"message":"no"}}"#),
    }
}

/// What each place says, what happens, how often the model is asked, and whose policy the log names.
struct Case {
    run: Value,
    prompt: Value,
    folder: Value,
    file: Value,
    fails: &'static str,
    asked: usize,
    source: &'static str,
}

const fn nothing(fails: &'static str, asked: usize, source: &'static str) -> Case {
    Case {
        run: Value::Null,
        prompt: Value::Null,
        folder: Value::Null,
        file: Value::Null,
        fails,
        asked,
        source,
    }
}

fn of_file(file: Value, fails: &'static str, asked: usize) -> Case {
    Case { file, ..nothing(fails, asked, "definition") }
}

fn set(at: &mut Value, field: &str, value: &Value) {
    if !value.is_null() {
        at[field] = value.clone();
    }
}

fn defined(scenario: Scenario, case: &Case, file: (&'static str, &'static str)) -> Scenario {
    scenario.define(|catalog| {
        set(&mut catalog["prompts"]["p"], "retry", &case.prompt);
        if !case.folder.is_null() {
            catalog["settings"] = json!({ "retryDefaults": case.folder });
        }
        set(&mut catalog[file.0][file.1], "retry", &case.file);
    })
}

fn of_model(policy: Value) -> Value {
    json!({ "model": policy })
}

fn most(attempts: u32) -> Value {
    json!({ "maxAttempts": attempts })
}

fn only(kind: &str) -> Value {
    json!({ "retryOn": [kind] })
}

fn cases_of_models() -> Vec<Case> {
    let run = |policy| of_model(policy);
    vec![
        nothing("503", 2, "built_in"),
        nothing("408", 2, "built_in"),
        nothing("silence", 1, "built_in"),
        nothing("401", 1, "built_in"),
        of_file(most(3), "503", 3),
        of_file(most(1), "503", 1),
        of_file(most(10), "503", 10),
        of_file(most(10), "401", 1),
        of_file(most(10), "400", 1),
        of_file(only("rate_limit"), "503", 1),
        of_file(only("rate_limit"), "429", 2),
        of_file(only("network"), "refused", 2),
        of_file(only("network"), "cut", 2),
        of_file(only("network"), "503", 1),
        of_file(only("server_error"), "refused", 1),
        of_file(only("server_error"), "409", 2),
        of_file(only("timeout"), "408", 2),
        of_file(only("timeout"), "silence", 2),
        of_file(json!({ "retryOn": [] }), "503", 1),
        of_file(json!({ "timeoutMs": 5_000 }), "slow", 1),
        of_file(json!({ "timeoutMs": 5_000, "retryOn": ["timeout"], "maxAttempts": 3 }), "slow", 3),
        Case { folder: of_model(most(4)), ..nothing("503", 4, "folder") },
        Case { prompt: of_model(most(1)), ..nothing("503", 1, "prompt") },
        Case { run: run(most(5)), ..nothing("503", 5, "run") },
        Case { run: run(most(3)), prompt: of_model(most(5)), ..nothing("503", 3, "run") },
        Case { prompt: of_model(most(3)), folder: of_model(most(5)), ..nothing("503", 3, "prompt") },
        // The file counts only where no other place says anything of models.
        Case { folder: of_model(json!({ "backoffMs": 10 })), file: most(5), ..nothing("503", 2, "folder") },
        Case { folder: json!({ "tool": most(5) }), file: most(3), ..nothing("503", 3, "definition") },
        Case { run: run(json!({ "backoffMs": 0 })), folder: of_model(most(3)), ..nothing("503", 3, "run") },
        Case { run: run(json!({})), ..nothing("503", 2, "built_in") },
    ]
}

#[test]
fn the_first_place_that_says_a_field_counts() {
    for (index, case) in cases_of_models().into_iter().enumerate() {
        let (run, fails, asked, source) = (case.run.clone(), case.fails, case.asked, case.source);
        defined(story("retries of a model"), &case, ("models", "m"))
            .answers(move |_| failure(fails))
            .drive(move |sim| {
                let run = run.clone();
                async move {
                    let outcome = ask_with(&sim, "hello", &run).await;
                    assert_eq!(outcome["reason"], "model_error", "{outcome}");
                    let logs = sim.get(ThreadRoute::ListLogs, &[]).await;
                    let rows: Vec<&Value> = logs["logs"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .filter(|row| row["type"] == "llm_request")
                        .collect();
                    assert!(rows.iter().all(|row| row["retry_source"] == source), "case {index}: {logs}");
                }
            })
            .check(move |sim, _| {
                assert_eq!(sim.world.outside.requests.borrow().len(), asked, "case {index}: {fails}");
            })
            .terms(|terms| terms.outcomes = vec!["failed"])
            .once();
    }
}

/// An http tool that is always answered like this.
fn http_tool(idempotent: bool, fails: &'static str) -> Scenario {
    story("retries of a tool")
        .define(move |catalog| {
            let run = json!({ "http": { "url": format!("{TOOL_URL}/work") } });
            catalog["tools"]["work"] =
                json!({ "description": "Works.", "run": run, "idempotent": idempotent, "timeoutMs": 1_000 });
        })
        .setup(move |sim| sim.world.outside.server("/work", move |_, _| failure(fails)))
}

fn cases_of_tools() -> Vec<(bool, Case)> {
    let tool = |policy| json!({ "tool": policy });
    vec![
        (true, nothing("503", 1, "")),
        (true, of_file(most(2), "503", 2)),
        (true, of_file(most(3), "503", 3)),
        (true, of_file(most(9), "503", 3)),
        (true, of_file(most(3), "400", 1)),
        (true, of_file(most(3), "429", 3)),
        (true, of_file(most(3), "408", 3)),
        (true, of_file(json!({ "maxAttempts": 3, "retryOn": ["rate_limit"] }), "503", 1)),
        (true, of_file(json!({ "maxAttempts": 3, "retryOn": ["network"] }), "refused", 3)),
        (true, of_file(json!({ "maxAttempts": 3, "retryOn": ["timeout"] }), "silence", 3)),
        (true, Case { prompt: tool(most(2)), ..nothing("503", 2, "") }),
        (true, Case { folder: tool(most(2)), ..nothing("503", 2, "") }),
        (true, Case { run: tool(most(3)), ..nothing("503", 3, "") }),
        (true, Case { folder: of_model(most(5)), ..nothing("503", 1, "") }),
        (false, Case { folder: tool(most(3)), ..nothing("503", 1, "") }),
    ]
}

#[test]
fn a_tool_is_called_again_only_where_that_is_safe_and_asked_for() {
    for (index, (idempotent, case)) in cases_of_tools().into_iter().enumerate() {
        let (run, asked) = (case.run.clone(), case.asked);
        defined(http_tool(idempotent, case.fails), &case, ("tools", "work"))
            .drive(move |sim| {
                let run = run.clone();
                async move {
                    ask_with(&sim, "use work", &run).await;
                }
            })
            .check(move |sim, history| {
                let executions = sim.world.outside.executions.borrow();
                assert_eq!(executions.len(), asked, "case {index}");
                assert!(executions.iter().all(|e| e.key == executions[0].key), "case {index}");
                assert_eq!(history.of("tool").next().unwrap()["tool_status"], "error");
            })
            .once();
    }
}

/// The second request comes after the pause that the run asks for, wherever the process was lost.
fn by_the_run() -> Scenario {
    story("retry of a run")
        .answers(|request| match request.index {
            0 | 1 => failure("503"),
            _ => clerk(request).stream(request.index),
        })
        .drive(|sim| async move {
            let policy = json!({ "maxAttempts": 3, "backoffMs": 2_000, "jitter": "none" });
            ask_with(&sim, "hello", &of_model(policy)).await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["re: hello"]);
            let requests = sim.world.outside.requests.borrow();
            if history.faults == 0 {
                let gaps: Vec<i64> = requests
                    .windows(2)
                    .map(|pair| (pair[1].at_us - pair[0].at_us + SECOND_US / 2) / SECOND_US)
                    .collect();
                assert_eq!(gaps, [2, 4]);
            }
            assert!(requests.len() <= 3 + history.faults, "one more for each recovery at most");
        })
}

#[test]
fn a_run_goes_by_the_policy_of_its_message() {
    by_the_run().sweep();
}

/// Every model of a chain fails for good: each is asked as often as its policy says, and once more for a process that is lost.
fn a_chain() -> Scenario {
    story("a chain that is exhausted")
        .define(|catalog| {
            catalog["models"]["m"]["fallbacks"] = json!(["m2"]);
            catalog["models"]["m"]["retry"] = json!({ "maxAttempts": 3, "backoffMs": 50 });
            catalog["models"]["m2"] = model("m2");
            catalog["models"]["m2"]["retry"] = json!({ "maxAttempts": 1 });
        })
        .answers(|_| failure("503"))
        .terms(|terms| terms.outcomes = vec!["failed"])
        .drive(|sim| async move {
            assert_eq!(sim.ask("hello").await["reason"], "model_error");
        })
        .check(|sim, history| {
            let requests = sim.world.outside.requests.borrow();
            for (name, most) in [("m", 3), ("m2", 1)] {
                let asked = requests.iter().filter(|request| request.model == name).count();
                assert!((most..=most + history.faults).contains(&asked), "{name}: {asked}");
            }
            assert!(requests.len() <= 4 + history.faults);
        })
}

#[test]
fn no_model_of_a_chain_is_asked_more_often_than_its_policy_says() {
    a_chain().sweep();
}

/// Runs are counted in the receipt before they are made: no crash makes more of them than three.
fn a_tool_again() -> Scenario {
    http_tool(true, "503")
        .define(|catalog| catalog["tools"]["work"]["retry"] = json!({ "maxAttempts": 3, "backoffMs": 100 }))
        .setup(|sim| {
            sim.world.outside.server("/work", |_, before| match before {
                0 => failure("503"),
                _ => Answer::json(&json!({ "status": "success", "result": "at last" })),
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, history| {
            let executions = sim.world.outside.executions.borrow();
            assert!(executions.len() <= 3 && executions.iter().all(|e| e.key == executions[0].key));
            if history.faults == 0 {
                assert_eq!((executions.len(), history.texts("tool")), (2, vec!["at last"]));
            }
        })
}

#[test]
fn a_tool_that_is_called_again_keeps_its_key_and_its_receipt() {
    a_tool_again().sweep();
}

#[test]
fn a_stream_that_may_not_begin_anew_fails_the_run_and_leaves_no_text() {
    // (what the model's server does first, how often it is asked, whether the run succeeds)
    for (fails, asked, succeeds) in [("cut", 1, false), ("503", 2, true), ("refused", 2, true)] {
        story("not restartable")
            .define(|catalog| {
                catalog["models"] = json!({ "m": model("m"), "m2": model("m2") });
                catalog["models"]["m"]["fallbacks"] = json!(["m2"]);
                catalog["models"]["m"]["capabilities"] = json!({ "restartable": false });
            })
            .answers(move |request| match request.index {
                0 => failure(fails),
                _ => clerk(request).stream(request.index),
            })
            .drive(move |sim| async move {
                sim.listen(Filter { events: true, ..Filter::default() }, None).await.unwrap();
                let outcome = sim.ask("hello").await;
                let reason = if succeeds { Value::Null } else { json!("model_error") };
                assert!(succeeds || outcome["reason"] == reason, "{outcome}");
                let told = outcome["error"]["message"].as_str().unwrap_or_default();
                assert!(succeeds || told.contains("may not begin anew"), "{told}");
            })
            .check(move |sim, history| {
                assert_eq!(sim.world.outside.requests.borrow().len(), asked, "{fails}");
                assert_eq!(history.answers().is_empty(), !succeeds, "no part of it is stored");
                let frames = sim.world.frames.borrow();
                assert!(frames.iter().all(|frame| frame.1.kind != "message_reset"), "{fails}");
            })
            .terms(|terms| terms.outcomes = vec!["failed", "completed"])
            .calm();
    }
}

/// Whatever is lost in the middle of an answer that may not begin anew: clients see one attempt at it, and no reset.
fn once_only() -> Scenario {
    story("an answer that may not begin anew")
        .define(|catalog| catalog["models"]["m"]["capabilities"] = json!({ "restartable": false }))
        .answers(|request| clerk(request).chunks(6).stream(request.index).pace(100_000))
        .terms(|terms| {
            terms.outcomes = vec!["failed", "completed"];
        })
        .drive(|sim| async move {
            let mut last = None;
            sim.send("say a few words").await;
            // A client that comes back where it was, as often as it has to.
            for _ in 0..40 {
                let Ok(listener) =
                    sim.listen(Filter { events: true, ..Filter::default() }, last.as_deref()).await
                else {
                    sim.world.pause(20_000).await;
                    continue;
                };
                for _ in 0..20 {
                    sim.world.pause(20_000).await;
                    let frames = listener.frames.borrow();
                    last = frames.iter().rev().find_map(|frame| frame.id.clone()).or(last);
                    TOLD.with(|told| told.borrow_mut().extend(frames.iter().map(shown_of)));
                    if !listener.open.get() {
                        break;
                    }
                }
                listener.open.set(false);
            }
        })
        .setup(|_| TOLD.with(|told| told.borrow_mut().clear()))
        .check(|_, history| {
            let told = TOLD.with(|told| told.borrow().clone());
            assert!(told.iter().all(|(kind, _)| *kind != "message_reset"), "{told:?}");
            let attempts: BTreeSet<i64> = told
                .iter()
                .filter(|(kind, _)| *kind == "message_chunk")
                .map(|(_, attempt)| *attempt)
                .collect();
            assert!(attempts.len() <= 1, "one attempt is shown: {attempts:?}");
            let answers = history.answers();
            if history.faults == 0 {
                assert_eq!((answers.as_slice(), attempts.len()), (&["re: say a few words"][..], 1));
            }
            let failed: Vec<&Value> =
                history.outcomes.values().filter(|outcome| outcome["outcome"] == "failed").collect();
            assert_eq!(failed.is_empty(), !answers.is_empty(), "{failed:?}");
            for outcome in failed {
                assert_eq!(outcome["reason"], "model_error");
                let text = outcome["error"]["message"].as_str().unwrap();
                assert!(text.contains("may not begin anew: the process was lost."), "{text}");
            }
        })
}

thread_local! {
    /// Frames that the client of [`once_only`] was sent: kind and attempt.
    static TOLD: RefCell<Vec<(&'static str, i64)>> = const { RefCell::new(Vec::new()) };
}

fn shown_of(frame: &Frame) -> (&'static str, i64) {
    (frame.kind, frame.data["attempt"].as_i64().unwrap_or(0))
}

#[test]
fn an_answer_that_may_not_begin_anew_is_shown_once_whatever_fails() {
    once_only().sweep();
}

/// The same of a prompt that is called: its call fails, and the run goes on.
fn once_only_within() -> Scenario {
    story("an answer within a call that may not begin anew")
        .define(|catalog| {
            checking(catalog);
            catalog["models"]["n"] = model("n");
            catalog["models"]["n"]["capabilities"] = json!({ "restartable": false });
            catalog["prompts"]["check"]["model"] = json!("n");
            catalog["prompts"]["check"]["tools"] = json!([]);
        })
        .answers(|request| match (request.model.as_str(), request.results().is_empty()) {
            ("n", _) => Say::text("it is fine").chunks(4).stream(request.index).pace(100_000),
            (_, true) => Say::call("check", &json!({ "what": "it" })).stream(request.index),
            _ => Say::text("done").stream(request.index),
        })
        .drive(|sim| async move {
            sim.listen(Filter { events: true, depth: 2, ..Filter::default() }, None).await.unwrap();
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["done"]);
            let told = history.texts("tool");
            let lost = told[0].contains("may not begin anew: the process was lost.");
            assert!(told == ["it is fine"] || history.faults > 0 && lost, "{told:?}");
            let asked = sim.world.outside.requests.borrow();
            let asked = asked.iter().filter(|request| request.model == "n").count();
            assert!(asked == 1 || !lost, "after it was shown it is not asked for again");
        })
}

#[test]
fn an_answer_within_a_call_is_shown_once_too() {
    once_only_within().sweep();
}

#[test]
fn a_stream_that_breaks_twice_is_asked_for_in_one_piece_at_last() {
    for streams in [true, false] {
        story("in one piece")
            .define(|catalog| {
                catalog["models"]["m"]["retry"] = json!({ "maxAttempts": 3, "backoffMs": 10 });
                catalog["models"]["m"]["capabilities"] = json!({ "supportsStreaming": streams });
            })
            .answers(|request| match request.index {
                0 | 1 => Say::text("x").stream(0).cut_after(0),
                _ => Answer::json(&json!({ "choices": [{ "message": { "content": "whole" },
                    "finish_reason": "stop" }] })),
            })
            .drive(|sim| async move {
                sim.ask("hello").await;
            })
            .check(move |sim, history| {
                let requests = sim.world.outside.requests.borrow();
                let asked: Vec<&Value> = requests.iter().map(|request| &request.body["stream"]).collect();
                assert_eq!(asked, [streams, streams, false]);
                assert_eq!(history.answers(), ["whole"]);
            })
            .calm();
    }
}

/// The first two streams break before they begin; only an answer in one piece comes through. `mode`: what the run does in the
/// pauses between the attempts.
fn one_piece(mode: &'static str) -> Scenario {
    let name = if mode == "park" { "in one piece after pauses" } else { "in one piece at last" };
    story(name)
        .define(move |catalog| {
            catalog["models"]["m"]["retry"] =
                json!({ "maxAttempts": 3, "mode": mode, "backoffMs": 40_000, "jitter": "none" });
        })
        .answers(|request| match request.body["stream"] == json!(true) {
            true => Say::text("x").stream(0).cut_after(0),
            false => Answer::json(&json!({ "choices": [{ "message": { "content": "whole" },
                "finish_reason": "stop" }] })),
        })
        .drive(|sim| async move {
            sim.send("hello").await;
            sim.until("answered", |sim| {
                sim.member.database.ask::<i64>("SELECT 1 FROM runs WHERE phase = 'ended'") == [1]
            })
            .await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["whole"], "however often the process was lost in between");
            let requests = sim.world.outside.requests.borrow();
            let streams = requests.iter().filter(|request| request.body["stream"] == json!(true)).count();
            let whole = requests.len() - streams;
            assert!((2..=2 + history.faults).contains(&streams), "{streams} streams");
            assert!((1..=1 + history.faults).contains(&whole), "{whole} in one piece");
        })
}

#[test]
fn streams_that_broke_are_remembered_over_every_loss() {
    one_piece("wait").sweep();
}

#[test]
fn streams_that_broke_are_remembered_while_the_run_is_parked() {
    one_piece("park").sweep();
}

#[test]
fn all_models_of_a_step_are_asked_twenty_times_at_most() {
    let names = ["m", "m2", "m3", "m4"];
    story("twenty")
        .define(|catalog| {
            for name in names {
                catalog["models"][name] = model(name);
                catalog["models"][name]["retry"] = json!({ "maxAttempts": 9, "backoffMs": 0 });
            }
            catalog["models"]["m"]["fallbacks"] = json!(names[1..]);
        })
        .answers(|_| failure("503"))
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(move |sim, _| {
            let requests = sim.world.outside.requests.borrow();
            let asked = names.map(|name| requests.iter().filter(|request| request.model == name).count());
            assert_eq!(asked, [9, 9, 1, 1], "each fallback keeps an attempt");
        })
        .terms(|terms| terms.outcomes = vec!["failed"])
        .once();
}

#[test]
fn a_model_says_how_long_it_may_be_silent() {
    for (name, answer, least) in [
        ("no first chunk", Say::text("x").stream(0).stall_after(0), 7),
        ("stalled", Say::text("abc").chunks(3).stream(0).stall_after(2), 3),
    ] {
        story(name)
            .define(|catalog| {
                catalog["models"] = json!({ "m": model("m"), "m2": model("m2") });
                catalog["models"]["m"]["fallbacks"] = json!(["m2"]);
                catalog["models"]["m"]["timeouts"] = json!({ "firstChunkMs": 7_000, "stallMs": 3_000 });
            })
            .answers(move |request| match request.model.as_str() {
                "m" => answer.clone(),
                _ => clerk(request).stream(request.index),
            })
            .drive(|sim| async move {
                sim.ask("hello").await;
            })
            .check(move |sim, _| {
                let requests = sim.world.outside.requests.borrow();
                let waited = (requests[1].at_us - requests[0].at_us + SECOND_US / 2) / SECOND_US;
                assert!((least..=least + 1).contains(&waited), "{name}: {waited} s");
            })
            .calm();
    }
}

#[test]
fn a_wrong_policy_of_a_message_is_told() {
    for (retry, field, told) in [
        (json!({ "model": { "maxAttempts": 11 } }), "retry.model.maxAttempts", "from 1 (no retry) to 10"),
        (json!({ "model": { "maxAttempts": 0 } }), "retry.model.maxAttempts", "from 1"),
        (
            json!({ "tool": { "backoffMs": 5, "maxBackoffMs": 4 } }),
            "retry.tool.backoffMs",
            "maxBackoffMs (4)",
        ),
        (json!({ "model": { "retryOn": ["luck"] } }), "retry.model", "unknown variant `luck`"),
        (json!({ "model": { "attempts": 2 } }), "retry.model", "unknown field `attempts`"),
        (json!({ "modle": {} }), "modle", "modle"),
    ] {
        story("wrong")
            .drive(move |sim| {
                let body = json!({ "role": "user", "content": "x", "retry": retry });
                async move {
                    let seen = sim.insist(ThreadRoute::PostMessage, &[], None, body.to_string()).await;
                    assert_eq!(seen.status, 400, "{}", seen.body);
                    assert_eq!(seen.body["error"]["field"], field, "{}", seen.body);
                    assert!(seen.body["error"]["message"].as_str().unwrap().contains(told), "{}", seen.body);
                }
            })
            .once();
    }
}
