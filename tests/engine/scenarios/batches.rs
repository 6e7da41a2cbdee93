//! Calls of a reply that only read, made at the same time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use bobbin::definitions::message::ToolResult;
use bobbin::host::Filter;
use serde_json::{Value, json};

use super::waits::{decides, until_open};
use crate::contract::History;
use crate::host::fault::{Fault, whenever};
use crate::host::{Answer, At, Native, SECOND_US, Say, TOOL_URL};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![mixed(), hooked(), stopped(), asking_after()]
}

const UNKNOWN: &str = "It may or may not have taken effect.";

fn tool(native: &str, tier: &str) -> Value {
    json!({ "description": "Does.", "run": { "native": native }, "tier": tier,
        "args": { "type": "object", "properties": { "n": { "type": "integer" } } } })
}

/// A model whose reply to `go` has these calls, numbered: `r` reads, `b` reads badly, `w` writes, `x` has wrong arguments.
fn story(name: &'static str, calls: &'static str) -> Scenario {
    let tools = json!({ "read": tool("read", "read_only"), "bad": tool("bad", "read_only"),
        "write": tool("write", "side_effecting") });
    Scenario::new(name, &tools)
        .define(|catalog| {
            catalog["prompts"]["p"]["parallelToolCalls"] = json!(true);
            catalog["prompts"]["p"]["parallelReadOnly"] = json!(true);
        })
        .says(move |request| {
            if !request.results().is_empty() || request.last_user() != "go" {
                return Say::text(format!("after {}", request.results().len()));
            }
            calls.chars().enumerate().fold(Say::default(), |say, (n, call)| {
                let name = match call {
                    'r' | 'x' => "read",
                    'b' => "bad",
                    _ => "write",
                };
                let n = if call == 'x' { json!("no number") } else { json!(n) };
                say.and_call(name, &json!({ "n": n }).to_string())
            })
        })
        .setup(|sim| takes(sim, |n| [3, 1, 2][n % 3] * SECOND_US))
}

/// How long reading takes, by the number of the call.
fn takes(sim: &Sim, us: fn(usize) -> i64) {
    let number = |args: &Value| args["n"].as_u64().unwrap() as usize;
    sim.world.outside.native("read", move |call, _| {
        let n = number(&call.args);
        Native::Gives(us(n), ToolResult::success(format!("read {n}")))
    });
    sim.world
        .outside
        .native("bad", move |call, _| Native::Gives(us(number(&call.args)), ToolResult::error("no luck")));
    sim.world.outside.native("write", move |call, _| {
        Native::Gives(SECOND_US, ToolResult::success(format!("wrote {}", number(&call.args))))
    });
}

/// The results are those of the calls, in their order. A writer that was lost is of unknown outcome; readers are read again.
fn in_order(calls: &str, history: &History, mark: &str) {
    let results = history.texts("tool");
    assert_eq!(results.len(), calls.len(), "{results:?}");
    for (n, (call, result)) in calls.chars().zip(&results).enumerate() {
        let expected = match call {
            'r' => format!("read {n}{mark}"),
            'w' if history.faults > 0 && result.contains(UNKNOWN) => continue,
            'w' => format!("wrote {n}{mark}"),
            'b' => "no luck".to_owned(),
            _ => "Invalid arguments for \"read\": n: expected integer, got string.".to_owned(),
        };
        assert_eq!(*result, expected, "{results:?}");
    }
}

/// How often each call ran, by the number in its arguments.
fn times(sim: &Sim, n: u64) -> usize {
    sim.world.outside.executions.borrow().iter().filter(|ran| ran.args["n"] == n).count()
}

fn mixed() -> Scenario {
    const CALLS: &str = "rrbwrrxr";
    story("readers, a writer between, one that fails", CALLS)
        .drive(|sim| async move {
            sim.ask("go").await;
            sim.ask("and then?").await;
        })
        .check(|sim, history| {
            in_order(CALLS, history, "");
            assert!(times(sim, 3) <= 1, "no writer runs twice");
            if history.faults == 0 {
                assert_eq!(sim.world.outside.executions.borrow().len(), 7);
            }
        })
}

#[test]
fn readers_run_together_and_nothing_runs_twice_whatever_fails() {
    mixed().sweep();
}

