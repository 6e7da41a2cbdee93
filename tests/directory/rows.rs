//! Rows and activities of threads.

use bobbin::directory::{DirectoryCall, ThreadRow};
use bobbin::request::directory_call::WaitRow;
use serde_json::{Value, json};

use crate::host::World;
use crate::{activity, call, ids, list, row, upsert};

#[test]
fn a_thread_is_listed_as_the_specification_says() {
    let directory = World::new().open();
    call(&directory, &upsert(ThreadRow { tags: vec!["demo".into(), "ü\"".into()], ..row("t1", 1) }));
    call(&directory, &activity("t1", 1, true, 1_000_000_007_500_000, Some("What is\na bobbin?")));
    let (_, answer) = list(&directory, &[]);
    let expected = json!({
        "threads": [{
            "id": "t1", "key": null, "agent_id": "helper", "origin_agent_id": "helper", "user_id": "ada", "tags": ["demo", "ü\""],
            "parent": null, "terminated": null, "created_at": 1_000_000_000, "last_activity_at": 1_000_000_007,
            "executing": true, "failed": null, "last_message_preview": "What is a bobbin?", "last_message_at": 1_000_000_007,
            "agent": { "name": "helper", "title": "The helper", "type": "ai_human", "description": null,
                "icon": "https://a.example/helper.svg" },
        }],
        "total": 1, "hasMore": false,
    });
    assert_eq!(answer, expected);
}

#[test]
fn an_agent_that_is_gone_is_null_and_the_origin_stays() {
    let directory = World::new().open();
    call(&directory, &upsert(row("t1", 1)));
    call(&directory, &upsert(ThreadRow { agent_id: "gone".into(), ..row("t1", 2) }));
    let thread = &list(&directory, &[]).1["threads"][0];
    assert_eq!((&thread["agent_id"], &thread["origin_agent_id"]), (&json!("gone"), &json!("helper")));
    assert_eq!(thread["agent"], Value::Null);
}

#[test]
fn every_order_and_repetition_of_what_a_thread_sent_ends_the_same() {
    let sent = [
        upsert(row("t1", 1)),
        activity("t1", 1, true, 1_000_000_001_000_000, Some("first")),
        upsert(ThreadRow {
            tags: vec!["new".into()],
            terminated_at_us: Some(1_000_000_009_000_000),
            ..row("t1", 2)
        }),
        activity("t1", 2, false, 1_000_000_002_000_000, Some("last")),
    ];
    let mut results = Vec::new();
    for order in permutations(sent.len()) {
        let directory = World::new().open();
        for at in order.iter().chain(&order) {
            assert_eq!(call(&directory, &sent[*at]).0, 200);
        }
        results.push((order, list(&directory, &[]).1));
    }
    assert_eq!(results.len(), 24);
    for (order, result) in &results {
        assert_eq!(result, &results[0].1, "{order:?}");
    }
    let thread = &results[0].1["threads"][0];
    assert_eq!(thread["tags"], json!(["new"]));
    assert_eq!((&thread["executing"], &thread["last_message_preview"]), (&json!(false), &json!("last")));
}

#[test]
fn the_last_run_has_failed_until_another_one_begins() {
    let directory = World::new().open();
    let ended = |id: &str, version: i64, why: &str| match activity(id, version, false, 5, Some("?")) {
        DirectoryCall::Activity { id, life, version, executing, last_activity_us, last_message, .. } => {
            let failed = Some(why.to_owned());
            DirectoryCall::Activity { id, life, version, executing, last_activity_us, last_message, failed }
        }
        other => other,
    };
    for id in ["t1", "t2"] {
        call(&directory, &upsert(row(id, 1)));
        call(&directory, &ended(id, 3, "model_error"));
    }
    let failed = list(&directory, &[("failed", "true")]);
    assert_eq!((ids(&failed).len(), &failed.1["threads"][0]["failed"]), (2, &json!("model_error")));
    call(&directory, &activity("t1", 4, true, 6, None));
    call(&directory, &ended("t1", 3, "model_error"));
    assert_eq!(ids(&list(&directory, &[("failed", "true")])), ["t2"], "what comes late changes nothing");
    assert_eq!(ids(&list(&directory, &[("failed", "false")])), ["t1"]);
    // As a thread of an earlier version tells of the end of a run.
    let earlier = r#"{"call":"activity","id":"t2","version":5,"executing":false,"last_activity_us":7,"last_message":null}"#;
    assert_eq!(directory.call(earlier).status, 200);
    assert_eq!(list(&directory, &[("failed", "true")]).1["total"], 0);
}

#[test]
fn a_deleted_thread_stays_deleted_whatever_arrives_late() {
    let late = [
        upsert(row("t1", 9)),
        activity("t1", 9, true, 5, Some("late")),
        DirectoryCall::Delete { id: "t1".into(), life: 1 },
    ];
    for late_first in [false, true] {
        let world = World::new();
        let directory = world.open();
        if late_first {
            call(&directory, &late[0]);
        }
        call(&directory, &DirectoryCall::Delete { id: "t1".into(), life: 1 });
        for call_again in &late {
            assert_eq!(call(&directory, call_again).0, 200);
        }
        assert_eq!(list(&directory, &[]).1, json!({ "threads": [], "total": 0, "hasMore": false }));
        assert_eq!(world.count("SELECT threads + top FROM state"), 0);
        assert_eq!(world.count("SELECT count(preview) FROM threads"), 0, "a deleted thread leaves no text");
    }
}

