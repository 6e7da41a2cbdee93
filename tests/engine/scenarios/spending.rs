//! Budgets: what a run may use is looked at before each attempt, what was used is booked whatever fails, and what follows when a
//! limit is reached follows once.

use bobbin::host::Filter;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::{clerk, story};
use crate::contract::History;
use crate::host::outside::ModelRequest;
use crate::host::{Answer, SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![
        within(),
        failing(),
        finishing(),
        calls_used_up(),
        read_at_once(),
        of_the_thread(),
        inner(),
        broken_streams(),
    ]
}

/// What the server counts: about as many tokens as there really are, so that an estimate can be held against it.
pub(super) fn counted(request: &ModelRequest, say: Say) -> Say {
    say.using(request.text.len() as u64 / 5, 5)
}

/// The same where the text of requests is made of digits: a little less than what they are estimated at.
pub(super) fn weighed(request: &ModelRequest, say: Say) -> Say {
    say.using(request.text.len() as u64 * 10 / 35, 5)
}

/// The clerk with prices, and answers that are not long.
pub(super) fn paid(name: &'static str, budget: Value) -> Scenario {
    story(name).says(|request| weighed(request, clerk(request))).define(move |catalog| {
        let model = &mut catalog["models"]["m"];
        model["inputPrice"] = json!(10);
        model["outputPrice"] = json!(20);
        model["capabilities"] = json!({ "maxOutputTokens": 300 });
        catalog["agents"]["helper"]["budget"] = budget;
    })
}

/// Requests that reached the model.
pub(super) fn asked(sim: &Sim) -> usize {
    sim.world.outside.requests.borrow().len()
}

/// The ledgers of all runs, oldest first.
pub(super) fn ledgers(sim: &Sim) -> Vec<Value> {
    let rows: Vec<String> =
        sim.member.database.ask("SELECT budget FROM runs WHERE budget IS NOT NULL ORDER BY id");
    rows.iter().map(|row| serde_json::from_str(row).unwrap()).collect()
}

pub(super) fn reasons(history: &History) -> Vec<&str> {
    history.outcomes.values().filter_map(|outcome| outcome["reason"].as_str()).collect()
}

fn within() -> Scenario {
    paid("a run that stays within its limits", json!({ "run": { "maxCostUsd": 1, "maxTokens": 100_000, "maxModelCalls": 40, "maxSteps": 40, "maxToolCalls": 9, "maxSeconds": 900 }, "thread": { "maxCostUsd": 5 } }))
        .drive(|sim| async move {
            sim.ask("loop 2").await;
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            assert!(reasons(history).iter().all(|reason| *reason == "stop_on_response"));
            let found = ledgers(sim);
            let [first, second] = &found[..] else { panic!("{found:?}") };
            assert_eq!(second["t"][1], first["s"][1], "the second run knows what the first has used");
            assert_eq!((&second["t"][3], &first["s"][4]), (&json!(3), &json!(2)), "{first} {second}");
            let least = if history.faults == 0 { 2 } else { 1 };
            let active_us = first["s"][5].as_i64().unwrap();
            assert!(active_us >= least * SECOND_US, "calls of a second each, of which a crash loses one: {first}");
            if history.faults == 0 {
                let given: u64 = sim.world.outside.given.borrow().iter().map(|given| given.input + given.output).sum();
                let booked: i64 = found.iter().map(|ledger| ledger["s"][1].as_i64().unwrap()).sum();
                assert_eq!(booked, given as i64, "what is reported is booked, to the token");
                assert_eq!(first["s"][2], 3);
            }
        })
}

#[test]
fn what_attempts_have_used_is_booked_whatever_fails() {
    within().sweep();
}

/// Each step has so long a history that its input is what costs.
pub(super) fn long(text: &str) -> String {
    format!("{text} {}", "7".repeat(9_000))
}

fn failing() -> Scenario {
    paid("a run whose budget is used up", json!({ "run": { "maxCostUsd": 0.07 }, "onExceeded": "fail" }))
        .says(|request| weighed(request, Say::call("work", &json!({ "n": request.results().len() }))))
        .terms(|terms| terms.outcomes = vec!["failed"])
        .drive(|sim| async move {
            sim.ask(&long("go on")).await;
        })
        .check(|sim, history| {
            assert_eq!(reasons(history), ["budget_exceeded"]);
            let status = history.statuses("run_failed")[0]["content"].as_str().unwrap().to_owned();
            assert!(status.contains("maxCostUsd is 0.07"), "{status}");
            let replies = history.of("assistant").count();
            assert!(
                replies == 2 || history.faults > 0 && replies <= 2,
                "{replies} replies that were paid for"
            );
            let ledger = &ledgers(sim)[0];
            // What was lost counts a quarter more than its estimate.
            let most = if history.faults == 0 { 70_000 } else { 80_000 };
            assert!(ledger["s"][0].as_i64().unwrap() <= most, "{ledger}");
        })
}

