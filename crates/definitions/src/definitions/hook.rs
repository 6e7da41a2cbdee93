//! Hooks: code of the application that sees, and partly changes, what passes through a thread (spec §9).

use serde::{Deserialize, Serialize};

use crate::definitions::tool::Implementation;
use crate::definitions::variable::Variable;

/// A hook: code that runs at one point of a thread's work. It runs if a prompt or an agent lists its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hook {
    /// The hook's id, by which prompts and agents list it: lower-case letters, digits and `_`, starting with
    /// a letter, at most 64 characters. Default: the name of its file.
    #[serde(default)]
    pub id: String,
    /// The point at which the hook runs. It defines the hook's arguments.
    pub hook: HookName,
    /// The hook's purpose, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The implementation that runs.
    pub run: Implementation,
    /// The time limit of a call, in milliseconds, at most 30,000. After it the hook fails. Default: 30,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The variables that the hook needs. Values come from the thread, the account, the instance, the agent
    /// or the active prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

/// The twelve points at which hooks run (spec §9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HookName {
    /// After a thread was created. The hook only observes.
    AfterThreadCreated,
    /// After the thread of a subagent was created. The hook only observes.
    AfterSubagentCreated,
    /// After the system prompt of a request was rendered. The hook may change its text.
    AfterSystemMessage,
    /// For each request, with the stored messages. The hook may remove, move or change messages, in this
    /// request only.
    FilterMessages,
    /// For each request, with the messages as the model receives them. The hook may change them, in this
    /// request only, or end the run.
    PrefilterLlmHistory,
    /// Before a message is stored. The hook may change the message.
    BeforeCreateMessage,
    /// After a message was stored. The hook only observes.
    AfterCreateMessage,
    /// Before a stored message is changed. The hook may modify the change.
    BeforeUpdateMessage,
    /// After a stored message was changed. The hook only observes.
    AfterUpdateMessage,
    /// Before a tool result is stored. The hook may change the result.
    BeforeStoreToolResult,
    /// After a tool call succeeded. The hook may change the result or remove the call.
    AfterToolCallSuccess,
    /// After a tool call failed. The hook may change the result, also into a success, or remove the call.
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
