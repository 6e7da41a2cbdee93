//! What comes into memories by itself: each message and each file is there once, none is missing, and what is gone is not found,
//! whatever fails here and there.

use bobbin::request::{StreamRoute, ThreadRoute};
use serde_json::{Value, json};

use super::files::put;
use super::memories::{search, whole, with_book};
use super::shared_memories::{counted, of_alice, search as search_of};
use super::{story, with_work};
use crate::contract::History;
use crate::files::Sent;
use crate::host::Member;
use crate::sim::{Sim, catalog};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![said(), said_to_owner(), filed(), moved()]
}

pub(super) fn hears(catalog: &mut Value) {
    with_book(catalog);
    catalog["memories"]["book"]["sources"] = json!({ "messages": true });
    catalog["prompts"]["p"]["memory"] = json!([{ "name": "book" }]);
}

pub(super) fn hears_owner(catalog: &mut Value) {
    hears(catalog);
    catalog["memories"]["book"]["scope"] = json!("owner");
}

fn files(catalog: &mut Value) {
    with_book(catalog);
    catalog["memories"]["book"]["sources"] = json!({ "files": ["/handbook/**"] });
    catalog["prompts"]["p"]["memory"] = json!([{ "name": "book" }]);
}

fn takes_all(catalog: &mut Value) {
    with_book(catalog);
    catalog["memories"]["book"]["sources"] = json!({ "messages": true, "files": ["/handbook/**"] });
}

async fn settled(sim: &Sim) {
    sim.until("nothing is owed", |sim| sim.member.database.ask::<i64>("SELECT jobs FROM meta") == [0]).await;
}

/// The id of what was said with these words.
async fn id_of(sim: &Sim, text: &str) -> String {
    let history = sim.history().await;
    let found = history.iter().find(|message| message["content"] == text);
    found.unwrap_or_else(|| panic!("{text}: {history:?}"))["id"].as_str().unwrap().to_owned()
}

async fn patch(sim: &Sim, id: &str, body: Value) {
    let seen = sim.insist(ThreadRoute::PatchMessage(id.into()), &[], None, body.to_string()).await;
    assert_eq!(seen.status, 200, "{seen:?}");
}

async fn delete(sim: &Sim, id: &str) {
    let seen = sim.insist(ThreadRoute::DeleteMessage(id.into()), &[], None, String::new()).await;
    // What was asked again after its answer was lost finds nothing.
    assert!(seen.status == 200 || seen.status == 404, "{seen:?}");
}

