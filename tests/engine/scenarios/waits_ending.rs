//! Waits that end otherwise than by a decision alone: by their time, by a message, by a stop, by a deployment; and those that lead to
//! another one.

use bobbin::Code;
use bobbin::access::Access;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::story;
use super::waits::{asking, decide, decides, open, runs, until_open, with};
use crate::host::{DAY_US, SECOND_US};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![
        fails(),
        ends_meanwhile("deny"),
        ends_meanwhile("fail"),
        one_after_the_other(),
        put_off(),
        by_a_link(),
        written_instead(),
        written_meanwhile(),
        continued(),
        denied_and_stopped(),
        changed(),
        removed(),
        reshaped(),
        forbidden(),
        remembered(),
        approved_for_the_client(),
    ]
}

async fn until_ended(sim: &Sim, runs: i64) {
    sim.until("the runs have ended", |sim| {
        sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE outcome IS NOT NULL") == [runs]
    })
    .await;
}

/// Waits until no run is under way.
async fn until_over(sim: &Sim) {
    sim.until("the runs have ended", |sim| {
        sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE outcome IS NULL") == [0]
    })
    .await;
}

fn fails() -> Scenario {
    let approval = json!({ "mode": "always", "onExpiry": "fail", "expiresAfterSeconds": 3_600 });
    story("a run that fails because nobody answers")
        .define(with(json!({ "pay": asking(approval) })))
        .terms(|terms| {
            terms.outcomes = vec!["failed", "completed"];
            terms.pairs = false;
        })
        .drive(|sim| async move {
            let sent = sim.send("use pay").await;
            let waits = until_open(&sim, 1).await;
            assert_eq!(waits[0]["onExpiry"], "fail");
            sim.world.pause(2 * 3_600 * SECOND_US).await;
            let outcome = sim.outcome(&sent).await;
            assert_eq!((&outcome["outcome"], &outcome["reason"]), (&json!("failed"), &json!("wait_expired")));
            assert!(outcome.to_string().contains("Nobody answered within 60 minutes."), "{outcome}");
            let late = decide(&sim, &waits[0], json!({ "decision": "approve" })).await;
            assert_eq!(late.body["error"]["details"]["wait"]["state"], "expired", "{}", late.body);
            assert_eq!(sim.ask("hello").await["outcome"], "completed");
        })
        .check(|sim, history| {
            assert_eq!(runs(sim), 0);
            assert_eq!(history.texts("tool"), ["Denied: Nobody answered within 60 minutes."]);
        })
}

#[test]
fn a_question_that_nobody_answers_may_fail_its_run() {
    fails().sweep();
}

/// `pay` takes ten minutes, and the question behind it ends meanwhile.
fn ends_meanwhile(on_expiry: &'static str) -> Scenario {
    let soon = json!({ "mode": "always", "onExpiry": on_expiry, "expiresAfterSeconds": 300 });
    story("a question that ends while a call before it runs")
        .define(with(json!({ "pay": asking(json!("always")), "send": asking(soon) })))
        .setup(|sim| {
            sim.world.outside.native("work", |_, before| {
                let result = bobbin::definitions::message::ToolResult::success(format!("w{before}"));
                crate::host::Native::Gives(600 * SECOND_US, result)
            });
        })
        .terms(move |terms| {
            if on_expiry == "fail" {
                terms.outcomes = vec!["failed"];
                terms.pairs = false;
                terms.overlap = true;
            }
        })
        .drive(move |sim| async move {
            let sent = sim.send("use pay,send").await;
            let waits = until_open(&sim, 2).await;
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
            sim.world.pause(400 * SECOND_US).await;
            // Its time is over, whether or not anything has noted that by now.
            let late = decide(&sim, &waits[1], json!({ "decision": "approve" })).await;
            assert_eq!(
                (late.status, &late.body["error"]["code"]),
                (409, &json!("conflict")),
                "{}",
                late.body
            );
            assert_eq!(late.body["error"]["details"]["wait"]["state"], "expired", "{}", late.body);
            let outcome = sim.outcome(&sent).await;
            let failed = on_expiry == "fail";
            assert_eq!(outcome["outcome"], if failed { "failed" } else { "completed" }, "{outcome}");
        })
        .check(move |sim, history| {
            assert!(runs(sim) <= 1, "what nobody has approved never runs");
            let results = history.texts("tool");
            assert_eq!(results.last(), Some(&"Denied: Nobody answered within 5 minutes."), "{results:?}");
            if on_expiry == "deny" {
                assert!(results[0] == "w0" || history.faults > 0, "{results:?}");
            }
        })
}

