//! Bodies of requests and other sets of options: JSON objects whose fields are taken one by one, with errors
//! that name them. List the known fields before you take one. Any other field is refused, because a misspelt
//! option would otherwise have no effect and no error.

use serde_json::{Map, Value};

use crate::request::query::unknown;
use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::limits;

/// The fields of a decision, with the field that names its subject.
macro_rules! decision {
    ($about:literal) => {
        &[
            $about,
            "decision",
            "args",
            "reason",
            "stop",
            "text",
            "choice",
            "result",
            "isError",
            "content",
            "until",
            "add",
            "actor",
            "interrupt",
        ]
    };
}

/// The fields of a decision about a wait (docs/approvals.md), alone or in a list.
pub const DECISION: &[&str] = decision!("id");

/// The fields of `POST /resume`: a decision, and the token of a link.
pub const RESUME: &[&str] = decision!("token");

/// The fields of a body that remain to be taken.
#[derive(Debug)]
pub struct Body(Map<String, Value>);

/// A body whose field names have not been checked.
#[derive(Debug)]
pub struct UncheckedBody(Map<String, Value>);

impl UncheckedBody {
    /// Returns the body if it has only these fields.
    ///
    /// # Errors
    /// `invalid_field` names the first unknown field, and the known one that is most similar.
    pub fn known(self, fields: &[&str]) -> Result<Body> {
        match self.0.keys().find(|name| !fields.contains(&name.as_str())) {
            None => Ok(Body(self.0)),
            Some(name) => Err(unknown("field", name, fields)),
        }
    }
}

impl Body {
    /// Parses a body; an empty body has no fields.
    pub fn parse(text: &str) -> Result<UncheckedBody> {
        if text.trim().is_empty() {
            return Ok(UncheckedBody(Map::new()));
        }
        match bobbin_definitions::json::from_str(text) {
            Ok(Value::Object(fields)) => Ok(UncheckedBody(fields)),
            Ok(other) => Err(Error::new(
                Code::BadJson,
                format!("The body must be a JSON object, not {}.", kind(&other)),
            )),
            Err(error) => Err(not_json(text, &error)),
        }
    }

    /// The fields of an object.
    pub fn of(fields: Map<String, Value>) -> UncheckedBody {
        UncheckedBody(fields)
    }

    /// Takes a field as it is; `null` counts as absent.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// Takes a field as it is, including `null`.
    pub fn take_even_null(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// Takes a field that must be a string.
    pub fn string(&mut self, name: &str) -> Result<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(name, "a string", &other)),
        }
    }

    /// Takes a field that must be true or false; absent is false.
    pub fn flag(&mut self, name: &str) -> Result<bool> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(value),
            Some(other) => Err(wrong(name, "true or false", &other)),
        }
    }

    /// Takes a field that must be a whole number.
    pub fn whole(&mut self, name: &str) -> Result<Option<i64>> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_i64() {
                Some(number) => Ok(Some(number)),
                None => Err(wrong(name, "a whole number", &value)),
            },
        }
    }

    /// Takes a field that must be a list of strings.
    pub fn strings(&mut self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let Value::Array(items) = value else { return Err(wrong(name, "a list of strings", &value)) };
        let strings: Vec<String> = items
            .into_iter()
            .map(|item| match item {
                Value::String(text) => Ok(text),
                other => Err(wrong(name, "a list of strings", &other)),
            })
            .collect::<Result<_>>()?;
        bounded(name, &bobbin_definitions::json!(strings))?;
        Ok(Some(strings))
    }

    /// Takes a field that must be an object of bounded size.
    pub fn object(&mut self, name: &str) -> Result<Option<Map<String, Value>>> {
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

/// The error for a body that is not JSON. It names the numbers of JavaScript that JSON lacks.
fn not_json(text: &str, error: &serde_json::Error) -> Error {
    let at = text
        .lines()
        .nth(error.line().saturating_sub(1))
        .and_then(|line| line.get(error.column().saturating_sub(1)..));
    // The parser reports -Infinity after its sign.
    let number = ["NaN", "Infinity"].into_iter().find(|name| at.is_some_and(|at| at.starts_with(name)));
    match number {
        Some(name) => Error::new(Code::BadJson, format!("The body is no JSON: {name} is no JSON value.")),
        // The parser has no error category for the recursion limit.
        None if error.to_string().starts_with("recursion limit") => Error::new(
            Code::BadJson,
            format!("The body is nested deeper than {} levels.", limits::JSON_DEPTH),
        ),
        None => Error::new(Code::BadJson, format!("The body is not JSON: {error}.")),
    }
}

/// Refuses a value nested deeper than [`limits::JSON_DEPTH`]. A stored value must be readable again, also
/// inside a response.
///
/// # Errors
/// `invalid_field`.
pub fn shallow(name: &str, value: &Value) -> Result<()> {
    if is_shallow(value, limits::JSON_DEPTH) {
        return Ok(());
    }
    Err(Error::field(name, format!("`{name}` is nested deeper than {} levels.", limits::JSON_DEPTH))
        .hint("Keep what is deeper as text."))
}

/// Whether arrays and objects are nested at most to this number of levels.
fn is_shallow(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| is_shallow(item, levels - 1)),
        Value::Object(fields) => levels > 0 && fields.values().all(|item| is_shallow(item, levels - 1)),
        _ => true,
    }
}

/// Refuses a value that has more than [`limits::METADATA_BYTES`] as JSON, or is nested too deep.
///
/// # Errors
/// `too_large`, `invalid_field`.
pub fn bounded(name: &str, value: &Value) -> Result<()> {
    shallow(name, value)?;
    let bytes = value.to_string().len();
    if bytes > limits::METADATA_BYTES {
        return Err(Error::new(
            Code::TooLarge,
            format!("`{name}` has {bytes} bytes as JSON; the limit is {}.", limits::METADATA_BYTES),
        )
        .at(name));
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

#[cfg(test)]
mod tests {
    use super::*;
    use bobbin_definitions::json;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn a_field_that_is_not_known_is_refused_with_the_one_that_was_meant() {
        let error = |text: &str, known: &[&str]| Body::parse(text).unwrap().known(known).unwrap_err();
        let refused = error(r#"{"name":1,"dealy":2}"#, &["name", "delay"]);
        assert_eq!((refused.code, refused.field.as_deref()), (Code::InvalidField, Some("dealy")));
        assert_eq!(refused.hint.as_deref(), Some("Did you mean `delay`? There are: name, delay."));
        assert_eq!(error("{\"x\":null}", &[]).hint.as_deref(), Some("There are none here."));
        assert!(Body::parse("{}").unwrap().known(&[]).is_ok() && Body::parse("").unwrap().known(&[]).is_ok());
    }

    #[test]
    fn what_is_too_deep_is_refused_before_it_is_stored() {
        assert!(shallow("v", &nested(limits::JSON_DEPTH)).is_ok());
        let error = shallow("v", &nested(limits::JSON_DEPTH + 1)).unwrap_err();
        assert!(error.message.contains("deeper than 100 levels"), "{error}");
        // Deeper than the parser's limit. Then a value at the limit, within the levels that a response adds.
        let error = Body::parse(&format!("{{\"v\":{}}}", nested(200))).unwrap_err();
        assert!(error.message.contains("deeper than 100 levels"), "{error}");
        let around = json!({ "values": [{ "value": nested(limits::JSON_DEPTH) }] }).to_string();
        assert!(bobbin_definitions::json::from_str::<Value>(&around).is_ok());
    }
}
