//! Texts that arrive in pieces and are sent back: their JSON is joined unchanged, never decoded and
//! encoded again.

use serde_json::value::RawValue;

use crate::surrogates;
use bobbin_definitions::limits::PAYLOAD_BYTES;

/// Decodes a piece for display; halves of characters become stand-ins.
pub fn shown(piece: &RawValue) -> String {
    let marked = surrogates::marked(piece.get());
    bobbin_definitions::json::from_str(marked.as_deref().unwrap_or(piece.get())).unwrap_or_default()
}

/// A JSON string that grows.
#[derive(Debug, Default)]
pub struct Literal(String);

impl Literal {
    /// Appends the escaped characters of a JSON string. Ignores anything but a string, and everything
    /// after the payload has grown too large to be kept.
    pub fn push(&mut self, piece: &RawValue) {
        let inside = piece.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        if let Some(inside) = inside.filter(|_| self.0.len() <= PAYLOAD_BYTES) {
            self.0.push_str(inside);
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes the string with its quotes.
    pub fn write(&self, out: &mut String) {
        out.push('"');
        out.push_str(&self.0);
        out.push('"');
    }
}
