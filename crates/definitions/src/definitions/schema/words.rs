//! Texts about problems. A schema and a value may be large, and models read what is wrong with them: each text is short,
//! and nothing longer is made on the way to it.

use std::fmt::{self, Write};

use serde_json::Value;

/// Characters of a value or a name that are shown.
const CHARS: usize = 60;
/// Names or values that are listed.
const LISTED: usize = 32;

/// Keeps the beginning of what is written to it.
#[derive(Default)]
struct Beginning {
    text: String,
    chars: usize,
}

impl Write for Beginning {
    /// Fails when there is more, so that whoever writes stops.
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
    // What it fails with is that it has enough.
    let _enough = write!(beginning, "{value}");
    beginning.text
}

/// A name, or the beginning of it.
pub(super) fn name(name: &str) -> String {
    let mut beginning = Beginning::default();
    let _enough = beginning.write_str(name);
    beginning.text
}

/// The first of `all`, and how many more there are.
pub(super) fn list(all: impl ExactSizeIterator<Item = String>, between: &str) -> String {
    let more = all.len().saturating_sub(LISTED);
    let mut text = all.take(LISTED).collect::<Vec<_>>().join(between);
    if more > 0 {
        // Writing to a text does not fail.
        let _written = write!(text, " and {more} more");
    }
    text
}
