//! Effects: scheduled, run once or again and again, retried, given up, cancelled, replayed.

use bobbin::definitions::message::ToolResult;
use bobbin::engine::{NewEffect, Repetition};
use bobbin::request::{StreamRoute, ThreadRoute};
use bobbin::{Code, limits};
use serde_json::{Value, json};

use super::{clerk, with_work, work};
use crate::files::Sent;
use crate::host::{Answer, DAY_US, Native, SECOND_US, TOOL_URL};
use crate::sim::{Seen, Sim};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![once(), repeating(), reminding(), calling(), beside(), ending()]
}

/// The clerk, the tool `work`, and effects: `ring` is native, `remind` queues a message, `hook` is behind a URL.
pub(super) fn with_effects(name: &'static str) -> Scenario {
    Scenario::new(name, &with_work()).says(clerk).setup(work).setup(rings).define(|catalog| {
        catalog["effects"] = json!({
            "ring": {
                "description": "Rings.", "run": { "native": "ring" }, "attempts": 3,
                "args": { "type": "object", "properties": { "n": { "type": "integer" } } },
            },
            "remind": { "description": "Reminds.", "run": { "native": "queue_message" } },
            "hook": { "description": "Calls.", "run": { "http": { "url": format!("{TOOL_URL}/hook") } } },
        });
    })
}

fn rings(sim: &Sim) {
    sim.world.outside.effect("ring", |_, _| Native::Gives(SECOND_US / 10, ToolResult::success("")));
}

async fn post(sim: &Sim, body: Value) -> Seen {
    let key = sim.key();
    sim.insist(ThreadRoute::PostEffect, &[], Some(&key), body.to_string()).await
}

pub(super) async fn schedule(sim: &Sim, body: Value) -> String {
    let seen = post(sim, body).await;
    assert_eq!(seen.status, 201, "{}", seen.body);
    seen.body["effect"]["id"].as_str().unwrap().to_owned()
}

async fn effect(sim: &Sim, id: &str) -> Value {
    sim.get(ThreadRoute::GetEffect(id.into()), &[]).await["effect"].clone()
}

pub(super) async fn list(sim: &Sim) -> Value {
    sim.get(ThreadRoute::ListEffects, &[("limit", "500")]).await
}

/// Waits until nothing of this effect is to come.
pub(super) async fn over(sim: &Sim, id: &str) -> Value {
    for _ in 0..20_000 {
        let effect = effect(sim, id).await;
        if !matches!(effect["status"].as_str(), Some("pending" | "processing")) {
            return effect;
        }
        sim.world.pause(SECOND_US / 5).await;
    }
    panic!("the effect {id} never ends");
}

fn executions(sim: &Sim) -> usize {
    sim.world.outside.executions.borrow().len()
}

fn once() -> Scenario {
    with_effects("an effect").drive(|sim| async move {
        let later = schedule(&sim, json!({ "name": "ring", "args": { "n": 2 }, "delay": 60_000 })).await;
        let sooner = schedule(&sim, json!({ "name": "ring", "args": { "n": 1 }, "delay": 5_000 })).await;
        for id in [&sooner, &later] {
            let effect = over(&sim, id).await;
            assert_eq!(effect["status"], "completed", "{effect}");
        }
        let keys: Vec<String> =
            sim.world.outside.executions.borrow().iter().map(|ran| ran.key.clone()).collect();
        let first = |key: &str| keys.iter().position(|other| other == key).unwrap();
        let key = |effect: &Value| effect["idempotencyKey"].as_str().unwrap().to_owned();
        let (sooner, later) = (effect(&sim, &sooner).await, effect(&sim, &later).await);
        assert!(first(&key(&sooner)) < first(&key(&later)));
        let faults = sim.world.faults.borrow().fired.len();
        assert!(keys.len() <= 2 + faults, "{keys:?}");
        let listed = list(&sim).await;
        assert_eq!((&listed["total"], &listed["upcomingCount"]), (&json!(2), &json!(0)));
    })
}

#[test]
fn an_effect_runs_at_its_time_and_at_least_once_whatever_fails() {
    once().sweep();
}

