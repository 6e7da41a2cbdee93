//! `bobbin.json`: settings of a folder of definitions, as far as they hold while threads run.

use serde::{Deserialize, Serialize};

use crate::definitions::approval::Approvals;
use crate::definitions::budget::Budget;
use crate::definitions::offered::McpOffer;
use crate::definitions::retry::Retry;
use crate::definitions::scrub::Scrub;
use crate::definitions::variable::is_default;

/// What holds for every agent of the folder. Agents, prompts and messages may say more, and only tighten it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Settings {
    /// What becomes of a mistake: `strict` makes warnings of the definitions errors, and ends runs that lack what they need.
    #[serde(skip_serializing_if = "is_default")]
    pub diagnostics: Strictness,
    /// Which calls people are asked about.
    #[serde(skip_serializing_if = "is_default")]
    pub approvals: Approvals,
    /// What every run, and every thread, may use, and up to where that may be raised.
    #[serde(skip_serializing_if = "is_default")]
    pub budget: Budget,
    /// How what fails is tried again, where neither a run nor a prompt says.
    #[serde(skip_serializing_if = "is_default")]
    pub retry_defaults: Retry,
    /// What becomes of a run that goes on with other definitions than it began with.
    #[serde(skip_serializing_if = "is_default")]
    pub resume_check: ResumeCheck,
    /// What becomes of texts in results of tools that look like secrets.
    #[serde(skip_serializing_if = "is_default")]
    pub scrub: Scrub,
    /// What clients of MCP are offered at `/mcp` besides the agents.
    #[serde(skip_serializing_if = "is_default")]
    pub mcp: McpOffer,
}

impl Settings {
    /// Whether nothing differs from what holds without the file.
    pub fn is_default(&self) -> bool {
        *self == Settings::default()
    }
}

/// What becomes of a mistake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Strictness {
    /// It is told of.
    #[default]
    #[serde(alias = "normal")]
    Default,
    /// It is an error.
    Strict,
}

/// What becomes of a run that goes on with other definitions than it began with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ResumeCheck {
    /// It goes on.
    Off,
    /// It goes on, and the log says what has changed.
    #[default]
    Warn,
    /// It fails.
    Fail,
}
