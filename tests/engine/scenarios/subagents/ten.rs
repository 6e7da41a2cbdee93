//! Subagents that share what is not enough for them, in dollars: together they never use more, also when the run that has made
//! them is over; people are asked once, and what they decide reaches all of them.

use bobbin::definitions::message::ToolResult;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::super::spending::weighed;
use super::super::waits::{decides, open};
use super::lending::{costs, priced};
use super::{agent, at_rest, goes_on, heard, lists, references, settled, story, tell, waits};
use crate::host::outside::ModelRequest;
use crate::host::{DAY_US, Native, SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![extended("run"), extended("thread"), denied(), held(), lost()]
}

/// Millionths of a dollar that all may cost together.
const LIMIT: i64 = 100_000;
/// Steps of a researcher: 0.03 dollars and more.
const STEPS: usize = 4;

fn researcher(request: &ModelRequest) -> Say {
    let say = match request.system() {
        "You are research." if request.body["tools"].is_null() => Say::text("that is all"),
        "You are research." if request.results().len() < STEPS => {
            Say::call("work", &json!({ "n": request.results().len() }))
        }
        "You are research." => Say::text("found"),
        _ => super::office(request),
    };
    weighed(request, say)
}

/// A thread with this budget, whose model may call researchers by this entry.
fn sharing(name: &'static str, entry: Value, budget: Value) -> Scenario {
    story(name)
        .says(researcher)
        .define(move |catalog| {
            priced(catalog);
            agent(catalog, "research", &json!(["work"]));
            lists(catalog, json!([entry]));
            catalog["agents"]["helper"]["budget"] = budget;
        })
        .setup(|sim| {
            sim.world
                .outside
                .native("work", |_, _| Native::Gives(SECOND_US, ToolResult::success("7".repeat(450))));
        })
        .terms(|terms| {
            terms.one_answer = false;
            // Who comes how far before people are asked depends on who is first.
            terms.more_requests = 12;
        })
}

fn ten(name: &'static str, scope: &str) -> Scenario {
    let entry = json!({ "share": 0.05 });
    let entry = {
        let mut of = goes_on("research");
        of["budget"] = entry;
        of
    };
    sharing(name, entry, json!({ scope: { "maxCostUsd": 0.1 } }))
}

fn calls() -> String {
    format!("all {}", json!(vec![json!(["research", { "q": "look" }]); 10]))
}

/// What people are asked.
async fn asked(sim: &Sim) -> Vec<Value> {
    let waits = open(sim).await.into_iter();
    waits.filter(|wait| !wait["allows"].as_array().unwrap().is_empty()).collect()
}

/// Sends all to work, until people are asked and nothing moves any more: the only question.
async fn until_asked(sim: &Sim) -> Value {
    sim.send(&calls()).await;
    let mut before = (-1, 0);
    for _ in 0..2_000 {
        let questions = asked(sim).await;
        let now = (costs(sim).0, questions.len());
        if before == now && now.1 > 0 {
            assert_eq!(questions.len(), 1, "one question: {questions:?}");
            assert!(now.0 <= LIMIT, "{} of {LIMIT}", now.0);
            // Less is left than what some of them hold and cannot use.
            assert!(now.0 >= LIMIT / 5, "{} of {LIMIT}", now.0);
            return questions[0].clone();
        }
        before = now;
        sim.world.pause(20 * SECOND_US).await;
    }
    panic!("nobody is asked, and {} was used of {LIMIT}", costs(sim).0);
}

