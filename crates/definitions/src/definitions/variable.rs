//! Variables: what a tool, prompt or agent needs from outside (spec §11).

use serde::{Deserialize, Serialize};

/// A variable that an agent, prompt, tool, hook, effect, endpoint or MCP server needs (spec §11.1). The value
/// that a thread has for it is an *env*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Variable {
    /// The variable's name, such as `CITY`. Names that start with `BOBBIN_` are reserved for the runtime.
    pub name: String,
    /// The variable's type: `text` or `secret`.
    #[serde(rename = "type")]
    pub kind: VariableKind,
    /// If `true`, a thread cannot be created without a value, and a tool does not run without one. Default:
    /// `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub required: bool,
    /// If `true`, subagents do not inherit the value. Default: `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scoped: bool,
    /// The variable's purpose, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// The type of a variable. It defines who may see the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum VariableKind {
    /// The value may be rendered into prompts and shown to clients.
    Text,
    /// The value is visible only to tools and other code.
    Secret,
}

impl VariableKind {
    /// `text` or `secret`.
    pub const fn as_str(self) -> &'static str {
        match self {
            VariableKind::Text => "text",
            VariableKind::Secret => "secret",
        }
    }
}

/// Whether a value is its type's default, so that the catalog leaves it out.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Whether a value is `true`, for fields whose default that is.
pub fn is_true(value: &bool) -> bool {
    *value
}

/// The default of fields that are on unless switched off.
pub const fn yes() -> bool {
    true
}
