//! Servers whose tools are listed while threads run: the list holds for the run, whatever fails.

use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::clerk;
use super::mcp::counting;
use crate::contract::History;
use crate::host::mcp::{Gives, McpRequest};
use crate::host::{Answer, MCP_URL, SECOND_US};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![listed(), changed(), stale(), late()]
}

fn page(names: &[&str], cursor: Option<&str>) -> Value {
    let tools = names.iter().map(|name| {
        json!({ "name": name, "description": format!("Does {name}."), "inputSchema": { "type": "object", "properties": {}, "additionalProperties": false },
            "annotations": { "readOnlyHint": *name != "work" } })
    });
    json!({ "tools": tools.collect::<Vec<_>>(), "nextCursor": cursor, "ttlMs": 60_000, "cacheScope": "private" })
}

/// A story whose prompt has the tools of the server `shop`, as it lists them.
fn live(name: &'static str) -> Scenario {
    Scenario::new(name, &json!({})).says(clerk).define(|catalog| {
        catalog["mcp"] = json!({ "shop": { "name": "shop", "url": format!("{MCP_URL}shop"), "list": "live",
            "headers": { "x-key": "k" }, "tools": { "block": ["hidden"] },
            "idempotent": { "find": true } } });
        catalog["prompts"]["p"]["tools"] = json!(["mcp:shop"]);
    })
}

fn serve(sim: &Sim, lists: impl Fn(&McpRequest, usize) -> Gives + 'static) {
    sim.world.outside.mcp.serve("shop", counting().listing(lists));
}

/// What each request to a model offered.
fn offered(sim: &Sim) -> Vec<Vec<String>> {
    let requests = sim.world.outside.requests.borrow();
    let names = |body: &Value| {
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        let name =
            |tool: &Value| tool["function"]["name"].as_str().or(tool["name"].as_str()).unwrap().to_owned();
        tools.iter().map(name).collect()
    };
    requests.iter().map(|request| names(&request.body)).collect()
}

fn lists(sim: &Sim) -> usize {
    sim.world.outside.mcp.of("tools/list").len()
}

/// Two pages, once; the calls of the run, and the next run, have them.
fn listed() -> Scenario {
    live("tools that a server lists")
        .setup(|sim| {
            serve(sim, |asked, _| match asked.params["cursor"].as_str() {
                None => Gives::Only(page(&["work", "hidden"], Some("more"))),
                Some(_) => Gives::Only(page(&["find"], None)),
            });
        })
        .drive(|sim| async move {
            sim.ask("use shop__find,shop__find").await;
            sim.evict().await;
            sim.ask("use shop__find").await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool").len(), 3);
            assert!(
                history.texts("tool").iter().all(|text| text.starts_with("find ")),
                "{:?}",
                history.texts("tool")
            );
            let all = offered(sim);
            assert!(all.iter().all(|names| *names == ["shop__find", "shop__work"]), "{all:?}");
            if history.faults == 0 {
                assert_eq!(lists(sim), 2, "two pages, for both runs and over a restart");
            }
            assert!(lists(sim) <= 2 + 2 * history.faults, "{}", lists(sim));
            let told = told_lists(sim);
            // A process that is lost may tell once more, or, if it was lost with what it had listed, not at all.
            assert!(history.faults > 0 || told.len() == 1, "{told:?}");
            for told in &told {
                assert_eq!(told["protocol"], "2026-07-28");
                assert_eq!(told["tools"].as_array().unwrap().len(), 2, "{told}");
            }
        })
}

/// The lists that the root was told of.
fn told_lists(sim: &Sim) -> Vec<Value> {
    let siblings = sim.world.outside.siblings.borrow();
    let lists = siblings.iter().map(|(_, call)| call["report"]["listed"].clone());
    lists.filter(|listed| !listed.is_null()).collect()
}

#[test]
fn a_list_is_asked_for_once_and_holds_over_a_restart() {
    listed().sweep();
}

