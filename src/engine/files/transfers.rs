//! Contents of files that are being written or moved.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use futures::channel::oneshot;

/// See the module.
#[derive(Default)]
pub(in crate::engine) struct Transfers {
    /// Ids of contents that are being written. Other unfinished ones are left over from an earlier life.
    pub(super) writing: RefCell<BTreeSet<i64>>,
    /// Whether files are being moved between the database and the bucket.
    pub(super) moving: Cell<bool>,
    /// Waiters for the end of the move.
    pub(super) move_waiters: RefCell<Vec<oneshot::Sender<()>>>,
}
