//! JSON that only its provider understands, and wants back exactly as it was sent.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The JSON text of a value, never parsed and printed again: signatures are made over such bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Opaque(Box<RawValue>);

impl Opaque {
    /// As it stood in an answer.
    pub fn new(raw: &RawValue) -> Opaque {
        Opaque(raw.to_owned())
    }

    /// From a text. `None` when it is not JSON.
    pub fn parse(text: String) -> Option<Opaque> {
        RawValue::from_string(text).ok().map(Opaque)
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Opaque {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Opaque {}