#[test]
fn a_run_whose_budget_is_used_up_fails_before_the_attempt_that_it_could_not_pay() {
    failing().sweep();
}

fn finishing() -> Scenario {
    paid(
        "a run that finishes by itself",
        json!({ "run": { "maxTokens": 9_000 }, "onExceeded": "finish", "finishReserveTokens": 300 }),
    )
    .says(|request| {
        let say = match request.body["tools"].is_null() {
            true => Say::text("That is all that I know."),
            false => Say::call("work", &json!({ "n": request.results().len() })),
        };
        weighed(request, say)
    })
    .drive(|sim| async move {
        sim.ask(&long("go on")[..4_000]).await;
    })
    .terms(|terms| terms.outcomes = vec!["completed", "failed"])
    .check(|sim, history| {
        let used: i64 = ledgers(sim)[0]["s"][1].as_i64().unwrap();
        assert!(used <= 9_000, "{used}");
        if history.faults > 0 && reasons(history) == ["budget_exceeded"] {
            // The last attempt was lost, and with it what was kept back.
            return;
        }
        assert_eq!(reasons(history), ["budget_finished"]);
        assert_eq!(history.answers(), ["That is all that I know."]);
        let requests = sim.world.outside.requests.borrow();
        let last = requests.last().unwrap();
        assert!(last.body["tools"].is_null(), "{}", last.body);
        assert!(last.texts("system").last().unwrap().starts_with("The budget of this run is used up."));
    })
}

#[test]
fn a_run_that_finishes_has_one_last_step_without_tools() {
    finishing().sweep();
}

fn calls_used_up() -> Scenario {
    paid("calls beyond the limit", json!({ "run": { "maxToolCalls": 2 }, "onExceeded": "fail" }))
        .terms(|terms| terms.outcomes = vec!["failed"])
        .drive(|sim| async move {
            sim.ask("use work,work,work,work").await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert_eq!(results[2..], ["Not run: the budget of tool calls is used up."; 2], "{results:?}");
            let refused: Vec<&Value> = history.of("tool").skip(2).collect();
            assert_eq!(refused[0]["metadata"]["error_code"], "budget_exceeded", "{refused:?}");
            assert_eq!(reasons(history), ["budget_exceeded"]);
            let ran = sim.world.outside.executions.borrow().len();
            assert!(ran == 2 || history.faults > 0 && ran < 2, "{ran}");
            let models = asked(sim);
            assert!(models == 1 || history.faults > 0, "the next step asks: {models}");
        })
}

#[test]
fn calls_beyond_the_limit_are_answered_and_the_next_step_is_not_made() {
    calls_used_up().sweep();
}

/// Calls that are made at the same time are counted before they begin; those that are too many take their turns.
fn read_at_once() -> Scenario {
    paid(
        "calls at the same time beyond the limit",
        json!({ "run": { "maxToolCalls": 3 }, "onExceeded": "fail" }),
    )
    .define(|catalog| {
        catalog["prompts"]["p"]["parallelToolCalls"] = json!(true);
        catalog["prompts"]["p"]["parallelReadOnly"] = json!(true);
        catalog["tools"]["work"]["tier"] = json!("read_only");
    })
    .terms(|terms| terms.outcomes = vec!["failed"])
    .drive(|sim| async move {
        sim.ask("use work,work,work,work,work").await;
    })
    .check(|sim, history| {
        let results = history.texts("tool");
        assert_eq!(results[3..], ["Not run: the budget of tool calls is used up."; 2], "{results:?}");
        assert_eq!(reasons(history), ["budget_exceeded"]);
        let ran = sim.world.outside.executions.borrow().len();
        assert!(ran == 3 || history.faults > 0, "{ran}");
    })
}

#[test]
fn calls_at_the_same_time_are_counted_before_they_begin() {
    read_at_once().sweep();
}

fn of_the_thread() -> Scenario {
    paid(
        "a thread whose budget is used up",
        json!({ "thread": { "maxTokens": 3_000 }, "onExceeded": "fail" }),
    )
    .terms(|terms| {
        terms.outcomes = vec!["completed", "failed"];
        terms.one_answer = false;
    })
    .drive(|sim| async move {
        for text in ["one", "two", "three"] {
            sim.ask(&long(text)[..3_000]).await;
        }
    })
    .check(|sim, history| {
        let found = ledgers(sim);
        let last = found.last().unwrap();
        let used = |of: &Value| of[1].as_i64().unwrap();
        assert!(used(&last["t"]) + used(&last["s"]) <= 3_000, "{last}");
        assert!(reasons(history).contains(&"budget_exceeded"));
    })
}

