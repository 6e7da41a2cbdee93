//! `execute_code`: code of a model's own, whose calls go through receipts and whose limits hold.

use std::cell::RefCell;
use std::rc::Rc;

use bobbin::definitions::Catalog;
use bobbin::definitions::message::ToolResult;
use bobbin::sandbox::{CodeError, Outcome, Status};
use serde_json::{Value, json};

use super::{clerk, story};
use crate::contract::History;
use crate::host::sandbox::{Ran, ended, gives};
use crate::host::{Native, SECOND_US};
use crate::sim::{Sim, native};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![calling(), unawaited(), racing_its_limit()]
}

/// The prompt offers `find` and `execute_code`; the code is always the same, and `does` is what it does.
fn coder<F: Future<Output = Outcome> + 'static>(
    name: &'static str,
    options: Value,
    does: impl Fn(Ran) -> F + Clone + 'static,
) -> Scenario {
    story(name)
        .define(move |catalog| {
            catalog["tools"]["find"] = native(false);
            catalog["tools"]["find"]["run"]["native"] = json!("find");
            catalog["tools"]["find"]["args"] =
                json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
            let entry = json!({ "name": "execute_code", "options": options });
            catalog["prompts"]["p"]["tools"] = json!(["find", entry]);
            let mut built: Catalog = serde_json::from_value(catalog.clone()).unwrap();
            built.add_built_in();
            catalog["tools"]["execute_code"] =
                serde_json::to_value(built.tools.get("execute_code").unwrap()).unwrap();
        })
        .says(|request| match request.results().is_empty() {
            true => crate::host::Say::text("").and_call("execute_code", r#"{"code":"await work()"}"#),
            false => clerk(request),
        })
        .setup(move |sim| {
            sim.world.outside.native("find", |call, _| {
                Native::Gives(SECOND_US, ToolResult::success(format!("found {}", call.args["n"])))
            });
            sim.world
                .outside
                .native("execute_code", |call, _| Native::Works(Box::pin(bobbin::tools::run(call.clone()))));
            let does = does.clone();
            sim.world.outside.sandbox.code("await work()\n", does);
        })
        .drive(|sim| async move {
            sim.ask("write some code").await;
        })
}

/// What the model was told, as JSON.
fn told(history: &History) -> Value {
    serde_json::from_str(history.texts("tool")[0]).unwrap_or_else(|_| json!(history.texts("tool")[0]))
}

/// The code of the tool's error, for clients.
fn code(sim: &Sim) -> String {
    let metadata: Vec<String> = sim.world.database.ask("SELECT metadata FROM messages WHERE role = 'tool'");
    let metadata: Value = serde_json::from_str(&metadata[0]).unwrap();
    metadata["error_code"].as_str().unwrap_or_default().to_owned()
}

fn found(sim: &Sim) -> usize {
    sim.world.outside.executions.borrow().iter().filter(|execution| execution.name == "find").count()
}

fn calling() -> Scenario {
    coder("code that calls tools", json!({}), |ran| async move {
        let first = ran.call(0, &[]).await;
        let second = ran.call(0, &[]).await;
        match (first, second) {
            (Ok(first), Ok(second)) => gives(json!(format!("{}, {}", first[0], second[0]))),
            failed => ended(&format!("{failed:?}")),
        }
    })
    .check(|sim, history| {
        assert!(found(sim) <= 2, "no call is made again");
        if history.faults == 0 {
            let told = told(history);
            assert_eq!(told["status"], "success");
            assert_eq!(told["result"], "\"found null\", \"found null\"");
            assert_eq!(told["toolCalls"].as_array().unwrap().len(), 2);
            let receipts: Vec<String> = sim.world.database.ask("SELECT state FROM calls WHERE reply <= 0");
            assert_eq!(receipts, ["succeeded", "succeeded"]);
        }
    })
}

#[test]
fn calls_of_code_go_through_receipts() {
    calling().sweep();
}

/// What became of the calls of code, whatever failed: none is open, none was made twice.
fn closed(sim: &Sim, calls: usize) -> Vec<String> {
    assert!(found(sim) <= calls, "no call is made again");
    let receipts: Vec<String> =
        sim.world.database.ask("SELECT state FROM calls WHERE reply <= 0 ORDER BY id");
    assert!(receipts.len() <= calls, "{receipts:?}");
    assert!(!receipts.iter().any(|state| state == "started"), "{receipts:?}");
    receipts
}

/// Code that ends before the tools that it called have.
fn unawaited() -> Scenario {
    coder("calls that code does not wait for", json!({}), |ran| async move {
        ran.call_aside(0, &[]);
        ran.call_aside(0, &[]);
        gives(json!("over"))
    })
    .check(|sim, history| {
        let receipts = closed(sim, 2);
        if history.faults == 0 {
            let told = told(history);
            assert_eq!(told["status"], "success");
            assert_eq!(receipts, ["succeeded", "succeeded"]);
            let ended = |call: &Value| call["status"] == "success";
            assert!(told["toolCalls"].as_array().unwrap().iter().all(ended), "{told}");
        }
    })
}

#[test]
fn calls_that_code_does_not_wait_for_are_waited_for() {
    unawaited().sweep();
}

/// The same where the time is up before they end.
fn racing_its_limit() -> Scenario {
    coder("a call that outlives the code's time", json!({ "codeTimeoutMs": 300 }), |ran| async move {
        ran.call_aside(0, &[]);
        gives(json!("over"))
    })
    .check(|sim, history| {
        let receipts = closed(sim, 1);
        if history.faults == 0 {
            assert_eq!(receipts, ["indeterminate"]);
            let told = told(history);
            assert_eq!(
                (&told["status"], &told["toolCalls"][0]["status"]),
                (&json!("terminated"), &json!("running"))
            );
            assert_eq!(code(sim), "codeTimeoutMs");
        }
    })
}

#[test]
fn a_call_that_outlives_the_time_of_its_code_is_of_unknown_outcome() {
    racing_its_limit().sweep();
}

#[test]
fn it_is_off_where_no_prompt_lists_it() {
    coder("off", json!({}), |_| async { gives(json!("it ran")) })
        .define(|catalog| {
            catalog["prompts"]["other"] = catalog["prompts"]["p"].clone();
            catalog["prompts"]["p"]["tools"] = json!(["find"]);
        })
        .says(clerk)
        .setup(|sim| {
            sim.world.outside.native("find", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    let called = state.invoke_tool("execute_code", json!({ "code": "await work()" })).await;
                    state.queue_tool("execute_code", json!({ "code": "await work()" })).unwrap();
                    called.unwrap()
                }))
            });
        })
        .drive(|sim| async move {
            sim.ask("use find").await;
        })
        .check(|sim, history| {
            let off = "\"execute_code\" is off here: the prompt \"p\" does not list it.";
            assert_eq!(history.texts("tool"), [off, off]);
            assert!(sim.world.outside.sandbox.runs.borrow().is_empty());
        })
        .calm();
}

