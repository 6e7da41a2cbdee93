//! Budgets that a thread shares with its subagents: what is lent comes back, what is missing is asked for, and nothing is spent
//! twice or for nothing, whatever fails.

use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::super::spending::{counted, ledgers};
use super::super::waits::{decide, open};
use super::workers::{lead, leader, team, wait};
use super::{agent, at_rest, goes_on, heard, lists, references, story, tell, waits};
use crate::contract::History;
use crate::host::outside::ModelRequest;
use crate::host::{SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![
        lent(),
        topped_up(),
        extended(),
        denied(),
        refused_above("deny", "run"),
        refused_above("finish", "thread"),
        three_levels_of_tokens(),
        three_levels_of_dollars(),
        stopped(),
        summarised_later(),
    ]
}

/// Millionths of a dollar that a token of a request and one of an answer cost.
const INPUT: i64 = 10;
const OUTPUT: i64 = 20;

/// A model whose researchers work four times before they have found something.
fn researcher(request: &ModelRequest) -> Say {
    let say = match request.system() {
        "You are research." if request.body["tools"].is_null() => Say::text("that is all"),
        "You are research." if request.results().len() < 4 => {
            Say::call("work", &json!({ "n": request.results().len() }))
        }
        "You are research." => Say::text("found"),
        _ => super::office(request),
    };
    counted(request, say)
}

/// Answers are not long, and cost something.
pub(super) fn priced(catalog: &mut Value) {
    let model = &mut catalog["models"]["m"];
    model["capabilities"] = json!({ "maxOutputTokens": 300 });
    (model["inputPrice"], model["outputPrice"]) = (json!(INPUT), json!(OUTPUT));
}

/// A thread that may use so many tokens, and whose model may call researchers by these entries.
fn sharing(name: &'static str, tokens: u64, entries: Value) -> Scenario {
    story(name).says(researcher).define(move |catalog| {
        priced(catalog);
        agent(catalog, "research", &json!(["work"]));
        lists(catalog, entries);
        catalog["agents"]["helper"]["budget"] = json!({ "run": { "maxTokens": tokens } });
    })
}

fn with(mut entry: Value, budget: Value) -> Value {
    entry["budget"] = budget;
    entry
}

/// What the models gave out to the whole family.
fn given(sim: &Sim) -> i64 {
    sim.world.outside.given.borrow().iter().map(|given| (given.input + given.output) as i64).sum()
}

/// What the thread has booked, of its runs and apart from them; and what is lent still.
fn booked(sim: &Sim) -> (i64, i64) {
    let runs: i64 = ledgers(sim).iter().map(|ledger| ledger["s"][1].as_i64().unwrap()).sum();
    let apart: Vec<String> = sim.member.database.ask("SELECT budget FROM meta WHERE budget IS NOT NULL");
    let apart: Value = apart.first().map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
    let of = |name: &str| apart[name][1].as_i64().unwrap_or(0);
    (runs + of("a"), of("c"))
}

/// What that cost, in millionths of a dollar; and what the thread at the top has booked of it.
pub(super) fn costs(sim: &Sim) -> (i64, i64) {
    let given = sim.world.outside.given.borrow();
    let cost = given.iter().map(|given| given.input as i64 * INPUT + given.output as i64 * OUTPUT).sum();
    let runs: i64 = ledgers(sim).iter().map(|ledger| ledger["s"][0].as_i64().unwrap()).sum();
    let apart: Vec<i64> = sim.member.database.ask("SELECT ifnull(budget ->> '$.a[0]', 0) FROM meta");
    (cost, runs + apart[0])
}

/// All that was given out is booked with the thread at the top, and nothing is lent any more.
fn accounted(sim: &Sim, history: &History) {
    let (cost, dollars) = costs(sim);
    assert!(dollars >= cost, "{dollars} of {cost} millionths of a dollar");
    if history.faults == 0 {
        assert_eq!(dollars, cost, "to the millionth of a dollar");
    }
    let (booked, lent) = booked(sim);
    let given = given(sim);
    assert!(booked + lent >= given, "{booked} and {lent} lent of {given}");
    if history.faults == 0 {
        assert_eq!((booked, lent), (given, 0), "to the token: {:?}", ledgers(sim));
    }
    let held: Vec<String> = sim.member.database.ask("SELECT budget FROM children WHERE budget IS NOT NULL");
    for text in held {
        let held: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(held["g"], json!([0, 0, 0, 0, 0, 0]), "{held}");
        assert_eq!(held["w"], Value::Null, "{held}");
    }
}

