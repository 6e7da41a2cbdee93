//! MCP servers whose tools prompts may have (docs/mcp.md): `agents/mcp/<name>.json`.

use serde::{Deserialize, Serialize};

use crate::sorted::SortedMap;
use crate::spec::variable::{Variable, is_default};

/// An MCP server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServer {
    /// Its name, for prompts; the file's name unless given.
    #[serde(default)]
    pub name: String,
    /// Its address: `https`, or `http` on this machine in development.
    pub url: String,
    /// What it is for. People read this.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Headers of each request; values may name variables, as `{{env NAME}}`.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, String>"))]
    pub headers: SortedMap<String, String>,
    /// Values it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// Milliseconds after which a call counts as failed: 60,000 unless given and 600,000 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Which protocol it speaks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub protocol: McpProtocol,
    /// When its tools are listed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub list: McpList,
}

/// Which protocol a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum McpProtocol {
    /// What it answers to: the newer one is tried first.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// That of sessions, from `initialize` on.
    #[serde(rename = "2025-11-25")]
    Legacy,
    /// That without.
    #[serde(rename = "2026-07-28")]
    Modern,
}

/// When a server's tools are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum McpList {
    /// By `bobbin mcp pull`, into `agents/mcp/<name>.tools.json`.
    #[default]
    Pinned,
    /// At the first step of a run.
    Live,
}

/// What a tool of an MCP server runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpTool {
    /// The server, by its name in the folder.
    pub server: String,
    /// The tool, by its name at the server.
    pub tool: String,
}
