//! Agents (docs/http.md).

use bobbin_definitions::definitions::{AgentKind, Variable, VariableKind};
use serde::Serialize;

/// An agent in threads and lists.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentSummary<'a> {
    pub name: &'a str,
    pub title: &'a str,
    #[serde(rename = "type")]
    pub kind: AgentKind,
    pub description: Option<&'a str>,
    /// A URL.
    pub icon: Option<String>,
}

/// An agent in the list of agents.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedAgent<'a> {
    #[serde(flatten)]
    pub summary: AgentSummary<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<&'a str>,
}

/// The agents.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentList<'a> {
    pub agents: Vec<ListedAgent<'a>>,
}

/// A side of an agent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentSide<'a> {
    pub label: Option<&'a str>,
    pub prompt: &'a str,
    pub model: Option<&'a str>,
    pub tools: Vec<&'a str>,
    pub max_steps: Option<u32>,
    pub stop_on_response: bool,
    pub stop_tool: Option<&'a str>,
}

/// An agent with its sides and the variables that a client may set.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentDetail<'a> {
    #[serde(flatten)]
    pub listed: ListedAgent<'a>,
    pub side_a: AgentSide<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side_b: Option<AgentSide<'a>>,
    pub max_session_turns: Option<u32>,
    pub variables: Vec<&'a Variable>,
}

/// A definition that an agent uses.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsedDefinition<'a> {
    pub kind: &'static str,
    pub name: &'a str,
    /// `null` for a definition of Bobbin itself.
    pub file: Option<&'a str>,
    /// For a tool of an MCP server: the name of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<&'a str>,
}

/// A missing part of an agent.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissingPart<'a> {
    pub code: &'static str,
    pub kind: &'static str,
    pub name: &'a str,
    pub message: String,
}

/// A variable that an agent needs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplainedVariable<'a> {
    pub name: &'a str,
    #[serde(rename = "type")]
    pub kind: VariableKind,
    pub required: bool,
    /// Whether the deployment or a definition has a value for it.
    pub set: bool,
}

/// How an agent uses another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Leading {
    Handoff,
    Subagent,
    Worker,
}

/// An agent that another agent uses.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LedAgent<'a> {
    pub agent: &'a str,
    pub how: Leading,
    /// The prompt with the entry.
    pub prompt: &'a str,
}

/// The parts of an agent, and the missing ones.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentExplained<'a> {
    pub agent: &'a str,
    pub file: Option<&'a str>,
    pub uses: Vec<UsedDefinition<'a>>,
    /// Agents that may take over the thread, or work as subagents.
    pub leads: Vec<LedAgent<'a>>,
    pub variables: Vec<ExplainedVariable<'a>>,
    pub missing: Vec<MissingPart<'a>>,
    /// Definitions that no agent uses.
    pub unused: Vec<UsedDefinition<'a>>,
}