#[test]
fn a_question_that_ends_while_a_call_before_it_runs_is_over_for_everybody() {
    ends_meanwhile("deny").sweep();
    ends_meanwhile("fail").sweep();
}

fn one_after_the_other() -> Scenario {
    story("decisions one after the other")
        .define(with(json!({ "pay": asking(json!("always")), "send": asking(json!("always")) })))
        .drive(|sim| async move {
            let sent = sim.send("use pay,send").await;
            let waits = until_open(&sim, 2).await;
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
            sim.world.pause(3_600 * SECOND_US).await;
            assert_eq!(sim.outcome(&sent).await["outcome"], "parked", "the other one is open still");
            let calm = sim.world.faults.borrow().fired.is_empty();
            let diagnostics = sim.get(ThreadRoute::Diagnostics, &[]).await;
            assert!(!calm || diagnostics["flow"]["running"] == json!(false), "{diagnostics}");
            assert!(!calm || diagnostics["alarm"]["at"] == waits[1]["expiresAt"], "{diagnostics}");
            decides(&sim, &waits[1], json!({ "decision": "approve" })).await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert!(results == ["w0", "w1"] || history.faults > 0 && results.len() == 2, "{results:?}");
            let recovered: Vec<i64> =
                sim.member.database.ask("SELECT count(*) FROM logs WHERE kind = 'recovery'");
            assert!(recovered == [0] || history.faults > 0, "it was entered again for nothing");
        })
}

#[test]
fn a_run_is_parked_again_for_what_is_decided_later() {
    one_after_the_other().sweep();
}

fn put_off() -> Scenario {
    story("a question that is put off")
        .define(with(json!({ "pay": asking(json!({ "mode": "always", "expiresAfterSeconds": 3_600 })) })))
        .terms(|terms| terms.one_answer = false)
        .drive(|sim| async move {
            sim.send("use pay").await;
            let waits = until_open(&sim, 1).await;
            let now = sim.world.now_us() / SECOND_US;
            for until in [now - 1, now + 31 * 86_400] {
                let seen = decide(&sim, &waits[0], json!({ "decision": "defer", "until": until })).await;
                assert_eq!(
                    (seen.status, &seen.body["error"]["field"]),
                    (400, &json!("until")),
                    "{}",
                    seen.body
                );
            }
            let later = json!({ "decision": "defer", "until": now + 3 * 86_400 });
            let seen = decide(&sim, &waits[0], later).await;
            assert_eq!((seen.status, &seen.body["wait"]["state"]), (200, &json!("open")), "{}", seen.body);
            assert_eq!(seen.body["wait"]["expiresAt"], json!((now + 3 * 86_400) * SECOND_US));
            sim.accepted.borrow_mut().clear();
            sim.world.pause(2 * DAY_US).await;
            assert_eq!(open(&sim).await.len(), 1, "it would have ended two days ago");
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert!(results == ["w0"] || history.faults > 0, "{results:?}");
            assert!(runs(sim) <= 1);
        })
}

#[test]
fn a_question_can_be_put_off_and_ends_then() {
    put_off().sweep();
}

