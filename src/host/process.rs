//! What the objects of one process share: it saves work, is lost with the process, and nothing depends on it.

use std::cell::RefCell;

use crate::sorted::SortedMap;

/// See the module.
#[derive(Default)]
pub struct Process {
    /// What the deployment was told last of each MCP server.
    pub(crate) told: RefCell<SortedMap<String, Told>>,
}

/// What was told of a server.
pub(crate) struct Told {
    /// Microseconds since 1970.
    pub(crate) at_us: i64,
    /// What was wrong; `None` when nothing was.
    pub(crate) error: Option<String>,
}
