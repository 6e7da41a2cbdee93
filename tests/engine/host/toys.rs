//! The machinery itself, on toy objects.

use std::any::Any;
use std::cell::{Cell as Flag, RefCell};
use std::ops::ControlFlow;
use std::rc::Rc;

use bobbin::engine::{NativeCall, Natives as _};
use bobbin::host::http::{HeaderSelection, Request};
use bobbin::host::{Cell, Host as _, Object as _, Sibling, Sql, Transactions as _};
use bobbin::request::{RawResponse, Reply, StreamRoute, ThreadRequest};
use bobbin::{Error, Result};
use futures::StreamExt;
use futures::future::LocalBoxFuture;
use serde_json::json;

use super::fault::{once, whenever};
use super::*;

/// A counter in SQLite: adds outside or inside a transaction.
pub(super) struct Counter {
    pub(super) host: SimHost,
    on_alarm: Rc<dyn Fn(SimHost) -> LocalBoxFuture<'static, ()>>,
}

impl Object for Counter {
    fn alarm(self: Rc<Self>) -> LocalBoxFuture<'static, ()> {
        (self.on_alarm)(self.host.clone())
    }
    fn call(self: Rc<Self>, text: String) -> LocalBoxFuture<'static, Reply> {
        Box::pin(super::family_toys::answer(self.host.clone(), text))
    }
    fn serve(self: Rc<Self>, request: ThreadRequest<StreamRoute>) -> LocalBoxFuture<'static, RawResponse> {
        Box::pin(super::family_toys::serve(self.host.clone(), request))
    }
    fn any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS n (v INTEGER PRIMARY KEY, t TEXT)";
pub(super) const ADD: &str = "INSERT INTO n (t) VALUES ('x')";

pub(super) fn counter(seed: u64) -> Rc<World> {
    counter_with_alarm(seed, |_| Box::pin(async {}))
}

pub(super) fn counter_with_alarm(
    seed: u64,
    on_alarm: impl Fn(SimHost) -> LocalBoxFuture<'static, ()> + 'static,
) -> Rc<World> {
    let on_alarm: Rc<dyn Fn(SimHost) -> LocalBoxFuture<'static, ()>> = Rc::new(on_alarm);
    World::new(seed, move |host| {
        host.sql().run(TABLE, &[]).unwrap();
        Rc::new(Counter { host, on_alarm: on_alarm.clone() })
    })
}