/// Who has the link of a parked run decides two days later, without keys; the object was put out of memory meanwhile.
fn by_a_link() -> Scenario {
    const SECRET: &str = "secret-of-the-tokens-0123456789abcdef";
    story("a decision by a link, days later")
        .define(with(json!({ "pay": asking(json!("always")) })))
        .setup(|sim| {
            sim.world.vars.borrow_mut().insert("BOBBIN_TOKEN_SECRET".into(), SECRET.into());
        })
        .terms(|terms| terms.one_answer = false)
        .drive(|sim| async move {
            sim.send("use pay").await;
            let waits = until_open(&sim, 1).await;
            let run = sim.get(ThreadRoute::GetRun("r_1".into()), &[]).await;
            let token = run["token"].as_str().expect("a token").to_owned();
            // The key of the message is forgotten before its outcome is there.
            sim.accepted.borrow_mut().clear();
            sim.evict().await;
            sim.world.pause(2 * DAY_US).await;
            let access = Access::from_vars(|name| match name {
                "BOBBIN_API_KEYS" => Some("root-key=admin".into()),
                "BOBBIN_TOKEN_SECRET" => Some(SECRET.into()),
                _ => None,
            });
            let access = access.unwrap();
            let link = access.of_link(&token, sim.world.now_us()).expect("it is good for a week");
            let ended = access.of_link(&token, sim.world.now_us() + 5 * DAY_US).unwrap_err();
            assert_eq!(ended.code, Code::InvalidToken);
            *sim.caller.borrow_mut() = link;
            let elsewhere = json!({ "id": "w_6f0c0000_9" });
            assert_eq!(decide(&sim, &elsewhere, json!({ "decision": "approve" })).await.status, 404);
            decides(&sim, &waits[0], json!({ "decision": "approve", "actor": "Ann" })).await;
            *sim.caller.borrow_mut() = crate::sim::admin();
            until_ended(&sim, 1).await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert!(results == ["w0"] || history.faults > 0 && results.len() == 1, "{results:?}");
            assert!(runs(sim) <= 1);
            let by: Vec<String> = sim
                .member
                .database
                .ask("SELECT data ->> '$.decision.scope' FROM logs WHERE kind = 'approval'");
            assert_eq!(by, ["wait:6f0c0000-0000-4000-8000-000000000001/w_6f0c0000_1"]);
        })
}

#[test]
fn a_link_decides_days_later_whatever_fails() {
    by_a_link().sweep();
}

fn written_instead() -> Scenario {
    story("a message instead of a decision")
        .define(|catalog| {
            with(json!({ "pay": asking(json!("always")), "send": asking(json!("always")) }))(catalog);
            catalog["settings"] = json!({ "approvals": { "onMessage": "deny" } });
        })
        .drive(|sim| async move {
            sim.send("use pay,send").await;
            let waits = until_open(&sim, 2).await;
            sim.send("never mind").await;
            until_ended(&sim, 1).await;
            for wait in &waits {
                let route = ThreadRoute::GetWait(wait["id"].as_str().unwrap().into());
                let wait = &sim.get(route, &[]).await["wait"];
                assert_eq!(
                    (&wait["state"], &wait["decision"], &wait["decidedBy"]["scope"]),
                    (&json!("decided"), &json!("deny"), &json!("message")),
                    "{wait}"
                );
            }
        })
        .check(|sim, history| {
            let denied = "Denied: The user wrote instead.";
            assert_eq!(history.texts("tool"), [denied, denied]);
            assert_eq!(history.texts("user"), ["use pay,send", "never mind"]);
            assert_eq!(runs(sim), 0);
        })
}

#[test]
fn a_message_instead_of_a_decision_denies_what_is_open_where_that_is_wanted() {
    written_instead().sweep();
}

fn written_meanwhile() -> Scenario {
    story("a message beside what is asked")
        .define(with(json!({ "pay": asking(json!("always")) })))
        .drive(|sim| async move {
            sim.send("use pay").await;
            let waits = until_open(&sim, 1).await;
            let seen = sim.post(json!({ "role": "user", "content": "hurry" })).await;
            assert_eq!((seen.status, &seen.body["state"]), (202, &json!("parked")), "{}", seen.body);
            sim.world.pause(60 * SECOND_US).await;
            assert_eq!(open(&sim).await.len(), 1, "it waits, and decides nothing");
            decides(&sim, &waits[0], json!({ "decision": "deny" })).await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool"), ["Denied."]);
            assert_eq!(history.texts("user"), ["use pay", "hurry"]);
            assert_eq!(runs(sim), 0);
        })
}

#[test]
fn a_message_that_comes_while_a_person_is_asked_waits_in_the_queue() {
    written_meanwhile().sweep();
}

fn continued() -> Scenario {
    story("a stop while a person is asked, then continue")
        .define(with(json!({ "pay": asking(json!("always")) })))
        .terms(|terms| {
            terms.outcomes = vec!["stopped", "completed"];
            terms.more_requests = 1;
            terms.one_answer = false;
            // The result of a call that never began is made when a request needs it.
            terms.pairs = false;
        })
        .drive(|sim| async move {
            sim.send("use pay,work").await;
            let waits = until_open(&sim, 1).await;
            sim.stop().await;
            let late = decide(&sim, &waits[0], json!({ "decision": "approve" })).await;
            assert_eq!(late.body["error"]["details"]["wait"]["state"], "cancelled", "{}", late.body);
            assert_eq!(sim.go_on().await.status / 100, 2);
            until_ended(&sim, 2).await;
        })
        .check(|sim, history| {
            let cancelled = "Not run: the run was ended before anybody had decided about this call.";
            assert_eq!(history.texts("tool"), [cancelled]);
            assert_eq!(runs(sim), 0);
            // The model is told of both.
            let told = format!("done: {cancelled}|Not run: the run was stopped.");
            assert!(history.texts("assistant").contains(&told.as_str()), "{:?}", history.texts("assistant"));
        })
}

