//! The files of [`ThreadState`] (spec §16.2). Every method acts immediately.

use bytes::Bytes;
use futures::stream::LocalBoxStream;
use serde_json::Value;

use crate::error::Result;
use crate::request::Query;
use crate::sdk::ThreadState;
use crate::store::file_record::{FileChunk, FileOptions, FileRecord, FileStats, GrepResult};

/// Paths are normalized: `notes//a.md` is `/notes/a.md`. Methods fail with the codes of the API:
/// `invalid_field` for an invalid path, `conflict` for a directory instead of a file or the reverse.
impl ThreadState {
    /// Writes a file, replacing an existing one, and creates missing directories above it.
    ///
    /// # Errors
    /// `too_large` beyond [`limits::FILE_WHOLE_BYTES`] and the other limits.
    pub fn write_file(
        &self,
        path: &str,
        data: impl AsRef<[u8]>,
        mime_type: &str,
        options: FileOptions,
    ) -> Result<FileRecord> {
        self.door().write_file(path, data.as_ref(), mime_type, options)
    }

    /// The bytes of a file; `None` when it does not exist.
    ///
    /// # Errors
    /// `too_large` beyond [`limits::FILE_WHOLE_BYTES`]: read it as a stream.
    pub fn read_file(&self, path: &str) -> Result<Option<Bytes>> {
        self.door().read_file(path)
    }

    /// A file in pieces; `None` when it does not exist. A piece is an error if the file was replaced
    /// meanwhile.
    pub fn read_file_stream(&self, path: &str) -> Result<Option<LocalBoxStream<'static, Result<FileChunk>>>> {
        self.door().read_file_stream(path)
    }

    /// The record of a path.
    pub fn stat_file(&self, path: &str) -> Result<Option<FileRecord>> {
        self.door().stat_file(path)
    }

    /// The entries of a directory, directories first, then by name; empty when it does not exist.
    pub fn readdir_file(&self, path: &str) -> Result<Vec<FileRecord>> {
        self.door().readdir_file(path)
    }

    /// A page of the entries: the query (`limit`, `cursor`) and the response of `GET …/fs/{path}`.
    ///
    /// # Errors
    /// `not_found`; `conflict` for a file.
    pub fn readdir_page(&self, path: &str, query: &Query) -> Result<Value> {
        self.door().readdir_page(path, query)
    }

    /// Deletes a file; does nothing when it does not exist.
    pub fn unlink_file(&self, path: &str) -> Result<()> {
        self.door().unlink_file(path)
    }

    /// Creates a directory, and those above it. An existing one is kept.
    pub fn mkdir_file(&self, path: &str) -> Result<FileRecord> {
        self.door().mkdir_file(path)
    }

    /// Deletes an empty directory.
    ///
    /// # Errors
    /// `not_found`; `conflict` when it is not empty.
    pub fn rmdir_file(&self, path: &str) -> Result<()> {
        self.door().rmdir_file(path)
    }

    /// Deletes a directory with its contents, or a file; does nothing when it does not exist.
    pub fn remove_all(&self, path: &str) -> Result<()> {
        self.door().remove_all(path)
    }

    /// Moves a file, or a directory with its contents, to another path.
    ///
    /// # Errors
    /// `not_found`; `conflict` when the destination exists; `invalid_field` for the root, and for a directory
    /// into itself.
    pub fn move_file(&self, from: &str, to: &str) -> Result<FileRecord> {
        self.door().move_file(from, to)
    }

    /// The number and size of the files.
    pub fn get_file_stats(&self) -> Result<FileStats> {
        self.door().get_file_stats()
    }

    /// Lines of text files that contain `pattern`, ignoring case; in at most [`limits::FOUND_FILES`] files.
    pub fn grep_files(&self, pattern: &str) -> Result<Vec<GrepResult>> {
        self.door().grep_files(pattern)
    }

    /// Paths that match a pattern of `*`, `**` and `?`; at most [`limits::FOUND_FILES`].
    pub fn find_files(&self, pattern: &str) -> Result<Vec<String>> {
        self.door().find_files(pattern)
    }

    /// The thumbnail that is stored with a file.
    pub fn get_file_thumbnail(&self, path: &str) -> Result<Option<Bytes>> {
        self.door().get_file_thumbnail(path)
    }
}

/// The thread's side of files, for any host.
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
