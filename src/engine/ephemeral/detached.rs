//! The detached work of this life of the object.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The detached work of this life of the object.
#[derive(Default)]
pub(crate) struct RunningWork {
    /// The number that is running.
    pub(crate) open: Cell<u32>,
    /// Ended work whose calls are still to be settled.
    pub(crate) ended: RefCell<Vec<EndedWork>>,
    /// Whether the leftovers of earlier lives were checked.
    pub(crate) looked: Cell<bool>,
}

/// Detached work that has ended.
#[derive(Clone, Debug)]
pub(crate) enum EndedWork {
    /// Work of earlier lives, whose receipts have ids up to this one.
    Lost(i64),
    /// Work of this life. Its receipts have ids above this one.
    Ended(Rc<str>, i64),
}
