//! The tool definitions for the subagents that a prompt lists (spec §8.2–§8.4). A one-shot subagent is a tool
//! under its own name, among the other tools. Resumable ones share two tools of the runtime.
//! `subagent_create` takes the place of the first of them. `subagent_message` comes last, and only while
//! there is a child to message.

use serde_json::Value;

use crate::definitions::schema::required;
use crate::definitions::subagent::{CREATE, MESSAGE};
use crate::definitions::{Callable, Catalog, ParentCommunication, ToolEntry, Workers, schema};
use crate::engine::definitions::Definitions;
use crate::engine::ephemeral::request_parts::Family;
use crate::engine::features::Subagents;
use crate::engine::subagents::arguments::{agent, arguments_of};
use crate::engine::subagents::delegates::offers::offers as worker_offers;
use crate::engine::subagents::shown::listed;
use crate::error::Result;
use crate::json;
use crate::models::ToolDefinition;
use crate::store::children::{Child, ChildState};

/// The maximum number of references in a list.
const LISTED: usize = 50;

impl Subagents<'_> {
    /// Whether the prompt offers an entry (spec §8.2) and the thread may call it.
    pub(crate) fn is_on(&self, definitions: &Definitions<'_>, entry: &ToolEntry) -> bool {
        // On a read error the entry is off. The caller reads again and reports the error.
        if !self.delegates().permits(&entry.name).unwrap_or(false) {
            return false;
        }
        entry.optional.as_ref().is_none_or(|name| {
            let value = self.variables().tool_env(definitions, entry, name).unwrap_or_default();
            ["true", "1", "yes"].iter().any(|yes| value.trim().eq_ignore_ascii_case(yes))
        })
    }

    /// The thread's state on which a prompt's tool definitions depend.
    pub(crate) fn family(&self, definitions: &Definitions<'_>) -> Result<Family> {
        let mut family = Family { leads: self.delegates().leads(definitions.prompt)?, ..Family::default() };
        let mut resumable = false;
        for (place, entry) in definitions.prompt.tools.iter().enumerate() {
            if !self.is_on(definitions, entry) {
                family.off.push(place);
            } else if entry.resumable.is_some() {
                resumable = true;
            }
        }
        if resumable {
            let addressed = |child: &&Child| {
                child.facts.resumable && child.state != ChildState::Pending && !child.is_worker()
            };
            self.read_mut(|state, sql| {
                let mut open: Vec<&Child> = state.open_children(sql)?.iter().filter(addressed).collect();
                // Stable order: new children are cached in order of creation, others as read.
                open.sort_by_key(|child| (child.created_us, &child.reference));
                family.children = open.iter().take(LISTED).map(|child| listed(child)).collect();
                family.more = open.len().saturating_sub(LISTED);
                Ok(())
            })?;
        }
        Ok(family)
    }
}

/// The tool definitions for the entries that are on.
pub(crate) fn offers(
    catalog: &Catalog,
    entries: &[ToolEntry],
    workers: Option<&Workers>,
    family: &Family,
) -> Vec<ToolDefinition> {
    let mut offers = Vec::with_capacity(entries.len());
    let resumable: Vec<&ToolEntry> = family.on(entries).filter(|entry| entry.resumable.is_some()).collect();
    for entry in family.on(entries) {
        if resumable.first().is_some_and(|first| first.name == entry.name) {
            offers.extend(create(catalog, &resumable));
        }
        if entry.resumable.is_none()
            && let Some(callable) = catalog.callable(&entry.name)
        {
            offers.push(own(callable));
        }
    }
    if !family.children.is_empty() {
        offers.push(message(family));
    }
    if let Some(workers) = workers {
        offers.extend(worker_offers(catalog, workers, &family.leads));
    }
    declare(catalog, entries, &mut offers);
    offers
}