/// Decides what the thread at the top asks, until all is done. How often it has asked.
async fn decide_all(sim: &Sim, text: &str, decision: Value) -> usize {
    sim.send(text).await;
    let mut asked = 0;
    for _ in 0..4_000 {
        if let Some(wait) = open(sim).await.iter().find(|wait| !wait["allows"].as_array().unwrap().is_empty())
        {
            asked += usize::from(decide(sim, wait, decision.clone()).await.status == 200);
        } else if at_rest(sim) {
            return asked;
        }
        sim.world.pause(SECOND_US / 4).await;
    }
    panic!("the family never comes to rest: {:?}", open(sim).await);
}

fn lent() -> Scenario {
    sharing("a subagent that is lent a part", 60_000, json!([waits("research")]))
        .drive(|sim| async move {
            tell(&sim, r#"call research {"q":"look"}"#).await;
            let shown = sim.get(ThreadRoute::GetBudget, &[]).await;
            assert_eq!(
                (&shown["lent"]["tokens"], &shown["lent"]["children"]),
                (&json!(0), &json!([])),
                "{shown}"
            );
        })
        .check(|sim, history| {
            assert!(history.texts("tool")[0].contains("found"), "{:?}", history.texts("tool"));
            accounted(sim, history);
        })
}

#[test]
fn what_a_subagent_is_lent_and_has_not_used_comes_back() {
    lent().sampled(150).sweep();
}

fn topped_up() -> Scenario {
    let entry = with(waits("research"), json!({ "share": 0.005 }));
    sharing("a subagent that needs more than it was lent", 60_000, json!([entry]))
        .drive(|sim| async move { tell(&sim, r#"call research {"q":"look"}"#).await })
        .check(|sim, history| {
            assert!(history.texts("tool")[0].contains("found"), "{:?}", history.texts("tool"));
            accounted(sim, history);
            let child = sim.of(&references(sim)[0]);
            let asked: Vec<i64> =
                child.member.database.ask("SELECT count(*) FROM waits WHERE kind = 'budget'");
            assert!(asked[0] >= 1, "it had to ask");
        })
}

#[test]
fn a_subagent_that_needs_more_is_given_it_by_its_parent() {
    topped_up().sampled(150).sweep();
}

/// Two that are not waited for need more than there is.
fn two(name: &'static str) -> Scenario {
    sharing(name, 1_100, json!([goes_on("research")]))
}

/// The same where the limit is that of all runs.
fn two_of_a_thread(name: &'static str) -> Scenario {
    two(name).define(|catalog| {
        catalog["agents"]["helper"]["budget"] = json!({ "thread": { "maxTokens": 1_100 } });
    })
}

const TWO: &str = r#"all [["research",{"q":"look"}],["research",{"q":"look"}]]"#;

fn extended() -> Scenario {
    two("people extend what subagents need")
        .terms(|terms| terms.one_answer = false)
        .drive(|sim| async move {
            let asked =
                decide_all(&sim, TWO, json!({ "decision": "extend", "add": { "maxTokens": 40_000 } })).await;
            assert!(asked >= 1, "it was asked");
            if sim.world.outside.given.borrow().len() > 40 {
                panic!("something is asked again and again");
            }
        })
        .check(|sim, history| {
            let said = heard(history);
            assert_eq!(said.iter().filter(|text| text.contains("found")).count(), 2, "{said:?}");
            let (booked, lent) = booked(sim);
            assert!(booked + lent >= given(sim), "{booked} and {lent} of {}", given(sim));
        })
}

#[test]
fn what_people_add_reaches_the_subagents_that_need_it() {
    extended().sampled(150).sweep();
}

/// Requests more than undisturbed: how far one researcher comes before the other lacks something depends on who is first, and
/// after that only the budget says how many there may be.
const AHEAD: usize = 8;

fn denied() -> Scenario {
    two_of_a_thread("people deny what subagents need")
        .terms(|terms| {
            terms.more_requests = AHEAD;
            terms.one_answer = false;
            terms.outcomes = vec!["completed", "failed"];
        })
        .drive(|sim| async move {
            decide_all(&sim, TWO, json!({ "decision": "deny" })).await;
        })
        .check(|sim, history| {
            let (booked, lent) = booked(sim);
            assert!(booked + lent >= given(sim), "{booked} and {lent} of {}", given(sim));
            // By what an estimate is wrong, and by attempts that were lost and counted at their worst.
            assert!(given(sim) <= 1_100, "{}", given(sim));
            if history.faults == 0 {
                let said = heard(history);
                assert!(said.iter().any(|text| text.contains("has failed")), "{said:?}");
            }
        })
}

#[test]
fn what_people_deny_ends_the_subagents_that_need_it() {
    denied().sampled(150).sweep();
}

/// People refuse more for a subagent that its thread waits for. The thread's own next step meets the same limit.
fn refused_above(decision: &'static str, scope: &'static str) -> Scenario {
    let name = if decision == "deny" { "more for a subagent, denied" } else { "more for a subagent: finish" };
    sharing(name, 1, json!([waits("research")]))
        .define(move |catalog| {
            catalog["agents"]["helper"]["budget"] =
                json!({ scope: { "maxModelCalls": 4 }, "onExceeded": "ask" });
        })
        .terms(|terms| {
            terms.more_requests = AHEAD;
            terms.one_answer = false;
            terms.outcomes = vec!["completed", "failed"];
        })
        .drive(move |sim| async move {
            decide_all(&sim, r#"call research {"q":"look"}"#, json!({ "decision": decision })).await;
        })
        .check(move |sim, history| {
            let asked: Vec<i64> = sim.member.database.ask("SELECT count(*) FROM waits WHERE kind = 'budget'");
            assert_eq!(asked, [1], "nobody is asked again in that run");
            if history.faults == 0 {
                let run = sim.member.database.ask::<String>("SELECT reason FROM runs");
                let expected = if decision == "deny" { "budget_exceeded" } else { "budget_finished" };
                assert_eq!(run, [expected], "{:?}", history.texts("tool"));
            }
        })
}

#[test]
fn nobody_is_asked_again_in_a_run_after_more_was_refused_for_its_subagent() {
    for decision in ["deny", "finish"] {
        for scope in ["run", "thread"] {
            refused_above(decision, scope).sampled(100).sweep();
        }
    }
}

/// The one at the bottom needs more than all have, in tokens or in dollars.
fn three_levels(name: &'static str, most: Value, more: Value) -> Scenario {
    sharing(name, 1_200, json!([waits("manage")]))
        .define(move |catalog| {
            agent(catalog, "manage", &json!([waits("research")]));
            catalog["agents"]["helper"]["budget"] = json!({ "run": most });
        })
        .drive(move |sim| {
            let more = more.clone();
            async move {
                sim.send(r#"call manage {"q":"call research {\"q\":\"look\"}"}"#).await;
                let mut seen = Value::Null;
                for _ in 0..4_000 {
                    let asked = open(&sim).await;
                    if let Some(wait) =
                        asked.iter().find(|wait| !wait["allows"].as_array().unwrap().is_empty())
                    {
                        if seen.is_null() && !wait["budget"]["forChild"].is_null() {
                            seen = wait["budget"]["forChild"].clone();
                            for thread in sim.family() {
                                thread.evict().await;
                            }
                            sim.world.pause(60 * SECOND_US).await;
                        }
                        decide(&sim, wait, json!({ "decision": "extend", "add": more })).await;
                    } else if at_rest(&sim) {
                        break;
                    }
                    sim.world.pause(SECOND_US / 4).await;
                }
                assert!(at_rest(&sim));
                let middle = sim.of(&references(&sim)[0]);
                if !seen.is_null() {
                    let below = references(&middle);
                    assert!(
                        seen == json!(below[0]) || seen == json!(middle.member.id),
                        "{seen} is none of {below:?}"
                    );
                }
            }
        })
        .check(|sim, history| {
            assert!(history.texts("tool")[0].contains("found"), "{:?}", history.texts("tool"));
            accounted(sim, history);
            let asked: Vec<String> = sim.member.database.ask("SELECT data FROM waits WHERE kind = 'budget'");
            let bottom = references(&sim.of(&references(sim)[0]))[0].clone();
            assert!(
                asked.iter().any(|wait| wait.contains(&bottom)) || history.faults > 0,
                "{bottom}: {asked:?}"
            );
        })
}

fn three_levels_of_tokens() -> Scenario {
    three_levels("three levels", json!({ "maxTokens": 1_200 }), json!({ "maxTokens": 60_000 }))
}

fn three_levels_of_dollars() -> Scenario {
    three_levels("three levels that cost", json!({ "maxCostUsd": 0.014 }), json!({ "maxCostUsd": 0.6 }))
}

#[test]
fn what_the_one_at_the_bottom_needs_is_asked_at_the_top() {
    three_levels_of_tokens().sampled(150).sweep();
}

#[test]
fn what_three_levels_cost_is_booked_at_the_top() {
    three_levels_of_dollars().sampled(150).sweep();
}

fn stopped() -> Scenario {
    two("a stop while subagents need more")
        .terms(|terms| {
            terms.more_requests = AHEAD;
            terms.one_answer = false;
            terms.outcomes = vec!["completed", "stopped"];
        })
        .drive(|sim| async move {
            sim.send(TWO).await;
            for _ in 0..2_000 {
                if !open(&sim).await.is_empty() {
                    break;
                }
                sim.world.pause(SECOND_US / 4).await;
            }
            sim.stop().await;
            super::settled(&sim, SECOND_US / 20).await;
            assert_eq!(open(&sim).await, Vec::<Value>::new());
        })
        .check(|sim, _| {
            let (booked, lent) = booked(sim);
            assert!(booked + lent >= given(sim), "{booked} and {lent} of {}", given(sim));
        })
}

#[test]
fn a_stop_ends_what_is_asked_for_subagents() {
    stopped().sampled(150).sweep();
}

#[test]
fn no_subagent_is_made_for_which_nothing_is_left() {
    sharing("nothing to lend", 60_000, json!([waits("research")]))
        .define(|catalog| {
            catalog["agents"]["helper"]["budget"] =
                json!({ "run": { "maxModelCalls": 1 }, "onExceeded": "fail" })
        })
        .terms(|terms| terms.outcomes = vec!["failed"])
        .drive(|sim| async move {
            tell(&sim, r#"call research {"q":"look"}"#).await;
            let result = &sim.history().await[2];
            assert_eq!(result["metadata"]["error_code"], "budget_exceeded", "{result}");
            assert_eq!(references(&sim), Vec::<String>::new());
        })
        .once();
}

/// A thread that leads workers, with a budget.
fn limited_team(name: &'static str) -> Scenario {
    team(name)
        .define(|catalog| {
            priced(catalog);
            catalog["prompts"]["digger"]["summary"] = json!({ "minTurns": 1, "maxTokens": 200 });
            catalog["agents"]["helper"]["budget"] = json!({ "run": { "maxTokens": 60_000 } });
        })
        .says(|request| {
            let is_summary = request.system().starts_with("You keep the memory");
            counted(request, if is_summary { Say::text("It has dug.") } else { leader(request) })
        })
}

fn spawn_with(budget: Value, message: &str) -> Value {
    json!(["agent_spawn", { "agent": "digger", "message": message, "budget": budget }])
}

/// What a worker uses when no run of it goes on is the family's, too.
fn summarised_later() -> Scenario {
    limited_team("a worker that is summarised after its run")
        .terms(|terms| {
            terms.one_answer = false;
            terms.overlap = true;
            terms.more_requests = 12;
        })
        .drive(|sim| async move {
            let send = |text: &str| json!([["agent_send", { "agentId": "subagent.1", "message": text }]]);
            let steps = json!([
                [spawn_with(json!({ "share": 0.5 }), "say one.")],
                [wait(json!(["subagent.1"]), "all")],
                send("say two."),
                send("say three."),
            ]);
            tell(&sim, &lead(steps)).await;
            let worker = sim.of(&references(&sim)[0]);
            let answered = worker.insist(ThreadRoute::Summarize, &[], None, String::new()).await;
            assert_eq!(answered.status, 202, "{}", answered.body);
            sim.until("it is summarised, and all rest", |sim| {
                worker.member.database.ask::<i64>("SELECT jobs FROM meta") == [0] && at_rest(sim)
            })
            .await;
        })
        .check(|sim, history| {
            let worker = sim.of(&references(sim)[0]);
            let made: Vec<i64> = worker.member.database.ask("SELECT count(*) FROM summaries");
            assert!(made[0] >= 1 || history.faults > 0, "{made:?}");
            accounted(sim, history);
        })
}

#[test]
fn what_a_worker_uses_after_its_run_is_booked_by_who_leads_it() {
    summarised_later().sampled(150).sweep();
}

#[test]
fn a_call_says_how_much_of_the_budget_a_worker_may_hold() {
    limited_team("a worker with a budget of its own")
        .drive(|sim| async move {
            let doze = r#"call doze {"n":30}"#;
            let steps = json!([[
                spawn_with(json!({ "share": 0.5 }), doze),
                spawn_with(json!({}), doze),
                spawn_with(json!({ "share": 2 }), doze),
            ]]);
            sim.send(&lead(steps)).await;
            sim.world.pause(10 * SECOND_US).await;
            let shown = sim.get(ThreadRoute::GetBudget, &[]).await;
            let mut held: Vec<i64> = shown["lent"]["children"]
                .as_array()
                .unwrap()
                .iter()
                .map(|child| child["tokens"].as_i64().unwrap())
                .collect();
            held.sort_unstable();
            let [quarter, half] = held[..] else { panic!("{shown}") };
            assert!((28_000..30_000).contains(&half), "half of what is left: {half}");
            assert!((7_000..7_500).contains(&quarter), "a quarter of the rest: {quarter}");
            sim.until("all rest", at_rest).await;
        })
        .check(|_, history| {
            let refused = history.texts("tool")[2].to_owned();
            assert!(refused.contains("budget.share: must be more than 0, and at most 1."), "{refused}");
        })
        .calm();
}
