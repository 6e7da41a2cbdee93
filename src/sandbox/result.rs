//! The result of an execution (spec §17.4).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::json;
use crate::sandbox::value::{Exception, Value};

/// The outcome of an execution (spec §17.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The export was found, and returned a value.
    Success,
    /// The code threw, or its value cannot be copied.
    Error,
    /// The code never ran: it cannot be parsed or linked, or the options are wrong.
    LinkError,
    /// It exceeded its memory limit.
    Memory,
    /// It was ended from outside.
    Terminated,
}

impl Status {
    /// The name in results.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Success => "success",
            Status::Error => "error",
            Status::LinkError => "link_error",
            Status::Memory => "memory",
            Status::Terminated => "terminated",
        }
    }
}

/// An error, and its position in the caller's source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CodeError {
    /// `TypeError`, `SyntaxError`, `Terminated`, …
    pub name: String,
    /// Description.
    pub message: String,
    /// The stack in the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// Line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column, from 1, in UTF-16 units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The file of that line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The requested module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub specifier: Option<String>,
}

impl CodeError {
    /// An error without a position.
    pub fn new(name: &str, message: impl Into<String>) -> CodeError {
        CodeError { name: name.to_owned(), message: message.into(), ..CodeError::default() }
    }
}

impl From<Exception> for CodeError {
    fn from(thrown: Exception) -> CodeError {
        let stack = (!thrown.stack.is_empty()).then_some(thrown.stack);
        CodeError { stack, ..CodeError::new(&thrown.name, thrown.message) }
    }
}

/// A line of console output.
#[derive(Clone, Debug)]
pub struct Log {
    /// `log`, `info`, `warn`, `error` or `debug`.
    pub level: String,
    /// The arguments of the call.
    pub args: Vec<Value>,
    /// Milliseconds since 1970.
    pub timestamp: f64,
}

impl Log {
    /// The arguments in a line: strings as they are, other values as JSON.
    pub fn text(&self) -> String {
        let word = |value: &Value| match value.to_json() {
            Some(Json::String(text)) => text,
            Some(json) => json.to_string(),
            None => "undefined".to_owned(),
        };
        self.args.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// The result of an execution.
#[derive(Clone, Debug)]
pub struct CodeResult {
    /// The outcome.
    pub status: Status,
    /// The value, on success.
    pub result: Value,
    /// The error, otherwise.
    pub error: Option<CodeError>,
    /// The console output, unless the caller provided its own console.
    pub logs: Vec<Log>,
    /// Whether console output was cut.
    pub logs_cut: bool,
    /// The reported values.
    pub reports: Vec<Value>,
    /// Duration in milliseconds.
    pub duration_ms: f64,
}

impl CodeResult {
    /// A result without the sandbox.
    pub(crate) fn failed(status: Status, error: CodeError) -> CodeResult {
        CodeResult {
            status,
            result: Value::Undefined,
            error: Some(error),
            logs: Vec::new(),
            logs_cut: false,
            reports: Vec::new(),
            duration_ms: 0.0,
        }
    }

    /// The specification's `CodeExecutionResult`, for code in a sandbox.
    pub fn to_value(&self) -> Value {
        let mut fields = vec![("status".to_owned(), Value::from(self.status.as_str()))];
        if self.status == Status::Success {
            fields.push(("result".to_owned(), self.result.clone()));
        }
        if let Some(error) = &self.error {
            fields.push(("error".to_owned(), Value::from(json!(error))));
        }
        let logs = self.logs.iter().map(|log| {
            Value::Object(vec![
                ("level".to_owned(), Value::String(log.level.clone())),
                ("args".to_owned(), Value::Array(log.args.clone())),
                ("timestamp".to_owned(), Value::Number(log.timestamp)),
            ])
        });
        fields.push(("logs".to_owned(), Value::Array(logs.collect())));
        fields.push(("reports".to_owned(), Value::Array(self.reports.clone())));
        fields.push(("durationMs".to_owned(), Value::Number(self.duration_ms)));
        Value::Object(fields)
    }

    /// The result as JSON, for clients and models; see [`Value::to_json`].
    pub fn to_json(&self) -> Json {
        self.to_value().to_json().unwrap_or_else(|| Json::Object(Map::new()))
    }
}
