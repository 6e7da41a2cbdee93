//! Writes a file. The content is stored under a new id, in as many rows as needed. One transaction gives it
//! its path when it is complete. An interrupted write is therefore never visible and leaves the previous
//! content unchanged.

use futures::StreamExt;
use serde_json::Value;

use crate::engine::features::Files;
use crate::engine::files::conditions::Conditions;
use crate::engine::files::{no_room, search, tree};
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::host::{Sql, http};
use crate::limits;
use crate::request::fields::bounded;
use crate::store::changes::FileChange;
use crate::store::file_path::FilePath;
use crate::store::file_record::{FileOptions, FileRecord};
use crate::store::files::{Kind, Row, Search};
use crate::store::objects::Storage;
use crate::store::state::State;
use crate::store::{chunks, file_texts, files as table};

/// A file to write.
#[derive(Debug)]
pub(crate) struct Draft {
    path: FilePath,
    mime: String,
    pub(super) options: FileOptions,
    conditions: Conditions,
}

/// A file that was written.
pub(crate) struct WrittenFile {
    pub(crate) record: FileRecord,
    /// Whether the file was created.
    pub(crate) created: bool,
}

/// Content to install.
pub(super) enum Content<'a> {
    /// The whole content, not stored yet.
    Whole(&'a [u8]),
    /// Content that is stored under its own id.
    Stored(Row),
}

impl Draft {
    /// Checks everything that does not depend on the thread.
    ///
    /// # Errors
    /// `invalid_field`, `too_large`.
    pub(crate) fn new(
        path: FilePath,
        mime: &str,
        options: FileOptions,
        conditions: Conditions,
    ) -> Result<Draft> {
        if path.is_root() {
            return Err(Error::field("path", "`path` is the root; give a file's path."));
        }
        let mime = mime.trim();
        let plain =
            mime.len() <= limits::FILE_TYPE_BYTES && mime.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if !plain || mime.split_once('/').is_none_or(|(kind, rest)| kind.is_empty() || rest.is_empty()) {
            return Err(Error::field("mimeType", "The type of a file is like `text/plain`; this is none."));
        }
        if let Some(metadata) = &options.metadata {
            bounded("metadata", &Value::Object(metadata.clone()))?;
        }
        if let Some(thumbnail) = options.thumbnail.as_ref().filter(|t| t.len() > limits::THUMBNAIL_BYTES) {
            return Err(Error::new(
                Code::TooLarge,
                format!(
                    "`thumbnail` has {} bytes; the limit is {}.",
                    thumbnail.len(),
                    limits::THUMBNAIL_BYTES
                ),
            )
            .at("thumbnail"));
        }
        Ok(Draft { path, mime: mime.to_owned(), options, conditions })
    }

    /// The row of the file, without a path.
    pub(super) fn row(&self, kind: Kind, size: u64, now: i64) -> Row {
        let metadata = self.options.metadata.as_ref().filter(|metadata| !metadata.is_empty());
        Row {
            id: 0,
            parent: None,
            name: self.path.as_str().to_owned(),
            kind,
            mime: self.mime.clone(),
            size: i64::try_from(size).unwrap_or(i64::MAX),
            chunks: i64::try_from(chunks::of_size(size)).unwrap_or(i64::MAX),
            metadata: metadata.map(|metadata| Value::Object(metadata.clone()).to_string()),
            width: self.options.width.map(i64::from),
            height: self.options.height.map(i64::from),
            created_us: now,
            updated_us: now,
            search: Search::No,
            storage: Storage::Local,
        }
    }
}

/// Refuses a file of this size if it is too large.
pub(super) fn check_size(size: u64) -> Result<()> {
    if size <= limits::FILE_BYTES {
        return Ok(());
    }
    Err(Error::new(
        Code::TooLarge,
        format!("The file has {size} bytes; the limit is {}.", limits::FILE_BYTES),
    )
    .at("size"))
}

