//! Variables: what a tool, prompt or agent needs from outside (spec §11).

use serde::{Deserialize, Serialize};

/// The declaration of a needed value. Its value on a thread is an *env* (spec §11.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Variable {
    /// Name of the env, such as `CITY`. Names starting with `BOBBIN_` are the runtime's own.
    pub name: String,
    /// Whether the value may be shown.
    #[serde(rename = "type")]
    pub kind: VariableKind,
    /// Whether a thread cannot be created without it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub required: bool,
    /// Whether a child thread does not inherit it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scoped: bool,
    /// What it is for, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// Who may see a variable's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum VariableKind {
    /// May be rendered into prompts and shown to clients.
    Text,
    /// Seen by tools only.
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
