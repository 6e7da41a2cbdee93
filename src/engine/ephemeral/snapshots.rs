//! Snapshots of definitions.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::definitions::Snapshot;

/// See the module.
#[derive(Default)]
pub(in crate::engine) struct Snapshots {
    /// Those with which runs begin, by agent.
    pub(in crate::engine) by_agent: RefCell<BTreeMap<String, Rc<Snapshot>>>,
    /// Whether the log is known to have the snapshot of the thread's first run.
    pub(in crate::engine) logged: Cell<bool>,
}
