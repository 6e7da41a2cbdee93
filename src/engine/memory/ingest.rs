//! Takes noted content into memories, one step per transaction. A step reads the content as it is now. After
//! a crash the step is repeated.

use std::ops::ControlFlow;

use serde_json::{Map, Value};

use crate::definitions::message::Role;
use crate::definitions::{Memory, MemoryScope};
use crate::engine::features::Memories;
use crate::engine::memory::shared::{FULL, target_of};
use crate::engine::memory::sources::{FILE_KEY, Patterns, file_key, keys_below, message_key};
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::memory::documents::{NewDocument, delete};
use crate::memory::extract::text_of;
use crate::memory::notes::{MESSAGE, NoteChange};
use crate::memory::{MemoryHost, MemoryStore, PendingWork};
use crate::store::file_path::FilePath;
use crate::store::files::{Kind as FileKind, Row as FileRow};
use crate::store::memory as stores;
use crate::store::memory::docs::Doc;
use crate::store::memory::refusals;
use crate::store::memory::sources::{IngestProgress, Kind, PendingSource};
use crate::store::memory::{docs, sources};
use crate::store::messages::{Row, page};
use crate::store::state::State;
use crate::store::{files, messages as rows, outbox};

/// The source of a document that is a file.
const FILE: &str = "file";
/// The diagnostic of content that a memory does not take in.
const SKIPPED: &str = "memory.skipped";
/// Maximum number of hidden documents that one step deletes. Each may be large.
const GONE: usize = 8;

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepOutcome {
    /// There may be more.
    More,
    /// The maximum number of outbox entries is waiting.
    Waits,
    /// Everything is taken in.
    Nothing,
}

/// The change of a document.
enum DocumentChange {
    Keep(Box<NewDocument>),
    Forget,
}

