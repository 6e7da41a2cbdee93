//! Native functions by name, for `{"run": {"native": "name"}}` in definitions.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;

/// The functions of this crate, and those that embedding crates add.
pub struct Registry<N: 'static> {
    built_in: &'static [(&'static str, N)],
    added: RefCell<BTreeMap<&'static str, N>>,
}

impl<N: Copy> Registry<N> {
    /// Starts with the functions of this crate.
    pub const fn new(built_in: &'static [(&'static str, N)]) -> Registry<N> {
        Registry { built_in, added: RefCell::new(BTreeMap::new()) }
    }

    /// Adds a function, or replaces the one with this name.
    pub fn add(&self, name: &'static str, native: N) {
        self.added.borrow_mut().insert(name, native);
    }

    /// The function with this name. One that was added comes first.
    pub fn find(&self, name: &str) -> Option<N> {
        let built_in = || self.built_in.iter().find(|(known, _)| *known == name).map(|(_, native)| *native);
        self.added.borrow().get(name).copied().or_else(built_in)
    }

    /// All names, in order.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = self.added.borrow().keys().copied().collect();
        names.extend(self.built_in.iter().map(|(name, _)| *name));
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// The message of a native function's panic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it panicked: {0}")]
pub struct Panic(pub String);

impl Panic {
    fn of(panic: Box<dyn Any + Send>) -> Panic {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Panic(text.unwrap_or("something that is not text").to_owned())
    }
}

/// Runs a native function. A panic ends only this call.
///
/// # Errors
/// The message of the panic.
pub async fn contained<T>(running: impl Future<Output = T>) -> Result<T, Panic> {
    AssertUnwindSafe(running).catch_unwind().await.map_err(Panic::of)
}
