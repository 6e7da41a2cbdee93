//! The machinery between objects, on toys: a counter that answers others.

use std::cell::RefCell;
use std::rc::Rc;

use bobbin::Result;
use bobbin::host::{Host as _, Object as _, Sibling};
use bobbin::request::{Content, RawResponse, Reply, StreamRoute, ThreadRequest, ThreadRoute};
use bytes::Bytes;
use futures::StreamExt;
use serde_json::json;

use super::fault::{once, whenever};
use super::toys::{ADD, Counter, counter, counter_with_alarm, inside, rows, warm};
use super::*;

/// Adds one after a second.
pub(super) async fn answer(host: SimHost, text: String) -> Reply {
    host.sleep_until(host.now_us() + SECOND_US).await;
    host.sql().run(ADD, &[]).unwrap();
    Reply::json(200, &json!({ "heard": text.split_once('\n').unwrap().1 }))
}

/// Eight pieces, slowly.
pub(super) async fn serve(host: SimHost, request: ThreadRequest<StreamRoute>) -> RawResponse {
    host.sql().run(ADD, &[]).unwrap();
    let headers = vec![("content-length".to_owned(), "8".to_owned()), ("x".to_owned(), request.thread_id)];
    let pieces = futures::stream::iter(0..8).then(move |n: u8| {
        let host = host.clone();
        async move {
            host.sleep_until(host.now_us() + SECOND_US).await;
            host.sql().run(ADD, &[]).unwrap();
            Ok(Bytes::from(vec![n]))
        }
    });
    RawResponse { status: 200, headers, content: Content::Stream(pieces.boxed_local()) }
}

const OTHER: &str = "6f0c0000-0000-4000-8000-000000000002";

fn request<R>(route: R) -> ThreadRequest<R> {
    ThreadRequest {
        thread_id: OTHER.into(),
        life: None,
        caller: bobbin::access::Caller::admin(),
        route,
        query: Default::default(),
        idempotency_key: None,
        headers: Vec::new(),
        body: String::new(),
    }
}

/// Calls the other object, which works for a second.
async fn call(host: SimHost) -> Result<String> {
    let head = serde_json::to_string(&request(ThreadRoute::Envelope)).unwrap();
    host.sibling(Sibling::Thread(OTHER.into()), format!("{head}\nhello")).await
}

/// Reads what the other object answers in eight pieces, as far as that comes.
async fn read(host: SimHost, wanted: usize) -> (Option<String>, Vec<u8>, bool) {
    let asked = host
        .sibling_stream(
            OTHER.into(),
            serde_json::to_string(&request(StreamRoute::GetFile("f".into()))).unwrap(),
        )
        .await;
    let Ok(mut response) = asked else { return (None, Vec::new(), true) };
    let (name, mut all) = (response.header("x").map(str::to_owned), Vec::new());
    while all.len() < wanted {
        match response.body.next().await {
            None => return (name, all, false),
            Some(Err(_)) => return (name, all, true),
            Some(Ok(piece)) => all.extend_from_slice(&piece),
        }
    }
    (name, all, false)
}

fn rows_of(world: &Rc<World>, id: &str) -> i64 {
    world.member(id).database.ask::<i64>("SELECT count(*) FROM n")[0]
}

#[test]
fn an_object_is_there_when_another_calls_it_and_has_a_disk_of_its_own() {
    let world = counter(22);
    let reply = world.drive(inside(&world, |host| async move {
        host.sql().run(ADD, &[]).unwrap();
        host.sql().run(ADD, &[]).unwrap();
        call(host).await
    }));
    let reply: serde_json::Value = serde_json::from_str(&reply.unwrap().unwrap()).unwrap();
    assert_eq!(reply, json!({ "status": 200, "body": { "heard": "hello" } }));
    assert_eq!((world.members().len(), rows(&world), rows_of(&world, OTHER)), (2, 2, 1));
    assert_eq!(world.open_calls.get(), 0);
    let calls = world.outside.calls.borrow();
    let [one] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!((one.from.as_str(), one.to.as_str(), one.body.as_str()), (ROOT, OTHER, "hello"));
    assert!(world.failures.borrow().is_empty());
}

#[test]
fn a_call_leaves_when_what_its_caller_wrote_is_durable() {
    let world = counter(23);
    warm(&world);
    let first = world.faults.borrow().count;
    // +0 the write, +1 the call: the caller dies with neither done.
    world.faults.borrow_mut().plan(once(first + 1, Fault::CrashLost));
    let answer = world.drive(inside(&world, |host| async move {
        host.sql().run(ADD, &[]).unwrap();
        call(host).await
    }));
    assert_eq!(answer.unwrap_err(), Lost);
    world.rest(DAY_US);
    assert_eq!((rows(&world), world.members().len()), (0, 1));
}

#[test]
fn the_callers_death_does_not_stop_the_callee_and_the_callees_fails_the_call() {
    for (dies, expected) in [(ROOT, 1), (OTHER, 0)] {
        let world = counter(24);
        let inner = world.clone();
        world.client(async move {
            inner.pause(SECOND_US / 2).await;
            inner.kill_alone(&inner.member(dies));
        });
        let answer = world.drive(inside(&world, call));
        match dies == ROOT {
            true => assert_eq!(answer.unwrap_err(), Lost),
            false => assert_eq!(answer.unwrap().unwrap_err().code, bobbin::Code::Overloaded),
        }
        assert!(world.rest(DAY_US));
        assert_eq!(rows_of(&world, OTHER), expected, "{dies}");
        assert_eq!((world.life(), world.member(OTHER).life()), if dies == ROOT { (2, 1) } else { (1, 2) });
        assert_eq!(world.open_calls.get(), 0);
    }
}

