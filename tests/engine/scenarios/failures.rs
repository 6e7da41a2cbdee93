//! Processes that die again and again, and what keeps that from going on for ever.

use super::{INDETERMINATE, story};
use crate::host::fault::{Fault, whenever};
use crate::host::{At, SECOND_US};
use crate::sweep::Scenario;

/// A process that dies whenever the model is asked.
pub(super) fn kills(fault: Fault) -> Scenario {
    story("recovery exhausted")
        .suffers(move || whenever(100, fault, |point| point.at == At::Sent))
        .drive(|sim| async move {
            let outcome = sim.ask("hello").await;
            assert_eq!(outcome["reason"], "recovery_exhausted", "{outcome}");
        })
        .check(|sim, history| {
            let requests = sim.world.outside.requests.borrow();
            assert_eq!(requests.len(), 7, "the first and six recoveries");
            assert_eq!(history.statuses("run_failed").len(), 1);
            // The first recovery comes at once, each later one after twice the time of the one before.
            let gaps: Vec<i64> =
                requests.windows(2).map(|p| (p[1].at_us - p[0].at_us + SECOND_US / 2) / SECOND_US).collect();
            assert!(gaps[0] <= 1, "{gaps:?}");
            for (n, gap) in gaps.iter().enumerate().skip(1) {
                let wait = 1 << (n - 1);
                assert!((wait..=wait + 2).contains(gap), "{gaps:?}");
            }
        })
        .terms(|terms| {
            terms.outcomes = vec!["failed"];
            terms.one_answer = false;
        })
}

#[test]
fn a_step_that_kills_the_process_every_time_is_given_up_after_seven() {
    Fault::ALL.into_iter().for_each(|fault| kills(fault).calm());
}

#[test]
fn recoveries_start_anew_with_each_step() {
    // Every step of ten loses its process twice.
    story("two crashes a step")
        .suffers(|| {
            let mut requests = 0;
            Box::new(move |point| {
                requests += usize::from(point.at == At::Sent);
                (point.at == At::Sent && requests % 3 != 0).then_some(Fault::CrashKept)
            })
        })
        .drive(|sim| async move {
            let outcome = sim.ask("loop 10").await;
            assert_eq!(outcome["message"]["content"], "done 10", "{outcome}");
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool").len(), 10);
            assert_eq!(sim.world.outside.requests.borrow().len(), 33);
        })
        .calm();
}

#[test]
fn a_killed_process_restarts_its_run_without_any_request() {
    for (name, wait_for_tool) in [("kill in a model call", false), ("kill in a tool", true)] {
        story(name)
            .answers(|request| super::clerk(request).stream(request.index).pace(SECOND_US))
            .drive(move |sim| async move {
                sim.send("use work").await;
                match wait_for_tool {
                    true => sim.until_executions(1).await,
                    false => {
                        sim.until_requests(1).await;
                        sim.world.pause(SECOND_US).await;
                    }
                }
                let killed = sim.world.now_us();
                let before = sim.world.outside.requests.borrow().len();
                sim.world.kill();
                // Nobody asks for anything.
                sim.until_requests(before + 1).await;
                assert!(sim.world.now_us() - killed < 2 * SECOND_US, "it took too long");
            })
            .check(move |_, history| {
                assert_eq!(history.answers().len(), 1);
                if wait_for_tool {
                    assert_eq!(history.texts("tool"), [INDETERMINATE]);
                }
            })
            .calm();
    }
}

#[test]
fn a_crash_between_two_steps_repeats_neither() {
    story("between steps")
        .suffers(|| {
            // The third commit after each result.
            whenever(3, Fault::CrashKept, |point| point.at == At::AfterCommit && point.index % 7 == 0)
        })
        .drive(|sim| async move {
            sim.ask("loop 6").await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool").len(), 6);
            assert!(sim.world.outside.requests.borrow().len() <= 10);
        })
        .calm();
}

