//! Hand-off (spec §22): another agent takes the thread over.

use bobbin::host::Filter;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::story;
use crate::host::{SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![taken_over(), with_an_opening(), by_a_client()]
}

/// Adds the agent `billing`, which `helper` may hand off to.
pub fn billing(catalog: &mut Value) {
    let schema = json!({ "type": "object", "properties": { "question": { "type": "string" } } });
    catalog["prompts"]["q"] = json!({ "toolDescription": "Bills.", "prompt": "You bill.", "model": "m",
        "includeChat": true, "includePastTools": true, "tools": ["work"], "requiredSchema": schema });
    catalog["agents"]["billing"] = json!({ "title": "Billing", "sideA": { "prompt": "q" },
        "exposeAsTool": true, "toolDescription": "Takes over what is about bills." });
    catalog["prompts"]["p"]["tools"] = json!(["work", "billing"]);
}

/// Which agent a request is for, by its system prompt.
fn agent(request: &crate::host::outside::ModelRequest) -> &'static str {
    if request.texts("system").first().is_some_and(|text| text.contains("bill")) {
        "billing"
    } else {
        "helper"
    }
}

async fn agent_of(sim: &Sim) -> Value {
    sim.get(ThreadRoute::Get, &[]).await["thread"].clone()
}

fn taken_over() -> Scenario {
    story("hand-off")
        .define(billing)
        .says(|request| match (agent(request), request.last_user()) {
            ("helper", "my bill") => {
                Say::call("work", &json!({})).and_call("billing", "{}").and_call("work", "{}")
            }
            (name, user) => Say::text(format!("{name}: {user}")),
        })
        .drive(|sim| async move {
            let first = sim.ask("my bill").await;
            assert_eq!(first["message"]["content"], "billing: my bill", "{first}");
            let thread = agent_of(&sim).await;
            assert_eq!(
                (&thread["agent_id"], &thread["origin_agent_id"]),
                (&json!("billing"), &json!("helper"))
            );
            sim.ask("and now").await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["billing: my bill", "billing: and now"]);
            let results = history.texts("tool");
            assert_eq!(results[1], "Handed off to \"billing\", which goes on from here.");
            let receipts =
                sim.world.database.ask::<String>("SELECT kind || ' ' || state FROM calls ORDER BY id");
            assert_eq!(receipts[1], "handoff succeeded");
            // Everything that was said before is there for the new agent.
            let requests = sim.world.outside.requests.borrow();
            assert_eq!(requests.last().unwrap().texts("user"), ["my bill", "and now"]);
            // The steps of both count together.
            let steps = sim.world.database.ask::<i64>("SELECT steps FROM runs ORDER BY id LIMIT 1");
            assert_eq!(steps, [2]);
            let told: Vec<Value> =
                sim.world.outside.siblings.borrow().iter().map(|(_, call)| call.clone()).collect();
            let newest = told.iter().rev().find(|call| call["call"] == "upsert").unwrap();
            assert_eq!(newest["row"]["agent_id"], "billing", "the directory knows: {newest}");
        })
}

#[test]
fn an_agent_that_is_called_takes_over_after_the_step() {
    taken_over().sweep();
}

