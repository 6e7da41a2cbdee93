//! Agents: whose turn it is, with which prompt, and when it ends (spec §7).

use serde::{Deserialize, Serialize};

use crate::definitions::approval::Approvals;
use crate::definitions::budget::Budget;
use crate::definitions::form::StringOr;
use crate::definitions::settings::Strictness;
use crate::definitions::variable::{Variable, is_default, is_true, yes};
use crate::sorted::SortedMap;

/// An agent that threads are created with (spec §7.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agent {
    /// Its name; the file's name unless given.
    #[serde(default)]
    pub name: String,
    /// Who talks to whom.
    #[serde(rename = "type", default, skip_serializing_if = "is_default")]
    pub kind: AgentKind,
    /// The side that answers.
    pub side_a: SideConfig,
    /// The other side, when it is a model too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side_b: Option<SideConfig>,
    /// Completed turns of both sides together after which the session ends as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_session_turns: Option<u32>,
    /// What people see instead of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A URL, or a path on this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// Whether other agents' prompts may list it as a tool.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expose_as_tool: bool,
    /// Whether it is offered in protocols of other systems, such as `/api/chat`. Unless it says so, those with `exposeAsTool` are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "bool"))]
    pub expose: Option<bool>,
    /// What a model reads when it is listed as a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_description: Option<String>,
    /// Values that hold where neither thread, account nor deployment gives one.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub env: SortedMap<String, String>,
    /// Values that it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// Ids of hooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// Which calls people are asked about, besides what the folder says.
    #[serde(default, skip_serializing_if = "is_default")]
    pub approvals: Approvals,
    /// What its runs may use. The folder's limits hold as well: this can only be tighter.
    #[serde(default, skip_serializing_if = "is_default")]
    pub budget: Budget,
    /// What becomes of a run that lacks what it needs: `strict` ends it. The folder's setting holds as well: this can
    /// only be stricter.
    #[serde(default, skip_serializing_if = "is_default")]
    pub diagnostics: Strictness,
    /// The package that it is published in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_name: Option<String>,
    /// The version of that package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Who wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// On which terms others may use it.
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

/// Who talks to whom (spec §7.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AgentKind {
    /// Side A is a model, side B a person.
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
    /// Name of its prompt.
    pub prompt: String,
    /// What people and logs see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether a text without tool calls ends its turn.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub stop_on_response: bool,
    /// A tool whose call ends its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_tool: Option<String>,
    /// The argument of the stop tool that is the turn's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_tool_response_property: Option<String>,
    /// Steps of this side in one run, at most 250.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// A tool whose success ends the session as a success.
    #[serde(default, alias = "endSessionTool", skip_serializing_if = "Option::is_none")]
    pub session_stop: Option<SessionTool>,
    /// A tool whose success ends the session as a failure.
    #[serde(default, alias = "failSessionTool", skip_serializing_if = "Option::is_none")]
    pub session_fail: Option<SessionTool>,
    /// A tool that tells the parent how things stand.
    #[serde(default, alias = "statusTool", skip_serializing_if = "Option::is_none")]
    pub session_status: Option<SessionTool>,
}

/// A tool with a meaning for the session (spec §7.4). In a file, its name alone will do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StringOr<SessionToolObject>", into = "StringOr<SessionToolObject>")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionTool {
    /// The tool.
    pub name: String,
    /// The argument whose value the parent reads; the tool's result unless given.
    pub message_property: Option<String>,
    /// The argument that names files for the parent.
    pub attachments_property: Option<String>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
struct SessionToolObject {
    /// The tool.
    name: String,
    /// The argument whose value the parent reads; the tool's result unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_property: Option<String>,
    /// The argument that names files for the parent.
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