#[test]
fn the_limits_of_a_thread_hold_for_all_of_its_runs_together() {
    of_the_thread().sweep();
}

fn inner() -> Scenario {
    paid("a prompt that is called", json!({ "run": { "maxModelCalls": 2 }, "onExceeded": "fail" }))
        .define(|catalog| {
            catalog["prompts"]["ask"] = json!({ "toolDescription": "Asks.", "prompt": "You are asked.", "model": "m",
                "requiredSchema": { "type": "object", "properties": {} } });
            catalog["prompts"]["p"]["tools"] = json!(["work", "ask"]);
        })
        .says(|request| {
            let say = match request.system().starts_with("You are asked") {
                true => Say::text("so it is"),
                false => Say::default().and_call("ask", "{}").and_call("ask", "{}"),
            };
            weighed(request, say)
        })
        .terms(|terms| terms.outcomes = vec!["failed"])
        .drive(|sim| async move {
            sim.ask("ask twice").await;
        })
        .check(|sim, history| {
            let results: Vec<&str> = history.of("tool").filter(|m| m["depth"] == 0).filter_map(|m| m["content"].as_str()).collect();
            assert!(results[1].starts_with("Not run: The budget of the run is used up: its maxModelCalls is 2"), "{results:?}");
            assert_eq!(reasons(history), ["budget_exceeded"]);
            assert!(asked(sim) <= 2);
        })
}

#[test]
fn a_called_prompt_counts_and_is_not_asked_beyond_the_limit() {
    inner().sweep();
}

fn broken_streams() -> Scenario {
    paid("streams that break", json!({ "run": { "maxTokens": 4_000 }, "onExceeded": "fail" }))
        .answers(|request| {
            let answer =
                weighed(request, Say::text("some words of an answer").chunks(5)).stream(request.index);
            if request.index == 0 { answer.cut_after(3) } else { answer }
        })
        .terms(|terms| terms.outcomes = vec!["completed", "failed"])
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            let ledger = &ledgers(sim)[0];
            assert_eq!(ledger["e"], true, "the broken attempt is estimated: {ledger}");
            let given: u64 =
                sim.world.outside.given.borrow().iter().map(|given| given.input + given.output).sum();
            assert!(ledger["s"][1].as_u64().unwrap() > given || history.faults > 0, "{ledger}");
            let logs = sim.world.drive({
                let sim = sim.clone();
                async move { sim.get(ThreadRoute::ListLogs, &[]).await }
            });
            assert!(logs.to_string().contains("usage_estimated") || history.faults > 0, "{logs}");
        })
}

#[test]
fn an_attempt_without_a_report_is_booked_as_an_estimate() {
    broken_streams().sweep();
}

#[test]
fn a_limit_of_nothing_sends_nothing() {
    for unit in ["maxTokens", "maxCostUsd", "maxModelCalls", "maxSteps", "maxSeconds"] {
        paid("nothing may be used", json!({ "run": { unit: 0 }, "onExceeded": "fail" }))
            .terms(|terms| terms.outcomes = vec!["failed"])
            .drive(|sim| async move {
                let outcome = sim.ask("hello").await;
                assert_eq!(outcome["reason"], "budget_exceeded", "{outcome}");
            })
            .check(|sim, _| assert_eq!(asked(sim), 0))
            .once();
    }
}

#[test]
fn an_answer_is_cut_where_no_more_can_be_paid() {
    paid("a short answer", json!({ "run": { "maxTokens": 700 }, "onExceeded": "fail" }))
        .define(|catalog| catalog["models"]["m"]["capabilities"]["maxOutputTokens"] = json!(4_000))
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            let most = requests[0].body["max_tokens"].as_u64().unwrap();
            assert!((256..700).contains(&most), "{most}");
        })
        .once();
}

#[test]
fn a_model_that_streams_slowly_is_stopped_when_the_time_is_used_up() {
    paid("two seconds", json!({ "run": { "maxSeconds": 2 }, "onExceeded": "fail" }))
        .answers(|request| Say::text("abcdefghij").chunks(10).stream(request.index).pace(SECOND_US / 2))
        .terms(|terms| terms.outcomes = vec!["failed"])
        .drive(|sim| async move {
            let begun = sim.world.now_us();
            let outcome = sim.ask("hello").await;
            assert_eq!(outcome["reason"], "budget_exceeded", "{outcome}");
            assert!(sim.world.now_us() - begun < 2 * SECOND_US + SECOND_US / 2);
        })
        .once();
}

#[test]
fn a_tool_has_the_time_that_is_left() {
    paid("a tool that is late", json!({ "run": { "maxSeconds": 3 }, "onExceeded": "fail" }))
        .setup(|sim| {
            sim.world.outside.native("work", |_, _| crate::host::Native::Never);
        })
        .terms(|terms| terms.outcomes = vec!["failed"])
        .drive(|sim| async move {
            let begun = sim.world.now_us();
            let outcome = sim.ask("use work").await;
            assert_eq!(outcome["reason"], "budget_exceeded", "{outcome}");
            assert!(sim.world.now_us() - begun < 4 * SECOND_US);
        })
        .once();
}

