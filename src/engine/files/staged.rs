//! Files of another thread. Their content is stored without a path. The transition that stores the message
//! that shows them gives them their paths. Content that never gets a path is deleted by a later write.

use futures::StreamExt;
use serde_json::Value;

use crate::engine::features::Files;
use crate::engine::files::conditions::Conditions;
use crate::engine::files::search;
use crate::engine::files::write::{Content, Draft, Intake, PendingContent, check_room, check_size, install};
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::host::http::Body;
use crate::store::chunks;
use crate::store::file_path::FilePath;
use crate::store::file_record::{FileOptions, FileRecord};
use crate::store::files::{Kind, Row};
use crate::store::objects::Storage;
use crate::store::state::State;

/// The record of a file in another thread.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Foreign {
    pub(crate) name: String,
    pub(crate) mime_type: String,
    /// Bytes.
    pub(crate) size: u64,
    pub(crate) is_directory: bool,
    #[serde(default)]
    metadata: Option<serde_json::Map<String, Value>>,
    #[serde(default)]
    width: Option<u32>,
    #[serde(default)]
    height: Option<u32>,
    /// Its version; `None` for a directory.
    #[serde(default)]
    pub(crate) etag: Option<String>,
}

/// A file with stored content that has no path yet. The content is kept as long as this value lives.
pub(crate) struct StagedFile {
    pub(crate) file: Foreign,
    writing: PendingContent,
    storage: Storage,
}

impl Files<'_> {
    /// Stores the content of a file, piece by piece.
    ///
    /// # Errors
    /// `too_large`; `overloaded` if the content breaks off; `conflict` if its length differs from the record.
    pub(crate) async fn receive(&self, file: Foreign, mut content: Body) -> Result<StagedFile> {
        let size = file.size;
        check_size(size)?;
        self.read(|_, sql| check_room(sql, size))?;
        let path = FilePath::parse("path", &file.name)?;
        let draft = Draft::new(path, &file.mime_type, FileOptions::default(), Conditions::default())?;
        let mut intake = Intake::new(self, &draft);
        while let Some(piece) = content.next().await {
            let piece = piece.map_err(|error| {
                Error::new(Code::Overloaded, format!("The file “{}” broke off: {error}.", file.name))
            })?;
            intake.take(&piece)?;
        }
        if intake.size != size {
            let message = format!("The file “{}” has {size} bytes, but {} came.", file.name, intake.size);
            return Err(Error::new(Code::Conflict, message));
        }
        let writing = intake.store()?;
        self.make_index(&file.mime_type, size)?;
        Ok(StagedFile { writing, storage: self.storage_for(size), file })
    }
}

impl StagedFile {
    /// The content, of at most `limit` bytes; `None` if it is longer, or only the bucket has it.
    pub(crate) fn content(&self, sql: &dyn Sql, limit: usize) -> Result<Option<Vec<u8>>> {
        if self.file.size > limit as u64 {
            return Ok(None);
        }
        let chunks = i64::try_from(chunks::of_size(self.file.size)).unwrap_or(i64::MAX);
        search::content(sql, &Row { chunks, ..self.writing.row(sql)? }).map(Some)
    }

    /// The first row of its content.
    pub(crate) fn beginning(&self, sql: &dyn Sql) -> Result<Option<bytes::Bytes>> {
        chunks::find(sql, self.writing.row(sql)?.id, 0)
    }

    /// The options from its record.
    pub(crate) fn options(&self) -> FileOptions {
        let Foreign { metadata, width, height, .. } = self.file.clone();
        FileOptions { width, height, metadata, thumbnail: None }
    }

    /// Gives it its path, which must be free. Runs inside a transition.
    pub(crate) fn install(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        path: &str,
        options: FileOptions,
        now: i64,
    ) -> Result<FileRecord> {
        let path = FilePath::parse("path", path)?;
        let draft = Draft::new(path, &self.file.mime_type, options, Conditions::default())?;
        let row = Row {
            id: self.writing.row(sql)?.id,
            storage: self.storage,
            ..draft.row(Kind::File, self.file.size, now)
        };
        install(state, sql, &draft, Content::Stored(row), now).map(|written| written.record)
    }
}