/// Refuses more content than the thread's database may hold.
pub(super) fn check_room(sql: &dyn Sql, more: u64) -> Result<()> {
    let there = sql.size();
    if there.saturating_add(i64::try_from(more).unwrap_or(i64::MAX)) <= limits::THREAD_BYTES {
        return Ok(());
    }
    Err(Error::new(
        Code::TooLarge,
        format!(
            "The thread's database has {there} bytes; {more} more are beyond the limit of {}.",
            limits::THREAD_BYTES
        ),
    )
    .hint("Remove files first."))
}

/// The row that a draft would replace, or an error if it cannot be written.
pub(super) fn check_draft(state: &State, sql: &dyn Sql, draft: &Draft) -> Result<Option<Row>> {
    state.ensure_not_terminated()?;
    let old = table::find(sql, &draft.path)?;
    if old.as_ref().is_some_and(|old| old.kind == Kind::Directory) {
        return Err(tree::is_directory(&draft.path));
    }
    draft.conditions.check(old.as_ref().map(Row::etag).as_deref())?;
    tree::missing_parents(sql, &draft.path)?;
    Ok(old)
}

impl Files<'_> {
    /// Writes a file from its whole content.
    pub(crate) fn write_whole(&self, draft: &Draft, content: &[u8]) -> Result<WrittenFile> {
        let written = self.install_whole(draft, content)?;
        self.prune_files();
        Ok(written)
    }

    fn install_whole(&self, draft: &Draft, content: &[u8]) -> Result<WrittenFile> {
        let now = self.host.now_us();
        self.make_index(&draft.mime, content.len() as u64)?;
        self.transition(|state, sql| {
            check_room(sql, content.len() as u64)?;
            install(state, sql, draft, Content::Whole(content), now)
        })
    }

    /// Writes a file from a stream; `declared` is its length, if known. If the body breaks off, the stored
    /// part is deleted.
    pub(crate) async fn write_stream(
        &self,
        draft: &Draft,
        declared: Option<u64>,
        body: http::Body,
    ) -> Result<WrittenFile> {
        check_size(declared.unwrap_or(0))?;
        self.read(|state, sql| {
            check_room(sql, declared.unwrap_or(0))?;
            check_draft(state, sql, draft)
        })?;
        let written = self.take_in(draft, declared, body).await;
        self.prune_files();
        written
    }

    async fn take_in(
        &self,
        draft: &Draft,
        declared: Option<u64>,
        mut body: http::Body,
    ) -> Result<WrittenFile> {
        let mut intake = Intake::new(self, draft);
        while let Some(piece) = body.next().await {
            intake.take(&piece.map_err(|error| broke_off(&error))?)?;
        }
        let size = intake.size;
        if let Some(declared) = declared.filter(|declared| *declared != size) {
            return Err(Error::field(
                "content-length",
                format!("The body has {size} bytes, but {declared} were announced."),
            ));
        }
        if intake.writing.is_none() {
            return self.install_whole(draft, &intake.waiting);
        }
        let writing = intake.store()?;
        self.install_stored(draft, size, |sql| {
            let chunks = i64::try_from(chunks::of_size(size)).unwrap_or(i64::MAX);
            Ok(Row { size: i64::try_from(size).unwrap_or(i64::MAX), chunks, ..writing.row(sql)? })
        })
    }

    fn begin_write(&self, draft: &Draft) -> Result<PendingContent> {
        let now = self.host.now_us();
        let open = self.ephemeral.files.writing.borrow().len();
        if open >= limits::WRITES {
            return Err(Error::new(
                Code::Conflict,
                format!("{open} large files of this thread are being written; that is the limit."),
            )
            .hint("Try again once one is done."));
        }
        let id = self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            draft.row(Kind::Write, 0, now).insert(sql)
        })?;
        self.ephemeral.files.writing.borrow_mut().insert(id);
        Ok(PendingContent { thread: self.0.clone(), id })
    }

    fn store_chunk(&self, id: i64, index: i64, chunk: &[u8]) -> Result<()> {
        self.read(|state, sql| {
            state.ensure_not_terminated()?;
            check_room(sql, chunk.len() as u64)?;
            chunks::put(sql, id, index, chunk)
        })
    }

    /// Creates the index over texts before the first text is stored.
    pub(crate) fn make_index(&self, mime: &str, size: u64) -> Result<()> {
        if !search::is_text(mime, size) {
            return Ok(());
        }
        self.read_mut(|state, sql| {
            if !state.file_texts {
                state.ensure_not_terminated()?;
                file_texts::make(sql)?;
                state.file_texts = true;
            }
            Ok(())
        })
    }

    /// Gives stored content of this size its path.
    pub(super) fn install_stored(
        &self,
        draft: &Draft,
        size: u64,
        stored: impl FnOnce(&dyn Sql) -> Result<Row>,
    ) -> Result<WrittenFile> {
        let now = self.host.now_us();
        self.make_index(&draft.mime, size)?;
        self.transition(|state, sql| {
            let stored = Row { storage: self.storage_for(size), ..stored(sql)? };
            install(state, sql, draft, Content::Stored(stored), now)
        })
    }

    /// Deletes a bounded part of the content of interrupted writes, expired uploads and large replaced files,
    /// and continues moves to the bucket. It belongs to no request, so errors are not reported; the next
    /// write tries again.
    pub(crate) fn prune_files(&self) {
        if let Err(error) = self.prune() {
            self.variables().log(&format!("files were not pruned: {error}"));
        }
        self.tend_bucket();
    }

    /// The same until nothing is left, in parallel with the caller and with pauses for other work. After a
    /// crash or an eviction the next write continues.
    pub(crate) fn prune_all(&self) {
        self.prune_files();
        let thread = self.0.clone();
        self.host.spawn(Box::pin(async move {
            loop {
                thread.host.sleep_until(thread.host.now_us() + limits::PRUNE_PAUSE_US).await;
                match thread.files().prune() {
                    Ok(true) => {}
                    Ok(false) => return thread.files().tend_bucket(),
                    // The thread was deleted.
                    Err(error) if error.code == Code::ThreadNotFound => return,
                    Err(error) => return thread.variables().log(&format!("files were not pruned: {error}")),
                }
            }
        }));
    }

    /// Returns whether there is more.
    fn prune(&self) -> Result<bool> {
        let expired = self.host.now_us() - limits::UPLOAD_US;
        let mut left = self.read(|_, sql| table::placeless(sql, expired))?;
        left.retain(|row| {
            row.kind != Kind::Write || !self.ephemeral.files.writing.borrow().contains(&row.id)
        });
        if left.is_empty() {
            return Ok(false);
        }
        self.transition(|_, sql| {
            let mut limit = limits::PRUNED_CHUNKS;
            for row in &left {
                if row.search == Search::Index {
                    file_texts::forget(sql, row.id)?;
                }
                limit -= table::delete(sql, row, limit)?;
                if limit <= 0 {
                    break;
                }
            }
            Ok(true)
        })
    }
}