/// Adds declarations of the callable tools to the description of the tool that runs a model's code.
fn declare(catalog: &Catalog, entries: &[ToolEntry], offers: &mut [ToolDefinition]) {
    let runs_code = |offer: &&mut ToolDefinition| {
        let tool = catalog.tools.get(&offer.name);
        tool.is_some_and(|tool| crate::definitions::execute_code::runs(&tool.run))
    };
    let Some(own) = offers.iter_mut().find(runs_code).map(|offer| offer.name.clone()) else { return };
    let others = offers.iter().filter(|offer| offer.name != own);
    let declared = crate::work::native::tools::execute::declarations::declarations(others.map(|offer| {
        crate::work::native::tools::execute::declarations::ToolDeclaration {
            name: &offer.name,
            description: &offer.description,
            // The schema as written. The offer's strict schema makes every property required.
            schema: catalog
                .callable(&offer.name)
                .map_or(Some(&offer.parameters), |callable| callable.schema()),
        }
    }));
    let options = entries.iter().find(|entry| entry.name == own).map(|entry| &entry.options);
    // Invalid options are reported when the tool is called.
    let settings =
        options.and_then(|options| crate::definitions::execute_code_options::Settings::of(options).ok());
    let reach = settings
        .map(|settings| crate::work::native::tools::execute::declarations::reach(settings.allowed_hosts()))
        .unwrap_or_default();
    let Some(offer) = offers.iter_mut().find(|offer| offer.name == own) else { return };
    for text in [declared, reach].iter().filter(|text| !text.is_empty()) {
        offer.description.push_str("\n\n");
        offer.description.push_str(text);
    }
}

/// The tool definition of a callable under its own name.
fn own(callable: Callable<'_>) -> ToolDefinition {
    let (parameters, strict, description) = callable.offer();
    ToolDefinition {
        name: callable.name().to_owned(),
        description: description.into_owned(),
        parameters,
        strict,
    }
}

fn offer(name: &str, description: String, parameters: &Value) -> ToolDefinition {
    let (parameters, strict) = schema::strict(parameters);
    ToolDefinition { name: name.to_owned(), description, parameters, strict }
}

fn create(catalog: &Catalog, entries: &[&ToolEntry]) -> Option<ToolDefinition> {
    let mut names = Vec::new();
    let mut lines = String::new();
    let mut schemas: Vec<Value> = Vec::new();
    // Whether every entry requires arguments.
    let mut always = true;
    for entry in entries {
        let Some(agent) = agent(catalog, &entry.name) else { continue };
        names.push(entry.name.as_str());
        let arguments = arguments_of(catalog, agent, entry);
        let description = agent.tool_description.as_deref().unwrap_or_default();
        let about = [how(entry), &cap(entry), &spelled(arguments)].join("");
        lines.push_str(&format!("\n- {}: {description} [{about}]", entry.name));
        let fields = arguments.and_then(Value::as_object);
        always &= fields.is_some_and(|schema| required(schema).next().is_some());
        if let Some(schema) = arguments {
            let (mut schema, _) = schema::strict(schema);
            if let Some(fields) = schema.as_object_mut() {
                fields.entry("description").or_insert_with(|| format!("Of \"{}\".", entry.name).into());
            }
            if !schemas.contains(&schema) {
                schemas.push(schema);
            }
        }
    }
    if names.is_empty() {
        return None;
    }
    let description = format!(
        "Creates a subagent: an agent that works in a thread of its own, knows nothing of this one, and can be written to \
         again with {MESSAGE}. The result gives its reference. Agents:{lines}"
    );
    let mut parameters = json!({
        "type": "object",
        "properties": {
            "agent": { "type": "string", "enum": names, "description": "Which agent." },
            "message": { "type": "string", "description": "What it is to do, with all that it must know." },
            "attachments": attachments(),
            "name": { "type": "string", "description": "A short label that tells it from others." },
        },
        "required": ["agent", "message", "attachments", "name"],
        "additionalProperties": false,
    });
    let one = if schemas.len() > 1 { Some(json!({ "anyOf": schemas })) } else { schemas.pop() };
    if let Some(arguments) = one {
        if let Some(properties) = parameters.pointer_mut("/properties").and_then(Value::as_object_mut) {
            properties.insert("arguments".to_owned(), arguments);
        }
        if let Some(required) =
            parameters.get_mut("required").and_then(Value::as_array_mut).filter(|_| always)
        {
            required.push("arguments".into());
        }
    }
    Some(offer(CREATE, description, &parameters))
}

