//! Memories that several threads share: searching and storing in their objects. The object is derived from
//! the thread's owner and the definitions. A model cannot choose it.

use futures::future::{LocalBoxFuture, join_all};
use serde::de::DeserializeOwned;

use crate::definitions::{Memory, MemoryScope};
use crate::engine::features::Memories;
use crate::engine::outbox::INLINE_US;
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::host::{Sibling, Sql};
use crate::limits;
use crate::memory::embed::{VectorRequest, bytes_of};
use crate::memory::embedding::TextRole;
use crate::memory::notes::{NoteChange, NoteRequest};
use crate::memory::search::{Hit, SearchQuery, SearchResults};
use crate::memory::{MemoryStore, named};
use crate::request::between::error_of;
use crate::request::directory_call as call;
use crate::request::memory::object_name;
use crate::request::{MemoryAsk, MemoryCall, Reply};
use crate::store::memory::refusals;
use crate::store::outbox as table;
use crate::store::outbox::{NewEntry, TO_MEMORY};
use crate::store::state::State;
use crate::work::timeout::Deadline;

/// The diagnostic of a change that a memory has refused.
const REFUSED: &str = "memory.refused";
/// The error code of a full memory.
pub(super) const FULL: &str = "memory_full";

impl Memories<'_> {
    /// The memory of that name that the thread's prompts may use.
    pub(super) fn memory(&self, name: &str) -> Result<&Memory> {
        self.catalog.memories.get(name).map_or_else(|| named(&self.catalog, name, MemoryScope::Thread), Ok)
    }

    /// The owner of a shared memory.
    ///
    /// # Errors
    /// `memory_not_found`: it belongs to an owner, and the thread has none.
    fn owner_of(&self, memory: &Memory) -> Result<Option<String>> {
        if memory.scope != MemoryScope::Owner {
            return Ok(None);
        }
        let owner = self.read(|state, _| Ok(state.meta.owner.clone()))?;
        owner.map(Some).ok_or_else(|| {
            let text = format!("The memory “{}” is an owner's, and this thread has none.", memory.name);
            Error::new(Code::MemoryNotFound, text).hint("Threads are created with an owner by `user_id`.")
        })
    }

    /// The name of a memory's object, and the head of a call to it.
    fn memory_call(&self, memory: &Memory, ask: MemoryAsk) -> Result<(String, String)> {
        let owner = self.owner_of(memory)?;
        let name = object_name(owner.as_deref(), &memory.name);
        let call = MemoryCall { memory: memory.name.clone(), owner, ask };
        Ok((name, call.to_json()?))
    }

    /// Boxed, so that the futures of its callers do not embed this one.
    fn ask_memory<'a, T: DeserializeOwned + 'a>(
        &'a self,
        memory: &'a Memory,
        ask: MemoryAsk,
        body: String,
    ) -> LocalBoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let (name, head) = self.memory_call(memory, ask)?;
            let text = self.host.sibling(Sibling::Memory(name), format!("{head}\n{body}")).await?;
            read(call::answer(&text)?)
        })
    }

    /// Searches a shared memory, which requests the question's vector itself and reports it. Until it does,
    /// the search counts as one request without a result.
    pub(super) async fn search_shared(
        &self,
        memory_store: &MemoryStore<'_>,
        wanted: &SearchQuery,
    ) -> Result<SearchResults> {
        let body = serde_json::to_string(wanted).map_err(Error::internal)?;
        self.owner_of(memory_store.memory)?;
        if let Some(model) = memory_store.model.filter(|_| wanted.requests != Some(0)) {
            let size = (1, bytes_of(model, TextRole::Query, std::iter::once(wanted.query.as_str())));
            let name = &memory_store.memory.name;
            let lost = VectorRequest::lost(name, size, memory_store.retry.source, self.host.now_us());
            memory_store.asked.replace(vec![lost]);
        }
        let mut found: SearchResults = self.ask_memory(memory_store.memory, MemoryAsk::Find, body).await?;
        memory_store.asked.replace(std::mem::take(&mut found.asked));
        Ok(found)
    }

    /// The current content of hits in a shared memory, each by the numbers of its chunks.
    pub(super) async fn current_hits(&self, memory: &Memory, hits: &[&[i64]]) -> Result<Vec<Option<Hit>>> {
        let body = serde_json::to_string(hits).map_err(Error::internal)?;
        let mut watch = Deadline::for_ms(&*self.host, limits::MEMORY_SEARCH_MS);
        match watch.within(self.ask_memory(memory, MemoryAsk::Look, body)).await {
            Some(found) => found,
            None => Err(Error::new(Code::Overloaded, "It did not answer in time.")),
        }
    }

    /// Changes a note of a shared memory. The change is in the outbox before it is sent, and the wait for the
    /// memory is no longer than for a search. Returns the text for the model.
    pub(super) async fn write_note(
        &self,
        memory: &Memory,
        key: String,
        change: NoteChange,
    ) -> Result<String> {
        let (name, head) = self.memory_call(memory, MemoryAsk::Apply)?;
        let change = MemoryStore::new(self.0, &self.catalog, memory).clean_change(change)?;
        let pending = format!(
            "{} (The memory does not answer now. It receives the change when it does.)",
            change.result_text()
        );
        let body = serde_json::to_string(&NoteRequest { key, change }).map_err(Error::internal)?;
        let target = format!("{TO_MEMORY}{name}");
        let subject = self.post_entry(&target, &format!("{head}\n{body}"))?;
        self.ephemeral.deliveries.awaited.borrow_mut().insert(subject.clone(), None);
        let awaited = PendingEntry { thread: self.0.clone(), subject };
        let mut watch = Deadline::for_ms(&*self.host, limits::MEMORY_SEARCH_MS);
        // The alarm delivers an entry that gets no response by then.
        let _late = watch.within(self.outbox().deliver_target(&target)).await;
        awaited.answer().unwrap_or(Ok(pending))
    }

    /// Delivers all outbox entries to memories before a thread is deleted.
    ///
    /// # Errors
    /// `overloaded` if a memory could not be reached.
    pub(crate) async fn flush_outbox(&self) -> Result<()> {
        if self.catalog.memories.values().all(|memory| memory.scope == MemoryScope::Thread) {
            return Ok(());
        }
        let mut pauses = limits::TELL_PAUSES_US.into_iter();
        loop {
            let targets = self.read(|_, sql| table::memories(sql))?;
            if targets.is_empty() {
                return Ok(());
            }
            self.transition(|state, sql| {
                let now = self.host.now_us();
                targets.iter().try_for_each(|target| table::hurry(sql, target, now))?;
                // Arms the alarm, so that the delivery resumes after a crash.
                self.arm_at(state, sql, now, now)
            })?;
            join_all(targets.iter().map(|target| self.outbox().deliver_target(target))).await;
            if self.read(|_, sql| table::memories(sql))?.is_empty() {
                return Ok(());
            }
            let Some(pause) = pauses.next() else {
                let text = "A memory could not be told what a model has saved in it.";
                return Err(Error::new(Code::Overloaded, text)
                    .retry_after(1)
                    .hint("The thread is terminated; delete it again."));
            };
            self.host.sleep_until(self.host.now_us() + pause).await;
        }
    }

    /// Adds an outbox entry after those to the same memory. Returns its subject.
    fn post_entry(&self, target: &str, body: &str) -> Result<String> {
        self.transition(|state, sql| {
            let now = self.host.now_us();
            let version = next_version(sql, target, now)?;
            self.post_version(state, sql, target, (version, now + INLINE_US), body)
        })
    }

    /// Adds an outbox entry for a change that no model made, to a memory of the thread's owner. The alarm's
    /// handler delivers it. A thread without an owner has no such memory.
    pub(super) fn post_change(
        &self,
        state: &State,
        sql: &dyn Sql,
        memory: &Memory,
        key: &str,
        change: NoteChange,
    ) -> Result<()> {
        let Some(owner) = state.meta.owner.clone().filter(|_| memory.scope == MemoryScope::Owner) else {
            return Ok(());
        };
        let target = target_of(&owner, memory);
        let now = self.host.now_us();
        let version = next_version(sql, &target, now)?;
        let what = if matches!(change, NoteChange::Forget { .. }) { "forget" } else { "keep" };
        let request = NoteRequest { key: format!("{}/{version}/{what}/{key}", state.meta.stem), change };
        let call = MemoryCall { memory: memory.name.clone(), owner: Some(owner), ask: MemoryAsk::Apply };
        let head = call.to_json()?;
        let body = serde_json::to_string(&request).map_err(Error::internal)?;
        self.post_version(state, sql, &target, (version, now), &format!("{head}\n{body}")).map(drop)
    }

    fn post_version(
        &self,
        state: &State,
        sql: &dyn Sql,
        target: &str,
        (version, due_us): (i64, i64),
        body: &str,
    ) -> Result<String> {
        // Entries for one target are sent in the order of their subjects.
        let subject = format!("{target}:{version:020}");
        NewEntry { subject: &subject, target, body, version, due_us }.follow(sql)?;
        self.arm_at(state, sql, due_us, self.host.now_us())?;
        Ok(subject)
    }
}

