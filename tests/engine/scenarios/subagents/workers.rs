//! Workers: children that a model makes, writes to, waits for and ends.

use bobbin::definitions::message::ToolResult;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::{agent, heard, settled, states, story, tell, times};
use crate::contract::History;
use crate::host::outside::ModelRequest;
use crate::host::{Native, SECOND_US, Say};
use crate::sim::{Sim, native};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![one(), full(), waited_for(true), waited_for(false), unheard(), late()]
}

/// A model that leads: its last message that begins with `lead` says which calls it makes, a list for each step.
pub(super) fn leader(request: &ModelRequest) -> Say {
    let messages = request.messages();
    let is_lead =
        |m: &&Value| m["role"] == "user" && m["content"].as_str().is_some_and(|t| t.starts_with("lead "));
    let Some(at) = messages.iter().rposition(|m| is_lead(&m)) else { return super::office(request) };
    let steps: Vec<Vec<(String, Value)>> =
        serde_json::from_str(&messages[at]["content"].as_str().unwrap()[5..]).unwrap();
    let results: Vec<&str> =
        messages[at..].iter().filter(|m| m["role"] == "tool").filter_map(|m| m["content"].as_str()).collect();
    let mut done = 0;
    for step in &steps {
        if done == results.len() {
            return step
                .iter()
                .fold(Say::default(), |say, (name, args)| say.and_call(name, &args.to_string()));
        }
        done += step.len();
    }
    if request.last_user().starts_with("Subagent ") {
        return Say::text("noted");
    }
    Say::text(format!("got: {}", results.join(" | ")))
}

/// `lead` with these steps.
pub(super) fn lead(steps: Value) -> String {
    format!("lead {steps}")
}

pub(super) fn spawn(message: &str) -> Value {
    json!(["agent_spawn", { "agent": "digger", "message": message }])
}

pub(super) fn wait(ids: Value, how: &str) -> Value {
    json!(["agent_wait", { "agentIds": ids, "for": how }])
}

/// A thread that leads workers of `digger`, a chat's agent, and of `twin`, which has two sides.
pub(super) fn team(name: &'static str) -> Scenario {
    story(name)
        .says(leader)
        .define(|catalog| {
            agent(catalog, "twin", &json!(["doze"]));
            catalog["prompts"]["twin"].as_object_mut().unwrap().remove("requiredSchema");
            catalog["prompts"]["digger"] = json!({ "toolDescription": "Digs.", "prompt": "You dig.", "model": "m",
                "includeChat": true, "includePastTools": true, "tools": ["doze", "work"] });
            catalog["agents"]["digger"] = json!({ "sideA": { "prompt": "digger" }, "description": "Digs." });
            catalog["tools"]["doze"] = native(true);
            catalog["tools"]["doze"]["run"]["native"] = json!("doze");
            catalog["prompts"]["p"]["subagents"] = json!({ "agents": ["digger", "twin"] });
        })
        .setup(|sim| {
            sim.world.outside.native("doze", |call, _| {
                let seconds = call.args["n"].as_i64().unwrap();
                Native::Gives(seconds * SECOND_US, ToolResult::success(format!("dozed {seconds}")))
            });
        })
        // Outcomes that nobody has waited for wake the side once more.
        .terms(|terms| terms.one_answer = false)
}

/// The results of calls as JSON, oldest first; a text that is none as such.
pub(super) fn results(history: &History) -> Vec<Value> {
    let read = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    history.texts("tool").into_iter().map(read).collect()
}

/// Everything that was handed over, as results and as messages.
pub(super) fn handed_over(history: &History) -> String {
    let seen = |outcome: &Value| outcome["seen"] == true;
    let mut all: Vec<String> = Vec::new();
    for result in results(history) {
        match result["outcomes"].as_array() {
            Some(outcomes) => all.extend(outcomes.iter().filter(|one| !seen(one)).map(Value::to_string)),
            None => all.push(result.to_string()),
        }
    }
    all.extend(heard(history).into_iter().map(str::to_owned));
    all.join("\n")
}

