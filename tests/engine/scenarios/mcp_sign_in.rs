//! Signing in to MCP servers by a person's browser: the run waits for it, and goes on once (docs/mcp.md).

use std::rc::Rc;

use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::INDETERMINATE;
use super::env::{KEY_A, nowhere, var};
use super::mcp::{counting, shop};
use super::mcp_auth::{Tokens, guarded};
use super::waits::{decide, decides, open, until_open};
use crate::contract::History;
use crate::host::mcp::{Gives, Server};
use crate::host::{Answer, SECOND_US};
use crate::sim::{Seen, Sim};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![signed_in(), declined(), late(), elsewhere(), renewed(), task(), listed(), unlisted(), stopped()]
}

const METADATA: &str = "resource_metadata=\"https://mcp.test/.well-known/oauth-protected-resource/shop\"";

fn oauth(name: &'static str) -> Scenario {
    shop(name)
        .define(|catalog| catalog["mcp"]["shop"]["auth"] = json!({ "type": "oauth", "scopes": ["find"] }))
        .setup(|sim| {
            var(sim, "BOBBIN_ENCRYPTION_KEYS", KEY_A);
            var(sim, "BOBBIN_PUBLIC_URL", "https://bobbin.test");
            Tokens::default().serve(sim);
            guarded(sim);
        })
}

/// A browser comes back with this; what whoever makes the page is told.
async fn comes_back(sim: &Sim, brought: &Value) -> Value {
    let Seen { status, body, .. } = sim.insist(ThreadRoute::CameBack, &[], None, brought.to_string()).await;
    assert_eq!(status, 200, "{body}");
    body
}

/// Follows the link until somebody is signed in: what was lost on the way is done again.
async fn signs_in(sim: &Sim, wait: &Value) -> Value {
    for _ in 0..10 {
        let brought = sim.world.outside.issuer.sign_in(wait["url"].as_str().unwrap());
        let came = comes_back(sim, &brought).await;
        match came["outcome"].as_str().unwrap() {
            "signed_in" | "already" => return brought,
            "failed" | "busy" => sim.world.pause(SECOND_US).await,
            other => panic!("a browser came back to {other}: {wait}"),
        }
    }
    panic!("nobody can sign in: {wait}");
}

/// Waits until somebody is asked to sign in, or the run is over.
async fn asked(sim: &Sim) -> Option<Value> {
    sim.until("it is asked, or nobody knows", |sim| {
        let is = |question: &str| sim.member.database.ask::<i64>(question) == [1];
        sim.member.has_table("waits") && is("SELECT count(*) FROM waits WHERE open = 1 AND kind = 'sign_in'")
            || is("SELECT count(*) FROM runs WHERE outcome IS NOT NULL AND id = (SELECT max(id) FROM runs)")
    })
    .await;
    open(sim).await.into_iter().find(|wait| wait["kind"] == "sign_in")
}

fn states(sim: &Sim) -> Vec<String> {
    match sim.member.has_table("waits") {
        true => sim.member.database.ask("SELECT kind || ' ' || state FROM waits ORDER BY id"),
        false => Vec::new(),
    }
}

/// What a call that may not be made again has come to.
fn once(sim: &Sim, history: &History, result: &str, good: &str) {
    assert!(result == good || history.faults > 0 && result == INDETERMINATE, "{result}");
    let acted = sim.world.outside.executions.borrow().iter().filter(|one| one.name == "shop/work").count();
    assert!(acted <= 1, "it acted {acted} times");
}

