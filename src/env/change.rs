//! Changes to the variables of a thread, an account or the instance. A request is validated completely before
//! anything is written.

use serde_json::{Map, Value};

use crate::definitions::catalog::RESERVED_PREFIX;
use crate::definitions::{Catalog, VariableKind, template};
use crate::env::PlainVariable;
use crate::error::{Code, Error, Result};
use crate::limits;

/// The owner of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A thread.
    Thread,
    /// An account.
    Account,
    /// The deployment. Only its variables may be keys and addresses of models.
    Instance,
}

/// A field of a request with its name; `None` when it was not sent.
pub type RequestField<'a> = (&'a str, Option<Value>);

/// A validated change.
#[derive(Clone, Default, PartialEq)]
pub struct Change {
    /// New values.
    pub(super) values: Vec<(String, String)>,
    /// Types, of new or existing values.
    pub(super) kinds: Vec<(String, VariableKind)>,
    /// Names of values to delete.
    pub(super) deleted: Vec<String>,
    /// Name of the field with the types.
    pub(super) types_field: String,
}

/// Shows only names.
impl std::fmt::Debug for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.set().collect();
        f.debug_struct("Change")
            .field("values", &names)
            .field("deleted", &self.deleted)
            .finish_non_exhaustive()
    }
}

impl Change {
    /// Parses the fields with values, types and names to delete; at most [`limits::ENV_VALUES`] of each.
    ///
    /// # Errors
    /// `invalid_field` and `too_large` name the field and the variable: `env_patch.CITY`.
    pub fn parse(
        values: RequestField<'_>,
        types: RequestField<'_>,
        delete: RequestField<'_>,
        level: Level,
        catalog: &Catalog,
    ) -> Result<Change> {
        // Check the counts first: the following loops compare each name with all others.
        for given in [&values, &types, &delete] {
            few(given)?;
        }
        let (values_field, types_field, delete_field) = (values.0, types.0, delete.0);
        let mut change = Change { types_field: types_field.to_owned(), ..Change::default() };
        for (name, value) in object(values)? {
            let field = format!("{values_field}.{name}");
            check_name(&field, &name, level, catalog)?;
            change.values.push((name, text(&field, value)?));
        }
        for (name, kind) in object(types)? {
            let field = format!("{types_field}.{name}");
            check_name(&field, &name, level, catalog)?;
            change.kinds.push((name, crate::env::change::kind(&field, &kind)?));
        }
        change.deleted = names(delete)?;
        for name in &change.deleted {
            if change.set().any(|set| set == name) || change.kind(name).is_some() {
                return Err(Error::field(delete_field, format!("`{name}` is both set and deleted.")));
            }
        }
        let of_model =
            |given: &&(String, VariableKind)| given.1 == VariableKind::Text && catalog.is_model_key(&given.0);
        if let Some((name, _)) = change.kinds.iter().find(of_model) {
            return Err(Error::field(
                &format!("{types_field}.{name}"),
                format!("`{name}` is the API key of a model, so its type must be `secret`."),
            ));
        }
        Ok(change)
    }

    /// Whether a name has a value after the change. `had`: whether it had one before.
    pub(crate) fn leaves(&self, name: &str, had: bool) -> bool {
        self.set().any(|set| set == name) || (had && !self.deleted.iter().any(|deleted| deleted == name))
    }

    /// One value, set by code.
    ///
    /// # Errors
    /// As [`Change::parse`].
    pub fn one(name: &str, value: &str, kind: Option<VariableKind>, catalog: &Catalog) -> Result<Change> {
        check_name("name", name, Level::Thread, catalog)?;
        let mut change = Change { types_field: "type".to_owned(), ..Change::default() };
        change.values.push((name.to_owned(), text("value", Value::from(value))?));
        change.kinds.extend(kind.map(|kind| (name.to_owned(), kind)));
        Ok(change)
    }

    /// A change that sets these values with their types.
    pub(crate) fn of(values: &[PlainVariable]) -> Change {
        Change {
            values: values.iter().map(|value| (value.name.clone(), value.text.clone())).collect(),
            kinds: values.iter().map(|value| (value.name.clone(), value.kind)).collect(),
            types_field: "type".to_owned(),
            deleted: Vec::new(),
        }
    }

    /// A change that deletes these names.
    pub(crate) fn delete(names: Vec<String>) -> Change {
        Change { deleted: names, ..Change::default() }
    }

