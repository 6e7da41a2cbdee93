//! Parts of a request that later requests send again.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Deref;
use std::rc::Rc;

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// A part of a request that later requests send again, unchanged: shared by them, with the JSON that was written for the
/// first. A history of 100 KB is then copied at every step, not cloned and escaped anew.
pub struct CachedJson<T>(Rc<Inner<T>>);

struct Inner<T> {
    value: T,
    /// What the format of the first provider that it was sent to makes of it. For another one (a fallback) it is
    /// written anew each time.
    written: OnceCell<Written>,
    /// How many tokens it has, about.
    tokens: OnceCell<usize>,
}

enum Written {
    /// Chat completions.
    Openai(Option<Box<RawValue>>),
    /// Entries of a list, without the brackets around them.
    Blocks(Blocks, String),
}

/// Whose lists are put together from texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's responses.
    Responses,
}

impl<T> CachedJson<T> {
    /// One whose tokens were counted already.
    pub(crate) fn with_tokens(value: T, tokens: usize) -> CachedJson<T> {
        CachedJson(Rc::new(Inner { value, written: OnceCell::new(), tokens: OnceCell::from(tokens) }))
    }

    /// Its tokens, counted the first time.
    pub(crate) fn counted(&self, count: impl FnOnce(&T) -> usize) -> usize {
        *self.0.tokens.get_or_init(|| count(&self.0.value))
    }

    /// Writes it for chat completions, as `form` does, the first time; every later time as it was written then.
    pub(crate) fn write<'a, F: Serialize, S: Serializer>(
        &'a self,
        form: impl Fn(&'a T) -> F,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let form = form(&self.0.value);
        match self.0.written.get_or_init(|| Written::Openai(to_raw_value(&form).ok())) {
            Written::Openai(Some(written)) => written.serialize(serializer),
            // The serializer then says what is wrong with it.
            Written::Openai(None) | Written::Blocks(..) => form.serialize(serializer),
        }
    }

    /// The same for those whose lists are put together from texts.
    pub(crate) fn blocks(&self, of: Blocks, form: impl Fn(&T) -> String) -> Cow<'_, str> {
        match self.0.written.get_or_init(|| Written::Blocks(of, form(&self.0.value))) {
            Written::Blocks(kept, written) if *kept == of => Cow::Borrowed(written),
            Written::Openai(_) | Written::Blocks(..) => Cow::Owned(form(&self.0.value)),
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

// By hand: what was written does not count, and nothing is asked of `T` for a clone.
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
