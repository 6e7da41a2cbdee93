//! Memories of an owner and of the instance: what threads save there is there once, and found by the owner's other threads and by
//! nobody else, whatever fails here and there.

use bobbin::request::{MemoryRoute, ThreadRoute};
use serde_json::{Value, json};

use super::memories::{text_about, with_book};
use super::story;
use crate::host::outside::ModelRequest;
use crate::host::{Member, SECOND_US, Say};
use crate::sim::{Seen, Sim};
use crate::sweep::Scenario;
use std::rc::Rc;

/// The object of the memory `book` of `alice`.
const BOOK: &str = "o:alice/book";

pub fn all() -> Vec<Scenario> {
    vec![indexed(), noted(), unreachable()]
}

fn owned(catalog: &mut Value) {
    with_book(catalog);
    catalog["memories"]["book"]["scope"] = json!("owner");
    catalog["prompts"]["p"]["memory"] = json!([{ "name": "book", "inject": true }]);
}

pub fn of_alice(sim: &Sim) {
    *sim.born.borrow_mut() = json!({ "agent_id": "helper", "user_id": "alice" });
}

fn writes(catalog: &mut Value) {
    owned(catalog);
    catalog["prompts"]["p"]["memory"] =
        json!([{ "name": "book", "inject": true, "tools": ["search", "save"] }]);
}

/// How many rows a query of the memory's object counts; 0 while it has no such table.
pub fn counted(sim: &Sim, table: &str, which: &str) -> i64 {
    let member = book(sim);
    if !member.has_table(table) {
        return 0;
    }
    member.database.ask::<i64>(&format!("SELECT count(*) FROM {table} WHERE {which}"))[0]
}

/// What something of those comes to.
pub fn summed(sim: &Sim, table: &str, what: &str, which: &str) -> i64 {
    let member = book(sim);
    if !member.has_table(table) {
        return 0;
    }
    let statement = format!("SELECT ifnull(sum({what}), 0) FROM {table} WHERE {which}");
    member.database.ask::<i64>(&statement)[0]
}

fn book(sim: &Sim) -> Rc<Member> {
    sim.world.member(BOOK)
}

pub async fn add(sim: &Sim, owner: &str, body: Value) -> Seen {
    let key = sim.key();
    sim.insist_memory(Some(owner), "book", MemoryRoute::AddDocument, Some(&key), &body).await
}

pub async fn ready(sim: &Sim, owner: &str) -> Value {
    for _ in 0..600 {
        let seen = sim.insist_memory(Some(owner), "book", MemoryRoute::Get, None, &Value::Null).await;
        assert_eq!(seen.status, 200, "{seen:?}");
        if seen.body["state"] == "ready" {
            return seen.body;
        }
        sim.world.pause(SECOND_US / 4).await;
    }
    panic!("the memory of {owner} is never ready");
}