pub(super) fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

pub(super) fn aliases(sim: &Sim) -> Vec<String> {
    sim.member
        .database
        .ask("SELECT json_extract(facts, '$.alias') FROM children ORDER BY created_us, reference")
}

fn one() -> Scenario {
    team("a worker that is made, waited for, written to and closed")
        .drive(|sim| async move {
            let steps = json!([
                [spawn("say first.")],
                [wait(json!(["subagent.1"]), "all")],
                [["agent_send", { "agentId": "subagent.1", "message": "say second." }]],
                [["agent_close", { "agentId": "subagent.1" }]],
                [["agent_send", { "agentId": "subagent.1", "message": "say third." }]],
            ]);
            tell(&sim, &lead(steps)).await;
        })
        .check(|sim, history| {
            let got = results(history);
            assert_eq!(got[0], json!({ "agentId": "subagent.1", "status": "started" }));
            let outcome = |text: &str, run: &str| {
                json!({ "agentId": "subagent.1", "status": "completed", "text": text,
                "attachments": [], "run": run })
            };
            assert_eq!(got[1], json!({ "outcomes": [outcome("first.", "r_1")], "pending": [] }));
            assert_eq!(got[2], outcome("second.", "r_2"));
            assert_eq!(got[3], json!({ "agentId": "subagent.1", "closed": true }));
            let failed = history.of("tool").nth(4).unwrap();
            assert_eq!(failed["metadata"]["error_code"], "subagent_not_found", "{failed}");
            assert!(heard(history).is_empty(), "{:?}", heard(history));
            assert_eq!(states(sim), ["terminated terminated"]);
            let child = history.family.values().next().unwrap();
            assert_eq!(
                (child.texts("user"), child.answers()),
                (vec!["say first.", "say second."], vec!["first.", "second."])
            );
            if history.faults == 0 {
                assert_eq!(pauses(sim), 4, "each pause is told of, and its end");
            }
        })
}

/// Entries of the first run's trace that tell of pauses.
fn pauses(sim: &Sim) -> usize {
    let asked = sim.clone();
    let run =
        sim.world.drive(async move { asked.get(ThreadRoute::GetRun("r_1".into()), &[("trace", "1")]).await });
    let of_pause = |entry: &&Value| matches!(entry["kind"].as_str(), Some("run.paused" | "run.resumed"));
    run["trace"].as_array().unwrap().iter().filter(of_pause).count()
}

fn full() -> Scenario {
    team("a fifth worker")
        .drive(|sim| async move {
            let steps = json!([
                [spawn("say 1."), spawn("say 2."), spawn("say 3."), spawn("say 4."), spawn("say 5.")],
                [["agent_close", { "agentId": "subagent.2" }]],
                [spawn("say 6.")],
                [wait(json!(["subagent.1", "subagent.3", "subagent.4", "subagent.5"]), "all")],
            ]);
            tell(&sim, &lead(steps)).await;
        })
        .check(|sim, history| {
            let refused = history.of("tool").nth(4).unwrap();
            assert_eq!(refused["metadata"]["error_code"], "subagent_limit_reached", "{refused}");
            let ids = json!(["subagent.1", "subagent.2", "subagent.3", "subagent.4"]);
            assert_eq!(refused["metadata"]["error_data"], json!({ "maxActive": 4, "agentIds": ids }));
            let got = results(history);
            assert_eq!(got[6], json!({ "agentId": "subagent.5", "status": "started" }));
            assert_eq!(got[7]["pending"], json!([]));
            let told = handed_over(history);
            for text in ["1.", "3.", "4.", "6."] {
                assert_eq!(count(&told, &format!("\"text\":\"{text}\"")), 1, "{text}: {told}");
            }
            assert_eq!(count(&told, "5.\""), 0, "{told}");
            assert_eq!(aliases(sim).len(), 5);
        })
}

