//! Limits of `execute_code`: the `options` of the prompt's entry.

use serde::Deserialize;
use serde_json::{Map, Value};

/// See docs/run-code.md.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Settings {
    /// Bytes of code.
    pub(super) max_code_size: usize,
    /// Bytes of the result and the output together.
    pub(super) max_output_size: usize,
    /// Milliseconds.
    pub(super) code_timeout_ms: u64,
    /// Calls of tools.
    pub(super) max_tool_calls: usize,
    /// Hosts that `fetch` may reach.
    pub(super) allowed_hosts: Vec<String>,
    /// The directory of the thread's files below which the code reads and writes.
    pub(super) working_directory: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            max_code_size: 50 << 10,
            max_output_size: 1 << 20,
            code_timeout_ms: 60_000,
            max_tool_calls: 25,
            allowed_hosts: Vec::new(),
            working_directory: "/sandbox".to_owned(),
        }
    }
}

impl Settings {
    /// Those of an entry.
    pub(super) fn of(options: &Map<String, Value>) -> Result<Settings, String> {
        let settings: Settings =
            serde_json::from_value(Value::Object(options.clone())).map_err(|error| error.to_string())?;
        match settings.code_timeout_ms {
            0 => Err("codeTimeoutMs must be positive".to_owned()),
            1..=600_000 => Ok(settings),
            _ => Err("codeTimeoutMs is at most 600000".to_owned()),
        }
    }
}