/// How often people were asked.
fn questions(sim: &Sim) -> usize {
    if !sim.member.has_table("waits") {
        return 0;
    }
    let asked: Vec<String> =
        sim.member.database.ask("SELECT data FROM waits WHERE kind = 'budget' AND state <> 'void'");
    asked.iter().filter(|data| !data.contains(r#""scope":"parent""#)).count()
}

fn extended(scope: &'static str) -> Scenario {
    ten("ten that share, and are given more", scope)
        .drive(|sim| async move {
            let question = until_asked(&sim).await;
            decides(&sim, &question, json!({ "decision": "extend", "add": { "maxCostUsd": 2 } })).await;
            settled(&sim, SECOND_US / 4).await;
        })
        .check(|sim, history| {
            let said = heard(history);
            assert_eq!(said.iter().filter(|text| text.contains("found")).count(), 10, "{said:?}");
            assert_eq!(questions(sim), 1);
            let (cost, booked) = costs(sim);
            assert!(cost >= 10 * 30_000, "0.03 each: {cost}");
            assert!(booked >= cost, "{booked} of {cost}");
            if history.faults == 0 {
                assert_eq!(booked, cost, "to the millionth of a dollar");
            }
        })
}

#[test]
fn ten_that_share_the_budget_of_a_run_never_use_more_and_ask_once() {
    extended("run").sampled(60).sweep();
}

#[test]
fn ten_that_share_the_budget_of_a_thread_never_use_more_and_ask_once() {
    extended("thread").sampled(60).sweep();
}

fn denied() -> Scenario {
    ten("ten that share, and are given nothing", "run")
        .terms(|terms| terms.outcomes = vec!["completed", "failed"])
        .drive(|sim| async move {
            let question = until_asked(&sim).await;
            let (before, begun) = (costs(&sim).0, sim.world.now_us());
            decides(&sim, &question, json!({ "decision": "deny" })).await;
            settled(&sim, SECOND_US / 20).await;
            assert!(sim.world.now_us() - begun < 20 * SECOND_US, "as long as a step takes");
            // What they have said is read by runs that follow, each of which may use as much as any.
            let read: i64 = costs(&sim).0 - before;
            // A request that was lost with its process is paid for, and made again; and what came meanwhile is read in more requests.
            let lost = i64::try_from(sim.world.faults.borrow().fired.len()).unwrap() * LIMIT / 2;
            assert!(read < LIMIT * 3 / 4 + lost, "{read}, {lost} of it lost");
            assert_eq!(asked(&sim).await, Vec::<Value>::new());
        })
        .check(|sim, history| {
            let said = heard(history);
            assert!(said.len() == 10 && said.iter().any(|text| text.contains("has failed")), "{said:?}");
            for child in references(sim) {
                let used: Vec<i64> =
                    sim.of(&child).member.database.ask("SELECT count(*) FROM runs WHERE phase != 'ended'");
                assert_eq!(used, [0], "{child} has ended");
            }
            assert_eq!(questions(sim), 1);
        })
}

#[test]
fn ten_that_share_and_are_given_nothing_have_ended_within_a_step() {
    denied().sampled(60).sweep();
}

/// One that may hold less than there is: it is lent that again and again, and never more at a time.
fn held() -> Scenario {
    let mut entry = waits("research");
    entry["budget"] = json!({ "maxCostUsd": 0.018 });
    sharing("one that may hold little", entry, json!({ "run": { "maxCostUsd": 1 } }))
        .drive(|sim| async move {
            sim.send(r#"call research {"q":"look"}"#).await;
            let mut most = 0.0_f64;
            for _ in 0..4_000 {
                let shown = sim.get(ThreadRoute::GetBudget, &[]).await;
                for child in shown["lent"]["children"].as_array().unwrap() {
                    most = most.max(child["costUsd"].as_f64().unwrap());
                }
                if at_rest(&sim) {
                    break;
                }
                sim.world.pause(SECOND_US / 10).await;
            }
            assert!(most > 0.01 && most <= 0.018, "{most}");
        })
        .check(|sim, history| {
            assert!(history.texts("tool")[0].contains("found"), "{:?}", history.texts("tool"));
            // A call that was lost with its process has a shorter result.
            let least = if history.faults == 0 { 28_000 } else { 18_000 };
            assert!(costs(sim).0 > least, "more than it may hold at a time: {:?}", costs(sim));
            assert_eq!(questions(sim), 0);
        })
}

#[test]
fn a_subagent_never_holds_more_than_its_entry_says() {
    held().sampled(60).sweep();
    // One that needs more for a single request than it may ever hold.
    let mut entry = waits("research");
    entry["budget"] = json!({ "maxCostUsd": 0.009 });
    sharing("one that may hold too little", entry, json!({ "run": { "maxCostUsd": 1 } }))
        .drive(|sim| async move { tell(&sim, r#"call research {"q":"look"}"#).await })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert!(results[0].contains("budget"), "{results:?}");
            assert_eq!(questions(sim), 0, "nobody can give it more");
            assert!(costs(sim).0 < 40_000, "{:?}", costs(sim));
        })
        .calm();
}

/// A subagent that nobody can hear any more, and that comes back much later.
fn lost() -> Scenario {
    let budget = json!({ "run": { "maxCostUsd": 0.1 }, "thread": { "maxCostUsd": 1 } });
    sharing("one that is lost with what it was lent", waits("research"), budget)
        .lasting(14)
        .drive(|sim| async move {
            sim.send(r#"call research {"q":"look"}"#).await;
            sim.until("it works", |sim| !sim.world.outside.executions.borrow().is_empty()).await;
            let before = sim.get(ThreadRoute::GetBudget, &[]).await;
            let held = before["lent"]["costUsd"].as_f64().unwrap();
            assert!(held > 0.02, "a quarter of what was left: {before}");
            let child = references(&sim)[0].clone();
            sim.world.cut(move |from, to| from == child || to == child);
            sim.world.pause(8 * DAY_US).await;
            let results = sim.history().await;
            assert_eq!(results.last().unwrap()["role"], "assistant", "nobody waits for it any more");
            let after = sim.get(ThreadRoute::GetBudget, &[]).await;
            assert_eq!(after["lent"]["costUsd"].as_f64(), Some(held), "all that it was lent counts: {after}");
            sim.world.cut(|_, _| false);
            settled(&sim, 600 * SECOND_US).await;
            // What was sent so long ago may be sent again.
            sim.accepted.borrow_mut().clear();
        })
        .check(|sim, history| {
            let (cost, booked) = costs(sim);
            let lent: Vec<i64> = sim.member.database.ask("SELECT ifnull(budget ->> '$.c[0]', 0) FROM meta");
            assert!(booked >= cost && lent == [0], "{booked}, {lent:?} of {cost}");
            if history.faults == 0 {
                assert_eq!(booked, cost, "what it says at last is what is booked");
            }
        })
}

#[test]
fn all_that_a_lost_subagent_was_lent_counts_as_used_until_it_says_what_was() {
    lost().sampled(60).sweep();
}
