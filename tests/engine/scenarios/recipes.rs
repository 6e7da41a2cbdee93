//! The folders of docs/recipes.md do what the page says.

use std::fs;
use std::path::Path;

use bobbin::models;
use serde_json::{Map, Value, json};

use super::story;
use crate::sim::Sim;
use crate::sweep::Scenario;

/// The definitions of a recipe, whose files are all JSON.
fn recipe(name: &'static str, agent: &'static str) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/recipes").join(name);
    story(name)
        .define(|catalog| {
            for kind in ["models", "prompts", "tools", "agents"] {
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