pub async fn search(sim: &Sim, owner: &str, query: &str) -> Vec<String> {
    let body = json!({ "query": query });
    let seen = sim.insist_memory(Some(owner), "book", MemoryRoute::Search, None, &body).await;
    assert_eq!(seen.status, 200, "{seen:?}");
    let results = seen.body["results"].as_array().cloned().unwrap_or_default();
    results.iter().map(|hit| hit["text"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Each chunk of an object is there once, with one vector and its words, and nothing is owed.
fn whole(member: &Member) {
    let ask = |statement: &str| member.database.ask::<i64>(statement);
    assert_eq!(ask("SELECT count(*) FROM mem_work"), [0], "nothing is owed");
    assert_eq!(ask("SELECT count(*) FROM mem_texts"), [0]);
    assert_eq!(ask("SELECT count(*) FROM mem_docs WHERE state != 'ready' OR gen != next"), [0]);
    let chunks = ask("SELECT count(*) FROM mem_chunks");
    assert_eq!(ask("SELECT coalesce(sum(chunks), 0) FROM mem_docs"), chunks);
    assert_eq!(ask("SELECT count(DISTINCT slot) FROM mem_chunks"), chunks, "each has a vector of its own");
    assert_eq!(ask("SELECT count(*) FROM (SELECT DISTINCT doc, gen, n FROM mem_chunks)"), chunks);
    assert_eq!(ask("SELECT count(*) FROM mem_fts"), chunks, "its words are there once");
}

/// What a request has before the messages of the turn.
fn context_of(request: &ModelRequest) -> Option<&str> {
    request.texts("user").into_iter().find(|text| text.starts_with("Relevant context from memory."))
}

fn indexed() -> Scenario {
    story("a memory of an owner is put before turns of its threads")
        .define(owned)
        .setup(of_alice)
        .says(|request: &ModelRequest| match context_of(request) {
            Some(_) => Say::text("It is tall [m1]."),
            None => Say::text("Nobody knows."),
        })
        .drive(|sim| async move {
            let accepted = add(
                &sim,
                "alice",
                json!({ "key": "a", "title": "Lighthouses", "text": text_about("lighthouse") }),
            )
            .await;
            assert_eq!(accepted.status, 202, "{accepted:?}");
            ready(&sim, "alice").await;
            assert!(search(&sim, "bob", "lighthouse").await.is_empty());
            assert!(!search(&sim, "alice", "lighthouse").await.is_empty());
            sim.ask("How tall is the lighthouse?").await;
            let gone = sim.insist_memory(Some("alice"), "book", MemoryRoute::Clear, None, &Value::Null).await;
            assert_eq!(gone.status, 204, "{gone:?}");
            sim.ask("And now, the lighthouse?").await;
            // Its routes are not those of a thread.
            let of = ThreadRoute::Memory { memory: "book".to_owned(), of: MemoryRoute::Get };
            let seen = sim.insist(of, &[], None, String::new()).await;
            assert_eq!(seen.body["error"]["code"], "memory_not_found", "{seen:?}");
        })
        .check(|sim, history| {
            whole(&book(sim));
            assert_eq!(book(sim).database.ask::<i64>("SELECT count(*) FROM mem_docs"), [0]);
            assert!(!sim.member.has_table("mem_docs"), "a thread has no tables for what is not its own");
            let requests = sim.world.outside.requests.borrow();
            let asked = |request: &&ModelRequest| request.last_user() == "How tall is the lighthouse?";
            let (first, later): (Vec<&ModelRequest>, Vec<&ModelRequest>) = requests.iter().partition(asked);
            if history.faults == 0 {
                assert!(first.iter().all(|request| context_of(request).is_some()));
            }
            assert!(
                !later.is_empty() && later.iter().all(|request| context_of(request).is_none()),
                "it is gone"
            );
            let cited = history.messages.iter().find(|message| message["content"] == "It is tall [m1].");
            if history.faults == 0 {
                let citations = cited.expect("the reply")["metadata"]["citations"].clone();
                assert_eq!(
                    (&citations[0]["title"], &citations[0]["memory"]),
                    (&json!("Lighthouses"), &json!("book"))
                );
            }
        })
}

#[test]
fn a_memory_of_an_owner_is_put_before_turns_of_its_threads_alone() {
    indexed().sweep();
}

fn noted() -> Scenario {
    story("a note for an owner")
        .define(writes)
        .setup(of_alice)
        .says(|request: &ModelRequest| match (request.last_user(), request.results().len()) {
            ("save", 0) => Say::call(
                "memory_save",
                &json!({ "content": "The lighthouse is forty metres tall, api_key: f00ba4-1234-canary" }),
            ),
            ("look", 0) => Say::call("memory_search", &json!({ "query": "lighthouse" })),
            _ => Say::text(format!("done: {}", request.results().join(" | "))),
        })
        .drive(|sim| async move {
            sim.ask("save").await;
            sim.until("the note is indexed", |sim| counted(sim, "mem_docs", "state = 'ready'") == 1).await;
            sim.ask("look").await;
        })
        .check(|sim, history| {
            whole(&book(sim));
            assert_eq!(
                counted(sim, "mem_docs", "key LIKE 'note-%'"),
                1,
                "it is saved once, whatever is made again"
            );
            assert_eq!(counted(sim, "mem_applied", "1"), 1, "and its letter is taken once");
            assert_eq!(counted(sim, "mem_chunks", "text LIKE '%canary%'"), 0, "a secret is not kept");
            let left = sim.member.database.ask::<i64>("SELECT count(*) FROM outbox WHERE target LIKE 'm:%'");
            assert_eq!(left, [0]);
            let said: String =
                history.messages.iter().filter_map(|message| message["content"].as_str()).collect();
            if history.faults == 0 {
                assert!(said.contains("] a note, ") && said.contains("api_key: [REDACTED]"), "{said}");
            }
        })
}

#[test]
fn a_note_for_an_owner_is_delivered_whatever_fails_and_applied_once() {
    noted().sweep();
}

fn unreachable() -> Scenario {
    story("a memory of an owner that cannot be reached")
        .define(writes)
        .setup(|sim| {
            of_alice(sim);
            sim.world.cut(|_, to| to == BOOK);
        })
        .says(|request: &ModelRequest| match request.results().as_slice() {
            [] => Say::call("memory_save", &json!({ "content": "The lighthouse is forty metres tall." })),
            results => Say::text(format!("done: {}", results.join(" | "))),
        })
        .drive(|sim| async move {
            let outcome = sim.ask("save").await;
            assert_eq!(outcome["outcome"], "completed", "{outcome}");
            assert_eq!(counted(&sim, "mem_docs", "1"), 0);
            sim.world.cut(|_, _| false);
            sim.until("the note is there", |sim| counted(sim, "mem_docs", "state = 'ready'") == 1).await;
        })
        .check(|sim, history| {
            whole(&book(sim));
            assert_eq!(counted(sim, "mem_docs", "key LIKE 'note-%'"), 1);
            if history.faults == 0 {
                let told = format!("{:?} {:?}", history.outcomes, history.messages);
                assert!(
                    told.contains("memory.unavailable") && told.contains("does not answer now"),
                    "{told}"
                );
            }
        })
}

#[test]
fn a_memory_that_cannot_be_reached_holds_up_no_turn_and_is_told_later() {
    unreachable().sweep();
}
