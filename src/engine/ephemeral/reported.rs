//! What was reported already, so that it is reported once.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};

/// See the module.
#[derive(Default)]
pub(in crate::engine) struct Reported {
    /// The last failures of this run on the operator's terminal.
    pub(in crate::engine) failures: RefCell<VecDeque<String>>,
    /// The last refusal of metrics by the collector.
    pub(in crate::engine) metrics_refusal: RefCell<Option<String>>,
    /// Notes of runs: the run's id, the code, the subject.
    pub(in crate::engine) notes: RefCell<BTreeSet<(i64, &'static str, String)>>,
}
