//! Tools as a server lists them: pinned in `agents/mcp/<name>.tools.json`, or at the first step of a run. What the server says of
//! them is shown to models as it is, and trusted in nothing else but that a call may be made again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::mcp::{DEFAULT, McpProtocol, McpServer, McpTool, schema};
use crate::definitions::tool::{Implementation, Tool};
use crate::limits;
use crate::signing::digest;
use crate::text::first_bytes;

/// Characters of a name that models know a tool by, and of the hash that tells two of them apart.
const NAME_CHARS: usize = 64;
const HASH_CHARS: usize = 8;

/// What stands between the server's name and the tool's.
pub const SEPARATOR: &str = "__";

/// A list of tools that `bobbin mcp pull` writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PinnedList {
    /// The version of the protocol that the server used.
    pub protocol: McpProtocol,
    /// The server's name and version.
    #[serde(default)]
    pub server: ServerInfo,
    /// The server's tools.
    pub tools: Vec<ListedTool>,
}

/// A server's facts about itself when its tools were listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListingInfo {
    /// The version of the protocol that the server used.
    pub protocol: McpProtocol,
    /// The server's name and version.
    #[serde(default)]
    pub server: ServerInfo,
    /// The hash of the list, `sha256:…`.
    #[serde(default)]
    pub hash: String,
}

/// The name and version that a server reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerInfo {
    /// The server's name.
    #[serde(default)]
    pub name: String,
    /// The server's version.
    #[serde(default)]
    pub version: String,
}

/// A tool as the server lists it. Unknown fields are ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedTool {
    /// The tool's name at the server.
    pub name: String,
    /// The tool's name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool's purpose. The model reads this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the arguments.
    pub input_schema: Value,
    /// The JSON Schema of structured results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The server's hints about calls of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The execution settings of the protocol version 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub execution: Option<Execution>,
}

/// How a tool is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// `forbidden`, `optional` or `required`: whether a call is a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<String>,
}

/// A server's hints about calls of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Annotations {
    /// The tool's name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// If `true`, a call changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// If `true`, a call may destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// If `true`, a repeated call has no additional effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// If `true`, a call may reach systems outside the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl ListedTool {
    /// Whether the server says that a call may be made again.
    pub fn may_repeat(&self) -> bool {
        let hint =
            |hint: fn(&Annotations) -> Option<bool>| self.annotations.as_ref().and_then(hint) == Some(true);
        hint(|a| a.read_only_hint) || hint(|a| a.idempotent_hint)
    }

    /// Whether the server says that a call may destroy something.
    pub fn may_destroy(&self) -> bool {
        self.annotations
            .as_ref()
            .is_some_and(|a| a.destructive_hint == Some(true) && a.read_only_hint != Some(true))
    }
}

/// A listed tool: its place in the list, as the server has it, and the tool of the catalog that it is, or the field that is wrong and why.
pub type CatalogTool<'l> = (usize, &'l ListedTool, Result<Tool, (String, String)>);

impl McpServer {
    /// The tool of the catalog that a listed one is, by its plain name ([`McpServer::tool_names`]).
    ///
    /// # Errors
    /// Why it cannot be offered: a field of the listed tool, such as `inputSchema`, and what is wrong there.
    pub fn tool(&self, listed: &ListedTool) -> Result<Tool, (String, String)> {
        let wrong = |field: &str, why: &str| Err((field.to_owned(), why.to_owned()));
        if listed.name.is_empty() || listed.name.chars().any(char::is_control) {
            return wrong("name", "is empty, or holds control characters");
        }
        if listed.name.len() > limits::MCP_TOOL_NAME_BYTES {
            return wrong("name", "is too long");
        }
        let read = [Some(&listed.name), listed.title.as_ref(), listed.description.as_ref()];
        if read.into_iter().flatten().any(|text| schema::hides(text)) {
            return wrong("description", schema::HIDES);
        }
        let needs_task = listed.execution.as_ref().and_then(|execution| execution.task_support.as_deref());
        if needs_task == Some("required") {
            return wrong(
                "execution.taskSupport",
                "it is called as a task of 2025-11-25 alone, which is not done here",
            );
        }
        let headers = schema::check(&listed.input_schema).map_err(|(path, why)| {
            (if path.is_empty() { "inputSchema".to_owned() } else { format!("inputSchema.{path}") }, why)
        })?;
        let provide = self.provide.get(&listed.name).cloned().unwrap_or_default();
        let title = listed.title.as_ref().or_else(|| listed.annotations.as_ref()?.title.as_ref());
        let described = listed.description.as_ref().filter(|text| !text.trim().is_empty());
        let description = described.or(title).unwrap_or(&listed.name);
        Ok(Tool {
            name: self.tool_name(&listed.name),
            description: first_bytes(description, limits::MCP_DESCRIPTION_BYTES).to_owned(),
            args: Some(schema::shown(&listed.input_schema, &provide)),
            timeout_ms: self.timeout_ms,
            idempotent: of_tool(&self.idempotent, &listed.name)
                .copied()
                .or(listed.may_repeat().then_some(true)),
            tier: of_tool(&self.tier, &listed.name).copied(),
            retry: self.retry.clone(),
            variables: self.variables.clone(),
            approval: of_tool(&self.approval, &listed.name).cloned(),
            scrub: self.scrub.clone(),
            run: Implementation::Mcp(McpTool {
                server: self.name.clone(),
                tool: listed.name.clone(),
                provide,
                headers,
            }),
        })
    }

