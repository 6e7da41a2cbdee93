//! Parts of a request that later requests send again.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Deref;
use std::rc::Rc;

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// A part of a request that later requests send again, unchanged. They share it with the JSON that was
/// serialized first, so that each step copies a history of 100 KB instead of cloning and escaping it
/// again.
pub struct CachedJson<T>(Rc<Inner<T>>);

struct Inner<T> {
    value: T,
    /// The JSON in the format of the first provider that received it. For any other provider (a
    /// fallback) it is serialized each time.
    written: OnceCell<CachedText>,
    /// Estimated number of tokens.
    tokens: OnceCell<usize>,
}

enum CachedText {
    /// Chat completions.
    Openai(Option<Box<RawValue>>),
    /// Entries of a list, without the brackets around them.
    Blocks(Blocks, String),
}

/// Formats whose lists are assembled from texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's responses.
    Responses,
}

impl<T> CachedJson<T> {
    /// A part whose tokens are already counted.
    pub fn with_tokens(value: T, tokens: usize) -> CachedJson<T> {
        CachedJson(Rc::new(Inner { value, written: OnceCell::new(), tokens: OnceCell::from(tokens) }))
    }

    /// Number of tokens. `count` runs once.
    pub fn counted(&self, count: impl FnOnce(&T) -> usize) -> usize {
        *self.0.tokens.get_or_init(|| count(&self.0.value))
    }

    /// Serializes the part for chat completions with `form`, once; later calls reuse the JSON.
    pub fn write<'a, F: Serialize, S: Serializer>(
        &'a self,
        form: impl Fn(&'a T) -> F,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let form = form(&self.0.value);
        match self.0.written.get_or_init(|| CachedText::Openai(to_raw_value(&form).ok())) {
            CachedText::Openai(Some(written)) => written.serialize(serializer),
            // The serializer then reports the error.
            CachedText::Openai(None) | CachedText::Blocks(..) => form.serialize(serializer),
        }
    }

    /// Like `write`, for the formats whose lists are assembled from texts.
    pub fn blocks(&self, of: Blocks, form: impl Fn(&T) -> String) -> Cow<'_, str> {
        match self.0.written.get_or_init(|| CachedText::Blocks(of, form(&self.0.value))) {
            CachedText::Blocks(kept, written) if *kept == of => Cow::Borrowed(written),
            CachedText::Openai(_) | CachedText::Blocks(..) => Cow::Owned(form(&self.0.value)),
        }
    }
}

impl<T> From<T> for CachedJson<T> {
    fn from(value: T) -> Self {
        CachedJson(Rc::new(Inner { value, written: OnceCell::new(), tokens: OnceCell::new() }))
    }
}

impl<T> Deref for CachedJson<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

// Implemented by hand: the cached JSON is ignored, and a clone needs no bound on `T`.
impl<T> Clone for CachedJson<T> {
    fn clone(&self) -> Self {
        CachedJson(self.0.clone())
    }
}

impl<T: Default> Default for CachedJson<T> {
    fn default() -> Self {
        T::default().into()
    }
}

impl<T: PartialEq> PartialEq for CachedJson<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for CachedJson<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}