/// Three workers of different speed, waited for by a parent that is put out of memory meanwhile.
fn waited_for(any: bool) -> Scenario {
    let steps = move || {
        let doze = |n: i64| spawn(&format!("call doze {{\"n\":{n}}}"));
        let ids = json!(["subagent.1", "subagent.2", "subagent.3"]);
        let how = if any { "any" } else { "all" };
        json!([[doze(40), doze(20), doze(60)], [wait(ids.clone(), how)], [wait(ids, "all")]])
    };
    team(if any { "any of three workers" } else { "all of three workers" })
        .drive(move |sim| async move {
            let sent = sim.send(&lead(steps())).await;
            sim.until("parked", |sim| {
                sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE phase = 'parked'") == [1]
            })
            .await;
            let outcome = sim.outcome(&sent).await;
            assert_eq!(
                (&outcome["outcome"], &outcome["pauseKind"]),
                (&json!("parked"), &json!("external")),
                "{outcome}"
            );
            let waits = &outcome["waits"];
            assert_eq!(
                (&waits[0]["kind"], &waits[0]["for"]),
                (&json!("children"), &json!(if any { "any" } else { "all" }))
            );
            assert_eq!(waits[0]["agentIds"], json!(["subagent.1", "subagent.2", "subagent.3"]));
            let wait = waits[0]["id"].as_str().unwrap().to_owned();
            for decision in ["deny", "defer", "approve"] {
                let body = json!({ "decision": decision, "until": 0 });
                let body = if decision == "defer" { body } else { json!({ "decision": decision }) };
                let seen =
                    sim.insist(ThreadRoute::DecideWait(wait.clone()), &[], None, body.to_string()).await;
                assert_eq!(seen.status, 400, "nobody decides it: {}", seen.body);
            }
            settled(&sim, SECOND_US / 4).await;
        })
        .check(move |sim, history| {
            let got = results(history);
            let ids = |value: &Value| -> Vec<String> {
                value
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|one| one["agentId"].as_str().unwrap().to_owned())
                    .collect()
            };
            if any && history.faults == 0 {
                assert_eq!(ids(&got[3]["outcomes"]), ["subagent.2"]);
                assert_eq!(got[3]["pending"], json!(["subagent.1", "subagent.3"]));
            }
            if !any {
                assert_eq!(ids(&got[3]["outcomes"]), ["subagent.1", "subagent.2", "subagent.3"]);
                // What is known already is given at once, as known.
                assert!(
                    got[4]["outcomes"].as_array().unwrap().iter().all(|one| one["seen"] == true),
                    "{}",
                    got[4]
                );
            }
            assert_eq!(got[4]["pending"], json!([]));
            let told = handed_over(history);
            for n in [20, 40, 60] {
                assert_eq!(count(&told, &format!("got: dozed {n}")), 1, "{told}");
            }
            assert!(heard(history).is_empty());
            let own = |request: &&ModelRequest| request.thread == sim.member.id;
            let asked = sim.world.outside.requests.borrow().iter().filter(own).count();
            // One for each step, and none for those that end while the run waits on.
            assert!(asked <= 4 + history.faults, "{asked} requests");
        })
}

/// What nobody has waited for arrives when the run ends, or later.
fn unheard() -> Scenario {
    team("workers that nobody waits for")
        .terms(|terms| {
            terms.one_answer = false;
            terms.more_requests = 3;
        })
        .drive(|sim| async move {
            let steps = json!([
                [spawn("say quick."), spawn("call doze {\"n\":5}"), spawn("say taken.")],
                [wait(json!(["subagent.3"]), "all")],
                [["agent_wait", { "agentIds": ["subagent.2"], "timeoutSeconds": 0 }]],
            ]);
            tell(&sim, &lead(steps)).await;
        })
        .check(|_, history| {
            let told = handed_over(history);
            for text in ["quick.", "got: dozed 5", "taken."] {
                assert_eq!(count(&told, text), 1, "{text}: {told}");
            }
            let heard = heard(history);
            assert_eq!((times(&heard, "quick."), times(&heard, "taken.")), (1, 0), "{heard:?}");
            if history.faults == 0 {
                assert_eq!(results(history)[4], json!({ "outcomes": [], "pending": ["subagent.2"] }));
            }
            assert!(times(&history.answers(), "noted") > 0);
        })
}

