//! What ends workers and keeps them from more: stops, terminations, code, the tools that they were not given; and workers of
//! workers.

use bobbin::definitions::message::ToolResult;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::workers::{aliases, count, handed_over, lead, results, spawn, team, wait};
use super::{heard, references, settled, states, tell};
use crate::host::outside::ModelRequest;
use crate::host::{Native, SECOND_US};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![stopped(), queued(), lost(), closed_by_code(), narrowed(), tree()]
}

/// Whether one wait is open.
fn waits_once(sim: &Sim) -> bool {
    let open = "SELECT count(*) FROM waits WHERE open = 1";
    sim.member.has_table("waits") && sim.member.database.ask::<i64>(open) == [1]
}

fn stopped() -> Scenario {
    team("a stop while workers are waited for")
        .terms(|terms| {
            terms.one_answer = false;
            terms.outcomes = vec!["completed", "stopped"];
            terms.more_requests = 2;
        })
        .drive(|sim| async move {
            let steps = json!([
                [spawn("call doze {\"n\":600}"), spawn("say quick.")],
                [wait(json!(["subagent.1", "subagent.2"]), "all")],
            ]);
            sim.send(&lead(steps)).await;
            sim.until("a wait", waits_once).await;
            sim.world.pause(3 * SECOND_US).await;
            sim.stop().await;
            settled(&sim, SECOND_US / 20).await;
            // It goes on with them.
            let steps = json!([
                [["agent_send", { "agentId": "subagent.1", "message": "say again." }]],
                [["agent_wait", { "agentIds": ["subagent.1", "subagent.2"], "timeoutSeconds": 0 }]],
            ]);
            tell(&sim, &lead(steps)).await;
        })
        .check(|sim, history| {
            let told = handed_over(history);
            assert_eq!((count(&told, "again."), count(&told, "quick.")), (1, 1), "{told}");
            let states: Vec<String> = sim.member.database.ask("SELECT kind || ' ' || state FROM waits");
            if history.faults == 0 {
                assert_eq!(states, ["children cancelled"]);
            }
            assert_eq!(results(history).last().unwrap()["pending"], json!([]));
        })
}

fn queued() -> Scenario {
    team("a worker that is written to while it works")
        .terms(|terms| {
            terms.one_answer = false;
            terms.more_requests = 2;
        })
        .drive(|sim| async move {
            let made = json!(["agent_spawn", { "agent": "twin", "agentId": "ann", "message": "say first." }]);
            let steps = json!([
                [made.clone(), made],
                [["nap", {}]],
                [["agent_send", { "agentId": "ann", "message": "call doze {\"n\":9}", "wait": false }]],
                [["agent_send", { "agentId": "ann", "message": "too early" }]],
                [["agent_send", { "agentId": "ann", "message": "say second.", "queue": true }]],
            ]);
            tell(&sim, &lead(steps)).await;
        })
        .check(|sim, history| {
            let got = results(history);
            assert_eq!(got[1], json!({ "agentId": "ann", "status": "exists" }));
            if history.faults == 0 {
                let busy = history.of("tool").nth(4).unwrap();
                assert_eq!(busy["metadata"]["error_code"], "subagent_busy", "{busy}");
                assert_eq!(got[3], json!({ "agentId": "ann", "status": "working" }));
            }
            let told = handed_over(history);
            assert_eq!((count(&told, "first."), count(&told, "\"second.\"")), (1, 1), "{told}");
            assert_eq!((aliases(sim), states(sim)), (vec!["ann".to_owned()], vec!["live idle".to_owned()]));
        })
}

/// A worker's thread is terminated, and another one's deleted, while both are waited for.
fn lost() -> Scenario {
    team("workers that are lost while they are waited for")
        .drive(|sim| async move {
            let steps = json!([
                [spawn("call doze {\"n\":600}"), spawn("call doze {\"n\":600}")],
                [wait(json!(["subagent.1", "subagent.2"]), "all")],
            ]);
            sim.send(&lead(steps)).await;
            sim.until("a wait", waits_once).await;
            sim.world.pause(3 * SECOND_US).await;
            let references = references(&sim);
            sim.of(&references[0]).terminate().await;
            sim.of(&references[1]).insist(ThreadRoute::Delete, &[], None, String::new()).await;
            settled(&sim, SECOND_US / 20).await;
        })
        .check(|sim, history| {
            let got = results(history);
            let outcomes = got[2]["outcomes"].as_array().unwrap();
            assert!(outcomes.iter().all(|one| one["status"] == "terminated"), "{outcomes:?}");
            assert_eq!(outcomes.len(), 2);
            assert!(heard(history).is_empty(), "{:?}", heard(history));
            assert!(states(sim).iter().all(|state| state.starts_with("terminated")), "{:?}", states(sim));
        })
}

