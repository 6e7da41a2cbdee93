//! Copies of threads: what they begin with, and that each is whole or not there, whatever fails.

use bobbin::request::{ThreadRoute, thread_id};
use serde_json::{Value, json};

use super::files::{bytes, get, put};
use super::memories_sources::{hears, hears_owner, kept_in, said_in};
use super::shared_memories::{counted, of_alice};
use super::{clerk, family, story};
use crate::contract::History;
use crate::host::SECOND_US;
use crate::sim::{Seen, Sim};
use crate::sweep::Scenario;

const KEY: &str = "copy";

pub fn all() -> Vec<Scenario> {
    vec![copied(), imported(), source_deleted(), source_gone(), copy_deleted()]
}

/// The thread of a key, whether it is there or not.
fn keyed(sim: &Sim, key: &str) -> Sim {
    sim.of(&thread_id::of_key(None, key))
}

async fn fork(sim: &Sim, body: Value) -> Seen {
    sim.insist(ThreadRoute::Fork, &[], None, body.to_string()).await
}

/// What the thread says of itself as a copy; nothing where it is not there.
async fn state(sim: &Sim) -> Value {
    let seen = sim.insist(ThreadRoute::Get, &[], None, String::new()).await;
    seen.body["thread"]["fork"]["state"].clone()
}

/// Waits until it is copied, or gone.
async fn settled(sim: &Sim) -> Value {
    for _ in 0..20_000 {
        let state = state(sim).await;
        if state != "copying" && state != "failed" {
            return state;
        }
        sim.world.pause(SECOND_US / 10).await;
    }
    sim.world.fail("the copy comes to no end");
    Value::Null
}

async fn set(sim: &Sim, key: &str, value: Value) {
    let body = json!({ "key": key, "value": value }).to_string();
    let seen = sim.insist(ThreadRoute::PostValue, &[], None, body).await;
    assert_eq!(seen.status / 100, 2, "{}", seen.body);
}

async fn value(sim: &Sim, key: &str) -> Value {
    sim.get(ThreadRoute::GetValues, &[("key", key)]).await["value"].clone()
}

/// The question before the last one is the last message of the copy, with its answer and its call.
fn copied() -> Scenario {
    story("copied")
        .drive(|sim| async move {
            let large = bytes(3, 700_000);
            sim.ask("one").await;
            set(&sim, "v", json!({ "deep": [1, 2] })).await;
            put(&sim, "notes/a.txt", "text/plain", b"alpha").await;
            put(&sim, "large.bin", "application/x-test", &large).await;
            sim.ask("use work").await;
            let upto = sim.history().await.last().unwrap()["id"].clone();
            sim.ask("three").await;
            let seen = fork(&sim, json!({ "up_to": upto, "key": KEY, "tags": ["c"] })).await;
            assert!(matches!(seen.status, 200 | 201), "{seen:?}");
            assert_eq!(seen.body["threadId"], thread_id::of_key(None, KEY));
            assert_eq!(
                (&seen.body["fork"]["threadId"], &seen.body["fork"]["upTo"]),
                (&json!(sim.member.id), &upto)
            );
            let again = fork(&sim, json!({ "up_to": upto, "key": KEY, "tags": ["c"] })).await;
            assert_eq!((again.status, &again.body["created"]), (200, &json!(false)), "{again:?}");
            let copy = keyed(&sim, KEY);
            copy.ask("four").await;
            assert_eq!(state(&copy).await, "copied");
            assert_eq!(value(&copy, "v").await, json!({ "deep": [1, 2] }));
            assert_eq!(get(&copy, "notes/a.txt").await.body.as_deref(), Ok(&b"alpha"[..]));
            assert!(get(&copy, "large.bin").await.body.as_deref() == Ok(&large[..]));
            let shown = copy.get(ThreadRoute::Get, &[]).await;
            assert_eq!((&shown["thread"]["tags"], &shown["thread"]["key"]), (&json!(["c"]), &json!(KEY)));
            sim.ask("five").await;
        })
        .check(|sim, history| {
            let copy = &history.family[&thread_id::of_key(None, KEY)];
            assert_eq!(copy.texts("user"), ["one", "use work", "four"]);
            assert_eq!(copy.answers().len(), 3, "{:?}", copy.answers());
            assert_eq!(history.texts("user"), ["one", "use work", "three", "five"]);
            let requests = sim.world.outside.requests.borrow();
            let sent = requests.iter().find(|request| request.last_user() == "four").unwrap();
            assert_eq!(sent.texts("user"), ["one", "use work", "four"], "the copy answers from its history");
            let ask = |question: &str| keyed(sim, KEY).member.database.ask::<i64>(question);
            assert_eq!(ask("SELECT count(*) FROM runs"), [1], "its own");
            assert_eq!(ask("SELECT count(*) FROM files WHERE parent IS NOT NULL AND kind = 1"), [2]);
        })
}

