//! Memories (docs/memory.md): the same code for those of a thread and for those that have an object of their own. A [`Keeper`]
//! is who holds the tables; a [`Book`] is one memory of it.
//!
//! * `extract`: the text of a document. `cut`: chunks of it. `documents`: what comes in, is listed and goes. `index`: the work
//!   that makes it found. `embed`: requests for vectors. `log`: their rows. `fuse`: two lists become one. `search`: what is found. `notes`: what models
//!   save. `calls`: all of that as requests.
//! * `shared`: the object of a memory that several threads have.

pub(crate) mod calls;
pub(crate) mod cut;
pub(crate) mod documents;
pub(crate) mod embed;
pub(crate) mod extract;
pub(crate) mod fuse;
pub(crate) mod index;
pub(crate) mod log;
pub(crate) mod notes;
pub(crate) mod search;
pub(crate) mod shared;

pub use crate::memory::calls::check_body;
pub use crate::memory::shared::SharedMemory;

use std::cell::RefCell;

use crate::error::{Code, Error, Result};
use crate::host::{Host, Sql};
use crate::memory::embed::VectorRequest;
use crate::models::embedding::Embedder;
use crate::spec::memory::Memory;
use crate::spec::model::Model;
use crate::spec::retry::{Places, Resolved, RetryKind};
use crate::spec::{Catalog, MemoryScope};

/// What a change leaves to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owes {
    /// Texts are to be cut or vectors to be made.
    Index,
    /// A part of that is done: what is left is not the attempt's that may be lost.
    Progress,
    /// All of it is done, for now: nothing more is asked for.
    Settled,
    /// Nothing new.
    Nothing,
}

/// Who holds the tables of memories.
pub(crate) trait Keeper {
    fn host(&self) -> &dyn Host;

    /// Makes the tables, once they are needed. Outside of any transaction.
    fn make_tables(&self) -> Result<()>;

    /// Whether the tables are there.
    fn has_tables(&self) -> Result<bool>;

    /// One transaction; what it leaves to be done of the memory of that name is noted in it, and the requests for vectors are
    /// logged.
    fn change(
        &self,
        name: &str,
        asked: AskedVectors<'_>,
        work: &mut dyn FnMut(&dyn Sql) -> Result<Owes>,
    ) -> Result<()>;

    /// A variable of the deployment.
    fn deployment(&self, name: &str) -> Option<String>;

    /// A text without what is, or looks like, a secret.
    fn clean(&self, text: String) -> String;
}

/// Requests for vectors that no run has made: which, and of which model.
pub(crate) type AskedVectors<'a> = Option<(&'a Model, &'a [VectorRequest])>;

/// One memory.
pub(crate) struct Book<'a> {
    pub(crate) keeper: &'a dyn Keeper,
    pub(crate) memory: &'a Memory,
    /// What makes its vectors.
    pub(crate) model: Option<&'a Model>,
    /// How a request for vectors that failed is made again.
    pub(crate) retry: Resolved,
    /// Requests for vectors that were made and are not in the log yet.
    pub(crate) asked: RefCell<Vec<VectorRequest>>,
}

impl<'a> Book<'a> {
    pub(crate) fn new(keeper: &'a dyn Keeper, catalog: &'a Catalog, memory: &'a Memory) -> Book<'a> {
        let model = memory.embedding.as_ref().and_then(|name| catalog.models.get(name));
        let places = Places {
            folder: Some(&catalog.settings.retry_defaults),
            definition: model.map(|model| &model.retry),
            ..Places::default()
        };
        let retry = Resolved::of(RetryKind::Embedding, places);
        Book { keeper, memory, model, retry, asked: RefCell::default() }
    }

    /// The same where a run says how requests are made again.
    pub(crate) fn retrying(self, retry: Resolved) -> Book<'a> {
        Book { retry, ..self }
    }

    pub(crate) fn sql(&self) -> &'a dyn Sql {
        self.keeper.host().sql()
    }

    pub(crate) fn now_us(&self) -> i64 {
        self.keeper.host().now_us()
    }

    /// What its vectors depend on; empty where it has none.
    pub(crate) fn identity(&self) -> String {
        let Some(model) = self.model else { return String::new() };
        let deployment = |name: &str| self.keeper.deployment(name);
        Embedder { host: self.keeper.host(), model, deployment: &deployment }.identity()
    }

    /// One transaction that gives a value.
    pub(crate) fn change<T>(&self, work: impl FnOnce(&dyn Sql) -> Result<(T, Owes)>) -> Result<T> {
        self.change_with(&[], work)
    }

    /// The same, in which the requests for vectors are logged that were made since.
    pub(crate) fn change_and_log<T>(&self, work: impl FnOnce(&dyn Sql) -> Result<(T, Owes)>) -> Result<T> {
        self.change_with(&self.asked.take(), work)
    }

    fn change_with<T>(
        &self,
        asked: &[VectorRequest],
        work: impl FnOnce(&dyn Sql) -> Result<(T, Owes)>,
    ) -> Result<T> {
        let asked = self.model.filter(|_| !asked.is_empty()).map(|model| (model, asked));
        let (mut work, mut value) = (Some(work), None);
        self.keeper.change(&self.memory.name, asked, &mut |sql| {
            let work = work.take().ok_or_else(|| Error::internal("a change was made twice"))?;
            let (given, owes) = work(sql)?;
            value = Some(given);
            Ok(owes)
        })?;
        value.ok_or_else(|| Error::internal("a change was not made"))
    }
}

/// The memory of that name and scope.
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

/// Whose the memory of that name is, below `/api/memory`.
///
/// # Errors
/// `memory_not_found`: there is none, or it is the threads' own.
pub fn shared_scope(catalog: &Catalog, name: &str) -> Result<MemoryScope> {
    named(catalog, name, MemoryScope::Owner)
        .or_else(|error| named(catalog, name, MemoryScope::Instance).map_err(|_| error))
        .map(|memory| memory.scope)
}
