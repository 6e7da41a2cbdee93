//! Query parameters with errors that name them.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Decoded query parameters, in order; the first of a name counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Query(pub Vec<(String, String)>);

impl Query {
    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// A whole number between 0 and `max`, or `default`. A larger one is cut to `max`.
    pub fn number(&self, name: &str, default: u32, max: u32) -> Result<u32> {
        match self.get(name) {
            None | Some("") => Ok(default),
            Some(text) => text
                .parse::<u32>()
                .map(|value| value.min(max))
                .map_err(|_| Error::field(name, format!("`{name}` must be a whole number, not “{text}”."))),
        }
    }

    /// `true`/`1` or `false`/`0`; absent is false.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            None | Some("" | "false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(text) => Err(Error::field(name, format!("`{name}` must be true or false, not “{text}”."))),
        }
    }
}
