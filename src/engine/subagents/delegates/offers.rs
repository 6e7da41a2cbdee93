//! The definitions of the worker tools for models.

use serde_json::Value;

use crate::definitions::subagent::{CLOSE, OF_WORKERS, SEND, SPAWN, WAIT};
use crate::definitions::{Catalog, Workers, schema};
use crate::json;
use crate::limits;
use crate::models::ToolDefinition;

/// The definitions of the offered tools, with the prompt's settings for workers.
pub(crate) fn offers<'a>(
    catalog: &'a Catalog,
    workers: &'a Workers,
    offered: &'a [&'static str],
) -> impl Iterator<Item = ToolDefinition> + 'a {
    OF_WORKERS.into_iter().filter(|name| offered.contains(name)).map(|name| {
        let mut parameters = parameters(name);
        if let Some(agent) = parameters.pointer_mut("/properties/agent").and_then(Value::as_object_mut) {
            agent.insert("enum".into(), json!(workers.agents));
        }
        let (parameters, strict) = schema::strict(&parameters);
        ToolDefinition {
            name: name.to_owned(),
            description: described(catalog, workers, name),
            parameters,
            strict,
        }
    })
}

fn described(catalog: &Catalog, workers: &Workers, name: &str) -> String {
    match name {
        SPAWN => {
            let mut lines = String::new();
            for name in &workers.agents {
                let agent = catalog.agents.get(name);
                let text = agent.and_then(|agent| agent.tool_description.as_ref().or(agent.description.as_ref()));
                let text = text.map_or(String::new(), |text| format!(": {text}"));
                lines.push_str(&format!("\n- {name}{text}"));
            }
            format!(
                "Makes a worker: an agent that works in a thread of its own and knows nothing of this one. It returns at once; \
                 {WAIT} gives what the worker came to. At most {} are there at the same time; {CLOSE} makes room. Agents:{lines}",
                workers.max_active
            )
        }
        SEND => "Writes to a worker, and waits for what comes of it unless `wait` is false.".to_owned(),
        WAIT => "Waits until workers have done what they were told, all of them or any one, and gives what they came to."
            .to_owned(),
        _ => "Ends a worker for good, and makes room for another. What it came to is lost if nobody has waited for it."
            .to_owned(),
    }
}

/// The JSON Schema of a tool's arguments.
pub(super) fn parameters(tool: &str) -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let texts = |description: &str| json!({ "type": "array", "items": { "type": "string" }, "description": description });
    let (properties, required) = match tool {
        SPAWN => (
            json!({
                "agent": text("Which agent."),
                "agentId": text("An id to call it by; one is given to it otherwise."),
                "name": text("A short label that tells it from others."),
                "description": text("What it is there for."),
                "message": text("What it is to do, with all that it must know. Without it, it waits to be written to."),
                "tools": texts("The only tools that it may call, out of its own; all of them unless given."),
                "budget": {
                    "type": "object", "additionalProperties": false,
                    "description": "What it may hold of what is left of the budget here; a quarter unless given.",
                    "properties": {
                        "maxCostUsd": { "type": "number", "description": "USD at most." },
                        "share": { "type": "number", "description": "From 0 to 1." },
                    },
                },
            }),
            json!(["agent"]),
        ),
        SEND => (
            json!({
                "agentId": text("The worker."),
                "message": text("What to tell it."),
                "attachments": texts("Paths of files of this thread that it gets copies of."),
                "wait": { "type": "boolean", "description": "Whether to wait for what comes of it; true unless given." },
                "queue": { "type": "boolean",
                    "description": "Whether it may be written to while it works: it reads this with its next step." },
            }),
            json!(["agentId", "message"]),
        ),
        WAIT => {
            let most = limits::WAIT_US / limits::SECOND_US;
            (
                json!({
                    "agentIds": { "type": "array", "items": { "type": "string" }, "minItems": 1,
                        "maxItems": limits::WORKERS, "description": "The workers." },
                    "for": { "type": "string", "enum": ["all", "any"],
                        "description": "Whether all of them must have ended, or any one that you have not heard of; all unless given." },
                    "timeoutSeconds": { "type": "integer", "minimum": 0, "maximum": most,
                        "description": "How long to wait; 0 gives what is known now. Seven days unless given." },
                }),
                json!(["agentIds"]),
            )
        }
        _ => (json!({ "agentId": text("The worker.") }), json!(["agentId"])),
    };
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
