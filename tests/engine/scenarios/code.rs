//! Code that a tool runs in the sandbox (spec §17), as far as it is the engine's.

use std::cell::RefCell;
use std::rc::Rc;

use bobbin::definitions::message::ToolResult;
use bobbin::sandbox::{Function, Options, Reports, Status, Value as Code};
use futures::future::{Either, select};
use serde_json::{Value, json};

use super::{clerk, story};
use crate::host::sandbox::{Ran, ended, gives};
use crate::host::{Native, SECOND_US};
use crate::sim::{Sim, native};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![calling_back(), stopped()]
}

/// What a text or a list of texts is, as the outside world sees it.
fn text(value: &Code) -> String {
    value.to_json().map(|json| json.as_str().map_or(json.to_string(), str::to_owned)).unwrap_or_default()
}

/// `work` runs code that calls `deeper` through a function it was given, and reports how far it is.
fn calling_back() -> Scenario {
    story("a tool that runs code")
        .define(|catalog| {
            catalog["tools"]["deeper"] = native(false);
            catalog["tools"]["deeper"]["run"]["native"] = json!("deeper");
            catalog["prompts"]["p"]["tools"] = json!(["work"]);
            catalog["tools"]["work"]["idempotent"] = json!(true);
        })
        .says(clerk)
        .setup(|sim| {
            sim.world.outside.native("deeper", |call, _| {
                Native::Gives(SECOND_US, ToolResult::success(format!("deeper {}", call.args["n"])))
            });
            sim.world.outside.sandbox.code("calls", |ran| async move {
                ran.report(json!("begun")).await;
                let first = ran.call(0, &[json!(1)]).await;
                let second = ran.call(0, &[json!(2)]).await;
                match (first, second) {
                    (Ok(first), Ok(second)) => gives(json!(format!("{} {}", first[0], second[0]))),
                    failed => ended(&format!("{failed:?}")),
                }
            });
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                let invoke = Function::new("invoke", {
                    let state = state.clone();
                    move |args| {
                        let n = args.first().and_then(Code::to_json);
                        let called = state.invoke_tool("deeper", json!({ "n": n }));
                        Box::pin(async move { Ok(Code::String(called.await?.text())) })
                    }
                });
                Native::Works(Box::pin(async move {
                    let options = Options { report: Reports::Kept, ..Options::default() };
                    let result = state.run_code("calls", options.global("invoke", invoke)).await;
                    let reports: Vec<String> = result.reports.iter().map(text).collect();
                    let said = format!("{} {}", reports.join(","), text(&result.result));
                    ToolResult::success(format!("{}: {said}", result.status.as_str()))
                }))
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, history| {
            let executions = sim.world.outside.executions.borrow();
            let deeper = executions.iter().filter(|execution| execution.name == "deeper").count();
            assert!(deeper <= 2, "no call of unknown outcome is made again: {deeper}");
            if history.faults == 0 {
                assert_eq!(history.texts("tool"), ["success: begun \"deeper 1\" \"deeper 2\""]);
            }
        })
}

#[test]
fn code_calls_tools_through_receipts() {
    calling_back().sweep();
}

/// `work` waits for code that never ends by itself.
fn stopped() -> Scenario {
    story("code of a run that is stopped")
        .setup(|sim| {
            let told: Rc<RefCell<Vec<Option<String>>>> = Rc::default();
            sim.world.outside.sandbox.code("for ever", move |ran| {
                let told = told.clone();
                async move {
                    let reason = ran.ended().await;
                    told.borrow_mut().push(reason.clone());
                    assert_eq!(reason.as_deref(), Some("Nobody waits for the code any more."));
                    ended("over")
                }
            });
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    let result = state.run_code("for ever", Options::default()).await;
                    ToolResult::error(result.status.as_str())
                }))
            });
        })
        .terms(|terms| {
            terms.outcomes = vec!["completed", "stopped"];
            terms.one_answer = false;
            terms.overlap = true;
            terms.pairs = false;
        })
        .drive(|sim| async move {
            sim.send("use work").await;
            sim.until_executions(1).await;
            sim.world.pause(SECOND_US).await;
            sim.stop().await;
            sim.world.pause(SECOND_US).await;
        })
        .check(|sim, history| {
            if history.faults == 0 {
                assert_eq!(sim.world.outside.sandbox.runs.borrow().len(), 1);
                assert!(history.texts("tool")[0].contains("was stopped while \"work\" was running"));
            }
        })
}