/// Whether an upload has expired.
pub(super) fn expired(row: &Row, now: i64) -> bool {
    row.created_us.saturating_add(limits::UPLOAD_US) <= now
}

/// Refuses another upload if too many are in progress.
pub(super) fn check_open(sql: &dyn Sql, now: i64) -> Result<()> {
    let open = table::count_uploads(sql, now - limits::UPLOAD_US)?;
    if open < limits::UPLOADS {
        return Ok(());
    }
    Err(Error::new(
        Code::Conflict,
        format!("{open} uploads of this thread are under way; that is the limit."),
    )
    .hint("Complete or delete one first: GET …/uploads lists them."))
}

/// Installs content at its path. Runs inside a transition.
pub(super) fn install(
    state: &mut State,
    sql: &dyn Sql,
    draft: &Draft,
    content: Content<'_>,
    now: i64,
) -> Result<WrittenFile> {
    let old = check_draft(state, sql, draft)?;
    tree::make_parents(state, sql, &draft.path, now)?;
    match &old {
        None => no_room(tree::count(state, sql)?)?,
        Some(old) => tree::discard(sql, old)?,
    }
    let (parent, name) = draft.path.split().unwrap_or_default();
    let mut row = match &content {
        Content::Whole(bytes) => draft.row(Kind::File, bytes.len() as u64, now),
        Content::Stored(row) => row.clone(),
    };
    row.kind = Kind::File;
    row.parent = Some(parent.to_owned());
    row.name = name.to_owned();
    row.created_us = old.as_ref().map_or(now, |old| old.created_us);
    row.updated_us = now;
    let text = match &content {
        _ if !search::is_text(&row.mime, row.size.unsigned_abs()) => None,
        Content::Whole(bytes) => Some(search::folded(bytes)),
        Content::Stored(row) => Some(search::folded(&search::content(sql, row)?)),
    };
    row.search = text.as_deref().map_or(Search::No, search::found_by);
    match &content {
        Content::Whole(bytes) => {
            row.id = row.insert(sql)?;
            for (index, chunk) in (0..).zip(bytes.chunks(limits::FILE_CHUNK_BYTES)) {
                chunks::put(sql, row.id, index, chunk)?;
            }
        }
        Content::Stored(_) => row.update(sql)?,
    }
    if let Some(thumbnail) = &draft.options.thumbnail {
        chunks::put_thumbnail(sql, row.id, thumbnail)?;
    }
    if let Some(text) = text.filter(|_| row.search == Search::Index) {
        file_texts::enter(sql, row.id, &text)?;
    }
    if old.is_none() {
        state.files = state.files.map(|count| count + 1);
    }
    state.changed.file(FileChange::Written(draft.path.clone()));
    Ok(WrittenFile { record: row.record()?, created: old.is_none() })
}

