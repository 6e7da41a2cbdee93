//! Hooks: code of the application that sees, and partly changes, what passes through a thread (spec §9).

use serde::{Deserialize, Serialize};

use crate::definitions::tool::Implementation;
use crate::definitions::variable::Variable;

/// One implementation of a hook. It runs where a prompt or an agent lists its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hook {
    /// Its id, for the prompts and agents that list it; the file's name unless given. Lower-case letters, digits and
    /// `_`, starting with a letter, at most 64.
    #[serde(default)]
    pub id: String,
    /// When it runs, and what it is given.
    pub hook: HookName,
    /// What it does, for whoever reads the definitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What runs.
    pub run: Implementation,
    /// Milliseconds after which it counts as failed; 30,000 unless given, and at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Values it needs; from the thread, the account, the instance, the agent or the active prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

/// The twelve hooks (spec §9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HookName {
    /// A thread was created. Observes.
    AfterThreadCreated,
    /// A subagent's thread was created. Observes.
    AfterSubagentCreated,
    /// The system prompt of a request is rendered. Changes its text.
    AfterSystemMessage,
    /// The stored messages of a request. Leaves out, moves or changes them, in that request alone.
    FilterMessages,
    /// The messages of a request as the model will get them. Changes them, in that request alone, or ends the run.
    PrefilterLlmHistory,
    /// A message is about to be stored. Changes it.
    BeforeCreateMessage,
    /// A message was stored. Observes.
    AfterCreateMessage,
    /// A stored message is about to be changed. Changes the change.
    BeforeUpdateMessage,
    /// A stored message was changed. Observes.
    AfterUpdateMessage,
    /// A tool result is about to be stored. Changes it.
    BeforeStoreToolResult,
    /// A call worked. Changes its result, or drops the call.
    AfterToolCallSuccess,
    /// A call failed. Changes its result, also into a success, or drops the call.
    AfterToolCallFailure,
}

impl HookName {
    /// As definitions and requests write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            HookName::AfterThreadCreated => "after_thread_created",
            HookName::AfterSubagentCreated => "after_subagent_created",
            HookName::AfterSystemMessage => "after_system_message",
            HookName::FilterMessages => "filter_messages",
            HookName::PrefilterLlmHistory => "prefilter_llm_history",
            HookName::BeforeCreateMessage => "before_create_message",
            HookName::AfterCreateMessage => "after_create_message",
            HookName::BeforeUpdateMessage => "before_update_message",
            HookName::AfterUpdateMessage => "after_update_message",
            HookName::BeforeStoreToolResult => "before_store_tool_result",
            HookName::AfterToolCallSuccess => "after_tool_call_success",
            HookName::AfterToolCallFailure => "after_tool_call_failure",
        }
    }

    /// Whether what it gives back counts for nothing.
    pub const fn observes(self) -> bool {
        matches!(
            self,
            HookName::AfterThreadCreated
                | HookName::AfterSubagentCreated
                | HookName::AfterCreateMessage
                | HookName::AfterUpdateMessage
        )
    }
}
