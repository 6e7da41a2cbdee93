//! Values of variables in families: what a child inherits, what reaches it later, what it waits for, and what nobody sees.

use bobbin::definitions::message::ToolResult;
use bobbin::engine::FileOptions;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::env::{Directories, KEY_A, var, work};
use crate::contract::History;
use crate::host::outside::ModelRequest;
use crate::host::{DAY_US, Native, SECOND_US, Say};
use crate::sim::{Seen, Sim, native};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![inherited(), pushed(), deferred(), equal_calls()]
}

/// Secrets: the parent's own, one that a child may have too, and one that only the child is given.
const OWN: &str = "canary-own-\"4711\"";
const SHARED: &str = "canary-shared-0815";
const GIVEN: &str = "canary-given=c0de";

/// `helper` calls the agent `shop`, which may call `stall`; both have the tool `work` and end with `finish`.
pub(super) fn family(name: &'static str) -> Scenario {
    let finish = json!({ "description": "Ends it.", "run": { "native": "finish" }, "idempotent": true,
        "args": { "type": "object", "properties": { "summary": { "type": "string" } } } });
    Scenario::new(name, &json!({ "work": native(true), "finish": finish }))
        .define(|catalog| {
            let prompt = |text: &str, tools: Value| {
                json!({ "toolDescription": "d", "prompt": text, "model": "m", "includeChat": true,
                    "includePastTools": true, "tools": tools })
            };
            catalog["prompts"]["p"] = prompt("You help.", json!(["work", "shop"]));
            catalog["prompts"]["shop_a"] = prompt("You keep shop.", json!(["work", "finish", "stall"]));
            catalog["prompts"]["stall_a"] = prompt("You keep a stall.", json!(["work", "finish"]));
            catalog["prompts"]["b"] = prompt("You are the other side.", json!([]));
            for agent in ["shop", "stall"] {
                catalog["agents"][agent] = json!({ "type": "dual_ai", "exposeAsTool": true, "toolDescription": "Sells.",
                    "maxSessionTurns": 20, "sideB": { "prompt": "b" }, "sideA": { "prompt": format!("{agent}_a"),
                        "sessionStop": { "name": "finish", "messageProperty": "summary" } } });
            }
            catalog["tools"]["work"]["variables"] = json!([
                { "name": "CITY", "type": "text" }, { "name": "OWN", "type": "secret", "scoped": true },
                { "name": "SHARED", "type": "secret" }, { "name": "GIVEN", "type": "secret", "scoped": true },
            ]);
        })
        .setup(|sim| {
            var(sim, "BOBBIN_ENCRYPTION_KEYS", KEY_A);
            Directories::default().serve(sim);
            work(sim, |call| ToolResult::success(Value::Object(call.env.clone()).to_string()));
            sim.world.outside.native("finish", |_, _| Native::Gives(0, ToolResult::success("ended")));
            *sim.born.borrow_mut() = json!({ "agent_id": "helper", "env": { "CITY": "Lisbon", "OWN": OWN, "SHARED": SHARED },
                "env_types": { "CITY": "text" } });
        })
}

/// Whose prompt a request is for.
pub(super) fn who(request: &ModelRequest) -> &'static str {
    match request.system() {
        text if text.contains("shop") => "shop",
        text if text.contains("stall") => "stall",
        text if text.contains("other side") => "b",
        _ => "helper",
    }
}

/// No part of the world has the text in it: no database, log, frame, letter or request to a model.
fn nowhere(sim: &Sim, secret: &str) {
    for member in sim.family() {
        super::env::nowhere(&member, secret);
    }
    let escaped = Value::from(secret).to_string();
    for call in sim.world.outside.calls.borrow().iter() {
        for form in [secret, &escaped[1..escaped.len() - 1]] {
            assert!(!call.body.contains(form), "{form} is in a letter: {}", call.body);
        }
    }
}

fn no_secrets(sim: &Sim) {
    no_secrets_of(sim, &[OWN, SHARED, GIVEN]);
}