#[test]
fn the_code_is_told_what_it_can_call() {
    coder("declared", json!({}), |_| async { gives(json!(1)) })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            let tools = requests[0].body["tools"].as_array().unwrap();
            let own = tools.iter().find(|tool| tool["function"]["name"] == "execute_code").unwrap();
            let description = own["function"]["description"].as_str().unwrap();
            assert!(description.contains("find(args: { n?: number }): Promise<string>;"), "{description}");
            assert!(!description.contains("execute_code("), "{description}");
        })
        .calm();
}

#[test]
fn too_many_calls_end_the_code() {
    coder("too many calls", json!({ "maxToolCalls": 2 }), |ran| async move {
        for _ in 0..3 {
            // A third one throws; the code may catch that, and is ended all the same.
            let _caught = ran.call(0, &[]).await;
        }
        match ran.ended().await {
            Some(reason) => ended(&reason),
            None => gives(json!("it got away")),
        }
    })
    .check(|sim, history| {
        assert_eq!(found(sim), 2);
        let told = told(history);
        assert_eq!(told["status"], "terminated");
        assert!(
            told["error"]["message"].as_str().unwrap().contains("more than 2 tools (maxToolCalls)"),
            "{told}"
        );
        assert_eq!(code(sim), "maxToolCalls");
    })
    .calm();
}