#[test]
fn a_copy_has_what_was_there_once_whatever_fails() {
    copied().sampled(400).sweep();
}

/// What a thread of another deployment has said: whole messages, with the numbers that they have there.
fn elsewhere() -> Value {
    let call =
        json!([{ "id": "call_far", "type": "function", "function": { "name": "work", "arguments": "{}" } }]);
    json!([
        { "id": "m_0badcafe_3", "role": "user", "content": "one", "created_at": 1_700_000_000_000_000_i64 },
        { "id": "m_0badcafe_4", "role": "assistant", "content": "", "tool_calls": call.to_string(), "metadata": { "prompt": "helper" } },
        { "id": "m_0badcafe_5", "role": "tool", "name": "work", "tool_call_id": "call_far", "tool_status": "success", "content": "far" },
        { "id": "m_0badcafe_7", "role": "assistant", "content": "done there", "metadata": { "prompt": "helper" } },
        { "id": "m_0badcafe_9", "role": "system", "content": "noted", "silent": true },
    ])
}

/// A thread begins as a copy of one of another deployment, once, and goes on from there.
fn imported() -> Scenario {
    story("imported")
        .drive(|sim| async move {
            let copy = keyed(&sim, KEY);
            let body = json!({ "agent_id": "helper", "key": KEY, "copied_from": "0badcafe-far", "history": elsewhere() });
            for _ in 0..2 {
                let made = copy.insist(ThreadRoute::Create, &[], None, body.to_string()).await;
                assert!(matches!(made.status, 200 | 201), "{made:?}");
            }
            copy.ask("two").await;
            let fork = copy.get(ThreadRoute::Get, &[]).await["thread"]["fork"].clone();
            let wanted = json!({ "threadId": "0badcafe-far", "upTo": "m_0badcafe_9", "state": "copied", "error": null });
            assert_eq!(fork, wanted);
            sim.ask("here").await;
        })
        .check(|sim, history| {
            let copy = &history.family[&thread_id::of_key(None, KEY)];
            assert_eq!(copy.texts("user"), ["one", "two"]);
            let database = &keyed(sim, KEY).member.database;
            let seqs = database.ask::<i64>("SELECT seq FROM messages WHERE seq < 10 ORDER BY seq");
            assert_eq!(seqs, [3, 4, 5, 7, 9], "with the numbers that they have there, each once");
            assert_eq!(database.ask::<i64>("SELECT count(*) FROM runs"), [1], "what was said there starts nothing");
            if history.faults == 0 {
                assert_eq!(listed_first(sim), "done there", "a list shows it before its first run");
            }
            let requests = sim.world.outside.requests.borrow();
            let sent = requests.iter().find(|request| request.last_user() == "two").unwrap();
            assert_eq!((sent.texts("user"), sent.texts("tool")), (vec!["one", "two"], vec!["far"]));
            assert_eq!(sent.texts("assistant").last().map(|text| text.contains("done there")), Some(true));
        })
}

#[test]
fn a_thread_of_elsewhere_is_taken_in_once_whatever_fails() {
    imported().sampled(100).sweep();
}

/// The newest message that the directory was told of first for the copy.
fn listed_first(sim: &Sim) -> Value {
    let siblings = sim.world.outside.siblings.borrow();
    let id = thread_id::of_key(None, KEY);
    let mut told =
        siblings.iter().filter(|(_, call)| call["call"] == "activity" && call["id"] == id.as_str());
    told.next().map(|(_, call)| call["last_message"][0].clone()).unwrap_or_default()
}

