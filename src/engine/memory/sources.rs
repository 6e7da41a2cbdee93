//! Content that memories take in automatically (docs/memory.md): the messages of a thread after their run has
//! ended, and files. A transition that changes them notes the change in the same transaction. Deleted content
//! is no longer found from then on. `ingest` processes the notes. Threads whose agent has no such memory have
//! no cost.

use sha2::{Digest, Sha256};

use crate::definitions::{Memory, MemoryScope};
use crate::engine::features::Memories;
use crate::engine::files::glob::Glob;
use crate::engine::thread::{ChangeNotes, Thread};
use crate::error::Result;
use crate::host::Sql;
use crate::memory::documents::delete;
use crate::memory::notes::NoteChange;
use crate::store::changes::{FileChange, MessageChange};
use crate::store::file_path::FilePath;
use crate::store::memory as stores;
use crate::store::memory::sources::{IngestProgress, Kind};
use crate::store::memory::{Store, docs, sources, texts};
use crate::store::messages::{message_id, message_seq};
use crate::store::meta::Meta;
use crate::store::state::State;

/// Prefix of the keys of documents that are files.
pub(super) const FILE_KEY: &str = "file:";

/// The key of a file's document.
pub(super) fn file_key(path: &str) -> String {
    format!("{FILE_KEY}{path}")
}

/// The range of keys of files below a directory: from the first up to the second, exclusive.
pub(super) fn keys_below(directory: &FilePath) -> (String, String) {
    match directory.is_root() {
        true => (format!("{FILE_KEY}/"), format!("{FILE_KEY}0")),
        false => (format!("{FILE_KEY}{directory}/"), format!("{FILE_KEY}{directory}0")),
    }
}

/// The patterns of a memory's files.
pub(super) struct Patterns(Vec<Glob>);

impl Patterns {
    pub(super) fn of(memory: &Memory) -> Patterns {
        Patterns(memory.sources.files.iter().map(|pattern| Glob::new(pattern)).collect())
    }

    /// Whether one matches a path. Adds the number of steps to `work`.
    pub(super) fn match_path(&self, path: &str, work: &mut u64) -> bool {
        self.0.iter().any(|glob| glob.matches(path, work))
    }
}