/// A wait that ends before its worker does is no error.
fn late() -> Scenario {
    team("a worker that takes longer than is waited for")
        .terms(|terms| {
            terms.one_answer = false;
            terms.more_requests = 2;
        })
        .drive(|sim| async move {
            let steps = json!([
                [spawn("call doze {\"n\":30}"), spawn("say quick.")],
                [["agent_wait", { "agentIds": ["subagent.1", "subagent.2"], "timeoutSeconds": 4 }]],
            ]);
            tell(&sim, &lead(steps)).await;
        })
        .check(|_, history| {
            let waited = history.of("tool").nth(2).unwrap();
            assert_eq!(waited["tool_status"], "success", "{waited}");
            if history.faults == 0 {
                let got = &results(history)[2];
                assert_eq!(
                    (&got["pending"], &got["outcomes"][0]["text"]),
                    (&json!(["subagent.1"]), &json!("quick."))
                );
            }
            let told = handed_over(history);
            assert_eq!((count(&told, "got: dozed 30"), count(&told, "quick.")), (1, 1), "{told}");
        })
}

#[test]
fn a_worker_is_made_waited_for_written_to_and_closed_whatever_fails() {
    one().sampled(300).sweep();
}

#[test]
fn a_fifth_worker_is_refused_and_has_the_place_of_one_that_is_closed() {
    full().sampled(250).sweep();
}

#[test]
fn any_of_three_workers_is_enough() {
    waited_for(true).sampled(300).sweep();
}

#[test]
fn all_of_three_workers_are_waited_for_by_a_parent_that_is_not_in_memory() {
    waited_for(false).sampled(300).sweep();
}

#[test]
fn what_nobody_has_waited_for_arrives_once() {
    unheard().sampled(300).sweep();
}

#[test]
fn a_wait_for_workers_that_ends_early_is_no_error() {
    late().sampled(250).sweep();
}

/// Statements of the thread that leads four workers, from the message to the answer.
const PARENT_STATEMENTS: usize = 100;
/// Those of a worker in its whole life.
const WORKER_STATEMENTS: usize = 45;

/// What every thread of a family of four workers does: statements, rows that are read and rows that are written.
fn spent(sim: &Sim) -> Vec<(usize, u64, u64)> {
    let of = |thread: &Sim| {
        let log = thread.member.database.log.borrow_mut().take().unwrap_or_default();
        if std::env::var_os("BOBBIN_SQL").is_some() {
            eprintln!("-- {}", thread.member.id);
            for (statement, read, written) in &log {
                eprintln!("{read:4} {written:4}  {}", statement.chars().take(120).collect::<String>());
            }
        }
        log.iter().fold((0, 0, 0), |(n, read, written), one| (n + 1, read + one.1, written + one.2))
    };
    sim.family().iter().map(of).collect()
}

#[test]
fn four_workers_cost_what_they_may() {
    team("four workers, counted")
        .drive(|sim| async move {
            tell(&sim, "say warm.").await;
            sim.world.pause(2 * SECOND_US).await;
            sim.meter();
            let ids: Vec<String> = (1..=4).map(|n| format!("subagent.{n}")).collect();
            let spawns: Vec<Value> = (1..=4).map(|_| spawn("say done.")).collect();
            let body = json!({ "role": "user", "content": lead(json!([spawns, [wait(json!(ids), "all")]])) });
            sim.insist(ThreadRoute::PostMessage, &[], None, body.to_string()).await;
            sim.world.pause(60 * SECOND_US).await;
            let spent = spent(&sim);
            let [leads, workers @ ..] = &*spent else { panic!("{spent:?}") };
            assert!(leads.0 <= PARENT_STATEMENTS, "{leads:?}");
            // 17 of them make its tables.
            assert!(
                workers.len() == 4 && workers.iter().all(|worker| worker.0 <= WORKER_STATEMENTS),
                "{workers:?}"
            );
        })
        .calm();
}