fn with_an_opening() -> Scenario {
    story("hand-off with a message")
        .define(|catalog| {
            billing(catalog);
            catalog["prompts"]["p"]["tools"] =
                json!([{ "name": "billing", "initUserMessageProperty": "question" }]);
        })
        .says(|request| match (agent(request), request.last_user()) {
            ("helper", "hello") => Say::call("billing", &json!({ "question": "first?" }))
                .and_call("billing", &json!({ "question": "second?" }).to_string()),
            (name, user) => Say::text(format!("{name}: {user}")),
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|_, history| {
            // The last hand-off of a step wins, and its message is there once.
            assert_eq!(history.texts("user"), ["hello", "second?"]);
            assert_eq!(history.answers(), ["billing: second?"]);
        })
}

#[test]
fn the_last_hand_off_wins_and_brings_its_message_once() {
    with_an_opening().sweep();
}

/// `PATCH` with the agent, until it is taken.
async fn change(sim: &Sim, agent: &str) -> crate::sim::Seen {
    sim.insist(ThreadRoute::Patch, &[], None, json!({ "agent_id": agent }).to_string()).await
}

fn by_a_client() -> Scenario {
    story("another agent from outside")
        .define(|catalog| {
            billing(catalog);
            // Nobody may call it, and its two sides talk to each other.
            catalog["agents"]["pair"] = json!({ "type": "dual_ai", "maxSessionTurns": 2,
                "sideA": { "prompt": "q" }, "sideB": { "prompt": "p" } });
        })
        .says(|request| Say::text(format!("{}: {}", agent(request), request.last_user())))
        .terms(|terms| {
            // The two sides come to the end of their turns.
            terms.outcomes = vec!["completed", "failed"];
            terms.one_answer = false;
            terms.texts_repeat = true;
        })
        .drive(|sim| async move {
            sim.ask("one").await;
            let changed = change(&sim, "billing").await;
            assert_eq!((changed.status, &changed.body["agent_id"]), (200, &json!("billing")));
            sim.ask("two").await;
            assert_eq!(change(&sim, "pair").await.status, 200);
            sim.ask("three").await;
            assert_eq!(change(&sim, "helper").await.status, 200);
            sim.ask("four").await;
            let thread = agent_of(&sim).await;
            assert_eq!(
                (&thread["agent_id"], &thread["origin_agent_id"]),
                (&json!("helper"), &json!("helper"))
            );
        })
        .check(|sim, history| {
            let answers = history.answers();
            assert_eq!(answers[..3], ["helper: one", "billing: two", "billing: three"]);
            let other = history.of("user").any(|row| row["content"] == "helper: billing: three");
            assert!(other, "both sides of the pair had their turn: what was before is no turn of theirs");
            assert_eq!(answers.last(), Some(&"helper: four"), "{answers:?}");
            let told = sim.world.outside.siblings.borrow();
            let rows = told.iter().filter(|(_, call)| call["call"] == "upsert");
            let newest = rows.max_by_key(|(_, call)| call["row"]["version"].as_i64()).unwrap();
            assert_eq!(newest.1["row"]["agent_id"], "helper", "the directory knows: {newest:?}");
        })
}

#[test]
fn a_client_changes_the_agent_of_a_thread_at_rest() {
    by_a_client().sweep();
}

#[test]
fn an_agent_that_the_thread_cannot_have_is_refused() {
    story("wrong agents from outside")
        .define(|catalog| {
            billing(catalog);
            catalog["prompts"]["needy"] = json!({ "toolDescription": "d", "prompt": "Hm.", "model": "m",
                "variables": [{ "name": "CITY", "type": "text", "required": true }] });
            catalog["agents"]["needy"] = json!({ "sideA": { "prompt": "needy" } });
        })
        .says(|request| match request.results().is_empty() {
            true => Say::call("work", &json!({})),
            false => Say::text(agent(request)),
        })
        .setup(|sim| {
            super::env::var(sim, "BOBBIN_ENCRYPTION_KEYS", super::env::KEY_A);
            super::env::Directories::default().serve(sim);
        })
        .drive(|sim| async move {
            let refused = change(&sim, "nobody").await;
            assert_eq!(refused.body["error"]["code"], "agent_not_found", "{}", refused.body);
            assert_eq!(refused.body["error"]["field"], "agent_id");
            let refused = change(&sim, "needy").await;
            assert_eq!(refused.body["error"]["code"], "missing_variables", "{}", refused.body);
            let message = sim.send("hello").await;
            sim.until_executions(1).await;
            let refused = change(&sim, "billing").await;
            assert_eq!((refused.status, &refused.body["error"]["code"]), (409, &json!("conflict")));
            assert_eq!(change(&sim, "helper").await.status, 200, "it is the same");
            sim.outcome(&message).await;
            assert_eq!(agent_of(&sim).await["agent_id"], "helper");
            let given = json!({ "agent_id": "needy", "env_patch": { "CITY": "Lisbon" }, "env_type_patch": { "CITY": "text" } });
            let seen = sim.insist(ThreadRoute::Patch, &[], None, given.to_string()).await;
            assert_eq!(seen.status, 200, "{}", seen.body);
            sim.terminate().await;
            assert_eq!(change(&sim, "helper").await.body["error"]["code"], "terminated");
        })
        .calm();
}

#[test]
fn a_wrong_hand_off_is_told_plainly() {
    story("a wrong hand-off")
        .define(|catalog| {
            billing(catalog);
            catalog["agents"]["private"] = json!({ "sideA": { "prompt": "q" } });
            catalog["prompts"]["p"]["tools"] = json!(["billing", "private"]);
        })
        .says(|request| match (agent(request), request.results().len()) {
            ("helper", 0) => Say::call("billing", &json!({ "question": 1 })).and_call("private", "{}"),
            (name, _) => Say::text(name),
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
            assert_eq!(agent_of(&sim).await["agent_id"], "helper");
        })
        .check(|_, history| {
            assert_eq!(
                history.texts("tool"),
                [
                    "Invalid arguments for \"billing\": question: expected string, got integer.",
                    "There is no tool \"private\" here. Available: billing.",
                ]
            );
        })
        .calm();
}

#[test]
fn a_stop_rule_ends_the_run_and_the_hand_off_still_holds() {
    story("hand-off beside a stop tool")
        .define(|catalog| {
            billing(catalog);
            catalog["agents"]["helper"]["sideA"]["stopTool"] = json!("work");
        })
        .says(|request| match (agent(request), request.last_user()) {
            ("helper", "hello") => Say::call("billing", &json!({})).and_call("work", "{}"),
            (name, user) => Say::text(format!("{name}: {user}")),
        })
        .terms(|terms| terms.one_answer = false)
        .drive(|sim| async move {
            let outcome = sim.ask("hello").await;
            assert_eq!(outcome["reason"], "stop_tool");
            assert_eq!(agent_of(&sim).await["agent_id"], "billing");
            sim.ask("again").await;
        })
        .check(|_, history| assert_eq!(history.answers(), ["billing: again"]))
        .sweep();
}

#[test]
fn a_stop_before_the_step_is_closed_keeps_what_the_result_says() {
    story("stopped after the hand-off")
        .define(billing)
        .says(|request| match agent(request) {
            "helper" => Say::call("billing", &json!({})).and_call("work", "{}"),
            name => Say::text(name),
        })
        .terms(|terms| {
            terms.outcomes = vec!["stopped", "completed"];
            terms.one_answer = false;
            terms.overlap = true;
            terms.more_requests = 2;
        })
        .drive(|sim| async move {
            sim.send("hello").await;
            sim.until_executions(1).await;
            sim.world.pause(SECOND_US / 2).await;
            sim.stop().await;
            assert_eq!(agent_of(&sim).await["agent_id"], "billing");
        })
        .sweep();
}

#[test]
fn an_agent_that_vanished_leaves_the_thread_where_it_is() {
    story("a vanished agent")
        .define(billing)
        .says(|request| match (agent(request), request.results().len()) {
            ("helper", 0) => Say::call("billing", &json!({})).and_call("work", "{}"),
            (name, _) => Say::text(name),
        })
        .drive(|sim| async move {
            let message = sim.send("hello").await;
            sim.until_executions(1).await;
            sim.deploy(&crate::sim::catalog(&super::with_work()));
            sim.outcome(&message).await;
            assert_eq!(agent_of(&sim).await["agent_id"], "helper");
        })
        .check(|_, history| assert_eq!(history.statuses("handoff_failed").len(), 1))
        .calm();
}

#[test]
fn listeners_learn_of_the_new_agent() {
    story("agent_handoff")
        .define(billing)
        .says(|request| match agent(request) {
            "helper" => Say::call("billing", &json!({})),
            name => Say::text(name),
        })
        .drive(|sim| async move {
            let listener = sim.listen(Filter::default(), None).await.unwrap();
            sim.ask("hello").await;
            let frames = listener.frames.borrow();
            let place = |kind: &str| frames.iter().position(|frame| frame.kind == kind);
            let frame = &frames[place("agent_handoff").unwrap()];
            assert_eq!(
                (&frame.data["new_agent_id"], &frame.data["new_agent_title"]),
                (&json!("billing"), &json!("Billing"))
            );
            assert_eq!(frames.iter().filter(|frame| frame.kind == "agent_handoff").count(), 1);
        })
        .calm();
}
