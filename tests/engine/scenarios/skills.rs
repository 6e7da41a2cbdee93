//! Skills that a model is given or loads, and runs whose definitions change under them (docs/agents.md).

use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::story;
use super::waits::{asking, decides, until_open, with};
use crate::host::{Native, SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![loading(), changed("warn"), changed_while_asked("warn"), changed_while_asked("fail")]
}

fn skill(activation: &str, requires: &Value, body: &str) -> Value {
    let head = json!({ "description": format!("What {body} is for."), "activation": activation, "requires": requires });
    json!({ "head": head, "body": body, "path": "skills/x", "hash": format!("sha256:{body}"),
        "files": { "letter.md": "Dear customer" } })
}

fn with_skills(catalog: &mut Value) {
    catalog["skills"] = json!({
        "tone": skill("always", &json!([]), "BE KIND"),
        "refunds": skill("auto", &json!(["work"]), "REFUND RULES"),
        "secret": skill("manual", &json!([]), "MANUAL TEXT"),
        "lost": skill("always", &json!(["nothing"]), "LOST TEXT"),
    });
    catalog["prompts"]["p"]["skills"] = json!("*");
}

fn codes(logs: &Value) -> Vec<String> {
    let rows = logs["logs"].as_array().unwrap().iter().rev();
    rows.filter(|row| row["type"] == "note").map(|row| row["code"].as_str().unwrap().to_owned()).collect()
}

/// The model loads a skill, then a file of it.
fn loading() -> Scenario {
    story("skills are loaded")
        .define(with_skills)
        .says(|request| match request.results().len() {
            0 => Say::call("load_skill", &json!({ "name": "refunds" })),
            1 => Say::call("load_skill", &json!({ "name": "refunds", "file": "letter.md" })),
            2 => Say::call("load_skill", &json!({ "name": "refunds", "file": "none.md" })),
            _ => Say::text("done"),
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|_, history| {
            let results = history.texts("tool");
            assert_eq!(results[..2], ["REFUND RULES", "Dear customer"]);
            assert!(results[2].contains("Files: letter.md"), "{}", results[2]);
            assert_eq!(history.answers(), ["done"]);
        })
}

#[test]
fn a_model_loads_a_skill_and_its_files() {
    loading().sweep();
}

#[test]
fn a_model_is_given_the_skills_that_are_for_it() {
    story("given")
        .define(with_skills)
        .drive(|sim| async move {
            sim.ask("hello").await;
            let body =
                json!({ "role": "user", "content": "again", "metadata": { "skills": ["secret", "nobody"] } });
            sim.post(body).await;
            let message = sim.accepted.borrow().last().cloned().unwrap();
            sim.outcome(&message).await;
            let logs = sim.get(ThreadRoute::ListLogs, &[]).await;
            let told = codes(&logs);
            assert_eq!(told, ["skill.requirement", "skill.missing", "skill.requirement"], "{logs}");
        })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            let system = requests[0].system();
            assert!(
                system.starts_with("You help.\n\n## Active skills\n\n### tone\n\nBE KIND\n\n"),
                "{system}"
            );
            assert!(system.ends_with("\n- refunds: What REFUND RULES is for."), "{system}");
            assert!(!system.contains("LOST TEXT") && !system.contains("MANUAL TEXT"), "{system}");
            assert!(requests[1].system().contains("### secret\n\nMANUAL TEXT"), "{}", requests[1].system());
        })
        .calm();
}

#[test]
fn fifty_skills_cost_their_descriptions_alone() {
    let system = |count: usize| {
        let place = std::rc::Rc::new(std::cell::Cell::new(0));
        let bytes = place.clone();
        story("fifty")
            .define(|catalog| {
                for n in 0..count {
                    catalog["skills"][format!("skill-{n:02}")] =
                        skill("auto", &json!([]), &"long ".repeat(100));
                    catalog["skills"][format!("skill-{n:02}")]["head"]["description"] = json!("d");
                }
                catalog["prompts"]["p"]["skills"] = json!("*");
            })
            .drive(|sim| async move {
                sim.ask("hello").await;
            })
            .check(move |sim, _| bytes.set(sim.world.outside.requests.borrow()[0].system().len()))
            .once();
        place.get()
    };
    assert_eq!(system(50) - system(1), 49 * "\n- skill-00: d".len());
}