/// A hook that takes longer than some of the calls sees each result once, in order.
fn hooked() -> Scenario {
    const CALLS: &str = "rrr";
    story("readers and hooks", CALLS)
        .define(|catalog| {
            let hook = "before_store_tool_result";
            catalog["hooks"] = json!({ hook: { "hook": hook, "run": { "native": hook } } });
            catalog["agents"]["helper"]["hooks"] = json!([hook]);
        })
        .setup(|sim| {
            takes(sim, |n| [2, 3, 1][n] * SECOND_US);
            sim.world.outside.hook("before_store_tool_result", |call| {
                let mut result = call.args[1].clone();
                result["result"] = format!("{}!", result["result"].as_str().unwrap()).into();
                Box::pin(async move {
                    (call.sleep)(4 * SECOND_US).await;
                    Ok(result)
                })
            });
        })
        .drive(|sim| async move {
            sim.ask("go").await;
        })
        .check(|_, history| {
            let results = history.texts("tool");
            // A hook that panics is its own failure, and the result stays as it was.
            let bare = results.iter().filter(|result| !result.ends_with('!')).count();
            assert!(results.len() == 3 && bare <= history.faults, "{results:?}");
            for (n, result) in results.iter().enumerate() {
                assert_eq!(result.trim_end_matches('!'), format!("read {n}"), "{results:?}");
                assert!(!result.ends_with("!!"), "{results:?}");
            }
        })
}

#[test]
fn hooks_see_each_result_once_and_in_order() {
    hooked().sweep();
}

/// All end with the run; what has a result keeps it.
fn stopped() -> Scenario {
    story("stopped in the middle", "rrrw")
        .setup(|sim| takes(sim, |n| if n == 1 { SECOND_US } else { 60 * SECOND_US }))
        .terms(|terms| {
            terms.outcomes = vec!["completed", "stopped"];
            terms.one_answer = false;
            // Results of calls that never started are made when a request needs them.
            terms.pairs = false;
            terms.more_requests = 2;
        })
        .drive(|sim| async move {
            sim.send("go").await;
            sim.until_executions(3).await;
            sim.world.pause(5 * SECOND_US).await;
            sim.stop().await;
            sim.world.pause(200 * SECOND_US).await;
            let outcome = sim.ask("again").await;
            assert_eq!(outcome["outcome"], "completed");
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            if history.faults == 0 {
                let running =
                    "The run was stopped while \"read\" was running. It may or may not have taken effect.";
                assert_eq!(results, [running, "read 1", running]);
                let states: Vec<String> = sim.member.database.ask("SELECT state FROM calls ORDER BY id");
                assert_eq!(states, ["indeterminate", "succeeded", "indeterminate"]);
                assert_eq!(times(sim, 3), 0, "what came behind was never begun");
            }
            assert!(results.len() <= 4, "{results:?}");
        })
}

#[test]
fn a_stop_ends_all_that_run_together() {
    stopped().sweep();
}

#[test]
fn what_has_its_result_keeps_it_and_the_others_run_again() {
    story("lost once one had ended", "rrr")
        .suffers(|| {
            let ended = Cell::new(0);
            whenever(1, Fault::CrashLost, move |point| {
                ended.set(ended.get() + usize::from(point.at == At::NativeDone));
                ended.get() == 2
            })
        })
        .drive(|sim| async move {
            sim.ask("go").await;
        })
        .check(|sim, history| {
            in_order("rrr", history, "");
            assert_eq!(history.faults, 1);
            assert_eq!([0, 1, 2].map(|n| times(sim, n)), [2, 1, 2]);
        })
        .calm();
}

#[test]
fn each_runs_at_most_three_times_in_all() {
    story("lost every time", "rrr")
        .suffers(|| whenever(100, Fault::CrashLost, |point| point.at == At::NativeDone))
        .drive(|sim| async move {
            sim.ask("go").await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert_eq!(results.len(), 3);
            assert!(results.iter().all(|result| result.contains(UNKNOWN)), "{results:?}");
            assert!([0, 1, 2].iter().all(|n| times(sim, *n) <= 3), "three runs each at most");
        })
        .calm();
}