#[test]
fn the_directory_is_told_in_the_end_however_long_it_is_away() {
    story("directory away")
        .setup(|sim| {
            let calls = std::cell::Cell::new(0);
            sim.world.outside.sibling(move |_| {
                calls.set(calls.get() + 1);
                match calls.get() {
                    n if n < 12 && n % 2 == 0 => Err(bobbin::Error::internal("the directory is away")),
                    n if n < 12 => Ok(r#"{"status":503}"#.into()),
                    _ => Ok(r#"{"status":204}"#.into()),
                }
            });
        })
        .drive(|sim| async move {
            let outcome = sim.ask("hello").await;
            assert_eq!(outcome["message"]["content"], "re: hello", "no run waits for the directory");
        })
        .check(|sim, _| {
            let siblings = sim.world.outside.siblings.borrow();
            assert!(siblings.len() >= 12);
            assert!(sim.world.alarms_fired.get() <= 20, "{} alarms", sim.world.alarms_fired.get());
        })
        .calm();
}

#[test]
fn the_directory_is_told_of_a_new_thread_again_whatever_fails_meanwhile() {
    story("directory away at first")
        .setup(|sim| {
            let calls = std::cell::Cell::new(0);
            sim.world.outside.sibling(move |_| {
                calls.set(calls.get() + 1);
                match calls.get() {
                    1 => Ok(r#"{"status":503}"#.into()),
                    _ => Ok(r#"{"status":204}"#.into()),
                }
            });
        })
        .drive(|sim| async move {
            sim.world.pause(10 * SECOND_US).await;
        })
        .check(|sim, _| {
            let siblings = sim.world.outside.siblings.borrow();
            assert!(
                siblings.iter().filter(|(_, call)| call["call"] == "upsert").count() >= 2,
                "{siblings:?}"
            );
        })
        .sweep();
}

#[test]
fn evicting_an_idle_object_loses_nothing() {
    story("eviction")
        .drive(|sim| async move {
            for n in 0..5 {
                sim.ask(&format!("m{n}")).await;
                sim.evict().await;
            }
        })
        .check(|sim, history| {
            assert_eq!(history.answers().len(), 5);
            let requests = sim.world.outside.requests.borrow();
            assert_eq!(requests[4].texts("user").len(), 5, "the history is read again");
        })
        .calm();
}

/// What a run that was given up leaves of the call in which it was.
fn given_up(sim: &crate::sim::Sim, history: &crate::contract::History, reason: &str) {
    assert_eq!(history.statuses("run_failed").len(), 1);
    let ends: Vec<String> = sim.world.database.ask("SELECT reason FROM runs");
    assert_eq!(ends, [reason]);
    let states: Vec<String> = sim.world.database.ask("SELECT state FROM calls");
    assert_eq!(states, ["indeterminate"]);
    let [told] = history.texts("tool").try_into().unwrap();
    assert!(told.contains("It may or may not have taken effect."), "{told}");
}

#[test]
fn a_run_that_is_given_up_in_a_call_leaves_it_with_a_result() {
    for fault in Fault::ALL {
        story("recovery exhausted in a call")
            .define(super::subprompts::checking)
            .says(|request| {
                crate::host::Say::call("check", &serde_json::json!({ "what": request.last_user() }))
            })
            .suffers(move || {
                let mut sent = 0;
                Box::new(move |point| {
                    sent += usize::from(point.at == At::Sent);
                    (point.at == At::Sent && sent > 1).then_some(fault)
                })
            })
            .drive(|sim| async move {
                let outcome = sim.ask("hello").await;
                assert_eq!(outcome["reason"], "recovery_exhausted", "{outcome}");
            })
            .check(|sim, history| given_up(sim, history, "recovery_exhausted"))
            .terms(|terms| {
                terms.outcomes = vec!["failed"];
                terms.one_answer = false;
            })
            .calm();
    }
}

#[test]
fn a_run_whose_agent_vanished_in_a_call_leaves_it_with_a_result() {
    story("an agent that vanished in a call")
        .says(super::clerk)
        .drive(|sim| async move {
            sim.send("use work").await;
            sim.until_executions(1).await;
            let mut none = crate::sim::catalog(&super::with_work());
            none["agents"] = serde_json::json!({});
            sim.deploy(&none);
            sim.world.kill();
            sim.until("the end", |sim| {
                !sim.world.database.ask::<i64>("SELECT 1 FROM runs WHERE phase = 'ended'").is_empty()
            })
            .await;
        })
        .check(|sim, history| given_up(sim, history, "definition_missing"))
        .terms(|terms| {
            terms.outcomes = vec!["failed"];
            terms.one_answer = false;
        })
        .calm();
}