/// A thread of its own that has so many files.
async fn source(sim: &Sim, files: usize) -> Sim {
    let source = keyed(sim, "source");
    let body = json!({ "agent_id": "helper", "key": "source" }).to_string();
    let made = source.insist(ThreadRoute::Create, &[], None, body).await;
    assert!(matches!(made.status, 200 | 201), "{made:?}");
    source.ask("one").await;
    for n in 0..files {
        put(&source, &format!("f{n}"), "text/plain", b"content").await;
    }
    source.accepted.borrow_mut().clear();
    source
}

async fn delete(sim: &Sim) {
    let seen = sim.insist(ThreadRoute::Delete, &[], None, String::new()).await;
    assert!(matches!(seen.status, 200 | 404), "{seen:?}");
}

fn files_of(sim: &Sim) -> i64 {
    match sim.member.exists() {
        true => sim.member.database.ask("SELECT count(*) FROM files WHERE parent IS NOT NULL")[0],
        false => 0,
    }
}

/// The copied thread is deleted when a part of the files is copied.
fn source_deleted() -> Scenario {
    story("deleted while it is copied")
        .drive(|sim| async move {
            let source = source(&sim, 20).await;
            let seen = fork(&source, json!({ "key": KEY })).await;
            assert!(matches!(seen.status, 200 | 201), "{seen:?}");
            let copy = keyed(&sim, KEY);
            let looked = copy.clone();
            sim.until("a part is copied", move |_| files_of(&looked) >= 8).await;
            delete(&source).await;
            // Where nothing holds the copy up, it is the faster one.
            let state = settled(&copy).await;
            let whole = state == "copied" && files_of(&copy) == 20;
            assert!(whole || (state.is_null() && !copy.member.exists()), "{state}");
        })
        .terms(|terms| terms.one_answer = false)
}

#[test]
fn a_copy_of_what_is_deleted_meanwhile_is_whole_or_goes_whatever_fails() {
    source_deleted().sampled(250).sweep();
}

/// What is to be copied is not there any more when its first page is asked for.
fn source_gone() -> Scenario {
    story("nothing to copy")
        .drive(|sim| async move {
            let source = source(&sim, 1).await;
            delete(&source).await;
            let of = json!({ "thread": source.member.id, "life": 1, "upto": 2, "state": "copying" });
            let birth = json!({ "fork": of, "named": false, "agent": "helper", "owner": null, "key": KEY, "tags": [],
                "properties": {}, "budget": null, "env": {} });
            let copy = keyed(&sim, KEY);
            let seen = copy.insist(ThreadRoute::CreateFork, &[], None, birth.to_string()).await;
            assert!(matches!(seen.status, 200 | 201), "{seen:?}");
            assert_eq!((settled(&copy).await, copy.member.exists()), (Value::Null, false));
        })
        .terms(|terms| terms.one_answer = false)
}

#[test]
fn a_copy_of_nothing_goes_whatever_fails() {
    source_gone().sampled(200).sweep();
}

/// The copy itself is deleted when a part of it is there; its key is free for another one.
fn copy_deleted() -> Scenario {
    story("a copy is deleted")
        .drive(|sim| async move {
            let source = source(&sim, 12).await;
            fork(&source, json!({ "key": KEY })).await;
            let copy = keyed(&sim, KEY);
            let looked = copy.clone();
            sim.until("a part is copied", move |_| files_of(&looked) >= 8).await;
            delete(&copy).await;
            put(&source, "last", "text/plain", b"content").await;
            let seen = fork(&source, json!({ "key": KEY })).await;
            assert!(matches!(seen.status, 200 | 201), "{seen:?}");
            assert_eq!(settled(&copy).await, "copied");
            assert_eq!(files_of(&copy), 13);
        })
        .terms(|terms| terms.one_answer = false)
}

#[test]
fn a_copy_that_is_deleted_gives_way_to_the_next_whatever_fails() {
    copy_deleted().sampled(200).sweep();
}