/// The id of a key is used again: what is told of the thread that was says nothing of the one that is.
#[test]
fn another_thread_of_the_same_id_is_listed_whatever_arrives_late_of_the_first() {
    let of = |life: i64, tag: &str| {
        upsert(ThreadRow { life, key: Some("k".into()), tags: vec![tag.into()], ..row("t1", 1) })
    };
    let began = |life: i64| match activity("t1", 8, true, 5, Some("old")) {
        DirectoryCall::Activity {
            id, version, executing, last_activity_us, last_message, failed, ..
        } => DirectoryCall::Activity { id, life, version, executing, last_activity_us, last_message, failed },
        other => other,
    };
    let gone = |life: i64| DirectoryCall::Delete { id: "t1".into(), life };
    let asks = |life: i64, id: &str| DirectoryCall::Wait {
        row: WaitRow {
            id: id.into(),
            thread: "t1".into(),
            life,
            kind: "question".into(),
            title: "?".into(),
            created_at_us: 1,
            expires_at_us: i64::MAX >> 10,
            open: true,
        },
    };
    let late = [of(1, "old"), began(1), gone(1), asks(1, "w_old")];
    for order in permutations(late.len()) {
        // Whether the deletion of the first was heard of, and when the rest comes.
        for heard in [false, true] {
            let world = World::new();
            let directory = world.open();
            call(&directory, &of(1, "old"));
            if heard {
                call(&directory, &gone(1));
            }
            call(&directory, &asks(2, "w_new"));
            call(&directory, &of(2, "new"));
            for place in order.iter() {
                assert_eq!(call(&directory, &late[*place]).0, 200);
            }
            let (_, listed) = list(&directory, &[]);
            assert_eq!(listed["total"], 1, "{order:?} {heard}: {listed}");
            let thread = &listed["threads"][0];
            assert_eq!(
                (&thread["tags"], &thread["key"]),
                (&json!(["new"]), &json!("k")),
                "{order:?} {heard}"
            );
            assert_eq!(
                (&thread["executing"], &thread["last_message_preview"]),
                (&json!(false), &Value::Null),
                "{order:?} {heard}"
            );
            let waits = call(&directory, &DirectoryCall::Waits { query: Default::default() }).1;
            let open: Vec<&Value> =
                waits["waits"].as_array().unwrap().iter().map(|wait| &wait["id"]).collect();
            assert_eq!(open, ["w_new"], "{order:?} {heard}");
            assert_eq!(world.count("SELECT threads FROM state"), 1);
            call(&directory, &gone(2));
            call(&directory, &of(2, "late"));
            assert_eq!(list(&directory, &[]).1["total"], 0);
            assert_eq!(world.count("SELECT threads + top FROM state"), 0);
            // One that never was listed is gone, too.
            call(&directory, &gone(4));
            call(&directory, &of(3, "later"));
            assert_eq!(list(&directory, &[]).1["total"], 0);
        }
    }
}

#[test]
fn one_thread_is_found_by_its_id() {
    let directory = World::new().open();
    for id in ["t1", "t2"] {
        call(&directory, &upsert(row(id, 1)));
    }
    let one = |id: &str, query: &[(&str, &str)]| {
        let query = query.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let query = bobbin::request::Query(query);
        call(&directory, &DirectoryCall::List { query, origin: String::new(), only: Some(id.into()) }).1
    };
    let found = one("t2", &[]);
    assert_eq!((&found["total"], &found["threads"][0]["id"]), (&json!(1), &json!("t2")));
    let none = json!({ "threads": [], "total": 0, "hasMore": false });
    assert_eq!(one("t3", &[]), none);
    assert_eq!(one("t2", &[("executing", "true")]), none, "the other filters hold, too");
}

#[test]
fn an_activity_without_its_row_is_not_listed_yet() {
    let directory = World::new().open();
    call(&directory, &activity("t1", 1, true, 2_000_000_000_000_000, None));
    assert_eq!(ids(&list(&directory, &[])), [""; 0]);
    call(&directory, &upsert(row("t1", 1)));
    let (_, answer) = list(&directory, &[("executing", "true")]);
    assert_eq!(answer["threads"][0]["last_activity_at"], 2_000_000_000);
}

#[test]
fn counts_follow_rows_and_children_are_counted_apart() {
    let world = World::new();
    let directory = world.open();
    call(&directory, &upsert(row("t1", 1)));
    call(&directory, &upsert(ThreadRow { parent: Some("t1".into()), ..row("t2", 1) }));
    call(&directory, &upsert(row("t2", 0)));
    assert_eq!(world.count("SELECT threads FROM state"), 2);
    assert_eq!(world.count("SELECT top FROM state"), 1);
    call(&directory, &DirectoryCall::Delete { id: "t2".into(), life: 1 });
    call(&directory, &DirectoryCall::Delete { id: "t2".into(), life: 1 });
    assert_eq!(world.count("SELECT threads FROM state"), 1);
    assert_eq!(world.count("SELECT top FROM state"), 1);
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let shorter = permutations(n - 1);
    shorter
        .iter()
        .flat_map(|order| {
            (0..n).map(|at| {
                let mut order = order.clone();
                order.insert(at, n - 1);
                order
            })
        })
        .collect()
}
