//! What the operator reads on the server's terminal of what fails: a line for each, without secrets.

use bobbin::definitions::message::ToolResult;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::env::{TOKEN, told, work};
use super::hooks::react;
use crate::host::{Answer, Native, SECOND_US, Say};
use crate::sim::Sim;

/// Lines that tell of a failure, without what says where more of it stands.
fn lines(sim: &Sim) -> Vec<String> {
    let log = sim.world.log.borrow();
    let start = format!("thread {}: ", sim.member.id);
    let failures = log.iter().filter(|line| line.contains(" failed"));
    failures
        .map(|line| {
            let (told, more) =
                line.strip_prefix(&start).unwrap().split_once(" (more: GET /api/threads/").unwrap();
            assert!(more.starts_with(&format!("{}/logs", sim.member.id)), "{line}");
            told.to_owned()
        })
        .collect()
}

#[test]
fn each_failure_is_one_line_and_retries_are_none() {
    told("failures on the terminal")
        .setup(|sim| *sim.born.borrow_mut() = json!({ "agent_id": "helper", "env": { "TOKEN": TOKEN } }))
        .define(|catalog| {
            let run = json!({ "native": "ring" });
            let secret = json!([{ "name": "TOKEN", "type": "secret" }]);
            catalog["effects"]["ring"] =
                json!({ "description": "d", "run": run, "attempts": 3, "variables": secret });
            catalog["hooks"]["watch"] =
                json!({ "hook": "after_create_message", "run": { "native": "watch" } });
            catalog["agents"]["helper"]["hooks"] = json!(["watch"]);
            catalog["models"]["m"]["fallbacks"] = json!(["n"]);
            catalog["models"]["n"] = catalog["models"]["m"].clone();
            catalog["models"]["n"]["fallbacks"] = json!([]);
        })
        .setup(|sim| {
            work(sim, |_| ToolResult {
                error_code: Some("no_luck".into()),
                ..ToolResult::error(format!("no\nluck with {TOKEN}"))
            });
            sim.world
                .outside
                .effect("ring", |_, _| Native::Gives(SECOND_US, ToolResult::error("nobody answers")));
            react(sim, "watch", |_| Err(format!("blind to {TOKEN}")));
        })
        .answers(|request| match (request.last_user(), request.results().len()) {
            ("use work", n @ 0..3) => Say::call("work", &json!({ "n": n })).stream(request.index),
            ("use work", _) => Say::text("done").stream(request.index),
            _ => Answer::status(503, "busy"),
        })
        .terms(|terms| {
            terms.outcomes = vec!["completed", "failed"];
            terms.one_answer = false;
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            let (tool, hook) = (
                "the tool \"work\" failed [no_luck]: no luck with [redacted TOKEN]",
                "the hook watch (after_create_message) failed: blind to [redacted TOKEN]",
            );
            assert_eq!(lines(&sim), [hook, tool], "the same failures are told once in a run");
            sim.ask("go").await;
            let seen = lines(&sim);
            assert_eq!(seen[2], hook, "and again in the next run");
            assert_eq!(seen.len(), 5, "{seen:?}");
            for (line, model) in seen[3..].iter().zip(["m", "n"]) {
                assert!(
                    line.starts_with(&format!("the model \"{model}\" failed [server_error]: ")),
                    "{line}"
                );
            }
            let body: Value = json!({ "name": "ring" });
            sim.insist(ThreadRoute::PostEffect, &[], None, body.to_string()).await;
            sim.world.pause(60 * SECOND_US).await;
            assert_eq!(lines(&sim)[5..], ["the effect \"ring\" (attempts: 3) failed: nobody answers"]);
        })
        .calm();
}