fn signed_in() -> Scenario {
    oauth("somebody signs in")
        .drive(|sim| async move {
            sim.send("use work").await;
            if let Some(wait) = asked(&sim).await {
                assert_eq!(
                    (&wait["server"], &wait["allows"], &wait["title"], &wait["onExpiry"]),
                    (&json!("shop"), &json!(["deny"]), &json!("Sign in to “shop”"), &json!("deny"))
                );
                assert_eq!(wait["call"]["tool"], "work");
                let lasts = wait["expiresAt"].as_i64().unwrap() - wait["createdAt"].as_i64().unwrap();
                assert_eq!(lasts, 7 * 86_400 * SECOND_US, "{wait}");
                sim.evict().await;
                sim.world.pause(3_600 * SECOND_US).await;
                assert_eq!(decide(&sim, &wait, json!({ "decision": "answer" })).await.status, 400);
                let brought = signs_in(&sim, &wait).await;
                // The button “back” of a browser.
                assert_eq!(comes_back(&sim, &brought).await["outcome"], "already");
            }
            sim.until("it is over", |sim| {
                sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE outcome IS NOT NULL") == [1]
            })
            .await;
            sim.evict().await;
            // Now the owner is signed in, and nobody is asked again.
            sim.send("use safe").await;
            if let Some(wait) = asked(&sim).await {
                signs_in(&sim, &wait).await;
            }
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert_eq!(results.len(), 2, "{results:?}");
            once(sim, history, results[0], "work 0");
            assert!(results[1].starts_with("find "), "{results:?}");
            let issuer = &sim.world.outside.issuer;
            if history.faults == 0 {
                assert_eq!(states(sim), ["sign_in decided"]);
                assert_eq!(issuer.asked.borrow().len(), 1, "a code is exchanged once");
                assert_eq!(issuer.reused.get(), 0);
            }
            assert!(states(sim).iter().all(|state| state == "sign_in decided"), "{:?}", states(sim));
            nowhere(sim, "of-the-issuer");
            for asked in issuer.asked.borrow().iter() {
                assert_eq!(asked["resource"], "https://mcp.test/shop");
                nowhere(sim, &asked["code_verifier"]);
            }
        })
}

#[test]
fn a_call_that_needs_a_sign_in_waits_for_it_and_is_made_once() {
    signed_in().sweep();
}

fn declined() -> Scenario {
    oauth("nobody wants to sign in")
        .drive(|sim| async move {
            sim.send("use work").await;
            if let Some(wait) = asked(&sim).await {
                decides(&sim, &wait, json!({ "decision": "deny", "reason": "not with my account" })).await;
                let brought = sim.world.outside.issuer.sign_in(wait["url"].as_str().unwrap());
                assert_eq!(comes_back(&sim, &brought).await["outcome"], "over");
            }
        })
        .check(|sim, history| {
            let text = "Nobody signs in to the MCP server \"shop\": not with my account";
            once(sim, history, history.texts("tool")[0], text);
            let row = history.of("tool").next().unwrap();
            if history.texts("tool")[0] == text {
                assert_eq!(row["metadata"]["error_code"], "denied", "{row}");
            }
            assert!(sim.world.outside.executions.borrow().is_empty(), "it never ran");
            assert!(sim.world.outside.issuer.asked.borrow().is_empty());
        })
}

#[test]
fn a_sign_in_that_is_declined_ends_the_call() {
    declined().sweep();
}

fn late() -> Scenario {
    oauth("nobody signs in in time")
        .define(|catalog| catalog["prompts"]["p"]["approvals"] = json!({ "expiresAfterSeconds": 3600 }))
        .drive(|sim| async move {
            sim.send("use work").await;
        })
        .check(|sim, history| {
            let text = "Nobody is signed in to the MCP server \"shop\": Nobody answered within 60 minutes.";
            once(sim, history, history.texts("tool")[0], text);
            assert!(sim.world.outside.executions.borrow().is_empty(), "it never ran");
            assert!(states(sim).iter().all(|state| state == "sign_in expired"), "{:?}", states(sim));
            if history.faults == 0 {
                let looks = sim
                    .world
                    .outside
                    .siblings
                    .borrow()
                    .iter()
                    .filter(|(_, call)| call["call"] == "token")
                    .count();
                assert!((10..40).contains(&looks), "the pauses grow: {looks} looks in an hour");
            }
        })
}

#[test]
fn a_sign_in_that_nobody_does_expires() {
    late().sweep();
}

