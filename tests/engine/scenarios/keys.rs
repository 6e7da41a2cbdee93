//! Threads that their creators have a key for: one for each key, and after its deletion another one, which nothing of the first
//! reaches.

use bobbin::access::{Caller, Scope, Via};
use bobbin::host::Filter;
use bobbin::request::{Reply, ThreadRequest, ThreadRoute, thread_id};
use serde_json::{Value, json};

use super::effects::{schedule, with_effects};
use super::{family, story};
use crate::contract::History;
use crate::host::SECOND_US;
use crate::sim::{Seen, Sim};
use crate::sweep::Scenario;

const KEY: &str = "chat-1";

pub fn all() -> Vec<Scenario> {
    vec![one_thread(), again(), child_of_the_first()]
}

/// The thread of the key, whether it is there or not.
fn keyed(sim: &Sim) -> Sim {
    sim.of(&thread_id::of_key(None, KEY))
}

async fn create(sim: &Sim, agent: &str) -> Seen {
    let body = json!({ "agent_id": agent, "key": KEY, "tags": ["k"] }).to_string();
    keyed(sim).insist(ThreadRoute::Create, &[], None, body).await
}

async fn delete(sim: &Sim) {
    // A request whose answer was lost is repeated, and finds nothing then.
    let seen = keyed(sim).insist(ThreadRoute::Delete, &[], None, String::new()).await;
    assert!(matches!(seen.status, 200 | 404), "{seen:?}");
}

fn with_two_agents(catalog: &mut Value) {
    catalog["agents"]["other"] = catalog["agents"]["helper"].clone();
}

fn one_thread() -> Scenario {
    story("a key makes one thread")
        .define(with_two_agents)
        .drive(|sim| async move {
            let both = futures::future::join(create(&sim, "helper"), create(&sim, "helper")).await;
            let seen = [both.0, both.1];
            let made = seen.iter().filter(|seen| seen.status == 201).count();
            let failed = !sim.world.faults.borrow().fired.is_empty();
            // The answer to the first may have been lost.
            assert!(made == 1 || (failed && made == 0), "{seen:?}");
            for seen in &seen {
                assert!(matches!(seen.status, 200 | 201), "{seen:?}");
                assert_eq!(seen.body["created"], seen.status == 201, "{seen:?}");
                assert_eq!((&seen.body["key"], &seen.body["agent_id"]), (&json!(KEY), &json!("helper")));
                assert_eq!(seen.body["threadId"], thread_id::of_key(None, KEY));
            }
            let other = create(&sim, "other").await;
            assert_eq!(
                (other.status, &other.body["error"]["code"]),
                (409, &json!("key_conflict")),
                "{other:?}"
            );
            assert_eq!(other.body["error"]["field"], "agent_id");
            let thread = keyed(&sim);
            thread.ask("hello").await;
            let again = create(&sim, "helper").await;
            assert_eq!((again.status, &again.body["created"]), (200, &json!(false)));
            let shown = thread.get(ThreadRoute::Get, &[]).await;
            assert_eq!((&shown["thread"]["key"], &shown["thread"]["tags"]), (&json!(KEY), &json!(["k"])));
        })
        .check(|sim, history| {
            let thread = &history.family[&thread_id::of_key(None, KEY)];
            assert_eq!((thread.texts("user"), thread.answers()), (vec!["hello"], vec!["re: hello"]));
            let rows = sim.world.outside.siblings.borrow();
            let told = rows.iter().any(|(_, call)| call["call"] == "upsert" && call["row"]["key"] == KEY);
            assert!(told, "the directory knows the key");
        })
}

#[test]
fn a_key_makes_one_thread_whatever_fails() {
    one_thread().sweep();
}