#[test]
fn code_that_takes_too_long_is_ended() {
    coder("too long", json!({ "codeTimeoutMs": 5_000 }), |_| std::future::pending())
        .check(|sim, history| {
            let told = told(history);
            assert_eq!(told["status"], "terminated");
            assert!(told["error"]["message"].as_str().unwrap().contains("5 s (codeTimeoutMs)"), "{told}");
            assert_eq!(code(sim), "codeTimeoutMs");
        })
        .calm();
}

#[test]
fn too_much_code_and_wrong_settings_are_said() {
    for (options, said) in [
        (json!({ "maxCodeSize": 5 }), "The code has 12 bytes; the limit is 5"),
        (json!({ "maxCodeSise": 5 }), "execute_code is not set up: maxCodeSise: there is no such option"),
        (json!({ "codeTimeoutMs": 0 }), "codeTimeoutMs: must be a whole number from 1 to 600000"),
    ] {
        coder("refused", options, |_| async { gives(json!("it ran")) })
            .check(move |sim, history| {
                assert!(history.texts("tool")[0].contains(said), "{:?}", history.texts("tool"));
                assert!(sim.world.outside.sandbox.runs.borrow().is_empty());
            })
            .calm();
    }
}

#[test]
fn large_output_is_cut_with_a_note() {
    coder("too much", json!({ "maxOutputSize": 100 }), |_| async { gives(json!("x".repeat(500))) })
        .check(|_, history| {
            let told = told(history);
            let result = told["result"].as_str().unwrap();
            assert!(
                result.len() < 200 && result.ends_with("[Cut off here: 500 bytes in all (maxOutputSize).]"),
                "{result}"
            );
        })
        .calm();
}

#[test]
fn what_is_thrown_is_never_a_success_and_has_the_models_own_lines() {
    coder("throws", json!({}), |_| async {
        let error = CodeError { line: Some(1), column: Some(8), ..CodeError::new("RangeError", "too far") };
        Outcome::failed(Status::Error, error)
    })
    .check(|sim, history| {
        let told = told(history);
        assert_eq!(told["status"], "error");
        assert_eq!(
            told["error"],
            json!({ "name": "RangeError", "message": "too far", "line": 1, "column": 8 })
        );
        let states: Vec<String> = sim.world.database.ask("SELECT state FROM calls WHERE reply > 0");
        assert_eq!(states, ["failed"]);
    })
    .calm();
}

#[test]
fn code_ends_with_the_run_that_waits_for_it() {
    let told: Rc<RefCell<Vec<Option<String>>>> = Rc::default();
    let hears = told.clone();
    coder("stopped", json!({}), move |ran| {
        let told = hears.clone();
        async move {
            let reason = ran.ended().await;
            told.borrow_mut().push(reason);
            ended("over")
        }
    })
    .terms(|terms| {
        terms.outcomes = vec!["stopped"];
        terms.one_answer = false;
        terms.pairs = false;
    })
    .drive(move |sim| {
        let told = told.clone();
        async move {
            sim.send("write some code").await;
            sim.until_executions(1).await;
            sim.world.pause(SECOND_US).await;
            sim.stop().await;
            sim.world.pause(SECOND_US).await;
            assert_eq!(told.take(), [Some("Nobody waits for the code any more.".to_owned())]);
        }
    })
    .calm();
}
