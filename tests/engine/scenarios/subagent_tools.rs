//! What a model is offered of subagents, and what becomes of calls that are wrong (spec §8.2–§8.4).

use bobbin::definitions::message::ToolResult;
use serde_json::{Value, json};

use super::{clerk, story};
use crate::host::outside::ModelRequest;
use crate::host::{Native, SECOND_US, Say};
use crate::sim::{Sim, THREAD};
use crate::sweep::Scenario;

/// Agents `writer` (arguments: tone), `reader` and `coder`, which end with what the message says.
fn agents(catalog: &mut Value) {
    let schema =
        json!({ "type": "object", "properties": { "tone": { "type": "string" } }, "required": ["tone"] });
    let prompt = |text: &str| json!({ "toolDescription": "d", "prompt": text, "model": "m", "includeChat": true, "tools": ["end"] });
    catalog["prompts"]["child"] = prompt("You are a child.");
    catalog["prompts"]["written"] = prompt("You are a child.");
    catalog["prompts"]["written"]["requiredSchema"] = schema;
    catalog["prompts"]["judge"] = prompt("You judge.");
    catalog["tools"]["end"] = json!({ "description": "Ends.", "run": { "native": "end" } });
    for (name, prompt) in [("writer", "written"), ("reader", "child"), ("coder", "child")] {
        catalog["agents"][name] = json!({ "type": "dual_ai", "exposeAsTool": true, "maxSessionTurns": 4,
            "toolDescription": format!("The {name}."), "sideA": { "prompt": prompt, "sessionStop": "end" },
            "sideB": { "prompt": "judge" } });
    }
}

fn resumable(name: &str) -> Value {
    json!({ "name": name, "blocking": false,
        "resumable": { "receives_messages": "side_a", "maxInstances": 2, "parentCommunication": "explicit" } })
}

/// A parent that makes the calls which the last message holds, and children that end at once.
fn family(name: &'static str, tools: Value) -> Scenario {
    story(name)
        .define(move |catalog| {
            agents(catalog);
            catalog["prompts"]["p"]["tools"] = tools.clone();
        })
        .setup(|sim| {
            sim.world.outside.native("end", |_, _| Native::Gives(SECOND_US, ToolResult::success("ended")));
        })
        .says(|request| match request.system() {
            "You are a child." if request.results().is_empty() => Say::call("end", &json!({})),
            "You are a child." => Say::text("done"),
            _ => parent(request),
        })
}

fn parent(request: &ModelRequest) -> Say {
    let last = request.last_user();
    match serde_json::from_str::<Vec<(String, Value)>>(last) {
        Ok(calls) if request.results().is_empty() => {
            calls.iter().fold(Say::default(), |say, (name, args)| say.and_call(name, &args.to_string()))
        }
        Ok(_) => Say::text(request.results().join("|")),
        Err(_) => clerk(request),
    }
}