/// The reason why a text is not taken in: a diagnostic's code, and its text.
type Rejection = (&'static str, String);

/// Messages that are taken in together.
struct MessageBatch {
    documents: Vec<NewDocument>,
    refused: Vec<Rejection>,
    /// Seq of the last one.
    upto: i64,
}

impl Memories<'_> {
    /// One step.
    pub(super) async fn take_sources(&self, memory_store: &MemoryStore<'_>) -> Result<StepOutcome> {
        let memory = memory_store.memory;
        let name = memory.name.as_str();
        let (pending, taken) = self.read_mut(|state, sql| {
            if state.meta.terminated_us.is_some() || !sources::is_there(state, sql) {
                return Ok((None, IngestProgress::default()));
            }
            Ok((sources::next(sql, name)?, sources::taken(sql, name)?.unwrap_or_default()))
        })?;
        if pending.is_none() && taken.messages >= taken.upto {
            return Ok(StepOutcome::Nothing);
        }
        // Secrets must be known, so that they are removed from stored texts.
        self.variables().ready_env().await?;
        if memory.scope == MemoryScope::Thread && !self.has_tables()? {
            self.make_tables()?;
        }
        match pending {
            Some(pending) if pending.kind == Kind::File => self.take_file(memory_store, &pending.of).await?,
            Some(pending) if pending.kind == Kind::Tree => self.ingest_directory(memory_store, pending)?,
            Some(pending) if pending.kind == Kind::Message => self.take_again(memory_store, &pending)?,
            Some(pending) => self.delete_hidden(memory_store, &pending)?,
            None if self.outbox_is_full(memory)? => return Ok(StepOutcome::Waits),
            None => self.take_messages(memory_store, &taken)?,
        }
        Ok(StepOutcome::More)
    }

    /// Whether the maximum number of outbox entries waits for a shared memory.
    fn outbox_is_full(&self, memory: &Memory) -> Result<bool> {
        self.read(|state, sql| match (memory.scope, &state.meta.owner) {
            (MemoryScope::Owner, Some(owner)) => {
                Ok(outbox::count_for(sql, &target_of(owner, memory))? >= limits::MEMORY_OUTBOX_ENTRIES)
            }
            _ => Ok(false),
        })
    }

    /// Takes in the next messages of runs that have ended.
    fn take_messages(&self, memory_store: &MemoryStore<'_>, taken: &IngestProgress) -> Result<()> {
        let batch = self.next_messages(memory_store, taken)?;
        self.keep(memory_store, batch.documents, batch.refused, |sql| {
            let now = sources::taken(sql, &memory_store.memory.name)?.unwrap_or_default();
            let messages = now.messages.max(batch.upto);
            sources::set_taken(sql, &memory_store.memory.name, &IngestProgress { messages, ..now })
        })
    }

    fn next_messages(&self, memory_store: &MemoryStore<'_>, taken: &IngestProgress) -> Result<MessageBatch> {
        let mut found: Vec<Row> = Vec::new();
        let mut upto = taken.upto;
        self.read(|_, sql| {
            let mut bytes = 0;
            page::visible_between(sql, taken.messages, taken.upto, &mut |row| {
                bytes += row.content.as_ref().map_or(0, String::len);
                let full =
                    found.len() + 1 >= limits::MEMORY_MESSAGES || bytes >= limits::MEMORY_MESSAGE_BYTES;
                if full {
                    upto = row.seq;
                }
                found.push(row);
                Ok(if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })
        })?;
        let mut batch = MessageBatch { documents: Vec::new(), refused: Vec::new(), upto };
        for row in &found {
            match self.document_of(memory_store, row)? {
                Ok(document) => batch.documents.extend(document),
                Err(refused) => batch.refused.push(refused),
            }
        }
        Ok(batch)
    }

    /// Takes in the current version of an edited message.
    fn take_again(&self, memory_store: &MemoryStore<'_>, pending: &PendingSource) -> Result<()> {
        let seq = pending.of.parse().unwrap_or_default();
        let row = self.read(|_, sql| rows::find(sql, seq))?;
        let shown = row
            .filter(|row| row.depth == 0 && !row.silent && matches!(row.role, Role::User | Role::Assistant));
        let (mut documents, mut refused) = (Vec::new(), Vec::new());
        match shown.map(|row| self.document_of(memory_store, &row)).transpose()? {
            Some(Ok(document)) => documents.extend(document),
            Some(Err(why)) => refused.push(why),
            None => {}
        }
        self.keep(memory_store, documents, refused, |sql| {
            sources::done(sql, &memory_store.memory.name, pending.kind, &pending.of)
        })
    }

    /// The document of a message; `None` for a message without text.
    fn document_of(
        &self,
        memory_store: &MemoryStore<'_>,
        row: &Row,
    ) -> Result<Result<Option<NewDocument>, Rejection>> {
        if row.is_status() || row.content.as_deref().is_none_or(|text| text.trim().is_empty()) {
            return Ok(Ok(None));
        }
        let (key, thread, id) = self.read(|state, _| {
            let meta = &state.meta;
            Ok((message_key(state, memory_store.memory, row.seq), meta.thread_id.clone(), row.id(&meta.stem)))
        })?;
        let text = row.content.clone().unwrap_or_default();
        if text.len() > limits::MEMORY_MESSAGE_BYTES {
            let most = limits::MEMORY_MESSAGE_BYTES >> 10;
            let text = format!(
                "The message {id} has {} bytes; a memory takes {most} KB of one at most.",
                text.len()
            );
            return Ok(Err((SKIPPED, text)));
        }
        let who = if row.role == Role::User { "The user said" } else { "The assistant said" };
        let meta = [("role", json!(row.role)), ("thread", json!(thread)), ("message", json!(id))];
        let document = NewDocument {
            key,
            source: MESSAGE.to_owned(),
            title: Some(who.to_owned()),
            meta: Some(Map::from_iter(meta.map(|(name, value)| (name.to_owned(), value)))),
            text,
            at_us: Some(row.created_us),
            ..NewDocument::default()
        };
        // Some texts have nothing left after secrets are removed.
        Ok(Ok(memory_store.cleaned(document).ok()))
    }

    /// Stores documents in their memory, and the position in the same transaction.
    fn keep(
        &self,
        memory_store: &MemoryStore<'_>,
        documents: Vec<NewDocument>,
        refused: Vec<Rejection>,
        noted: impl FnOnce(&dyn Sql) -> Result<()>,
    ) -> Result<()> {
        let fates = documents.into_iter().map(|document| {
            let key = document.key.clone();
            (key, DocumentChange::Keep(Box::new(document)))
        });
        self.record_results(memory_store, fates.collect(), refused, noted)
    }

    fn record_results(
        &self,
        memory_store: &MemoryStore<'_>,
        fates: Vec<(String, DocumentChange)>,
        mut refused: Vec<Rejection>,
        noted: impl FnOnce(&dyn Sql) -> Result<()>,
    ) -> Result<()> {
        let memory = memory_store.memory;
        let identity = memory_store.identity();
        self.transition(|state, sql| {
            for (key, fate) in fates {
                match (memory.scope, fate) {
                    (MemoryScope::Thread, DocumentChange::Keep(document)) => {
                        let store = stores::open(sql, &memory.name, &identity)?;
                        match memory_store.store(sql, &store, &document) {
                            Ok(_) => {}
                            Err(error) if error.code == Code::MemoryFull => {
                                // Deletes the previous version first.
                                if let Some(doc) = docs::by_key(sql, store.id, &key)? {
                                    delete(sql, &doc)?;
                                }
                                refused.push((FULL, error.into_message()));
                            }
                            Err(error) => return Err(error),
                        }
                    }
                    (MemoryScope::Thread, DocumentChange::Forget) => {
                        if let Some(store) = stores::find(sql, &memory.name)?
                            && let Some(doc) = docs::by_key(sql, store.id, &key)?
                        {
                            delete(sql, &doc)?;
                        }
                    }
                    (_, DocumentChange::Keep(document)) => {
                        self.post_change(state, sql, memory, &key, NoteChange::Keep(*document))?;
                    }
                    (_, DocumentChange::Forget) => {
                        self.post_change(state, sql, memory, &key, NoteChange::Forget { key: key.clone() })?;
                    }
                }
            }
            for (code, text) in &refused {
                refusals::add(state, sql, &memory.name, code, text)?;
            }
            noted(sql)?;
            crate::store::jobs::progressed(state, sql, &memory.name, true)
        })
    }

    /// Takes in the current version of a changed file.
    async fn take_file(&self, memory_store: &MemoryStore<'_>, path: &str) -> Result<()> {
        let memory = memory_store.memory;
        let at = FilePath::parse("path", path)?;
        let (row, known) = self.read(|_, sql| {
            let row = files::find(sql, &at)?.filter(|row| row.kind == FileKind::File);
            let store = stores::find(sql, &memory.name)?;
            let known =
                store.map(|store| docs::by_key(sql, store.id, &file_key(path))).transpose()?.flatten();
            Ok((row, known))
        })?;
        let taken = Patterns::of(memory).match_path(path, &mut 0)
            && (known.is_some() || self.read(|state, _| Ok(self.is_listed(state, memory)))?);
        let mut refused = Vec::new();
        let fate = match &row {
            Some(row) if taken => {
                if let Some(doc) = known.filter(|doc| is_of(doc, row)) {
                    return self.record_results(memory_store, Vec::new(), refused, |sql| {
                        // The file may have been moved, with the same text.
                        let doc = Doc { title: Some(path.to_owned()), meta: Some(meta_of(row)), ..doc };
                        docs::update(sql, &doc)?;
                        sources::done(sql, &memory.name, Kind::File, path)
                    });
                }
                match self.document_of_file(memory_store, path).await? {
                    Ok(document) => document
                        .map_or(DocumentChange::Forget, |document| DocumentChange::Keep(Box::new(document))),
                    Err(why) => {
                        refused.push(why);
                        DocumentChange::Forget
                    }
                }
            }
            _ => DocumentChange::Forget,
        };
        let read = row.map(|row| row.id);
        self.record_results(memory_store, vec![(file_key(path), fate)], refused, |sql| {
            // If the content was replaced during the read, the result is discarded and the new content is
            // taken in later.
            let now = files::find(sql, &at)?.filter(|row| row.kind == FileKind::File);
            match now.map(|row| row.id) == read {
                true => sources::done(sql, &memory.name, Kind::File, path),
                false => sources::add(sql, &memory.name, Kind::File, path),
            }
        })
    }

    /// The document of a file; `None` if it has no text, or was deleted.
    async fn document_of_file(
        &self,
        memory_store: &MemoryStore<'_>,
        path: &str,
    ) -> Result<Result<Option<NewDocument>, Rejection>> {
        let read = match self.document_file(path).await {
            Ok((text, mime, row)) => text_of(Some(&mime), text).map(|text| (text, mime, row)),
            Err(error) => Err(error),
        };
        let (text, mime, row) = match read {
            Ok(read) => read,
            Err(error) if error.code == Code::NotFound => return Ok(Ok(None)),
            Err(error) if error.code.status() < 500 => {
                return Ok(Err((SKIPPED, format!("{path} was not taken in: {}", error.into_message()))));
            }
            Err(error) => return Err(error),
        };
        let document = NewDocument {
            key: file_key(path),
            source: FILE.to_owned(),
            title: Some(path.to_owned()),
            mime: Some(mime),
            meta: crate::json::from_str(&meta_of(&row)).map_err(Error::internal)?,
            text,
            ..NewDocument::default()
        };
        Ok(Ok(memory_store.cleaned(document).ok()))
    }

    /// Scans the next files below a directory, and the documents from it.
    fn ingest_directory(&self, memory_store: &MemoryStore<'_>, pending: PendingSource) -> Result<()> {
        let name = memory_store.memory.name.as_str();
        let patterns = Patterns::of(memory_store.memory);
        let directory = FilePath::parse("path", &pending.of)?;
        self.transition(|state, sql| {
            let mut next = pending.clone();
            let mut paths: Vec<String> = Vec::new();
            let listed = self.is_listed(state, memory_store.memory);
            let (mut seen, mut work) = (0, 0);
            let mut full = false;
            files::tree::each_path(sql, pending.place, |id, path| {
                (next.place, seen) = (id, seen + 1);
                let below = listed && path.is_below(&directory);
                if below && patterns.match_path(path.as_str(), &mut work) {
                    paths.push(path.to_string());
                }
                full = seen >= limits::MEMORY_PATHS || work >= limits::FIND_SLICE_STEPS;
                if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            let mut documents = 0;
            if let Some(store) = stores::find(sql, name)? {
                let (from, to) = keys_below(&directory);
                docs::keys(sql, store.id, (&from, &to), pending.upto, |id, key| {
                    next.upto = id;
                    documents += 1;
                    paths.extend(key.strip_prefix(FILE_KEY).map(str::to_owned));
                    if documents < limits::MEMORY_PATHS {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                })?;
            }
            for path in &paths {
                sources::add(sql, name, Kind::File, path)?;
            }
            match !full && documents < limits::MEMORY_PATHS {
                true => sources::done(sql, name, Kind::Tree, &pending.of)?,
                false => sources::go_on(sql, name, &next)?,
            }
            crate::store::jobs::progressed(state, sql, name, true)
        })
    }

    /// Deletes some of the hidden documents.
    fn delete_hidden(&self, memory_store: &MemoryStore<'_>, pending: &PendingSource) -> Result<()> {
        let name = memory_store.memory.name.as_str();
        memory_store.change(|sql| {
            let store = stores::find(sql, name)?;
            let hidden = store.map(|store| docs::hidden(sql, store.id, GONE)).transpose()?;
            let hidden = hidden.unwrap_or_default();
            hidden.iter().try_for_each(|doc| delete(sql, doc))?;
            if hidden.len() < GONE {
                sources::done(sql, name, pending.kind, &pending.of)?;
            }
            Ok(((), PendingWork::Progress))
        })
    }

    /// Content that memories did not take in before a run, for its diagnostics. Each is reported once.
    pub(crate) fn take_refusals(&self, state: &mut State, sql: &dyn Sql) -> Result<Vec<refusals::Refusal>> {
        let uses = self.catalog.memories.values().any(|memory| self.is_listed(state, memory));
        if uses { refusals::take(state, sql) } else { Ok(Vec::new()) }
    }
}

/// Whether a document has the content of this row.
fn is_of(doc: &Doc, row: &FileRow) -> bool {
    let meta = doc.meta.as_deref().and_then(|meta| crate::json::from_str::<Value>(meta).ok());
    meta.is_some_and(|meta| meta.get("etag").and_then(Value::as_str) == Some(row.etag().as_str()))
}

/// The metadata of a file's document, which identifies the file.
fn meta_of(row: &FileRow) -> String {
    json!({ "path": row.path(), "etag": row.etag() }).to_string()
}