fn repeating() -> Scenario {
    with_effects("an effect that repeats").drive(|sim| async move {
        let id = schedule(&sim, json!({ "name": "ring", "every": 10_000 })).await;
        let first = effect(&sim, &id).await["scheduledAt"].as_i64().unwrap();
        sim.world.pause(35 * SECOND_US).await;
        let seen = sim.insist(ThreadRoute::CancelEffect(id.clone()), &[], None, String::new()).await;
        // Its answer may have been lost, or an occurrence is under way: then that is its last.
        assert!(matches!(seen.status, 200 | 409), "{}", seen.body);
        over(&sim, &id).await;
        let listed = list(&sim).await;
        let of: Vec<&Value> = listed["effects"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|effect| effect["occurrenceOf"] == id.as_str())
            .collect();
        assert!((2..=3).contains(&of.len()) || !sim.world.faults.borrow().fired.is_empty(), "{of:#?}");
        for effect in of {
            let late = effect["scheduledAt"].as_i64().unwrap() - first;
            assert_eq!((late % (10 * SECOND_US), &effect["status"]), (0, &json!("completed")), "{effect}");
        }
    })
}

#[test]
fn one_that_repeats_keeps_to_its_times_until_it_is_cancelled() {
    repeating().sweep();
}

fn reminding() -> Scenario {
    with_effects("a reminder")
        .drive(|sim| async move {
            let body = json!({ "name": "remind", "args": { "content": "tea" }, "delay": 3_000 });
            let id = schedule(&sim, body).await;
            assert_eq!(over(&sim, &id).await["status"], "completed");
            sim.until("an answer", |sim| !sim.world.outside.requests.borrow().is_empty()).await;
        })
        .terms(|terms| terms.one_answer = false)
        .check(|_, history| {
            let reminders: Vec<&Value> = history.of("user").collect();
            assert_eq!(history.texts("user"), ["tea"], "once, however often the effect was tried");
            assert_eq!(reminders[0]["metadata"]["scheduledEffect"]["name"], "remind");
            assert_eq!(history.answers(), ["re: tea"]);
        })
}

#[test]
fn a_reminder_starts_one_run() {
    reminding().sweep();
}

fn calling() -> Scenario {
    with_effects("an effect behind a URL")
        .setup(|sim| {
            sim.world.outside.server("/hook", |_, before| match before {
                0 => Answer::status(503, "not now"),
                _ => Answer::json(&json!({ "ok": true })).after(SECOND_US),
            });
        })
        .drive(|sim| async move {
            let id = schedule(&sim, json!({ "name": "hook", "args": { "a": 1 } })).await;
            let effect = over(&sim, &id).await;
            assert_eq!((&effect["status"], &effect["error"]), (&json!("completed"), &Value::Null));
            assert!(effect["attempts"].as_i64().unwrap() >= 2);
        })
}

#[test]
fn an_effect_behind_a_url_is_tried_again() {
    calling().sweep();
}

/// Due in the middle of a turn of twenty seconds.
fn beside() -> Scenario {
    with_effects("an effect in a long turn").drive(|sim| async move {
        let message = sim.send("loop 20").await;
        let body = json!({ "name": "ring", "delay": 5_000 });
        let id = schedule(&sim, body).await;
        assert_eq!(over(&sim, &id).await["status"], "completed");
        if sim.world.faults.borrow().fired.is_empty() {
            let late = sim.world.outside.lateness.borrow()[0];
            assert!(late < SECOND_US / 10, "{late} us late");
            assert!(sim.get(ThreadRoute::Diagnostics, &[]).await["state"] == "running");
        }
        sim.outcome(&message).await;
    })
}

#[test]
fn an_effect_that_is_due_in_a_long_turn_runs_on_time() {
    beside().sampled(150).sweep();
}

