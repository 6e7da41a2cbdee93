//! Values of variables (docs/variables.md).

use serde::Serialize;

use super::{Object, Seconds};

/// The schema of visible values, by name.
#[cfg(feature = "schema")]
pub(super) type Values = std::collections::BTreeMap<String, String>;

/// The schema of types, by name.
#[cfg(feature = "schema")]
pub(super) type Types = std::collections::BTreeMap<String, bobbin_definitions::definitions::VariableKind>;

/// The visible values of variables of the instance or an account.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShownEnv {
    /// The values of type `text`, by name.
    #[cfg_attr(feature = "schema", schemars(with = "Values"))]
    pub env: Object,
    /// The types of all values, by name.
    #[cfg_attr(feature = "schema", schemars(with = "Types"))]
    pub env_types: Object,
}

/// The variables that a subagent waits for before it is created.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissingVariables<'a> {
    /// The id of this request for values.
    pub request_id: &'a str,
    /// The id of the thread that creates the subagent.
    pub parent_thread_id: &'a str,
    /// The agent of the subagent.
    pub agent_name: &'a str,
    /// The same as `agent_name`.
    pub registry_agent_name: &'a str,
    /// The name that the model gave the subagent. `null` if it gave none.
    pub name: Option<&'a str>,
    /// The names of all variables that the agent requires.
    pub required: &'a [String],
    /// The names of those without a value.
    pub missing: &'a [String],
    /// The time of the request, in seconds since 1970.
    pub created_at: Seconds,
    /// The time at which the request is given up, in seconds since 1970.
    #[cfg_attr(feature = "schema", schemars(with = "Seconds"))]
    pub expires_at: Option<Seconds>,
}

/// Values of variables that a subagent has received.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VariablesTaken<'a> {
    /// The id of the request for values.
    pub request_id: &'a str,
    /// The id of the subagent's thread.
    pub child_thread_id: &'a str,
    /// Always `success`.
    pub status: &'static str,
}
