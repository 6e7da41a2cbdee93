//! The catalog with the stored tool lists of servers.

use std::any::Any;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use sha2::{Digest, Sha256};

use crate::definitions::{Catalog, ListedTool};
use crate::engine::features::McpClient;
use crate::engine::mcp::sessions::hex;
use crate::error::Result;
use crate::host::process::Process;
use crate::store::mcp;

impl McpClient<'_> {
    /// Loads the stored lists, once.
    pub(crate) fn load_lists(&self) -> Result<()> {
        if !self.catalog.is_live() || self.ephemeral.mcp.lists.borrow().is_some() {
            return Ok(());
        }
        let mut lists = BTreeMap::new();
        mcp::lists(self.host.sql(), &mut |server, list| drop(lists.insert(server, list)))?;
        *self.ephemeral.mcp.lists.borrow_mut() = Some(lists);
        self.grow_catalog();
        Ok(())
    }

    /// Updates the catalog to the current lists.
    pub(super) fn grow_catalog(&self) {
        let lists = self.ephemeral.mcp.lists.borrow();
        let listed: Vec<(&str, &str)> = lists
            .iter()
            .flat_map(|lists| lists.iter())
            .filter_map(|(server, list)| Some((server.as_str(), list.tools.as_deref()?)))
            .collect();
        let key = key_of(self.catalog.compiled(), &listed);
        if *self.ephemeral.mcp.catalog_lists.borrow() == key {
            return;
        }
        let catalog = if listed.is_empty() {
            self.catalog.compiled().clone()
        } else {
            grown(&self.host.process(), &key, self.catalog.compiled(), &listed)
        };
        if !self.catalog.grow(catalog) {
            return self.variables().log_once(
                "MCP servers change their lists too often: the last change is not followed.".to_owned(),
            );
        }
        *self.ephemeral.mcp.catalog_lists.borrow_mut() = key;
        // They were built from the earlier catalog.
        self.ephemeral.requests.offers.borrow_mut().clear();
    }
}

/// The key of an extended catalog; empty without lists.
fn key_of(compiled: &Rc<Catalog>, listed: &[(&str, &str)]) -> String {
    if listed.is_empty() {
        return String::new();
    }
    let mut digest = Sha256::new();
    for (server, tools) in listed {
        digest.update(format!("{server}\0{}\0{tools}", tools.len()));
    }
    format!("{:p} {}", Rc::as_ptr(compiled), hex(&digest.finalize()))
}

/// The catalog with these lists. Objects of a process share it.
fn grown(process: &Process, key: &str, compiled: &Catalog, listed: &[(&str, &str)]) -> Rc<Catalog> {
    let known = process.catalogs.borrow().get(key).and_then(Weak::upgrade);
    if let Some(known) = known.and_then(|known| known.downcast::<Catalog>().ok()) {
        return known;
    }
    // This code wrote them, so they parse.
    let tools: Vec<(&str, Vec<ListedTool>)> = listed
        .iter()
        .map(|(server, tools)| (*server, crate::json::from_str(tools).unwrap_or_default()))
        .collect();
    let lists: Vec<(&str, &[ListedTool])> =
        tools.iter().map(|(server, tools)| (*server, tools.as_slice())).collect();
    let catalog = Rc::new(compiled.with_live(&lists));
    let shared: Rc<dyn Any> = catalog.clone();
    let mut catalogs = process.catalogs.borrow_mut();
    catalogs.retain(|_, catalog| catalog.strong_count() > 0);
    catalogs.insert(key.to_owned(), Rc::downgrade(&shared));
    catalog
}
