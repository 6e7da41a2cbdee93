//! Texts that arrive in pieces and are sent back: their JSON is joined as it came, never decoded and encoded again.

use serde_json::value::RawValue;

use crate::limits::PAYLOAD_BYTES;
use crate::models::halves;

/// A piece of such a text, as it is shown; halves of characters are stand-ins.
pub(crate) fn shown(piece: &RawValue) -> String {
    let marked = halves::marked(piece.get());
    crate::json::from_str(marked.as_deref().unwrap_or(piece.get())).unwrap_or_default()
}

/// A JSON string that grows.
#[derive(Debug, Default)]
pub(crate) struct Literal(String);

impl Literal {
    /// Appends the string's characters as they are escaped there. Anything but a string appends nothing; nor does what
    /// makes a payload too large to be kept.
    pub(crate) fn push(&mut self, piece: &RawValue) {
        let inside = piece.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        if let Some(inside) = inside.filter(|_| self.0.len() <= PAYLOAD_BYTES) {
            self.0.push_str(inside);
        }
    }

    /// Whether nothing came.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends it with its quotes.
    pub(crate) fn write(&self, out: &mut String) {
        out.push('"');
        out.push_str(&self.0);
        out.push('"');
    }
}