/// What the catalog of [`changed`] becomes.
fn deployed(check: &str) -> Value {
    let mut catalog = crate::sim::catalog(&super::with_work());
    with_skills(&mut catalog);
    catalog["settings"] = json!({ "resumeCheck": check });
    catalog["skills"]["refunds"]["hash"] = json!("sha256:other");
    catalog["skills"]["refunds"]["body"] = json!("OTHER RULES");
    catalog["prompts"]["p"]["tools"] = json!(["work", "more"]);
    catalog["tools"]["work"]["idempotent"] = json!(true);
    catalog["tools"]["more"] = crate::sim::native(true);
    catalog
}

/// A deployment in the middle of a call: the run goes on with other definitions than it began with.
fn changed(check: &'static str) -> Scenario {
    story("definitions change")
        .define(|catalog| {
            with_skills(catalog);
            catalog["tools"]["work"]["idempotent"] = json!(true);
        })
        .setup(|sim| {
            sim.world.outside.native("work", |_, _| {
                Native::Gives(60 * SECOND_US, bobbin::definitions::message::ToolResult::success("w"))
            });
        })
        .drive(move |sim| async move {
            let message = sim.send("use work").await;
            sim.until_executions(1).await;
            sim.deploy(&deployed(check));
            sim.outcome(&message).await;
            let logs = sim.get(ThreadRoute::ListLogs, &[("limit", "500")]).await;
            noted(&logs, check);
        })
        .terms(|terms| terms.outcomes = vec!["completed", "failed"])
}

fn noted(logs: &Value, check: &str) {
    let told = codes(logs);
    let resumed: Vec<&str> =
        told.iter().map(String::as_str).filter(|code| code.starts_with("resume")).collect();
    let expected: &[&str] = if check == "off" { &[] } else { &["resume.changed", "resume.skills"] };
    assert_eq!(resumed, expected, "{check}: {logs}");
    for row in logs["logs"].as_array().unwrap() {
        match row["code"].as_str() {
            Some("resume.changed") => assert_eq!(row["data"]["added"], json!({ "tools": ["more"] })),
            Some("resume.skills") => {
                assert_eq!(row["data"], json!({ "added": [], "removed": [], "changed": ["refunds"] }));
            }
            _ => {}
        }
    }
}

#[test]
fn a_run_whose_definitions_changed_says_so() {
    changed("warn").check(|_, history| assert_eq!(history.answers().len(), 1)).sweep();
    changed("off").check(|_, history| assert_eq!(history.answers().len(), 1)).calm();
}

#[test]
fn a_run_whose_definitions_changed_may_be_failed() {
    changed("fail")
        .check(|_, history| {
            assert_eq!(history.answers(), [""; 0]);
            assert_eq!(history.statuses("run_failed").len(), 1);
        })
        .calm();
}

/// A deployment changes a skill while a person is asked; the model loads it afterwards.
fn changed_while_asked(check: &'static str) -> Scenario {
    story("a skill changes while a person is asked")
        .define(with_skills)
        .define(with(json!({ "pay": asking(json!("always")) })))
        .says(|request| match request.results().len() {
            0 => Say::call("pay", &json!({})),
            1 => Say::call("load_skill", &json!({ "name": "refunds" })),
            _ => Say::text("done"),
        })
        .drive(move |sim| async move {
            let message = sim.send("hello").await;
            let waits = until_open(&sim, 1).await;
            let mut catalog: Value = serde_json::to_value(&**sim.catalog.borrow()).unwrap();
            catalog["settings"] = json!({ "resumeCheck": check });
            catalog["skills"]["refunds"]["hash"] = json!("sha256:other");
            catalog["skills"]["refunds"]["body"] = json!("OTHER RULES");
            sim.deploy(&catalog);
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
            let outcome = sim.outcome(&message).await;
            let diagnostics = outcome["diagnostics"].as_array().unwrap();
            let resumed: Vec<&Value> = diagnostics
                .iter()
                .filter(|entry| entry["kind"] == "resume")
                .map(|entry| &entry["code"])
                .collect();
            assert_eq!(resumed, ["resume.skills"], "{outcome}");
            let reason = if check == "fail" { "definition_changed" } else { "stop_on_response" };
            assert_eq!(outcome["reason"], reason, "{outcome}");
        })
        .terms(|terms| terms.outcomes = vec![if check == "fail" { "failed" } else { "completed" }])
}