/// Fills a thread with messages that were said, and taken in by a run, long ago.
async fn fill(sim: &Sim, messages: usize) {
    sim.until("idle", |sim| sim.world.executor.waiting(false).is_empty()).await;
    sim.member.database.alter(&format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {messages})
         INSERT INTO messages (seq, role, content, created_us, depth, silent, inbound)
         SELECT i, CASE i % 2 WHEN 1 THEN 'user' ELSE 'assistant' END, 'text ' || i, 1700000000000000, 0, 0,
            CASE i % 2 WHEN 1 THEN 2 ELSE 0 END FROM n;
         INSERT INTO runs (id, phase, side, turn_from, started_us, ended_us, outcome, reason, step, steps, side_steps, block,
            model, attempt, stream, recoveries, short_below, turns)
         VALUES (1, 'ended', 'a', 1, 1700000000000000, 1700000000000001, 'stopped', 'stopped_by_user', 0, 0, '0,0',
            {messages} + 1, 0, 0, 0, 0, 0, 0)"
    ));
    sim.world.kill();
}

#[test]
fn messages_that_change_while_they_are_copied_are_copied_anew() {
    story("edited meanwhile")
        .drive(|sim| async move {
            fill(&sim, 900).await;
            let last = sim.history().await.last().unwrap()["id"].clone();
            let first = last.as_str().unwrap().replace("_900", "_1");
            let seen = fork(&sim, json!({ "key": KEY })).await;
            assert_eq!((seen.status, &seen.body["fork"]["upTo"]), (201, &last), "{seen:?}");
            let copy = keyed(&sim, KEY);
            let looked = copy.clone();
            sim.until("a page is there", move |_| {
                looked.member.database.ask::<i64>("SELECT count(*) FROM messages")[0] >= 256
            })
            .await;
            let body = json!({ "content": "changed" }).to_string();
            let changed = sim.insist(ThreadRoute::PatchMessage(first), &[], None, body).await;
            assert_eq!(changed.status, 200, "{}", changed.body);
            assert_eq!(settled(&copy).await, "copied");
            let history = copy.history().await;
            assert_eq!((history.len(), &history[0]["content"]), (900, &json!("changed")));
            assert_eq!(history[899]["content"], "text 900");
        })
        .terms(|terms| terms.one_answer = false)
        .once();
}

#[test]
fn a_copy_is_answered_anew_and_copied_again() {
    story("copies of copies")
        .drive(|sim| async move {
            sim.ask("one").await;
            let second = sim.send("two").await;
            sim.outcome(&second).await;
            let seen = fork(&sim, json!({ "up_to": second.id, "key": KEY })).await;
            assert_eq!(seen.status, 201, "{seen:?}");
            let copy = keyed(&sim, KEY);
            let anew =
                copy.insist(ThreadRoute::Regenerate("last".into()), &[], Some("k"), String::new()).await;
            assert_eq!((anew.status, &anew.body["deleted"]), (202, &json!(0)), "{anew:?}");
            copy.until("it is answered", |copy| {
                copy.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE phase = 'ended'") == [1]
            })
            .await;
            let seen = fork(&copy, json!({ "key": "second" })).await;
            assert_eq!(seen.status, 201, "{seen:?}");
            let second = keyed(&sim, "second");
            assert_eq!(settled(&second).await, "copied");
            let texts: Vec<Value> = second.history().await.iter().map(|m| m["content"].clone()).collect();
            assert_eq!(texts, ["one", "re: one", "two", "re: two"]);
        })
        .terms(|terms| terms.one_answer = false)
        .calm();
}