/// Runs something inside the object.
pub(super) fn inside<T, F>(world: &Rc<World>, call: impl FnOnce(SimHost) -> F + 'static) -> world::Answered<T>
where
    T: 'static,
    F: Future<Output = T> + 'static,
{
    world.enter(move |object| {
        let object = object.any().downcast::<Counter>().unwrap();
        call(object.host.clone())
    })
}

pub(super) fn rows(world: &Rc<World>) -> i64 {
    world.database.ask::<i64>("SELECT count(*) FROM n").first().copied().unwrap()
}

pub(super) fn warm(world: &Rc<World>) {
    world.drive(inside(world, |_| async {})).unwrap();
}

#[test]
fn writes_since_the_last_await_are_lost_or_kept_and_earlier_ones_always_kept() {
    for (fault, expected) in [(Fault::CrashLost, 1), (Fault::CrashKept, 2)] {
        let world = counter(1);
        warm(&world);
        let crash_at = world.faults.borrow().count + 3;
        world.faults.borrow_mut().plan(once(crash_at, fault));
        let answer = world.drive(inside(&world, |host| async move {
            host.sql().run(ADD, &[]).unwrap(); // +0
            host.sleep_until(host.now_us() + 5_000).await; // +1
            host.sql().run(ADD, &[]).unwrap(); // +2
            host.sql().run(ADD, &[]).unwrap(); // +3: dies before this one
        }));
        assert_eq!(answer, Err(Lost));
        assert_eq!(rows(&world), expected, "{}", fault.name());
        assert_eq!(world.life(), 2);
    }
}

#[test]
fn a_transaction_is_atomic_in_every_way_to_fail() {
    // begin, write, write, before commit, after commit: what is there afterwards, by (point, fault).
    for point in 0..5 {
        for fault in Fault::ALL {
            let world = counter(2);
            warm(&world);
            let first = world.faults.borrow().count;
            world.faults.borrow_mut().plan(once(first + point, fault));
            let answer = world.drive(inside(&world, |host| async move {
                host.transaction(|sql| {
                    sql.run(ADD, &[])?;
                    sql.run(ADD, &[])
                })
            }));
            assert_eq!(answer, Err(Lost));
            let expected = match (point, fault) {
                (4, Fault::CrashKept | Fault::Panic) => 2,
                _ => 0,
            };
            assert_eq!(rows(&world), expected, "point {point} {}", fault.name());
            assert_eq!(world.life(), if fault == Fault::Panic { 1 } else { 2 });
        }
    }
}

#[test]
fn an_error_rolls_a_transaction_back_with_its_alarm_and_nothing_else() {
    let world = counter(3);
    let answer = world.drive(inside(&world, |host| async move {
        host.sql().run(ADD, &[]).unwrap();
        let due = host.now_us() + DAY_US;
        host.set_alarm(Some(due)).unwrap();
        let failed: Result<()> = host.transaction(|sql| {
            sql.run(ADD, &[])?;
            host.set_alarm(None)?;
            Err(Error::internal("no"))
        });
        failed.unwrap_err();
        due
    }));
    assert_eq!(rows(&world), 1);
    assert_eq!(world.alarm.get().due_us, Some(answer.unwrap()));
}

#[test]
fn a_panic_ends_its_own_future_alone_and_keeps_what_was_written() {
    let world = counter(4);
    warm(&world);
    let first = world.faults.borrow().count;
    world.faults.borrow_mut().plan(once(first + 2, Fault::Panic));
    let answer = world.drive(inside(&world, |host| async move {
        let inner = host.clone();
        host.spawn(Box::pin(async move {
            // +0
            inner.sql().run(ADD, &[]).unwrap(); // +1
            inner.sql().run(ADD, &[]).unwrap(); // +2: panics
        }));
        host.sleep_until(host.now_us() + SECOND_US).await;
        7
    }));
    assert_eq!(answer, Ok(7));
    assert_eq!((rows(&world), world.life()), (1, 1));
    assert!(world.failures.borrow().is_empty());
}

#[test]
fn a_panic_that_nobody_planned_is_a_failure_of_the_test() {
    let world = counter(5);
    let answer = world.drive(inside(&world, |_| async { panic!("a bug") }));
    assert_eq!(answer, Err::<(), Lost>(Lost));
    assert_eq!(*world.failures.borrow(), ["the engine panicked: a bug"]);
}

#[test]
fn catching_a_crash_does_not_survive_it() {
    let world = counter(6);
    warm(&world);
    let first = world.faults.borrow().count;
    world.faults.borrow_mut().plan(once(first, Fault::CrashKept));
    let answer = world.drive(inside(&world, |host| async move {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host.sql().run(ADD, &[])));
        assert!(caught.is_err());
        "I live"
    }));
    assert_eq!(answer, Err(Lost));
    assert_eq!((rows(&world), world.life()), (0, 2));
}

#[test]
fn replies_and_frames_leave_only_when_what_was_written_is_durable() {
    let world = counter(7);
    warm(&world);
    let listener =
        Rc::new(Listener { filter: Default::default(), frames: RefCell::default(), open: Flag::new(true) });
    world.listeners.borrow_mut().push(listener.clone());
    let frame = bobbin::host::Frame {
        kind: "event",
        id: None,
        data: json!({}),
        silent: false,
        depth: 0,
        place: bobbin::host::FramePosition::Outside,
    };
    let first = world.faults.borrow().count;
    world.faults.borrow_mut().plan(once(first + 2, Fault::CrashLost));
    let sent = frame.clone();
    let answer = world.drive(inside(&world, move |host| async move {
        host.listeners().broadcast(&sent); // +0
        host.sql().run(ADD, &[]).unwrap(); // +1
        host.sql().run(ADD, &[]).unwrap(); // +2: dies
    }));
    assert_eq!(answer, Err(Lost));
    assert!(world.frames.borrow().is_empty());
    assert!(!listener.open.get(), "a socket does not survive its process");
    world.drive(inside(&world, move |host| async move { host.listeners().broadcast(&frame) })).unwrap();
    assert_eq!(world.frames.borrow().len(), 1);
}

