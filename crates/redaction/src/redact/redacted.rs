//! A type for texts without secrets. Code that stores or sends a generated text accepts nothing else.

use std::fmt;
use std::ops::Deref;

use serde_json::Value;

use crate::redact::Redactor;
use bobbin_definitions::text::first_bytes;

/// A value without secrets. It is created only by [`Redactor::shown`] for generated text, and by
/// [`Redacted::of_person`] for a user's input. So nothing else can be passed on, and texts are cut only after
/// redaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted<T = String>(T);

/// Values that contain texts.
pub trait Redact {
    /// Replaces the secrets.
    fn without(self, secrets: &Redactor) -> Self;
}

impl Redact for String {
    fn without(self, secrets: &Redactor) -> String {
        secrets.owned(self)
    }
}

impl Redact for Value {
    fn without(self, secrets: &Redactor) -> Value {
        secrets.json(self)
    }
}

impl Redactor {
    /// Replaces the secrets in a value.
    pub fn shown<T: Redact>(&self, told: T) -> Redacted<T> {
        Redacted(told.without(self))
    }
}

impl<T> Redacted<T> {
    /// Accepts a user's input unchanged.
    pub const fn of_person(typed: T) -> Redacted<T> {
        Redacted(typed)
    }

    /// The value.
    pub fn inner(self) -> T {
        self.0
    }
}

impl Redacted {
    /// At most the first `max` bytes.
    pub fn cut(&self, max: usize) -> Redacted {
        Redacted(first_bytes(&self.0, max).to_owned())
    }
}

impl<T> Deref for Redacted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Redacted> for String {
    fn from(text: Redacted) -> String {
        text.0
    }
}
