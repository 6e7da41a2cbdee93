//! Notes: what models save, change and forget, and messages, which come in by themselves. Those of a memory that threads share come
//! as letters, each with a key: it may come more than once, and is applied once.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::host::Sql;
use crate::memory::documents::{NewDocument, delete};
use crate::memory::{Book, Owes};
use crate::store::memory as stores;
use crate::store::memory::docs;
use crate::store::memory::docs::Doc;
use crate::store::memory::work as table;

/// Where a document is from that is a note.
pub(crate) const NOTE: &str = "note";
/// One that was said in a thread.
pub(crate) const MESSAGE: &str = "message";

/// What becomes of a note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoteChange {
    /// A new one; its key is its id.
    Save(NewDocument),
    /// Another text, under the same title.
    Update {
        /// Its id.
        id: String,
        /// The text.
        text: String,
    },
    /// It is forgotten.
    Delete {
        /// Its id.
        id: String,
    },
    /// A document that no model has saved; what is there under its key is replaced.
    Keep(NewDocument),
    /// The document of that key is forgotten, if there is one.
    Forget {
        /// Its key.
        key: String,
    },
}

/// A change that a thread sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Letter {
    /// The same whenever it is sent again.
    pub(crate) key: String,
    pub(crate) change: NoteChange,
}

impl NoteChange {
    /// What a model is told of one that is made.
    pub(crate) fn told(&self) -> String {
        match self {
            NoteChange::Save(document) | NoteChange::Keep(document) => document.key.clone(),
            NoteChange::Update { id, .. } => id.clone(),
            NoteChange::Delete { id } => format!("Forgot {id}."),
            NoteChange::Forget { key } => format!("Forgot {key}."),
        }
    }
}

impl NoteChange {
    /// What it is, for people.
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

impl Book<'_> {
    /// The change with texts that may be kept.
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

    /// Changes a note; what a model is told of it.
    pub(crate) fn change_note(&self, change: NoteChange) -> Result<String> {
        let change = self.clean_change(change)?;
        let new = matches!(change, NoteChange::Save(_));
        let mut there = self.keeper.has_tables()?;
        if new && !there {
            self.keeper.make_tables()?;
            there = true;
        }
        self.change(|sql| self.note(sql, &change, there))
    }

    /// Takes a letter; what the model that wrote it is told.
    pub(crate) fn apply(&self, letter: Letter) -> Result<String> {
        let change = self.clean_change(letter.change)?;
        if !self.keeper.has_tables()? {
            self.keeper.make_tables()?;
        }
        let now = self.now_us();
        self.change(|sql| match table::take(sql, &letter.key, now)? {
            true => self.note(sql, &change, true),
            false => Ok((change.told(), Owes::Nothing)),
        })
    }

    /// `there`: whether the tables are. Asked before, because the keeper is not to be asked within its transaction.
    fn note(&self, sql: &dyn Sql, change: &NoteChange, there: bool) -> Result<(String, Owes)> {
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
                    return Ok((format!("There is no note {id}."), Owes::Nothing));
                };
                delete(sql, &known)?;
                Owes::Nothing
            }
            NoteChange::Forget { key } => {
                let store = if there { stores::find(sql, &self.memory.name)? } else { None };
                if let Some(store) = store
                    && let Some(known) = docs::by_key(sql, store.id, key)?
                {
                    delete(sql, &known)?;
                }
                Owes::Nothing
            }
        };
        Ok((change.told(), owes))
    }

    /// A note by its id. What else is in the memory is not a model's to change.
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
