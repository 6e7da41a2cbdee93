//! Texts about problems, for models. A schema and a value may be large, so each text is short, and no longer
//! text is created on the way.

use std::fmt::{self, Write};

use serde_json::Value;

/// Maximum characters shown of a value or a name.
const CHARS: usize = 60;
/// Maximum number of listed names or values.
const LISTED: usize = 32;

/// A writer that keeps the beginning of its input.
#[derive(Default)]
struct Beginning {
    text: String,
    chars: usize,
}

impl Write for Beginning {
    /// Returns an error at the limit, so that the caller stops writing.
    fn write_str(&mut self, more: &str) -> fmt::Result {
        for c in more.chars() {
            if self.chars == CHARS {
                self.text.push('…');
                return Err(fmt::Error);
            }
            self.text.push(c);
            self.chars += 1;
        }
        Ok(())
    }
}

/// A value as JSON, or the beginning of it.
pub(super) fn brief(value: &Value) -> String {
    let mut beginning = Beginning::default();
    // The error only signals that the limit is reached.
    let _enough = write!(beginning, "{value}");
    beginning.text
}

/// A name, or the beginning of it.
pub(super) fn name(name: &str) -> String {
    let mut beginning = Beginning::default();
    let _enough = beginning.write_str(name);
    beginning.text
}

/// The first of `all`, and the number of the others.
pub(super) fn list(all: impl ExactSizeIterator<Item = String>, between: &str) -> String {
    let more = all.len().saturating_sub(LISTED);
    let mut text = all.take(LISTED).collect::<Vec<_>>().join(between);
    if more > 0 {
        // Writing to a string does not fail.
        let _written = write!(text, " and {more} more");
    }
    text
}
