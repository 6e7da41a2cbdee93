//! The root and how it learns.

use std::rc::Rc;

use bobbin::directory::DirectoryCall;
use bobbin::request::Query;
use bobbin::request::directory_call::OwnerOrder;
use futures::FutureExt;
use serde_json::{Value, json};

use crate::host::World;
use crate::{call, row, upsert};

fn owners(root: &Rc<World>, query: &[(&str, &str)]) -> Value {
    let query = query.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    call(&root.open(), &DirectoryCall::Owners { query: Query(query), order: OwnerOrder::Name }).1
}

/// Fires the alarm at its time, with a new object, as after an eviction.
fn fire(world: &Rc<World>) {
    let due = world.alarm_us.take().unwrap();
    world.now_us.set(world.now_us.get().max(due));
    world.open().alarm().now_or_never().unwrap();
}

#[test]
fn the_root_learns_of_an_owner_and_then_it_is_quiet() {
    let (root, ada) = (World::new(), World::new());
    *ada.root.borrow_mut() = Some(root.open());
    let directory = ada.open();
    for n in 0..5 {
        call(&directory, &upsert(row(&format!("t{n}"), 1)));
    }
    fire(&ada);
    assert_eq!(
        owners(&root, &[]),
        json!({ "owners": [{ "user_id": "ada", "threadCount": 5 }], "total": 1, "hasMore": false })
    );
    assert_eq!(ada.alarm_us.get(), None, "nothing left to tell, no alarm");
    call(&directory, &upsert(row("t0", 2)));
    assert_eq!(ada.alarm_us.get(), None, "no count changed, no alarm");
    call(&directory, &DirectoryCall::Delete { id: "t0".into(), life: 1 });
    fire(&ada);
    assert_eq!(owners(&root, &[])["owners"][0]["threadCount"], 4);
}

#[test]
fn a_root_out_of_reach_is_told_later_with_growing_pauses() {
    let (root, ada) = (World::new(), World::new());
    call(&ada.open(), &upsert(row("t1", 1)));
    let mut pauses = Vec::new();
    for _ in 0..15 {
        fire(&ada);
        pauses.push((ada.alarm_us.get().unwrap() - ada.now_us.get()) / 1_000_000);
    }
    assert_eq!(pauses, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600, 3600, 3600]);
    assert_eq!(ada.log.borrow().len(), 15);
    *ada.root.borrow_mut() = Some(root.open());
    fire(&ada);
    assert_eq!(owners(&root, &[])["total"], 1);
    assert_eq!(ada.alarm_us.get(), None);
}

#[test]
fn a_lost_alarm_comes_back_with_the_next_call_of_a_new_object() {
    let ada = World::new();
    call(&ada.open(), &upsert(row("t1", 1)));
    ada.alarm_us.set(None);
    call(&ada.open(), &upsert(row("t1", 1)));
    assert!(ada.alarm_us.get().is_some());
}

#[test]
fn the_owner_whose_threads_changed_last_comes_first_where_that_is_asked_for() {
    let root = World::new();
    for (owner, threads, version) in
        [("ada", 2, 1), ("bob", 1, 1), ("cid", 1, 1), ("ada", 3, 2), ("cid", 0, 2)]
    {
        root.now_us.set(root.now_us.get() + 1);
        call(&root.open(), &DirectoryCall::Owner { owner: Some(owner.into()), threads, version });
    }
    let of = |order| {
        let listed = call(&root.open(), &DirectoryCall::Owners { query: Query::default(), order }).1;
        let owners = listed["owners"].as_array().unwrap().clone();
        owners.iter().map(|owner| owner["user_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of(OwnerOrder::Changed), ["ada", "bob"]);
    root.now_us.set(root.now_us.get() + 1);
    call(&root.open(), &DirectoryCall::Owner { owner: Some("bob".into()), threads: 2, version: 2 });
    assert_eq!(of(OwnerOrder::Changed), ["bob", "ada"]);
    assert_eq!(of(OwnerOrder::Name), ["ada", "bob"]);
}

#[test]
fn owners_are_paged_and_an_owner_without_threads_is_none() {
    let root = World::new();
    let told =
        [(Some("ada"), 2, 1), (None, 3, 1), (Some("null"), 1, 1), (Some("bob"), 1, 2), (Some("bob"), 9, 1)];
    for (owner, threads, version) in told {
        let owner = owner.map(str::to_owned);
        call(&root.open(), &DirectoryCall::Owner { owner, threads, version });
    }
    let all = owners(&root, &[]);
    let expected = json!([
        { "user_id": null, "threadCount": 3 }, { "user_id": "ada", "threadCount": 2 },
        { "user_id": "bob", "threadCount": 1 }, { "user_id": "null", "threadCount": 1 },
    ]);
    assert_eq!(all["owners"], expected);
    let page = owners(&root, &[("limit", "1"), ("offset", "1")]);
    assert_eq!((&page["owners"][0]["user_id"], &page["hasMore"]), (&json!("ada"), &json!(true)));
    call(&root.open(), &DirectoryCall::Owner { owner: Some("ada".into()), threads: 0, version: 2 });
    assert_eq!(owners(&root, &[])["total"], 3);
}
