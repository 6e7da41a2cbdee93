//! `bobbin.json`: settings of a folder of definitions, as far as they hold while threads run.

use serde::{Deserialize, Serialize};

use crate::definitions::approval::Approvals;
use crate::definitions::budget::Budget;
use crate::definitions::offered::McpOffer;
use crate::definitions::retry::Retry;
use crate::definitions::scrub::Scrub;
use crate::definitions::variable::is_default;

/// The settings for all agents of the folder. For some of them, agents, prompts and messages can only set
/// stricter values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Settings {
    /// The treatment of problems. `strict` turns warnings about definitions into errors, and ends runs with
    /// problems such as missing requirements. Default: `default`.
    #[serde(skip_serializing_if = "is_default")]
    pub diagnostics: Strictness,
    /// The approval settings: which tool calls need the approval of a person.
    #[serde(skip_serializing_if = "is_default")]
    pub approvals: Approvals,
    /// The limits of every run and every thread, and the maximum to which they can be raised.
    #[serde(skip_serializing_if = "is_default")]
    pub budget: Budget,
    /// The retry policies for failures. The policies of the run and of the prompt have priority.
    #[serde(skip_serializing_if = "is_default")]
    pub retry_defaults: Retry,
    /// The action when a run continues after its definitions have changed. Default: `warn`.
    #[serde(skip_serializing_if = "is_default")]
    pub resume_check: ResumeCheck,
    /// The treatment of texts in tool results that look like secrets.
    #[serde(skip_serializing_if = "is_default")]
    pub scrub: Scrub,
    /// The tools, prompts and resources that MCP clients can use at `/mcp`, in addition to the agents.
    #[serde(skip_serializing_if = "is_default")]
    pub mcp: McpOffer,
}

impl Settings {
    /// Whether nothing differs from what holds without the file.
    pub fn is_default(&self) -> bool {
        *self == Settings::default()
    }
}

/// The treatment of problems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Strictness {
    /// Problems are reported.
    #[default]
    #[serde(alias = "normal")]
    Default,
    /// Problems are errors.
    Strict,
}

/// The action when a run continues after its definitions have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ResumeCheck {
    /// The run continues.
    Off,
    /// The run continues, and the log lists the changed definitions.
    #[default]
    Warn,
    /// The run fails.
    Fail,
}