#[test]
fn a_skill_that_changes_while_a_person_is_asked_is_told_of_and_loaded_as_it_is_now() {
    changed_while_asked("warn")
        .check(|_, history| {
            let results = history.texts("tool");
            assert_eq!(results[1], "OTHER RULES", "{results:?}");
            assert_eq!(history.answers(), ["done"]);
        })
        .sweep();
}

#[test]
fn a_skill_that_changes_while_a_person_is_asked_may_fail_the_run_before_its_call_runs() {
    changed_while_asked("fail")
        .check(|sim, history| {
            assert_eq!(sim.world.outside.executions.borrow().len(), 0, "what was approved never ran");
            assert_eq!(history.statuses("run_failed").len(), 1);
        })
        .sweep();
}

#[test]
fn what_a_run_begins_with_is_logged_when_it_changes() {
    story("snapshots")
        .define(with_skills)
        .drive(|sim| async move {
            let snapshots = async |sim: &Sim| {
                let logs = sim.get(ThreadRoute::ListLogs, &[("limit", "500")]).await;
                let rows = logs["logs"].as_array().unwrap().clone();
                rows.into_iter().filter(|row| row["type"] == "snapshot").collect::<Vec<_>>()
            };
            sim.ask("one").await;
            sim.ask("two").await;
            let first = snapshots(&sim).await;
            assert_eq!(first.len(), 1);
            assert_eq!(
                (&first[0]["agent"], &first[0]["tools"]),
                (&json!("helper"), &json!(["load_skill", "work"]))
            );
            sim.deploy(&deployed("fail"));
            sim.ask("three").await;
            sim.ask("four").await;
            let both = snapshots(&sim).await;
            assert_eq!(both.len(), 2);
            // The trace of each run shows what it began with, also of those that have no row of their own.
            for (run, row) in [("r_1", &both[1]), ("r_2", &both[1]), ("r_3", &both[0]), ("r_4", &both[0])] {
                let body = sim.get(ThreadRoute::GetRun(run.into()), &[("trace", "1")]).await;
                let trace = body["trace"].as_array().unwrap();
                let shown: Vec<_> =
                    trace.iter().filter(|entry| entry["kind"] == "agent.loop.snapshot").collect();
                assert_eq!((shown.len(), &shown[0]["data"]["hash"]), (1, &row["hash"]), "{run}: {trace:?}");
            }
        })
        .check(|_, history| assert_eq!(history.answers().len(), 4))
        .calm();
}

#[test]
fn a_strict_run_without_its_skills_asks_no_model() {
    for (skills, text) in [
        (json!([]), "The skill \"lost\" is left out: the tool \"nothing\" is not offered."),
        (json!(["gone"]), "The message asks for the skill \"gone\", which the prompt does not have."),
    ] {
        story("strict, without a skill")
            .define(with_skills)
            .define(|catalog| catalog["agents"]["helper"]["diagnostics"] = json!("strict"))
            .terms(|terms| {
                terms.outcomes = vec!["failed"];
                terms.one_answer = false;
            })
            .drive(move |sim| {
                let body = json!({ "role": "user", "content": "hello", "metadata": { "skills": skills } });
                async move {
                    sim.post(body).await;
                    let sent = sim.accepted.borrow().last().cloned().unwrap();
                    assert_eq!(sim.outcome(&sent).await["reason"], "strict_diagnostics");
                    assert!(sim.world.outside.requests.borrow().is_empty());
                    let run = sim.get(ThreadRoute::GetRun("r_1".into()), &[]).await;
                    assert!(run["error"]["message"].as_str().unwrap().contains(text), "{run}");
                }
            })
            .once();
    }
}
