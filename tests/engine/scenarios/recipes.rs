//! The folders of docs/recipes.md do what the page says.

use std::fs;
use std::path::Path;

use bobbin::models;
use bobbin::request::{MemoryRoute, ThreadRoute};
use serde_json::{Map, Value, json};

use super::story;
use super::waits::{decides, until_open};
use crate::sim::Sim;
use crate::sweep::Scenario;

/// The definitions of a recipe, whose files are all JSON.
fn recipe(name: &'static str, agent: &'static str) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/recipes").join(name);
    story(name)
        .define(|catalog| {
            for kind in ["models", "prompts", "tools", "agents", "memories"] {
                catalog[kind] = Value::Object(Map::new());
                let Ok(files) = fs::read_dir(folder.join(kind)) else { continue };
                for file in files {
                    let path = file.unwrap().path();
                    let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
                    catalog[kind][stem] = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
                }
            }
        })
        .setup(move |sim| {
            sim.born.borrow_mut()["agent_id"] = json!(agent);
            sim.world.outside.native("calculate", |call, _| {
                crate::host::Native::Works(Box::pin(bobbin::tools::run(call.clone())))
            });
            sim.world.outside.native("say", |call, _| {
                crate::host::Native::Works(Box::pin(bobbin::tools::run(call.clone())))
            });
        })
}

/// What an agent answers, or why it does not.
async fn answer(sim: &Sim, text: &str) -> String {
    let outcome = sim.ask(text).await;
    match outcome["outcome"].as_str() {
        Some("completed") => outcome["message"]["content"].as_str().unwrap().to_owned(),
        _ => outcome["reason"].as_str().unwrap().to_owned(),
    }
}

#[test]
fn each_recipe_does_what_it_is_for() {
    assert!(models::providers().contains(&"demo"));
    recipe("agent", "clerk")
        .drive(|sim| async move {
            assert_eq!(
                answer(&sim, "call calculate {\"expression\": \"6 * 7\"}").await,
                "calculate said: 6 * 7 = 42"
            );
        })
        .once();
    recipe("chat", "companion")
        .drive(|sim| async move { assert_eq!(answer(&sim, "hello").await, "You said: hello") })
        .once();
    recipe("loop", "worker")
        .drive(|sim| async move {
            assert_eq!(answer(&sim, "call done {\"text\": \"ready\"}").await, "ready");
            assert_eq!(answer(&sim, "hello").await, "max_steps");
        })
        .terms(|terms| {
            terms.outcomes = vec!["completed", "failed"];
            terms.one_answer = false;
        })
        .once();
    recipe("eval", "examiner")
        .drive(|sim| async move {
            let told = answer(&sim, "call candidate {\"question\": \"Why?\"}").await;
            assert!(told.contains("You said: Why?"), "{told}");
        })
        .once();
}

#[test]
fn an_answer_is_given_from_documents() {
    let of = |of: MemoryRoute| ThreadRoute::Memory { memory: "handbook".to_owned(), of };
    recipe("rag", "clerk")
        .drive(move |sim| async move {
            for (title, text) in [
                ("Returns", "Refunds are granted within thirty days of the purchase, with a receipt."),
                ("Hours", "The shop opens at nine and closes at six."),
            ] {
                let body = json!({ "title": title, "text": text });
                let seen =
                    sim.insist(of(MemoryRoute::AddDocument), &[], Some(&sim.key()), body.to_string()).await;
                assert_eq!(seen.status, 202, "{}", seen.body);
            }
            sim.until("they are taken in", |sim| {
                sim.member.database.ask::<i64>("SELECT jobs FROM meta") == [0]
            })
            .await;
            let told =
                answer(&sim, "call memory_search {\"query\": \"refund of a purchase\", \"top_k\": 1}").await;
            assert!(told.contains("within thirty days") && !told.contains("nine"), "{told}");
            // What fits is looked up without a call, too.
            let run = sim.get(ThreadRoute::GetRun("r_1".into()), &[]).await;
            assert_eq!(run["diagnostics"], json!([]), "{run}");
            let injected: Vec<i64> =
                sim.member.database.ask("SELECT recall ->> 'injected' FROM runs WHERE id = 1");
            assert!(injected[0] > 0, "{injected:?}");
        })
        .once();
}

#[test]
fn a_long_talk_is_summarised() {
    recipe("compress", "companion")
        .drive(|sim| async move {
            for n in 0..30 {
                let text = format!("{n} {}", "word ".repeat(80));
                assert!(answer(&sim, &text).await.starts_with("You said: "));
            }
            let context = sim.get(ThreadRoute::GetContext, &[]).await;
            assert!(context["summary"]["epoch"].as_i64().is_some_and(|epoch| epoch > 0), "{context}");
        })
        .terms(|terms| {
            terms.overlap = true;
            terms.one_answer = false;
            terms.more_requests = 12;
        })
        .once();
}

#[test]
fn the_gate_opens_for_what_a_person_has_agreed_to() {
    recipe("gate", "editor")
        .define(|catalog| {
            // The build adds it to what is read from a folder.
            catalog["tools"]["ask_user"] = json!({ "description": "Asks.", "run": { "native": "ask_user" },
                "args": { "type": "object", "properties": { "question": { "type": "string" } } } });
        })
        .terms(|terms| terms.one_answer = false)
        .drive(|sim| async move {
            let said = async |text: &str, decision: Value| {
                let sent = sim.send(text).await;
                let waits = until_open(&sim, 1).await;
                assert_eq!(sim.outcome(&sent).await["outcome"], "parked");
                decides(&sim, &waits[0], decision).await;
                sim.until("the end", |sim| {
                    sim.member.database.ask::<i64>("SELECT 1 FROM runs WHERE phase <> 'ended'").is_empty()
                })
                .await;
                (waits[0]["title"].as_str().unwrap().to_owned(), sim.history().await)
            };
            let last = |history: &[Value]| history.last().unwrap()["content"].as_str().unwrap().to_owned();
            let publish = "call publish {\"text\": \"We are open.\"}";
            let (title, told) =
                said(publish, json!({ "decision": "approve", "args": { "text": "Open from nine." } })).await;
            assert_eq!(title, "Publish “We are open.”");
            assert!(last(&told).ends_with("Open from nine."), "{}", last(&told));
            let (_, told) = said(publish, json!({ "decision": "deny", "reason": "not yet" })).await;
            assert_eq!(last(&told), "publish said: Denied: not yet");
            let (title, told) = said(
                "call ask_user {\"question\": \"Which day?\"}",
                json!({ "decision": "answer", "text": "Monday" }),
            )
            .await;
            assert_eq!((&*title, &*last(&told)), ("Which day?", "ask_user said: Monday"));
            // Who writes instead of deciding has refused.
            sim.send(publish).await;
            until_open(&sim, 1).await;
            sim.send("hello").await;
            sim.until("the end", |sim| {
                sim.member.database.ask::<i64>("SELECT 1 FROM runs WHERE phase <> 'ended'").is_empty()
            })
            .await;
            let told = sim.history().await;
            let refused = |row: &&Value| row["content"] == "Denied: The user wrote instead.";
            assert_eq!(told.iter().filter(refused).count(), 1, "{told:?}");
        })
        .once();
}