fn message(family: &Family) -> ToolDefinition {
    let mut lines = String::new();
    for child in &family.children {
        lines.push_str(&format!("\n- {child}"));
    }
    if family.more > 0 {
        lines.push_str(&format!("\n- and {} more", family.more));
    }
    let description = format!(
        "Writes to a subagent that was created with {CREATE}, whether it works or waits. Active now:{lines}"
    );
    let parameters = json!({
        "type": "object",
        "properties": {
            "referenceId": { "type": "string", "description": "Its reference." },
            "message": { "type": "string", "description": "What to tell it." },
            "attachments": attachments(),
        },
        "required": ["referenceId", "message", "attachments"],
        "additionalProperties": false,
    });
    offer(MESSAGE, description, &parameters)
}

fn attachments() -> Value {
    json!({ "type": "array", "items": { "type": "string" },
        "description": "Paths of files of this thread that it gets copies of; [] for none." })
}

/// A hint for the model about how a subagent answers.
fn how(entry: &ToolEntry) -> &'static str {
    let explicit = |resumable: &crate::definitions::Resumable| {
        resumable.parent_communication == ParentCommunication::Explicit
    };
    match (entry.blocks(), entry.resumable.as_ref().is_some_and(explicit)) {
        (true, _) => "each call waits for its answer",
        (false, false) => "its answers arrive as messages",
        (false, true) => "it writes when it has something to say",
    }
}

fn cap(entry: &ToolEntry) -> String {
    let most = entry.resumable.as_ref().and_then(|resumable| resumable.max_instances);
    most.map_or(String::new(), |most| format!("; at most {most} at a time"))
}

