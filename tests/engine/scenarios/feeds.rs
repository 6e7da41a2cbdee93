//! The feed of one run: whoever follows it, from wherever, through whatever fails, has its messages and one end.

use std::cell::RefCell;
use std::rc::Rc;

use bobbin::engine::feed::FeedTarget;
use bobbin::host::Filter;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::waits::{asking, decides, until_open, with};
use super::{clerk, family, story};
use crate::contract::History;
use crate::host::outside::ModelRequest;
use crate::host::rng::Rng;
use crate::host::{Answer, SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;
use crate::watcher::{Watcher, follow_run};

pub fn all() -> Vec<Scenario> {
    vec![in_turn(), joined(), parked(), stopped(), failing(), anew()]
}

thread_local! {
    /// What the followers of the running simulation hold at its end: what they followed, behind which message.
    static HELD: RefCell<Vec<(String, Watcher)>> = const { RefCell::new(Vec::new()) };
}

/// Somebody follows a run; connections break at places that the seed chooses, of the second one never.
fn follows(sim: &Sim, of: FeedTarget, seed: u64) {
    for cuts in [true, false] {
        let (world, sim, of) = (sim.world.clone(), sim.clone(), of.clone());
        let mut rng = Rng::new(seed);
        world.client(async move {
            let name = match &of {
                FeedTarget::Message(id)
                | FeedTarget::Run(id)
                | FeedTarget::Tail(id)
                | FeedTarget::From(id) => id.clone(),
            };
            let watcher = follow_run(sim, of, move |_| cuts && rng.one_in(3)).await;
            HELD.with(|held| held.borrow_mut().push((name, watcher)));
        });
    }
}

async fn sends(sim: &Sim, text: &str, seed: u64) -> crate::sim::Accepted {
    let sent = sim.send(text).await;
    follows(sim, FeedTarget::Message(sent.id.clone()), seed);
    sent
}

fn begin() {
    HELD.with(|held| held.borrow_mut().clear());
}

/// What all followers of a message hold: each has one end, and the stored messages up to it.
fn each(history: &History, expected: usize, mut check: impl FnMut(&str, &Value, &[Value])) {
    HELD.with(|held| {
        let held = held.borrow();
        assert_eq!(held.len(), expected, "everybody came to an end");
        for (name, watcher) in held.iter() {
            let frames = &watcher.kinds;
            assert!(watcher.wrong.is_empty(), "{name}: {:#?}\n{frames:?}", watcher.wrong);
            assert_eq!(
                (watcher.ended.len(), watcher.rest),
                (1, 0),
                "{name}: one end, and the last frame: {frames:?}"
            );
            // What a run said that is over before it was stored is left as it is.
            let completed = watcher.ended.iter().all(|ended| ended["outcome"] == "completed");
            assert!(!completed || watcher.partial.is_none(), "{name}: a partial text stays: {frames:?}");
            let seq = |message: &Value| -> i64 {
                message["id"].as_str().unwrap().rsplit_once('_').unwrap().1.parse().unwrap()
            };
            let mut told: Vec<Value> = watcher.messages.values().cloned().collect();
            told.sort_by_key(seq);
            for message in &told {
                let stored = history.messages.iter().find(|stored| stored["id"] == message["id"]);
                let stored = stored.unwrap_or_else(|| panic!("{name}: {message} is not stored"));
                assert_eq!(stored["content"], message["content"], "{name}: {frames:?}");
            }
            // Nothing is left out between the first and the last one.
            let ids: Vec<&Value> = told.iter().map(|message| &message["id"]).collect();
            let stored = history.messages.iter().map(|message| &message["id"]);
            let between: Vec<&Value> = stored
                .skip_while(|id| Some(id) != ids.first())
                .take_while(|id| Some(id) != ids.last())
                .chain(ids.last().copied())
                .collect();
            assert_eq!(ids, between, "{name}: {frames:?}");
            check(name, &watcher.ended[0], &told);
        }
    });
}

fn paced(request: &ModelRequest) -> Answer {
    clerk(request).stream(request.index).pace(9_000)
}

fn in_turn() -> Scenario {
    story("feeds of runs, one after another")
        .answers(|request| match request.index {
            // One attempt is lost in the middle.
            1 => Say::text("lost words").chunks(4).stream(9).pace(9_000).cut_after(4),
            _ => paced(request),
        })
        .drive(|sim| async move {
            begin();
            for (seed, text) in [(1, "use work"), (2, "grüße aus Köln — ✓✓✓ 日本語")] {
                let sent = sends(&sim, text, seed).await;
                sim.outcome(&sent).await;
            }
            for run in ["r_1", "r_2"] {
                follows(&sim, FeedTarget::Run(run.into()), 7);
            }
        })
        .check(|_, history| {
            let users: Vec<&Value> = history.of("user").collect();
            each(history, 8, |name, ended, told| {
                assert_eq!(ended["outcome"], "completed", "{name}: {ended}");
                assert_eq!(told.last().unwrap()["id"], ended["message_id"], "{name}");
                let first = name == "r_1" || name == users[0]["id"];
                assert_eq!(ended["run"], if first { "r_1" } else { "r_2" }, "{name}");
                // Behind a message; of a whole run with it.
                let of_run = usize::from(name.starts_with("r_"));
                assert_eq!(told.iter().filter(|message| message["role"] == "user").count(), of_run, "{name}");
                let next = if first { users[1]["id"].as_str() } else { None };
                assert!(told.iter().all(|message| message["id"].as_str() != next), "{name}: {told:?}");
            });
        })
        .terms(|terms| terms.more_requests = 1)
        .sampled(150)
}

fn joined() -> Scenario {
    story("feeds of a run that a second message joins")
        .answers(paced)
        .drive(|sim| async move {
            begin();
            let first = sends(&sim, "use work", 3).await;
            sim.until_requests(1).await;
            let second = sends(&sim, "and this", 4).await;
            sim.outcome(&first).await;
            sim.outcome(&second).await;
        })
        .check(|_, history| {
            each(history, 4, |name, ended, told| {
                assert_eq!(ended["outcome"], "completed", "{name}: {ended}");
                // The last run's reply is the last message of both feeds where one run has taken both in.
                let last = history.messages.last().unwrap();
                if ended["run"] == "r_1" && history.faults == 0 {
                    assert_eq!(told.last().unwrap()["id"], last["id"], "{name}");
                }
            });
        })
        .sampled(150)
}

fn parked() -> Scenario {
    story("the feed of a run that waits for a person")
        .define(with(json!({ "pay": asking(json!("always")) })))
        .drive(|sim| async move {
            begin();
            let sent = sends(&sim, "use pay", 5).await;
            let waits = until_open(&sim, 1).await;
            sim.world.pause(2 * SECOND_US).await;
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
            sim.outcome(&sent).await;
        })
        .check(|_, history| {
            each(history, 2, |name, ended, _| assert_eq!(ended["outcome"], "completed", "{name}"));
            HELD.with(|held| {
                for (name, watcher) in held.borrow().iter() {
                    let parked = watcher.kinds.iter().filter(|kind| kind.starts_with("run_parked")).count();
                    assert!(parked >= 1, "{name} was told that it waits: {:?}", watcher.kinds);
                }
            });
        })
        .sampled(120)
}

fn stopped() -> Scenario {
    story("feeds of a run that is stopped, and of what waits behind it")
        .answers(|request| paced(request).pace(200_000))
        .drive(|sim| async move {
            begin();
            let first = sends(&sim, "a long story", 6).await;
            sim.until_requests(1).await;
            sends(&sim, "never mind", 8).await;
            assert_eq!(sim.stop().await.status, 200);
            sim.outcome(&first).await;
            // What a stop holds is taken up in the end.
            sim.world.pause(SECOND_US).await;
            assert_eq!(sim.go_on().await.status, 202);
        })
        .check(|_, history| {
            each(history, 4, |name, ended, _| {
                // A message that came too late is held by the stop; a run that was over before it has completed.
                let outcome = ended["outcome"].as_str().unwrap();
                assert!(outcome == "stopped" || outcome == "completed", "{name}: {ended}");
            });
        })
        .terms(|terms| {
            terms.outcomes = vec!["completed", "stopped"];
            terms.one_answer = false;
            terms.overlap = true;
            terms.pairs = false;
            terms.more_requests = 2;
        })
        .sampled(120)
}

fn failing() -> Scenario {
    story("the feed of a run that fails")
        .answers(|_| Answer::status(400, "no"))
        .drive(|sim| async move {
            begin();
            let sent = sends(&sim, "hello", 9).await;
            sim.outcome(&sent).await;
        })
        .check(|_, history| {
            each(history, 2, |name, ended, told| {
                assert_eq!(
                    (&ended["outcome"], &ended["reason"]),
                    (&json!("failed"), &json!("model_error")),
                    "{name}"
                );
                assert!(!ended["error"]["message"].as_str().unwrap().is_empty(), "{name}");
                assert_eq!(told.last().unwrap()["metadata"]["status_kind"], "run_failed", "{name}: {told:?}");
            });
        })
        .terms(|terms| {
            terms.outcomes = vec!["failed"];
            terms.one_answer = false;
        })
        .sampled(100)
}

fn anew() -> Scenario {
    story("the feed of a message that is answered anew")
        .answers(paced)
        .drive(|sim| async move {
            begin();
            let sent = sim.send("use work").await;
            sim.outcome(&sent).await;
            sim.accepted.borrow_mut().clear();
            let again = ThreadRoute::Regenerate("last".into());
            let seen = sim.insist(again, &[], Some("again"), String::new()).await;
            assert_eq!((seen.status, &seen.body["run"]), (202, &json!("r_2")), "{}", seen.body);
            follows(&sim, FeedTarget::Message(sent.id.clone()), 10);
            follows(&sim, FeedTarget::Run("r_2".into()), 11);
            follows(&sim, FeedTarget::Tail("r_2".into()), 12);
        })
        .check(|_, history| {
            each(history, 6, |name, ended, told| {
                assert_eq!(
                    (&ended["outcome"], &ended["run"]),
                    (&json!("completed"), &json!("r_2")),
                    "{name}"
                );
                assert_eq!(told.last().unwrap()["id"], ended["message_id"], "{name}");
                let roles: Vec<&Value> = told.iter().map(|message| &message["role"]).collect();
                assert_eq!(roles, ["assistant", "tool", "assistant"], "{name}: {told:?}");
            });
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.pairs = false;
        })
        .sampled(120)
}

#[test]
fn a_message_that_is_answered_anew_has_the_feed_of_its_newest_run() {
    anew().sweep();
}

#[test]
fn whoever_follows_runs_has_each_whole_whatever_fails() {
    in_turn().sweep();
}

#[test]
fn a_run_that_is_joined_has_two_feeds_with_one_end() {
    joined().sweep();
}

#[test]
fn a_run_that_waits_keeps_its_feed_and_says_for_what() {
    parked().sweep();
}

#[test]
fn a_stop_ends_the_feeds_of_what_runs_and_of_what_waits() {
    stopped().sweep();
}

#[test]
fn a_failure_ends_its_feed() {
    failing().sweep();
}

#[test]
fn a_feed_that_is_cut_after_any_frame_goes_on() {
    for place in 1..40 {
        story("cut feed")
            .answers(paced)
            .drive(move |sim| async move {
                begin();
                let sent = sim.send("use work").await;
                let of = FeedTarget::Message(sent.id.clone());
                let watcher = follow_run(sim.clone(), of, move |seen| seen == place).await;
                HELD.with(|held| held.borrow_mut().push((sent.id.clone(), watcher)));
                sim.outcome(&sent).await;
            })
            .check(|_, history| each(history, 1, |_, _, told| assert_eq!(told.len(), 3)))
            .once();
    }
}

#[test]
fn a_run_of_many_megabytes_is_told_in_pieces() {
    let text = "x".repeat(300 << 10);
    story("large feed")
        .says(move |request| {
            if request.results().len() < 12 {
                return Say::text(text.clone()).and_call("work", "{}");
            }
            Say::text("done")
        })
        .drive(|sim| async move {
            begin();
            let sent = sim.send("go").await;
            sim.outcome(&sent).await;
            let watcher = follow_run(sim.clone(), FeedTarget::Message(sent.id.clone()), |_| false).await;
            assert!(watcher.pieces >= 3, "{} pieces", watcher.pieces);
            HELD.with(|held| held.borrow_mut().push((sent.id.clone(), watcher)));
        })
        .check(|_, history| each(history, 1, |_, _, told| assert_eq!(told.len(), 25)))
        .long()
        .calm();
}

#[test]
fn other_listeners_are_told_no_ends_and_feeds_nothing_of_others() {
    story("beside a feed")
        .drive(|sim| async move {
            let all = sim.listen(Filter { events: true, ..Filter::default() }, None).await.unwrap();
            let first = sim.send("hello").await;
            sim.outcome(&first).await;
            let (feed, _) = sim.follow(FeedTarget::Run("r_1".into()), None).await.unwrap();
            let second = sim.send("again").await;
            sim.outcome(&second).await;
            assert!(all.frames.borrow().iter().all(|frame| !frame.kind.starts_with("run")));
            let frames = feed.frames.borrow();
            let kinds: Vec<&str> = frames.iter().map(|frame| frame.kind).collect();
            assert_eq!(kinds, ["run", "message_data", "message_data", "run_ended"]);
            let rc: &Rc<_> = &feed;
            assert!(!rc.open.get());
        })
        .calm();
}

#[test]
fn a_feed_says_which_subagent_a_call_waits_for_also_to_who_comes_later() {
    family::story("a feed above a subagent")
        .drive(|sim| async move {
            let sent = sim.send(&family::calls(json!([["research", { "q": r#"[["nap",{}]]"# }]]))).await;
            let (early, _) = sim.follow(FeedTarget::Message(sent.id.clone()), None).await.unwrap();
            sim.until("the subagent is there", |sim| {
                sim.member.database.ask::<i64>("SELECT count(*) FROM children") == [1]
            })
            .await;
            sim.world.pause(5 * SECOND_US).await;
            let (late, _) = sim.follow(FeedTarget::Message(sent.id.clone()), None).await.unwrap();
            let child = sim.member.database.ask::<String>("SELECT reference FROM children")[0].clone();
            let call = sim.history().await[1]["tool_calls"].as_str().unwrap().to_owned();
            for feed in [early, late] {
                let frames = feed.frames.borrow();
                let parked = frames.iter().rfind(|frame| frame.kind == "run_parked").unwrap();
                let subagent = &parked.data["subagents"][0];
                assert_eq!((&subagent["thread"], &subagent["agent"]), (&json!(child), &json!("research")));
                assert_eq!(subagent["status"], "running", "{subagent}");
                assert!(call.contains(subagent["call_id"].as_str().unwrap()), "{call}: {subagent}");
                assert_eq!(parked.data["pauseKind"], "external");
            }
            sim.outcome(&sent).await;
        })
        .calm();
}
