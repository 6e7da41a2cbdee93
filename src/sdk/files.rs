//! The files of [`ThreadState`] (spec §16.2): every method acts at once.

use bytes::Bytes;
use futures::stream::LocalBoxStream;
use serde_json::Value;

use crate::error::Result;
use crate::request::Query;
use crate::sdk::ThreadState;
use crate::store::file_record::{FileChunk, FileOptions, FileRecord, FileStats, GrepResult};

/// Paths of files are brought into their form: `notes//a.md` is `/notes/a.md`. Methods fail with the codes of the API:
/// `invalid_field` for what is no path, `conflict` for a directory where a file is wanted and the other way round.
impl ThreadState {
    /// Writes a file, in place of an earlier one, and the directories above it that are missing.
    ///
    /// # Errors
    /// `too_large` beyond [`limits::FILE_WHOLE_BYTES`] and the other caps.
    pub fn write_file(
        &self,
        path: &str,
        data: impl AsRef<[u8]>,
        mime_type: &str,
        options: FileOptions,
    ) -> Result<FileRecord> {
        self.door().write_file(path, data.as_ref(), mime_type, options)
    }

    /// A file's bytes; `None` when there is none.
    ///
    /// # Errors
    /// `too_large` beyond [`limits::FILE_WHOLE_BYTES`]: read it as a stream.
    pub fn read_file(&self, path: &str) -> Result<Option<Bytes>> {
        self.door().read_file(path)
    }

    /// A file piece by piece; `None` when there is none. A piece is an error when the file was replaced meanwhile.
    pub fn read_file_stream(&self, path: &str) -> Result<Option<LocalBoxStream<'static, Result<FileChunk>>>> {
        self.door().read_file_stream(path)
    }

    /// What is at a path.
    pub fn stat_file(&self, path: &str) -> Result<Option<FileRecord>> {
        self.door().stat_file(path)
    }

    /// The entries of a directory, directories first, then by name; none when there is no such directory.
    pub fn readdir_file(&self, path: &str) -> Result<Vec<FileRecord>> {
        self.door().readdir_file(path)
    }

    /// A page of them: the query (`limit`, `cursor`) and the answer of `GET …/fs/{path}`.
    ///
    /// # Errors
    /// `not_found`; `conflict` for a file.
    pub fn readdir_page(&self, path: &str, query: &Query) -> Result<Value> {
        self.door().readdir_page(path, query)
    }

    /// Removes a file; without one nothing happens.
    pub fn unlink_file(&self, path: &str) -> Result<()> {
        self.door().unlink_file(path)
    }

    /// Makes a directory, and those above it; one that is there stays.
    pub fn mkdir_file(&self, path: &str) -> Result<FileRecord> {
        self.door().mkdir_file(path)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `not_found`; `conflict` when it is not empty.
    pub fn rmdir_file(&self, path: &str) -> Result<()> {
        self.door().rmdir_file(path)
    }

    /// Removes a directory with everything in it, or a file; without one nothing happens.
    pub fn remove_all(&self, path: &str) -> Result<()> {
        self.door().remove_all(path)
    }

    /// Gives a file, or a directory with everything in it, another path.
    ///
    /// # Errors
    /// `not_found`; `conflict` when something is there; `invalid_field` for the root and a directory into itself.
    pub fn move_file(&self, from: &str, to: &str) -> Result<FileRecord> {
        self.door().move_file(from, to)
    }

    /// How much there is.
    pub fn get_file_stats(&self) -> Result<FileStats> {
        self.door().get_file_stats()
    }

    /// Lines of text files with `pattern` in them, whatever its case; of at most [`limits::FOUND_FILES`] files.
    pub fn grep_files(&self, pattern: &str) -> Result<Vec<GrepResult>> {
        self.door().grep_files(pattern)
    }

    /// Paths that match a pattern of `*`, `**` and `?`; at most [`limits::FOUND_FILES`].
    pub fn find_files(&self, pattern: &str) -> Result<Vec<String>> {
        self.door().find_files(pattern)
    }

    /// The thumbnail that a file was given.
    pub fn get_file_thumbnail(&self, path: &str) -> Result<Option<Bytes>> {
        self.door().get_file_thumbnail(path)
    }
}

/// The files of the thread behind a [`ThreadState`], whatever its host.
pub(crate) trait FilesApi {
    fn write_file(&self, path: &str, data: &[u8], mime: &str, options: FileOptions) -> Result<FileRecord>;
    fn read_file(&self, path: &str) -> Result<Option<Bytes>>;
    fn read_file_stream(&self, path: &str) -> Result<Option<LocalBoxStream<'static, Result<FileChunk>>>>;
    fn stat_file(&self, path: &str) -> Result<Option<FileRecord>>;
    fn readdir_file(&self, path: &str) -> Result<Vec<FileRecord>>;
    fn readdir_page(&self, path: &str, query: &Query) -> Result<Value>;
    fn unlink_file(&self, path: &str) -> Result<()>;
    fn mkdir_file(&self, path: &str) -> Result<FileRecord>;
    fn rmdir_file(&self, path: &str) -> Result<()>;
    fn remove_all(&self, path: &str) -> Result<()>;
    fn move_file(&self, from: &str, to: &str) -> Result<FileRecord>;
    fn get_file_stats(&self) -> Result<FileStats>;
    fn grep_files(&self, pattern: &str) -> Result<Vec<GrepResult>>;
    fn find_files(&self, pattern: &str) -> Result<Vec<String>>;
    fn get_file_thumbnail(&self, path: &str) -> Result<Option<Bytes>>;
}