#[test]
fn a_crash_is_of_one_object_or_of_all_and_a_panic_of_one_future() {
    for fault in Fault::OF_FAMILY {
        let world = counter(25);
        // The callee has slept and is about to write.
        let matches = |point: &fault::Point| point.object == 1 && point.what == ADD;
        world.faults.borrow_mut().plan(whenever(1, fault, matches));
        let answer = world.drive(inside(&world, call));
        let lives = (world.life(), world.member(OTHER).life());
        match fault {
            Fault::AllLost | Fault::AllKept => assert_eq!((answer.unwrap_err(), lives), (Lost, (2, 2))),
            Fault::Panic => assert_eq!((answer.unwrap().is_err(), lives), (true, (1, 1))),
            _ => assert_eq!((answer.unwrap().is_err(), lives), (true, (1, 2))),
        }
        assert!(world.rest(DAY_US));
        assert_eq!(rows_of(&world, OTHER), 0);
        assert!(world.failures.borrow().is_empty(), "{:?}", world.failures.borrow());
    }
}

#[test]
fn every_object_has_its_own_alarm() {
    let fired: Rc<RefCell<Vec<i64>>> = Rc::default();
    let log = fired.clone();
    let world = counter_with_alarm(26, move |host| {
        log.borrow_mut().push(host.now_us());
        Box::pin(async move { host.sql().run(ADD, &[]).unwrap() })
    });
    for (id, seconds) in [(ROOT, 5), (OTHER, 3)] {
        let member = world.member(id);
        world
            .drive(world.enter_at(&member, "request", move |object| async move {
                let host = object.any().downcast::<Counter>().unwrap().host.clone();
                host.set_alarm(Some(host.now_us() + seconds * SECOND_US)).unwrap();
            }))
            .unwrap();
    }
    assert!(world.next_alarm_us() < world.alarm.get().next_us());
    assert!(world.rest(DAY_US));
    assert_eq!((rows(&world), rows_of(&world, OTHER), fired.borrow().len()), (1, 1, 2));
}

#[test]
fn an_answer_streams_between_objects_breaks_off_and_is_cancelled() {
    let all: Vec<u8> = (0..8).collect();
    let world = counter(27);
    let read_all = |world: &Rc<World>, wanted| world.drive(inside(world, move |host| read(host, wanted)));
    assert_eq!(read_all(&world, 9).unwrap(), (Some(OTHER.into()), all.clone(), false));
    assert_eq!(rows_of(&world, OTHER), 9);
    // The reader goes after two pieces: the callee makes one more at most.
    assert_eq!(read_all(&world, 2).unwrap(), (Some(OTHER.into()), all[..2].to_vec(), false));
    assert!(world.rest(DAY_US));
    let made = rows_of(&world, OTHER) - 9;
    assert!((3..=4).contains(&made), "{made} rows");
    assert_eq!((world.open_calls.get(), world.failures.borrow().len()), (0, 0));
    // The callee dies, or its stream panics, after three pieces.
    for fault in [Fault::CrashLost, Fault::CrashKept, Fault::Panic] {
        let world = counter(28);
        let mut written = 0;
        world.faults.borrow_mut().plan(Box::new(move |point| {
            written += usize::from(point.object == 1 && point.what == ADD);
            (written == 5 && point.object == 1 && point.what == ADD).then_some(fault)
        }));
        assert_eq!(read_all(&world, 9).unwrap(), (Some(OTHER.into()), all[..3].to_vec(), true));
        assert!(world.rest(DAY_US));
        assert_eq!(world.open_calls.get(), 0);
    }
    // It cannot be reached.
    world.cut(|from, to| from == ROOT && to == OTHER);
    assert_eq!(read_all(&world, 9).unwrap(), (None, Vec::new(), true));
}

#[test]
fn one_seed_is_one_history_of_a_family() {
    let run = |seed| {
        let world = counter(seed);
        world.faults.borrow_mut().trace = Some(Vec::new());
        for _ in 0..3 {
            let inner = world.clone();
            world.client(async move {
                let asked = inner.enter(|object| {
                    let host = object.any().downcast::<Counter>().unwrap().host.clone();
                    futures::future::join(call(host.clone()), read(host, 5))
                });
                asked.await.unwrap().0.unwrap();
            });
        }
        assert!(world.rest(DAY_US));
        let trace = format!("{:?} {}", world.faults.borrow().trace, world.now_us());
        trace
    };
    assert_eq!(run(29), run(29));
    assert_ne!(run(29), run(30));
}

#[test]
fn ways_to_fail_that_come_to_the_same_are_one() {
    let world = counter(31);
    warm(&world);
    let first = world.faults.borrow().count as usize;
    world
        .drive(inside(&world, |host| async move {
            host.sql().run(ADD, &[]).unwrap();
            host.sql().run(ADD, &[]).unwrap();
            call(host).await.unwrap();
        }))
        .unwrap();
    let ways: Vec<usize> = world.faults.borrow().ways[first..].iter().map(|ways| ways.len()).collect();
    // Two writes, the call; in the other object its table, its sleep, its write; the call's end.
    assert_eq!(ways, [2, 3, 3, 3, 3, 3, 3]);
}
