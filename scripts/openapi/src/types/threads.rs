//! Threads, their subagents, and the waits of those.

use std::collections::BTreeMap;

use bobbin_definitions::definitions::VariableKind;
use bobbin_definitions::definitions::message::ToolStatus;
use bobbin_protocols::responses::messages::Attachment;
use schemars::JsonSchema;

use super::Object;
use super::budgets::GivenBudget;

/// A thread to create.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NewThread {
    agent_id: String,
    /// The owner. A caller whose scope is an owner does not need it.
    user_id: Option<String>,
    /// Your name for the thread: 1 to 255 visible characters. An owner has one thread for each key.
    #[schemars(length(min = 1, max = 255))]
    key: Option<String>,
    tags: Option<Vec<String>>,
    /// For you.
    properties: Option<Object>,
    /// Values of variables, by name.
    env: Option<BTreeMap<String, String>>,
    /// The types of the values, `secret` by default.
    env_types: Option<BTreeMap<String, VariableKind>>,
    /// The old name of `env`.
    tenvs: Option<BTreeMap<String, String>>,
    budget: Option<GivenBudget>,
    /// Earlier messages.
    history: Option<Vec<Earlier>>,
    /// The id of the original thread in another deployment. `history` then has whole messages.
    #[schemars(length(min = 1, max = 255))]
    copied_from: Option<String>,
    /// Seconds until the thread deletes itself.
    #[schemars(range(min = 1, max = 31_536_000))]
    expires_in: Option<i64>,
}

/// An earlier message for a new thread.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Earlier {
    role: EarlierRole,
    content: Option<String>,
    silent: Option<bool>,
    /// This field and the following ones only with `copied_from`, as in the original thread. The number is kept.
    id: Option<String>,
    name: Option<String>,
    tool_calls: Option<String>,
    tool_call_id: Option<String>,
    tool_status: Option<ToolStatus>,
    created_at: Option<i64>,
    parent_id: Option<String>,
    depth: Option<u32>,
    metadata: Option<Object>,
    attachments: Option<Vec<Attachment<'static>>>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum EarlierRole {
    User,
    Assistant,
    System,
    /// Only with `copied_from`.
    Tool,
}

/// A copy to create.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NewFork {
    /// The last copied message. By default, the last complete message.
    up_to: Option<String>,
    /// Alternative to `up_to`: a message. The copy ends with the whole answer to it.
    answer_to: Option<String>,
    /// Your name for the copy.
    #[schemars(length(min = 1, max = 255))]
    key: Option<String>,
    /// By default, those of the thread.
    tags: Option<Vec<String>>,
    /// By default, those of the thread.
    properties: Option<Object>,
    /// Seconds until the thread deletes itself.
    #[schemars(range(min = 1, max = 31_536_000))]
    expires_in: Option<i64>,
}

/// Changes of a thread. At least one field is required.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ThreadChange {
    tags: Option<Vec<String>>,
    properties: Option<Object>,
    agent_id: Option<String>,
    env_patch: Option<BTreeMap<String, String>>,
    env_type_patch: Option<BTreeMap<String, VariableKind>>,
    env_delete: Option<Vec<String>>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct GivenVariables {
    env: BTreeMap<String, String>,
    env_types: Option<BTreeMap<String, VariableKind>>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct EnvChange {
    env_patch: Option<BTreeMap<String, String>>,
    env_type_patch: Option<BTreeMap<String, VariableKind>>,
    env_delete: Option<Vec<String>>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Stop {
    /// Stop only if this run is active.
    run: Option<String>,
    /// Stop only if the active run answers this message, and nobody has sent a message since.
    answer_to: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Continue {
    side: Option<SideName>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum SideName {
    A,
    B,
}