/// An effect ends a worker that the run waits for.
fn closed_by_code() -> Scenario {
    team("a worker that code closes while it is waited for")
        .define(|catalog| {
            catalog["effects"]["end"] = json!({ "description": "Ends.", "run": { "native": "end" } });
        })
        .setup(|sim| {
            sim.world.outside.effect("end", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    let waits = json!({ "agentIds": ["subagent.1"], "timeoutSeconds": 9 });
                    let waited = state.invoke_tool("agent.wait", waits).await.map(|result| result.error_code);
                    match state.invoke_tool("agent.close", json!({ "agentId": "subagent.1" })).await {
                        Ok(_) => ToolResult::success(format!("{waited:?}")),
                        Err(error) => ToolResult::error(error.into_message()),
                    }
                }))
            });
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Acts(Box::new(move || {
                    match state.schedule_effect(bobbin::engine::NewEffect::once("end", json!({}), 3_000)) {
                        Ok(_) => ToolResult::success("later"),
                        Err(error) => ToolResult::error(error.to_string()),
                    }
                }))
            });
        })
        .drive(|sim| async move {
            let steps = json!([
                [spawn("call doze {\"n\":60}")],
                [["work", {}]],
                [wait(json!(["subagent.1"]), "all")],
            ]);
            tell(&sim, &lead(steps)).await;
        })
        .check(|_, history| {
            let got = results(history);
            let closed = json!({ "agentId": "subagent.1", "status": "closed", "text": "", "attachments": [], "run": null });
            if history.faults == 0 {
                assert_eq!(got[2]["outcomes"], json!([closed]));
            }
            assert_eq!(got[2]["pending"], json!([]));
        })
}

/// A worker that may call `doze` alone: its model does, and its code tries others.
fn narrowed() -> Scenario {
    team("a worker with a part of its agent's tools")
        .setup(|sim| {
            sim.world.outside.native("doze", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    let invoked = state.invoke_tool("work", json!({})).await.map(|result| result.text());
                    let queued = state.queue_tool("work", json!({})).map_err(|error| error.into_message());
                    ToolResult::success(format!("invoked: {invoked:?}, queued: {queued:?}"))
                }))
            });
        })
        .drive(|sim| async move {
            let made = |tools: Value, message: &str| {
                json!(["agent_spawn", { "agent": "digger", "tools": tools, "message": message }])
            };
            let both = r#"all [["work",{}],["doze",{}]]"#;
            let steps = json!([
                [made(json!(["hammer"]), "say no.")],
                [made(json!(["doze"]), both)],
                [wait(json!(["subagent.1"]), "all")],
            ]);
            tell(&sim, &lead(steps)).await;
        })
        .check(|sim, history| {
            let wrong = history.of("tool").next().unwrap();
            assert_eq!(wrong["metadata"]["error_code"], "subagent_invalid_input", "{wrong}");
            let runs = sim.world.outside.executions.borrow();
            assert!(runs.iter().all(|execution| execution.name != "work"), "it ran");
            let child = history.family.values().next().unwrap();
            let results = child.texts("tool");
            assert!(results[0].contains("not among the tools that this subagent was given"), "{results:?}");
            let refused = results[1].matches("not among the tools").count();
            assert_eq!(refused, 2, "{results:?}");
            let offered: Vec<Vec<String>> = sim.world.outside.requests.borrow().iter()
                .filter(|request| request.thread != sim.member.id)
                .map(names)
                .collect();
            assert!(offered.iter().all(|names| names == &["doze"]), "{offered:?}");
            let reference = references(sim).remove(0);
            let snapshots: Vec<String> =
                sim.of(&reference).member.database.ask("SELECT data FROM logs WHERE kind = 'snapshot'");
            let snapshot: Value = serde_json::from_str(&snapshots[0]).unwrap();
            assert_eq!(snapshot["tools"], json!(["doze"]), "{snapshot}");
        })
}