/// The first thread is deleted in the middle of a call and of an effect, with a value, an effect that is due later and a stream.
fn again() -> Scenario {
    with_effects("a key is free again")
        .drive(|sim| async move {
            create(&sim, "helper").await;
            let first = keyed(&sim);
            let value = json!({ "key": "v", "value": 1 }).to_string();
            first.insist(ThreadRoute::PostValue, &[], None, value).await;
            schedule(&first, json!({ "name": "ring", "args": { "n": 1 }, "delay": 40_000 })).await;
            schedule(&first, json!({ "name": "ring", "args": { "n": 2 }, "delay": 0 })).await;
            first.send("use work,work").await;
            first.accepted.borrow_mut().clear();
            sim.until("a call runs", |sim| {
                sim.world.outside.executions.borrow().iter().any(|ran| ran.name == "work")
            })
            .await;
            let old = sent_ids(&first).await;
            delete(&sim).await;
            let made = create(&sim, "other").await;
            assert!(matches!(made.status, 200 | 201), "{made:?}");
            let second = keyed(&sim);
            schedule(&second, json!({ "name": "ring", "args": { "n": 3 }, "delay": 0 })).await;
            second.ask("use work").await;
            for id in old {
                let seen = second.insist(ThreadRoute::GetMessage(id), &[], None, String::new()).await;
                assert_eq!(seen.status, 404, "{}", seen.body);
            }
            sim.world.pause(60 * SECOND_US).await;
        })
        .define(with_two_agents)
        .terms(|terms| {
            terms.one_answer = false;
            // What the first had begun.
            terms.more_requests = 2;
            terms.overlap = true;
        })
        .check(|sim, history| {
            let thread = keyed(sim);
            let seen = &history.family[&thread.member.id];
            assert_eq!(seen.texts("user"), ["use work"]);
            assert_eq!(seen.answers().len(), 1, "{:?}", seen.answers());
            let ask = |question: &str| thread.member.database.ask::<i64>(question);
            assert_eq!(ask("SELECT life FROM meta"), [2]);
            assert_eq!(ask("SELECT count(*) FROM vals"), [0]);
            assert_eq!(ask("SELECT count(*) FROM effects"), [1], "only its own");
            assert!(ask("SELECT min(id) FROM runs")[0] > 1, "numbers of runs are not given out again");
            let lost = seen.texts("tool").iter().filter(|text| text.contains("may or may not")).count();
            once_each(sim, lost);
        })
}

async fn sent_ids(sim: &Sim) -> Vec<String> {
    let history = sim.history().await;
    history.iter().filter_map(|message| message["id"].as_str().map(str::to_owned)).collect()
}

/// No two executions outside have a key in common but for those that were repeated after a failure, and nothing of the first
/// thread ran once it was gone. A call of the second that was `lost` may have been lost before it ran.
fn once_each(sim: &Sim, lost: usize) {
    let executions = sim.world.outside.executions.borrow();
    let stem = thread_id::of_key(None, KEY);
    let of_first = |key: &str| key.starts_with(&format!("{stem}/"));
    let rings = |n: i64| executions.iter().filter(|ran| ran.name == "ring" && ran.args["n"] == n).count();
    assert_eq!(rings(1), 0, "an effect of the first thread that was due later");
    assert!(rings(3) >= 1);
    for ran in executions.iter() {
        let is_old = of_first(&ran.key);
        let of_second = ran.name == "ring" && ran.args["n"] == 3;
        assert!(!(is_old && of_second), "{} has the key {}", ran.name, ran.key);
    }
    let own = executions.iter().filter(|ran| ran.name == "work" && !of_first(&ran.key)).count();
    assert!(own <= 1 && own + lost >= 1, "the second thread's own call ran {own} times");
}

#[test]
fn a_key_is_free_after_its_thread_is_deleted_whatever_fails() {
    again().sampled(250).sweep();
}

