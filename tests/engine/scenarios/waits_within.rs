//! Waits of calls within calls: in a prompt that is called, the call around it is parked, too; code that calls a tool cannot wait.

use bobbin::definitions::message::ToolResult;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::story;
use super::waits::{asking, decides, open, runs, until_open, with};
use crate::host::outside::ModelRequest;
use crate::host::{Native, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![in_a_prompt(), in_prompts_of_prompts()]
}

/// Prompts that call each other, the last of them `pay` and `work`.
fn prompts(catalog: &mut Value, names: &[&str]) {
    let schema =
        json!({ "type": "object", "properties": { "what": { "type": "string" } }, "required": ["what"] });
    catalog["tools"]["pay"] = asking(json!("always"));
    let entry = |name: &str| json!({ "name": name, "initUserMessageProperty": "what" });
    for (index, name) in names.iter().enumerate() {
        let tools = match names.get(index + 1) {
            Some(next) => json!([entry(next)]),
            None => json!(["work", "pay"]),
        };
        catalog["prompts"][*name] = json!({ "toolDescription": "Checks.", "prompt": format!("You are {name}."),
            "model": "m", "tools": tools, "requiredSchema": schema });
    }
    catalog["prompts"]["p"]["tools"] = json!(["work", entry(names[0])]);
}

/// Each prompt calls the next one, the last one works and pays, and the outermost repeats what came of it.
fn delegating(request: &ModelRequest) -> Say {
    let system = request.texts("system").first().cloned().unwrap_or_default();
    let within = |next: &str| Say::call(next, &json!({ "what": "the bill" }));
    if system.starts_with("You are inner") {
        return Say::text("paying").and_call("work", "{}").and_call("pay", "{}");
    }
    if system.starts_with("You are outer") {
        return within("inner");
    }
    match request.results().as_slice() {
        [] if request.last_user() == "deep" => within("outer"),
        [] => within("inner"),
        results => Say::text(format!("told: {}", results.join("|"))),
    }
}

/// What the whole of it came to: the call inside ran once, and the outermost was told.
fn paid_once(sim: &Sim, faults: usize) {
    assert!(runs(sim) <= 2, "the work and the payment, each once");
    let waits: Vec<String> = sim.member.database.ask("SELECT state FROM waits ORDER BY id");
    assert_eq!(waits, ["decided"], "it was asked once");
    let states: Vec<String> = sim
        .member
        .database
        .ask("SELECT state FROM calls WHERE state NOT IN ('succeeded', 'failed', 'indeterminate')");
    assert!(states.is_empty(), "no call is left open: {states:?}");
    assert!(runs(sim) == 2 || faults > 0);
}

fn in_a_prompt() -> Scenario {
    story("a call in a prompt that is asked about")
        .define(|catalog| prompts(catalog, &["inner"]))
        .says(delegating)
        .drive(|sim| async move {
            sim.send("hello").await;
            let waits = until_open(&sim, 1).await;
            assert_eq!(waits[0]["call"]["tool"], "pay");
            let open_calls =
                "SELECT name || ' ' || state FROM calls WHERE state IN ('started', 'waiting') ORDER BY id";
            assert_eq!(sim.member.database.ask::<String>(open_calls), ["inner started", "pay waiting"]);
            sim.world.pause(3_600 * crate::host::SECOND_US).await;
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
        })
        .check(|sim, history| {
            paid_once(sim, history.faults);
            let told = history.texts("assistant").last().copied().unwrap_or_default();
            assert!(told.starts_with("told: ") && (told.contains("w1") || history.faults > 0), "{told}");
        })
}

#[test]
fn a_call_in_a_prompt_waits_with_the_call_around_it() {
    in_a_prompt().sweep();
}

fn in_prompts_of_prompts() -> Scenario {
    story("a call in a prompt of a prompt that is asked about")
        .define(|catalog| {
            prompts(catalog, &["outer", "inner"]);
        })
        .says(delegating)
        .drive(|sim| async move {
            sim.send("deep").await;
            let waits = until_open(&sim, 1).await;
            decides(&sim, &waits[0], json!({ "decision": "deny", "reason": "not today" })).await;
        })
        .check(|sim, history| {
            assert!(runs(sim) <= 1, "what is denied never runs");
            let told = history.texts("assistant").last().copied().unwrap_or_default();
            assert!(told.contains("Denied: not today") || history.faults > 0, "{told}");
        })
}

#[test]
fn a_call_in_a_prompt_of_a_prompt_waits_with_both() {
    in_prompts_of_prompts().sweep();
}

#[test]
fn code_that_calls_a_tool_which_needs_an_approval_gets_would_wait() {
    story("code that cannot wait")
        .define(with(json!({
            "pay": asking(json!("always")),
            "locate": { "description": "Where.", "args": { "type": "object", "properties": {} }, "run": { "client": {} } },
        })))
        .define(|catalog| {
            catalog["tools"]["work"]["run"]["native"] = json!("outer");
            let args = catalog["tools"]["pay"]["args"].clone();
            catalog["tools"]["small"] = json!({ "description": "Pays little.", "args": args,
                "run": { "native": "work" }, "approval": { "mode": "when", "when": { "required": ["amount"] } } });
        })
        .setup(|sim| {
            sim.world.outside.native("outer", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    for name in ["pay", "locate"] {
                        let refused = state.invoke_tool(name, json!({})).await.unwrap();
                        assert_eq!(refused.error_code.as_deref(), Some("would_wait"));
                        assert!(refused.text().contains(&format!("\"{name}\" has to be decided on")), "{}", refused.text());
                    }
                    let refused = state.invoke_tool("small", json!({ "amount": 1 })).await.unwrap();
                    assert_eq!(refused.error_code.as_deref(), Some("would_wait"));
                    // What needs no approval runs.
                    state.invoke_tool("small", json!({})).await.unwrap_or_else(|error| ToolResult::error(error.into_message()))
                }))
            });
        })
        .drive(|sim| async move {
            assert_eq!(sim.ask("use work").await["outcome"], "completed");
            assert!(open(&sim).await.is_empty());
            let all = sim.get(ThreadRoute::ListWaits, &[("state", "all")]).await;
            assert_eq!(all["waits"], json!([]), "nobody was asked");
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool"), ["w0"]);
            assert_eq!(sim.world.outside.executions.borrow().iter().filter(|run| run.name == "work").count(), 1);
        })
        .calm();
}
