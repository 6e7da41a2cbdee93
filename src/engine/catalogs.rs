//! The catalog as one thread has it: the one that was compiled, and as it grows with the tools that MCP servers list while threads
//! run. What was found in an earlier one stays where it is, for whoever still works with it; the newest counts.

use std::cell::OnceCell;
use std::ops::Deref;
use std::rc::Rc;

use crate::spec::{Catalog, McpList};

/// Times that it grows in the life of one object. Lists that change more often are not followed.
const MOST: usize = 32;

/// See the module.
pub(crate) struct Catalogs {
    catalog: Rc<Catalog>,
    /// Whether it has servers that are listed while threads run.
    live: bool,
    next: OnceCell<Box<Catalogs>>,
}

impl Catalogs {
    /// The one that was compiled.
    pub(crate) fn new(catalog: Rc<Catalog>) -> Catalogs {
        let live = catalog.mcp.values().any(|server| server.list == McpList::Live);
        Catalogs { catalog, live, next: OnceCell::new() }
    }

    /// Without what servers list.
    pub(crate) fn compiled(&self) -> &Rc<Catalog> {
        &self.catalog
    }

    /// Whether it has servers that are listed while threads run.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// From here on this one counts. Whether there was room for it.
    pub(crate) fn grow(&self, catalog: Rc<Catalog>) -> bool {
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
