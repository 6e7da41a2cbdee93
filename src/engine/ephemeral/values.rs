//! Values of variables that this life has read.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use crate::env::level::Level;
use crate::env::{Held, Redactor};
use crate::spec::graph::Declared;

/// What is known of them.
#[derive(Default)]
pub(crate) struct Levels {
    pub(crate) account: Level,
    pub(crate) instance: Level,
    /// The run that the copies were asked for.
    pub(crate) fresh: Cell<Option<i64>>,
}

impl Levels {
    /// The owner's value.
    pub(crate) fn account(&self, name: &str) -> Option<Held> {
        self.account.borrow().as_ref().and_then(|copy| copy.set.get(name).cloned())
    }

    /// The instance's value.
    pub(crate) fn instance(&self, name: &str) -> Option<Held> {
        self.instance.borrow().as_ref().and_then(|copy| copy.set.get(name).cloned())
    }

    /// Every value of both.
    pub(crate) fn each(&self, mut see: impl FnMut(&str, &Held)) {
        for level in [&self.account, &self.instance] {
            level.borrow().iter().flat_map(|copy| copy.set.iter()).for_each(|(name, held)| see(name, held));
        }
    }
}

/// What is known of secrets.
#[derive(Default)]
pub(crate) struct Secrets {
    pub(crate) redactor: RefCell<Rc<Redactor>>,
    /// Names and values.
    pub(crate) known: RefCell<Vec<(String, String)>>,
    /// Whether `redactor` knows all that is known.
    pub(crate) whole: Cell<bool>,
    /// Lines that were logged, each of them once.
    pub(crate) told: RefCell<Vec<String>>,
}

impl Secrets {
    /// Something was set: it is to be looked at anew.
    pub(crate) fn forget(&self) {
        self.whole.set(false);
    }
}

/// What is known of values while the object lives.
#[derive(Default)]
pub(crate) struct Values {
    /// Of the account and the instance.
    pub(crate) levels: Levels,
    /// What must not be shown.
    pub(crate) secrets: Secrets,
    /// What the definitions say about names.
    pub(crate) declared: OnceCell<Declared>,
    /// The agent that was looked at last, and whether it uses values.
    pub(crate) uses: std::cell::RefCell<Option<(String, bool)>>,
}