/// Two threads of one owner wait; somebody signs in for one of them.
fn elsewhere() -> Scenario {
    oauth("another thread of the owner waits, too")
        .setup(|sim| sim.born.borrow_mut()["user_id"] = json!("ann"))
        .drive(|sim| async move {
            let other = sim.of("0123456789abcdef-other");
            other.create().await;
            sim.send("use safe").await;
            other.send("use safe").await;
            let (here, there) = (asked(&sim).await.unwrap(), asked(&other).await.unwrap());
            let foreign = sim.world.outside.issuer.sign_in(there["url"].as_str().unwrap());
            assert_eq!(comes_back(&sim, &foreign).await["outcome"], "unknown", "a state of another thread");
            signs_in(&sim, &here).await;
            let now = sim.world.now_us();
            other
                .until("it goes on by itself", |other| {
                    other.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE outcome IS NOT NULL")
                        == [1]
                })
                .await;
            let took = sim.world.now_us() - now;
            assert!(took < 60 * SECOND_US || !sim.world.faults.borrow().fired.is_empty(), "{took} µs");
        })
        .check(|_, history| {
            let others = history.family.values().next().unwrap();
            for of in [history, others] {
                assert!(
                    of.texts("tool").iter().all(|text| text.starts_with("find ")),
                    "{:?}",
                    of.texts("tool")
                );
            }
        })
}

#[test]
fn who_signs_in_does_so_for_all_threads_of_the_owner() {
    elsewhere().sweep();
}

/// A token that has ended is renewed without anybody; one that nothing renews any more is asked for again.
fn renewed() -> Scenario {
    oauth("tokens end")
        .setup(|sim| sim.world.outside.issuer.lasts.set(60))
        .drive(|sim| async move {
            for round in 0..3 {
                sim.send("use safe").await;
                if let Some(wait) = asked(&sim).await {
                    assert!(round != 1 || !sim.world.faults.borrow().fired.is_empty(), "it is renewed");
                    signs_in(&sim, &wait).await;
                }
                sim.until("it is over", |sim| {
                    let over = "SELECT count(*) FROM runs WHERE outcome IS NULL";
                    sim.member.database.ask::<i64>(over) == [0]
                })
                .await;
                sim.world.pause(3_600 * SECOND_US).await;
                if round == 1 {
                    sim.world.outside.issuer.forget();
                }
            }
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert!(
                results.len() == 3 && results.iter().all(|text| text.starts_with("find ")),
                "{results:?}"
            );
            if history.faults == 0 {
                assert_eq!(states(sim), ["sign_in decided", "sign_in decided"]);
            }
            nowhere(sim, "of-the-issuer");
        })
}

#[test]
fn a_sign_in_is_asked_for_again_once_its_tokens_are_over() {
    renewed().sweep();
}

/// A task whose server forgets who asks: it goes on after a sign-in, and is not begun again.
fn task() -> Scenario {
    oauth("a task, and a token that is lost")
        .setup(|sim| {
            let world = sim.world.clone();
            let server = Server {
                guard: Some(Rc::new(move |call| {
                    let known = world.outside.issuer.knows(call.header("authorization"));
                    (!known).then(|| Answer::status(401, "").header("www-authenticate", &format!("Bearer {METADATA}")))
                })),
                tasks: Rc::new(|_, before| {
                    let result = json!({ "content": [{ "type": "text", "text": "slow and good" }] });
                    let status = if before == 0 { "working" } else { "completed" };
                    Gives::Only(json!({ "taskId": "task-1", "status": status, "ttlMs": null, "pollIntervalMs": 60_000, "result": result }))
                }),
                ..Server::new(|_, _| Gives::Task("task-1"))
            };
            sim.world.outside.mcp.serve("shop", server);
        })
        .drive(|sim| async move {
            sim.send("use work").await;
            for round in 0..6 {
                let Some(wait) = asked(&sim).await else { return };
                signs_in(&sim, &wait).await;
                sim.until("the task is under way, or nobody knows", |sim| {
                    let is = |question: &str| sim.member.database.ask::<i64>(question) == [1];
                    is("SELECT count(*) FROM waits WHERE open = 1 AND kind = 'task'")
                        || is("SELECT count(*) FROM runs WHERE outcome IS NOT NULL")
                })
                .await;
                if round == 0 {
                    sim.world.outside.issuer.forget();
                }
            }
        })
        .check(|sim, history| {
            let result = history.texts("tool")[0];
            assert!(result == "slow and good" || history.faults > 0 && result == INDETERMINATE, "{result}");
            let began = sim.world.outside.mcp.of("tools/call");
            assert!(began.iter().filter(|call| call.header("authorization").is_some()).count() <= 2, "{}", began.len());
        })
}