/// A child that was on its way when its parent was deleted finds another thread in the parent's place.
fn child_of_the_first() -> Scenario {
    family::story("a late child of the first")
        .drive(|sim| async move {
            create(&sim, "helper").await;
            let first = keyed(&sim);
            first.send(&family::calls(json!([["research", { "q": "[[\"nap\",{}]]" }]]))).await;
            first.accepted.borrow_mut().clear();
            sim.until("the child naps", |sim| !sim.world.outside.executions.borrow().is_empty()).await;
            delete(&sim).await;
            create(&sim, "helper").await;
            let second = keyed(&sim);
            let stored = {
                let calls = sim.world.outside.calls.borrow();
                let is_birth = |body: &str| body.contains("\"create\"");
                calls
                    .iter()
                    .find(|call| call.route == Some(ThreadRoute::Envelope) && is_birth(&call.body))
                    .map(|call| (call.to.clone(), call.body.clone()))
            };
            // After a failure the first may have been deleted before it had a child.
            let Some((child, letter)) = stored else { return };
            let request = ThreadRequest {
                thread_id: child.clone(),
                life: None,
                caller: Caller::admin(),
                route: ThreadRoute::Envelope,
                query: Default::default(),
                idempotency_key: None,
                headers: Vec::new(),
                body: String::new(),
            };
            let text = format!("{}\n{letter}", serde_json::to_string(&request).unwrap());
            let member = sim.world.member(&child);
            let _answer: Result<Reply, _> =
                sim.world.enter_at(&member, "late", move |object| object.call(text)).await;
            second.ask("[]").await;
            sim.until("the child is gone", |sim| !sim.world.member(&child).exists()).await;
            // What it says itself is not heard, either.
            let envelope = json!({ "from": child, "n": 1, "what": { "notify": "hello" } }).to_string();
            let late = ThreadRequest { thread_id: second.member.id.clone(), life: Some(1), ..request };
            let text = format!("{}\n{envelope}", serde_json::to_string(&late).unwrap());
            let member = second.member.clone();
            let answer = sim.world.enter_at(&member, "late", move |object| object.call(text)).await;
            if let Ok(reply) = answer {
                assert_eq!(reply.status, 404, "{:?}", reply.body);
            }
        })
        .terms(|terms| {
            terms.more_requests = 3;
            terms.overlap = true;
        })
        .check(|sim, history| {
            let second = &history.family[&thread_id::of_key(None, KEY)];
            assert_eq!(second.texts("user"), ["[]"], "nothing of the first");
            assert_eq!(History::answers(second), ["did 0"]);
            assert_eq!(sim.family().len(), 2, "the child has deleted itself");
        })
}

#[test]
fn a_child_of_the_first_thread_finds_its_parent_gone_whatever_fails() {
    child_of_the_first().sampled(150).sweep();
}

/// Streams start over, links decide nothing, tokens open nothing.
#[test]
fn what_was_given_out_for_the_first_thread_is_no_good_for_the_second() {
    story("given out")
        .drive(|sim| async move {
            create(&sim, "helper").await;
            let first = keyed(&sim);
            first.ask("one").await;
            let listener = first.listen(Filter::default(), None).await.unwrap();
            let last =
                listener.frames.borrow().iter().filter_map(|frame| frame.id.clone()).next_back().unwrap();
            delete(&sim).await;
            assert!(!listener.open.get(), "whoever listened is told");
            create(&sim, "helper").await;
            let second = keyed(&sim);
            for text in ["two", "three", "four"] {
                second.ask(text).await;
            }
            let resumed = second.listen(Filter::default(), Some(&last)).await.unwrap();
            assert_eq!(resumed.frames.borrow()[0].kind, "snapshot", "it starts over");
            let token = |life| Caller {
                scope: Scope::Thread(second.member.id.clone()),
                via: Via::Token { expires_us: i64::MAX, life: Some(life) },
            };
            for (life, status) in [(1, 404), (2, 200)] {
                *second.caller.borrow_mut() = token(life);
                let seen = second.once(ThreadRoute::Get, &[], None, String::new()).await.unwrap();
                assert_eq!(seen.status, status, "{life}");
            }
            *second.caller.borrow_mut() = Caller::admin();
            second.accepted.borrow_mut().clear();
        })
        .terms(|terms| terms.one_answer = false)
        .calm();
}

#[test]
fn a_deleted_thread_leaves_no_more_than_its_number() {
    story("what is left")
        .drive(|sim| async move {
            let thread = keyed(&sim);
            let tables = || {
                thread.member.database.ask::<String>(
                    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
                )
            };
            for life in 1..4_i64 {
                create(&sim, "helper").await;
                assert_eq!(thread.member.database.ask::<i64>("SELECT life FROM meta"), [life]);
                thread.ask("hello").await;
                thread.accepted.borrow_mut().clear();
                delete(&sim).await;
                assert_eq!(tables(), ["lives"]);
                let row = "SELECT json_array(life, run, edits) FROM lives";
                assert_eq!(
                    thread.member.database.ask::<String>(row),
                    [format!("[{life},{life},{}]", life - 1)]
                );
            }
        })
        .calm();
}
