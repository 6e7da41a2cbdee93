//! The form of a schema that providers get, and the defaults it gives.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::definitions::schema::validation::{Keywords, Validation, too_much};
use crate::definitions::schema::{Problem, has_type, required};
use crate::json;

/// Keywords that a provider's strict mode refuses or that have no meaning to it.
const NOT_IN_STRICT_MODE: [&str; 8] =
    ["oneOf", "default", "minLength", "maxLength", "format", "examples", "deprecated", "$comment"];

/// A schema as providers are shown it (spec §5.4): every object that lists properties, at every level, gets
/// `additionalProperties: false`. An object that lists none takes any, or those its `additionalProperties` describes,
/// and stays so: closed, it could only be empty.
///
/// Also tells whether a provider's strict mode may be asked for: every object is closed, every property is required,
/// at every level, and no keyword is one which that mode refuses.
pub fn strict(schema: &Value) -> (Value, bool) {
    let mut schema = schema.clone();
    if let Some(root) = schema.as_object_mut() {
        root.remove("$schema");
        // At the top, an object without properties is a tool without arguments.
        root.entry("properties").or_insert_with(|| json!({}));
        root.entry("required").or_insert_with(|| json!([]));
    }
    let strict = close(&mut schema, true);
    (schema, strict)
}

fn close(schema: &mut Value, root: bool) -> bool {
    let Value::Object(schema) = schema else { return false };
    let is_object = root || has_type(schema, "object");
    let mut strict = !NOT_IN_STRICT_MODE.iter().any(|keyword| schema.contains_key(*keyword));
    strict &= ["type", "enum", "const", "anyOf"].iter().any(|keyword| schema.contains_key(*keyword));
    if is_object || schema.contains_key("properties") {
        strict &= close_object(schema, root);
    }
    match schema.get_mut("items") {
        Some(items) => strict &= close(items, false),
        None => strict &= !has_type(schema, "array"),
    }
    for keyword in ["anyOf", "oneOf"] {
        for branch in schema.get_mut(keyword).and_then(Value::as_array_mut).into_iter().flatten() {
            strict &= close(branch, false);
        }
    }
    strict
}

fn close_object(schema: &mut Map<String, Value>, root: bool) -> bool {
    let mut strict = true;
    let names: Vec<String> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::keys)
        .cloned()
        .collect();
    for property in
        schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
    {
        strict &= close(property, false);
    }
    let takes_any = names.is_empty() && !root;
    match schema.get_mut("additionalProperties") {
        Some(Value::Bool(false)) => {}
        Some(others @ Value::Object(_)) => {
            close(others, false);
            strict = false;
        }
        _ if takes_any => strict = false,
        _ => {
            schema.insert("additionalProperties".into(), Value::Bool(false));
        }
    }
    let required: BTreeSet<&str> = required(schema).collect();
    strict && names.iter().all(|name| required.contains(name.as_str()))
}

/// A value with the `default` of every absent property that has one, at every level. Within `anyOf` and `oneOf`, the
/// first branch that the value fits gives them. Objects that are absent themselves are not made up.
///
/// # Errors
/// That would take more work than one check may do.
pub fn with_defaults(schema: &Value, mut value: Value) -> Result<Value, Vec<Problem>> {
    let mut fill = Fill(Validation::new(Keywords::Listed));
    fill.value(schema, &mut value);
    if fill.0.is_spent() { Err(vec![too_much()]) } else { Ok(value) }
}

/// Puts defaults into a value. Its steps are those of the validation, which says what fits.
struct Fill(Validation);

impl Fill {
    fn value(&mut self, schema: &Value, value: &mut Value) {
        let Value::Object(schema) = schema else { return };
        match value {
            Value::Object(object) => {
                let known = schema.get("properties").and_then(Value::as_object);
                for (name, property) in known.into_iter().flatten() {
                    if !object.contains_key(name)
                        && let Some(default) = property.get("default")
                        && self.0.spend(size(default))
                    {
                        object.insert(name.clone(), default.clone());
                    }
                }
                for (name, value) in object.iter_mut() {
                    let own = known.and_then(|known| known.get(name));
                    if let Some(schema) = own.or_else(|| schema.get("additionalProperties")) {
                        self.value(schema, value);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = schema.get("items") {
                    items.iter_mut().for_each(|item| self.value(schema, item));
                }
            }
            _ => {}
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
            if let Some(branch) =
                branches.into_iter().find(|branch| self.0.fits(branch, value) != Some(false))
            {
                self.value(branch, value);
            }
        }
    }
}

/// Bytes of a value, about.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len(),
        Value::Array(items) => items.iter().map(size).sum::<usize>() + 1,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + size(value)).sum::<usize>() + 1
        }
        _ => 1,
    }
}
