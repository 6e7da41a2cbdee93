//! Native functions by name, for `{"run": {"native": "name"}}` in definitions.

use std::any::Any;
use std::cell::RefCell;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;

use crate::sorted::SortedMap;

/// The functions of this crate, and those that embedding crates add.
pub(crate) struct Registry<N: 'static> {
    built_in: &'static [(&'static str, N)],
    added: RefCell<SortedMap<&'static str, N>>,
}

impl<N: Copy> Registry<N> {
    pub(crate) const fn new(built_in: &'static [(&'static str, N)]) -> Registry<N> {
        Registry { built_in, added: RefCell::new(SortedMap::new()) }
    }

    /// Adds a function, or replaces the one with this name.
    pub(crate) fn add(&self, name: &'static str, native: N) {
        self.added.borrow_mut().insert(name, native);
    }

    pub(crate) fn find(&self, name: &str) -> Option<N> {
        let built_in = || self.built_in.iter().find(|(known, _)| *known == name).map(|(_, native)| *native);
        self.added.borrow().get(name).copied().or_else(built_in)
    }

    /// All names, in order.
    pub(crate) fn names(&self) -> Vec<&'static str> {
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
pub struct Panicked(pub String);

impl Panicked {
    pub(crate) fn of(panic: Box<dyn Any + Send>) -> Panicked {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Panicked(text.unwrap_or("something that is not text").to_owned())
    }
}

/// Runs a native function. A panic ends only this call.
///
/// # Errors
/// The message of the panic.
pub(crate) async fn contained<T>(running: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(running).catch_unwind().await.map_err(Panicked::of)
}

/// Defines `register`, `names` and `find` for one kind of native functions. `$entry`: the stored form, if it
/// is more than the function; `$added` makes it from a function that a crate adds.
macro_rules! registry {
    ($native:ty, $built_in:expr, $what:literal) => {
        registry!($native as $native, std::convert::identity, $built_in, $what);
    };
    ($native:ty as $entry:ty, $added:expr, $built_in:expr, $what:literal) => {
        thread_local! {
            // Filled when the program starts.
            static NATIVES: crate::registry::Registry<$entry> =
                const { crate::registry::Registry::new($built_in) };
        }

        #[doc = concat!("Adds ", $what, ", or replaces the one of that name. Call it when the program starts.")]
        pub fn register(name: &'static str, native: $native) {
            NATIVES.with(|natives| natives.add(name, $added(native)));
        }

        /// The names available to definitions.
        pub fn names() -> Vec<&'static str> {
            NATIVES.with(crate::registry::Registry::names)
        }

        /// Whether a name is available to definitions.
        #[allow(dead_code, reason = "not every kind is asked for before it is called")]
        pub(crate) fn has(name: &str) -> bool {
            find(name).is_some()
        }

        fn find(name: &str) -> Option<$entry> {
            NATIVES.with(|natives| natives.find(name))
        }
    };
}

pub(crate) use registry;
