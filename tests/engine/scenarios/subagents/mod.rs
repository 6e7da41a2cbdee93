//! Subagents (spec §8, §24): families of threads, with every way to fail at every point, in one object and in all.

mod asking;
mod blocking;
mod ends;
mod lending;
mod open;
mod resumable;
mod ten;
mod told;
mod tree;
mod workers;
mod workers_end;

use serde_json::{Value, json};

use super::work;
use crate::contract::History;
use crate::host::outside::ModelRequest;
use crate::host::{SECOND_US, Say};
use crate::sim::{Sim, native};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    let mut all = Vec::new();
    all.extend(asking::all());
    all.extend(blocking::all());
    all.extend(open::all());
    all.extend(resumable::all());
    all.extend(ten::all());
    all.extend(tree::all());
    all.extend(told::all());
    all.extend(ends::all());
    all.extend(lending::all());
    all.extend(workers::all());
    all.extend(workers_end::all());
    all
}

/// An agent of two sides that says one thing and is done; its side A may use these tools.
fn agent(catalog: &mut Value, name: &str, tools: &Value) {
    let schema = json!({ "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"] });
    catalog["prompts"][name] = json!({ "toolDescription": "Asks.", "prompt": format!("You are {name}."), "model": "m",
        "includeChat": true, "includePastTools": true, "tools": tools, "requiredSchema": schema });
    catalog["prompts"][format!("{name}_other")] = json!({ "toolDescription": "Checks.", "model": "m",
        "prompt": format!("You check {name}."), "includeChat": true, "tools": [] });
    catalog["agents"][name] = json!({ "type": "dual_ai", "title": name, "exposeAsTool": true,
        "toolDescription": format!("Does {name}."), "maxSessionTurns": 1,
        "sideA": { "prompt": name }, "sideB": { "prompt": format!("{name}_other") } });
}

/// What the thread of the story may call.
fn lists(catalog: &mut Value, tools: Value) {
    catalog["prompts"]["p"]["tools"] = tools;
}

/// An entry whose calls are waited for.
fn waits(name: &str) -> Value {
    json!({ "name": name, "initUserMessageProperty": "q" })
}

/// An entry whose calls are not.
fn goes_on(name: &str) -> Value {
    json!({ "name": name, "initUserMessageProperty": "q", "blocking": false })
}

/// A model that does as its last user message says: `say X` says X; `call NAME ARGS` calls a tool and says
/// `got: <results>`; `all [[NAME, ARGS], …]` calls several in one reply; what a subagent says is noted.
fn office(request: &ModelRequest) -> Say {
    let said = request.last_user();
    let results = request.results();
    if said.starts_with("Subagent ") {
        return Say::text("noted");
    }
    if let Some(text) = said.strip_prefix("say ") {
        return Say::text(text).chunks(2);
    }
    if !results.is_empty() {
        return Say::text(format!("got: {}", results.join(" | ")));
    }
    if let Some((name, args)) = said.strip_prefix("call ").and_then(|call| call.split_once(' ')) {
        return Say::default().and_call(name, args);
    }
    if let Some(calls) = said.strip_prefix("all ") {
        let calls: Vec<(String, Value)> = serde_json::from_str(calls).unwrap();
        return calls.iter().fold(Say::default(), |say, (name, args)| say.and_call(name, &args.to_string()));
    }
    Say::text(format!("re: {said}"))
}

/// A story with the office, the tool `work`, and the tool `nap`, which takes three seconds.
fn story(name: &'static str) -> Scenario {
    let tools = json!({ "work": native(false), "nap": {
        "description": "Waits.", "args": { "type": "object", "properties": {} }, "run": { "native": "nap" },
        "idempotent": true } });
    Scenario::new(name, &tools).says(office).setup(work).setup(|sim| {
        sim.world.outside.native("nap", |_, _| {
            let result = bobbin::definitions::message::ToolResult::success("rested");
            crate::host::Native::Gives(3 * SECOND_US, result)
        });
    })
}

/// Whether every thread of the family has done what there is to do.
fn at_rest(sim: &Sim) -> bool {
    let none = |sim: &Sim, question: &str| sim.member.database.ask::<i64>(question) == [0];
    sim.family().iter().all(|thread| {
        none(thread, "SELECT count(*) FROM runs WHERE phase != 'ended'")
            && none(thread, "SELECT count(*) FROM outbox WHERE target LIKE 't:%'")
            && none(thread, "SELECT count(*) FROM children WHERE state = 'creating'")
    })
}

/// Waits until the family is at rest, looking so often.
async fn settled(sim: &Sim, every_us: i64) {
    for _ in 0..20_000 {
        if at_rest(sim) {
            return;
        }
        sim.world.pause(every_us).await;
    }
    sim.world.fail("the family never comes to rest");
}

/// Sends this and waits until all that follows has happened.
async fn tell(sim: &Sim, text: &str) {
    sim.send(text).await;
    settled(sim, SECOND_US / 20).await;
}

/// References of the children, oldest first.
fn references(sim: &Sim) -> Vec<String> {
    sim.member.database.ask("SELECT reference FROM children ORDER BY created_us, reference")
}

/// States of the children, oldest first, with their status.
fn states(sim: &Sim) -> Vec<String> {
    sim.member.database.ask("SELECT state || ' ' || status FROM children ORDER BY created_us, reference")
}

/// What subagents have said in messages, oldest first.
fn heard(history: &History) -> Vec<&str> {
    let of_child = |m: &&Value| m["metadata"]["subagent_id"].is_string();
    history.messages.iter().filter(of_child).filter_map(|m| m["content"].as_str()).collect()
}

/// How many of these texts contain this.
fn times(texts: &[&str], part: &str) -> usize {
    texts.iter().filter(|text| text.contains(part)).count()
}