/// The server lists something else each time. Within a run nothing changes, also after a crash; the next run has the new list.
fn changed() -> Scenario {
    live("a list that changes")
        .setup(|sim| {
            serve(sim, |_, before| Gives::Only(page(&["find", &format!("v{before}")], None)));
        })
        .drive(|sim| async move {
            sim.ask("use shop__find").await;
            sim.world.pause(61 * SECOND_US).await;
            sim.evict().await;
            sim.ask("use shop__find").await;
        })
        .check(|sim, history| {
            let all = offered(sim);
            // A request that was lost is asked again with the same.
            let mut distinct = all.clone();
            distinct.dedup();
            assert!(distinct.len() <= 2, "one list a run: {all:?}");
            assert!(distinct.iter().all(|names| names.len() == 2 && names[0] == "shop__find"), "{all:?}");
            if history.faults == 0 {
                assert_eq!(distinct[1][1], "shop__v1");
            }
        })
}

#[test]
fn within_a_run_the_list_does_not_change() {
    changed().sweep();
}

/// The server is away when its list is too old: the old one is served, and the run says so.
fn stale() -> Scenario {
    live("a list that is too old, of a server that is away")
        .setup(|sim| serve(sim, |_, _| Gives::Only(page(&["find"], None))))
        .drive(|sim| async move {
            sim.ask("use shop__find").await;
            sim.world.pause(61 * SECOND_US).await;
            serve(&sim, |_, _| Gives::Raw(Answer::status(503, "")));
            sim.ask("use shop__find").await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool").len(), 2);
            assert!(history.texts("tool").iter().all(|text| text.starts_with("find ")));
            assert!(offered(sim).iter().all(|names| *names == ["shop__find"]));
        })
}

#[test]
fn an_old_list_is_served_while_the_server_is_away() {
    stale().sweep();
}

/// The server has never answered: the run goes on without its tools, and a later one has them.
fn late() -> Scenario {
    live("a server that comes late")
        .setup(|sim| serve(sim, |_, _| Gives::Raw(Answer::status(503, ""))))
        .drive(|sim| async move {
            sim.ask("hello").await;
            let run = sim.get(ThreadRoute::GetRun("r_1".into()), &[]).await.to_string();
            assert!(run.contains("mcp.unreachable") && run.contains("http 503"), "{run}");
            serve(&sim, |_, _| Gives::Only(page(&["find"], None)));
            sim.ask("too soon").await;
            sim.world.pause(16 * SECOND_US).await;
            sim.ask("use shop__find").await;
        })
        .check(|sim, history| {
            assert!(history.texts("tool")[0].starts_with("find "));
            assert!(offered(sim)[0].is_empty());
            if history.faults == 0 {
                assert_eq!(lists(sim), 2, "not asked again at once");
            }
        })
}

#[test]
fn a_run_goes_on_without_the_tools_of_a_server_that_does_not_list_them() {
    late().sweep();
}

/// What lists may be, and what is made of them: the names that are offered, and how often was asked.
#[test]
fn lists_are_bounded_and_read_until_they_repeat_themselves() {
    type Case = (fn(&McpRequest, usize) -> Gives, &'static [&'static str], usize);
    let cases: [Case; 9] = [
        // A server that does not know cursors: its first page is what it has.
        (|_, _| Gives::Only(page(&["find"], Some("again"))), &["shop__find"], 4),
        // An empty cursor of 2026-07-28 is one.
        (
            |asked, _| match asked.params["cursor"].as_str() {
                None => Gives::Only(page(&["find"], Some(""))),
                Some(_) => Gives::Only(page(&["work"], None)),
            },
            &["shop__find", "shop__work"],
            2,
        ),
        (
            |_, _| {
                let mut page = page(&["find", "later"], None);
                page["tools"][1]["execution"] = json!({ "taskSupport": "required" });
                Gives::Only(page)
            },
            &["shop__find"],
            1,
        ),
        // A cursor that leads back, once.
        (|_, before| Gives::Only(page(&["find"], (before < 2).then_some("again"))), &["shop__find"], 3),
        (|_, before| Gives::Only(page(&[&format!("t{before}")], Some("same"))), &["shop__t2", "shop__t3"], 4),
        (|_, before| Gives::Only(page(&[&format!("t{before}")], Some(&before.to_string()))), &[], 32),
        (|_, _| Gives::Only(json!({ "nothing": 1 })), &[], 1),
        (
            |_, _| {
                let names: Vec<String> = (0..300).map(|n| format!("t{n}")).collect();
                Gives::Only(page(&names.iter().map(String::as_str).collect::<Vec<_>>(), None))
            },
            &[],
            1,
        ),
        (
            |_, _| {
                let mut page = page(&["find", "bad"], None);
                page["tools"][1]["inputSchema"] = json!({ "$ref": "https://elsewhere.example/" });
                Gives::Only(page)
            },
            &["shop__find"],
            1,
        ),
    ];
    for (place, (list, names, asked)) in cases.into_iter().enumerate() {
        live("lists")
            .setup(move |sim| serve(sim, list))
            .drive(|sim| async move {
                sim.ask("hello").await;
            })
            .check(move |sim, _| {
                assert_eq!(offered(sim)[0], names, "{place}");
                assert_eq!(lists(sim), asked, "{place}");
            })
            .once();
    }
}

