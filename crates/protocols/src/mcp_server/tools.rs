//! The tools of MCP: `ask_<agent>` for each agent that is offered, `thread_…` for operations on any thread,
//! and the folder's tools that its settings offer.

use serde_json::Value;

use crate::request::agents;
use bobbin_definitions::definitions::tier::tier;
use bobbin_definitions::definitions::{self, Agent, Catalog, Tier};
use bobbin_definitions::error::{Error, Result};
use bobbin_definitions::json;
use bobbin_definitions::signing::digest;

/// The function of a tool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tool<'a> {
    /// Sends a message to an agent and waits for the result.
    Ask(&'a Agent),
    /// The same without waiting.
    Start,
    /// Returns the state of a thread.
    Get,
    /// Answers a thread's questions.
    Respond,
    /// Stops a thread's run.
    Cancel,
    /// A tool of the folder.
    Offered(&'a definitions::Tool),
}

/// Maximum characters of a tool's name: models of several providers accept no longer ones.
const NAME_CHARS: usize = 64;
/// Characters of the hash that keeps shortened names unique.
const HASH_CHARS: usize = 8;

/// The longest time that `thread_get` waits, milliseconds.
pub const WAIT_MAX_MS: i64 = 50_000;

/// The tool of this name.
pub fn find<'a>(catalog: &'a Catalog, name: &str) -> Option<Tool<'a>> {
    match name {
        "thread_start" => return Some(Tool::Start),
        "thread_get" => return Some(Tool::Get),
        "thread_respond" => return Some(Tool::Respond),
        "thread_cancel" => return Some(Tool::Cancel),
        _ => {}
    }
    let asked =
        name.strip_prefix("ask_").and_then(|_| exposed(catalog).find(|agent| ask_name(agent) == name));
    asked.map(Tool::Ask).or_else(|| {
        let offered = catalog.settings.mcp.tools.iter().any(|tool| tool == name);
        catalog.tools.get(name).filter(|_| offered).map(Tool::Offered)
    })
}

fn exposed(catalog: &Catalog) -> impl Iterator<Item = &Agent> {
    catalog.shown_agents().filter(|agent| agent.is_exposed())
}

/// The name of an agent's tool.
fn ask_name(agent: &Agent) -> String {
    let name = format!("ask_{}", agent.name);
    match name.get(..NAME_CHARS - HASH_CHARS - 1) {
        Some(start) if name.len() > NAME_CHARS => {
            let hash = digest(&[&agent.name]);
            format!("{start}_{}", hash.get(..HASH_CHARS).unwrap_or_default())
        }
        _ => name,
    }
}

/// The parts of the tools that do not depend on agents: for `ask_<agent>`, and the other tools.
const KNOWN: &str = include_str!("tools.json");

/// `tools/list`.
///
/// # Errors
/// `internal`: the file with the tools cannot be parsed.
pub fn list(catalog: &Catalog, origin: &str) -> Result<Value> {
    let mut known: Value = bobbin_definitions::json::from_str(KNOWN).map_err(Error::internal)?;
    let names: Vec<Value> = exposed(catalog).map(|agent| agent.name.as_str().into()).collect();
    if let Some(agent) = known.pointer_mut("/threads/0/inputSchema/properties/agent") {
        set(agent, "enum", names.into());
    }
    let of_ask = known.get("ask").cloned().unwrap_or_default();
    let mut tools: Vec<Value> = exposed(catalog).map(|agent| ask(agent, origin, of_ask.clone())).collect();
    if let (false, Some(Value::Array(threads))) = (tools.is_empty(), known.get_mut("threads")) {
        tools.append(threads);
    }
    let offered = catalog.settings.mcp.tools.iter().filter_map(|name| catalog.tools.get(name));
    tools.extend(offered.map(of_folder));
    Ok(json!({ "tools": tools }))
}

/// A tool of the folder.
fn of_folder(tool: &definitions::Tool) -> Value {
    let reads = tier(tool) == Tier::ReadOnly;
    json!({
        "name": tool.name, "description": tool.description,
        "inputSchema": tool.args.clone().unwrap_or_else(|| json!({ "type": "object" })),
        "annotations": { "readOnlyHint": reads, "idempotentHint": tool.idempotent.unwrap_or(reads) },
    })
}

fn ask(agent: &Agent, origin: &str, mut tool: Value) -> Value {
    let title = agent.title.as_deref().unwrap_or(&agent.name);
    let about = agent.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
    set(&mut tool, "name", ask_name(agent).into());
    set(&mut tool, "title", title.into());
    set(&mut tool, "description", format!("Asks the agent {title} and waits for its answer{about}").into());
    let shown = agents::summary(agent, origin);
    if let Some(icon) = shown.icon.as_deref().filter(|icon| icon.starts_with("http")) {
        set(&mut tool, "icons", json!([{ "src": icon }]));
    }
    tool
}

fn set(value: &mut Value, name: &str, field: Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(name.to_owned(), field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_the_tools_is_of_those_that_there_are() {
        let known: Value = bobbin_definitions::json::from_str(KNOWN).unwrap();
        let catalog = Catalog::default();
        for tool in known["threads"].as_array().unwrap() {
            assert!(find(&catalog, tool["name"].as_str().unwrap()).is_some(), "{tool}");
        }
        let longest = &known["threads"][1]["inputSchema"]["properties"]["wait_ms"]["maximum"];
        assert_eq!(longest, &json!(WAIT_MAX_MS));
    }
}
