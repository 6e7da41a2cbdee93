//! What is asked has a size: of more than that nobody is asked, and the model is told.

use bobbin::definitions::message::ToolResult;
use bobbin::limits::WAIT_DATA_BYTES;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::story;
use super::waits::{asking, decide, decides, open, until_open, with};
use crate::host::{Native, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![behind()]
}

fn runs(sim: &Sim) -> usize {
    sim.world.outside.executions.borrow().iter().filter(|run| run.name == "work").count()
}

/// One step with this call, and one that says what came of it.
fn calling(title: &'static str, tools: Value, name: &'static str, args: Value) -> Scenario {
    let args = args.to_string();
    story(title).define(with(tools)).says(move |request| match request.results().last() {
        None => Say::text("").and_call(name, &args),
        Some(result) => Say::text(result.chars().take(60).collect::<String>()),
    })
}

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

#[test]
fn what_is_too_large_to_be_shown_is_not_asked_about_and_does_not_run() {
    const ROOM: usize = 1_000;
    let half = WAIT_DATA_BYTES / 2;
    let pay = |approval: Value| json!({ "pay": asking(approval) });
    let titled = json!({ "mode": "always", "title": "Pay {{args.to}}" });
    let ask = json!({ "ask_user": { "description": "Asks.", "run": { "native": "ask_user" } } });
    let locate = json!({ "locate": { "description": "Where.", "run": { "client": {} } } });
    let edits: Vec<String> = (0..1_000).map(|number| format!("{number}{}", text(64))).collect();
    let many = json!({ "mode": "always", "edit": edits });
    let question = |bytes| json!({ "question": text(bytes) });
    let choices = |bytes| json!({ "question": "Which?", "choices": [text(bytes), "no"] });
    let to = |bytes| json!({ "to": text(bytes) });
    for (why, tools, name, args, asked) in [
        ("arguments", pay(json!("always")), "pay", to(WAIT_DATA_BYTES - ROOM), true),
        ("arguments", pay(json!("always")), "pay", to(WAIT_DATA_BYTES), false),
        ("a title with them", pay(titled.clone()), "pay", to(half - ROOM), true),
        ("a title with them", pay(titled), "pay", to(half), false),
        ("what its file says", pay(many), "pay", to(1), false),
        ("a question", ask.clone(), "ask_user", question(half - ROOM), true),
        ("a question", ask.clone(), "ask_user", question(half), false),
        ("choices", ask.clone(), "ask_user", choices(half - ROOM), true),
        ("choices", ask, "ask_user", choices(half), false),
        ("a client's call", locate.clone(), "locate", to(WAIT_DATA_BYTES - ROOM), true),
        ("a client's call", locate, "locate", to(WAIT_DATA_BYTES), false),
    ] {
        calling(why, tools, name, args)
            .drive(move |sim| async move {
                sim.send("hello").await;
                if asked {
                    let waits = until_open(&sim, 1).await;
                    decides(&sim, &waits[0], json!({ "decision": "deny" })).await;
                }
            })
            .check(move |sim, history| {
                let result = history.of("tool").next().unwrap();
                let code = if asked { "denied" } else { "too_large" };
                assert_eq!(result["metadata"]["error_code"], code, "{why}: {}", result["content"]);
                let told = result["content"].as_str().unwrap();
                assert_eq!(told.contains("is over 65536 bytes. Nobody was asked."), !asked, "{why}: {told}");
                assert_eq!(runs(sim), 0);
            })
            .once();
    }
}

#[test]
fn a_call_that_asks_after_it_has_run_is_not_made_again_when_that_is_too_large() {
    calling(
        "too large afterwards",
        json!({ "pay": asking(json!("on_failure")) }),
        "pay",
        json!({ "to": text(WAIT_DATA_BYTES) }),
    )
    .setup(|sim| {
        sim.world.outside.native("work", |_, _| {
            let asks = ToolResult {
                error_code: Some("needs_approval".into()),
                ..ToolResult::error("over the limit")
            };
            Native::Gives(1_000, asks)
        });
    })
    .drive(|sim| async move {
        assert_eq!(sim.ask("hello").await["outcome"], "completed");
        let all = sim.get(ThreadRoute::ListWaits, &[("state", "all")]).await;
        assert_eq!(all["waits"], json!([]));
    })
    .check(|sim, history| {
        let result = history.of("tool").next().unwrap();
        assert_eq!(
            (&result["metadata"]["error_code"], runs(sim)),
            (&json!("too_large"), 1),
            "{}",
            result["content"]
        );
    })
    .once();
}

fn behind() -> Scenario {
    let (small, large) =
        (json!({ "to": "a" }).to_string(), json!({ "to": text(WAIT_DATA_BYTES) }).to_string());
    story("one of two is too large")
        .define(with(json!({ "pay": asking(json!("always")) })))
        .says(move |request| match request.results().last() {
            None => Say::text("").and_call("pay", &small).and_call("pay", &large),
            Some(_) => Say::text("done"),
        })
        .drive(|sim| async move {
            sim.send("hello").await;
            let waits = until_open(&sim, 1).await;
            assert_eq!(waits[0]["call"]["args"], json!({ "to": "a" }));
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
        })
        .check(|sim, history| {
            let results: Vec<_> = history.of("tool").collect();
            assert_eq!(results.len(), 2);
            assert_eq!(results[1]["metadata"]["error_code"], "too_large", "{}", results[1]["content"]);
            assert!(runs(sim) <= 1);
        })
}

#[test]
fn a_call_that_is_too_large_is_refused_when_it_is_its_turn() {
    behind().sweep();
}

#[test]
fn arguments_that_a_decision_changes_have_a_size_too() {
    calling(
        "a large change",
        json!({ "pay": asking(json!({ "mode": "always", "edit": ["to"] })) }),
        "pay",
        json!({ "to": "a" }),
    )
    .drive(|sim| async move {
        sim.send("hello").await;
        let wait = until_open(&sim, 1).await.remove(0);
        let large = json!({ "decision": "approve", "args": { "to": text(WAIT_DATA_BYTES) } });
        let seen = decide(&sim, &wait, large).await;
        assert_eq!((seen.status, &seen.body["error"]["code"]), (413, &json!("too_large")), "{}", seen.body);
        assert_eq!(open(&sim).await.len(), 1, "nothing was decided");
        let fits = json!({ "decision": "approve", "args": { "to": text(WAIT_DATA_BYTES - 100) } });
        decides(&sim, &wait, fits).await;
    })
    .check(|sim, _| assert_eq!(runs(sim), 1))
    .once();
}