#[test]
fn a_task_goes_on_after_a_sign_in() {
    task().sweep();
}

/// What a browser brings that it was not sent for.
#[test]
fn what_was_not_asked_for_lets_nobody_in() {
    oauth("foreign callbacks")
        .drive(|sim| async move {
            sim.send("use safe").await;
            let wait = asked(&sim).await.unwrap();
            let issuer = &sim.world.outside.issuer;
            let brought = issuer.sign_in(wait["url"].as_str().unwrap());
            let with = |field: &str, value: Value| {
                let mut other = brought.clone();
                other[field] = value;
                other
            };
            let state = brought["state"].as_str().unwrap();
            let (random, rest) = state.split_once('.').unwrap();
            let guessed = format!("{}.{rest}", "0".repeat(random.len()));
            for (outcome, foreign) in [
                ("unknown", with("iss", json!("https://evil.test"))),
                ("unknown", with("iss", Value::Null)),
                ("unknown", with("state", json!(guessed))),
                ("unknown", with("state", json!(format!("{state}x")))),
                ("unknown", with("state", json!(state.replacen(".1.", ".2.", 1)))),
                ("unknown", with("state", json!(""))),
                ("unknown", with("code", Value::Null)),
                (
                    "unknown",
                    with("error", json!("access_denied"))
                        .as_object()
                        .map(|_| {
                            let mut foreign = with("error", json!("access_denied"));
                            foreign["iss"] = json!("https://evil.test");
                            foreign
                        })
                        .unwrap(),
                ),
                ("denied", with("error", json!("access_denied"))),
                ("failed", with("code", json!("guessed-of-the-issuer"))),
            ] {
                let came = comes_back(&sim, &foreign).await;
                assert_eq!(came["outcome"], outcome, "{foreign}");
                let told = came["server"] == "shop";
                assert_eq!(told, foreign["state"] == brought["state"], "{came}");
                assert_eq!(open(&sim).await.len(), 1, "it waits on: {foreign}");
            }
            assert_eq!(issuer.asked.borrow().len(), 1, "only a code that came as it should was shown");
            signs_in(&sim, &wait).await;
        })
        .check(|_, history| assert!(history.texts("tool")[0].starts_with("find ")))
        .once();
}

/// A server that is never content is left, also where somebody signs in each time.
#[test]
fn a_server_that_always_wants_more_is_left() {
    oauth("more and more")
        .define(|catalog| catalog["mcp"]["shop"]["auth"] = json!({ "type": "oauth" }))
        .setup(|sim| {
            let server = Server {
                guard: Some(Rc::new(|call| {
                    let (status, more) = match call.header("authorization") {
                        None => (401, "scope=\"a\""),
                        Some(_) => (403, "error=\"insufficient_scope\", scope=\"b\""),
                    };
                    Some(
                        Answer::status(status, "")
                            .header("www-authenticate", &format!("Bearer {METADATA}, {more}")),
                    )
                })),
                ..counting()
            };
            sim.world.outside.mcp.serve("shop", server);
        })
        .drive(|sim| async move {
            sim.send("use work").await;
            for scope in ["scope=a", "scope=a%20b", "scope=a%20b"] {
                let wait = until_open(&sim, 1).await.remove(0);
                assert!(wait["url"].as_str().unwrap().ends_with(&format!("&{scope}")), "{wait}");
                signs_in(&sim, &wait).await;
            }
        })
        .check(|sim, history| {
            let row = history.of("tool").next().unwrap();
            assert!(row["content"].as_str().unwrap().contains("however often somebody signs in"), "{row}");
            assert_eq!(row["metadata"]["error_code"], "mcp_unauthorized");
            // Nobody is let in, not even to say which protocol the server speaks.
            assert_eq!(sim.world.outside.mcp.methods(), ["server/discover"; 4]);
        })
        .once();
}

