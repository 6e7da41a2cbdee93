//! Arguments of calls from sandboxed code, taken one by one.

use bytes::Bytes;
use serde_json::{Map, Value as Json};

use crate::error::{Error, Result};
use crate::request::Query;
use crate::sandbox::Value;
use crate::validate::hint;

/// The arguments that are not taken yet.
pub(super) struct Args(std::vec::IntoIter<Value>);

impl Args {
    pub(super) fn new(args: Vec<Value>) -> Args {
        Args(args.into_iter())
    }

    /// The next argument; absent ones are `undefined`.
    pub(super) fn next(&mut self) -> Value {
        self.0.next().unwrap_or(Value::Undefined)
    }

    /// All remaining arguments.
    pub(super) fn all(self) -> Vec<Value> {
        self.0.collect()
    }

    pub(super) fn text(&mut self, name: &str) -> Result<String> {
        self.optional_text(name)?.ok_or_else(|| wrong(name, "a string"))
    }

    pub(super) fn optional_text(&mut self, name: &str) -> Result<Option<String>> {
        match self.next() {
            Value::String(text) => Ok(Some(text)),
            Value::Undefined | Value::Null => Ok(None),
            _ => Err(wrong(name, "a string")),
        }
    }

    /// The next argument as JSON; `None` for `undefined` and `null`.
    pub(super) fn optional_json(&mut self) -> Option<Json> {
        self.next().to_json().filter(|json| !json.is_null())
    }

    pub(super) fn object(&mut self, name: &str) -> Result<Map<String, Json>> {
        self.optional_object(name)?.ok_or_else(|| wrong(name, "an object"))
    }

    pub(super) fn optional_object(&mut self, name: &str) -> Result<Option<Map<String, Json>>> {
        match self.optional_json() {
            Some(Json::Object(fields)) => Ok(Some(fields)),
            None => Ok(None),
            Some(_) => Err(wrong(name, "an object")),
        }
    }

    /// The arguments of a tool or an effect; `{}` by default.
    pub(super) fn json_object(&mut self) -> Result<Json> {
        Ok(Json::Object(self.optional_object("args")?.unwrap_or_default()))
    }

    /// A value to store as JSON. Anything that JSON cannot express is refused, not dropped.
    pub(super) fn storable(&mut self, name: &str) -> Result<Json> {
        let value = self.next();
        stored(&value).map_err(|what| Error::field(name, format!("A value cannot hold {what}.")))
    }

    /// A string, or the bytes of a binary value.
    pub(super) fn bytes(&mut self, name: &str) -> Result<Bytes> {
        match self.next() {
            Value::String(text) => Ok(Bytes::from(text)),
            Value::Binary(_, bytes) => Ok(bytes),
            _ => Err(wrong(name, "a string, an ArrayBuffer or a typed array")),
        }
    }

    /// Arguments to store; `{}` by default. Anything that JSON cannot express is refused, not dropped.
    pub(super) fn storable_object(&mut self, name: &str) -> Result<Json> {
        match self.storable(name)? {
            Json::Null => Ok(Json::Object(Map::new())),
            object @ Json::Object(_) => Ok(object),
            _ => Err(wrong(name, "an object")),
        }
    }

    /// The options of a list (spec §14.3), as query parameters.
    pub(super) fn query(&mut self, known: &[&str]) -> Result<Query> {
        let options = self.optional_object("options")?.unwrap_or_default();
        if let Some(name) = options.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(Error::field(name, format!("`{name}` is no option here{}.", hint(name, known))));
        }
        let parameters = options.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
            let name = if name == "maxDepth" { "depth".to_owned() } else { name };
            (name, value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        });
        Ok(Query(parameters.collect()))
    }
}

fn wrong(name: &str, expected: &str) -> Error {
    Error::field(name, format!("`{name}` must be {expected}."))
}

/// Converts a value to JSON, if that loses nothing.
fn stored(value: &Value) -> Result<Json, &'static str> {
    match value {
        Value::Undefined | Value::Null => Ok(Json::Null),
        Value::Number(number) if !number.is_finite() => Err("NaN or an infinity"),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value.to_json().unwrap_or_default()),
        Value::Array(items) => items.iter().map(stored).collect(),
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !matches!(value, Value::Undefined));
            kept.map(|(key, value)| Ok((key.clone(), stored(value)?)))
                .collect::<Result<Map<_, _>, _>>()
                .map(Json::Object)
        }
        Value::BigInt(_) => Err("a bigint"),
        Value::Map(_) | Value::Set(_) => Err("a Map or a Set"),
        Value::Date(_) => Err("a Date: give its text"),
        Value::RegExp { .. } => Err("a regular expression"),
        Value::Error(_) => Err("an error"),
        Value::Binary(..) => Err("bytes: write a file"),
        Value::Function(_) => Err("a function"),
    }
}
