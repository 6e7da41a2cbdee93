//! Definitions and logs, for code in a thread.

use std::borrow::Cow;

use serde_json::Value;

use crate::definitions::{Catalog, ReferenceKind};
use crate::engine::handle::ThreadHandle;
use crate::engine::thread::Thread;
use crate::error::{Error, Result};
use crate::json;
use crate::request::Query;
use crate::sdk::resources::{Keys, ResourcesApi};
use crate::sdk::scope::Scope;

impl ResourcesApi for ThreadHandle {
    fn catalog(&self) -> &Catalog {
        &self.thread.catalog
    }

    fn named<'n>(&self, name: &'n str, sought: ReferenceKind) -> Result<Cow<'n, str>> {
        self.thread.named(&self.scope, "name", name, sought)
    }

    fn seen(&self, names: Keys<'_>, sought: ReferenceKind) -> Vec<String> {
        let packages = &self.thread.catalog.packages;
        let within = self.scope.package.as_deref();
        let entry = |name: &str| sought == ReferenceKind::Agent && packages.is_entry(name);
        names.filter(|name| !packages.is_foreign(within, name) || entry(name)).cloned().collect()
    }

    fn logs(&self, query: &Query) -> Result<Value> {
        Ok(json!(self.thread.records().logs(query)?))
    }
}

impl Thread {
    /// The name in the catalog for a name in the code of a scope ([`Catalog::named`]).
    ///
    /// # Errors
    /// `invalid_field` for a hidden name of another package.
    pub(crate) fn named<'n>(
        &self,
        scope: &Scope,
        field: &str,
        name: &'n str,
        sought: ReferenceKind,
    ) -> Result<Cow<'n, str>> {
        let found = self.catalog.named(scope.package.as_deref(), name, sought);
        found.map_err(|hidden| Error::field(field, format!("{hidden}.")))
    }
}
