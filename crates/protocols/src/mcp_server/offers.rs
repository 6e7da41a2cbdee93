//! The lists of prompts and resources for MCP clients: those made by the folder's tools, and those of
//! threads.

use serde_json::{Map, Value};

use crate::mcp_server::content::file_uri;
use bobbin_definitions::definitions::offered::names_of;
use bobbin_definitions::definitions::{Catalog, OfferedResource, Tool};
use bobbin_definitions::json;

/// Path segments of the resources of threads.
const TRANSCRIPT: &str = "transcript";
const FILES: &str = "files/";

/// The server's capabilities.
pub fn capabilities(catalog: &Catalog) -> Value {
    let mut capabilities = json!({ "tools": {}, "resources": {}, "completions": {} });
    if !catalog.settings.mcp.prompts.is_empty() {
        set(&mut capabilities, "prompts", json!({}));
    }
    capabilities
}

fn set(value: &mut Value, name: &str, field: Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(name.to_owned(), field);
    }
}

/// `prompts/list`.
pub fn prompts(catalog: &Catalog) -> Value {
    let made = catalog.settings.mcp.prompts.iter().filter_map(|name| catalog.tools.get(name));
    let prompts: Vec<Value> = made
        .map(|tool| json!({ "name": tool.name, "description": tool.description, "arguments": arguments(tool) }))
        .collect();
    json!({ "prompts": prompts })
}

/// The tool that makes a prompt.
pub fn prompt<'c>(catalog: &'c Catalog, name: &str) -> Option<&'c Tool> {
    let offered = catalog.settings.mcp.prompts.iter().any(|prompt| prompt == name);
    catalog.tools.get(name).filter(|_| offered)
}

fn arguments(tool: &Tool) -> Vec<Value> {
    let required = tool.args.as_ref().and_then(|args| args.get("required")).and_then(Value::as_array);
    let needs =
        |name: &str| required.is_some_and(|required| required.iter().any(|one| one.as_str() == Some(name)));
    let shown = |(name, of): (&String, &Value)| json!({ "name": name, "description": of.get("description"), "required": needs(name) });
    let mut arguments: Vec<Value> = properties(tool).into_iter().flatten().map(shown).collect();
    for argument in arguments.iter_mut().filter_map(Value::as_object_mut) {
        argument.retain(|_, value| !value.is_null());
    }
    arguments
}

fn properties(tool: &Tool) -> Option<&Map<String, Value>> {
    tool.args.as_ref()?.get("properties")?.as_object()
}

/// Converts arguments from texts to the tool's types.
pub fn typed(tool: &Tool, mut args: Map<String, Value>) -> Map<String, Value> {
    for (name, value) in &mut args {
        let of = properties(tool).and_then(|properties| properties.get(name)?.get("type")?.as_str());
        let Some(text) = value.as_str().filter(|_| matches!(of, Some("integer" | "number" | "boolean")))
        else {
            continue;
        };
        if let Ok(read) = bobbin_definitions::json::from_str(text) {
            *value = read;
        }
    }
    args
}

/// `resources/list`.
pub fn resources(catalog: &Catalog) -> Value {
    let offered = catalog.settings.mcp.resources.iter().filter(|resource| resource.uri_template.is_empty());
    json!({ "resources": offered.map(|resource| resource_of(catalog, resource, "uri", &resource.uri)).collect::<Vec<_>>() })
}

/// `resources/templates/list`.
pub fn templates(catalog: &Catalog) -> Value {
    let offered = catalog.settings.mcp.resources.iter().filter(|resource| resource.uri.is_empty());
    let offered =
        offered.map(|resource| resource_of(catalog, resource, "uriTemplate", &resource.uri_template));
    let own = [
        ("thread://{thread}/transcript", TRANSCRIPT, "What was said in a thread.", Some("text/markdown")),
        ("thread://{thread}/files/{+path}", "file", "A file of a thread.", None),
    ];
    let own = own.map(|(uri, name, description, mime)| {
        let mut shown = json!({ "uriTemplate": uri, "name": name, "description": description });
        mime.into_iter().for_each(|mime| set(&mut shown, "mimeType", mime.into()));
        shown
    });
    json!({ "resourceTemplates": own.into_iter().chain(offered).collect::<Vec<_>>() })
}

fn resource_of(catalog: &Catalog, resource: &OfferedResource, field: &str, uri: &str) -> Value {
    let OfferedResource { name, description, tool, .. } = resource;
    let about = catalog.tools.get(tool).map_or("", |tool| &tool.description);
    let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
    let mut shown = json!({ "name": or(name, tool), "description": or(description, about), "mimeType": mime_type(resource) });
    set(&mut shown, field, uri.into());
    shown
}

/// The media type of a resource's text.
pub fn mime_type(resource: &OfferedResource) -> &str {
    if resource.mime_type.is_empty() { "text/plain" } else { &resource.mime_type }
}

/// A resource of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadResource {
    /// The transcript.
    Transcript,
    /// The file at this path.
    File(String),
}

/// The thread in an address, and its resource.
pub fn of_thread(uri: &str) -> Option<(&str, ThreadResource)> {
    let (thread, rest) = uri.strip_prefix("thread://")?.split_once('/')?;
    if rest == TRANSCRIPT {
        return Some((thread, ThreadResource::Transcript));
    }
    let path = bobbin_definitions::text::percent_decoded(rest.strip_prefix(FILES)?, false);
    (!thread.is_empty() && file_uri(thread, &path) == uri).then_some((thread, ThreadResource::File(path)))
}

