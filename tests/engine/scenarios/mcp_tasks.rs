//! Calls of MCP servers that take their time: the run is parked, and the alarm has the server asked how far it is.

use std::rc::Rc;

use serde_json::{Value, json};

use super::INDETERMINATE;
use super::mcp::shop;
use super::waits::{decides, open};
use crate::contract::History;
use crate::host::mcp::{Gives, McpRequest, Server};
use crate::host::{Answer, SECOND_US};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![polled(), asking(), refusing(), stopped(Then::Rests), stopped(Then::IsTerminated)]
}

fn task(status: &str, more: Value) -> Gives {
    let mut task = json!({ "taskId": "task-1", "status": status, "ttlMs": null, "pollIntervalMs": 3000 });
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Gives::Only(task)
}

fn done(text: &str) -> Gives {
    task("completed", json!({ "result": { "content": [{ "type": "text", "text": text }] } }))
}

/// A server whose calls are tasks.
fn slow(tasks: impl Fn(&McpRequest, usize) -> Gives + 'static) -> Server {
    let server = Server::new(|call, _| {
        let capabilities = &call.params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(capabilities["extensions"], json!({ "io.modelcontextprotocol/tasks": {} }));
        Gives::Task("task-1")
    });
    Server { tasks: Rc::new(tasks), ..server }
}

/// The call is made once, whatever fails while its task is under way.
fn is_once(sim: &Sim, history: &History, text: &str) {
    let result = history.texts("tool")[0];
    let calls = sim.world.outside.mcp.of("tools/call").len();
    assert!(calls == 1 || calls == 0 && history.faults > 0, "{calls} calls");
    assert!(result == text && calls == 1 || history.faults > 0 && result == INDETERMINATE, "{result}");
    let kinds: Vec<String> = match sim.member.has_table("waits") {
        true => sim.member.database.ask("SELECT kind FROM waits WHERE kind = 'task'"),
        false => Vec::new(),
    };
    assert!(kinds.len() <= 1, "one wait, however often it is asked for");
}

fn polled() -> Scenario {
    shop("a task is asked for until it is done")
        .setup(|sim| {
            let server = slow(|asked, before| match before {
                _ if asked.method != "tasks/get" => unreachable!("nothing is answered or cancelled"),
                0 | 1 => task("working", json!({})),
                _ => done("slow and good"),
            });
            sim.world.outside.mcp.serve("shop", server);
        })
        .drive(|sim| async move {
            // Who waits for the run does so while the server works.
            let told = sim.ask("use work").await;
            assert_eq!((&told["status"], &told["outcome"]), (&json!("ok"), &json!("completed")), "{told}");
        })
        .check(|sim, history| is_once(sim, history, "slow and good"))
}

#[test]
fn a_task_is_begun_once_and_asked_for_until_it_is_done_whatever_fails() {
    polled().sweep();
}

/// Nobody holds a connection open for a task that takes long.
#[test]
fn who_waits_for_a_run_is_told_after_a_minute_that_a_task_goes_on() {
    shop("a task that takes long")
        .setup(|sim| {
            let long = |_: &McpRequest, before| match before {
                0..25 => task("working", json!({})),
                _ => done("late and good"),
            };
            sim.world.outside.mcp.serve("shop", slow(long));
        })
        .drive(|sim| async move {
            let (message, began) = (sim.send("use work").await, sim.world.now_us());
            let told = sim.outcome(&message).await;
            assert_eq!(told["outcome"], "parked", "{told}");
            assert_eq!(told["reason"], "waiting_for_task", "{told}");
            let waited = sim.world.now_us() - began;
            assert!((60 * SECOND_US..70 * SECOND_US).contains(&waited), "{waited}");
            assert_eq!(sim.outcome(&message).await["outcome"], "completed");
        })
        .check(|sim, history| is_once(sim, history, "late and good"))
        .once();
}

/// A task that wants to know something on its way.
fn asking() -> Scenario {
    shop("a task asks people")
        .setup(|sim| {
            let told = Rc::new(std::cell::Cell::new(false));
            let server = slow(move |asked, _| {
                let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
                let form = json!({ "method": "elicitation/create",
                    "params": { "message": "Who?", "requestedSchema": schema } });
                match asked.method.as_str() {
                    "tasks/update" => {
                        assert_eq!(asked.params["inputResponses"]["who"]["content"], json!({ "name": "Ann" }));
                        told.set(true);
                        Gives::Only(json!({}))
                    }
                    _ if told.get() => done("for Ann"),
                    _ => task("input_required", json!({ "inputRequests": { "who": form } })),
                }
            });
            sim.world.outside.mcp.serve("shop", server);
        })
        .drive(|sim| async move {
            sim.send("use work").await;
            sim.until("it is asked, or nobody knows", |sim| {
                let asked = sim.member.has_table("waits")
                    && sim.member.database.ask::<i64>("SELECT count(*) FROM waits WHERE open = 1 AND kind = 'elicitation'")
                        == [1];
                asked || sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE outcome IS NOT NULL") == [1]
            })
            .await;
            sim.world.pause(60 * SECOND_US).await;
            for wait in open(&sim).await.iter().filter(|wait| wait["kind"] == "elicitation") {
                decides(&sim, wait, json!({ "decision": "answer", "content": { "name": "Ann" } })).await;
            }
        })
        .check(|sim, history| is_once(sim, history, "for Ann"))
}

#[test]
fn a_task_that_asks_people_goes_on_with_their_answer() {
    asking().sweep();
}