/// A fingerprint of the patterns, which changes with them.
fn mark_of(memory: &Memory) -> String {
    if memory.sources.files.is_empty() {
        return String::new();
    }
    let digest = Sha256::digest(memory.sources.files.join("\n").as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

impl ChangeNotes for Thread {
    fn note_changes(&self, state: &mut State, sql: &dyn Sql) -> Result<()> {
        self.memories().note_changed_sources(state, sql)
    }
}

impl Memories<'_> {
    /// Notes all changes at the end of a transition.
    #[inline(never)]
    fn note_changed_sources(&self, state: &mut State, sql: &dyn Sql) -> Result<()> {
        let changed = std::mem::take(&mut state.changed);
        if state.meta.is_copying() {
            // A copy is processed when it is complete.
            return Ok(());
        }
        let run = state.run.clone().filter(|run| changed.run_ended || run.end.is_none());
        let takes = |memory: &&Memory| memory.sources.messages || !memory.sources.files.is_empty();
        for memory in self.catalog.memories.values().filter(takes) {
            let listed = self.is_listed(state, memory);
            if !listed && !sources::is_there(state, sql) {
                continue;
            }
            let mut owed = false;
            if listed {
                owed |= self.note_reach(state, sql, memory, changed.run_ended)?;
            }
            if memory.sources.messages {
                for (seq, change) in &changed.messages {
                    owed |= self.note_message(state, sql, memory, *seq, *change)?;
                }
            }
            if !memory.sources.files.is_empty() {
                for change in &changed.files {
                    owed |= self.note_file(state, sql, memory, listed, change)?;
                }
            }
            if owed {
                self.schedule_index(state, sql, &memory.name, run.as_ref())?;
                self.ephemeral.notify_alarm();
            }
        }
        Ok(())
    }

    /// Skips copied messages: shared memories have them from the source thread. Later messages are taken in.
    pub(crate) fn pass_over_copied(&self, state: &mut State, sql: &dyn Sql) -> Result<()> {
        let takes = |memory: &&Memory| {
            memory.scope != MemoryScope::Thread
                && (memory.sources.messages || !memory.sources.files.is_empty())
        };
        for memory in self.catalog.memories.values().filter(takes) {
            sources::make(state, sql)?;
            let upto = state.max_seq;
            sources::set_taken(
                sql,
                &memory.name,
                &IngestProgress { messages: upto, upto, files: mark_of(memory) },
            )?;
        }
        Ok(())
    }

    /// Whether a prompt of the thread's agent lists the memory. A memory of owners also requires that the
    /// thread has an owner.
    pub(super) fn is_listed(&self, state: &State, memory: &Memory) -> bool {
        if memory.scope == MemoryScope::Owner && state.meta.owner.is_none() {
            return false;
        }
        let Some(agent) = self.catalog.agents.get(&state.meta.agent) else { return false };
        let prompts = [Some(&agent.side_a), agent.side_b.as_ref()].into_iter().flatten();
        let mut prompts = prompts.filter_map(|side| self.catalog.prompts.get(&side.prompt));
        prompts.any(|prompt| prompt.memory.iter().any(|entry| entry.name == memory.name))
    }

    /// Notes up to where messages may be taken in, and the patterns of files. Files that existed before the
    /// patterns are scanned.
    fn note_reach(&self, state: &mut State, sql: &dyn Sql, memory: &Memory, run_ended: bool) -> Result<bool> {
        sources::make(state, sql)?;
        let known = sources::taken(sql, &memory.name)?.unwrap_or_default();
        let upto = match memory.sources.messages && run_ended {
            // A waiting message belongs to the run that receives it.
            true => state.undrained.map_or(state.max_seq, |undrained| undrained - 1),
            false => known.upto,
        };
        let reach = IngestProgress { files: mark_of(memory), upto: upto.max(known.upto), ..known.clone() };
        if reach == known {
            return Ok(false);
        }
        if reach.files != known.files {
            sources::add(sql, &memory.name, Kind::Tree, "/")?;
        }
        sources::set_taken(sql, &memory.name, &reach)?;
        Ok(true)
    }

    /// Hides the old version of a message that was taken in and has changed.
    fn note_message(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        memory: &Memory,
        seq: i64,
        change: MessageChange,
    ) -> Result<bool> {
        if !sources::is_there(state, sql) {
            return Ok(false);
        }
        let taken = sources::taken(sql, &memory.name)?.unwrap_or_default();
        if seq > taken.messages {
            // It is read in its turn, in its state at that time.
            return Ok(false);
        }
        self.forget_message(state, sql, memory, seq)?;
        if change == MessageChange::Edited {
            sources::add(sql, &memory.name, Kind::Message, &seq.to_string())?;
        }
        Ok(change == MessageChange::Edited)
    }

    /// Removes a message from a memory: at once if the memory is the thread's own, otherwise through the
    /// outbox.
    fn forget_message(&self, state: &mut State, sql: &dyn Sql, memory: &Memory, seq: i64) -> Result<()> {
        let key = message_key(state, memory, seq);
        if memory.scope != MemoryScope::Thread {
            return self.post_change(state, sql, memory, &key, NoteChange::Forget { key: key.clone() });
        }
        let Some(store) = self.store_of(state, sql, memory)? else { return Ok(()) };
        match docs::by_key(sql, store.id, &key)? {
            Some(doc) => delete(sql, &doc),
            None => Ok(()),
        }
    }

    fn note_file(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        memory: &Memory,
        listed: bool,
        change: &FileChange,
    ) -> Result<bool> {
        let store = self.store_of(state, sql, memory)?;
        let look = |sql: &dyn Sql, kind, path: &FilePath| {
            sources::add(sql, &memory.name, kind, path.as_str()).map(|()| true)
        };
        match change {
            FileChange::Written(path) if listed && Patterns::of(memory).match_path(path.as_str(), &mut 0) => {
                look(sql, Kind::File, path)
            }
            FileChange::Written(path) | FileChange::Removed(path) => {
                if let Some(store) = store
                    && let Some(doc) = docs::by_key(sql, store.id, &file_key(path.as_str()))?
                {
                    delete(sql, &doc)?;
                }
                Ok(false)
            }
            FileChange::RemovedBelow(path) => match store {
                Some(store) => self.hide_below(sql, memory, &store, path),
                None => Ok(false),
            },
            FileChange::Moved { from, to } => {
                if let Some(store) = &store {
                    // The target can only hold documents of an earlier agent that takes in no files.
                    self.hide_below(sql, memory, store, to)?;
                    move_documents(sql, store, from, to)?;
                }
                look(sql, Kind::File, to)?;
                look(sql, Kind::Tree, to)
            }
            FileChange::Many => {
                sources::add(sql, &memory.name, Kind::Tree, "/")?;
                Ok(true)
            }
        }
    }

    /// Hides documents of files below a directory, and schedules their deletion one by one. Returns whether
    /// there are any.
    fn hide_below(&self, sql: &dyn Sql, memory: &Memory, store: &Store, path: &FilePath) -> Result<bool> {
        let (from, to) = keys_below(path);
        let hidden = docs::hide(sql, store.id, (&from, &to))?;
        if hidden {
            texts::remove_hidden(sql, store.id)?;
            sources::add(sql, &memory.name, Kind::Gone, "")?;
        }
        Ok(hidden)
    }

    /// The row of a memory of the thread's own, if it has content.
    fn store_of(&self, state: &mut State, sql: &dyn Sql, memory: &Memory) -> Result<Option<Store>> {
        if memory.scope != MemoryScope::Thread {
            return Ok(None);
        }
        state.memories = state.memories || stores::is_there(sql);
        if state.memories { stores::find(sql, &memory.name) } else { Ok(None) }
    }
}

/// The key of a message in a memory: its id, preceded by its thread if several threads share the memory.
pub(super) fn message_key(state: &State, memory: &Memory, seq: i64) -> String {
    let Meta { thread_id: thread, stem, .. } = &state.meta;
    let id = message_id(stem, seq);
    match memory.scope {
        MemoryScope::Thread => format!("message:{id}"),
        MemoryScope::Owner | MemoryScope::Instance => format!("message:{thread}/{id}"),
    }
}

/// The seq in the key of a message of this thread.
pub(super) fn seq_in(meta: &Meta, key: &str) -> Option<i64> {
    let id = key.strip_prefix("message:")?;
    let own = id.strip_prefix(meta.thread_id.as_str()).and_then(|rest| rest.strip_prefix('/'));
    message_seq(&meta.stem, own.unwrap_or(id)).ok()
}

/// Moves documents with their files, because their texts are unchanged.
fn move_documents(sql: &dyn Sql, store: &Store, from: &FilePath, to: &FilePath) -> Result<()> {
    if let Some(doc) = docs::by_key(sql, store.id, &file_key(to.as_str()))? {
        delete(sql, &doc)?;
    }
    let below = keys_below(from);
    docs::rekey(sql, store.id, (&below.0, &below.1), &format!("{FILE_KEY}{to}/"))?;
    // The range contains only the file itself: no key lies between a text and the text with `\u{1}`.
    let own = file_key(from.as_str());
    docs::rekey(sql, store.id, (&own, &format!("{own}\u{1}")), &file_key(to.as_str()))
}