/// `completion/complete`: values of an argument with this prefix; `None` for an unknown prompt or template.
pub fn complete(catalog: &Catalog, params: &Map<String, Value>) -> Option<Value> {
    let text = |pointer: &[&str]| {
        let first = params.get(*pointer.first()?)?;
        pointer.iter().skip(1).try_fold(first, |value, name| value.get(*name))?.as_str()
    };
    let (argument, begins) = (text(&["argument", "name"])?, text(&["argument", "value"])?);
    let tool = match text(&["ref", "type"])? {
        "ref/prompt" => prompt(catalog, text(&["ref", "name"])?)?,
        "ref/resource" => {
            let uri = text(&["ref", "uri"])?;
            if uri.starts_with("thread://{thread}/") {
                return Some(completion(Vec::new()));
            }
            let of = |resource: &&OfferedResource| {
                resource.uri_template == uri && names_of(uri).contains(&argument)
            };
            catalog.tools.get(&catalog.settings.mcp.resources.iter().find(of)?.tool)?
        }
        _ => return None,
    };
    let known = properties(tool).and_then(|properties| properties.get(argument)?.get("enum")?.as_array());
    let fits = |value: &&Value| value.as_str().is_some_and(|value| value.starts_with(begins));
    Some(completion(known.into_iter().flatten().filter(fits).take(100).cloned().collect()))
}

fn completion(values: Vec<Value>) -> Value {
    json!({ "completion": { "values": values, "hasMore": false } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let args = json!({ "type": "object", "required": ["tone"], "properties": {
            "tone": { "type": "string", "enum": ["kind", "keen", "dry"], "description": "how" }, "lines": { "type": "integer" },
        } });
        let tool = json!({ "description": "Writes.", "args": args, "run": { "native": "n" } });
        let resources = json!([
            { "uri": "a://b", "tool": "write" },
            { "uriTemplate": "a://{tone}/x", "name": "X", "mimeType": "text/html", "tool": "write" },
        ]);
        let catalog = json!({ "tools": { "write": tool }, "settings": { "mcp": { "prompts": ["write"], "resources": resources } } });
        Catalog::from_json(&catalog.to_string()).unwrap()
    }

    #[test]
    fn tools_are_listed_as_the_prompts_and_resources_that_they_make() {
        let catalog = catalog();
        assert_eq!(
            prompts(&catalog)["prompts"][0]["arguments"],
            json!([{ "name": "tone", "description": "how", "required": true }, { "name": "lines", "required": false }])
        );
        assert_eq!(
            resources(&catalog)["resources"],
            json!([{ "name": "write", "description": "Writes.", "mimeType": "text/plain", "uri": "a://b" }])
        );
        assert_eq!(templates(&catalog)["resourceTemplates"][2]["uriTemplate"], "a://{tone}/x");
        assert_eq!(capabilities(&Catalog::default()).get("prompts"), None);
        assert!(capabilities(&catalog).get("prompts").is_some());
        let (found, args) = catalog.settings.mcp.resource("a://kind/x").unwrap();
        assert_eq!((mime_type(found), &args["tone"]), ("text/html", &json!("kind")));
        // The agents that make the calls are hidden.
        assert_eq!((catalog.agents.len(), catalog.shown_agents().count()), (1, 0));
    }

    #[test]
    fn texts_become_what_the_tool_takes() {
        let catalog = catalog();
        let args = json!({ "tone": "5", "lines": "5" });
        let args = typed(catalog.tools.get("write").unwrap(), args.as_object().unwrap().clone());
        assert_eq!(Value::Object(args), json!({ "tone": "5", "lines": 5 }));
    }

    #[test]
    fn an_argument_is_completed_with_what_it_may_be() {
        let catalog = catalog();
        let complete = |of: Value, name: &str| {
            let params = json!({ "ref": of, "argument": { "name": name, "value": "k" } });
            complete(&catalog, params.as_object().unwrap()).map(|found| found["completion"]["values"].clone())
        };
        let prompt = json!({ "type": "ref/prompt", "name": "write" });
        assert_eq!(complete(prompt.clone(), "tone"), Some(json!(["kind", "keen"])));
        assert_eq!(complete(prompt, "lines"), Some(json!([])));
        assert_eq!(
            complete(json!({ "type": "ref/resource", "uri": "a://{tone}/x" }), "tone"),
            Some(json!(["kind", "keen"]))
        );
        assert_eq!(complete(json!({ "type": "ref/prompt", "name": "other" }), "tone"), None);
    }

    #[test]
    fn an_address_means_what_a_thread_has() {
        assert_eq!(of_thread("thread://t/transcript"), Some(("t", ThreadResource::Transcript)));
        let uri = file_uri("t", "/a b/ü.txt");
        assert_eq!(of_thread(&uri), Some(("t", ThreadResource::File("a b/ü.txt".into()))));
        for none in ["thread://t", "thread:///files/a", "thread://t/other", "file:///a"] {
            assert_eq!(of_thread(none), None, "{none}");
        }
    }
}