    /// The values to set, with their types; `secret` by default.
    pub(crate) fn plain(&self) -> Vec<PlainVariable> {
        let plain = |(name, text): &(String, String)| {
            let kind = self.kind(name).unwrap_or(VariableKind::Secret);
            PlainVariable { name: name.clone(), kind, text: text.clone() }
        };
        self.values.iter().map(plain).collect()
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.kinds.is_empty() && self.deleted.is_empty()
    }

    /// The type for a name.
    pub(super) fn kind(&self, name: &str) -> Option<VariableKind> {
        self.kinds.iter().find(|(given, _)| given == name).map(|(_, kind)| *kind)
    }

    /// Names whose values or types are set.
    pub(crate) fn touched(&self) -> impl Iterator<Item = &str> {
        let typed = self.kinds.iter().map(|(name, _)| name.as_str());
        self.set().chain(typed.filter(|name| !self.set().any(|set| set == *name)))
    }

    /// Names of deleted values.
    pub(crate) fn deleted(&self) -> impl Iterator<Item = &str> {
        self.deleted.iter().map(String::as_str)
    }

    /// Names of set values.
    pub(crate) fn set(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(name, _)| name.as_str())
    }
}

/// Refuses more names than an object may have values.
fn few((field, value): &RequestField<'_>) -> Result<()> {
    let names = match value {
        Some(Value::Object(fields)) => fields.len(),
        Some(Value::Array(names)) => names.len(),
        _ => 0,
    };
    if names > limits::ENV_VALUES {
        return Err(over(
            field,
            format!("`{field}` has {names} names; the limit is {}.", limits::ENV_VALUES),
        ));
    }
    Ok(())
}

fn object((field, value): RequestField<'_>) -> Result<Map<String, Value>> {
    match value {
        None => Ok(Map::new()),
        Some(Value::Object(fields)) => Ok(fields),
        Some(_) => {
            Err(Error::field(field, format!("`{field}` must be an object: names and what belongs to them.")))
        }
    }
}

fn names((field, value): RequestField<'_>) -> Result<Vec<String>> {
    let wrong = || Error::field(field, format!("`{field}` must be a list of names."));
    match value {
        None => Ok(Vec::new()),
        Some(Value::Array(names)) => {
            names.iter().map(|name| name.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// Converts a value to a text. Numbers and booleans are converted too. The error never shows the value.
fn text(field: &str, value: Value) -> Result<String> {
    let text = match value {
        Value::String(text) => text,
        value @ (Value::Number(_) | Value::Bool(_)) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            return Err(Error::field(field, format!("`{field}` must be a text."))
                .hint("An empty text is a value; to have none, delete it."));
        }
    };
    if text.len() > limits::ENV_VALUE_BYTES {
        return Err(over(
            field,
            format!("`{field}` has {} bytes; the limit is {}.", text.len(), limits::ENV_VALUE_BYTES),
        ));
    }
    Ok(text)
}

fn kind(field: &str, value: &Value) -> Result<VariableKind> {
    match value.as_str() {
        Some("text") => Ok(VariableKind::Text),
        Some("secret") => Ok(VariableKind::Secret),
        _ => Err(Error::field(field, format!("`{field}` is `text` or `secret`."))),
    }
}

fn check_name(field: &str, name: &str, level: Level, catalog: &Catalog) -> Result<()> {
    if name.len() > limits::ENV_NAME_BYTES {
        return Err(over(
            field.get(..64).unwrap_or("name"),
            format!("The name of a variable has at most {} bytes.", limits::ENV_NAME_BYTES),
        ));
    }
    if !template::is_name(name) {
        return Err(Error::field(field, format!("“{name}” cannot name a variable."))
            .hint("A name has letters, digits and `_`, and does not begin with a digit."));
    }
    if name.starts_with(RESERVED_PREFIX) {
        return Err(Error::field(
            field,
            format!("Names starting with {RESERVED_PREFIX} belong to the runtime."),
        ));
    }
    if level != Level::Instance && catalog.is_model_key(name) {
        return Err(Error::field(field, format!("“{name}” is the API key of a model."))
            .hint("It comes from the deployment alone: a Worker variable, or PATCH /api/envs/instance."));
    }
    Ok(())
}

pub(super) fn over(field: &str, message: String) -> Error {
    Error::new(Code::TooLarge, message).at(field)
}