#[test]
fn a_thread_that_was_stopped_while_a_person_was_asked_can_continue() {
    continued().sweep();
}

fn denied_and_stopped() -> Scenario {
    story("a denial that stops")
        .define(with(json!({ "pay": asking(json!("always")), "send": asking(json!("always")) })))
        .terms(|terms| {
            terms.outcomes = vec!["stopped", "completed"];
            terms.pairs = false;
        })
        .drive(|sim| async move {
            sim.send("use pay,send").await;
            let waits = until_open(&sim, 2).await;
            decides(&sim, &waits[1], json!({ "decision": "deny", "reason": "no", "stop": true })).await;
            assert!(open(&sim).await.is_empty());
            let other = sim.get(ThreadRoute::GetWait(waits[0]["id"].as_str().unwrap().into()), &[]).await;
            assert_eq!(other["wait"]["state"], "cancelled");
            assert_eq!(sim.ask("hello").await["outcome"], "completed");
        })
        .check(|sim, history| {
            assert_eq!(runs(sim), 0);
            let run = &history.outcomes.values().next().unwrap();
            assert_eq!((&run["outcome"], &run["reason"]), (&json!("stopped"), &json!("stopped_by_user")));
        })
}

#[test]
fn a_denial_may_stop_the_run() {
    denied_and_stopped().sweep();
}

fn changed() -> Scenario {
    story("a deployment between question and answer")
        .define(with(json!({ "pay": asking(json!("always")), "send": asking(json!("always")) })))
        .drive(|sim| async move {
            sim.send("use pay,send").await;
            let waits = until_open(&sim, 2).await;
            decides(&sim, &waits[1], json!({ "decision": "approve" })).await;
            let mut catalog: Value = serde_json::to_value(&**sim.catalog.borrow()).unwrap();
            catalog["tools"]["send"]["timeoutMs"] = json!(1_000);
            sim.deploy(&catalog);
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
            let anew = until_open(&sim, 1).await;
            assert_eq!(anew[0]["call"]["tool"], "send");
            assert_ne!(anew[0]["id"], waits[1]["id"]);
            let old = sim.get(ThreadRoute::GetWait(waits[1]["id"].as_str().unwrap().into()), &[]).await;
            assert_eq!(old["wait"]["state"], "void");
            decides(&sim, &anew[0], json!({ "decision": "approve" })).await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool").len(), 2);
            assert!(runs(sim) <= 2, "each ran once");
        })
}

#[test]
fn a_deployment_that_changes_the_tool_makes_the_decision_void_and_asks_anew() {
    changed().sweep();
}

/// A deployment between question and answer by which calls that were asked about cannot be made any more, and what becomes of them.
fn undone(name: &'static str, change: fn(&mut Value), result: &'static str) -> Scenario {
    story(name)
        .define(with(json!({ "pay": asking(json!("always")), "send": asking(json!("always")) })))
        .drive(move |sim| async move {
            let sent = sim.send("use pay,send").await;
            let waits = until_open(&sim, 2).await;
            let mut catalog: Value = serde_json::to_value(&**sim.catalog.borrow()).unwrap();
            change(&mut catalog);
            sim.deploy(&catalog);
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
            let second = decide(&sim, &waits[1], json!({ "decision": "approve" })).await;
            // Of a call that cannot be made any more nothing is asked.
            let void = second.body["error"]["details"]["wait"]["state"] == "void";
            assert!(second.status == 200 || second.status == 409 && void, "{}", second.body);
            until_ended(&sim, 1).await;
            assert_eq!(sim.outcome(&sent).await["outcome"], "completed");
            assert!(open(&sim).await.is_empty());
        })
        .check(move |sim, history| {
            assert_eq!(runs(sim), 0, "what cannot be made any more never runs");
            let results = history.texts("tool");
            assert!(results.len() == 2 && results.iter().all(|text| text.contains(result)), "{results:?}");
        })
}

