//! Memories of a thread (docs/memory.md). A thread's own memories are in its database; shared memories have their
//! own objects.
//!
//! * This file: the thread's own memories and their routes. `shared`: memories in other objects. `job`: makes
//!   documents searchable; `schedule`: schedules that. `recall`: entries added before a turn, and citations.
//!   `tools`: the tools for models, and the scratchpad. `sources`: notes content that memories take in
//!   automatically; `ingest`: takes it in, in parallel with runs. `log`: log entries.

mod ingest;
mod job;
mod log;
mod recall;
mod schedule;
pub(super) mod shared;
mod sources;
pub(super) mod tools;

use futures::StreamExt;

use crate::definitions::MemoryScope;
use crate::engine::budget::vectors::RequestAllowance;
use crate::engine::features::Memories;
use crate::engine::thread::Thread;
use crate::env::scrub::{Rules, Scrubber};
use crate::error::{Code, Error, Result};
use crate::host::{Host, Sql};
use crate::limits;
use crate::memory::calls::{MemoryRequest, answer, check_body, path_of, question_of};
use crate::memory::{MemoryHost, MemoryStore, PendingWork, UnloggedRequests, named};
use crate::request::{MemoryRoute, Reply, ThreadRequest};
use crate::store::file_path::FilePath;
use crate::store::files::Row;
use crate::store::memory as stores;

impl MemoryHost for Thread {
    fn host(&self) -> &dyn Host {
        &*self.host
    }

    fn make_tables(&self) -> Result<()> {
        self.read_mut(|state, sql| {
            state.ensure_not_terminated()?;
            stores::make(sql)?;
            state.memories = true;
            Ok(())
        })
    }

    fn has_tables(&self) -> Result<bool> {
        self.read_mut(|state, sql| {
            state.memories = state.memories || stores::is_there(sql);
            Ok(state.memories)
        })
    }

    fn change(
        &self,
        name: &str,
        asked: UnloggedRequests<'_>,
        work: &mut dyn FnMut(&dyn Sql) -> Result<PendingWork>,
    ) -> Result<()> {
        let owes = self.transition(|state, sql| {
            if let Some(asked) = asked {
                self.memories().log_vectors(state, sql, asked)?;
            }
            let owes = work(sql)?;
            match owes {
                PendingWork::Index => {
                    let run = state.active().cloned();
                    self.memories().schedule_index(state, sql, name, run.as_ref())?;
                }
                PendingWork::Progress => crate::store::jobs::progressed(state, sql, name, true)?,
                PendingWork::Settled => crate::store::jobs::progressed(state, sql, name, false)?,
                PendingWork::Nothing => {}
            }
            Ok(owes)
        })?;
        if owes == PendingWork::Index {
            self.ephemeral.notify_alarm();
        }
        Ok(())
    }

    fn deployment(&self, name: &str) -> Option<String> {
        self.variables().deployment(name)
    }

    fn clean(&self, text: String) -> String {
        let rules = Rules::of(&self.catalog.settings.scrub, None);
        Scrubber::new(&rules).text(self.variables().redact(text))
    }
}

impl Memories<'_> {
    /// `…/memory/:name`: a memory of the thread's own.
    pub(crate) async fn answer_memory(
        &self,
        request: &ThreadRequest,
        name: &str,
        route: &MemoryRoute,
    ) -> Result<Reply> {
        check_body(route, &request.body)?;
        let memory = named(&self.catalog, name, MemoryScope::Thread)?;
        let mut file = None;
        if !route.reads() {
            self.read(|state, _| state.ensure_not_terminated())?;
        }
        if *route == MemoryRoute::AddDocument {
            self.variables().ready_env().await?;
            file = match path_of(&request.body)? {
                Some(path) => {
                    let (text, mime, _) = self.document_file(&path).await?;
                    Some((text, mime))
                }
                None => None,
            };
        }
        let memory_store = MemoryStore::new(self.0, &self.catalog, memory);
        // If the budget covers no vector, the search uses words only. Until it is logged, the request counts
        // as in progress.
        let mut reserved = RequestAllowance::default();
        if *route == MemoryRoute::Search {
            reserved = self.budgets().reserve_query(&memory_store, &question_of(&request.body)?, None)?;
        }
        let asked = MemoryRequest {
            route,
            query: &request.query,
            idempotency_key: request.idempotency_key.as_deref(),
            body: &request.body,
            file,
            requests: reserved.requests,
        };
        answer(&memory_store, asked).await
    }

    /// The text of a file that becomes a document, its type, and its row.
    async fn document_file(&self, path: &str) -> Result<(String, String, Row)> {
        let at = FilePath::parse("path", path)?;
        let row =
            self.files().file(&at)?.ok_or_else(|| crate::engine::files::tree::no_file(&at).at("path"))?;
        let size = row.size.unsigned_abs();
        if size > limits::DOCUMENT_FILE_BYTES as u64 {
            let most = limits::DOCUMENT_FILE_BYTES >> 20;
            let text = format!("{path} has {size} bytes; a document has at most {most} MB.");
            return Err(Error::new(Code::TooLarge, text).at("path"));
        }
        let mime = row.mime.clone();
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        let mut content = self.files().opened(row.clone(), 0..size).await?;
        while let Some(piece) = content.next().await {
            bytes.extend_from_slice(&piece?);
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::field("path", format!("{path} is no text in UTF-8.")))?;
        Ok((text, mime, row))
    }
}