#[test]
fn an_alarm_fires_once_and_again_at_once_after_a_crash_of_its_handler() {
    let fired: Rc<RefCell<Vec<i64>>> = Rc::default();
    let log = fired.clone();
    let world = counter_with_alarm(8, move |host| {
        log.borrow_mut().push(host.now_us());
        Box::pin(async move {
            host.sql().run(ADD, &[]).unwrap();
            host.sleep_until(host.now_us() + SECOND_US).await;
            host.sql().run(ADD, &[]).unwrap();
        })
    });
    let due = world.now_us() + 5 * SECOND_US;
    world.drive(inside(&world, move |host| async move { host.set_alarm(Some(due)).unwrap() })).unwrap();
    // The second write of the first handler.
    world.faults.borrow_mut().plan(whenever(1, Fault::CrashLost, |point| point.at == At::Sleep));
    assert!(world.rest(DAY_US));
    let fired = fired.borrow();
    assert_eq!(fired.len(), 2);
    assert!((fired[0] - due).abs() < 10_000 && fired[1] - fired[0] < SECOND_US + 10_000, "{fired:?}");
    assert_eq!(rows(&world), 3);
}

#[test]
fn a_later_alarm_set_by_a_running_handler_is_all_that_a_crash_leaves() {
    let fired: Rc<RefCell<Vec<i64>>> = Rc::default();
    let log = fired.clone();
    let world = counter_with_alarm(9, move |host| {
        log.borrow_mut().push(host.now_us());
        let first = log.borrow().len() == 1;
        Box::pin(async move {
            if first {
                host.set_alarm(Some(host.now_us() + 3600 * SECOND_US)).unwrap();
                host.sleep_until(host.now_us() + SECOND_US).await;
            }
        })
    });
    world.drive(inside(&world, |host| async move { host.set_alarm(Some(host.now_us())).unwrap() })).unwrap();
    world.faults.borrow_mut().plan(whenever(1, Fault::CrashKept, |point| point.at == At::Sleep));
    assert!(world.rest(DAY_US));
    let fired = fired.borrow();
    assert_eq!(fired.len(), 2);
    assert!(fired[1] - fired[0] >= 3599 * SECOND_US, "{fired:?}");
}

#[test]
fn an_alarm_set_to_now_by_its_handler_fires_once_after_it_returned() {
    let spans: Rc<RefCell<Vec<(i64, i64)>>> = Rc::default();
    let log = spans.clone();
    let world = counter_with_alarm(10, move |host| {
        let log = log.clone();
        Box::pin(async move {
            let start = host.now_us();
            if log.borrow().is_empty() {
                host.set_alarm(Some(start)).unwrap();
            }
            host.sleep_until(start + SECOND_US).await;
            log.borrow_mut().push((start, host.now_us()));
        })
    });
    world.drive(inside(&world, |host| async move { host.set_alarm(Some(host.now_us())).unwrap() })).unwrap();
    assert!(world.rest(DAY_US));
    let spans = spans.borrow();
    assert_eq!(spans.len(), 2);
    assert!(spans[1].0 >= spans[0].1, "handlers overlap: {spans:?}");
}

