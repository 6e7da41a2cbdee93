//! Its files, for the code that works in a thread.

use bytes::Bytes;
use futures::stream::LocalBoxStream;
use serde_json::Value;

use crate::engine::files::conditions::Conditions;
use crate::engine::files::tree::Removal;
use crate::engine::files::write::Draft;
use crate::engine::handle::Open;
use crate::error::{Code, Error, Result};
use crate::limits;
use crate::request::Query;
use crate::sdk::files::FilesApi;
use crate::store::chunks;
use crate::store::file_path::FilePath;
use crate::store::file_record::{FileChunk, FileOptions, FileRecord, FileStats, GrepResult};

impl FilesApi for Open {
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
        let told = self.thread.redactor();
        let options = told.shown(options).inner();
        let draft = Draft::new(self.at(path)?, &told.text(mime), options, Conditions::default())?;
        self.thread.write_whole(&draft, data).map(|written| written.record)
    }

    fn read_file(&self, path: &str) -> Result<Option<Bytes>> {
        self.thread.file(&self.at(path)?)?.map(|row| self.thread.whole(&row)).transpose()
    }

    fn read_file_stream(&self, path: &str) -> Result<Option<LocalBoxStream<'static, Result<FileChunk>>>> {
        Ok(self.thread.file(&self.at(path)?)?.map(|row| self.thread.chunks_of(row)))
    }

    fn stat_file(&self, path: &str) -> Result<Option<FileRecord>> {
        self.thread.stat(&self.at(path)?)
    }

    fn readdir_file(&self, path: &str) -> Result<Vec<FileRecord>> {
        self.thread.entries(&self.at(path)?)
    }

    fn readdir_page(&self, path: &str, query: &Query) -> Result<Value> {
        self.thread.list(&self.at(path)?, query)
    }

    fn unlink_file(&self, path: &str) -> Result<()> {
        self.scope.writes("delete a file")?;
        self.thread.remove(&self.at(path)?, Removal::File, &Conditions::default()).map(|_| ())
    }

    fn mkdir_file(&self, path: &str) -> Result<FileRecord> {
        self.scope.writes("make a directory")?;
        self.thread.mkdir(&self.at(path)?, &Conditions::default()).map(|(record, _)| record)
    }

    fn rmdir_file(&self, path: &str) -> Result<()> {
        self.scope.writes("delete a directory")?;
        let path = self.at(path)?;
        match self.thread.remove(&path, Removal::Directory, &Conditions::default())? {
            true => Ok(()),
            false => Err(crate::engine::files::tree::no_file(&path)),
        }
    }

    fn remove_all(&self, path: &str) -> Result<()> {
        self.scope.writes("delete files")?;
        if self.thread.remove(&self.at(path)?, Removal::Everything, &Conditions::default())? {
            self.thread.prune_all();
        }
        Ok(())
    }

    fn move_file(&self, from: &str, to: &str) -> Result<FileRecord> {
        self.scope.writes("move a file")?;
        self.thread.rename(&self.at(from)?, &self.at(to)?, &Conditions::default())
    }

    fn get_file_stats(&self) -> Result<FileStats> {
        self.thread.stats()
    }

    fn grep_files(&self, pattern: &str) -> Result<Vec<GrepResult>> {
        self.thread.grep(pattern).map(|found| found.results)
    }

    fn find_files(&self, pattern: &str) -> Result<Vec<String>> {
        let (files, _) = self.thread.find_now(pattern)?;
        Ok(files.into_iter().map(|file| file.path).collect())
    }

    fn get_file_thumbnail(&self, path: &str) -> Result<Option<Bytes>> {
        let Some(row) = self.thread.file(&self.at(path)?)? else { return Ok(None) };
        self.thread.read(|_, sql| chunks::thumbnail(sql, row.id))
    }
}

impl Open {
    /// A path that code names, without secrets: what it writes it finds again under the same name.
    fn at(&self, path: &str) -> Result<FilePath> {
        FilePath::shown("path", &self.thread.shown(path.to_owned()))
    }
}