/// The arguments of a schema on one line.
fn spelled(schema: Option<&Value>) -> String {
    let schema = schema.and_then(Value::as_object);
    let known = schema.and_then(|schema| schema.get("properties")?.as_object());
    let Some(known) = known.filter(|known| !known.is_empty()) else { return "; no arguments".to_owned() };
    let required: Vec<&str> = schema.into_iter().flat_map(required).collect();
    let one = |name: &String| match required.contains(&name.as_str()) {
        true => name.clone(),
        false => format!("{name} (optional)"),
    };
    format!("; arguments: {}", known.keys().map(one).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let prompt = |schema: Option<Value>| json!({ "toolDescription": "d", "model": "m", "prompt": "p", "requiredSchema": schema });
        let agent = |prompt: &str, description: &str| {
            json!({ "type": "dual_ai", "exposeAsTool": true, "toolDescription": description,
                "sideA": { "prompt": prompt }, "sideB": { "prompt": prompt } })
        };
        let schema = |properties: Value, required: Value| {
            Some(json!({ "type": "object", "properties": properties, "required": required }))
        };
        let text = json!({ "type": "string" });
        let catalog = json!({
            "tools": { "clock": { "description": "Tells the time.", "run": { "native": "clock" } } },
            "prompts": {
                "plain": prompt(None),
                "topic": prompt(schema(json!({ "depth": { "type": "integer" }, "topic": text }), json!(["topic"]))),
                "tone": prompt(schema(json!({ "tone": text }), json!(["tone"]))),
            },
            "agents": {
                "coder": agent("topic", "Codes."), "painter": agent("plain", "Paints."),
                "researcher": agent("topic", "Finds out."), "writer": agent("tone", "Writes."),
            },
        });
        Catalog::from_json(&catalog.to_string()).unwrap()
    }

    fn entries(value: Value) -> Vec<ToolEntry> {
        crate::json::from_value(value).unwrap()
    }

    fn names(offers: &[ToolDefinition]) -> Vec<&str> {
        offers.iter().map(|offer| offer.name.as_str()).collect()
    }

    fn resumable(name: &str) -> Value {
        json!({ "name": name, "resumable": { "receives_messages": "side_a" } })
    }

    #[test]
    fn resumable_subagents_share_two_tools() {
        let listed = entries(json!(["coder", resumable("painter"), "clock", resumable("writer")]));
        let catalog = catalog();
        let mut family = Family::default();
        assert_eq!(names(&offers(&catalog, &listed, None, &family)), ["coder", "subagent_create", "clock"]);
        family.children.push("r1 \"Ann\" (painter)".into());
        family.more = 3;
        let all = offers(&catalog, &listed, None, &family);
        assert_eq!(names(&all), ["coder", "subagent_create", "clock", "subagent_message"]);
        assert_eq!(
            all[3].description,
            "Writes to a subagent that was created with subagent_create, whether it works or waits. Active now:\n\
             - r1 \"Ann\" (painter)\n- and 3 more"
        );
        assert_eq!(all[3].parameters["required"], json!(["referenceId", "message", "attachments"]));
        assert!(all[3].strict);
        family = Family { off: vec![0, 1], ..Family::default() };
        let some = offers(&catalog, &listed, None, &family);
        assert_eq!(names(&some), ["subagent_create", "clock"].iter().rev().copied().collect::<Vec<_>>());
        assert_eq!(some[1].parameters["properties"]["agent"]["enum"], json!(["writer"]));
        family.off.push(3);
        assert_eq!(names(&offers(&catalog, &listed, None, &family)), ["clock"]);
    }

    #[test]
    fn a_creation_lists_each_agent_with_mode_cap_and_arguments() {
        let catalog = catalog();
        let listed = entries(json!([
            { "name": "researcher", "blocking": false, "resumable": { "receives_messages": "side_a", "maxInstances": 3 } },
            resumable("painter"),
            { "name": "writer", "blocking": false,
              "resumable": { "receives_messages": "side_b", "parentCommunication": "explicit" } },
            resumable("gone"),
        ]));
        let all = offers(&catalog, &listed, None, &Family::default());
        let (_, agents) = all[0].description.split_once("Agents:\n").unwrap();
        assert_eq!(
            agents,
            "- researcher: Finds out. [its answers arrive as messages; at most 3 at a time; arguments: depth (optional), topic]\n\
             - painter: Paints. [each call waits for its answer; no arguments]\n\
             - writer: Writes. [it writes when it has something to say; arguments: tone]"
        );
        let parameters = &all[0].parameters;
        assert_eq!(parameters["properties"]["agent"]["enum"], json!(["researcher", "painter", "writer"]));
        assert_eq!(parameters["required"], json!(["agent", "message", "attachments", "name"]));
        assert_eq!(parameters["additionalProperties"], json!(false));
        let both = parameters["properties"]["arguments"]["anyOf"].as_array().unwrap();
        let about: Vec<&Value> = both.iter().map(|schema| &schema["description"]).collect();
        assert_eq!(about, [&json!("Of \"researcher\"."), &json!("Of \"writer\".")]);
        assert_eq!(both[0]["additionalProperties"], json!(false));
        assert!(!all[0].strict, "arguments may be left out");
    }

    #[test]
    fn arguments_are_as_the_one_agent_that_has_some_wants_them() {
        let catalog = catalog();
        let of = |listed: Value| offers(&catalog, &entries(listed), None, &Family::default()).remove(0);
        let plain = of(json!([resumable("painter")]));
        assert!(plain.strict && plain.parameters["properties"].get("arguments").is_none());
        let needed = of(json!([resumable("writer")]));
        assert_eq!(needed.parameters["properties"]["arguments"]["required"], json!(["tone"]));
        assert_eq!(
            needed.parameters["required"],
            json!(["agent", "message", "attachments", "name", "arguments"])
        );
        assert!(needed.strict);
        let shared = of(json!([resumable("writer"), resumable("painter")]));
        assert_eq!(shared.parameters["properties"]["arguments"]["required"], json!(["tone"]));
        assert_eq!(shared.parameters["required"], json!(["agent", "message", "attachments", "name"]));
    }
}