/// Content from a stream.
pub(super) struct Intake<'a> {
    thread: &'a Thread,
    draft: &'a Draft,
    /// Its row, after the first part is stored.
    writing: Option<PendingContent>,
    /// Number of received bytes.
    pub(super) size: u64,
    chunks: i64,
    /// Bytes that are not stored yet: at most one chunk and one piece.
    waiting: Vec<u8>,
}

impl<'a> Intake<'a> {
    pub(super) fn new(thread: &'a Thread, draft: &'a Draft) -> Self {
        Intake { thread, draft, writing: None, size: 0, chunks: 0, waiting: Vec::new() }
    }

    /// Receives the next piece. Content of one chunk or less is not stored yet.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<()> {
        self.size += piece.len() as u64;
        check_size(self.size)?;
        self.waiting.extend_from_slice(piece);
        while self.waiting.len() > limits::FILE_CHUNK_BYTES {
            self.store_first(limits::FILE_CHUNK_BYTES)?;
        }
        Ok(())
    }

    /// Stores the rest. Then all content is in rows, without a path.
    pub(super) fn store(mut self) -> Result<PendingContent> {
        if !self.waiting.is_empty() {
            self.store_first(self.waiting.len())?;
        }
        match self.writing.take() {
            Some(writing) => Ok(writing),
            None => self.thread.files().begin_write(self.draft),
        }
    }

    fn store_first(&mut self, length: usize) -> Result<()> {
        let id = match &self.writing {
            Some(writing) => writing.id,
            None => self.writing.insert(self.thread.files().begin_write(self.draft)?).id,
        };
        self.thread.files().store_chunk(id, self.chunks, self.waiting.get(..length).unwrap_or_default())?;
        self.chunks += 1;
        self.waiting.drain(..length);
        Ok(())
    }
}

/// Content that is being written. When this value is dropped, the content may be deleted.
pub(super) struct PendingContent {
    thread: Thread,
    id: i64,
}

impl PendingContent {
    /// Its row.
    pub(super) fn row(&self, sql: &dyn Sql) -> Result<Row> {
        table::by_id(sql, self.id)?
            .ok_or_else(|| Error::new(Code::Conflict, "The content went away while it was being written."))
    }
}

impl Drop for PendingContent {
    fn drop(&mut self) {
        self.thread.ephemeral.files.writing.borrow_mut().remove(&self.id);
    }
}

fn broke_off(error: &http::FetchError) -> Error {
    Error::field("body", format!("The body broke off: {error}.")).hint("Send it again. Nothing was changed.")
}