/// The tools that a request offers.
fn names(request: &ModelRequest) -> Vec<String> {
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// One leads four, each of which leads two.
fn tree() -> Scenario {
    team("workers that lead workers")
        .define(|catalog| {
            catalog["prompts"]["p"]["subagents"] = json!({ "agents": ["chief"], "canSpawn": true });
            catalog["prompts"]["chief"] = json!({ "toolDescription": "Leads.", "prompt": "You lead.", "model": "m",
                "includeChat": true, "includePastTools": true, "tools": [],
                "subagents": { "agents": ["digger"], "idPrefix": "leaf" } });
            catalog["agents"]["chief"] = json!({ "sideA": { "prompt": "chief" }, "description": "Leads." });
        })
        .drive(|sim| async move {
            let chief = |n: i64| {
                let steps = json!([
                    [spawn(&format!("say leaf {n}.")), spawn(&format!("say leaf {n}0."))],
                    [wait(json!(["leaf.1", "leaf.2"]), "all")],
                ]);
                json!(["agent_spawn", { "agent": "chief", "message": lead(steps) }])
            };
            let ids = json!(["subagent.1", "subagent.2", "subagent.3", "subagent.4"]);
            let steps = json!([[chief(1), chief(2), chief(3), chief(4)], [wait(ids, "all")]]);
            tell(&sim, &lead(steps)).await;
        })
        .check(|sim, history| {
            assert_eq!(sim.family().len(), 13);
            let told = handed_over(history);
            for n in [1, 2, 3, 4, 10, 20, 30, 40] {
                assert_eq!(count(&told, &format!("leaf {n}.")), 1, "leaf {n}: {told}");
            }
            assert!(heard(history).is_empty());
        })
}

#[test]
fn a_stop_ends_the_wait_for_workers() {
    stopped().sampled(300).sweep();
}

#[test]
fn no_outcome_of_a_worker_makes_way_for_the_next() {
    queued().sampled(250).sweep();
}

#[test]
fn workers_that_are_lost_are_not_waited_for() {
    lost().sampled(300).sweep();
}

#[test]
fn a_worker_that_code_closes_is_not_waited_for() {
    closed_by_code().sampled(200).sweep();
}

#[test]
fn a_worker_calls_no_tool_that_it_was_not_given() {
    narrowed().sampled(200).sweep();
}

#[test]
fn workers_lead_workers_only_where_they_may() {
    let offered = |may: bool| {
        let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let place = seen.clone();
        tree()
            .define(move |catalog| catalog["prompts"]["p"]["subagents"]["canSpawn"] = json!(may))
            .drive(|sim| async move {
                let steps = json!([
                    [["agent_spawn", { "agent": "chief", "message": "say done." }]],
                    [wait(json!(["subagent.1"]), "all")],
                ]);
                tell(&sim, &lead(steps)).await;
            })
            .check(move |sim, _| {
                let requests = sim.world.outside.requests.borrow();
                let of_child = requests.iter().find(|request| request.thread != sim.member.id).unwrap();
                *place.borrow_mut() = names(of_child);
            })
            .once();
        seen.take()
    };
    assert_eq!(offered(true), ["agent_spawn", "agent_send", "agent_wait", "agent_close"]);
    assert!(offered(false).is_empty());
}

#[test]
fn clients_are_told_of_workers() {
    team("frames of workers")
        .drive(|sim| async move {
            let filter = bobbin::host::Filter { events: true, ..Default::default() };
            let listener = sim.listen(filter, None).await.unwrap();
            let steps = json!([
                [spawn("say first.")],
                [wait(json!(["subagent.1"]), "all")],
                [["agent_close", { "agentId": "subagent.1" }]],
            ]);
            tell(&sim, &lead(steps)).await;
            let frames = listener.frames.borrow();
            let told: Vec<(Value, Value)> = frames
                .iter()
                .filter(|frame| frame.kind == "subagent")
                .map(|frame| (frame.data["event"].clone(), frame.data["agentId"].clone()))
                .collect();
            let id = json!("subagent.1");
            let expected = [
                ("selected", json!(null)),
                ("started", id.clone()),
                ("completed", id.clone()),
                ("closed", id),
            ];
            assert_eq!(told, expected.map(|(event, id)| (json!(event), id)));
        })
        .once();
}

#[test]
fn every_outcome_in_a_tree_of_workers_is_handed_over_once() {
    tree().sampled(200).sweep();
}

#[test]
fn a_worker_calls_no_reader_that_it_was_not_given_beside_one_that_it_was() {
    team("a worker with one of two readers")
        .define(|catalog| {
            for name in ["doze", "work"] {
                catalog["tools"][name]["tier"] = json!("read_only");
                catalog["tools"][name]["idempotent"] = json!(true);
            }
            catalog["prompts"]["digger"]["parallelToolCalls"] = json!(true);
            catalog["prompts"]["digger"]["parallelReadOnly"] = json!(true);
        })
        .drive(|sim| async move {
            let both = r#"all [["doze",{"n":1}],["work",{}],["doze",{"n":2}]]"#;
            let made = json!(["agent_spawn", { "agent": "digger", "tools": ["doze"], "message": both }]);
            tell(&sim, &lead(json!([[made], [wait(json!(["subagent.1"]), "all")]]))).await;
        })
        .check(|sim, history| {
            let runs = sim.world.outside.executions.borrow();
            assert!(runs.iter().all(|execution| execution.name != "work"), "it ran");
            let results = history.family.values().next().unwrap().texts("tool");
            assert!(results[1].contains("not among the tools that this subagent was given"), "{results:?}");
        })
        .once();
}
