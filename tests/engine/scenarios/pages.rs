//! Lists of large rows: a page ends early instead of growing beyond what one message between objects holds, reads no
//! row that it does not give, but the one that has no place, and leads to the next.

use bobbin::definitions::message::ToolResult;
use bobbin::host::Filter;
use bobbin::limits;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::story;
use crate::host::{Native, SECOND_US};
use crate::sim::Sim;
use crate::sweep::Scenario;

/// Large messages of the thread: 9 MB together.
const LARGE: usize = 36;
const BYTES: usize = 250_000;

fn quiet(name: &'static str) -> Scenario {
    story(name).terms(|terms| terms.one_answer = false)
}

/// Stores a message that starts nothing; its id.
async fn say(sim: &Sim, content: String) -> String {
    let body = json!({ "role": "system", "content": content }).to_string();
    let seen = sim.insist(ThreadRoute::PostMessage, &[], None, body).await;
    assert_eq!(seen.status, 202);
    seen.body["messageId"].as_str().unwrap().to_owned()
}

async fn large_messages(sim: &Sim) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..LARGE {
        let content = format!("{n} {}", "x".repeat(BYTES));
        ids.push(say(sim, content).await);
    }
    ids
}

fn ids(page: &Value) -> Vec<String> {
    page["messages"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap().to_owned()).collect()
}

/// A page, its bytes within the bound, and few rows read for it.
async fn page(sim: &Sim, route: ThreadRoute, rows: &str, query: &[(&str, &str)]) -> Value {
    let (page, spent) = sim.spent(sim.get(route.clone(), query)).await;
    let given = page[rows].as_array().unwrap().len();
    let bytes = page.to_string().len();
    assert!(given > 0 && bytes <= limits::PAGE_BYTES + 1_000, "{route:?}: {given} rows, {bytes} bytes");
    assert!(spent.read <= given as u64 + 5, "{route:?}: {given} rows given, {} read", spent.read);
    page
}

#[test]
fn a_thread_of_large_messages_is_listed_page_by_page() {
    quiet("large messages")
        .drive(|sim| async move {
            let all = large_messages(&sim).await;
            // The number of messages is counted once.
            assert_eq!(sim.get(ThreadRoute::ListMessages, &[("limit", "1")]).await["total"], LARGE);
            for order in ["desc", "asc"] {
                let (mut seen, mut pages) = (Vec::new(), 0);
                let mut cursor = String::new();
                loop {
                    let side = if order == "desc" { "before" } else { "after" };
                    let query = [("order", order), (side, cursor.as_str())];
                    let page = page(&sim, ThreadRoute::ListMessages, "messages", &query).await;
                    let ids = ids(&page);
                    cursor = if order == "desc" { ids[0].clone() } else { ids.last().unwrap().clone() };
                    let at = if order == "desc" { 0 } else { seen.len() };
                    seen.splice(at..at, ids);
                    pages += 1;
                    if page["hasMore"] != true {
                        break;
                    }
                }
                assert_eq!(seen, all, "{order}");
                assert_eq!(pages, LARGE / 4);
            }
            // Those that are asked for by their ids, and the rest.
            let wanted = all.join(",");
            let first = page(&sim, ThreadRoute::ListMessages, "messages", &[("ids", &wanted)]).await;
            assert_eq!((ids(&first), &first["hasMore"]), (all[..4].to_vec(), &json!(true)));
            let rest = all[LARGE - 2..].join(",");
            let rest = page(&sim, ThreadRoute::ListMessages, "messages", &[("ids", &rest)]).await;
            assert_eq!((ids(&rest).len(), &rest["hasMore"]), (2, &json!(false)));
        })
        .long()
        .calm();
}

#[test]
fn a_row_that_is_larger_than_a_page_comes_alone() {
    quiet("one row")
        .drive(|sim| async move {
            // As JSON each character takes six bytes.
            for n in 0..2 {
                let content = format!("{n}{}", "\u{1}".repeat(1_000_000));
                say(&sim, content).await;
            }
            let newest = sim.get(ThreadRoute::ListMessages, &[]).await;
            assert_eq!((ids(&newest).len(), &newest["hasMore"]), (1, &json!(true)));
            let id = ids(&newest)[0].clone();
            let oldest = sim.get(ThreadRoute::ListMessages, &[("before", &id)]).await;
            assert_eq!((ids(&oldest).len(), &oldest["hasMore"]), (1, &json!(false)));
            let listener = sim.listen(Filter::default(), None).await.unwrap();
            assert_eq!(listener.frames.borrow()[0].data["messages"].as_array().unwrap().len(), 1);
        })
        .long()
        .calm();
}

