//! Data shared by the objects of one process. It only saves work: a crash may lose it without harm.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Weak;

/// Caches of one process.
#[derive(Default)]
pub struct Process {
    /// The last report to the deployment about each MCP server and its list.
    pub(crate) told: RefCell<BTreeMap<String, ServerReport>>,
    /// Tool lists of MCP servers, the newest last.
    pub(crate) lists: RefCell<Vec<SharedList>>,
    /// Extended catalogs, by their extensions, for as long as an object uses them.
    pub(crate) catalogs: RefCell<BTreeMap<String, Weak<dyn Any>>>,
    /// Lines in the operator's log that need not be repeated for every object, the newest last.
    lines: RefCell<Vec<String>>,
}

/// Number of remembered lines.
const LINES: usize = 64;

impl Process {
    /// Whether this line is new to the operator's log. Remembers it.
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

/// The tool list of a server.
pub(crate) struct SharedList {
    /// The server and its principal.
    pub(crate) key: String,
    /// Microseconds since 1970.
    pub(crate) until_us: i64,
    /// A JSON array.
    pub(crate) tools: String,
    /// Whether the server speaks the protocol without sessions.
    pub(crate) is_modern: bool,
}

/// A report about a server.
pub(crate) struct ServerReport {
    /// Microseconds since 1970.
    pub(crate) at_us: i64,
    /// The problem, or a hash of the list; `None` if there was no problem.
    pub(crate) what: Option<String>,
}