/// The ids of what people see said, sorted.
pub(super) fn said_in(history: &History) -> Vec<String> {
    let said = history.messages.iter().filter(|message| {
        let text = message["content"].as_str().unwrap_or_default();
        message["silent"] != true && message["role"] != "tool" && !text.is_empty()
    });
    let mut ids: Vec<String> = said.map(|message| message["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

/// The ids of messages that a memory has.
pub(super) fn kept_in(member: &Member) -> Vec<String> {
    let mut ids: Vec<String> = member.database.ask::<String>(
        "SELECT meta ->> 'message' FROM mem_docs WHERE source = 'message' AND state = 'ready'",
    );
    ids.sort();
    ids
}

async fn talk(sim: &Sim) {
    sim.ask("The lighthouse is forty metres tall.").await;
    sim.ask("use work").await;
    sim.ask("The harbour opens at nine.").await;
    sim.accepted.borrow_mut().clear();
}

fn said() -> Scenario {
    story("what is said comes into a memory")
        .define(hears)
        .drive(|sim| async move {
            talk(&sim).await;
            settled(&sim).await;
            let (found, degraded) = search(&sim, json!({ "query": "lighthouse" })).await;
            assert!(!degraded && found[0].contains("lighthouse"), "{found:?}");
            delete(&sim, &id_of(&sim, "re: The lighthouse is forty metres tall.").await).await;
            let first = id_of(&sim, "The lighthouse is forty metres tall.").await;
            patch(&sim, &first, json!({ "content": "The windmill turns at night." })).await;
            let (found, _) = search(&sim, json!({ "query": "lighthouse", "mode": "text" })).await;
            assert!(found.is_empty(), "at once nothing is found of what was changed: {found:?}");
            let silent = id_of(&sim, "re: The harbour opens at nine.").await;
            patch(&sim, &silent, json!({ "silent": true })).await;
            settled(&sim).await;
            let (found, _) = search(&sim, json!({ "query": "windmill", "mode": "text" })).await;
            assert_eq!(found, ["The windmill turns at night."]);
        })
        .terms(|terms| terms.one_answer = false)
        .check(|sim, history| {
            whole(sim);
            assert_eq!(kept_in(&sim.member), said_in(history), "each once, and nothing else");
            assert_eq!(sim.member.database.ask::<i64>("SELECT count(*) FROM mem_sources"), [1]);
            let tools = sim.member.database.ask::<i64>("SELECT count(*) FROM mem_chunks WHERE text = 'w0'");
            assert_eq!(tools, [0], "results of tools are not said");
        })
}

#[test]
fn what_is_said_is_in_a_memory_once_and_what_is_deleted_is_not_whatever_fails() {
    said().sweep();
}

fn said_to_owner() -> Scenario {
    story("what is said comes into an owner's memory")
        .define(hears_owner)
        .setup(of_alice)
        .drive(|sim| async move {
            talk(&sim).await;
            sim.until("the letters are taken", |sim| counted(sim, "mem_docs", "state = 'ready'") == 6).await;
            delete(&sim, &id_of(&sim, "re: The lighthouse is forty metres tall.").await).await;
            let first = id_of(&sim, "The lighthouse is forty metres tall.").await;
            patch(&sim, &first, json!({ "content": "The windmill turns at night." })).await;
            sim.until("the letters are taken", |sim| {
                counted(sim, "mem_chunks", "text LIKE '%windmill%' AND slot IS NOT NULL") == 1
                    && counted(sim, "mem_docs", "state = 'ready'") == 5
            })
            .await;
            assert!(search_of(&sim, "bob", "windmill").await.is_empty());
            assert_eq!(search_of(&sim, "alice", "windmill").await[0], "The windmill turns at night.");
        })
        .terms(|terms| terms.one_answer = false)
        .check(|sim, history| {
            let book = sim.world.member("o:alice/book");
            assert_eq!(kept_in(&book), said_in(history), "each once, and nothing else");
            assert_eq!(counted(sim, "mem_chunks", "text LIKE '%lighthouse%'"), 0);
            assert!(!sim.member.has_table("mem_docs"), "a thread has no tables for what is not its own");
            let left = sim.member.database.ask::<i64>("SELECT count(*) FROM outbox WHERE target LIKE 'm:%'");
            assert_eq!(left, [0]);
        })
}

#[test]
fn what_is_said_is_in_an_owners_memory_once_whatever_fails() {
    said_to_owner().sweep();
}

/// The paths of files that the memory has, with the first letters of their texts.
fn held(sim: &Sim) -> Vec<String> {
    sim.member.database.ask::<String>(
        "SELECT d.title || ' ' || c.text FROM mem_docs d JOIN mem_chunks c ON c.doc = d.id AND c.gen = d.gen
         WHERE d.source = 'file' AND d.store > 0 ORDER BY 1",
    )
}

async fn gone(sim: &Sim, path: &str) {
    let sent = Sent::new(StreamRoute::DeleteFile(path.into())).query("recursive", "true");
    let got = sim.serve(sent).await;
    assert!(matches!(got.status, 204 | 404), "{got:?}");
}

fn filed() -> Scenario {
    story("files come into a memory")
        .define(files)
        .drive(|sim| async move {
            put(&sim, "/handbook/a.md", "text/markdown", b"The lighthouse is tall.").await;
            put(&sim, "/handbook/deep/b.html", "text/html", b"<h1>Mills</h1><p>The windmill turns.").await;
            put(&sim, "/handbook/c.png", "image/png", b"png").await;
            put(&sim, "/other/d.md", "text/markdown", b"Nobody asks.").await;
            settled(&sim).await;
            let expected = [
                "/handbook/a.md The lighthouse is tall.",
                "/handbook/deep/b.html # Mills\n\nThe windmill turns.",
            ];
            assert_eq!(held(&sim), expected);
            put(&sim, "/handbook/a.md", "text/markdown", b"The harbour is deep.").await;
            gone(&sim, "/handbook/deep").await;
            let (found, _) = search(&sim, json!({ "query": "windmill", "mode": "text" })).await;
            assert!(found.is_empty(), "at once nothing is found of what is gone: {found:?}");
            settled(&sim).await;
            let outcome = sim.ask("hello").await;
            assert_eq!(outcome["outcome"], "completed", "{outcome}");
        })
        .check(|sim, history| {
            whole(sim);
            assert_eq!(held(sim), ["/handbook/a.md The harbour is deep."]);
            assert_eq!(sim.member.database.ask::<i64>("SELECT count(*) FROM mem_docs"), [1]);
            let told = format!("{:?}", history.outcomes);
            assert!(told.contains("memory.skipped") && told.contains("/handbook/c.png"), "{told}");
        })
}

#[test]
fn files_are_in_a_memory_as_they_are_and_gone_with_them_whatever_fails() {
    filed().sweep();
}

fn moved() -> Scenario {
    story("a directory of a memory is moved")
        .define(files)
        .drive(|sim| async move {
            put(&sim, "/handbook/x/a.md", "text/markdown", b"The lighthouse is tall.").await;
            put(&sim, "/handbook/x/b.md", "text/markdown", b"The windmill turns.").await;
            put(&sim, "/drafts/c.md", "text/markdown", b"The harbour is deep.").await;
            settled(&sim).await;
            let asked = sim.world.outside.embeddings.texts().len();
            for (from, to) in [("/handbook/x", "/handbook/y"), ("/drafts", "/handbook/z")] {
                let sent = Sent::new(StreamRoute::MoveFile(from.into())).json(&json!({ "path": to }));
                let got = sim.serve(sent).await;
                assert!(matches!(got.status, 200 | 404), "{got:?}");
            }
            settled(&sim).await;
            let moved = Sent::new(StreamRoute::MoveFile("/handbook/y/b.md".into()));
            let got = sim.serve(moved.json(&json!({ "path": "/elsewhere/b.md" }))).await;
            assert!(matches!(got.status, 200 | 404), "{got:?}");
            settled(&sim).await;
            if sim.world.faults.borrow().fired.is_empty() {
                let again = sim.world.outside.embeddings.texts().split_off(asked);
                assert_eq!(again, ["The harbour is deep."], "what was moved keeps its vectors");
            }
        })
        .check(|sim, _| {
            whole(sim);
            let expected =
                ["/handbook/y/a.md The lighthouse is tall.", "/handbook/z/c.md The harbour is deep."];
            assert_eq!(held(sim), expected);
        })
}

#[test]
fn what_is_moved_is_found_where_it_is_and_keeps_its_vectors_whatever_fails() {
    moved().sweep();
}

#[test]
fn a_full_memory_takes_in_no_more_and_the_next_run_is_told() {
    story("full")
        .define(|catalog| {
            hears(catalog);
            catalog["memories"]["book"]["limits"] = json!({ "chunks": 2 });
        })
        .drive(|sim| async move {
            for n in 0..3 {
                let outcome = sim.ask(&format!("Number {n} is a number.")).await;
                assert_eq!(outcome["outcome"], "completed", "{outcome}");
                settled(&sim).await;
            }
            let outcome = sim.ask("And now?").await;
            let told = outcome.to_string();
            assert!(told.contains("memory_full") && told.contains("of 2 chunks"), "{told}");
            settled(&sim).await;
            assert_eq!(sim.member.database.ask::<i64>("SELECT count(*) FROM mem_docs"), [2]);
        })
        .calm();
}

#[test]
fn ten_thousand_files_are_looked_through_bit_by_bit() {
    story("many files")
        .define(|catalog| {
            files(catalog);
            catalog["memories"]["book"]["embedding"].take();
        })
        .drive(|sim| async move {
            put(&sim, "/handbook/t/first.md", "text/markdown", b"first").await;
            sim.world.database.alter(
                "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2000)
                 INSERT INTO files (parent, name, kind, mime, size, chunks, metadata, created_us, updated_us, search)
                 SELECT '/handbook/t', 'f' || n || '.md', 1, 'text/markdown', 5, 1, NULL, 1, 1, 0 FROM n",
            );
            sim.world.database.alter(
                "INSERT INTO chunks (id, data) SELECT id << 20, CAST(printf('x%04d', id) AS BLOB) FROM files WHERE created_us = 1",
            );
            sim.evict().await;
            let to = json!({ "path": "/handbook/u" });
            let got = sim.serve(Sent::new(StreamRoute::MoveFile("/handbook/t".into())).json(&to)).await;
            assert_eq!(got.status, 200, "{got:?}");
            settled(&sim).await;
            let counted = || sim.member.database.ask::<i64>("SELECT count(*) FROM mem_docs WHERE state = 'ready'");
            assert_eq!(counted(), [2_001]);
            gone(&sim, "/handbook/u").await;
            let (found, _) = search(&sim, json!({ "query": "first", "mode": "text" })).await;
            assert!(found.is_empty(), "{found:?}");
            assert!(counted()[0] > 1_000, "they go bit by bit");
            settled(&sim).await;
            assert_eq!(sim.member.database.ask::<i64>("SELECT count(*) FROM mem_docs"), [0]);
            assert_eq!(sim.member.database.ask::<i64>("SELECT count(*) FROM mem_chunks"), [0]);
        })
        .long()
        .calm();
}

#[test]
fn what_was_there_before_a_memory_was_for_it_comes_with_the_next_run() {
    story("before")
        .define(takes_all)
        .drive(|sim| async move {
            put(&sim, "/handbook/a.md", "text/markdown", b"The lighthouse is tall.").await;
            sim.ask("The harbour is deep.").await;
            assert!(!sim.member.has_table("mem_sources"), "no prompt lists it: nothing is paid");
            let mut catalog = catalog(&with_work());
            takes_all(&mut catalog);
            catalog["prompts"]["p"]["memory"] = json!([{ "name": "book" }]);
            sim.deploy(&catalog);
            sim.evict().await;
            sim.ask("And the windmill?").await;
            settled(&sim).await;
            whole(&sim);
            assert_eq!(held(&sim), ["/handbook/a.md The lighthouse is tall."]);
            let said =
                sim.member.database.ask::<i64>("SELECT count(*) FROM mem_docs WHERE source = 'message'");
            assert_eq!(said, [4]);
        })
        .calm();
}
