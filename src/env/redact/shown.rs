//! A type for texts without secrets: whatever stores or sends a text that code has made accepts nothing else.

use std::fmt;
use std::ops::Deref;

use serde_json::Value;

use crate::env::redact::Redactor;
use crate::text::first_bytes;

/// Something without secrets. [`Redactor::shown`] makes one of what code gives, and [`Shown::of_person`] of what a person
/// typed; there is no other way. What takes a `Shown` cannot be given anything else, and what is cut is cut after the
/// secrets have gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown<T = String>(T);

/// What texts may be in.
pub(crate) trait Tells {
    /// The same without secrets.
    fn without(self, secrets: &Redactor) -> Self;
}

impl Tells for String {
    fn without(self, secrets: &Redactor) -> String {
        secrets.owned(self)
    }
}

impl Tells for Value {
    fn without(self, secrets: &Redactor) -> Value {
        secrets.json(self)
    }
}

impl Redactor {
    /// It without secrets.
    pub(crate) fn shown<T: Tells>(&self, told: T) -> Shown<T> {
        Shown(told.without(self))
    }
}

impl<T> Shown<T> {
    /// What a person has typed is theirs, whatever it holds.
    pub(crate) const fn of_person(typed: T) -> Shown<T> {
        Shown(typed)
    }

    /// The thing itself.
    pub(crate) fn inner(self) -> T {
        self.0
    }
}

impl Shown {
    /// At most `max` bytes of it.
    pub(crate) fn cut(&self, max: usize) -> Shown {
        Shown(first_bytes(&self.0, max).to_owned())
    }
}

impl<T> Deref for Shown<T> {
    type Target = T;

    fn deref(&self) -> &T {
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
