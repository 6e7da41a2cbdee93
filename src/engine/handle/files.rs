//! Files, for code in a thread.

use bytes::Bytes;
use futures::stream::LocalBoxStream;
use serde_json::Value;

use crate::engine::files::conditions::Conditions;
use crate::engine::files::tree::Removal;
use crate::engine::files::write::Draft;
use crate::engine::handle::ThreadHandle;
use crate::error::{Code, Error, Result};
use crate::json;
use crate::limits;
use crate::request::Query;
use crate::sdk::files::FilesApi;
use crate::store::chunks;
use crate::store::file_path::FilePath;
use crate::store::file_record::{FileChunk, FileOptions, FileRecord, FileStats, GrepResult};

impl FilesApi for ThreadHandle {
    fn write_file(&self, path: &str, data: &[u8], mime: &str, options: FileOptions) -> Result<FileRecord> {
        self.scope.writes("write a file")?;
        if data.len() > limits::FILE_WHOLE_BYTES {
            let message = format!(
                "{} bytes are too many to write at once; the limit is {}.",
                data.len(),
                limits::FILE_WHOLE_BYTES
            );
            return Err(Error::new(Code::TooLarge, message));
        }
        let told = self.thread.variables().redactor();
        let options = told.shown(options).inner();
        let draft = Draft::new(self.at(path)?, &told.text(mime), options, Conditions::default())?;
        self.thread.files().write_whole(&draft, data).map(|written| written.record)
    }

    fn read_file(&self, path: &str) -> Result<Option<Bytes>> {
        self.thread.files().file(&self.at(path)?)?.map(|row| self.thread.files().whole(&row)).transpose()
    }

    fn read_file_stream(&self, path: &str) -> Result<Option<LocalBoxStream<'static, Result<FileChunk>>>> {
        Ok(self.thread.files().file(&self.at(path)?)?.map(|row| self.thread.files().chunks_of(row)))
    }

    fn stat_file(&self, path: &str) -> Result<Option<FileRecord>> {
        self.thread.files().stat(&self.at(path)?)
    }

    fn readdir_file(&self, path: &str) -> Result<Vec<FileRecord>> {
        self.thread.files().entries(&self.at(path)?)
    }

    fn readdir_page(&self, path: &str, query: &Query) -> Result<Value> {
        Ok(json!(self.thread.files().list(&self.at(path)?, query)?))
    }

    fn unlink_file(&self, path: &str) -> Result<()> {
        self.scope.writes("delete a file")?;
        self.thread.files().remove(&self.at(path)?, Removal::File, &Conditions::default()).map(|_| ())
    }

    fn mkdir_file(&self, path: &str) -> Result<FileRecord> {
        self.scope.writes("make a directory")?;
        self.thread.files().mkdir(&self.at(path)?, &Conditions::default()).map(|(record, _)| record)
    }

    fn rmdir_file(&self, path: &str) -> Result<()> {
        self.scope.writes("delete a directory")?;
        let path = self.at(path)?;
        match self.thread.files().remove(&path, Removal::Directory, &Conditions::default())? {
            true => Ok(()),
            false => Err(crate::engine::files::tree::no_file(&path)),
        }
    }

    fn remove_all(&self, path: &str) -> Result<()> {
        self.scope.writes("delete files")?;
        if self.thread.files().remove(&self.at(path)?, Removal::Everything, &Conditions::default())? {
            self.thread.files().prune_all();
        }
        Ok(())
    }

    fn move_file(&self, from: &str, to: &str) -> Result<FileRecord> {
        self.scope.writes("move a file")?;
        self.thread.files().rename(&self.at(from)?, &self.at(to)?, &Conditions::default())
    }

    fn get_file_stats(&self) -> Result<FileStats> {
        self.thread.files().stats()
    }

    fn grep_files(&self, pattern: &str) -> Result<Vec<GrepResult>> {
        self.thread.files().grep(pattern).map(|found| found.results)
    }

    fn find_files(&self, pattern: &str) -> Result<Vec<String>> {
        let (files, _) = self.thread.files().find_now(pattern)?;
        Ok(files.into_iter().map(|file| file.path).collect())
    }

    fn get_file_thumbnail(&self, path: &str) -> Result<Option<Bytes>> {
        let Some(row) = self.thread.files().file(&self.at(path)?)? else { return Ok(None) };
        self.thread.read(|_, sql| chunks::thumbnail(sql, row.id))
    }
}

impl ThreadHandle {
    /// A path from code, without secrets. Reading and writing redact it alike, so code finds its files again.
    fn at(&self, path: &str) -> Result<FilePath> {
        FilePath::shown("path", &self.thread.variables().shown(path.to_owned()))
    }
}
