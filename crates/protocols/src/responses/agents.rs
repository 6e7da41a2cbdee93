//! Agents (docs/http.md).

use bobbin_definitions::definitions::{AgentKind, Variable, VariableKind};
use serde::Serialize;

/// An agent in threads and lists.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentSummary<'a> {
    /// The name of its file.
    pub name: &'a str,
    /// The title for people.
    pub title: &'a str,
    /// Who acts on its sides.
    #[serde(rename = "type")]
    pub kind: AgentKind,
    /// What it does, for people. `null` if it has none.
    pub description: Option<&'a str>,
    /// A URL.
    pub icon: Option<String>,
}

/// An agent in the list of agents.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedAgent<'a> {
    /// The agent.
    #[serde(flatten)]
    pub summary: AgentSummary<'a>,
    /// The package that the agent comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_name: Option<&'a str>,
    /// The version of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<&'a str>,
    /// The author of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<&'a str>,
    /// The license of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<&'a str>,
}

/// The agents.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentList<'a> {
    /// Ordered by name.
    pub agents: Vec<ListedAgent<'a>>,
}

/// A side of an agent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentSide<'a> {
    /// The name of the side for people. `null` if it has none.
    pub label: Option<&'a str>,
    /// The name of its prompt.
    pub prompt: &'a str,
    /// The name of its model. `null` for a person.
    pub model: Option<&'a str>,
    /// The names of its tools.
    pub tools: Vec<&'a str>,
    /// The maximum number of steps of a run. `null` if only the limits of Bobbin apply.
    pub max_steps: Option<u32>,
    /// Whether a reply without calls ends the turn.
    pub stop_on_response: bool,
    /// The tool whose call ends the turn. `null` if there is none.
    pub stop_tool: Option<&'a str>,
}

/// An agent with its sides and the variables that a client may set.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentDetail<'a> {
    /// The agent.
    #[serde(flatten)]
    pub listed: ListedAgent<'a>,
    /// The first side.
    pub side_a: AgentSide<'a>,
    /// The second side. Absent if the agent has one side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side_b: Option<AgentSide<'a>>,
    /// The maximum number of turns of a session. `null` if there is none.
    pub max_session_turns: Option<u32>,
    /// The variables that a client may set.
    pub variables: Vec<&'a Variable>,
}

/// A definition that an agent uses.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsedDefinition<'a> {
    /// The kind of the definition, such as `prompt` or `tool`.
    pub kind: &'static str,
    /// The name of the definition.
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
    /// A stable code for programs.
    pub code: &'static str,
    /// The kind of the part, such as `variable`.
    pub kind: &'static str,
    /// The name of the part.
    pub name: &'a str,
    /// What is missing, for people.
    pub message: String,
}

/// A variable that an agent needs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplainedVariable<'a> {
    /// The name of the variable.
    pub name: &'a str,
    /// The type of its value.
    #[serde(rename = "type")]
    pub kind: VariableKind,
    /// Whether the agent cannot run without it.
    pub required: bool,
    /// Whether the deployment or a definition has a value for it.
    pub set: bool,
}

/// How an agent uses another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Leading {
    /// It may take over the thread.
    Handoff,
    /// It works as a subagent.
    Subagent,
    /// It works as a subagent that a model manages.
    Worker,
}

/// An agent that another agent uses.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LedAgent<'a> {
    /// The name of the used agent.
    pub agent: &'a str,
    /// How the agent uses it.
    pub how: Leading,
    /// The prompt with the entry.
    pub prompt: &'a str,
}

/// The parts of an agent, and the missing ones.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentExplained<'a> {
    /// The name of the agent.
    pub agent: &'a str,
    /// The file of the agent. `null` for an agent of Bobbin itself.
    pub file: Option<&'a str>,
    /// The definitions that the agent uses.
    pub uses: Vec<UsedDefinition<'a>>,
    /// Agents that may take over the thread, or work as subagents.
    pub leads: Vec<LedAgent<'a>>,
    /// The variables that the agent needs.
    pub variables: Vec<ExplainedVariable<'a>>,
    /// The missing parts.
    pub missing: Vec<MissingPart<'a>>,
    /// Definitions that no agent uses.
    pub unused: Vec<UsedDefinition<'a>>,
}
