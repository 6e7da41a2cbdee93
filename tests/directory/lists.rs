//! Filters, order, pages of `GET /threads`.

use std::rc::Rc;

use bobbin::directory::{Directory, ThreadRow};
use serde_json::json;

use crate::host::World;
use crate::{activity, call, ids, list, row, upsert};

type Query<'a> = &'a [(&'a str, &'a str)];

const DAY_US: i64 = 86_400_000_000;
/// 2026-11-21T00:00Z
const START_US: i64 = 1_795_219_200_000_000;

/// Threads a to e, created on five days from 21 November on; the older, the more recently active.
fn five() -> Rc<Directory> {
    let directory = World::new().open();
    for (n, id) in (0..).zip(["a", "b", "c", "d", "e"]) {
        let created_at_us = START_US + n * DAY_US + DAY_US / 2;
        let mut thread = ThreadRow { created_at_us, ..row(id, 1) };
        match id {
            "b" => thread.agent_id = "researcher".into(),
            "c" => thread.terminated_at_us = Some(START_US + 9 * DAY_US),
            "d" => thread.tags = vec!["Billing".into()],
            _ => {}
        }
        call(&directory, &upsert(thread));
        let text = if id == "a" { "Tell me about Spindles" } else { "100% of_it" };
        call(&directory, &activity(id, 1, id == "e", START_US + (10 - n) * DAY_US, Some(text)));
    }
    call(
        &directory,
        &upsert(ThreadRow { parent: Some("a".into()), created_at_us: START_US, ..row("child", 1) }),
    );
    directory
}

#[test]
fn filters_and_orders_select_what_they_say() {
    let directory = five();
    let cases: &[(Query<'_>, &[&str])] = &[
        (&[], &["a", "b", "c", "d", "e"]),
        (&[("sort", "activity")], &["a", "b", "c", "d", "e"]),
        (&[("sort", "created")], &["e", "d", "c", "b", "a"]),
        (&[("sort", "oldest")], &["a", "b", "c", "d", "e"]),
        (&[("sort", "oldest"), ("include_children", "true")], &["child", "a", "b", "c", "d", "e"]),
        (&[("agent_id", "researcher")], &["b"]),
        (&[("agent_id", "nobody")], &[]),
        (&[("agent_id", "")], &["a", "b", "c", "d", "e"]),
        (&[("terminated", "true")], &["c"]),
        (&[("terminated", "false")], &["a", "b", "d", "e"]),
        (&[("executing", "1")], &["e"]),
        (&[("executing", "0")], &["a", "b", "c", "d"]),
        (&[("search", "spindles")], &["a"]),
        (&[("search", "BILLING")], &["d"]),
        (&[("search", "%")], &["b", "c", "d", "e"]),
        (&[("search", "_")], &["b", "c", "d", "e"]),
        (&[("search", "researcher")], &["b"]),
        (&[("startDate", "2026-11-23")], &["c", "d", "e"]),
        (&[("endDate", "2026-11-23")], &["a", "b", "c"]),
        (&[("startDate", "2026-11-22"), ("endDate", "2026-11-22T23:00Z")], &["b"]),
        (&[("limit", "2")], &["a", "b"]),
        (&[("limit", "2"), ("offset", "3")], &["d", "e"]),
        (&[("limit", "0")], &[]),
        (&[("offset", "99")], &[]),
    ];
    for (query, expected) in cases {
        assert_eq!(&ids(&list(&directory, query)), expected, "{query:?}");
    }
}

#[test]
fn a_page_says_how_many_there_are_and_whether_more_follow() {
    let directory = five();
    let cases: &[(Query<'_>, i64, bool)] = &[
        (&[], 5, false),
        (&[("limit", "2")], 5, true),
        (&[("limit", "2"), ("offset", "3")], 5, false),
        (&[("include_children", "true"), ("limit", "5")], 6, true),
        (&[("terminated", "false"), ("limit", "3")], 4, true),
        (&[("terminated", "false"), ("limit", "4")], 4, false),
        (&[("offset", "99")], 5, false),
    ];
    for (query, total, more) in cases {
        let (_, answer) = list(&directory, query);
        assert_eq!((&answer["total"], &answer["hasMore"]), (&json!(total), &json!(more)), "{query:?}");
    }
}

#[test]
fn a_wrong_parameter_is_named() {
    let directory = five();
    let long = "x".repeat(201);
    let cases = [
        ("limit", "many"),
        ("limit", "-1"),
        ("offset", "1.5"),
        ("sort", "name"),
        ("startDate", "yesterday"),
        ("endDate", "2026-02-30"),
        ("executing", "maybe"),
        ("terminated", "2"),
        ("failed", "perhaps"),
        ("include_children", "yes"),
        ("search", &long),
    ];
    for (name, value) in cases {
        let (status, body) = list(&directory, &[(name, value)]);
        assert_eq!((status, body["error"]["field"].as_str()), (400, Some(name)), "{value}");
        assert_eq!(body["error"]["code"], "invalid_field");
    }
}

#[test]
fn the_usual_lists_walk_an_index_and_sort_nothing() {
    let world = World::new();
    let directory = world.open();
    for n in 0..200 {
        call(&directory, &upsert(row(&format!("t{n}"), 1)));
    }
    world.database.sorts.set(0);
    for sort in ["activity", "created", "oldest"] {
        assert_eq!(ids(&list(&directory, &[("sort", sort)])).len(), 50);
        assert_eq!(world.database.sorts.get(), 0, "{sort}");
    }
    assert_eq!(ids(&list(&directory, &[("limit", "9999")])).len(), 200);
}

#[test]
fn a_page_of_large_rows_ends_early_and_leads_to_the_next() {
    let directory = World::new().open();
    for n in 0..100 {
        let tags = vec!["t".repeat(60_000)];
        call(
            &directory,
            &upsert(ThreadRow { tags, created_at_us: START_US + n, ..row(&format!("t{n:03}"), 1) }),
        );
    }
    let (mut seen, mut pages) = (Vec::new(), 0);
    loop {
        let offset = seen.len().to_string();
        let page = list(&directory, &[("limit", "500"), ("sort", "oldest"), ("offset", &offset)]);
        assert!(page.1.to_string().len() < 2 << 20);
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        pages += 1;
        if page.1["hasMore"] != true {
            break;
        }
    }
    assert_eq!(seen, (0..100).map(|n| format!("t{n:03}")).collect::<Vec<_>>());
    assert_eq!(pages, 6);
}
