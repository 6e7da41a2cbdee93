//! Texts that hold no secret any more.

use std::fmt;
use std::ops::Deref;

use super::Redactor;
use crate::text::first_bytes;

/// A text without secrets. [`Redactor::shown`] alone makes one: what takes a `Shown` cannot be given anything else, and
/// what is cut is cut after the secrets have gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown(String);

impl Redactor {
    /// The text without secrets.
    pub(crate) fn shown(&self, text: String) -> Shown {
        Shown(self.owned(text))
    }
}

impl Shown {
    /// At most `max` bytes of it.
    pub(crate) fn cut(&self, max: usize) -> Shown {
        Shown(first_bytes(&self.0, max).to_owned())
    }
}

impl Deref for Shown {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Shown> for String {
    fn from(text: Shown) -> String {
        text.0
    }
}
