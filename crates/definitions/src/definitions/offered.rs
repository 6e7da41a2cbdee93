//! The parts of a folder that MCP clients can use at `/mcp` besides its agents (docs/mcp-server.md): tools, and prompts and
//! resources that tools make. Each call runs in its own thread. The thread's agent has no model; its one step is the call.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::agent::Agent;
use crate::definitions::catalog::Catalog;
use crate::definitions::prompt::Prompt;
use crate::json;
use crate::text::percent_decoded;

/// The tools, prompts and resources that MCP clients can use (`mcp` in `bobbin.json`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Offered"))]
pub struct McpOffer {
    /// The names of tools that clients may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The names of tools that produce prompts. The tool's arguments are the prompt's arguments, and its
    /// result becomes the prompt's messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<String>,
    /// The resources that clients may read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<OfferedResource>,
}

/// A resource, or all resources that match a URI template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfferedResource {
    /// The resource's URI.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uri: String,
    /// The template for the URIs of many resources, such as `orders://{id}/invoice`, instead of `uri`. The
    /// part at `{id}` becomes the tool's argument `id`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uri_template: String,
    /// The resource's name, for people. Default: the tool's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The resource's contents, for people. Default: the tool's description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The MIME type of the resource's text. Files in the tool's result have their own types. Default:
    /// `text/plain`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mime_type: String,
    /// The name of the tool that reads the resource.
    pub tool: String,
}

/// What the names of agents begin with that have no model and make one call each. No definition's name has such a sign.
const OF_TOOL: &str = "tool:";

/// Whether an agent of this name makes one call, and nothing else.
pub fn is_of_tool(agent: &str) -> bool {
    agent.starts_with(OF_TOOL)
}

/// The agent in whose threads a tool is called for clients of MCP.
pub fn agent_of(tool: &str) -> String {
    format!("{OF_TOOL}{tool}")
}

impl McpOffer {
    /// All tools that it names.
    pub fn used(&self) -> impl Iterator<Item = &str> {
        let reading = self.resources.iter().map(|resource| &resource.tool);
        self.tools.iter().chain(&self.prompts).chain(reading).map(String::as_str)
    }

    /// The resource of an address, and what of it the tool is given.
    pub fn resource(&self, uri: &str) -> Option<(&OfferedResource, Map<String, Value>)> {
        self.resources.iter().find_map(|resource| Some((resource, resource.args(uri)?)))
    }
}

/// A part of a template: a text as it is, or the name of what stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    Name(&'a str),
}

fn parts(template: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for (at, piece) in template.split('{').enumerate() {
        match piece.split_once('}') {
            Some((name, text)) if at > 0 => parts.extend([Part::Name(name), Part::Text(text)]),
            _ => parts.push(Part::Text(piece)),
        }
    }
    parts
}

/// The names in a template.
pub fn names_of(template: &str) -> Vec<&str> {
    let names = parts(template).into_iter().filter_map(|part| match part {
        Part::Name(name) => Some(name),
        Part::Text(_) => None,
    });
    names.collect()
}

/// What stands for the names of a template in an address; none where the address is none of it.
pub fn matched<'a>(template: &'a str, uri: &str) -> Option<Vec<(&'a str, String)>> {
    let mut rest = uri;
    let mut found = Vec::new();
    let mut name = None;
    for part in parts(template) {
        match part {
            Part::Name(named) => name = Some(named),
            Part::Text(text) => match name.take() {
                None => rest = rest.strip_prefix(text)?,
                Some(name) => {
                    let end = if text.is_empty() { rest.len() } else { rest.find(text)? };
                    let (value, behind) = rest.split_at_checked(end)?;
                    if value.is_empty() || value.contains('/') {
                        return None;
                    }
                    found.push((name, percent_decoded(value, false)));
                    rest = behind.strip_prefix(text)?;
                }
            },
        }
    }
    rest.is_empty().then_some(found)
}

impl OfferedResource {
    fn args(&self, uri: &str) -> Option<Map<String, Value>> {
        if self.uri_template.is_empty() {
            return (self.uri == uri).then(Map::new);
        }
        let found = matched(&self.uri_template, uri)?;
        Some(found.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect())
    }
}

impl Catalog {
    /// Adds the agents that make the calls of what is offered.
    pub fn add_calls(&mut self) -> Result<(), serde_json::Error> {
        let mut tools: Vec<String> = self.settings.mcp.used().map(str::to_owned).collect();
        tools.dedup();
        for tool in tools {
            let name = agent_of(&tool);
            let prompt =
                json!({ "name": name, "toolDescription": "", "prompt": "", "model": "", "tools": [tool] });
            let agent = json!({
                "name": name, "title": tool, "expose": false, "sideA": { "prompt": name, "stopTool": tool },
            });
            let (prompt, agent): (Prompt, Agent) =
                (crate::json::from_value(prompt)?, crate::json::from_value(agent)?);
            self.prompts.insert(name.clone(), prompt);
            self.agents.insert(name, agent);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_says_what_its_names_are() {
        let of = |template, uri| {
            let found: Option<Vec<(&str, String)>> = matched(template, uri);
            found.map(|found| {
                found.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
            })
        };
        let one = |text: &str| Some(vec![text.to_owned()]);
        assert_eq!(of("test://template/{id}/data", "test://template/123/data"), one("id=123"));
        assert_eq!(of("orders://{id}", "orders://a%20b"), one("id=a b"));
        assert_eq!(of("a://{x}-{y}", "a://1-2"), Some(vec!["x=1".to_owned(), "y=2".to_owned()]));
        for none in
            ["test://template//data", "test://template/1/2/data", "test://template/1/data/", "test://other"]
        {
            assert_eq!(of("test://template/{id}/data", none), None, "{none}");
        }
        assert_eq!(names_of("a://{x}/{y}"), ["x", "y"]);
    }
}
