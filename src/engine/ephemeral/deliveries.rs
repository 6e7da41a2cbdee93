//! Deliveries of the outbox.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::error::Result;

/// Deliveries that are in progress or due.
#[derive(Default)]
pub(in crate::engine) struct Deliveries {
    /// Whether an envelope was written whose delivery has not begun. Those of earlier lives are the alarm's.
    pub(in crate::engine) posted: Cell<bool>,
    /// Targets with a delivery in progress, and whether more was written for them.
    pub(in crate::engine) running: RefCell<BTreeMap<String, bool>>,
    /// Entries to memories whose responses are awaited, by subject, with the response.
    pub(in crate::engine) awaited: RefCell<BTreeMap<String, Option<Result<String>>>>,
}