/// What it takes that somebody can be asked at all.
#[test]
fn where_nobody_can_be_asked_the_model_is_told_why() {
    for (url, why) in [
        ("", "BOBBIN_PUBLIC_URL is not set"),
        ("http://bobbin.test", "BOBBIN_PUBLIC_URL is not the address"),
        ("https://bobbin.test/below", "BOBBIN_PUBLIC_URL is not the address"),
    ] {
        oauth("no way back")
            .setup(move |sim| var(sim, "BOBBIN_PUBLIC_URL", url))
            .drive(|sim| async move {
                sim.ask("use work").await;
            })
            .check(move |sim, history| {
                let row = history.of("tool").next().unwrap();
                assert!(row["content"].as_str().unwrap().contains(why), "{row}");
                assert_eq!(row["metadata"]["error_code"], "mcp_unauthorized");
                assert!(states(sim).is_empty());
            })
            .once();
    }
}

/// A server that lists its tools to nobody: the run waits at its start, and has them then.
fn listed() -> Scenario {
    live("a list that needs a sign-in")
        .drive(|sim| async move {
            sim.send("use shop__find").await;
            if let Some(wait) = asked(&sim).await {
                assert_eq!((&wait["call"], &wait["server"]), (&Value::Null, &json!("shop")));
                sim.evict().await;
                signs_in(&sim, &wait).await;
            }
        })
        .check(|sim, history| {
            assert!(history.texts("tool")[0].starts_with("find "), "{:?}", history.texts("tool"));
            assert!(states(sim).iter().all(|state| state == "sign_in decided"), "{:?}", states(sim));
            if history.faults == 0 {
                assert_eq!(sim.world.outside.mcp.methods(), ["tools/list", "tools/list", "tools/call"]);
                assert_eq!(sim.world.outside.requests.borrow().len(), 2, "the model is asked with the tools");
            }
        })
}

#[test]
fn a_run_waits_for_a_sign_in_before_its_tools_are_listed() {
    listed().sweep();
}

/// Who declines goes on without these tools, and is not asked in each run.
fn unlisted() -> Scenario {
    live("a list that nobody wants to sign in for")
        .drive(|sim| async move {
            for _ in 0..2 {
                sim.send("hello").await;
                if let Some(wait) = asked(&sim).await {
                    decides(&sim, &wait, json!({ "decision": "deny" })).await;
                }
                sim.until("it is over", |sim| {
                    sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE outcome IS NULL") == [0]
                })
                .await;
                sim.world.pause(60 * SECOND_US).await;
            }
        })
        .check(|sim, history| {
            assert_eq!(history.texts("assistant").len(), 2, "the model is asked without them");
            assert_eq!(states(sim), ["sign_in decided"]);
        })
}

#[test]
fn who_declines_to_sign_in_is_answered_without_those_tools() {
    unlisted().sweep();
}

/// A stop while the run waits at its start.
fn stopped() -> Scenario {
    live("stopped before its tools are listed")
        .terms(|terms| terms.outcomes = vec!["stopped"])
        .drive(|sim| async move {
            sim.send("hello").await;
            until_open(&sim, 1).await;
            sim.stop().await;
        })
        .check(|sim, _| assert_eq!(states(sim), ["sign_in cancelled"]))
}

#[test]
fn a_stop_ends_a_sign_in() {
    stopped().sweep();
}

fn live(name: &'static str) -> Scenario {
    oauth(name)
        .define(|catalog| {
            catalog["mcp"]["shop"]["name"] = json!("shop");
            catalog["mcp"]["shop"]["list"] = json!("live");
            catalog["mcp"]["shop"]["idempotent"] = json!({ "find": true });
            catalog["prompts"]["p"]["tools"] = json!(["mcp:shop"]);
            catalog["tools"] = json!({});
        })
        .setup(|sim| {
            let world = sim.world.clone();
            let server = Server {
                guard: Some(Rc::new(move |call| {
                    let known = world.outside.issuer.knows(call.header("authorization"));
                    let challenge = format!("Bearer {METADATA}");
                    (!known).then(|| Answer::status(401, "").header("www-authenticate", &challenge))
                })),
                ..counting().listing(|_, _| {
                    let tools = json!([{ "name": "find", "description": "Finds.", "inputSchema": { "type": "object", "properties": {}, "additionalProperties": false },
                        "annotations": { "readOnlyHint": true } }]);
                    Gives::Only(json!({ "tools": tools, "ttlMs": 600_000, "cacheScope": "private" }))
                })
            };
            sim.world.outside.mcp.serve("shop", server);
        })
}