#[test]
fn listeners_are_told_once_that_a_limit_is_near_and_the_run_keeps_it() {
    paid("near the limit", json!({ "run": { "maxModelCalls": 5 }, "warnAt": 0.5 }))
        .drive(|sim| async move {
            let listener = sim.listen(Filter { events: true, ..Default::default() }, None).await.unwrap();
            let outcome = sim.ask("loop 3").await;
            let told: Vec<Value> = listener
                .frames
                .borrow()
                .iter()
                .filter(|frame| frame.kind == "budget")
                .map(|frame| frame.data.clone())
                .collect();
            assert_eq!(told.len(), 1, "{told:?}");
            assert_eq!(
                (&told[0]["kind"], &told[0]["unit"], &told[0]["limit"]),
                (&json!("warning"), &json!("modelCalls"), &json!(5))
            );
            let found = outcome["diagnostics"].as_array().unwrap();
            assert_eq!(found[0]["code"], "budget.warning", "{outcome}");
            let run = sim.get(ThreadRoute::GetRun("r_1".into()), &[("trace", "1")]).await;
            let told = |entry: &&Value| entry["kind"] == "budget.warning";
            assert_eq!(run["trace"].as_array().unwrap().iter().filter(told).count(), 1, "{run}");
        })
        .once();
}

#[test]
fn a_stop_in_the_middle_of_an_attempt_books_it() {
    paid("a stop", json!({ "run": { "maxTokens": 100_000 } }))
        .answers(|request| {
            weighed(request, Say::text("abcdefghij").chunks(10)).stream(request.index).pace(SECOND_US)
        })
        .terms(|terms| terms.outcomes = vec!["stopped"])
        .drive(|sim| async move {
            sim.send("hello").await;
            sim.until_requests(1).await;
            sim.world.pause(3 * SECOND_US).await;
            sim.stop().await;
        })
        .check(|sim, _| {
            let ledger = &ledgers(sim)[0];
            assert!(ledger["s"][1].as_i64().unwrap() > 300, "its request, and the longest answer: {ledger}");
        })
        .sweep();
}

#[test]
fn what_is_edited_or_deleted_gives_nothing_back() {
    paid("deleted", json!({ "thread": { "maxTokens": 100_000 } }))
        .drive(|sim| async move {
            sim.ask("one").await;
            sim.ask("two").await;
            let spent = async || sim.get(ThreadRoute::GetBudget, &[]).await["spent"]["thread"].clone();
            let before = spent().await;
            assert!(before["tokens"].as_i64().unwrap() > 100, "{before}");
            let ids: Vec<String> =
                sim.history().await.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
            let body = json!({ "content": "bye" }).to_string();
            sim.insist(ThreadRoute::PatchMessage(ids[0].clone()), &[], None, body).await;
            for id in ids {
                sim.insist(ThreadRoute::DeleteMessage(id), &[], None, String::new()).await;
            }
            sim.accepted.borrow_mut().clear();
            assert_eq!(sim.history().await, Vec::<Value>::new());
            assert_eq!(spent().await, before);
            sim.evict().await;
            sim.ask("and now?").await;
            let after = spent().await;
            assert!(after["tokens"].as_i64() > before["tokens"].as_i64(), "{before} {after}");
        })
        .terms(|terms| terms.one_answer = false)
        .once();
}

#[test]
fn an_agent_that_takes_over_can_only_tighten() {
    let refused = Answer::status(500, "{}");
    assert_eq!(refused.used(), None);
    paid("two agents", json!({ "run": { "maxTokens": 50_000 }, "onExceeded": "fail" }))
        .define(|catalog| {
            let mut other = catalog["agents"]["helper"].clone();
            other["exposeAsTool"] = json!(true);
            other["toolDescription"] = json!("Takes over.");
            other["budget"] = json!({ "run": { "maxTokens": 200_000, "maxModelCalls": 1 } });
            catalog["agents"]["other"] = other;
            catalog["prompts"]["p"]["tools"] = json!(["work", "other"]);
        })
        .says(|request| weighed(request, Say::call("other", &json!({}))))
        .terms(|terms| terms.outcomes = vec!["failed"])
        .drive(|sim| async move {
            let outcome = sim.ask("hand over").await;
            assert_eq!(outcome["reason"], "budget_exceeded", "{outcome}");
        })
        .check(|sim, _| {
            let ledger = &ledgers(sim)[0];
            assert_eq!((&ledger["l"][1], &ledger["l"][2]), (&json!(50_000), &json!(1)), "{ledger}");
        })
        .once();
}