#[test]
fn a_thread_of_large_messages_is_streamed() {
    quiet("large snapshots")
        .drive(|sim| async move {
            for n in 0..20 {
                let content = format!("{n} {}", "x".repeat(100_000));
                say(&sim, content).await;
            }
            let first = sim.listen(Filter::default(), None).await.unwrap();
            let (id, snapshot) = {
                let frames = first.frames.borrow();
                assert_eq!(frames.len(), 1);
                (frames[0].id.clone().unwrap(), frames[0].data.clone())
            };
            let bytes = snapshot.to_string().len();
            assert!(bytes <= limits::SNAPSHOT_BYTES + 1_000, "{bytes}");
            assert_eq!((ids(&snapshot).len(), &snapshot["hasMore"]), (5, &json!(true)));
            assert!(snapshot["messages"][4]["content"].as_str().unwrap().starts_with("19 "));
            // What was missed comes row by row while it is little, and is a fresh snapshot when it is not.
            say(&sim, "y".repeat(BYTES)).await;
            let resumed = sim.listen(Filter::default(), Some(&id)).await.unwrap();
            let kinds: Vec<&str> = resumed.frames.borrow().iter().map(|frame| frame.kind).collect();
            assert_eq!(kinds, ["message_data"]);
            for _ in 0..4 {
                say(&sim, "y".repeat(BYTES)).await;
            }
            let (resumed, spent) = sim.spent(sim.listen(Filter::default(), Some(&id))).await;
            let resumed = resumed.unwrap();
            let kinds: Vec<&str> = resumed.frames.borrow().iter().map(|frame| frame.kind).collect();
            assert_eq!(kinds, ["snapshot"]);
            assert!(spent.read <= 10, "{spent:?}");
        })
        .calm();
}

#[test]
fn effects_with_large_arguments_are_listed_page_by_page() {
    quiet("large effects")
        .define(|catalog| {
            catalog["effects"] = json!({ "ring": { "description": "Rings.", "run": { "native": "ring" } } });
        })
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let call = call.clone();
                Native::Acts(Box::new(move || match call.state.get_scheduled_effects(None) {
                    Ok(effects) => ToolResult::success(effects.len().to_string()),
                    Err(error) => ToolResult::error(format!("{:?} {error}", error.code)),
                }))
            });
        })
        .drive(|sim| async move {
            let schedule = async |n: usize| {
                let body = json!({ "name": "ring", "args": { "n": n, "a": "x".repeat(98_000) },
                    "delay": 3_600_000 + n });
                let seen = sim.insist(ThreadRoute::PostEffect, &[], None, body.to_string()).await;
                assert_eq!(seen.status, 201, "{}", seen.body);
            };
            for n in 0..60 {
                schedule(n).await;
            }
            let _warm = sim.get(ThreadRoute::ListEffects, &[("limit", "1")]).await;
            let mut seen = Vec::new();
            loop {
                let offset = seen.len().to_string();
                let query = [("limit", "500"), ("offset", offset.as_str())];
                let (page, _) = sim.spent(sim.get(ThreadRoute::ListEffects, &query)).await;
                assert!(page.to_string().len() <= limits::PAGE_BYTES + 1_000);
                let effects = page["effects"].as_array().unwrap();
                seen.extend(effects.iter().map(|effect| effect["args"]["n"].as_u64().unwrap()));
                if page["hasMore"] != true {
                    break;
                }
            }
            assert_eq!(seen, (0..60).collect::<Vec<_>>());
            // Only the ids of all are sorted.
            let first = sim.get(ThreadRoute::ListEffects, &[("limit", "500")]).await;
            assert_eq!((&first["total"], &first["hasMore"]), (&json!(60), &json!(true)));
            let answer = |outcome: &Value| outcome["message"]["content"].as_str().unwrap().to_owned();
            assert_eq!(answer(&sim.ask("use work").await), "done: 60");
            for n in 60..130 {
                schedule(n).await;
            }
            assert!(answer(&sim.ask("use work").await).contains("TooLarge"));
        })
        .long()
        .calm();
}

#[test]
fn every_other_list_of_a_thread_ends_by_its_bytes_too() {
    quiet("other lists")
        .drive(|sim| async move {
            sim.ask("use work").await;
            // The database takes no statement that is so long.
            let long = "replace(hex(zeroblob(50000)), '0', 'x')";
            let now = sim.world.now_us();
            for n in 0..100 {
                sim.world.database.alter(&format!(
                    "INSERT INTO logs (kind, at_us, data) VALUES ('failure', {now}, json_object('error', {long}))"
                ));
                sim.world.database.alter(&format!(
                    "INSERT INTO children (open, reference, state, status, agent, facts, created_us, sent, received, asked)
                     VALUES (0, 'c{n}', 'terminated', 'terminated', 'helper', json_object('description', {long},
                        'blocking', json('false'), 'resumable', json('false'), 'side', 'a'), {n}, 0, 0, 0)"
                ));
            }
            for (route, rows) in [(ThreadRoute::ListLogs, "logs"), (ThreadRoute::ListSubagents, "subagents")] {
                let (mut offset, mut pages) = (0, 0);
                loop {
                    let at = offset.to_string();
                    let page = sim.get(route.clone(), &[("limit", "500"), ("offset", &at)]).await;
                    assert!(page.to_string().len() <= limits::PAGE_BYTES + 1_000, "{route:?}");
                    offset += page[rows].as_array().unwrap().len();
                    pages += 1;
                    if page["hasMore"] != true {
                        assert_eq!(page["total"].as_u64().unwrap() as usize, offset, "{route:?}");
                        break;
                    }
                }
                assert!(offset >= 100 && pages >= 3, "{route:?}: {offset} rows in {pages} pages");
            }
            sim.world.pause(SECOND_US).await;
        })
        .long()
        .calm();
}