#[test]
fn together_they_take_as_long_as_the_slowest() {
    for (parallel, calls, seconds) in [
        ([true, true], "rrr", 3),
        ([true, false], "rrr", 6),
        // A prompt that asks for one call a reply gets them one by one.
        ([false, true], "rrr", 6),
        // Six at a time: 3 s, and then the seventh and eighth.
        ([true, true], "rrrrrrrr", 6),
        ([true, true], "rrwrr", 7),
    ] {
        story("how long it takes", calls)
            .define(move |catalog| {
                catalog["prompts"]["p"]["parallelToolCalls"] = json!(parallel[0]);
                catalog["prompts"]["p"]["parallelReadOnly"] = json!(parallel[1]);
            })
            .drive(move |sim| async move {
                let start = sim.world.now_us();
                sim.ask("go").await;
                let took = sim.world.now_us() - start;
                let expected = seconds * SECOND_US;
                assert!((expected..expected + SECOND_US).contains(&took), "{calls} {parallel:?}: {took} us");
            })
            .check(move |_, history| in_order(calls, history, ""))
            .calm();
    }
}

/// What a listener and a reader of the history see of a story that is run with the flag or without.
fn seen(parallel: bool) -> BTreeSet<Vec<String>> {
    let seen: Rc<RefCell<BTreeSet<Vec<String>>>> = Rc::default();
    let (told, kept) = (seen.clone(), seen.clone());
    let frames: Rc<RefCell<Vec<String>>> = Rc::default();
    let checked = frames.clone();
    story("with the flag and without", "rrbwrrr")
        .define(move |catalog| catalog["prompts"]["p"]["parallelReadOnly"] = json!(parallel))
        .drive(move |sim| {
            let frames = frames.clone();
            async move {
                let listener = sim.listen(Filter::default(), None).await.unwrap();
                sim.ask("go").await;
                let wanted =
                    ["tool_started", "tool_completed", "message_data", "step_started", "step_completed"];
                let told = listener.frames.borrow();
                let told = told.iter().filter(|frame| wanted.contains(&frame.kind)).map(|frame| {
                    let data = &frame.data;
                    format!(
                        "{} {} {} {}",
                        frame.kind, data["tool"], data["data"]["id"], data["data"]["content"]
                    )
                });
                *frames.borrow_mut() = told.collect();
            }
        })
        .check(move |_, history| {
            let rows = history.messages.iter().map(|row| {
                format!("{} {} {} {}", row["id"], row["content"], row["tool_call_id"], row["tool_status"])
            });
            told.borrow_mut().insert(rows.chain(checked.borrow().iter().cloned()).collect());
        })
        .calm();
    kept.take()
}

#[test]
fn messages_ids_and_frames_are_the_same_with_the_flag_and_without() {
    let (together, one_by_one) = (seen(true), seen(false));
    assert_eq!(together.len(), 1, "{together:#?}");
    assert!(together.iter().all(|seen| seen.len() > 30), "{together:#?}");
    assert_eq!(together, one_by_one);
}

