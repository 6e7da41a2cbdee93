//! Agents as clients see them: their properties and requirements, without the text of prompts and without
//! values.

use serde_json::Value;

use bobbin_definitions::definitions::{Agent, Catalog, SideConfig, Variable};
use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::json;

use crate::responses::agents::{AgentDetail, AgentList, AgentSide, AgentSummary, ListedAgent};

/// The header with the origin of the request's URL, for a thread's object.
pub const ORIGIN: &str = "x-bobbin-origin";

/// The entry of an agent in a list (spec §27.1, the `agent` of a thread). An icon that is a path gets the
/// prefix `origin`, such as `https://bobbin.example` (spec §7.1).
pub fn summary<'a>(agent: &'a Agent, origin: &str) -> AgentSummary<'a> {
    let icon = agent.icon.as_deref().map(|icon| match icon.strip_prefix('/') {
        // A path with two leading slashes names another host.
        Some(path) if !path.starts_with('/') => format!("{origin}{icon}"),
        _ => icon.to_owned(),
    });
    AgentSummary {
        name: &agent.name,
        title: agent.title.as_deref().unwrap_or(&agent.name),
        kind: agent.kind,
        description: agent.description.as_deref(),
        icon,
    }
}

/// The summary, and the publication of the agent.
fn listed<'a>(agent: &'a Agent, origin: &str) -> ListedAgent<'a> {
    ListedAgent {
        summary: summary(agent, origin),
        package_name: agent.package_name.as_deref(),
        version: agent.version.as_deref(),
        author: agent.author.as_deref(),
        license: agent.license.as_deref(),
    }
}

/// `GET /agents`: by name, with their publication. A package shows only its entry agents.
pub fn list(catalog: &Catalog, origin: &str) -> Value {
    let agents = catalog.shown_agents().map(|agent| listed(agent, origin)).collect();
    json!(AgentList { agents })
}

/// `GET /agents/:name`: the summary, the sides with their prompts' models and tools, and the variables that a
/// client may set for a thread of the agent (`env` of `POST /threads`).
///
/// # Errors
/// `agent_not_found`, with the existing names as hint.
pub fn detail(catalog: &Catalog, name: &str, origin: &str) -> Result<Value> {
    let agent = catalog.shown_agent(name).ok_or_else(|| not_found(catalog, name))?;
    let mut variables: Vec<&Variable> = agent.variables.iter().collect();
    for side in [Some(&agent.side_a), agent.side_b.as_ref()].into_iter().flatten() {
        let prompt = catalog.prompts.get(&side.prompt);
        let tools = prompt.iter().flat_map(|prompt| &prompt.tools);
        let of_tools =
            tools.filter_map(|tool| catalog.tools.get(&tool.name)).flat_map(|tool| &tool.variables);
        for variable in prompt.iter().flat_map(|prompt| &prompt.variables).chain(of_tools) {
            if variables.iter().all(|known| known.name != variable.name) {
                variables.push(variable);
            }
        }
    }
    Ok(json!(AgentDetail {
        listed: listed(agent, origin),
        side_a: side_of(catalog, &agent.side_a),
        side_b: agent.side_b.as_ref().map(|side| side_of(catalog, side)),
        max_session_turns: agent.max_session_turns,
        variables,
    }))
}

fn side_of<'a>(catalog: &'a Catalog, side: &'a SideConfig) -> AgentSide<'a> {
    let prompt = catalog.prompts.get(&side.prompt);
    AgentSide {
        label: side.label.as_deref(),
        prompt: &side.prompt,
        model: prompt.map(|prompt| prompt.model.as_str()),
        tools: prompt.iter().flat_map(|prompt| &prompt.tools).map(|tool| tool.name.as_str()).collect(),
        max_steps: side.max_steps,
        stop_on_response: side.stop_on_response,
        stop_tool: side.stop_tool.as_deref(),
    }
}

/// The error for an unknown agent.
pub fn not_found(catalog: &Catalog, name: &str) -> Error {
    let names: Vec<&str> = catalog.shown_agents().map(|agent| agent.name.as_str()).collect();
    let error = Error::new(Code::AgentNotFound, format!("No agent named “{name}”."));
    if names.is_empty() { error } else { error.hint(format!("Agents: {}.", names.join(", "))) }
}

/// The error for an agent that is not offered in protocols of other systems.
pub fn not_exposed(catalog: &Catalog, name: &str) -> Error {
    let error = Error::new(Code::AgentNotFound, format!("No agent named “{name}” is offered here."));
    error.hint(format!("There are: {}.", exposed(catalog)))
}

/// The error for a request that does not name its agent, unless there is exactly one.
pub fn which_one(catalog: &Catalog) -> Error {
    Error::missing("agent").hint(format!("Say which: /api/chat?agent=… There are: {}.", exposed(catalog)))
}

/// The names of the exposed agents, for hints.
pub fn exposed(catalog: &Catalog) -> String {
    let names = catalog.shown_agents().filter(|agent| agent.is_exposed()).map(|agent| agent.name.as_str());
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        Catalog::from_json(
            r#"{
            "models": { "m": { "provider": "demo", "model": "demo" } },
            "prompts": { "p": { "toolDescription": "d", "prompt": "TOP SECRET TEXT", "model": "m", "tools": ["t"],
                "variables": [{ "name": "CITY", "type": "text", "required": false, "description": "c" }] } },
            "tools": { "t": { "description": "d", "run": { "native": "n" },
                "variables": [{ "name": "KEY", "type": "secret", "required": true, "description": "k" }] } },
            "agents": { "helper": { "sideA": { "prompt": "p" }, "env": { "CITY": "VALUE" }, "packageName": "help", "license": "MIT" } }
        }"#,
        )
        .unwrap()
    }

    #[test]
    fn a_detail_shows_what_a_client_needs_and_no_text_or_value() {
        let detail = detail(&catalog(), "helper", "").unwrap();
        assert_eq!(detail["title"], "helper");
        assert_eq!(detail["type"], "ai_human");
        assert_eq!(detail["sideA"]["tools"], json!(["t"]));
        assert_eq!(detail["sideA"]["model"], "m");
        assert_eq!(
            (&detail["packageName"], &detail["license"], detail.get("author")),
            (&json!("help"), &json!("MIT"), None)
        );
        assert_eq!(detail["variables"][0]["name"], "CITY");
        assert_eq!(detail["variables"][1]["name"], "KEY");
        let text = detail.to_string();
        assert!(!text.contains("SECRET TEXT") && !text.contains("VALUE"), "{text}");
    }

    #[test]
    fn an_icon_that_is_a_path_becomes_an_address() {
        let shown = |icon: &str| {
            let mut catalog = catalog();
            catalog.agents.get_mut("helper").unwrap().icon = Some(icon.into());
            list(&catalog, "https://bobbin.example")["agents"][0]["icon"].as_str().unwrap().to_owned()
        };
        assert_eq!(shown("/icons/a.svg"), "https://bobbin.example/icons/a.svg");
        for other in ["https://cdn.example/a.svg", "//cdn.example/a.svg", "data:image/svg+xml,x"] {
            assert_eq!(shown(other), other);
        }
    }

    #[test]
    fn an_unknown_agent_is_answered_with_the_names_there_are() {
        let error = detail(&catalog(), "nobody", "").unwrap_err();
        assert_eq!(error.code, Code::AgentNotFound);
        assert_eq!(error.hint.as_deref(), Some("Agents: helper."));
    }
}
