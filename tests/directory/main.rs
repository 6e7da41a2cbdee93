//! Directories on real SQLite: what threads send arrives late, twice and in any order; what clients ask is answered
//! from it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a test crate: nothing is exported, and a failed assertion is its way to speak"
)]

mod claims;
mod env;
mod host;
mod lists;
mod owners;
mod rows;
mod servers;
mod tokens;

use std::rc::Rc;

use bobbin::directory::{Directory, DirectoryCall, ThreadRow};
use serde_json::Value;

/// A directory's answer: status and body.
fn call(directory: &Rc<Directory>, call: &DirectoryCall) -> (u16, Value) {
    let reply = directory.call(&serde_json::to_string(call).unwrap());
    (reply.status, serde_json::from_str(reply.body.unwrap().get()).unwrap())
}

/// `GET /threads?…` with these parameters.
fn list(directory: &Rc<Directory>, query: &[(&str, &str)]) -> (u16, Value) {
    let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    call(
        directory,
        &DirectoryCall::List {
            query: bobbin::request::Query(query),
            origin: "https://a.example".into(),
            only: None,
        },
    )
}

/// The ids that a list shows, in its order.
fn ids(answer: &(u16, Value)) -> Vec<&str> {
    assert_eq!(answer.0, 200, "{}", answer.1);
    answer.1["threads"].as_array().unwrap().iter().map(|thread| thread["id"].as_str().unwrap()).collect()
}

fn row(id: &str, version: i64) -> ThreadRow {
    ThreadRow {
        id: id.into(),
        agent_id: "helper".into(),
        owner: Some("ada".into()),
        tags: vec![],
        created_at_us: 1_000_000_000_000_000,
        terminated_at_us: None,
        parent: None,
        version,
        key: None,
        life: 1,
    }
}

fn upsert(row: ThreadRow) -> DirectoryCall {
    DirectoryCall::Upsert { row }
}

fn activity(id: &str, version: i64, executing: bool, at_us: i64, text: Option<&str>) -> DirectoryCall {
    DirectoryCall::Activity {
        id: id.into(),
        life: 1,
        version,
        executing,
        last_activity_us: at_us,
        last_message: text.map(|text| (text.to_owned(), at_us)),
        failed: None,
    }
}

#[test]
fn what_is_no_call_is_an_error_and_no_panic() {
    let directory = host::World::new().open();
    for json in
        ["", "null", "[]", "{}", r#"{"call":"x"}"#, r#"{"call":"upsert","row":7}"#, r#"{"call":"delete"}"#]
    {
        assert_eq!(directory.call(json).status, 400, "{json}");
    }
}

#[test]
fn a_directory_gets_the_tables_and_one_that_a_newer_version_has_written_is_left_alone() {
    let world = host::World::new();
    assert_eq!(call(&world.open(), &upsert(row("t1", 1))).0, 200);
    let tables =
        "SELECT count(*) FROM sqlite_schema WHERE name IN ('state', 'threads', 'claims', 'owners', 'env')";
    assert_eq!(world.count(tables), 5);
    assert_eq!(world.count("SELECT schema FROM state"), 2);
    world.alter("UPDATE state SET schema = 99");
    let (status, body) = list(&world.open(), &[]);
    assert_eq!(status, 500);
    assert!(body["error"]["message"].as_str().unwrap().contains("schema 99"), "{body}");
}

#[test]
fn a_directory_of_an_earlier_version_gets_what_a_new_one_has() {
    let (world, new) = (host::World::new(), host::World::new());
    let tables = |world: &host::World| {
        let columns = "SELECT group_concat(t.name || '.' || c.name, ' ') FROM sqlite_schema t, pragma_table_info(t.name) c";
        let indexes = "SELECT group_concat(sql, ' ') FROM (SELECT sql FROM sqlite_schema WHERE type = 'index' ORDER BY name)";
        (world.text(columns), world.text(indexes))
    };
    call(&new.open(), &upsert(row("t1", 1)));
    call(&world.open(), &upsert(row("t1", 1)));
    let owner = DirectoryCall::Owner { owner: Some("ada".into()), threads: 1, version: 1 };
    call(&world.open(), &owner);
    world.alter(
        "DROP INDEX owners_by_change; ALTER TABLE owners DROP COLUMN changed_us; ALTER TABLE threads DROP COLUMN failed;
         UPDATE state SET schema = 1",
    );
    let threads = list(&world.open(), &[]);
    assert_eq!((ids(&threads), &threads.1["threads"][0]["failed"]), (vec!["t1"], &Value::Null));
    assert_eq!(tables(&world), tables(&new));
    assert_eq!(world.count("SELECT threads FROM owners WHERE owner = 'ada' AND changed_us = 0"), 1);
}