#[test]
fn a_throwing_alarm_is_retried_six_times_doubling_and_then_gone() {
    let fired: Rc<RefCell<Vec<i64>>> = Rc::default();
    let log = fired.clone();
    let world = counter_with_alarm(11, move |host| {
        log.borrow_mut().push(host.now_us());
        Box::pin(async move { host.sql().run(ADD, &[]).unwrap() })
    });
    world.drive(inside(&world, |host| async move { host.set_alarm(Some(host.now_us())).unwrap() })).unwrap();
    world.faults.borrow_mut().plan(whenever(100, Fault::Panic, |point| point.what == ADD));
    assert!(world.rest(DAY_US));
    let gaps: Vec<i64> =
        fired.borrow().windows(2).map(|pair| (pair[1] - pair[0] + 500_000) / SECOND_US).collect();
    assert_eq!(gaps, [2, 4, 8, 16, 32, 64]);
    assert_eq!(world.alarm.get().next_us(), None);
}

#[test]
fn one_seed_is_one_history() {
    let run = |seed| {
        let world = counter(seed);
        world.faults.borrow_mut().trace = Some(Vec::new());
        for task in 0..5 {
            let inner = world.clone();
            world.client(async move {
                for _ in 0..4 {
                    inner
                        .enter(move |object| async move {
                            let host = object.any().downcast::<Counter>().unwrap().host.clone();
                            host.sql().run(ADD, &[]).unwrap();
                            host.sleep_until(host.now_us() + 1_000 * (1 + task)).await;
                            host.transaction(|sql| sql.run(ADD, &[])).unwrap();
                        })
                        .await
                        .unwrap();
                }
            });
        }
        assert!(world.rest(DAY_US));
        let trace = format!("{:?} {}", world.faults.borrow().trace, world.now_us());
        trace
    };
    assert_eq!(run(12), run(12));
    assert_ne!(run(12), run(13));
}

#[test]
fn a_statement_that_stays_open_keeps_its_tables() {
    let world = counter(15);
    warm(&world);
    let sql = |work: fn(&dyn Sql) -> Result<()>| {
        world.drive(inside(&world, move |host| async move { work(host.sql()) })).unwrap()
    };
    sql(|sql| sql.run(ADD, &[])).unwrap();
    sql(|sql| sql.run(ADD, &[])).unwrap();
    // What breaks off in the way of the engine ends its statement, also by an error.
    const ALL: &str = "SELECT v FROM n";
    sql(|sql| sql.each(ALL, &[], &mut |_| Ok(ControlFlow::Break(())))).unwrap();
    sql(|sql| sql.each(ALL, &[], &mut |_| Err(Error::internal("broken")))).unwrap_err();
    sql(|sql| sql.run("DROP TABLE n", &[])).unwrap();
    sql(|sql| sql.run(TABLE, &[])).unwrap();
    sql(|sql| sql.run(ADD, &[])).unwrap();
    sql(|sql| sql.read(ALL, &[], &mut |rows| rows.next().map(drop))).unwrap();
    let refused = sql(|sql| sql.run("DROP TABLE n", &[])).unwrap_err();
    assert!(refused.message.contains("locked"), "{refused:?}");
}

#[test]
fn limits_of_the_platform_are_enforced() {
    let world = counter(14);
    warm(&world);
    let refused = |statement: &'static str| {
        let before = world.database.violations.borrow().len();
        let outcome =
            world.drive(inside(&world, move |host| async move { host.sql().run(statement, &[]) })).unwrap();
        outcome.is_err() || world.database.violations.borrow().len() > before
    };
    assert!(!refused("INSERT INTO n (t) VALUES (max(1, 2, 3))"));
    let columns = (0..33).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    assert!(refused(Box::leak(format!("SELECT max({columns})").into_boxed_str())));
    let places = (0..101).map(|_| "?").collect::<Vec<_>>().join(",");
    assert!(refused(Box::leak(format!("SELECT 1 WHERE 1 IN ({places})").into_boxed_str())));
    assert!(refused(Box::leak(format!("SELECT '{}'", "x".repeat(100_001)).into_boxed_str())));
    assert!(refused("INSERT INTO n (t) VALUES (zeroblob(2000001))"));
    assert!(refused("SELECT 1 WHERE 'a' LIKE '123456789012345678901234567890123456789012345678901'"));
    assert!(refused("SAVEPOINT mine"));
    assert!(refused("INSERT INTO n (t) VALUES (1); INSERT INTO n (t) VALUES (2)"));
    let big = "x".repeat(database::ROW_BYTES + 1);
    let before = world.database.violations.borrow().len();
    world
        .drive(inside(&world, move |host| async move {
            host.sql().run("INSERT INTO n (t) VALUES (?)", &[big.as_str().into()])
        }))
        .unwrap()
        .unwrap();
    assert_eq!(world.database.violations.borrow().len(), before + 1);
    assert!(world.database.row_beyond(database::ROW_BYTES).is_some());
}

