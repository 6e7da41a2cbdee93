//! A run whose budget is used up asks: what people decide, and what follows once, whatever fails.

use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::spending::{asked, ledgers, long, paid, reasons, weighed};
use super::waits::{decide, decides, open, until_open};
use crate::host::{SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![extended(), denied(), finishing(), left_alone(), stopped(), raised(), of_the_thread()]
}

/// A model that works four times, each time with a long history, of which a limit of 0.07 pays for two.
fn asking(name: &'static str, budget: Value) -> Scenario {
    let mut all = json!({ "run": { "maxCostUsd": 0.07 } });
    all.as_object_mut().unwrap().extend(budget.as_object().unwrap().clone());
    paid(name, all).says(|request| {
        let say = match request.results().len() {
            _ if request.body["tools"].is_null() => Say::text("That is all that I know."),
            4.. => Say::text("done"),
            n => Say::call("work", &json!({ "n": n })),
        };
        weighed(request, say)
    })
}

/// Decides whatever is asked, until the newest run has ended.
async fn until_ended(sim: &Sim, decision: Value) {
    for _ in 0..2_000 {
        if let Some(wait) = open(sim).await.first() {
            decide(sim, wait, decision.clone()).await;
        }
        let runs = sim.get(ThreadRoute::ListRuns, &[]).await;
        if !runs["runs"][0]["outcome"].is_null() && runs["runs"][0]["outcome"] != "parked" {
            return;
        }
        sim.world.pause(SECOND_US / 4).await;
    }
    panic!("the run has not ended: {:?}", open(sim).await);
}

fn budget_events(sim: &Sim) -> Vec<String> {
    let looking = sim.clone();
    let logs = sim.world.drive(async move { looking.get(ThreadRoute::ListLogs, &[("limit", "100")]).await });
    let logs = logs["logs"].as_array().unwrap();
    let of_budgets = logs.iter().filter(|row| row["type"] == "budget");
    of_budgets
        .filter_map(|row| row["data"]["event"].as_str().or(row["event"].as_str()).map(str::to_owned))
        .collect()
}

/// What the trace of the first run tells of its budget.
fn told_in_trace(sim: &Sim) -> Vec<String> {
    let looking = sim.clone();
    let route = ThreadRoute::GetRun("r_1".into());
    let run = sim.world.drive(async move { looking.get(route, &[("trace", "1")]).await });
    let trace = run["trace"].as_array().unwrap();
    let kinds = trace.iter().filter_map(|entry| entry["kind"].as_str());
    kinds.filter(|kind| kind.starts_with("budget.")).map(str::to_owned).collect()
}

fn extended() -> Scenario {
    asking("a budget that is extended", json!({}))
        .drive(|sim| async move {
            let sent = sim.send(&long("go on")).await;
            let waits = until_open(&sim, 1).await;
            let budget = &waits[0]["budget"];
            assert_eq!((&waits[0]["kind"], &waits[0]["by"]), (&json!("budget"), &json!("owner")));
            assert_eq!((&budget["unit"], &budget["limit"]), (&json!("costUsd"), &json!(0.07)), "{budget}");
            let outcome = sim.outcome(&sent).await;
            assert_eq!(
                (&outcome["outcome"], &outcome["reason"], &outcome["pauseKind"]),
                (&json!("parked"), &json!("waiting_for_budget"), &json!("human"))
            );
            let needed = budget["needed"].as_f64().unwrap();
            for (add, field) in [
                (json!({}), "add.maxCostUsd"),
                (json!({ "maxCostUsd": needed / 2.0 }), "add.maxCostUsd"),
                (json!({ "maxCostUsd": 0.1, "maxTokens": 5 }), "add.maxTokens"),
                (json!({ "maxCost": 1 }), "add"),
            ] {
                let refused = decide(&sim, &waits[0], json!({ "decision": "extend", "add": add })).await;
                assert_eq!(
                    (refused.status, &refused.body["error"]["field"]),
                    (400, &json!(field)),
                    "{}",
                    refused.body
                );
            }
            sim.world.pause(3_600 * SECOND_US).await;
            let add = json!({ "maxCostUsd": needed + 0.01 });
            decides(&sim, &waits[0], json!({ "decision": "extend", "add": add, "actor": "Ann" })).await;
            until_ended(&sim, json!({ "decision": "extend", "add": { "maxCostUsd": 0.3 } })).await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["done"]);
            assert_eq!(reasons(history), ["stop_on_response"]);
            let ledger = &ledgers(sim)[0];
            assert!(ledger["s"][0].as_i64() <= ledger["l"][0].as_i64(), "{ledger}");
            assert!(
                ledger["s"][5].as_i64().unwrap() < 3_000 * SECOND_US,
                "parked time is not counted: {ledger}"
            );
            if history.faults == 0 {
                assert_eq!(asked(sim), 5, "no attempt was made for nothing");
                let events = budget_events(sim);
                assert!(
                    events.len() >= 4 && events.len().is_multiple_of(2),
                    "asked and extended each time: {events:?}"
                );
                let told = told_in_trace(sim);
                let expected: Vec<String> =
                    events.iter().rev().map(|event| format!("budget.{event}")).collect();
                assert_eq!(told, expected);
            }
        })
}

