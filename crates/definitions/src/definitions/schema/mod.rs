//! JSON Schemas of arguments: a closed list of keywords, small enough for wasm (spec §6.1). `check`: whether a schema has no
//! other. `strict`: the form of it that providers get; `root`: one object in the place of a choice at the root.
//!
//! | about | keywords |
//! |---|---|
//! | any value | `type` (a name or a list of names), `enum`, `const`, `anyOf`, `oneOf` |
//! | objects | `properties`, `required`, `additionalProperties` (`true`, `false` or a schema) |
//! | arrays | `items`, `minItems`, `maxItems` |
//! | strings | `minLength`, `maxLength` (in characters) |
//! | numbers | `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum` |
//! | notes that check nothing | `title`, `description`, `default`, `examples`, `format`, `deprecated`, `$comment`, `$schema` |
//!
//! They mean what JSON Schema 2020-12 says; `true` and `{}` accept anything, `false` nothing. Any other keyword is a
//! catalog error ([`check`]): a schema that promises more than is checked would be worse than none.
//!
//! Schemas and values may both be a stranger's, and the work grows with both, so each check has a limit of steps
//! (`validation`), and texts about problems have a limit of length (`words`).

pub mod check;
pub mod root;
pub mod strict;
mod validation;
mod words;

pub use crate::definitions::schema::check::check;
pub use crate::definitions::schema::strict::{strict, with_defaults};

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Number, Value};

use crate::definitions::schema::validation::{Keywords, Validation};

/// Levels of schemas within schemas.
pub const DEPTH: usize = 10;

/// Something that is wrong at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Origin, such as `items[0].name`; empty for the whole.
    pub path: String,
    /// What, without a full stop.
    pub message: String,
}

/// One line, as a model reads it: `text: expected string, got integer.`
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => write!(f, "{}.", self.message),
            path => write!(f, "{path}: {}.", self.message),
        }
    }
}

/// What is wrong with a value; empty when nothing is. Keywords that are not on the list are passed over. A value that takes
/// more work than one check may do has a problem that says so.
pub fn validate(schema: &Value, value: &Value) -> Vec<Problem> {
    Validation::new(Keywords::Listed).problems(schema, value)
}

/// The same with a schema that may have keywords which are not on the list: what follows from them alone is no problem.
pub fn validate_leniently(schema: &Value, value: &Value) -> Vec<Problem> {
    Validation::new(Keywords::Any).problems(schema, value)
}

/// Whether a value fits; `None` where finding out takes more work than one check may do.
pub fn fits(schema: &Value, value: &Value) -> Option<bool> {
    Validation::new(Keywords::Listed).fits(schema, value)
}

/// Arguments without those that are `null`, where the schema asks for none and takes no `null`: so models leave them out.
pub fn without_nulls(schema: &Value, mut args: Value) -> Value {
    let Some(schema) = schema.as_object() else { return args };
    if let Some(given) = args.as_object_mut() {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required: BTreeSet<&str> = required(schema).collect();
        let mut validation = Validation::new(Keywords::Any);
        let mut refuses = |name: &str| {
            properties
                .and_then(|properties| properties.get(name))
                .is_some_and(|property| validation.fits(property, &Value::Null) == Some(false))
        };
        given.retain(|name, value| !value.is_null() || required.contains(name.as_str()) || !refuses(name));
    }
    args
}

/// Problems, a line each.
pub fn lines(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The same for arguments: of something that declares none, any object is taken.
pub fn problems(schema: Option<&Value>, args: &Value) -> Vec<Problem> {
    match schema {
        Some(schema) => validate(schema, args),
        None => validate(&crate::json!({ "type": "object" }), args),
    }
}

/// The names in `type`, if the schema has it.
fn types(schema: &Map<String, Value>) -> Option<impl Iterator<Item = &str>> {
    let names = match schema.get("type")? {
        Value::Array(names) => names.as_slice(),
        name => std::slice::from_ref(name),
    };
    Some(names.iter().filter_map(Value::as_str))
}

/// The names in `required`.
pub fn required(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Whether `type` names this type, alone or among others.
fn has_type(schema: &Map<String, Value>, name: &str) -> bool {
    types(schema).is_some_and(|mut types| types.any(|each| each == name))
}

pub(super) fn types_of(schema: &Value) -> Vec<&str> {
    schema.as_object().and_then(types).into_iter().flatten().collect()
}

/// Whether a value is of a JSON Schema type. `1.0` is an integer.
fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "number" => value.is_number(),
        "integer" => value.as_number().is_some_and(is_integer),
        name => type_name(value) == name,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_integer(number) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_integer(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}