#[test]
fn rows_are_counted() {
    let world = counter(15);
    warm(&world);
    let count = |statement: &'static str| {
        let before = world.database.counters.get();
        world
            .drive(inside(&world, move |host| async move {
                host.sql().each(statement, &[], &mut |_| Ok(std::ops::ControlFlow::Continue(())))
            }))
            .unwrap()
            .unwrap();
        let spent = world.database.counters.get() - before;
        (spent.statements, spent.read, spent.written)
    };
    count("CREATE TABLE a (k INTEGER PRIMARY KEY, b TEXT, c INTEGER)");
    count("CREATE INDEX a_c ON a (c)");
    count("CREATE TABLE w (k TEXT PRIMARY KEY, v) WITHOUT ROWID");
    count("CREATE TABLE p (k TEXT PRIMARY KEY, v)");
    assert_eq!(count("INSERT INTO a (b, c) VALUES ('x', 1), ('y', 2)"), (1, 0, 4));
    assert_eq!(count("INSERT INTO w VALUES ('x', 1)"), (1, 0, 1));
    assert_eq!(count("INSERT INTO p VALUES ('x', 1)"), (1, 0, 2));
    assert_eq!(count("UPDATE a SET b = 'z' WHERE k = 1"), (1, 1, 1));
    assert_eq!(count("UPDATE a SET c = 5 WHERE k = 1"), (1, 1, 2));
    assert_eq!(count("SELECT * FROM a WHERE k = 1"), (1, 1, 0));
    count(
        "INSERT INTO a (b, c) WITH RECURSIVE s(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM s WHERE i < 1998) \
         SELECT 'x', i FROM s",
    );
    assert!(count("SELECT count(b) FROM a WHERE b = 'z'").1 >= 1_000, "a hidden scan shows");
    assert_eq!(count("DELETE FROM a WHERE k = 1"), (1, 1, 2));
}

#[test]
fn numbers_come_back_as_integers_or_as_floats_by_the_seed() {
    for seed in [20, 21] {
        let world = counter(seed);
        let cell = world
            .drive(inside(&world, |host| async move {
                let mut found = None;
                host.sql()
                    .each("SELECT 7", &[], &mut |row| {
                        found = row.first().cloned();
                        Ok(std::ops::ControlFlow::Break(()))
                    })
                    .unwrap();
                found
            }))
            .unwrap();
        assert_eq!(cell, Some(if seed == 20 { Cell::Int(7) } else { Cell::Real(7.0) }));
    }
}

fn get(url: &str) -> Request {
    Request { method: "POST", url: url.into(), headers: Vec::new(), body: None, reads: HeaderSelection::Type }
}