fn ending() -> Scenario {
    with_effects("a thread that ends")
        .setup(|sim| {
            sim.world.outside.effect("ring", |_, _| Native::Gives(60 * SECOND_US, ToolResult::success("")))
        })
        .drive(|sim| async move {
            let running = schedule(&sim, json!({ "name": "ring" })).await;
            let waiting = schedule(&sim, json!({ "name": "ring", "every": 3_600_000 })).await;
            sim.world.pause(2 * SECOND_US).await;
            assert_eq!(sim.terminate().await.status, 200);
            for id in [&running, &waiting] {
                let effect = effect(&sim, id).await;
                assert_eq!(effect["status"], "agent_canceled", "{effect}");
                assert!(effect["error"].as_str().unwrap().contains("terminated"));
            }
            let seen = post(&sim, json!({ "name": "ring" })).await;
            assert_eq!((seen.status, &seen.body["error"]["code"]), (409, &json!("terminated")));
            let seen = sim.insist(ThreadRoute::RunEffect(running), &[], None, String::new()).await;
            assert_eq!(seen.status, 409);
        })
}

#[test]
fn the_effects_of_a_thread_end_with_it() {
    ending().sweep();
}

#[test]
fn one_that_fails_or_makes_no_sense_is_given_up_and_delays_no_other() {
    with_effects("bad effects")
        .setup(|sim| {
            sim.world.outside.effect("ring", |call, _| match call.args["n"].as_i64() {
                Some(1) => Native::Gives(SECOND_US, ToolResult::error("broken")),
                Some(2) => Native::Never,
                Some(4) => Native::Works(Box::pin(async { panic!("over its feet") })),
                _ => Native::Gives(0, ToolResult::success("")),
            });
        })
        .define(|catalog| catalog["effects"]["ring"]["timeoutMs"] = json!(2_000))
        .drive(|sim| async move {
            let mut bad = Vec::new();
            for n in [1, 2, 4] {
                bad.push(
                    schedule(&sim, json!({ "name": "ring", "args": { "n": n }, "delay": 10_000 })).await,
                );
            }
            let malformed = schedule(&sim, json!({ "name": "ring", "delay": 10_000 })).await;
            let number = malformed.rsplit('_').next().unwrap();
            sim.world.database.alter(&format!("UPDATE effects SET args = 'x' WHERE id = {number}"));
            let damaged = schedule(&sim, json!({ "name": "ring", "every": 10_000 })).await;
            let number = damaged.rsplit('_').next().unwrap();
            sim.world
                .database
                .alter(&format!("UPDATE effects SET repeats = 'x', status = 'y' WHERE id = {number}"));
            let good = schedule(&sim, json!({ "name": "ring", "args": { "n": 3 }, "delay": 10_000 })).await;
            assert_eq!(over(&sim, &good).await["status"], "completed");
            assert!(*sim.world.outside.lateness.borrow().iter().max().unwrap() < SECOND_US);
            for (id, attempts, error) in [
                (&bad[0], 3, "broken"),
                (&bad[1], 3, "did not answer within 2 s"),
                (&bad[2], 3, "it panicked: over its feet"),
                (&malformed, 0, "no JSON"),
                (&damaged, 0, "damaged"),
            ] {
                let effect = over(&sim, id).await;
                assert_eq!(
                    (&effect["status"], &effect["attempts"]),
                    (&json!("failed"), &json!(attempts)),
                    "{effect}"
                );
                assert!(effect["error"].as_str().unwrap().contains(error), "{effect}");
            }
            let logs = sim.get(ThreadRoute::ListLogs, &[]).await;
            let failures =
                logs["logs"].as_array().unwrap().iter().filter(|log| log["type"] == "effect_failure");
            assert_eq!(failures.count(), 5);
        })
        .calm();
}

