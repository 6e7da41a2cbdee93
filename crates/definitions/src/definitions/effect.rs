//! Effects: work that runs later, outside any turn (spec §10).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::schema;
use crate::definitions::tool::Implementation;
use crate::definitions::variable::Variable;

/// An effect: work that a thread does at a scheduled time, once or repeatedly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effect {
    /// The effect's name, by which it is scheduled: letters, digits, `_` and `-`, at most 64 characters.
    /// Default: the name of its file.
    #[serde(default)]
    pub name: String,
    /// The effect's purpose.
    pub description: String,
    /// The JSON Schema of the arguments. It describes an object. Bobbin checks the arguments when the effect
    /// is scheduled and again when it runs. Default: any object is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, Value>>"))]
    pub args: Option<Value>,
    /// The implementation that runs.
    pub run: Implementation,
    /// The time limit of one attempt, in milliseconds, at most 600,000. After it the attempt fails. Default:
    /// 60,000 for `http` and 600,000 for `native` and `code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The maximum number of attempts, 1 to 20. The pauses between them are 1 s, 2 s, 4 s and so on, at most
    /// one hour. An attempt that ends in a crash counts. Default: 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The variables that the effect needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

impl Effect {
    /// What is wrong with arguments; empty when nothing is.
    pub fn validate(&self, args: &Value) -> Vec<schema::Problem> {
        schema::problems(self.args.as_ref(), args)
    }
}
