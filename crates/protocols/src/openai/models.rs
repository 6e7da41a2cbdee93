//! Agents as OpenAI's clients list models.

use serde_json::Value;

use crate::request::agents;
use bobbin_definitions::definitions::{Agent, Catalog};
use bobbin_definitions::error::{Error, Result};
use bobbin_definitions::json;

/// `GET /v1/models`.
pub fn list(catalog: &Catalog) -> Value {
    let data: Vec<Value> = catalog.shown_agents().filter(|agent| agent.is_exposed()).map(model).collect();
    json!({ "object": "list", "data": data })
}

/// `GET /v1/models/:id`.
///
/// # Errors
/// `agent_not_found`.
pub fn one(catalog: &Catalog, name: &str) -> Result<Value> {
    agent(catalog, name).map(model)
}

/// The agent that a request names as its model.
///
/// # Errors
/// `agent_not_found`, with the names there are as hint.
pub fn agent<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Agent> {
    let found = catalog.shown_agent(name).filter(|agent| agent.is_exposed());
    found.ok_or_else(|| agents::not_exposed(catalog, name).at("model"))
}

/// The agent of a new conversation: the requested one, or the only one that is exposed.
///
/// # Errors
/// `agent_not_found`, `missing_field`, with the names there are as hint.
pub fn agent_of_conversation<'a>(catalog: &'a Catalog, name: Option<&str>) -> Result<&'a Agent> {
    let field = "metadata.agent";
    if let Some(name) = name {
        return agent(catalog, name).map_err(|error| error.at(field));
    }
    let mut exposed = catalog.shown_agents().filter(|agent| agent.is_exposed());
    match (exposed.next(), exposed.next()) {
        (Some(only), None) => Ok(only),
        _ => {
            let names = agents::exposed(catalog);
            let hint = format!(
                "A conversation is with an agent: name it as `agent` in `metadata`. There are: {names}."
            );
            Err(Error::missing(field).hint(hint))
        }
    }
}

fn model(agent: &Agent) -> Value {
    // Definitions have no date; clients want a number.
    json!({ "id": agent.name, "object": "model", "created": 0, "owned_by": "bobbin" })
}
