//! The catalog of one thread: the compiled one, extended with the tools that MCP servers list at run time.
//! Earlier versions stay in memory, because references to them may still be in use. The newest one is
//! current.

use std::cell::OnceCell;
use std::ops::Deref;
use std::rc::Rc;

use crate::definitions::{Catalog, McpList};

/// Maximum number of extensions in the life of one object. Later changes of lists are ignored.
const MOST: usize = 32;

/// A compiled catalog and its extensions.
pub(crate) struct Catalogs {
    catalog: Rc<Catalog>,
    /// Whether it has servers that are listed at run time.
    live: bool,
    next: OnceCell<Box<Catalogs>>,
}

impl Catalogs {
    /// A chain that holds only the compiled catalog.
    pub(super) fn new(catalog: Rc<Catalog>) -> Catalogs {
        let live = catalog.mcp.values().any(|server| server.list == McpList::Live);
        Catalogs { catalog, live, next: OnceCell::new() }
    }

    /// The catalog without the tools of MCP servers.
    pub(super) fn compiled(&self) -> &Rc<Catalog> {
        &self.catalog
    }

    /// Whether it has servers that are listed at run time.
    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    /// Makes a new version current. Returns whether there was room for it.
    pub(super) fn grow(&self, catalog: Rc<Catalog>) -> bool {
        let (mut last, mut count) = (self, 0);
        while let Some(next) = last.next.get() {
            (last, count) = (next, count + 1);
        }
        count < MOST
            && last.next.set(Box::new(Catalogs { catalog, live: self.live, next: OnceCell::new() })).is_ok()
    }
}

impl Deref for Catalogs {
    type Target = Catalog;

    fn deref(&self) -> &Catalog {
        let mut last = self;
        while let Some(next) = last.next.get() {
            last = next;
        }
        &last.catalog
    }
}
