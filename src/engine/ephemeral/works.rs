//! Work apart from any run: what this life knows of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What this life knows of it.
#[derive(Default)]
pub(crate) struct Works {
    /// How many are under way.
    pub(crate) open: Cell<u32>,
    /// Those that have ended and whose calls are still to be settled.
    pub(crate) ended: RefCell<Vec<Ended>>,
    /// Whether what earlier lives have left was looked for.
    pub(crate) looked: Cell<bool>,
}

/// Work that is over.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// That of lives before this one, whose receipts are those up to this id.
    Lost(i64),
    /// This, in this life. Its receipts follow the one with that id.
    Work(Rc<str>, i64),
}
