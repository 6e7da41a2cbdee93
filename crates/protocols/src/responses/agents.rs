//! Agents (docs/http.md).

use bobbin_definitions::definitions::{AgentKind, Variable};
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