/// The target of outbox entries for a memory of an owner.
pub(super) fn target_of(owner: &str, memory: &Memory) -> String {
    format!("{TO_MEMORY}{}", object_name(Some(owner), &memory.name))
}

/// The version of the next outbox entry for a target.
fn next_version(sql: &dyn Sql, target: &str, now: i64) -> Result<i64> {
    Ok(table::newest_for(sql, target)?.map_or(now, |newest| now.max(newest + 1)))
}

/// The body of a response, or its error.
fn read<T: DeserializeOwned>(reply: Reply) -> Result<T> {
    let body = reply.body.as_ref().map_or("null", |body| body.get());
    if reply.status >= 300 {
        return Err(error_of(reply.status, reply.retry_after, body.as_bytes()));
    }
    crate::json::from_str(body).map_err(Error::internal)
}

/// The memory's answer to an outbox entry.
pub(crate) fn entry_response(reply: Reply) -> Result<String> {
    read(reply)
}

/// Stores a refused change, as a diagnostic of the next run.
pub(crate) fn note_refusal(
    state: &mut State,
    sql: &dyn Sql,
    entry: &table::OutboxEntry,
    error: &Error,
) -> Result<()> {
    let (head, body) = entry.body.split_once('\n').unwrap_or_default();
    let call: MemoryCall = crate::json::from_str(head).map_err(Error::internal)?;
    let change = crate::json::from_str::<NoteRequest>(body).map_err(Error::internal)?.change;
    let hint = error.hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default();
    let why = format!("{}{hint}", error.message);
    match change {
        NoteChange::Keep(_) if error.code == Code::MemoryFull => {
            refusals::add(state, sql, &call.memory, FULL, &why)
        }
        change => {
            let text = format!("\"{}\" refused {}: {why}", call.memory, change.sent());
            refusals::add(state, sql, &call.memory, REFUSED, &text)
        }
    }
}

/// An outbox entry whose response is awaited.
struct PendingEntry {
    thread: Thread,
    subject: String,
}

impl PendingEntry {
    /// The response, if it has arrived.
    fn answer(&self) -> Option<Result<String>> {
        self.thread.ephemeral.deliveries.awaited.borrow_mut().remove(&self.subject).flatten()
    }
}

impl Drop for PendingEntry {
    fn drop(&mut self) {
        self.thread.ephemeral.deliveries.awaited.borrow_mut().remove(&self.subject);
    }
}