/// Providers refuse a request in which one tool's schema is a choice at its root, so one tool would end every run of the agent.
#[test]
fn models_are_shown_an_object_where_a_schema_is_a_choice() {
    live("a choice")
        .setup(|sim| {
            serve(sim, |_, _| {
                let mut page = page(&["attach"], None);
                let needs =
                    |name: &str| json!({ "properties": { name: { "type": "string" } }, "required": [name] });
                page["tools"][0]["inputSchema"] =
                    json!({ "type": "object", "additionalProperties": false, "anyOf": [needs("content"), needs("url")] });
                Gives::Only(page)
            });
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            let tool = requests[0].body["tools"][0].to_string();
            assert!(!tool.contains("anyOf") && tool.contains("content") && tool.contains("url"), "{tool}");
            assert!(tool.contains("Give the arguments of one of these: content; url."), "{tool}");
        })
        .once();
}

/// The run says which tools are not offered, which have other names than the server's, and where the list ends too soon.
#[test]
fn a_run_says_what_became_of_a_list() {
    live("noted")
        .define(|catalog| {
            catalog["tools"] = json!({ "shop__taken": { "description": "d", "run": { "native": "clock" } } });
        })
        .setup(|sim| {
            serve(sim, |_, _| {
                let mut page = page(&["a/b", "a_b", "taken", "later"], Some("again"));
                page["tools"][3]["execution"] = json!({ "taskSupport": "required" });
                Gives::Only(page)
            });
        })
        .drive(|sim| async move {
            sim.ask("use shop__a_b").await;
            let run = sim.get(ThreadRoute::GetRun("r_1".into()), &[]).await;
            let found = run["diagnostics"].as_array().unwrap();
            let said = |code: &str| {
                let one =
                    found.iter().find(|one| one["code"] == code).unwrap_or_else(|| panic!("{code}: {run}"));
                one["message"].as_str().unwrap().to_owned()
            };
            let left_out = said("mcp.left_out");
            assert!(left_out.contains("\"later\": it is called as a task"), "{left_out}");
            assert!(left_out.contains("\"taken\": the folder"), "{left_out}");
            let renamed = said("mcp.renamed");
            assert!(renamed.contains("\"a/b\" is \"shop__a_b_") && !renamed.contains("\"a_b\""), "{renamed}");
            assert!(said("mcp.repeats").contains("shop"));
        })
        .check(|sim, history| {
            assert!(history.texts("tool")[0].starts_with("a_b "), "{:?}", history.texts("tool"));
            assert_eq!(offered(sim)[0].len(), 2, "{:?}", offered(sim));
        })
        .once();
}

/// A list is another one's who is somebody else; threads that are the same to the server share it.
#[test]
fn whose_credentials_changed_gets_a_list_of_their_own() {
    live("credentials")
        .define(|catalog| {
            catalog["mcp"]["shop"]["headers"] = json!({ "x-key": "k", "x-user": "{{env USER}}" });
            catalog["mcp"]["shop"]["variables"] = json!([{ "name": "USER", "type": "text" }]);
            catalog["agents"]["helper"]["env"] = json!({ "USER": "ann" });
        })
        .setup(|sim| {
            super::env::var(sim, "BOBBIN_ENCRYPTION_KEYS", super::env::KEY_A);
            super::env::Directories::default().serve(sim);
            serve(sim, |asked, _| Gives::Only(page(&[asked.header("x-user").unwrap()], None)));
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
            super::env::patch(
                &sim,
                json!({ "env_patch": { "USER": "bea" }, "env_type_patch": { "USER": "text" } }),
            )
            .await;
            sim.ask("hello").await;
            sim.ask("hello").await;
        })
        .check(|sim, _: &History| {
            assert_eq!(offered(sim), [["shop__ann"], ["shop__bea"], ["shop__bea"]]);
            assert_eq!(lists(sim), 2);
        })
        .once();
}