    /// The tools of the catalog that the listed ones are, as far as the definition takes them: each with its place in the list, and
    /// by the name of [`McpServer::tool_names`].
    pub fn offered<'l>(&self, listed: &'l [ListedTool]) -> Vec<CatalogTool<'l>> {
        let offered: Vec<(usize, &ListedTool)> =
            listed.iter().enumerate().filter(|(_, tool)| self.offers(&tool.name)).collect();
        let own: Vec<&str> = offered.iter().map(|(_, tool)| tool.name.as_str()).collect();
        let named = offered.into_iter().zip(self.tool_names(&own));
        named
            .map(|((at, listed), name)| (at, listed, self.tool(listed).map(|tool| Tool { name, ..tool })))
            .collect()
    }

    /// What follows the server's name in the name of a tool, if it may be one of its own.
    pub fn own_name<'n>(&self, tool: &'n str) -> Option<&'n str> {
        tool.strip_prefix(self.name.as_str())?.strip_prefix(SEPARATOR).filter(|own| !own.is_empty())
    }

    /// The name that models know a tool of it by: both names, with `_` for what their providers do not take, 64 characters at
    /// most.
    pub fn tool_name(&self, tool: &str) -> String {
        let fine = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
        self.whole_name(tool).chars().map(fine).take(NAME_CHARS).collect()
    }

    fn whole_name(&self, tool: &str) -> String {
        format!("{}{SEPARATOR}{tool}", self.name)
    }

    /// The names that models know these tools by, in their order. Where several would have the same, only the one keeps it that is
    /// called so at the server; the others end with a hash of their own name. So the order of a list does not matter.
    pub fn tool_names(&self, tools: &[&str]) -> Vec<String> {
        let plain: Vec<String> = tools.iter().map(|tool| self.tool_name(tool)).collect();
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for name in &plain {
            *times.entry(name).or_insert(0) += 1;
        }
        let of = |(tool, name): (&&str, &String)| {
            let is_shared = times.get(name.as_str()).is_some_and(|times| *times > 1);
            if is_shared && *name != self.whole_name(tool) { self.own_tool_name(tool) } else { name.clone() }
        };
        tools.iter().zip(&plain).map(of).collect()
    }

    /// Whether a tool of the server may have this name, whichever others there are.
    pub fn may_be_called(&self, tool: &str, name: &str) -> bool {
        self.tool_name(tool) == name || self.own_tool_name(tool) == name
    }

    /// A name that no other tool of the server has.
    fn own_tool_name(&self, tool: &str) -> String {
        let start: String = self.tool_name(tool).chars().take(NAME_CHARS - HASH_CHARS - 1).collect();
        let hash = digest(&[tool]);
        format!("{start}_{}", first_bytes(&hash, HASH_CHARS))
    }
}

/// The value for a tool, or else the value for all others.
fn of_tool<'s, T>(by_tool: &'s BTreeMap<String, T>, tool: &str) -> Option<&'s T> {
    by_tool.get(tool).or_else(|| by_tool.get(DEFAULT))
}