/// Calls, as the parent makes them; what came of them.
async fn calls(sim: &Sim, calls: Value) -> Vec<String> {
    let answer = sim.ask(&calls.to_string()).await;
    let text = answer["message"]["content"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    text.split('|').map(str::to_owned).collect()
}

/// Names of the tools in the parent's newest request.
fn offered(sim: &Sim) -> Vec<String> {
    let requests = sim.world.outside.requests.borrow();
    let own = requests.iter().rev().find(|request| request.thread == THREAD).unwrap();
    let tools = own.body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn described(sim: &Sim, name: &str) -> String {
    let requests = sim.world.outside.requests.borrow();
    let own = requests.iter().rev().find(|request| request.thread == THREAD).unwrap();
    let tools = own.body["tools"].as_array().cloned().unwrap_or_default();
    let tool = tools.iter().find(|tool| tool["function"]["name"] == name).unwrap();
    tool["function"]["description"].as_str().unwrap().to_owned()
}

/// References of the children, by their names.
fn children(sim: &Sim) -> Vec<String> {
    sim.world.database.ask("SELECT reference FROM children ORDER BY json_extract(facts, '$.name')")
}

fn create(agent: &str, name: &str) -> Value {
    json!(["subagent_create", { "agent": agent, "message": "Go.", "attachments": [], "name": name }])
}

#[test]
fn subagent_message_is_offered_while_there_is_one_to_write_to() {
    family("offers of a family", json!(["work", resumable("reader")]))
        .drive(|sim| async move {
            sim.ask("hello").await;
            assert_eq!(offered(&sim), ["work", "subagent_create"]);
            let told = calls(&sim, json!([create("reader", "Ann"), create("reader", "Bob")])).await;
            let made = children(&sim);
            assert!(told[0].contains(&made[0]) && told[1].contains(&made[1]), "{told:?}");
            sim.ask("hello").await;
            assert_eq!(offered(&sim), ["work", "subagent_create", "subagent_message"]);
            let described = described(&sim, "subagent_message");
            for (reference, name) in made.iter().zip(["Ann", "Bob"]) {
                assert!(described.contains(&format!("- {reference} \"{name}\" (reader)")), "{described}");
            }
            let words = json!(["subagent_message",
                { "referenceId": made[1], "message": "More.", "attachments": [] }]);
            let told = calls(&sim, json!([create("reader", "Cleo"), words])).await;
            assert!(told[0].starts_with("\"reader\" was not created: 2 of it are active"), "{told:?}");
            assert!(told[0].contains(&made[0]) && told[1].contains(&made[1]), "{told:?}");
            for reference in &made {
                sim.of(reference).terminate().await;
            }
            sim.until("they are known to be gone", |sim| {
                sim.world.database.ask::<i64>("SELECT count(*) FROM children WHERE open = 1") == [0]
            })
            .await;
            sim.ask("hello").await;
            assert_eq!(offered(&sim), ["work", "subagent_create"]);
        })
        .calm();
}

#[test]
fn an_optional_subagent_is_there_while_its_variable_says_so() {
    let optional =
        |name: &str, resumable: Value| json!({ "name": name, "optional": "WITH", "resumable": resumable });
    let listed = json!([
        "work",
        optional("coder", json!(false)),
        optional("reader", resumable("")["resumable"].clone())
    ]);
    family("an optional subagent", listed)
        .drive(|sim| async move {
            let with = |value: &str| sim.world.vars.borrow_mut().insert("WITH".into(), value.into());
            let all = ["work", "coder", "subagent_create"];
            for (value, there) in [
                ("", 1),
                ("no", 1),
                ("true", 3),
                ("truely", 1),
                (" Yes ", 3),
                ("1", 3),
                ("10", 1),
                ("TRUE", 3),
            ] {
                with(value);
                sim.ask("hello").await;
                assert_eq!(offered(&sim), all[..there], "{value:?}");
            }
            with("off");
            let told =
                calls(&sim, json!([["coder", {}], create("reader", "Ann"), ["subagent_message", {}]])).await;
            let unknown = |name: &str| format!("There is no tool \"{name}\" here. Available: work.");
            assert_eq!(told, [unknown("coder"), unknown("subagent_create"), unknown("subagent_message")]);
            assert_eq!(children(&sim).len(), 0);
        })
        .calm();
}

#[test]
fn a_wrong_call_of_a_subagent_is_told_plainly() {
    family("wrong calls of subagents", json!(["coder", resumable("reader"), resumable("writer")]))
        .drive(|sim| async move {
            let reader = ["reader", "{}"];
            let message = json!({ "referenceId": "nobody", "message": "On.", "attachments": [] });
            let told = calls(
                &sim,
                json!([reader, create("coder", "Ann"), create("writer", "Ann"), ["subagent_message", message], ["end", {}]]),
            )
            .await;
            assert_eq!(
                told,
                [
                    "\"reader\" is not called by its name: create it with subagent_create, `agent`: \"reader\".",
                    "\"coder\" is not created with subagent_create: call it by its name.",
                    "`arguments` do not fit \"writer\": tone: required but missing.",
                    "There is no active subagent \"nobody\". Use the reference that subagent_create gave.",
                    "There is no tool \"end\" here. Available: coder, subagent_create.",
                ]
            );
            assert_eq!(children(&sim).len(), 0);
        })
        .calm();
}

#[test]
fn code_creates_and_writes_to_subagents_by_the_same_tools() {
    family("subagents by code", json!(["work", resumable("reader")]))
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    let create = |name: &str| json!({ "agent": "reader", "message": "Go.", "attachments": [], "name": name });
                    let made = state.invoke_tool("subagent_create", create("Ann")).await.unwrap();
                    let wrong = state.invoke_tool("subagent_create", create(" ")).await.unwrap();
                    state.queue_tool("subagent_create", create("Bob")).unwrap();
                    ToolResult::success(format!("{}; {}", made.text(), wrong.text()))
                }))
            });
        })
        .drive(|sim| async move {
            let answer = sim.ask("use work").await;
            sim.until("both are made", |sim| children(sim).len() == 2).await;
            let text = answer["message"]["content"].as_str().unwrap();
            assert!(text.contains(&children(&sim)[0]), "{text}");
            assert!(text.contains("; `name` must be a text that is not blank"), "{text}");
        })
        .calm();
}

#[test]
fn subagents_that_nobody_calls_cost_no_statement() {
    let cost = |tools: Value| {
        let spent = std::rc::Rc::new(std::cell::Cell::new(0));
        let place = spent.clone();
        family("subagents that nobody calls", tools)
            .terms(|terms| terms.one_answer = false)
            .drive(move |sim| {
                let place = place.clone();
                async move {
                    sim.ask("hello").await;
                    sim.until("idle", |sim| sim.world.executor.waiting(false).is_empty()).await;
                    let (_, counted) = sim
                        .spent(async {
                            sim.ask("again").await;
                            sim.until("idle", |sim| sim.world.executor.waiting(false).is_empty()).await;
                        })
                        .await;
                    place.set(counted.statements);
                }
            })
            .calm();
        spent.get()
    };
    let optional = json!({ "name": "coder", "optional": "WITH" });
    assert_eq!(cost(json!(["work"])), cost(json!(["work", optional, resumable("reader")])));
}
