//! Streams: what a client that reconnects anywhere holds at the end is what is stored.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bobbin::host::Filter;
use serde_json::json;

use super::{clerk, story};
use crate::host::fault::Fault;
use crate::host::rng::Rng;
use crate::host::{Answer, At};
use crate::sim::Sim;
use crate::sweep::Scenario;
use crate::watcher::{Watcher, follow};

pub fn all() -> Vec<Scenario> {
    vec![reconnecting()]
}

thread_local! {
    /// What the followers of the running simulation hold at its end; tests run one simulation a thread at a time.
    static HELD: RefCell<Vec<Watcher>> = const { RefCell::new(Vec::new()) };
}

/// Says after how many frames a client's connection breaks.
type Cut = Box<dyn FnMut(usize) -> bool>;
/// Makes the rule of one simulation.
type Cuts = Rc<dyn Fn() -> Cut>;

/// A scenario that streams slowly, with clients that follow it; `cut(n)` makes each one's rule for breaking off.
fn followed(
    name: &'static str,
    cuts: Vec<Cuts>,
    talk: impl Fn(Sim) -> futures::future::LocalBoxFuture<'static, ()> + Clone + 'static,
) -> Scenario {
    story(name)
        .answers(|request| match request.index {
            // One attempt is lost in the middle.
            1 => crate::host::Say::text("lost words").chunks(4).stream(9).pace(9_000).cut_after(4),
            _ => paced(clerk(request).stream(request.index)),
        })
        .drive(move |sim| {
            let cuts = cuts.clone();
            let talk = talk.clone();
            async move {
                HELD.with(|held| held.borrow_mut().clear());
                let done = Rc::new(Cell::new(false));
                for cut in &cuts {
                    let (sim, done, cut) = (sim.clone(), done.clone(), cut());
                    let world = sim.world.clone();
                    world.client(async move {
                        let watcher = follow(sim, cut, move || done.get()).await;
                        HELD.with(|held| held.borrow_mut().push(watcher));
                    });
                }
                talk(sim.clone()).await;
                done.set(true);
            }
        })
        .check(|_, history| {
            HELD.with(|held| {
                for watcher in held.borrow().iter() {
                    let wrong = watcher.compare(&history.messages);
                    assert!(wrong.is_empty(), "{wrong:#?}\nframes: {:?}", watcher.kinds);
                }
            });
        })
        .terms(|terms| terms.more_requests = 1)
}

fn paced(answer: Answer) -> Answer {
    answer.pace(9_000)
}

fn talk(sim: Sim) -> futures::future::LocalBoxFuture<'static, ()> {
    Box::pin(async move {
        sim.ask("use work").await;
        sim.ask("grüße aus Köln — ✓✓✓ 日本語").await;
    })
}

fn reconnecting() -> Scenario {
    let seeded = |seed: u64| -> Cuts {
        Rc::new(move || {
            let mut rng = Rng::new(seed);
            Box::new(move |_| rng.one_in(3))
        })
    };
    followed("reconnecting clients", vec![Rc::new(|| Box::new(|_| false)), seeded(1), seeded(2)], talk)
        .sampled(150)
}

#[test]
fn clients_that_reconnect_anywhere_hold_what_is_stored_whatever_fails() {
    reconnecting().sweep();
}

#[test]
fn a_stream_resumed_after_any_frame_is_the_same() {
    for place in 1..60 {
        followed("resume", vec![Rc::new(move || Box::new(move |seen| seen == place))], talk).once();
    }
}

/// What a panic keeps from being told is stored all the same: whoever listens has to come back for it.
#[test]
fn a_panic_before_any_frame_ends_the_connections() {
    followed("lost frames", vec![Rc::new(|| Box::new(|_| false))], talk)
        .sweep_at(At::Broadcast, Fault::Panic);
}

#[test]
fn an_unknown_last_id_gets_a_snapshot() {
    story("unknown id")
        .drive(|sim| async move {
            sim.ask("hello").await;
            for last in [None, Some("nonsense"), Some("9.9.9.9.9"), Some("0.99999"), Some("-1.0"), Some("")] {
                let filter = Filter { events: true, ..Filter::default() };
                let listener = sim.listen(filter, last).await.unwrap();
                let frames = listener.frames.borrow();
                assert_eq!(frames[0].kind, "snapshot", "{last:?}: {frames:?}");
                assert_eq!(frames[0].data["messages"].as_array().unwrap().len(), 2);
            }
        })
        .calm();
}

#[test]
fn an_edit_makes_a_resuming_client_start_over() {
    story("edited")
        .drive(|sim| async move {
            let message = sim.send("hello").await;
            sim.outcome(&message).await;
            let filter = Filter { events: true, ..Filter::default() };
            let listener = sim.listen(filter, None).await.unwrap();
            let last = listener.frames.borrow()[0].id.clone().unwrap();
            listener.open.set(false);
            let nothing = sim.listen(filter, Some(&last)).await.unwrap();
            assert!(nothing.frames.borrow().iter().all(|frame| frame.kind != "snapshot"));
            let route = bobbin::request::ThreadRoute::PatchMessage(message.id.clone());
            let seen = sim.insist(route, &[], None, json!({ "content": "edited" }).to_string()).await;
            assert_eq!(seen.status, 200, "{}", seen.body);
            sim.accepted.borrow_mut().clear();
            let fresh = sim.listen(filter, Some(&last)).await.unwrap();
            let first = fresh.frames.borrow()[0].clone();
            assert_eq!(first.kind, "snapshot");
            assert_eq!(first.data["messages"][0]["content"], "edited");
        })
        .terms(|terms| terms.one_answer = false)
        .calm();
}

#[test]
fn silent_messages_reach_only_those_who_ask() {
    story("silent")
        .drive(|sim| async move {
            let all = Filter { events: true, silent: true, ..Filter::default() };
            let loud = sim.listen(Filter { events: true, ..Filter::default() }, None).await.unwrap();
            let every = sim.listen(all, None).await.unwrap();
            sim.post(json!({ "role": "user", "content": "psst", "silent": true })).await;
            sim.world.pause(60_000_000).await;
            let told = |listener: &crate::host::Listener| {
                let frames = listener.frames.borrow();
                frames.iter().filter(|f| f.data["data"]["content"] == "psst").count()
            };
            assert_eq!((told(&loud), told(&every)), (0, 1));
        })
        .calm();
}

#[test]
fn items_follow_their_messages_for_those_who_ask_and_for_nobody_else() {
    story("items")
        .drive(|sim| async move {
            let with = Filter { events: true, items: true, ..Filter::default() };
            let without = Filter { events: true, ..Filter::default() };
            let asking = sim.listen(with, None).await.unwrap();
            let other = sim.listen(without, None).await.unwrap();
            sim.ask("use work").await;
            let items = |listener: &crate::host::Listener| -> Vec<(String, String)> {
                let frames = listener.frames.borrow();
                let items = frames.iter().filter(|frame| frame.kind == "item");
                items
                    .map(|frame| (frame.data["itemType"].to_string(), frame.data["itemId"].to_string()))
                    .collect()
            };
            let live = items(&asking);
            let kinds: Vec<&str> = live.iter().map(|(kind, _)| kind.as_str()).collect();
            assert_eq!(kinds, ["\"command_execution\"", "\"agent_message\""], "{live:?}");
            assert_eq!(items(&other), []);
            // Who comes later is shown the same.
            assert_eq!(items(&sim.listen(with, None).await.unwrap()), live);
        })
        .calm();
}
