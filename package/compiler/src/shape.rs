//! Turns values into definitions, and reports all mistakes in their shape.
//!
//! serde stops at the first mistake. Therefore the wrong part is removed and the rest is read again, until
//! nothing is wrong or nothing more can be removed.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use super::words::{MISSING, friendly, meant, quoted};

/// A mistake in one field.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) field: String,
    pub(super) message: String,
}

/// The readable part of a definition, and the mistakes in it.
pub(super) fn read<T: DeserializeOwned + JsonSchema>(mut value: Value) -> (Option<T>, Vec<Wrong>) {
    let mut wrong = Vec::new();
    let mut removed = Removed::default();
    loop {
        let error = match serde_path_to_error::deserialize::<_, T>(&value) {
            Ok(definition) => return (Some(definition), wrong),
            Err(error) => error,
        };
        let message = error.inner().to_string();
        let mut path = steps(error.path().iter());
        let missing = quoted(&message, "missing field `");
        let unknown = quoted(&message, "unknown field `");
        if let Some(name) = unknown
            && path.last() != Some(&Step::Name(name.to_owned()))
        {
            path.push(Step::Name(name.to_owned()));
        }
        let mut reported = path.clone();
        reported.extend(missing.map(|name| Step::Name(name.to_owned())));
        // A field that is missing because it was removed has already been reported.
        if !(missing.is_some() && removed.has(&reported)) {
            let field = removed.original(&reported);
            wrong.push(Wrong {
                message: friendly(&message, field.rsplit('.').next().unwrap_or_default()),
                field,
            });
        }
        // Read a misspelt name as the intended one, so that no further mistakes follow from it.
        if let Some(meant) = meant(&message)
            && rename(&mut value, &path, meant)
        {
            continue;
        }
        if !removed.take(&mut value, path) {
            wrong.extend(absent::<T>(&value, &wrong));
            return (None, wrong);
        }
    }
}

/// Renames the field at a path, unless the new name exists already.
fn rename(value: &mut Value, path: &[Step], meant: &str) -> bool {
    let Some((Step::Name(name), parent)) = path.split_last() else { return false };
    match at(value, parent) {
        Some(Value::Object(object)) if !object.contains_key(meant) => match object.shift_remove(name) {
            Some(field) => object.insert(meant.to_owned(), field).is_none(),
            None => false,
        },
        _ => false,
    }
}

/// The value at a path.
fn at<'a>(value: &'a mut Value, path: &[Step]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Name(name) => value.get_mut(name),
        Step::Index(index) => value.get_mut(index),
    })
}

/// The required fields that are absent and have not been reported.
fn absent<T: JsonSchema>(value: &Value, wrong: &[Wrong]) -> Vec<Wrong> {
    let schema = schemars::schema_for!(T);
    let required =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let told = |name: &str| wrong.iter().any(|wrong| wrong.field.split(['.', '[']).next() == Some(name));
    let absent = required.filter(|name| value.get(name).is_none() && !told(name));
    absent.map(|name| Wrong { field: name.to_owned(), message: MISSING.to_owned() }).collect()
}

/// A step of a path into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
}

fn steps<'a>(segments: impl Iterator<Item = &'a Segment>) -> Vec<Step> {
    let step = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(Step::Index(*index)),
        Segment::Map { key } => Some(Step::Name(key.clone())),
        Segment::Enum { variant } => Some(Step::Name(variant.clone())),
        Segment::Unknown => None,
    };
    segments.map_while(step).collect()
}

fn words(path: &[Step]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            Step::Index(index) => out.push_str(&format!("[{index}]")),
            Step::Name(name) if out.is_empty() => out.push_str(name),
            Step::Name(name) => out.push_str(&format!(".{name}")),
        }
    }
    out
}

/// The removed parts, by their paths at the time.
#[derive(Default)]
struct Removed(Vec<Vec<Step>>);

impl Removed {
    /// Removes the value at the path, or the nearest existing value around it. Never removes the whole.
    fn take(&mut self, value: &mut Value, mut path: Vec<Step>) -> bool {
        while let Some(last) = path.last().cloned() {
            let parent = path.get(..path.len() - 1).unwrap_or_default();
            let holder = at(value, parent);
            let taken = match (holder, last) {
                (Some(Value::Object(object)), Step::Name(name)) => object.shift_remove(&name).is_some(),
                (Some(Value::Array(items)), Step::Index(index)) if index < items.len() => {
                    items.remove(index);
                    true
                }
                _ => false,
            };
            if taken {
                self.0.push(path);
                return true;
            }
            path.pop();
        }
        false
    }

    fn has(&self, path: &[Step]) -> bool {
        self.0.iter().any(|removed| removed == path)
    }

    /// A path as text. Its indices are those of the file, before any removal.
    fn original(&self, path: &[Step]) -> String {
        let mut path = path.to_vec();
        for removed in self.0.iter().rev() {
            let Some((Step::Index(gone), parent)) = removed.split_last() else { continue };
            if path.get(..parent.len()) == Some(parent)
                && let Some(Step::Index(index)) = path.get_mut(parent.len())
                && *index >= *gone
            {
                *index += 1;
            }
        }
        words(&path)
    }
}
