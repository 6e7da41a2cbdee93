//! What the objects of one process share: it saves work, is lost with the process, and nothing depends on it.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Weak;

use crate::sorted::SortedMap;

/// See the module.
#[derive(Default)]
pub struct Process {
    /// What the deployment was told last of each MCP server, and of each one's list.
    pub(crate) told: RefCell<SortedMap<String, Told>>,
    /// What MCP servers listed, the newest last.
    pub(crate) lists: RefCell<Vec<SharedList>>,
    /// Catalogs that have grown, by what they have grown with, as long as an object has them.
    pub(crate) catalogs: RefCell<SortedMap<String, Weak<dyn Any>>>,
    /// Lines that the operator has read and need not read of every object, the newest last.
    lines: RefCell<Vec<String>>,
}

/// Lines that are remembered.
const LINES: usize = 64;

impl Process {
    /// Whether the operator has not read this line yet. From now on they have.
    pub(crate) fn is_new(&self, line: &str) -> bool {
        let mut lines = self.lines.borrow_mut();
        if lines.iter().any(|known| known == line) {
            return false;
        }
        if lines.len() >= LINES {
            lines.remove(0);
        }
        lines.push(line.to_owned());
        true
    }
}

/// What a server listed.
pub(crate) struct SharedList {
    /// The server, and for whom it was listed.
    pub(crate) key: String,
    /// Microseconds since 1970.
    pub(crate) until_us: i64,
    /// A JSON array.
    pub(crate) tools: String,
    /// Whether the server speaks the protocol without sessions.
    pub(crate) is_modern: bool,
}

/// What was told of a server.
pub(crate) struct Told {
    /// Microseconds since 1970.
    pub(crate) at_us: i64,
    /// What was wrong, or a hash of the list; `None` when nothing was wrong.
    pub(crate) what: Option<String>,
}