#[test]
fn what_cannot_be_copied_is_refused_by_name() {
    story("no copy")
        .answers(|request| clerk(request).stream(request.index).pace(SECOND_US))
        .drive(|sim| async move {
            let refused = |seen: Seen, status: u16, code: &str, field: &str| {
                let error = &seen.body["error"];
                assert_eq!((seen.status, &error["code"]), (status, &json!(code)), "{}", seen.body);
                assert_eq!(error["field"].as_str().unwrap_or_default(), field, "{}", seen.body);
            };
            let first = sim.send("one").await;
            sim.outcome(&first).await;
            let second = sim.send("use work").await;
            sim.until_executions(1).await;
            refused(fork(&sim, json!({ "up_to": "m_6f0c0000_99" })).await, 404, "message_not_found", "");
            refused(fork(&sim, json!({ "key": " " })).await, 400, "invalid_field", "key");
            refused(fork(&sim, json!({ "depth": 1 })).await, 400, "invalid_field", "depth");
            let open = sim.history().await.last().unwrap()["id"].clone();
            refused(fork(&sim, json!({ "up_to": open })).await, 409, "conflict", "up_to");
            // Without a name: what is complete.
            let seen = fork(&sim, json!({ "key": KEY })).await;
            assert_eq!((seen.status, &seen.body["fork"]["upTo"]), (201, &json!(second.id)), "{seen:?}");
            refused(fork(&sim, json!({ "key": KEY, "up_to": first.id })).await, 409, "key_conflict", "key");
            sim.outcome(&second).await;
            let copy = keyed(&sim, KEY);
            assert_eq!(settled(&copy).await, "copied");
            refused(fork(&copy, json!({ "key": KEY })).await, 409, "key_conflict", "key");
        })
        .calm();
}

#[test]
fn a_subagent_is_not_copied_alone() {
    family::story("no copy of a child")
        .drive(|sim| async move {
            sim.ask(&family::calls(json!([["research", { "q": "hello" }]]))).await;
            sim.until("it rests", |sim| {
                sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE phase != 'ended'") == [0]
            })
            .await;
            let child = sim.member.database.ask::<String>("SELECT reference FROM children")[0].clone();
            let seen = fork(&sim.of(&child), json!({})).await;
            assert_eq!((seen.status, &seen.body["error"]["code"]), (409, &json!("conflict")), "{seen:?}");
            let seen = fork(&sim, json!({ "key": KEY })).await;
            assert_eq!(seen.status, 201, "{seen:?}");
            let copy = keyed(&sim, KEY);
            assert_eq!(settled(&copy).await, "copied");
            assert_eq!(copy.member.database.ask::<i64>("SELECT count(*) FROM children"), [0]);
        })
        .check(|_, history| {
            let copy: &History = &history.family[&thread_id::of_key(None, KEY)];
            assert_eq!(copy.messages.len(), history.messages.len());
        })
        .once();
}

#[test]
fn a_memory_of_the_copys_own_has_what_was_said() {
    story("remembered")
        .define(hears)
        .drive(|sim| async move {
            sim.ask("The lighthouse is forty metres tall.").await;
            sim.ask("use work").await;
            let seen = fork(&sim, json!({ "key": KEY })).await;
            assert_eq!(seen.status, 201, "{seen:?}");
            let copy = keyed(&sim, KEY);
            assert_eq!(settled(&copy).await, "copied");
            copy.until("nothing is owed", |copy| {
                copy.member.database.ask::<i64>("SELECT jobs FROM meta") == [0]
            })
            .await;
        })
        .check(|sim, history| {
            let id = thread_id::of_key(None, KEY);
            let kept = kept_in(&sim.of(&id).member);
            assert_eq!(kept.len(), 4, "{kept:?}");
            assert_eq!(kept, said_in(&history.family[&id]));
        })
        .calm();
}

#[test]
fn a_memory_that_threads_share_learns_nothing_of_what_was_copied() {
    story("not remembered twice")
        .define(hears_owner)
        .setup(of_alice)
        .drive(|sim| async move {
            sim.ask("The lighthouse is forty metres tall.").await;
            let ready = |sim: &Sim| counted(sim, "mem_docs", "state = 'ready'");
            sim.until("the letters are taken", move |sim| ready(sim) == 2).await;
            let seen = fork(&sim, json!({})).await;
            assert_eq!(seen.status, 201, "{seen:?}");
            let copy = sim.of(seen.body["threadId"].as_str().unwrap());
            assert_eq!(settled(&copy).await, "copied");
            sim.world.pause(20 * SECOND_US).await;
            assert_eq!(ready(&sim), 2);
            copy.ask("The harbour opens at nine.").await;
            sim.until("the letters are taken", move |sim| ready(sim) == 4).await;
        })
        .calm();
}