#[test]
fn what_cannot_be_run_is_refused_when_it_is_scheduled() {
    with_effects("refusals")
        .drive(|sim| async move {
            for (body, field, says) in [
                (json!({}), "name", "required"),
                (json!({ "name": "rin" }), "name", "No effect named “rin”"),
                (json!({ "name": "ring", "args": { "n": "x" } }), "args", "n: expected integer"),
                (json!({ "name": "ring", "args": [1] }), "args", "expected object"),
                (
                    json!({ "name": "ring", "args": { "x": "y".repeat(limits::EFFECT_ARGS_BYTES) } }),
                    "args",
                    "100000",
                ),
                (json!({ "name": "ring", "delay": -1 }), "delay", "0 to"),
                (json!({ "name": "ring", "delay": 1.5 }), "delay", "whole number"),
                (json!({ "name": "ring", "delay": i64::MAX }), "delay", "0 to"),
                (json!({ "name": "ring", "delay": 1, "at": 2 }), "at", "not both"),
                (json!({ "name": "ring", "at": "tomorrow" }), "at", "a date"),
                (json!({ "name": "ring", "at": "9999-01-01" }), "at", "ten years"),
                (json!({ "name": "ring", "at": 0 }), "at", "milliseconds"),
                (json!({ "name": "ring", "at": 1_795_300_000 }), "at", "milliseconds"),
                (json!({ "name": "ring", "cron": "0 0 L * *" }), "cron", "day of the month"),
                (json!({ "name": "ring", "every": 999 }), "every", "1000 to"),
                (json!({ "name": "ring", "every": 1_000, "cron": "* * * * *" }), "cron", "not both"),
                (json!({ "name": "ring", "cron": "* * * *" }), "cron", "five fields"),
                (json!({ "name": "ring", "cron": "61 * * * *" }), "cron", "61"),
                (json!({ "name": "ring", "cron": "@daily" }), "cron", "five fields"),
                (json!({ "name": "ring", "cron": "0 0 30 2 *" }), "cron", "no day"),
                (json!({ "name": "ring", "dealy": 1 }), "dealy", "no field"),
            ] {
                let seen = post(&sim, body.clone()).await;
                let error = &seen.body["error"];
                assert!(matches!(seen.status, 400 | 413), "{body} {error}");
                let message = error["message"].as_str().unwrap();
                assert!(error["field"] == field && message.contains(says), "{body} {error}");
            }
            assert_eq!(list(&sim).await["total"], 0);
            let none = sim.insist(ThreadRoute::GetEffect("e_x_1".into()), &[], None, String::new()).await;
            assert_eq!(none.status, 404);
        })
        .calm();
}

#[test]
fn effects_are_cancelled_run_now_and_replayed() {
    with_effects("by hand")
        .drive(|sim| async move {
            let act = async |route: ThreadRoute| sim.insist(route, &[], None, String::new()).await;
            let id = schedule(&sim, json!({ "name": "ring", "delay": 3_600_000 })).await;
            assert_eq!(act(ThreadRoute::RunEffect(id.clone())).await.body["action"], "ran");
            assert_eq!(over(&sim, &id).await["status"], "completed");
            assert_eq!(act(ThreadRoute::CancelEffect(id.clone())).await.status, 409);
            let replayed = act(ThreadRoute::RunEffect(id.clone())).await.body;
            assert_eq!(replayed["action"], "replayed");
            let copy = over(&sim, replayed["replayedId"].as_str().unwrap()).await;
            assert_eq!((&copy["status"], &copy["replayedFrom"]), (&json!("completed"), &json!(id)));
            let daily = schedule(&sim, json!({ "name": "ring", "cron": "0 9 * * *" })).await;
            assert_eq!(act(ThreadRoute::RunEffect(daily.clone())).await.body["action"], "replayed");
            let canceled = act(ThreadRoute::CancelEffect(daily.clone())).await.body;
            assert_eq!(canceled, json!({ "action": "canceled", "id": daily, "canceledBy": "user" }));
            assert_eq!(effect(&sim, &daily).await["status"], "user_canceled");
            sim.world.pause(2 * SECOND_US).await;
            assert_eq!(executions(&sim), 3);
            // The same request twice is one effect.
            let body = json!({ "name": "ring" }).to_string();
            let first = sim.insist(ThreadRoute::PostEffect, &[], Some("same"), body.clone()).await;
            let second = sim.insist(ThreadRoute::PostEffect, &[], Some("same"), body).await;
            assert_eq!(first.body["effect"]["id"], second.body["effect"]["id"]);
            let other = json!({ "name": "ring", "delay": 1 }).to_string();
            assert_eq!(sim.insist(ThreadRoute::PostEffect, &[], Some("same"), other).await.status, 422);
        })
        .check(|sim, _| assert_eq!(executions(sim), 4))
        .calm();
}

