//! Effects: work that runs later, outside any turn (spec §10).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::schema;
use crate::definitions::tool::Implementation;
use crate::definitions::variable::Variable;

/// Something that a thread does at a time, once or again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effect {
    /// Its name, for whoever schedules it; the file's name unless given. Letters, digits, `_` and `-`, at most 64.
    #[serde(default)]
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments, an object at the top; without it any object is taken. Checked when the effect is
    /// scheduled and again when it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, Value>>"))]
    pub args: Option<Value>,
    /// What runs.
    pub run: Implementation,
    /// Milliseconds after which an attempt counts as failed: for http 60,000 unless given, for native 600,000; 600,000
    /// at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Attempts before it is given up, 1 to 20; 6 unless given. Between them it waits 1 s, 2 s, 4 s, and so on, at
    /// most an hour. An attempt whose process was lost counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Values it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

impl Effect {
    /// What is wrong with arguments; empty when nothing is.
    pub fn validate(&self, args: &Value) -> Vec<schema::Problem> {
        schema::problems(self.args.as_ref(), args)
    }
}
