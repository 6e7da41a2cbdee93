//! Values of variables that this life has read.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use crate::definitions::graph::DeclaredVariables;
use crate::env::level::Level;
use crate::env::{Redactor, StoredValue};

/// The levels of the account and the instance.
#[derive(Default)]
pub(crate) struct Levels {
    pub(crate) account: Level,
    pub(crate) instance: Level,
    /// The run for which the copies were fetched.
    pub(crate) fresh: Cell<Option<i64>>,
}

impl Levels {
    /// The owner's value.
    pub(crate) fn account(&self, name: &str) -> Option<StoredValue> {
        self.account.borrow().as_ref().and_then(|copy| copy.set.get(name).cloned())
    }

    /// The instance's value.
    pub(crate) fn instance(&self, name: &str) -> Option<StoredValue> {
        self.instance.borrow().as_ref().and_then(|copy| copy.set.get(name).cloned())
    }

    /// Every value of both.
    pub(crate) fn each(&self, mut see: impl FnMut(&str, &StoredValue)) {
        for level in [&self.account, &self.instance] {
            level.borrow().iter().flat_map(|copy| copy.set.iter()).for_each(|(name, held)| see(name, held));
        }
    }
}

/// The known secrets.
#[derive(Default)]
pub(crate) struct Secrets {
    pub(crate) redactor: RefCell<Rc<Redactor>>,
    /// Names and values.
    pub(crate) known: RefCell<Vec<(String, String)>>,
    /// Whether `redactor` covers all known secrets.
    pub(crate) whole: Cell<bool>,
    /// Lines that were logged once.
    pub(crate) told: RefCell<Vec<String>>,
}

impl Secrets {
    /// Marks the redactor as incomplete after a value was set.
    pub(crate) fn forget(&self) {
        self.whole.set(false);
    }
}

/// The values known to this life of the object.
#[derive(Default)]
pub(crate) struct Values {
    /// Values of the account and the instance.
    pub(crate) levels: Levels,
    /// Values that must not be shown.
    pub(crate) secrets: Secrets,
    /// The declarations of names.
    pub(crate) declared: OnceCell<DeclaredVariables>,
    /// The last agent that was checked, and whether it uses values.
    pub(crate) uses: std::cell::RefCell<Option<(String, bool)>>,
}