/// Its tools are gone.
fn removed() -> Scenario {
    let change = |catalog: &mut Value| {
        for name in ["pay", "send"] {
            catalog["tools"].as_object_mut().unwrap().remove(name);
        }
        catalog["prompts"]["p"]["tools"] = json!(["work"]);
    };
    undone("a deployment that takes away what was asked about", change, "There is no tool")
}

/// Its tools take other arguments.
fn reshaped() -> Scenario {
    let change = |catalog: &mut Value| {
        for name in ["pay", "send"] {
            catalog["tools"][name]["args"]["required"] = json!(["to"]);
        }
    };
    undone("a deployment that asks for other arguments", change, "to: required but missing")
}

/// Nobody may be asked any more, and the tools are others.
fn forbidden() -> Scenario {
    let change = |catalog: &mut Value| {
        for name in ["pay", "send"] {
            catalog["tools"][name]["timeoutMs"] = json!(1_000);
        }
        catalog["settings"] = json!({ "approvals": { "policy": "never" } });
    };
    undone("a deployment after which nobody is asked", change, "nobody is asked here")
}

#[test]
fn a_call_that_a_deployment_has_made_impossible_while_people_were_asked_does_not_run() {
    removed().sweep();
    reshaped().sweep();
    forbidden().sweep();
}

fn remembered() -> Scenario {
    story("an approval that is remembered")
        .says(|request| match (request.results().len(), request.last_user()) {
            (0, user) => crate::host::Say::call("pay", &json!({ "amount": user.len(), "to": "ann" })),
            _ => super::clerk(request),
        })
        .define(with(
            json!({ "pay": asking(json!({ "mode": "always", "remember": "thread", "rememberBy": ["to"], "edit": ["amount"] })) }),
        ))
        .drive(|sim| async move {
            sim.send("one").await;
            let waits = until_open(&sim, 1).await;
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
            let outcome = sim.ask("other").await;
            assert_eq!(outcome["outcome"], "completed", "it is not asked again: {outcome}");
            let seen = sim.insist(ThreadRoute::ForgetWaits, &[], None, String::new()).await;
            assert_eq!(seen.status, 200);
            sim.send("again").await;
            let waits = until_open(&sim, 1).await;
            let changed = json!({ "decision": "approve", "args": { "amount": 1 } });
            decides(&sim, &waits[0], changed).await;
            until_over(&sim).await;
            // Nobody has said that what was changed may stand as it was.
            sim.send("again").await;
            let waits = until_open(&sim, 1).await;
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
            until_over(&sim).await;
            // What was said of a tool says nothing of another one in its place.
            let mut catalog: Value = serde_json::to_value(&**sim.catalog.borrow()).unwrap();
            catalog["tools"]["pay"]["timeoutMs"] = json!(1_000);
            sim.deploy(&catalog);
            sim.send("again").await;
            let waits = until_open(&sim, 1).await;
            decides(&sim, &waits[0], json!({ "decision": "deny" })).await;
        })
        .check(|sim, history| {
            assert!(runs(sim) <= 4 && (runs(sim) == 4 || history.faults > 0));
            let waits: Vec<String> = sim.member.database.ask("SELECT state FROM waits ORDER BY id");
            assert_eq!(waits, ["decided", "decided", "decided", "decided"]);
        })
}

#[test]
fn an_approval_may_count_for_equal_calls_of_the_thread() {
    remembered().sweep();
}

fn approved_for_the_client() -> Scenario {
    story("a call of the client's that is approved first")
        .define(with(json!({ "locate": { "description": "Where the person is.",
            "args": { "type": "object", "properties": {} }, "run": { "client": {} }, "approval": "always" } })))
        .drive(|sim| async move {
            sim.send("use locate").await;
            let waits = until_open(&sim, 1).await;
            assert_eq!(waits[0]["kind"], "approval");
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
            let next = loop {
                let waits = until_open(&sim, 1).await;
                if waits[0]["kind"] == "client_tool" {
                    break waits;
                }
            };
            decides(&sim, &next[0], json!({ "decision": "answer", "result": { "city": "Bern" } })).await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool"), [r#"{"city":"Bern"}"#]);
            let kinds: Vec<String> =
                sim.member.database.ask("SELECT kind || ' ' || state FROM waits ORDER BY id");
            assert_eq!(kinds, ["approval decided", "client_tool decided"], "each is asked once");
        })
}

#[test]
fn a_call_of_the_clients_that_needs_an_approval_is_carried_out_after_it() {
    approved_for_the_client().sweep();
}