pub(super) fn no_secrets_of(sim: &Sim, secrets: &[&str]) {
    secrets.iter().for_each(|secret| nowhere(sim, secret));
}

/// The threads below the root.
pub(super) fn below(sim: &Sim) -> Vec<Sim> {
    sim.family().into_iter().filter(|member| member.member.id != sim.member.id).collect()
}

/// Names and types that a thread has values for.
pub(super) fn types(sim: &Sim) -> Vec<String> {
    sim.member.database.ask("SELECT name || ' ' || type FROM env ORDER BY name")
}

/// The messages that a child's words are in, as the root has them.
fn told(history: &History) -> Vec<&Value> {
    history.messages.iter().filter(|message| !message["metadata"]["subagent_id"].is_null()).collect()
}

async fn answered(sim: &Sim, text: &'static str) {
    sim.send(text).await;
    sim.until("an answer", |sim| {
        let last: Vec<String> = sim.member.database.ask(
            "SELECT ifnull(content, '') FROM messages WHERE role = 'assistant' AND tool_calls IS NULL
             AND depth = 0 AND ifnull(metadata ->> 'status_kind', '') = '' ORDER BY seq DESC LIMIT 1",
        );
        last.first().is_some_and(|last| last.starts_with("done"))
    })
    .await;
}

#[test]
fn what_a_child_tells_its_parent_of_itself_shows_no_secret() {
    family("a child that tells of itself")
        .says(|request| match (who(request), request.results().len()) {
            ("helper", 0) if request.last_user() == "open" => Say::call("shop", &json!({})),
            ("helper", _) => Say::text("done"),
            ("shop", 0) => Say::call("work", &json!({})),
            _ => Say::call("finish", &json!({ "summary": "sold" })),
        })
        .setup(|sim| {
            work(sim, |call| {
                let Some(secret) = call.env.get("SHARED").and_then(Value::as_str) else {
                    return ToolResult::error("it is not here");
                };
                call.state.set_status(&format!("busy with {secret}")).unwrap();
                call.state.notify_parent(&format!("half of {secret}")).unwrap();
                let path = format!("/{secret}/plan.txt");
                call.state.write_file(&path, b"x", "text/plain", FileOptions::default()).unwrap();
                ToolResult::success(path)
            });
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.texts_repeat = true;
        })
        .drive(|sim| async move {
            sim.ask("open").await;
            sim.until("the child's end", |sim| {
                sim.member.database.ask::<String>("SELECT status FROM children") == ["terminated"]
            })
            .await;
            let logs = sim.get(ThreadRoute::ListLogs, &[]).await.to_string();
            assert!(logs.contains("busy with [redacted SHARED]"), "{logs}");
            let history = json!(sim.history().await).to_string();
            assert!(history.contains("half of [redacted SHARED]"), "{history}");
        })
        .check(|sim, _| no_secrets(sim))
        .calm();
}

// ---- what a child begins with ---------------------------------------------------------------------------------

fn inherited() -> Scenario {
    family("values that children inherit")
        .define(|catalog| {
            // In the first shop OWN is no name of its own definitions: it passes it on to nobody, and to the stall.
            catalog["tools"]["work"]["variables"] = json!([
                { "name": "CITY", "type": "text" }, { "name": "SHARED", "type": "secret" },
            ]);
            catalog["tools"]["deep"] = catalog["tools"]["work"].clone();
            catalog["tools"]["deep"]["variables"] = json!([
                { "name": "CITY", "type": "text" }, { "name": "OWN", "type": "secret", "scoped": true },
                { "name": "SHARED", "type": "secret" },
            ]);
            catalog["prompts"]["stall_a"]["tools"] = json!(["deep", "finish"]);
        })
        .says(|request| match (who(request), request.results().as_slice()) {
            ("helper", []) => Say::call("shop", &json!({})),
            ("helper", [result]) => Say::text(format!("done: {result}")),
            ("shop", []) => Say::call("work", &json!({})),
            ("shop", [_]) => Say::call("stall", &json!({})),
            ("shop", [own, below]) => {
                Say::call("finish", &json!({ "summary": format!("shop {own} stall {below}") }))
            }
            ("stall", []) => Say::call("deep", &json!({})),
            ("stall", [own]) => Say::call("finish", &json!({ "summary": format!("{own} and {SHARED}") })),
            _ => Say::text("well"),
        })
        .drive(|sim| async move { answered(&sim, "open").await })
        .terms(|terms| terms.one_answer = false)
        .check(|sim, history| {
            let answer = history.answers().last().copied().unwrap_or_default().to_owned();
            let seen = r#"{"CITY":"Lisbon","SHARED":"[redacted SHARED]"}"#;
            // A model has said a secret, which it cannot know: what leaves the child is without it all the same.
            assert!(answer.contains(&format!("shop {seen} stall {seen} and [redacted SHARED]")), "{answer}");
            let [shop, stall] = below(sim).try_into().unwrap_or_else(|_| panic!("two children"));
            assert_eq!(types(sim), ["CITY text", "OWN secret", "SHARED secret"]);
            assert_eq!(types(&shop), types(sim), "what nothing declares is inherited too");
            assert_eq!(types(&stall), ["CITY text", "SHARED secret"]);
            super::env::nowhere(sim, SHARED);
            nowhere(sim, OWN);
        })
}