#[test]
fn a_budget_that_is_extended_lets_the_run_go_on() {
    extended().sweep();
}

fn denied() -> Scenario {
    asking("a budget that is not extended", json!({}))
        .terms(|terms| terms.outcomes = vec!["failed"])
        .drive(|sim| async move {
            sim.send(&long("go on")).await;
            let waits = until_open(&sim, 1).await;
            decides(&sim, &waits[0], json!({ "decision": "deny" })).await;
        })
        .check(|sim, history| {
            assert_eq!(reasons(history), ["budget_exceeded"]);
            let replies = history.of("assistant").count();
            assert!(
                replies == 2 || history.faults > 0 && replies < 2,
                "what was paid for is kept: {replies}"
            );
            assert!(asked(sim) <= 2 + history.faults);
        })
}

#[test]
fn a_budget_that_is_not_extended_fails_the_run() {
    denied().sweep();
}

fn finishing() -> Scenario {
    asking("a run that is to finish", json!({}))
        .drive(|sim| async move {
            sim.send(&long("go on")).await;
            let waits = until_open(&sim, 1).await;
            decides(&sim, &waits[0], json!({ "decision": "finish" })).await;
        })
        .check(|sim, history| {
            assert_eq!(reasons(history), ["budget_finished"]);
            assert_eq!(history.answers(), ["That is all that I know."]);
            let requests = sim.world.outside.requests.borrow();
            assert!(requests.last().unwrap().body["tools"].is_null());
        })
}

#[test]
fn a_run_that_is_to_finish_has_one_last_step() {
    finishing().sweep();
}

fn left_alone() -> Scenario {
    asking("nobody decides on a budget", json!({ "askExpiresAfterSeconds": 60, "onExpiry": "finish" }))
        .drive(|sim| async move {
            sim.send(&long("go on")).await;
            until_open(&sim, 1).await;
            sim.world.pause(70 * SECOND_US).await;
        })
        .check(|_, history| {
            assert_eq!(reasons(history), ["budget_finished"]);
            assert_eq!(history.answers(), ["That is all that I know."]);
        })
}

#[test]
fn a_budget_that_nobody_decides_on_ends_by_itself() {
    left_alone().sweep();
    asking("nobody decides on a budget", json!({ "askExpiresAfterSeconds": 60 }))
        .terms(|terms| terms.outcomes = vec!["failed"])
        .drive(|sim| async move {
            sim.send(&long("go on")).await;
            until_open(&sim, 1).await;
            sim.world.pause(70 * SECOND_US).await;
        })
        .check(|_, history| {
            assert_eq!(reasons(history), ["budget_exceeded"]);
            let status = history.statuses("run_failed")[0]["content"].as_str().unwrap().to_owned();
            assert!(status.contains("Nobody answered within 60 seconds."), "{status}");
        })
        .sampled(40)
        .sweep();
}

fn stopped() -> Scenario {
    asking("a stop while a budget is asked about", json!({}))
        .terms(|terms| terms.outcomes = vec!["stopped"])
        .drive(|sim| async move {
            sim.send(&long("go on")).await;
            let waits = until_open(&sim, 1).await;
            sim.stop().await;
            until_open(&sim, 0).await;
            let route = ThreadRoute::GetWait(waits[0]["id"].as_str().unwrap().to_owned());
            assert_eq!(sim.get(route, &[]).await["wait"]["state"], "cancelled");
        })
        .check(|sim, history| assert!(asked(sim) <= 2 + history.faults))
}

#[test]
fn a_stop_closes_the_question_about_a_budget() {
    stopped().sweep();
}

/// Who raises the limit has decided, too.
fn raised() -> Scenario {
    asking("a limit that is raised", json!({}))
        .drive(|sim| async move {
            sim.send(&long("go on")).await;
            until_open(&sim, 1).await;
            let body = json!({ "run": { "maxCostUsd": 1 } }).to_string();
            let seen = sim.insist(ThreadRoute::PatchBudget, &[], None, body).await;
            assert_eq!(
                (seen.status, &seen.body["limits"]["run"]["maxCostUsd"]),
                (200, &json!(1.0)),
                "{}",
                seen.body
            );
            assert_eq!(open(&sim).await, Vec::<Value>::new());
            until_ended(&sim, json!({ "decision": "deny" })).await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["done"]);
            assert!(asked(sim) <= 5 + history.faults);
        })
}

#[test]
fn a_limit_that_is_raised_lets_a_run_go_on_that_has_asked() {
    raised().sweep();
}