#[test]
fn the_alarm_is_always_the_earliest_due_and_none_without_work() {
    with_effects("the alarm")
        .drive(|sim| async move {
            let alarm = || sim.world.alarm.get().next_us();
            let late = schedule(&sim, json!({ "name": "ring", "delay": 7_200_000 })).await;
            let second = alarm().unwrap();
            // An object that was dropped from memory must not forget that something is due earlier.
            sim.evict().await;
            let later = schedule(&sim, json!({ "name": "ring", "delay": 9_000_000 })).await;
            assert_eq!(alarm(), Some(second));
            let early = schedule(&sim, json!({ "name": "ring", "delay": 3_600_000 })).await;
            assert!(alarm().unwrap() < second);
            sim.ask("hello").await;
            sim.until("rest", |sim| sim.world.executor.waiting(false).is_empty()).await;
            assert!(alarm().unwrap() < second);
            for (id, next) in [(early, Some(second)), (late, None), (later, None)] {
                sim.insist(ThreadRoute::CancelEffect(id), &[], None, String::new()).await;
                assert!(next.is_none() || alarm() == next);
            }
            assert_eq!(alarm(), None);
            let diagnostics = sim.get(ThreadRoute::Diagnostics, &[]).await;
            assert_eq!(diagnostics["alarm"]["at"], Value::Null);
            assert_eq!(diagnostics["effects"]["next"], Value::Null);
        })
        .calm();
}

#[test]
fn what_was_missed_is_run_once_and_nothing_drifts() {
    with_effects("a long sleep")
        .drive(|sim| async move {
            let id = schedule(&sim, json!({ "name": "ring", "every": 1_000 })).await;
            let first = effect(&sim, &id).await["scheduledAt"].as_i64().unwrap();
            sim.evict().await;
            // The machine is off for an hour.
            sim.world.database.alter(
                "UPDATE effects SET at_us = at_us - 3600000000, scheduled_us = scheduled_us - 3600000000",
            );
            sim.world.pause(4 * SECOND_US).await;
            sim.insist(ThreadRoute::CancelEffect(id.clone()), &[], None, String::new()).await;
            over(&sim, &id).await;
            let runs = executions(&sim);
            assert!((3..=5).contains(&runs), "{runs} runs in four seconds");
            let times: Vec<i64> = list(&sim).await["effects"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|effect| effect["scheduledAt"].as_i64())
                .collect();
            assert!(times.iter().all(|at| (at - first) % SECOND_US == 0), "{times:?}");
        })
        .calm();
}

#[test]
fn many_effects_run_on_time_and_leave_no_alarm() {
    with_effects("many effects")
        .setup(|sim| {
            sim.world.outside.effect("ring", |_, _| Native::Gives(0, ToolResult::success("")));
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Acts(Box::new(move || {
                    for n in 0..2_000 {
                        let effect = NewEffect::once("ring", json!({ "n": n }), 10_000 + n * 10);
                        state.schedule_effect(effect).unwrap();
                    }
                    assert_eq!(state.get_scheduled_effects(Some("ring")).unwrap().len(), 2_000);
                    ToolResult::success("scheduled")
                }))
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            sim.world.pause(60 * SECOND_US).await;
            let listed = list(&sim).await;
            assert_eq!((&listed["total"], &listed["upcomingCount"]), (&json!(2_000), &json!(0)));
        })
        .check(|sim, _| {
            let late = sim.world.outside.lateness.borrow();
            assert_eq!(late.len(), 2_000);
            assert!(*late.iter().max().unwrap() < SECOND_US / 5, "{:?}", late.iter().max());
        })
        .once();
}

