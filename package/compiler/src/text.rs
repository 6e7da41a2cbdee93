//! Files as values: JSON, and Markdown with YAML front matter.

use std::fmt;

use bobbin_definitions::validate::{Complaint, Severity};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

/// Parses a file. The body of a Markdown file is the field `prompt`. `$schema`, which is for editors, is left
/// out. Mistakes have a line and a column, in the form that editors and terminals can jump to.
pub(super) fn read(path: &str, text: &str) -> Result<Value, Complaint> {
    let wrong = |wrong| complaint(path, wrong);
    let value = if path.ends_with(".md") { markdown(text) } else { parsed(text) };
    match value.map_err(wrong)? {
        Value::Object(mut object) => {
            object.remove("$schema");
            Ok(Value::Object(object))
        }
        _ => Err(wrong(Wrong { at: None, message: "must hold an object".to_owned() })),
    }
}

fn complaint(path: &str, wrong: Wrong) -> Complaint {
    let file = match wrong.at {
        Some((line, column)) => format!("{path}:{line}:{column}"),
        None => path.to_owned(),
    };
    Complaint { file, field: String::new(), message: wrong.message, severity: Severity::Error }
}

struct Wrong {
    at: Option<(u64, u64)>,
    message: String,
}

fn parsed(text: &str) -> Result<Value, Wrong> {
    serde_json::from_str(text).map(|Unique(value)| value).map_err(|error| {
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = error.to_string();
        let message = message.strip_suffix(&place).unwrap_or(&message);
        let message = advice(text, message, error.line(), error.column()).unwrap_or(message).to_owned();
        // Lines are counted as in editors. For an error at the end of a line, the column is the one before
        // it.
        Wrong { at: Some((error.line() as u64, error.column().max(1) as u64)), message }
    })
}

/// What the author most likely did, if serde_json's message does not help.
fn advice(text: &str, message: &str, line: usize, column: usize) -> Option<&'static str> {
    if text.trim().is_empty() {
        return Some("the file is empty");
    }
    if message.starts_with("EOF while parsing") {
        return Some("the file ends in the middle: a bracket, brace or quote is not closed");
    }
    let at = text.lines().nth(line.checked_sub(1)?)?.get(column.checked_sub(1)?..)?;
    match at.chars().next()? {
        '/' | '#' => Some("JSON has no comments: take it out, or put it into a README.md beside this file"),
        '\'' => Some("JSON has double quotes, not single ones"),
        '\u{201c}' | '\u{201d}' => Some("JSON has straight double quotes, not typographic ones"),
        _ if message == "key must be a string" => Some("the name of a field must be in double quotes"),
        _ => None,
    }
}

/// Splits a skill's file into front matter and text.
pub(super) fn read_skill(path: &str, text: &str) -> Result<(Value, String), Complaint> {
    let (front, body) = front_and_body(text).map_err(|wrong| complaint(path, wrong))?;
    Ok((front, body.trim().to_owned()))
}

fn markdown(text: &str) -> Result<Value, Wrong> {
    let (mut value, body) = front_and_body(text)?;
    let body = body.trim();
    if let Value::Object(fields) = &mut value {
        match (fields.contains_key("prompt"), body.is_empty()) {
            (true, true) => {}
            (true, false) => {
                let message = "`prompt` is both in the front matter and below it; keep one".to_owned();
                return Err(Wrong { at: None, message });
            }
            (false, _) => drop(fields.insert("prompt".to_owned(), parts(body))),
        }
    }
    Ok(value)
}

fn front_and_body(text: &str) -> Result<(Value, &str), Wrong> {
    let missing = "must begin with front matter: a line `---`, YAML, and another line `---`";
    let rest =
        text.strip_prefix("---\n").ok_or_else(|| Wrong { at: Some((1, 1)), message: missing.to_owned() })?;
    let (yaml, body) = split_at_fence(rest).ok_or_else(|| Wrong {
        at: Some((1, 1)),
        message: "the front matter has no closing line `---`".to_owned(),
    })?;
    Ok((front_matter(yaml)?, body))
}

/// The body of a prompt: a text, or a list of texts and variables if it contains `{{env NAME}}`.
fn parts(body: &str) -> Value {
    let text = |content: &str| json!({ "type": "text", "content": content });
    let mut parts = Vec::new();
    let (mut rest, mut from) = (body, 0);
    while let Some(at) = rest.get(from..).and_then(|after| after.find("{{")).map(|at| at + from) {
        let variable = rest.get(at + 2..).and_then(|after| {
            let (inside, after) = after.split_once("}}")?;
            Some((inside.trim().strip_prefix("env ")?.trim(), after))
        });
        match variable {
            Some((property, after)) if is_name(property) => {
                parts.extend(rest.get(..at).filter(|before| !before.is_empty()).map(text));
                parts.push(json!({ "type": "env", "property": property }));
                (rest, from) = (after, 0);
            }
            _ => from = at + 2,
        }
    }
    if parts.is_empty() {
        return Value::String(body.to_owned());
    }
    parts.extend(Some(rest).filter(|rest| !rest.is_empty()).map(text));
    Value::Array(parts)
}

/// Returns whether a text is a valid name of a variable.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Splits a text at its first line `---`.
fn split_at_fence(text: &str) -> Option<(&str, &str)> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        if line.trim_end() == "---" {
            return Some((text.get(..start)?, text.get(end..)?));
        }
        start = end;
    }
    None
}

fn front_matter(yaml: &str) -> Result<Value, Wrong> {
    if yaml.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let options =
        serde_saphyr::options! { strict_booleans: true, with_snippet: false, reject_unsupported_tags: true };
    serde_saphyr::from_str_with_options(yaml, options).map(|Unique(value)| value).map_err(|error| {
        // The front matter begins on the second line.
        let at = error.location().filter(|at| at.line() > 0).map(|at| (at.line() + 1, at.column().max(1)));
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        let message = message
            .split_once(": ")
            .filter(|(place, _)| place.starts_with("line "))
            .map_or(message, |(_, m)| m);
        Wrong { at, message: message.to_owned() }
    })
}

/// A value whose objects have no property twice. The second would silently replace the first.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unique, D::Error> {
        struct AnyValue;
        impl<'de> Visitor<'de> for AnyValue {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_none<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
                Unique::deserialize(deserializer).map(|Unique(value)| value)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
                let mut items = Vec::new();
                while let Some(Unique(item)) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Value::Array(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                let mut object = Map::new();
                while let Some(name) = map.next_key::<String>()? {
                    if object.contains_key(&name) {
                        return Err(A::Error::custom(format_args!("`{name}` is there twice")));
                    }
                    let Unique(value) = map.next_value()?;
                    object.insert(name, value);
                }
                Ok(Value::Object(object))
            }
        }
        deserializer.deserialize_any(AnyValue).map(Unique)
    }
}
