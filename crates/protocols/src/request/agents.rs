//! Agents as clients see them: their properties and requirements, without the text of prompts and without
//! values.

use serde_json::Value;

use bobbin_definitions::definitions::{Agent, Catalog, Variable};
use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::json;

/// The header with the origin of the request's URL, for a thread's object.
pub const ORIGIN: &str = "x-bobbin-origin";

/// The entry of an agent in a list: `{name, title, type, description, icon}` (spec §27.1, the `agent` of a
/// thread). An icon that is a path gets the prefix `origin`, such as `https://bobbin.example` (spec §7.1).
pub fn summary(agent: &Agent, origin: &str) -> Value {
    let icon = agent.icon.as_deref().map(|icon| match icon.strip_prefix('/') {
        // A path with two leading slashes names another host.
        Some(path) if !path.starts_with('/') => format!("{origin}{icon}"),
        _ => icon.to_owned(),
    });
    json!({
        "name": agent.name,
        "title": agent.title.as_deref().unwrap_or(&agent.name),
        "type": agent.kind,
        "description": agent.description,
        "icon": icon,
    })
}

/// The summary, and the publication of the agent.
fn listed(agent: &Agent, origin: &str) -> Value {
    let mut listed = summary(agent, origin);
    let package = [
        ("packageName", &agent.package_name),
        ("version", &agent.version),
        ("author", &agent.author),
        ("license", &agent.license),
    ];
    for (field, value) in package {
        if value.is_some() {
            set(&mut listed, field, json!(value));
        }
    }
    listed
}

/// `GET /agents`: `{agents: [summary]}`, by name, with their publication. A package shows only its entry
/// agents.
pub fn list(catalog: &Catalog, origin: &str) -> Value {
    let agents: Vec<Value> = catalog.shown_agents().map(|agent| listed(agent, origin)).collect();
    json!({ "agents": agents })
}

/// `GET /agents/:name`: the summary, the sides with their prompts' models and tools, and the variables that a
/// client may set for a thread of the agent (`env` of `POST /threads`).
///
/// # Errors
/// `agent_not_found`, with the existing names as hint.
pub fn detail(catalog: &Catalog, name: &str, origin: &str) -> Result<Value> {
    let agent = catalog.shown_agent(name).ok_or_else(|| not_found(catalog, name))?;
    let mut detail = listed(agent, origin);
    let mut variables: Vec<&Variable> = agent.variables.iter().collect();
    for (field, side) in [("sideA", Some(&agent.side_a)), ("sideB", agent.side_b.as_ref())] {
        let Some(side) = side else { continue };
        let prompt = catalog.prompts.get(&side.prompt);
        let tools: Vec<&str> =
            prompt.iter().flat_map(|prompt| &prompt.tools).map(|tool| tool.name.as_str()).collect();
        set(
            &mut detail,
            field,
            json!({
                "label": side.label,
                "prompt": side.prompt,
                "model": prompt.map(|prompt| &prompt.model),
                "tools": tools,
                "maxSteps": side.max_steps,
                "stopOnResponse": side.stop_on_response,
                "stopTool": side.stop_tool,
            }),
        );
        let of_tools =
            tools.iter().filter_map(|name| catalog.tools.get(*name)).flat_map(|tool| &tool.variables);
        for variable in prompt.iter().flat_map(|prompt| &prompt.variables).chain(of_tools) {
            if variables.iter().all(|known| known.name != variable.name) {
                variables.push(variable);
            }
        }
    }
    set(&mut detail, "maxSessionTurns", json!(agent.max_session_turns));
    set(&mut detail, "variables", json!(variables));
    Ok(detail)
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

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(field.to_owned(), value);
    }
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