/// What people decide about the thread holds for its later runs.
fn of_the_thread() -> Scenario {
    asking("a thread whose budget is extended", json!({ "run": {}, "thread": { "maxCostUsd": 0.07 } }))
        .drive(|sim| async move {
            sim.send(&long("go on")).await;
            let waits = until_open(&sim, 1).await;
            assert_eq!(waits[0]["budget"]["scope"], "thread");
            decides(&sim, &waits[0], json!({ "decision": "extend", "add": { "maxCostUsd": 2 } })).await;
            until_ended(&sim, json!({ "decision": "deny" })).await;
            let outcome = sim.ask("and more").await;
            assert_eq!(outcome["reason"], "stop_on_response", "{outcome}");
        })
        .check(|sim, _| {
            let found = ledgers(sim);
            let limit = found[1]["h"][0].as_i64().unwrap();
            assert!(limit > 2_000_000 && found[0]["h"][0].as_i64() == Some(limit), "{found:?}");
        })
}

#[test]
fn what_is_decided_about_a_thread_holds_for_its_later_runs() {
    of_the_thread().sweep();
}

#[test]
fn nobody_raises_a_limit_above_the_ceiling() {
    asking("a ceiling", json!({}))
        .define(|catalog| {
            catalog["settings"] = json!({ "budget": { "ceiling": { "run": { "maxCostUsd": 0.2 } } } });
        })
        .terms(|terms| terms.outcomes = vec!["failed"])
        .drive(|sim| async move {
            sim.send(&long("go on")).await;
            let waits = until_open(&sim, 1).await;
            let refused =
                decide(&sim, &waits[0], json!({ "decision": "extend", "add": { "maxCostUsd": 0.2 } })).await;
            assert_eq!(
                (refused.status, &refused.body["error"]["code"]),
                (403, &json!("forbidden")),
                "{}",
                refused.body
            );
            let body = json!({ "run": { "maxCostUsd": 0.3 } }).to_string();
            let refused = sim.insist(ThreadRoute::PatchBudget, &[], None, body).await;
            assert_eq!((refused.status, &refused.body["error"]["field"]), (403, &json!("run.maxCostUsd")));
            decides(&sim, &waits[0], json!({ "decision": "deny" })).await;
        })
        .once();
}

#[test]
fn a_thread_and_a_message_only_tighten() {
    let born = json!({ "agent_id": "helper", "budget": { "thread": { "maxTokens": 9_000 } } });
    asking("a message with a budget", json!({ "onExceeded": "fail" }))
        .setup(move |sim| *sim.born.borrow_mut() = born.clone())
        .terms(|terms| terms.outcomes = vec!["completed", "failed"])
        .drive(|sim| async move {
            let wide = json!({ "run": { "maxCostUsd": 100, "maxModelCalls": 1 }, "thread": { "maxTokens": 1_000_000 } });
            let sent = sim.post(json!({ "role": "user", "content": "go on", "budget": wide })).await;
            assert_eq!(sent.status, 202, "{}", sent.body);
            until_ended(&sim, json!({ "decision": "deny" })).await;
            let shown = sim.get(ThreadRoute::GetBudget, &[]).await;
            assert_eq!(
                shown["limits"],
                json!({ "run": { "maxCostUsd": 0.07, "maxModelCalls": 1 }, "thread": { "maxTokens": 9_000 } })
            );
            assert_eq!((&shown["spent"]["run"]["modelCalls"], &shown["spent"]["run"]["toolCalls"]), (&json!(1), &json!(1)));
            assert!(shown["left"]["tokens"].as_i64().unwrap() < 9_000, "{shown}");
            for (budget, field) in [
                (json!({ "run": { "maxCostUsd": -1 } }), "budget.run.maxCostUsd"),
                (json!({ "ceiling": {} }), "budget.ceiling"),
                (json!({ "run": { "most": 1 } }), "budget"),
            ] {
                let refused = sim.post(json!({ "role": "user", "content": "x", "budget": budget })).await;
                assert_eq!((refused.status, &refused.body["error"]["field"]), (400, &json!(field)), "{}", refused.body);
            }
        })
        .once();
}

#[test]
fn a_cost_is_not_limited_where_a_model_has_no_price() {
    super::story("no price")
        .drive(|sim| async move {
            let budget = json!({ "run": { "maxCostUsd": 1 } });
            let refused = sim.post(json!({ "role": "user", "content": "x", "budget": budget })).await;
            assert_eq!(
                (refused.status, &refused.body["error"]["field"]),
                (400, &json!("budget.run.maxCostUsd")),
                "{}",
                refused.body
            );
            let body = json!({ "thread": { "maxCostUsd": 1 } }).to_string();
            let refused = sim.insist(ThreadRoute::PatchBudget, &[], None, body).await;
            assert_eq!(refused.status, 400, "{}", refused.body);
            sim.ask("hello").await;
        })
        .once();
}
