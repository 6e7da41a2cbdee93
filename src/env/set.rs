//! The variables of one object: a thread, an account, or the instance. They are decrypted in memory, and
//! encrypted in the table.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::VariableKind;
use crate::env::change::over;
use crate::env::{Change, EncryptedValue, Keys};
use crate::error::{Error, Result};
use crate::limits;

/// A row in transit from a directory to a thread, still encrypted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncryptedRow {
    /// The variable.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: VariableKind,
    /// Id of its encryption key.
    pub key: String,
    /// Nonce and ciphertext, in base64.
    pub sealed: String,
}

/// A stored value.
#[derive(Clone)]
pub struct StoredValue {
    /// Its type.
    pub kind: VariableKind,
    key: String,
    /// The value, or the reason why it cannot be decrypted.
    value: Result<String>,
}

impl StoredValue {
    /// The value.
    ///
    /// # Errors
    /// `encryption_unavailable`: its key is missing; the message names it.
    pub fn read(&self) -> Result<&str> {
        self.value.as_deref().map_err(Clone::clone)
    }
}

/// The variables of one object, by name.
#[derive(Clone)]
pub struct VariableSet {
    object: String,
    /// Sorted by name.
    held: Vec<(String, StoredValue)>,
}

/// Shows only names and types.
impl std::fmt::Debug for VariableSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter().map(|(name, held)| (name, held.kind))).finish()
    }
}

impl VariableSet {
    /// No variables, for the object with this name.
    pub fn empty(object: &str) -> VariableSet {
        VariableSet { object: object.to_owned(), held: Vec::new() }
    }

    /// Decrypts rows. Values that cannot be decrypted are kept as unreadable.
    pub fn of(object: &str, rows: Vec<EncryptedRow>, keys: &Keys) -> VariableSet {
        let mut set = VariableSet::empty(object);
        for row in rows {
            let context = set.context(&row.name, row.kind);
            let bytes = STANDARD.decode(&row.sealed).unwrap_or_default();
            let value = keys.open(&EncryptedValue { key: row.key.clone(), bytes }, &context);
            let value = value.map_err(|mut error| {
                error.message = format!("The value of {} cannot be read: {}.", row.name, error.message);
                error
            });
            set.put(&row.name, StoredValue { kind: row.kind, key: row.key, value });
        }
        set
    }

    /// The encryption context of a value.
    pub(super) fn context(&self, name: &str, kind: VariableKind) -> String {
        format!("{}\0{name}\0{}", self.object, kind.as_str())
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&StoredValue> {
        self.held.iter().find(|(held, _)| held == name).map(|(_, held)| held)
    }

    fn get_mut(&mut self, name: &str) -> Option<&mut StoredValue> {
        self.held.iter_mut().find(|(held, _)| held == name).map(|(_, held)| held)
    }

    /// Inserts or replaces a value, keeping the order.
    fn put(&mut self, name: &str, value: StoredValue) {
        match self.get_mut(name) {
            Some(held) => *held = value,
            None => {
                let place = self.held.iter().take_while(|(held, _)| held.as_str() < name).count();
                self.held.insert(place, (name.to_owned(), value));
            }
        }
    }

    /// All values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &StoredValue)> {
        self.held.iter().map(|(name, held)| (name.as_str(), held))
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The types, by name.
    pub fn types(&self) -> Map<String, Value> {
        self.iter().map(|(name, held)| (name.to_owned(), held.kind.as_str().into())).collect()
    }

    /// Values that may be shown: readable ones of type `text`.
    pub fn texts(&self) -> Map<String, Value> {
        let shown = self.iter().filter(|(_, held)| held.kind == VariableKind::Text);
        shown.filter_map(|(name, held)| Some((name.to_owned(), held.read().ok()?.into()))).collect()
    }

    /// Applies a change in memory.
    ///
    /// # Errors
    /// `invalid_field` for the type of a name without a value, `too_large` beyond the limits.
    pub(crate) fn changed(&self, change: &Change) -> Result<VariableSet> {
        let mut set = self.clone();
        set.held.retain(|(name, _)| !change.deleted.contains(name));
        for (name, value) in &change.values {
            let before = set.get(name).map(|held| held.kind);
            let kind = change.kind(name).or(before).unwrap_or(VariableKind::Secret);
            set.put(name, StoredValue { kind, key: String::new(), value: Ok(value.clone()) });
        }
        for (name, kind) in &change.kinds {
            let has_value = change.set().any(|set| set == name);
            let field = || format!("{}.{name}", change.types_field);
            let held = set.get_mut(name).ok_or_else(|| {
                Error::field(
                    &field(),
                    format!("`{}` gives a type to {name}, which has no value here.", field()),
                )
            })?;
            if held.kind == VariableKind::Secret && *kind == VariableKind::Text && !has_value {
                return Err(Error::field(&field(), format!("{name} is a secret, which cannot be shown."))
                    .hint("To make it a text, send its value again with the type."));
            }
            if held.kind != *kind {
                // A change of the type requires encryption with the new context, so the value must be
                // readable.
                held.read()?;
                held.kind = *kind;
                held.key.clear();
            }
        }
        let bytes: usize = set.iter().map(|(_, held)| held.value.as_ref().map_or(0, String::len)).sum();
        if set.len() > limits::ENV_VALUES {
            return Err(over(
                "env",
                format!("There would be {} values; the limit is {}.", set.len(), limits::ENV_VALUES),
            ));
        }
        if bytes > limits::ENV_BYTES {
            return Err(over(
                "env",
                format!("The values would have {bytes} bytes together; the limit is {}.", limits::ENV_BYTES),
            ));
        }
        Ok(set)
    }

    /// The rows to write for a change. Values under an older key are encrypted again with the first one.
    /// Nothing is stored here.
    ///
    /// # Errors
    /// As [`VariableSet::changed`]; `encryption_unavailable` when something must be encrypted and there is no key.
    pub(crate) fn written(
        &self,
        change: &Change,
        keys: &Result<Keys>,
        random: &dyn Fn() -> [u8; 16],
    ) -> Result<RowChanges> {
        let mut set = self.changed(change)?;
        let deleted = change.deleted.iter().filter(|name| self.get(name).is_some()).cloned().collect();
        let first = keys.as_ref().ok().and_then(Keys::first);
        let stale = |held: &StoredValue| {
            held.key.is_empty() || (held.value.is_ok() && Some(held.key.as_str()) != first)
        };
        let object = VariableSet::empty(&self.object);
        let mut sealed = Vec::new();
        for (name, held) in set.held.iter_mut().filter(|(_, held)| stale(held)) {
            let keys = match keys {
                Ok(keys) => keys,
                // Rows that are already stored can stay.
                Err(_) if !held.key.is_empty() => continue,
                Err(error) => return Err(error.clone()),
            };
            let value = keys.seal(random(), &object.context(name, held.kind), held.read()?)?;
            held.key.clone_from(&value.key);
            sealed.push((name.clone(), held.kind, value));
        }
        Ok(RowChanges { set, deleted, sealed })
    }
}

/// The rows to write for a change.
pub(crate) struct RowChanges {
    /// The variables after the change.
    pub(crate) set: VariableSet,
    /// Names of deleted values.
    pub(crate) deleted: Vec<String>,
    /// Values to store: name, type, and encrypted value.
    pub(crate) sealed: Vec<(String, VariableKind, EncryptedValue)>,
}