/// A server that does not take an answer is not held to have it: it asks again, and people are asked again.
fn refusing() -> Scenario {
    shop("a task refuses an answer")
        .setup(|sim| {
            let taken = Rc::new(std::cell::Cell::new(false));
            let server = slow(move |asked, _| {
                let form = json!({ "method": "elicitation/create", "params": { "message": "Who?",
                    "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } } } });
                match asked.method.as_str() {
                    "tasks/update" if asked.params["inputResponses"]["who"]["content"]["name"] == "Ann" => {
                        Gives::Error(-32602, "Ann is unknown".into())
                    }
                    "tasks/update" => {
                        taken.set(true);
                        Gives::Only(json!({}))
                    }
                    _ if taken.get() => done("for Bob"),
                    _ => task("input_required", json!({ "inputRequests": { "who": form } })),
                }
            });
            sim.world.outside.mcp.serve("shop", server);
        })
        .drive(|sim| async move {
            sim.send("use work").await;
            for name in ["Ann", "Bob"] {
                sim.until("it is asked, or nobody knows", |sim| {
                    let asked = sim.member.has_table("waits")
                        && sim.member.database.ask::<i64>(
                            "SELECT count(*) FROM waits WHERE open = 1 AND kind = 'elicitation'",
                        ) == [1];
                    asked
                        || sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE outcome IS NOT NULL")
                            == [1]
                })
                .await;
                for wait in open(&sim).await.iter().filter(|wait| wait["kind"] == "elicitation") {
                    decides(&sim, wait, json!({ "decision": "answer", "content": { "name": name } })).await;
                }
                sim.world.pause(15 * SECOND_US).await;
            }
        })
        .check(|sim, history| {
            is_once(sim, history, "for Bob");
            if history.faults == 0 {
                assert_eq!(sim.world.outside.mcp.of("tasks/update").len(), 2);
            }
        })
}

#[test]
fn a_task_that_refuses_an_answer_asks_again() {
    refusing().sweep();
}

/// What becomes of the thread after the stop.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Rests,
    IsTerminated,
}

/// A stop cancels the task, also where the server fails at first, and the thread is terminated meanwhile.
fn stopped(then: Then) -> Scenario {
    shop(match then {
        Then::Rests => "stopped during a task",
        Then::IsTerminated => "stopped during a task, and terminated",
    })
    .setup(|sim| {
        let server = slow(|asked, before| match asked.method.as_str() {
            "tasks/cancel" if before == 0 => Gives::Raw(Answer::status(503, "")),
            "tasks/cancel" => Gives::Only(json!({})),
            _ => task("working", json!({})),
        });
        sim.world.outside.mcp.serve("shop", server);
    })
    .terms(|terms| terms.outcomes = vec!["stopped", "completed"])
    .drive(move |sim| async move {
        sim.send("use work").await;
        sim.until("the task is under way, or nobody knows", |sim| {
            let asked = sim.member.has_table("waits")
                && sim.member.database.ask::<i64>("SELECT count(*) FROM waits WHERE open = 1") == [1];
            asked
                || sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE outcome IS NOT NULL")
                    == [1]
        })
        .await;
        sim.stop().await;
        if then == Then::IsTerminated {
            sim.terminate().await;
        }
    })
    .check(|sim, history| {
        let mcp = &sim.world.outside.mcp;
        let calls = mcp.of("tools/call").len();
        assert!(calls == 1 || calls == 0 && history.faults > 0, "{calls} calls");
        let began = sim.member.has_table("waits");
        if began {
            assert!(mcp.of("tasks/cancel").len() >= 2, "it is tried again: {:?}", mcp.methods());
        } else {
            assert!(history.faults > 0);
        }
    })
}

#[test]
fn a_stop_cancels_the_task() {
    stopped(Then::Rests).sweep();
}

#[test]
fn a_stop_cancels_the_task_of_a_thread_that_is_terminated() {
    stopped(Then::IsTerminated).sweep();
}

/// How tasks end.
#[test]
fn tasks_end_in_results_by_the_rules() {
    type Case = (fn() -> Gives, &'static str, Option<&'static str>);
    let cases: [Case; 4] = [
        (
            || task("failed", json!({ "error": { "code": -32603, "message": "boom" } })),
            "error -32603: boom",
            Some("mcp_protocol"),
        ),
        (|| task("cancelled", json!({})), "cancelled", None),
        (|| task("asleep", json!({})), "asleep", Some("mcp_protocol")),
        (|| Gives::Error(-32602, "there is no such task".into()), "no such task", Some("mcp_protocol")),
    ];
    for (gives, text, code) in cases {
        shop("ends of tasks")
            .setup(move |sim| sim.world.outside.mcp.serve("shop", slow(move |_, _| gives())))
            .drive(|sim| async move {
                sim.send("use work").await;
            })
            .check(move |_, history| {
                let row = history.of("tool").next().unwrap();
                assert!(row["content"].as_str().unwrap().contains(text), "{row}");
                assert_eq!(row["metadata"]["error_code"].as_str(), code, "{row}");
            })
            .once();
    }
}

/// A server that is away for a while is asked again; one that stays away is given up.
#[test]
fn a_task_outlives_a_server_that_is_away() {
    for (away, text) in [(5, "back again"), (usize::MAX, "http 503")] {
        shop("away")
            .setup(move |sim| {
                let server = slow(move |_, before| match before < away {
                    true => Gives::Raw(Answer::status(503, "")),
                    false => done("back again"),
                });
                sim.world.outside.mcp.serve("shop", server);
            })
            .drive(|sim| async move {
                sim.send("use work").await;
            })
            .check(move |_, history| {
                assert!(history.texts("tool")[0].contains(text), "{:?}", history.texts("tool"))
            })
            .once();
    }
}