#[test]
fn code_schedules_and_cancels_too() {
    with_effects("from code")
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Acts(Box::new(move || {
                    let id = state.schedule_effect(NewEffect::once("ring", json!({}), 60_000)).unwrap();
                    assert!(state.remove_scheduled_effect(&id).unwrap());
                    assert!(!state.remove_scheduled_effect(&id).unwrap());
                    let daily = NewEffect {
                        at_us: None,
                        delay_ms: None,
                        repeats: Repetition::Cron("30 8 * * 1-5".into()),
                        ..NewEffect::once("ring", json!({}), 0)
                    };
                    let id = state.schedule_effect(daily).unwrap();
                    let listed = state.get_scheduled_effects(None).unwrap();
                    assert_eq!((listed.len(), &listed[0]["repeat"]["cron"]), (1, &json!("30 8 * * 1-5")));
                    assert!(state.get_scheduled_effects(Some("other")).unwrap().is_empty());
                    assert!(state.remove_scheduled_effect(&id).unwrap());
                    let error = state.schedule_effect(NewEffect::once("none", json!({}), 0)).unwrap_err();
                    assert_eq!(error.code, Code::InvalidField);
                    ToolResult::success("done")
                }))
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            let listed = list(&sim).await;
            let states: Vec<&Value> =
                listed["effects"].as_array().unwrap().iter().map(|effect| &effect["status"]).collect();
            assert_eq!(states, ["agent_canceled", "agent_canceled"]);
        })
        .calm();
}

#[test]
fn a_message_of_an_effect_leaves_a_stopped_thread_stopped() {
    with_effects("stopped")
        .drive(|sim| async move {
            sim.ask("hello").await;
            sim.stop().await;
            let id = schedule(&sim, json!({ "name": "remind", "args": { "content": "tea" } })).await;
            over(&sim, &id).await;
            sim.world.pause(5 * SECOND_US).await;
            assert_eq!(sim.world.outside.requests.borrow().len(), 1);
            sim.ask("go on").await;
            assert_eq!(
                sim.world.outside.requests.borrow().last().unwrap().texts("user"),
                ["hello", "tea", "go on"]
            );
        })
        .calm();
}

#[test]
fn what_has_ended_long_ago_is_forgotten_and_no_id_comes_twice() {
    with_effects("retention")
        .drive(|sim| async move {
            let old = schedule(&sim, json!({ "name": "ring" })).await;
            over(&sim, &old).await;
            sim.evict().await;
            let age = limits::EFFECT_HISTORY_US + DAY_US;
            sim.world.database.alter(&format!("UPDATE effects SET at_us = at_us - {age}"));
            let new = schedule(&sim, json!({ "name": "ring" })).await;
            over(&sim, &new).await;
            assert_ne!(old, new);
            let gone = sim.insist(ThreadRoute::GetEffect(old), &[], None, String::new()).await;
            assert_eq!((gone.status, &list(&sim).await["total"]), (404, &json!(1)));
        })
        .calm();
}

#[test]
fn effects_and_clients_see_the_same_values_and_files() {
    with_effects("shared")
        .setup(|sim| {
            sim.world.outside.effect("ring", |call, _| {
                let state = call.state.clone();
                Native::Acts(Box::new(move || {
                    let before: i64 = state.get_value("count").unwrap().unwrap_or(0);
                    state.set_value("count", &(before + 1)).unwrap();
                    state
                        .write_file("/log.txt", format!("{before}"), "text/plain", Default::default())
                        .unwrap();
                    ToolResult::success("")
                }))
            });
        })
        .drive(|sim| async move {
            let body = json!({ "key": "count", "value": 41 }).to_string();
            sim.insist(ThreadRoute::PostValue, &[], None, body).await;
            let id = schedule(&sim, json!({ "name": "ring" })).await;
            over(&sim, &id).await;
            sim.evict().await;
            assert_eq!(sim.get(ThreadRoute::GetValues, &[("key", "count")]).await["value"], 42);
            let file = sim.serve(Sent::new(StreamRoute::GetFile("log.txt".into()))).await;
            assert_eq!(file.body.as_deref(), Ok(&b"41"[..]));
        })
        .calm();
}
