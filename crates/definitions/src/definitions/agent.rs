//! Agents: whose turn it is, with which prompt, and when it ends (spec §7).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::definitions::approval::Approvals;
use crate::definitions::budget::Budget;
use crate::definitions::form::StringOr;
use crate::definitions::settings::Strictness;
use crate::definitions::variable::{Variable, is_default, is_true, yes};

/// An agent (spec §7.1). Each thread is created with one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agent {
    /// The agent's name. Default: the name of its file.
    #[serde(default)]
    pub name: String,
    /// The agent's type: a model and a person, or two models. Default: `ai_human`.
    #[serde(rename = "type", default, skip_serializing_if = "is_default")]
    pub kind: AgentKind,
    /// The side that replies.
    pub side_a: SideConfig,
    /// The second model of a `dual_ai` agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side_b: Option<SideConfig>,
    /// The maximum number of complete turns of both sides together. After these turns the session fails. Only
    /// for `dual_ai` agents. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_session_turns: Option<u32>,
    /// The name that people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The agent's purpose, in one sentence, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The agent's icon: a URL, or a path on this server that starts with `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// If `true`, prompts of other agents may list this agent as a tool. Default: `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expose_as_tool: bool,
    /// If `true`, Bobbin offers the agent to clients of other protocols, such as `/api/chat`.
    /// Default: `true`, or `false` if `exposeAsTool` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "bool"))]
    pub expose: Option<bool>,
    /// The description of the agent as a tool. The calling model reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_description: Option<String>,
    /// Default values of variables. Bobbin uses them if the thread, the account and the deployment set no
    /// value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The variables that the agent needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// The ids of hooks. They run unless the active prompt lists its own hooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// The agent's approval settings: which tool calls need the approval of a person. They add to those of
    /// `bobbin.json`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub approvals: Approvals,
    /// The limits of the agent's runs and threads. The limits in `bobbin.json` apply as well: the smaller
    /// limit wins.
    #[serde(default, skip_serializing_if = "is_default")]
    pub budget: Budget,
    /// The treatment of problems in a run, such as missing requirements. `strict` ends the run. The setting
    /// in `bobbin.json` applies as well: the stricter one wins. Default: `default`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub diagnostics: Strictness,
    /// The name of the package that contains the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_name: Option<String>,
    /// The version of that package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The license.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
}

impl Agent {
    /// Whether it is offered in protocols of others.
    pub fn is_exposed(&self) -> bool {
        self.expose.unwrap_or(!self.expose_as_tool)
    }

    /// Turns that a session may have. With a person a session is one turn of the model (spec §1), so none are counted.
    pub fn session_turns(&self) -> Option<u32> {
        self.max_session_turns.filter(|_| self.kind == AgentKind::DualAi)
    }
}

/// The type of an agent (spec §7.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AgentKind {
    /// Side A is a model. Side B is a person.
    #[default]
    AiHuman,
    /// Both sides are models.
    DualAi,
}

/// One side of an agent (spec §7.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SideConfig {
    /// The name of the side's prompt.
    pub prompt: String,
    /// The name of the side that people and logs see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// If `true`, a reply without tool calls ends the turn. Default: `true`.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub stop_on_response: bool,
    /// The name of a tool. A call of this tool ends the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_tool: Option<String>,
    /// The argument of the stop tool that becomes the text of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_tool_response_property: Option<String>,
    /// The maximum number of steps of this side in one run, at most 250. After these steps the run fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// A tool that ends the session as a success, when a call of it succeeds.
    #[serde(default, alias = "endSessionTool", skip_serializing_if = "Option::is_none")]
    pub session_stop: Option<SessionTool>,
    /// A tool that ends the session as a failure, when a call of it succeeds.
    #[serde(default, alias = "failSessionTool", skip_serializing_if = "Option::is_none")]
    pub session_fail: Option<SessionTool>,
    /// A tool that reports the status of the session to clients and to the parent thread. It ends nothing.
    #[serde(default, alias = "statusTool", skip_serializing_if = "Option::is_none")]
    pub session_status: Option<SessionTool>,
}

/// A tool that ends the session or reports its status (spec §7.4). In a file, the tool's name is enough.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StringOr<SessionToolObject>", into = "StringOr<SessionToolObject>")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionTool {
    /// The tool's name.
    pub name: String,
    /// The argument that becomes the message of the session. Default: the message is the tool's result.
    pub message_property: Option<String>,
    /// The argument that names files to send with the message: a path, or a list of paths.
    pub attachments_property: Option<String>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
struct SessionToolObject {
    /// The tool's name.
    name: String,
    /// The argument that becomes the message of the session. Default: the message is the tool's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_property: Option<String>,
    /// The argument that names files to send with the message: a path, or a list of paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attachments_property: Option<String>,
}

impl From<StringOr<SessionToolObject>> for SessionTool {
    fn from(form: StringOr<SessionToolObject>) -> SessionTool {
        match form {
            StringOr::String(name) => SessionTool { name, ..SessionTool::default() },
            StringOr::Object(o) => SessionTool {
                name: o.name,
                message_property: o.message_property,
                attachments_property: o.attachments_property,
            },
        }
    }
}

impl From<SessionTool> for StringOr<SessionToolObject> {
    fn from(tool: SessionTool) -> StringOr<SessionToolObject> {
        StringOr::Object(SessionToolObject {
            name: tool.name,
            message_property: tool.message_property,
            attachments_property: tool.attachments_property,
        })
    }
}