#[test]
fn code_ends_with_the_run_that_waits_for_it() {
    stopped().sweep();
}

/// Has a tool do something with a thread's state, once.
fn a_tool<F: Future<Output = Value> + 'static>(
    setup: impl Fn(&Sim) + 'static,
    act: impl Fn(bobbin::engine::ThreadState, bobbin::host::Sleep) -> F + 'static,
) -> Value {
    let seen: Rc<RefCell<Value>> = Rc::default();
    let (told, act) = (seen.clone(), Rc::new(act));
    story("a tool with code")
        .setup(setup)
        .setup(move |sim| {
            let (told, act) = (told.clone(), act.clone());
            sim.world.outside.native("work", move |call, _| {
                let (told, doing) = (told.clone(), act(call.state.clone(), call.sleep.clone()));
                Native::Works(Box::pin(async move {
                    *told.borrow_mut() = doing.await;
                    ToolResult::success("done")
                }))
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .calm();
    seen.take()
}

#[test]
fn a_sandbox_that_does_not_answer_is_waited_for_no_longer_than_50_ms() {
    let seen = a_tool(
        |sim| sim.world.outside.sandbox.code("deaf", |_| std::future::pending()),
        |state, sleep| async move {
            let execution = state.run_code("deaf", Options::default());
            sleep(SECOND_US).await;
            assert!(execution.running());
            execution.terminate("enough");
            execution.terminate("of that");
            let (result, again) = (execution.result(), execution.result());
            let result = select(result, sleep(50_000)).await;
            let Either::Left((result, _)) = result else { return json!("late") };
            assert!(!execution.running());
            assert_eq!(again.await.status, Status::Terminated);
            execution.terminate("too late");
            result.to_json()
        },
    );
    assert_eq!(seen["status"], "terminated");
    assert_eq!(seen["error"]["message"], "enough");
}

#[test]
fn wrong_options_are_a_link_error_and_nothing_runs() {
    type Change = fn(&mut Options);
    let wrong: [(Change, &str); 5] = [
        (|options| options.memory_limit_bytes = 0.0, "memoryLimitBytes"),
        (|options| options.memory_limit_bytes = f64::NAN, "memoryLimitBytes"),
        (|options| options.function = " ".into(), "execute.fn"),
        (|options| options.filename = String::new(), "filename"),
        (|options| options.globals.push(("not a name".into(), Code::Null)), "globals"),
    ];
    for (change, named) in wrong {
        let seen = a_tool(
            |_| {},
            move |state, _| async move {
                let mut options = Options::default();
                change(&mut options);
                state.run_code("never", options).await.to_json()
            },
        );
        assert_eq!(seen["status"], "link_error");
        assert_eq!(seen["error"]["name"], "InvalidCodeExecutionOptions");
        assert!(seen["error"]["message"].as_str().unwrap().contains(named), "{seen}");
    }
}

#[test]
fn options_of_sandboxed_code_are_read_and_what_is_wrong_is_named() {
    let read = |options: Value| Options::from_value(Code::from(options));
    let good =
        read(json!({ "language": "javascript", "execute": { "fn": "f", "args": [1] }, "filename": "x.js",
        "imports": { "host": { "default": 1 } }, "modules": { "./a.js": "export {}" }, "globals": { "g": 2 },
        "memoryLimitBytes": 5e6, "engine": "v8" }))
        .unwrap();
    assert_eq!((good.function.as_str(), good.args.len(), good.imports.len()), ("f", 1, 1));
    for (wrong, named) in [
        (json!([]), "the options"),
        (json!({ "langauge": 1 }), "langauge"),
        (json!({ "language": "coffee" }), "language"),
        (json!({ "execute": 5 }), "execute"),
        (json!({ "execute": { "fn": 5 } }), "execute.fn"),
        (json!({ "execute": { "args": {} } }), "execute.args"),
        (json!({ "execute": { "arg": [] } }), "execute.arg"),
        (json!({ "modules": { "./a.js": 5 } }), "./a.js"),
        (json!({ "imports": { "host": 5 } }), "host"),
        (json!({ "report": 5 }), "report"),
        (json!({ "memoryLimitBytes": "5" }), "memoryLimitBytes"),
    ] {
        let error = read(wrong.clone()).err().unwrap();
        assert!(error.to_string().contains(named), "{wrong}: {error}");
    }
}

#[test]
fn a_run_that_is_started_from_inside_a_run_says_so() {
    let seen = a_tool(
        |sim| {
            sim.world.outside.sandbox.code("outer", |ran| async move {
                ran.call(0, &[]).await.map_or_else(|error| ended(&error), |value| gives(value[0].clone()))
            });
            sim.world.outside.sandbox.code("inner", |ran| async move {
                let ancestors = ran.run.ancestors.len();
                gives(json!(format!("{ancestors} around")))
            });
        },
        |state, _| async move {
            let within = state.clone();
            let nested = Function::new("nested", move |_| {
                let within = within.clone();
                Box::pin(async move { Ok(within.run_code("inner", Options::default()).await.result.clone()) })
            });
            let outer = state.run_code("outer", Options::default().global("nested", nested)).await;
            let after = state.run_code("inner", Options::default()).await;
            json!([outer.result.to_json(), after.result.to_json()])
        },
    );
    assert_eq!(seen, json!(["1 around", "0 around"]));
}

#[test]
fn a_function_of_the_hosts_that_panics_or_fails_is_an_error_in_the_code() {
    let seen = a_tool(
        |sim| {
            sim.world.outside.sandbox.code("asks", |ran| async move {
                let said = |result: Result<Value, String>| result.err().unwrap_or_default();
                let (first, second) = (said(ran.call(0, &[]).await), said(ran.call(1, &[]).await));
                let unknown = said(ran.call(7, &[]).await);
                gives(json!(format!("{first}|{second}|{unknown}")))
            });
        },
        |state, _| async move {
            let fails = Function::new("fails", |_| {
                Box::pin(async { Err(bobbin::Error::internal("no luck").into()) })
            });
            let panics = Function::new("panics", |_| Box::pin(async { panic!("the host's own business") }));
            let options = Options::default().global("fails", fails).global("panics", panics);
            state.run_code("asks", options).await.result.to_json().unwrap()
        },
    );
    assert_eq!(seen, "no luck|A function of the host's panicked.|There is no such function.");
}

#[test]
fn the_sandbox_is_held_by_the_handle_alone_when_it_gave_no_functions() {
    let kept: Rc<RefCell<Option<Ran>>> = Rc::default();
    let keep = kept.clone();
    let seen = a_tool(
        move |sim| {
            let keep = keep.clone();
            sim.world.outside.sandbox.code("gives", move |ran| {
                *keep.borrow_mut() = Some(ran);
                async { gives(json!("given")) }
            });
        },
        move |state, sleep| {
            let kept = kept.clone();
            async move {
                let execution = state.run_code("gives", Options::default());
                execution.result().await;
                let ran = kept.borrow_mut().take().unwrap();
                let ended = Box::pin(async move { ran.ended().await });
                let Either::Right((_, ended)) = select(ended, sleep(SECOND_US)).await else {
                    return json!("ended while it was held");
                };
                drop(execution);
                json!(ended.await)
            }
        },
    );
    assert_eq!(seen, json!(null), "nobody needs it, and nothing was wrong");
}