#[test]
fn a_child_inherits_values_encrypted_for_it_whatever_fails() {
    inherited().sampled(400).sweep();
}

// ---- what reaches it later ------------------------------------------------------------------------------------

/// The stall waits until it sees another city; the root changes it meanwhile, twice.
fn pushed() -> Scenario {
    family("values that are sent on")
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                Native::Gives(SECOND_US, ToolResult::success(Value::Object(call.env.clone()).to_string()))
            });
        })
        .says(|request| match (who(request), request.results().last().copied()) {
            ("helper", None) => Say::call("shop", &json!({})),
            ("shop", None) => Say::call("stall", &json!({})),
            ("stall", Some(seen)) if seen.contains("Faro") => Say::call("finish", &json!({ "summary": seen })),
            ("stall", _) => Say::call("work", &json!({})),
            ("shop", Some(seen)) => Say::call("finish", &json!({ "summary": seen })),
            (_, seen) => Say::text(format!("done: {}", seen.unwrap_or_default())),
        })
        .drive(|sim| async move {
            sim.send("open").await;
            sim.until_executions(1).await;
            for city in ["Porto", "Faro"] {
                let body = json!({ "env_patch": { "CITY": city, "OWN": OWN, "LATE": GIVEN }, "env_delete": ["SHARED"] });
                let seen = sim.insist(ThreadRoute::Patch, &[], None, body.to_string()).await;
                assert_eq!(seen.status, 200, "{}", seen.body);
            }
            sim.until("an answer", |sim| !sim.member.database.ask::<i64>(
                "SELECT 1 FROM messages WHERE role = 'assistant' AND content LIKE 'done%'").is_empty()).await;
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.more_requests = 60;
        })
        .check(|sim, history| {
            let answer = history.answers().last().copied().unwrap_or_default().to_owned();
            assert!(answer.contains(r#"{"CITY":"Faro"}"#), "{answer}");
            for child in below(sim) {
                assert_eq!(types(&child), ["CITY text", "LATE secret"], "{}", child.member.id);
            }
            no_secrets(sim);
        })
}

#[test]
fn a_change_of_the_roots_values_reaches_all_below_it_in_order_whatever_fails() {
    pushed().sampled(400).sweep();
}

// ---- what it waits for ----------------------------------------------------------------------------------------

/// The shop requires GIVEN, which the root has under that name and which does not count.
fn lacking(name: &'static str) -> Scenario {
    family(name)
        .define(|catalog| {
            catalog["tools"]["work"]["variables"][3]["required"] = true.into();
            catalog["prompts"]["shop_a"]["tools"] = json!(["work", "finish"]);
            catalog["prompts"]["p"]["tools"] = json!(["shop"]);
        })
        .setup(|sim| {
            let env = json!({ "CITY": "Lisbon", "OWN": OWN, "SHARED": SHARED, "GIVEN": "the parent's own" });
            *sim.born.borrow_mut() =
                json!({ "agent_id": "helper", "env": env, "env_types": { "CITY": "text" } });
        })
        .says(|request| match (who(request), request.results().last().copied()) {
            ("helper", None) if request.last_user() == "open" => {
                Say::call("shop", &json!({ "what": "apples" }))
            }
            ("helper", _) if request.last_user().starts_with("Subagent") => Say::text("done: heard"),
            ("helper", _) => Say::text("done"),
            ("shop", None) => Say::call("work", &json!({})),
            ("shop", Some(seen)) => Say::call("finish", &json!({ "summary": format!("sold with {seen}") })),
            _ => Say::text("well"),
        })
        .terms(|terms| terms.one_answer = false)
}

/// The request that the root's error result names, and its data.
async fn request(sim: &Sim) -> (String, Value) {
    let history = sim.history().await;
    let of_tool = history.iter().find(|message| message["role"] == "tool").cloned().unwrap_or_default();
    let data = of_tool["metadata"]["error_data"].clone();
    (data["request_id"].as_str().unwrap_or_default().to_owned(), of_tool)
}

async fn give(sim: &Sim, id: &str, key: Option<&str>, body: Value) -> Seen {
    sim.insist(ThreadRoute::PostVariables(id.into()), &[], key, body.to_string()).await
}

/// Two equal calls in one message, and the same two once more.
fn equal_calls() -> Scenario {
    lacking("equal calls that lack values")
        .says(|request| match (who(request), request.results().len()) {
            ("helper", 0 | 2) if request.last_user() == "open" => {
                let what = json!({ "what": "apples" });
                Say::call("shop", &what).and_call("shop", &what.to_string())
            }
            ("helper", _) => Say::text("done"),
            ("shop", _) => Say::call("finish", &json!({ "summary": "sold" })),
            _ => Say::text("well"),
        })
        .drive(|sim| async move {
            sim.ask("open").await;
            let mut ids: Vec<String> = sim
                .history()
                .await
                .iter()
                .filter(|message| message["role"] == "tool")
                .map(|message| message["metadata"]["error_data"]["request_id"].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(ids.len(), 4);
            assert_ne!(ids[0], ids[1], "each is a child of its own");
            ids[..2].sort();
            ids[2..].sort();
            assert_eq!(ids[2..], ids[..2], "whoever asks again finds those that wait");
            for id in &ids[..2] {
                let seen = give(&sim, id, Some(id), json!({ "env": { "GIVEN": GIVEN } })).await;
                assert_eq!(seen.status, 200, "{}", seen.body);
            }
            sim.until("two results", |sim| {
                sim.member.database.ask::<i64>(
                    "SELECT count(*) FROM messages WHERE metadata ->> 'subagent_event' = 'result'",
                ) == [2]
            })
            .await;
        })
        .check(|sim, _| assert_eq!(below(sim).len(), 2))
}

#[test]
fn equal_calls_of_one_message_are_as_many_children() {
    equal_calls().sampled(80).sweep();
}

#[test]
fn a_hook_is_told_of_a_child_once_it_was_given_its_values() {
    const HOOK: &str = "after_subagent_created";
    lacking("a hook that is told of a child that waited")
        .define(|catalog| {
            catalog["hooks"][HOOK] = json!({ "hook": HOOK, "run": { "native": HOOK } });
            catalog["agents"]["helper"]["hooks"] = json!([HOOK]);
        })
        .setup(|sim| super::hooks::react(sim, HOOK, |_| Ok(Value::Null)))
        .drive(|sim| async move {
            sim.ask("open").await;
            let (id, _) = request(&sim).await;
            assert!(super::hooks::asked(&sim).is_empty(), "there is no child yet");
            give(&sim, &id, None, json!({ "env": { "GIVEN": GIVEN } })).await;
            sim.until("a result", |sim| {
                !sim.member
                    .database
                    .ask::<i64>("SELECT 1 FROM messages WHERE metadata ->> 'subagent_event' = 'result'")
                    .is_empty()
            })
            .await;
            let asked = super::hooks::asked_of(&sim, HOOK);
            assert_eq!(asked.len(), 1);
            assert_eq!(asked[0].args[0]["reference"], json!(id));
        })
        .calm();
}

fn deferred() -> Scenario {
    lacking("a child that waits for values")
        .drive(|sim| async move {
            sim.ask("open").await;
            let (id, result) = request(&sim).await;
            let [code, data] = ["error_code", "error_data"].map(|name| result["metadata"][name].clone());
            assert_eq!((&code, &result["tool_status"]), (&json!("subagent_env_required"), &json!("error")));
            let endpoint = format!("/api/threads/{}/variables/{id}", sim.member.id);
            let names = json!(["GIVEN"]);
            assert_eq!(
                data,
                json!({ "request_id": id, "endpoint": endpoint, "required": names, "missing": names, "agent": "shop" })
            );
            assert!(result["content"].as_str().unwrap().contains("GIVEN"), "{result}");
            let shown = sim.get(ThreadRoute::GetVariables(id.clone()), &[]).await;
            assert_eq!((&shown["request_id"], &shown["missing"], &shown["required"]), (&json!(id), &names, &names));
            assert_eq!((&shown["agent_name"], &shown["parent_thread_id"]), (&json!("shop"), &json!(sim.member.id)));
            sim.evict().await;
            for (body, field) in [
                (json!({}), "env"),
                (json!({ "env": [] }), "env"),
                (json!({ "env": { "GIVEN": ["x"] } }), "env.GIVEN"),
                (json!({ "env": { "OTHER": "x" } }), "env"),
            ] {
                let seen = give(&sim, &id, None, body.clone()).await;
                assert_eq!((seen.status, &seen.body["error"]["field"]), (400, &json!(field)), "{body} {}", seen.body);
            }
            assert_eq!(below(&sim).len(), 0, "nothing was made");
            let body = json!({ "env": { "GIVEN": GIVEN } });
            let answer = json!({ "request_id": id, "child_thread_id": id, "status": "success" });
            let seen = give(&sim, &id, Some("once"), body.clone()).await;
            assert_eq!((seen.status, &seen.body), (200, &answer));
            let again = give(&sim, &id, Some("once"), body.clone()).await;
            assert_eq!((again.status, &again.body), (200, &answer));
            for key in [None, Some("another")] {
                assert_eq!(give(&sim, &id, key, body.clone()).await.status, 404);
            }
            let gone = sim.insist(ThreadRoute::GetVariables(id.clone()), &[], None, String::new()).await;
            assert_eq!(gone.status, 404);
            sim.until("a result", |sim| !sim.member.database.ask::<i64>(
                "SELECT 1 FROM messages WHERE metadata ->> 'subagent_event' = 'result'").is_empty()).await;
        })
        .check(|sim, history| {
            let [told] = told(history).try_into().unwrap_or_else(|told| panic!("{told:?}"));
            let text = told["content"].as_str().unwrap();
            assert!(text.contains(r#"sold with {"CITY":"Lisbon","SHARED":"[redacted SHARED]","GIVEN":"[redacted GIVEN]"}"#), "{text}");
            assert_eq!((&told["role"], &told["silent"]), (&json!("user"), &json!(true)));
            let [shop] = below(sim).try_into().unwrap_or_else(|_| panic!("one child"));
            assert_eq!(types(&shop), ["CITY text", "GIVEN secret", "SHARED secret"]);
            let first: Vec<String> = shop.member.database.ask("SELECT content FROM messages WHERE role = 'user' ORDER BY seq LIMIT 1");
            assert!(first[0].contains("apples"), "{first:?}");
            // The blocking call has long ended: what comes now wakes the parent.
            assert_eq!(history.answers(), ["done", "done: heard"]);
            let states: Vec<String> = sim.member.database.ask("SELECT state || ' ' || (body IS NULL) || ' ' || (due_us IS NULL) FROM children");
            assert_eq!(states, ["terminated 1 1"]);
            no_secrets(sim);
        })
}

#[test]
fn a_child_begins_once_it_is_given_what_it_lacks_whatever_fails() {
    deferred().sampled(400).sweep();
}

#[test]
fn a_child_that_is_given_nothing_is_given_up_after_seven_days() {
    lacking("given up")
        .drive(|sim| async move {
            sim.ask("open").await;
            let (id, _) = request(&sim).await;
            // The same call that waits already waits once.
            sim.ask("open").await;
            assert_eq!(
                sim.member.database.ask::<i64>("SELECT count(*) FROM children WHERE state = 'pending'"),
                [1]
            );
            let due: Vec<i64> = sim.member.database.ask("SELECT due_us - created_us FROM children");
            assert_eq!(due, [7 * DAY_US]);
            sim.world.pause(7 * DAY_US + 1_000_000).await;
            assert_eq!(give(&sim, &id, None, json!({ "env": { "GIVEN": GIVEN } })).await.status, 404);
            // Their keys are forgotten after a day: posted again they would be new messages.
            sim.accepted.borrow_mut().clear();
        })
        .check(|sim, history| {
            let [told] = told(history).try_into().unwrap_or_else(|told| panic!("{told:?}"));
            assert_eq!(told["metadata"]["subagent_event"], "failure");
            assert!(told["content"].as_str().unwrap().contains("within 7 days"), "{told}");
            assert_eq!(below(sim).len(), 0);
            no_secrets(sim);
        })
        .calm();
}

#[test]
fn what_the_account_or_a_worker_variable_gives_is_not_missing() {
    lacking("given by the deployment")
        .setup(|sim| var(sim, "GIVEN", GIVEN))
        .drive(|sim| async move { answered(&sim, "open").await })
        .check(|sim, history| {
            let result = history.texts("tool")[0];
            assert!(result.contains(r#""GIVEN":"[redacted GIVEN]""#), "{result}");
            assert_eq!(types(&below(sim)[0]), ["CITY text", "SHARED secret"]);
            no_secrets(sim);
        })
        .calm();
}

#[test]
fn without_keys_children_are_made_while_there_is_nothing_to_encrypt() {
    lacking("no keys")
        .setup(|sim| {
            var(sim, "BOBBIN_ENCRYPTION_KEYS", "");
            *sim.born.borrow_mut() = json!({ "agent_id": "helper" });
        })
        .drive(|sim| async move {
            sim.ask("open").await;
            let (id, _) = request(&sim).await;
            let seen = sim
                .once(
                    ThreadRoute::PostVariables(id.clone()),
                    &[],
                    None,
                    json!({ "env": { "GIVEN": GIVEN } }).to_string(),
                )
                .await
                .unwrap();
            assert_eq!((seen.status, &seen.body["error"]["code"]), (503, &json!("encryption_unavailable")));
            var(&sim, "GIVEN", "of the Worker");
            assert_eq!(give(&sim, &id, None, json!({ "env": {} })).await.status, 200);
            sim.until("a result", |sim| {
                !sim.member
                    .database
                    .ask::<i64>("SELECT 1 FROM messages WHERE metadata ->> 'subagent_event' = 'result'")
                    .is_empty()
            })
            .await;
        })
        .check(|sim, history| {
            assert!(told(history)[0]["content"].as_str().unwrap().contains("sold with"));
            assert_eq!(types(&below(sim)[0]), Vec::<String>::new());
        })
        .calm();
}

#[test]
fn a_value_that_cannot_be_read_stops_the_creation_and_names_the_key() {
    lacking("a lost key")
        .setup(|sim| var(sim, "GIVEN", "of the Worker"))
        .drive(|sim| async move {
            var(&sim, "BOBBIN_ENCRYPTION_KEYS", "b=//////////////////////////////////////////8=");
            sim.evict().await;
            sim.ask("open").await;
        })
        .check(|sim, history| {
            let result = history.texts("tool")[0];
            assert!(result.contains("was not created") && result.contains("the key “a”"), "{result}");
            assert_eq!(
                (below(sim).len(), sim.member.database.ask::<i64>("SELECT count(*) FROM children")),
                (0, vec![0])
            );
        })
        .calm();
}
