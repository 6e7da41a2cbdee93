//! Notes that models save, change and delete, and messages that are ingested automatically. A shared memory
//! receives them through outboxes, each with a key: it may arrive twice and is applied once.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::host::Sql;
use crate::memory::documents::{NewDocument, delete};
use crate::memory::{MemoryStore, PendingWork};
use crate::store::memory as stores;
use crate::store::memory::docs;
use crate::store::memory::docs::Doc;
use crate::store::memory::shared as table;

/// Source of a document that is a note.
pub(crate) const NOTE: &str = "note";
/// Source of a document that is a message of a thread.
pub(crate) const MESSAGE: &str = "message";

/// A change of a note or message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoteChange {
    /// A new note; its key is its id.
    Save(NewDocument),
    /// A new text under the same title.
    Update {
        /// Its id.
        id: String,
        /// The text.
        text: String,
    },
    /// Deletes a note.
    Delete {
        /// Its id.
        id: String,
    },
    /// A document that no model has saved; replaces the one with the same key.
    Keep(NewDocument),
    /// Deletes the document with a key, if there is one.
    Forget {
        /// Its key.
        key: String,
    },
}

/// A change sent by a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NoteRequest {
    /// Idempotency key, the same for every delivery.
    pub(crate) key: String,
    pub(crate) change: NoteChange,
}

impl NoteChange {
    /// The result for the model that requested the change.
    pub(crate) fn result_text(&self) -> String {
        match self {
            NoteChange::Save(document) | NoteChange::Keep(document) => document.key.clone(),
            NoteChange::Update { id, .. } => id.clone(),
            NoteChange::Delete { id } => format!("Forgot {id}."),
            NoteChange::Forget { key } => format!("Forgot {key}."),
        }
    }
}

impl NoteChange {
    /// A description for people.
    pub(crate) fn sent(&self) -> String {
        match self {
            NoteChange::Save(_) => "what a model had saved".to_owned(),
            NoteChange::Update { id, .. } => format!("another text of {id}"),
            NoteChange::Delete { id } => format!("to forget {id}"),
            NoteChange::Keep(document) => format!("the document {}", document.key),
            NoteChange::Forget { key } => format!("to forget the document {key}"),
        }
    }
}

impl MemoryStore<'_> {
    /// The change with cleaned texts.
    pub(crate) fn clean_change(&self, change: NoteChange) -> Result<NoteChange> {
        Ok(match change {
            NoteChange::Save(document) => NoteChange::Save(self.cleaned(document)?),
            NoteChange::Update { id, text } => NoteChange::Update {
                id,
                text: self.cleaned(NewDocument { text, ..NewDocument::default() })?.text,
            },
            NoteChange::Keep(document) => NoteChange::Keep(self.cleaned(document)?),
            gone @ (NoteChange::Delete { .. } | NoteChange::Forget { .. }) => gone,
        })
    }

    /// Applies a change from a thread's own memory. Returns the text for the model.
    pub(crate) fn change_note(&self, change: NoteChange) -> Result<String> {
        let change = self.clean_change(change)?;
        let new = matches!(change, NoteChange::Save(_));
        let mut there = self.memory_host.has_tables()?;
        if new && !there {
            self.memory_host.make_tables()?;
            there = true;
        }
        self.change(|sql| self.note(sql, &change, there))
    }

    /// Applies a delivered change once. Returns the text for the model.
    pub(super) fn apply(&self, request: NoteRequest) -> Result<String> {
        let change = self.clean_change(request.change)?;
        if !self.memory_host.has_tables()? {
            self.memory_host.make_tables()?;
        }
        let now = self.now_us();
        self.change(|sql| match table::record_entry(sql, &request.key, now)? {
            true => self.note(sql, &change, true),
            false => Ok((change.result_text(), PendingWork::Nothing)),
        })
    }

    /// `there`: whether the tables exist. Read before, because the host cannot be called within its
    /// transaction.
    fn note(&self, sql: &dyn Sql, change: &NoteChange, there: bool) -> Result<(String, PendingWork)> {
        let owes = match change {
            NoteChange::Save(document) | NoteChange::Keep(document) => {
                let store = stores::open(sql, &self.memory.name, &self.identity())?;
                self.store(sql, &store, document)?.1
            }
            NoteChange::Update { id, text } => {
                let known = self.noted(sql, id, there)?.ok_or_else(|| self.no_document(id))?;
                let store = stores::open(sql, &self.memory.name, &self.identity())?;
                let document = NewDocument {
                    key: known.key,
                    source: NOTE.to_owned(),
                    title: known.title,
                    tags: known.tags,
                    text: text.clone(),
                    ..NewDocument::default()
                };
                self.store(sql, &store, &document)?.1
            }
            NoteChange::Delete { id } => {
                let Some(known) = self.noted(sql, id, there)? else {
                    return Ok((format!("There is no note {id}."), PendingWork::Nothing));
                };
                delete(sql, &known)?;
                PendingWork::Nothing
            }
            NoteChange::Forget { key } => {
                let store = if there { stores::find(sql, &self.memory.name)? } else { None };
                if let Some(store) = store
                    && let Some(known) = docs::by_key(sql, store.id, key)?
                {
                    delete(sql, &known)?;
                }
                PendingWork::Nothing
            }
        };
        Ok((change.result_text(), owes))
    }

    /// A note by its id. Models may not change other documents.
    fn noted(&self, sql: &dyn Sql, id: &str, there: bool) -> Result<Option<Doc>> {
        let store = if there { stores::find(sql, &self.memory.name)? } else { None };
        let Some(store) = store else { return Ok(None) };
        let known = match docs::parse_id(id) {
            Some(number) => docs::by_id(sql, store.id, number)?,
            None => docs::by_key(sql, store.id, id)?,
        };
        match known {
            Some(doc) if doc.source != NOTE => {
                Err(Error::field("id", format!("id: {id} is a document, not a note.")))
            }
            known => Ok(known),
        }
    }
}
