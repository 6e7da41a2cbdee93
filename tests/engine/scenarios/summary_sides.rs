//! What is in summaries: all that they cover, of two models that talk to each other, and no secret.

use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::ModelRequest;
use super::summary::{is_summary, settled, summarise};
use crate::host::Say;
use crate::sim::{Sim, model};
use crate::sweep::Scenario;

/// What a summary covers is in it: each `fact-` of the messages up to where it ends.
///
/// There is none when the turn that would have begun the first one was the last, and failed: the next turn would begin it.
pub(super) fn facts_are_kept(sim: &Sim) {
    let database = &sim.member.database;
    if database.ask::<i64>("SELECT count(*) FROM sqlite_master WHERE name = 'summaries'") == [0] {
        return;
    }
    let newest: Vec<String> = database
        .ask("SELECT upto || ' ' || text || ' ' FROM summaries WHERE stale = 0 ORDER BY epoch DESC LIMIT 1");
    for covered in &newest {
        let (upto, text) = covered.split_once(' ').unwrap();
        let said: Vec<String> = database.ask(&format!(
            "SELECT content FROM messages WHERE role = 'user' AND depth = 0 AND seq <= {upto} AND content LIKE 'fact-%'"
        ));
        for message in &said {
            let fact = message.split(' ').next().unwrap();
            let kept = [' ', '.'].into_iter().any(|end| text.contains(&format!("{fact}{end}")));
            assert!(kept, "{fact} is not in {text}");
        }
    }
}

const KNOWN: &str = "known-4711-value-of-a-variable";
const NAMED: &str = "canary-4711-hunter";

/// Two models that talk, and one that keeps what was said: with more in it than there should be.
fn debated(name: &'static str) -> Scenario {
    Scenario::new(name, &json!({}))
        .define(|catalog| {
            catalog["models"] = json!({ "ma": model("ma"), "mb": model("mb"), "cheap": model("cheap") });
            let mut prompt = catalog["prompts"]["p"].clone();
            prompt["context"] = json!({ "maxInputTokens": 4_000, "safetyTokens": 0 });
            prompt["summary"] =
                json!({ "model": "cheap", "minTurns": 1, "maxTokens": 200, "targetRatio": 0.01 });
            prompt["variables"] = json!([{ "name": "TOKEN", "type": "secret" }]);
            for (name, model) in [("pa", "ma"), ("pb", "mb")] {
                prompt["model"] = model.into();
                catalog["prompts"][name] = prompt.clone();
            }
            catalog["agents"]["helper"] = json!({ "type": "dual_ai", "maxSessionTurns": 3,
                "sideA": { "prompt": "pa", "label": "Ann" }, "sideB": { "prompt": "pb", "label": "Bob" } });
        })
        .setup(|sim| {
            sim.world.vars.borrow_mut().insert("TOKEN".into(), KNOWN.into());
        })
        .says(|request: &ModelRequest| match request.model.as_str() {
            _ if is_summary(request) => Say::text(format!("Known: fact-one. password={NAMED}, and {KNOWN}.")),
            model => Say::text(format!("{model} says {}", "word ".repeat(60))),
        })
        .terms(|terms| {
            // A session has an end.
            terms.outcomes = vec!["failed"];
            terms.overlap = true;
            terms.one_answer = false;
            terms.more_requests = 12;
        })
}

#[test]
fn two_sides_have_one_summary_that_names_who_speaks_and_holds_no_secret() {
    debated("two sides, summarised")
        .drive(|sim| async move {
            let quiet = json!({ "role": "user", "content": "fact-silent", "silent": true });
            let sent = sim.post(quiet).await;
            assert!(sent.status < 300, "{}", sent.body);
            for text in ["fact-one is said", &format!("my password is {NAMED}"), &format!("I have {KNOWN}")] {
                sim.ask(text).await;
            }
            summarise(&sim).await;
            settled(&sim).await;
            let asked: Vec<ModelRequest> = sim
                .world
                .outside
                .requests
                .borrow()
                .iter()
                .filter(|request| is_summary(request))
                .cloned()
                .collect();
            let input = asked[0].last_user();
            for part in
                ["[Ann] ma says", "[Bob] mb says", "fact-one", "fact-silent", "my password is [REDACTED]"]
            {
                assert!(input.contains(part), "{part} is not in {input}");
            }
            let all = json!(asked.iter().map(|request| request.body.clone()).collect::<Vec<_>>()).to_string();
            assert!(!all.contains(NAMED) && !all.contains(KNOWN), "a secret is in {all}");
            let status = |m: &&Value| m["metadata"]["status_kind"].is_string();
            let history = sim.history().await;
            for row in history.iter().filter(status) {
                assert!(!input.contains(row["content"].as_str().unwrap()), "{row}");
            }
            let shown = sim.get(ThreadRoute::GetContext, &[]).await;
            let text = shown["summary"]["text"].as_str().unwrap().to_owned();
            assert!(text.contains("fact-one") && text.contains("[REDACTED]"), "{text}");
            assert!(!text.contains(NAMED) && !text.contains(KNOWN), "{text}");
            let before = sim.world.outside.requests.borrow().len();
            sim.ask("go on").await;
            let requests = sim.world.outside.requests.borrow();
            let with: Vec<&str> = requests[before..]
                .iter()
                .filter(|request| request.texts("system").iter().any(|system| system.ends_with(&text)))
                .map(|request| request.model.as_str())
                .collect();
            assert!(with.contains(&"ma") && with.contains(&"mb"), "both have the same: {with:?}");
        })
        .calm();
}
