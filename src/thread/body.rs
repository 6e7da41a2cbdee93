//! Bodies of requests: JSON objects whose fields are taken one by one, with errors that name them.

use serde_json::{Map, Value};

use crate::error::{Code, Error, Result};
use crate::limits;

/// The fields of a body that are not taken yet.
pub(super) struct Body(Map<String, Value>);

impl Body {
    /// Reads a body; an empty one has no fields.
    pub(super) fn parse(text: &str) -> Result<Body> {
        if text.trim().is_empty() {
            return Ok(Body(Map::new()));
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Ok(Body(fields)),
            Ok(other) => Err(Error::new(
                Code::BadJson,
                format!("The body must be a JSON object, not {}.", kind(&other)),
            )),
            Err(error) => Err(not_json(text, &error)),
        }
    }

    /// An object's fields.
    pub(super) fn of(fields: Map<String, Value>) -> Body {
        Body(fields)
    }

    /// A field as it is; `null` counts as absent.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// A field as it is; `null` is a value too.
    pub(super) fn take_even_null(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// A field that must be a string.
    pub(super) fn string(&mut self, name: &str) -> Result<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(name, "a string", &other)),
        }
    }

    /// A field that must be true or false; absent is false.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(value),
            Some(other) => Err(wrong(name, "true or false", &other)),
        }
    }

    /// A field that must be a whole number.
    pub(super) fn whole(&mut self, name: &str) -> Result<Option<i64>> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_i64() {
                Some(number) => Ok(Some(number)),
                None => Err(wrong(name, "a whole number", &value)),
            },
        }
    }

    /// Names of the fields that were not taken.
    pub(super) fn rest(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// A field that must be a list of strings.
    pub(super) fn strings(&mut self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let Value::Array(items) = value else { return Err(wrong(name, "a list of strings", &value)) };
        let strings: Vec<String> = items
            .into_iter()
            .map(|item| match item {
                Value::String(text) => Ok(text),
                other => Err(wrong(name, "a list of strings", &other)),
            })
            .collect::<Result<_>>()?;
        bounded(name, &serde_json::json!(strings))?;
        Ok(Some(strings))
    }

    /// A field that must be an object of bounded size.
    pub(super) fn object(&mut self, name: &str) -> Result<Option<Map<String, Value>>> {
        match self.take(name) {
            None => Ok(None),
            Some(value @ Value::Object(_)) => {
                bounded(name, &value)?;
                match value {
                    Value::Object(fields) => Ok(Some(fields)),
                    other => Err(wrong(name, "an object", &other)),
                }
            }
            Some(other) => Err(wrong(name, "an object", &other)),
        }
    }
}

/// What is wrong with a body. JavaScript's numbers that JSON does not know are named.
fn not_json(text: &str, error: &serde_json::Error) -> Error {
    let at = text
        .lines()
        .nth(error.line().saturating_sub(1))
        .and_then(|line| line.get(error.column().saturating_sub(1)..));
    // The error of -Infinity is at what follows the sign.
    let number = ["NaN", "Infinity"].into_iter().find(|name| at.is_some_and(|at| at.starts_with(name)));
    match number {
        Some(name) => Error::new(Code::BadJson, format!("The body is no JSON: {name} is no JSON value.")),
        None => Error::new(Code::BadJson, format!("The body is not JSON: {error}.")),
    }
}

/// Refuses a value that takes more than [`limits::METADATA_BYTES`] as JSON.
pub(super) fn bounded(name: &str, value: &Value) -> Result<()> {
    let bytes = value.to_string().len();
    if bytes > limits::METADATA_BYTES {
        return Err(Error {
            field: Some(name.to_owned()),
            ..Error::new(
                Code::TooLarge,
                format!("`{name}` has {bytes} bytes as JSON; the limit is {}.", limits::METADATA_BYTES),
            )
        });
    }
    Ok(())
}

fn wrong(name: &str, expected: &str, got: &Value) -> Error {
    Error::field(name, format!("`{name}` must be {expected}, not {}.", kind(got)))
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