/// Whether the flag is set, the calls, and the statements of the turn.
type Spent = (bool, &'static str, i64);

#[test]
fn a_reply_without_a_batch_costs_what_it_did_and_early_results_one_statement_each() {
    let spent: Rc<RefCell<Vec<Spent>>> = Rc::default();
    for parallel in [true, false] {
        for calls in ["r", "rwr", "rrr"] {
            let spent = spent.clone();
            story("what it costs", calls)
                .define(move |catalog| catalog["prompts"]["p"]["parallelReadOnly"] = json!(parallel))
                .drive(move |sim| {
                    let spent = spent.clone();
                    async move {
                        sim.meter();
                        sim.ask("go").await;
                        let counted = sim.metered().statements as i64;
                        spent.borrow_mut().push((parallel, calls, counted));
                    }
                })
                .once();
        }
    }
    let spent = spent.borrow();
    let of = |parallel, calls| {
        spent.iter().find(|(p, c, _)| (*p, *c) == (parallel, calls)).map(|(_, _, counted)| *counted).unwrap()
    };
    for calls in ["r", "rwr"] {
        assert_eq!(of(true, calls), of(false, calls), "{calls}");
    }
    // The first takes longest: the other two come early.
    assert_eq!(of(true, "rrr"), of(false, "rrr") + 2);
}

#[test]
fn each_of_several_readers_counts_for_the_requests_of_an_event() {
    let reads = json!({ "description": "d", "tier": "read_only", "run": { "http": { "url": format!("{TOOL_URL}/look") } },
        "args": { "type": "object", "properties": { "n": { "type": "integer" } } } });
    Scenario::new("requests of an event", &json!({ "look": reads }))
        .define(|catalog| {
            catalog["prompts"]["p"]["parallelToolCalls"] = json!(true);
            catalog["prompts"]["p"]["parallelReadOnly"] = json!(true);
        })
        .says(|request| match request.results().len() {
            done if done < 18 => {
                (0..3).fold(Say::default(), |say, n| say.and_call("look", &json!({ "n": n }).to_string()))
            }
            _ => Say::text("all seen"),
        })
        .setup(|sim| {
            sim.world.vars.borrow_mut().insert("BOBBIN_OUTGOING_PER_EVENT".into(), "6".into());
            sim.world.outside.server("/look", |_, _| Answer::status(200, "seen"));
        })
        .terms(|terms| terms.overlap = true)
        .drive(|sim| async move {
            sim.ask("go").await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool").len(), 18);
            // Seven replies and eighteen calls; a batch that has begun is not divided.
            assert!(sim.world.most_requests() <= 6 + 3, "{} in one event", sim.world.most_requests());
            assert!(sim.world.alarms_fired.get() >= 2, "{} alarms", sim.world.alarms_fired.get());
        })
        .calm();
}

/// One of the calls asks for an approval once it has looked: those beside it are done with, and not made again.
fn asking_after() -> Scenario {
    const CALLS: &str = "rbr";
    story("readers, one of which asks for an approval", CALLS)
        .define(|catalog| catalog["tools"]["bad"]["approval"] = json!({ "mode": "on_failure" }))
        .setup(|sim| {
            sim.world.outside.native("bad", |call, _| {
                let result = match call.approved {
                    true => ToolResult::success("looked after all"),
                    false => ToolResult {
                        error_code: Some("needs_approval".into()),
                        ..ToolResult::error("This is for people to allow.")
                    },
                };
                Native::Gives(SECOND_US, result)
            });
        })
        .drive(|sim| async move {
            sim.send("go").await;
            let asked = until_open(&sim, 1).await;
            assert_eq!(asked[0]["call"]["tool"], "bad");
            sim.world.pause(10 * SECOND_US).await;
            decides(&sim, &asked[0], json!({ "decision": "approve" })).await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool"), ["read 0", "looked after all", "read 2"]);
            if history.faults == 0 {
                assert_eq!([0, 1, 2].map(|n| times(sim, n)), [1, 2, 1], "it runs again once it is allowed");
            }
        })
}

#[test]
fn one_of_several_readers_may_ask_for_an_approval() {
    asking_after().sweep();
}

#[test]
fn one_of_several_readers_that_may_not_ask_is_refused_as_it_is_alone() {
    let results = |parallel: bool| {
        let seen: Rc<RefCell<Vec<String>>> = Rc::default();
        let kept = seen.clone();
        story("a reader that asks where nobody is asked", "rbr")
            .define(move |catalog| {
                catalog["tools"]["bad"]["approval"] = json!({ "mode": "on_failure" });
                catalog["prompts"]["p"]["approvals"] = json!({ "policy": "never" });
                catalog["prompts"]["p"]["parallelReadOnly"] = json!(parallel);
            })
            .setup(|sim| {
                sim.world.outside.native("bad", |_, _| {
                    let error = ToolResult::error("This is for people to allow.");
                    Native::Gives(
                        SECOND_US,
                        ToolResult { error_code: Some("needs_approval".into()), ..error },
                    )
                });
            })
            .drive(|sim| async move {
                sim.ask("go").await;
            })
            .check(move |_, history| {
                *seen.borrow_mut() = history.texts("tool").iter().map(ToString::to_string).collect()
            })
            .calm();
        kept.take()
    };
    let together = results(true);
    assert!(together.len() == 3 && !together[1].contains("for people"), "{together:?}");
    assert_eq!(together, results(false));
}
