//! Memories of an owner, when something comes in between: what they refuse after the model was answered, what is deleted while it is
//! indexed, and threads that go while letters wait.

use bobbin::request::{MemoryRoute, ThreadRoute};
use serde_json::{Value, json};

use super::memories::{text_about, with_book};
use super::shared_memories::{add, counted, of_alice, ready, search};
use super::story;
use crate::contract::History;
use crate::host::outside::ModelRequest;
use crate::host::{Answer, SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

/// The object of the memory `book` of `alice`.
const BOOK: &str = "o:alice/book";

pub fn all() -> Vec<Scenario> {
    vec![refused(), gone_while_indexed(), cleared_while_indexed(), thread_gone(), silent()]
}

fn writes(catalog: &mut Value) {
    with_book(catalog);
    catalog["memories"]["book"]["scope"] = json!("owner");
    catalog["prompts"]["p"]["memory"] = json!([{ "name": "book", "tools": ["save"] }]);
}

fn saver(request: &ModelRequest) -> Say {
    match (request.last_user(), request.results().as_slice()) {
        ("save", []) => {
            Say::call("memory_save", &json!({ "content": "The lighthouse is forty metres tall." }))
        }
        (_, results) => Say::text(format!("done: {}", results.join(" | "))),
    }
}

/// How many runs have the diagnostic.
fn told(history: &History) -> usize {
    let has = |outcome: &&Value| outcome.to_string().contains("memory.refused");
    history.outcomes.values().filter(has).count()
}

fn refused() -> Scenario {
    story("a memory of an owner refuses late")
        .define(|catalog| {
            writes(catalog);
            catalog["memories"]["book"]["limits"] = json!({ "chunks": 1 });
        })
        .setup(|sim| {
            of_alice(sim);
            sim.world.cut(|_, to| to == BOOK);
        })
        .says(saver)
        .drive(|sim| async move {
            let outcome = sim.ask("save").await;
            assert_eq!(outcome["outcome"], "completed", "{outcome}");
            let accepted = add(&sim, "alice", json!({ "key": "a", "text": "The harbour is deep." })).await;
            assert_eq!(accepted.status, 202, "{accepted:?}");
            ready(&sim, "alice").await;
            sim.world.cut(|_, _| false);
            let left = "SELECT count(*) FROM outbox WHERE target LIKE 'm:%'";
            sim.until("the letter is refused", |sim| sim.member.database.ask::<i64>(left) == [0]).await;
            for text in ["hello", "again"] {
                sim.ask(text).await;
            }
        })
        .check(|sim, history| {
            assert_eq!(counted(sim, "mem_docs", "1"), 1);
            assert_eq!(told(history), 1, "it is said once: {:?}", history.outcomes);
            let said = format!("{:?}", history.outcomes);
            assert!(
                said.contains("refused what a model had saved: The memory “book” holds 1 of 1 chunks"),
                "{said}"
            );
            assert_eq!(sim.member.database.ask::<i64>("SELECT count(*) FROM mem_refusals"), [0]);
        })
}

#[test]
fn what_a_memory_refuses_late_the_next_run_is_told_once_whatever_fails() {
    refused().sweep();
}

async fn slow(sim: &Sim, text: &str) -> String {
    let accepted = add(sim, "alice", json!({ "key": text, "text": text_about(text) })).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let sent = |sim: &Sim| sim.world.outside.embeddings.texts().iter().any(|sent| sent.contains(text));
    sim.until("it is being indexed", sent).await;
    accepted.body["document"]["id"].as_str().expect("an id").to_owned()
}

/// Only what was added last is there, whole.
fn only_windmill(sim: &Sim, _: &History) {
    assert_eq!(counted(sim, "mem_docs", "state = 'ready' AND key = 'windmill'"), 1);
    assert_eq!(counted(sim, "mem_docs", "1"), 1);
    let chunks = counted(sim, "mem_chunks", "text LIKE '%windmill%' AND slot IS NOT NULL");
    assert!(chunks > 2, "{chunks}");
    assert_eq!(counted(sim, "mem_chunks", "1"), chunks, "nothing is left of what is gone");
    assert_eq!(counted(sim, "mem_fts", "1"), chunks);
    assert_eq!(counted(sim, "mem_texts", "1"), 0);
    assert_eq!(counted(sim, "mem_work", "1"), 0);
    let free = sim.world.member(BOOK).database.ask::<i64>("SELECT 256 * count(*) - sum(free) FROM mem_pages");
    assert_eq!(free, [chunks], "no place is taken by what is gone");
}

fn gone_while_indexed() -> Scenario {
    story("a document of an owner's memory is deleted while it is indexed")
        .define(writes)
        .setup(of_alice)
        .drive(|sim| async move {
            let id = slow(&sim, "lighthouse").await;
            let of = MemoryRoute::DeleteDocument(id);
            let gone = sim.insist_memory(Some("alice"), "book", of, None, &Value::Null).await;
            assert!(gone.status == 204 || gone.status == 404, "{gone:?}");
            assert!(search(&sim, "alice", "lighthouse").await.is_empty());
            add(&sim, "alice", json!({ "key": "windmill", "text": text_about("windmill") })).await;
            ready(&sim, "alice").await;
        })
        .check(only_windmill)
}

#[test]
fn a_document_that_is_deleted_while_it_is_indexed_is_gone_whatever_fails() {
    gone_while_indexed().sweep();
}

fn cleared_while_indexed() -> Scenario {
    story("an owner's memory is emptied while it is indexed")
        .define(writes)
        .setup(of_alice)
        .drive(|sim| async move {
            slow(&sim, "lighthouse").await;
            let gone = sim.insist_memory(Some("alice"), "book", MemoryRoute::Clear, None, &Value::Null).await;
            assert_eq!(gone.status, 204, "{gone:?}");
            assert!(search(&sim, "alice", "lighthouse").await.is_empty());
            add(&sim, "alice", json!({ "key": "windmill", "text": text_about("windmill") })).await;
            ready(&sim, "alice").await;
        })
        .check(only_windmill)
}

#[test]
fn a_memory_that_is_emptied_while_it_is_indexed_has_what_comes_after_whatever_fails() {
    cleared_while_indexed().sweep();
}

fn thread_gone() -> Scenario {
    story("a thread is deleted while a letter to its owner's memory waits")
        .define(writes)
        .setup(|sim| {
            of_alice(sim);
            sim.world.cut(|_, to| to == BOOK);
        })
        .says(saver)
        .drive(|sim| async move {
            let outcome = sim.ask("save").await;
            assert_eq!(outcome["outcome"], "completed", "{outcome}");
            let refused = sim.once(ThreadRoute::Delete, &[], None, String::new()).await;
            if let Ok(refused) = refused {
                assert_eq!((refused.status, &refused.body["error"]["code"]), (503, &json!("overloaded")));
            }
            assert_eq!(counted(&sim, "mem_docs", "1"), 0);
            sim.world.cut(|_, _| false);
            let gone = sim.insist(ThreadRoute::Delete, &[], None, String::new()).await;
            assert!(matches!(gone.status, 200 | 404), "{gone:?}");
            assert_eq!(
                counted(&sim, "mem_docs", "key LIKE 'note-%'"),
                1,
                "it was told before the thread went"
            );
            sim.until("the note is indexed", |sim| counted(sim, "mem_docs", "state = 'ready'") == 1).await;
            // Nobody can say any more what became of those.
            sim.accepted.borrow_mut().clear();
            sim.world.outside.requests.borrow_mut().clear();
            sim.world.pause(60 * SECOND_US).await;
            // The contract's last look needs a thread.
            sim.create().await;
        })
        .terms(|terms| terms.alarm_may_stay = true)
        .check(|sim, _| assert_eq!(counted(sim, "mem_docs", "1"), 1, "it is there once"))
}

fn silent() -> Scenario {
    story("a memory of an owner that says nothing")
        .define(|catalog| {
            writes(catalog);
            catalog["prompts"]["p"]["memory"] =
                json!([{ "name": "book", "inject": true, "tools": ["save"] }]);
        })
        .setup(|sim| {
            of_alice(sim);
            sim.world.outside.embeddings.script(|n| (n >= 1).then(Answer::silence));
        })
        .drive(|sim| async move {
            add(&sim, "alice", json!({ "text": text_about("lighthouse") })).await;
            let sent = |sim: &Sim| sim.world.outside.embeddings.requests.borrow().len() > 1;
            sim.until("the server says nothing", sent).await;
            let before = sim.world.now_us();
            let outcome = sim.ask("How tall is the lighthouse?").await;
            assert_eq!(outcome["outcome"], "completed", "{outcome}");
            if sim.world.faults.borrow().fired.is_empty() {
                let took = sim.world.now_us() - before;
                assert!((5 * SECOND_US..8 * SECOND_US).contains(&took), "{took} µs");
                assert!(outcome.to_string().contains("it took more than 5 s"), "{outcome}");
            }
        })
        .terms(|terms| terms.alarm_may_stay = true)
}

#[test]
fn a_shared_memory_that_says_nothing_holds_up_a_turn_for_five_seconds() {
    silent().sweep();
}

#[test]
fn a_thread_that_is_deleted_tells_its_owners_memory_first_whatever_fails() {
    thread_gone().sweep();
}