#[test]
fn bodies_arrive_in_pieces_pause_break_and_stall() {
    let world = counter(16);
    world
        .outside
        .server("/slow", |_, _| Say::text("abcdef").chunks(3).stream(0).pace(SECOND_US).cut_after(4));
    world.outside.server("/never", |_, _| Answer::status(200, "x").stall_after(1));
    world.outside.server("/refused", |_, _| Answer::refused());
    let start = world.now_us();
    let (chunks, broke) = world
        .drive(inside(&world, |host| async move {
            let mut response = host.fetch(get("http://tool.test/slow")).await.unwrap();
            let mut chunks = 0;
            loop {
                match response.body.next().await {
                    Some(Ok(_)) => chunks += 1,
                    Some(Err(_)) => return (chunks, true),
                    None => return (chunks, false),
                }
            }
        }))
        .unwrap();
    assert_eq!((chunks, broke), (2, true));
    assert!(world.now_us() - start >= 2 * SECOND_US);
    assert!(
        world
            .drive(inside(&world, |host| async move {
                host.fetch(get("http://tool.test/refused")).await.is_err()
            }))
            .unwrap()
    );
    let raced = world
        .drive(inside(&world, |host| async move {
            let mut response = host.fetch(get("http://tool.test/never")).await.unwrap();
            response.body.next().await.unwrap().unwrap();
            let late = host.sleep_until(host.now_us() + 9 * SECOND_US);
            futures::future::select(
                Box::pin(late),
                Box::pin(async move {
                    response.body.next().await;
                }),
            )
            .await;
            true
        }))
        .unwrap();
    assert!(raced);
    assert_eq!(world.open_requests.get(), 0, "a dropped body closes its request");
    // Each of the three lacked its idempotency key.
    assert_eq!(world.failures.borrow().len(), 3);
}

#[test]
fn natives_record_every_start_and_may_never_return() {
    let world = counter(17);
    world.outside.native("work", |_, before| match before {
        0 => Native::Never,
        _ => Native::Gives(SECOND_US, bobbin::definitions::message::ToolResult::success("done")),
    });
    fn call(host: &SimHost) -> NativeCall {
        NativeCall {
            name: "work".into(),
            args: json!({}),
            options: Default::default(),
            thread_id: "t".into(),
            agent_id: "a".into(),
            call_id: "c".into(),
            approved: false,
            answers: Default::default(),
            idempotency_key: "t/r1".into(),
            now_us: host.now_us(),
            random: host.random(),
            env: Default::default(),
            sleep: Rc::new(|_| Box::pin(async {})),
            state: open(host.clone(), Rc::default()).thread().thread_state(),
        }
    }
    let inner = world.clone();
    world.client(async move {
        inner.pause(5 * SECOND_US).await;
        inner.kill();
    });
    let first =
        world.drive(inside(&world, |host| async move { host.tool(call(&host)).await.unwrap().text() }));
    assert_eq!(first, Err(Lost));
    let second =
        world.drive(inside(&world, |host| async move { host.tool(call(&host)).await.unwrap().text() }));
    assert_eq!(second, Ok("done".into()));
    let executions: Vec<_> =
        world.outside.executions.borrow().iter().map(|e| (e.key.clone(), e.finished)).collect();
    assert_eq!(executions, [("t/r1".into(), false), ("t/r1".into(), true)]);
}

#[test]
fn siblings_are_recorded() {
    let world = counter(18);
    let reply = world
        .drive(inside(&world, |host| async move {
            host.sibling(Sibling::Directory("null".into()), r#"{"a":1}"#.into()).await
        }))
        .unwrap();
    assert_eq!(reply, Ok(r#"{"status":204}"#.into()));
    assert_eq!(*world.outside.siblings.borrow(), [(Sibling::Directory("null".into()), json!({ "a": 1 }))]);
}

#[test]
fn requests_are_counted_by_the_event_they_descend_from() {
    let world = counter(19);
    world.outside.server("/t", |_, _| Answer::status(200, "x"));
    world
        .drive(inside(&world, |host| async move {
            for _ in 0..51 {
                let inner = host.clone();
                host.spawn(Box::pin(async move { drop(inner.fetch(get("http://tool.test/t")).await) }));
            }
        }))
        .unwrap();
    world.rest(DAY_US);
    assert_eq!(world.most_requests(), 51);
    assert!(world.failures.borrow().iter().any(|f| f.contains("outgoing requests in one event")));
}
