//! Memories (docs/memory.md). Memories of threads and those with their own object share the code. A
//! [`MemoryHost`] owns the tables; a [`MemoryStore`] is one memory in them.
//!
//! * `extract`: the text of a document. `cut`: chunking. `documents`: adding, listing, deleting. `index`:
//!   indexing. `embed`: requests for vectors; `embedding`: their providers. `log`: their log rows. `fuse`: fusion of results. `search`:
//!   searches. `notes`: notes by models, and messages. `calls`: the HTTP requests.
//! * `shared`: the object of a shared memory.

pub(crate) mod calls;
pub(crate) mod cut;
pub(crate) mod documents;
pub(crate) mod embed;
pub(crate) mod embedding;
pub(crate) mod extract;
mod fuse;
pub(crate) mod index;
pub(crate) mod log;
pub(crate) mod notes;
pub(crate) mod search;
mod shared;

pub use crate::memory::calls::check_body;
pub use crate::memory::shared::SharedMemory;

use std::cell::RefCell;

use crate::definitions::memory::Memory;
use crate::definitions::model::Model;
use crate::definitions::retry::{EffectivePolicy, PolicySources, RetryKind};
use crate::definitions::{Catalog, MemoryScope};
use crate::error::{Code, Error, Result};
use crate::host::{Host, Sql};
use crate::memory::embed::VectorRequest;
use crate::memory::embedding::Embedder;

/// Pending work after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingWork {
    /// New texts to chunk, or vectors to make.
    Index,
    /// Progress was made and work remains; the running attempt is not charged with the remainder.
    Progress,
    /// Nothing remains, and no request is running.
    Settled,
    Nothing,
}

/// The owner of the tables of memories.
pub(crate) trait MemoryHost {
    fn host(&self) -> &dyn Host;

    /// Creates the tables when needed. Call it outside of transactions.
    fn make_tables(&self) -> Result<()>;

    /// Whether the tables exist.
    fn has_tables(&self) -> Result<bool>;

    /// Runs one transaction, which also records the pending work of the named memory and logs the requests
    /// for vectors.
    fn change(
        &self,
        name: &str,
        asked: UnloggedRequests<'_>,
        work: &mut dyn FnMut(&dyn Sql) -> Result<PendingWork>,
    ) -> Result<()>;

    /// A variable of the deployment.
    fn deployment(&self, name: &str) -> Option<String>;

    /// The text without secrets, and without anything that looks like one.
    fn clean(&self, text: String) -> String;
}

/// Requests for vectors that belong to no run, with their model.
pub(crate) type UnloggedRequests<'a> = Option<(&'a Model, &'a [VectorRequest])>;

/// One memory.
pub(crate) struct MemoryStore<'a> {
    memory_host: &'a dyn MemoryHost,
    pub(crate) memory: &'a Memory,
    /// The model for its vectors.
    pub(crate) model: Option<&'a Model>,
    /// The retry policy for requests for vectors.
    pub(crate) retry: EffectivePolicy,
    /// Requests for vectors that are not logged yet.
    pub(crate) asked: RefCell<Vec<VectorRequest>>,
}

impl<'a> MemoryStore<'a> {
    pub(crate) fn new(
        memory_host: &'a dyn MemoryHost,
        catalog: &'a Catalog,
        memory: &'a Memory,
    ) -> MemoryStore<'a> {
        let model = memory.embedding.as_ref().and_then(|name| catalog.models.get(name));
        let places = PolicySources {
            folder: Some(&catalog.settings.retry_defaults),
            definition: model.map(|model| &model.retry),
            ..PolicySources::default()
        };
        let retry = EffectivePolicy::of(RetryKind::Embedding, places);
        MemoryStore { memory_host, memory, model, retry, asked: RefCell::default() }
    }

    /// Sets the retry policy of a run.
    pub(crate) fn retrying(self, retry: EffectivePolicy) -> MemoryStore<'a> {
        MemoryStore { retry, ..self }
    }

    fn sql(&self) -> &'a dyn Sql {
        self.memory_host.host().sql()
    }

    fn now_us(&self) -> i64 {
        self.memory_host.host().now_us()
    }

    /// Identity of the model and its options, on which the vectors depend; empty without a model.
    pub(crate) fn identity(&self) -> String {
        let Some(model) = self.model else { return String::new() };
        let deployment = |name: &str| self.memory_host.deployment(name);
        Embedder { host: self.memory_host.host(), model, deployment: &deployment }.identity()
    }

    /// Runs a transaction and returns its value.
    pub(crate) fn change<T>(&self, work: impl FnOnce(&dyn Sql) -> Result<(T, PendingWork)>) -> Result<T> {
        self.change_with(&[], work)
    }

    /// Like [`MemoryStore::change`], and logs the requests for vectors made since.
    fn change_and_log<T>(&self, work: impl FnOnce(&dyn Sql) -> Result<(T, PendingWork)>) -> Result<T> {
        self.change_with(&self.asked.take(), work)
    }

    fn change_with<T>(
        &self,
        asked: &[VectorRequest],
        work: impl FnOnce(&dyn Sql) -> Result<(T, PendingWork)>,
    ) -> Result<T> {
        let asked = self.model.filter(|_| !asked.is_empty()).map(|model| (model, asked));
        let (mut work, mut value) = (Some(work), None);
        self.memory_host.change(&self.memory.name, asked, &mut |sql| {
            let work = work.take().ok_or_else(|| Error::internal("a change was made twice"))?;
            let (given, owes) = work(sql)?;
            value = Some(given);
            Ok(owes)
        })?;
        value.ok_or_else(|| Error::internal("a change was not made"))
    }
}

/// The memory with this name and scope.
///
/// # Errors
/// `memory_not_found`.
pub(crate) fn named<'c>(catalog: &'c Catalog, name: &str, scope: MemoryScope) -> Result<&'c Memory> {
    let found = catalog.memories.get(name).filter(|memory| memory.scope == scope);
    found.ok_or_else(|| {
        let of_scope = catalog.memories.values().filter(|memory| memory.scope == scope);
        let names: Vec<&str> = of_scope.map(|memory| memory.name.as_str()).collect();
        let hint = match catalog.memories.get(name).map(|memory| memory.scope) {
            Some(MemoryScope::Thread) => {
                "It is a thread's own: its routes are below /api/threads/:id/memory.".to_owned()
            }
            Some(_) => "It is shared: its routes are below /api/memory.".to_owned(),
            None if names.is_empty() => "There are none here.".to_owned(),
            None => format!("There are: {}.", names.join(", ")),
        };
        Error::new(Code::MemoryNotFound, format!("There is no memory “{name}” here.")).hint(hint)
    })
}

/// The scope of the memory with this name below `/api/memory`.
///
/// # Errors
/// `memory_not_found`: no such memory, or it belongs to threads.
pub fn shared_scope(catalog: &Catalog, name: &str) -> Result<MemoryScope> {
    named(catalog, name, MemoryScope::Owner)
        .or_else(|error| named(catalog, name, MemoryScope::Instance).map_err(|_| error))
        .map(|memory| memory.scope)
}
